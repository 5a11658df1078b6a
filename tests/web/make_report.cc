// stageline_make_report FOLDER: writes the reports that the browser tests open, from hand-made traces.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include "base/number.h"
#include "base/output_file.h"
#include "engine/engine.h"
#include "exporters/ascend_db/ascend_db.h"
#include "exporters/html/html.h"
#include "pipeline/simulate.h"
#include "pipeline/theory.h"
#include "schedules/make.h"

using namespace stageline;

namespace {

constexpr int64_t kMs = 1'000'000;

struct Shape {
  int stages = 4, replicas = 1, micro_batches = 8, steps = 5;
  int64_t forward_ns = 30 * kMs, backward_ns = 62 * kMs;
  bool split_backward = false;  // I and W instead of B
};

void add_cell(Trace& trace, int part, Cell cell) {
  cell.part = part;
  Part& owner = trace.parts[static_cast<size_t>(part)];
  cell.slice = static_cast<uint32_t>(owner.slices.size());
  owner.slices.start_ns.push_back(cell.start_ns);
  owner.slices.dur_ns.push_back(cell.end_ns - cell.start_ns);
  const std::string name = std::string(kind_name(cell.kind)) + "_step(" + std::string(kind_code(cell.kind)) + ")";
  owner.slices.name_id.push_back(trace.names.intern(name));
  owner.slices.file_index.push_back(cell.slice);
  trace.cells.add(cell);
}

// 1F1B with a slow last stage: every stage works through its list as soon as its input is there.
void add_step(Trace& trace, const Shape& shape, int step, int replica, int64_t zero, int64_t& end) {
  const int p = shape.stages, m = shape.micro_batches;
  std::vector<std::vector<int64_t>> forward(static_cast<size_t>(p), std::vector<int64_t>(static_cast<size_t>(m), -1));
  auto backward = forward;
  std::vector<int64_t> now(static_cast<size_t>(p), zero);
  std::vector<int> f(static_cast<size_t>(p)), b(static_cast<size_t>(p));
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = p - 1; s >= 0; --s) {
      const auto i = static_cast<size_t>(s);
      const bool warm = f[i] < m && f[i] - b[i] < p - s;
      const int mb = warm ? f[i] : b[i];
      if (mb >= m) continue;
      const auto k = static_cast<size_t>(mb);
      const int64_t ready =
          warm ? (s == 0 ? zero : forward[i - 1][k]) : (s == p - 1 ? forward[i][k] : backward[i + 1][k]);
      if (ready < 0) continue;
      const int64_t slow = s == p - 1 ? 3 : 2,
                    jitter = ((step * 7919 + s * 104729 + mb * 1299709 + replica * 15485863) % 997) * 977;
      const int64_t dur = (warm ? shape.forward_ns : shape.backward_ns) * slow / 2 + jitter;
      const int64_t start = std::max(now[i], ready + 200'000);
      const int part = replica * p + s;
      Cell cell{step, part, warm ? CellKind::kForward : CellKind::kBackward, 0, mb, start, start + dur};
      if (!warm && shape.split_backward) {
        cell.kind = CellKind::kInputGrad;
        cell.end_ns = start + dur / 2;
        add_cell(trace, part, cell);
        cell.kind = CellKind::kWeightGrad;
        cell.start_ns = cell.end_ns;
        cell.end_ns = start + dur;
      }
      add_cell(trace, part, cell);
      const int64_t ended = start + dur;
      if (s < p - 1 && warm)
        add_cell(trace, part, {step, part, CellKind::kSendForward, 0, mb, ended, ended + 1'500'000});
      if (s > 0 && !warm) add_cell(trace, part, {step, part, CellKind::kSendBackward, 0, mb, ended, ended + 1'500'000});
      (warm ? forward : backward)[i][k] = now[i] = ended;
      ++(warm ? f : b)[i];
      moved = true;
    }
  }
  int64_t last = 0;
  for (const int64_t t : now) last = std::max(last, t);
  for (int s = 0; s < p; ++s) {
    const int part = replica * p + s;
    const int64_t done = now[static_cast<size_t>(s)] + 4 * kMs;
    add_cell(trace, part, {step, part, CellKind::kCollective, 0, kUnknown, done, last + 28 * kMs});
    add_cell(trace, part, {step, part, CellKind::kOptimizer, 0, kUnknown, last + 30 * kMs, last + 46 * kMs});
  }
  end = std::max(end, last + 50 * kMs);
}

