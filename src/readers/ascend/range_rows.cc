// Reads MSTX_EVENTS: marks of the user's code and of the profiler, on the host.
#include "readers/ascend/db_rows.h"
#include "readers/ascend/problems.h"

namespace stageline::ascend {
namespace {

constexpr int64_t kMarker = 0, kMarkerEx = 3;  // values of ENUM_MSTX_EVENT_TYPE that are instants

uint32_t range_text(RankDb& rank, uint32_t message, uint32_t domain, std::map<uint64_t, uint32_t>& known) {
  const auto [it, added] =
      known.try_emplace(static_cast<uint64_t>(message) << 32 | domain, static_cast<uint32_t>(rank.range_texts.size()));
  if (added) {
    RangeTextInfo info;
    info.parsed = parse_range_message(rank.out.text_of(message));
    info.message = message;
    info.domain = domain;
    info.communication = rank.out.text_of(domain) == "communication";
    info.name = rank.out.text(info.parsed.name);
    if (!info.communication) info.parsed.members.clear();
    rank.range_texts.push_back(std::move(info));
  }
  return it->second;
}

}  // namespace

void read_ranges(RankDb& rank) {
  std::map<uint64_t, uint32_t> known;
  uint64_t last_key = UINT64_MAX;
  uint32_t last_text = 0;
  rank.scan(
      "MSTX_EVENTS", {"startNs", "endNs", "message", "globalTid", "eventType?", "domainId?", "connectionId?"},
      [&](const SqliteRows& rows) {
        int64_t start = 0, end = 0;
        rank.times(rows, 0, start, end);
        const uint32_t message = rank.texts.of(rows, 2), domain = rank.texts.of(rows, 5);
        const uint64_t key = static_cast<uint64_t>(message) << 32 | domain;
        if (key != last_key) {
          last_text = range_text(rank, message, domain, known);
          last_key = key;
        }
        const RangeTextInfo& text = rank.range_texts[last_text];
        const uint64_t tid = rows.integer(3);
        const uint32_t lane = rank.out.host_lane(tid >> 32, tid & 0xffffffffu);
        const int64_t type = rows.integer_or(4, -1);
        const int64_t connection = rows.integer_or(6, -1);
        if ((type == kMarker || type == kMarkerEx) && start >= 0 && start == end) {
          rank.out.part.marks.push_back({start, text.name, lane, static_cast<uint32_t>(rank.out.part.marks.size())});
          return;
        }
        const uint32_t row = rank.out.add(lane, RowKind::kRange, start, end, text.name, correlation_of(connection));
        if (row == kNoRow) return;
        if (!text.communication)
          rank.out.ranges.push_back({row, text.message, text.domain, text.parsed.micro_batch, text.parsed.chunk,
                                     text.parsed.stage, text.parsed.step});
        if (correlation_of(connection) == kNoCorrelation) return;
        const auto index = static_cast<uint32_t>(rank.ranges.size());
        rank.ranges.push_back({row, last_text, kNoIndex});
        if (rank.range_of_connection.put(connection, index) != index)
          rank.out.notes.add(problem::ascend_repeated_connection, {rank.db.path()});
      });
}

}  // namespace stageline::ascend
