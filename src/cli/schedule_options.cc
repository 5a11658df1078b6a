#include "cli/schedule_options.h"

#include "schedules/registry.h"

namespace stageline {
namespace {

constexpr int64_t kMaxCostNs = 3'600'000'000'000;

Result<PlanCosts> parse_plan(const std::string& text) {
  const std::vector<std::string_view> items = split(text, ',');
  std::vector<int64_t> values;
  for (const std::string_view item : items)
    if (const auto value = parse_int(trim(item))) values.push_back(*value);
  if (values.size() != 4 || items.size() != 4)
    return make_error(ErrorCode::kUsage, "\"" + text + "\" is not the costs of a plan",
                      "write --plan-cost F,I,W,LATENCY such as 50,55,45,5");
  return PlanCosts{values[0], values[1], values[2], values[3]};
}

}  // namespace

Result<Schedule> schedule_of(const Arguments& arguments) {
  ScheduleSizes sizes;
  const std::string& name = arguments.operands[0];
  const ScheduleDef* def = find_schedule(name);
  if (arguments.has("pp") && arguments.has("stages") && arguments.get("pp") != arguments.get("stages"))
    return make_error(ErrorCode::kUsage, "--pp and --stages say different things", "they are the same flag");
  TRY_OK(arguments.take(arguments.has("pp") ? "pp" : "stages", 1, 4096, sizes.stages));
  TRY_OK(arguments.take("micro-batches", 1, 65536, sizes.micro_batches));
  if (def) sizes.chunks = def->default_chunks;
  TRY_OK(arguments.take("chunks", 1, 64, sizes.chunks));
  TRY_OK(arguments.take("group", 1, 65536, sizes.group));
  sizes.dw_detach = arguments.has("dw-detach");
  if (arguments.has("plan-cost")) {
    if (def && std::string_view(def->name) != "zbvpp")
      return make_error(ErrorCode::kUsage, std::string(def->name) + " is not planned with costs", "zbvpp is");
    TRY(plan, parse_plan(arguments.get("plan-cost")));
    sizes.plan = *plan;
  }
  return make_schedule(name, sizes);
}

Result<UnitCosts> costs_of(const Arguments& arguments, UnitCosts costs) {
  TRY(latency, arguments.duration_ns("latency", 0));
  if (*latency < 0 || *latency > kMaxCostNs) return make_error(ErrorCode::kUsage, "--latency must be 0 to an hour");
  costs.latency_ns = *latency;
  if (!arguments.has("cost")) return costs;
  const std::string text = arguments.get("cost");
  const Error bad{ErrorCode::kUsage,
                  "\"" + text + "\" is not a cost",
                  {},
                  "write --cost F,B such as 10,20 or --cost F,I,W such as 10,10,10, or F,I,W,F&B (ms, or with a unit)"};
  std::vector<int64_t> values;
  for (const std::string_view item : split(text, ',')) {
    const auto value = parse_duration(item);
    if (!value || *value <= 0 || *value > kMaxCostNs) return bad;
    values.push_back(*value);
  }
  if (values.size() < 2 || values.size() > 4) return bad;
  costs.forward_ns = values[0];
  costs.input_ns = values.size() == 2 ? values[1] / 2 : values[1];
  costs.weight_ns = values.size() == 2 ? values[1] - values[1] / 2 : values[2];
  costs.backward_ns = costs.input_ns + costs.weight_ns;
  costs.overlapped_ns = values.size() == 4 ? values[3] : costs.forward_ns + costs.backward_ns;
  if (costs.input_ns == 0) return bad;  // "10,1ns" cannot be divided into halves
  return costs;
}

}  // namespace stageline
