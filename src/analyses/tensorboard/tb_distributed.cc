// Computation, communication and their overlap; waiting and transfer; and statistics of collectives, for every rank.
// Definitions: docs/analyses/tb-distributed.md.
#include "analyses/analysis.h"
#include "analyses/tensorboard/problems.h"
#include "model/collective_kind.h"
#include "model/statistics.h"
#include "profile/tb_run.h"

namespace stageline {
namespace {

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

struct CallSum {
  int64_t calls = 0, sized = 0, joined = 0;
  double bytes = 0, latency_ns = 0;              // sums
  double transfer_ns = 0, synchronizing_ns = 0;  // of matched calls
  // Bytes, bus bytes and transfer time of matched calls whose size is known.
  double moved = 0, moved_bus = 0, moving_ns = 0;

  void add(const TbCollective& call, double factor) {
    ++calls;
    latency_ns += call.dur_ns;
    if (call.bytes >= 0) ++sized, bytes += call.bytes;
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
  Table table(declared_table("tb-distributed/collectives"));
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
  Table table(declared_table("tb-distributed/collectives-by-size"));
  const StringPool& names = run.torch.trace->names;
  std::map<std::pair<std::string_view, size_t>, CallSum> sums;
  for (const TbRankWork& r : ranks)
    for (const TbCollective& call : r.calls) {
      const std::string_view name = names.text(call.label);
      const double factor = call.group_size < 2 ? 1 : bus_factor(collective_kind(name), call.group_size);
      sums[{name, size_class(call.bytes)}].add(call, factor);
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
  Table overlap(declared_table("tb-distributed/overlap"));
  Table waits(declared_table("tb-distributed/waits"));
  Table overlap_steps(declared_table("tb-distributed/overlap-by-step"));
  Table wait_steps(declared_table("tb-distributed/waits-by-step"));
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

}  // namespace

Result<AnalysisResult> run_tb_distributed(const AnalysisInput& input) {
  TRY(made, make_tb_run(*input.trace, input.include_last_step));
  const TbRun& tb = *made;
  std::vector<TbRankWork> ranks(tb.torch.parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = tb_work(tb, tb_rank(tb, tb.torch.parts[k])); });
  AnalysisResult result;
  const TbJoin join = join_work(ranks, input.trace->clock == ClockState::kShared);
  if (input.for_report && std::ranges::all_of(ranks, [](const TbRankWork& rank) { return rank.calls.empty(); }))
    return result;  // nothing was communicated, which is not a flaw
  result.tables = distributed_tables(tb, ranks, input.for_report);
  if (join.alone > 0 && ranks.size() > 1) result.notes.add(problem::tb_collectives_alone, {}, join.alone);
  result.notes.add(problem::tb_collectives_unequal, {}, join.unequal);
  return result;
}

}  // namespace stageline
