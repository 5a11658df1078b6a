#include "cli/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/environment.h"
#include "base/input_files.h"
#include "base/notes_name.h"
#include "base/output_file.h"

namespace stageline {
namespace {

// Restricts this thread, and those that it will start, to these rights.
struct Rights {
  std::vector<std::string> readable, writable;
  bool system = false, connects = false;
};

#if defined(__linux__)

// From linux/landlock.h, which is missing on some older systems where the program is built. The numbers are the same on
// every machine.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kAskVersion = 1;
constexpr int kPathBeneath = 1;
constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadDir = 1 << 3;
constexpr uint64_t kFirstVersion = (1 << 13) - 1;  // every right on files that version 1 of Landlock knows
constexpr uint64_t kRefer = 1 << 13, kTruncate = 1 << 14;
constexpr uint64_t kConnectTcp = 1 << 1;
struct Ruleset {
  uint64_t files = 0, network = 0;
};
struct __attribute__((packed)) PathRule {
  uint64_t allowed = 0;
  int32_t folder = -1;
};

// The program itself needs these: libraries that are loaded late, time zones, the browser's launcher, and facts of the
// machine (cores, memory). Recordings may also be in memory and not yet in a file.
constexpr const char* kSystem[] = {
    "/usr",  "/lib", "/lib64", "/bin",      "/sbin",        "/etc",     "/opt",
    "/proc", "/sys", "/nix",   "/dev/null", "/dev/urandom", "/dev/shm", "/run/systemd/resolve"};

Error refused(const std::string& doing, const std::string& path) {
  return make_error(ErrorCode::kIo, "cannot confine itself: " + doing + ": " + strerror(errno),
                    "--confine off leaves the confinement out", {path});
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

Result<Confined> restrict_to(const Rights& rights) {
  const long version = syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  if (version < 1) return Confined::kNoLandlock;
  Ruleset all;
  all.files = kFirstVersion | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0);
  all.network = version >= 4 && !rights.connects ? kConnectTcp : 0;
  const size_t size = version >= 4 ? sizeof all : sizeof all.files;
  const int ruleset = static_cast<int>(syscall(kCreateRuleset, &all, size, 0));
  if (ruleset < 0) return refused("the rules", "");
  Status status;
  for (const char* path : kSystem)
    if (status && rights.system) status = allow(ruleset, path, kReadFile | kReadDir | kExecute);
  if (status) status = allow(ruleset, "/dev/null", kReadFile | kWriteFile);
  for (const std::string& path : rights.readable)
    if (status && path != "-") status = allow(ruleset, path, kReadFile | kReadDir);
  for (const std::string& path : rights.writable)
    if (status) status = allow(ruleset, path, all.files & ~kExecute);
  if (status && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) status = refused("no new privileges", "");
  if (status && syscall(kRestrictSelf, ruleset, 0) != 0) status = refused("the last step", "");
  ::close(ruleset);
  if (!status) return std::move(status).error();
  return Confined::kYes;
}

bool has_landlock() { return syscall(kCreateRuleset, nullptr, 0, kAskVersion) >= 1; }

#else

Result<Confined> restrict_to(const Rights&) { return Confined::kNoLandlock; }
bool has_landlock() { return false; }

#endif

Result<std::string> make_folder() {
  std::string path = temporary_path("stageline-view-XXXXXX");
  if (mkdtemp(path.data()) == nullptr)
    return make_error(ErrorCode::kIo, std::string("no folder for temporary files can be made: ") + strerror(errno),
                      "TMPDIR names another place", {path});
  setenv("TMPDIR", path.c_str(), 1);
  return path;
}

// A pipe that programs which are started do not get. No thread runs yet that could start one in between.
bool make_pipe(int (&ends)[2]) {
  if (pipe(ends) != 0) return false;
  for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  return true;
}

bool send_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(to, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) return false;
    bytes.remove_prefix(n > 0 ? n : 0);
  }
  return true;
}

