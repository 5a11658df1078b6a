// A snapshot of PyTorch's allocator: how much memory it holds, for whom, in which pieces, and why memory ran out.
// Definitions: docs/analyses/allocator-snapshot.md.
#include "analyses/allocator_snapshot/problems.h"
#include "analyses/analysis.h"
#include "profile/allocator_replay.h"

namespace stageline {
namespace {

struct Tables {
  Table sums = declared_table("allocator-snapshot/allocator-sums");
  Table categories = declared_table("allocator-snapshot/allocator-categories");
  Table stacks = declared_table("allocator-snapshot/allocator-stacks");
  Table ooms = declared_table("allocator-snapshot/allocator-ooms");
  Table segments = declared_table("allocator-snapshot/allocator-segments");
  Table timeline = declared_table("allocator-snapshot/allocator-timeline");
  Table curve = declared_table("allocator-snapshot/allocator-curve");
};

const char* action_name(AllocatorAction action) {
  static constexpr auto kTexts = texts_by<AllocatorAction::kOther, const char*>(
      {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
       "snapshot", "oom", "other"});
  return kTexts[action];
}

int64_t known(int64_t bytes) { return bytes < 0 ? kNullInteger : bytes; }

struct Holder {  // one category, or one stack
  int64_t at_peak = 0, max = 0, at_end = 0, now = 0, allocations = 0, allocated = 0;
};

// Columns of allocator-curve: bytes of each category, of the stacks that hold most at the peak, and of all others.
constexpr int64_t kCurvePoints = 400;
constexpr size_t kCurveStacks = 8;
constexpr std::array<std::string_view, 8> kCurveCategories = {"parameter", "optimizer_state", "input",     "activation",
                                                              "gradient",  "autograd_detail", "temporary", "before"};
constexpr size_t kUnknownSlot = kCurveCategories.size(), kStackSlot = kUnknownSlot + 1;
using Levels = std::array<int64_t, kStackSlot + kCurveStacks + 1>;

class PartTables {
 public:
  PartTables(const Trace& trace, const Part& part, Tables& tables)
      : trace_(trace), part_(part), all_(part.allocator), tables_(tables), replay_(replay_allocator(all_)) {}

  const AllocatorReplay& replay() const { return replay_; }

  void add(bool with_timeline) {
    const int64_t rank = part_.rank;
    for (const AllocatorSum& s : replay_.sums) {
      const int64_t free = s.free_external_bytes - s.awaiting_bytes;
      tables_.sums.add_row({rank, int64_t{s.device}, s.segments, s.blocks, s.reserved_bytes, s.allocated_bytes,
                            s.free_internal_bytes, s.free_external_bytes, s.awaiting_bytes, s.largest_free_bytes,
                            free > 0 ? 1.0 - s.largest_free_bytes / static_cast<double>(free) : 0.0, s.sparse_segments,
                            s.sparse_bytes, known(s.peak_bytes), s.peak_ns < 0 ? kNullInteger : s.peak_ns,
                            known(s.peak_reserved_bytes), s.ooms});
    }
    add_holders(with_timeline);
    for (const AllocatorOom& oom : replay_.ooms) {
      const AllocatorEvent& event = all_.events[oom.event];
      const bool is_known = oom.reason != OomReason::kUndecided;
      tables_.ooms.add_row({rank, int64_t{oom.device}, event.time_ns, oom.wanted_bytes, known(oom.device_free_bytes),
                            oom.reserved_bytes, oom.allocated_bytes, is_known ? oom.free_bytes : kNullInteger,
                            is_known ? oom.largest_free_bytes : kNullInteger, std::string(oom_reason_name(oom.reason)),
                            text(event.stack)});
    }
    for (const AllocatorSegment& segment : all_.segments) add_segment(segment);
  }

 private:
  std::string text(StringId id) const { return std::string(trace_.names.text(id)); }

  std::string category_of(const AllocatorLife& life) const {
    if (life.allocated == AllocatorLife::kNone) return "before";
    const StringId category = all_.events[life.allocated].category;
    return category == 0 ? "unknown" : text(category);
  }
  StringId stack_of(const AllocatorLife& life) const {
    if (life.allocated != AllocatorLife::kNone) return all_.events[life.allocated].stack;
    if (life.block != AllocatorLife::kNone) return all_.blocks[life.block].stack;
    return all_.events[life.freed].stack;  // the place where it was freed is all that is known
  }

