#include "plan/bytes.h"

#include <cmath>

#include "compat/memory_estimates/memory_estimates.h"
#include "plan/pipeline.h"
#include "schedules/registry.h"
#include "unit/plan/planner_data.h"

using namespace stageline;
using namespace stageline::plan;
using planner_data::number;
using planner_data::rows;
using planner_data::whole;

namespace {

// A model of this many layers, of which the first is dense where there are experts, as the measured ones had.
Model cut_to(Model model, int layers) {
  model.kind_of.assign(layers, 0);
  if (model.kinds.size() > 1)
    for (int i = 1; i < layers; ++i) model.kind_of[i] = 1;
  model.mtp = 0;
  return model;
}

Schedule schedule_of(const char* name, int p, int m, int v = 1, int group = 0) {
  ScheduleSizes sizes;
  sizes.stages = p, sizes.micro_batches = m, sizes.chunks = v, sizes.group = group;
  auto made = make_schedule(name, sizes);
  REQUIRE(made);
  return *made;
}

// The peak of one stage of 1F1B that holds these layers.
RankPeak stage_peak(const Model& model, const Layout& layout, int lo, int hi, int held, bool first, bool last,
                    int recompute) {
  PlanProblem problem;
  problem.schedule = schedule_of("1f1b", layout.pp, held);
  problem.held = held_moments(problem.schedule);
  problem.bytes = layout_bytes(model, layout, {});
  problem.kind_of = model.kind_of;
  const int stages = layout.pp;
  const int stage = first ? 0 : last ? stages - 1 : 1;
  ChunkBytes chunk = chunk_bytes(problem, stage, lo, hi, {0, recompute});
  HeldMoment moment;
  moment.held = {static_cast<int16_t>(held)}, moment.waiting = {0}, moment.chunk = 0;
  return rank_peak(problem.bytes, {moment}, {chunk});
}

}  // namespace

TEST_CASE("plan: parameters of public checkpoints are exact") {
  for (const auto& row : rows("params.csv")) {
    CAPTURE(row.at("model"));
    CHECK(total_parameters(planner_data::model("huggingface", row.at("model"))) == number(row, "parameters"));
  }
}

TEST_CASE("plan: FLOPs of a token") {
  for (const auto& row : rows("throughput.csv")) {
    CAPTURE(row.at("model"));
    const Model model = planner_data::model("huggingface", row.at("model"));
    const double wanted = 1e12 * number(row, "tflops_gpu") / number(row, "tokens_s_gpu");
    CHECK(total_flops(model, number(row, "seq")) == doctest::Approx(wanted).epsilon(number(row, "tolerance")));
  }
}

TEST_CASE("plan: the estimates of Megatron and Bridge to the byte") {
  for (const std::string tool : {"megatron", "bridge"})
    for (const auto& row : rows(tool + "_estimator.csv")) {
      CAPTURE(row.at("case"));
      const Model model = planner_data::model("megatron", row.at("model"));
      Layout l;
      l.tp = whole(row, "tp"), l.pp = whole(row, "pp"), l.cp = whole(row, "cp"), l.ep = whole(row, "ep");
      l.etp = whole(row, "etp"), l.dp = whole(row, "dp"), l.micro_batch = whole(row, "mbs");
      l.sequence = number(row, "seq");
      const memory_estimates::Input input{std::max(1, whole(row, "vp")), whole(row, "m"), number(row, "world"),
                                          whole(row, "distopt") != 0};
      int64_t checked = 0;
      for (const memory_estimates::Estimate& one : memory_estimates::estimates(model, l, input))
        if (one.tool == tool)
          for (const auto& [name, bytes] : one.bytes) {
            CHECK(std::llround(bytes) == std::stoll(row.at(name)));
            ++checked;
          }
      CHECK(checked == 3);
    }
}

TEST_CASE("plan: activations by the table of arXiv 2205.05198") {
  for (const auto& row : rows("paper_activations.csv")) {
    CAPTURE(row.at("case"));
    Model model;
    model.hidden = number(row, "h"), model.heads = number(row, "a");
    model.kind_of.assign(whole(row, "L"), 0);
    Layout l;
    l.tp = whole(row, "t"), l.pp = whole(row, "p"), l.micro_batch = whole(row, "b"), l.sequence = number(row, "s");
    const double gib = memory_estimates::paper_activations(model, l, whole(row, "v"), row.at("mode")) / (1 << 30);
    CHECK(gib == doctest::Approx(number(row, "act_gib")).epsilon(number(row, "tolerance")));
  }
}

