#include "diagnosis/profile/allocator_findings.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/counted.h"
#include "base/number.h"
#include "profile/allocator_replay.h"

namespace stageline {
namespace {

constexpr double kWorthSaying = 0.2;                 // of what is reserved, free in pieces
constexpr int64_t kWorthBytes = int64_t{256} << 20;  // and so many bytes at least

std::string bytes(int64_t count) { return human_bytes(static_cast<double>(count)); }

std::string where_en(const Trace& trace, const Part& part, int32_t device) {
  return (trace.parts.size() > 1 ? "rank " + std::to_string(part.rank) + ", " : "") + "device " +
         std::to_string(device);
}
std::string where_zh(const Trace& trace, const Part& part, int32_t device) {
  return (trace.parts.size() > 1 ? "rank " + std::to_string(part.rank) + "、" : "") + "设备 " + std::to_string(device);
}

// The innermost frame outside torch.
std::string frame_of(std::string_view stack) {
  while (!stack.empty()) {
    const size_t end = stack.find(';');
    const std::string_view frame = stack.substr(0, end);
    if (frame.find("/torch/") == std::string_view::npos && !frame.starts_with("torch/") && !frame.starts_with("??"))
      return std::string(frame);
    if (end == std::string_view::npos) break;
    stack.remove_prefix(end + 1);
  }
  return {};
}

Finding oom_finding(const Trace& trace, const Part& part, const AllocatorOom& oom, int64_t times) {
  Finding f;
  f.id = "memory.oom";
  f.evidence = {"allocator-snapshot", "allocator-ooms"};
  f.rank = part.rank;
  f.value = bytes(oom.wanted_bytes);
  f.value_note_en = "refused";
  f.value_note_zh = "被拒绝";
  f.title_en = "Memory ran out on " + where_en(trace, part, oom.device);
  f.title_zh = where_zh(trace, part, oom.device) + " 内存不足";
  const std::string wanted = bytes(oom.wanted_bytes), free = bytes(oom.free_bytes),
                    largest = bytes(oom.largest_free_bytes);
  const std::string left = oom.device_free_bytes < 0 ? std::string() : bytes(oom.device_free_bytes);
  f.detail_en = wanted + " were asked for; " + bytes(oom.allocated_bytes) + " of " + bytes(oom.reserved_bytes) +
                " that the allocator held were in use" +
                (left.empty() ? "" : ", and the device had " + left + " left") + ".";
  f.detail_zh = "请求 " + wanted + "；分配器持有 " + bytes(oom.reserved_bytes) + "，其中 " +
                bytes(oom.allocated_bytes) + " 在用" + (left.empty() ? "" : "，设备还剩 " + left) + "。";
  switch (oom.reason) {
    case OomReason::kFull:
      f.detail_en += " All that was free, " + free + " in the allocator, was too little together: hold less.";
      f.detail_zh += "全部空闲（分配器内 " + free + "）合起来也不够：需要少占内存。";
      break;
    case OomReason::kFragmented:
      f.detail_en += " " + free + " were free in the allocator, in pieces of at most " + largest +
                     ": PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True joins them.";
      f.detail_zh += "分配器内有 " + free + " 空闲，但最大一块只有 " + largest +
                     "：PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True 可使其相连。";
      break;
    case OomReason::kSplit:
      f.detail_en += " Only together with the " + free + " that were free in the allocator, the largest piece " +
                     largest + ", it would have been enough: expandable segments, or torch.cuda.empty_cache() before.";
      f.detail_zh += "加上分配器内空闲的 " + free + "（最大一块 " + largest +
                     "）才够：可用 expandable segments，或事先 torch.cuda.empty_cache()。";
      break;
    case OomReason::kElsewhere:
      f.detail_en +=
          " That much was free in one piece, but in another pool, or a limit of the process stood in the way.";
      f.detail_zh += "有足够大的空闲，但属于另一个池，或受进程限额所阻。";
      break;
    case OomReason::kUnknown:
      f.detail_en += " The history does not say in what pieces the rest was free.";
      f.detail_zh += "历史记录没有说明其余空闲是怎样分块的。";
      break;
  }
  if (const std::string frame = frame_of(trace.names.text(part.allocator.events[oom.event].stack)); !frame.empty()) {
    f.detail_en += " The request was made at " + frame + ".";
    f.detail_zh += "请求发自 " + frame + "。";
  }
  if (times > 1) {
    f.detail_en += " It happened " + grouped(times) + " times; this is the first.";
    f.detail_zh += "共发生 " + grouped(times) + " 次，此为第一次。";
  }
  return f;
}

}  // namespace

bool has_allocators(const Trace& trace) {
  return std::any_of(trace.parts.begin(), trace.parts.end(), [](const Part& part) { return !part.allocator.empty(); });
}

Findings allocator_findings(const Run& run) {
  const Trace& trace = run.trace();
  Findings out;
  Headline& h = out.headline;
  int64_t reserved = 0, allocated = 0, peak = -1, devices = 0;
  for (const Part& part : trace.parts) {
    const AllocatorReplay replay = replay_allocator(part.allocator);
    std::set<std::pair<int32_t, OomReason>> said;
    for (const AllocatorOom& oom : replay.ooms)
      if (said.insert({oom.device, oom.reason}).second)
        out.list.push_back(oom_finding(
            trace, part, oom, std::count_if(replay.ooms.begin(), replay.ooms.end(), [&](const AllocatorOom& other) {
              return other.device == oom.device && other.reason == oom.reason;
            })));
    for (const AllocatorSum& sum : replay.sums) {
      ++devices;
      reserved = sum_or_limit(reserved, sum.reserved_bytes);
      allocated = sum_or_limit(allocated, sum.allocated_bytes);
      peak = std::max(peak, sum.peak_bytes);
      const int64_t in_pieces = sum.free_external_bytes - sum.awaiting_bytes - sum.largest_free_bytes;
      if (in_pieces < kWorthBytes ||
          static_cast<double>(in_pieces) < kWorthSaying * static_cast<double>(sum.reserved_bytes))
        continue;
      Finding f;
      f.id = "memory.fragmented";
      f.evidence = {"allocator-snapshot", "allocator-sums"};
      f.rank = part.rank;
      f.value = bytes(in_pieces);
      f.value_note_en = "in small pieces";
      f.value_note_zh = "为零碎小块";
      f.title_en = "Free memory lies in pieces on " + where_en(trace, part, sum.device);
      f.title_zh = where_zh(trace, part, sum.device) + " 的空闲内存是零碎的";
      f.detail_en = "Of " + bytes(sum.reserved_bytes) + " reserved " + bytes(sum.free_external_bytes) +
                    " are free, the largest piece " + bytes(sum.largest_free_bytes) +
                    ". PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True keeps free memory together.";
      f.detail_zh = "保留的 " + bytes(sum.reserved_bytes) + " 中有 " + bytes(sum.free_external_bytes) +
                    " 空闲，最大一块 " + bytes(sum.largest_free_bytes) +
                    "。PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True 可保持空闲内存连续。";
      out.list.push_back(std::move(f));
    }
  }
  // Weights only keep the order: a snapshot has no times that could be won back.
  for (size_t i = 0; i < out.list.size(); ++i) out.list[i].weight = 1.0 / static_cast<double>(i + 1);
  h.lead_en = counted(static_cast<int64_t>(trace.parts.size()), "snapshot", "snapshots") + ", " +
              counted(devices, "device", "devices") + ": " + bytes(allocated) + " of " + bytes(reserved) +
              " reserved were in use at the end" +
              (peak >= 0 ? "; the most that a device held at once was " + bytes(peak) : "") + ".";
  h.lead_zh = std::to_string(trace.parts.size()) + " 个快照、" + std::to_string(devices) + " 个设备：结束时保留的 " +
              bytes(reserved) + " 中有 " + bytes(allocated) + " 在用" +
              (peak >= 0 ? "；单个设备最多同时占用 " + bytes(peak) : "") + "。";
  h.closing_en = "Snapshots tell who holds memory, not what anything costs in time.";
  h.closing_zh = "快照说明谁占着内存，不说明时间代价。";
  if (!out.list.empty()) {
    h.title_en = out.list.front().title_en + ".";
    h.title_zh = out.list.front().title_zh + "。";
    return out;
  }
  h.title_en = "Memory did not run out in the history, and what is free is not in small pieces.";
  h.title_zh = "历史记录中没有内存不足，空闲内存也不零碎。";
  Finding none;
  none.id = "none";
  none.title_en = "Nothing stands out";
  none.title_zh = "没有突出的问题";
  none.detail_en = "stageline analyze allocator-snapshot says who holds memory.";
  none.detail_zh = "stageline analyze allocator-snapshot 说明谁占着内存。";
  out.list.push_back(std::move(none));
  return out;
}

}  // namespace stageline
