#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>

#include "base/progress.h"

namespace stageline {
namespace {

// Paths to remove on a signal. Fixed storage, because a signal handler may not allocate: a slot is
// taken by a compare-exchange and holds the path until the file is committed or dropped.
constexpr size_t kMaxPartialFiles = 64;
constexpr size_t kMaxPathBytes = 4096;
struct PartialSlot {
  std::atomic<int> state{0};  // 0 free, 1 being written, 2 valid
  char path[kMaxPathBytes];
};
PartialSlot g_partials[kMaxPartialFiles];

std::atomic<Progress*> g_watcher{nullptr};
std::atomic<bool> g_interrupted{false};

int take_slot(const std::string& path) {
  if (path.size() + 1 > kMaxPathBytes) return -1;
  for (size_t i = 0; i < kMaxPartialFiles; ++i) {
    int expected = 0;
    if (!g_partials[i].state.compare_exchange_strong(expected, 1)) continue;
    memcpy(g_partials[i].path, path.c_str(), path.size() + 1);
    g_partials[i].state = 2;
    return static_cast<int>(i);
  }
  return -1;
}

void free_slot(int slot) {
  if (slot >= 0) g_partials[slot].state = 0;
}

bool writes_directly(const std::string& path) {
  if (path == "-") return true;
  struct stat st;
  return stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

}  // namespace

void watch_output(Progress* progress) { g_watcher = progress; }

void remove_partial_files_on_signal() {
  g_interrupted = true;
  for (PartialSlot& slot : g_partials)
    if (slot.state.load() == 2) ::unlink(slot.path);
}

struct OutputFile::Impl {
  std::string path, partial;
  int fd = -1;
  int slot = -1;
  bool direct = false;
  int error = 0;
  std::unique_ptr<char[]> buffer;  // not cleared: a large one costs more to clear than a small file to write
  size_t capacity = 0;
  size_t used = 0;

  void put(const char* data, size_t size) {
    if (Progress* watcher = g_watcher.load(std::memory_order_relaxed)) watcher->add(static_cast<int64_t>(size));
    while (size > 0 && error == 0) {
      const ssize_t n = ::write(fd, data, size);
      if (n < 0) {
        if (errno != EINTR) error = errno;
        continue;
      }
      data += n;
      size -= static_cast<size_t>(n);
    }
  }
  void flush() {
    put(buffer.get(), used);
    used = 0;
  }
  ~Impl() {
    if (fd > 2) ::close(fd);
    if (!direct && !partial.empty()) ::unlink(partial.c_str());
    free_slot(slot);
  }
};

OutputFile::OutputFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

Result<OutputFile> OutputFile::create(const std::string& path, size_t buffer_bytes) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  // A link is followed: renaming onto it would replace it.
  if (std::error_code ec; std::filesystem::is_symlink(path, ec))
    if (const auto target = std::filesystem::canonical(path, ec); !ec) impl->path = target.string();
  impl->direct = writes_directly(impl->path);
  impl->partial = impl->direct ? impl->path : impl->path + ".partial." + std::to_string(::getpid());
  struct stat st;
  if (stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode))
    return Error{ErrorCode::kIo, "is a folder, not a file to write", {path}, "give a file name inside it"};
  if (path == "-") {
    impl->fd = 1;
  } else {
    // The slot first: no file is there that a signal would not find. One that began after the handler had passed its
    // slot is removed here.
    if (!impl->direct) impl->slot = take_slot(impl->partial);
    const int flags = O_WRONLY | O_CLOEXEC | O_CREAT | (impl->direct ? 0 : O_TRUNC);
    impl->fd = ::open(impl->partial.c_str(), flags, 0666);
    if (!impl->direct && g_interrupted) ::unlink(impl->partial.c_str());
    if (impl->fd < 0) {
      const int reason = errno;
      impl->partial.clear();
      return Error{ErrorCode::kIo,
                   std::string("cannot write here: ") + strerror(reason),
                   {path},
                   reason == ENOENT ? "the folder does not exist; make it first" : ""};
    }
  }
  impl->capacity = std::max<size_t>(buffer_bytes, size_t{1} << 16);
  impl->buffer.reset(new char[impl->capacity]);
  return OutputFile(std::move(impl));
}

void OutputFile::write(std::string_view bytes) {
  Impl& f = *impl_;
  if (bytes.size() > f.capacity - f.used) {
    f.flush();
    if (bytes.size() >= f.capacity) {
      f.put(bytes.data(), bytes.size());
      return;
    }
  }
  memcpy(f.buffer.get() + f.used, bytes.data(), bytes.size());
  f.used += bytes.size();
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
  f.flush();
  if (f.fd > 2 && ::close(f.fd) != 0 && f.error == 0) f.error = errno;
  f.fd = -1;
  if (f.error == EPIPE) return {};
  if (f.error != 0)
    return Error{ErrorCode::kIo,
                 std::string("cannot write: ") + strerror(f.error),
                 {f.path},
                 f.error == ENOSPC ? "the disk is full; nothing was left behind" : ""};
  if (!f.direct) {
    if (::rename(f.partial.c_str(), f.path.c_str()) != 0)
      return Error{ErrorCode::kIo, std::string("cannot rename to its final name: ") + strerror(errno), {f.path}, ""};
    f.partial.clear();
    free_slot(f.slot);
    f.slot = -1;
  }
  return {};
}

Status write_file(const std::string& path, std::string_view bytes) {
  Result<OutputFile> out = OutputFile::create(path);
  if (!out) return std::move(out).error();
  out->write(bytes);
  return out->commit();
}

}  // namespace stageline
