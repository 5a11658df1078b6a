// The phases of a training step, and which blocks are allocated in one phase and freed in another:
//
//            forward            backward                 optimizer
//   ───┬──────────────────┬───────────────────────┬──────────────────┬──▶
//      input ────────────▶│                       │
//      activation ────────────▶ freed in backward │
//      temporary ──▶      │   autograd detail ──▶ │
//                         │   gradient ──────────────────▶ or never freed
//                         │                       │ optimizer state ─────── never freed
//   parameter: exists before the first of them, and is never freed.
#include "profile/memory_blocks.h"

namespace stageline {
namespace {

constexpr std::string_view kRoot = "autograd::engine::evaluate_function: ";

enum ClassMark : uint8_t { kNone = 0, kBackward = 1, kOptimizer = 2, kLoading = 4, kModule = 8, kMoving = 16 };

// Returns the mark of the time within the row, by its name. Each category has its own names.
uint8_t mark_of(std::string_view name, Category category) {
  if (category == Category::kPythonFunction) {
    if (name.starts_with("nn.Module: ")) return kModule;
    if (name.find("torch/utils/data/") != std::string_view::npos) return kLoading;
    return name.find("torch/optim/") != std::string_view::npos && name.ends_with(": step") ? kOptimizer : kNone;
  }
  if (category != Category::kCpuOp && category != Category::kUserAnnotation) return kNone;
  if (name.starts_with(kRoot)) return kBackward;
  if (name.starts_with("Optimizer.step#")) return kOptimizer;
  if (name.starts_with("enumerate(DataLoader)#") || name.starts_with("enumerate(DataPipe)#")) return kLoading;
  return name == "aten::to" || name == "aten::_to_copy" || name == "aten::pin_memory" ? kMoving : kNone;
}

class Classifier {
 public:
  Classifier(const Trace& trace, const Part& part, const MemoryHistory& history)
      : trace_(trace), part_(part), s_(part.slices), history_(history) {}

  MemoryClasses classify() {
    mark_slices();
    out_.slice_of_record = slices_of_memory(part_);
    out_.operator_of_record = out_.slice_of_record;
    for (uint32_t& at : out_.operator_of_record)
      if (at != kNoSliceIndex) at = operator_[at];
    for (const MemoryBlock& block : history_.blocks) out_.of_block.push_back(class_of(block));
    return std::move(out_);
  }

 private:
  Category category(size_t i) const { return trace_.categories[s_.category_id[i]].kind; }

  // Computes three facts for each slice of host threads. They are the marks of the slice and of all slices around it,
  // the innermost operator, and the backward root and the optimizer's range at or around it.
  void mark_slices() {
    const size_t n = s_.size();
    marks_.assign(n, kNone);
    operator_.assign(n, kNoSliceIndex);
    range_.assign(n, kNoSliceIndex);
    is_optimizer_.assign(n, false);
    for (const Lane& lane : part_.lanes) {
      if (lane.kind == LaneKind::kDeviceStream) continue;
      for (size_t i = lane.begin; i < lane.end; ++i) {
        const uint32_t up = s_.parent[i];
        if (up < i) {
          marks_[i] = marks_[up];
          operator_[i] = operator_[up];
          range_[i] = range_[up];
          is_optimizer_[i] = is_optimizer_[up];
        }
        const Category c = category(i);
        if (c == Category::kCpuOp) operator_[i] = static_cast<uint32_t>(i);
        const uint8_t own = own_mark(i);
        marks_[i] |= own;
        if (own & (kBackward | kOptimizer)) {
          range_[i] = static_cast<uint32_t>(i);
          is_optimizer_[i] = own == kOptimizer;
        }
        if (own & kBackward) backward_.push_back({s_.start_ns[i], s_.end_ns(i)});
        if (own & kOptimizer) optimizer_start_.push_back(s_.start_ns[i]);
        if (own & (kBackward | kOptimizer | kModule)) first_work_ns_ = std::min(first_work_ns_, s_.start_ns[i]);
      }
    }
    std::ranges::sort(backward_);
    std::ranges::sort(optimizer_start_);
    // A backward pass ends where the optimizer or the next step begins, if that is before the next root.
    for (const ProfilerStep& step : part_.steps) optimizer_start_.push_back(step.start_ns);
    std::ranges::sort(optimizer_start_);
    pass_end_.resize(backward_.size());
    int64_t end = INT64_MIN, next_start = INT64_MAX;
    for (size_t k = backward_.size(); k-- > 0;) {
      const auto border = std::ranges::lower_bound(optimizer_start_, backward_[k].second);
      const bool last = next_start == INT64_MAX || (border != optimizer_start_.end() && *border <= next_start);
      end = last ? backward_[k].second : std::max(end, backward_[k].second);
      pass_end_[k] = end;
      next_start = backward_[k].first;
    }
  }

