#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <mutex>

#include "base/environment.h"
#include "base/error_words.h"
#include "base/input_files.h"
#include "base/machine_memory.h"
#include "base/progress.h"
#include "base/remote_file.h"
#include "base/zip_archive.h"

namespace stageline {
namespace {

constexpr size_t kRawBufferBytes = size_t{1} << 17;

// Text that is more than kUsualRatio times as long as its file says little and takes much: 0.26 MB of repeated events
// would take 8 GB. All such files of the process together may give kMaxThinText, or --max-memory; traces and logs have
// ratios of 5 to 40.
constexpr int64_t kUsualRatio = 100, kUncounted = int64_t{1} << 20, kMaxThinText = 64'000'000;
bool is_too_thin(const std::string& path, int64_t text_bytes) {
  static std::mutex mutex;
  static std::map<std::string, int64_t> counted;  // a file that is read twice counts once
  static int64_t all = 0;
  const std::lock_guard lock(mutex);
  int64_t& known = counted[path];
  all += std::max<int64_t>(0, text_bytes - known);
  known = std::max(known, text_bytes);
  return all > (max_memory() > 0 ? max_memory() : kMaxThinText);
}

// Returns true when the process holds more than --max-memory, or so much of the machine's memory that the system would
// end it. Looked at once in kLookEvery bytes that are read, and always after it was so.
bool is_memory_full(int64_t read_bytes) {
  static const int64_t max = machine_memory_bytes() / 10 * 9;
  static std::atomic<int64_t> all{0};
  static std::atomic<bool> full{false};
  constexpr int64_t kLookEvery = int64_t{8} << 20;
  const int64_t before = all.fetch_add(read_bytes);
  if (full || before / kLookEvery != (before + read_bytes) / kLookEvery)
    full = resident_bytes() > (max_memory() > 0 ? max_memory() : max);
  return full;
}

enum class Coding : uint8_t { kPlain, kGzip, kZstd, kDeflate };  // the last is of members of an archive

Coding coding_of(const unsigned char* head, size_t size) {
  if (size >= 2 && head[0] == 0x1f && head[1] == 0x8b) return Coding::kGzip;
  if (size >= 4 && head[0] == 0x28 && head[1] == 0xb5 && head[2] == 0x2f && head[3] == 0xfd) return Coding::kZstd;
  return Coding::kPlain;
}

// A pipe can be read only once, but recognising the format, reading, and naming a line each need it from the start. So
// the first open copies it to an unlinked temporary file, and every open reads that file.
int spool(int from) {
  std::string path = temporary_path("stageline-pipe-XXXXXX");
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return -1;
  unlink(path.c_str());
  std::vector<char> buffer(kRawBufferBytes);
  for (;;) {
    const ssize_t n = ::read(from, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) return fd;
    for (ssize_t done = 0; done < n;) {
      const ssize_t w = ::write(fd, buffer.data() + done, n - done);
      if (w < 0 && errno != EINTR) return -1;
      done += std::max<ssize_t>(w, 0);
    }
  }
}

// Returns a new descriptor for `path` ("-" is standard input), or -1 with errno. Descriptors of a pipe's copy are
// `alike`: a read of one moves the position of the others.
int open_path(const std::string& path, bool& alike) {
  static std::mutex mutex;
  static std::map<std::string, int> spools;  // for each path; kept until the program ends
  const std::lock_guard lock(mutex);
  auto found = spools.find(path);
  if (found == spools.end()) {
    struct stat st;
    if (path != "-") {
      if (stat(path.c_str(), &st) != 0) return -1;
      if (!S_ISFIFO(st.st_mode)) return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    }
    const int from = path == "-" ? 0 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (from < 0) return -1;
    const int copy = spool(from);
    const int reason = errno;
    if (from > 0) ::close(from);
    errno = reason;
    if (copy < 0) return -1;
    found = spools.emplace(path, copy).first;
  }
  alike = true;
  return fcntl(found->second, F_DUPFD_CLOEXEC, 0);
}

}  // namespace

struct Input::Impl {
  std::string path;
  int fd = -1;
  bool by_place = false;                  // the descriptor's own place is not used: copies of a pipe have one in common
  int64_t begins = 0, bytes = INT64_MAX;  // of a member in its archive
  uint32_t crc = 0, wanted_crc = 0;       // of a deflated member: of the text so far, and of it all
  std::unique_ptr<RemoteStream> remote;   // used instead of the descriptor
  std::unique_ptr<Impl> packed;           // likewise: gives the text of a deflated member
  Progress* progress = nullptr;
  Coding coding = Coding::kPlain;
  // Bytes that were read from the descriptor and not used yet. The buffer is not cleared, because recognising formats
  // opens many small files.
  std::unique_ptr<char[]> raw{new char[kRawBufferBytes]};
  size_t raw_begin = 0, raw_end = 0;
  int64_t raw_offset = 0;  // position of raw_end in the file
  bool raw_finished = false;
  z_stream gzip{};
  bool gzip_open = false;
  ZSTD_DStream* zstd = nullptr;
  bool frame_done = true;       // between gzip members or zstd frames, where the file may end
  std::optional<Error> damage;  // an error that is returned after the bytes before it
  int64_t text_bytes = 0;       // read so far, decompressed

