// Late sends: a result was ready, its rank had no recorded work, and then sent it. The cause is the host, not the link.
#include "diagnosis/causes/rank_windows.h"
#include "diagnosis/causes/send_delays.h"
#include "diagnosis/causes/telling.h"

namespace stageline {
namespace {

struct LateSendsOwn {
  std::vector<uint32_t> at = {};  // where they are at the same places of every step: one cell for each place
  double usual_ns = 0;
};

// One cell for each place, where places that are late in nearly every step hold nearly all the time; otherwise empty.
std::vector<uint32_t> same_places(const CauseScene& scene, const std::vector<const LateSend*>& late) {
  const auto steps = std::ranges::count(scene.counts, true);
  std::map<std::tuple<CellKind, int32_t, int32_t>, std::vector<const LateSend*>> places;
  double all_ns = 0, fixed_ns = 0;
  for (const LateSend* one : late) {
    const Cell cell = scene.trace.cells.at(one->cell);
    places[{cell.kind, cell.micro_batch, cell.chunk}].push_back(one);
    all_ns += one->ns;
  }
  std::vector<uint32_t> cells;
  for (const auto& [place, of_place] : places) {
    if (steps < kMinLateCells || of_place.size() < kEverywhere * steps) continue;
    cells.push_back(of_place.front()->cell);
    for (const LateSend* one : of_place) fixed_ns += one->ns;
  }
  return fixed_ns >= kEverywhere * all_ns ? cells : std::vector<uint32_t>{};
}

}  // namespace

void suspect_late_sends(CauseScene& scene, std::vector<Suspect>& out) {
  const LateSends& sends = scene.measured<LateSends>();
  std::map<int32_t, std::vector<const LateSend*>> of_part;
  for (const LateSend& one : sends.list) of_part[one.part].push_back(&one);
  for (const auto& [part, late] : of_part) {
    if (std::ssize(late) < kMinLateCells) continue;
    Suspect suspect;
    Cause& cause = suspect.cause;
    cause.kind = &late_sends_cause;
    const Part& own = scene.trace.parts[part];
    std::vector<RankWindow> windows;
    double all_ns = 0;
    for (const LateSend* one : late) {
      all_ns += one->ns;
      windows.push_back({part, one->sent_ns - static_cast<int64_t>(one->ns), one->sent_ns});
    }
    cause.places = {{.kind = PlaceKind::kHost,
                     .ranks = {own.rank},
                     .stage = own.stage,
                     .replica = scene.graph.dp_count > 1 ? own.dp : kUnknown,
                     .name = name_that_fills(scene.trace, std::move(windows))}};
    cause.figures = {.each_ns = all_ns / late.size(),
                     .count = std::ssize(late),
                     .of = sends.sent.at(part),
                     .rank = own.rank,
                     .stage = own.stage};
    cause.own = LateSendsOwn{same_places(scene, late), sends.usual_ns};
    cause.certain = !cause.own.as<LateSendsOwn>().at.empty();
    suspect.without = [&g = scene.graph, &sends, part](uint32_t op, double& dur, double& delay) {
      if (is_compute(g.kind[op]) && g.part[op] == part) delay -= std::min(delay, sends.held_ns(op));
      if (!is_message(g.kind[op]) || g.waits(op).size() != 1) return;
      if (g.part[g.waits(op).front()] == part) dur -= std::min(dur, sends.late_ns(op));
    };
    out.push_back(std::move(suspect));
  }
}

Telling tell_late_sends(std::span<const Cause* const> causes, const TellContext& context) {
  constexpr size_t kShown = 3;
  const Cause& c = *causes.front();
  const auto& own = c.own.as<LateSendsOwn>();
  std::vector<std::string> cells;
  for (const uint32_t at : own.at) {
    const Cell cell = context.trace.cells.at(at);
    cells.push_back(cell_label(cell, cell.chunk > 0));
  }
  Args args = context.args(c);
  args.set("cells", some_of(cells, kShown)).set("usual", human_duration(own.usual_ns));
  Telling telling = say_cause("sends.late", "sends.late", args);
  telling.table = {"links", ""};
  return telling;
}

}  // namespace stageline
