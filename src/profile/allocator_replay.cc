#include "profile/allocator_replay.h"

namespace stageline {
namespace {

constexpr size_t kMaxOoms = 256;  // the free pieces are recorded for this number of them

// Sizes of the allocator, c10/cuda/CUDACachingAllocator.cpp: requests up to kMaxSmall are of a pool of their own, with
// segments of kSmallSegment; larger ones below kMinOwnSegment share segments of kSharedSegment.
constexpr int64_t kMiB = 1 << 20, kMinBlock = 512, kMaxSmall = kMiB, kSmallSegment = 2 * kMiB;
constexpr int64_t kMinOwnSegment = 10 * kMiB, kSharedSegment = 20 * kMiB;

int64_t rounded_up(int64_t bytes, int64_t unit) { return sum_or_limit(bytes, unit - 1) / unit * unit; }

// Returns what the allocator takes from the device for a request that no free piece serves.
int64_t segment_for(int64_t bytes) {
  if (bytes <= kMaxSmall) return kSmallSegment;
  return bytes < kMinOwnSegment ? kSharedSegment : rounded_up(bytes, kSmallSegment);
}

void add(int64_t& sum, int64_t bytes) { sum = sum_or_limit(sum, bytes); }

bool takes_segment(AllocatorAction a) {
  return a == AllocatorAction::kSegmentAlloc || a == AllocatorAction::kSegmentMap;
}
bool gives_segment(AllocatorAction a) {
  return a == AllocatorAction::kSegmentFree || a == AllocatorAction::kSegmentUnmap;
}

// Holds the memory of one device at one moment.
struct State {
  struct Range {
    int64_t bytes = 0, stream = 0;
    bool expandable = false, large = false;
  };
  std::map<uint64_t, Range> segments;
  std::map<uint64_t, int64_t> blocks;  // blocks that are in use or wait for a stream
  bool is_known = true;                // false once an event could not be undone

  void undo(const AllocatorEvent& event) {
    if (event.action == AllocatorAction::kAlloc) is_known &= blocks.erase(event.address) > 0;
    else if (event.action == AllocatorAction::kFreeCompleted)
      blocks[event.address] = rounded_up(event.bytes, kMinBlock);
    else if (takes_segment(event.action)) unmap(event.address, event.bytes);
    else if (const bool unmap = event.action == AllocatorAction::kSegmentUnmap; gives_segment(event.action))
      segments[event.address] = {event.bytes, event.stream, unmap,
                                 unmap ? event.bytes % kSharedSegment == 0 : event.bytes != kSmallSegment};
  }
  // The snapshot has all pieces of an expandable segment as one, while events map them one by one.
  void unmap(uint64_t address, int64_t bytes) {
    auto at = segments.upper_bound(address);
    if (at == segments.begin()) return void(is_known = false);
    --at;
    const Range whole = at->second;
    const uint64_t begin = at->first, end = begin + whole.bytes;
    const uint64_t last = address + bytes;
    if (last > end || last < address) return void(is_known = false);
    segments.erase(at);
    if (address > begin) segments[begin] = whole, segments[begin].bytes = static_cast<int64_t>(address - begin);
    if (end > last) segments[last] = whole, segments[last].bytes = static_cast<int64_t>(end - last);
  }

