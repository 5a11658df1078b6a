#include "diagnosis/causes/start_delays.h"

#include "pipeline/clocks/align.h"

namespace stageline {
namespace {

// Minimum delay of a late worker's median cell, and of a cell that waited for a send, as a share of the median cell.
constexpr double kLateWorker = 0.05;
// Minimum share of the late time around a rank's sends in cells that start when the send ends.
constexpr double kBySend = 0.8;

struct Send {
  int32_t part, step;
  int64_t start_ns, end_ns;
  bool forward;
  auto place() const { return std::pair(part, step); }
};

// All sends, sorted by rank, step and end.
std::vector<Send> sorted_sends(const Cells& cells) {
  std::vector<Send> sends;
  for (size_t i = 0; i < cells.size(); ++i)
    if (is_send(cells.kind[i]))
      sends.push_back(
          {cells.part[i], cells.step[i], cells.start_ns[i], cells.end_ns[i], cells.kind[i] == CellKind::kSendForward});
  std::ranges::sort(sends, {}, [](const Send& a) { return std::tuple(a.part, a.step, a.end_ns, a.start_ns); });
  return sends;
}

constexpr size_t kMinCells = 4;
constexpr uint32_t kNone = CellTimes::kNone;

}  // namespace

// A send that does not block runs while its rank does something else, so few late cells start just when a send ends. If
// nearly all do, they waited for it: on all ranks, or on some where a late host hides it on the others.
std::shared_ptr<const RankSends> find_rank_sends(const CauseScene& scene, double cell_ns) {
  const StepGraph& graph = scene.graph;
  if (graph.source != GraphSource::kComputeCells) return nullptr;
  const std::vector<Send> sends = sorted_sends(scene.trace.cells);
  if (sends.empty()) return nullptr;
  struct OfRank {
    std::map<uint32_t, RankSends::Blocked> blocked;
    double ns = 0, late_ns = 0;  // of these; delays of all cells that started while a send of the rank ran, or after it
    bool waits() const { return std::ssize(blocked) >= kMinLateCells && ns >= kBySend * late_ns; }
  };
  std::map<int32_t, OfRank> ranks;
  scene.each_op([&](uint32_t op, size_t) {
    const double delay = graph.delay_ns[op];
    if (!scene.tells_delay(op) || graph.cell[op] == kNoCell || !(delay >= kLateWorker * cell_ns)) return;
    const Cell cell = scene.trace.cells.at(graph.cell[op]);
    OfRank& rank = ranks[cell.part];
    const auto begin = cell.start_ns - static_cast<int64_t>(delay);
    const auto slack = static_cast<int64_t>(kAtOnce * cell_ns);
    // Finds the last send that ended by the cell's start, and whether one still ran then.
    auto at = std::ranges::partition_point(sends, [&](const Send& s) {
      return std::tuple(s.part, s.step, s.end_ns) <= std::tuple(cell.part, cell.step, cell.start_ns + slack);
    });
    if (at != sends.end() && at->place() == std::pair(cell.part, cell.step) && at->start_ns < cell.start_ns) {
      rank.late_ns += delay;  // a send goes on, so this cell did not wait for it
      return;
    }
    if (at == sends.begin() || (--at)->place() != std::pair(cell.part, cell.step) || at->end_ns <= begin) return;
    rank.late_ns += delay;
    if (cell.start_ns - at->end_ns > slack) return;
    const double blocked = std::min(at->end_ns, cell.start_ns) - std::max(begin, at->start_ns);
    if (!(blocked > 0)) return;
    rank.ns += std::min(blocked, delay);
    rank.blocked[op] = {std::min(blocked, delay), at->forward};
  });
  OfRank all;
  for (const auto& [part, rank] : ranks) {
    all.blocked.insert(rank.blocked.begin(), rank.blocked.end());
    all.ns += rank.ns, all.late_ns += rank.late_ns;
  }
  auto found = std::make_shared<RankSends>();
  for (auto& [part, rank] : ranks)
    if (all.waits() || rank.waits()) found->blocked.merge(rank.blocked);
  return found->blocked.empty() ? nullptr : found;
}

double launched_late(double by, double more) { return more <= kMaxOfUsual * by ? std::max(0.0, more) : by; }

StartDelays::StartDelays(const CauseScene& scene)
    : scene_(scene), g_(scene.graph), messages_(scene.trace, g_), counted_(counted_ops(g_, scene.counts)),
      late_sends_(scene.measured<LateSends>()), unit_ns_(stamp_unit_ns(scene.trace)) {
  const auto worker_of = [&](uint32_t op) { return scene_.tells_delay(op) ? scene_.times.worker_of(op) : kNone; };
  RawValues<double> durations;
  delays_.arrange(
      counted_, scene_.times.workers().size(), worker_of,
      [&](size_t total) { delays_.all().resize(total), durations.resize(total); },
      [&](uint32_t op, size_t at) { delays_.all()[at] = delay_ns(op), durations[at] = g_.dur_ns[op]; });
  cells_ = durations.size();
  if (cells_ < kMinCells) return;
  const std::vector<size_t> middle = middle_of(cells_);
  const std::vector<double> usual_cells = nth_values(durations, middle);
  cell_ns_ = (usual_cells[0] + usual_cells[1]) / 2;
  durations = {};
  sends_ = find_rank_sends(scene, cell_ns_);
  if (sends_)
    delays_.arrange(
        counted_, scene_.times.workers().size(), worker_of, [&](size_t total) { delays_.all().resize(total); },
        [&](uint32_t op, size_t at) { delays_.all()[at] = delay_ns(op); });
  const std::vector<double> usual = nth_values(delays_.all(), {cells_ / 4, middle[0], middle[1]});
  best_ns_ = std::max(0.0, usual[0]);
  usual_ns_ = (usual[1] + usual[2]) / 2;
  const std::vector<double> medians = delays_.take_medians();
  for (const double own : medians) worked_ += !std::isnan(own);
  for (uint32_t worker = 0; worker < medians.size() && worked_ > 1; ++worker)
    if (const double by = medians[worker] - usual_ns_; by >= kLateWorker * cell_ns_ && by > unit_ns_)
      late_.emplace_back(worker, by);
  if (!late_.empty()) compare_late_workers();
  count_late();
  ask_hosts();
}

bool StartDelays::known() const { return cells_ >= kMinCells; }

std::vector<WorkerWay> StartDelays::ways() const {
  std::vector<WorkerWay> ways;
  for (uint32_t worker = 0; 2 * static_cast<size_t>(worker) < by_way_.size(); ++worker)
    for (const bool forward : {false, true})
      if (late_at({worker, forward}).of > 0) ways.emplace_back(worker, forward);
  return ways;
}

double StartDelays::delay_ns(uint32_t op) const {
  return g_.delay_ns[op] - (sends_ ? sends_->blocked_by(op) : 0) - late_sends_.held_ns(op);
}

LateWorkers StartDelays::late_receivers() const {
  LateWorkers late = late_;
  std::erase_if(late, [&](const auto& one) {
    const auto way = one_way_.find(one.first);
    return way != one_way_.end() && sender_of({one.first, way->second.forward}) == kUnknown;
  });
  return late;
}

std::map<WorkerWay, double> StartDelays::by_late_way() const {
  std::map<WorkerWay, double> by;
  for (const auto& [worker, ns] : late_)
    for (const bool forward : {false, true})
      if (const auto way = one_way_.find(worker); way == one_way_.end() || way->second.forward == forward)
        by[{worker, forward}] = ns;
  return by;
}

void StartDelays::compare_late_workers() {
  struct Starts {
    std::vector<double> way[2], alone;  // delays by direction; delays of cells that wait for their own rank alone
    std::vector<double> receiving;      // for how much of its delay each cell's message was being received
  };
  std::map<uint32_t, Starts> of;
  scene_.each_op([&](uint32_t op, size_t) {
    if (!scene_.tells_delay(op)) return;
    Starts& starts = of[scene_.times.worker_of(op)];
    starts.way[g_.kind[op] == CellKind::kForward].push_back(delay_ns(op));
    if (waits_alone(op)) starts.alone.push_back(delay_ns(op));
    if (const double by = delay_ns(op) - usual_ns_; by > late_ns())
      starts.receiving.push_back(messages_.receiving_ns(op, by));
  });
  std::erase_if(late_, [&](const auto& late) {
    // A rank whose receives were still running is not late: the inputs were not there.
    if (std::vector<double>& receiving = of[late.first].receiving;
        !receiving.empty() && median_of(std::move(receiving)) >= late.second / 2)
      return true;
    std::vector<double> others;
    for (const auto& [worker, starts] : of)
      if (worker != late.first) others.insert(others.end(), starts.alone.begin(), starts.alone.end());
    return std::ssize(others) >= kMinCertain && median_of(std::move(others)) - usual_ns_ >= late.second / 2;
  });
  const auto has_stage = [&](int32_t stage) {
    return std::ranges::any_of(scene_.times.workers(), [&](const auto& worker) { return worker.stage == stage; });
  };
  std::vector<uint32_t> lone;  // late only after messages of a stage that was not read
  for (auto& [worker, by] : late_) {
    Starts& starts = of[worker];
    if (starts.way[0].size() < kMinCells || starts.way[1].size() < kMinCells) continue;
    const double backward = median_of(starts.way[0]) - usual_ns_, forward = median_of(starts.way[1]) - usual_ns_;
    if (std::min(backward, forward) >= kLateWorker * cell_ns_) continue;
    by = std::max(backward, forward);
    one_way_[worker] = {forward > backward, std::move(starts.way[forward > backward])};
    if (const int32_t from = sender_of({worker, forward > backward}); from != kUnknown && !has_stage(from))
      lone.push_back(worker);
  }
  std::erase_if(late_, [&](const auto& late) { return std::ranges::find(lone, late.first) != lone.end(); });
}

bool StartDelays::waits_alone(uint32_t op) const {
  const std::span<const uint32_t> waits = g_.waits(op);
  return std::ranges::all_of(waits,
                             [&](uint32_t on) { return g_.part[on] == g_.part[op] && !is_message(g_.kind[on]); });
}

std::function<double(uint32_t)> StartDelays::excess(bool small) const {
  return [&scene = scene_, late = by_late_way(), usual = usual_ns_, limit = usual_ns_ + (small ? 0 : late_ns()),
          sends = sends_, &late_sends = late_sends_, max = kMaxOfUsual * max_ns_](uint32_t op) {
    if (!scene.tells_delay(op)) return 0.0;
    const auto of = late.find(way_at(scene, op));
    const double blocked = sends ? sends->blocked_by(op) : 0;
    double delay = scene.graph.delay_ns[op] - blocked - late_sends.held_ns(op);
    if (of != late.end()) delay -= launched_late(of->second, delay - usual);
    return delay > limit && delay - usual <= max ? delay - usual : 0.0;
  };
}

void StartDelays::ask_hosts() {
  // Hosts are prompt if cells that wait for their own rank are late less than this share as often as others.
  constexpr double kPrompt = 0.25;
  const double limit = usual_ns_ + late_ns();
  LateStarts own, others;
  scene_.each_op([&](uint32_t op, size_t) {
    if (!scene_.tells_delay(op)) return;
    LateStarts& late = waits_alone(op) ? own : others;
    ++late.of;
    late.count += delay_ns(op) > limit;
  });
  if (own.of < kMinCertain || others.count < kMinCertain) return;
  const auto share = [](const LateStarts& late) { return late.count / static_cast<double>(late.of); };
  hosts_ = share(own) < kPrompt * share(others) ? Hosts::kPrompt : Hosts::kLate;
}

void StartDelays::count_late() {
  const double limit = usual_ns_ + late_ns();
  by_way_.resize(2 * delays_.keys());
  std::vector<double> late_by(by_way_.size(), 0);
  for (const auto& [way, ns] : by_late_way()) late_by[index_of(way)] = ns;
  const OpBlocks blocks(counted_, by_way_.size());
  std::vector<LateStarts> of_block(blocks.size() * by_way_.size());
  blocks.each([&](size_t b, uint32_t op) {
    if (!scene_.tells_delay(op)) return;
    const uint32_t worker = scene_.times.worker_of(op);
    const size_t way = index_of({worker, g_.kind[op] == CellKind::kForward});
    LateStarts& late = of_block[b * by_way_.size() + way];
    ++late.of;
    double delay = delay_ns(op);  // the same as in excess()
    if (late_by[way] > 0) delay -= launched_late(late_by[way], delay - usual_ns_);
    if (!(delay > limit)) return;
    ++late.count;
    late.ns += delay - usual_ns_;
    late.max_ns = std::max(late.max_ns, delay - usual_ns_);
    if (const auto under_way = messages_.under_way_ns(op, delay - usual_ns_))
      late.message_ns += *under_way, ++late.received;
  });
  for (size_t i = 0; i < of_block.size(); ++i) {
    LateStarts& late = by_way_[i % by_way_.size()];
    late.of += of_block[i].of;
    late.count += of_block[i].count;
    max_ns_ = std::max(max_ns_, of_block[i].max_ns);
    late.ns += of_block[i].ns;
    late.message_ns += of_block[i].message_ns;
    late.received += of_block[i].received;
  }
}

int32_t StartDelays::sender_of(const WorkerWay& key) const {
  const int32_t from = scene_.times.workers()[key.first].stage + (key.second ? -1 : 1);
  return from >= 0 && from < scene_.times.stages() ? from : kUnknown;
}

LateStarts StartDelays::sum_of(const std::vector<WorkerWay>& keys) const {
  LateStarts sum;
  for (const WorkerWay& key : keys) {
    const LateStarts& late = by_way_[index_of(key)];
    sum.count += late.count, sum.of += late.of, sum.ns += late.ns;
    sum.message_ns += late.message_ns, sum.received += late.received;
  }
  return sum;
}

StartDelays::Places StartDelays::places_of(const std::vector<WorkerWay>& keys) const {
  const std::set<WorkerWay> ways(keys.begin(), keys.end());
  Places places;
  const auto by = excess();
  scene_.each_op([&](uint32_t op, size_t) {
    if (!scene_.tells_delay(op)) return;
    const WorkerWay key = way_at(scene_, op);
    if (!ways.contains(key)) return;
    const Place place{key.first, g_.kind[op], g_.micro_batch[op], g_.chunk[op]};
    places.all.insert(place);
    if (by(op) > 0) places.late.insert(place);
  });
  return places;
}

std::vector<StartDelays::StepLate> StartDelays::late_by_step(const WorkerWay& key) const {
  std::vector<StepLate> steps(g_.steps.size());
  const auto by = excess();
  scene_.each_op([&](uint32_t op, size_t s) {
    if (!scene_.tells_delay(op) || scene_.times.worker_of(op) != key.first ||
        (g_.kind[op] == CellKind::kForward) != key.second)
      return;
    ++steps[s].of;
    if (const double ns = by(op); ns > 0) ++steps[s].count, steps[s].ns += ns;
  });
  return steps;
}

}  // namespace stageline
