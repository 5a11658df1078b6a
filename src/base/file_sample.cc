#include "base/file_sample.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/crc32c.h"

namespace stageline {

uint32_t file_sample(const std::string& path, int64_t size_bytes, bool whole) {
  constexpr int64_t kSample = 1 << 16;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return 0;
  uint32_t crc = 0;
  std::string buffer(kSample, '\0');
  std::vector<int64_t> places = {0, size_bytes / 2, std::max<int64_t>(0, size_bytes - kSample)};
  if (whole) places.clear();
  for (int64_t at = 0; whole && at < size_bytes; at += kSample) places.push_back(at);
  for (const int64_t at : places) {
    const ssize_t n = ::pread(fd, buffer.data(), buffer.size(), at);
    if (n > 0) crc = crc32c({buffer.data(), static_cast<size_t>(n)}, crc);
  }
  ::close(fd);
  return crc;
}

}  // namespace stageline
