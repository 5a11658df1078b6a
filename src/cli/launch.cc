#include "cli/launch.h"

#include <errno.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

extern char** environ;

namespace stageline {
namespace {

// Signals that are sent to us but may be meant for the program. Ctrl-Z (SIGTSTP) stops both processes by itself.
constexpr int kSentOn[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};

std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    if (variables.count(std::string(text.substr(0, text.find('=')))) == 0) out.emplace_back(text);
  }
  for (const auto& [name, value] : variables) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// Waits for the child. Until it ends, signals are received one by one, so no handler is needed.
Ended wait_for(pid_t child, const sigset_t& waited) {
  for (;;) {
#if defined(__linux__)
    siginfo_t info{};
    const int signal = sigwaitinfo(&waited, &info);
    if (signal < 0) continue;  // EINTR: the process was stopped and continued
    const bool by_terminal = info.si_code == SI_KERNEL;
#else
    int signal = 0;
    if (sigwait(&waited, &signal) != 0) continue;
    const bool by_terminal = false;  // is not said
#endif
    if (signal != SIGCHLD) {
      // The terminal sends its signals to the whole process group, so the program gets them too.
      if (!by_terminal) kill(child, signal);
      continue;
    }
    int status = 0;
    const pid_t done = waitpid(child, &status, WNOHANG);
    if (done != child) continue;
    if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), WTERMSIG(status)};
    if (WIFEXITED(status)) return {WEXITSTATUS(status), 0};
  }
}

}  // namespace

Result<Ended> run_program(const std::vector<std::string>& command,
                          const std::map<std::string, std::string>& variables) {
  std::vector<std::string> words = command, environment = environment_with(variables);
  sigset_t waited, before, to_default;
  sigemptyset(&waited);
  sigaddset(&waited, SIGCHLD);
  for (const int signal : kSentOn) sigaddset(&waited, signal);
  sigprocmask(SIG_BLOCK, &waited, &before);
  std::signal(SIGCHLD, SIG_DFL);  // if our parent ignored it, there would be no child to wait for
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigemptyset(&to_default);
  // We ignore these signals, but the program should not.
  for (const int signal : {SIGPIPE, SIGXFSZ}) sigaddset(&to_default, signal);
  posix_spawnattr_setsigdefault(&attributes, &to_default);
  posix_spawnattr_setsigmask(&attributes, &before);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, words[0].c_str(), nullptr, &attributes, pointers(words).data(),
                                  pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (failed == ENOENT)
      return make_error(ErrorCode::kNotFound, "no program \"" + words[0] + "\"" +
                                                  (words[0].find('/') == std::string::npos ? " on the PATH" : ""));
    return make_error(ErrorCode::kIo, "cannot run \"" + words[0] + "\": " + std::strerror(failed));
  }
  const Ended ended = wait_for(child, waited);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return ended;
}

int end_alike(const Ended& ended) {
  if (ended.signal == 0) return ended.exit_code;
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);  // one core dump is enough
  std::signal(ended.signal, SIG_DFL);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, ended.signal);
  sigprocmask(SIG_UNBLOCK, &mask, nullptr);
  raise(ended.signal);
  return ended.exit_code;
}

}  // namespace stageline
