// Words to people on stderr: errors, notes, progress, findings. Data goes to stdout elsewhere.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/diagnostics.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/words.h"
#include "cli/flags.h"
#include "diagnosis/causes/findings.h"

namespace stageline {

struct Terminal {
  std::string lang = "en";
  bool chinese() const { return lang == "zh"; }
  // The sentence of that name (base/words.h), in the language that is spoken here.
  std::string say(std::string_view name, const Args& args = {}) const { return words(name, args).in(chinese()); }
  bool quiet = false;
  bool colour_out = false;  // stdout shows colours
  bool colour_err = false;
  bool stderr_is_terminal = false;
  int width = 80;       // columns of stdout
  int table_width = 0;  // columns that tables may fill; 0: any number, as in a pipe
};

// From --lang, --color, --quiet and the environment (LANG, NO_COLOR, COLUMNS).
// Errors: kUsage for a language or colour word that does not exist.
Result<Terminal> terminal_for(const Arguments& arguments);

// "stageline: …" with its hint; returns kExitError, so a command can `return fail(error)`.
int fail(const Error& error);
void note(const Terminal& terminal, std::string_view text);
std::string message_text(const Terminal& terminal, const Diagnostic& diagnostic);  // in the terminal's language
// "2 notes on the input …:" with one line each, the first dozen: losses and warnings, and with `facts` what is just
// said (Severity::kInfo). `about`: " on the input (…)"; `rest`: where all of them are. Nothing when there are none.
void print_notes(const Terminal& terminal, const Diagnostics& diagnostics, std::string_view about,
                 std::string_view rest, bool facts = false);
// The same of what reading and analysing noted, for commands that write a file from `path`.
void print_notes(const Terminal& terminal, const Diagnostics& diagnostics, const std::string& path);
// Headline, span bars and findings, as text for stdout.
std::string findings_text(const Terminal& terminal, const Findings& findings);

// "−17.8 % a step", "29.0 % of the host's step": a finding's value and what it is of; "" without a value.
std::string price_of(const Finding& finding, bool zh);

// `title` with `price` at the right edge of its first line; a long one goes on below, indented. Ends in a newline.
std::string priced_title(const Terminal& terminal, const std::string& title, const std::string& price);

// Draws a bar with bytes, rate and time left while it lives, after one second, on a terminal only. It shows a progress
// of its own, or one that others look at too and that outlives it. `sentence` is what it says is done:
// "progress.reading".
class ProgressBar {
 public:
  ProgressBar(const Terminal& terminal, std::string_view sentence, Progress* shared = nullptr);
  ~ProgressBar();
  Progress* progress();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A bar over the bytes that are written, while it lives.
class WritingBar {
 public:
  explicit WritingBar(const Terminal& terminal);
  ~WritingBar();

 private:
  ProgressBar bar_;
};

// Text wrapped at `width` columns, every line begun with `indent` spaces.
std::string wrapped(std::string_view text, int width, int indent);

}  // namespace stageline
