// gaps(): when no device of a rank, or one of its streams, worked. The gaps are those of idle-time-breakdown.
#include "base/number.h"
#include "model/only_communication.h"
#include "profile/device_timeline.h"
#include "profile/idle_gaps.h"
#include "sql/run_tables.h"
#include "sql/slice_rows.h"

namespace stageline::sql {
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

}  // namespace stageline::sql
