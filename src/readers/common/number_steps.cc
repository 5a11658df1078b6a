#include "readers/common/number_steps.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "base/number.h"
#include "model/intervals.h"
#include "model/lossy_steps.h"
#include "model/problems.h"

namespace stageline {
namespace {

auto work_key(const Op& op) { return std::tuple(op.rank, op.kind, op.chunk, op.micro_batch); }

// Calls take(i, k, n) for every kept op i: it is the k-th, by start, of n ops that are the same work.
template <class Keep, class Take>
void each_repetition(const std::vector<Op>& ops, Keep keep, Take take) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < ops.size(); ++i)
    if (keep(ops[i])) order.push_back(i);
  std::ranges::sort(order, {}, [&](uint32_t a) { return std::tuple(work_key(ops[a]), ops[a].start_ns, a); });
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && work_key(ops[order[end]]) == work_key(ops[order[begin]])) ++end;
    for (size_t k = begin; k < end; ++k) take(order[k], k - begin, end - begin);
    begin = end;
  }
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

}  // namespace stageline
