// Causes that run B has and run A has not, by the operations that they are about. Part of run_diff.
#pragma once

#include <map>
#include <vector>

#include "base/words.h"
#include "diagnosis/causes/causes.h"
#include "diagnosis/diff/diff_answer.h"

namespace stageline {

class NewCauses {
 public:
  NewCauses(const CauseList& b, const StepGraph& graph, const Trace& a_trace, const Trace& b_trace);

  // Number of the cause that an operation's time belongs to, wherever it ran; kNoCause if it belongs to its stage.
  uint32_t of(uint32_t op) const;
  const Cause& cause(uint32_t number) const { return *causes_[number]; }
  // The operations of a cause: "micro-batch 0, on every stage".
  Text what(uint32_t number) const;
  // Returns whether one of them certainly explains what `group` lost. This is the cause with the number `named` or, if
  // that is kNoCause, one about the work of the group's stage or rank.
  bool is_certain(const DiffGroup& group, uint32_t named) const;

 private:
  void add(const Cause& cause, uint32_t number, bool alone);

  const StepGraph& graph_;
  const Trace& trace_;
  std::vector<const Cause*> causes_;
  std::map<int32_t, uint32_t> by_micro_batch_, by_part_;
  uint32_t everywhere_;
};

}  // namespace stageline
