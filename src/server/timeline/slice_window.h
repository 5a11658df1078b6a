// The drawing of a stretch of time: the individual slices that are wide enough, and tiles of all others; and the
// details of one slice.
#pragma once

#include "server/http/query.h"
#include "server/timeline/timeline.h"

namespace stageline {

inline constexpr int64_t kMaxSlices = 200'000;  // of one answer
inline constexpr size_t kMaxNameBytes = 256;    // of a name in a table of names; longer ones are cut

struct SliceRow {
  uint32_t lane = 0, slice = 0;
  uint8_t row = 0;
};

// Slices that touch [t0, t1) and last at least min_ns, sorted by lane, row and start; at most `limit`. Where there are
// more, min_ns is raised to a power of two at which they fit, so that the longest ones are kept.
struct SliceWindow {
  std::vector<SliceRow> slices;
  int64_t min_ns = 0;    // after it was raised
  bool complete = true;  // min_ns was not raised, and nothing was cut
};
SliceWindow slices_within(const Timeline& timeline, const std::vector<uint32_t>& lanes, const TimeWindow& window,
                          int64_t min_ns, size_t limit);

// Columns of slices and the names that occur in them, as /api/slices and /api/histogram send them.
std::string slices_wire(const Timeline& timeline, const SliceWindow& window);

// The answer to /api/slices. Errors: kUsage.
Result<std::string> slices_answer(const Timeline& timeline, const Query& query);

// A text cut to kMaxNameBytes at the end of a character; valid UTF-8.
std::string short_name(std::string_view text);

// Tiles: for every column of pixels of a row, the share that each kind is busy. Prefix sums make them exact at any
// zoom.
struct KindCoverage {
  uint8_t kind = 0;
  std::vector<uint8_t> share;  // for each column, in 255ths
};

// Returns the coverage of a window that is cut into `columns` equal columns. The rounding error of a column is given to
// the next one. So the sum over any run of columns is exact within half of 1/255 of a column at either end. Kinds that
// are not busy in the window are omitted. O(columns · log slices), never O(slices).
std::vector<KindCoverage> row_coverage(const ViewLane& lane, const ViewRow& row, const TimeWindow& window,
                                       size_t columns);

// The answer to /api/tiles. Errors: kUsage; kLimit for more than kMaxTileBytes.
inline constexpr size_t kMaxTileColumns = 16384;
inline constexpr size_t kMaxTileBytes = size_t{1} << 26;
Result<std::string> tiles_answer(const Timeline& timeline, const Query& query);

// Writes {lane, slice, row, name_id, name, kind, start_ns, dur_ns}.
void write_slice_reference(JsonWriter& json, const Timeline& timeline, SlicePlace place);

// The kinds of arrows that lead to a slice or away from it.
enum class FlowType : uint8_t { kMessage, kLaunch, kForwardBackward, kOther };
const char* flow_type_name(FlowType type);  // "message", "launch", "forward-backward", "flow"

// Returns the slice's duration minus that of the slices directly inside it. O(rows · log slices).
int64_t self_ns(const ViewLane& lane, size_t slice);

// The answer to /api/slice. Arguments are read from the source's file; where it has changed since, there are none, and
// the answer says so. Errors: kUsage.
Result<std::string> slice_answer(const Timeline& timeline, const Query& query);

}  // namespace stageline
