#include "cli/simulate_ascend.h"

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {
namespace {

constexpr int64_t kLatencyNs = 200'000;  // time of a message, unless --latency gives another
constexpr int64_t kMaxRanks = 65'536;    // each rank is a folder with databases
constexpr int64_t kReduceNs = 500'000;   // time to reduce the gradients

Status check_choice(const Arguments& a, const char* name) {
  const std::string choices = flag_of(*a.command, name).choices, given = a.get(name);
  const auto known = split(choices, ',');
  if (!a.has(name) || std::ranges::find(known, given) != known.end()) return {};
  return make_error(ErrorCode::kUsage, "--" + std::string(name) + " is one of " + choices + ", not \"" + given + "\"");
}

}  // namespace

std::string ascend_only_flag(const Arguments& a) {
  for (const char* name : {"level", "tp", "cp", "order", "first-step", "marks", "p2p", "level-none-comm", "pp-info",
                           "empty-pop", "no-step-time", "framework"})
    if (a.has(name)) return name;
  return "";
}

Result<AscendDbOptions> ascend_options_of(const Arguments& a, SimulateOptions& run) {
  AscendDbOptions o;
  for (const char* name : {"level", "marks", "p2p", "level-none-comm", "framework"}) TRY_OK(check_choice(a, name));
  int64_t tp = 1, cp = 1;
  TRY_OK(a.take("tp", 1, 4096, tp));
  TRY_OK(a.take("cp", 1, 4096, cp));
  TRY_OK(a.take("first-step", 0, 1'000'000'000, o.first_step));
  const int64_t peers = tp * cp;
  if (const int64_t ranks = peers * run.dp * run.schedule.sizes.stages; ranks > kMaxRanks)
    return make_error(ErrorCode::kUsage,
                      grouped(ranks) + " ranks, each a folder with databases, are more than " + grouped(kMaxRanks),
                      "ask for a smaller --tp, --cp or --dp");
  const std::string order = a.get("order", "tp-cp-ep-dp-pp");
  TRY_OK(check_rank_order(order));
  o.grid.size = {static_cast<int32_t>(tp), static_cast<int32_t>(cp), run.dp, run.schedule.sizes.stages};
  o.grid.order = grid_order(order);

  const std::string level = a.get("level", "none");
  o.level = level == "none" ? AscendLevel::kNone : level == "0" ? AscendLevel::kLevel0 : AscendLevel::kLevel1;
  o.marks = a.get("marks", "guide") == "guide" ? AscendMarks::kGuide : AscendMarks::kHelper;
  const std::string comm = a.get("level-none-comm");
  o.level_none_comm = comm.empty()      ? LevelNoneComm::kNo
                      : comm == "plain" ? LevelNoneComm::kPlain
                                        : LevelNoneComm::kEscaped;
  if (!comm.empty() && o.level != AscendLevel::kNone)
    return make_error(ErrorCode::kUsage, "--level-none-comm is for --level none");
  o.batch_p2p = a.get("p2p", "single") == "batch";
  o.empty_pop = a.has("empty-pop");
  o.step_time = !a.has("no-step-time");
  o.pp_info = a.has("pp-info");
  o.mindspore = a.get("framework", "pytorch") == "mindspore";

  if (!a.has("latency")) run.costs.latency_ns = kLatencyNs;
  run.peers = static_cast<int32_t>(peers);
  if (run.dp * cp > 1) run.reduce_ns = kReduceNs;
  for (int32_t dp = 0; dp < run.dp; ++dp)
    for (int32_t stage = 0; stage < run.schedule.sizes.stages; ++stage)
      for (int32_t c = 0; c < static_cast<int32_t>(cp); ++c)
        for (int32_t t = 0; t < static_cast<int32_t>(tp); ++t) run.rank_of.push_back(o.grid.rank_at(t, c, dp, stage));
  o.latency_ns = run.costs.latency_ns;
  o.reduce_ns = run.reduce_ns;
  o.schedule = run.schedule;
  return o;
}

}  // namespace stageline
