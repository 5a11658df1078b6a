// stageline: parses the command line, finds the command and runs it. Exit codes: 0 success, 1 a finding, 2 an error,
// 130 Ctrl-C.
#include <errno.h>
#include <fcntl.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <new>

#include "base/output_file.h"
#include "base/remote_file.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/questions.h"
#include "readers/reader.h"

namespace {

// If a standard descriptor is closed, the next file that we open would get its number, and messages would be written
// into that file. So closed ones are opened to /dev/null.
void open_standard_descriptors() {
  for (int fd = 0; fd < 3; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) _exit(stageline::kExitError);
}

// Columns and rows of a few MiB are allocated and freed all the time. By default glibc maps and unmaps each of them,
// and the kernel clears every page again. On two ranks of a million events this took 0.7 s of 1.6 s; with these
// settings it takes 0.2 s. Columns of runs of tens of millions of cells are kept as well: mapped again each
// time, they took some 8 % of the processor time until 10 080 ranks are drawn. Only blocks above 1 GiB are given back
// at once.
void keep_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
  mallopt(M_ARENA_MAX, 1);  // memory that one thread frees can be used by the next: an eighth less memory, no more time
#endif
}

// Removes half-written files. Everything here is async-signal-safe.
void on_interrupt(int signal) {
  if (stageline::remove_partial_files_on_signal(signal)) _exit(stageline::kExitInterrupted);
}

// Says that there is no such command, and which one was probably meant.
int fail_unknown(const std::vector<std::string>& words) {
  using namespace stageline;
  if (words[0] == "cluster") {  // msprof-analyze's command, of which one mode is a command here
    std::string rest, mode;
    for (size_t i = 1; i < words.size(); ++i) {
      const bool joined = words[i].starts_with("--mode=");
      if (joined || words[i] == "-m" || words[i] == "--mode")
        mode = dashed(joined ? words[i].substr(7) : i + 1 < words.size() ? words[++i] : "");
      else rest += " " + words[i];
    }
    std::string same = hint_for_mode(mode);
    if (mode == "pp-chart") same += rest;
    if (const Analysis* analysis = find_analysis(mode))
      same = "stageline analyze " + mode + " DIR" +
             (std::string_view(analysis->compat).find("msprof") == std::string_view::npos ? "" : " --compat msprof");
    if (!same.empty()) return fail(make_error(ErrorCode::kUsage, "no command \"cluster\"", same));
  }
  if (words[0] == "advisor" || words[0] == "compare")
    return fail(make_error(ErrorCode::kUsage, "no command \"" + words[0] + "\"", hint_for_mode(words[0])));
  auto names = mapped<std::string>(command_table(), &Command::name);
  const std::string near = nearest(dashed(words[0]), names);
  return fail(make_error(ErrorCode::kUsage,
                         "no command \"" + words[0] + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?"),
                         near.empty() ? "stageline help lists the commands" : ""));
}

int run(int argc, char** argv) {
  using namespace stageline;
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) {
    fputs(overview_text().c_str(), stderr);
    return kExitError;
  }
  if (words[0] == "--version" || words[0] == "-V") words[0] = "version";
  if (words[0] == "--help" || words[0] == "-h") {
    fputs(overview_text().c_str(), stdout);
    return kExitGood;
  }
  const Command* command = find_command(words[0]);
  if (!command) return fail_unknown(words);
  words.erase(words.begin());
  Result<Arguments> arguments = parse_arguments(*command, words);
  if (!arguments) return fail(arguments.error());
  if (arguments->has("help")) {
    fputs(command_help_text(*command).c_str(), stdout);
    return kExitGood;
  }
  // A name that comes from a page or an agent must not make this process send requests to other machines.
  const std::string_view name = command->name;
  allow_remote_files(name != "view" && name != "serve" && name != "mcp");
  const bool asks = std::ranges::find(command->flags, "force") != command->flags.end();
  if (asks ? !arguments->has("force") : name == "mcp") protect_measurements(&measurement_kind);
  return exit_code(command->run(*arguments));
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  keep_freed_memory();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, on_interrupt);
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is the reader's choice and not an error
  std::signal(SIGXFSZ, SIG_IGN);  // a size limit is reported as an error of write() instead
  int code = stageline::kExitError;
  try {
    code = run(argc, argv);
  } catch (const std::bad_alloc&) {
    stageline::remove_partial_files_on_signal(0);
    return stageline::fail(
        {stageline::ErrorCode::kLimit, "not enough memory for this", {}, "choose less of it with --steps or --ranks"});
  }
  if (fflush(stdout) != 0 && errno != EPIPE)
    return stageline::fail({stageline::ErrorCode::kIo, "cannot write to standard output", {}, ""});
  return code;
}
