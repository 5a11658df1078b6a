#include "cli/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/environment.h"
#include "base/notes_name.h"
#include "base/output_file.h"
#include "cli/open_browser.h"

namespace stageline {
namespace {

// From linux/landlock.h, which is missing on some older systems where the program is built. The numbers are the same on
// every machine.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kAskVersion = 1;
constexpr int kPathBeneath = 1;
constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadDir = 1 << 3;
constexpr uint64_t kFirstVersion = (1 << 13) - 1;  // every right on files that version 1 of Landlock knows
constexpr uint64_t kRefer = 1 << 13, kTruncate = 1 << 14;
struct Ruleset {
  uint64_t files = 0;
};
struct __attribute__((packed)) PathRule {
  uint64_t allowed = 0;
  int32_t folder = -1;
};

// The program itself needs these: libraries that are loaded late, time zones, the browser's launcher, and facts of the
// machine (cores, memory). Recordings may also be in memory and not yet in a file.
constexpr const char* kSystem[] = {"/usr",  "/lib", "/lib64", "/bin",      "/sbin",        "/etc",    "/opt",
                                   "/proc", "/sys", "/nix",   "/dev/null", "/dev/urandom", "/dev/shm"};

Error refused(const std::string& doing, const std::string& path) {
  return {ErrorCode::kIo,
          "cannot confine itself: " + doing + ": " + strerror(errno),
          {path},
          "--confine off leaves the confinement out"};
}

// A path that does not exist needs no rule.
Status allow(int ruleset, const std::string& path, uint64_t what) {
  const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return {};
  struct stat st;
  PathRule rule;
  rule.allowed = what;
  rule.folder = fd;
  // Rights on folders are not valid for files.
  if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode)) rule.allowed &= kExecute | kWriteFile | kReadFile | kTruncate;
  const long rc = syscall(kAddRule, ruleset, kPathBeneath, &rule, 0);
  Status status;
  if (rc != 0) status = refused("a rule", path);
  ::close(fd);
  return status;
}

Result<std::string> make_folder() {
  std::string path = temporary_path("stageline-view-XXXXXX");
  if (mkdtemp(path.data()) == nullptr)
    return Error{ErrorCode::kIo,
                 std::string("no folder for temporary files can be made: ") + strerror(errno),
                 {path},
                 "TMPDIR names another place"};
  setenv("TMPDIR", path.c_str(), 1);
  return path;
}

// Notes are a path, a line end and the bytes of the file. The answer is a byte: 1 when they were written. The asking
// process may have been taken over, so it can name no other kind of file.
void answer_notes(const std::string& text, int to) {
  const size_t line = text.find('\n');
  const std::string path = text.substr(0, line);
  const bool written =
      line != std::string::npos && path.ends_with(kNotesSuffix) && write_file(path, text.substr(line + 1));
  const char answer = written ? 'y' : 'n';
  if (::write(to, &answer, 1) < 0) return;  // the asker is gone
}

// A message is a letter, a text and a zero. The end of the pipe means that the program has ended.
void serve_companion(int from, int to) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  std::string pending, folder;
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(from, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    pending.append(buffer, n);
    for (size_t end = pending.find('\0'); end != std::string::npos; end = pending.find('\0')) {
      const std::string text = pending.substr(1, end - 1);
      if (pending[0] == 'R') folder = text;
      if (pending[0] == 'O') open_browser(text);
      if (pending[0] == 'N') answer_notes(text, to);
      pending.erase(0, end + 1);
    }
  }
  if (!folder.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
}

}  // namespace

Companion::Companion() {
  int ends[2], replies[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  if (pipe2(replies, O_CLOEXEC) != 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return;
  }
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    ::close(ends[1]);
    ::close(replies[0]);
    // Closes the output, so that a program that waits for its end does not wait for this process.
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int fd : {0, 1, 2}) dup2(nothing, fd);
    serve_companion(ends[0], replies[1]);
    _exit(0);
  }
  ::close(ends[0]);
  ::close(replies[1]);
  if (child > 0) {
    pipe_ = ends[1];
    reply_ = replies[0];
  } else {
    ::close(ends[1]);
    ::close(replies[0]);
  }
}

Status Companion::write_notes(const std::string& path, const std::string& bytes) {
  const Error not_written{
      ErrorCode::kIo, "the notes could not be written", {path}, "is its folder writable, and the disk not full?"};
  const std::lock_guard lock(asking_);
  const std::string message = "N" + path + "\n" + bytes + std::string(1, '\0');
  for (size_t at = 0; at < message.size();) {
    const ssize_t n = pipe_ < 0 ? -1 : ::write(pipe_, message.data() + at, message.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return not_written;
    at += n;
  }
  char answer = 'n';
  ssize_t n = 0;
  while ((n = ::read(reply_, &answer, 1)) < 0 && errno == EINTR) {
  }
  if (n != 1 || answer != 'y') return not_written;
  return {};
}

void Companion::send(char what, const std::string& text) {
  const std::string message = what + text + std::string(1, '\0');
  // The companion has gone, so nothing is opened.
  if (pipe_ >= 0 && ::write(pipe_, message.data(), message.size()) < 0) return;
}

Result<std::string> private_folder(Companion& companion) {
  static std::string made;
  if (!made.empty()) return made;
  Result<std::string> folder = make_folder();
  if (!folder) return folder;
  companion.remove_at_end(*folder);
  return made = *folder;
}

Result<Confined> confine_to(const std::vector<std::string>& readable, Companion& companion) {
  const long version = syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  if (version < 1) return Confined::kNoLandlock;
  TRY(folder, private_folder(companion));
  Ruleset all;
  all.files = kFirstVersion | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0);
  const int ruleset = static_cast<int>(syscall(kCreateRuleset, &all, sizeof all, 0));
  if (ruleset < 0) return refused("the rules", "");
  Status status;
  for (const char* path : kSystem)
    if (status) status = allow(ruleset, path, kReadFile | kReadDir | kExecute);
  if (status) status = allow(ruleset, "/dev/null", kReadFile | kWriteFile);
  for (const std::string& path : readable)
    if (status && path != "-") status = allow(ruleset, path, kReadFile | kReadDir);
  if (status) status = allow(ruleset, *folder, all.files & ~kExecute);
  if (status && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) status = refused("no new privileges", "");
  if (status && syscall(kRestrictSelf, ruleset, 0) != 0) status = refused("the last step", "");
  ::close(ruleset);
  if (!status) return std::move(status).error();
  return Confined::kYes;
}

}  // namespace stageline
