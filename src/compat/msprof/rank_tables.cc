#include "compat/msprof/rank_tables.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/input_files.h"
#include "base/system_calls.h"

namespace stageline {
namespace {

constexpr size_t kCopyBytes = size_t{64} << 20;  // bytes per call; Ctrl-C is handled between calls

Error io_error(const std::string& doing, const std::string& path, int reason) {
  return make_error(ErrorCode::kIo, doing + ": " + std::strerror(reason), reason == ENOSPC ? "the disk is full" : "",
                    {path});
}

// Copies the bytes [from, end) through a buffer.
Status copy_with_buffer(int in, int out, off_t from, off_t end, const std::string& source, const std::string& target) {
  std::vector<char> buffer(size_t{1} << 20);
  while (from < end) {
    const ssize_t got =
        pread(in, buffer.data(), std::min<size_t>(buffer.size(), static_cast<size_t>(end - from)), from);
    if (got == 0) return {};
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("cannot read it", source, errno);
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = pwrite(out, buffer.data() + done, got - done, from + done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return io_error("cannot write", target, errno);
      done += put;
    }
    from += got;
  }
  return {};
}

Status copy_range(int in, int out, off_t from, off_t end, const std::string& source, const std::string& target) {
  while (from < end) {
    off_t read_at = from, write_at = from;
    const ssize_t done =
        copy_between_files(in, &read_at, out, &write_at, std::min<size_t>(kCopyBytes, static_cast<size_t>(end - from)));
    if (done == 0) return {};
    if (done > 0) from += done;
    if (done >= 0 || errno == EINTR) continue;
    if (errno == ENOSPC || errno == EIO) return io_error("cannot write", target, errno);
    // The files are on two file systems, or on one that cannot share blocks.
    return copy_with_buffer(in, out, from, end, source, target);
  }
  return {};
}

// Copies a file such that holes of the source are holes in the target.
Status copy_bytes(int in, int out, const std::string& source, const std::string& target) {
  if (share_blocks(in, out)) return {};
  struct stat file_facts;
  if (fstat(in, &file_facts) != 0) return io_error("cannot look at it", source, errno);
  for (off_t at = 0; at < file_facts.st_size;) {
    const off_t data = lseek(in, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // there is nothing but a hole
    const off_t hole = data < 0 ? -1 : lseek(in, data, SEEK_HOLE);
    const off_t end = hole < 0 ? file_facts.st_size : hole;
    TRY_OK(copy_range(in, out, data < 0 ? at : data, end, source, target));
    at = end;
  }
  if (ftruncate(out, file_facts.st_size) != 0) return io_error("cannot write", target, errno);
  return {};
}

// Copies the bytes of `source` to where `out` keeps its own until it is committed.
Status copy_into(const std::string& source, const OutputFile& out) {
  const int from = open_input_file(source);
  if (from < 0) return io_error("cannot open it", source, errno);
  const int to = open(out.partial_path().c_str(), O_WRONLY | O_CLOEXEC);
  Status status =
      to < 0 ? Status(io_error("cannot write here", out.path(), errno)) : copy_bytes(from, to, source, out.path());
  close(from);
  if (to >= 0 && close(to) != 0 && status) status = io_error("cannot write", out.path(), errno);
  return status;
}

// Drops everything with the name of a table that is rebuilt: a table, or a view of the user.
Status drop(const SqliteDb& db, std::string_view name) {
  SqliteRows view(db,
                  "SELECT 1 FROM sqlite_master WHERE type='view' AND name='" + std::string(name) + "' COLLATE NOCASE");
  const bool is_view = view.next();
  view = SqliteRows();
  return db.run((is_view ? "DROP VIEW IF EXISTS " : "DROP TABLE IF EXISTS ") + sql_name(name));
}

Status write_blocks(const SqliteDb& db, const StepTasks& blocks) {
  TRY_OK(drop(db, "StepTaskInfo"));
  TRY_OK(db.run("CREATE TABLE StepTaskInfo (name TEXT,startNs INTEGER,endNs INTEGER,type INTEGER)"));
  SqliteInsert insert(db, "StepTaskInfo", 4);
  for (const StepTask& row : blocks.rows)
    insert.text(blocks.names[row.name]).integer(row.start_ns).integer(row.end_ns).integer(row.type).next();
  return insert.status();
}

// Returns texts → ids of STRING_IDS; texts that are missing there are added.
Result<std::unordered_map<std::string, int64_t>> string_ids(const SqliteDb& db, const std::vector<MarkedOp>& ops) {
  std::unordered_map<std::string, int64_t> ids;
  std::vector<const std::string*> wanted;  // in the order in which they are added
  for (const MarkedOp& op : ops)
    for (const std::string* text : {&op.name, &op.type, &op.group})
      if (ids.try_emplace(*text, -1).second) wanted.push_back(text);
  int64_t last = -1;
  SqliteRows rows = rows_of(db, "STRING_IDS", {"id", "value"});
  while (rows.next()) {
    last = std::max(last, rows.integer(0));
    if (const auto at = ids.find(std::string(rows.text(1))); at != ids.end()) at->second = rows.integer(0);
  }
  if (!rows.ok()) return rows.status().error();
  SqliteInsert insert(db, "STRING_IDS", 2);
  for (const std::string* text : wanted)
    if (int64_t& id = ids[*text]; id < 0) insert.integer(id = ++last).text(*text).next();
  TRY_OK(insert.status());
  return ids;
}

Status write_ops(const SqliteDb& db, const std::vector<MarkedOp>& ops) {
  TRY_OK(drop(db, "COMMUNICATION_OP"));
  if (Status s =
          db.run("CREATE TABLE IF NOT EXISTS STRING_IDS (id INTEGER PRIMARY KEY,value TEXT);"
                 "CREATE TABLE COMMUNICATION_OP (opName INTEGER,startNs INTEGER,endNs INTEGER,connectionId INTEGER,"
                 "groupName INTEGER,opId INTEGER PRIMARY KEY,relay INTEGER,retry INTEGER,dataType INTEGER,algType "
                 "INTEGER,count NUMERIC,opType INTEGER)");
      !s)
    return s;
  TRY(ids, string_ids(db, ops));
  SqliteInsert insert(db, "COMMUNICATION_OP", 12);
  for (const MarkedOp& op : ops) {
    insert.integer(ids->at(op.name)).integer(op.start_ns).integer(op.end_ns).integer(op.connection);
    insert.integer(ids->at(op.group)).integer(op.op_id).null().null().integer(op.data_type).null().text(op.count);
    insert.integer(ids->at(op.type)).next();
  }
  return insert.status();
}

Status write_links(const SqliteDb& db, const RankTables& tables) {
  const std::vector<std::string> columns = db.columns("COMMUNICATION_OP");
  if (columns.empty()) return {};
  const bool there = std::ranges::any_of(
      columns, [](const std::string& name) { return sqlite3_stricmp(name.c_str(), "opConnectionId") == 0; });
  TRY_OK(db.run(there ? "UPDATE COMMUNICATION_OP SET opConnectionId=NULL WHERE opConnectionId IS NOT NULL"
                      : "ALTER TABLE COMMUNICATION_OP ADD COLUMN opConnectionId TEXT"));
  sqlite3_stmt* update = nullptr;
  int code = sqlite3_prepare_v2(db.handle(), "UPDATE COMMUNICATION_OP SET opConnectionId=? WHERE rowid=?", -1, &update,
                                nullptr);
  for (const auto& [row, link] : tables.links) {
    if (code != SQLITE_OK && code != SQLITE_DONE) break;
    // The rowid of rows that were made just now is their opId.
    sqlite3_bind_text(update, 1, link.data(), static_cast<int>(link.size()), SQLITE_STATIC);
    sqlite3_bind_int64(update, 2, tables.write_ops ? tables.ops[row].op_id : row);
    sqlite3_step(update);
    code = sqlite3_reset(update);
  }
  Status status;
  if (code != SQLITE_OK && code != SQLITE_DONE) status = db.error("writing the links of COMMUNICATION_OP");
  sqlite3_finalize(update);
  return status;
}

// Writes into an open database. Indexes are never made. Errors: whatever SQLite refuses, such as "the disk is full".
Status write_tables(const SqliteDb& db, const RankTables& tables) {
  if (tables.write_blocks) TRY_OK(write_blocks(db, tables.blocks));
  if (tables.write_ops) TRY_OK(write_ops(db, tables.ops));
  if (tables.write_links) return write_links(db, tables);
  return {};
}

Status fill(const OutputFile& out, const RankTables& tables) {
  TRY(db, SqliteDb::open_new(out));
  Status s = db->run("BEGIN");
  if (s) s = write_tables(*db, tables);
  if (s) s = db->run("COMMIT");
  if (!s) s.error().where = {out.path()};
  return s;
}

}  // namespace

Status copy_file(const std::string& source, const std::string& target) {
  TRY(out, OutputFile::create(target, size_t{1} << 17, OutputFile::Over::kKept));
  TRY_OK(copy_into(source, *out));
  return out->commit();
}

Status fill_copy(const std::string& source, const RankTables& tables, const OutputFile& out) {
  TRY_OK(copy_into(source, out));
  return fill(out, tables);
}

Status write_copy(const std::string& source, const std::string& target, const RankTables& tables) {
  TRY(out, OutputFile::create(target, size_t{1} << 17, OutputFile::Over::kKept));
  TRY_OK(fill_copy(source, tables, *out));
  return out->commit();
}

Status write_tables_alone(const std::string& target, const RankTables& tables) {
  TRY(out, OutputFile::create(target, size_t{1} << 17, OutputFile::Over::kKept));
  TRY_OK(fill(*out, tables));
  return out->commit();
}

}  // namespace stageline
