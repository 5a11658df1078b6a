#include "crc32c.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace slr {
namespace {

struct Tables {
  uint32_t of[8][256];
  constexpr Tables() : of() {
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = (c >> 1) ^ ((c & 1) ? 0x82F63B78u : 0);
      of[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; ++i)
      for (int t = 1; t < 8; ++t) of[t][i] = (of[t - 1][i] >> 8) ^ of[0][of[t - 1][i] & 0xff];
  }
};
constexpr Tables kTables;

uint32_t by_tables(const uint8_t* at, size_t size, uint32_t c) {
  for (; size >= 8; at += 8, size -= 8) {
    uint32_t low, high;
    memcpy(&low, at, 4);
    memcpy(&high, at + 4, 4);
    low ^= c;
    c = kTables.of[7][low & 0xff] ^ kTables.of[6][low >> 8 & 0xff] ^ kTables.of[5][low >> 16 & 0xff] ^
        kTables.of[4][low >> 24] ^ kTables.of[3][high & 0xff] ^ kTables.of[2][high >> 8 & 0xff] ^
        kTables.of[1][high >> 16 & 0xff] ^ kTables.of[0][high >> 24];
  }
  for (; size > 0; ++at, --size) c = (c >> 8) ^ kTables.of[0][(c ^ *at) & 0xff];
  return c;
}

#if defined(__x86_64__)
// Clang counts the instruction apart from SSE 4.2 since version 14; GCC before 11 does not know the word.
#if defined(__clang__) && __clang_major__ >= 14
#define SLR_CRC32_TARGET "sse4.2,crc32"
#else
#define SLR_CRC32_TARGET "sse4.2"
#endif
__attribute__((target(SLR_CRC32_TARGET))) uint32_t by_instruction(const uint8_t* at, size_t size, uint32_t c) {
  uint64_t wide = c;
  for (; size >= 8; at += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  c = static_cast<uint32_t>(wide);
  for (; size > 0; ++at, --size) c = __builtin_ia32_crc32qi(c, *at);
  return c;
}
// Asks the processor itself: __builtin_cpu_supports always says no in programs that zig links.
const bool kHasInstruction = [] {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_2) != 0;
}();
#endif

}  // namespace

uint32_t crc32c(const void* data, size_t size, uint32_t crc) {
  const auto* at = static_cast<const uint8_t*>(data);
#if defined(__x86_64__)
  if (kHasInstruction) return ~by_instruction(at, size, ~crc);
#endif
  return ~by_tables(at, size, ~crc);
}

}  // namespace slr
