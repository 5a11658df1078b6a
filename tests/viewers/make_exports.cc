// Writes traces of many shapes as Chrome JSON and as Perfetto protobuf, NAME.json and NAME.pftrace. For each
// pair NAME.expect has the facts that an outside reader must find in it. validate_exports.mjs compares.
// Expectations come straight from the cells and from lists written here by hand, not from the exporters' own
// layout.
//
//   stageline_make_exports FOLDER            every shape; prints their names
//   stageline_make_exports FOLDER CELLS      one large trace of about CELLS cells, and the time it took

#include <chrono>
#include <cstdio>

#include "base/json_writer.h"
#include "base/number.h"
#include "base/output_file.h"
#include "exporters/exporter.h"
#include "pipeline/cells/link_cells.h"
#include "unit/make_trace.h"

using namespace stageline;
using namespace stageline::testing;

namespace {

struct Shape {
  std::string name;
  Trace trace;
  // "process/thread" in the order to be shown, the step track excluded.
  std::vector<std::string> tracks;
  std::vector<std::string> some_names;  // slices that must be there
};

std::vector<Shape> make_shapes() {
  std::vector<Shape> shapes;
  const auto add = [&](std::string name, Trace trace, std::vector<std::string> tracks,
                       std::vector<std::string> some_names) {
    link_cells(trace);
    shapes.push_back({std::move(name), std::move(trace), std::move(tracks), std::move(some_names)});
  };

  add("1f1b_4x8x3", make_1f1b_trace({.steps = 3}),
      {"ranks/rank 0 · stage 0", "ranks/rank 1 · stage 1", "ranks/rank 2 · stage 2", "ranks/rank 3 · stage 3"},
      {"F3 (8.05 ms)", "B1 (16.20 ms)", "step 2 (266.75 ms)"});

  add("two_machines_epoch",
      make_1f1b_trace({.steps = 2, .dp = 2, .machines = 2, .start_ns = 1'760'000'000'123'456'789}),
      {"machine 0/rank 0 · stage 0 · dp 0", "machine 0/rank 1 · stage 1 · dp 0", "machine 0/rank 2 · stage 2 · dp 0",
       "machine 0/rank 3 · stage 3 · dp 0", "machine 1/rank 4 · stage 0 · dp 1", "machine 1/rank 5 · stage 1 · dp 1",
       "machine 1/rank 6 · stage 2 · dp 1", "machine 1/rank 7 · stage 3 · dp 1"},
      {"F7 (8.05 ms)"});

  {
    // Interleaved chunks, and backward halves that partly overlap the work after them.
    Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 4, .chunks = 2, .machines = 1});
    const size_t count = trace.cells.size();
    for (size_t i = 0; i < count; i += 3) {
      Cell half = trace.cells.at(i);
      half.kind = CellKind::kWeightGrad;
      half.start_ns += 3'000'000;
      half.end_ns += 1'000'000;
      trace.cells.add(half);
    }
    trace.cells.sort();
    add("vpp_overlapping", std::move(trace),
        {"machine 0/rank 0 · stage 0", "machine 0/rank 0 · stage 0 (2)", "machine 0/rank 1 · stage 1",
         "machine 0/rank 1 · stage 1 (2)"},
        {"F3.c1 (8.05 ms)", "B0.c0 (16.20 ms)"});
  }

  add("v_layout", make_1f1b_trace({.stages = 3, .micro_batches = 5, .chunks = 2, .layout = ChunkLayout::kV, .tp = 2}),
      {"ranks/rank 0 · stage 0", "ranks/rank 1 · stage 0", "ranks/rank 2 · stage 1", "ranks/rank 3 · stage 1",
       "ranks/rank 4 · stage 2", "ranks/rank 5 · stage 2"},
      {"B4.c1 (16.20 ms)"});

  add("one_rank", make_1f1b_trace({.stages = 1, .micro_batches = 2}), {"ranks/rank 0 · stage 0"}, {"F0 (8.05 ms)"});

  {
    // Machines with names, every lane, names that need escaping.
    Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 2, .machines = 2});
    trace.parts[0].machine_name = "训练节点\"一\"";
    trace.parts[1].machine_name = "训练节点\\二";
    const int64_t end = *std::max_element(trace.cells.end_ns.begin(), trace.cells.end_ns.end());
    for (int32_t part = 0; part < 2; ++part) {
      add_named_cell(trace, {0, part, CellKind::kOptimizer, 0, kUnknown, end, end + 4'100'000}, "优化器");
      add_named_cell(trace, {0, part, CellKind::kCollective, 0, kUnknown, end + 1000, end + 2'001'000},
                     "params-all-gather");
      add_named_cell(trace, {kUnknown, part, CellKind::kOther, 0, kUnknown, end + 5'000'000, end + 5'000'123},
                     "a \"quoted\\name\"\n</script>");
      add_named_cell(trace, {0, part, CellKind::kSendForward, 0, 1, end + 10, end + 12'010}, "send_forward");
    }
    trace.cells.sort();
    const std::string one = "训练节点\"一\"/rank 0", two = "训练节点\\二/rank 1";
    add("names_and_lanes", std::move(trace),
        {one + " · stage 0", one + " · messages", one + " · collectives", one + " · other", two + " · stage 1",
         two + " · messages", two + " · collectives", two + " · other"},
        {"优化器 (4.10 ms)", "params-all-gather (2.00 ms)", "a \"quoted\\name\"\n</script> (0.12 us)",
         "SF1 (12.00 us)"});
  }

  {
    // Makes a log with a clock too coarse for its jobs: instants alone, in rows, touching, inside others.
    Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 0, .steps = 0});
    const auto cell = [&](int32_t part, CellKind kind, int32_t micro_batch, int64_t start_us, int64_t end_us) {
      trace.cells.add({0, part, kind, 0, micro_batch, start_us * 1000, end_us * 1000, kNoSlice});
    };
    cell(0, CellKind::kForward, 0, 0, 0);
    cell(0, CellKind::kForward, 1, 0, 0);
    cell(0, CellKind::kForward, 2, 10, 20);
    cell(0, CellKind::kForward, 3, 20, 20);  // at the end of F2 and at the start of F4
    cell(0, CellKind::kForward, 4, 20, 30);
    cell(1, CellKind::kForward, 0, 5, 5);
    cell(1, CellKind::kForward, 1, 6, 7);
    cell(1, CellKind::kForward, 2, 7, 40);
    cell(1, CellKind::kForward, 3, 40, 40);
    cell(1, CellKind::kForward, 4, 50, 60);
    trace.cells.sort();
    add("instants", std::move(trace),
        {"ranks/rank 0 · stage 0", "ranks/rank 0 · stage 0 (2)", "ranks/rank 1 · stage 1"},
        {"F0 (0.00 us)", "F2 (10.00 us)"});
  }

  {
    // The second rank's clock is behind: some successors start before their predecessors end, and
    // those of backwards end before their predecessors begin.
    Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 4});
    for (size_t i = 0; i < trace.cells.size(); ++i)
      if (trace.cells.part[i] == 1) {
        trace.cells.start_ns[i] -= 20'000'000;
        trace.cells.end_ns[i] -= 20'000'000;
      }
    trace.cells.sort();
    add("skewed_before_zero", std::move(trace), {"ranks/rank 0 · stage 0", "ranks/rank 1 · stage 1"}, {"F3 (8.05 ms)"});
  }

  add("empty", make_1f1b_trace({.stages = 2, .micro_batches = 0, .steps = 0}), {}, {});
  return shapes;
}

