#include "readers/ascend/rank_db.h"

#include <cctype>

#include "model/source_limits.h"
#include "readers/ascend/db_rows.h"
#include "readers/ascend/problems.h"
#include "readers/reader.h"

namespace stageline::ascend {

bool RankDb::times(const SqliteRows& rows, int column, int64_t& start_ns, int64_t& end_ns) {
  const auto number = [&](int c, int64_t& value) {
    const int type = rows.type(c);
    if (type == SQLITE_NULL || type == SQLITE_BLOB) return false;
    if (type == SQLITE_TEXT) {  // PYTORCH_API stores its times as text
      const std::string_view text = rows.text(c);
      if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) == 0) return false;
    }
    value = rows.integer(c);
    return value >= 0 && value <= kMaxTimeNs;
  };
  if (number(column, start_ns) && number(column + 1, end_ns)) return true;
  start_ns = -1;  // PartBuilder::add() refuses and counts such a row
  return false;
}

std::string_view RankDb::enum_name(const std::string& table, int64_t id) {
  const auto [it, added] = enums.try_emplace(table);
  if (added)
    scan(table, {"id", "name"}, [&](const SqliteRows& rows) {
      if (it->second.size() < 4096) it->second.emplace(rows.integer(0), rows.text(1));
    });
  const auto found = it->second.find(id);
  return found == it->second.end() ? std::string_view() : std::string_view(found->second);
}

// Returns true when the database has anything that would fill a lane.
static bool is_profile(const SqliteDb& db) {
  for (const char* table : {"TASK", "MSTX_EVENTS", "COMMUNICATION_OP", "CANN_API", "PYTORCH_API", "STEP_TIME"})
    if (db.has_table(table)) return true;
  return false;
}

RankPart read_rank_db(const RankFiles& files, const ReadOptions& options) {
  RankPart result;
  PartBuilder out(files.profiler_db);
  out.part.rank = files.rank;
  Result<SqliteDb> db = SqliteDb::open_read(files.profiler_db, out.notes);
  if (!db) {
    result.error = std::move(db).error();
    return result;
  }
  if (!is_profile(*db)) {
    result.error = input_error("ascend.no_tables", {files.profiler_db});
    return result;
  }
  for (const char* table : {"CANN_API", "COMMUNICATION_OP", "COMMUNICATION_TASK_INFO", "COMPUTE_TASK_INFO",
                            "CONNECTION_IDS", "MEMCPY_INFO", "META_DATA", "MSTX_EVENTS", "NPU_INFO", "OP_MEMORY",
                            "PYTORCH_API", "RANK_DEVICE_MAP", "STEP_TIME", "STRING_IDS", "TASK"})
    if (db->has_table(table)) result.tables.emplace_back(table);
  {
    RankDb rank(*db, files, out, options.only_ranges);
    read_identity(rank);
    read_ranges(rank);
    read_communication(rank);
    read_tasks(rank);
    read_host_calls(rank);
    finish_communication(rank);
    read_steps(rank);
    if (!options.only_ranges) read_counters(rank);
    if (rank.ranges.empty() && rank.out.ranges.empty()) out.notes.add(problem::ascend_no_ranges, {db->path()});
  }
  add_summaries(files, out.part, out.notes);
  result.part = out.finish(result.names);
  result.notes = std::move(out.notes);
  return result;
}

}  // namespace stageline::ascend
