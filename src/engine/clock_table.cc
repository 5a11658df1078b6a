#include "engine/clock_table.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/number.h"

namespace stageline {
namespace {

// The first timestamp of a part's cells, and of each of its steps.
struct StampsOfPart {
  int64_t first_ns = INT64_MAX;
  std::vector<std::pair<int64_t, int32_t>> steps;  // (first timestamp, number), ordered by timestamp
};

std::vector<StampsOfPart> stamps_of(const Trace& trace) {
  std::vector<StampsOfPart> out(trace.parts.size());
  const Cells& cells = trace.cells;
  for (size_t i = 0; i < cells.size(); ++i) {
    StampsOfPart& part = out[cells.part[i]];
    part.first_ns = std::min(part.first_ns, cells.start_ns[i]);
    if (part.steps.empty() || part.steps.back().second != cells.step[i])
      part.steps.emplace_back(cells.start_ns[i], cells.step[i]);
  }
  for (StampsOfPart& part : out) std::ranges::sort(part.steps);
  return out;
}

// Returns true where the source restarts clocks at every step; then a clock has one segment per step and no drift.
bool by_step(const Trace& trace) { return trace.steps_laid_end_to_end && trace.clock == ClockState::kPerRank; }

int64_t step_of(const StampsOfPart& part, const ClockSegment& segment) {
  const auto at = std::ranges::lower_bound(part.steps, std::pair(segment.from_ns, INT32_MIN));
  return at == part.steps.end() ? kNullInteger : at->second;
}

// Returns true when the rank's clock, or this segment of it, is not connected to the first rank's.
bool is_untied(const Trace& trace, const ClockSegment& s) { return s.reference_rank != trace.parts.front().rank; }

std::string method_of(const ClockSegment& s, bool untied, bool trusted) {
  if (untied && !trusted && !is_measured(s.evidence)) return "untied";
  return std::string(evidence_name(s.evidence));
}

int64_t whole(double ns) { return ns < 0 ? kNullInteger : std::llround(std::ceil(ns)); }
double ppb(double drift) { return drift < 0 ? kNaN : std::ceil(drift * 1e12) / 1e3; }
// Returns parts per million with at most three decimals, and never −0.
double ppm(double drift) { return std::round(drift * 1e9) / 1e3 + 0.0; }
double ppm_or_unknown(double drift) { return drift < 0 ? kNaN : ppm(drift); }

}  // namespace

Table clock_table(const Trace& trace, const std::vector<ClockMap>& clocks, bool trusted) {
  Table table(declared_table("run/clocks"));
  const std::vector<StampsOfPart> stamps = stamps_of(trace);
  const bool steps = by_step(trace);
  for (size_t p = 0; p < trace.parts.size() && p < clocks.size(); ++p)
    for (const ClockSegment& s : clocks[p].segments) {
      const bool untied = is_untied(trace, s), nothing = untied && !is_measured(s.evidence) && !trusted;
      const bool drifts = !steps && !nothing;
      table.add_row({int64_t{trace.parts[p].rank}, trace.parts[p].machine_name, int64_t{s.reference_rank},
                     nothing ? kNullInteger : s.offset_ns,
                     s.offset_half_ns < 0 || nothing ? kNullInteger : s.offset_half_ns,
                     drifts ? std::round(s.drift * 1e12) / 1e3 + 0.0 : kNaN, drifts ? ppb(s.drift_half) : kNaN,
                     s.message_count, method_of(s, untied, trusted), s.from_ns == INT64_MIN ? kNullInteger : s.from_ns,
                     nothing ? kNullInteger : whole(s.offset_error_ns), drifts ? ppb(s.drift_error) : kNaN,
                     steps ? step_of(stamps[p], s) : kNullInteger});
    }
  return table;
}

Table clock_summary_table(const Trace& trace, const std::vector<ClockMap>& clocks, bool trusted) {
  const std::vector<StampsOfPart> stamps = stamps_of(trace);
  const bool steps = by_step(trace);
  bool hosts = false, sets = false;
  for (size_t p = 0; p < trace.parts.size() && p < clocks.size(); ++p) {
    hosts = hosts || !trace.parts[p].machine_name.empty();
    sets = sets || (!steps && clocks[p].segments.size() > 1);
  }
  TableSpec spec = declared_table("run/clocks/summary");
  for (const auto& [name, wanted] : {std::pair{"host", hosts}, std::pair{"step", steps}, std::pair{"from_ns", sets},
                                     std::pair{"drift_ppm", !steps}, std::pair{"drift_error_ppm", !steps}})
    if (!wanted) std::erase_if(spec.columns, [&](const ColumnSpec& column) { return column.name == name; });
  Table table(std::move(spec));
  for (size_t p = 0; p < trace.parts.size() && p < clocks.size(); ++p)
    for (const ClockSegment& s : clocks[p].segments) {
      const bool untied = is_untied(trace, s), nothing = untied && !is_measured(s.evidence) && !trusted;
      std::vector<Table::Value> row = {int64_t{trace.parts[p].rank}};
      if (hosts) row.emplace_back(trace.parts[p].machine_name);
      if (steps) row.emplace_back(step_of(stamps[p], s));
      int64_t since = kNullInteger;
      if (s.from_ns == INT64_MIN || __builtin_sub_overflow(s.from_ns, stamps[p].first_ns, &since)) since = kNullInteger;
      if (sets) row.emplace_back(since);
      row.emplace_back(int64_t{s.reference_rank});
      row.emplace_back(nothing ? kNullInteger : s.offset_ns);
      row.emplace_back(nothing ? kNullInteger : whole(s.offset_error_ns));
      row.emplace_back(s.offset_half_ns < 0 || nothing ? kNullInteger : s.offset_half_ns);
      if (!steps) {
        row.emplace_back(nothing ? kNaN : ppm(s.drift));
        row.emplace_back(nothing ? kNaN : ppm_or_unknown(s.drift_error));
      }
      row.emplace_back(s.message_count);
      row.emplace_back(method_of(s, untied, trusted));
      table.add_row(std::move(row));
    }
  return table;
}

}  // namespace stageline