void link_cells(Trace& trace, const Shape& shape) {
  // F(s, mb) → F(s+1, mb) and B(s+1, mb) → B(s, mb), found by scanning: the traces are small.
  const Cells& cells = trace.cells;
  const auto key = [&](size_t i, int stage_by) {
    const Part& part = trace.parts[static_cast<size_t>(cells.part[i])];
    const int64_t stage = part.stage + stage_by;
    if (stage < 0 || stage >= shape.stages) return int64_t{-1};
    return ((cells.step[i] * int64_t{64} + part.dp) * 256 + stage) * 4096 + cells.micro_batch[i] * 2 +
           (cells.kind[i] == CellKind::kForward ? 0 : 1);
  };
  std::vector<std::pair<int64_t, uint32_t>> index;
  for (size_t i = 0; i < cells.size(); ++i)
    if (cells.kind[i] == CellKind::kForward || cells.kind[i] == CellKind::kBackward)
      index.emplace_back(key(i, 0), static_cast<uint32_t>(i));
  std::sort(index.begin(), index.end());
  for (const auto& [own, cell] : index) {
    const int64_t next = key(cell, cells.kind[cell] == CellKind::kForward ? 1 : -1);
    const auto found = std::lower_bound(index.begin(), index.end(), std::pair<int64_t, uint32_t>{next, 0});
    if (next >= 0 && found != index.end() && found->first == next) trace.links.push_back({cell, found->second});
  }
}

void fill_trace(Trace& trace, const Shape& shape) {
  trace.format = "hand-made";
  trace.description = std::to_string(shape.stages * shape.replicas) + " made-up logs";
  trace.clock = ClockState::kShared;
  for (int r = 0; r < shape.replicas; ++r)
    for (int s = 0; s < shape.stages; ++s) {
      Part part;
      part.rank = r * shape.stages + s;
      part.machine = part.rank / 8;
      part.device = part.rank % 8;
      part.stage = s;
      part.dp = r;
      part.machine_name = "node" + std::to_string(part.machine);
      part.source = "workerlog." + std::to_string(part.rank);
      trace.parts.push_back(std::move(part));
    }
  int64_t zero = 1'697'793'307'213'760'986;
  for (int step = 0; step < shape.steps; ++step) {
    int64_t end = zero;
    for (int r = 0; r < shape.replicas; ++r) add_step(trace, shape, step + 10, r, zero, end);
    zero = end;
  }
  trace.cells.sort();
  link_cells(trace, shape);
}

Table stages_table(const Shape& shape) {
  Table table("stages", "Stages",
              {{"stage", "stage", ColumnType::kInteger, "Pipeline stage."},
               {"kind", "kind", ColumnType::kText, "F forward, B backward, all both."},
               {"mean_ns", "mean", ColumnType::kDuration, "Mean duration of a cell."},
               {"ratio_to_median", "to median", ColumnType::kRatio, "Against the median of all stages."}});
  for (int64_t s = 0; s < shape.stages; ++s) {
    const int64_t slow = s == shape.stages - 1 ? 3 : 2;
    const double ratio = static_cast<double>(slow) / 2;
    table.add_row({s, std::string("F"), shape.forward_ns * slow / 2, ratio});
    table.add_row({s, std::string("B"), shape.backward_ns * slow / 2, ratio});
    table.add_row({s, std::string("all"), (shape.forward_ns + shape.backward_ns) * slow / 2, ratio});
  }
  return table;
}

