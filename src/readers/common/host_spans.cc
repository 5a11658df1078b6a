#include "readers/common/host_spans.h"

#include "readers/common/ranks.h"
#include "readers/common/row_kinds.h"

namespace stageline {
namespace {

struct TaskLane {
  uint64_t task = 0;
  int64_t task_end_ns = 0;
  std::vector<int64_t> open;  // the ends of the spans that contain what comes next

  // Returns true when the span fits here; it then counts as open.
  bool takes(const HostSpan& span, int64_t end_of_task_ns) {
    if (task != span.task) {
      if (task_end_ns > span.start_ns) return false;
      *this = {span.task, end_of_task_ns, {}};
    }
    while (!open.empty() && open.back() <= span.start_ns) open.pop_back();
    if (!open.empty() && open.back() < span.end_ns) return false;
    open.push_back(span.end_ns);
    return true;
  }
};

}  // namespace

void add_host_spans(int64_t pid, std::vector<HostSpan> spans, PartBuilder& builder) {
  constexpr size_t kMaxLanes = 64;
  sort_stably(spans, {},
              [](const HostSpan& span) { return std::tuple(span.start_ns, -span.end_ns, span.task, span.name); });
  std::unordered_map<uint64_t, int64_t> task_end_ns;
  for (const HostSpan& span : spans) {
    int64_t& end_ns = task_end_ns[span.task];
    end_ns = std::max(end_ns, span.end_ns);
  }
  std::vector<TaskLane> lanes;
  for (const HostSpan& span : spans) {
    const auto takes = [&](bool own) {
      return std::ranges::find_if(lanes, [&](TaskLane& lane) {
        return (lane.task == span.task) == own && lane.takes(span, task_end_ns[span.task]);
      });
    };
    auto found = takes(true);
    if (found == lanes.end()) found = takes(false);
    if (found == lanes.end() && lanes.size() < kMaxLanes)
      found = lanes.insert(found, {span.task, task_end_ns[span.task], {span.end_ns}});
    const auto lane = std::min<int64_t>(found - lanes.begin(), kMaxLanes - 1);
    builder.add(builder.host_lane(pid, pid + lane), gpu_rows::kAnnotation, span.start_ns, span.end_ns,
                builder.text(span.name));
    if (span.step >= 0) builder.step(span.step, span.start_ns, span.end_ns);
  }
}

void finish_host_part(PartBuilder& builder, int64_t rank, const std::string& host, Trace& trace) {
  if (trace.categories.empty()) trace.categories.push_back({"", Category::kOther});
  FileNames names;
  Part part = builder.finish(names);
  trace.diagnostics.merge(builder.notes);
  part.rank = static_cast<int32_t>(rank);
  part.machine_name = host;
  rename_part(adopt_names(names, trace), part);
  trace.parts.push_back(std::move(part));
}

std::string missing_ranks(const std::set<int64_t>& ranks, int64_t size) {
  constexpr size_t kMaxNamed = 8;
  std::vector<int32_t> missing;
  for (int64_t rank = 0; rank < size && missing.size() <= kMaxNamed; ++rank)
    if (!ranks.contains(rank)) missing.push_back(static_cast<int32_t>(rank));
  return number_list(missing, kMaxNamed);
}

void settle_hosts(Trace& trace) {
  number_machines(trace);
  const bool one = std::ranges::all_of(
      trace.parts, [&](const Part& part) { return part.machine_name == trace.parts.front().machine_name; });
  trace.clock = one ? ClockState::kShared : ClockState::kUnaligned;
}

}  // namespace stageline
