#include "engine/one_clock.h"

#include "base/parallel.h"
#include "engine/filter_run.h"
#include "engine/problems.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/clocks/problems.h"

namespace stageline {
namespace {

std::string ranks_text(const std::vector<int32_t>& ranks) {
  constexpr size_t kShown = 12;
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kShown); ++i) out += (i ? ", " : "") + std::to_string(ranks[i]);
  return ranks.size() > kShown ? out + " and " + std::to_string(ranks.size() - kShown) + " more" : out;
}

// Reports that the shared clock of the source is not one, by the worst rank. Returns false where all ranks agree.
bool report_doubts(Trace& trace, const ClockAlignment& alignment) {
  const std::vector<ClockDoubt> doubts = doubt_shared_clock(alignment);
  if (doubts.empty()) return false;
  const auto worst = std::ranges::max_element(
      doubts, [](const ClockDoubt& a, const ClockDoubt& b) { return std::abs(a.offset_ns) < std::abs(b.offset_ns); });
  const Part& part = trace.parts[worst->part];
  trace.diagnostics.add(problem::clock_not_shared,
                        Args()
                            .set("rank", std::to_string(part.rank))
                            .set("offset_ns", human_duration(std::abs(worst->offset_ns)))
                            .flag("behind", worst->offset_ns < 0),
                        {part.source}, doubts.size());
  return true;
}

// Returns clocks as the source says: all ranks are on the first rank's.
ClockAlignment as_stated(const Trace& trace, const ClockAlignment& checked) {
  ClockAlignment out;
  out.match_count = checked.match_count;
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    ClockMap map;
    map.evidence = p == 0 ? ClockEvidence::kReference : ClockEvidence::kSharedClock;
    ClockSegment segment{.offset_half_ns = 0};
    segment.offset_error_ns = segment.drift_half = segment.drift_error = 0;
    segment.evidence = map.evidence;
    segment.reference_rank = trace.parts.front().rank;
    if (p < checked.clocks.size())
      for (const ClockSegment& s : checked.clocks[p].segments) segment.message_count += s.message_count;
    map.segments.push_back(segment);
    out.clocks.push_back(std::move(map));
  }
  return out;
}

Status check_by_hand(const Trace& trace, const ClockAlignment& alignment, const AlignOptions& options) {
  for (const align::ByHand& hand : options.by_hand)
    for (const int32_t rank : {hand.rank_a, hand.rank_b}) {
      const auto it = std::ranges::find(trace.parts, rank, &Part::rank);
      if (it == trace.parts.end())
        return make_error(ErrorCode::kUsage,
                          "--align-on names rank " + std::to_string(rank) + ", which the input does not have",
                          "stageline info lists the ranks");
    }
  for (const Diagnostic& d : alignment.notes.items())
    if (d.name == "clock.no_such_operator")
      return make_error(ErrorCode::kUsage, d.message.en,
                        "stageline analyze events lists the names of a profiler trace");
  return {};
}

// Aligns the clocks, with the ties that --align-on gives. Errors: kUsage where the trace does not have what it names.
Result<ClockAlignment> aligned_clocks(Trace& trace, const AlignOptions& options) {
  link_cells(trace);
  AlignRequest request{.by_hand = options.by_hand, .each_rank_alone = trace.clock == ClockState::kShared};
  ClockAlignment alignment = align_clocks(trace, request);
  TRY_OK(check_by_hand(trace, alignment, options));
  return alignment;
}

// Counts links that are too early by more than the error of stamps.
int64_t broken_links(const Trace& trace, const std::vector<ClockMap>& clocks) {
  const int64_t tolerance_ns = std::max<int64_t>(1000, stamp_unit_ns(trace));
  const Cells& cells = trace.cells;
  const auto time = [&](uint32_t cell, int64_t stamp_ns) {
    const size_t part = cells.part[cell];
    return part < clocks.size() ? clocks[part].common_ns(stamp_ns) : stamp_ns;
  };
  std::vector<int64_t> broken(stretch_count(trace.links.size()));
  for_stretches(trace.links.size(), [&](size_t stretch, size_t begin, size_t end) {
    int64_t count = 0;
    for (size_t i = begin; i < end; ++i) {
      const Link& link = trace.links[i];
      count += time(link.from_cell, cells.end_ns[link.from_cell]) >
               sum_or_limit(time(link.to_cell, cells.start_ns[link.to_cell]), tolerance_ns);
    }
    broken[stretch] = count;
  });
  return std::accumulate(broken.begin(), broken.end(), int64_t{0});
}

// The last guard: alignments after which more cells begin before what they wait for than without it are wrong, whatever
// they were made from. Returns "" when the alignment is accepted.
Text why_refused(const Trace& trace, const ClockAlignment& alignment) {
  if (trace.clock == ClockState::kPerRank) return {};  // as recorded, nothing can be compared
  const int64_t before = broken_links(trace, {}), after = broken_links(trace, alignment.clocks);
  if (after <= before) return {};
  return words(
      "clock.refused",
      Args().set("after", grouped(after)).set("links", grouped(trace.links.size())).set("before", grouped(before)));
}

