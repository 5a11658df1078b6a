// The prompt of `stageline sql`: line editing with history and completion; statements end with a semicolon.
#pragma once

#include "cli/terminal.h"
#include "sql/session.h"

namespace stageline {

// Runs until Ctrl-D or .quit. Ctrl-C drops the line, or stops the query that runs. Returns an exit code. `widest` is as
// for sql::answer_text().
int run_sql_prompt(sql::Session& session, const Terminal& terminal, const sql::Limits& limits, size_t widest);

// A line that is being typed: what the keys make of it, without a terminal. Bytes are UTF-8.
class LineEditor {
 public:
  // Returns the words that complete the one before the cursor, in order.
  using Complete = std::function<std::vector<std::string>(const std::string& beginning)>;
  explicit LineEditor(Complete complete) : complete_(std::move(complete)) {}

  enum class Event { kNone, kLine, kEnd, kInterrupt };
  // Takes the next byte from the keyboard. kLine means that text() is a whole line, which take() hands out.
  Event key(unsigned char byte);
  const std::string& text() const { return text_; }
  size_t cursor() const { return cursor_; }
  std::string take();
  // The completions to choose from, besides the text that was filled in. They are valid until the next key.
  const std::vector<std::string>& offers() const { return offers_; }

 private:
  Event escape(unsigned char byte);
  void move(int letters);
  void erase(size_t from, size_t to);
  void complete();
  void recall(size_t place);

  Complete complete_;
  std::string text_, sequence_, typed_;  // typed_ is the line as it was before the user went to the history
  size_t cursor_ = 0, place_ = 0;
  std::vector<std::string> history_, offers_;
};

}  // namespace stageline
