// Runs stageline mcp: the interface for agents on standard input and output, with one message for each line.
//
//   standard input ──▶ this thread ──lines──▶ worker: one request after the other ──▶ standard output
//                        │ notifications/cancelled: the request at work is given up, one that waits is dropped
//                        └ every fifth of a second: how far a run is read, where the request wants to know
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <condition_variable>
#include <new>
#include <thread>

#include "base/machine_memory.h"
#include "cli/commands.h"
#include "cli/confine.h"
#include "cli/paths.h"
#include "cli/plan_question.h"
#include "mcp/server.h"
#include "server/page/page_file.h"

namespace stageline {
namespace {

using mcp::Server;

bool send_line(std::string line) {
  line += '\n';
  std::string_view left = line;
  while (!left.empty()) {
    const ssize_t written = write(STDOUT_FILENO, left.data(), left.size());
    if (written < 0 && errno != EINTR) return false;  // the client is gone
    if (written > 0) left.remove_prefix(written);
  }
  return true;
}

// The requests that wait, and the one in work.
struct Desk {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::pair<std::string, Server::Notice>> waiting;
  size_t waiting_bytes = 0;
  bool ended = false;  // no further line will come
  bool gone = false;   // the reader of the answers is gone
  std::optional<Error> failed;
  Server::Notice at_work;
  std::unique_ptr<Progress> progress;  // progress of the request in work
  bool dropped = false;                // the request in work was cancelled, so no answer is sent
  int64_t reported_bytes = -1;
};
constexpr size_t kMaxWaitingBytes = size_t{64} << 20;

void work(Server& server, Desk& desk) {
  for (;;) {
    std::string line;
    Progress* progress = nullptr;
    {
      std::unique_lock lock(desk.mutex);
      desk.changed.wait(lock, [&] { return desk.ended || desk.gone || !desk.waiting.empty(); });
      if (desk.gone || desk.waiting.empty()) return;
      line = std::move(desk.waiting.front().first);
      desk.at_work = std::move(desk.waiting.front().second);
      desk.waiting.pop_front();
      desk.waiting_bytes -= line.size();
      desk.progress = std::make_unique<Progress>();
      progress = desk.progress.get();
      desk.dropped = false;
      desk.reported_bytes = -1;
    }
    std::string answer;
    std::optional<Error> failed;
    try {
      answer = server.answer(line, progress);
    } catch (const std::bad_alloc&) {
      failed = make_error(ErrorCode::kLimit, "there is not enough memory for this run", "open fewer ranks or steps");
    }
    const std::scoped_lock lock(desk.mutex);
    desk.at_work = {};
    if (failed) desk.failed = failed;
    if (failed || (!answer.empty() && !desk.dropped && !send_line(std::move(answer)))) desk.gone = true;
    desk.changed.notify_all();
    if (desk.gone) return;
  }
}

// Handles a line that arrived.
void take_line(Desk& desk, std::string line) {
  Server::Notice notice = Server::notice_of(line);
  std::unique_lock lock(desk.mutex);
  if (!notice.cancels.empty()) {
    if (desk.at_work.id == notice.cancels) {
      desk.dropped = true;
      desk.progress->cancel();
    }
    std::erase_if(desk.waiting, [&](const auto& one) {
      const bool gone = one.second.id == notice.cancels;
      if (gone) desk.waiting_bytes -= one.first.size();
      return gone;
    });
    return;
  }
  desk.changed.wait(lock, [&] { return desk.gone || desk.waiting_bytes < kMaxWaitingBytes; });
  desk.waiting_bytes += line.size();
  desk.waiting.emplace_back(std::move(line), std::move(notice));
  desk.changed.notify_all();
}

void tell_progress(Desk& desk) {
  const std::scoped_lock lock(desk.mutex);
  if (desk.at_work.progress_token.empty() || desk.dropped) return;
  const int64_t done = desk.progress->done_bytes();
  if (done <= desk.reported_bytes || done == 0) return;
  desk.reported_bytes = done;
  desk.gone |= !send_line(Server::progress_line(desk.at_work.progress_token, *desk.progress));
}

// Reads lines from standard input until it ends, or until the reader of the answers is gone.
void read_lines(Desk& desk) {
  std::string line;
  char buffer[1 << 16];
  for (;;) {
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    const int ready = poll(&input, 1, 200);
    tell_progress(desk);
    {
      const std::scoped_lock lock(desk.mutex);
      if (desk.gone) return;
    }
    if (ready <= 0) continue;
    const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    std::string_view bytes(buffer, got);
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      // When a line is too long, only the fact that it is too long is kept.
      if (line.size() <= Server::kMaxLineBytes) line += bytes.substr(0, end);
      if (end == std::string_view::npos) break;
      bytes.remove_prefix(end + 1);
      take_line(desk, std::move(line));
      line.clear();
    }
  }
}

Status write_report(const Trace& trace, const std::vector<std::string>& paths, const std::string& output) {
  PageOptions options{.title = run_name(paths), .paths = paths, .command = "stageline view" + shell_words(paths)};
  Diagnostics notes = trace.diagnostics;
  if (const Result<WrittenPage> written = write_page_file(std::make_shared<const Run>(trace), notes, output, options);
      !written)
    return written.error();
  return {};
}

}  // namespace

Result<int> run_mcp(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  mcp::ToolLimits limits;
  std::vector<std::string> roots = arguments.all("root");
  if (roots.empty()) roots.emplace_back(".");
  TRY_OK(take(real_folders(roots, "root"), limits.roots));
  TRY_OK(take(real_folders(arguments.all("allow-write"), "allow-write"), limits.writes));
  limits.report = write_report;
  limits.plan = [](const std::vector<std::string>& flags) { return planned_json(flags); };
  TRY_OK(arguments.take("rows", 1, 200, limits.max_rows));
  TRY_OK(arguments.take("chars", 1000, 1'000'000, limits.max_chars));
  TRY(memory, arguments.integer("memory", machine_memory_bytes() / 2 >> 20, 1, int64_t{1} << 40));
  limits.max_bytes = *memory << 20;
  TRY(max, arguments.bytes("max-memory", 0));
  set_max_memory(*max);
  TRY(timeout, arguments.duration_ns("timeout", int64_t{60} * 1'000'000'000));
  limits.timeout = std::chrono::milliseconds(std::max<int64_t>(1, *timeout / 1'000'000));
  Companion companion;
  if (arguments.get("confine", "auto") != "off") {
    const Result<Confined> confined = confine_to(limits.roots, companion, limits.writes);
    if (!confined) return fail(confined.error());
    if (*confined == Confined::kNoLandlock) note(*terminal, terminal->say("view.no_landlock"));
  }
  Server server(std::move(limits));
  Desk desk;
  std::thread worker([&] { work(server, desk); });
  read_lines(desk);
  {
    const std::scoped_lock lock(desk.mutex);
    desk.ended = true;
    desk.changed.notify_all();
  }
  worker.join();
  if (desk.failed) return *desk.failed;
  return kExitGood;
}

}  // namespace stageline
