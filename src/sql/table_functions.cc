// gaps(), busy(), below(), path(), args(): questions with an argument, answered natively.
#include "sql/table_functions.h"

#include <algorithm>

#include "base/json_members.h"
#include "base/number.h"
#include "model/statistics.h"
#include "profile/device_timeline.h"
#include "profile/event_text.h"
#include "sql/run_tables.h"
#include "sql/slice_rows.h"

namespace stageline::sql {
namespace {

using Type = ColumnType;

std::vector<SqlColumn> with_options(std::vector<SqlColumn> columns, std::vector<SqlColumn> options) {
  for (SqlColumn& option : options) {
    option.is_option = true;
    columns.push_back(std::move(option));
  }
  return columns;
}

std::optional<int64_t> number(const Argument& argument) {
  if (const auto* value = std::get_if<int64_t>(&argument)) return *value;
  return parse_int(argument_text(argument));
}
bool is_given(const Argument& argument) { return !std::holds_alternative<std::monostate>(argument); }

Error no_number(const char* function, const char* what, const Argument& argument) {
  return make_error(ErrorCode::kUsage, std::string(function) + "() takes a whole number for " + what + ", not \"" +
                                           argument_text(argument) + "\"");
}

// ---- gaps: when no device of a rank, or one of its streams, worked; the gaps of idle-time-breakdown ----

Table empty_gaps() {
  return Table(
      "gaps", "Gaps",
      {{"rank", "rank", Type::kInteger, "Global rank."},
       {"stream", "stream", Type::kInteger, "The stream that was asked for; NULL where all streams of the rank were."},
       {"start_ns", "start", Type::kTime, "End of the work before the gap, counted from the run's first slice."},
       {"dur_ns", "duration", Type::kDuration, "Time from that end to the start of the next work."},
       {"end_ns", "end", Type::kTime, "start_ns + dur_ns."},
       {"before_id", "before", Type::kInteger,
        "Id of the slice of the work that ended last before the gap; NULL at the beginning."},
       {"after_id", "after", Type::kInteger, "Id of the slice of the work that ends the gap; NULL at the end."},
       {"host_ns", "host's part", Type::kDuration, "Time until the call that launched the next work returned."},
       {"cause", "cause", Type::kText, "The cause that has most of the gap, as in idle-time-breakdown."}});
}

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
  static const char* const what[] = {"the rank", "the stream", "the shortest gap"};
  for (size_t i = 0; i < 3; ++i)
    if (is_given(arguments[i]) && !number(arguments[i])) return no_number("gaps", what[i], arguments[i]);
  const std::optional<int64_t> rank = number(arguments[0]);
  Table table = empty_gaps();
  bool any = false;
  for (size_t p = 0; p < data.trace().parts.size(); ++p) {
    if (!data.has_part(p) || (rank && data.trace().parts[p].rank != *rank)) continue;
    any = true;
    add_gaps(data, p, number(arguments[1]), number(arguments[2]).value_or(0), table);
  }
  if (!any && rank)
    return make_error(ErrorCode::kUsage, "gaps(): there is no rank " + std::to_string(*rank),
                      "SELECT rank FROM ranks lists them");
  return table_rows(std::move(table));
}

// ---- busy: how long a device worked ----

Table empty_busy() {
  return Table("busy", "Busy",
               {{"rank", "rank", Type::kInteger, "Global rank."},
                {"class", "class", Type::kText, "Class of work that was asked for; NULL where all classes were."},
                {"count", "count", Type::kInteger, "Pieces of work that run at any moment of the time asked about."},
                {"busy_ns", "busy", Type::kDuration,
                 "Time in which at least one piece of work ran; work that ran at the same time counts once."},
                {"span_ns", "span", Type::kDuration,
                 "Length of the time asked about; where no ends were given, from the first start to the last end of "
                 "any work of the rank."},
                {"busy_share", "share", Type::kShare, "busy_ns / span_ns."}});
}

RunData::Made busy(const RunData& data, const std::vector<Argument>& arguments) {
  static const char* const what[] = {"the rank", "the start", "the end"};
  for (size_t i = 0; i < 3; ++i)
    if (is_given(arguments[i]) && !number(arguments[i])) return no_number("busy", what[i], arguments[i]);
  const std::optional<int64_t> rank = number(arguments[0]), from = number(arguments[1]), to = number(arguments[2]);
  const std::string wanted = argument_text(arguments[3]);
  std::vector<std::string> names;
  for (const KernelClass c :
       {KernelClass::kComputation, KernelClass::kCommunication, KernelClass::kMemory, KernelClass::kOther})
    names.emplace_back(kernel_class_name(c));
  if (!wanted.empty() && std::find(names.begin(), names.end(), wanted) == names.end())
    return make_error(ErrorCode::kUsage, "busy(): there is no class \"" + wanted + "\"",
                      "COMPUTATION, COMMUNICATION, MEMORY, OTHER");
  Table table = empty_busy();
  bool any = false;
  for (size_t p = 0; p < data.trace().parts.size(); ++p) {
    const Part& part = data.trace().parts[p];
    if (!data.has_part(p) || (rank && part.rank != *rank)) continue;
    any = true;
    const Slices& s = part.slices;
    std::vector<std::pair<int64_t, int64_t>> spans;
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (const uint32_t i : data.device_rows(p)) {
      int64_t start = data.time_ns(p, s.start_ns[i]), end = sum_or_limit(start, s.dur_ns[i]);
      first = std::min(first, start);
      last = std::max(last, end);
      if (!wanted.empty() && kernel_class_name(s.class_of(i)) != wanted) continue;
      if (from) start = std::max(start, *from);
      if (to) end = std::min(end, *to);
      if (start <= end && (!to || start < *to) && (!from || end > *from)) spans.emplace_back(start, end);
    }
    std::sort(spans.begin(), spans.end());
    int64_t covered = 0, reached = INT64_MIN;
    for (const auto& [start, end] : spans) {
      if (end <= reached) continue;
      covered = sum_or_limit(covered, between_ns(std::max(start, reached), end));
      reached = end;
    }
    const bool nothing = first > last && (!from || !to);
    const int64_t span = nothing ? 0 : std::max<int64_t>(0, between_ns(from.value_or(first), to.value_or(last)));
    table.add_row({int64_t{part.rank}, wanted, std::ssize(spans), covered, span, share_of(covered, span)});
  }
  if (!any && rank)
    return make_error(ErrorCode::kUsage, "busy(): there is no rank " + std::to_string(*rank),
                      "SELECT rank FROM ranks lists them");
  return table_rows(std::move(table));
}

// ---- below and path: the tree of calls ----

// The slice whose id an argument gives. Errors: kUsage.
struct Place {
  size_t part;
  uint32_t slice;
};
Result<Place> place_of(const RunData& data, const char* function, const Argument& argument) {
  const std::optional<int64_t> id = number(argument);
  if (!is_given(argument))
    return make_error(ErrorCode::kUsage, std::string(function) + "() needs the id of a slice",
                      std::string("SELECT * FROM ") + function + "(17)");
  if (!id) return no_number(function, "the id of a slice", argument);
  const size_t part = *id >> 32;
  const auto slice = static_cast<uint32_t>(*id & UINT32_MAX);
  if (*id < 0 || part >= data.trace().parts.size() || slice >= data.trace().parts[part].slices.size())
    return make_error(ErrorCode::kUsage, std::string(function) + "(): no slice has the id " + std::to_string(*id),
                      "slices.id has them");
  return Place{part, slice};
}

Table empty_tree(const char* name, const char* title) {
  return Table(name, title,
               {{"id", "id", Type::kInteger, "Id of the slice."},
                {"distance", "distance", Type::kInteger,
                 "Levels between it and the slice that was asked for; 0 is that slice itself."},
                {"name", "name", Type::kText, "Name, as the source writes it."},
                {"start_ns", "start", Type::kTime, "Start, counted from the run's first slice."},
                {"dur_ns", "duration", Type::kDuration, "Duration, measured on the rank's own clock."}});
}

void add_tree_row(const RunData& data, Table& table, size_t p, uint32_t slice, int64_t distance) {
  const Slices& s = data.trace().parts[p].slices;
  table.add_row({slice_id(p, slice), distance, std::string(data.trace().names.text(s.name_id[slice])),
                 data.time_ns(p, s.start_ns[slice]), s.dur_ns[slice]});
}

// Goes outwards from a slice: for device work first to its operator, then to the slices around that.
RunData::Made path(const RunData& data, const std::vector<Argument>& arguments) {
  TRY(place, place_of(data, "path", arguments[0]));
  Table table = empty_tree("path", "Path");
  const Slices& s = data.trace().parts[place->part].slices;
  uint32_t at = place->slice;
  constexpr int64_t kDeepest = 100'000;  // a damaged file may make a circle
  for (int64_t distance = 0; at != kNoSliceIndex && distance < kDeepest; ++distance) {
    add_tree_row(data, table, place->part, at, distance);
    at = s.parent.empty() ? kNoSliceIndex : s.parent[at];
  }
  return table_rows(std::move(table));
}

// A slice, what it called on its thread, and the device work of all these.
RunData::Made below(const RunData& data, const std::vector<Argument>& arguments) {
  TRY(place, place_of(data, "below", arguments[0]));
  Table table = empty_tree("below", "Below");
  const size_t p = place->part;
  const Slices& s = data.trace().parts[p].slices;
  std::vector<std::pair<uint32_t, int64_t>> inside = {{place->slice, 0}};  // ascending by slice
  if (!s.parent.empty() && !data.is_device(p, place->slice)) {
    const Lane& lane = data.trace().parts[p].lanes[data.lane_of(p, place->slice)];
    const int64_t end = sum_or_limit(s.start_ns[place->slice], s.dur_ns[place->slice]);
    const auto known = [&](uint32_t slice) {
      const auto found = std::lower_bound(inside.begin(), inside.end(), std::pair(slice, INT64_MIN));
      return found != inside.end() && found->first == slice ? &*found : nullptr;
    };
    for (size_t i = place->slice + size_t{1}; i < lane.end && s.start_ns[i] <= end; ++i)
      if (const auto* around = s.parent[i] == kNoSliceIndex ? nullptr : known(s.parent[i]))
        inside.emplace_back(static_cast<uint32_t>(i), around->second + 1);
    std::vector<std::pair<uint32_t, int64_t>> work;
    for (const uint32_t device : data.device_rows(p))
      if (const auto* op = s.parent[device] == kNoSliceIndex ? nullptr : known(s.parent[device]))
        work.emplace_back(device, op->second + 1);
    inside.insert(inside.end(), work.begin(), work.end());
  }
  for (const auto& [slice, distance] : inside) add_tree_row(data, table, p, slice, distance);
  return table_rows(std::move(table));
}

// ---- args: what the source says of one slice, fetched from its file ----

Table empty_args() {
  return Table(
      "args", "Arguments",
      {{"key", "key", Type::kText, "Name of the argument."},
       {"value", "value", Type::kText, "Value, as the source writes it; lists and objects as JSON."},
       {"type", "type", Type::kText, "Type of the value: string, number, true, false, null, array or object."}});
}

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
  if (std::holds_alternative<std::monostate>(arguments[0]))
    return make_error(ErrorCode::kUsage, "args needs the slice whose arguments are wanted",
                      "SELECT * FROM args(17), or JOIN args a ON a.slice_id = k.id");
  TRY(place, place_of(data, "args", arguments[0]));
  if (++fetcher.fetched > kMaxArgumentSlices)
    return make_error(ErrorCode::kLimit,
                      "arguments of more than " + std::to_string(kMaxArgumentSlices) + " slices are wanted",
                      "choose fewer slices before the join: a LIMIT in a sub-query");
  TRY(text, fetcher.texts.text(data.trace().parts[place->part], place->slice));
  Table table = empty_args();
  for (const JsonMember& member : json_members(json_member(*text, "args"), kMaxArguments))
    table.add_row({json_text("\"" + std::string(member.key) + "\""), json_text(member.value),
                   std::string(kind_of(member.value))});
  return table_rows(std::move(table));
}

}  // namespace

