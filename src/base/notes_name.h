// The file of a run's notes: "RUN.stageline-notes.json" beside what the user named. Whoever lists a folder of traces
// leaves it out.
#pragma once

#include <string_view>

namespace stageline {

inline constexpr std::string_view kNotesSuffix = ".stageline-notes.json";

}  // namespace stageline
