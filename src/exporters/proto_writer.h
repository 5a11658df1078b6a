// ProtoWriter: writes protobuf's wire format by hand. Perfetto's trace format needs only a dozen of its fields, which
// is not worth a dependency on a code generator (protobuf.dev/programming-guides/encoding).
//
// Every field is a varint key (the field number shifted left by 3 bits, plus the wire type) and a value. Values are a
// varint (0), eight bytes little endian (1), or a length and bytes (2). Bytes are made by shifting, so the file is the
// same on any machine.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

class ProtoWriter {
 public:
  void varint(uint64_t value) {
    char* at = room(kMaxVarint);
    size_ += put_varint(at, value);
  }
  // Writes an unsigned integer, an enum or a bool.
  void number(uint32_t field, uint64_t value) {
    char* at = room(2 * kMaxVarint);
    const size_t key = put_varint(at, uint64_t{field} << 3);
    size_ += key + put_varint(at + key, value);
  }
  // Writes an int32 or int64. Negative values take ten bytes, as protobuf requires.
  void signed_number(uint32_t field, int64_t value) { number(field, value); }
  void fixed64(uint32_t field, uint64_t value) {
    char* at = room(kMaxVarint + 8);
    const size_t key = put_varint(at, uint64_t{field} << 3 | 1);
    for (size_t i = 0; i < 8; ++i) at[key + i] = static_cast<char>(value >> (8 * i));
    size_ += key + 8;
  }
  void text(uint32_t field, std::string_view value) {
    char* at = room(2 * kMaxVarint + value.size());
    size_t used = put_varint(at, uint64_t{field} << 3 | 2);
    used += put_varint(at + used, value.size());
    std::memcpy(at + used, value.data(), value.size());
    size_ += used + value.size();
  }

  // Begins an inner message: everything written between begin() and end(its result). One byte is kept for the length,
  // which is enough for nearly all messages; a longer message is moved up by the missing bytes.
  [[nodiscard]] size_t begin(uint32_t field) {
    char* at = room(kMaxVarint + 1);
    size_ += put_varint(at, uint64_t{field} << 3 | 2) + 1;
    return size_;
  }
  void end(size_t start) {
    assert(start <= size_);
    const size_t length = size_ - start;
    if (length < 0x80) {
      buffer_[start - 1] = static_cast<char>(length);
      return;
    }
    char digits[kMaxVarint];
    const size_t digit_count = put_varint(digits, length);
    room(digit_count);
    std::memmove(&buffer_[start - 1 + digit_count], &buffer_[start], length);
    std::memcpy(&buffer_[start - 1], digits, digit_count);
    size_ += digit_count - 1;
  }

  std::string_view bytes() const { return {buffer_.data(), size_}; }
  void clear() { size_ = 0; }

 private:
  static constexpr size_t kMaxVarint = 10;

  static size_t put_varint(char* at, uint64_t value) {
    size_t i = 0;
    for (; value >= 0x80; value >>= 7) at[i++] = static_cast<char>(value | 0x80);
    at[i] = static_cast<char>(value);
    return i + 1;
  }
  // Returns where the next byte goes, with space for `bytes` bytes. Called once for each field, so that there is not
  // one check for each byte.
  char* room(size_t bytes) {
    if (buffer_.size() - size_ < bytes) buffer_.resize(2 * buffer_.size() + bytes);
    return buffer_.data() + size_;
  }

  std::string buffer_ = std::string(size_t{1} << 17, '\0');  // the first size_ bytes are in use
  size_t size_ = 0;
};

}  // namespace stageline
