// A snapshot of PyTorch's allocator: how much memory it holds, for whom, in which pieces, and why memory ran out.
// Definitions: docs/analyses/allocator-snapshot.md.
#include <algorithm>
#include <map>
#include <string>

#include "analyses/allocator_snapshot/problems.h"
#include "analyses/analysis.h"
#include "base/number.h"
#include "profile/allocator_replay.h"

namespace stageline {
namespace {

ColumnSpec rank_column() { return {"rank", "rank", Type::kInteger, "Global rank whose snapshot it is"}; }
ColumnSpec device_column() {
  return {"device", "device", Type::kInteger, "Number of the device as the process counts"};
}
ColumnSpec bytes_column(const char* name, const char* title, const char* help) {
  return {name, title, Type::kInteger, help};
}

std::vector<ColumnSpec> allocator_sums_columns() {
  return {rank_column(),
          device_column(),
          bytes_column("segments", "segments", "Pieces taken from the device"),
          bytes_column("blocks", "blocks", "Blocks that they are cut into"),
          bytes_column("reserved_bytes", "reserved", "Bytes taken from the device"),
          bytes_column("allocated_bytes", "allocated", "Bytes that tensors asked for"),
          bytes_column("free_internal_bytes", "rounding", "Bytes of blocks in use beyond what was asked for"),
          bytes_column("free_external_bytes", "free", "Bytes of blocks that are not in use"),
          bytes_column("awaiting_bytes", "awaiting", "Of these, bytes that were freed and wait for a stream"),
          bytes_column("largest_free_bytes", "largest free", "The largest block that could be given out as a whole"),
          {"fragmentation", "fragmentation", Type::kShare,
           "Share of the free bytes that lies outside the largest free block"},
          bytes_column("sparse_segments", "sparse segments", "Segments of which less than a tenth is in use"),
          bytes_column("sparse_bytes", "free in these", "Free bytes in them"),
          bytes_column("peak_bytes", "peak", "Most that was held at once in the history, until frees were complete"),
          {"peak_ns", "at", Type::kTime, "When the peak was reached first"},
          bytes_column("peak_reserved_bytes", "peak reserved", "Most that was reserved at once in the history"),
          bytes_column("ooms", "out of memory", "Requests that were refused in the history")};
}

std::vector<ColumnSpec> allocator_categories_columns() {
  return {rank_column(),
          device_column(),
          {"category", "category", Type::kText,
           "Category that the events give; before: held since before the history; unknown: the events give none"},
          bytes_column("at_peak_bytes", "at the peak", "Bytes held when most was held"),
          bytes_column("max_bytes", "most", "Most bytes of this category at once"),
          bytes_column("at_end_bytes", "at the end", "Bytes held at the moment of the snapshot"),
          bytes_column("allocations", "allocations", "Allocations in the history")};
}

std::vector<ColumnSpec> allocator_stacks_columns() {
  return {rank_column(),
          device_column(),
          {"stack", "stack", Type::kText, "Python frames, innermost first, with ; between"},
          bytes_column("at_peak_bytes", "at the peak", "Bytes held when most was held"),
          bytes_column("at_end_bytes", "at the end", "Bytes held at the moment of the snapshot"),
          bytes_column("allocations", "allocations", "Allocations in the history"),
          bytes_column("allocated_bytes", "allocated", "Bytes of all of them")};
}

std::vector<ColumnSpec> allocator_ooms_columns() {
  return {rank_column(),
          device_column(),
          {"time_ns", "time", Type::kTime, "When the request was refused"},
          bytes_column("wanted_bytes", "wanted", "Bytes that were asked for"),
          bytes_column("device_free_bytes", "free on the device", "Bytes that the device had left"),
          bytes_column("reserved_bytes", "reserved", "Bytes taken from the device then"),
          bytes_column("allocated_bytes", "allocated", "Bytes in use then"),
          bytes_column("free_bytes", "free", "Free bytes in the allocator's segments of that stream"),
          bytes_column("largest_free_bytes", "largest free", "The largest free piece of these"),
          {"reason", "reason", Type::kText,
           "full: all memory is in use; fragmented: enough is free, but in pieces that are too small; split: enough is "
           "free only together with the device's own free memory; elsewhere: a piece was large enough, but in another "
           "pool, or a limit forbade it; unknown: the history does not reach so far back"},
          {"stack", "stack", Type::kText, "Where the request was made"}};
}

std::vector<ColumnSpec> allocator_segments_columns() {
  return {
      rank_column(),
      device_column(),
      {"address", "address", Type::kText, "Address at which it begins"},
      bytes_column("bytes", "size", "Bytes taken from the device"),
      bytes_column("used_bytes", "in use", "Bytes of blocks in use"),
      bytes_column("largest_free_bytes", "largest free", "Its largest free block"),
      bytes_column("blocks", "blocks", "Blocks that it is cut into"),
      {"stream", "stream", Type::kInteger, "The stream that it serves"},
      {"kind", "kind", Type::kText, "large or small requests; expandable"},
      {"pool", "pool", Type::kText, "Pool of a CUDA graph or a private pool; (0, 0) is the common one"},
      {"stack", "stack", Type::kText, "Python frames of the request for which the allocator took it, innermost first"}};
}

std::vector<ColumnSpec> allocator_timeline_columns() {
  return {rank_column(),
          device_column(),
          {"time_ns", "time", Type::kTime, "Time of the event"},
          {"action", "action", Type::kText, "alloc, free_completed, segment_alloc, …"},
          {"category", "category", Type::kText, "Category of the memory that is allocated or freed"},
          bytes_column("bytes", "change", "Bytes more, or fewer"),
          bytes_column("category_bytes", "of the category", "Bytes that this category holds then"),
          bytes_column("allocated_bytes", "allocated", "Bytes in use then"),
          bytes_column("reserved_bytes", "reserved", "Bytes taken from the device then")};
}

struct Tables {
  Table sums =
      Table("allocator-sums", "What the allocator held at the moment of the snapshot", allocator_sums_columns());
  Table categories = Table("allocator-categories", "What is held for whom", allocator_categories_columns());
  Table stacks = Table("allocator-stacks", "Who allocates", allocator_stacks_columns());
  Table ooms = Table("allocator-ooms", "Why memory ran out", allocator_ooms_columns());
  Table segments = Table("allocator-segments", "Segments", allocator_segments_columns());
  Table timeline = Table("allocator-timeline", "What is held over time", allocator_timeline_columns());
};

const char* action_name(AllocatorAction action) {
  switch (action) {
    case AllocatorAction::kAlloc: return "alloc";
    case AllocatorAction::kFreeRequested: return "free_requested";
    case AllocatorAction::kFreeCompleted: return "free_completed";
    case AllocatorAction::kSegmentAlloc: return "segment_alloc";
    case AllocatorAction::kSegmentFree: return "segment_free";
    case AllocatorAction::kSegmentMap: return "segment_map";
    case AllocatorAction::kSegmentUnmap: return "segment_unmap";
    case AllocatorAction::kSnapshot: return "snapshot";
    case AllocatorAction::kOutOfMemory: return "oom";
    case AllocatorAction::kOther: return "other";
  }
  return "";
}

int64_t known(int64_t bytes) { return bytes < 0 ? kNullInteger : bytes; }

struct Holder {  // one category, or one stack
  int64_t at_peak = 0, most = 0, at_end = 0, now = 0, allocations = 0, allocated = 0;
};

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
      const bool is_known = oom.reason != OomReason::kUnknown;
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

