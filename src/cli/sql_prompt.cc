#include "cli/sql_prompt.h"

#include <errno.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>

#include "base/sqlite_db.h"
#include "cli/commands.h"
#include "sql/answer.h"
#include "sql/functions.h"

namespace stageline {
namespace {

constexpr size_t kMaxHistory = 1000;
constexpr size_t kMaxPromptBytes = 100'000;

std::atomic<bool> g_interrupted{false};
void on_prompt_interrupt(int) { g_interrupted.store(true); }

// Delivers keys as they are pressed, and lets Ctrl-C interrupt the running query. The destructor restores the terminal.
class RawTerminal {
 public:
  RawTerminal() {
    is_raw_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    if (is_raw_) {
      termios raw = before_;
      raw.c_lflag &= ~(ICANON | ECHO);
      raw.c_cc[VMIN] = 1;
      raw.c_cc[VTIME] = 0;
      tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    struct sigaction action = {};
    action.sa_handler = on_prompt_interrupt;  // there is no SA_RESTART, so a read is interrupted
    sigaction(SIGINT, &action, &signal_before_);
  }
  ~RawTerminal() {
    sigaction(SIGINT, &signal_before_, nullptr);
    if (is_raw_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios before_ = {};
  struct sigaction signal_before_ = {};
  bool is_raw_ = false;
};

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(written);
  }
}

bool is_letter(char c) { return isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

void draw(const LineEditor& editor, std::string_view prompt) {
  // The line is shown on one row; of a long line, the part around the cursor. Every terminal has 80 columns.
  const std::string& text = editor.text();
  size_t from = 0;
  const auto width = [&](size_t a, size_t b) {
    return static_cast<size_t>(display_width(std::string_view(text).substr(a, b - a)));
  };
  constexpr size_t kRoom = 68;
  while (width(from, editor.cursor()) > kRoom) ++from;
  size_t to = text.size();
  while (to > editor.cursor() && width(from, to) > kRoom) --to;
  std::string out = "\r\x1b[K" + std::string(prompt) + terminal_text(text.substr(from, to - from), false);
  const size_t back = width(editor.cursor(), to);
  if (back > 0) out += "\x1b[" + std::to_string(back) + "D";
  print(out);
}

std::vector<std::string> words_of(const sql::Session& session) {
  std::vector<std::string> words = {"SELECT",   "FROM",  "WHERE", "GROUP BY",
                                    "ORDER BY", "LIMIT", "JOIN",  "CREATE TEMP VIEW"};
  for (const auto& source : session.tables()) {
    words.push_back(source->name());
    if (source->name().find("__") != std::string::npos) continue;  // its columns are known only after it has run
    if (const auto columns = source->columns())
      for (const sql::SqlColumn& column : *columns) words.push_back(column.name);
  }
  for (const sql::FunctionHelp& function : sql::function_helps()) {
    const std::string_view call = function.call;
    words.emplace_back(call.substr(0, call.find('(') + 1));
  }
  sort_unique(words);
  return words;
}

// Asks a session what is typed. A statement may have several lines.
class Prompt {
 public:
  Prompt(sql::Session& session, const Terminal& terminal, const sql::Limits& limits, size_t widest)
      : session_(session), terminal_(terminal), limits_(limits), widest_(widest) {
    limits_.cancelled = &g_interrupted;
  }

  void clear() { statement_.clear(); }
  const char* sign() const { return statement_.empty() ? "sql> " : "...> "; }

  // Takes a line; returns false where it ends the prompt.
  bool take(const std::string& line) {
    const std::string_view word = trim(line);
    if (statement_.empty() && (word == ".quit" || word == ".exit")) return false;
    if (statement_.empty() && word == ".tables") {
      ask("SELECT name, kind, help FROM tables WHERE missing = ''");
    } else if (statement_.empty() && word.starts_with(".columns")) {
      ask("SELECT name, type, unit, help FROM columns(" + sql_text(trim(word.substr(8))) + ")");
    } else {
      append_item(statement_, line, "\n");
      if (trim(statement_).ends_with(";")) ask(std::exchange(statement_, std::string()));
      else if (trim(statement_).empty()) statement_.clear();
    }
    return true;
  }

 private:
  void ask(const std::string& query) {
    sql::AnswerTable answer(limits_.max_memory);
    const Result<sql::Outcome> outcome = session_.ask(query, limits_, answer);
    if (!outcome) {
      fail(outcome.error());
      return;
    }
    if (outcome->is_query) print(sql::answer_text(answer, widest_, terminal_.colour_out));
    if (outcome->truncated) print(terminal_.say("sql.prompt.cut", Args().count("rows", outcome->rows)) + "\n");
  }

  sql::Session& session_;
  const Terminal& terminal_;
  sql::Limits limits_;
  size_t widest_;
  std::string statement_;  // the lines so far
};

// Reads a key from the terminal; Ctrl-C is one. Returns nothing at the end of the input.
std::optional<unsigned char> next_key() {
  for (;;) {
    unsigned char byte = 0;
    const ssize_t got = read(STDIN_FILENO, &byte, 1);
    if (got > 0) return byte;
    if (got == 0 || errno != EINTR) return {};
    if (g_interrupted.exchange(false)) return 0x03;
  }
}

}  // namespace

// ---- the line
// ---------------------------------------------------------------------------------------------------------

LineEditor::Event LineEditor::key(unsigned char byte) {
  offers_.clear();
  if (!sequence_.empty()) return escape(byte);
  switch (byte) {
    case 0x1b: sequence_ = "\x1b"; return Event::kNone;
    case '\r':
    case '\n': return Event::kLine;
    case 0x03:
      text_.clear();
      cursor_ = 0;
      return Event::kInterrupt;
    case 0x04:  // Ctrl-D
      if (text_.empty()) return Event::kEnd;
      if (cursor_ < text_.size()) {
        const size_t at = cursor_;
        move(1);
        erase(at, cursor_);
      }
      return Event::kNone;
    case 0x01: cursor_ = 0; return Event::kNone;
    case 0x05: cursor_ = text_.size(); return Event::kNone;
    case 0x02: move(-1); return Event::kNone;
    case 0x06: move(1); return Event::kNone;
    case 0x0b: erase(cursor_, text_.size()); return Event::kNone;
    case 0x15: erase(0, cursor_); return Event::kNone;
    case 0x10:
      if (place_ > 0) recall(place_ - 1);
      return Event::kNone;
    case 0x0e:
      if (place_ < history_.size()) recall(place_ + 1);
      return Event::kNone;
    case 0x17: {  // Ctrl-W: deletes the word before the cursor
      size_t from = cursor_;
      while (from > 0 && text_[from - 1] == ' ') --from;
      while (from > 0 && text_[from - 1] != ' ') --from;
      erase(from, cursor_);
      return Event::kNone;
    }
    case 0x7f:
    case 0x08: {
      const size_t end = cursor_;
      move(-1);
      erase(cursor_, end);
      return Event::kNone;
    }
    case '\t': complete(); return Event::kNone;
    default: break;
  }
  if (byte < 0x20 || text_.size() >= kMaxPromptBytes) return Event::kNone;
  text_.insert(cursor_++, 1, static_cast<char>(byte));
  return Event::kNone;
}

// Handles sequences such as "ESC [ A": arrows and similar keys. Unknown sequences are ignored.
LineEditor::Event LineEditor::escape(unsigned char byte) {
  sequence_ += static_cast<char>(byte);
  if (sequence_.size() == 2 && (byte == '[' || byte == 'O')) return Event::kNone;
  if (sequence_.size() > 2 && (byte < 0x40 || byte > 0x7e) && sequence_.size() < 16) return Event::kNone;
  const std::string got = std::move(sequence_);
  sequence_.clear();
  const std::string_view last = std::string_view(got).substr(1);
  if (last == "[A" || last == "OA") {
    if (place_ > 0) recall(place_ - 1);
  } else if (last == "[B" || last == "OB") {
    if (place_ < history_.size()) recall(place_ + 1);
  } else if (last == "[C" || last == "OC") move(1);
  else if (last == "[D" || last == "OD") move(-1);
  else if (last == "[H" || last == "OH" || last == "[1~") cursor_ = 0;
  else if (last == "[F" || last == "OF" || last == "[4~") cursor_ = text_.size();
  else if (last == "[3~" && cursor_ < text_.size()) {
    const size_t at = cursor_;
    move(1);
    erase(at, cursor_);
  }
  return Event::kNone;
}

void LineEditor::move(int letters) {
  if (letters > 0 && cursor_ < text_.size()) cursor_ = character_end(text_, cursor_);
  if (letters < 0 && cursor_ > 0) cursor_ = character_start(text_, cursor_ - 1);
}

void LineEditor::erase(size_t from, size_t to) {
  text_.erase(from, to - from);
  cursor_ = from;
}

void LineEditor::recall(size_t place) {
  if (place_ == history_.size()) typed_ = text_;
  place_ = place;
  text_ = place_ == history_.size() ? typed_ : history_[place_];
  cursor_ = text_.size();
}

void LineEditor::complete() {
  size_t from = cursor_;
  while (from > 0 && is_letter(text_[from - 1])) --from;
  const std::string beginning = text_.substr(from, cursor_ - from);
  if (beginning.empty()) return;
  std::vector<std::string> found = complete_(beginning);
  if (found.empty()) return;
  std::string same = found[0];
  for (const std::string& word : found) {
    size_t i = 0;
    while (i < same.size() && i < word.size() && same[i] == word[i]) ++i;
    same.resize(i);
  }
  if (same.size() > beginning.size()) {
    text_.replace(from, cursor_ - from, same);
    cursor_ = from + same.size();
  }
  if (found.size() > 1) offers_ = std::move(found);
}

std::string LineEditor::take() {
  std::string line = std::move(text_);
  text_.clear();
  cursor_ = 0;
  if (!trim(line).empty() && (history_.empty() || history_.back() != line)) history_.push_back(line);
  if (history_.size() > kMaxHistory) history_.erase(history_.begin());
  place_ = history_.size();
  return line;
}

int run_sql_prompt(sql::Session& session, const Terminal& terminal, const sql::Limits& given, size_t widest) {
  print(terminal.say("sql.prompt") + "\n");
  const std::vector<std::string> words = words_of(session);
  LineEditor editor([&](const std::string& beginning) {
    std::vector<std::string> found;
    for (const std::string& word : words)
      if (word.size() >= beginning.size() && std::equal(beginning.begin(), beginning.end(), word.begin(),
                                                        [](char a, char b) { return to_lower(a) == to_lower(b); }))
        found.push_back(word);
    return found;
  });
  const RawTerminal raw;
  Prompt prompt(session, terminal, given, widest);
  draw(editor, prompt.sign());
  while (const std::optional<unsigned char> key = next_key()) {
    switch (editor.key(*key)) {
      case LineEditor::Event::kNone: break;
      case LineEditor::Event::kEnd: print("\n"); return kExitGood;
      case LineEditor::Event::kInterrupt:
        prompt.clear();
        print("^C\n");
        break;
      case LineEditor::Event::kLine:
        g_interrupted = false;  // from here on Ctrl-C stops the query, before anybody can see that it runs
        print("\n");
        if (!prompt.take(editor.take())) return kExitGood;
        break;
    }
    if (!editor.offers().empty()) {
      std::string list = "\n";
      for (const std::string& offer : editor.offers()) list += offer + "  ";
      print(list + "\n");
    }
    draw(editor, prompt.sign());
  }
  return kExitGood;
}

}  // namespace stageline
