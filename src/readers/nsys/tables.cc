#include "readers/nsys/tables.h"

#include <algorithm>

#include "base/text.h"
#include "readers/nsys/problems.h"

namespace stageline::nsys {

constexpr size_t kMaxProcesses = 4096;

Tables::Tables(const SqliteDb& database, Report& into) : db(database), report(into) {
  scan("StringIds", {"id", "value"}, [&](const SqliteRows& rows) {
    text_of_id_.put(rows.integer(0), static_cast<uint32_t>(texts_.size()));
    texts_.push_back(valid_utf8(rows.text(1)));
  });
}

void Tables::note_end(std::string_view table, const SqliteRows& rows, const std::string& missing) {
  if (!rows.ok())
    report.notes.add(problem::nsys_damaged_table, Args().set("table", std::string(table)).count("rows", rows.count()),
                     {report.path});
  if (missing.find('.') != std::string::npos)
    report.notes.add(problem::nsys_missing_column, Args().set("missing", missing), {report.path});
}

// Most exports are of one process, so the first has room for all rows there are.
void Tables::make_room(Process& p) const {
  const size_t calls = db.rows_at_most("CUPTI_ACTIVITY_KIND_RUNTIME");
  const size_t kernels = db.rows_at_most("CUPTI_ACTIVITY_KIND_KERNEL");
  const size_t copies = db.rows_at_most("CUPTI_ACTIVITY_KIND_MEMCPY") + db.rows_at_most("CUPTI_ACTIVITY_KIND_MEMSET");
  const size_t ranges = db.rows_at_most("NVTX_EVENTS");
  p.out.reserve(calls + kernels + copies + 2 * ranges);  // a range has a row on the device too
  p.out.kernels.reserve(kernels);
  p.out.copies.reserve(copies);
  p.out.ranges.reserve(ranges);
  p.launched.reserve(ranges, calls, kernels + copies);
}

Process* Tables::find_process(int64_t id) {
  const auto at = processes.find(id);
  if (at != processes.end()) return last_ = at->second.get();
  if (processes.size() >= kMaxProcesses) return nullptr;
  const bool is_first = processes.empty();
  last_ = processes.emplace(id, std::make_unique<Process>(report.path, id)).first->second.get();
  if (is_first) make_room(*last_);
  return last_;
}

uint32_t Tables::host_row(Process& p, gpu_rows::Kind kind, int64_t global_tid, int64_t start, int64_t end,
                          uint32_t name, uint32_t number) {
  Process::Thread& on = thread(p, global_tid);
  const uint32_t row = p.out.add(on.lane, kind, start, end, name, number);
  if (row == kNoRow) return row;
  ++p.host_rows;
  on.last_ns = std::max(on.last_ns, end);
  return row;
}

}  // namespace stageline::nsys
