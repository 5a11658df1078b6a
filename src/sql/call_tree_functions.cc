// path() and below(): the slices around a slice, and those that it called.
#include <algorithm>

#include "base/number.h"
#include "sql/run_tables.h"
#include "sql/slice_rows.h"

namespace stageline::sql {
namespace {

void add_tree_row(const RunData& data, Table& table, size_t p, uint32_t slice, int64_t distance) {
  const Slices& s = data.trace().parts[p].slices;
  table.add_row({slice_id(p, slice), distance, std::string(data.trace().names.text(s.name_id[slice])),
                 data.time_ns(p, s.start_ns[slice]), s.dur_ns[slice]});
}

// Goes outwards from a slice: for device work first to its operator, then to the slices around that.
RunData::Made path(const RunData& data, const std::vector<Argument>& arguments) {
  TRY(place, slice_of(data, "path", arguments[0]));
  Table table(declared_table("sql/path"));
  const Slices& s = data.trace().parts[place->part].slices;
  uint32_t at = place->slice;
  constexpr int64_t kMaxDistance = 100'000;  // a damaged file may make a circle
  for (int64_t distance = 0; at != kNoSliceIndex && distance < kMaxDistance; ++distance) {
    add_tree_row(data, table, place->part, at, distance);
    at = s.parent.empty() ? kNoSliceIndex : s.parent[at];
  }
  return table_rows(std::move(table));
}

// The slices of a call tree and their distances from its root.
using Distances = std::vector<std::pair<uint32_t, int64_t>>;

const std::pair<uint32_t, int64_t>* distance_of(const Distances& inside, uint32_t slice) {
  const auto found = std::ranges::lower_bound(inside, std::pair(slice, INT64_MIN));
  return found != inside.end() && found->first == slice ? &*found : nullptr;
}

// Returns a slice and what it called on its thread, ascending by slice.
Distances calls_below(const Part& part, const Lane& lane, uint32_t root) {
  const Slices& s = part.slices;
  Distances inside = {{root, 0}};
  const int64_t end = sum_or_limit(s.start_ns[root], s.dur_ns[root]);
  for (size_t i = root + size_t{1}; i < lane.end && s.start_ns[i] <= end; ++i)
    if (const auto* around = distance_of(inside, s.parent[i]))
      inside.emplace_back(static_cast<uint32_t>(i), around->second + 1);
  return inside;
}

// A slice, what it called on its thread, and the device work of all these.
RunData::Made below(const RunData& data, const std::vector<Argument>& arguments) {
  TRY(place, slice_of(data, "below", arguments[0]));
  Table table(declared_table("sql/below"));
  const size_t p = place->part;
  const Part& part = data.trace().parts[p];
  const bool has_calls = !part.slices.parent.empty() && !data.is_device(p, place->slice);
  const Distances calls = has_calls ? calls_below(part, part.lanes[data.lane_of(p, place->slice)], place->slice)
                                    : Distances{{place->slice, 0}};
  for (const auto& [slice, distance] : calls) add_tree_row(data, table, p, slice, distance);
  if (has_calls)
    for (const uint32_t device : data.device_rows(p))
      if (const auto* op = distance_of(calls, part.slices.parent[device]))
        add_tree_row(data, table, p, device, op->second + 1);
  return table_rows(std::move(table));
}

}  // namespace

std::shared_ptr<const TableSource> path_function(const std::shared_ptr<const RunData>& data) {
  return table_function(data, "path", path);
}

std::shared_ptr<const TableSource> below_function(const std::shared_ptr<const RunData>& data) {
  return table_function(data, "below", below);
}

}  // namespace stageline::sql
