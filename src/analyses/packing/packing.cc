// Finds the cost of unequal lengths of packed sequences under data, context and pipeline parallelism, and the saving of
// another distribution of the same sequences. Definitions: docs/analyses/packing.md.
#include "analyses/analysis.h"
#include "analyses/packing/problems.h"
#include "base/error_words.h"
#include "diagnosis/causes/cause.h"
#include "facts/pipeline_facts.h"
#include "model/statistics.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {
namespace {

using Batch = std::pair<int64_t, int64_t>;  // replica, micro-batch
template <class Value> using BySteps = std::map<int64_t, std::map<Batch, Value>>;

// Sums over the sequences of a micro-batch. Attention takes time by the squares, all else by the tokens.
struct Load {
  double tokens = 0, squares = 0;
  void add(const Load& other) { tokens += other.tokens, squares += other.squares; }
  void add(double length) { add(Load{length, length * length}); }
  double weighed(const Load& price) const { return tokens * price.tokens + squares * price.squares; }
};
using StepLoads = std::map<Batch, Load>;

struct Lengths {
  BySteps<std::vector<int64_t>> sequences;
  BySteps<Load> loads;
};

Result<Lengths> read_lengths(const AnalysisOptions& options) {
  constexpr int64_t kMaxLength = int64_t{1} << 26;
  TRY(rows, options.table("lengths", {"step", "dp_rank", "micro_batch", "index", "length"}));
  Lengths out;
  for (size_t i = 0; i < rows->size(); i += 5) {
    const int64_t *const row = rows->data() + i, length = row[4];
    if (length > kMaxLength)
      return make_error(ErrorCode::kBadInput, "--lengths: a sequence has " + std::to_string(length) + " tokens");
    out.sequences[row[0]][{row[1], row[2]}].push_back(length);
    out.loads[row[0]][{row[1], row[2]}].add(static_cast<double>(length));
  }
  return out;
}

// Fits the time of the cells of a stage and direction to their lengths: time = constant + tokens · a + squares · b.
struct Fit {
  std::vector<std::pair<Load, double>> points;  // lengths of a cell, and its ns
  Load ns = {};                                 // a token, a square
  double r2 = 0;
  bool explains() const { return r2 >= 0.5 && ns.squares > 0; }

