// Rebuilds the Python frames around every slice of one rank from python_function rows.
//
//   main thread    train.py(10): <module> ─ train.py(4): step ─ nn.Module: Linear_0 ─ aten::linear ─ cudaLaunchKernel
//   stack of aten::linear, innermost first: nn.Module: Linear_0 · train.py(4): step · train.py(10): <module>.
//
// The frame around a slice is:
//   1. it has the innermost python_function that encloses it on its thread (Slices::parent);
//   2. above a frame, its own Python parent, which may be another thread's (Part::python_parents), else rule 1;
//   3. device work has the frames of the call that launched it, else of its operator;
//   4. an operator at the top of a thread that names a forward thread has the frames open there when it starts;
//   5. a backward operator – X within "autograd::engine::evaluate_function: X" – and all below it have the frames of
//      the forward operator of the same sequence number, the last of several (BackwardFrames::kForward), none when that
//      was not recorded.
// Source of 2 to 5: torch/csrc/profiler/collection.cpp, torch/autograd/profiler_util.py (_set_backward_stacktraces).
// torch itself fills stacks only with verbose=True; these stacks only need with_stack=True.
//
// Stacks are shared as a tree: a node is the stack outside it plus one frame, so memory is O(distinct stacks). Circles
// of Python parents in damaged traces are cut where they close. O(slices + frames) time, no recursion.
#pragma once

#include "model/trace.h"

namespace stageline {

enum class BackwardFrames : uint8_t {
  kForward,  // frames of the forward operator: where in the model the work belongs (torch groups by these)
  kCaller,   // frames of the call that runs it: run_backward, or frames of the autograd thread
};

struct PythonStackOptions {
  BackwardFrames backward = BackwardFrames::kForward;
  bool drop_torch_entries = false;  // leaves out the entries that torch leaves out, see drops_stack_entry()
  bool operators = false;           // operators are frames too, so stacks end in them
  bool cut_addresses = false;       // "<built-in method f of T object at 0x7f12>" → "<built-in method f of T object>"
};

class PythonStacks {
 public:
  static constexpr uint32_t kEmpty = 0;  // the stack without frames
  // Of longer texts both ends are kept, with "…" between. A stack is written once for every row, and so would be a
  // frame of a megabyte (in a damaged or hostile file).
  static constexpr size_t kMaxFrameBytes = 2048;

  struct Node {
    uint32_t parent = kEmpty;  // the stack outside `frame`; comes before this node
    StringId frame = 0;        // index into `frames`
    uint32_t depth = 0;        // number of frames in the stack
  };

  // Returns the frames around a slice, without the slice itself.
  uint32_t stack_of(size_t slice) const { return around_[slice]; }
  // Returns the frames around what the slice calls: for a frame the stack that includes it, for other slices
  // stack_of().
  uint32_t inside(size_t slice) const { return inside_[slice]; }

  const std::vector<Node>& nodes() const { return nodes_; }  // nodes()[kEmpty] has no frame
  std::string_view frame_text(uint32_t node) const { return frames_.text(nodes_[node].frame); }

  // Returns the texts of a stack's frames, innermost first, at most `most`.
  std::vector<std::string_view> entries(uint32_t node, size_t max = SIZE_MAX) const;

  // Returns for each node a number that is equal for nodes with equal `n` innermost frames (or equal whole stacks, if
  // shorter). The number is the first node of the group. O(nodes · log n).
  std::vector<uint32_t> groups_of_innermost(size_t n) const;

 private:
  friend class PythonStackBuilder;
  std::vector<Node> nodes_ = {Node{}};
  StringPool frames_;
  std::vector<uint32_t> around_, inside_;  // for each slice
};

PythonStacks python_stacks(const Trace& trace, const Part& part, const PythonStackOptions& options = {});

// Returns stacks as torch recorded them (Part::stacks: verbose captures, TorchScript, traces up to torch 1.10), in the
// same form. Slices without a recorded stack have the empty stack. With BackwardFrames::kForward, backward operators
// get their forward operator's stack, as torch gives it to them.
PythonStacks recorded_stacks(const Trace& trace, const Part& part, const PythonStackOptions& options = {});

// Returns true for entries that torch leaves out of stacks: backward() and its helpers, and wrappers of its own tests.
bool drops_stack_entry(std::string_view frame);
// Returns the name without " at 0x…", since what remains is the same for the function in every process.
std::string without_address(std::string_view frame);
// Returns a text with its middle removed if it is longer than PythonStacks::kMaxFrameBytes.
std::string shortened_frame(std::string_view frame);

// ---- callers ----------------------------------------------------------------------------------------------------

// Returns for each slice what called it, by rules 1 to 4 above; kNoSliceIndex when nothing did. In damaged traces there
// may be circles.
std::vector<uint32_t> python_callers(const Trace& trace, const Part& part);
// Cuts circles of `caller`, and returns all slices in an order in which callers come before what they call. O(slices).
std::vector<uint32_t> callers_first(std::vector<uint32_t>& caller);

// ---- autograd ---------------------------------------------------------------------------------------------------

// Returns for each slice the innermost backward operator at or around it on its thread; kNoSliceIndex when there is
// none.
std::vector<uint32_t> backward_operators(const Trace& trace, const Part& part);
// Operators that record no gradient have the sequence number of the next one that does. So of several operators with
// one number, the last made the autograd node.
enum class OfEqualNumbers : uint8_t {
  kFirst,  // as torch's tables choose (profiler_util.py, _set_backward_stacktraces)
  kLast,   // the one that made the node, as in torch's arrows from forward to backward (collection.cpp)
};
// Returns for each slice of a backward operator the slice of the forward thread with the same sequence number;
// kNoSliceIndex for all others. `backward` comes from backward_operators().
std::vector<uint32_t> forward_operators(const Trace& trace, const Part& part, const std::vector<uint32_t>& backward,
                                        OfEqualNumbers which);

// Names of Python frames as people type them: "train.py(57): load_batch" is line train.py:57 of the program.

// Returns whether a frame is of the program, not of torch or Python's own library.
bool is_own_frame(std::string_view name);
// Returns "base.py:57" of "transformers/pipelines/base.py(57): load"; "" of a frame without a line.
std::string frame_line(std::string_view frame);
// Returns "sleep" of "<built-in function sleep>", "collect" of "<built-in method collect of T object at 0x7f12>"; other
// names as they are.
std::string built_in_name(std::string_view name);
// Returns the slice and the line of the program that it runs in, as far as frames around it say: "sleep (train.py:57)".
std::string name_with_line(const Trace& trace, const Part& part, uint32_t slice);

}  // namespace stageline
