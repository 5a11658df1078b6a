#include "cli/open_browser.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

extern char** environ;

namespace stageline {

bool open_browser(const std::string& url) {
  const auto is_set = [](const char* name) {
    const char* value = getenv(name);
    return value != nullptr && *value != '\0';
  };
  // Without a desktop, xdg-open would start a text browser that writes over our own messages.
  if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY")) return false;
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