  void add_holders(bool with_timeline) {
    const int64_t rank = part_.rank;
    using Key = std::pair<int32_t, std::string>;
    std::map<Key, Holder> categories;
    std::map<std::pair<int32_t, StringId>, Holder> stacks;
    // For each device: the first event at which the peak is held; kNone: the peak is before the history.
    std::map<int32_t, uint32_t> peak_event;
    for (const AllocatorSum& sum : replay_.sums) {
      uint32_t at = AllocatorLife::kNone;
      for (size_t i = 0; i < all_.events.size() && sum.peak_ns >= 0; ++i)
        if (all_.events[i].device == sum.device && replay_.held[i] == sum.peak_bytes) {
          at = static_cast<uint32_t>(i);
          break;
        }
      peak_event[sum.device] = at;
    }
    std::vector<const AllocatorLife*> of_event(all_.events.size(), nullptr);
    for (const AllocatorLife& life : replay_.lives) {
      Holder& category = categories[{life.device, category_of(life)}];
      Holder& stack = stacks[{life.device, stack_of(life)}];
      const uint32_t peak = peak_event[life.device];
      const bool was_there =
          life.allocated == AllocatorLife::kNone || (peak != AllocatorLife::kNone && life.allocated <= peak);
      const bool at_peak =
          was_there && (life.freed == AllocatorLife::kNone || peak == AllocatorLife::kNone || life.freed > peak);
      for (Holder* holder : {&category, &stack}) {
        if (at_peak) holder->at_peak = sum_or_limit(holder->at_peak, life.bytes);
        if (life.freed == AllocatorLife::kNone) holder->at_end = sum_or_limit(holder->at_end, life.bytes);
        if (life.allocated != AllocatorLife::kNone) {
          ++holder->allocations;
          holder->allocated = sum_or_limit(holder->allocated, life.bytes);
        } else {
          holder->now = holder->most = sum_or_limit(holder->now, life.bytes);
        }
      }
      if (life.allocated != AllocatorLife::kNone) of_event[life.allocated] = &life;
      if (life.freed != AllocatorLife::kNone) of_event[life.freed] = &life;
    }
    for (size_t i = 0; i < all_.events.size(); ++i) {
      const AllocatorEvent& event = all_.events[i];
      const bool changes_held =
          event.action == AllocatorAction::kAlloc || event.action == AllocatorAction::kFreeCompleted;
      const bool changes_reserved =
          event.action == AllocatorAction::kSegmentAlloc || event.action == AllocatorAction::kSegmentFree ||
          event.action == AllocatorAction::kSegmentMap || event.action == AllocatorAction::kSegmentUnmap;
      const bool fewer = event.action == AllocatorAction::kFreeCompleted ||
                         event.action == AllocatorAction::kSegmentFree ||
                         event.action == AllocatorAction::kSegmentUnmap;
      const int64_t change = fewer ? -event.bytes : event.bytes;
      std::string name;
      int64_t of_category = kNullInteger;
      if (changes_held && of_event[i]) {
        name = category_of(*of_event[i]);
        Holder& category = categories[{event.device, name}];
        category.now = of_category = sum_or_limit(category.now, change);
        category.most = std::max(category.most, category.now);
      }
      if (!with_timeline || !(changes_held || changes_reserved || event.action == AllocatorAction::kOutOfMemory))
        continue;
      tables_.timeline.add_row({rank, int64_t{event.device}, event.time_ns, std::string(action_name(event.action)),
                                name, changes_held || changes_reserved ? change : 0, of_category, replay_.held[i],
                                replay_.reserved[i]});
    }
    for (const auto& [key, holder] : categories)
      tables_.categories.add_row(
          {rank, int64_t{key.first}, key.second, holder.at_peak, holder.most, holder.at_end, holder.allocations});
    std::vector<std::pair<std::pair<int32_t, StringId>, Holder>> sorted(stacks.begin(), stacks.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.first.first != b.first.first         ? a.first.first < b.first.first
             : a.second.at_peak != b.second.at_peak ? a.second.at_peak > b.second.at_peak
                                                    : a.second.allocated > b.second.allocated;
    });
    for (const auto& [key, holder] : sorted)
      tables_.stacks.add_row({rank, int64_t{key.first}, text(key.second), holder.at_peak, holder.at_end,
                              holder.allocations, holder.allocated});
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

Result<AnalysisResult> run_allocator_snapshot(const AnalysisInput& input) {
  const Trace& trace = input.run().trace();
  Tables tables;
  AnalysisResult result;
  for (const Part& part : trace.parts) {
    if (part.allocator.empty()) continue;
    PartTables of_part(trace, part, tables);
    of_part.add(!input.for_report);
    if (of_part.replay().unlike > 0)
      result.notes.add(problem::allocator_snapshot_unlike, {part.source}, of_part.replay().unlike);
  }
  for (Table* table :
       {&tables.sums, &tables.categories, &tables.stacks, &tables.ooms, &tables.segments, &tables.timeline})
    result.tables.push_back(std::move(*table));
  return result;
}

}  // namespace

extern const Analysis allocator_snapshot_analysis = {
    .name = "allocator-snapshot",
    .summary = "what PyTorch's allocator holds, for whom, in what pieces, and why memory ran out",
    .tables = {{"allocator-sums", "one row per device: sums, fragmentation, peak", allocator_sums_columns},
               {"allocator-categories", "one row per category", allocator_categories_columns},
               {"allocator-stacks", "one row per stack, the most at the peak first", allocator_stacks_columns},
               {"allocator-ooms", "one row per request that was refused", allocator_ooms_columns},
               {"allocator-segments", "one row per segment", allocator_segments_columns},
               {"allocator-timeline", "one row per event that changes what is held", allocator_timeline_columns}},
    .run = run_allocator_snapshot,
    .needs = AnalysisNeeds::kAllocator};

}  // namespace stageline
