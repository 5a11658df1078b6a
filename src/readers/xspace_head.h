// Finds a source's files that are profiles of XLA (an XSpace, *.xplane.pb), and those that have the same recording as
// JSON next to them. The readers of both formats ask this, so that exactly one of them takes the source and says so.
#pragma once

#include "readers/reader.h"

namespace stageline {

// True when these first bytes are an XSpace's: field 1 is a message whose name (field 2) is the name of a plane.
bool looks_like_xspace(std::string_view head);
// Returns true when the file's name, without .gz or .zst, is that of such a profile.
bool is_xplane_name(std::string_view path);
// Returns true for bytes that a text filter has ruined: it replaced every byte that is not UTF-8 by EF BF BD.
bool was_filtered_as_text(std::string_view head);

struct XplaneFiles {
  std::vector<size_t> ours;
  std::vector<size_t>
      json_twins;  // HOST.trace.json.gz next to HOST.xplane.pb: the same once more, cut at a million events
};
XplaneFiles xplane_files(const Source& source);

}  // namespace stageline
