// --align: puts the clocks of a run on one axis where an output needs that, and refuses where it cannot be done.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/run.h"
#include "model/trace.h"
#include "pipeline/clocks/align.h"

namespace stageline {

enum class AlignMode : uint8_t {
  kNever,   // raw clocks, nothing is looked at
  kAuto,    // clocks the source says are one are checked, others aligned
  kAlways,  // also those that are said to be one, rank by rank
};

struct AlignOptions {
  AlignMode mode = AlignMode::kNever;
  bool refuse_untied = false;  // for outputs that draw several ranks on one axis
  bool trust_clocks = false;   // --trust-clocks: ranks that nothing ties keep their stamps
  std::vector<align::ByHand> by_hand;
};

// Fills Part::clock_map and Trace::alignment from the whole trace, before anything is filtered. Says what it did in the
// diagnostics (clock.*). Errors: kUsage when --align-on names what is not there.
Status map_clocks(Trace& trace, const AlignOptions& options);

// After filtering: are the ranks that are left on one clock? Error kUnavailable naming those that are not, unless they
// are trusted or nothing is drawn. Data-parallel replicas that only nothing ties to each other are drawn as recorded
// beside each other (clock.untied says so), except with kAlways.
Status check_one_clock(const Trace& trace, const AlignOptions& options);

// A run as pictures draw it: of the ranks that --ranks chose, their stamps on one clock, or with kAsRecorded left as they
// are. What was recorded does not change: where something has to, this is a copy, with as much memory, else the run
// itself. It stays where it was made, for its run looks into its copy.
enum class DrawnStamps : uint8_t { kOnOneClock, kAsRecorded };
class DrawnRun {
 public:
  // `recorded` is let go where this is a copy.
  explicit DrawnRun(std::shared_ptr<const Run> recorded, DrawnStamps stamps = DrawnStamps::kOnOneClock);
  DrawnRun(const DrawnRun&) = delete;
  DrawnRun& operator=(const DrawnRun&) = delete;
  const std::shared_ptr<const Run>& run() const { return drawn_; }
  const Trace& trace() const { return drawn_->trace(); }

 private:
  std::optional<Trace> moved_;
  std::shared_ptr<const Run> drawn_;
};

// `stageline align`: clocks as map_clocks() would put them, or, where the source says that all ranks share one, that
// clock, with what the matches have against it (clock.not_shared in the trace's diagnostics); kAlways measures there
// too. Errors: as map_clocks().
Result<ClockAlignment> measure_clocks(Trace& trace, const AlignOptions& options);

// "auto", "always", "never"; "RANK:RANK:NAME". Errors: kUsage.
Result<AlignMode> parse_align_mode(std::string_view text);
Result<align::ByHand> parse_align_on(std::string_view text);

}  // namespace stageline
