#include <random>

#include "plan/search.h"
#include "unit/plan/megatron_layout.h"
#include "unit/plan/planner_data.h"

using namespace stageline;
using namespace stageline::plan;

TEST_CASE("plan: Megatron's layouts are taken and refused as by its parser") {
  for (const auto& row : planner_data::rows("layouts.csv")) {
    CAPTURE(row.at("layout"));
    const int pp = planner_data::whole(row, "pp");
    const auto read = parse_megatron_layout(row.at("layout"), pp, planner_data::whole(row, "layers"),
                                            planner_data::whole(row, "mtp"));
    CHECK(static_cast<bool>(read) == (row.at("valid") == "1"));
    if (!read) continue;
    std::string text = "[";
    const int chunks = static_cast<int>(read->size()) / pp;
    CHECK(chunks == planner_data::whole(row, "chunks"));
    for (int r = 0; r < pp; ++r) {
      text += r > 0 ? ",[" : "[";
      for (int c = 0; c < chunks; ++c) text += (c > 0 ? "," : "") + std::to_string((*read)[c * pp + r].layers);
      text += "]";
    }
    CHECK(text + "]" == row.at("decoders_rank_by_chunk"));
  }
}

TEST_CASE("plan: a written layout reads back as the same split") {
  CHECK(write_megatron_layout({7, 8, 8, 8, 7}) == "Et*7|(t*8|)*3t*7L");
  std::mt19937 rng(5);
  for (int n = 0; n < 2000; ++n) {
    const int pp = 1 + static_cast<int>(rng() % 8), chunks = 1 + static_cast<int>(rng() % 3);
    std::vector<int32_t> layers;
    int32_t sum = 0;
    for (int s = 0; s < pp * chunks; ++s) sum += layers.emplace_back(static_cast<int32_t>(rng() % (n % 2 ? 3 : 12)));
    const int32_t mtp = pp > 1 ? static_cast<int32_t>(rng() % 3) : 0;
    const std::string text = write_megatron_layout(layers, mtp);
    CAPTURE(text);
    const auto read = parse_megatron_layout(text, pp, sum, mtp);
    REQUIRE(read);
    for (size_t s = 0; s < layers.size(); ++s) CHECK((*read)[s].layers == layers[s]);
  }
}

TEST_CASE("plan: torchtitan's default split") {
  for (const auto& row : planner_data::rows("torchtitan_split.csv")) {
    std::string text = "[";
    for (const int32_t n :
         torchtitan_default(planner_data::whole(row, "stages"), planner_data::whole(row, "layers"),
                            planner_data::whole(row, "first_less"), planner_data::whole(row, "last_less")))
      text += (text.size() > 1 ? "," : "") + std::to_string(n);
    CHECK(text + "]" == row.at("layers_per_stage"));
  }
}
