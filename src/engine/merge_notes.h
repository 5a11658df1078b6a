// Notes of several analyses of one trace.
#pragma once

#include "base/diagnostics.h"

namespace stageline {

// Takes in what another analysis of the same data noted: of a kind that both saw the larger count stays, for they saw
// the same occurrences.
inline void merge_notes(Diagnostics& all, const Diagnostics& own) {
  for (const Diagnostic& d : own.items()) all.add(d.name, d.severity, d.message, d.first, d.count - all.count(d.name));
}

}  // namespace stageline
