// Calls of the host that gave the device work, found by CUPTI's correlation numbers. Only such calls are worth a
// record: most calls of a program read or set something. A call is kept until its work is known, or until 65,536 calls
// later, since CUPTI counts correlations up. Only the thread of cupti.cc uses this.
#pragma once

#include <cstdint>

#include "inject/cupti_abi.h"

namespace slr::cupti {

// Takes the record of a call (kRuntime, kDriver).
void take_call(const Functions& cupti, const uint8_t* record, bool driver);

// Says that the device did work of this correlation: its call is recorded, now or when its record comes.
void note_work(const Functions& cupti, uint32_t correlation);

}  // namespace slr::cupti
