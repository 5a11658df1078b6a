#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>

#include "base/environment.h"
#include "cli/confine.h"

extern char** environ;

namespace stageline {

bool open_browser(const std::string& url) {
  // Without a desktop, xdg-open would start a text browser that writes over our own messages.
  if (environment("DISPLAY").empty() && environment("WAYLAND_DISPLAY").empty()) return false;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  std::signal(SIGCHLD, SIG_IGN);  // the parent does not wait for the child
  std::string program = "xdg-open", argument = url;
  char* const words[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawnp(&child, "xdg-open", &files, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&files);
  return failed == 0;
}

}  // namespace stageline
