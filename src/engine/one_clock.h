// --align: puts the clocks of a run on one axis where an output needs that, and refuses where this is not possible.
#pragma once

#include "facts/run.h"
#include "pipeline/clocks/align.h"
#include "readers/reader.h"

namespace stageline {

enum class AlignMode : uint8_t {
  kNever,   // clocks stay raw, and nothing is checked
  kAuto,    // clocks that the source says are one are checked, others are aligned
  kAlways,  // aligns rank by rank, also where the source says that the clock is shared
};

struct AlignOptions {
  AlignMode mode = AlignMode::kNever;
  // For outputs that draw several ranks on one axis: an error, or a warning (a report is always made).
  bool refuse_untied = false, warn_of_untied = false;
  bool trust_clocks = false;  // --trust-clocks: ranks that nothing connects keep their timestamps
  std::vector<align::ByHand> by_hand;
};

// Fills Part::clock_map and Trace::alignment from the whole trace, before anything is filtered. The diagnostics
// (clock.*) say what it did. Errors: kUsage when --align-on names something that does not exist.
Status map_clocks(Trace& trace, const AlignOptions& options);

// After filtering, checks that the ranks that are left are on one clock. Error: kUnavailable naming those that are not,
// unless they are trusted, only warned of, or nothing is drawn. If only whole data-parallel replicas are not connected
// to each other, they are drawn next to each other as recorded (the note `clock.untied` reports it), except with
// kAlways. Where their steps do not overlap, their clocks are set so that steps start together (the note
// `clock.placed_by_steps`). O(cells).
Status check_one_clock(Trace& trace, const AlignOptions& options);

enum class DrawnStamps : uint8_t { kOnOneClock, kAsRecorded };

// A run prepared for drawing: the ranks selected by --ranks, with aligned timestamps (with kAsRecorded, unchanged
// ones). The recorded trace is never modified. If timestamps must change, this holds a copy, which doubles the memory,
// or takes over a trace that is no longer needed as recorded. Otherwise it refers to the run itself. It can be neither
// copied nor moved, since its run refers to its members.
class DrawnRun {
 public:
  // `recorded` is released where this holds a copy.
  explicit DrawnRun(std::shared_ptr<const Run> recorded, DrawnStamps stamps = DrawnStamps::kOnOneClock);
  // The timestamps of `recorded` themselves move, if they have to; no Run of it may be left.
  explicit DrawnRun(Trace&& recorded, DrawnStamps stamps = DrawnStamps::kOnOneClock);
  DrawnRun(const DrawnRun&) = delete;
  DrawnRun& operator=(const DrawnRun&) = delete;
  // Returns true if the drawn trace differs from this one.
  static bool changes(const Trace& recorded, DrawnStamps stamps = DrawnStamps::kOnOneClock);
  const std::shared_ptr<const Run>& run() const { return drawn_; }
  const Trace& trace() const { return drawn_->trace(); }

 private:
  void draw(DrawnStamps stamps);
  std::optional<Trace> moved_;
  std::shared_ptr<const Run> drawn_;
};

// For `stageline align`: returns clocks as map_clocks() would set them. If the source declares a common clock, returns
// that clock; contradicting matches are reported as clock.not_shared. kAlways measures even then. Errors: as
// map_clocks().
Result<ClockAlignment> measure_clocks(Trace& trace, const AlignOptions& options);

// Parse "auto", "always" or "never"; and "RANK:RANK:NAME". Errors: kUsage.
Result<AlignMode> parse_align_mode(std::string_view text);
Result<align::ByHand> parse_align_on(std::string_view text);

// Moves the parts of a profile onto the clock of the file that a manifest relates them to, and names their machines.
// The run's clock is then shared if one file is the reference of all. A manifest in a circle, or no JSON, is a problem.
void apply_clock_manifest(const Source& source, Trace& trace);

}  // namespace stageline