std::string expectations(const Shape& shape) {
  const Trace& trace = shape.trace;
  const Cells& cells = trace.cells;
  const int64_t start = extent_of(trace).start_ns;
  JsonWriter json;
  json.begin_object().field("name", shape.name);
  json.key("tracks").begin_array();
  for (const std::string& track : shape.tracks) json.value(track);
  json.end_array().key("some_names").begin_array();
  for (const std::string& name : shape.some_names) json.value(name);
  json.end_array();
  json.field("steps", extent_of(trace).step_count);
  // Exact start as text, where protobuf can hold it.
  json.field("start_ns", std::to_string(std::max<int64_t>(start, 0)));
  const auto number = [&](int32_t value) { value == kUnknown ? json.null() : json.value(value); };
  json.key("cells").begin_array();
  for (size_t i = 0; i < cells.size(); ++i) {
    const Part& part = trace.parts[static_cast<size_t>(cells.part[i])];
    json.begin_array().value(cells.start_ns[i] - start).value(cells.end_ns[i] - cells.start_ns[i]);
    json.value(std::string_view(kind_code(cells.kind[i])));
    for (const int32_t value : {cells.step[i], part.stage, cells.chunk[i], cells.micro_batch[i], part.rank, part.dp})
      number(value);
    json.end_array();
  }
  json.end_array().key("flows").begin_array();  // (rank, ts) → (rank, ts), impossible in JSON
  for (const Link& link : trace.links) {
    json.begin_array();
    for (const uint32_t cell : {link.from_cell, link.to_cell})
      json.value(trace.parts[static_cast<size_t>(cells.part[cell])].rank).value(cells.start_ns[cell] - start);
    json.value(cells.end_ns[link.to_cell] <= cells.start_ns[link.from_cell]).end_array();
  }
  json.end_array().end_object();
  return json.take();
}

bool export_to(const Trace& trace, const char* exporter, const std::string& path) {
  const ExportInput input{trace, trace.diagnostics, {}, {}, {}, {}};
  const auto begin = std::chrono::steady_clock::now();
  const Status status = find_exporter(exporter)->write(input, path);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!status) {
    fprintf(stderr, "%s\n", status.error().text().c_str());
    return false;
  }
  if (trace.cells.size() > 100'000) fprintf(stderr, "%s: %.3f s\n", path.c_str(), took.count());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: stageline_make_exports FOLDER [CELLS]\n");
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/";
  if (argc == 3) {
    const auto wanted = parse_int(argv[2]);
    if (!wanted) return 2;
    TraceSpec spec{.stages = 8, .micro_batches = 32, .steps = 1, .machines = 1, .start_ns = 1'760'000'000'123'456'789};
    spec.steps = static_cast<int32_t>(*wanted / (2 * spec.stages * spec.micro_batches));
    Trace trace = make_1f1b_trace(spec);
    uint64_t random = 12345;  // lengths that vary, as real ones do
    for (int64_t& end : trace.cells.end_ns) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      end -= static_cast<int64_t>(random >> 44);
    }
    const auto begin = std::chrono::steady_clock::now();
    link_cells(trace);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    fprintf(stderr, "%zu cells, %zu links in %.3f s\n", trace.cells.size(), trace.links.size(), took.count());
    return export_to(trace, "chrome", folder + "large.json") && export_to(trace, "perfetto", folder + "large.pftrace")
               ? 0
               : 2;
  }
  for (const Shape& shape : make_shapes()) {
    const std::string base = folder + shape.name;
    if (!export_to(shape.trace, "chrome", base + ".json") || !export_to(shape.trace, "perfetto", base + ".pftrace") ||
        !write_file(base + ".expect", expectations(shape)))
      return 2;
    printf("%s\n", shape.name.c_str());
  }
  return 0;
}
