#include "pipeline/clocks/align.h"
#include "pipeline/clocks/clock_net.h"

namespace stageline {

int64_t stamp_unit_ns(const Trace& trace) { return trace.format == "paddle-dynamic" ? 1'000'000 : 1; }

namespace align {
namespace {

constexpr int64_t kCoarsest = 1000;  // coarser grains cannot be distinguished from work that takes round times
constexpr int64_t kMinStamps = 8;    // fewer timestamps may all be round by chance

class Grain {
 public:
  explicit Grain(int64_t coarsest_ns) : grain_ns_(coarsest_ns) {}
  // Returns false once the grain is down to a nanosecond.
  bool add(int64_t stamp_ns) {
    if (count_++ == 0) zero_ns_ = stamp_ns;
    int64_t since = 0;
    if (__builtin_sub_overflow(stamp_ns, zero_ns_, &since)) return true;  // too far apart to be times
    while (grain_ns_ > 1 && since % grain_ns_ != 0) grain_ns_ /= 10;
    return grain_ns_ > 1;
  }
  int64_t grain_ns() const { return count_ < kMinStamps ? 1 : grain_ns_; }

 private:
  int64_t zero_ns_ = 0, count_ = 0, grain_ns_;
};

}  // namespace

int64_t stamp_grain_of(const Matches& matches, const ClockDomain& domain) {
  const Trace& trace = *matches.trace;
  Grain grain(std::max(kCoarsest, stamp_unit_ns(trace)));
  for (const size_t p : domain.parts) {
    for (const StepCells& step : matches.steps_of_part[p])
      for (size_t i = step.begin; i < step.end; ++i)
        if (!grain.add(trace.cells.start_ns[i]) || !grain.add(trace.cells.end_ns[i])) return 1;
    const Part& part = trace.parts[p];
    for (const CollectiveFact& fact : part.collectives)
      if (!grain.add(part.slices.start_ns[fact.slice]) || !grain.add(part.slices.end_ns(fact.slice))) return 1;
  }
  return grain.grain_ns();
}

}  // namespace align
}  // namespace stageline