Table steps_table(const Trace& trace) {
  Table table("steps", "Steps",
              {{"step", "step", ColumnType::kInteger, "Training step."},
               {"span_ns", "span", ColumnType::kDuration, "First start to last end."},
               {"cell_count", "cells", ColumnType::kInteger, "Cells in the step."},
               {"span_bubble_share", "span bubble", ColumnType::kShare, "Share of the span that was not compute."}});
  for (const StepRange& range : step_ranges(trace.cells)) {
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = range.begin; i < range.end; ++i) {
      first = std::min(first, trace.cells.start_ns[i]);
      last = std::max(last, trace.cells.end_ns[i]);
    }
    table.add_row({int64_t{range.step}, last - first, static_cast<int64_t>(range.end - range.begin), 0.364});
  }
  return table;
}

Table long_table() {
  Table table("cells", "Cells",
              {{"row", "row", ColumnType::kInteger, "Number of the row."},
               {"name", "name", ColumnType::kText, ""},
               {"dur_ns", "duration", ColumnType::kDuration, ""}});
  for (int64_t i = 0; i < 5000; ++i)
    table.add_row({i, "cell " + std::to_string(i), i % 17 == 0 ? kNullInteger : i * 1000 * (i % 7)});
  return table;
}

Headline headline() {
  return {"902 ms a step, 36 % of it not computing.",
          "每步 902 ms，其中 36 % 没有在计算。",
          "Most of the loss is the schedule itself: 1F1B with 8 micro-batches on 4 stages. The rest is stage 3, which "
          "every other stage waits for.",
          "主要损失来自调度本身：4 级、8 个微批次的 1F1B。其余是第 3 级，其他各级都在等它。",
          {{"compute", "compute", "计算", 0.486},
           {"schedule_bubble", "schedule bubble", "调度气泡", 0.364},
           {"imbalance", "imbalance", "不均衡", 0.149},
           {"rest", "rest", "其余", 0.001}}};
}

std::vector<Finding> findings() {
  return {{"stage.slow", 0.185, "−18.5 %", "if balanced", "若均衡", "Move about two layers away from stage 3",
           "从第 3 级移走约两层", "Its cells take 1.50× the others, in every step and both replicas: the output head.",
           "它的单元用时是其他级的 1.50 倍，每一步、每个副本都如此：输出层。"},
          {"schedule.bubble", 0.17, "−17 %", "of time a token", "每 token 用时",
           "Raise micro-batches from 8 to 16, or interleave two chunks a stage", "把微批次从 8 增至 16，或每级交错两块",
           "The 1F1B bubble is 27 % of the span with m = 2p. It halves at m = 16; activation memory stays at four "
           "micro-batches.",
           "m = 2p 时 1F1B 气泡占跨度 27 %；m = 16 时减半，激活内存仍为四个微批次。"},
          {"nothing.else", 0, "< 2 %", "", "", "Nothing else is worth a change today", "今天没有其他值得改的",
           "Messages 0.1 %, jitter below its own error, launch delays 1.9 %. No slow worker, no slow link.",
           "通信 0.1 %，抖动低于误差，启动延迟 1.9 %。没有慢节点，也没有慢链路。"}};
}

int write(const std::string& path, const ExportInput& input, const HtmlLimits& limits = {}) {
  const Status done = write_file(path, html_report(input, limits));
  if (!done) fprintf(stderr, "%s\n", done.error().text().c_str());
  return done ? 0 : 1;
}

int usual(const std::string& folder) {
  const Shape shape{.replicas = 2};
  Trace trace;
  fill_trace(trace, shape);
  trace.diagnostics.add("paddle.truncated_line", Severity::kLoss, "A line ends early; the jobs before it are kept.",
                        {"workerlog.3", 17, -1}, 2);
  trace.diagnostics.add("steps.inferred", Severity::kInfo, "Steps are numbered by the log.");
  const std::vector<Table> tables = {stages_table(shape), steps_table(trace), long_table()};
  return write(folder + "/usual.html", {trace, tables, headline(), findings(), {.title = "trace-ST"}});
}

