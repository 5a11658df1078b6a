// A bound for all digests of a run together.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace stageline::digest {

// Shares the remaining memory among threads. A digest of a megabyte can unpack to gigabytes of columns, so room is
// requested before they are made.
class MemoryLeft {
 public:
  explicit MemoryLeft(int64_t bytes) : left_(bytes) {}
  bool take(int64_t bytes) {
    if (left_.fetch_sub(bytes) >= bytes) return true;
    give_back(bytes);
    return false;
  }
  void give_back(int64_t bytes) { left_.fetch_add(bytes); }

  // For a while.
  class Taken {
   public:
    Taken(MemoryLeft& memory, int64_t bytes) : memory_(memory), bytes_(memory.take(bytes) ? bytes : -1) {}
    ~Taken() {
      if (bytes_ >= 0) memory_.give_back(bytes_);
    }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    explicit operator bool() const { return bytes_ >= 0; }

   private:
    MemoryLeft& memory_;
    int64_t bytes_;
  };

 private:
  std::atomic<int64_t> left_;
};
// Errors: kLimit.
inline Error no_room(const std::string& path, int64_t bytes) {
  return make_error(ErrorCode::kLimit,
                    "the run takes more memory than there is with this digest, which is " +
                        std::to_string(bytes >> 20) + " MiB unpacked",
                    "name fewer digests, or read them where there is more memory", {path});
}

}  // namespace stageline::digest
