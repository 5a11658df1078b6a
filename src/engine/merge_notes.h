// Merges the notes of several analyses of one trace.
#pragma once

#include <algorithm>

#include "base/diagnostics.h"

namespace stageline {

// Adds the notes of another analysis of the same data. Where both have a note of the same kind, the larger count is
// kept, since both saw the same occurrences. A note that exists with the same text under another name is skipped.
inline void merge_notes(Diagnostics& all, const Diagnostics& own) {
  for (const Diagnostic& d : own.items()) {
    const bool noted = std::any_of(all.items().begin(), all.items().end(), [&](const Diagnostic& other) {
      return other.name != d.name && other.message.en == d.message.en;
    });
    if (!noted) all.add({d.name, d.severity, d.message, d.count - all.count(d.name), d.first});
  }
}

}  // namespace stageline
