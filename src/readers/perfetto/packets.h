// The packets of a Perfetto trace, one after another: in windows, past what is damaged.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostics.h"
#include "base/input.h"

namespace stageline::pftrace {

inline constexpr size_t kLongestPacket = size_t{64} << 20;

class PacketFile {
 public:
  PacketFile(Input& input, std::string path, Diagnostics& notes)
      : input_(input), path_(std::move(path)), notes_(notes) {}

  // The next packet and its decompressed position; it lives until the next call. false: the end, or nothing more can be
  // read; then error() says what stopped it, if something did.
  bool next(std::string_view& packet, int64_t& offset);
  const std::optional<Error>& error() const { return error_; }
  int64_t bytes() const { return offset_ + static_cast<int64_t>(begin_); }

 private:
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
