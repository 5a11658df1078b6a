// Computes which kernels an operator launches, and how long its launches take to arrive. Definitions:
// docs/analyses/aten-op-kernels-and-delay.md.
#include "analyses/analysis.h"
#include "analyses/aten_op_kernels_and_delay/problems.h"
#include "model/statistics.h"
#include "profile/name_totals.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

// One launch that one call of an operator made.
struct Launch {
  uint32_t op = 0;  // row
  StringId kernel = 0;
  int64_t op_delay_ns = 0, runtime_delay_ns = 0, kernel_ns = 0;
};

struct OpSequence {  // one row of the answer
  std::string op, sequence;
  int64_t count = 0, kernels = 0;
  double op_delay_ns = 0, runtime_delay_ns = 0;  // sums
  int64_t op_delay_max_ns = 0, kernel_ns = 0;
};

struct RankResult {
  std::vector<OpSequence> rows;
  int64_t unlaunched = 0, unowned = 0;  // device work that is left out; only in the default mode
};

std::string joined(const TorchRun& run, const StringId* first, const StringId* last) {
  std::string text;
  for (; first != last; ++first) {
    if (!text.empty()) text += " -> ";
    text += run.trace->names.text(*first);
  }
  return text;
}

// Makes results from `launches`, in which the launches of one call of an operator stand together in their order.
template <class SameCall>
std::vector<OpSequence> results_of(const TorchRun& run, const TorchRank& rank, const std::vector<Launch>& launches,
                                   SameCall same_call) {
  NameSequences sequences;
  std::vector<int64_t> kernel_ns;  // one for each call
  std::vector<uint32_t> first_of;
  for (uint32_t i = 0; i < launches.size(); ++i) {
    if (i == 0 || !same_call(launches[i - 1], launches[i])) {
      sequences.begin(rank.rows[launches[i].op].name, static_cast<uint32_t>(first_of.size()));
      first_of.push_back(i);
      kernel_ns.push_back(0);
    }
    sequences.add(launches[i].kernel);
    kernel_ns.back() += launches[i].kernel_ns;
  }
  std::vector<OpSequence> out;
  for (const NameSequences::Group& group : sequences.groups()) {
    OpSequence row{.op = std::string(run.trace->names.text(*group.first)),
                   .sequence = joined(run, group.first + 1, group.last),
                   .count = static_cast<int64_t>(group.count()),
                   .kernels = group.last - group.first - 1,
                   .op_delay_max_ns = INT64_MIN};
    for (const uint32_t* call = group.items; call != group.items_end; ++call) {
      const Launch& launch = launches[first_of[*call]];
      row.op_delay_ns += launch.op_delay_ns;
      row.runtime_delay_ns += launch.runtime_delay_ns;
      row.op_delay_max_ns = std::max(row.op_delay_max_ns, launch.op_delay_ns);
      row.kernel_ns += kernel_ns[*call];
    }
    out.push_back(std::move(row));
  }
  std::ranges::sort(out, {}, [](const OpSequence& a) { return std::tie(a.op, a.sequence); });
  return out;
}

bool hta_launch_name(std::string_view name) {
  if (name.starts_with("cuLaunchKernel") || name.starts_with("runFunction")) return true;
  return name.starts_with("cuda") && name.find("LaunchKernel", 4) != std::string_view::npos;
}

// Finds, among the operators that start before a given time, the one with the latest start whose end is late enough. It
// is a tree of maxima over the ends.
class OperatorsByStart {
 public:
  explicit OperatorsByStart(const TorchRank& rank, const std::vector<uint8_t>& is_op) : rank_(rank) {
    for (size_t i = 0; i < rank.rows.size(); ++i)
      if (is_op[rank.rows[i].name]) ops_.push_back(static_cast<uint32_t>(i));
    sort_stably(ops_, {}, [&](int32_t op) { return start(op); });
    // One more than there are operators, so that a prefix is never the whole tree.
    while (leaves_ <= ops_.size()) leaves_ *= 2;
    most_.assign(2 * leaves_, INT64_MIN);
    for (size_t i = 0; i < ops_.size(); ++i) most_[leaves_ + i] = rank_.rows[ops_[i]].end_ns();
    for (size_t i = leaves_; i-- > 1;) most_[i] = std::max(most_[2 * i], most_[2 * i + 1]);
  }

  // Returns the operator's row, or −1. Among equal starts it returns the first row of the table, which is usually the
  // outermost operator (F20).
  int64_t around(int64_t from_ns, int64_t to_ns) const {
    const auto after =
        std::upper_bound(ops_.begin(), ops_.end(), from_ns, [&](int64_t at, uint32_t op) { return at < start(op); });
    const int64_t latest = last_before(after - ops_.begin(), to_ns);
    if (latest < 0) return -1;
    const int64_t at = start(ops_[latest]);
    size_t k = std::lower_bound(ops_.begin(), ops_.end(), at, [&](uint32_t op, int64_t t) { return start(op) < t; }) -
               ops_.begin();
    while (rank_.rows[ops_[k]].end_ns() < to_ns) ++k;
    return ops_[k];
  }

