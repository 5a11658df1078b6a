// The values that flags of plan accept, and the short texts of a plan.
#include "cli/plan_flags.h"

#include <doctest/doctest.h>

#include "cli/model_flags.h"
#include "cli/plan_tables.h"

using namespace stageline;
using namespace stageline::plan;

TEST_CASE("a size has a unit, and is neither negative nor beyond 10^18 bytes") {
  CHECK(parse_size("80GiB") == 80.0 * (1 << 30));
  CHECK(parse_size("80 GB") == 80e9);
  CHECK(parse_size("1.5MiB") == 1.5 * (1 << 20));
  CHECK(parse_size("2TiB") == 2048.0 * (1 << 30));
  CHECK(parse_size("1000B") == 1000);
  CHECK(parse_size("0B") == 0);
  for (const char* text : {"", "80", "GiB", "-1GB", "2000000000GB", "80gib", "8x0GB"})
    CHECK_MESSAGE(!parse_size(text), text);
}

TEST_CASE("a split lists the layers of virtual stages, with repeats") {
  const auto split = [](const char* text, int32_t min) { return parse_split(text, "split", min); };
  REQUIRE(split("7,8*3,7", 0));
  CHECK(*split("7,8*3,7", 0) == std::vector<int32_t>{7, 8, 8, 8, 7});
  CHECK(*split(" 1 , 2 * 2 ", 1) == std::vector<int32_t>{1, 2, 2});
  CHECK(*split("0,1", 0) == std::vector<int32_t>{0, 1});
  for (const char* text : {"0,1", "", "1,,2", "1*0", "1*x", "*2", "1*65537", "1.5"})
    CHECK_MESSAGE(!split(text, 1), text);
  CHECK(split("x", 1).error().what.find("--split x") != std::string::npos);
}

TEST_CASE("a measured step names its layout, and what it leaves out is 1 or what the devices leave") {
  Wish wish;
  wish.gpus = 16;
  wish.sequence = 2048;
  wish.model.kind_of.assign(32, 0);
  const auto steps = parse_measured("tp2 pp4 m8=1387ms,tp2 dp3 mbs2 m4=725.5ms", wish);
  REQUIRE(steps);
  REQUIRE(steps->size() == 2);
  const MeasuredStep &first = steps->front(), &second = steps->back();
  CHECK(first.layout.tp == 2);
  CHECK(first.layout.pp == 4);
  CHECK(first.layout.dp == 2);  // 16 devices / (2 · 4)
  CHECK(first.layout.micro_batch == 1);
  CHECK(first.layout.sequence == 2048);
  CHECK(first.micro_batches == 8);
  CHECK(first.step_ns == 1387e6);
  CHECK(second.layout.dp == 3);
  CHECK(second.layout.micro_batch == 2);
  CHECK(second.step_ns == 725.5e6);
  for (const char* text : {"", "tp2", "tp2=0ms", "tp2=-1ms", "xx2=1ms", "tp=1ms", "tp0=1ms", "pp33=1ms", "tp2=1ms,"})
    CHECK_MESSAGE(!parse_measured(text, wish), text);
}

namespace {

Candidate plan_of(std::vector<int32_t> bounds, std::vector<Recompute> recompute) {
  Candidate plan;
  plan.plan.bounds = std::move(bounds);
  plan.plan.recompute = std::move(recompute);
  return plan;
}

}  // namespace

TEST_CASE("equal neighbours of a plan are one item") {
  CHECK(layers_text(plan_of({0, 8, 16, 23}, {{}, {}, {}})) == "2×8 7");
  CHECK(layers_text(plan_of({0, 1}, {{}})) == "1");
  CHECK(recompute_text(plan_of({0, 8, 16, 24}, {{}, {}, {}})) == "");
  CHECK(recompute_text(plan_of({0, 8, 16, 24}, {{0, 4}, {0, 4}, {}})) == "2×4 0");
}
