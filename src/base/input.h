// Input: the bytes of one file as a stream of windows, decompressed on the way when the file is gzip (also several
// members in a row) or zstd. Memory is bounded by the window, never by the file.
//
// Files are read, not mapped. A log that is truncated or rotated while we read it would turn a mapping into SIGBUS, and
// mapped pages count as memory of this process.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

class Progress;

inline constexpr size_t kDefaultWindowBytes = size_t{1} << 18;

class Input {
 public:
  // Opens `path`. "-" means standard input. A pipe is copied to a temporary file, so that it can be opened again. A
  // network address ("s3://…", "https://…") is read in parts (base/remote_file.h). kHead: the caller only reads enough
  // to see what the file is (base/input_files.h). Errors: kNotFound, kIo (also for a folder).
  enum class Reads : uint8_t { kContent, kHead };
  static Result<Input> open(const std::string& path, Progress* progress = nullptr, Reads reads = Reads::kContent);

  Input(Input&&) noexcept;
  Input& operator=(Input&&) noexcept;
  ~Input();

  // Reads up to `capacity` decompressed bytes into `out`; 0 means the end. Errors: kIo, and kBadInput when compressed
  // data is damaged (bytes delivered before are valid).
  Result<size_t> read(char* out, size_t capacity);

  const std::string& path() const;
  bool compressed() const;

 private:
  struct Impl;
  explicit Input(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Reads a file in windows that never cut a line. body(window, offset) gets only whole lines, each with its line end
// except perhaps the last. `offset` is the position of window[0] in the decompressed text. A single line longer than
// the window is delivered whole, up to kMaxLineBytes; a longer one is cut there and counted in *overlong (if given).
// Returns the number of decompressed bytes. When compressed data is damaged, the windows before the damage are
// delivered first, and then the error is returned. After an error, *reached (if given) is the number of decompressed
// bytes that body has seen.
inline constexpr size_t kMaxLineBytes = size_t{64} << 20;
template <class Body>  // void(std::string_view window, int64_t offset)
Result<int64_t> for_each_window(Input& input, Body&& body, size_t window_bytes = kDefaultWindowBytes,
                                int64_t* overlong = nullptr, int64_t* reached = nullptr);

// Returns the whole file, decompressed. Errors: those of read(), and kLimit when it is larger than `limit` bytes.
Result<std::string> read_all(const std::string& path, size_t limit, Progress* progress = nullptr);

// Returns the first `bytes` decompressed bytes; fewer when the file is shorter or damaged. `damage`, if given, gets the
// error that ended them early.
std::string read_head(const std::string& path, size_t bytes, std::optional<Error>* damage = nullptr,
                      bool* compressed = nullptr);

// Returns the 1-based line number of a decompressed byte offset, or 0 when the file cannot be read. It reads the file
// up to there, so it is for messages only.
int64_t line_of_offset(const std::string& path, int64_t offset);

// ---------------------------------------------------------------------------------------------

namespace detail {
// A growable buffer. It does not clear the memory that it hands out.
struct WindowBuffer {
  std::unique_ptr<char[]> data;
  size_t capacity = 0;
  void grow(size_t new_capacity, size_t keep);
};
// Returns the index after the last '\n' or '\r' of [data, data + size); 0 when there is none.
size_t after_last_line_end(const char* data, size_t size);
}  // namespace detail

template <class Body>
Result<int64_t> for_each_window(Input& input, Body&& body, size_t window_bytes, int64_t* overlong, int64_t* reached) {
  detail::WindowBuffer buffer;
  buffer.grow(window_bytes, 0);
  size_t held = 0;     // number of bytes of an unfinished line at the front of the buffer
  int64_t offset = 0;  // position of buffer[0] in the decompressed text
  for (;;) {
    if (held == buffer.capacity) {
      if (buffer.capacity >= kMaxLineBytes) {
        if (overlong) ++*overlong;
        body(std::string_view(buffer.data.get(), held), offset);
        offset += static_cast<int64_t>(held);
        held = 0;
      } else {
        buffer.grow(buffer.capacity * 2, held);
      }
    }
    Result<size_t> got = input.read(buffer.data.get() + held, buffer.capacity - held);
    if (!got || *got == 0) {
      if (held > 0) body(std::string_view(buffer.data.get(), held), offset);
      offset += static_cast<int64_t>(held);
      if (reached) *reached = offset;
      if (!got) return std::move(got).error();
      return offset;
    }
    const size_t filled = held + *got;
    // Only the new bytes can contain a line end, because the held bytes were searched before.
    const size_t in_new = detail::after_last_line_end(buffer.data.get() + held, *got);
    const size_t whole = in_new == 0 ? 0 : held + in_new;
    if (whole > 0) body(std::string_view(buffer.data.get(), whole), offset);
    held = filled - whole;
    if (whole > 0 && held > 0) __builtin_memmove(buffer.data.get(), buffer.data.get() + whole, held);
    offset += static_cast<int64_t>(whole);
  }
}

}  // namespace stageline
