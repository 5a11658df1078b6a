// The tables of tb-distributed as in TensorBoard's profiler plugin: with its words, in microseconds, with its rounding.
#include <unordered_map>

#include "analyses/tensorboard/tb_distributed_tables.h"
#include "model/statistics.h"

namespace stageline {
namespace {

using Type = ColumnType;

Table overlap_table(const std::vector<TbRankWork>& ranks, bool by_step) {
  std::vector<ColumnSpec> columns = {{"Worker", "rank", Type::kInteger, ""}};
  if (by_step) columns.push_back({"Step", "step", Type::kText, ""});
  for (const char* name : {"Computation", "Overlapping", "Communication", "Other"})
    columns.push_back({name, name, Type::kReal, ""});
  Table table(by_step ? "overlap-by-step" : "overlap", "Computation/Communication overview, us (TensorBoard plugin)",
              std::move(columns));
  for (const TbRankWork& r : ranks) {
    TbOverlap sum;
    for (size_t i = 0; i < r.steps.size(); ++i) {
      const TbOverlap& o = r.overlaps[i];
      sum.computation_ns += o.computation_ns;
      sum.overlap_ns += o.overlap_ns;
      sum.communication_ns += o.communication_ns;
      sum.other_ns += o.other_ns;
      if (by_step)
        table.add_row({int64_t{r.rank}, tb_step_name(r.steps[i]), to_us(o.computation_ns), to_us(o.overlap_ns),
                       to_us(o.communication_ns), to_us(o.other_ns)});
    }
    const auto n = static_cast<double>(r.steps.size());
    if (!by_step && n > 0)
      table.add_row({int64_t{r.rank}, to_us(sum.computation_ns) / n, to_us(sum.overlap_ns) / n,
                     to_us(sum.communication_ns) / n, to_us(sum.other_ns) / n});
  }
  return table;
}

Table wait_table(const std::vector<TbRankWork>& ranks, bool by_step) {
  std::vector<ColumnSpec> columns = {{"Worker", "rank", Type::kInteger, ""}};
  if (by_step) columns.push_back({"Step", "step", Type::kText, ""});
  for (const char* name : {"Data Transfer Time", "Synchronizing Time"})
    columns.push_back({name, name, Type::kReal, ""});
  Table table(by_step ? "waits-by-step" : "waits", "Synchronizing/Communication overview, us (TensorBoard plugin)",
              std::move(columns));
  for (const TbRankWork& r : ranks) {
    int64_t transfer_ns = 0, synchronizing_ns = 0;
    for (const TbWait& w : r.waits) {
      transfer_ns += w.transfer_ns;
      synchronizing_ns += w.synchronizing_ns;
      if (by_step)
        table.add_row({int64_t{r.rank}, w.step < 0 ? std::string("None") : tb_step_name(r.steps[w.step]),
                       to_us(w.transfer_ns), to_us(w.synchronizing_ns)});
    }
    const auto n = static_cast<double>(r.waits.size());
    if (!by_step && n > 0) table.add_row({int64_t{r.rank}, to_us(transfer_ns) / n, to_us(synchronizing_ns) / n});
  }
  return table;
}

struct CallSum {
  StringId name = 0;
  int64_t calls = 0, bytes = 0;
  std::vector<Interval> ranges, transfer;
};

std::vector<CallSum> sums_by_name(const PluginCalls& calls) {  // in order of first appearance
  std::vector<CallSum> sums;
  std::unordered_map<StringId, size_t> place;
  for (const PluginCall& call : calls.calls) {
    const auto [it, added] = place.try_emplace(call.name, sums.size());
    if (added) {
      sums.emplace_back();
      sums.back().name = call.name;
    }
    CallSum& sum = sums[it->second];
    ++sum.calls;
    if (__builtin_add_overflow(sum.bytes, call.bytes, &sum.bytes)) sum.bytes = INT64_MAX;
    sum.ranges.insert(sum.ranges.end(), call.ranges.begin(), call.ranges.end());
    sum.transfer.insert(sum.transfer.end(), call.transfer.begin(), call.transfer.end());
  }
  return sums;
}

Table calls_table(const TbRun& run, const std::vector<TbRankWork>& ranks) {
  Table table("collectives", "Communication operations stats (TensorBoard plugin)",
              {{"Worker", "rank", Type::kInteger, ""},
               {"Name", "name", Type::kText, ""},
               {"Calls", "calls", Type::kInteger, ""},
               {"Total Size (bytes)", "total size", Type::kInteger, ""},
               {"Avg Size (bytes)", "mean size", Type::kReal, ""},
               {"Total Latency (us)", "total latency", Type::kReal, ""},
               {"Avg Latency (us)", "mean latency", Type::kReal, ""},
               {"Data Transfer Time (us)", "data transfer", Type::kReal, ""},
               {"Avg Data Transfer Time (us)", "mean data transfer", Type::kReal, ""}});
  for (const TbRankWork& r : ranks)
    for (CallSum& s : sums_by_name(r.plugin)) {
      const double latency = to_us(length_of(union_of(std::move(s.ranges))));
      const double transfer = to_us(length_of(union_of(std::move(s.transfer))));
      const auto n = static_cast<double>(s.calls);
      table.add_row({int64_t{r.rank}, std::string(run.torch.trace->names.text(s.name)), s.calls, s.bytes,
                     round_to(static_cast<double>(s.bytes) / n, 0), latency, round_to(latency / n, 0), transfer,
                     round_to(transfer / n, 0)});
    }
  return table;
}

}  // namespace

Status split_plugin_ranks(const TbRun& run, std::vector<TbRankWork>& ranks) {
  std::vector<PluginCalls> calls(ranks.size());
  for (size_t k = 0; k < ranks.size(); ++k) calls[k] = std::move(ranks[k].plugin);
  if (Status s = split_plugin_calls(run, calls); !s) return s;
  for (size_t k = 0; k < ranks.size(); ++k) ranks[k].plugin = std::move(calls[k]);
  return {};
}

std::vector<Table> plugin_distributed_tables(const TbRun& run, const std::vector<TbRankWork>& ranks, bool brief) {
  std::vector<Table> tables;
  tables.push_back(overlap_table(ranks, false));
  tables.push_back(wait_table(ranks, false));
  tables.push_back(calls_table(run, ranks));
  if (brief) return tables;
  tables.push_back(overlap_table(ranks, true));
  tables.push_back(wait_table(ranks, true));
  return tables;
}

}  // namespace stageline