  using Categories = std::map<std::pair<int32_t, std::string>, Holder>;  // by device and name
  using Stacks = std::map<std::pair<int32_t, StringId>, Holder>;

  // Returns the first event at which a device's peak is held; kNone: the peak is before the history.
  uint32_t peak_event(const AllocatorSum& sum) const {
    for (size_t i = 0; i < all_.events.size() && sum.peak_ns >= 0; ++i)
      if (all_.events[i].device == sum.device && replay_.held[i] == sum.peak_bytes) return static_cast<uint32_t>(i);
    return AllocatorLife::kNone;
  }

  static void add_life(const AllocatorLife& life, bool at_peak, Holder& holder) {
    if (at_peak) holder.at_peak = sum_or_limit(holder.at_peak, life.bytes);
    if (life.freed == AllocatorLife::kNone) holder.at_end = sum_or_limit(holder.at_end, life.bytes);
    if (life.allocated == AllocatorLife::kNone) {
      holder.now = holder.max = sum_or_limit(holder.now, life.bytes);
      return;
    }
    ++holder.allocations;
    holder.allocated = sum_or_limit(holder.allocated, life.bytes);
  }

  // Follows what categories hold from event to event. `of_event` is the life that an event begins or ends.
  void follow_events(const std::vector<const AllocatorLife*>& of_event, bool with_timeline, Categories& categories) {
    using enum AllocatorAction;
    for (size_t i = 0; i < all_.events.size(); ++i) {
      const AllocatorEvent& event = all_.events[i];
      const bool changes_held = event.action == kAlloc || event.action == kFreeCompleted;
      const bool fewer_reserved = event.action == kSegmentFree || event.action == kSegmentUnmap;
      const bool changes_reserved = fewer_reserved || event.action == kSegmentAlloc || event.action == kSegmentMap;
      const int64_t change = event.action == kFreeCompleted || fewer_reserved ? -event.bytes : event.bytes;
      std::string name;
      int64_t of_category = kNullInteger;
      if (changes_held && of_event[i]) {
        name = category_of(*of_event[i]);
        Holder& category = categories[{event.device, name}];
        category.now = of_category = sum_or_limit(category.now, change);
        category.max = std::max(category.max, category.now);
      }
      if (with_timeline && (changes_held || changes_reserved || event.action == kOutOfMemory))
        tables_.timeline.add_row(
            {int64_t{part_.rank}, int64_t{event.device}, event.time_ns, std::string(action_name(event.action)), name,
             changes_held || changes_reserved ? change : 0, of_category, replay_.held[i], replay_.reserved[i]});
    }
  }

  void add_holders(bool with_timeline) {
    const int64_t rank = part_.rank;
    Categories categories;
    Stacks stacks;
    std::map<int32_t, uint32_t> peaks;  // by device
    for (const AllocatorSum& sum : replay_.sums) peaks[sum.device] = peak_event(sum);
    std::vector<const AllocatorLife*> of_event(all_.events.size(), nullptr);
    constexpr uint32_t kNone = AllocatorLife::kNone;
    for (const AllocatorLife& life : replay_.lives) {
      const uint32_t peak = peaks[life.device];
      const bool was_there = life.allocated == kNone || (peak != kNone && life.allocated <= peak);
      const bool at_peak = was_there && (life.freed == kNone || peak == kNone || life.freed > peak);
      add_life(life, at_peak, categories[{life.device, category_of(life)}]);
      add_life(life, at_peak, stacks[{life.device, stack_of(life)}]);
      if (life.allocated != kNone) of_event[life.allocated] = &life;
      if (life.freed != kNone) of_event[life.freed] = &life;
    }
    follow_events(of_event, with_timeline, categories);
    for (const auto& [key, holder] : categories)
      tables_.categories.add_row(
          {rank, int64_t{key.first}, key.second, holder.at_peak, holder.max, holder.at_end, holder.allocations});
    std::vector<std::pair<std::pair<int32_t, StringId>, Holder>> sorted(stacks.begin(), stacks.end());
    sort_stably(sorted, {}, [](const auto& stack) {
      return std::tuple(stack.first.first, -stack.second.at_peak, -stack.second.allocated);
    });
    std::map<std::pair<int32_t, StringId>, size_t> place;  // of a stack among those of its device
    std::map<int32_t, size_t> count;
    for (const auto& [key, holder] : sorted) {
      tables_.stacks.add_row({rank, int64_t{key.first}, text(key.second), holder.at_peak, holder.at_end,
                              holder.allocations, holder.allocated});
      place[key] = std::min(count[key.first]++, kCurveStacks);
    }
    add_curves(of_event, place);
  }

