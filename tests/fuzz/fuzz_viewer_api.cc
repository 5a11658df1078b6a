// Routes of the viewer: one target a line, put to a small run of slices, cells and a counter. Whatever is asked is
// answered: an error has words, a binary answer is as long as its header says.
#include <cstring>
#include <memory>

#include "fuzz.h"
#include "server/http/http_server.h"
#include "server/http/query.h"
#include "server/page/routes.h"
#include "server/page/view_run.h"

namespace {

using namespace stageline;

// Two ranks: nested and overlapping slices of one thread, a stream, a counter, and a few linked cells.
std::unique_ptr<ViewRun> make_run() {
  Trace trace;
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
    trace.parts.push_back(std::move(part));
  }
  for (int32_t k = 0; k < 20; ++k)
    trace.cells.add({k / 10, k % 2, k % 3 == 0 ? CellKind::kBackward : CellKind::kForward, 0, k, k * 5000,
                     k * 5000 + 4000, kNoSlice});
  trace.cells.sort();
  trace.links.push_back({0, 1});
  auto run = std::make_unique<ViewRun>("fuzz", std::vector<std::string>{"fuzz"});
  run->set_trace(std::move(trace));
  return run;
}

void check(const ApiAnswer& answer, std::string_view target) {
  if (answer.status >= 400) {
    FUZZ_CHECK(answer.body.find("\"error\":\"") != std::string::npos, std::string(target));
  } else if (answer.type == "application/octet-stream" && target.find("perfetto") == std::string_view::npos) {
    uint32_t length = 0;
    FUZZ_CHECK(answer.body.size() >= sizeof length, std::string(target));
    std::memcpy(&length, answer.body.data(), sizeof length);
    FUZZ_CHECK(4 + size_t{length} <= answer.body.size() && answer.body[4] == '{', std::string(target));
  }
}

}  // namespace

FUZZ_TARGET(viewer_api) {
  static const std::unique_ptr<ViewRun> run = make_run();
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (int lines = 0; !text.empty() && lines < 50; ++lines) {
    const size_t end = std::min(text.size(), text.find('\n'));
    const std::string_view target = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    // A file is written for each: enough of it elsewhere.
    if (target.find("perfetto") == std::string_view::npos) check(api_answer(*run, target), target);
    (void)is_loopback_host(target);
  }
  return 0;
}
