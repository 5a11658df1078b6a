#include <doctest/doctest.h>

#include "exporters/slice_names.h"
#include "exporters/track_layout.h"
#include "pipeline/cells/link_cells.h"
#include "unit/export_to_text.h"
#include "unit/make_trace.h"

using namespace stageline;
using namespace stageline::testing;

namespace {

std::string name_of(const Trace& trace, size_t cell) {
  std::string name;
  SliceNames(trace, extent_of(trace).chunk_count > 1).append(name, cell);
  return name;
}

Trace trace_of_durations(const std::vector<int64_t>& durations) {
  Trace trace = make_1f1b_trace({.stages = 1, .micro_batches = 1, .steps = 0});
  int64_t at = 0;
  for (const int64_t dur : durations) {
    trace.cells.add({0, 0, CellKind::kForward, 0, 3, at, at + dur, kNoSlice});
    at += 2 * dur + 1;
  }
  return trace;
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("names of one kind share a unit and always have two decimals") {
  const Trace trace = trace_of_durations({8'054'999, 8'055'000, 121'400'000, 999'000, 5'000, 4'999, 0, 2'000'000'000});
  const char* expected[] = {"F3 (8.05 ms)", "F3 (8.06 ms)", "F3 (121.40 ms)", "F3 (1.00 ms)",
                            "F3 (0.01 ms)", "F3 (5.00 us)", "F3 (0.00 ms)",   "F3 (2000.00 ms)"};
  for (size_t i = 0; i < trace.cells.size(); ++i) CHECK(name_of(trace, i) == expected[i]);
  CHECK(name_of(trace_of_durations({3, 3, 3}), 0) == "F3 (0.00 us)");
  CHECK(name_of(trace_of_durations({1'500'000'000}), 0) == "F3 (1.50 s)");
  CHECK(step_name(3, 2'210'000'000) == "step 3 (2.21 s)");
  CHECK(step_name(0, 999'999'999) == "step 0 (1000.00 ms)");
}

TEST_CASE("a cell is named by its label or by its source slice") {
  Trace trace = make_1f1b_trace({.stages = 1, .micro_batches = 1, .steps = 0});
  add_named_cell(trace, {0, 0, CellKind::kForward, 1, 7, 0, 1000}, "forward_step");
  add_named_cell(trace, {0, 0, CellKind::kRecvForward, 0, 7, 0, 1000}, "recv_forward");
  add_named_cell(trace, {0, 0, CellKind::kRecvForward, 0, kUnknown, 0, 1000}, "recv_forward");
  add_named_cell(trace, {0, 0, CellKind::kOptimizer, 0, kUnknown, 0, 1000}, "optimizer");
  trace.cells.add({0, 0, CellKind::kOptimizer, 0, kUnknown, 0, 1000, kNoSlice});
  add_named_cell(trace, {0, 0, CellKind::kOther, 0, kUnknown, 0, 1000}, "bad\xff");
  const char* expected[] = {"F7.c1 (1.00 us)",     "RF7 (1.00 us)", "recv_forward (1.00 us)",
                            "optimizer (1.00 us)", "O (1.00 us)",   "bad\uFFFD (1.00 us)"};
  for (size_t i = 0; i < trace.cells.size(); ++i) CHECK(name_of(trace, i) == expected[i]);
}

TEST_CASE("no two slices of a track overlap, and every cell has its place") {
  Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 6, .steps = 2, .machines = 2});
  const size_t whole = trace.cells.size();
  for (size_t i = 0; i < whole; ++i) {
    Cell cell = trace.cells.at(i);
    cell.start_ns += static_cast<int64_t>(i % 5) * 1'000'000;
    cell.end_ns = i % 7 == 0 ? cell.start_ns : cell.end_ns + static_cast<int64_t>(i % 3) * 10'000'000;
    trace.cells.add(cell);
  }
  trace.cells.sort();
  const TrackLayout layout = lay_out_tracks(trace);
  CHECK(layout.cells_left_out == 0);
  CHECK(layout.tracks.size() > 2);
  std::vector<int> seen(trace.cells.size(), 0);
  for (const Track& track : layout.tracks) {
    CHECK(track.tid > layout.step_pid);
    for (size_t k = track.begin; k < track.end; ++k) {
      const uint32_t cell = layout.cells[k];
      ++seen[cell];
      CHECK(static_cast<uint32_t>(trace.cells.part[cell]) == track.part);
      if (k > track.begin) {
        const uint32_t before = layout.cells[k - 1];
        CHECK(trace.cells.start_ns[cell] >= trace.cells.end_ns[before]);
        CHECK(trace.cells.start_ns[cell] > trace.cells.start_ns[before]);
      }
    }
  }
  CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<ptrdiff_t>(seen.size()));
}

TEST_CASE("cells too deep to show are counted, with their arrows") {
  Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 1, .steps = 0});
  for (int32_t m = 0; m < kMaxRowsPerLane + 3; ++m)
    trace.cells.add({0, 0, CellKind::kForward, 0, m, m, 1'000'000 + m, kNoSlice});
  for (int32_t m = 0; m < kMaxRowsPerLane + 3; ++m)
    trace.cells.add({0, 1, CellKind::kForward, 0, m, 2'000'000 + 10 * m, 2'000'010 + 10 * m, kNoSlice});
  link_cells(trace);
  const TrackLayout layout = lay_out_tracks(trace);
  CHECK(layout.tracks.size() == kMaxRowsPerLane + 1);
  CHECK(layout.cells_left_out == 3);
  const std::string text = export_to_text(trace, "chrome", ".json");
  CHECK(count(text, "\"ph\":\"s\"") == kMaxRowsPerLane);
  CHECK(count(text, "\"ph\":\"f\"") == kMaxRowsPerLane);
  CHECK(text.find("\"flows_left_out\":3,\"cells_left_out\":3}") != std::string::npos);
}

TEST_CASE("overlapping steps open another row") {
  Trace trace = make_1f1b_trace({.stages = 1, .micro_batches = 1, .steps = 0});
  trace.cells.add({4, 0, CellKind::kForward, 0, 0, 0, 100, kNoSlice});
  trace.cells.add({5, 0, CellKind::kForward, 0, 0, 90, 200, kNoSlice});
  trace.cells.add({kUnknown, 0, CellKind::kForward, 0, 0, 300, 400, kNoSlice});
  const TrackLayout layout = lay_out_tracks(trace);
  REQUIRE(layout.steps.size() == 2);
  CHECK(layout.steps[1].row == 1);
  CHECK(layout.step_tracks[1].name == "steps (2)");
}

TEST_CASE("Chrome JSON of the smallest pipeline, byte for byte") {
  Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 1, .steps = 0});
  trace.cells.add({3, 0, CellKind::kForward, 0, 0, 1'760'000'000'123'456'789, 1'760'000'000'123'457'790, kNoSlice});
  trace.cells.add({3, 1, CellKind::kForward, 0, 0, 1'760'000'000'123'458'000, 1'760'000'000'123'459'000, kNoSlice});
  link_cells(trace);
  const std::string expected =
      R"json({"traceEvents":[
{"ph":"M","name":"process_name","pid":2,"args":{"name":"steps"}},
{"ph":"M","name":"process_sort_index","pid":2,"args":{"sort_index":0}},
{"ph":"M","name":"process_name","pid":1,"args":{"name":"ranks"}},
{"ph":"M","name":"process_sort_index","pid":1,"args":{"sort_index":1}},
{"ph":"M","name":"thread_name","pid":2,"tid":3,"args":{"name":"steps"}},
{"ph":"M","name":"thread_sort_index","pid":2,"tid":3,"args":{"sort_index":0}},
{"ph":"M","name":"thread_name","pid":1,"tid":4,"args":{"name":"rank 0 · stage 0"}},
{"ph":"M","name":"thread_sort_index","pid":1,"tid":4,"args":{"sort_index":1}},
{"ph":"M","name":"thread_name","pid":1,"tid":5,"args":{"name":"rank 1 · stage 1"}},
{"ph":"M","name":"thread_sort_index","pid":1,"tid":5,"args":{"sort_index":2}},
{"ph":"X","name":"step 3 (2.21 us)","cat":"step","pid":2,"tid":3,"ts":0.000,"dur":2.211,"cname":"thread_state_unknown","args":{"step":3}},
{"ph":"X","name":"F0 (1.00 us)","cat":"forward","pid":1,"tid":4,"ts":0.000,"dur":1.001,"cname":"thread_state_running","args":{"kind":"F","step":3,"stage":0,"chunk":0,"micro_batch":0,"rank":0,"dp":0}},
{"ph":"s","name":"forward","cat":"pipeline","id":1,"pid":1,"tid":4,"ts":1.000},
{"ph":"X","name":"F0 (1.00 us)","cat":"forward","pid":1,"tid":5,"ts":1.211,"dur":1.000,"cname":"thread_state_running","args":{"kind":"F","step":3,"stage":1,"chunk":0,"micro_batch":0,"rank":1,"dp":0}},
{"ph":"f","bp":"e","name":"forward","cat":"pipeline","id":1,"pid":1,"tid":5,"ts":1.212}
],"displayTimeUnit":"ms","otherData":{"stageline":")json" STAGELINE_VERSION
      R"json(","format":"test","description":"made by make_trace.h","clock":"shared","start_ns":"1760000000123456789","flows_left_out":0,"cells_left_out":0}}
)json";
  CHECK(export_to_text(trace, "chrome", ".json") == expected);
}

TEST_CASE("gzip by extension, the same text") {
  Trace trace = make_1f1b_trace({.steps = 50});
  link_cells(trace);
  CHECK(export_to_text(trace, "chrome", ".json.gz") == export_to_text(trace, "chrome", ".json"));
}

TEST_CASE("extensions choose the exporters") {
  const auto chosen = [](std::string_view path) {
    const auto exporter = choose_exporter("", path);
    return exporter ? std::string((*exporter)->name) : std::string();
  };
  CHECK(chosen("a/b.json") == "chrome");
  CHECK(chosen("b.json.gz") == "chrome");
  CHECK(chosen("b.pftrace") == "perfetto");
  CHECK(chosen("b.perfetto-trace.gz") == "perfetto");
  CHECK((*choose_exporter("chrome", "x"))->needs_tables == false);
}
