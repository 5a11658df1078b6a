#include <cctype>

#include "model/source_limits.h"
#include "readers/ascend/db_rows.h"
#include "readers/ascend/problems.h"

namespace stageline::ascend {

// In most files `id` is SQLite's own row number, by which rows are found at once. Where it is not, all texts are read.
DbTexts::DbTexts(const SqliteDb& db, PartBuilder& builder) : builder_(builder) {
  SqliteRows info(db, "PRAGMA table_info(\"STRING_IDS\")");
  bool keyed = false, there = false;
  if (!db.has_table("STRING_IDS")) return;
  while (info.next()) {
    const std::string_view name = info.text(1), type = info.text(2);
    if (sqlite3_stricmp(std::string(name).c_str(), "id") != 0) continue;
    there = true;
    keyed = info.integer(5) == 1 && sqlite3_stricmp(std::string(type).c_str(), "INTEGER") == 0;
  }
  if (keyed) {
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(db.handle(), "SELECT value FROM STRING_IDS WHERE id=?", -1, &statement, nullptr);
    statement_.reset(statement);
  } else if (there) {
    scan_table(db, builder, "STRING_IDS", {"id", "value"},
               [&](const SqliteRows& rows) { known_.put(rows.integer(0), builder_.text(rows.text(1))); });
  }
}

uint32_t DbTexts::of(const SqliteRows& rows, int column) {
  switch (rows.type(column)) {
    case SQLITE_INTEGER: return of(rows.integer(column));
    case SQLITE_TEXT: return builder_.text(rows.text(column));  // some writers put the text itself here
    default: return 0;
  }
}

uint32_t DbTexts::of(int64_t id) {
  const uint32_t known = known_.get(id);
  return known != NumberMap::kNone ? known : known_.put(id, look_up(id));
}

bool DbTexts::has(int64_t id) {
  if (known_.get(id) == NumberMap::kNone)
    if (const uint32_t found = find(id); found != NumberMap::kNone) known_.put(id, found);
  return known_.get(id) != NumberMap::kNone;
}

uint32_t DbTexts::find(int64_t id) {
  uint32_t found = NumberMap::kNone;
  if (statement_) {
    sqlite3_bind_int64(statement_.get(), 1, id);
    if (sqlite3_step(statement_.get()) == SQLITE_ROW) {
      const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), 0));
      const int size = sqlite3_column_bytes(statement_.get(), 0);
      found = builder_.text(bytes ? std::string_view(bytes, size) : std::string_view());
    }
    sqlite3_reset(statement_.get());
  }
  return found;
}

uint32_t DbTexts::look_up(int64_t id) {
  const uint32_t found = find(id);
  if (found != NumberMap::kNone) return found;
  builder_.notes.add(problem::ascend_missing_text, {builder_.part.source});
  return builder_.text("#" + std::to_string(id));
}

bool count_scan(PartBuilder& out, std::string_view table, const SqliteRows& rows, const std::string& missing) {
  out.part.event_count += rows.count();
  if (!rows.ok())
    out.notes.add(problem::ascend_damaged_table, Args().set("table", std::string(table)).count("rows", rows.count()),
                  {out.part.source});
  if (missing.find('.') != std::string::npos)
    out.notes.add(problem::ascend_missing_column, Args().set("missing", missing), {out.part.source});
  return missing.empty();
}

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
