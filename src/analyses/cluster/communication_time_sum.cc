// How long communication operations took, and what of it was transfer, waiting and neither.
// Definitions: docs/analyses/communication-time-sum.md.
//
//   operation   ├──────────────────────────────────────┤  elapse
//   plane 1         ├ wait ┤├ copy ┤├ wait ┤├ copy ┤
//   plane 2       ├ ─ ─ wait ─ ─ ─ ┤├─ copy ─┤
//   transit                  ├──────────────┤├─────┤       union of data tasks over all planes
//   wait          ├─────────┤                              union of wait tasks, without transit
//   synchronisation: waiting before the first transit; idle: the rest of elapse
#include <algorithm>
#include <map>
#include <tuple>

#include "analyses/analysis.h"
#include "analyses/cluster/communication_ops.h"
#include "analyses/cluster/durations.h"
#include "analyses/cluster/transfers.h"
#include "base/number.h"
#include "base/parallel.h"
#include "model/intervals.h"

namespace stageline {
namespace {

using Type = ColumnType;

enum class Basis : uint8_t { kNone, kMatched, kTasks };
constexpr const char* basis_text(Basis basis) {
  return basis == Basis::kTasks ? "tasks" : basis == Basis::kMatched ? "other ranks" : "";
}

struct OpTime {
  CommunicationOp op;
  Basis basis = Basis::kNone;
  int64_t transit_ns = 0, wait_ns = 0, sync_ns = 0;
  int64_t idle_ns() const { return op.dur_ns - transit_ns - wait_ns; }
};

struct Task {
  uint32_t op = 0;
  int64_t start = 0, end = 0;
  int32_t plane = 0;
  bool wait = false, data = false;
};

std::vector<Task> tasks_of(const TorchRun& run, const Part& part) {
  std::vector<Task> tasks;
  for (const TransferFact& fact : part.transfers) {
    if (fact.op == kNoSliceIndex) continue;
    Task task;
    task.op = fact.op;
    task.start = part.slices.start_ns[fact.slice] - run.zero_ns;
    task.end = task.start + part.slices.dur_ns[fact.slice];
    task.plane = fact.plane;
    task.wait = is_wait_task(run.trace->names.text(fact.task));
    // Copies within a device prepare or finish an operation; they are no transit.
    task.data = !task.wait && fact.bytes > 0 && fact.src_rank != fact.dst_rank && fact.dst_rank >= 0 &&
                run.trace->names.text(fact.transport) != "LOCAL";
    if (task.wait || task.data) tasks.push_back(task);
  }
  std::sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) {
    return std::tie(a.op, a.start, a.end) < std::tie(b.op, b.start, b.end);
  });
  return tasks;
}

// Over all planes.
void fill_exact(const Task* begin, const Task* end, OpTime& time) {
  std::vector<Interval> transit, wait;
  for (const Task* task = begin; task != end; ++task) {
    const Interval clipped{std::max(task->start, time.op.start_ns), std::min(task->end, time.op.end_ns())};
    if (clipped.start >= clipped.end) continue;
    (task->data ? transit : wait).push_back(clipped);
  }
  transit = union_of(std::move(transit));
  wait = without(union_of(std::move(wait)), transit);
  time.basis = Basis::kTasks;
  time.transit_ns = length_of(transit);
  time.wait_ns = length_of(wait);
  for (const Interval& i : wait)
    if (transit.empty() || i.end <= transit.front().start) time.sync_ns += i.end - i.start;
}

// As the profiler's own sums have it: of the first plane that moves data; what waits on another plane is idle there.
void fill_rival(const Task* begin, const Task* end, OpTime& time) {
  int32_t plane = INT32_MAX, any = INT32_MAX;
  for (const Task* task = begin; task != end; ++task) {
    any = std::min(any, task->plane);
    if (task->data) plane = std::min(plane, task->plane);
  }
  if (plane == INT32_MAX) plane = any;
  time.basis = Basis::kTasks;
  for (const Task* task = begin; task != end; ++task) {
    if (task->plane != plane) continue;
    if (task->data) {
      time.transit_ns += task->end - task->start;
      continue;
    }
    time.wait_ns += task->end - task->start;
    if (time.transit_ns == 0) time.sync_ns += task->end - task->start;
  }
}

std::vector<OpTime> times_of(const TorchRun& run, const std::vector<CommunicationOp>& ops, const Part& part,
                             bool msprof) {
  const std::vector<Task> tasks = tasks_of(run, part);
  std::vector<OpTime> out;
  for (const CommunicationOp& op : ops) {
    OpTime time;
    time.op = op;
    const auto begin = std::lower_bound(tasks.begin(), tasks.end(), op.slice,
                                        [](const Task& task, uint32_t slice) { return task.op < slice; });
    auto end = begin;
    while (end != tasks.end() && end->op == op.slice) ++end;
    if (begin != end) {
      (msprof ? fill_rival : fill_exact)(&*begin, &*begin + (end - begin), time);
    } else if (op.transfer_ns >= 0 && !msprof) {
      time.basis = Basis::kMatched;
      time.transit_ns = op.transfer_ns;
      time.wait_ns = time.sync_ns = op.wait_ns();
    }
    out.push_back(time);
  }
  return out;
}