// A run beside its schedule, as `stageline report` shows it: one clock, latency that theory does not have.
int theory(const std::string& folder) {
  SimulateOptions o;
  Result<Schedule> schedule = make_schedule("1f1b", {.stages = 4, .micro_batches = 8});
  if (!schedule) return 1;
  o.schedule = std::move(*schedule);
  o.dp = 2;
  o.steps = 2;
  o.costs.latency_ns = 4 * kMs;
  o.faults = {{"slow-stage", 2, 1.4}};
  Result<SimulatedRun> run = simulate_run(o);
  if (!run) return 1;
  Trace& trace = run->trace;
  trace.cells.sort();
  const std::vector<Table> tables = all_tables(trace, trace.diagnostics);
  const Findings found = findings_of(trace, tables);
  const Theory made = theory_of(trace).theory;
  const ExportInput input{
      trace, tables, found.headline, found.list, {.title = "theory"}, [&]() -> const Theory& {
    return made; }};
  return write(folder + "/theory.html", input);
}

int wide(const std::string& folder) {  // 64 ranks, split backward, clocks not aligned
  const Shape shape{.stages = 8, .replicas = 8, .micro_batches = 16, .steps = 3, .split_backward = true};
  Trace trace;
  fill_trace(trace, shape);
  trace.clock = ClockState::kUnaligned;
  const std::vector<Table> tables = {stages_table(shape), steps_table(trace)};
  return write(folder + "/wide.html", {trace, tables, headline(), findings(), {.title = "64 ranks"}});
}

int empty(const std::string& folder) {
  Trace trace;
  const std::vector<Table> tables = {Table("steps", "Steps", {{"step", "step", ColumnType::kInteger, ""}}),
                                     Table("stages", "Stages", {})};
  return write(folder + "/empty.html", {trace, tables, {}, {}, {}});
}

int edge(const std::string& folder) {  // no stages, no steps, own zeros, an instant, a table without rows
  Trace trace;
  trace.format = "hand-made";
  trace.clock = ClockState::kPerRank;
  for (int r = 0; r < 2; ++r) {
    Part part;
    part.rank = r;
    trace.parts.push_back(std::move(part));
  }
  trace.cells.add({kUnknown, 0, CellKind::kForwardBackward, 1, 2, 500, 500 + 3 * kMs});
  trace.cells.add({kUnknown, 0, CellKind::kOther, 0, kUnknown, 700, 700});
  trace.cells.add({kUnknown, 1, CellKind::kForward, 0, 0, 9'000'000'000'000, 9'000'000'000'000 + kMs});
  trace.cells.sort();
  const std::vector<Table> tables = {Table("steps", "Steps", {{"step", "step", ColumnType::kInteger, ""}})};
  return write(folder + "/edge.html", {trace, tables, {}, {}, {}});
}

int many(const std::string& folder) {  // devices of 1500 ranks
  Trace trace;
  Table table("temporal-breakdown", "Where each device's time went",
              {{"rank", "rank", ColumnType::kInteger, ""},
               {"span_ns", "span", ColumnType::kDuration, ""},
               {"compute_ns", "computing", ColumnType::kDuration, ""},
               {"non_compute_ns", "other work", ColumnType::kDuration, ""},
               {"idle_ns", "idle", ColumnType::kDuration, ""}});
  for (int64_t rank = 0; rank < 1500; ++rank) table.add_row({rank, 9 * kMs, 5 * kMs, 3 * kMs, kMs});
  return write(folder + "/many.html", {trace, {table}, {}, {}, {.title = "many"}});
}

int hostile(const std::string& folder) {
  const std::string bad = "</script><img src=x onerror=alert(1)><!--<script>&\"' \xff\xe2\x80\xa8";
  Trace trace;
  fill_trace(trace, {.steps = 1});
  trace.format = trace.description = trace.parts[0].machine_name = trace.parts[0].source = bad;
  for (Part& part : trace.parts)
    for (StringId& id : part.slices.name_id) id = trace.names.intern(bad);
  trace.diagnostics.add(bad, Severity::kLoss, bad, {bad, 1, -1});
  Table table(bad, bad, {{bad, bad, ColumnType::kText, bad}});
  table.add_row({bad});
  const Headline words{bad, bad, bad, bad, {{bad, bad, bad, 1}}};
  return write(folder + "/hostile.html",
               {trace, {table}, words, {{bad, 0.5, bad, bad, bad, bad, bad, bad, bad}}, {.title = bad}});
}

