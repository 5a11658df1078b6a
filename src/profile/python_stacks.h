// The Python frames around every slice of one rank, rebuilt from python_function rows.
//
//   main thread    train.py(10): <module> ─ train.py(4): step ─ nn.Module: Linear_0 ─ aten::linear ─ cudaLaunchKernel
//   stack of aten::linear, innermost first:  nn.Module: Linear_0 · train.py(4): step · train.py(10): <module>
//
// Which frame is around a slice:
//   1. the innermost python_function that encloses it on its thread (Slices::parent);
//   2. above a frame, its own Python parent, which may be another thread's (Part::python_parents), else rule 1;
//   3. device work has the frames of the call that launched it, else of its operator;
//   4. an operator at the top of a thread that names a forward thread has the frames open there when it starts;
//   5. a backward operator – X within "autograd::engine::evaluate_function: X" – and all below it have the frames of
//      the forward operator of the same sequence number, the last of several (BackwardFrames::kForward), none when that
//      was not recorded.
// Source of 2 to 5: torch/csrc/profiler/collection.cpp, torch/autograd/profiler_util.py (_set_backward_stacktraces);
// torch itself fills stacks only with verbose=True, these need with_stack=True alone.
//
// Stacks are shared as a tree: a node is (the stack outside it, one frame), so memory is O(distinct stacks). Circles of
// Python parents in damaged traces are cut where they close. O(slices + frames) time, no recursion.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace stageline {

enum class BackwardFrames : uint8_t {
  kForward,  // of the forward operator: where in the model the work belongs (what torch groups by)
  kCaller,   // of the call that runs it: run_backward, or frames of the autograd thread
};

struct PythonStackOptions {
  BackwardFrames backward = BackwardFrames::kForward;
  bool drop_torch_entries = false;  // leave out what torch leaves out: drops_stack_entry()
  bool operators = false;           // operators are frames too, so that stacks end in them
  bool cut_addresses = false;       // "<built-in method f of T object at 0x7f12>" → "<built-in method f of T object>"
};

class PythonStacks {
 public:
  static constexpr uint32_t kEmpty = 0;  // the stack without frames
  // Of longer texts both ends are kept, "…" between: stacks are written once for every row, and a frame of a megabyte
  // (of a damaged or hostile file) would be as often.
  static constexpr size_t kMostFrameBytes = 2048;

  struct Node {
    uint32_t parent = kEmpty;  // the stack outside `frame`; stands before this node
    StringId frame = 0;        // into `frames`
    uint32_t depth = 0;        // frames in the stack
  };

  // The frames around a slice, not the slice itself.
  uint32_t stack_of(size_t slice) const { return around_[slice]; }
  // The frames around what the slice calls: of a frame its own stack, of other slices stack_of().
  uint32_t inside(size_t slice) const { return inside_[slice]; }

  const std::vector<Node>& nodes() const { return nodes_; }  // nodes()[kEmpty] has no frame
  std::string_view frame_text(uint32_t node) const { return frames_.text(nodes_[node].frame); }

  // Frame texts of a stack, innermost first, at most `most`.
  std::vector<std::string_view> entries(uint32_t node, size_t most = SIZE_MAX) const;

  // By node: a number equal for nodes whose `n` innermost frames are equal (whole stacks where they are shorter).
  // Numbers are nodes: the first of each group. O(nodes · log n).
  std::vector<uint32_t> groups_of_innermost(size_t n) const;

 private:
  friend class PythonStackBuilder;
  std::vector<Node> nodes_ = {Node{}};
  StringPool frames_;
  std::vector<uint32_t> around_, inside_;  // by slice
};

PythonStacks python_stacks(const Trace& trace, const Part& part, const PythonStackOptions& options = {});

// Stacks as torch recorded them (Part::stacks: verbose captures, TorchScript, traces up to torch 1.10), by the same
// tree; slices without a recorded stack have the empty one. Backward operators get their forward operator's with
// BackwardFrames::kForward, as torch gives it to them.
PythonStacks recorded_stacks(const Trace& trace, const Part& part, const PythonStackOptions& options = {});

// Entries that torch leaves out of stacks: backward() and its helpers, and wrappers of its own tests.
bool drops_stack_entry(std::string_view frame);
// The name without " at 0x…": what is the same function in every process.
std::string without_address(std::string_view frame);
// The ends of a text longer than PythonStacks::kMostFrameBytes.
std::string shortened_frame(std::string_view frame);

// ---- callers ----------------------------------------------------------------------------------------------------

// By slice: what called it, by rules 1 to 4 above; kNoSliceIndex. May hold circles in damaged traces.
std::vector<uint32_t> python_callers(const Trace& trace, const Part& part);
// Cuts circles of `caller` and gives all slices in an order in which callers stand before what they call. O(slices).
std::vector<uint32_t> callers_first(std::vector<uint32_t>& caller);

// ---- autograd ---------------------------------------------------------------------------------------------------

// By slice: the innermost backward operator at or around it on its thread; kNoSliceIndex.
std::vector<uint32_t> backward_operators(const Trace& trace, const Part& part);
// Operators that record no gradient have the number of the next one that does: of several the last made the node.
enum class OfEqualNumbers : uint8_t {
  kFirst,  // as torch's tables choose (profiler_util.py, _set_backward_stacktraces)
  kLast,   // as torch's arrows from forward to backward do (collection.cpp): the one that made the node
};
// By slice of backward operators: the slice of the forward thread with the same sequence number; else kNoSliceIndex.
// `backward`: as backward_operators() has it.
std::vector<uint32_t> forward_operators(const Trace& trace, const Part& part, const std::vector<uint32_t>& backward,
                                        OfEqualNumbers which);

}  // namespace stageline
