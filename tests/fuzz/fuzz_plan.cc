// Descriptions of models and files of hardware: whatever is accepted has finite sizes and times, and can be planned.
#include <cmath>

#include "fuzz.h"
#include "plan/search.h"

FUZZ_TARGET(plan) {
  using namespace stageline;
  using namespace stageline::plan;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  Wish wish;
  if (data[0] == 'h') {
    const Result<Hardware> hardware = read_hardware(text, "hardware.json");
    if (!hardware) {
      FUZZ_CHECK(!hardware.error().what.empty(), "an error without words");
      return 0;
    }
    wish.rates.hardware = *hardware;
    const Result<Model> small = read_model(
        R"({"hidden_size":64,"num_attention_heads":4,"num_hidden_layers":4,"intermediate_size":128,"vocab_size":512})",
        "");
    FUZZ_CHECK(bool(small), "the small model");
    wish.model = *small;
  } else {
    const Result<Model> model = read_model(text, "config.json");
    if (!model) {
      FUZZ_CHECK(!model.error().what.empty(), "an error without words");
      return 0;
    }
    wish.model = *model;
  }
  const double parameters = total_parameters(wish.model);
  FUZZ_CHECK(std::isfinite(parameters) && parameters >= 0, "parameters");
  if (parameters > 1e15 || wish.model.layers() > 1000) return 0;  // the command refuses these, or they take long
  wish.framework = find_framework("any");
  wish.gpus = 4, wish.global_batch = 8, wish.cp = {1}, wish.work = 100'000;
  wish.rates.memory.limit = data[0] == 'm' ? 0 : 80.0 * (1 << 30);
  const Result<Found> found = find_plans(wish);
  if (!found) return 0;
  for (const Candidate& c : found->plans) {
    FUZZ_CHECK(c.step_ns >= 0 && c.bound_ns <= c.step_ns && std::isfinite(c.peak_bytes), "a plan");
    int64_t layers = 0;
    for (const int32_t n : c.plan.layers()) layers += n;
    FUZZ_CHECK(layers == wish.model.layers(), "layers");
  }
  return 0;
}
