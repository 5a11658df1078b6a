// Queries: one text, put to a small run of slices, cells, counters and collectives. Whatever is asked is answered or
// refused with words, nothing of the run changes, and a query and its answer as CSV, JSON and Arrow have as many rows.
#include <memory>

#include "fuzz.h"
#include "sql/answer.h"
#include "sql/session.h"

namespace {

using namespace stageline;

struct Held {
  Trace trace;
  std::shared_ptr<const sql::RunData> data;
};

std::unique_ptr<Held> make_held() {
  auto held = std::make_unique<Held>();
  Trace& trace = held->trace;
  trace.clock = ClockState::kShared;
  trace.categories = {
      {"cpu_op", Category::kCpuOp}, {"kernel", Category::kKernel}, {"gpu_user_annotation", Category::kGpuAnnotation}};
  for (int32_t rank = 0; rank < 2; ++rank) {
    Part part;
    part.rank = part.stage = rank;
    for (uint32_t i = 0; i < 200; ++i) {
      Slices& s = part.slices;
      const bool device = i >= 120;
      s.start_ns.push_back(1000 * static_cast<int64_t>(device ? i - 120 : i / 3 * 3) + rank);
      s.dur_ns.push_back(i % 7 == 0 ? 0 : 900 * (3 - i % 3));
      s.name_id.push_back(trace.names.intern("name " + std::to_string(i % 11)));
      s.file_index.push_back(i);
      s.parent.push_back(i % 3 == 0 ? kNoSliceIndex : i - 1);
      s.correlation.push_back(i);
      s.partner.push_back(device ? i - 120 : i < 80 ? i + 120 : kNoSliceIndex);
      s.args_offset_low.push_back(0);
      s.args_offset_high.push_back(0);
      s.stream_id.push_back(0);
      s.step.push_back(0);
      s.category_id.push_back(device ? (i % 5 == 0 ? uint8_t{2} : uint8_t{1}) : uint8_t{0});
      s.kernel_class.push_back(device && i % 5 != 0 ? uint8_t{1} : uint8_t{0});
    }
    part.lanes.push_back({"thread", 0, 120, LaneKind::kHostThread});
    part.lanes.push_back({"stream", 120, 200, LaneKind::kDeviceStream});
    part.event_count = 200;
    part.slice_links.push_back({3, 9, SliceLinkKind::kForwardBackward});
    part.counters.push_back({"memory", {0, 10'000, 10'000, 50'000}, {1, 2.5, -3, 4}});
    part.collectives.push_back({.slice = 121, .name = trace.names.intern("allreduce"), .group_size = 2, .seq = rank});
    trace.parts.push_back(std::move(part));
  }
  for (int32_t k = 0; k < 20; ++k)
    trace.cells.add({k / 10, k % 2, k % 3 == 0 ? CellKind::kBackward : CellKind::kForward, 0, k, k * 5000,
                     k * 5000 + 4000, kNoSlice});
  trace.cells.sort();
  trace.links.push_back({0, 1});
  held->data = std::make_shared<const sql::RunData>(std::make_shared<const Run>(trace), nullptr,
                                                    std::vector<std::string>{"fuzz"});
  return held;
}

}  // namespace

FUZZ_TARGET(sql) {
  static const std::unique_ptr<Held> held = make_held();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t slices = held->trace.slice_count(), cells = held->trace.cells.size();
  Result<std::unique_ptr<sql::Session>> session = sql::Session::open(held->data);
  FUZZ_CHECK(session, "a session opens");
  sql::Limits limits;
  limits.max_rows = 500;
  limits.timeout = std::chrono::milliseconds(200);
  limits.max_memory = int64_t{64} << 20;
  sql::AnswerTable answer(int64_t{8} << 20);
  const Result<sql::Outcome> outcome = (*session)->ask(text, limits, answer);
  FUZZ_CHECK(held->trace.slice_count() == slices && held->trace.cells.size() == cells, std::string(text));
  if (!outcome) {
    FUZZ_CHECK(!outcome.error().what.empty(), std::string(text));
    return 0;
  }
  FUZZ_CHECK(answer.row_count() <= 500 && outcome->rows == static_cast<int64_t>(answer.row_count()), std::string(text));
  (void)sql::answer_text(answer, 40, false);
  std::string arrow;
  FUZZ_CHECK(sql::write_arrow(answer, [&](std::string_view bytes) { arrow += bytes; }), std::string(text));
  FUZZ_CHECK(arrow.size() % 8 == 0, std::string(text));
  return 0;
}
