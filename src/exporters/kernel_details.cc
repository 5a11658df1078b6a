// kernel_details.csv: the kernels of a rank, in the columns in which torch_npu writes them next to a database. Columns
// that no fact holds are left out. Format: docs/exporters/kernel-details.md.
#include "base/csv.h"
#include "base/output_file.h"
#include "exporters/exporter.h"
#include "model/lanes.h"

namespace stageline {
namespace {

constexpr const char* kHeader =
    "Step Id,Device_id,Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num,Input "
    "Shapes,Input Data Types,Output Shapes\n";

class Rows {
 public:
  Rows(const Trace& trace, const Part& part) : trace_(trace), part_(part), s_(part.slices) {
    for (uint32_t i = 0; i < s_.category_id.size(); ++i)
      if (trace_.categories[s_.category_id[i]].kind == Category::kKernel) order_.push_back(i);
    sort_stably(order_, {}, [&](uint32_t i) { return s_.start_ns[i]; });
  }

  std::string next(size_t row) {
    const uint32_t i = order_[row];
    const TaskFact* task = fact_of(part_.tasks, i);
    const InputFact* inputs = fact_of(part_.inputs, i);
    const KernelFact* kernel = fact_of(part_.kernels, i);
    const bool communicates = s_.class_of(i) == KernelClass::kCommunication;
    // From the end of the kernel before it on its stream.
    int64_t& free_ns = free_ns_.try_emplace(s_.stream_id[i], s_.start_ns[i]).first->second;
    const int64_t wait_ns = std::max<int64_t>(0, s_.start_ns[i] - free_ns);
    free_ns = std::max(free_ns, s_.end_ns(i));
    line_.clear();
    field(s_.step[i] > 0 ? std::to_string(part_.steps[s_.step[i] - 1].number) : "");
    field(part_.device == kUnknown ? "" : std::to_string(part_.device));
    field(std::to_string(part_.streams[s_.stream_id[i]]));
    field(text(s_.name_id[i]));
    field(task ? text(task->op_type) : "");
    field(communicates ? "HCCL" : task ? text(task->unit) : "");
    for (const int64_t ns : {s_.start_ns[i], s_.dur_ns[i], wait_ns}) field(ns_as_decimal(ns, 3));
    const std::string grid = kernel ? text(kernel->grid) : "";  // "[24, 1, 1]"
    field(grid.empty() ? "" : grid.substr(1, grid.find(',') - 1));
    field(inputs ? text(inputs->dims) : "");
    field(inputs ? text(inputs->types) : "");
    field(task ? text(task->outputs) : "");
    line_.back() = '\n';
    return line_;
  }
  size_t size() const { return order_.size(); }

 private:
  std::string text(StringId id) const { return std::string(trace_.names.text(id)); }
  void field(const std::string& value) {
    append_csv_field(line_, value.empty() ? "N/A" : value);
    line_ += ',';
  }

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  std::vector<uint32_t> order_;
  std::map<uint16_t, int64_t> free_ns_;  // by stream: the end of its last kernel
  std::string line_;
};

}  // namespace

Status write_kernel_details(const ExportInput& input, const std::string& path) {
  Rows rows(input.trace, input.trace.parts[input.options.part]);
  if (rows.size() == 0) return make_error(ErrorCode::kUnavailable, "this rank has no kernels", "", {path});
  TRY(out, OutputFile::create(path));
  out->write(kHeader);
  for (size_t row = 0; row < rows.size(); ++row) out->write(rows.next(row));
  return out->commit();
}

}  // namespace stageline
