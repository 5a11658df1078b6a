// OutputFile: a file that appears only when whole. Bytes go to "PATH.partial.PID" beside the
// target and commit() renames it; a destructor without commit, or Ctrl-C, removes it.
// "-" and things that are not regular files (pipes, /dev/null) are written directly.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stageline {

class OutputFile {
 public:
  // Errors: kIo when the folder is missing or not writable (checked here, before long work).
  static Result<OutputFile> create(const std::string& path, size_t buffer_bytes = size_t{1} << 17);

  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  // Buffered. A failed write is remembered and reported by commit().
  void write(std::string_view bytes);
  // Room for `bytes` contiguous bytes in the buffer (at most 64 KiB); follow with advance().
  char* reserve(size_t bytes);
  void advance(size_t bytes);

  // Flushes, closes, renames. Errors: kIo. A closed pipe is success: the reader had enough.
  Status commit();
  const std::string& path() const;
  // Where the bytes are until commit(): for libraries that insist on writing a file themselves.
  const std::string& partial_path() const;

 private:
  struct Impl;
  explicit OutputFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Bytes that any OutputFile writes are added to `progress` (nullptr: to none), for a progress bar.
// Set from one thread while nothing is being written.
class Progress;
void watch_output(Progress* progress);

// Removes every file that is not committed yet. Async-signal-safe: for the SIGINT handler.
void remove_partial_files_on_signal();

// Writes a whole file at once. Errors as OutputFile.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace stageline
