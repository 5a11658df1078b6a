#include "diagnosis/diff/diff_parts.h"

namespace stageline {
namespace {

// The place of an operation within its step, which means the same in both runs.
struct OpPlace {
  int32_t dp, stage, peer, what, chunk, micro_batch;
  auto operator<=>(const OpPlace&) const = default;
};
struct PlacedOp {
  OpPlace place;
  uint32_t op;
};

// For each part, how many parts before it share its replica and stage.
std::vector<int32_t> peers_of(const Trace& trace) {
  std::map<std::pair<int32_t, int32_t>, int32_t> seen;
  std::vector<int32_t> peer;
  for (const Part& part : trace.parts) peer.push_back(seen[{part.dp, part.stage}]++);
  return peer;
}

// Numbers kinds of operations in the same way for both runs: compute and messages by kind, others by the name of their
// type.
struct Whats {
  std::map<std::string, int32_t> names;
  std::vector<int32_t> of_types(const StepGraph& g) {
    std::vector<int32_t> ids;
    for (const GraphType& type : g.types)
      ids.push_back(names.try_emplace(type.name, kCellKindCount + static_cast<int32_t>(names.size())).first->second);
    return ids;
  }
};

constexpr int32_t kOverlapped = -kCellKindCount;  // added to a kind's number for halves of overlapped pairs

bool by_kind(CellKind kind) { return is_compute(kind) || is_message(kind); }

struct Side {
  const StepGraph& graph;
  std::vector<int32_t> peer, what_of_type;
  bool numbered = false;  // both runs know micro-batches

  int32_t what(uint32_t op) const {
    return by_kind(graph.kind[op]) ? static_cast<int32_t>(graph.kind[op]) : what_of_type[graph.type[op]];
  }

  // Returns what an operation's time measures: a half of an overlapped pair has the time of both, so it does not
  // measure its kind alone.
  int32_t measures(uint32_t op) const {
    return is_compute(graph.kind[op]) && graph.types[graph.type[op]].overlapped ? what(op) + kOverlapped : what(op);
  }

  // Operations of a step, sorted by place; equal ones keep their order in time.
  std::vector<PlacedOp> placed(const GraphStep& step) const {
    // Labels of each chunk by value, so that 100, 101, … count as 0, 1, …, and so do those of a second chunk that
    // continue the numbers of the first.
    std::map<int32_t, std::vector<int32_t>> labels;
    for (uint32_t op = step.begin; numbered && op < step.end; ++op)
      if (is_compute(graph.kind[op])) labels[graph.chunk[op]].push_back(graph.micro_batch[op]);
    for (auto& [chunk, values] : labels) sort_unique(values);
    const auto number = [&](uint32_t op) {
      const int32_t label = graph.micro_batch[op];
      if (!numbered || label == kUnknown) return kUnknown;
      const auto of_chunk = labels.find(graph.chunk[op]);
      if (of_chunk == labels.end()) return label;
      return static_cast<int32_t>(std::ranges::lower_bound(of_chunk->second, label) - of_chunk->second.begin());
    };
    std::vector<PlacedOp> ops;
    ops.reserve(step.end - step.begin);
    for (uint32_t op = step.begin; op < step.end; ++op) {
      // An operation that stands for all ranks at once is attached to whichever rank was last, so its place is 0.
      const bool of_all = graph.cell[op] == kNoCell && !is_message(graph.kind[op]);
      OpPlace place{0, 0, 0, what(op), std::max(graph.chunk[op], 0), number(op)};
      if (!of_all) {
        place.dp = std::max(graph.dp(op), 0);
        place.stage = graph.stage(op);
        place.peer = peer[graph.part[op]];
      }
      ops.push_back({place, op});
    }
    std::ranges::sort(ops, [&](const PlacedOp& x, const PlacedOp& y) {
      const auto order = x.place <=> y.place;
      if (order != 0) return order < 0;
      return std::tie(graph.start_ns[x.op], x.op) < std::tie(graph.start_ns[y.op], y.op);
    });
    return ops;
  }
};

bool knows_micro_batches(const StepGraph& g) {
  for (size_t op = 0; op < g.size(); ++op)
    if (is_compute(g.kind[op]) && g.micro_batch[op] == kUnknown) return false;
  return true;
}

int64_t chunk_count(const StepGraph& g) {
  int64_t chunks = 1;
  for (size_t op = 0; op < g.size(); ++op)
    if (is_compute(g.kind[op])) chunks = std::max(chunks, int64_t{g.chunk[op]} + 1);
  return chunks;
}

struct Sum {
  double dur_ns = 0, delay_ns = 0;
  int64_t count = 0;
  void add(double dur, double delay) {
    dur_ns += dur;
    delay_ns += delay;
    ++count;
  }
};
struct Times {
  double dur_ns, delay_ns;
};

// Mean times of a run: of place, else of (stage, kind), else of the kind.
class Means {
 public:
  Means(const Side& side, const std::vector<bool>& usual) {
    const StepGraph& g = side.graph;
    for (size_t s = 0; s < g.steps.size(); ++s) {
      if (!usual.empty() && !usual[s]) continue;
      for (uint32_t op = g.steps[s].begin; op < g.steps[s].end; ++op) {
        const int32_t what = side.measures(op);
        for (const auto& key :
             {Key{what, g.stage(op), g.chunk[op]}, Key{what, g.stage(op), kAny}, Key{what, kAny, kAny}})
          sums_[key].add(g.dur_ns[op], g.delay_ns[op]);
      }
    }
    stages_ = g.stage_count;
    virtual_stages_ = std::max(1, g.stage_count) * static_cast<double>(chunk_count(g));
  }
  double virtual_stages() const { return virtual_stages_; }

