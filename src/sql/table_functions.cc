// Functions of SQL that return rows: args(), busy(), gaps(), and those of call trees.
#include "base/json_members.h"
#include "model/run_extent.h"
#include "model/statistics.h"
#include "profile/device_timeline.h"
#include "profile/event_text.h"
#include "profile/idle_gaps.h"
#include "sql/run_tables.h"
#include "sql/slice_rows.h"

namespace stageline::sql {

// args(): what the source says of one slice, fetched from its file.

namespace {

// The maximum number of slices whose arguments one connection reads from their files.
constexpr int64_t kMaxArgumentSlices = 10'000;

// Fetches arguments for one connection, through one set of restart points.
struct ArgumentFetcher {
  EventTexts texts;
  int64_t fetched = 0;
};

const char* kind_of(std::string_view json) {
  switch (json.empty() ? '\0' : json[0]) {
    case '"': return "string";
    case '{': return "object";
    case '[': return "array";
    case 't': return "true";
    case 'f': return "false";
    case 'n': return "null";
    default: return "number";
  }
}

RunData::Made args(const RunData& data, ArgumentFetcher& fetcher, const std::vector<Argument>& arguments) {
  constexpr size_t kMaxArguments = 10'000;
  if (!is_given(arguments[0]))
    return make_error(ErrorCode::kUsage, "args needs the slice whose arguments are wanted",
                      "SELECT * FROM args(17), or JOIN args a ON a.slice_id = k.id");
  TRY(place, slice_of(data, "args", arguments[0]));
  if (++fetcher.fetched > kMaxArgumentSlices)
    return make_error(ErrorCode::kLimit,
                      "arguments of more than " + std::to_string(kMaxArgumentSlices) + " slices are wanted",
                      "choose fewer slices before the join: a LIMIT in a sub-query");
  TRY(text, fetcher.texts.text(data.trace().parts[place->part], place->slice));
  Table table(declared_table("sql/args"));
  for (const JsonMember& member : json_members(json_member(*text, "args"), kMaxArguments))
    table.add_row({json_text("\"" + std::string(member.key) + "\""), json_text(member.value),
                   std::string(kind_of(member.value))});
  return table_rows(std::move(table));
}

}  // namespace

std::shared_ptr<const TableSource> args_function(const std::shared_ptr<const RunData>& data) {
  return table_function(
      data, "args",
      [fetcher = std::make_shared<ArgumentFetcher>()](const RunData& run, const std::vector<Argument>& arguments) {
        return args(run, *fetcher, arguments);
      });
}

// busy(): how long the devices of a rank worked, concurrent work counted once.

namespace {

// The work that is asked about: of a class ("": all), within [from, to).
struct Window {
  std::optional<int64_t> from, to;
  std::string class_name;
};

bool is_class(std::string_view name) {
  constexpr KernelClass kClasses[] = {KernelClass::kComputation, KernelClass::kCommunication, KernelClass::kMemory,
                                      KernelClass::kOther};
  return std::any_of(std::begin(kClasses), std::end(kClasses),
                     [&](KernelClass c) { return kernel_class_name(c) == name; });
}

void add_busy(const RunData& data, size_t p, const Window& window, Table& table) {
  const Part& part = data.trace().parts[p];
  const Slices& s = part.slices;
  std::vector<Interval> work;
  int64_t first = INT64_MAX, last = INT64_MIN;  // of any work of the rank
  for (const uint32_t i : data.device_rows(p)) {
    int64_t start = data.time_ns(p, s.start_ns[i]), end = sum_or_limit(start, s.dur_ns[i]);
    first = std::min(first, start);
    last = std::max(last, end);
    if (!window.class_name.empty() && kernel_class_name(s.class_of(i)) != window.class_name) continue;
    if (window.from) start = std::max(start, *window.from);
    if (window.to) end = std::min(end, *window.to);
    if (start <= end && (!window.to || start < *window.to) && (!window.from || end > *window.from))
      work.push_back({start, end});
  }
  const int64_t count = std::ssize(work), covered = length_of(union_of(std::move(work)));
  const bool nothing = first > last && (!window.from || !window.to);
  const int64_t span =
      nothing ? 0 : std::max<int64_t>(0, between_ns(window.from.value_or(first), window.to.value_or(last)));
  table.add_row({int64_t{part.rank}, window.class_name, count, covered, span, share_of(covered, span)});
}

RunData::Made busy(const RunData& data, const std::vector<Argument>& arguments) {
  static constexpr const char* kWhat[] = {"the rank", "the start", "the end"};
  TRY(numbers, whole_numbers("busy", kWhat, arguments));
  const Window window{(*numbers)[1], (*numbers)[2], argument_text(arguments[3])};
  if (!window.class_name.empty() && !is_class(window.class_name))
    return make_error(ErrorCode::kUsage, "busy(): there is no class \"" + window.class_name + "\"",
                      "COMPUTATION, COMMUNICATION, MEMORY, OTHER");
  TRY(parts, parts_of_rank(data, "busy", (*numbers)[0]));
  Table table(declared_table("sql/busy"));
  for (const size_t p : *parts) add_busy(data, p, window, table);
  return table_rows(std::move(table));
}

}  // namespace

std::shared_ptr<const TableSource> busy_function(const std::shared_ptr<const RunData>& data) {
  return table_function(data, "busy", busy);
}

// gaps(): when no device of a rank, or one of its streams, worked. The gaps are those of idle-time-breakdown.

namespace {

void add_gaps(const RunData& data, size_t p, std::optional<int64_t> stream, int64_t min_ns, Table& table) {
  const Part& part = data.trace().parts[p];
  const DeviceTimeline timeline = device_timeline(data.trace(), part);
  std::vector<int32_t> items;
  for (size_t j = 0; stream && j < timeline.device.size(); ++j)
    if (stream_of(part, timeline.device[j].slice, timeline.device[j].lane) == *stream)
      items.push_back(static_cast<int32_t>(j));
  const auto of_stream = [&] {
    return items.empty() ? std::vector<IdleGap>()
                         : idle_gaps(timeline, items, timeline.device[items.front()].start_ns, INT64_MIN);
  };
  const auto id = [&](int32_t item) { return item < 0 ? kNullInteger : slice_id(p, timeline.device[item].slice); };
  for (const IdleGap& gap : stream ? of_stream() : timeline.gaps) {
    if (gap.ns() < min_ns) continue;
    const int64_t at = data.time_ns(p, gap.start_ns - timeline.lead_ns);
    table.add_row({int64_t{part.rank}, stream ? *stream : kNullInteger, at, gap.ns(), sum_or_limit(at, gap.ns()),
                   id(gap.before), id(gap.next), gap.host_end_ns - gap.start_ns,
                   std::string(kIdleCauseNames[main_cause(idle_times(timeline, gap))])});
  }
}

RunData::Made gaps(const RunData& data, const std::vector<Argument>& arguments) {
  static constexpr const char* kWhat[] = {"the rank", "the stream", "the shortest gap"};
  TRY(numbers, whole_numbers("gaps", kWhat, arguments));
  TRY(parts, parts_of_rank(data, "gaps", (*numbers)[0]));
  Table table(declared_table("sql/gaps"));
  // Between messages and collectives alone, devices may have computed.
  const bool known = (*numbers)[1] || !is_only_communication(data.trace());
  for (const size_t p : *parts)
    if (known) add_gaps(data, p, (*numbers)[1], (*numbers)[2].value_or(0), table);
  return table_rows(std::move(table));
}

}  // namespace

std::shared_ptr<const TableSource> gaps_function(const std::shared_ptr<const RunData>& data) {
  return table_function(data, "gaps", gaps);
}

// path() and below(): the slices around a slice, and those that it called.

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
