// ProtoWriter: protobuf's wire format, by hand. Perfetto's trace format needs a dozen fields of it,
// which is not worth a dependency on a code generator (protobuf.dev/programming-guides/encoding).
//
// Every field is a varint key (number << 3 | wire type) and a value: a varint (0), eight bytes
// little endian (1), or a length and bytes (2). Bytes are made by shifting, so the file is the
// same on any machine.
#pragma once

#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>

namespace stageline {

class ProtoWriter {
 public:
  void varint(uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }
  // An unsigned integer, an enum or a bool.
  void number(uint32_t field, uint64_t value) {
    varint(uint64_t{field} << 3);
    varint(value);
  }
  // An int32 or int64: negative values take ten bytes, as protobuf wants them.
  void signed_number(uint32_t field, int64_t value) { number(field, static_cast<uint64_t>(value)); }
  void fixed64(uint32_t field, uint64_t value) {
    varint(uint64_t{field} << 3 | 1);
    for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<char>(value >> shift));
  }
  void text(uint32_t field, std::string_view value) {
    varint(uint64_t{field} << 3 | 2);
    varint(value.size());
    bytes_.append(value);
  }

  // A message inside: everything written between begin() and end(its result). One byte is kept for
  // the length, enough for nearly all of ours; a longer message is moved up by the missing bytes.
  [[nodiscard]] size_t begin(uint32_t field) {
    varint(uint64_t{field} << 3 | 2);
    bytes_.push_back('\0');
    return bytes_.size();
  }
  void end(size_t start) {
    assert(start <= bytes_.size());
    uint64_t length = bytes_.size() - start;
    if (length >= 0x80) {
      size_t extra = 0;
      for (uint64_t rest = length >> 7; rest != 0; rest >>= 7) ++extra;
      bytes_.insert(start, extra, '\0');
    }
    size_t at = start - 1;
    for (; length >= 0x80; length >>= 7) bytes_[at++] = static_cast<char>(length | 0x80);
    bytes_[at] = static_cast<char>(length);
  }

  const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  std::string bytes_;
};

}  // namespace stageline
