// Prints messages to people on stderr: errors, notes, progress, findings. Data goes to stdout elsewhere.
#pragma once

#include "base/progress.h"
#include "cli/flags.h"
#include "diagnosis/causes/findings.h"

namespace stageline {

struct Terminal {
  std::string lang = "en";
  bool chinese() const { return lang == "zh"; }
  // Returns the sentence of that name (base/words.h) in the language of this terminal.
  std::string say(std::string_view name, const Args& args = {}) const { return words(name, args).in(chinese()); }
  bool quiet = false;
  bool colour_out = false;  // stdout shows colours
  bool stderr_is_terminal = false;
  int width = 80;       // columns of stdout
  int table_width = 0;  // columns that tables may fill; 0: no limit, as in a pipe
};

// Reads --lang, --color, --quiet and the environment (LANG, NO_COLOR, COLUMNS). Errors: kUsage for a language or colour
// word that does not exist.
Result<Terminal> terminal_for(const Arguments& arguments);

// Prints "stageline: …" with the error's hint. Returns kExitError.
int fail(const Error& error);
inline int exit_code(const Result<int>& code) { return code ? *code : fail(code.error()); }
void note(const Terminal& terminal, std::string_view text);
std::string message_text(const Terminal& terminal, const Diagnostic& diagnostic);  // in the terminal's language
// Prints "2 notes on the input …:" and one line for each, the first dozen: losses and warnings, and with `facts` also
// plain facts (Severity::kInfo). `about` is " on the input (…)"; `rest` is the place of the full list. Prints nothing
// when there are none.
void print_notes(const Terminal& terminal, const Diagnostics& diagnostics, const Text& about, const Text& rest,
                 bool facts = false);
// Prints in the same way what reading and analysing noted, for commands that write a file from `path`.
void print_notes(const Terminal& terminal, const Diagnostics& diagnostics, const std::string& path);
// Returns headline, span bars and findings as text for stdout.
std::string findings_text(const Terminal& terminal, const Findings& findings);

// Returns a finding's value with the base that it refers to, for example "29.0 % of the host's step" or a share of each
// step; "" when there is no value.
std::string price_of(const Finding& finding, bool zh);

// Returns `title` with `price` at the right edge of its first line. A long title continues below, indented. Ends with a
// newline.
std::string priced_title(const Terminal& terminal, const std::string& title, const std::string& price);

// While it lives, draws a bar with bytes, rate and remaining time: after one second, and only on a terminal. It shows a
// Progress of its own, or `shared`, which outlives it and which others may look at too. `sentence` names what is being
// done: "progress.reading".
class ProgressBar {
 public:
  ProgressBar(const Terminal& terminal, std::string_view sentence, Progress* shared = nullptr);
  ~ProgressBar();
  Progress* progress();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// While it lives, shows a bar of the bytes that are written.
class WritingBar {
 public:
  explicit WritingBar(const Terminal& terminal);
  ~WritingBar();

 private:
  ProgressBar bar_;
};

// Returns the text wrapped at `width` columns, with `indent` spaces at the start of every line.
std::string wrapped(std::string_view text, int width, int indent);

}  // namespace stageline
