// The packets of a Perfetto trace, one after another: in windows, past what is damaged.
#pragma once

#include "base/diagnostics.h"
#include "base/input.h"

namespace stageline::pftrace {

inline constexpr size_t kLongestPacket = size_t{64} << 20;

class PacketFile {
 public:
  PacketFile(Input& input, std::string path, Diagnostics& notes)
      : input_(input), path_(std::move(path)), notes_(notes) {}

  // Reads the next packet and its decompressed position; it lives until the next call. Returns false at the end, or if
  // nothing more can be read; then error() returns the reason, if there is one.
  bool next(std::string_view& packet, int64_t& offset) {
    // Nearly all packets lie whole in the window, and their length takes one or two bytes.
    const size_t left = held();
    const char* at = buffer_.data.get() + begin_;
    if (left > kShortHead && *at == kPacketKey) {
      const auto low = static_cast<unsigned char>(at[1]), high = static_cast<unsigned char>(at[2]);
      const size_t head = low < 128 ? kShortHead - 1 : kShortHead;
      const size_t length = low < 128 ? low : (low & 127u) | static_cast<size_t>(high) << 7;
      if ((low < 128 || high < 128) && head + length <= left) {
        packet = {at + head, length};
        offset = bytes();
        begin_ += head + length;
        return true;
      }
    }
    return find_next(packet, offset);
  }
  const std::optional<Error>& error() const { return error_; }
  int64_t bytes() const { return offset_ + static_cast<int64_t>(begin_); }

 private:
  static constexpr char kPacketKey = '\x0a';  // field 1, bytes
  static constexpr size_t kShortHead = 3;     // key, and a length of two bytes

  bool find_next(std::string_view& packet, int64_t& offset);  // next() of any packet, and past damage
  bool have(size_t bytes);  // reads on until as many lie in the window; false where the file ends before
  bool find_packet();       // after damage: moves to what looks like the next packets
  bool looks_like_packets(size_t at, int depth) const;
  size_t held() const { return end_ - begin_; }

  Input& input_;
  std::string path_;
  Diagnostics& notes_;
  detail::WindowBuffer buffer_;
  size_t begin_ = 0, end_ = 0;
  int64_t offset_ = 0;  // of buffer_[0]
  bool finished_ = false;
  std::optional<Error> error_;
};

}  // namespace stageline::pftrace
