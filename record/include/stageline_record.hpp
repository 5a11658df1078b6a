// stageline_record.h for C++: ranges that end with their scope. C++11 and newer; nothing here allocates or throws.
#pragma once

#include <cstdint>
#include <cstring>

#include "stageline_record.h"

namespace slr {

inline slr_str intern(const char* text) { return slr_intern(text, std::strlen(text)); }

// A pipeline job; what is not said is left at "not said".
struct Job : slr_job {
  explicit Job(slr_kind of_kind, int32_t of_micro_batch = -1, int32_t of_chunk = -1) : slr_job() {
    size = static_cast<uint32_t>(sizeof(slr_job));
    kind = static_cast<uint32_t>(of_kind);
    micro_batch = of_micro_batch;
    chunk = of_chunk;
    stage = peer = -1;
    bytes = sequence = -1;
  }
  Job& named(slr_str text) { return name = text, *this; }
  Job& to(int32_t rank, int64_t size_bytes = -1, int64_t number = -1) {
    return peer = rank, bytes = size_bytes, sequence = number, *this;
  }
};

// A range from here to the end of the scope, on the thread's own lane or a stream's. May be moved to another thread.
class Range {
 public:
  explicit Range(const Job& job, slr_lane lane = 0) : range_(slr_begin(lane, &job)) {}
  Range(Range&& other) noexcept : range_(other.range_) { other.range_ = 0; }
  Range& operator=(Range&& other) noexcept {
    if (this != &other) {
      end();
      range_ = other.range_;
      other.range_ = 0;
    }
    return *this;
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() { end(); }
  void end() {
    slr_end(range_);
    range_ = 0;
  }

 private:
  slr_range range_;
};

// A nested range of this thread with a name only.
class Scope {
 public:
  explicit Scope(slr_str name, slr_lane lane = 0) : lane_(lane) { slr_push(lane, name); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { slr_pop(lane_); }

 private:
  slr_lane lane_;
};

}  // namespace slr