  // Adds up the free pieces that a request may use, of its stream's segments for its size, and finds the largest.
  // Pieces of an expandable segment that touch each other are one. In other segments for large requests, what is left
  // of a block up to kMaxSmall stays with it.
  void free_pieces(int64_t stream, bool large, int64_t& sum, int64_t& largest) const {
    auto block = blocks.begin();
    uint64_t open_end = 0;
    int64_t open = 0;
    for (const auto& [begin, range] : segments) {
      const uint64_t end = begin + static_cast<uint64_t>(range.bytes);
      if (!(range.expandable && begin == open_end)) open = 0;
      while (block != blocks.end() && block->first < begin) ++block;
      uint64_t at = begin;
      const auto piece = [&](uint64_t to) {
        if (to <= at || range.stream != stream || range.large != large) return;
        if (large && !range.expandable && to - at <= kMaxSmall) return;
        open += static_cast<int64_t>(to - at);
        add(sum, to - at);
        largest = std::max(largest, open);
      };
      for (; block != blocks.end() && block->first < end; ++block) {
        piece(block->first);
        open = 0;
        at = std::max(at, std::min(end, block->first + static_cast<uint64_t>(block->second)));
      }
      piece(end);
      open_end = end;
      if (at >= end) open = 0;
    }
  }
};

OomReason reason_of(const AllocatorOom& oom, bool is_known) {
  if (!is_known) return OomReason::kUndecided;
  if (oom.largest_free_bytes >= oom.wanted_bytes) return OomReason::kElsewhere;
  if (oom.free_bytes >= oom.wanted_bytes) return OomReason::kFragmented;
  if (oom.device_free_bytes < 0) return OomReason::kUndecided;
  const int64_t segment = segment_for(oom.wanted_bytes);
  if (oom.device_free_bytes >= segment) return OomReason::kElsewhere;
  return sum_or_limit(oom.free_bytes, oom.device_free_bytes) >= segment ? OomReason::kSplit : OomReason::kFull;
}

// Goes backwards: begins with what is held at the end and undoes the history, event by event.
class Backwards {
 public:
  explicit Backwards(const AllocatorSnapshot& all) : all_(all) {
    for (const AllocatorSegment& segment : all.segments) take_segment(segment);
  }

  AllocatorReplay replay() {
    out_.held.resize(all_.events.size());
    out_.reserved.resize(all_.events.size());
    for (size_t i = all_.events.size(); i-- > 0;) undo(i);
    find_peaks();
    for (const auto& [device, sum] : sums_) out_.sums.push_back(sum);
    std::ranges::reverse(out_.ooms);
    sort_lives();
    return std::move(out_);
  }

 private:
  AllocatorSum& sum_of(int32_t device) {
    const auto [at, is_new] = sums_.try_emplace(device);
    if (is_new) at->second.device = device;
    return at->second;
  }

  void take_segment(const AllocatorSegment& segment) {
    AllocatorSum& sum = sum_of(segment.device);
    ++sum.segments;
    add(sum.reserved_bytes, segment.bytes);
    add(reserved_[segment.device], segment.bytes);
    State& state = states_[segment.device];
    state.segments[segment.address] = {segment.bytes, segment.stream, segment.is_expandable, segment.is_large};
    int64_t active = 0, inactive = 0, largest = 0;
    for (uint32_t b = segment.first_block; b < segment.first_block + segment.block_count; ++b) {
      const AllocatorBlock& block = all_.blocks[b];
      ++sum.blocks;
      if (block.state == BlockState::kActive) {
        add(sum.allocated_bytes, block.requested);
        add(sum.free_internal_bytes, block.bytes - block.requested);
        add(active, block.bytes);
      } else {
        add(sum.free_external_bytes, block.bytes);
        if (block.state == BlockState::kAwaitingFree) add(sum.awaiting_bytes, block.bytes);
        if (block.state == BlockState::kInactive) add(inactive, block.bytes), largest = std::max(largest, block.bytes);
      }
      if (block.state == BlockState::kInactive) continue;
      add(held_[segment.device], block.requested);
      state.blocks[block.address] = block.bytes;
      alive_[{segment.device, block.address}] = static_cast<uint32_t>(out_.lives.size());
      out_.lives.push_back({AllocatorLife::kNone, AllocatorLife::kNone, b, segment.device, block.requested});
    }
    sum.largest_free_bytes = std::max(sum.largest_free_bytes, largest);
    if (inactive < segment.bytes) {
      add(sum.pieces_bytes, inactive);
      sum.largest_piece_bytes = std::max(sum.largest_piece_bytes, largest);
    }
    if (active < segment.bytes / 10) ++sum.sparse_segments, add(sum.sparse_bytes, segment.bytes - active);
  }

