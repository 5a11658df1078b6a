// The state of a packet sequence that its later packets need: interned texts, defaults, clocks. It lives until the
// writer clears it.
#pragma once

#include "readers/common/rows/arg_keys.h"

namespace stageline::pftrace {

// Clocks of a Perfetto trace. A snapshot says what several clocks showed at one moment; between snapshots the latest
// one before a timestamp counts, before the first one the first. Nothing is interpolated.
//
//   snapshot  BOOTTIME 100  REALTIME 5000      convert(BOOTTIME 130 → REALTIME) = 5030
class ClockBook {
 public:
  struct Stamp {
    uint64_t clock;
    int64_t ns;
  };
  void add_snapshot(std::vector<Stamp> stamps);
  // An answer that was given: it holds for timestamps of that clock in [lo, hi), until there is another snapshot.
  struct Leg {
    uint64_t from = 0, to = 0;
    int64_t lo = 0, hi = 0, delta = 0;
    size_t snapshots = 0;
  };
  // Moves `ns` to the other clock. Returns false, and leaves it, where no chain of snapshots leads there. This is fast
  // while timestamps stay between the same two snapshots; `leg` is the asker's own last answer.
  bool convert(uint64_t from, int64_t& ns, uint64_t to, Leg& leg) const {
    if (from == leg.from && to == leg.to && ns >= leg.lo && ns < leg.hi && leg.snapshots == snapshots_.size()) {
      int64_t moved = 0;
      if (__builtin_add_overflow(ns, leg.delta, &moved)) return false;
      ns = moved;
      return true;
    }
    const std::optional<int64_t> found = find_way(from, ns, to, leg);
    if (found) ns = *found;
    return found.has_value();
  }
  // to − from in the first snapshot that holds both.
  std::optional<int64_t> offset(uint64_t from, uint64_t to) const;
  bool empty() const { return snapshots_.empty(); }

 private:
  std::optional<int64_t> find_way(uint64_t from, int64_t ns, uint64_t to, Leg& leg) const;

  std::vector<std::vector<Stamp>> snapshots_;
  std::map<uint64_t, std::map<int64_t, uint32_t>> points_;  // clock → what it showed → snapshot
};

// Names of arguments that Stageline knows, by Kineto's, our own and other writers' words.

// clang-format off
enum class OwnKey : uint8_t {
  kNone, kKind, kStep, kStage, kChunk, kMicroBatch, kRank, kDp, kDuration, kOperation, kSyncKind
};
// clang-format on

// The meaning of an annotation's name.
struct AnnotationName {
  rows::ArgKey key = rows::ArgKey::kNone;
  OwnKey own = OwnKey::kNone;
};
AnnotationName annotation_name(std::string_view name);

// Interned things by their number: writers count from 1, so a table; numbers out of line go to a map.
template <class T> class IidTable {
 public:
  void put(uint64_t iid, T value) {
    if (iid < dense_.size() || iid < 4 * entries_ + 64) {
      if (iid >= dense_.size()) dense_.resize(static_cast<size_t>(iid) + 1);
      dense_[iid] = std::move(value);
    } else {
      sparse_[iid] = std::move(value);
    }
    ++entries_;
  }
  const T* get(uint64_t iid) const {
    if (iid < dense_.size()) return dense_[iid] ? &*dense_[iid] : nullptr;
    if (sparse_.empty()) return nullptr;
    const auto at = sparse_.find(iid);
    return at == sparse_.end() ? nullptr : &at->second;
  }
  void clear() {
    dense_.clear();
    sparse_.clear();
    entries_ = 0;
  }

 private:
  std::vector<std::optional<T>> dense_;
  std::unordered_map<uint64_t, T> sparse_;
  uint64_t entries_ = 0;
};

struct CounterSpec {
  uint64_t id = 0;
  std::string name;
  bool looks_back = false;  // the value covers the time before its timestamp
};
struct CounterSet {
  int64_t gpu = 0;
  std::vector<CounterSpec> specs;
};
// Reads GpuCounterDescriptor. `looks_back`: what a spec without a direction does.
std::vector<CounterSpec> counter_specs(std::string_view descriptor, bool looks_back);

struct SequenceClock {
  uint64_t id = 0;
  int64_t last = 0, unit = 1;
  bool is_incremental = false;
};

struct Sequence {
  uint32_t id = 0;
  bool seen = false, valid = false;

  IidTable<uint32_t> event_names;  // → names of the rows, and so on for all texts
  IidTable<uint16_t> categories;
  IidTable<AnnotationName> annotation_names;
  IidTable<uint32_t> annotation_texts;
  IidTable<uint32_t> gpu_specs, kernels;
  IidTable<AnnotationName> kernel_args;
  IidTable<int64_t> context_pids;
  IidTable<CounterSet> counter_sets;

  uint64_t default_clock = 0;  // 0: the trace's
  bool has_default_track = false;
  uint64_t default_track = 0;
  std::vector<uint64_t> extra_counters, extra_doubles;
  std::vector<SequenceClock> clocks;
  ClockBook::Leg leg;
  std::unordered_map<uint32_t, int64_t> counter_sums;  // of incremental counters, by track

  uint32_t thread_track = UINT32_MAX;  // of a legacy thread descriptor
  int64_t reference_us = 0;

  void clear() {
    event_names.clear();
    categories.clear();
    annotation_names.clear();
    annotation_texts.clear();
    gpu_specs.clear();
    kernels.clear();
    kernel_args.clear();
    context_pids.clear();
    counter_sets.clear();
    default_clock = 0;
    has_default_track = false;
    extra_counters.clear();
    extra_doubles.clear();
    counter_sums.clear();
  }
};

}  // namespace stageline::pftrace