  // Least squares. Lengths that do not vary belong to the constant. Where all packs have equally many tokens, that
  // leaves the squares alone.
  void solve() {
    const double n = static_cast<double>(points.size());
    Load mean;
    double mean_ns = 0, tt = 0, ts = 0, ss = 0, ty = 0, sy = 0, yy = 0;
    for (const auto& [load, took] : points) mean.add(load), mean_ns += took;
    for (const auto& [load, took] : points) {
      const double t = load.tokens - mean.tokens / n, s = load.squares - mean.squares / n, y = took - mean_ns / n;
      tt += t * t, ts += t * s, ss += s * s, ty += t * y, sy += s * y, yy += y * y;
    }
    if (!(ss > 0) || !(yy > 0)) return;
    const double both = tt * ss - ts * ts;
    ns = both > 1e-9 * tt * ss ? Load{(ty * ss - sy * ts) / both, (sy * tt - ty * ts) / both} : Load{0, sy / ss};
    r2 = (ns.tokens * ty + ns.squares * sy) / yy;
  }
};

// Whole micro-batches, the heaviest first, each to the replica that has least so far and has room for one more.
StepLoads distribute(const StepLoads& loads, const Load& price) {
  std::map<int64_t, std::vector<int64_t>> places;  // micro-batches of each replica
  std::vector<const StepLoads::value_type*> heaviest;
  for (const auto& one : loads) places[one.first.first].push_back(one.first.second), heaviest.push_back(&one);
  sort_stably(heaviest, std::greater(), [&](const auto* one) { return one->second.weighed(price); });
  std::set<std::pair<double, int64_t>> least;
  for (const auto& [replica, batches] : places) least.emplace(0, replica);
  std::map<int64_t, size_t> used;
  StepLoads out;
  for (const auto* one : heaviest) {
    const auto [load, replica] = least.extract(least.begin()).value();
    const std::vector<int64_t>& own = places[replica];
    out[{replica, own[used[replica]++]}] = one->second;
    if (used[replica] < own.size()) least.emplace(load + one->second.weighed(price), replica);
  }
  return out;
}

// Puts the same sequences into new packs of at most `cap` tokens, the longest first, each into the lightest pack with
// room. `fits` becomes false where one has room nowhere.
StepLoads pack_again(const std::map<Batch, std::vector<int64_t>>& sequences, double cap, const Load& price,
                     bool& fits) {
  std::vector<int64_t> longest;
  std::set<std::pair<double, Batch>> lightest;
  StepLoads packs;
  for (const auto& [batch, lengths] : sequences) {
    longest.insert(longest.end(), lengths.begin(), lengths.end());
    lightest.emplace(0, batch);
  }
  sort_stably(longest, std::greater());
  for (const int64_t length : longest) {
    auto at = std::ranges::find_if(
        lightest, [&](const auto& pack) { return packs[pack.second].tokens + static_cast<double>(length) <= cap; });
    if (at == lightest.end()) fits = false, at = lightest.begin();
    const Batch batch = at->second;
    lightest.erase(at);
    packs[batch].add(static_cast<double>(length));
    lightest.emplace(packs[batch].weighed(price), batch);
  }
  return packs;
}

double max_over_mean(const std::map<int64_t, Load>& loads, double Load::* of) {
  double sum = 0, max = 0;
  for (const auto& [replica, load] : loads) sum += load.*of, max = std::max(max, load.*of);
  return share_or_zero(max * static_cast<double>(loads.size()), sum);
}

class Packing {
 public:
  Packing(const Run& run, const StepGraph& graph, const Lengths& lengths)
      : cp_(std::max(1, run.trace().context_parallel)), graph_(graph), lengths_(lengths) {
    for (const GraphStep& step : graph.steps)
      for (uint32_t op = step.begin; op < step.end; ++op)
        if (const Load* load = load_of(lengths.loads, step, op)) {
          Fit& fit = fits_[{graph.stage(op), graph.chunk[op], graph.type[op]}];
          fit.points.emplace_back(*load, graph.dur_ns[op]);
        } else if (is_compute(graph.kind[op])) {
          ++without_;
        }
    for (const auto& [step, loads] : lengths.loads)
      for (const auto& [batch, load] : loads) replicas_[step][batch.first].add(load);
    for (auto& [place, fit] : fits_) {
      fit.solve();
      if (fit.explains()) price_.add({std::abs(fit.ns.tokens), fit.ns.squares});
      else fit.ns = {};
    }
  }

  bool any() const { return !fits_.empty(); }
  bool explained() const { return price_.squares > 0; }
  int64_t without() const { return without_; }

  Table fits() const {
    Table table(declared_table("packing/packing-fit"));
    for (const auto& [place, fit] : fits_) {
      const auto [stage, chunk, type] = place;
      table.add_row({known_integer(stage), known_integer(chunk), graph_.types[type].name, std::ssize(fit.points),
                     fit.ns.tokens, fit.ns.squares, fit.r2});
    }
    return table;
  }

  Table steps() const {
    Table table(declared_table("packing/packing-steps"));
    for (const auto& [step, replicas] : replicas_)
      table.add_row({step, max_over_mean(replicas, &Load::tokens), max_over_mean(replicas, &Load::squares),
                     heaviest_of(replicas)});
    return table;
  }

