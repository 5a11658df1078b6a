#include "readers/nsys/tables.h"

#include "model/collective_kind.h"
#include "model/torch_facts.h"
#include "readers/common/range_message.h"
#include "readers/nsys/problems.h"

namespace stageline::nsys {

constexpr size_t kMaxProcesses = 4096;

Tables::Tables(const SqliteDb& database, Report& into) : db(database), report(into) {
  scan("StringIds", {"id", "value"}, [&](const SqliteRows& rows) {
    text_of_id_.put(rows.integer(0), static_cast<uint32_t>(texts_.size()));
    texts_.push_back(valid_utf8(rows.text(1)));
  });
}

void Tables::note_end(std::string_view table, const SqliteRows& rows, const std::string& missing) {
  if (!rows.ok())
    report.notes.add(problem::nsys_damaged_table, Args().set("table", std::string(table)).count("rows", rows.count()),
                     {report.path});
  if (missing.find('.') != std::string::npos)
    report.notes.add(problem::nsys_missing_column, Args().set("missing", missing), {report.path});
}

// Most exports are of one process, so the first has room for all rows there are.
void Tables::make_room(Process& process) const {
  const size_t calls = db.rows_at_most("CUPTI_ACTIVITY_KIND_RUNTIME");
  const size_t kernels = db.rows_at_most("CUPTI_ACTIVITY_KIND_KERNEL");
  const size_t copies = db.rows_at_most("CUPTI_ACTIVITY_KIND_MEMCPY") + db.rows_at_most("CUPTI_ACTIVITY_KIND_MEMSET");
  const size_t ranges = db.rows_at_most("NVTX_EVENTS");
  process.out.reserve(calls + kernels + copies + 2 * ranges);  // a range has a row on the device too
  process.out.kernels.reserve(kernels);
  process.out.copies.reserve(copies);
  process.out.ranges.reserve(ranges);
  process.launched.reserve(ranges, calls, kernels + copies);
}

Process* Tables::find_process(int64_t id) {
  if (const auto at = processes.find(id); at != processes.end()) return last_ = at->second.get();
  if (processes.size() >= kMaxProcesses) return nullptr;
  const bool is_first = processes.empty();
  last_ = processes.emplace(id, std::make_unique<Process>(report.path, id)).first->second.get();
  if (is_first) make_room(*last_);
  return last_;
}

uint32_t Tables::host_row(Process& process, gpu_rows::Kind kind, int64_t global_tid, int64_t start, int64_t end,
                          uint32_t name, uint32_t number) {
  Process::Thread& on = thread(process, global_tid);
  const uint32_t row = process.out.add(on.lane, kind, start, end, name, number);
  if (row == kNoRow) return row;
  ++process.host_rows;
  on.last_ns = std::max(on.last_ns, end);
  return row;
}

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
    KnownRange range{.name = out.text(parsed.name),
                     .full = out.text(full),
                     .micro_batch = parsed.micro_batch,
                     .chunk = parsed.chunk,
                     .stage = parsed.stage,
                     .step = parsed.step,
                     .is_profiler_step = profiler_step_number(full) >= 0,
                     .starts_with_nccl = full.starts_with("nccl")};
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
