// Requests of the pages as text. A line is the query of a what-if, of an answer and of the other run's chart, sent to a
// run with a pipeline that can be replayed. Every request is answered, or refused with a message, and a scenario with a
// price has numbers.
#include <cstring>
#include <memory>

#include "fuzz.h"
#include "pipeline/cells/link_cells.h"
#include "server/page/routes.h"
#include "server/page/view_run.h"

namespace {

using namespace stageline;

// 1F1B of two stages and two micro-batches, `steps` steps.
Trace small_pipeline(int32_t steps) {
  Trace trace;
  trace.clock = ClockState::kShared;
  trace.pipeline_stages = 2;
  for (int32_t stage = 0; stage < 2; ++stage) {
    Part part;
    part.rank = part.stage = stage;
    part.dp = 0;
    trace.parts.push_back(std::move(part));
  }
  struct Placed {
    int32_t part, micro_batch, start;
    CellKind kind;
  };
  constexpr Placed kOrder[] = {{0, 0, 0, CellKind::kForward},  {0, 1, 1, CellKind::kForward},
                               {0, 0, 4, CellKind::kBackward}, {0, 1, 7, CellKind::kBackward},
                               {1, 0, 1, CellKind::kForward},  {1, 0, 2, CellKind::kBackward},
                               {1, 1, 4, CellKind::kForward},  {1, 1, 5, CellKind::kBackward}};
  for (int32_t step = 0; step < steps; ++step)
    for (const Placed& c : kOrder) {
      const int64_t start = (step * 10 + c.start) * int64_t{1'000'000};
      trace.cells.add({step, c.part, c.kind, 0, c.micro_batch, start,
                       start + (c.kind == CellKind::kForward ? 1'000'000 : 2'000'000), kNoSlice});
    }
  trace.cells.sort();
  link_cells(trace);
  return trace;
}

std::unique_ptr<ViewRun> make_run() {
  auto run = std::make_unique<ViewRun>("fuzz", std::vector<std::string>{"fuzz"});
  run->set_other("other", {"other"}, []() -> Result<Trace> { return small_pipeline(3); });
  run->set_trace(small_pipeline(2));
  return run;
}

// An answer that is being made is not waited for: others follow, and what was begun is made.
void check(const ViewRun& run, const std::string& target) {
  const ApiAnswer answer = api_answer(run, target);
  if (answer.status >= 400) {
    FUZZ_CHECK(answer.body.find("\"error\":\"") != std::string::npos, target);
    return;
  }
  FUZZ_CHECK(answer.status == 200 || answer.status == 202, target);
  if (answer.type != "application/octet-stream") return;
  uint32_t length = 0;
  FUZZ_CHECK(answer.body.size() >= sizeof length, target);
  std::memcpy(&length, answer.body.data(), sizeof length);
  FUZZ_CHECK(4 + size_t{length} <= answer.body.size() && answer.body[4] == '{', target);
}

}  // namespace

FUZZ_TARGET(viewer_questions) {
  static const std::unique_ptr<ViewRun> run = make_run();
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (int lines = 0; !text.empty() && lines < 20; ++lines) {
    const size_t end = std::min(text.size(), text.find('\n'));
    const std::string query(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
    for (const char* path : {"/api/pipeline/what-if?", "/api/answer?", "/api/pipeline?run=other&"})
      check(*run, path + query);
  }
  return 0;
}