  ~Impl() {
    if (gzip_open) inflateEnd(&gzip);
    if (zstd) ZSTD_freeDStream(zstd);
    if (fd > 0) ::close(fd);
  }

  Result<size_t> read_descriptor(char* out, size_t capacity) {
    if (progress && progress->cancelled())
      return worded_error(ErrorCode::kUnavailable, "refused.cancelled.reading", {}, {path, 0, raw_offset});
    if (remote || packed) {
      Result<size_t> got = remote ? remote->read(out, capacity) : packed->read(out, capacity);
      if (!got) return got;
      raw_offset += static_cast<int64_t>(*got);
      if (*got == 0) raw_finished = true;
      if (progress) progress->add(*got);
      return got;
    }
    for (;;) {
      const auto wanted = static_cast<size_t>(std::min(static_cast<int64_t>(capacity), bytes - raw_offset));
      const ssize_t n = by_place ? ::pread(fd, out, wanted, begins + raw_offset) : ::read(fd, out, capacity);
      if (n >= 0) {
        raw_offset += n;
        if (n == 0) raw_finished = true;
        if (progress) progress->add(n);
        return static_cast<size_t>(n);
      }
      if (errno == EINTR) continue;
      return make_error(ErrorCode::kIo, std::string("cannot read: ") + strerror(errno), "", {path, 0, raw_offset});
    }
  }

  // Fills `raw` unless the file is finished.
  Status fill() {
    if (raw_begin < raw_end || raw_finished) return {};
    raw_begin = raw_end = 0;
    TRY_OK(take(read_descriptor(raw.get(), kRawBufferBytes), raw_end));
    return {};
  }

  Error damaged(const std::string& what) const {
    // Other places in a packed file count the bytes of its text, so this one is named in words.
    const int64_t at = raw_offset - static_cast<int64_t>(raw_end - raw_begin);
    return make_error(ErrorCode::kBadInput, what + " (byte " + std::to_string(at) + " of the compressed file)",
                      "the file was cut or altered after it was compressed; what comes before this place was read",
                      {path});
  }

  // Reads a member of an archive from now on. What is in it may be compressed like any file.
  Status open_member(const ZipMember& member) {
    if (member.fault) return worded_error(ErrorCode::kBadInput, member.fault, {}, {path});
    if (member.deflated) {
      packed = std::make_unique<Impl>();
      packed->path = path;
      packed->coding = Coding::kDeflate;
      packed->frame_done = false;
      packed->gzip_open = inflateInit2(&packed->gzip, -MAX_WBITS) == Z_OK;
      if (!packed->gzip_open) return make_error(ErrorCode::kIo, "zlib cannot start", "", {path});
    }
    Impl& file = packed ? *packed : *this;
    file.fd = open_input_file(member.archive);
    file.by_place = true;
    file.begins = member.at;
    file.bytes = member.packed_bytes;
    file.wanted_crc = member.crc;
    if (file.fd >= 0) return {};
    return make_error(ErrorCode::kIo, std::string("cannot open: ") + strerror(errno), "", {path});
  }

  const char* name() const { return coding == Coding::kDeflate ? "deflate" : "gzip"; }

  Result<size_t> read(char* out, size_t capacity) {
    if (damage) return *damage;
    if (coding == Coding::kGzip || coding == Coding::kDeflate) return read_gzip(out, capacity);
    if (coding == Coding::kZstd) return read_zstd(out, capacity);
    if (raw_begin < raw_end) {
      const size_t n = std::min(capacity, raw_end - raw_begin);
      memcpy(out, &raw[raw_begin], n);
      raw_begin += n;
      return n;
    }
    if (raw_finished) return size_t{0};
    return read_descriptor(out, capacity);
  }

