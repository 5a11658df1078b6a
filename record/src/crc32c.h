// CRC32C (Castagnoli, reflected polynomial 0x82F63B78, start and end inverted): the processor's instruction where it
// has one, else eight tables.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slr {

// Continues `crc`; 0 begins.
uint32_t crc32c(const void* data, size_t size, uint32_t crc = 0);

}  // namespace slr
