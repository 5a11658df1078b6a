#include "diagnosis/what_if/fitted_order.h"

#include <sstream>

#include "unit/plan/planner_data.h"

using namespace stageline;

TEST_CASE("plan: orders fitted to slow links are the best of all that there is room for") {
  const auto list = [](const std::string& text) {
    std::istringstream words(text);
    std::vector<int64_t> out;
    for (int64_t n = 0; words >> n;) out.push_back(n);
    return out;
  };
  int64_t won = 0, lost = 0;
  for (const auto& row : planner_data::rows("fitted_orders.csv")) {
    CAPTURE(row.at("case"));
    LinkCosts c{list(row.at("F")), list(row.at("B")), list(row.at("there")), list(row.at("back")),
                planner_data::whole(row, "micro_batches")};
    std::vector<int32_t> room;
    for (const int64_t n : list(row.at("room"))) room.push_back(static_cast<int32_t>(n));
    const FittedOrder found = fit_order(c, room);
    CHECK(found.plain_ns == planner_data::whole(row, "plain"));
    CHECK(found.span_ns == planner_data::whole(row, "best"));
    for (size_t s = 0; s < room.size(); ++s) {
      CHECK(found.extra[s] <= room[s]);
      if (s > 0) CHECK(found.extra[s] <= found.extra[s - 1]);
    }
    won += found.plain_ns - found.span_ns;
    lost += found.plain_ns - planner_data::whole(row, "no_delay");
  }
  CHECK(won >= 0);
  CHECK(won <= lost);
}

TEST_CASE("plan: one more forward in front of a slow link wins most of its cost back") {
  const LinkCosts c{{10, 10, 10, 10}, {20, 20, 20, 20}, {0, 10, 0}, {0, 10, 0}, 16};
  const FittedOrder found = fit_order(c, {1, 1, 1, 0});
  CHECK(found.plain_ns == 730);
  CHECK(found.span_ns == 590);
  CHECK(found.extra == std::vector<int32_t>{1, 1, 0, 0});
}
