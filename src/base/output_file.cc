#include "base/output_file.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include <ctime>
#include <filesystem>
#include <mutex>

#include "base/input_files.h"
#include "base/progress.h"
#include "base/system_calls.h"

namespace stageline {
namespace {

// The paths to remove on a signal. The list only grows, because a signal handler may neither allocate nor wait. A slot
// is taken by a compare-exchange and holds the path until the file is committed or dropped.
constexpr size_t kMaxPathBytes = 4096;
struct PartialSlot {
  std::atomic<int> state{1};  // 0 free, 1 being written, 2 valid
  PartialSlot* next = nullptr;
  char path[kMaxPathBytes];
};
std::atomic<PartialSlot*> g_partials{nullptr};

std::atomic<Progress*> g_watcher{nullptr};
std::atomic<std::string (*)(const std::string&)> g_what_is{nullptr};
std::atomic<bool> g_interrupted{false};
std::atomic<bool> g_renaming{false};
std::atomic<int> g_waiting_signal{0};

// Returns nullptr when the path is too long for a slot; it is then too long for the system too.
PartialSlot* take_slot(const std::string& path) {
  if (path.size() + 1 > kMaxPathBytes) return nullptr;
  PartialSlot* slot = g_partials.load();
  for (int expected = 0; slot && !slot->state.compare_exchange_strong(expected, 1); expected = 0) slot = slot->next;
  if (!slot) {
    slot = new PartialSlot();
    slot->next = g_partials.load();
    while (!g_partials.compare_exchange_weak(slot->next, slot)) {
    }
  }
  memcpy(slot->path, path.c_str(), path.size() + 1);
  slot->state = 2;
  return slot;
}

void free_slot(PartialSlot*& slot) {
  if (slot) slot->state = 0;
  slot = nullptr;
}

// Returns how many bytes (0 to 3) at the end of `text` begin a character that continues in the next piece.
size_t cut_letter_bytes(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto c = static_cast<unsigned char>(text[text.size() - back]);
    if ((c & 0xc0) == 0x80) continue;  // a byte inside a character
    const size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
    return whole > back ? back : 0;
  }
  return 0;
}

bool writes_directly(const std::string& path) {
  if (path == "-") return true;
  struct stat st;
  return stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

// Returns true for a link that another user put into a folder of everybody (as /tmp). The kernel does not follow it for
// programs that open it (proc(5), protected_symlinks). OutputFile renames, so the kernel does not see it.
bool is_strangers_link(const std::filesystem::path& at) {
  struct stat link, folder;
  const std::filesystem::path parent = at.has_parent_path() ? at.parent_path() : std::filesystem::path(".");
  return lstat(at.c_str(), &link) == 0 && S_ISLNK(link.st_mode) && link.st_uid != geteuid() &&
         stat(parent.c_str(), &folder) == 0 && link.st_uid != folder.st_uid &&
         (folder.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH);
}

// Follows the links of `path` to the file that will be replaced, but not those of strangers, and none of its folders
// may be such a link. A link to a file that is not there yet leads to it, as for a program that opens it.
Result<std::string> target_of(const std::string& path) {
  constexpr int kMaxLinks = 40;  // as the kernel
  const auto refused = [](const std::filesystem::path& at) {
    return make_error(ErrorCode::kIo,
                      "another user made this link in a folder that everybody may write to; it was not followed",
                      "name another file, or the file that the link leads to", {at.string()});
  };
  std::filesystem::path at, folder;
  for (const std::filesystem::path& part : std::filesystem::path(path).parent_path())
    if (is_strangers_link(folder /= part)) return refused(folder);
  at = path;
  struct stat link;
  for (int i = 0; i < kMaxLinks && lstat(at.c_str(), &link) == 0 && S_ISLNK(link.st_mode); ++i) {
    if (is_strangers_link(at)) return refused(at);
    std::error_code ec;
    at = at.parent_path() / std::filesystem::read_symlink(at, ec);
    if (ec) return path;
  }
  if (at == path) return path;
  std::error_code ec;
  const std::filesystem::path target = std::filesystem::canonical(path, ec);
  if (!ec) return target.string();
  return stat(path.c_str(), &link) == 0 ? path : at.string();  // a pipe has a name, but none that leads to it
}

Error over_input(const std::string& path, const std::string& input) {
  return make_error(ErrorCode::kUsage,
                    "this is " +
                        (input == path || input == "-" ? std::string("the input, or one of its files")
                                                       : "the same file as the input " + input) +
                        "; it would be overwritten",
                    "choose another name for the output", {path});
}

// Refuses to overwrite an input. `path` is the file that is about to be replaced, or for "-" written to; `given` is the
// name that the user gave.
Status check_no_input(const std::string& path, const std::string& given) {
  struct stat st;
  if ((path == "-" ? fstat(1, &st) : stat(path.c_str(), &st)) != 0) return {};
  if (const std::string input = input_file_of(path, st); !input.empty()) return over_input(given, input);
  return {};
}

// The mark of what an OutputFile wrote: who wrote it since, whatever program, changed size or time.
constexpr const char* kWrittenBy = "user.stageline.written";
constexpr std::string_view kUnfinished = "unfinished";
std::string state_of(const struct stat& st) {
  return std::to_string(st.st_size) + " " + std::to_string(st.st_mtim.tv_sec) + "." +
         std::to_string(st.st_mtim.tv_nsec);
}

// Refuses to overwrite a file that no OutputFile wrote. Where the file system keeps no marks, only measurements are
// refused.
Status check_no_strangers_file(const std::string& path, const std::string& given) {
  const auto what_is = g_what_is.load();
  struct stat st;
  if (!what_is || path == "-" || stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) return {};
  char mark[64];
  const ssize_t size = read_mark(path.c_str(), kWrittenBy, mark, sizeof mark);
  if (size > 0 && std::string_view(mark, size) == state_of(st)) return {};
  const bool keeps_marks = size >= 0 || errno != ENOTSUP;
  const std::string what = what_is(path);
  if (what.empty() && (!keeps_marks || holds_page_or_picture(path))) return {};
  return make_error(ErrorCode::kUsage,
                    (what.empty() ? "Stageline did not write the file that is here"
                                  : "a measurement is here, though no input of this command (" + what + ")") +
                        "; it would be overwritten",
                    "choose another name for the output, or --force", {given});
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Writes to the disk. Files that cannot be synced (on some network file systems) report that by EINVAL.
bool synced(int fd) { return ::fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS; }

Status sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return {};  // a folder that may be written but not read
  const bool good = synced(fd);
  const int reason = errno;
  ::close(fd);
  if (good) return {};
  return make_error(ErrorCode::kIo, std::string("cannot be put on the disk: ") + strerror(reason), "", {folder});
}

// Remains of killed programs ------------------------------------------------------------------------------------------

constexpr std::string_view kPartialMark = ".partial.";
// Age limit for files of another machine or container, whose processes cannot be checked.
constexpr time_t kForeignSeconds = 24 * 3600;

// Returns 6 hexadecimal digits that identify where process numbers have the same meaning: one boot of one machine, and
// one namespace.
const std::string& place_tag() {
  static const std::string tag = [] {
    char boot[64] = {};
    if (const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); fd >= 0) {
      if (::read(fd, boot, sizeof boot - 1) < 0) boot[0] = 0;
      ::close(fd);
    }
    struct stat ns{};
    stat("/proc/self/ns/pid", &ns);
    uint64_t hash = 1469598103934665603u;  // FNV-1a
    for (const char c : std::string(boot) + std::to_string(ns.st_ino))
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    char text[8];
    snprintf(text, sizeof text, "%06x", static_cast<unsigned>(hash & 0xffffff));
    return std::string(text);
  }();
  return tag;
}

// Returns "PATH.partial.4711.a1b2c3". When that name is taken (by a link placed there, or by the file of an earlier
// program with this number), it returns "PATH.partial.4711.a1b2c3.2".
std::string partial_name(const std::string& path, int attempt) {
  return path + std::string(kPartialMark) + std::to_string(::getpid()) + "." + place_tag() +
         (attempt > 1 ? "." + std::to_string(attempt) : "");
}

// Returns true when `name`, the part after kPartialMark, belongs to a program that does not run any more, and the file
// has the mark of an OutputFile. A name alone proves nothing, but is enough where the file system keeps no marks, and
// for an empty file: the program was killed before it set the mark.
bool is_stale(const std::string& file, std::string_view name, const struct stat& st) {
  char mark[64];
  const ssize_t size = read_mark(file.c_str(), kWrittenBy, mark, sizeof mark);
  const std::string_view is(mark, std::max<ssize_t>(size, 0));
  const bool unmarked = size < 0 && (errno == ENOTSUP || st.st_size == 0);
  if (!unmarked && is != kUnfinished && is != state_of(st)) return false;
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos || name.find_first_not_of("0123456789abcdef.") != std::string_view::npos)
    return false;
  const auto pid = parse_int(name.substr(0, dot));
  if (!pid || *pid <= 0 || *pid > INT32_MAX) return false;
  if (name.substr(dot + 1, place_tag().size()) != place_tag()) return st.st_mtime + kForeignSeconds < time(nullptr);
  return ::kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH;
}

