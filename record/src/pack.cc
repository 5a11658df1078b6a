#include "pack.h"

#include <string.h>

namespace slr {

void Packer::put(uint64_t value) {
  while (value >= 0x80) {
    buffer_[size_++] = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  buffer_[size_++] = static_cast<uint8_t>(value);
}

void Packer::begin(uint8_t tick_shift, uint64_t first_ticks) {
  size_ = kHeadBytes;
  count_ = 0;
  shift_ = tick_shift;
  lane_ = 0;
  step_ = -1;
  host_end_ = static_cast<int64_t>(first_ticks >> tick_shift);
  device_end_ = 0;
}

void Packer::add(const Record& r, const Extra* extra) {
  const uint8_t type = r.type & kTypeMask;
  const bool on_device = r.type & kDeviceTimes, attributes = r.kind != 0 || r.micro_batch >= 0 || r.chunk >= 0;
  const uint8_t said = extra ? static_cast<uint8_t>((extra->stage >= 0) | (extra->peer >= 0) << 1 |
                                                    (extra->bytes >= 0) << 2 | (extra->sequence >= 0) << 3)
                             : 0;
  const uint8_t clock = static_cast<uint8_t>((on_device ? 1 : 0) | (r.type & kNoDeviceTime ? 2 : 0));
  const bool new_lane = r.lane != lane_, new_step = r.step != step_;
  buffer_[size_++] = static_cast<uint8_t>(type | new_lane << 3 | attributes << 4 | new_step << 5 | (said != 0) << 6 |
                                          (clock != 0) << 7);
  if (clock) buffer_[size_++] = clock;
  if (new_lane) put(r.lane);
  if (new_step) put_signed(static_cast<int64_t>(r.step) - step_);
  lane_ = r.lane;
  step_ = r.step;
  put(r.name);
  if (on_device) {
    const auto start = static_cast<int64_t>(r.start_ticks), end = static_cast<int64_t>(r.end_ticks);
    put_signed(start - device_end_);
    put(static_cast<uint64_t>(end - start));
    device_end_ = end;
  } else {
    const auto start = static_cast<int64_t>(r.start_ticks >> shift_);
    put_signed(start - host_end_);
    host_end_ = start;
    if (type == kRange) {
      const auto end = static_cast<int64_t>(r.end_ticks >> shift_);
      put(static_cast<uint64_t>(end > start ? end - start : 0));
      host_end_ = end > start ? end : start;
    } else if (type == kCounter) {
      memcpy(buffer_ + size_, &r.end_ticks, 8);
      size_ += 8;
    } else if (type == kStep) {
      put_signed(static_cast<int64_t>(r.end_ticks));
    }
  }
  if (attributes) {
    buffer_[size_++] = r.kind;
    put(static_cast<uint64_t>(int64_t{r.micro_batch} + 1));
    put(static_cast<uint64_t>(int64_t{r.chunk} + 1));
  }
  if (said) {
    buffer_[size_++] = said;
    if (said & 1) put(static_cast<uint64_t>(extra->stage));
    if (said & 2) put(static_cast<uint64_t>(extra->peer));
    if (said & 4) put(static_cast<uint64_t>(extra->bytes));
    if (said & 8) put(static_cast<uint64_t>(extra->sequence));
  }
  ++count_;
}

const uint8_t* Packer::finish(uint32_t ring, uint64_t first_position, uint64_t slots, size_t* bytes) {
  const size_t end = size_;
  size_ = 0;
  put(ring);
  put(first_position);
  put(slots);
  put(count_);
  const size_t head = size_;
  size_ = end;
  memmove(buffer_ + kHeadBytes - head, buffer_, head);
  *bytes = end - (kHeadBytes - head);
  return buffer_ + kHeadBytes - head;
}

}  // namespace slr
