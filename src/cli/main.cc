// stageline: parse, find the command, run it. Exit codes: 0 good, 1 a finding, 2 an error, 130 Ctrl-C.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/terminal.h"

namespace {

// Leaves no half-written file behind; everything here is async-signal-safe.
void on_interrupt(int) {
  stageline::remove_partial_files_on_signal();
  _exit(stageline::kExitInterrupted);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace stageline;
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is the reader's choice, not an error
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) {
    fputs(overview_text().c_str(), stderr);
    return kExitError;
  }
  if (words[0] == "--version" || words[0] == "-V" || words[0] == "version") {
    puts("stageline " STAGELINE_VERSION);
    return kExitGood;
  }
  if (words[0] == "--help" || words[0] == "-h") {
    fputs(overview_text().c_str(), stdout);
    return kExitGood;
  }
  const Command* command = find_command(words[0]);
  if (!command) {
    std::vector<std::string> names;
    for (const Command& known : command_table()) names.emplace_back(known.name);
    const std::string near = nearest(dashed(words[0]), names);
    return fail({ErrorCode::kUsage,
                 "no command \"" + words[0] + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?"),
                 {},
                 near.empty() ? "stageline help lists the commands" : ""});
  }
  words.erase(words.begin());
  Result<Arguments> arguments = parse_arguments(*command, words);
  if (!arguments) return fail(arguments.error());
  if (arguments->has("help")) {
    fputs(command_help_text(*command).c_str(), stdout);
    return kExitGood;
  }
  return command->run(*arguments);
}