// Removes the partial files of `path` that earlier programs left. Only plain files of this user with exactly such a
// name are removed.
void sweep_stale(const std::string& path) {
  static std::mutex mutex;
  // For each folder: names with kPartialMark; each folder is listed once.
  static std::map<std::string, std::vector<std::string>> seen;
  const std::string folder = parent_of(path);
  const std::lock_guard lock(mutex);
  const auto [at, first] = seen.try_emplace(folder);
  if (first)
    if (DIR* const dir = opendir(folder.c_str())) {
      while (const dirent* entry = readdir(dir))
        if (strstr(entry->d_name, kPartialMark.data())) at->second.emplace_back(entry->d_name);
      closedir(dir);
    }
  const std::string begin = path.substr(path.rfind('/') + 1) + std::string(kPartialMark);
  for (const std::string& name : at->second) {
    struct stat st;
    const std::string file = folder + "/" + name;
    if (name.starts_with(begin) && lstat(file.c_str(), &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
        st.st_uid == geteuid() && is_stale(file, std::string_view(name).substr(begin.size()), st))
      ::unlink(file.c_str());
  }
}

}  // namespace

void protect_measurements(std::string (*what_is)(const std::string&)) { g_what_is = what_is; }

void watch_output(Progress* progress) { g_watcher = progress; }