  // Costs and savings are shares of the time from the first start to the last end.
  Table prices(int64_t token_cap) const {
    enum World : size_t { kRecorded, kEven, kDistributed, kPacked, kWorlds };
    bool fits = true;
    std::array<BySteps<Load>, kWorlds> worlds;
    double cap = static_cast<double>(token_cap);
    for (const auto& [step, loads] : lengths_.loads)
      for (const auto& [batch, load] : loads) cap = std::max(cap, token_cap > 0 ? 0 : load.tokens);
    for (const auto& [step, loads] : lengths_.loads) {
      Load mean;
      for (const auto& [batch, load] : loads) mean.add(load);
      mean = {mean.tokens / static_cast<double>(loads.size()), mean.squares / static_cast<double>(loads.size())};
      for (const auto& [batch, load] : loads) worlds[kEven][step][batch] = mean;
      worlds[kDistributed][step] = distribute(loads, price_);
      worlds[kPacked][step] = distribute(pack_again(lengths_.sequences.at(step), cap, price_, fits), price_);
    }
    std::vector<uint32_t> step_of(graph_.size());
    for (uint32_t s = 0; s < graph_.steps.size(); ++s)
      std::fill(step_of.begin() + graph_.steps[s].begin, step_of.begin() + graph_.steps[s].end, s);
    const std::vector<double> least = launch_delays(graph_);  // other changes shorten what is beyond it
    const WorldTimes times = replay_worlds(
        graph_, kWorlds, [&](uint32_t op, size_t first, std::span<double> dur_ns, std::span<double> delay_ns) {
          const GraphStep& step = graph_.steps[step_of[op]];
          const Load* recorded = load_of(lengths_.loads, step, op);
          for (size_t l = 0; l < dur_ns.size(); ++l) {
            dur_ns[l] = graph_.dur_ns[op];
            delay_ns[l] = is_compute(graph_.kind[op]) ? graph_.delay_ns[op]
                                                      : std::min(graph_.delay_ns[op], least[graph_.type[op]]);
            const Load* other = recorded && first + l > 0 ? load_of(worlds[first + l], step, op) : nullptr;
            if (!other) continue;
            const Load& ns = fits_.at({graph_.stage(op), graph_.chunk[op], graph_.type[op]}).ns;
            dur_ns[l] = std::max(0.0, dur_ns[l] + other->weighed(ns) - recorded->weighed(ns));
          }
        });
    const GraphStep &head = graph_.steps.front(), &tail = graph_.steps.back();
    const auto gained = [&](size_t world) {
      double ns = 0;
      for (size_t s = 0; s < graph_.steps.size(); ++s) ns += times.ns(s, kRecorded) - times.ns(s, world);
      return share_or_zero(ns, tail.start_ns + tail.span_ns - head.start_ns);
    };
    std::map<int64_t, int64_t> heaviest;  // in how many steps each replica is
    size_t replicas = 0;
    for (const auto& [step, loads] : replicas_)
      ++heaviest[heaviest_of(loads)], replicas = std::max(replicas, loads.size());
    const auto most = std::ranges::max_element(heaviest, {}, [](const auto& one) { return one.second; });
    const double cost = gained(kEven);
    const bool one_replica = most->second * 4 >= std::ssize(lengths_.loads) * 3 && replicas > 1;
    const std::string cause = cost < kMinLost ? ""
                              : one_replica   ? "sequences replica " + std::to_string(most->first)
                                              : "sequences";
    Table table(declared_table("packing/packing"));
    table.add_row({cause, cost, gained(kDistributed), fits ? gained(kPacked) : kNaN, most->first, most->second,
                   std::ssize(lengths_.loads)});
    return table;
  }

 private:
  static int64_t heaviest_of(const std::map<int64_t, Load>& replicas) {
    return std::ranges::max_element(replicas, {}, [](const auto& one) { return one.second.squares; })->first;
  }

  // Pipelines side by side that share a replica's context have the sequences of that replica.
  const Load* load_of(const BySteps<Load>& loads, const GraphStep& step, uint32_t op) const {
    if (!is_compute(graph_.kind[op]) || graph_.micro_batch[op] < 0) return nullptr;
    const auto of_step = loads.find(step.step);
    if (of_step == loads.end()) return nullptr;
    const auto at = of_step->second.find({std::max(graph_.dp(op), 0) / cp_, graph_.micro_batch[op]});
    return at == of_step->second.end() ? nullptr : &at->second;
  }