// Notes are a path, the length of the bytes that are expected there, these bytes, and the new ones. The answer is 'y'
// when they were written, 'n' when they cannot be, 'c' with a length and bytes when others are there.
std::string answer_notes(std::string_view text, const std::vector<std::string>& below) {
  namespace fs = std::filesystem;
  const size_t line = text.find('\n'), second = text.find('\n', line + 1);
  if (second == std::string_view::npos) return "n";
  const std::string path(text.substr(0, line));
  const auto size = parse_int(text.substr(line + 1, second - line - 1));
  text.remove_prefix(second + 1);
  std::error_code ec;
  const fs::path folder = fs::canonical(fs::path(path).parent_path(), ec);
  if (ec || !size || *size < 0 || *size > std::ssize(text) || !path.ends_with(kNotesSuffix) ||
      !is_below(below, folder.string()) || !restrict_to({{}, below}))
    return "n";
  const int lock = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (lock < 0 || flock(lock, LOCK_EX) != 0) return "n";
  struct stat old;
  const bool there = lstat(path.c_str(), &old) == 0;
  if (there && !S_ISREG(old.st_mode)) return "n";
  const std::optional<std::string> now = there ? own_file(path, size_t{1} << 24) : "";
  if (!now) return "n";
  if (*now != text.substr(0, *size)) return "c" + std::to_string(now->size()) + "\n" + *now;
  return write_file(path, text.substr(*size)) ? "y" : "n";
}

// A message is a letter, a text and a zero. The end of the pipe means that the program has ended. The asking process
// may have been taken over, so it cannot name what is opened, what is removed, or what is written.
void serve_companion(int from, int to, const std::vector<std::string>& notes_below) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  std::string pending, folder;
  bool opened = false;
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(from, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    pending.append(buffer, n);
    for (size_t end = pending.find('\0'); end != std::string::npos; end = pending.find('\0')) {
      const std::string text = pending.substr(1, end - 1);
      if (pending[0] == 'R' && folder.empty()) folder = text;
      if (pending[0] == 'O' && !folder.empty() && !std::exchange(opened, true))
        open_browser(folder + "/" + kOpenedPage);
      if (pending[0] == 'N') {  // in a process of its own, which gives up its rights first
        const pid_t writer = fork();
        if (writer == 0) _exit(send_all(to, answer_notes(text, notes_below)) ? 0 : 1);
        if (writer < 0 && !send_all(to, "n")) break;
        while (writer > 0 && waitpid(writer, nullptr, 0) < 0 && errno == EINTR) {
        }
      }
      pending.erase(0, end + 1);
    }
  }
  if (!folder.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
}

}  // namespace

Companion::Companion(std::vector<std::string> notes_below) {
  int ends[2], replies[2];
  if (!make_pipe(ends)) return;
  if (!make_pipe(replies)) {
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
    serve_companion(ends[0], replies[1], notes_below);
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

bool Companion::read_reply(char* to, size_t size) {
  while (size > 0) {
    const ssize_t n = ::read(reply_, to, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

Result<std::optional<std::string>> Companion::write_notes(const std::string& path, const std::string& before,
                                                          const std::string& bytes) {
  const Error not_written{
      ErrorCode::kIo, "the notes could not be written", {path}, "is its folder writable, and the disk not full?"};
  const std::lock_guard lock(asking_);
  const std::string message =
      "N" + path + "\n" + std::to_string(before.size()) + "\n" + before + bytes + std::string(1, '\0');
  char answer = 'n';
  if (pipe_ < 0 || !send_all(pipe_, message) || !read_reply(&answer, 1)) return not_written;
  if (answer == 'y') return std::optional<std::string>();
  if (answer != 'c') return not_written;
  std::string length;
  for (char c = 0; read_reply(&c, 1) && c != '\n';) length += c;
  std::string there(static_cast<size_t>(parse_int(length).value_or(0)), '\0');
  if (!read_reply(there.data(), there.size())) return not_written;
  return std::optional(std::move(there));
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

Result<Confined> confine_to(const std::vector<std::string>& readable, Companion& companion,
                            const std::vector<std::string>& writable, bool connects) {
  if (!has_landlock()) return Confined::kNoLandlock;
  TRY(folder, private_folder(companion));
  Rights rights{readable, writable, true, connects};
  rights.writable.push_back(*folder);
  return restrict_to(rights);
}

}  // namespace stageline
