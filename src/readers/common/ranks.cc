#include "readers/common/ranks.h"

#include "base/parallel.h"
#include "model/intervals.h"
#include "model/problems.h"
#include "model/run_extent.h"
#include "readers/common/relate_slices.h"

namespace stageline {

void number_machines(Trace& trace) {
  std::vector<std::string> names;
  for (const Part& part : trace.parts) {
    if (part.machine_name.empty()) return;
    if (std::ranges::find(names, part.machine_name) == names.end()) names.push_back(part.machine_name);
  }
  sort_stably(names, [](const auto& a, const auto& b) { return natural_less(a, b); });
  for (Part& part : trace.parts)
    part.machine = static_cast<int32_t>(std::ranges::find(names, part.machine_name) - names.begin());
  if (names.size() == 1 && trace.clock != ClockState::kPerRank) trace.clock = ClockState::kShared;
}

namespace {

auto work_key(const Op& op) { return std::tuple(op.rank, op.kind, op.chunk, op.micro_batch); }

// Calls take(i, k, n) for every kept op i: it is the k-th, by start, of n ops that are the same work.
template <class Keep, class Take> void each_repetition(const std::vector<Op>& ops, Keep keep, Take take) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < ops.size(); ++i)
    if (keep(ops[i])) order.push_back(i);
  sort_stably(order, {}, [&](uint32_t a) { return std::tuple(work_key(ops[a]), ops[a].start_ns, a); });
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && work_key(ops[order[end]]) == work_key(ops[order[begin]])) ++end;
    for (size_t k = begin; k < end; ++k) take(order[k], k - begin, end - begin);
    begin = end;
  }
}

// Appends all of `one` but its cells.
void join_part(Trace& trace, Trace& one) {
  FileNames names;
  for (uint32_t id = 0; id < one.names.size(); ++id) names.names.emplace_back(one.names.text(id));
  names.categories = std::move(one.categories);
  const NameMap map = adopt_names(names, trace);
  for (Part& own : one.parts) {
    rename_part(map, own);
    trace.parts.push_back(std::move(own));
  }
  trace.diagnostics.merge(one.diagnostics);
}

}  // namespace

void number_steps(std::vector<Op>& ops, std::string_view format, std::string_view unit, Diagnostics& diagnostics) {
  const auto numbered = [](const Op& op) { return is_compute(op.kind) && op.micro_batch != kUnknown; };
  for (Op& op : ops) op.step = 0;
  std::map<int32_t, std::vector<Span>> rounds;  // for each rank its rounds of work
  size_t min_rounds = SIZE_MAX, max_rounds = 0;
  std::vector<uint32_t> round_of(ops.size(), 0);
  each_repetition(ops, numbered, [&](uint32_t i, size_t k, size_t n) {
    min_rounds = std::min(min_rounds, n);
    max_rounds = std::max(max_rounds, n);
    round_of[i] = static_cast<uint32_t>(k);
    std::vector<Span>& of_rank = rounds[ops[i].rank];
    if (of_rank.size() <= k) of_rank.resize(k + 1);
    of_rank[k].add(ops[i].start_ns, ops[i].end_ns);
  });
  Args args;
  args.set("unit", words("unit." + std::string(unit))).set("times", grouped(max_rounds));
  if (max_rounds <= 1) {
    diagnostics.add(problem::reader_no_steps.of(format), args);
    return;
  }
  bool in_order = min_rounds == max_rounds;
  for (const auto& [rank, spans] : rounds)
    for (size_t k = 0; k + 1 < spans.size(); ++k) in_order = in_order && spans[k].end_ns <= spans[k + 1].start_ns;
  if (!in_order) {
    diagnostics.add(problem::reader_steps_missing.of(format), args);
    return;
  }
  diagnostics.add(problem::reader_steps_numbered.of(format), args);
  const auto round_at = [&](const Op& op) {  // the last round of the op's rank that has begun when the op starts
    const auto spans = rounds.find(op.rank);
    if (spans == rounds.end()) return int32_t{0};
    const auto after = std::ranges::upper_bound(spans->second, op.start_ns, {}, &Span::start_ns);
    return static_cast<int32_t>(std::max<std::ptrdiff_t>(0, after - spans->second.begin() - 1));
  };
  for (size_t i = 0; i < ops.size(); ++i)
    ops[i].step = numbered(ops[i]) ? static_cast<int32_t>(round_of[i]) : round_at(ops[i]);
  // A receive may be posted while the previous step still runs, so its micro-batch says more than its start.
  each_repetition(
      ops, [](const Op& op) { return is_message(op.kind) && op.micro_batch != kUnknown; },
      [&](uint32_t i, size_t k, size_t n) {
        if (n == max_rounds) ops[i].step = static_cast<int32_t>(k);
      });
}

void settle_steps(std::vector<Op>& ops, std::string_view format, std::string_view unit, Trace& trace) {
  if (std::ranges::none_of(ops, [](const Op& op) { return op.step != kUnknown; }))
    number_steps(ops, format, unit, trace.diagnostics);
  number_compute(ops, format, trace.diagnostics);
  number_messages(ops, format, trace.diagnostics);
  if (steps_restart(ops) && lay_steps_end_to_end(ops)) {
    trace.steps_laid_end_to_end = true;
    trace.diagnostics.add(problem::reader_steps_laid_end_to_end.of(format));
  }
  settle_lossy_steps(trace);
}

void join_ranks(Trace& trace, std::vector<Trace> ranks) {
  std::vector<int32_t> first_part;  // of each
  for (Trace& one : ranks) {
    first_part.push_back(static_cast<int32_t>(trace.parts.size()));
    join_part(trace, one);
  }
  Cells& cells = trace.cells;
  const auto append = [&](auto Cells::* column) {
    return [&ranks, &to = cells.*column, column] {
      for (const Trace& one : ranks) to.insert(to.end(), (one.cells.*column).begin(), (one.cells.*column).end());
    };
  };
  // A column is mostly new memory, and each takes as long as its bytes.
  const std::function<void()> columns[] = {append(&Cells::start_ns),
                                           append(&Cells::end_ns),
                                           append(&Cells::step),
                                           [&] {
                                             for (size_t i = 0; i < ranks.size(); ++i)
                                               for (const int32_t own : ranks[i].cells.part)
                                                 cells.part.push_back(first_part[i] + own);
                                           },
                                           append(&Cells::chunk),
                                           append(&Cells::micro_batch),
                                           append(&Cells::slice),
                                           append(&Cells::kind)};
  parallel_for(std::size(columns), [&](size_t i) { columns[i](); });
}

void join_rank(Trace& trace, Trace one) {
  std::vector<Trace> ranks;
  ranks.push_back(std::move(one));
  join_ranks(trace, std::move(ranks));
}

}  // namespace stageline
