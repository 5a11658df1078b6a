// Computation, communication and their overlap; waiting and transfer; and statistics of collectives, for every rank.
// Definitions: docs/analyses/tb-distributed.md.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "analyses/analysis.h"
#include "analyses/tensorboard/problems.h"
#include "base/parallel.h"
#include "model/statistics.h"
#include "model/table.h"
#include "profile/tb_work.h"

namespace stageline {
namespace {

using Type = ColumnType;

std::vector<ColumnSpec> with_rank(std::vector<ColumnSpec> columns, bool by_step) {
  if (by_step)
    columns.insert(columns.begin(),
                   {"step", "step", Type::kInteger,
                    "ProfilerStep number; unknown when no step was recorded and everything is one step"});
  columns.insert(columns.begin(), {"rank", "rank", Type::kInteger, "Global rank"});
  return columns;
}

std::vector<ColumnSpec> tb_overlap_columns(bool by_step) {
  return with_rank(
      {{"step_ns", "step", Type::kDuration, "Length of the step, up to the end of the device work that it launched"},
       {"computation_ns", "computation", Type::kDuration,
        "Computation kernels with no communication at the same time; without a device: operators"},
       {"overlap_ns", "overlapping", Type::kDuration, "Computation and communication at the same time"},
       {"communication_ns", "communication", Type::kDuration, "Communication while nothing is computed"},
       {"other_ns", "other", Type::kDuration, "Time with neither of them"},
       {"hidden_share", "hidden", Type::kShare, "Overlapping as a share of all communication"}},
      by_step);
}

std::vector<ColumnSpec> tb_wait_columns(bool by_step) {
  return with_rank(
      {{"transfer_ns", "data transfer", Type::kDuration,
        "Union of the transfer times, each as long as on the rank with the shortest call"},
       {"synchronizing_ns", "synchronizing", Type::kDuration,
        "The rest of collectives found on several ranks: waiting for other ranks"},
       {"unknown_ns", "unknown", Type::kDuration, "Communication without a counterpart on another rank of the trace"},
       {"synchronizing_share", "synchronizing", Type::kShare,
        "Share of the time of collectives found on several ranks"},
       {"message_transfer_ns", "messages' transfer", Type::kDuration, "Sends and receives: part of data transfer"},
       {"message_wait_ns", "messages' waiting", Type::kDuration, "Sends and receives: part of synchronizing"}},
      by_step);
}

std::vector<ColumnSpec> tb_collectives_columns() {
  return {
      {"rank", "rank", Type::kInteger, "Global rank"},
      {"collective", "collective", Type::kText, "Collective, else the annotation, else the kernel's name"},
      {"count", "calls", Type::kInteger, "Kernels; of libraries that work on the host, calls"},
      {"bytes", "bytes", Type::kInteger,
       "Bytes that went in or came out, whichever is larger, over the calls that tell them"},
      {"mean_bytes", "mean bytes", Type::kInteger, ""},
      {"latency_ns", "latency", Type::kDuration, "Sum over all calls of waiting and transfer"},
      {"mean_latency_ns", "mean latency", Type::kDuration, ""},
      {"joined_count", "joined", Type::kInteger, "Calls with a counterpart on another rank"},
      {"transfer_ns", "transfer", Type::kDuration, "Sum over these calls of the shortest duration among their ranks"},
      {"mean_transfer_ns", "mean transfer", Type::kDuration, ""},
      {"synchronizing_ns", "synchronizing", Type::kDuration, "Sum over these calls of the rest"}};
}

std::vector<ColumnSpec> tb_sizes_columns() {
  return {{"collective", "collective", Type::kText, ""},
          {"size_class", "size", Type::kText, "Size class of the bytes that went in or came out, whichever is larger"},
          {"count", "calls", Type::kInteger, "Number of calls on all ranks"},
          {"mean_bytes", "mean bytes", Type::kInteger, ""},
          {"mean_latency_ns", "mean latency", Type::kDuration, ""},
          {"joined_count", "joined", Type::kInteger, "Calls with a counterpart on another rank"},
          {"mean_transfer_ns", "mean transfer", Type::kDuration, "Mean transfer time of these calls"},
          {"algorithm_gbps", "GB/s", Type::kReal, "Bytes divided by transfer time, over calls with a counterpart"},
          {"bus_gbps", "bus GB/s", Type::kReal, "The same times the factor that nccl-tests uses for the group's size"}};
}

void add_overlap(Table& table, int32_t rank, const int64_t* step, int64_t step_ns, const TbOverlap& o) {
  std::vector<Table::Value> row = {int64_t{rank}};
  if (step) row.emplace_back(*step);
  for (const int64_t ns : {step_ns, o.computation_ns, o.overlap_ns, o.communication_ns, o.other_ns})
    row.emplace_back(ns);
  row.emplace_back(share_of(o.overlap_ns, o.overlap_ns + o.communication_ns));
  table.add_row(std::move(row));
}

void add_wait(Table& table, int32_t rank, const int64_t* step, const TbWait& w) {
  std::vector<Table::Value> row = {int64_t{rank}};
  if (step) row.emplace_back(*step);
  for (const int64_t ns : {w.transfer_ns, w.synchronizing_ns, w.unknown_ns}) row.emplace_back(ns);
  row.emplace_back(share_of(w.synchronizing_ns, w.synchronizing_ns + w.transfer_ns));
  row.emplace_back(w.message_transfer_ns);
  row.emplace_back(w.message_wait_ns);
  table.add_row(std::move(row));
}

// Adds the means over the steps of each rank.
void add_means(const TbRankWork& r, Table& overlap, Table& waits) {
  if (r.steps.empty()) return;
  const TbMeanWork mean = r.mean();
  add_overlap(overlap, r.rank, nullptr, mean.step_ns, mean.overlap);
  add_wait(waits, r.rank, nullptr, mean.wait);
}

// Classes of message sizes. Each goes up to and includes its bound.
struct SizeClass {
  int64_t max_bytes;
  const char* text;
};
constexpr std::array<SizeClass, 6> kSizeClasses = {{{int64_t{1} << 12, "up to 4 KiB"},
                                                    {int64_t{1} << 16, "up to 64 KiB"},
                                                    {int64_t{1} << 20, "up to 1 MiB"},
                                                    {int64_t{1} << 24, "up to 16 MiB"},
                                                    {int64_t{1} << 28, "up to 256 MiB"},
                                                    {INT64_MAX, "more than 256 MiB"}}};
size_t size_class(int64_t bytes) {
  if (bytes < 0) return kSizeClasses.size();  // unknown size
  size_t c = 0;
  while (bytes > kSizeClasses[c].max_bytes) ++c;
  return c;
}

// Returns the bytes moved over the bus for each byte of the collective, as nccl-tests counts them.
double bus_factor(std::string_view name, int64_t group_size) {
  if (group_size < 2) return 1;
  const auto holds = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  const double n = group_size, others = (n - 1) / n;
  if (holds("allreduce") || holds("all_reduce")) return 2 * others;
  const bool spreads = holds("gather") || holds("reduce_scatter") || holds("all_to_all") || holds("alltoall");
  return spreads ? others : 1;
}

struct CallSum {
  int64_t calls = 0, sized = 0, joined = 0;
  double bytes = 0, latency_ns = 0;              // sums
  double transfer_ns = 0, synchronizing_ns = 0;  // of matched calls
  // Of matched calls of known size: bytes, bus bytes, and their transfer time.
  double moved = 0, moved_bus = 0, moving_ns = 0;

