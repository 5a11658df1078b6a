#include "exporters/timings_csv.h"

#include <map>

#include "base/number.h"
#include "base/output_file.h"

namespace stageline {
namespace {

std::string_view op_type(CellKind kind) {
  switch (kind) {
    case CellKind::kForward: return "forward-compute";
    case CellKind::kBackward: return "backward-compute";
    case CellKind::kInputGrad: return "backward-input-compute";
    case CellKind::kWeightGrad: return "backward-weight-compute";
    case CellKind::kForwardBackward: return "forward-backward-compute";
    case CellKind::kSendForward: return "forward-send";
    case CellKind::kRecvForward: return "forward-recv";
    case CellKind::kSendBackward: return "backward-send";
    case CellKind::kRecvBackward: return "backward-recv";
    case CellKind::kCollective: return "grads-reduce-scatter";  // the only collective that simulations have
    case CellKind::kOptimizer: return "optimizer";
    case CellKind::kOther: return "other";
  }
  return "other";
}

}  // namespace

Status write_timings_csv(const Trace& trace, const std::vector<int64_t>& clock_offset_ns, const std::string& path) {
  TRY(out, OutputFile::create(path));
  out->write("dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n");
  const Cells& cells = trace.cells;
  const int32_t stages = extent_of(trace).stage_count;
  // seq_id is the position among the operations of the same kind within one rank and step.
  std::map<std::pair<int32_t, int32_t>, std::map<CellKind, int32_t>> sequence;
  for (size_t i = 0; i < cells.size(); ++i) {
    const Cell cell = cells.at(i);
    const Part& part = trace.parts[cell.part];
    const size_t machine = part.machine;
    const int64_t offset = machine < clock_offset_ns.size() ? clock_offset_ns[machine] : 0;
    const int32_t seq = sequence[{cell.part, cell.step}][cell.kind]++;
    const int32_t global_chunk = is_compute(cell.kind) ? cell.chunk * stages + part.stage : -1;
    out->write(std::to_string(part.dp) + "," + std::to_string(part.stage) + "," + std::to_string(part.rank) + "," +
               std::to_string(cell.step) + "," + std::string(op_type(cell.kind)) + "," +
               ns_as_decimal(cell.start_ns - offset, 9) + "," + ns_as_decimal(cell.end_ns - cell.start_ns, 9) + "," +
               std::to_string(seq) + "," +
               std::to_string(is_compute(cell.kind) || is_message(cell.kind) ? cell.chunk : -1) + "," +
               std::to_string(cell.micro_batch) + "," + std::to_string(global_chunk) + "\n");
  }
  return out->commit();
}

}  // namespace stageline
