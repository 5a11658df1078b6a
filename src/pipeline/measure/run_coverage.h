// How much of the run was read. Ranks may be left out (--ranks, a lost file), kinds of work may never have been
// recorded, and steps that nobody numbered make work repeat: what is said of waits must know.
//
//     read       stage 0 ──F──▶ stage 1 ──F──▶   (2)   ──F──▶ stage 3
//     fed        F, B of 3; F of 0 and 1; B of 0        its producer's place was read
//     not fed    F of 3; B of 1                         when these start says nothing about their rank or link
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/words.h"
#include "pipeline/replay/theory.h"

namespace stageline {

class RunCoverage {
 public:
  // `theory` of this trace: where its schedule puts the chunks. O(cells log cells of a rank's step), in parallel over
  // steps.
  RunCoverage(const Trace& trace, const TheoryRun& theory);

  // Everything was read that some work that was read waits for.
  bool whole() const { return missing_.empty(); }
  // Whether all that a cell waits for was read: what makes its input, and the work of its own rank before it. True of
  // what needs no input, of messages, and of cells whose stage nobody knows; false in steps with holes. O(log steps).
  bool fed(size_t cell) const { return all_fed() || fed_in_part(cell); }

  // Compute cells that are there several times in one step of their rank, all of them: O(log repetitions).
  bool repeated(size_t cell) const {
    return !repeated_.empty() && std::binary_search(repeated_.begin(), repeated_.end(), static_cast<uint32_t>(cell));
  }
  // So many that no wait can be believed: another run in the same files, or steps without numbers.
  bool repeats() const { return static_cast<double>(repeated_.size()) > kMostRepeated * static_cast<double>(compute_); }
  // Nothing that rests on waits can be believed: work repeats, too many rows are missing, or too many last no time.
  bool untold() const { return repeats() || holes_ > kMostHoles * lists_cells_ || untimed_ > kMostHoles * timed_; }
  // Rows are missing in some steps, few enough to say what the others tell.
  bool holed() const { return !holed_steps_.empty(); }
  // Why, and what to do, a clause; "" where it can.
  Text why_untold() const;

  // Whether stages at the end are missing, as only the warm-up tells.
  bool by_warm_up() const { return by_warm_up_; }
  int32_t stages() const { return stages_; }  // of the whole run, as far as anything tells; at least 1
  // "stages 0, 1 and 3 of 4"; "" where all were read.
  const Text& part() const { return part_; }
  // Sentences on what that means, and on rows that are missing; "" where the run is whole and nothing is.
  Text notes() const;
  // Both as warnings "<prefix>.part_of_run" and "<prefix>.repeated_work".
  void note(const std::string& prefix, Diagnostics& notes) const;
  static constexpr double kMostRepeated = 0.05;  // of the compute cells
  static constexpr double kMostHoles = 0.05;     // of the forwards and backwards

 private:
  bool all_fed() const { return !no_backwards_ && holed_steps_.empty() && missing_.empty(); }
  bool fed_in_part(size_t cell) const;
  void find_places(const TheoryRun& theory);
  void say_places();
  int32_t stages_by_warm_up() const;
  void find_repetitions();
  void find_holes();
  Text part_note() const;
  Text holes_note() const;  // "" where none are missing, and where too many are
  Text evaluation_note() const;
  size_t slot(int32_t dp, int32_t way, int32_t vstage) const;
  uint8_t needs(size_t cell, size_t& slot) const;  // bits of what must be there, in which slot; 0: nothing

  const Trace& trace_;
  Schedule shape_;  // sizes and layout only
  int32_t stages_ = 1, ways_ = 1, vstages_ = 1, replicas_ = 1;
  bool by_warm_up_ = false, no_backwards_ = false;
  std::vector<uint8_t> has_;      // by slot: kinds of work that were read
  std::vector<uint8_t> missing_;  // has_, where some work needs what is not there; else empty
  // Forwards and backwards: what lists would hold, what of it is not there, those with a time, those that last none.
  double lists_cells_ = 0, holes_ = 0, timed_ = 0, untimed_ = 0;
  std::vector<int32_t> holed_steps_;  // ascending
  int64_t evaluations_ = 0;           // steps of forwards alone, all of them there, in a run that trains
  size_t compute_ = 0;
  std::vector<uint32_t> repeated_;  // cells, ascending
  Text part_;
  // What part_ is: one stage or one piece of work, a number of places, a run that lacks a kind of work.
  bool part_is_one_ = false, part_is_counted_ = false, part_is_run_ = false;
};

}  // namespace stageline
