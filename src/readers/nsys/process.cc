#include "readers/nsys/process.h"

#include <algorithm>

#include "base/text.h"
#include "model/collective_kind.h"
#include "model/torch_facts.h"
#include "readers/common/range_message.h"
#include "readers/nsys/problems.h"
#include "readers/nsys/words.h"

namespace stageline::nsys {

void Process::add_thread(int64_t global_tid, std::string_view name, Thread& thread) {
  thread.lane = out.host_lane(pid_of(process), thread_of(global_tid));
  if (!name.empty())
    out.part.lanes[thread.lane].name = std::string(name) + " (thread " + std::to_string(thread_of(global_tid)) + ")";
}

uint32_t Process::device_lane(int64_t device, int64_t context, int64_t stream) {
  const std::array key = {device, context, stream};
  if (last_stream_lane_ != UINT32_MAX && key == last_stream_) return last_stream_lane_;
  last_stream_ = key;
  if (first_device < 0 || device < first_device) first_device = device;
  const auto [at, is_new] = first_context_.try_emplace(device, context);
  if (is_new || at->second == context) return last_stream_lane_ = out.stream_lane(device, stream);
  return last_stream_lane_ =
             out.named_stream_lane(device, "stream " + std::to_string(stream) + " context " + std::to_string(context));
}

uint32_t Process::shape_text(const std::array<int64_t, 3>& shape) {
  Shape& place =
      shapes_[(static_cast<uint64_t>(shape[0]) * 31 + static_cast<uint64_t>(shape[1]) * 7 + shape[2]) % shapes_.size()];
  if (!place.is_known || place.shape != shape)
    place = {shape,
             out.text("[" + std::to_string(shape[0]) + ", " + std::to_string(shape[1]) + ", " +
                      std::to_string(shape[2]) + "]"),
             true};
  return place.text;
}

Process::KnownRange Process::known_range(std::string_view text) {
  const uint32_t id = range_texts_.intern(text);
  if (id < ranges_.size()) return ranges_[id];
  while (ranges_.size() <= id) {  // the interner's texts are numbered one by one; the empty one is there beforehand
    const std::string full = valid_utf8(range_texts_.text(static_cast<uint32_t>(ranges_.size())));
    const RangeText parsed = parse_range_message(full);
    KnownRange range;
    range.name = out.text(parsed.name);
    range.full = out.text(full);
    range.micro_batch = parsed.micro_batch;
    range.chunk = parsed.chunk;
    range.stage = parsed.stage;
    range.step = parsed.step;
    range.is_profiler_step = profiler_step_number(full) >= 0;
    range.starts_with_nccl = full.starts_with("nccl");
    bool counted = false;
    if (const auto number = step_of(full, &counted)) {
      range.is_step = true;
      range.step_number = counted ? -1 : *number;
    }
    ranges_.push_back(range);
  }
  return ranges_[id];
}

void Process::project() {
  launched.settle();
  launched.project(out, gpu_rows::kDeviceRange);
  for (Call& call : calls)
    launched.for_launched(call.global_tid, call.start_ns, call.end_ns, [&](const LaunchedWork::Work& work) {
      if (!out.text_of(out.name_of(work.row)).starts_with("nccl")) return;
      CollectiveFact fact = call.fact;
      fact.slice = work.row;
      if (const auto size = communicator_sizes.find(call.communicator); size != communicator_sizes.end())
        fact.group_size = size->second;
      fact.bytes = message_bytes(collective_kind(out.text_of(fact.name)), fact.group_size, fact.bytes);
      out.collectives.push_back(fact);
    });
  if (launched.gave_up()) out.notes.add(problem::nsys_not_projected, {out.part.source});
  launched = {};  // it is as large as the rows, and is not needed again
}

void Process::add_steps(Diagnostics& notes) {
  if (has_profiler_steps) return;
  std::map<std::pair<int64_t, std::string>, std::vector<const StepRange*>> kinds;
  for (const StepRange& step : steps) {
    std::string wording;
    for (const char c : out.text_of(step.text))
      if (c < '0' || c > '9') wording += c;
    kinds[{step.global_tid, std::move(wording)}].push_back(&step);
  }
  const std::vector<const StepRange*>* best = nullptr;
  const std::string* wording = nullptr;
  for (auto& [kind, of_kind] : kinds) {
    std::sort(of_kind.begin(), of_kind.end(), [](const auto* a, const auto* b) { return a->start_ns < b->start_ns; });
    bool apart = of_kind.size() >= 2;
    for (size_t i = 1; i < of_kind.size() && apart; ++i) apart = of_kind[i]->start_ns >= of_kind[i - 1]->end_ns;
    if (apart && (!best || of_kind.size() > best->size())) best = &of_kind, wording = &kind.second;
  }
  if (!best) return;
  for (size_t i = 0; i < best->size(); ++i) {
    const StepRange& step = *(*best)[i];
    out.step(step.number >= 0 ? step.number : static_cast<int64_t>(i), step.start_ns, step.end_ns);
  }
  notes.add(problem::nsys_steps, Args().set("example", *wording), {out.part.source}, best->size());
}

}  // namespace stageline::nsys