 private:
  int64_t start(uint32_t op) const { return rank_.rows[op].start_ns; }
  // Returns the last place below `end` whose operator ends at `to_ns` or later.
  int64_t last_before(size_t end, int64_t to_ns) const {
    for (size_t hi = leaves_ + end; hi > 1; hi /= 2)
      if (hi & 1)
        if (most_[--hi] >= to_ns) return descend(hi, to_ns);
    return -1;
  }
  int64_t descend(size_t node, int64_t to_ns) const {
    while (node < leaves_) node = most_[2 * node + 1] >= to_ns ? 2 * node + 1 : 2 * node;
    return node - leaves_;
  }

  const TorchRank& rank_;
  std::vector<uint32_t> ops_;
  size_t leaves_ = 1;
  std::vector<int64_t> most_;
};

Result<RankResult> hta_result(const TorchRun& run, const TorchRank& rank) {
  RankResult result;
  std::vector<uint8_t> is_op(run.trace->names.size()), is_launch(is_op.size());
  for (StringId id = 0; id < is_op.size(); ++id) {
    is_op[id] = run.trace->names.text(id).starts_with("aten::");
    is_launch[id] = hta_launch_name(run.trace->names.text(id));
  }
  const OperatorsByStart ops(rank, is_op);
  // The device rows of each launch.
  constexpr uint32_t kNone = UINT32_MAX, kSeveral = UINT32_MAX - 1;
  std::vector<uint32_t> kernel_at(rank.rows.size(), kNone);
  for (size_t i = 0; i < rank.rows.size(); ++i)
    if (rank.rows[i].stream != -1 && rank.rows[i].partner_index > 0 && rank.rows[i].partner >= 0) {
      uint32_t& at = kernel_at[rank.rows[i].partner];
      at = at == kNone ? static_cast<uint32_t>(i) : kSeveral;
    }
  std::vector<Launch> launches;
  for (size_t i = 0; i < rank.rows.size(); ++i) {
    const TorchRow& row = rank.rows[i];
    if (!is_launch[row.name]) continue;
    const int64_t op = ops.around(row.start_ns, row.end_ns());
    if (op < 0) continue;
    const uint32_t at = kernel_at[i];
    if (at == kNone || at == kSeveral) {
      return make_error(ErrorCode::kBadInput, "ValueError: can only convert an array of size 1 to a Python scalar",
                        std::string("the launch at traceEvents[") + std::to_string(row.index) + "] has " +
                            (at == kNone ? "no device row" : "several device rows") +
                            ", which HTA does not survive; without --compat hta it is counted as it is",
                        {rank.part->source});
    }
    const TorchRow &kernel = rank.rows[at], &around = rank.rows[op];
    launches.push_back({static_cast<uint32_t>(op), kernel.name, row.start_ns - around.start_ns,
                        kernel.start_ns - row.start_ns, kernel.dur_ns});
  }
  if (launches.empty())
    return make_error(ErrorCode::kBadInput, "KeyError: 'thread_id'",
                      "HTA found no launch (cuda…LaunchKernel, cuLaunchKernel) below an aten operator",
                      {rank.part->source});
  // Launches belong to the same call when tid, name and start of the operator are equal.
  const std::vector<Lane>& lanes = rank.part->lanes;
  const auto compare = [&](const Launch& a, const Launch& b) {
    const TorchRow &x = rank.rows[a.op], &y = rank.rows[b.op];
    if (x.start_ns != y.start_ns) return x.start_ns < y.start_ns ? -1 : 1;
    if (x.name != y.name) return x.name < y.name ? -1 : 1;
    return x.lane == y.lane ? 0 : lanes[x.lane].tid.compare(lanes[y.lane].tid);
  };
  sort_stably(launches, [&](const Launch& a, const Launch& b) { return compare(a, b) < 0; });
  result.rows = results_of(run, rank, launches, [&](const Launch& a, const Launch& b) { return compare(a, b) == 0; });
  return result;
}

