// Finds when the work of a host's mark really ran: on the device or, without a device, in the operators of the thread.
//
//   main thread      |-- Forward 3 ------------------|        |-- Backward 3 ----------|
//                       recv  aten::linear  send                 (waits)
//   autograd thread                                             |- AddmmBackward0 -|
//   stream 7                    |k||k||--k--|                         |k||-k-||k|
//   cell                        |-- F3 -----|                         |-- B3 ----|
//
// A launch belongs to the mark around it on its own thread. On a thread without marks (autograd's) it belongs to the
// mark that another thread is in at that time, if that is backward work. Communication is not part of a compute cell.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/trace.h"
#include "pipeline/cells/cell_mark.h"

namespace stageline {

struct WorkSpan {
  int64_t start_ns = 0, end_ns = 0;
  bool found = false;               // false when no work of the mark's kind was recorded within it
  bool is_whole = false;            // a message's end was recorded (gloo:recv), not only its call
  int32_t sends = 0, receives = 0;  // of a message's mark: operators of the host within it
};

// Communication on the device that lies in no mark of a message or collective.
struct LooseCommunication {
  uint32_t slice = 0;          // the kernel
  uint32_t mark = UINT32_MAX;  // the compute mark that launched it
};

struct WorkSpans {
  std::vector<WorkSpan> spans;  // for each mark
  std::vector<LooseCommunication> loose;
  bool on_device = false;      // false when no mark launched device work, so that operators of the host decide
  bool has_messages = false;   // some mark of a message has an operator that sends or receives
  bool has_operators = false;  // some mark has operators of its own, so a mark without any did nothing but wait
};

// Returns the spans of one part. `marks` are that part's, ordered by (lane, start). O(slices · log marks).
WorkSpans work_spans(const Trace& trace, const Part& part, std::span<const CellMark> marks);

}  // namespace stageline
