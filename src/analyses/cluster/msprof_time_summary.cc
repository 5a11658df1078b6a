#include "analyses/cluster/msprof.h"

namespace stageline {
namespace {

struct Row {
  double step_us = NAN, computing = 0, exposed = 0, overlapped = 0, communication = 0, free = 0;
  double wait = 0, transmit = 0, memory = 0, memory_alone = 0;
};
using Rows = std::map<std::pair<int64_t, int64_t>, Row>;  // for each rank and step

double us(int64_t ns) { return ns < 0 ? 0 : ns / 1000.0; }

// Returns the step of a host time: the first window that contains it, with both ends included. INT64_MIN means outside
// of steps; msprof-analyze drops such times.
int64_t step_at(const Part& part, int64_t time_ns) {
  if (part.steps.empty()) return -1;
  const auto after = std::ranges::upper_bound(part.steps, time_ns, {}, &ProfilerStep::start_ns);
  if (after == part.steps.begin()) return INT64_MIN;
  const ProfilerStep& step = *(after - 1);
  return time_ns <= step.end_ns ? step.number : INT64_MIN;
}

enum class Kind : uint8_t { kNone, kWork, kMemory };
struct Busy {
  int64_t start = 0, end = 0;
  Kind kind = Kind::kNone;
};

// Returns the time of copies that is in no earlier interval, by msprof-analyze's sweep. The sweep forgets a copy that
// ends within a later interval.
int64_t memory_alone_ns(const std::vector<Busy>& sorted) {
  int64_t sum = 0;
  Busy at{sorted[0].start, sorted[0].start, Kind::kNone};
  for (const Busy& next : sorted) {
    if (at.kind == Kind::kMemory) sum += std::max<int64_t>(0, std::min(at.end, next.start) - at.start);
    if (next.start > at.end) {
      at = next;
      continue;
    }
    const bool longer = next.end > at.end;
    if (longer) at.kind = next.kind;
    at.start = longer ? at.end : next.end;
    at.end = std::max(at.end, next.end);
  }
  return at.kind == Kind::kMemory ? sum + at.end - at.start : sum;
}

void add_memory(const TorchRun& run, const TorchRank& rank, const Part& part, int64_t number, Rows& rows) {
  std::map<int64_t, std::vector<Busy>> by_step;
  for (const TorchRow& row : rank.rows) {
    if (!row.on_device) continue;
    const bool memory = row.category == Category::kMemcpy;
    const uint32_t launch = part.slices.partner[row.slice];
    if (!memory && (launch == kNoSliceIndex || row.dur_ns == 0)) continue;
    const int64_t time = memory ? row.start_ns + run.zero_ns : part.slices.start_ns[launch];
    const int64_t step = step_at(part, time);
    if (step != INT64_MIN) by_step[step].push_back({row.start_ns, row.end_ns(), memory ? Kind::kMemory : Kind::kWork});
  }
  for (auto& [step, list] : by_step) {
    int64_t memory = 0;
    for (const Busy& busy : list) memory += busy.kind == Kind::kMemory ? busy.end - busy.start : 0;
    if (std::ranges::none_of(list, [](const Busy& b) { return b.kind == Kind::kMemory; })) continue;
    sort_stably(list, {}, [](const Busy& a) { return std::tie(a.start, a.end); });
    Row& row = rows[{number, step}];
    row.memory = us(memory);
    row.memory_alone = us(memory_alone_ns(list));
  }
}

std::set<int64_t> numbers_in(std::string_view text) {
  std::set<int64_t> out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] < '0' || text[i] > '9') {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (const auto value = parse_int(text.substr(i, end - i))) out.insert(*value);
    i = end;
  }
  return out;
}

// Adds waiting: among operations of one name, group and step, the shortest duration counts as the transfer time of all
// of them. Returns true when some group was complete.
bool add_waits(const TorchRun& run, const std::vector<std::vector<CommunicationOp>>& ranks, Rows& rows) {
  struct One {
    int64_t rank = 0, dur_ns = 0;
  };
  struct Ops {
    const std::set<int64_t>* members = nullptr;
    std::vector<One> list;
  };
  const StringPool& names = run.trace->names;
  std::map<std::tuple<std::string_view, std::string_view, int64_t>, Ops> all;
  std::map<StringId, std::set<int64_t>> members;
  for (size_t k = 0; k < ranks.size(); ++k) {
    const Part& part = run.trace->parts[run.parts[k]];
    for (const CommunicationOp& op : ranks[k]) {
      const uint32_t launch = part.slices.partner[op.slice];
      if (launch == kNoSliceIndex) continue;
      const int64_t step = step_at(part, part.slices.start_ns[launch]);
      if (step == INT64_MIN) continue;
      Ops& ops = all[{names.text(op.group), names.text(op.name), step}];
      auto [it, fresh] = members.try_emplace(op.group_ranks);
      if (fresh) it->second = numbers_in(names.text(op.group_ranks));
      if (!ops.members || ops.members->empty()) ops.members = &it->second;
      ops.list.push_back({run.ranks[run.parts[k]], op.dur_ns});
    }
  }
  bool any = false;
  for (const auto& [key, ops] : all) {
    std::set<int64_t> there;
    int64_t min = INT64_MAX;
    for (const One& one : ops.list) {
      there.insert(one.rank);
      min = std::min(min, one.dur_ns);
    }
    if (!std::includes(there.begin(), there.end(), ops.members->begin(), ops.members->end())) continue;
    any = true;
    for (const One& one : ops.list) {
      Row& row = rows[{one.rank, std::get<2>(key)}];
      row.wait += us(one.dur_ns - min);
      row.transmit += us(min);
    }
  }
  return any;
}

}  // namespace

Table msprof_time_summary(const TorchRun& run, const std::vector<std::vector<CommunicationOp>>& ranks) {
  Table table(declared_table("cluster-time-summary/cluster-time-summary/msprof"));
  Rows rows;
  bool summed = false;
  std::vector<Rows> memory(run.parts.size());
  parallel_for(memory.size(), [&](size_t k) {
    const size_t p = run.parts[k];
    add_memory(run, *torch_rank(run, p), run.trace->parts[p], run.ranks[p], memory[k]);
  });
  for (const Rows& own : memory) rows.insert(own.begin(), own.end());
  for (const size_t p : run.parts) {
    const Part& part = run.trace->parts[p];
    for (const ProfilerStep& step : part.steps)
      rows[{run.ranks[p], step.number}].step_us = us(step.end_ns - step.start_ns);
    for (const StepSummary& sum : part.step_summaries) {
      summed = true;
      Row& row = rows[{run.ranks[p], sum.step}];
      row.computing = us(sum.computing_ns);
      row.exposed = us(sum.communication_not_overlapped_ns);
      row.overlapped = us(sum.overlapped_ns);
      row.communication = us(sum.communication_ns);
      row.free = us(sum.free_ns);
    }
  }
  if (!summed || !add_waits(run, ranks, rows)) return table;
  for (const auto& [key, row] : rows) {
    const bool alone = run.parts.size() == 1;
    const double step_us = std::isnan(row.step_us) ? row.computing + row.exposed + row.free : row.step_us;
    table.add_row({key.first, key.second, step_us, row.computing, row.exposed, row.overlapped, row.communication,
                   row.free - row.memory_alone, alone ? 0 : row.wait, alone ? 0 : row.transmit, row.memory,
                   row.memory_alone});
  }
  return table;
}

}  // namespace stageline
