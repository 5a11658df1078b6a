// Records as the cold file has them: 8 to 12 bytes for a range (docs/formats/recording.md, RANGES).
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout.h"

namespace slr {

// Builds the payload of one RANGES chunk.
class Packer {
 public:
  static constexpr size_t kMaxBytes = 96;   // of one record
  static constexpr size_t kHeadBytes = 40;  // room kept for the numbers that stand before the records

  void begin(uint8_t tick_shift, uint64_t first_ticks);
  bool has_room() const { return size_ + kMaxBytes <= kMaxPayloadBytes; }
  // Adds a record: times in ticks, or with kDeviceTimes in ns of the lane's device clock. `extra` is nullptr for none.
  void add(const Record& record, const Extra* extra);
  uint32_t count() const { return count_; }
  // The payload: valid until begin().
  const uint8_t* finish(uint32_t ring, uint64_t first_position, uint64_t slots, size_t* bytes);

 private:
  void put(uint64_t value);
  void put_signed(int64_t value) { put(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63)); }

  uint8_t buffer_[kMaxPayloadBytes];
  size_t size_ = 0;
  uint32_t count_ = 0;
  uint8_t shift_ = 0;
  uint16_t lane_ = 0;
  int32_t step_ = -1;
  int64_t host_end_ = 0, device_end_ = 0;
};

}  // namespace slr
