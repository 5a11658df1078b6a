// Reads variables of the environment.
#pragma once

#include <stdlib.h>

#include "base/vocabulary.h"

namespace stageline {

// Returns the value, or `fallback` when it is not set or empty.
inline std::string environment(const char* name, const char* fallback = "") {
  const char* value = getenv(name);
  return value && *value ? value : fallback;
}

// Returns "/tmp/NAME", or the same in the folder that TMPDIR names.
inline std::string temporary_path(const char* name) { return environment("TMPDIR", "/tmp") + "/" + name; }

}  // namespace stageline
