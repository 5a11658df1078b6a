#include "server/pipeline/cell_payload.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/hashes.h"
#include "server/pipeline/pipeline_view.h"

using namespace stageline;

namespace {

Trace three_steps() {
  Trace trace;
  trace.parts.resize(1);
  for (int step = 0; step < 3; ++step)
    for (int mb = 0; mb < 4; ++mb)
      trace.cells.add({step, 0, CellKind::kForward, 0, mb, 1000 + step * 100 + mb * 10, 1005 + step * 100 + mb * 10});
  trace.cells.sort();
  return trace;
}

}  // namespace

TEST_CASE("base64 pads as RFC 4648 says") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("\xff\xfe\x00x") == "//4=");  // a literal ends at its zero byte
}

TEST_CASE("above the limit whole steps are embedded: those wanted, then from the first on") {
  const Trace trace = three_steps();
  const auto kept = [&](size_t max, const std::vector<int32_t>& first = {}) {
    std::vector<std::pair<int32_t, size_t>> steps;
    for (const StepRange& range : embedded_steps(trace.cells, max, first))
      steps.emplace_back(range.step, range.end - range.begin);
    return steps;
  };
  using Steps = std::vector<std::pair<int32_t, size_t>>;
  CHECK(kept(12) == Steps{{0, 4}, {1, 4}, {2, 4}});
  CHECK(kept(11) == Steps{{0, 4}, {1, 4}});
  CHECK(kept(4) == Steps{{0, 4}});
  CHECK(kept(3) == Steps{{0, 3}});
  CHECK(kept(11, {2}) == Steps{{0, 4}, {2, 4}});
  CHECK(kept(4, {1, 2}) == Steps{{1, 4}});
  CHECK(kept(3, {2, 1}) == Steps{{2, 3}});
  CHECK(kept(8, {2, 1, 7}) == Steps{{1, 4}, {2, 4}});
}

TEST_CASE("the worst step is drawn first: the longest outlier, then the usual one") {
  PipelineSums sums;
  const int64_t spans[] = {10, 12, 40, 11, 30, 10};
  for (int32_t step = 0; step < 6; ++step) sums.steps.push_back({step, 0, spans[step], 0, spans[step]});
  sums.outliers = {2, 4};
  CHECK(steps_by_worth(sums) == std::vector<int32_t>{2, 0, 4});
  sums.outliers = {};
  CHECK(steps_by_worth(sums).front() == 2);
  CHECK(steps_by_worth(PipelineSums{}).empty());
}

TEST_CASE("payload columns are aligned, relative and complete; links to cut cells are dropped") {
  Trace trace = three_steps();
  trace.links = {{5, 6}, {0, 1}, {7, 8}};
  const CellPayload payload = make_cell_payload(trace, embedded_steps(trace.cells, 8));
  CHECK(payload.cell_count == 8);
  CHECK(payload.link_count == 2);
  CHECK(payload.part_zero_ns == std::vector<int64_t>{1000});
  for (const PayloadColumn& column : payload.columns) CHECK(column.offset_bytes % 8 == 0);
  double start[8];
  std::copy_n(payload.bytes.data() + payload.columns[0].offset_bytes, sizeof start, reinterpret_cast<char*>(start));
  CHECK(start[0] == 0);
  CHECK(start[5] == 110);
  const CellPayload last = make_cell_payload(trace, embedded_steps(trace.cells, 4, {1}));
  CHECK(last.cell_count == 4);
  CHECK(last.link_count == 1);
  CHECK(last.has_step(1));
  CHECK(!last.has_step(0));
  std::copy_n(last.bytes.data() + last.columns[0].offset_bytes, 4 * sizeof(double), reinterpret_cast<char*>(start));
  CHECK(start[1] == 110);
}
