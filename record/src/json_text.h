// A flat JSON object into a buffer of fixed size; members that do not fit are left out whole.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slr {

class JsonText {
 public:
  JsonText(char* to, size_t size) : to_(to), limit_(size - 2) { raw("{"); }
  void text(const char* key, const char* value);  // bytes outside ASCII become \u00xx
  void number(const char* key, int64_t value);
  // Closes the object; its length.
  size_t finish();

 private:
  __attribute__((format(printf, 2, 3))) void raw(const char* format, ...);
  const char* comma() { return size_ > 1 ? "," : ""; }

  char* to_;
  size_t limit_, size_ = 0;
};

// Returns the number of low bits that times in RANGES drop: they stay finer than 2 ns.
inline uint8_t tick_shift_of(uint64_t ticks_per_second) {
  uint8_t shift = 0;
  while (ticks_per_second >> (shift + 1) >= 500'000'000) ++shift;
  return shift;
}

}  // namespace slr