  // `same_shape`: this run has the same stages and chunks as the one that asks. With other chunks on the same stages,
  // a stage still is the same devices with the same share of the work.
  std::optional<Times> of(int32_t what, int32_t stage, int32_t chunk, bool same_shape, int32_t stages) const {
    if (const auto t = same_shape ? mean({what, stage, chunk}) : std::nullopt) return t;
    if (const auto t = stages == stages_ ? mean({what, stage, kAny}) : std::nullopt) return t;
    return mean({what, kAny, kAny});
  }

 private:
  static constexpr int32_t kAny = INT32_MIN;
  using Key = std::tuple<int32_t, int32_t, int32_t>;
  std::optional<Times> mean(const Key& key) const {
    const auto it = sums_.find(key);
    if (it == sums_.end()) return std::nullopt;
    const double n = it->second.count;
    return Times{it->second.dur_ns / n, it->second.delay_ns / n};
  }
  std::map<Key, Sum> sums_;
  int32_t stages_ = 0;
  double virtual_stages_ = 1;
};

constexpr int32_t id(CellKind kind) { return static_cast<int32_t>(kind); }

// Time of a kind that A does not have, composed of kinds that it has. `of_a` and `of_b` give means for the same stage
// and chunk.
template <class OfA, class OfB> std::optional<Times> composed(CellKind kind, const OfA& of_a, const OfB& of_b) {
  if (const auto same = of_a(kind)) return same;
  const auto plus = [](const std::optional<Times>& x, const std::optional<Times>& y) -> std::optional<Times> {
    if (!x) return std::nullopt;
    return Times{x->dur_ns + (y ? y->dur_ns : 0), x->delay_ns};
  };
  switch (kind) {
    case CellKind::kBackward: return plus(of_a(CellKind::kInputGrad), of_a(CellKind::kWeightGrad));
    case CellKind::kInputGrad:
    case CellKind::kWeightGrad: {
      const auto whole = of_a(CellKind::kBackward), i = of_b(CellKind::kInputGrad), w = of_b(CellKind::kWeightGrad);
      if (!whole || !i) return std::nullopt;
      const double both = i->dur_ns + (w ? w->dur_ns : 0), own = kind == CellKind::kInputGrad ? i->dur_ns : w->dur_ns;
      return both > 0 ? std::optional(Times{whole->dur_ns * own / both, whole->delay_ns}) : std::nullopt;
    }
    case CellKind::kForwardBackward: {
      const auto back = of_a(CellKind::kBackward);
      const auto split = plus(of_a(CellKind::kInputGrad), of_a(CellKind::kWeightGrad));
      const auto forward = of_a(CellKind::kForward);
      return back || split ? plus(forward, back ? back : split) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

// The first operation at a place; nullopt where there is none.
std::optional<uint32_t> at_place(const std::vector<PlacedOp>& ops, OpPlace place, CellKind kind) {
  place.what = id(kind);
  const auto at = std::ranges::lower_bound(ops, place, {}, &PlacedOp::place);
  return at != ops.end() && at->place == place ? std::optional(at->op) : std::nullopt;
}

// Returns the time of a backward that is whole in one run and split in the other, for the same chunk and micro-batch.
// It is the sum of A's halves, or A's whole shared out as the halves are in B. A separate weight gradient starts when
// its rank gets to it, so its delay is 0.
std::optional<Times> split_or_whole(const StepGraph& a, const std::vector<PlacedOp>& of_a, const StepGraph& b,
                                    const std::vector<PlacedOp>& of_b, const PlacedOp& own) {
  const CellKind kind = b.kind[own.op];
  if (kind == CellKind::kBackward) {
    const auto input = at_place(of_a, own.place, CellKind::kInputGrad);
    const auto weight = at_place(of_a, own.place, CellKind::kWeightGrad);
    if (!input || !weight) return std::nullopt;
    return Times{a.dur_ns[*input] + a.dur_ns[*weight], a.delay_ns[*input]};
  }
  if (kind != CellKind::kInputGrad && kind != CellKind::kWeightGrad) return std::nullopt;
  const auto whole = at_place(of_a, own.place, CellKind::kBackward);
  const auto input = at_place(of_b, own.place, CellKind::kInputGrad);
  const auto weight = at_place(of_b, own.place, CellKind::kWeightGrad);
  if (!whole || !input || !weight || !(b.dur_ns[*input] + b.dur_ns[*weight] > 0)) return std::nullopt;
  const double share = b.dur_ns[own.op] / (b.dur_ns[*input] + b.dur_ns[*weight]);
  return Times{a.dur_ns[*whole] * share, kind == CellKind::kInputGrad ? a.delay_ns[*whole] : 0};
}

// Sets times of operations without a counterpart.
void fill_unmatched(const Side& side_a, const Side& side_b, const std::vector<int64_t>& pair_of,
                    const std::vector<bool>& usual_a, DiffMatch& match) {
  const StepGraph& b = side_b.graph;
  const bool same_recording = side_a.graph.source == b.source;
  const Means means_a(side_a, usual_a), means_b(side_b, {});
  const bool same_shape =
      side_a.graph.stage_count == b.stage_count && means_a.virtual_stages() == means_b.virtual_stages();
  const double scale = means_a.virtual_stages() / means_b.virtual_stages();
  for (size_t s = 0; s < b.steps.size(); ++s) {
    if (pair_of[s] < 0) continue;
    for (uint32_t op = b.steps[s].begin; op < b.steps[s].end; ++op) {
      if (match.is_exact[op]) continue;
      const auto at = [&](const Means& means) {
        return [&](CellKind kind) { return means.of(id(kind), b.stage(op), b.chunk[op], same_shape, b.stage_count); };
      };
      const CellKind kind = b.kind[op];
      std::optional<Times> times;
      if (b.types[b.type[op]].overlapped)
        times = means_a.of(side_b.measures(op), b.stage(op), b.chunk[op], same_shape, b.stage_count);
      if (!times)
        times = is_compute(kind) ? composed(kind, at(means_a), at(means_b))
                                 : means_a.of(side_b.what(op), b.stage(op), b.chunk[op], same_shape, b.stage_count);
      if (!times) continue;
      match.a_times.dur_ns[op] = times->dur_ns * (is_compute(kind) && !same_shape ? scale : 1);
      if (same_recording || !is_message(kind)) match.a_times.delay_ns[op] = times->delay_ns;
    }
  }
}

}  // namespace

DiffMatch match_operations(const StepGraph& a, const StepGraph& b, const Trace& trace_a, const Trace& trace_b,
                           const std::vector<int64_t>& pair_of, const std::vector<bool>& usual_a) {
  Whats whats;
  const bool numbered = knows_micro_batches(a) && knows_micro_batches(b);
  Side side_a{a, peers_of(trace_a), whats.of_types(a), numbered};
  Side side_b{b, peers_of(trace_b), whats.of_types(b), numbered};
  const bool same_recording = a.source == b.source;
  const bool same_shape = a.stage_count == b.stage_count && chunk_count(a) == chunk_count(b);
  DiffMatch match{recorded_times(b), {}, 0, 0, 0};
  std::vector<uint8_t> exact(b.size());  // not vector<bool>, because several threads write it
  std::vector<std::vector<PlacedOp>> placed_a(a.steps.size());
  parallel_for(a.steps.size(), [&](size_t s) {
    if (usual_a[s]) placed_a[s] = side_a.placed(a.steps[s]);
  });
  std::vector<std::array<int64_t, 3>> counts(b.steps.size());
  parallel_for(b.steps.size(), [&](size_t s) {
    if (pair_of[s] < 0) return;
    const std::vector<PlacedOp> ops = side_b.placed(b.steps[s]);
    const std::vector<PlacedOp>& others = placed_a[pair_of[s]];
    auto& [matched, unmatched, unused] = counts[s];
    unused = others.size();
    size_t j = 0;
    for (const PlacedOp& own : ops) {
      while (j < others.size() && others[j].place < own.place) ++j;
      // With other numbers of stages or chunks, a stage holds another part of the model.
      const bool same_part = same_shape || !by_kind(b.kind[own.op]);
      if (same_part && j < others.size() && others[j].place == own.place) {
        match.a_times.dur_ns[own.op] = a.dur_ns[others[j].op];
        if (same_recording || !is_message(b.kind[own.op])) match.a_times.delay_ns[own.op] = a.delay_ns[others[j].op];
        exact[own.op] = 1;
        ++matched, --unused, ++j;
        continue;
      }
      const auto times = same_part && numbered ? split_or_whole(a, others, b, ops, own) : std::nullopt;
      if (!times) {
        ++unmatched;
        continue;
      }
      match.a_times.dur_ns[own.op] = times->dur_ns;
      match.a_times.delay_ns[own.op] = times->delay_ns;
      exact[own.op] = 1;
      ++matched;
      // Two halves of A stand for one whole of B, or one whole of A for two halves.
      unused -= b.kind[own.op] == CellKind::kBackward ? 2 : b.kind[own.op] == CellKind::kInputGrad ? 1 : 0;
    }
  });
  for (const auto& [matched, unmatched, unused] : counts)
    match.matched += matched, match.unmatched += unmatched, match.unused += unused;
  match.is_exact.assign(exact.begin(), exact.end());
  if (match.unmatched > 0) fill_unmatched(side_a, side_b, pair_of, usual_a, match);
  return match;
}

}  // namespace stageline