TEST_CASE("plan: measured memory of ten dense stages and eight with experts or context parallelism") {
  for (const auto& row : rows("measured_b200.csv")) {
    CAPTURE(row.at("case"));
    const int layers = whole(row, "layers"), pp = whole(row, "pp"), stage = whole(row, "stage");
    const Model model = cut_to(planner_data::model("huggingface", row.at("model")), layers);
    Layout l;
    l.tp = whole(row, "tp"), l.pp = pp, l.cp = whole(row, "cp"), l.ep = whole(row, "ep"), l.dp = whole(row, "dp");
    l.sequence = number(row, "seq");
    const double bytes = stage_peak(model, l, stage * layers / pp, (stage + 1) * layers / pp,
                                    std::min(whole(row, "m"), pp - stage), stage == 0, stage == pp - 1, 0)
                             .sum();
    const double error = bytes / (1 << 20) / number(row, "max_allocated_mib") - 1;
    CHECK(std::abs(error) <= number(row, "tolerance"));
    CHECK(error <= 0.005);
    if (!model.moe && l.cp == 1) CHECK(std::abs(error) <= 0.0025);
    MESSAGE(row.at("case"), " stage ", stage, ": ", error * 100, " %");
  }
}

TEST_CASE("plan: the worked examples part by part") {
  for (const auto& row : rows("worked.csv")) {
    CAPTURE(row.at("case"));
    Model model = planner_data::model("huggingface", row.at("model"));
    model.mtp = 0;
    Layout l;
    l.tp = whole(row, "tp"), l.cp = whole(row, "cp"), l.ep = whole(row, "ep"), l.dp = whole(row, "dp");
    l.micro_batch = whole(row, "mbs"), l.sequence = number(row, "seq"), l.pp = 16;
    const RankPeak peak = stage_peak(model, l, whole(row, "lo"), whole(row, "hi"), whole(row, "held"),
                                     whole(row, "first") != 0, whole(row, "last") != 0, whole(row, "recompute_layers"));
    const auto same = [&](double bytes, const char* name) {
      CHECK(bytes == doctest::Approx(number(row, name)).epsilon(1e-9));
    };
    same(peak.states.sum(), "states");
    same(peak.activations, "activations");
    same(peak.recompute, "recompute");
    same(peak.scratch, "scratch");
    same(peak.transient + peak.head, "transient");
  }
}

TEST_CASE("plan: chunks held under three conventions") {
  std::map<std::string, std::vector<RankHeld>> made;
  for (const auto& row : rows("held.csv")) {
    const std::string name = row.at("schedule");
    const std::string key = name + " " + row.at("p") + " " + row.at("m") + " " + row.at("v");
    CAPTURE(key);
    if (!made.contains(key))
      made[key] = held_moments(schedule_of(name.c_str(), whole(row, "p"), whole(row, "m"), whole(row, "v")));
    for (const auto& [column, keeps] :
         {std::pair("held_until_w", 1.0), std::pair("held_until_i", 0.0), std::pair("held_half", 0.5)}) {
      LayoutBytes bytes;
      const std::vector<ChunkBytes> chunks(whole(row, "v"), {.act = 1, .kept_by_w = keeps});
      CHECK(rank_peak(bytes, made[key][whole(row, "rank")], chunks).activations == number(row, column));
    }
  }
}

TEST_CASE("plan: unequal chunks against a walk over every cell") {
  for (const char* name :
       {"1f1b", "vpp", "interleaved-zb", "zb-v", "dualpipe-v", "dualpipe", "zbvpp", "zb-h2", "bfs"}) {
    CAPTURE(name);
    const int v = std::string_view(name) == "1f1b" || std::string_view(name) == "zb-h2" ? 1 : 2;
    const Schedule schedule = schedule_of(name, 4, 10 + (std::string_view(name) == "vpp" ? 2 : 0), v);
    const std::vector<RankHeld> held = held_moments(schedule);
    for (int seed = 1; seed < 40; ++seed)
      for (size_t r = 0; r < schedule.ranks.size(); ++r) {
        std::vector<ChunkBytes> chunks;
        for (int c = 0; c < v; ++c) {
          const double act = 1 + (seed * 7 + c * 13) % 11;
          chunks.push_back(
              {.states = {}, .act = act, .kept_by_w = act * (seed % 5) / 4.0, .backward = 1.0 * (seed % 3)});
        }
        double now = 0, most = 0;
        for (const ScheduleCell& cell : schedule.ranks[r]) {
          double transient = 0;
          for (const Action& a : cell.actions()) {
            if (a.kind == CellKind::kForward) now += chunks[a.chunk].act;
            if (is_backward(a.kind)) transient = chunks[a.chunk].backward;
          }
          most = std::max(most, now + transient);
          for (const Action& a : cell.actions()) {
            if (a.kind == CellKind::kBackward) now -= chunks[a.chunk].act;
            if (a.kind == CellKind::kInputGrad) now -= chunks[a.chunk].act - chunks[a.chunk].kept_by_w;
            if (a.kind == CellKind::kWeightGrad) now -= chunks[a.chunk].kept_by_w;
          }
        }
        const RankPeak peak = rank_peak(LayoutBytes{}, held[r], chunks);
        CHECK(peak.sum() == doctest::Approx(most));
      }
  }
}
