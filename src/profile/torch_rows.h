// Rows of a profiler trace as analyses look at them, and the facts over all ranks; torch_view.h makes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace stageline {

inline constexpr int32_t kNoIteration = INT32_MIN;  // HTA's NaN: a device row on stream 0

struct TorchRow {
  int64_t start_ns = 0;  // from TorchRun::zero_ns
  int64_t dur_ns = 0;    // hta: may be 0 or −1000
  int64_t correlation = -1;
  int64_t partner_index = -1;  // hta: index_correlation (−1 none, 0 partner absent, else a file index)
  int64_t stream = -1;  // hta: the argument `stream` of any row, 4294967295 too; default: of device rows; −1 none
  uint32_t slice = 0;   // of the part
  uint32_t index = 0;   // position in traceEvents: HTA's index
  StringId name = 0;
  int32_t partner = -1;    // row of the partner: a device row's launch, a launch's last device row; −1 none
  int32_t iteration = -1;  // ProfilerStep number; −1 none; kNoIteration
  uint16_t lane = 0;       // of the part
  Category category = Category::kOther;
  KernelClass kernel = KernelClass::kNone;  // hta: of every row, by name
  bool on_device = false;                   // hta: stream ≠ −1; default: device work (kernel, copy, memset, MTIA work)

  int64_t end_ns() const { return start_ns + dur_ns; }
};

class TorchRowStore;

struct TorchOptions {
  bool hta = false;
  bool include_last_step = false;  // keep the last ProfilerStep, which HTA drops when there are several
  TorchRowStore* store = nullptr;  // rows of earlier questions (torch_view.h); it outlives what is made with it
};

// Facts over all ranks.
struct TorchRun {
  const Trace* trace = nullptr;
  TorchOptions options;
  std::vector<size_t> parts;   // the ranks asked for, as indexes of Trace::parts
  std::vector<int32_t> ranks;  // by part: Part::rank; hta: as HTA finds it
  int64_t zero_ns = 0;         // earliest start of all ranks; hta: rounded as HTA does, without base time
  bool drops_last_step = false;
  std::string device_type;             // HTA's: "NVIDIA GPU", "AMD GPU", "MTIA", "UNKNOWN GPU"
  std::vector<KernelClass> hta_class;  // hta: by name id
  std::vector<int64_t> step_number;    // hta: by name id, "ProfilerStep#12" → 12; −1 for other names
  std::vector<int64_t> listed_steps;   // distinct ProfilerStep numbers of all ranks, ascending

  std::string_view name(const TorchRow& row) const { return trace->names.text(row.name); }
  const std::string& category_text(const Part& part, const TorchRow& row) const {
    return trace->categories[part.slices.category_id[row.slice]].text;
  }
};

// Rows: default mode in the part's slice order (lane, start, longer first); hta mode in HTA's table
// order (after a drop: device rows in file order, then host rows in file order).
struct TorchRank {
  const Part* part = nullptr;
  int32_t rank = 0;
  std::vector<TorchRow> rows;
  std::vector<int32_t> row_of_index;  // by file index, the first row or −1; filled in hta mode

  int32_t row_at(int64_t index) const {
    return index >= 0 && index < static_cast<int64_t>(row_of_index.size()) ? row_of_index[static_cast<size_t>(index)]
                                                                           : -1;
  }
};

}  // namespace stageline
