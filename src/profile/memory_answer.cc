// Memory by operator, event and time. Every record is counted once, where it belongs.
#include "profile/memory_blocks.h"

namespace stageline {
namespace {

// Returns one curve for each device.
std::vector<MemoryCurve> memory_curves(const Part& part, const MemoryHistory& history, int64_t zero_ns) {
  std::vector<MemoryCurve> curves;
  for (const MemoryDevice device : history.devices) {
    MemoryCurve curve;
    curve.device = device;
    int64_t sum = 0;
    for (const uint32_t i : history.by_time) {
      const MemoryRecord& record = part.memory[i];
      if (device_of(record) != device) continue;
      const bool totals = record.total_allocated >= 0;
      add_saturated(sum, bytes_of(record));
      if (totals) sum = record.total_allocated;
      curve.recorded &= totals;
      curve.points.push_back({record.time_ns - zero_ns, sum, record.total_reserved});
      if (curve.points.back().allocated > curve.points[curve.peak].allocated) curve.peak = curve.points.size() - 1;
    }
    if (!curve.points.empty()) curves.push_back(std::move(curve));
  }
  return curves;
}

class Answer {
 public:
  Answer(const TorchRun& run, size_t part)
      : run_(run), trace_(*run.trace), part_(trace_.parts[part]), s_(part_.slices), history_(memory_history(part_)) {
    answer_.rank = run.ranks[part];
  }

  MemoryAnswer answer() {
    find_operators();
    list_blocks();
    for (const MemoryDevice device : history_.devices) count(device);
    answer_.curves = memory_curves(part_, history_, run_.zero_ns);
    for (MemoryCurve& curve : answer_.curves) cut(curve);
    answer_.history = std::move(history_);
    return std::move(answer_);
  }

 private:
  bool is_operator(size_t i) const { return trace_.categories[s_.category_id[i]].kind == Category::kCpuOp; }

  bool kept_time(int64_t time_ns) const {
    const SliceFilter& filter = trace_.slice_filter;
    if (filter.first_step != INT64_MIN || filter.last_step != INT64_MAX) {
      const auto after = std::ranges::upper_bound(part_.steps, time_ns, {}, &ProfilerStep::start_ns);
      if (after == part_.steps.begin() || time_ns >= (after - 1)->end_ns) return false;
      if ((after - 1)->number < filter.first_step || (after - 1)->number > filter.last_step) return false;
    }
    const int64_t at = time_ns - run_.zero_ns;
    return at >= filter.from_ns && at <= filter.to_ns;
  }
  bool kept(uint32_t record) const { return record != MemoryBlock::kNone && kept_time(part_.memory[record].time_ns); }

  // Finds the innermost operator of every record, and the operator around every slice of host threads.
  void find_operators() {
    above_.assign(s_.size(), kNoSliceIndex);
    outermost_.assign(s_.size(), false);
    std::vector<uint32_t> open_of_name(trace_.names.size(), 0), open;
    for (const Lane& lane : part_.lanes) {
      if (lane.kind == LaneKind::kDeviceStream) continue;
      for (uint32_t i = lane.begin; i < lane.end; ++i) {
        const uint32_t up = s_.parent[i];
        if (up < i) above_[i] = is_operator(up) ? up : above_[up];
        if (!is_operator(i)) continue;
        while (!open.empty() && open.back() != above_[i]) {
          --open_of_name[s_.name_id[open.back()]];
          open.pop_back();
        }
        outermost_[i] = open_of_name[s_.name_id[i]]++ == 0;
        open.push_back(i);
      }
      for (; !open.empty(); open.pop_back()) --open_of_name[s_.name_id[open.back()]];
    }
    operator_of_ = slices_of_memory(part_);
    for (uint32_t& at : operator_of_)
      if (at != kNoSliceIndex && !is_operator(at)) at = above_[at];
  }

