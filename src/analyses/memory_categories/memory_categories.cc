// Memory over time by what it is for, and what lives at the peak. Definitions: docs/analyses/memory-categories.md.
#include "analyses/analysis.h"
#include "analyses/memory_categories/problems.h"
#include "base/error_words.h"
#include "profile/memory_blocks.h"
#include "profile/python_stacks.h"
#include "profile/step_series.h"

namespace stageline {
namespace {

constexpr size_t kStackEntries = 4;  // number of entries shown from a stack

struct Group {  // blocks of one kind that live at the peak
  size_t kind = 0;
  std::string operator_name, stack;
  int64_t blocks = 0, bytes = 0;
};

struct DeviceAnswer {
  MemoryDevice device;
  std::vector<MemoryClassPoint> series;
  MemoryClassPoint peak;
  std::vector<Group> alive;
};

struct RankAnswer {
  int32_t rank = 0;
  bool no_addresses = false;
  std::vector<DeviceAnswer> devices;
};

class Answerer {
 public:
  Answerer(const TorchRun& run, size_t part, size_t max_points)
      : run_(run), trace_(*run.trace), part_(trace_.parts[part]), history_(memory_history(part_)),
        classes_(classify_memory(trace_, part_, history_)), max_points_(max_points) {
    answer_.rank = run.ranks[part];
  }

  RankAnswer answer() {
    if (history_.by_time.empty()) return answer_;
    // Without addresses no block is ever freed: sums would pass what was allocated. Single records may lack theirs.
    answer_.no_addresses = 2 * history_.without_address > std::ssize(history_.by_time);
    if (answer_.no_addresses) return answer_;
    stacks_ = python_stacks(trace_, part_, {.backward = BackwardFrames::kForward, .cut_addresses = true});
    for (const MemoryDevice device : history_.devices) answer_.devices.push_back(device_answer(device));
    return std::move(answer_);
  }

 private:
  DeviceAnswer device_answer(MemoryDevice device) {
    const MemoryClassSeries all = memory_class_series(part_, history_, classes_, device, run_.zero_ns);
    DeviceAnswer out;
    out.device = device;
    out.peak = all.peak;
    out.series = thin_series(all.points, max_points_, [](const MemoryClassPoint& p) { return p.total(); });
    out.alive = alive_at(device, all.peak_record, all.before_bytes);
    return out;
  }

  // Returns the blocks that were allocated up to the peak and not freed by then, grouped by category, operator and
  // stack.
  std::vector<Group> alive_at(MemoryDevice device, size_t peak, int64_t before_bytes) {
    std::vector<size_t> position(part_.memory.size(), SIZE_MAX);
    for (size_t k = 0; k < history_.by_time.size(); ++k) position[history_.by_time[k]] = k;
    std::map<std::tuple<size_t, StringId, uint32_t>, std::pair<int64_t, int64_t>> groups;
    int64_t gone = 0;
    for (size_t b = 0; b < history_.blocks.size(); ++b) {
      const MemoryBlock& block = history_.blocks[b];
      const bool known = block.allocated != MemoryBlock::kNone;
      if (device_of(part_.memory[known ? block.allocated : block.freed]) != device) continue;
      if (!known) {
        if (position[block.freed] <= peak) add_saturated(gone, block.bytes);
        continue;
      }
      if (position[block.allocated] > peak) continue;
      if (block.freed != MemoryBlock::kNone && position[block.freed] <= peak) continue;
      const uint32_t slice = classes_.slice_of_record[block.allocated];
      const uint32_t op = classes_.operator_of_record[block.allocated];
      auto& [count, bytes] =
          groups[{static_cast<size_t>(classes_.of_block[b]), op == kNoSliceIndex ? 0 : part_.slices.name_id[op],
                  slice == kNoSliceIndex ? PythonStacks::kEmpty : stacks_.inside(slice)}];
      ++count;
      add_saturated(bytes, block.bytes);
    }
    std::vector<Group> out;
    for (const auto& [key, sums] : groups) {
      Group group;
      group.kind = std::get<0>(key);
      group.operator_name = std::string(trace_.names.text(std::get<1>(key)));
      for (const std::string_view entry : stacks_.entries(std::get<2>(key), kStackEntries))
        append_item(group.stack, entry, " < ");
      group.blocks = sums.first;
      group.bytes = sums.second;
      out.push_back(std::move(group));
    }
    if (before_bytes > gone)
      out.push_back({static_cast<size_t>(MemoryClass::kNotKnown), "(before the capture)", "", 0, before_bytes - gone});
    sort_stably(out, [](const Group& a, const Group& b) {
      if (a.bytes != b.bytes) return a.bytes > b.bytes;
      if (a.kind != b.kind) return a.kind < b.kind;
      return a.operator_name != b.operator_name ? a.operator_name < b.operator_name : a.stack < b.stack;
    });
    return out;
  }

  const TorchRun& run_;
  const Trace& trace_;
  const Part& part_;
  MemoryHistory history_;
  MemoryClasses classes_;
  size_t max_points_;
  PythonStacks stacks_;
  RankAnswer answer_;
};

std::vector<Table::Value> row_of(int32_t rank, MemoryDevice device, const MemoryClassPoint& point) {
  std::vector<Table::Value> row = {int64_t{rank}, memory_device_name(device), point.time_ns};
  for (const int64_t b : point.bytes) row.emplace_back(b);
  row.emplace_back(point.total());
  return row;
}

}  // namespace

Result<AnalysisResult> run_memory_categories(const AnalysisInput& input) {
  TRY(max, input.options.integer("points", 1000, 2, INT64_MAX));
  TRY(top, input.options.integer("top", 20, 1, INT64_MAX));
  TRY(torch, make_torch_run(*input.trace, {false, true}));
  if (input.for_report) *max = kReportPoints;
  std::vector<RankAnswer> ranks(torch->parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = Answerer(*torch, torch->parts[k], *max).answer(); });
  if (std::ranges::all_of(ranks, [](const RankAnswer& a) { return a.devices.empty() && !a.no_addresses; })) {
    if (input.for_report) return AnalysisResult{};  // nothing was asked: no flaw
    return worded_error(ErrorCode::kNotFound, "refused.not_recorded:memory", {}, {},
                        "torch.profiler writes them with profile_memory=True");
  }
  Table peaks(declared_table("memory-categories/memory-category-peaks"));
  Table alive(declared_table("memory-categories/memory-at-peak"));
  Table series(declared_table("memory-categories/memory-categories"));
  for (const RankAnswer& answer : ranks)
    for (const DeviceAnswer& device : answer.devices) {
      peaks.add_row(row_of(answer.rank, device.device, device.peak));
      for (size_t k = 0; k < device.alive.size() && static_cast<int64_t>(k) < *top; ++k) {
        const Group& group = device.alive[k];
        alive.add_row({int64_t{answer.rank}, memory_device_name(device.device),
                       std::string(kMemoryClassNames[group.kind]), group.operator_name, group.blocks, group.bytes,
                       group.stack});
      }
      for (const MemoryClassPoint& point : device.series) series.add_row(row_of(answer.rank, device.device, point));
    }
  AnalysisResult result;
  result.add(std::move(peaks), std::move(alive), std::move(series));
  result.notes.add(problem::memory_guessed);
  if (std::ranges::any_of(ranks, &RankAnswer::no_addresses)) result.notes.add(problem::memory_no_addresses);
  return result;
}

}  // namespace stageline