struct Sum {
  int64_t count = 0, elapse = 0, transit = 0, wait = 0, sync = 0, idle = 0;
  Basis basis = Basis::kNone;
  void add(const OpTime& time) {
    ++count;
    elapse = sum_or_limit(elapse, time.op.dur_ns);
    if (time.basis == Basis::kNone) return;
    basis = std::max(basis, time.basis);
    transit = sum_or_limit(transit, time.transit_ns);
    wait = sum_or_limit(wait, time.wait_ns);
    sync = sum_or_limit(sync, time.sync_ns);
    idle = sum_or_limit(idle, time.idle_ns());
  }
};

std::vector<ColumnSpec> columns_with(std::vector<ColumnSpec> keys) {
  for (const ColumnSpec& column : std::vector<ColumnSpec>{
           {"elapse_ns", "elapse", Type::kDuration, "Start to end of the operation"},
           {"transit_ns", "transit", Type::kDuration, "Data moves to or from another rank, on any plane"},
           {"wait_ns", "waiting", Type::kDuration, "Waits for another rank and nothing moves"},
           {"synchronization_ns", "synchronisation", Type::kDuration,
            "Waiting before the first transit: others come late"},
           {"idle_ns", "idle", Type::kDuration, "Neither: launches, local copies, gaps"},
           {"wait_share", "waiting", Type::kShare, "Waiting / (transit + waiting)"},
           {"synchronization_share", "synchronisation", Type::kShare, "Synchronisation / (transit + synchronisation)"},
           {"basis", "from", Type::kText,
            "tasks of the operation; or other ranks: all but the shortest duration of the same collective is waiting"}})
    keys.push_back(column);
  return keys;
}

std::vector<Table::Value> behind(std::vector<Table::Value> keys, const Sum& sum) {
  const bool known = sum.basis != Basis::kNone;
  keys.emplace_back(sum.elapse);
  for (const int64_t ns : {sum.transit, sum.wait, sum.sync, sum.idle}) keys.emplace_back(known ? ns : kNullInteger);
  for (const int64_t ns : {sum.wait, sum.sync})
    keys.emplace_back(share_or_nan(static_cast<double>(ns), static_cast<double>(sum_or_limit(sum.transit, ns))));
  keys.emplace_back(std::string(basis_text(sum.basis)));
  return keys;
}

Result<AnalysisResult> run(const AnalysisInput& input) {
  Result<TorchRun> torch = make_torch_run(*input.trace, {.include_last_step = true});
  if (!torch) return std::move(torch).error();
  std::vector<std::vector<CommunicationOp>> ops = all_communication_ops(*torch);
  const Matched matched = match_collectives(ops);
  std::vector<std::vector<OpTime>> ranks(ops.size());
  parallel_for(ranks.size(), [&](size_t k) {
    ranks[k] = times_of(*torch, ops[k], torch->trace->parts[torch->parts[k]], input.msprof);
  });
  const auto text = [&](StringId id) { return std::string(torch->trace->names.text(id)); };
  using Key = std::tuple<int64_t, std::string_view, std::string_view, std::string_view>;
  std::map<Key, Sum> groups;
  Table each("communication-times", "Communication operations",
             columns_with({{"rank", "rank", Type::kInteger, "Global rank"},
                           {"step", "step", Type::kInteger, "Step of its launch; empty outside"},
                           {"name", "operation", Type::kText, "As the profiler numbers it"},
                           {"group", "group", Type::kText, "Communicator"},
                           {"start_ns", "start", Type::kTime, "From the run's first slice, by the rank's own clock"}}));
  for (size_t k = 0; k < ranks.size(); ++k) {
    const int64_t number = torch->ranks[torch->parts[k]];
    for (const OpTime& time : ranks[k]) {
      const auto name = [&](StringId id) { return torch->trace->names.text(id); };
      groups[{number, name(time.op.group), name(time.op.description), name(time.op.kind)}].add(time);
      if (input.for_report) continue;
      Sum one;
      one.add(time);
      each.add_row(behind({number, time.op.step < 0 ? kNullInteger : int64_t{time.op.step}, text(time.op.name),
                           text(time.op.group), time.op.start_ns},
                          one));
    }
  }
  Table sums("communication-time-sum", "Communication by rank, group and type",
             columns_with({{"rank", "rank", Type::kInteger, "Global rank"},
                           {"group", "group", Type::kText, "Communicator"},
                           {"group_description", "kind of group", Type::kText, "tp, pp, dp, … where the profile says"},
                           {"kind", "operation", Type::kText, "allReduce, send, …"},
                           {"count", "operations", Type::kInteger, ""}}));
  for (const auto& [key, sum] : groups) {
    const auto& [number, group, description, kind] = key;
    sums.add_row(behind({number, std::string(group), std::string(description), std::string(kind), sum.count}, sum));
  }
  AnalysisResult result;
  if (!input.msprof) note_unmatched(matched, ranks.size(), result.notes);
  result.tables.push_back(std::move(sums));
  if (!input.for_report) result.tables.push_back(std::move(each));
  return result;
}

}  // namespace

extern const Analysis communication_time_sum_analysis;
const Analysis communication_time_sum_analysis = {
    .name = "communication-time-sum",
    .summary = "transfer, waiting and idle time inside communication operations",
    .tables = {{"communication-time-sum", "one row per rank, group and type of operation"},
               {"communication-times", "one row per operation (not in reports)"}},
    .run = run,
    .needs = AnalysisNeeds::kTorch,
    .compat = "msprof",
    .in_report = false};

}  // namespace stageline