void add_table_functions(const std::shared_ptr<const RunData>& data,
                         std::vector<std::shared_ptr<const TableSource>>& out) {
  out.push_back(std::make_shared<RowTable>(
      "gaps", "gaps(of_rank, of_stream, min_ns): when no device of a rank worked, and what it waited for.",
      with_options(columns_of(empty_gaps()),
                   {{"of_rank", SqlType::kInteger, "", "Only this rank; by default all ranks."},
                    {"of_stream", SqlType::kInteger, "",
                     "Only gaps of this stream; by default gaps in which no stream of the rank worked."},
                    {"min_ns", SqlType::kInteger, "ns", "Only gaps that last this long or longer."}}),
      [data](const std::vector<Argument>& arguments) { return gaps(*data, arguments); }));
  out.push_back(std::make_shared<RowTable>(
      "busy", "busy(of_rank, from_ns, to_ns, of_class): how long devices worked, concurrent work counted once.",
      with_options(
          columns_of(empty_busy()),
          {{"of_rank", SqlType::kInteger, "", "Only this rank; by default all ranks."},
           {"from_ns", SqlType::kInteger, "ns", "Only time from this moment on."},
           {"to_ns", SqlType::kInteger, "ns", "Only time before this moment."},
           {"of_class", SqlType::kText, "", "Only work of this class: COMPUTATION, COMMUNICATION, MEMORY or OTHER."}}),
      [data](const std::vector<Argument>& arguments) { return busy(*data, arguments); }));
  const std::vector<SqlColumn> id = {{"of_id", SqlType::kInteger, "", "Id of a slice."}};
  out.push_back(std::make_shared<RowTable>(
      "path", "path(of_id): a slice and what is around it, outwards; of device work its operator first.",
      with_options(columns_of(empty_tree("path", "Path")), id),
      [data](const std::vector<Argument>& arguments) { return path(*data, arguments); }));
  out.push_back(std::make_shared<RowTable>(
      "below", "below(of_id): a slice, what it called on its thread, and the device work of all of these.",
      with_options(columns_of(empty_tree("below", "Below")), id),
      [data](const std::vector<Argument>& arguments) { return below(*data, arguments); }));
  out.push_back(std::make_shared<RowTable>(
      "args", "args(slice_id): everything the source says of a slice, fetched from its file.",
      with_options(columns_of(empty_args()), {{"slice_id", SqlType::kInteger, "", "Id of a slice."}}),
      [data, fetcher = std::make_shared<ArgumentFetcher>()](const std::vector<Argument>& arguments) {
        return args(*data, *fetcher, arguments);
      }));
}

}  // namespace stageline::sql