  const int32_t cp_;
  const StepGraph& graph_;
  const Lengths& lengths_;
  std::map<std::tuple<int32_t, int32_t, uint16_t>, Fit> fits_;  // by stage, chunk and type
  Load price_;                                                  // of all cells together: ns a token, a square
  std::map<int64_t, std::map<int64_t, Load>> replicas_;         // of each step
  int64_t without_ = 0;
};

// The division of the attention of a pack between ranks by context parallelism, under a causal mask.
//
//   contiguous      0000111122223333   the first rank has the fewest keys before it
//   zigzag          0123 3210          a rank has a chunk from the front and its mirror image, of the whole pack
//   zigzag-sequence 01233210 01233210  the same within every sequence
enum class ContextSplit : uint8_t { kContiguous, kZigzag, kZigzagSequence };

struct Piece {  // positions [begin, end) of one sequence
  size_t rank = 0;
  int64_t begin = 0, end = 0;
};

// Pairs of the queries of `q` with keys of `k` that do not come after them.
int64_t pairs_of(const Piece& q, const Piece& k) {
  const int64_t first = std::max(q.begin, k.begin), last = std::min(q.end, k.end);
  int64_t pairs = std::max<int64_t>(0, q.end - std::max(q.begin, k.end)) * (k.end - k.begin);
  if (last > first) pairs += (first - k.begin + 1 + last - k.begin) * (last - first) / 2;
  return pairs;
}

// Pairs of query and key of each rank and, of a ring in which ranks pass keys around and wait each time for the
// fullest, the sum of the fullest.
struct ContextShares {
  std::vector<int64_t> pairs;
  int64_t ring = 0;
};

ContextShares context_shares(const std::vector<int64_t>& lengths, int64_t ranks, ContextSplit split) {
  const int64_t total = sum_over<int64_t>(lengths), chunks = split == ContextSplit::kContiguous ? ranks : 2 * ranks;
  const auto count = static_cast<size_t>(ranks);
  std::vector<int64_t> block(count * count, 0);  // pairs of a rank's queries with another's keys
  std::vector<Piece> pieces;
  int64_t at = 0;
  for (const int64_t length : lengths) {
    pieces.clear();
    const bool own = split == ContextSplit::kZigzagSequence;
    const int64_t whole = own ? length : total, shift = own ? 0 : at;
    for (int64_t j = 0; j < chunks; ++j) {
      const int64_t begin = std::max<int64_t>(whole * j / chunks - shift, 0);
      const int64_t end = std::min(whole * (j + 1) / chunks - shift, length);
      if (begin < end) pieces.push_back({static_cast<size_t>(j < ranks ? j : chunks - 1 - j), begin, end});
    }
    for (const Piece& q : pieces)
      for (const Piece& k : pieces) block[q.rank * count + k.rank] += pairs_of(q, k);
    at += length;
  }
  ContextShares out{std::vector<int64_t>(count, 0)};
  for (size_t k = 0; k < count; ++k) {
    int64_t most = 0;
    for (size_t i = 0; i < count; ++i) {
      const int64_t pairs = block[i * count + (i + count - k) % count];
      out.pairs[i] += pairs;
      most = std::max(most, pairs);
    }
    out.ring += most;
  }
  return out;
}

// Ranks that share the context of a pack: the fullest to the mean, as a mean over packs.
Table context_table(const Lengths& lengths, int64_t ranks) {
  Table table(declared_table("packing/packing-context"));
  constexpr std::array<std::string_view, 3> kSplits = {"contiguous", "zigzag", "zigzag-sequence"};
  for (size_t how = 0; ranks > 1 && how < kSplits.size(); ++how) {
    std::vector<double> share, ring;
    for (const auto& [step, batches] : lengths.sequences)
      for (const auto& [batch, sequences] : batches) {
        const ContextShares shares = context_shares(sequences, ranks, static_cast<ContextSplit>(how));
        const double mean = sum_over<double>(shares.pairs) / static_cast<double>(ranks);
        if (!(mean > 0)) continue;
        share.push_back(static_cast<double>(std::ranges::max(shares.pairs)) / mean);
        ring.push_back(static_cast<double>(shares.ring) / mean);
      }
    table.add_row({std::string(kSplits[how]), ranks, std::ssize(share), mean_of(share), mean_of(ring)});
  }
  return table;
}

}  // namespace

Result<AnalysisResult> run_packing(const AnalysisInput& input) {
  const Run& run = input.run();
  TRY(lengths, read_lengths(input.options));
  TRY(cap, input.options.integer("token-cap", 0, 1));
  TRY(ranks, input.options.integer("context-parallel", run.trace().context_parallel, 1, 1024));
  const RunGraph& launched = graph_of(run, LaunchRule::kInOrder);
  if (!launched.graph) return *launched.error;
  const Packing packing(run, *launched.graph, *lengths);
  AnalysisResult result;
  if (!input.options.has("lengths")) {
    result.notes.add(problem::packing_no_lengths);
    for (const TableSpec* spec : declared_tables("packing")) result.add(Table(*spec));
    return result;
  }
  if (!packing.any()) return worded_error(ErrorCode::kBadInput, "packing.none");
  result.notes.add(problem::packing_without_lengths, {}, packing.without());
  if (!packing.explained()) result.notes.add(problem::packing_not_explained);
  return result.with(packing.prices(*cap), packing.steps(), packing.fits(), context_table(*lengths, *ranks));
}

}  // namespace stageline
