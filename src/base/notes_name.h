// The file of a run's notes: "RUN.stageline-notes.json" next to the path that the user named. Code that lists a folder
// of traces skips it.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

inline constexpr std::string_view kNotesSuffix = ".stageline-notes.json";

}  // namespace stageline
