// Scenarios are lanes: up to 16 of them go through a step together. So the waits of every operation are looked up once
// for all, and the inner loops are plain arithmetic on neighbouring numbers. The ends of a block in one step (ops · 16
// · 8 B) stay in the cache. The remaining scenarios are replayed in narrower blocks.
#include "pipeline/replay/step_replay.h"

#include "base/freed_memory.h"
#include "base/parallel.h"
#include "base/spares.h"

namespace stageline {
namespace {

constexpr size_t kMaxLanes = 16;
constexpr size_t kManySteps = 16;  // enough to keep the threads busy

template <size_t kLanes> inline void raise(std::array<double, kLanes>& to, const std::array<double, kLanes>& from) {
  for (size_t l = 0; l < kLanes; ++l) to[l] = to[l] > from[l] ? to[l] : from[l];
}

template <size_t kLanes> using Lanes = std::array<double, kLanes>;

// Replays one step in kLanes worlds. An operation may start when everything it waits for has ended, and starts its
// delay later; the members of a group run together from the latest start among them. `take(op, dur, delay)` is called
// once per operation, in order; `starts(op, ready)` and `done(op, end)` receive the results. `ends` counts from the
// step's first operation.
template <size_t kLanes, class Take, class Starts, class Done>
[[gnu::always_inline]] inline void replay_step(const StepGraph& graph, const GraphStep& step, const Take& take,
                                               const Starts& starts, const Done& done, Lanes<kLanes>* ends) {
  Lanes<kLanes> delay{};
  for (uint32_t i = step.begin; i < step.end;) {
    const uint32_t last = graph.group(i) == kNoGroup ? i + 1 : graph.groups[graph.group(i)].end;
    Lanes<kLanes> latest;
    latest.fill(-HUGE_VAL);
    for (uint32_t k = i; k < last; ++k) {
      const std::span<const uint32_t> waits = graph.waits(k);
      Lanes<kLanes> ready = waits.empty() ? Lanes<kLanes>{} : ends[waits[0] - step.begin];
      for (size_t w = 1; w < waits.size(); ++w) raise(ready, ends[waits[w] - step.begin]);
      take(k, ends[k - step.begin], delay);  // for now `ends` holds the duration alone
      for (size_t l = 0; l < kLanes; ++l) ready[l] += delay[l];
      starts(k, ready);
      raise(latest, ready);
    }
    for (uint32_t k = i; k < last; ++k) {
      Lanes<kLanes>& end = ends[k - step.begin];
      for (size_t l = 0; l < kLanes; ++l) end[l] += latest[l];
      done(k, end);
    }
    i = last;
  }
}

constexpr auto kStartsUnseen = [](uint32_t, const auto&) {};
constexpr auto kDoneUnseen = [](uint32_t, const auto&) {};

// Uses memory of doubles as worlds, kLanes of them side by side.
template <size_t kLanes> Lanes<kLanes>* lanes_in(double* space) {
  static_assert(sizeof(Lanes<kLanes>) == kLanes * sizeof(double));
  return reinterpret_cast<Lanes<kLanes>*>(space);
}

// Replays one step in the scenarios [first, first + count), count ≤ kLanes, and writes its times to out[0 .. count).
// `space` is reused memory.
template <size_t kLanes>
void replay_block(const StepGraph& graph, const GraphStep& step, size_t first, size_t count, const FillWorlds& fill,
                  double* space, double* out) {
  constexpr uint32_t kStretch = 1024 / kLanes;  // the times of this number of operations stay in the nearest cache
  std::array<Lanes<kLanes>, kStretch> durs{}, delays{};  // worlds from `count` on take no time
  uint32_t from = step.begin, to = step.begin;           // the stretch whose times have been fetched
  const auto take = [&](uint32_t op, Lanes<kLanes>& dur, Lanes<kLanes>& delay) {
    if (op == to) {
      from = to;
      to = std::min(step.end, from + kStretch);
      fill({from, to, first, count, kLanes, durs.front().data(), delays.front().data()});
    }
    dur = durs[op - from];
    delay = delays[op - from];
  };
  Lanes<kLanes> step_end{};
  const auto done = [&](uint32_t op, const Lanes<kLanes>& end) {
    if (graph.closes(op)) raise(step_end, end);
  };
  replay_step<kLanes>(graph, step, take, kStartsUnseen, done, lanes_in<kLanes>(space));
  std::copy_n(step_end.begin(), count, out);
}

// Memory for the ends of one step in some worlds; nothing in it is read before it is written.
class Ends {
 public:
  double* of(size_t count) {
    if (count > count_) space_ = std::make_unique_for_overwrite<double[]>(count_ = count);
    return space_.get();
  }

