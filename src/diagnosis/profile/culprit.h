// The host's work while something costs time: the call, its operator, its range, module and line of the program.
#pragma once

#include "model/place.h"
#include "profile/python_stacks.h"
#include "profile/timeline_data.h"

namespace stageline {

// The slices in which a loss lies, the innermost of each kind; "" where there is none.
struct Culprit {
  // The call of the runtime or driver ("cudaLaunchKernel"), or of Python's built-ins ("<built-in function sleep>").
  std::string call;
  std::string op;      // "aten::copy_"
  std::string range;   // a range of the user or of torch: "Optimizer.step#AdamW.step"
  std::string frame;   // a line of the program itself, where there is one: "train.py(57): load_batch"
  std::string module;  // "nn.Module: Linear_3"
  bool operator==(const Culprit&) const = default;
  bool empty() const { return call.empty() && op.empty() && range.empty() && frame.empty() && module.empty(); }
  // "cudaMalloc in aten::empty from train.py(57): load_batch"; "" when empty.
  Text text() const;
  // For a title: the innermost of them and the line of its file: "cudaMalloc (train.py:57)"; "" when empty.
  std::string name() const;
  // The line of the program, else the module; "" where neither is known.
  std::string where() const;
  // The call in its operator in its range in its frame: those that there are, the innermost first.
  std::vector<Place> places() const;
  // The most telling of them, as a key: "call:cudaMalloc", "frame:train.py(57)".
  std::string key() const;
};

// Names the host's nodes of one rank. Stacks are made when a node first needs them.
class CulpritFinder {
 public:
  CulpritFinder(const Trace& trace, const DeviceTimeline& timeline) : trace_(trace), t_(timeline) {}
  Culprit of(uint32_t node);

 private:
  std::string name(StringId id) const { return std::string(trace_.names.text(id)); }
  std::string frame_by_stack(uint32_t slice);
  bool any_python() const;

  const Trace& trace_;
  const DeviceTimeline& t_;
  std::unique_ptr<PythonStacks> stacks_;
};

}  // namespace stageline