  Result<size_t> read_gzip(char* out, size_t capacity) {
    gzip.next_out = reinterpret_cast<Bytef*>(out);
    gzip.avail_out = static_cast<uInt>(std::min<size_t>(capacity, 1u << 30));
    const uInt asked = gzip.avail_out;
    while (gzip.avail_out == asked) {
      TRY_OK(fill());
      if (raw_begin == raw_end) {
        if (frame_done) return size_t{0};
        return damaged(std::string(name()) + " data ends in the middle");
      }
      const auto* const next = reinterpret_cast<const unsigned char*>(&raw[raw_begin]);
      const bool is_member =
          raw_end - raw_begin < 2 ? next[0] == 0x1f : coding_of(next, raw_end - raw_begin) == Coding::kGzip;
      if (frame_done && !is_member) {
        // Zeros after the last member are padding, which tar and some tools leave.
        while (raw_begin < raw_end && raw[raw_begin] == 0) ++raw_begin;
        if (raw_begin < raw_end) return damaged(std::string(name()) + " data is followed by bytes that are none");
        continue;
      }
      frame_done = false;
      gzip.next_in = reinterpret_cast<Bytef*>(&raw[raw_begin]);
      gzip.avail_in = static_cast<uInt>(raw_end - raw_begin);
      const int rc = inflate(&gzip, Z_NO_FLUSH);
      raw_begin = raw_end - gzip.avail_in;
      const bool is_deflate = coding == Coding::kDeflate;
      if (is_deflate) crc = crc32(crc, reinterpret_cast<Bytef*>(out), asked - gzip.avail_out);
      if (rc == Z_STREAM_END) {
        frame_done = true;
        if (is_deflate && crc != wanted_crc)
          damage = damaged("deflate data has another checksum than the archive says");
        inflateReset(&gzip);
      } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
        damage = damaged(std::string(name()) + " data is damaged (" + (gzip.msg ? gzip.msg : "no detail") + ")");
      }
      if (damage && gzip.avail_out == asked) return *damage;
    }
    return asked - gzip.avail_out;
  }

  Result<size_t> read_zstd(char* out, size_t capacity) {
    ZSTD_outBuffer target{out, capacity, 0};
    while (target.pos == 0) {
      TRY_OK(fill());
      if (raw_begin == raw_end) {
        if (frame_done) return size_t{0};
        return damaged("zstd data ends in the middle");
      }
      ZSTD_inBuffer source{&raw[raw_begin], raw_end - raw_begin, 0};
      const size_t rc = ZSTD_decompressStream(zstd, &target, &source);
      raw_begin += source.pos;
      if (ZSTD_isError(rc)) {
        damage = damaged(std::string("zstd data is damaged (") + ZSTD_getErrorName(rc) + ")");
        if (target.pos == 0) return *damage;
        break;
      }
      frame_done = rc == 0;
    }
    return target.pos;
  }
};

Input::Input(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Input::Input(Input&&) noexcept = default;
Input& Input::operator=(Input&&) noexcept = default;
Input::~Input() = default;

const std::string& Input::path() const { return impl_->path; }
bool Input::compressed() const { return impl_->coding != Coding::kPlain; }

Result<Input> Input::open(const std::string& path, Progress* progress, Reads reads) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->progress = progress;
  if (is_remote(path)) {
    Result<std::unique_ptr<RemoteStream>> remote = RemoteStream::open(path);
    if (!remote) note_input_failure(path, remote.error().what);
    if (!remote) return std::move(remote).error();
    impl->remote = std::move(*remote);
  } else if (const std::optional<ZipMember> member = zip_member(path)) {
    const Status opened = impl->open_member(*member);
    if (!opened) note_input_failure(path, opened.error().what);
    if (!opened) return opened.error();
  } else {
    impl->fd = open_path(path, impl->by_place);
  }
  const bool has_descriptor = !impl->remote && !impl->packed;
  if (has_descriptor && impl->fd < 0) {
    const int reason = errno;
    const ErrorCode code = reason == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    const std::string what = std::string("cannot open: ") + strerror(reason);
    note_input_failure(path, what);
    return Error{code, what, {path}, reason == EACCES ? "chmod +r it, or read it as the user that owns it" : ""};
  }
  if (path == "-") note_input_file(path);
  else if (has_descriptor && impl->bytes == INT64_MAX)  // an archive has been noted
    note_input_descriptor(impl->fd, path);
  if (reads == Reads::kContent) note_content_read(path);
  struct stat st;
  if (has_descriptor && fstat(impl->fd, &st) == 0 && S_ISDIR(st.st_mode))
    return make_error(ErrorCode::kIo, "is a folder, a file was expected", "name a file in it", {path});
  // A pipe may deliver its first bytes one by one, but four are needed to recognise the compression.
  while (impl->raw_end < 4 && !impl->raw_finished) {
    Result<size_t> n = impl->read_descriptor(impl->raw.get() + impl->raw_end, kRawBufferBytes - impl->raw_end);
    if (!n) note_input_failure(path, n.error().what);
    if (!n) return std::move(n).error();
    impl->raw_end += *n;
  }
  impl->coding = coding_of(reinterpret_cast<unsigned char*>(impl->raw.get()), impl->raw_end);
  if (impl->coding == Coding::kGzip) {
    if (inflateInit2(&impl->gzip, 15 + 16) != Z_OK) return make_error(ErrorCode::kIo, "zlib cannot start", "", {path});
    impl->gzip_open = true;
  } else if (impl->coding == Coding::kZstd) {
    impl->zstd = ZSTD_createDStream();
    ZSTD_initDStream(impl->zstd);
    // A frame may require any window size; 2^27 bytes is what the zstd tool allows by default.
    ZSTD_DCtx_setParameter(impl->zstd, ZSTD_d_windowLogMax, 27);
  }
  return Input(std::move(impl));
}

