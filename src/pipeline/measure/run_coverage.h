// The part of the run that was read. Ranks may be missing (--ranks, a lost file), some kinds of work may not have been
// recorded, and steps without numbers make work seem to repeat. Every statement about waits must take that into
// account.
//
//     read       stage 0 ──F──▶ stage 1 ──F──▶   (2)   ──F──▶ stage 3
//     fed        F, B of 3; F of 0 and 1; B of 0        its producer's place was read
//     not fed    F of 3; B of 1                         when these start says nothing about their rank or link
#pragma once

#include "pipeline/replay/theory.h"

namespace stageline {

class RunCoverage {
 public:
  // `theory` belongs to this trace; its recognised schedule says where chunks stand. O(cells log cells of a rank's
  // step), in parallel over steps.
  // `incomplete` are the steps of PipelineSums::incomplete: what is missing in them is no hole in the others.
  RunCoverage(const Trace& trace, const TheoryRun& theory, std::span<const int32_t> incomplete = {});

  // Returns true when everything that some recorded work waits for was read too.
  bool whole() const { return missing_.empty(); }
  // Returns true when every stage of this replica was read; false for kUnknown where something is missing.
  bool whole_replica(int32_t dp) const {
    return whole() || (dp >= 0 && std::cmp_less(dp, whole_replicas_.size()) && whole_replicas_[dp]);
  }
  // Returns true when every replica's work on this stage was read.
  bool read_everywhere(int32_t stage) const {
    return whole() || (stage >= 0 && std::cmp_less(stage, replicas_at_.size()) && replicas_at_[stage] == replicas_);
  }
  // Returns true if there is a pipeline in which everything that some work waits for was read.
  bool any_whole_replica() const {
    return whole() || std::ranges::find(whole_replicas_, true) != whole_replicas_.end();
  }
  // Returns true if everything that a cell waits for was read: the work that makes its input, and the work of its own
  // rank before it. True of cells that need no input, of messages, and of cells whose stage is unknown; false in steps
  // with missing rows. O(log steps).
  bool fed(size_t cell) const { return all_fed() || fed_in_part(cell); }

  // Returns true when a compute cell occurs several times in one step of its rank; all count. O(log repetitions).
  bool repeated(size_t cell) const {
    return !repeated_.empty() && std::binary_search(repeated_.begin(), repeated_.end(), static_cast<uint32_t>(cell));
  }
  // Returns true when so much work repeats that no wait is credible: another run in the files, or unnumbered steps.
  bool repeats() const { return repeated_.size() > kMaxRepeated * compute_; }
  // Returns true when no cell of several stages has its micro-batch, so that no input of any of them is known.
  bool unnumbered() const { return stages_ > 1 && compute_ > 0 && numbered_ == 0; }
  // Returns true if there are more stages than any pipeline has: their numbers, or the ranks', mean something else.
  bool overlong() const { return stages_ > kMaxPipelineStages; }
  // Returns true if no conclusion from waits is reliable: stages are too many, work repeats, or too many rows are
  // missing or last no time.
  bool not_analysable() const {
    return overlong() || repeats() || unnumbered() || holes_ > kMaxHoles * lists_cells_ ||
           untimed_ > kMaxHoles * timed_;
  }
  // Returns true if rows are missing in some steps, or were lost in reading. not_analysable() is true if they
  // are too many for any conclusion about the others.
  bool holed() const { return !holed_steps_.empty(); }
  // Returns a clause with the reason why not_analysable() is true and a remedy; "" where it is false.
  Text why_not_analysed() const;

  // Returns true when no backwards were recorded, so that steps may run into one another.
  bool forwards_alone() const { return no_backwards_; }
  // Returns true if only the length of the warm-up, or messages, show that stages at the end are missing.
  bool lacks_end() const { return by_warm_up_ || by_messages_; }
  int32_t stages() const { return stages_; }  // of the whole run, as far as known; at least 1
  // Returns the number of replicas that were not read. The recorded ones may wait for them at every place where
  // replicas meet: in collectives, before these, and between steps.
  int32_t replicas_unread() const { return replicas_ - replicas_read_; }
  // Returns the part that was read: "stages 0, 1 and 3 of 4"; "" if everything was.
  const Text& part() const { return part_; }
  // Returns true if part() counts over all pipelines, so that none of it is to be multiplied by them.
  bool part_of_all() const { return part_of_all_; }
  // Sentences on what a partly read run means and on missing rows; "" where neither applies.
  Text notes() const;
  // Adds both as warnings: "<prefix>.part_of_run", and "<prefix>.repeated_work" or "<prefix>.rows_missing".
  void note(const std::string& prefix, Diagnostics& notes) const;
  static constexpr double kMaxRepeated = 0.05;  // share of the compute cells
  static constexpr double kMaxHoles = 0.05;     // share of the forwards and backwards

 private:
  bool all_fed() const { return !no_backwards_ && holed_steps_.empty() && missing_.empty(); }
  bool fed_in_part(size_t cell) const;
  void find_places(const TheoryRun& theory);
  void say_places();
  int32_t stages_by_warm_up() const;
  bool sends_beyond(int32_t stages) const;
  void find_repetitions();
  void find_holes();
  struct StepCount;
  struct Lists;
  int32_t way_of(int32_t chunk) const { return ways_ == 2 && chunk == 1 ? 1 : 0; }
  int64_t list_of(const Part& part, int32_t chunk) const;
  bool is_incomplete(int32_t step) const { return std::ranges::binary_search(incomplete_, step); }
  bool list_cells(const StepRange& range, bool numbered, Lists& lists, StepCount& count) const;
  void count_holes(const std::vector<uint8_t>& works, Lists& lists, StepCount& count) const;
  void add_up(const std::vector<StepRange>& ranges, std::vector<StepCount> counts);
  Text part_note() const;
  Text replicas_note() const;
  Text incomplete_note() const;
  Text holes_note() const;  // "" where no rows are missing, and where too many are
  Text evaluation_note() const;
  size_t slot(int32_t dp, int32_t way, int32_t vstage) const;
  // Bits of the kinds of work that must have been read, and the slot where; 0: none.
  uint8_t needs(size_t cell, size_t& slot) const;

  const Trace& trace_;
  Schedule shape_;  // sizes and layout only
  int32_t stages_ = 1, ways_ = 1, vstages_ = 1, replicas_ = 1, replicas_read_ = 1;
  bool by_warm_up_ = false, by_messages_ = false, no_backwards_ = false;
  std::vector<uint8_t> has_;  // for each slot, the kinds of work that were read
  std::vector<bool> whole_replicas_;
  std::vector<int32_t> replicas_at_;  // for each stage, the number of replicas of which it was read
  std::span<const int32_t> incomplete_;
  std::vector<uint8_t> missing_;  // a copy of has_ if some work needs what was not read; otherwise empty
  // Numbers of forwards and backwards: expected in complete lists, missing from them, with a duration, without one.
  double lists_cells_ = 0, holes_ = 0, timed_ = 0, untimed_ = 0;
  std::vector<int32_t> holed_steps_;   // ascending
  int64_t evaluations_ = 0;            // steps with forwards only, none of them missing, in a run that trains
  size_t compute_ = 0, numbered_ = 0;  // forwards and backwards; those with a micro-batch
  std::vector<uint32_t> repeated_;     // cells, ascending
  Text part_;
  // Which words describe part_: one stage or piece of work, a count of places, or a run that lacks a kind of work.
  bool part_is_one_ = false, part_is_counted_ = false, part_is_run_ = false, part_of_all_ = false;
};

}  // namespace stageline
