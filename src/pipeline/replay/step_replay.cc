// The replay of step_graph.h. Worlds are lanes: up to 16 of them go through a step together, so that every operation's
// waits are looked up once for all and the inner loops are plain arithmetic on neighbours. A block's ends of one step
// (ops · 16 · 8 B) stay in the cache; what is left over of the worlds goes through in narrower blocks.
#include "pipeline/replay/step_replay.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <type_traits>

#include "base/number.h"
#include "base/parallel.h"
#include "base/spares.h"

namespace stageline {
namespace {

constexpr size_t kMostLanes = 16;
constexpr size_t kManySteps = 16;  // enough to keep the threads busy

template <size_t kLanes>
inline void raise(std::array<double, kLanes>& to, const std::array<double, kLanes>& from) {
  for (size_t l = 0; l < kLanes; ++l) to[l] = to[l] > from[l] ? to[l] : from[l];
}

// One step in worlds [first, first + count), count ≤ kLanes; writes its times to out[0 .. count). `space` is reused.
template <size_t kLanes>
void replay_step(const StepGraph& graph, const GraphStep& step, size_t first, size_t count, const FillWorlds& fill,
                 double* space, double* out) {
  using Lanes = std::array<double, kLanes>;
  static_assert(sizeof(Lanes) == kLanes * sizeof(double));
  auto* const ends = reinterpret_cast<Lanes*>(space);
  Lanes step_end{};
  Lanes dur{}, delay{};
  for (uint32_t i = step.begin; i < step.end;) {
    const uint32_t last = graph.group(i) == kNoGroup ? i + 1 : graph.groups[graph.group(i)].end;
    Lanes latest{};
    for (uint32_t k = i; k < last; ++k) {
      Lanes ready{};
      bool any = false;
      for (const uint32_t on : graph.waits(k)) {
        if (any) {
          raise(ready, ends[on - step.begin]);
        } else {
          ready = ends[on - step.begin];
          any = true;
        }
      }
      fill(k, first, {dur.data(), count}, {delay.data(), count});
      for (size_t l = 0; l < kLanes; ++l) ready[l] += delay[l];
      if (k == i) {
        latest = ready;
      } else {
        raise(latest, ready);
      }
      ends[k - step.begin] = dur;  // for now: the duration alone
    }
    for (uint32_t k = i; k < last; ++k) {
      Lanes& end = ends[k - step.begin];
      for (size_t l = 0; l < kLanes; ++l) end[l] += latest[l];
      if (graph.closes(k)) raise(step_end, end);
    }
    i = last;
  }
  std::copy_n(step_end.begin(), count, out);
}

// Of a step, in some worlds; nothing is read before it is written.
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

}  // namespace

double WorldTimes::mean_ns(size_t world) const {
  if (std::find(counts.begin(), counts.end(), true) == counts.end()) return kNaN;
  double sum = 0, steps = 0;
  for (size_t s = 0; s < counts.size(); ++s) {
    if (!counts[s]) continue;
    sum += ns(s, world);
    steps += 1;
  }
  return sum / steps;
}

WorldTimes replay_worlds(const StepGraph& graph, size_t worlds, const FillWorlds& fill) {
  WorldTimes out;
  out.worlds = worlds;
  for (const GraphStep& step : graph.steps) out.counts.push_back(step.counts);
  out.step_ns.assign(graph.steps.size() * worlds, 0);
  // Few steps with many worlds are shared out too.
  const size_t blocks = (worlds + kMostLanes - 1) / kMostLanes;
  const size_t each = graph.steps.size() >= kManySteps ? blocks : 1;  // of a step's blocks, by one task
  const size_t tasks = blocks == 0 ? 0 : (blocks + each - 1) / each;
  const size_t lanes = worlds < 2 ? worlds : std::min(kMostLanes, std::bit_ceil(std::max<size_t>(worlds, 4)));
  Spares<Ends> spares;
  parallel_for(graph.steps.size() * tasks, [&](size_t task) {
    const size_t s = task / tasks;
    const GraphStep& step = graph.steps[s];
    const Spares<Ends>::Lent ends(spares);
    double* const space = ends->of((step.end - step.begin) * lanes);
    const size_t end = std::min(worlds, (task % tasks + 1) * each * kMostLanes);
    for (size_t first = task % tasks * each * kMostLanes; first < end;) {
      const size_t count = std::min(kMostLanes, end - first);
      double* const times = out.step_ns.data() + s * worlds + first;
      const auto run = [&](auto width) {
        replay_step<decltype(width)::value>(graph, step, first, count, fill, space, times);
      };
      if (count == 1) {
        run(std::integral_constant<size_t, 1>());
      } else if (count <= 4) {
        run(std::integral_constant<size_t, 4>());
      } else if (count <= 8) {
        run(std::integral_constant<size_t, 8>());
      } else {
        run(std::integral_constant<size_t, kMostLanes>());
      }
      first += count;
    }
  });
  return out;
}

std::vector<double> replay_world(const StepGraph& graph, const FillStretch& fill) {
  constexpr uint32_t kStretch = 1024;  // operations whose times stay in the nearest cache until they are used
  std::vector<double> step_ns(graph.steps.size(), 0);
  Spares<Ends> spares;
  parallel_for(graph.steps.size(), [&](size_t s) {
    const GraphStep& step = graph.steps[s];
    const Spares<Ends>::Lent space(spares);
    double* const ends = space->of(step.end - step.begin);
    std::array<double, kStretch> dur, delay;
    double step_end = 0;
    uint32_t from = step.begin, to = step.begin;  // the stretch whose times are there
    for (uint32_t i = step.begin; i < step.end;) {
      const uint32_t last = graph.group(i) == kNoGroup ? i + 1 : graph.groups[graph.group(i)].end;
      double latest = 0;
      for (uint32_t k = i; k < last; ++k) {
        if (k == to) {
          from = to;
          to = std::min(step.end, from + kStretch);
          fill(from, to, dur.data(), delay.data());
        }
        double ready = 0;
        bool any = false;
        for (const uint32_t on : graph.waits(k)) {
          const double end = ends[on - step.begin];
          ready = !any || end > ready ? end : ready;
          any = true;
        }
        ready += delay[k - from];
        latest = k == i || ready > latest ? ready : latest;
        ends[k - step.begin] = dur[k - from];  // for now: the duration alone
      }
      for (uint32_t k = i; k < last; ++k) {
        const double end = ends[k - step.begin] += latest;
        if (end > step_end && graph.closes(k)) step_end = end;
      }
      i = last;
    }
    step_ns[s] = step_end;
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

namespace {

// `times`, `start_ns` and `end_ns` stand from operation `first` on.
void replay_in_full(const StepGraph& graph, const GraphStep& step, uint32_t first, const OpTimes& times,
                    ReplayedOps& out) {
  for (uint32_t i = step.begin; i < step.end;) {
    const uint32_t last = graph.group(i) == kNoGroup ? i + 1 : graph.groups[graph.group(i)].end;
    double latest = 0;
    for (uint32_t k = i; k < last; ++k) {
      double ready = 0;
      bool any = false;
      for (const uint32_t on : graph.waits(k)) {
        ready = any ? std::max(ready, out.end_ns[on - first]) : out.end_ns[on - first];
        any = true;
      }
      out.start_ns[k - first] = ready + times.delay_ns[k - first];
      latest = k == i ? out.start_ns[k - first] : std::max(latest, out.start_ns[k - first]);
    }
    for (uint32_t k = i; k < last; ++k) out.end_ns[k - first] = latest + times.dur_ns[k - first];
    i = last;
  }
}

}  // namespace

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
