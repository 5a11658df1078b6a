#include "engine/model_tables.h"

#include <doctest/doctest.h>

using namespace stageline;

namespace {

Trace small_trace() {
  Trace trace;
  for (int32_t rank = 0; rank < 2; ++rank) {
    Part part;
    part.rank = rank;
    part.machine = 0;
    part.machine_name = "node0";
    part.device = rank;
    part.stage = rank;
    part.source = "workerlog." + std::to_string(rank);
    Slices rows;
    rows.start_ns = {100, 300};
    rows.dur_ns = {50, 80};
    rows.name_id = {trace.names.intern("forward"), trace.names.intern("backward")};
    rows.file_index = {0, 1};
    part.add_lane("compute", rows);
    trace.parts.push_back(std::move(part));
  }
  trace.cells.add({0, 0, CellKind::kForward, 0, 3, 100, 150, 0});
  trace.cells.add({kUnknown, 0, CellKind::kCollective, kUnknown, kUnknown, 300, 380, kNoSlice});
  trace.diagnostics.add({"test.flaw", Severity::kLoss, {"two lines are left out", ""}, 2, {"workerlog.0", 17, -1}});
  return trace;
}

}  // namespace

TEST_CASE("the cells table says unknown as null") {
  const Table table = cells_table(small_trace());
  REQUIRE(table.row_count() == 2);
  const auto at = [&](const char* name) { return static_cast<size_t>(table.column_index(name)); };
  CHECK(table.integer(0, at("micro_batch")) == 3);
  CHECK(table.text(0, at("kind")) == "F");
  CHECK(table.text(0, at("name")) == "forward");
  CHECK(table.integer(0, at("start_ns")) == 100);
  CHECK(table.integer(0, at("dur_ns")) == 50);
  CHECK(table.is_null(0, at("dp")));
  CHECK(table.is_null(1, at("step")));
  CHECK(table.is_null(1, at("micro_batch")));
  CHECK(table.text(1, at("name")).empty());
}

TEST_CASE("the devices table counts what each rank gave, cells or not") {
  const Table table = devices_table(small_trace());
  REQUIRE(table.row_count() == 2);
  const auto at = [&](const char* name) { return static_cast<size_t>(table.column_index(name)); };
  CHECK(table.integer(0, at("cells")) == 2);
  CHECK(table.integer(0, at("start_ns")) == 100);
  CHECK(table.integer(0, at("end_ns")) == 380);
  CHECK(table.integer(1, at("cells")) == 0);
  CHECK(table.integer(1, at("slices")) == 2);
  CHECK(table.integer(1, at("end_ns")) == 380);  // from its slices
  CHECK(table.text(1, at("source")) == "workerlog.1");
}

TEST_CASE("the diagnostics table keeps the first place") {
  const Table table = diagnostics_table(small_trace().diagnostics);
  REQUIRE(table.row_count() == 1);
  CHECK(table.raw_text(0, 0) == "test.flaw");
  CHECK(table.raw_text(0, 1) == "loss");
  CHECK(table.integer(0, 2) == 2);
  CHECK(table.integer(0, 4) == 17);
  CHECK(table.is_null(0, 5));
}
