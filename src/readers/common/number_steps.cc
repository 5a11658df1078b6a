#include "readers/common/number_steps.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "base/number.h"
#include "model/problems.h"

namespace stageline {
namespace {

struct Round {  // one round of work on one rank
  int64_t first_start_ns = INT64_MAX, last_end_ns = INT64_MIN;
};

auto work_key(const Op& op) { return std::tuple(op.rank, op.kind, op.chunk, op.micro_batch); }

// Calls take(i, k, n) for every kept op i: it is the k-th, by start, of n ops that are the same work.
template <class Keep, class Take>
void each_repetition(const std::vector<Op>& ops, Keep keep, Take take) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < ops.size(); ++i)
    if (keep(ops[i])) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::tuple(work_key(ops[a]), ops[a].start_ns, a) < std::tuple(work_key(ops[b]), ops[b].start_ns, b);
  });
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
  std::map<int32_t, std::vector<Round>> rounds;  // indexed by rank
  size_t least = SIZE_MAX, most = 0;
  std::vector<uint32_t> round_of(ops.size(), 0);
  each_repetition(ops, numbered, [&](uint32_t i, size_t k, size_t n) {
    least = std::min(least, n);
    most = std::max(most, n);
    round_of[i] = static_cast<uint32_t>(k);
    std::vector<Round>& own = rounds[ops[i].rank];
    if (own.size() <= k) own.resize(k + 1);
    own[k].first_start_ns = std::min(own[k].first_start_ns, ops[i].start_ns);
    own[k].last_end_ns = std::max(own[k].last_end_ns, ops[i].end_ns);
  });
  Args args;
  args.set("unit", words("unit." + std::string(unit))).set("times", grouped(most));
  if (most <= 1) {
    diagnostics.add(problem::reader_no_steps.of(format), args);
    return;
  }
  bool reported = least == most;
  for (const auto& [rank, own] : rounds)
    for (size_t k = 0; k + 1 < own.size(); ++k) reported = reported && own[k].last_end_ns <= own[k + 1].first_start_ns;
  if (!reported) {
    diagnostics.add(problem::reader_steps_missing.of(format), args);
    return;
  }
  diagnostics.add(problem::reader_steps_numbered.of(format), args);
  const auto round_at = [&](const Op& op) {  // the last round of the op's rank that has begun when the op starts
    const auto own = rounds.find(op.rank);
    if (own == rounds.end()) return int32_t{0};
    const auto after = std::upper_bound(own->second.begin(), own->second.end(), op.start_ns,
                                        [](int64_t ns, const Round& round) { return ns < round.first_start_ns; });
    return static_cast<int32_t>(std::max<std::ptrdiff_t>(0, after - own->second.begin() - 1));
  };
  for (size_t i = 0; i < ops.size(); ++i)
    ops[i].step = numbered(ops[i]) ? static_cast<int32_t>(round_of[i]) : round_at(ops[i]);
  // A receive may be posted while the previous step still runs, so its micro-batch says more than its start.
  each_repetition(
      ops, [](const Op& op) { return is_message(op.kind) && op.micro_batch != kUnknown; },
      [&](uint32_t i, size_t k, size_t n) {
        if (n == most) ops[i].step = static_cast<int32_t>(k);
      });
}

}  // namespace stageline