bool remove_partial_files_on_signal(int signal) {
  g_waiting_signal = signal;
  g_interrupted = true;
  if (g_renaming) return false;
  for (PartialSlot* slot = g_partials.load(); slot; slot = slot->next)
    if (slot->state.load() == 2) ::unlink(slot->path);
  return true;
}

struct OutputFile::Impl {
  std::string path, partial, given;
  int fd = -1;
  PartialSlot* slot = nullptr;
  bool direct = false;
  bool on_terminal = false;
  std::string cut_letter;  // for a terminal: the first bytes of a character whose rest was not written yet
  Over over = Over::kNoInput;
  // For "-": whether it was checked that standard output is not an input; this is done when the first bytes are
  // written.
  bool asked = false;
  int error = 0;
  std::optional<Error> refused;
  // Not cleared, because clearing a large buffer takes longer than writing a small file.
  std::unique_ptr<char[]> buffer;
  size_t capacity = 0;
  size_t used = 0;

  void put(const char* data, size_t size) {
    if (direct && !std::exchange(asked, true))
      if (Status s = check_no_input(path, given); !s) refused = std::move(s).error();
    if (refused) return;
    if (Progress* watcher = g_watcher.load(std::memory_order_relaxed)) watcher->add(size);
    while (size > 0 && error == 0) {
      const ssize_t n = ::write(fd, data, size);
      if (n < 0) {
        if (errno != EINTR) error = errno;
        continue;
      }
      data += n;
      size -= n;
    }
  }
  // Writes bytes. A terminal gets only text that it does not obey.
  void give(std::string_view bytes) {
    if (!on_terminal) return put(bytes.data(), bytes.size());
    std::string whole = std::exchange(cut_letter, {}) + std::string(bytes);
    const size_t cut = cut_letter_bytes(whole);
    cut_letter = whole.substr(whole.size() - cut);
    whole.resize(whole.size() - cut);
    whole = terminal_text(whole, true);
    put(whole.data(), whole.size());
  }
  void flush() {
    if (used > 0) give({buffer.get(), used});
    used = 0;
  }
  // Called when nothing more follows: a character that was cut off is shown as one.
  void end_text() {
    flush();
    const std::string rest = terminal_text(std::exchange(cut_letter, {}), true);
    if (!rest.empty()) put(rest.data(), rest.size());
  }
  // Creates the partial file. Returns false with errno.
  bool open_partial() {
    constexpr int kAttempts = 100;
    for (int attempt = 1; attempt <= kAttempts; ++attempt) {
      partial = partial_name(path, attempt);
      // SQLite would apply a journal that another user put next to this name.
      if (access((partial + "-journal").c_str(), F_OK) == 0 || access((partial + "-wal").c_str(), F_OK) == 0) continue;
      // The slot is taken first, so that a signal finds every file that exists. When the handler had already passed
      // this slot before the file was created, the file is removed here.
      slot = take_slot(partial);
      struct stat old;
      const bool replaces = stat(path.c_str(), &old) == 0 && S_ISREG(old.st_mode);
      fd = ::open(partial.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL | O_NOFOLLOW, replaces ? 0600 : 0666);
      const int reason = errno;
      if (fd >= 0) {
        // A file that is written again keeps its mode, and its owner and group where this user may give them. A group
        // that it cannot have gets nothing.
        if (replaces) {
          const bool own_group =
              ::fchown(fd, old.st_uid, old.st_gid) == 0 || ::fchown(fd, static_cast<uid_t>(-1), old.st_gid) == 0;
          (void)::fchmod(fd, old.st_mode & (own_group ? 0777 : 0707));
        }
        (void)write_mark(fd, kWrittenBy, kUnfinished.data(), kUnfinished.size());
        if (g_interrupted) ::unlink(partial.c_str());
        return true;
      }
      free_slot(slot);
      errno = reason;
      if (reason != EEXIST) break;
    }
    partial.clear();
    return false;
  }
  // Returns true when the name still leads to the file that was written, and no other file has replaced it.
  bool is_own_partial() const {
    struct stat by_name, by_descriptor;
    return lstat(partial.c_str(), &by_name) == 0 && fstat(fd, &by_descriptor) == 0 &&
           by_name.st_dev == by_descriptor.st_dev && by_name.st_ino == by_descriptor.st_ino;
  }
  Status close_whole() {
    end_text();
    if (struct stat st; over == Over::kNoInput && !direct && fstat(fd, &st) == 0) {
      const std::string state = state_of(st);
      (void)write_mark(fd, kWrittenBy, state.data(), state.size());
    }
    if (error == 0 && !direct && !synced(fd)) error = errno;
    const bool own = direct || is_own_partial();
    if (fd > 2 && ::close(fd) != 0 && error == 0) error = errno;
    fd = -1;
    buffer.reset();  // a set may hold thousands of files
    if (refused) return *refused;
    if (error == EPIPE) return {};
    if (error != 0)
      return make_error(ErrorCode::kIo, std::string("cannot write: ") + strerror(error),
                        error == ENOSPC ? "the disk is full; nothing was left behind" : "", {path});
    if (!own)
      return make_error(ErrorCode::kIo, "another program removed or replaced the unfinished file", "try again",
                        {partial});
    return {};
  }
  Status check_target() const {
    struct stat st;
    if (stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode))
      return make_error(ErrorCode::kIo, "is a folder, not a file to write", "give a file name inside it", {given});
    if (over == Over::kAnInput) return {};
    TRY_OK(check_no_input(path, given));
    return check_no_strangers_file(path, given);
  }
  // The fate of the file that had the final name before.
  enum class Old : uint8_t { kNone, kKept, kReplaced };
  bool exchange() { return exchange_files(partial.c_str(), path.c_str()); }
  // Renames to the final name. With `old`, the old file is kept under the partial name when the file system can do
  // that.
  Status take_name(Old* old) {
    if (old) {
      if (exchange()) {
        *old = Old::kKept;
        return {};
      }
      *old = errno == ENOENT ? Old::kNone : Old::kReplaced;
    }
    if (::rename(partial.c_str(), path.c_str()) == 0) return {};
    return make_error(ErrorCode::kIo, std::string("cannot rename to its final name: ") + strerror(errno), "", {path});
  }
  void settled() {
    partial.clear();
    free_slot(slot);
  }
  ~Impl() {
    if (fd > 2) ::close(fd);
    if (!direct && !partial.empty()) ::unlink(partial.c_str());
    free_slot(slot);
  }
};

