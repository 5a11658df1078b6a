// Late launches: all cells of a rank start late, or all of one direction, though nothing holds them up.
// Late launches: ranks whose median cell starts late.
#include "diagnosis/causes/start_reasons.h"
#include "diagnosis/causes/telling.h"

namespace stageline {
namespace {

struct LateLaunchOwn {
  CellKind direction = CellKind::kOther;  // the only late direction
  double others_ns = 0;                   // how late the other ranks are; 0: almost never late
};

// The two workers of a message that was not recorded. Such a message lasts from the end of one's cell to the start of
// the other's.
using Pair = std::pair<uint32_t, uint32_t>;                        // from, to
using WorkerAt = std::map<std::pair<int32_t, int32_t>, uint32_t>;  // key: replica, stage
constexpr uint32_t kNone = CellTimes::kNone;

// The workers between which an unrecorded message runs; it waits for its sender's cell. {kNone, kNone}: not such a
// message; kNone as the second: unknown.
Pair pair_of(const CauseScene& scene, const WorkerAt& worker_at, uint32_t op) {
  const StepGraph& g = scene.graph;
  if (!is_message(g.kind[op]) || g.cell[op] != kNoCell || g.waits(op).size() != 1) return {kNone, kNone};
  return {scene.times.worker_of(g.waits(op).front()), value_at(worker_at, {std::max(g.dp(op), 0), g.stage(op)}, kNone)};
}

class LateRanks {
 public:
  explicit LateRanks(const StartDelays& starts) : starts_(starts), scene_(starts.scene()), g_(scene_.graph) {
    find_messages();
  }

  // `begins` maps workers that start their steps just as late as other cells to the scenario without that.
  void suspect(const std::map<uint32_t, CauseWorld>& begins, std::vector<Suspect>& out) const {
    for (size_t i = 0; i < std::min(starts_.late_workers().size(), kMaxWorkerCauses); ++i) {
      const auto [number, by] = starts_.late_workers()[i];
      const CellTimes::Worker& worker = scene_.times.workers()[number];
      Suspect suspect;
      Cause& cause = suspect.cause;
      cause.kind = &late_launch_cause;
      const int32_t rank = scene_.trace.parts[worker.part].rank;
      cause.places = {{.kind = PlaceKind::kHost, .ranks = {rank}, .stage = worker.stage, .replica = worker.dp}};
      LateLaunchOwn own;
      if (starts_.usual_ns() >= kLateStart * by) own.others_ns = starts_.usual_ns();
      const auto way = starts_.one_way().find(number);
      const bool both = way == starts_.one_way().end();
      const std::span<const double> delays = both ? starts_.delays().of(number) : way->second.delays;
      // Where the messages that only this direction waits for were not recorded, these may be late instead.
      const int32_t sender = both ? kUnknown : starts_.sender_of({number, way->second.forward});
      if (sender != kUnknown && !starts_.messages().any())
        cause.or_else = {{.kind = PlaceKind::kLink,
                          .stage = worker.stage,
                          .replica = g_.dp_count > 1 ? worker.dp : kUnknown,
                          .from_stage = sender}};
      if (!both) own.direction = way->second.forward ? CellKind::kForward : CellKind::kBackward;
      cause.own = own;
      const int64_t cells = delays.size();
      cause.figures = {.each_ns = by, .count = cells, .of = cells, .rank = rank, .stage = worker.stage};
      cause.certain = nearly_all_late(delays, by);
      // Where few steps say nothing, the cells do if they are late by about the same.
      if (few_steps(scene_) && late_by_half(delays, by) >= kEverywhere * delays.size())
        cause.certain |= beyond_noise(mean_of({delays.begin(), delays.end()}) - starts_.usual_ns() - by / 2,
                                      sample_std({delays.begin(), delays.end()}) / std::sqrt(cells), cells);
      // Where a step begins with a cell of this rank, a late start of it shows in the time between steps, if at all.
      if (!begins.contains(number)) cause.price.open_ns = by * unseen_starts(number);
      suspect.without = [&scene = scene_, less = shorter_messages(number, by), worker_at = worker_at_, number = number,
                         by = by, usual = starts_.usual_ns(), both, forward = !both && way->second.forward,
                         begin = begins.contains(number) ? begins.at(number) : CauseWorld{}](uint32_t op, double& dur,
                                                                                             double& delay) {
        if (begin) begin.apply({op, op + 1, 0, 1, 1, &dur, &delay});
        if (scene.times.worker_of(op) == number && !scene.graph.waits(op).empty() &&
            (both || forward == (scene.graph.kind[op] == CellKind::kForward)))
          delay = std::max(0.0, delay - launched_late(by, delay - usual));
        if (less.empty() || !is_message(scene.graph.kind[op])) return;
        if (const auto of = less.find(pair_of(scene, *worker_at, op)); of != less.end())
          dur = std::max(std::min(dur, 0.0), dur - of->second);
      };
      out.push_back(std::move(suspect));
    }
  }

