// Finds why devices were idle: a reason for every gap, and the longest gaps with their place. Definitions:
// docs/analyses/free-analysis.md.
//
//   host    ── launch A ──────────── … ─────────── launch B ──
//   device      ├ A ┤                      gap               ├ B ┤
//                   └ dry ───────────────────────┘late └─┘ launch latency
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "analyses/analysis.h"
#include "analyses/cluster/cluster_notes.h"
#include "analyses/cluster/durations.h"
#include "base/parallel.h"
#include "base/text.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "profile/communication_ops.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

constexpr int64_t kMinNs = 10'000, kShortNs = 30'000;

enum Reason : uint8_t {
  kDataLoader,
  kGarbage,
  kHostSync,
  kHost,
  kSteps,
  kLaunch,
  kStream,
  kBetween,
  kNoReason,
  kReasons
};
constexpr std::array<const char*, kReasons> kReasonText = {
    "data loading",  "garbage collection", "host waits for device",         "host slow",
    "between steps", "launch latency",     "waiting for a stream or event", "between kernels",
    "unknown"};

struct Gap {
  int64_t start = 0, end = 0;
  Reason reason = kNoReason;
  int32_t step = -1;
  uint32_t before = 0, after = 0;  // slices
  int64_t dry_ns = 0;              // part of the gap until the next launch began
  bool new_step = false;           // the work after the gap belongs to another step
  int64_t ns() const { return end - start; }
};
struct RankAnswer {
  int32_t rank = 0;
  int64_t span_ns = 0, free_ns = 0, short_ns = 0, short_count = 0;
  std::array<std::vector<int64_t>, kReasons> reasons;
  std::vector<Gap> longest;
};

// Returns the reason that a host row's name suggests.
Reason host_reason(std::string_view name) {
  const std::string lower = to_lower(name);
  const auto holds = [&](const char* part) { return lower.find(part) != std::string::npos; };
  if (holds("dataloader")) return kDataLoader;
  if (lower == "gc" || holds("gc.collect") || holds("gc_collect") || holds("garbage")) return kGarbage;
  // These calls block until the device is done. Calls that only make the device wait are not among them.
  if (holds("synchronize") || holds("syncstream") || holds("_local_scalar_dense")) return kHostSync;
  return kNoReason;
}
std::vector<Reason> host_reasons(const StringPool& names) {
  std::vector<Reason> out;
  for (StringId id = 0; id < names.size(); ++id) out.push_back(host_reason(names.text(id)));
  return out;
}

struct HostTimes {
  std::array<CoveredTime, 3> of = {CoveredTime({}), CoveredTime({}), CoveredTime({})};
  std::map<uint16_t, CoveredTime> waits;  // of each device lane
};

HostTimes host_times(const TorchRank& rank, const std::vector<Reason>& reasons) {
  std::array<std::vector<Interval>, 3> lists;
  std::map<uint16_t, std::vector<Interval>> waits;
  for (const TorchRow& row : rank.rows)
    if (row.category == Category::kDeviceSync)
      waits[row.lane].push_back({row.start_ns, row.end_ns()});
    else if (is_host(row.category) && reasons[row.name] < 3)
      lists[reasons[row.name]].push_back({row.start_ns, row.end_ns()});
  HostTimes times;
  for (size_t i = 0; i < lists.size(); ++i) times.of[i] = CoveredTime(union_of(std::move(lists[i])));
  for (auto& [lane, list] : waits) times.waits.emplace(lane, CoveredTime(union_of(std::move(list))));
  return times;
}