  // Adds the levels of each device over time: before the history, and in each of kCurvePoints stretches of it at the
  // event after which most is held.
  void add_curves(const std::vector<const AllocatorLife*>& of_event,
                  const std::map<std::pair<int32_t, StringId>, size_t>& place) {
    const auto add = [&](const AllocatorLife& life, int64_t bytes, Levels& now) {
      const size_t category = std::ranges::find(kCurveCategories, category_of(life)) - kCurveCategories.begin();
      for (const size_t slot : {category, kStackSlot + place.at({life.device, stack_of(life)})})
        now[slot] = sum_or_limit(now[slot], bytes);
    };
    for (size_t begin = 0, end = 0; begin < all_.events.size(); begin = end) {
      const int32_t device = all_.events[begin].device;
      while (end < all_.events.size() && all_.events[end].device == device) ++end;
      Levels now{};
      int64_t before = 0;
      for (const AllocatorLife& life : replay_.lives) {
        if (life.device != device || life.allocated != AllocatorLife::kNone) continue;
        add(life, life.bytes, now);
        before = sum_or_limit(before, life.bytes);
      }
      const auto row = [&](int64_t time_ns, int64_t held, int64_t reserved, const Levels& levels) {
        std::vector<Table::Value> cells = {int64_t{part_.rank}, int64_t{device}, time_ns, held, reserved};
        cells.insert(cells.end(), levels.begin(), levels.end());
        tables_.curve.add_row(cells);
      };
      const int64_t first = all_.events[begin].time_ns;
      const double stretch = (all_.events[end - 1].time_ns - first + 1.0) / kCurvePoints;
      row(first, before, replay_.reserved[begin], now);
      for (size_t i = begin; i < end;) {
        const auto stretch_of = [&](size_t k) { return std::floor((all_.events[k].time_ns - first) / stretch); };
        size_t best = i;
        Levels shown{};
        for (const double here = stretch_of(i); i < end && stretch_of(i) == here; ++i) {
          const bool frees = all_.events[i].action == AllocatorAction::kFreeCompleted;
          if (of_event[i]) add(*of_event[i], frees ? -all_.events[i].bytes : all_.events[i].bytes, now);
          if (i == best || replay_.held[i] > replay_.held[best]) best = i, shown = now;
        }
        row(all_.events[best].time_ns, replay_.held[best], replay_.reserved[best], shown);
      }
    }
  }

  void add_segment(const AllocatorSegment& segment) {
    int64_t used = 0, largest = 0;
    for (uint32_t b = segment.first_block; b < segment.first_block + segment.block_count; ++b) {
      const AllocatorBlock& block = all_.blocks[b];
      if (block.state == BlockState::kActive) used = sum_or_limit(used, block.bytes);
      if (block.state == BlockState::kInactive) largest = std::max(largest, block.bytes);
    }
    char address[24];
    std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(segment.address));
    tables_.segments.add_row(
        {int64_t{part_.rank}, int64_t{segment.device}, std::string(address), segment.bytes, used, largest,
         int64_t{segment.block_count}, segment.stream,
         std::string(segment.is_large ? "large" : "small") + (segment.is_expandable ? ", expandable" : ""),
         text(segment.pool), text(segment.stack)});
  }

  const Trace& trace_;
  const Part& part_;
  const AllocatorSnapshot& all_;
  Tables& tables_;
  const AllocatorReplay replay_;
};

}  // namespace

Result<AnalysisResult> run_allocator_snapshot(const AnalysisInput& input) {
  const Trace& trace = input.run().trace();
  Tables tables;
  AnalysisResult result;
  for (const Part& part : trace.parts) {
    if (part.allocator.empty()) continue;
    PartTables of_part(trace, part, tables);
    of_part.add(!input.for_report);
    result.notes.add(problem::allocator_snapshot_unlike, {part.source}, of_part.replay().unlike);
  }
  for (Table* table : {&tables.sums, &tables.categories, &tables.stacks, &tables.ooms, &tables.segments,
                       &tables.timeline, &tables.curve})
    result.tables.push_back(std::move(*table));
  return result;
}

}  // namespace stageline