  void undo(size_t i) {
    const AllocatorEvent& event = all_.events[i];
    AllocatorSum& sum = sum_of(event.device);
    State& state = states_[event.device];
    int64_t &now = held_[event.device], &cached = reserved_[event.device];
    out_.held[i] = now;
    out_.reserved[i] = cached;
    ++sum.events;
    switch (event.action) {
      case AllocatorAction::kAlloc:
        ++sum.allocations;
        add(now, -event.bytes);
        undo_allocation(i);
        break;
      case AllocatorAction::kFreeCompleted:
        ++sum.frees;
        add(now, event.bytes);
        undo_free(i);
        break;
      case AllocatorAction::kSegmentAlloc:
      case AllocatorAction::kSegmentMap: add(cached, -event.bytes); break;
      case AllocatorAction::kSegmentFree:
      case AllocatorAction::kSegmentUnmap: add(cached, event.bytes); break;
      case AllocatorAction::kOutOfMemory:
        ++sum.ooms;
        out_.ooms.push_back(out_of_memory(i, state, now, cached));
        break;
      default: break;
    }
    state.undo(event);
  }

  void undo_allocation(size_t i) {
    const AllocatorEvent& event = all_.events[i];
    const auto at = alive_.find({event.device, event.address});
    if (at == alive_.end()) return add(out_.unlike, event.bytes);  // it is neither freed nor held at the end
    out_.lives[at->second].allocated = static_cast<uint32_t>(i);
    alive_.erase(at);
  }

  void undo_free(size_t i) {
    const AllocatorEvent& event = all_.events[i];
    const auto life = static_cast<uint32_t>(out_.lives.size());
    const auto [at, is_new] = alive_.try_emplace({event.device, event.address}, life);
    if (!is_new) {  // freed and held at the same time: snapshot and history are not of one run
      add(out_.unlike, event.bytes);
      at->second = life;
    }
    out_.lives.push_back(
        {AllocatorLife::kNone, static_cast<uint32_t>(i), AllocatorLife::kNone, event.device, event.bytes});
  }

  AllocatorOom out_of_memory(size_t i, State& state, int64_t now, int64_t cached) {
    const AllocatorEvent& event = all_.events[i];
    AllocatorOom oom{.event = static_cast<uint32_t>(i),
                     .device = event.device,
                     .wanted_bytes = event.bytes,
                     .device_free_bytes = event.device_free,
                     .reserved_bytes = cached,
                     .allocated_bytes = now};
    const bool looks = looked_++ < kMaxOoms;
    if (looks) state.free_pieces(event.stream, event.bytes > kMaxSmall, oom.free_bytes, oom.largest_free_bytes);
    oom.reason = reason_of(oom, looks && state.is_known && !state.segments.empty());
    return oom;
  }

  // After the history is undone `held_` and `reserved_` are what existed before it.
  void find_peaks() {
    for (auto& [device, sum] : sums_) {
      sum.peak_bytes = sum.events > 0 ? held_[device] : -1;
      sum.peak_reserved_bytes = sum.events > 0 ? reserved_[device] : -1;
      sum.peak_ns = -1;
    }
    for (size_t i = 0; i < all_.events.size(); ++i) {
      AllocatorSum& sum = sums_[all_.events[i].device];
      if (out_.held[i] > sum.peak_bytes) sum.peak_bytes = out_.held[i], sum.peak_ns = all_.events[i].time_ns;
      sum.peak_reserved_bytes = std::max(sum.peak_reserved_bytes, out_.reserved[i]);
    }
  }

  void sort_lives() {
    const auto order = [](const AllocatorLife& life) {
      return life.allocated == AllocatorLife::kNone ? 0 : int64_t{life.allocated} + 1;
    };
    sort_stably(out_.lives, {}, order);
  }

  const AllocatorSnapshot& all_;
  AllocatorReplay out_;
  std::map<int32_t, AllocatorSum> sums_;
  std::map<int32_t, State> states_;
  std::map<int32_t, int64_t> held_, reserved_;
  std::map<std::pair<int32_t, uint64_t>, uint32_t> alive_;  // lives by their address
  size_t looked_ = 0;
};

}  // namespace

const char* oom_reason_name(OomReason reason) {
  static constexpr auto kTexts =
      texts_by<OomReason::kUndecided, const char*>({"full", "fragmented", "split", "elsewhere", "unknown"});
  return kTexts[reason];
}

AllocatorReplay replay_allocator(const AllocatorSnapshot& all) { return Backwards(all).replay(); }

}  // namespace stageline