void explain_gap(const TorchRank& rank, const HostTimes& host, const TorchRow& next, Gap& gap) {
  const auto waits = host.waits.find(next.lane);
  const int64_t waited = waits == host.waits.end() ? 0 : waits->second.within(gap.start, gap.end);
  if (next.partner < 0) {
    gap.reason = 2 * waited >= gap.ns() ? kStream : kNoReason;
    return;
  }
  const TorchRow& launch = rank.rows[next.partner];
  gap.dry_ns = std::clamp<int64_t>(launch.start_ns - gap.start, 0, gap.ns());
  const int64_t latency =
      std::clamp<int64_t>(std::min(launch.end_ns(), gap.end) - std::max(launch.start_ns, gap.start), 0, gap.ns());
  if (2 * gap.dry_ns >= gap.ns()) {  // for most of the gap, no work had been launched
    gap.reason = gap.new_step ? kSteps : kHost;
    for (const Reason reason : {kDataLoader, kGarbage, kHostSync})
      if (2 * host.of[reason].within(gap.start, gap.start + gap.dry_ns) >= gap.dry_ns) {
        gap.reason = reason;
        break;
      }
    return;
  }
  if (2 * waited >= gap.ns())
    gap.reason = kStream;
  else if (launch.end_ns() <= gap.start)
    gap.reason = gap.ns() <= kShortNs ? kBetween : kStream;  // the work was launched in time and still did not begin
  else
    gap.reason = latency > 0 || gap.dry_ns > 0 ? kLaunch : kNoReason;
}

RankAnswer answer_for(const TorchRank& rank, const std::vector<Reason>& reasons, int64_t min_ns, size_t most) {
  RankAnswer answer;
  answer.rank = rank.rank;
  std::vector<const TorchRow*> work;
  for (const TorchRow& row : rank.rows)
    if (row.on_device) work.push_back(&row);
  if (work.empty()) return answer;
  std::stable_sort(work.begin(), work.end(),
                   [](const TorchRow* a, const TorchRow* b) { return a->start_ns < b->start_ns; });
  const HostTimes host = host_times(rank, reasons);
  const TorchRow* last = work[0];  // the row that ends latest so far
  std::vector<Gap> gaps;
  for (const TorchRow* row : work) {
    if (row->start_ns > last->end_ns()) {
      Gap gap{last->end_ns(), row->start_ns, kNoReason, row->iteration,
              last->slice,    row->slice,    0,         row->iteration != last->iteration};
      answer.free_ns += gap.ns();
      if (gap.ns() < min_ns) {
        answer.short_ns += gap.ns();
        ++answer.short_count;
      } else {
        explain_gap(rank, host, *row, gap);
        answer.reasons[gap.reason].push_back(gap.ns());
        gaps.push_back(gap);
      }
    }
    if (row->end_ns() > last->end_ns()) last = row;
  }
  answer.span_ns = last->end_ns() - work[0]->start_ns;
  const auto longer = [](const Gap& a, const Gap& b) { return a.ns() != b.ns() ? a.ns() > b.ns() : a.start < b.start; };
  std::partial_sort(gaps.begin(), gaps.begin() + std::min(most, gaps.size()), gaps.end(), longer);
  gaps.resize(std::min(most, gaps.size()));
  answer.longest = std::move(gaps);
  return answer;
}

std::vector<ColumnSpec> free_reasons_columns() {
  return with_duration_columns({{"rank", "rank", Type::kInteger, "Global rank"},
                                {"reason", "reason", Type::kText, "docs/analyses/free-analysis.md"},
                                {"free_share", "share", Type::kShare, "Share of the rank's free time"},
                                {"span_share", "of the span", Type::kShare, "First start to last end of device work"}},
                               false);
}

Table reason_table(std::vector<RankAnswer>& ranks) {
  Table table("free-reasons", "Why the devices stood still", free_reasons_columns());
  for (RankAnswer& rank : ranks) {
    const auto add = [&](const char* reason, std::vector<int64_t>& ns) {
      if (ns.empty()) return;
      const double sum = sum_of(ns);
      table.add_row(with_durations(
          {int64_t{rank.rank}, std::string(reason), share_of(sum, rank.free_ns), share_of(sum, rank.span_ns)}, ns,
          false));
    };
    for (size_t r = 0; r < kReasons; ++r) add(kReasonText[r], rank.reasons[r]);
  }
  return table;
}

