// Reads a file that its writer is still changing, by positions. The writer maps it, so it is never mapped here (a
// truncation would raise SIGBUS).
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/input_files.h"

namespace stageline::recording {

class Places {
 public:
  explicit Places(const std::string& path) : fd_(open_input_file(path)) {
    if (fd_ >= 0) note_content_read(path);
  }
  Places(const Places&) = delete;
  ~Places() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool is_open() const { return fd_ >= 0; }
  // Reads as much of [at, at + size) as there is, and returns how much that is.
  size_t read(uint64_t at, char* out, size_t size) const {
    size_t got = 0;
    if (at > INT64_MAX / 2) size = 0;
    while (got < size) {
      const ssize_t n = ::pread(fd_, out + got, size - got, at + got);
      if (n <= 0) break;
      got += n;
    }
    return got;
  }
  std::string read(uint64_t at, size_t size) const {
    std::string out(size, '\0');
    out.resize(read(at, out.data(), size));
    return out;
  }

 private:
  int fd_;
};

}  // namespace stageline::recording