Result<size_t> Input::read(char* out, size_t capacity) {
  Result<size_t> got = impl_->read(out, capacity);
  if (got && *got > 0) {
    const int64_t text = impl_->text_bytes += static_cast<int64_t>(*got);
    const Impl& packed = impl_->packed ? *impl_->packed : *impl_;
    const bool thin = (compressed() || impl_->packed) && text > kUncounted && text / kUsualRatio > packed.raw_offset &&
                      is_too_thin(impl_->path, text);
    if (thin || is_memory_full(static_cast<int64_t>(*got)))
      impl_->damage =
          worded_error(ErrorCode::kLimit, thin ? "damage.thin_text" : "damage.memory_full",
                       Args().set("read", human_bytes(static_cast<double>(text))), {impl_->path, 0, impl_->raw_offset});
  }
  if (!got) note_input_failure(impl_->path, got.error().what);
  return got;
}

namespace detail {

void WindowBuffer::grow(size_t new_capacity, size_t keep) {
  std::unique_ptr<char[]> bigger(new char[new_capacity]);
  if (keep > 0) memcpy(bigger.get(), data.get(), keep);
  data = std::move(bigger);
  capacity = new_capacity;
}

static size_t after_last(char c, const char* data, size_t size) {
#if defined(__linux__)
  const void* at = memrchr(data, c, size);
  return at ? static_cast<size_t>(static_cast<const char*>(at) - data) + 1 : 0;
#else
  return std::string_view(data, size).rfind(c) + 1;  // npos + 1 is 0
#endif
}

size_t after_last_line_end(const char* data, size_t size) {
  const size_t after_lf = after_last('\n', data, size);
  // CR is searched only in windows without any LF: in files of progress bars whose lines end with CR only.
  return after_lf > 0 ? after_lf : after_last('\r', data, size);
}

}  // namespace detail

Result<std::string> read_all(const std::string& path, size_t limit, Progress* progress) {
  TRY(input, Input::open(path, progress));
  std::string out;
  size_t filled = 0;
  for (;;) {
    if (filled == out.size()) {
      if (filled > limit) break;
      out.resize(std::min(std::max<size_t>(out.size() * 2, 1 << 16), limit + 1));
    }
    TRY(n, input->read(out.data() + filled, out.size() - filled));
    if (*n == 0) break;
    filled += *n;
  }
  if (filled > limit)
    return make_error(ErrorCode::kLimit, "larger than the limit of " + std::to_string(limit) + " bytes", "", {path});
  out.resize(filled);
  return out;
}

std::string read_head(const std::string& path, size_t bytes, std::optional<Error>* damage, bool* compressed) {
  constexpr size_t kFirstBytes = size_t{64} << 10;  // most files are far shorter than what callers allow
  std::string out;
  size_t filled = 0;
  Result<Input> input = Input::open(path, nullptr, Input::Reads::kHead);
  if (!input && damage) *damage = input.error();
  if (input && compressed) *compressed = input->compressed();
  while (input && filled < bytes) {
    if (filled == out.size()) out.resize(std::min(bytes, std::max(kFirstBytes, 2 * filled)));
    Result<size_t> n = input->read(out.data() + filled, out.size() - filled);
    if (!n && damage) *damage = n.error();
    if (!n || *n == 0) break;
    filled += *n;
  }
  out.resize(filled);
  out.shrink_to_fit();  // the unused memory is freed because thousands of heads may be kept
  return out;
}

int64_t line_of_offset(const std::string& path, int64_t offset) {
  Result<Input> input = Input::open(path);
  if (!input) return 0;
  std::vector<char> buffer(kDefaultWindowBytes);
  int64_t line = 1;
  while (offset > 0) {
    Result<size_t> n = input->read(buffer.data(), std::min<size_t>(buffer.size(), static_cast<size_t>(offset)));
    if (!n || *n == 0) break;
    line += std::count(buffer.data(), buffer.data() + *n, '\n');
    offset -= static_cast<int64_t>(*n);
  }
  return line;
}

}  // namespace stageline