namespace {

// While this object lives, a signal waits; it is raised afterwards.
class Renaming {
 public:
  Renaming() { g_renaming = true; }
  ~Renaming() {
    g_renaming = false;
    if (g_interrupted && g_waiting_signal != 0) ::raise(g_waiting_signal);
  }
  bool interrupted() const { return g_interrupted; }
};

// Files of sets that are written but not yet on the disk: each takes one of the process's descriptors.
std::atomic<int64_t> g_open_in_sets{0};

// Returns how many there may be: a sixteenth of the descriptors that the process may have, and 64 at most.
int64_t max_open_in_sets() {
  struct rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 64;
  return std::clamp<int64_t>(limit.rlim_cur / 16, 1, 64);
}

}  // namespace

// Files that wait for their set. They may come from several threads that joined the set.
struct OutputSet::Files {
  std::mutex mutex;
  std::vector<std::unique_ptr<OutputFile::Impl>> waiting;
  size_t open = 0;            // this number of files, at the end, is not yet on the disk
  std::optional<Error> lost;  // why one of them could not be put there; then none of them appears

  // Puts the files on the disk that are not yet there. A file system with a journal writes it once for all of them,
  // where it would write it for each that is synced right after it was written.
  Status close_open() {
    g_open_in_sets -= open;
    for (; open > 0; --open)
      if (Status s = waiting[waiting.size() - open]->close_whole(); !s && !lost) lost = std::move(s).error();
    return lost ? Status(*lost) : Status();
  }
  ~Files() { g_open_in_sets -= open; }
};

