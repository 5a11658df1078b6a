#include "base/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace stageline {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0);
    tables[0][i] = value;
  }
  for (uint32_t i = 0; i < 256; ++i)
    for (size_t t = 1; t < 8; ++t) tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xff];
  return tables;
}
constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32c(std::string_view bytes, uint32_t crc) {
  uint32_t c = ~crc;
  const auto byte = [](char b) { return static_cast<uint32_t>(static_cast<unsigned char>(b)); };
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {  // eight tables handle eight bytes in one step
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    word ^= c;
    c = 0;
    for (size_t t = 0; t < 8; ++t) c ^= kTables[7 - t][word >> (8 * t) & 0xff];
  }
  for (const char b : bytes) c = (c >> 8) ^ kTables[0][(c ^ byte(b)) & 0xff];
  return ~c;
}

}  // namespace stageline
