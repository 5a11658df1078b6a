// Counts with their noun: "1 stage", "4 stages".
#pragma once

#include <cstdint>
#include <string>

#include "base/number.h"

namespace stageline {

inline std::string counted(int64_t count, const char* one, const char* many) {
  return grouped(count) + " " + (count == 1 ? one : many);
}

}  // namespace stageline
