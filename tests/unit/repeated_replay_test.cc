#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "pipeline/replay/replay.h"
#include "schedules/registry.h"

using namespace stageline;

namespace {

// The end of the last cell by replay(), with times of cells and messages as RepeatedReplay takes them.
template <class CellTime, class MessageTime>
int64_t replayed_span(const Schedule& schedule, CellTime&& cell_ns, MessageTime&& message_ns) {
  ReplayCosts costs;
  costs.cell_ns = cell_ns;
  costs.arrival_ns = [&](int32_t from, int32_t to, const Action&, int64_t sent) { return sent + message_ns(from, to); };
  const auto cells = replay(schedule, costs);
  REQUIRE(cells);
  int64_t end = 0;
  for (const auto& rank : *cells) end = std::max(end, rank.back().end_ns);
  return end;
}

}  // namespace

TEST_CASE("a repeated replay ends when a single one does, in every schedule") {
  std::mt19937 rng(7);
  for (const ScheduleDef* def : schedules()) {
    CAPTURE(def->name);
    for (const int32_t stages : {1, 2, 4}) {
      ScheduleSizes sizes;
      sizes.stages = stages, sizes.micro_batches = 4 * stages, sizes.chunks = def->default_chunks;
      const auto schedule = make_schedule(def->name, sizes);
      if (!schedule) continue;  // a schedule that one rank cannot run
      const auto repeated = RepeatedReplay::of(*schedule);
      REQUIRE(repeated);
      for (int turn = 0; turn < 20; ++turn) {
        const uint32_t salt = rng();
        const auto drawn = [&](int64_t a, int64_t b, int64_t c) {
          std::minstd_rand own(static_cast<uint32_t>(salt + 977 * a + 31 * b + c));
          own.discard(3);
          return static_cast<int64_t>(own() % 1000);
        };
        const auto cell_ns = [&](int32_t rank, const ScheduleCell& cell) {
          int64_t sum = 0;
          for (const Action& a : cell.actions()) sum += drawn(rank, static_cast<int64_t>(a.kind), a.chunk);
          return sum;
        };
        const auto message_ns = [&](int32_t from, int32_t to) { return drawn(from, to, 100'000); };
        CHECK(repeated->span_ns(cell_ns, message_ns) == replayed_span(*schedule, cell_ns, message_ns));
      }
    }
  }
}

TEST_CASE("an order that deadlocks is refused before it is repeated") {
  Schedule schedule;
  schedule.sizes.stages = 2, schedule.sizes.micro_batches = 1;
  const Action forward{CellKind::kForward, 0, 0}, backward{CellKind::kBackward, 0, 0};
  schedule.ranks = {{backward, forward}, {forward, backward}};
  const auto repeated = RepeatedReplay::of(schedule);
  REQUIRE(!repeated);
  CHECK(repeated.error().what.find("deadlock") != std::string::npos);
}