namespace {
thread_local OutputSet::Files* t_set = nullptr;
}

OutputFile::OutputFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

Result<OutputFile> OutputFile::create(const std::string& path, size_t buffer_bytes, Over over) {
  if (path.empty())
    return make_error(ErrorCode::kUsage, "the output's name is empty", "name the file to write, as in -o report.html");
  if (path.find('\0') != std::string::npos)  // the system would end the name there
    return make_error(ErrorCode::kUsage, "a file name cannot contain a NUL", "choose another name");
  auto impl = std::make_unique<Impl>();
  impl->path = impl->given = path;
  impl->over = over;
  // A link is followed, because renaming onto it would replace the link.
  TRY(target, target_of(path));
  impl->path = std::move(*target);
  impl->direct = writes_directly(impl->path);
  TRY_OK(impl->check_target());
  if (!impl->direct && access(impl->path.c_str(), F_OK) == 0 && access(impl->path.c_str(), W_OK) != 0)
    return make_error(ErrorCode::kIo, "exists and may not be written", "", {path});
  bool opened = true;
  if (path == "-") {
    impl->fd = 1;
  } else if (impl->direct) {
    impl->fd = ::open(impl->path.c_str(), O_WRONLY | O_CLOEXEC);
    opened = impl->fd >= 0;
    impl->partial = impl->path;
  } else {
    sweep_stale(impl->path);
    opened = impl->open_partial();
  }
  if (!opened) {
    const int reason = errno;
    impl->partial.clear();
    const std::filesystem::path folder = std::filesystem::path(impl->path).parent_path();
    std::error_code unknown;
    const bool there = folder.empty() || std::filesystem::is_directory(folder, unknown);
    if (there && reason == ENOENT)  // as /proc says it
      return make_error(ErrorCode::kIo, "no file can be made in this folder", "name a file in another folder", {path});
    return make_error(ErrorCode::kIo, std::string("cannot write here: ") + strerror(reason),
                      there ? "name a file in another folder" : "the folder does not exist; make it first", {path});
  }
  impl->on_terminal = impl->direct && isatty(impl->fd) != 0;
  impl->capacity = std::max<size_t>(buffer_bytes, size_t{1} << 16);
  impl->buffer.reset(new char[impl->capacity]);
  return OutputFile(std::move(impl));
}

