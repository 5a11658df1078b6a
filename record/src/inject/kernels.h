// Moves buffers of activity records from CUPTI to the recorder. Only the thread of cupti.cc uses this, except for the
// two callbacks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/cupti_abi.h"

namespace slr::cupti {

// CUPTI's callbacks. A buffer that there is no memory for is not given: CUPTI then counts what it drops.
void request_buffer(uint8_t** buffer, size_t* size, size_t* max_records);
void complete_buffer(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid_size);

struct Taken {
  uint64_t kernels = 0;  // and copies and fills
  uint64_t lost = 0;     // dropped by CUPTI, or without times: 0, or ended before they began
};
// Records the content of the buffers that came back. It waits for the writer rather than drop.
Taken take_buffers(const Functions& cupti);

}  // namespace slr::cupti
