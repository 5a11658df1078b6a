// The state of a packet sequence that its later packets need: interned texts, defaults, clocks. It lives until the
// writer clears it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "readers/perfetto/annotation_names.h"
#include "readers/perfetto/clocks.h"

namespace stageline::pftrace {

// Interned things by their number: writers count from 1, so a table; numbers out of line go to a map.
template <class T>
class IidTable {
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