  void add(const TbCollective& call, double factor) {
    ++calls;
    latency_ns += call.dur_ns;
    if (call.bytes >= 0) {
      ++sized;
      bytes += call.bytes;
    }
    if (call.transfer_ns < 0) return;
    ++joined;
    transfer_ns += call.transfer_ns;
    synchronizing_ns += call.dur_ns - call.transfer_ns;
    if (call.bytes < 0 || call.transfer_ns == 0) return;
    moved += call.bytes;
    moved_bus += call.bytes * factor;
    moving_ns += call.transfer_ns;
  }
  static int64_t mean(double sum, int64_t count) { return count > 0 ? std::llround(sum / count) : kNullInteger; }
};

Table collectives_table(const TbRun& run, const std::vector<TbRankWork>& ranks) {
  Table table("collectives", "Collectives and messages", tb_collectives_columns());
  const StringPool& names = run.torch.trace->names;
  for (const TbRankWork& r : ranks) {
    std::map<std::string_view, CallSum> sums;
    for (const TbCollective& call : r.calls) sums[names.text(call.label)].add(call, 1);
    for (const auto& [name, s] : sums)
      table.add_row({int64_t{r.rank}, std::string(name), s.calls,
                     s.sized > 0 ? static_cast<int64_t>(std::min(s.bytes, 9e18)) : kNullInteger,
                     CallSum::mean(s.bytes, s.sized), std::llround(s.latency_ns), CallSum::mean(s.latency_ns, s.calls),
                     s.joined, s.joined > 0 ? std::llround(s.transfer_ns) : kNullInteger,
                     CallSum::mean(s.transfer_ns, s.joined),
                     s.joined > 0 ? std::llround(s.synchronizing_ns) : kNullInteger});
  }
  return table;
}

Table sizes_table(const TbRun& run, const std::vector<TbRankWork>& ranks) {
  Table table("collectives-by-size", "Collectives by size of message, all ranks", tb_sizes_columns());
  const StringPool& names = run.torch.trace->names;
  std::map<std::pair<std::string_view, size_t>, CallSum> sums;
  for (const TbRankWork& r : ranks)
    for (const TbCollective& call : r.calls) {
      const std::string_view name = names.text(call.label);
      sums[{name, size_class(call.bytes)}].add(call, bus_factor(name, call.group_size));
    }
  for (const auto& [key, s] : sums) {
    const auto& [name, size] = key;
    table.add_row({std::string(name), std::string(size < kSizeClasses.size() ? kSizeClasses[size].text : "unknown"),
                   s.calls, CallSum::mean(s.bytes, s.sized), CallSum::mean(s.latency_ns, s.calls), s.joined,
                   CallSum::mean(s.transfer_ns, s.joined), share_of(s.moved, s.moving_ns),
                   share_of(s.moved_bus, s.moving_ns)});
  }
  return table;
}

std::vector<Table> distributed_tables(const TbRun& run, const std::vector<TbRankWork>& ranks, bool brief) {
  Table overlap("overlap", "Computation and communication, the mean step", tb_overlap_columns(false));
  Table waits("waits", "Waiting and transfer, the mean step", tb_wait_columns(false));
  Table overlap_steps("overlap-by-step", "Computation and communication by step", tb_overlap_columns(true));
  Table wait_steps("waits-by-step", "Waiting and transfer by step", tb_wait_columns(true));
  for (const TbRankWork& r : ranks) {
    add_means(r, overlap, waits);
    for (size_t i = 0; i < r.steps.size() && !brief; ++i) {
      add_overlap(overlap_steps, r.rank, &r.steps[i].number, r.steps[i].length_ns(), r.overlaps[i]);
      add_wait(wait_steps, r.rank, &r.steps[i].number, r.waits[i]);
    }
  }
  std::vector<Table> tables;
  tables.push_back(std::move(overlap));
  tables.push_back(std::move(waits));
  tables.push_back(collectives_table(run, ranks));
  tables.push_back(sizes_table(run, ranks));
  if (brief) return tables;
  tables.push_back(std::move(overlap_steps));
  tables.push_back(std::move(wait_steps));
  return tables;
}

Result<AnalysisResult> run_tb_distributed(const AnalysisInput& input) {
  TRY(made, make_tb_run(*input.trace, input.include_last_step));
  const TbRun& tb = *made;
  std::vector<TbRankWork> ranks(tb.torch.parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = tb_work(tb, tb_rank(tb, tb.torch.parts[k])); });
  AnalysisResult result;
  const TbJoin join = join_work(ranks, input.trace->clock == ClockState::kShared);
  if (input.for_report &&
      std::all_of(ranks.begin(), ranks.end(), [](const TbRankWork& rank) { return rank.calls.empty(); }))
    return result;  // nothing was communicated, which is not a flaw
  result.tables = distributed_tables(tb, ranks, input.for_report);
  if (join.alone > 0 && ranks.size() > 1) result.notes.add(problem::tb_collectives_alone, {}, join.alone);
  if (join.unequal > 0) result.notes.add(problem::tb_collectives_unequal, {}, join.unequal);
  return result;
}

}  // namespace

extern const Analysis tb_distributed_analysis = {
    .name = "tb-distributed",
    .summary = "computation, communication and overlap of every rank; waiting and transfer; statistics of collectives",
    .tables = {{"overlap", "one row per rank: the mean step", [] { return tb_overlap_columns(false); }},
               {"waits", "one row per rank: waiting and transfer of the mean step",
                [] { return tb_wait_columns(false); }},
               {"collectives", "one row per rank and collective", tb_collectives_columns},
               {"collectives-by-size", "one row per collective and size of message, all ranks", tb_sizes_columns},
               {"overlap-by-step", "one row per rank and step", [] { return tb_overlap_columns(true); }},
               {"waits-by-step", "one row per rank and step", [] { return tb_wait_columns(true); }}},
    .run = run_tb_distributed,
    .needs = AnalysisNeeds::kTorch};

}  // namespace stageline