std::vector<ColumnSpec> free_time_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"span_ns", "span", Type::kDuration, "First start to last end of device work"},
          {"free_ns", "free", Type::kDuration, "Time without device work"},
          {"free_share", "free", Type::kShare, "Free time as a share of the span"},
          {"short_gap_count", "short gaps", Type::kInteger,
           "Number of gaps shorter than --min-gap, for which no reason is given"},
          {"short_gap_ns", "short gaps", Type::kDuration, "Sum of those short gaps"}};
}

Table total_table(const std::vector<RankAnswer>& ranks) {
  Table table("free-time", "Free time of every device", free_time_columns());
  for (const RankAnswer& rank : ranks)
    if (rank.span_ns > 0)
      table.add_row({int64_t{rank.rank}, rank.span_ns, rank.free_ns, share_of(rank.free_ns, rank.span_ns),
                     rank.short_count, rank.short_ns});
  return table;
}

std::vector<ColumnSpec> free_gaps_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"start_ns", "start", Type::kTime, "From the run's first slice"},
          {"free_ns", "gap", Type::kDuration, ""},
          {"reason", "reason", Type::kText, "docs/analyses/free-analysis.md"},
          {"dry_ns", "not asked", Type::kDuration, "Part of the gap until the next launch began"},
          {"step", "step", Type::kInteger, "Step of the work after the gap"},
          {"before", "after", Type::kText, "Device work that ended before the gap"},
          {"after", "before", Type::kText, "Device work that began after the gap"},
          {"launch", "launched by", Type::kText, "Call that launched the work after the gap"},
          {"operator", "of operator", Type::kText, "Operator to which that work belongs"}};
}

Table gap_table(const TorchRun& run, const std::vector<RankAnswer>& ranks) {
  Table table("free-gaps", "Longest gaps of every device", free_gaps_columns());
  for (size_t k = 0; k < ranks.size(); ++k) {
    const Slices& s = run.trace->parts[run.parts[k]].slices;
    const auto name = [&](uint32_t slice) {
      return slice == kNoSliceIndex ? std::string() : std::string(run.trace->names.text(s.name_id[slice]));
    };
    for (const Gap& gap : ranks[k].longest)
      table.add_row({int64_t{ranks[k].rank}, gap.start, gap.ns(), std::string(kReasonText[gap.reason]), gap.dry_ns,
                     gap.step < 0 ? kNullInteger : int64_t{gap.step}, name(gap.before), name(gap.after),
                     name(s.partner[gap.after]), name(s.parent[gap.after])});
  }
  return table;
}

Result<AnalysisResult> run_free_analysis(const AnalysisInput& input) {
  TRY(least, input.options.microseconds("min-gap", kMinNs));
  TRY(most, input.options.integer("top", 10, 0));
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  const std::vector<Reason> reasons = host_reasons(torch->trace->names);
  std::vector<RankAnswer> ranks(torch->parts.size());
  parallel_for(ranks.size(),
               [&](size_t k) { ranks[k] = answer_for(*torch_rank(*torch, torch->parts[k]), reasons, *least, *most); });
  AnalysisResult result;
  note_level_none(input, result.notes);
  result.tables.push_back(reason_table(ranks));
  result.tables.push_back(total_table(ranks));
  result.tables.push_back(gap_table(*torch, ranks));
  return result;
}

}  // namespace

extern const Analysis free_analysis_analysis = {
    .name = "free-analysis",
    .summary = "why devices were idle: slow host, data loading, synchronisation, launch latency, waiting for streams",
    .tables = {{"free-reasons", "one row per rank and reason", free_reasons_columns},
               {"free-time", "one row per rank", free_time_columns},
               {"free-gaps", "the longest gaps of every rank, with their place", free_gaps_columns}},
    .run = run_free_analysis,
    .needs = AnalysisNeeds::kTorch,
    .options = {{"min-gap", "TIME", "Shorter gaps are summed, not explained; default 10 (us)", ""},
                {"top", "N",
                 "How many of the longest are listed (hccl-sum: default 15; free-analysis: 10 per rank; "
                 "slow-rank and slow-link: 15)",
                 ""}},
    .in_report = false};

}  // namespace stageline
