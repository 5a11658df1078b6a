#include "engine/one_clock.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/number.h"
#include "base/parallel.h"
#include "base/text.h"
#include "pipeline/link_cells.h"

namespace stageline {
namespace {

std::string ranks_text(const std::vector<int32_t>& ranks) {
  constexpr size_t kShown = 12;
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kShown); ++i) out += (i ? ", " : "") + std::to_string(ranks[i]);
  return ranks.size() > kShown ? out + " and " + std::to_string(ranks.size() - kShown) + " more" : out;
}

void say_doubts(Trace& trace, const ClockAlignment& alignment) {
  const std::vector<ClockDoubt> doubts = doubt_shared_clock(alignment);
  if (doubts.empty()) return;
  const auto worst = std::max_element(doubts.begin(), doubts.end(), [](const ClockDoubt& a, const ClockDoubt& b) {
    return std::abs(a.offset_ns) < std::abs(b.offset_ns);
  });
  const Part& part = trace.parts[worst->part];
  trace.diagnostics.add("clock.not_shared", Severity::kWarning,
                        "the ranks are said to share one clock, but their messages say that rank " +
                            std::to_string(part.rank) + " is " +
                            human_duration(static_cast<double>(std::abs(worst->offset_ns))) +
                            (worst->offset_ns < 0 ? " behind" : " ahead") +
                            "; are the stages assigned rightly (--stages)? --align always draws them by their messages",
                        {part.source}, static_cast<int64_t>(doubts.size()));
}

Status check_by_hand(const Trace& trace, const ClockAlignment& alignment, const AlignOptions& options) {
  for (const align::ByHand& hand : options.by_hand)
    for (const int32_t rank : {hand.rank_a, hand.rank_b}) {
      const auto it =
          std::find_if(trace.parts.begin(), trace.parts.end(), [&](const Part& p) { return p.rank == rank; });
      if (it == trace.parts.end())
        return Error{ErrorCode::kUsage,
                     "--align-on names rank " + std::to_string(rank) + ", which the input does not have",
                     {},
                     "stageline info lists the ranks"};
    }
  if (const int64_t missing = alignment.notes.count("clock.no_such_operator"); missing > 0)
    for (const Diagnostic& d : alignment.notes.items())
      if (d.name == "clock.no_such_operator")
        return Error{ErrorCode::kUsage, d.message, {}, "stageline analyze events lists the names of a profiler trace"};
  return {};
}

// The clock a rank was put on: that of the first segment; a rank whose segments differ is on none.
int32_t reference_of(const ClockMap& map) {
  if (map.segments.empty()) return -1;
  for (const ClockSegment& s : map.segments)
    if (s.reference_rank != map.segments.front().reference_rank) return -1;
  return map.segments.front().reference_rank;
}

// Nothing but whole replicas apart from each other, each of them on one clock. A replica is a pipeline of its own: its
// bubbles are right whatever the others' clocks say.
bool only_replicas_apart(const Trace& trace) {
  std::map<int32_t, int32_t> clock_of;  // by replica
  for (const Part& part : trace.parts) {
    const int32_t reference = reference_of(part.clock_map);
    if (part.dp == kUnknown || reference < 0) return false;
    if (clock_of.try_emplace(part.dp, reference).first->second != reference) return false;
  }
  return clock_of.size() > 1;
}

}  // namespace

Status map_clocks(Trace& trace, const AlignOptions& options) {
  const bool by_hand = !options.by_hand.empty();
  if ((options.mode == AlignMode::kNever && !by_hand) || trace.parts.size() < 2) return {};
  // Profiles without a pipeline are put on one clock, by their collectives, only when that is asked for.
  if (trace.cells.size() == 0 && options.mode != AlignMode::kAlways && !by_hand) return {};
  link_cells(trace);
  const bool only_check = trace.clock == ClockState::kShared && options.mode != AlignMode::kAlways && !by_hand;
  AlignRequest request;
  request.by_hand = options.by_hand;
  request.each_rank_alone = trace.clock == ClockState::kShared;
  ClockAlignment alignment = align_clocks(trace, request);
  if (Status s = check_by_hand(trace, alignment, options); !s) return s;
  if (only_check) {
    say_doubts(trace, alignment);
    return {};
  }
  for (size_t p = 0; p < trace.parts.size(); ++p) trace.parts[p].clock_map = std::move(alignment.clocks[p]);
  trace.diagnostics.merge(alignment.notes);
  trace.alignment = AlignState::kMapped;
  return {};
}

Status check_one_clock(const Trace& trace, const AlignOptions& options) {
  if (trace.alignment == AlignState::kRaw || !options.refuse_untied || options.trust_clocks || trace.parts.empty())
    return {};
  int32_t first = -1;
  std::vector<int32_t> others, with_first;
  const std::vector<int32_t>& wanted = trace.slice_filter.ranks;  // of profiler traces, whose parts all stay
  for (const Part& part : trace.parts) {
    if (!wanted.empty() && !std::binary_search(wanted.begin(), wanted.end(), part.rank)) continue;
    if (with_first.empty() && others.empty()) first = reference_of(part.clock_map);
    const bool same = reference_of(part.clock_map) == first && first >= 0;
    (same ? with_first : others).push_back(part.rank);
  }
  if (others.empty() || (options.mode != AlignMode::kAlways && only_replicas_apart(trace))) return {};
  return Error{ErrorCode::kUnavailable,
               ranks_text(others) + " cannot be put on one clock with " + ranks_text(with_first) +
                   ": nothing in the trace ties them",
               {trace.parts.front().source},
               "--trust-clocks draws them as recorded; --ranks leaves ranks out; --align-on RANK:RANK:NAME ties two by "
               "an operator; stageline align says what ties which"};
}

