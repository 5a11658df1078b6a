#include "base/file_sample.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/crc32c.h"

namespace stageline {

uint32_t file_sample(const std::string& path, int64_t size_bytes) {
  constexpr int64_t kSample = 1 << 16;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return 0;
  uint32_t crc = 0;
  std::string buffer(kSample, '\0');
  for (const int64_t at : {int64_t{0}, size_bytes / 2, size_bytes - kSample}) {
    const ssize_t n = ::pread(fd, buffer.data(), buffer.size(), std::max<int64_t>(0, at));
    if (n > 0) crc = crc32c({buffer.data(), static_cast<size_t>(n)}, crc);
  }
  ::close(fd);
  return crc;
}

uint32_t file_sum(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return 0;
  uint32_t crc = 0;
  std::string buffer(size_t{1} << 18, '\0');
  for (ssize_t n; (n = ::read(fd, buffer.data(), buffer.size())) > 0;)
    crc = crc32c({buffer.data(), static_cast<size_t>(n)}, crc);
  ::close(fd);
  return crc;
}

}  // namespace stageline