RankResult exact_result(const TorchRun& run, const TorchRank& rank, const std::vector<uint8_t>& is_op) {
  RankResult result;
  const Slices& s = rank.part->slices;
  std::vector<int32_t> row_of(s.size(), -1);
  for (uint32_t i = 0; i < rank.rows.size(); ++i) row_of[rank.rows[i].slice] = i;
  const auto operator_above = [&](uint32_t slice) {
    uint32_t at = s.parent[slice];
    while (at != kNoSliceIndex && !is_op[s.name_id[at]]) at = s.parent[at];
    return at;
  };
  std::vector<Launch> launches;
  std::vector<std::pair<int64_t, int64_t>> when;  // start of the launch, start of the kernel
  for (const TorchRow& kernel : rank.rows) {
    if (!kernel.on_device) continue;
    if (kernel.partner < 0) {
      ++result.unlaunched;
      continue;
    }
    const TorchRow& launch = rank.rows[kernel.partner];
    uint32_t at = operator_above(launch.slice);
    // The launch was called on another thread; the profile records for which operator.
    if (at == kNoSliceIndex) at = operator_above(kernel.slice);
    if (at == kNoSliceIndex || row_of[at] < 0) {
      ++result.unowned;
      continue;
    }
    const uint32_t op = row_of[at];
    launches.push_back(
        {op, kernel.name, launch.start_ns - rank.rows[op].start_ns, kernel.start_ns - launch.start_ns, kernel.dur_ns});
    when.emplace_back(launch.start_ns, kernel.start_ns);
  }
  std::vector<uint32_t> order(launches.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  sort_stably(order, {}, [&](uint32_t a) { return std::tie(launches[a].op, when[a]); });
  auto sorted = mapped<Launch>(order, [&](const uint32_t i) { return launches[i]; });
  result.rows = results_of(run, rank, sorted, [](const Launch& a, const Launch& b) { return a.op == b.op; });
  return result;
}

using Key = double (*)(const OpSequence&);

Result<std::vector<Key>> sort_keys(const AnalysisInput& input) {
  std::vector<std::string> names = input.options.list("sort-by");
  if (names.empty()) names = {"occurrence_count"};
  std::vector<Key> keys;
  for (const std::string& name : names) {
    if (name == "occurrence_count") {
      keys.push_back([](const OpSequence& r) { return static_cast<double>(r.count); });
    } else if (name == "avg_aten_op_launch_delay" || name == "avg_launch_delay_ns") {
      keys.push_back([](const OpSequence& r) { return r.op_delay_ns / r.count; });
    } else if (name == "avg_runtime_delay" || name == "avg_runtime_delay_ns") {
      keys.push_back([](const OpSequence& r) { return r.runtime_delay_ns / r.count; });
    } else if (name == "kernel_ns" && !input.hta) {
      keys.push_back([](const OpSequence& r) { return static_cast<double>(r.kernel_ns); });
    } else {
      return make_error(ErrorCode::kUsage, "--sort-by knows no \"" + name + "\"",
                        input.hta ? "occurrence_count, avg_aten_op_launch_delay, avg_runtime_delay"
                                  : "occurrence_count, avg_launch_delay_ns, avg_runtime_delay_ns, kernel_ns");
    }
  }
  return keys;
}

}  // namespace

Result<AnalysisResult> run_aten_op_kernels_and_delay(const AnalysisInput& input) {
  TRY(keys, sort_keys(input));
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  const std::string prefix = input.options.text("operators", "aten::");
  std::vector<uint8_t> is_op;
  if (!input.hta)
    for (StringId id = 0; id < torch->trace->names.size(); ++id)
      is_op.push_back(torch->trace->names.text(id).starts_with(prefix));
  const auto before = [&](const OpSequence& a, const OpSequence& b) {
    for (const Key key : *keys)
      if (key(a) != key(b)) return key(a) > key(b);
    return false;
  };
  TRY(found, try_ranks(*torch, [&](const TorchRank& rank) {
        Result<RankResult> result = input.hta ? hta_result(*torch, rank) : exact_result(*torch, rank, is_op);
        if (result) sort_stably(result->rows, before);
        return result;
      }));
  std::vector<RankResult>& ranks = *found;
  AnalysisResult result = answer_of(*torch);
  Table table(declared_table("aten-op-kernels-and-delay/aten-op-kernels-and-delay", input.hta ? "hta" : ""));
  for (size_t k = 0; k < ranks.size(); ++k) {
    const int64_t rank = torch->ranks[torch->parts[k]];
    const Where where = {torch->trace->parts[torch->parts[k]].source};
    result.notes.add(problem::aten_no_launch, where, ranks[k].unlaunched);
    result.notes.add(problem::aten_no_operator, where, ranks[k].unowned);
    for (OpSequence& r : ranks[k].rows) {
      const double n = r.count;
      if (input.hta) {
        table.add_row({rank, std::move(r.op), std::move(r.sequence), r.count, round_to(r.op_delay_ns / n / 1000, 3),
                       round_to(r.runtime_delay_ns / n / 1000, 3)});
      } else {
        table.add_row({rank, std::move(r.op), std::move(r.sequence), r.count, r.kernels, r.kernel_ns,
                       std::llround(r.op_delay_ns / n), r.op_delay_max_ns, std::llround(r.runtime_delay_ns / n)});
      }
    }
  }
  return result.with(std::move(table));
}

}  // namespace stageline
