#include "readers/perfetto/packets.h"

#include "readers/common/perfetto_head.h"
#include "readers/perfetto/problems.h"

namespace stageline::pftrace {
namespace {

constexpr size_t kWindowBytes = size_t{1} << 20;
constexpr int kChain = 3;  // packets in a row that make a place after damage believable

}  // namespace

bool PacketFile::have(size_t bytes) {
  if (held() >= bytes) return true;
  if (begin_ > 0) {
    std::memmove(buffer_.data.get(), buffer_.data.get() + begin_, held());
    offset_ += static_cast<int64_t>(begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.capacity < bytes)
    buffer_.grow(std::max(std::max(kWindowBytes, bytes), std::min(buffer_.capacity * 2, kLongestPacket)), end_);
  while (held() < bytes && !finished_) {
    Result<size_t> got = input_.read(buffer_.data.get() + end_, buffer_.capacity - end_);
    if (!got) {
      error_ = std::move(got).error();
      finished_ = true;
    } else if (*got == 0) {
      finished_ = true;
    } else {
      end_ += *got;
    }
  }
  return held() >= bytes;
}

bool PacketFile::looks_like_packets(size_t at, int depth) const {
  const char* data = buffer_.data.get();
  for (; depth > 0; --depth) {
    if (at == end_) return finished_ && depth < kChain;
    const auto packet = packet_head(data + at, data + end_);
    if (!packet || packet->length > kLongestPacket) return false;
    const size_t left = end_ - at - packet->head;
    const bool cut = packet->length > left;
    if (cut && (finished_ || depth == kChain)) return false;
    if (packet->length > 0) {
      const char* from = data + at + packet->head;
      uint64_t key = 0;
      if (!ProtoScan::read_varint(from, data + end_, key) || key >> 32 != 0) return false;
      const auto wire = static_cast<uint8_t>(key & 7);
      if (wire == 3 || wire == 4 || wire > 5 || !is_packet_field(static_cast<uint32_t>(key >> 3), wire)) return false;
      if (!cut) {
        ProtoScan scan({data + at + packet->head, packet->length});
        for (int fields = 0; fields < 64 && scan.next();) ++fields;
        if (scan.is_damaged()) return false;
      }
    }
    if (cut) return true;
    at += packet->head + packet->length;
  }
  return true;
}

bool PacketFile::find_packet() {
  ++begin_;
  for (;;) {
    const char* data = buffer_.data.get();
    while (begin_ < end_) {
      const void* found = std::memchr(data + begin_, '\x0a', held());
      if (!found) {
        begin_ = end_;
        break;
      }
      begin_ = static_cast<const char*>(found) - data;
      if (looks_like_packets(begin_, kChain)) return true;
      ++begin_;
    }
    if (!have(1)) return false;
  }
}

bool PacketFile::find_next(std::string_view& packet, int64_t& offset) {
  for (;;) {
    have(kMaxPacketHeadBytes);
    if (held() == 0) return false;
    const char* at = buffer_.data.get() + begin_;
    const auto head = packet_head(at, at + held());
    const int64_t place = bytes();
    if (head && head->length <= kLongestPacket && have(head->head + head->length)) {
      packet = {buffer_.data.get() + begin_ + head->head, head->length};
      offset = place;
      begin_ += head->head + head->length;
      return true;
    }
    if (!find_packet()) {
      if (!error_) notes_.add(problem::pftrace_truncated, {path_, 0, place});
      return false;
    }
    if (head && head->length > kLongestPacket) notes_.add(problem::pftrace_huge_packet, {path_, 0, place});
    else notes_.add(problem::pftrace_damaged, {path_, 0, place});
  }
}

}  // namespace stageline::pftrace