 private:
  size_t count_ = 0;
  std::unique_ptr<double[]> space_;
};

// `times`, `start_ns` and `end_ns` begin at operation `first`.
void replay_in_full(const StepGraph& graph, const GraphStep& step, uint32_t first, const OpTimes& times,
                    ReplayedOps& out) {
  const auto take = [&](uint32_t op, Lanes<1>& dur, Lanes<1>& delay) {
    dur[0] = times.dur_ns[op - first];
    delay[0] = times.delay_ns[op - first];
  };
  const auto starts = [&](uint32_t op, const Lanes<1>& ready) { out.start_ns[op - first] = ready[0]; };
  replay_step<1>(graph, step, take, starts, kDoneUnseen, lanes_in<1>(out.end_ns.data() + (step.begin - first)));
}

}  // namespace

double WorldTimes::mean_ns(size_t world) const {
  if (std::ranges::find(counts, true) == counts.end()) return kNaN;
  double sum = 0, steps = 0;
  for (size_t s = 0; s < counts.size(); ++s) {
    if (!counts[s]) continue;
    sum += ns(s, world);
    steps += 1;
  }
  return sum / steps;
}

WorldTimes replay_worlds(const StepGraph& graph, size_t worlds, const FillWorlds& fill) {
  return_much_freed_memory(graph.size() * sizeof(double));
  WorldTimes out;
  out.worlds = worlds;
  for (const GraphStep& step : graph.steps) out.counts.push_back(step.counts);
  out.step_ns.assign(graph.steps.size() * worlds, 0);
  // If steps are few, the scenarios of a step are shared out among threads too.
  const size_t blocks = (worlds + kMaxLanes - 1) / kMaxLanes;
  const size_t each = graph.steps.size() >= kManySteps ? blocks : 1;  // how many of a step's blocks one task takes
  const size_t tasks = blocks == 0 ? 0 : (blocks + each - 1) / each;
  const size_t lanes = worlds < 2 ? worlds : std::min(kMaxLanes, std::bit_ceil(std::max<size_t>(worlds, 4)));
  Spares<Ends> spares;
  parallel_for(graph.steps.size() * tasks, [&](size_t task) {
    const size_t s = task / tasks;
    const GraphStep& step = graph.steps[s];
    const Spares<Ends>::Lent ends(spares);
    double* const space = ends->of((step.end - step.begin) * lanes);
    const size_t end = std::min(worlds, (task % tasks + 1) * each * kMaxLanes);
    for (size_t first = task % tasks * each * kMaxLanes; first < end;) {
      const size_t count = std::min(kMaxLanes, end - first);
      double* const times = out.step_ns.data() + s * worlds + first;
      const auto run = [&](auto width) {
        replay_block<decltype(width)::value>(graph, step, first, count, fill, space, times);
      };
      if (count == 1) run(std::integral_constant<size_t, 1>());
      else if (count <= 4) run(std::integral_constant<size_t, 4>());
      else if (count <= 8) run(std::integral_constant<size_t, 8>());
      else run(std::integral_constant<size_t, kMaxLanes>());
      first += count;
    }
  });
  return out;
}

std::vector<double> replay_world(const StepGraph& graph, const FillWorlds& fill) {
  std::vector<double> step_ns(graph.steps.size(), 0);
  Spares<Ends> spares;
  parallel_for(graph.steps.size(), [&](size_t s) {
    const GraphStep& step = graph.steps[s];
    const Spares<Ends>::Lent ends(spares);
    replay_block<1>(graph, step, 0, 1, fill, ends->of(step.end - step.begin), &step_ns[s]);
  });
  return step_ns;
}

WorldTimes replay_worlds(const StepGraph& graph, std::span<const OpTimes> worlds) {
  return replay_worlds(graph, worlds.size(),
                       [&](uint32_t op, size_t first, std::span<double> dur_ns, std::span<double> delay_ns) {
                         for (size_t l = 0; l < dur_ns.size(); ++l) {
                           dur_ns[l] = worlds[first + l].dur_ns[op];
                           delay_ns[l] = worlds[first + l].delay_ns[op];
                         }
                       });
}

ReplayedOps replay_ops(const StepGraph& graph, const OpTimes& times) {
  ReplayedOps out{std::vector<double>(graph.size()), std::vector<double>(graph.size())};
  parallel_for(graph.steps.size(), [&](size_t s) { replay_in_full(graph, graph.steps[s], 0, times, out); });
  return out;
}

ReplayedOps replay_step_ops(const StepGraph& graph, const GraphStep& step, const OpTimes& times) {
  const size_t count = step.end - step.begin;
  ReplayedOps out{std::vector<double>(count), std::vector<double>(count)};
  replay_in_full(graph, step, step.begin, times, out);
  return out;
}

}  // namespace stageline