void OutputFile::write(std::string_view bytes) {
  Impl& f = *impl_;
  if (bytes.size() > f.capacity - f.used) {
    f.flush();
    if (bytes.size() >= f.capacity) {
      f.give(bytes);
      return;
    }
  }
  memcpy(f.buffer.get() + f.used, bytes.data(), bytes.size());
  f.used += bytes.size();
}

void OutputFile::write_painted(std::string_view text) {
  if (!impl_->on_terminal) return write(text);
  impl_->end_text();
  impl_->put(text.data(), text.size());
}

char* OutputFile::reserve(size_t bytes) {
  Impl& f = *impl_;
  if (bytes > f.capacity - f.used) f.flush();
  return f.buffer.get() + f.used;
}

void OutputFile::advance(size_t bytes) { impl_->used += bytes; }

const std::string& OutputFile::path() const { return impl_->path; }
const std::string& OutputFile::partial_path() const { return impl_->partial; }

Status OutputFile::commit() {
  Impl& f = *impl_;
  OutputSet::Files* const set = t_set;
  f.end_text();
  if (!set || f.direct || f.error != 0 || f.refused)
    if (Status s = f.close_whole(); !s || f.direct) return s;
  TRY_OK(f.check_target());
  if (set) {
    const std::lock_guard lock(set->mutex);
    for (const std::unique_ptr<Impl>& other : set->waiting)
      if (other->path == f.path)
        return make_error(ErrorCode::kUsage, "two of the files to be written bear this name", "", {f.path});
    auto rest = std::make_unique<Impl>();
    rest->path = f.path;  // path() stays valid
    rest->direct = true;  // it has nothing of its own to remove
    set->waiting.push_back(std::exchange(impl_, std::move(rest)));
    ++set->open;
    return ++g_open_in_sets < max_open_in_sets() ? Status() : set->close_open();
  }
  TRY_OK(f.take_name(nullptr));
  f.settled();
  return sync_folder(parent_of(f.path));
}

OutputSet::OutputSet() {
  if (t_set) return;
  own_ = std::make_unique<Files>();
  t_set = own_.get();
}

OutputSet::~OutputSet() {
  if (own_) t_set = nullptr;
}

std::vector<std::pair<std::string, std::string>> OutputSet::waiting() const {
  std::vector<std::pair<std::string, std::string>> out;
  if (!own_) return out;
  const std::lock_guard lock(own_->mutex);
  for (const auto& file : own_->waiting) out.emplace_back(file->path, file->partial);
  return out;
}

OutputSet::Files* OutputSet::of_this_thread() { return t_set; }
OutputSet::Join::Join(Files* files) : before_(std::exchange(t_set, files)) {}
OutputSet::Join::~Join() { t_set = before_; }

Status OutputSet::commit() {
  if (!own_) return {};
  const std::lock_guard lock(own_->mutex);
  TRY_OK(own_->close_open());
  std::vector<std::unique_ptr<OutputFile::Impl>>& files = own_->waiting;
  for (const auto& file : files) TRY_OK(file->check_target());
  std::set<std::string> folders;
  Status status;
  {
    const Renaming renaming;
    if (renaming.interrupted()) return make_error(ErrorCode::kIo, "interrupted");
    using Old = OutputFile::Impl::Old;
    std::vector<Old> old(files.size(), Old::kNone);
    size_t done = 0;
    for (; done < files.size(); ++done) {
      status = files[done]->take_name(&old[done]);
      if (!status) break;
      folders.insert(parent_of(files[done]->path));
    }
    for (size_t i = done; !status && i-- > 0;) {
      if (old[i] == Old::kKept) files[i]->exchange();
      if (old[i] == Old::kNone) ::rename(files[i]->path.c_str(), files[i]->partial.c_str());
    }
    for (size_t i = 0; status && i < done; ++i) {
      if (old[i] == Old::kKept) ::unlink(files[i]->partial.c_str());
      files[i]->settled();
    }
  }
  if (!status) return status;
  files.clear();
  for (const std::string& folder : folders) TRY_OK(sync_folder(folder));
  return {};
}

Status write_file(const std::string& path, std::string_view bytes, OutputFile::Over over) {
  TRY(out, OutputFile::create(path, size_t{1} << 17, over));
  out->write(bytes);
  return out->commit();
}

}  // namespace stageline
