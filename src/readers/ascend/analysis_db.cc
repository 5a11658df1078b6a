// analysis.db: what the profiler summed up itself, step by step and link by link.
#include <cmath>

#include "base/number.h"
#include "readers/ascend/db_rows.h"

namespace stageline::ascend {
namespace {

// "50", "step50", "" (no steps).
int64_t step_number(std::string_view text) {
  if (text.starts_with("step")) text.remove_prefix(4);
  const auto number = parse_int(text);
  return number && *number >= 0 ? *number : -1;
}

// A number of microseconds or milliseconds as nanoseconds; −1 for NULL and what does not fit.
int64_t as_ns(const SqliteRows& rows, int column, double unit_ns) {
  if (rows.type(column) == SQLITE_NULL || rows.type(column) == SQLITE_BLOB) return -1;
  const double ns = rows.real(column) * unit_ns;
  return ns >= 0 && ns < 9e18 ? static_cast<int64_t>(std::llround(ns)) : -1;
}

// The number by which HCCL knows a group: two polynomial hashes of its name, one in each half.
std::string group_number(std::string_view name) {
  uint32_t high = 0, low = 0;
  for (const char c : name) {
    high = high * 29 + static_cast<unsigned char>(c);
    low = low * 131 + static_cast<unsigned char>(c);
  }
  return std::to_string(static_cast<uint64_t>(high) << 32 | low);
}

template <class Use>
void scan(const SqliteDb& db, PartBuilder& out, std::string_view table, std::initializer_list<std::string_view> columns,
          Use use) {
  SqliteRows rows = rows_of(db, table, columns);
  while (rows.next()) use(rows);
  out.part.event_count += rows.count();
  if (!rows.ok())
    out.notes.add(
        "ascend.damaged_table", Severity::kLoss,
        "table " + std::string(table) + " is damaged after " + std::to_string(rows.count()) + " rows, which were kept",
        {db.path()});
}

}  // namespace

void read_analysis(const std::string& path, const std::map<std::string, CommGroup>& groups, PartBuilder& out) {
  Result<SqliteDb> db = SqliteDb::open_read(path, out.notes);
  if (!db) {
    out.notes.add("ascend.no_analysis", Severity::kWarning,
                  "analysis.db was left out, the profiler's own sums are missing: " + db.error().what, {path});
    return;
  }
  scan(*db, out, "StepTraceTime",
       {"step", "computing?", "communication?", "overlapped?", "communication_not_overlapped?", "free?", "stage?",
        "bubble?", "communication_not_overlapped_and_exclude_receive?", "preparing?", "deviceId?"},
       [&](const SqliteRows& rows) {
         if (rows.type(10) == SQLITE_INTEGER && out.part.device >= 0 && rows.integer(10) != out.part.device) return;
         StepSummary sum;
         sum.step = step_number(rows.text(0));
         int64_t* const values[] = {
             &sum.computing_ns, &sum.communication_ns, &sum.overlapped_ns, &sum.communication_not_overlapped_ns,
             &sum.free_ns,      &sum.stage_ns,         &sum.bubble_ns,     &sum.not_overlapped_without_receive_ns,
             &sum.preparing_ns};
         int column = 1;
         for (int64_t* value : values) *value = as_ns(rows, column++, 1e3);
         out.part.step_summaries.push_back(sum);
       });
  std::map<std::string, const std::pair<const std::string, CommGroup>*> by_number;
  for (const auto& entry : groups) by_number.emplace(group_number(entry.first), &entry);
  scan(*db, out, "CommAnalyzerMatrix",
       {"hccl_op_name", "group_name?", "src_rank", "dst_rank", "transport_type?", "transit_size?", "transit_time?",
        "step?", "type?", "op_name?"},
       [&](const SqliteRows& rows) {
         LinkSummary link;
         link.step = step_number(rows.text(7));
         link.op = std::string(rows.text(9).empty() ? rows.text(0) : rows.text(9));  // a total names no operation
         link.group = std::string(rows.text(1));
         link.type = std::string(rows.text(8));
         link.transport = std::string(rows.text(4));
         const auto known = by_number.find(link.group);
         const CommGroup* group = known == by_number.end() ? nullptr : &known->second->second;
         if (group) link.group = known->second->first;
         const auto global = [&](int64_t in_group) {
           if (group && in_group >= 0 && in_group < static_cast<int64_t>(group->ranks.size()))
             return group->ranks[static_cast<size_t>(in_group)];
           return static_cast<int32_t>(in_group >= 0 && in_group <= INT32_MAX ? in_group : -1);
         };
         link.src_rank = global(rows.integer_or(2, -1));
         link.dst_rank = global(rows.integer_or(3, -1));
         link.bytes = rows.real(5) * 1e6;
         link.transit_ns = std::max<int64_t>(as_ns(rows, 6, 1e6), 0);
         out.part.link_summaries.push_back(std::move(link));
       });
}

}  // namespace stageline::ascend
