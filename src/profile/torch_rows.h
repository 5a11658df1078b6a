// Rows of a profiler trace in the form that analyses use, and the facts over all ranks; torch_view.h makes them.
#pragma once

#include "model/trace.h"

namespace stageline {

inline constexpr int32_t kNoIteration = INT32_MIN;  // HTA's NaN, for a device row on stream 0

struct TorchRow {
  int64_t start_ns = 0;  // counted from TorchRun::zero_ns
  int64_t dur_ns = 0;    // in hta mode it may be 0 or −1000
  int64_t correlation = -1;
  int64_t partner_index = -1;  // hta: index_correlation (−1 for none, 0 when the partner is absent, else a file index)
  // hta: holds the argument `stream` of any row, also 4294967295; default: only of device rows; −1 for none.
  int64_t stream = -1;
  uint32_t slice = 0;  // slice of the part
  uint32_t index = 0;  // position in traceEvents, which is HTA's index
  StringId name = 0;
  // Row of the partner: for a device row its launch, for a launch its last device row; −1 for none.
  int32_t partner = -1;
  int32_t iteration = -1;  // number of the ProfilerStep; −1 for none; or kNoIteration
  uint16_t lane = 0;       // lane of the part
  Category category = Category::kOther;
  KernelClass kernel = KernelClass::kNone;  // in hta mode of every row, by its name
  bool on_device = false;                   // hta: stream ≠ −1; default: device work (kernel, copy, memset, MTIA work)

  int64_t end_ns() const { return start_ns + dur_ns; }
};

class TorchRowStore;

struct TorchOptions {
  bool hta = false;
  bool include_last_step = false;  // keeps the last ProfilerStep, which HTA drops when there are several
  TorchRowStore* store = nullptr;  // rows of earlier questions (torch_view.h); it must outlive what is made with it
};

// Facts over all ranks of a run.
struct TorchRun {
  const Trace* trace = nullptr;
  TorchOptions options;
  std::vector<size_t> parts;   // the ranks that are asked for, as indices of Trace::parts
  std::vector<int32_t> ranks;  // for each part: Part::rank; in hta mode as HTA finds it
  int64_t zero_ns = 0;         // earliest start of all ranks; in hta mode rounded as HTA does, without base time
  bool drops_last_step = false;
  std::string device_type;             // HTA's name: "NVIDIA GPU", "AMD GPU", "MTIA", "UNKNOWN GPU"
  std::vector<KernelClass> hta_class;  // hta: for each name id
  std::vector<int64_t> step_number;    // hta: for each name id its step, "ProfilerStep#12" → 12; −1 for other names
  std::vector<int64_t> listed_steps;   // the distinct ProfilerStep numbers of all ranks, ascending

  std::string_view name(const TorchRow& row) const { return trace->names.text(row.name); }
  const std::string& category_text(const Part& part, const TorchRow& row) const {
    return trace->categories[part.slices.category_id[row.slice]].text;
  }
};

// The rows of one rank. In default mode they are in the part's slice order (lane, start, longer first). In hta mode
// they are in the order of HTA's table (after a drop: device rows in file order, then host rows in file order).
struct TorchRank {
  const Part* part = nullptr;
  int32_t rank = 0;
  std::vector<TorchRow> rows;
  std::vector<int32_t> row_of_index;  // file index → the first row with it, or −1; filled in hta mode

  int32_t row_at(int64_t index) const {
    return index >= 0 && index < std::ssize(row_of_index) ? row_of_index[index] : -1;
  }
};

// torch_view's other mode: applies HTA's rules of loading, one by one, to the exact columns.
// Definitions: docs/analyses/hta-loading.md.

// Rounds start and duration in ns as HTA does (ceil, floor), if it does so for this part.
void hta_round(const Part& part, int64_t& start_ns, int64_t& dur_ns);

// Finds facts of the run, and ranks as HTA numbers them. Returns which parts HTA holds: of several parts with one rank
// the last, and no part without rows.
std::vector<bool> hta_run_facts(TorchRun& run);
TorchRank hta_rank_rows(const TorchRun& run, size_t part);
void hta_index_rows(TorchRank& rank);  // fills row_of_index and partner

// Returns true for events that HTA's tables hold: those with a category and a duration of their own, except the bar of
// the whole profile.
bool is_hta_row(const Trace& trace, const Slices& slices, size_t slice);
// HTA's test for a device row: it has the argument stream and a correlation, or is a wait by its name.
bool hta_gpu_side(const TorchRun& run, const TorchRow& row);
// Returns a time as one gets it by reading the file's decimal text of microseconds as a double.
double hta_raw_us(int64_t ns);

}  // namespace stageline
