#include "server/cell_payload.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/base64.h"

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

TEST_CASE("above the limit whole steps are embedded, from the first on") {
  const Trace trace = three_steps();
  CHECK(embedded_cell_count(trace.cells, 12) == 12);
  CHECK(embedded_cell_count(trace.cells, 11) == 8);
  CHECK(embedded_cell_count(trace.cells, 4) == 4);
  CHECK(embedded_cell_count(trace.cells, 3) == 3);
}

TEST_CASE("payload columns are aligned, relative and complete; links to cut cells are dropped") {
  Trace trace = three_steps();
  trace.links = {{5, 6}, {0, 1}, {7, 8}};
  const CellPayload payload = make_cell_payload(trace, 8);
  CHECK(payload.cell_count == 8);
  CHECK(payload.link_count == 2);
  CHECK(payload.part_zero_ns == std::vector<int64_t>{1000});
  for (const PayloadColumn& column : payload.columns) CHECK(column.offset_bytes % 8 == 0);
  double start[8];
  std::copy_n(payload.bytes.data() + payload.columns[0].offset_bytes, sizeof start, reinterpret_cast<char*>(start));
  CHECK(start[0] == 0);
  CHECK(start[5] == 110);
}