 private:
  // How many cells of a worker are late by at least half of its median delay.
  int64_t late_by_half(std::span<const double> delays, double by) const {
    return std::ranges::count_if(delays, [&](double ns) { return ns >= starts_.usual_ns() + by / 2; });
  }
  // Returns whether nearly all cells are; that is not chance.
  bool nearly_all_late(std::span<const double> delays, double by) const {
    const int64_t late = late_by_half(delays, by);
    return late >= kMinCertain && late >= kEverywhere * delays.size();
  }

  // Returns how many cells of a worker wait for no recorded operation, in the mean step.
  double unseen_starts(uint32_t worker) const {
    double count = 0;
    scene_.each_op([&](uint32_t op, size_t) { count += scene_.times.worker_of(op) == worker && g_.waits(op).empty(); });
    return count / std::max<ptrdiff_t>(std::ranges::count(scene_.counts, true), 1);
  }

  void find_messages() {
    if (starts_.late_workers().empty() || g_.source != GraphSource::kComputeCells || g_.messages_recorded) return;
    for (uint32_t w = 0; w < scene_.times.workers().size(); ++w)
      (*worker_at_)[{scene_.times.workers()[w].dp, scene_.times.workers()[w].stage}] = w;
    std::map<Pair, std::vector<double>> all;
    scene_.each_op([&](uint32_t op, size_t) {
      if (const Pair pair = pair_of(scene_, *worker_at_, op); pair.first != kNone && pair.second != kNone)
        all[pair].push_back(g_.dur_ns[op]);
    });
    for (auto& [pair, durations] : all) message_ns_[pair] = median_of(std::move(durations));
  }

  // A message that was not recorded lasts until its cell starts, and so includes the delay of a late rank. Clocks that
  // were aligned by these very gaps share that delay out to both directions, so it is taken from the sum of both:
  //
  //     as stamped    there 4.2 ms, back 0.2       rank late by 4: there and back take 4.4 − 4 without, 0.2 each way
  //     tied by gaps  there 2.2 ms, back 2.2
  std::map<Pair, double> shorter_messages(uint32_t late, double by) const {
    std::map<Pair, double> less;
    for (const auto& [pair, there] : message_ns_) {
      if (pair.second != late || pair.first == late) continue;
      const auto& workers = scene_.times.workers();
      const bool forward = workers[pair.first].stage < workers[pair.second].stage;
      if (const auto way = starts_.one_way().find(late);
          way != starts_.one_way().end() && way->second.forward != forward)
        continue;
      const auto back = message_ns_.find({late, pair.first});
      const double back_ns = back == message_ns_.end() ? 0 : back->second;
      const double usual = back == message_ns_.end() ? 0 : std::max(0.0, (there + back_ns - by) / 2);
      less[pair] = std::clamp(there - usual, 0.0, by);
      if (back != message_ns_.end()) less[back->first] = std::clamp(back_ns - usual, 0.0, by - less[pair]);
    }
    return less;
  }

  const StartDelays& starts_;
  const CauseScene& scene_;
  const StepGraph& g_;
  std::shared_ptr<WorkerAt> worker_at_ = std::make_shared<WorkerAt>();
  std::map<Pair, double> message_ns_;  // median for each pair
};

}  // namespace

void suspect_late_launch(CauseScene& scene, std::vector<Suspect>& out) {
  const StartReasons& reasons = scene.measured<StartReasons>();
  if (!reasons.starts.known() || reasons.everywhere || reasons.starts.late_workers().empty()) return;
  std::map<uint32_t, CauseWorld> begins;
  for (const LateBegins& one : reasons.begins)
    if (one.as_late) begins[one.worker] = one.without();
  LateRanks(reasons.starts).suspect(begins, out);
}

Telling tell_late_launch(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  const auto& own = c.own.as<LateLaunchOwn>();
  Args args = context.args(c);
  const bool others = own.others_ns > 0, one_kind = own.direction != CellKind::kOther;
  args.set("others", others ? human_duration(own.others_ns) : "");
  if (!c.or_else.empty()) args.set("guessed", int64_t{c.or_else.front().from_stage});
  args.set("messages", c.or_else.empty() ? Text{} : words("rank.late_launch.messages", args));
  if (one_kind) args.set("kind", cell_text(own.direction));
  args.set("late", words(others ? "rank.late_launch.others.late" : "rank.late_launch.others", args));
  args.set("check", words(one_kind ? "rank.late_launch.check.kind" : "rank.late_launch.check"));
  args.set("earlier", words(others ? "rank.late_launch.earlier.late" : "rank.late_launch.earlier"));
  Telling telling = say_cause("rank.late_launch", "rank.late_launch", args);
  telling.table = {"stragglers", "straggler-workers"};
  return telling;
}

}  // namespace stageline
