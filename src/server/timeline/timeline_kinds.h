// Kinds of what a timeline draws: for pipeline cells those of the cells, for profiler slices what the device or the
// host did. One small number covers both, so that a tile says in one byte what it shows.
#pragma once

#include "model/palette.h"
#include "model/trace.h"

namespace stageline {

// Ids 0 … kCellKindCount − 1 are those of CellKind.
enum class ViewKind : uint8_t {
  kComputation = kCellKindCount,  // device work, up to kDeviceOther
  kCommunication,
  kMemory,
  kDeviceOther,  // waits and launches in a device's row
  kOperator,     // an operator on the host
  kPython,
  kRuntime,     // calls of the runtime and the driver
  kAnnotation,  // ranges set by the user, on the host or the device
  kOverhead,    // overhead of the profiler
  kUnclassified,
};
inline constexpr size_t kViewKindCount = static_cast<size_t>(ViewKind::kUnclassified) + 1;
static_assert(kViewKindCount <= 32, "rows keep the kinds they hold in 32 bits");

struct ViewKindInfo {
  const char* code;   // "F", "compute"; these do not change
  Text name;          // for people: "kind.CODE" of src/words.json
  const char* group;  // kinds of one group share a colour
};
const ViewKindInfo& view_kind_info(uint8_t kind);

// The fill of a kind in a theme, and the colour of text on it.
struct KindColours {
  Rgb fill, text;
};
KindColours view_kind_colours(const Theme& theme, uint8_t kind);

// Gives the kind of a slice by its category and kernel class: kinds[category_id][kernel_class].
using KindTable = std::vector<std::array<uint8_t, 8>>;
KindTable slice_kinds(const Trace& trace);

}  // namespace stageline