// Returns true when only whole replicas are unconnected, each of which is on one clock. A replica is a pipeline of its
// own, so its bubbles are right whatever the other replicas' clocks show.
bool only_replicas_apart(const Trace& trace) {
  std::map<int32_t, int32_t> clock_of;  // for each replica
  for (const Part& part : trace.parts) {
    const int32_t reference = reference_of(part.clock_map);
    if (part.dp == kUnknown || reference < 0) return false;
    if (clock_of.try_emplace(part.dp, reference).first->second != reference) return false;
  }
  return clock_of.size() > 1;
}

struct StepSpan {
  int64_t first = INT64_MAX, last = INT64_MIN;
};

// Returns for each clock, named by its reference rank, when each step began and ended on it.
std::map<int32_t, std::map<int32_t, StepSpan>> steps_of_clocks(const Trace& trace) {
  std::map<int32_t, std::map<int32_t, StepSpan>> steps;
  const Cells& cells = trace.cells;
  for (size_t i = 0; i < cells.size();) {  // the cells of a step and rank lie side by side
    const size_t begin = i;
    int64_t end_ns = cells.end_ns[i];
    for (; i < cells.size() && cells.part[i] == cells.part[begin] && cells.step[i] == cells.step[begin]; ++i)
      end_ns = std::max(end_ns, cells.end_ns[i]);
    if (cells.step[begin] == kUnknown) continue;
    StepSpan& span = steps[reference_of(trace.parts[cells.part[begin]].clock_map)][cells.step[begin]];
    span.first = std::min(span.first, trace.common_start_ns(begin));
    span.last = std::max(span.last, trace.common_ns(cells.part[begin], end_ns));
  }
  return steps;
}

// Replicas compute the same steps at the same time. A clock that nothing connects to the first
// rank's is wrong where its steps do not overlap the first rank's. It is then set so that its steps start with these.
void place_replicas(Trace& trace) {
  const std::map<int32_t, std::map<int32_t, StepSpan>> steps = steps_of_clocks(trace);
  const int32_t first = reference_of(trace.parts.front().clock_map);
  const auto base = steps.find(first);
  std::map<int32_t, int64_t> late_by;
  for (const auto& [reference, own] : steps) {
    if (base == steps.end() || reference == first) continue;
    std::vector<int64_t> late;
    int64_t longest = 0;
    for (const auto& [step, span] : own) {
      const auto same = base->second.find(step);
      if (same == base->second.end()) continue;
      late.push_back(sum_or_limit(span.first, -same->second.first));
      longest = std::max({longest, span.last - span.first, same->second.last - same->second.first});
    }
    if (late.empty()) continue;
    std::ranges::nth_element(late, late.begin() + std::ssize(late) / 2);
    if (const int64_t ns = late[late.size() / 2]; std::abs(ns) > longest) late_by[reference] = ns;
  }
  int64_t ranks = 0, worst = 0;
  for (Part& part : trace.parts) {
    const auto at = late_by.find(reference_of(part.clock_map));
    if (at == late_by.end()) continue;
    for (ClockSegment& segment : part.clock_map.segments)
      segment.offset_ns = sum_or_limit(segment.offset_ns, at->second);
    ++ranks, worst = std::max(worst, std::abs(at->second));
  }
  if (ranks == 0) return;
  trace.diagnostics.add(
      problem::clock_placed_by_steps,
      Args().set("rank", int64_t{trace.parts.front().rank}).set("apart", human_duration(static_cast<double>(worst))),
      {}, ranks);
}

// Returns what evidence there was that could not be used, or that there was none.
std::string why_untied(const Trace& trace) {
  for (const Diagnostic& d : trace.diagnostics.items())
    if (d.name == "clock.contradicting_tie") return d.message.en;
  return "nothing in the trace ties them";
}

void move_stamps(Trace& trace) {
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
  for_stretches(cells.size(), [&](size_t, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const ClockMap& map = trace.parts[cells.part[i]].clock_map;
      cells.start_ns[i] = map.common_ns(cells.start_ns[i]);
      cells.end_ns[i] = std::max(cells.start_ns[i], map.common_ns(cells.end_ns[i]));
    }
  });
  // A clock that was set may change the order of two cells. Then rows are sorted again, and links, which refer to rows,
  // follow.
  const bool set =
      std::ranges::any_of(trace.parts, [](const Part& part) { return part.clock_map.segments.size() > 1; });
  if (set) {
    cells.sort();
    link_cells(trace);
  }
  trace.alignment = AlignState::kDrawn;
  const ClockSummary summary = clock_summary(trace);
  if (summary.by.empty()) return;  // nothing connects any ranks, so timestamps stay as recorded
  trace.clock = summary.untied.empty() ? ClockState::kAligned : ClockState::kPartlyAligned;
}

}  // namespace

