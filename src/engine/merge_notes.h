// Merges the notes of several analyses of one trace.
#pragma once

#include <algorithm>

#include "base/diagnostics.h"

namespace stageline {

// Adds what another analysis of the same data noted. Where both have a note of the same kind, the larger count is kept,
// since both saw the same occurrences. What the one has said in the same words under a name of its own is left out.
inline void merge_notes(Diagnostics& all, const Diagnostics& own) {
  for (const Diagnostic& d : own.items()) {
    const bool said = std::any_of(all.items().begin(), all.items().end(), [&](const Diagnostic& other) {
      return other.name != d.name && other.message == d.message;
    });
    if (!said) all.add(d.name, d.severity, d.message, d.first, d.count - all.count(d.name));
  }
}

}  // namespace stageline
