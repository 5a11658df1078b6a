// A digest: one rank's trace, compressed, in a file that records its source (docs/formats/digest.md).
//
//   "SLDIGEST" │ u32 version │ u32 bytes of the head │ u64 bytes of the body │ u64 bytes of the body unpacked
//   │ u32 CRC32C of head and body │ u32 CRC32C of the 36 bytes before │ head: a JSON object │ body: zstd of columns
#pragma once

#include <atomic>

#include "model/trace.h"

namespace stageline::digest {

// A bound for all digests of a run together. Shares the remaining memory among threads. A digest of a megabyte can
// unpack to gigabytes of columns, so room is requested before they are made.
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

inline constexpr std::string_view kExtension = ".sldigest";
inline constexpr std::string_view kMagic = "SLDIGEST";
inline constexpr uint32_t kVersion = 1;

struct Head {
  std::string key;     // what the digest was made from, and how; equal keys mean equal digests
  std::string reader;  // reader of the source; it settles the ranks once all are joined
  std::string root;    // the paths that the user named
  std::string source;  // the rank's own file, the first if there are several
  int32_t rank = 0;
  int64_t ranks_of_source = 0;  // if the source was read as a whole, how many digests it makes; else 0
  int64_t cells = 0, slices = 0;
};

// Returns "rank-00012.0123456789abcdef.sldigest": the rank, and a number made of the key.
std::string file_name_of(const Head& head);

std::string pack(const Head& head, const Trace& trace);

inline constexpr size_t kFixedBytes = 40;
// Returns the length of a digest according to its first bytes; 0 when they are too few or do not belong to a digest.
uint64_t announced_bytes(std::string_view first);

struct Digest {
  Head head;
  std::string_view body;  // compressed; a view into the given bytes
  uint64_t body_bytes = 0;
};
// Checks all checksums. Errors: kBadInput saying what is wrong; kUnavailable for a later version of the format.
Result<Digest> parse(std::string_view bytes, const std::string& path);
// `memory` is what all digests of a run may take together. Errors: kLimit, before it is taken; kBadInput.
Result<Trace> unpack(const Digest& digest, const std::string& path, MemoryLeft& memory);

// Writes one rank's trace as the body of a digest, and reads it back.
// The trace must have one part. Times that cells share with their slices take no space.
std::string pack_trace(const Trace& trace);

// Errors: kBadInput when a column is missing, too long, or names a row that is not there; kLimit when `memory` is used
// up. `path` is for the message.
Result<Trace> unpack_trace(std::string_view body, const std::string& path, MemoryLeft& memory);

}  // namespace stageline::digest