void draw_on_one_clock(Trace& trace) {
  if (trace.alignment != AlignState::kMapped) return;
  parallel_for(trace.parts.size(), [&](size_t p) {
    Part& part = trace.parts[p];
    const ClockMap& map = part.clock_map;
    const auto to_common = [&](int64_t& ns) { ns = map.common_ns(ns); };
    const auto both = [&](int64_t& start, int64_t& dur) {
      const int64_t end = map.common_ns(sum_or_limit(start, dur));
      to_common(start);
      dur = std::max<int64_t>(0, end - start);
    };
    for (size_t i = 0; i < part.slices.size(); ++i) both(part.slices.start_ns[i], part.slices.dur_ns[i]);
    for (ProfilerStep& step : part.steps) {
      to_common(step.start_ns);
      to_common(step.end_ns);
    }
    for (Mark& mark : part.marks) to_common(mark.time_ns);
    for (MemoryRecord& record : part.memory) to_common(record.time_ns);
    for (CounterSeries& series : part.counters)
      for (int64_t& time : series.time_ns) to_common(time);
  });
  Cells& cells = trace.cells;
  for (size_t i = 0; i < cells.size(); ++i) {
    const ClockMap& map = trace.parts[static_cast<size_t>(cells.part[i])].clock_map;
    cells.start_ns[i] = map.common_ns(cells.start_ns[i]);
    cells.end_ns[i] = std::max(cells.start_ns[i], map.common_ns(cells.end_ns[i]));
  }
  // A clock that was set may now show two cells the other way round; rows follow, and links follow the rows.
  const bool set = std::any_of(trace.parts.begin(), trace.parts.end(),
                               [](const Part& part) { return part.clock_map.segments.size() > 1; });
  if (set) {
    cells.sort();
    link_cells(trace);
  }
  trace.alignment = AlignState::kDrawn;
  trace.clock = ClockState::kAligned;
}

Table clock_table(const Trace& trace, const ClockAlignment& alignment) {
  using Type = ColumnType;
  Table table(
      "clocks", "Clocks",
      {{"rank", "rank", Type::kInteger, "Global rank"},
       {"host", "host", Type::kText, "Machine, where the source names it"},
       {"reference", "reference", Type::kInteger, "Rank whose clock it is put on"},
       {"offset_ns", "offset", Type::kDuration, "This clock minus the reference's, in the middle of the run"},
       {"offset_half_ns", "±", Type::kDuration,
        "The true offset lies within ± this of it, by causality alone; empty when nothing bounds it"},
       {"drift_ppb", "drift ppb", Type::kReal, "Nanoseconds that this clock gains in a second"},
       {"drift_half_ppb", "± ppb", Type::kReal, "The true drift lies within ± this of it"},
       {"messages", "matches", Type::kInteger, "Messages, collectives or gaps that its own ties stand on"},
       {"method", "method", Type::kText,
        "What leads to the reference: messages, collectives, compute gaps, an operator; trusted: nothing does"},
       {"from_ns", "from", Type::kTime, "Stamp from which this row holds, where the clock was set in mid-run"}});
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  for (size_t p = 0; p < trace.parts.size() && p < alignment.clocks.size(); ++p) {
    const ClockMap& map = alignment.clocks[p];
    for (const ClockSegment& s : map.segments) {
      table.add_row({int64_t{trace.parts[p].rank}, trace.parts[p].machine_name, int64_t{s.reference_rank}, s.offset_ns,
                     s.offset_half_ns < 0 ? kNullInteger : s.offset_half_ns, std::round(s.drift * 1e12) / 1e3 + 0.0,
                     s.drift_half < 0 ? unknown : std::ceil(s.drift_half * 1e12) / 1e3, s.message_count,
                     std::string(evidence_name(s.evidence)), s.from_ns == INT64_MIN ? kNullInteger : s.from_ns});
    }
  }
  return table;
}

Result<AlignMode> parse_align_mode(std::string_view text) {
  if (text == "auto") return AlignMode::kAuto;
  if (text == "always") return AlignMode::kAlways;
  if (text == "never") return AlignMode::kNever;
  return Error{ErrorCode::kUsage, "--align is auto, always or never, not \"" + std::string(text) + "\"", {}, ""};
}

Result<align::ByHand> parse_align_on(std::string_view text) {
  const Error bad{ErrorCode::kUsage,
                  "\"" + std::string(text) + "\" does not name two ranks and an operator",
                  {},
                  "write --align-on 0:3:ncclDevKernel_AllReduce, or F0 for a cell"};
  const size_t first = text.find(':');
  const size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos) return bad;
  const auto a = parse_int(trim(text.substr(0, first))),
             b = parse_int(trim(text.substr(first + 1, second - first - 1)));
  const std::string name(trim(text.substr(second + 1)));
  if (!a || !b || *a < 0 || *b < 0 || *a > INT32_MAX || *b > INT32_MAX || *a == *b || name.empty()) return bad;
  return align::ByHand{static_cast<int32_t>(*a), static_cast<int32_t>(*b), name};
}

}  // namespace stageline