  // Returns the end of the backward pass that is running at a time.
  int64_t pass_end(int64_t time_ns) const {
    const auto after = std::ranges::upper_bound(backward_, std::pair{time_ns, INT64_MAX});
    return after == backward_.begin() ? time_ns : pass_end_[static_cast<size_t>(after - backward_.begin()) - 1];
  }
  bool backward_begins_within(int64_t from_ns, int64_t to_ns) const {
    const auto next = std::ranges::upper_bound(backward_, std::pair{from_ns, INT64_MAX});
    return next != backward_.end() && next->first < to_ns;
  }

  MemoryClass class_of(const MemoryBlock& block) const {
    if (block.allocated == MemoryBlock::kNone || block.lost_free) return MemoryClass::kNotKnown;
    const int64_t from = part_.memory[block.allocated].time_ns;
    const bool freed = block.freed != MemoryBlock::kNone;
    const int64_t to = freed ? part_.memory[block.freed].time_ns : INT64_MAX;
    const uint32_t at = out_.slice_of_record[block.allocated];
    const uint8_t marks = at == kNoSliceIndex ? static_cast<uint8_t>(kNone) : marks_[at];
    if (marks & (kBackward | kOptimizer)) {
      const int64_t range_end = s_.end_ns(range_[at]);
      if (to <= range_end) return MemoryClass::kTemporary;
      if (is_optimizer_[at]) return freed ? MemoryClass::kTemporary : MemoryClass::kOptimizerState;
      return to > pass_end(from) ? MemoryClass::kGradient : MemoryClass::kAutogradDetail;
    }
    if (marks & kLoading) return MemoryClass::kInput;
    if ((marks & kMoving) && !(marks & kModule) && (freed || from >= first_work_ns_)) return MemoryClass::kInput;
    if (freed) return backward_begins_within(from, to) ? MemoryClass::kActivation : MemoryClass::kTemporary;
    if (from < first_work_ns_ && first_work_ns_ != INT64_MAX) return MemoryClass::kParameter;
    return MemoryClass::kNotKnown;
  }
  // The same names occur hundreds of times, so each is examined only once as a frame, and once as an operator or
  // annotation.
  uint8_t own_mark(size_t i) {
    const Category c = category(i);
    if (c != Category::kPythonFunction && c != Category::kCpuOp && c != Category::kUserAnnotation) return kNone;
    std::vector<uint8_t>& known = c == Category::kPythonFunction ? frame_marks_ : range_marks_;
    if (known.empty()) known.assign(trace_.names.size(), kUnseen);
    uint8_t& mark = known[s_.name_id[i]];
    if (mark == kUnseen) mark = mark_of(trace_.names.text(s_.name_id[i]), c);
    return mark;
  }

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  const MemoryHistory& history_;
  static constexpr uint8_t kUnseen = 0xff;
  std::vector<uint8_t> marks_;
  std::vector<uint8_t> frame_marks_, range_marks_;  // indexed by name id
  std::vector<bool> is_optimizer_;                  // for each slice: whether range_ is the optimizer's
  std::vector<uint32_t> operator_, range_;
  std::vector<std::pair<int64_t, int64_t>> backward_;  // roots as (start, end), sorted by start
  std::vector<int64_t> pass_end_, optimizer_start_;
  int64_t first_work_ns_ = INT64_MAX;
  MemoryClasses out_;
};

}  // namespace

MemoryClasses classify_memory(const Trace& trace, const Part& part, const MemoryHistory& history) {
  return Classifier(trace, part, history).classify();
}

int64_t MemoryClassPoint::total() const {
  int64_t sum = 0;
  for (const int64_t b : bytes) add_saturated(sum, b);
  return sum;
}

MemoryClassSeries memory_class_series(const Part& part, const MemoryHistory& history, const MemoryClasses& classes,
                                      MemoryDevice device, int64_t zero_ns) {
  MemoryClassSeries out;
  MemoryClassPoint now;
  bool first = true;
  int64_t highest = INT64_MIN;
  int64_t& unknown = now.bytes[MemoryClass::kNotKnown];
  for (size_t k = 0; k < history.by_time.size(); ++k) {
    const uint32_t i = history.by_time[k];
    const MemoryRecord& record = part.memory[i];
    if (device_of(record) != device) continue;
    if (first && record.total_allocated >= 0) {
      out.before_bytes = std::max<int64_t>(0, record.total_allocated - bytes_of(record));
      unknown = out.before_bytes;
    }
    first = false;
    add_saturated(now.bytes[classes.of_block[history.block_of[i]]], bytes_of(record));
    // When there are no totals, frees of blocks from before the capture would make "unknown" negative.
    if (record.total_allocated < 0 && unknown < 0) unknown = 0;
    now.time_ns = record.time_ns - zero_ns;
    out.points.push_back(now);
    if (now.total() <= highest) continue;
    highest = now.total();
    out.peak = now;
    out.peak_record = k;
  }
  return out;
}

}  // namespace stageline