Status map_clocks(Trace& trace, const AlignOptions& options) {
  const bool by_hand = !options.by_hand.empty();
  if ((options.mode == AlignMode::kNever && !by_hand) || trace.parts.size() < 2) return {};
  // Profiles without a pipeline are put on one clock, by their collectives, only when that is asked for.
  if (trace.cells.size() == 0 && options.mode != AlignMode::kAlways && !by_hand) return {};
  TRY(alignment, aligned_clocks(trace, options));
  if (trace.clock == ClockState::kShared && options.mode != AlignMode::kAlways && !by_hand) {
    report_doubts(trace, *alignment);
    return {};
  }
  trace.diagnostics.merge(alignment->notes);
  if (const Text why = by_hand ? Text() : why_refused(trace, *alignment); !why.empty()) {
    trace.diagnostics.add(problem::clock_refused, Args().set("why", why));
    return {};
  }
  for (size_t p = 0; p < trace.parts.size(); ++p) trace.parts[p].clock_map = std::move(alignment->clocks[p]);
  trace.alignment = AlignState::kMapped;
  return {};
}

Result<ClockAlignment> measure_clocks(Trace& trace, const AlignOptions& options) {
  TRY(alignment, aligned_clocks(trace, options));
  if (trace.clock != ClockState::kShared || options.mode == AlignMode::kAlways || !options.by_hand.empty() ||
      trace.parts.empty()) {
    const Text why = options.by_hand.empty() ? why_refused(trace, *alignment) : Text();
    if (!why.empty()) alignment->notes.add(problem::clock_refused, Args().set("why", why));
    return alignment;
  }
  ClockAlignment stated = as_stated(trace, *alignment);
  if (!report_doubts(trace, *alignment) && alignment->match_count > 0)
    stated.notes.add(problem::clock_shared, Args().set("matches", grouped(alignment->match_count)));
  return stated;
}

Status check_one_clock(Trace& trace, const AlignOptions& options) {
  if (trace.alignment == AlignState::kRaw || options.trust_clocks || trace.parts.empty()) return {};
  if (options.mode != AlignMode::kAlways && only_replicas_apart(trace)) {
    place_replicas(trace);
    return {};
  }
  if (!options.refuse_untied) return {};
  int32_t first = -1;
  std::vector<int32_t> others, with_first;
  const std::vector<int32_t>& wanted = trace.slice_filter.ranks;  // for profiler traces, whose parts all stay
  for (const Part& part : trace.parts) {
    if (!wanted.empty() && !std::ranges::binary_search(wanted, part.rank)) continue;
    if (with_first.empty() && others.empty()) first = reference_of(part.clock_map);
    const bool same = reference_of(part.clock_map) == first && first >= 0;
    (same ? with_first : others).push_back(part.rank);
  }
  if (others.empty()) return {};
  if (options.warn_of_untied) {
    trace.diagnostics.add(problem::clock_drawn_as_recorded, {}, std::ssize(others));
    return {};
  }
  return make_error(
      ErrorCode::kUnavailable,
      ranks_text(others) + " cannot be put on one clock with " + ranks_text(with_first) + ": " + why_untied(trace),
      "--align never takes all stamps to be of one clock; --trust-clocks draws these as recorded; --ranks "
      "leaves ranks out; --align-on RANK:RANK:NAME ties two by an operator; stageline align says what ties "
      "which",
      {trace.parts.front().source});
}

DrawnRun::DrawnRun(std::shared_ptr<const Run> recorded, DrawnStamps stamps) : drawn_(std::move(recorded)) {
  if (!changes(drawn_->trace(), stamps)) return;
  moved_ = drawn_->trace().copy();
  draw(stamps);
}

DrawnRun::DrawnRun(Trace&& recorded, DrawnStamps stamps) : moved_(std::move(recorded)) { draw(stamps); }

bool DrawnRun::changes(const Trace& recorded, DrawnStamps stamps) {
  return has_other_ranks(recorded) || (stamps == DrawnStamps::kOnOneClock && recorded.alignment == AlignState::kMapped);
}

void DrawnRun::draw(DrawnStamps stamps) {
  if (has_other_ranks(*moved_)) drop_other_ranks(*moved_);
  if (stamps == DrawnStamps::kOnOneClock) move_stamps(*moved_);
  drawn_ = std::make_shared<const Run>(*moved_);
}

Result<AlignMode> parse_align_mode(std::string_view text) {
  if (text == "auto") return AlignMode::kAuto;
  if (text == "always") return AlignMode::kAlways;
  if (text == "never") return AlignMode::kNever;
  return make_error(ErrorCode::kUsage, "--align is auto, always or never, not \"" + std::string(text) + "\"");
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
