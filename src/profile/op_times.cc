#include "model/intervals.h"
#include "model/message_names.h"
#include "profile/communication_ops.h"
#include "profile/transfers.h"

namespace stageline {
namespace {

struct Task {
  uint32_t op = 0;
  int64_t start = 0, end = 0;
  int32_t plane = 0;
  bool wait = false, data = false;
};

std::vector<Task> tasks_of(const TorchRun& run, const Part& part) {
  std::vector<Task> tasks;
  std::unordered_map<StringId, bool> messages;  // indexed by the operation's name
  const auto is_message_op = [&](uint32_t slice) {
    const CollectiveFact* op = fact_of(part.collectives, slice);
    if (!op) return false;
    const auto [at, fresh] = messages.try_emplace(op->name);
    if (fresh) at->second = is_message_name(run.trace->names.text(op->name));
    return at->second;
  };
  for (const TransferFact& fact : part.transfers) {
    if (fact.op == kNoSliceIndex) continue;
    Task task{.op = fact.op, .start = part.slices.start_ns[fact.slice] - run.zero_ns};
    task.end = task.start + part.slices.dur_ns[fact.slice];
    task.plane = fact.plane;
    task.wait = is_wait_task(run.trace->names.text(fact.task));
    // Copies within a device prepare or finish an operation and do not count as transit. The copy of a message often
    // names only its own rank; then the operation shows that it is between two ranks.
    const bool far = fact.dst_rank >= 0 ? fact.src_rank != fact.dst_rank : is_message_op(fact.op);
    task.data = !task.wait && fact.bytes > 0 && far && run.trace->names.text(fact.transport) != "LOCAL";
    if (task.wait || task.data) tasks.push_back(task);
  }
  std::ranges::sort(tasks, {}, [](const Task& a) { return std::tie(a.op, a.start, a.end); });
  return tasks;
}

// Computes the times from the tasks of all planes.
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

// Computes what the profiler's own sums contain: only the first plane that moves data counts, and waiting on another
// plane counts as idle.
void fill_msprof(const Task* begin, const Task* end, OpTime& time) {
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

}  // namespace

std::vector<OpTime> op_times(const TorchRun& run, const std::vector<CommunicationOp>& ops, const Part& part,
                             bool msprof) {
  const std::vector<Task> tasks = tasks_of(run, part);
  std::vector<OpTime> out;
  for (const CommunicationOp& op : ops) {
    OpTime time{.op = op};
    const auto begin = std::ranges::lower_bound(tasks, op.slice, {}, &Task::op);
    auto end = begin;
    while (end != tasks.end() && end->op == op.slice) ++end;
    if (begin != end) {
      (msprof ? fill_msprof : fill_exact)(&*begin, &*begin + (end - begin), time);
    } else if (op.transfer_ns >= 0 && op.all_seen && !msprof) {
      time.basis = Basis::kMatched;
      time.transit_ns = op.transfer_ns;
      time.wait_ns = time.sync_ns = op.wait_ns();
    }
    out.push_back(time);
  }
  return out;
}

}  // namespace stageline
