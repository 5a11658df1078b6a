// stageline mcp: the agents' interface on standard input and output, a line a message.
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <new>

#include "cli/commands.h"
#include "cli/run_common.h"
#include "cli/terminal.h"
#include "mcp/server.h"

namespace stageline {
namespace {

bool send_line(std::string line) {
  line += '\n';
  std::string_view left = line;
  while (!left.empty()) {
    const ssize_t written = write(STDOUT_FILENO, left.data(), left.size());
    if (written < 0 && errno != EINTR) return false;  // who asked is gone
    if (written > 0) left.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

int run_mcp(const Arguments& arguments) {
  Result<Terminal> terminal = terminal_for(arguments);
  if (!terminal) return fail(terminal.error());
  mcp::ToolLimits limits;
  std::vector<std::string> roots = arguments.all("root");
  if (roots.empty()) roots.emplace_back(".");
  for (const std::string& root : roots) {
    char* const real = realpath(root.c_str(), nullptr);
    if (!real)
      return fail(
          {ErrorCode::kNotFound, "there is no such folder", {root}, "--root names a folder whose runs may be read"});
    limits.roots.emplace_back(real);
    free(real);
  }
  Result<int64_t> rows = arguments.integer("rows", limits.most_rows, 1, 200);
  if (!rows) return fail(rows.error());
  limits.most_rows = *rows;
  Result<int64_t> timeout = arguments.duration_ns("timeout", int64_t{60} * 1'000'000'000);
  if (!timeout) return fail(timeout.error());
  limits.timeout = std::chrono::milliseconds(std::max<int64_t>(1, *timeout / 1'000'000));
  mcp::Server server(std::move(limits));
  std::string waiting;
  bool too_long = false;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return kExitGood;
    std::string_view bytes(buffer, static_cast<size_t>(got));
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      // Of a line that is too long only that it is one is kept.
      if (!too_long) waiting += bytes.substr(0, end);
      too_long |= waiting.size() > mcp::Server::kMostLineBytes;
      if (end == std::string_view::npos) break;
      bytes.remove_prefix(end + 1);
      std::string answer;
      try {
        answer = server.answer(waiting);
      } catch (const std::bad_alloc&) {
        return fail({ErrorCode::kLimit, "there is not enough memory for this run", {}, "open fewer ranks or steps"});
      }
      waiting.clear();
      too_long = false;
      if (!answer.empty() && !send_line(std::move(answer))) return kExitGood;
    }
  }
}

}  // namespace stageline
