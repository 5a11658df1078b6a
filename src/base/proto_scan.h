// ProtoScan: reads protobuf's wire format field by field; the counterpart of exporters/proto_writer.h. It copies
// nothing and trusts nothing: a field that does not fit into its message ends the scan, and is_damaged() then returns
// true.
//
//   for (ProtoScan scan(message); scan.next();)
//     switch (scan.id) { case kTimestamp: time = scan.value; break; … }
#pragma once

#include "base/vocabulary.h"

namespace stageline {

struct ProtoScan {
  enum Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  uint32_t id = 0;
  uint8_t wire = kVarint;
  uint64_t value = 0;      // for all wire types but kBytes
  std::string_view bytes;  // for kBytes

  explicit ProtoScan(std::string_view message)
      : at_(message.data()), begin_(message.data()), end_(message.data() + message.size()) {}

  // Reads the next field. Returns false at the end and at the first damage. Groups (wire types 3 and 4) count as
  // damage: current software does not write them.
  bool next() {
    if (at_ == end_) return false;
    uint64_t key = 0;
    if (!varint(key)) return fail();
    id = static_cast<uint32_t>(key >> 3);
    wire = static_cast<uint8_t>(key & 7);
    if (id == 0 || key >> 32 != 0) return fail();
    switch (wire) {
      case kVarint: return varint(value) || fail();
      case kFixed64: return fixed(8) || fail();
      case kFixed32: return fixed(4) || fail();
      case kBytes: {
        uint64_t length = 0;
        if (!varint(length) || length > static_cast<uint64_t>(end_ - at_)) return fail();
        bytes = {at_, static_cast<size_t>(length)};
        at_ += length;
        return true;
      }
      default: return fail();
    }
  }
  bool is_bytes() const { return wire == kBytes; }
  bool is_damaged() const { return damaged_; }
  size_t position() const { return at_ - begin_; }

  int64_t as_signed() const { return value; }
  double as_double() const { return std::bit_cast<double>(value); }

  // Reads a varint at `at`, below `end`. Returns false when it is cut off or longer than ten bytes.
  static bool read_varint(const char*& at, const char* end, uint64_t& out) {
    if (end - at >= kLongestVarint) {  // enough bytes are left, so that no varint needs a check of its own
      uint64_t value = 0;
      for (int i = 0; i < kLongestVarint; ++i) {
        const auto byte = static_cast<unsigned char>(at[i]);
        value |= uint64_t{byte & 127u} << (7 * i);
        if (byte < 128) {
          at += i + 1;
          out = value;
          return true;
        }
      }
      return false;
    }
    out = 0;
    for (unsigned shift = 0; at != end && shift < 70; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at++);
      out |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return true;
    }
    return false;
  }

 private:
  static constexpr int kLongestVarint = 10;

  bool varint(uint64_t& out) {
    if (at_ != end_ && static_cast<unsigned char>(*at_) < 128) {
      out = static_cast<unsigned char>(*at_++);
      return true;
    }
    return read_varint(at_, end_, out);
  }
  bool fixed(size_t size) {
    if (static_cast<size_t>(end_ - at_) < size) return false;
    value = 0;
    for (size_t i = 0; i < size; ++i) value |= uint64_t{static_cast<unsigned char>(at_[i])} << (8 * i);
    at_ += size;
    return true;
  }
  bool fail() {
    damaged_ = true;
    at_ = end_;
    return false;
  }

  const char* at_;
  const char* begin_;
  const char* end_;
  bool damaged_ = false;
};

}  // namespace stageline
