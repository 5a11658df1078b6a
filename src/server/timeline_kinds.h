// Kinds of what a timeline draws: those of pipeline cells, and of profiler slices what the device or the host did. One
// small number for both, so that a tile needs no more than a byte to say what it shows.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/words.h"
#include "model/kind.h"
#include "model/palette.h"
#include "model/trace.h"

namespace stageline {

// Ids 0 … kCellKindCount − 1 are CellKind.
enum class ViewKind : uint8_t {
  kComputation = kCellKindCount,  // device work
  kCommunication,
  kMemory,
  kDeviceOther,  // waits and launches on a device's row
  kOperator,     // host
  kPython,
  kRuntime,     // calls of the runtime and the driver
  kAnnotation,  // ranges of the user, on the host or the device
  kOverhead,    // of the profiler
  kUnclassified,
};
inline constexpr size_t kViewKindCount = static_cast<size_t>(ViewKind::kUnclassified) + 1;
static_assert(kViewKindCount <= 32, "rows keep the kinds they hold in 32 bits");

struct ViewKindInfo {
  const char* code;   // "F", "compute": stable
  Text name;          // for people: "kind.CODE" of src/words.json
  const char* group;  // kinds of one group share a colour
};
const ViewKindInfo& view_kind_info(uint8_t kind);

// Fill of a kind in a theme, and the colour of text on it.
struct KindColours {
  Rgb fill, text;
};
KindColours view_kind_colours(const Theme& theme, uint8_t kind);

// Kind of a slice by category id and kernel class: kinds[category_id][kernel_class].
using KindTable = std::vector<std::array<uint8_t, 8>>;
KindTable slice_kinds(const Trace& trace);

}  // namespace stageline