int large(const std::string& folder) {  // about 107 000 cells
  const Shape shape{.stages = 8, .replicas = 2, .micro_batches = 16, .steps = 136};
  Trace trace;
  fill_trace(trace, shape);
  const std::vector<Table> tables = {stages_table(shape), steps_table(trace), long_table()};
  const int failed = write(folder + "/large.html", {trace, tables, headline(), findings(), {.title = "107 k cells"}});
  return failed + write(folder + "/cut.html", {trace, tables, headline(), findings(), {.title = "cut short"}},
                        {.cells = 10'000, .table_rows = 50});
}

// A profiler trace through every analysis, as `stageline report` does it, and one table that the page does not know.
int profile(const std::string& path, const std::string& source, bool unknown_table = false) {
  Result<Trace> trace = open_trace({source}, {});
  if (!trace) {
    fprintf(stderr, "%s: %s\n", source.c_str(), trace.error().what.c_str());
    return 1;
  }
  std::vector<Table> tables = all_tables(*trace, trace->diagnostics);
  const Findings found = findings_of(*trace, tables);
  if (unknown_table) {
    Table unknown("moon-phases", "Phases of the moon", {{"phase", "phase", ColumnType::kText, ""}});
    unknown.add_row({"waxing"});
    tables.push_back(std::move(unknown));
  }
  return write(path, {*trace, tables, found.headline, found.list, {.title = "two ranks"}});
}

// Profiles of 16 Ascend NPUs: four stages of two replicas and two slices.
int cluster(const std::string& folder) {
  SimulateOptions o;
  Result<Schedule> schedule = make_schedule("1f1b", {.stages = 4, .micro_batches = 8});
  if (!schedule) return 1;
  AscendDbOptions db;
  db.schedule = o.schedule = std::move(*schedule);
  db.level = AscendLevel::kLevel1;
  db.grid.size = {2, 1, 2, 4};  // tp, cp, dp, pp
  db.latency_ns = o.costs.latency_ns = 200'000;
  db.reduce_ns = o.reduce_ns = 500'000;
  o.dp = o.peers = o.steps = 2;
  o.faults = {{"slow-stage", 2, 1.4}};
  for (int32_t dp = 0; dp < 2; ++dp)
    for (int32_t stage = 0; stage < 4; ++stage)
      for (int32_t tp = 0; tp < 2; ++tp) o.rank_of.push_back(db.grid.rank_at(tp, 0, dp, stage));
  Result<SimulatedRun> run = simulate_run(o);
  const std::string profiles = folder + "/cluster";
  std::error_code ec;
  std::filesystem::create_directories(profiles, ec);
  if (!run || ec || !write_ascend_databases(run->trace, run->clock_offset_ns, db, profiles)) return 1;
  return profile(folder + "/cluster.html", profiles);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: stageline_make_report FOLDER TESTS\n");
    return 2;
  }
  const std::string folder = argv[1], tests = argv[2], golden = tests + "/golden/readers/";
  const int profiles = profile(folder + "/profile.html", golden + "kineto/input", true) +
                       profile(folder + "/both.html", golden + "kineto-pipeline/input") +
                       profile(folder + "/modules.html", golden + "kineto-modules/input") + cluster(folder) +
                       profile(folder + "/host.html", tests + "/torch/recorded/memory-shapes.trace.json.gz");
  const int pipelines = usual(folder) + theory(folder) + wide(folder) + empty(folder) + edge(folder) + hostile(folder) +
                        large(folder) + many(folder);
  return profiles + pipelines == 0 ? 0 : 2;
}
