// Orders as text: whatever is accepted is an order that runs, and comes back from both forms unchanged.
#include "fuzz.h"
#include "pipeline/order/check_order.h"
#include "pipeline/replay/order_text.h"
#include "pipeline/replay/schedule_numbers.h"

FUZZ_TARGET(order_text) {
  using namespace stageline;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<ReadOrder> read = read_order(text, "order.csv", std::nullopt);
  if (!read) {
    FUZZ_CHECK(!read.error().what.empty(), "an error without words");
    return 0;
  }
  const Schedule& schedule = read->schedule;
  FUZZ_CHECK(bool(check_order(schedule)), "an order that is none");
  const auto times = replay(schedule, UnitCosts{});
  FUZZ_CHECK(bool(times), "an order that deadlocks");
  const ScheduleNumbers numbers = schedule_numbers(schedule, *times);
  FUZZ_CHECK(numbers.max_span_bubble_ns >= numbers.max_inner_bubble_ns, "bubbles");
  const Result<ReadOrder> table = read_order(order_csv(schedule), "again", schedule.layout);
  FUZZ_CHECK(bool(table) && table->schedule.ranks == schedule.ranks, order_csv(schedule));
  if (const Result<std::string> torch = torch_csv(schedule)) {
    const Result<ReadOrder> back = read_order(*torch, "again", std::nullopt);
    FUZZ_CHECK(bool(back) && back->schedule.ranks == schedule.ranks, *torch);
  }
  return 0;
}
