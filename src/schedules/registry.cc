#include "schedules/registry.h"

#include "base/error_words.h"
#include "schedules/build.h"

namespace stageline {
namespace {

constexpr int64_t kMaxPlanCost = 1'000'000'000;

Error plan_error() {
  return make_error(ErrorCode::kUsage, "the costs of a plan are whole numbers from 1 to 10^9 (the latency from 0)",
                    "such as --plan-cost 50,55,45,5");
}

}  // namespace

#define SCHEDULE(id, title, is, from, ...)                                                  \
  namespace id {                                                                            \
  Result<Schedule> make(const ScheduleSizes& sizes);                                        \
  int32_t warm_up(const ScheduleSizes& sizes, int32_t rank);                                \
  double bubble_ns(const ScheduleSizes& sizes, const UnitCosts& costs);                     \
  int64_t activations(const ScheduleSizes& sizes, int32_t rank);                            \
  const ScheduleDef schedule = {.name = title, .summary = is, .source = from, __VA_ARGS__}; \
  }
#include "schedules/schedules.def"

const std::vector<const ScheduleDef*>& schedules() {
  static const std::vector<const ScheduleDef*> all = {
#define SCHEDULE(id, ...) &id::schedule,
#include "schedules/schedules.def"
  };
  return all;
}

const ScheduleDef* find_schedule(std::string_view name) {
  // Maps the classes of torch.distributed.pipelining, with and without "Schedule" before them.
  static constexpr std::pair<std::string_view, std::string_view> kTorch[] = {
      {"GPipe", "fthenb"},       {"Interleaved1F1B", "vpp"},
      {"LoopedBFS", "bfs"},      {"InterleavedZeroBubble", "interleaved-zb"},
      {"ZBVZeroBubble", "zb-v"}, {"DualPipeV", "dualpipe-v"},
  };
  std::string_view torch = name;
  if (torch.starts_with("Schedule")) torch.remove_prefix(8);
  std::string own = torch == "1F1B" ? "1f1b" : dashed(torch);
  for (const auto& [theirs, ours] : kTorch)
    if (torch == theirs) own = ours;
  for (const ScheduleDef* schedule : schedules())
    if (schedule->name == own) return schedule;
  return nullptr;
}

Result<const ScheduleDef*> schedule_named(std::string_view name) {
  if (const ScheduleDef* def = find_schedule(name)) return def;
  auto names = mapped<std::string>(schedules(), [&](const ScheduleDef* known) { return known->name; });
  const std::string near = nearest(dashed(name), names);
  return make_error(ErrorCode::kUsage, "no schedule \"" + valid_utf8(name) + "\"",
                    near.empty() ? "stageline help schedules lists them" : "did you mean \"" + near + "\"?");
}

Result<Schedule> make_schedule(std::string_view name, const ScheduleSizes& sizes) {
  TRY(found, schedule_named(name));
  const ScheduleDef* def = *found;
  const auto limit = [](const char* what, int32_t value, int32_t max) {
    return make_error(ErrorCode::kUsage,
                      std::string(what) + " must be 1 to " + std::to_string(max) + ", not " + std::to_string(value));
  };
  if (sizes.stages < 1 || sizes.stages > kMaxPipelineStages) return limit("--stages", sizes.stages, kMaxPipelineStages);
  if (sizes.micro_batches < 1 || sizes.micro_batches > 65536)
    return limit("--micro-batches", sizes.micro_batches, 65536);
  if (sizes.chunks < 1 || sizes.chunks > 64) return limit("--chunks", sizes.chunks, 64);
  if (def->default_chunks == def->max_chunks && sizes.chunks != def->max_chunks)
    return make_error(ErrorCode::kUsage,
                      std::string(def->name) + " has " + (def->max_chunks == 1 ? "one chunk" : "two chunks") +
                          " a rank; --chunks " + std::to_string(sizes.chunks) + " does not apply",
                      def->max_chunks == 1 ? "leave --chunks out, or use vpp" : "leave --chunks out");
  if (sizes.group != 0 && !def->grouped)
    return make_error(ErrorCode::kUsage, std::string(def->name) + " does not walk in groups; --group does not apply",
                      "leave --group out, or use vpp");
  if (sizes.group < 0 || sizes.group > 65536) return limit("--group", sizes.group, 65536);
  if (sizes.dw_detach && std::string_view(def->name) != "dualpipe-v-mindspeed")
    return make_error(ErrorCode::kUsage, std::string(def->name) + " has no --dw-detach",
                      "it belongs to dualpipe-v-mindspeed");
  for (const int64_t cost : {sizes.plan.forward, sizes.plan.input, sizes.plan.weight})
    if (cost < 1 || cost > kMaxPlanCost) return plan_error();
  if (sizes.plan.latency < 0 || sizes.plan.latency > kMaxPlanCost) return plan_error();
  if (int64_t{sizes.stages} * sizes.micro_batches * sizes.chunks > (int64_t{1} << 23))
    return worded_error(ErrorCode::kLimit, "order.too_large", {}, {}, "ask for fewer stages, micro-batches or chunks");
  return def->make(sizes);
}

}  // namespace stageline