  std::string shown_name(uint32_t record) const {
    const uint32_t op = record == MemoryBlock::kNone ? kNoSliceIndex : operator_of_[record];
    if (op == kNoSliceIndex) return "";
    const std::string own(trace_.names.text(s_.name_id[op]));
    if (!own.starts_with("aten::empty") || above_[op] == kNoSliceIndex) return own;
    return std::string(trace_.names.text(s_.name_id[above_[op]])) + " (" + own + ")";
  }

  void list_blocks() {
    for (const MemoryBlock& block : history_.blocks) {
      if (!kept(block.allocated) && !kept(block.freed)) continue;
      const bool known = block.allocated != MemoryBlock::kNone;
      const MemoryRecord& record = part_.memory[known ? block.allocated : block.freed];
      const auto time = [&](uint32_t i) {
        return i == MemoryBlock::kNone ? MemoryEvent::kNullTime : part_.memory[i].time_ns - run_.zero_ns;
      };
      answer_.events.push_back(
          {device_of(record), shown_name(block.allocated), block.bytes, time(block.allocated), time(block.freed)});
    }
  }

  struct Sums {
    int64_t increase = 0, allocated = 0, allocations = 0;
    void add(const Sums& other) {
      add_saturated(increase, other.increase);
      add_saturated(allocated, other.allocated);
      allocations += other.allocations;
    }
  };

  void count(MemoryDevice device) {
    std::vector<Sums> self(s_.size());
    for (const uint32_t i : history_.by_time) {
      const MemoryRecord& record = part_.memory[i];
      if (device_of(record) != device || !kept(i)) continue;
      if (operator_of_[i] == kNoSliceIndex) {
        ++answer_.outside;
        continue;
      }
      const int64_t bytes = bytes_of(record);
      self[operator_of_[i]].add({bytes, bytes > 0 ? bytes : 0, bytes > 0});
    }
    std::vector<Sums> total = self;
    std::map<StringId, MemoryOperator> by_name;
    for (size_t i = s_.size(); i-- > 0;) {  // what is around an operator stands before it
      if (!is_operator(i)) continue;
      if (above_[i] != kNoSliceIndex) total[above_[i]].add(total[i]);
      MemoryOperator& sum = by_name[s_.name_id[i]];
      sum.calls += kept_time(s_.start_ns[i]);
      add_saturated(sum.self_increase, self[i].increase);
      add_saturated(sum.self_allocated, self[i].allocated);
      sum.self_allocations += self[i].allocations;
      if (!outermost_[i]) continue;  // it is within a call of the same name, which already has these bytes
      add_saturated(sum.increase, total[i].increase);
      add_saturated(sum.allocated, total[i].allocated);
      sum.allocations += total[i].allocations;
    }
    const size_t first = answer_.operators.size();
    for (auto& [name, sum] : by_name) {
      if (sum.allocations == 0 && sum.increase == 0 && sum.self_increase == 0) continue;
      sum.device = device;
      sum.name = name;
      answer_.operators.push_back(sum);
    }
    std::stable_sort(answer_.operators.begin() + first, answer_.operators.end(),
                     [&](const MemoryOperator& a, const MemoryOperator& b) {
                       if (a.self_allocated != b.self_allocated) return a.self_allocated > b.self_allocated;
                       if (a.allocated != b.allocated) return a.allocated > b.allocated;
                       return trace_.names.text(a.name) < trace_.names.text(b.name);
                     });
  }

  void cut(MemoryCurve& curve) {
    std::erase_if(curve.points, [&](const MemoryPoint& p) { return !kept_time(p.time_ns + run_.zero_ns); });
    curve.peak = 0;
    for (size_t i = 1; i < curve.points.size(); ++i)
      if (curve.points[i].allocated > curve.points[curve.peak].allocated) curve.peak = i;
  }

  const TorchRun& run_;
  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  MemoryHistory history_;
  std::vector<uint32_t> above_, operator_of_;
  std::vector<bool> outermost_;
  MemoryAnswer answer_;
};

}  // namespace

MemoryAnswer memory_answer(const TorchRun& run, size_t part) { return Answer(run, part).answer(); }

}  // namespace stageline
