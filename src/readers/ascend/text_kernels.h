// Reads kernel_details.csv: what ran on one device, one row per kernel, with communication operations among them.
//
//   Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),…
//
// Columns are found by name, since which ones exist, and in which order, depends on version, level and options. Times
// are decimal texts of microseconds with more digits than a double holds, often followed by a tab (source: the field
// tables in Ascend's documentation of kernel_details.csv and op_summary).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/text_interner.h"

namespace stageline::ascend {

struct KernelRow {
  int64_t start_ns = 0, dur_ns = 0;                        // start counts from the epoch
  int64_t step = -1, stream = -1, device = -1, task = -1;  // −1 when not given
  int64_t blocks = -1;                                     // "Block Dim" or "Block Num"
  uint32_t name = 0, type = 0, core = 0;                   // ids of KernelTable::texts, 0 when not given
  uint32_t shapes = 0, dtypes = 0;
  bool communication = false;
};

struct KernelTable {
  TextInterner texts;
  std::vector<KernelRow> rows;  // in the file's order
  int64_t lost = 0;             // how many lines could not be used
};

// Errors: kNotFound, kIo; kBadInput when there is no column of names, starts or durations. Lines that are cut, have a
// quote too many, or have a time that is invalid or runs backwards are counted as "ascend.kernel_line". O(bytes).
Result<KernelTable> read_kernel_details(const std::string& path, Diagnostics& diagnostics, Progress* progress);

// True when a row with these texts is a communication operation, by its core ("HCCL", "COMMUNICATION") or its name.
bool is_communication_kernel(std::string_view name, std::string_view core);

}  // namespace stageline::ascend
