// Gives random access to one gzip file. There is a restart point about every 4 MiB of output, so a read at one place
// inflates 4 MiB instead of the whole file. The method is that of zlib's examples/zran.c. At the end of a deflate
// block, inflating can continue from the position of the next bit and the 32 KiB of output before it.
//
//   compressed    ├──block──┼──block──┼──block──┤
//   points            ↑ in_byte, bit     ↑
//   output        0 … 4 MiB           8 MiB …       each with the window of 32 KiB before it
//
// Points are made while reading, and only as far as someone has read. So a first request near the end costs one pass
// over the file, and a second one next to nothing. Memory: 32 KiB for each point, which is 8 MiB for 1 GiB of text.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

class GzipIndex {
 public:
  explicit GzipIndex(std::string path) : path_(std::move(path)) {}

  // Returns up to `size` bytes of the decompressed text from `offset` on; fewer at the end of the text or where the
  // compressed data is damaged. Several gzip members in a row are one text. Errors: kNotFound, kIo; kBadInput when the
  // damage lies before `offset`.
  Result<std::string> read_at(int64_t offset, size_t size);

  size_t point_count() const { return points_.size(); }

 private:
  struct Point {
    int64_t out = 0;   // position in the decompressed text
    int64_t in = 0;    // position of the first whole compressed byte after the point
    uint8_t bits = 0;  // number of bits of the byte before `in` that belong to the data after the point
    std::unique_ptr<unsigned char[]> window;  // 32 KiB; null at the start of a member
  };
  class Inflater;
  Status resume(const Point* from, Inflater& inflater) const;
  void add_point(int64_t out, const Inflater& inflater, const unsigned char* ring, size_t at);

  std::string path_;
  std::vector<Point> points_;  // sorted by position
};

}  // namespace stageline
