// Finds kernels of Ascend that the cores for them do not compute: those on AI_CPU, and those on few of the cores.
#include "base/json_members.h"
#include "diagnosis/profile/loss_search.h"
#include "profile/operator_work.h"

namespace stageline {
namespace {

// The blocks of a kernel, one a core; 0: not recorded.
int64_t blocks_of(const LossSearch& search, uint32_t slice) {
  const KernelFact* fact = fact_of(search.part.kernels, slice);
  if (fact == nullptr) return 0;
  const std::vector<std::string_view> numbers = split(search.trace.names.text(fact->grid), ',');
  return parse_int(trim(numbers[0].substr(std::min<size_t>(1, numbers[0].size())))).value_or(0);
}

// Returns the number of each kind of core, which the profile of a device has, or the most blocks of any kernel there.
std::map<StringId, int64_t> cores_of(const LossSearch& search) {
  std::map<StringId, int64_t> cores;
  const std::string_view device = recorded_device(search.part);
  for (const TaskFact& task : search.part.tasks) {
    const std::string_view unit = search.trace.names.text(task.unit);
    const bool vector = unit == "AI_VECTOR_CORE" || unit == "MIX_AIV";
    int64_t& count = cores[task.unit];
    if (count == 0) count = json_integer(json_member(device, vector ? "aiv_num" : "ai_core_num")).value_or(0);
    count = std::max(count, blocks_of(search, task.slice));
  }
  return cores;
}

ShorterKernels kernels_on(LossKind kind, const std::map<StringId, int64_t>& cores, const LossSearch& search) {
  ShorterKernels kernels(search);
  for (size_t j = 0; j < search.timeline.device.size(); ++j) {
    const auto& item = search.timeline.device[j];
    const TaskFact* task = fact_of(search.part.tasks, item.slice);
    if (task == nullptr || item.kernel != KernelClass::kComputation) continue;
    const std::string_view unit = search.trace.names.text(task->unit);
    const bool cpu = unit == "AI_CPU" || unit == "AICPU";
    const int64_t blocks = blocks_of(search, item.slice), all = cores.at(task->unit);
    if (cpu != (kind == LossKind::kAiCpu) || (!cpu && (blocks <= 0 || blocks >= all))) continue;
    kernels.shorten(j, cpu ? 0 : (item.end_ns - item.start_ns) * blocks / all);
  }
  return kernels;
}

}  // namespace

void find_weak_kernels(LossSearch& search) {
  const std::map<StringId, int64_t> cores = cores_of(search);
  for (const LossKind kind : {LossKind::kAiCpu, LossKind::kFewCores}) {
    const ShorterKernels kernels = kernels_on(kind, cores, search);
    if (kernels.recorded_ns < search.min_loss_ns()) continue;
    RankLoss x{.kind = kind, .recorded_ns = kernels.recorded_ns, .longest_ns = kernels.max_saved_ns};
    if (x.longest_ns > 0) x.what = search.kernel_name(search.timeline.device[kernels.worst].slice);
    x.ratio = kernels.possible_ns / kernels.recorded_ns;
    search.add(std::move(x), kernels.out);
  }
}

}  // namespace stageline
