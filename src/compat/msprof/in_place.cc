#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "compat/msprof/rank_tables.h"

namespace stageline {
namespace {

namespace fs = std::filesystem;

Error io_error(const std::string& doing, const std::string& path) {
  const int reason = errno;
  return make_error(ErrorCode::kIo, doing + ": " + std::strerror(reason), reason == ENOSPC ? "the disk is full" : "",
                    {path});
}

// Returns true for tables that pp-chart makes or adds to; these may differ between a database and its backup.
bool is_ours(const std::string& table) {
  return table == "StepTaskInfo" || table == "COMMUNICATION_OP" || table == "STRING_IDS";
}

// Returns the first and last row of a table as text, every value with its length.
Result<std::string> ends_of(const SqliteDb& db, const std::string& table) {
  std::string out;
  for (const char* order : {" ORDER BY rowid LIMIT 1", " ORDER BY rowid DESC LIMIT 1"}) {
    SqliteRows rows(db, "SELECT rowid,* FROM " + sql_name(table) + order);
    if (rows.next())
      for (int c = 0; c < rows.columns(); ++c) {
        const std::string_view value = rows.text(c);
        out += std::to_string(value.size()) + ":" + std::string(value) + ",";
      }
    if (!rows.ok()) return rows.status().error();
  }
  return out;
}

// Returns true when `backup` was made of the measurement in `path`. O(tables · log rows).
Result<bool> same_measurement(const std::string& path, const std::string& backup) {
  if (std::error_code ec; fs::equivalent(path, backup, ec)) return true;
  Diagnostics ignored;
  TRY(now, SqliteDb::open_read(path, ignored));
  TRY(then, SqliteDb::open_read(backup, ignored));
  std::vector<std::string> tables;
  // Tables WITHOUT ROWID have no first row that could be asked for; no profiler makes such tables.
  SqliteRows names(
      *then, "SELECT name FROM sqlite_master WHERE type='table' AND rootpage>0 AND sql NOT LIKE '%WITHOUT ROWID%'");
  while (names.next())
    if (std::string name(names.text(0)); !is_ours(name)) tables.push_back(std::move(name));
  if (!names.ok()) return names.status().error();
  for (const std::string& table : tables) {
    if (!now->has_table(table)) return false;
    TRY(a, ends_of(*now, table));
    TRY(b, ends_of(*then, table));
    if (*a != *b) return false;
  }
  return true;
}

// Checks that the file can be written and that no other program is using it.
Status try_lock(const std::string& path) {
  TRY(db, SqliteDb::open_write(path));
  return db->run("BEGIN IMMEDIATE");
}

// Restores mode and owner, and makes sure that every byte is on the disk.
Status settle(const std::string& path, const struct stat& like) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return io_error("cannot write", path);
  // Only root can give a file away; for other users the copy has the right owner already.
  if (fchown(fd, like.st_uid, like.st_gid) != 0) errno = 0;
  Status status;
  if (fchmod(fd, like.st_mode & 07777) != 0 || fsync(fd) != 0) status = io_error("cannot write", path);
  close(fd);
  return status;
}

// Gives a second name to the old file, which is about to lose its first; makes a copy where the file system has no
// links.
Status keep_as(const std::string& path, const std::string& backup) {
  if (link(path.c_str(), backup.c_str()) == 0) return {};
  if (errno == EPERM || errno == ENOTSUP || errno == ENOSYS || errno == EMLINK) return copy_file(path, backup);
  return io_error("cannot make the backup", backup);
}

Status replace(const std::string& path, const RankTables& tables) {
  struct stat before, after;
  if (stat(path.c_str(), &before) != 0) return io_error("cannot look at it", path);
  if (struct stat wal; stat((path + "-wal").c_str(), &wal) == 0 && wal.st_size > 0)
    return make_error(ErrorCode::kUnavailable,
                      "its write-ahead log has not been merged: a backup of this file alone would lack it",
                      "sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)' merges it", {path + "-wal"});
  TRY_OK(try_lock(path));
  const std::string backup = path + kBackupSuffix;
  std::error_code ec;
  const bool kept = fs::exists(fs::symlink_status(backup, ec));
  if (kept) {
    TRY(same, same_measurement(path, backup));
    if (!*same)
      return make_error(ErrorCode::kUsage,
                        "the backup beside this database is another measurement's, so this one would have none",
                        "move it away", {backup});
  }
  TRY(out, OutputFile::create(path, size_t{1} << 16, OutputFile::Over::kAnInput));
  TRY_OK(fill_copy(path, tables, *out));
  TRY_OK(settle(out->partial_path(), before));
  // The file is locked again only now, since closing it after copying would have dropped the lock (POSIX).
  TRY_OK(try_lock(path));
  if (stat(path.c_str(), &after) != 0) return io_error("cannot look at it", path);
  if (after.st_size != before.st_size || after.st_mtim.tv_sec != before.st_mtim.tv_sec ||
      after.st_mtim.tv_nsec != before.st_mtim.tv_nsec)
    return make_error(ErrorCode::kUnavailable, "another program wrote to this database meanwhile",
                      "wait until it is done", {path});
  if (!kept) TRY_OK(keep_as(path, backup));
  Status done = out->commit();
  if (!done && !kept) unlink(backup.c_str());
  return done;
}

}  // namespace

Status write_in_place(const std::string& path, const RankTables& tables) {
  std::error_code ec;
  const fs::path real = fs::canonical(path, ec);  // a link stays a link, and the backup is next to the file
  Status done = replace(ec ? path : real.string(), tables);
  if (!done) done.error().hint += (done.error().hint.empty() ? "" : "; ") + std::string("the file is as it was");
  return done;
}

}  // namespace stageline
