// Which files of a source are profiles of XLA (an XSpace, *.xplane.pb), and which have the same recording beside them
// as JSON: asked by the readers of both, so that one of them takes the source and says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "readers/reader.h"

namespace stageline {

// Whether these first bytes are an XSpace: field 1 is a message whose name (field 2) is one of a plane's.
bool looks_like_xspace(std::string_view head);
// Called so, by its name before .gz or .zst.
bool is_xplane_name(std::string_view path);
// Bytes that a text filter has ruined: each that is no UTF-8 became EF BF BD.
bool was_filtered_as_text(std::string_view head);

struct XplaneFiles {
  std::vector<size_t> ours;
  std::vector<size_t>
      json_twins;  // HOST.trace.json.gz beside HOST.xplane.pb: the same once more, cut at a million events
};
XplaneFiles xplane_files(const Source& source);

}  // namespace stageline
