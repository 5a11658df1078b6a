#include "base/sqlite_db.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "base/environment.h"
#include "base/input_files.h"
#include "base/problems.h"

namespace stageline {
namespace {

// Bytes of the file that SQLite locks (in its file format: "locking bytes").
constexpr off_t kPendingByte = 0x40000000;
constexpr off_t kReservedByte = kPendingByte + 1;
constexpr int64_t kMinRowBytes = 4;  // position in the page, length, number, one value

int64_t size_of(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : -1;
}

// Returns true when another process holds the lock that a writer takes. It does not take a lock itself.
bool writer_at_work(int fd) {
  struct flock lock{};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = kPendingByte;
  lock.l_len = 2;  // the pending and the reserved byte
  static_assert(kReservedByte == kPendingByte + 1);
  return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

constexpr ssize_t kHeadBytes = 100;

uint32_t big_endian(const char* at) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(at[i]);
  return value;
}

// Returns the length of the file according to its header; 0 when the header does not record it. The count of pages is
// valid when the last writer maintained it: then the change counter equals the number next to the count
// (https://sqlite.org/fileformat.html, 1.3.7).
int64_t bytes_by_header(const char* head) {
  const uint32_t page = big_endian(head + 16) >> 16;
  if (big_endian(head + 24) != big_endian(head + 92)) return 0;
  return int64_t{page == 1 ? 65536U : page} * big_endian(head + 28);
}

Status check_readable(const std::string& path, Diagnostics& notes) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0)
    return errno == ENOENT
               ? make_error(ErrorCode::kNotFound, "no such file", "", {path})
               : make_error(ErrorCode::kIo, std::string("cannot look at it: ") + std::strerror(errno), "", {path});
  note_input_database(path);
  if (!S_ISREG(st.st_mode)) return make_error(ErrorCode::kBadInput, "a database has to be a plain file", "", {path});
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return make_error(ErrorCode::kIo, std::string("cannot open it: ") + std::strerror(errno), "", {path});
  char head[kHeadBytes] = {};
  const ssize_t got = read(fd, head, sizeof head);
  const bool busy = writer_at_work(fd);
  close(fd);
  if (got < 16 || std::memcmp(head, "SQLite format 3", 16) != 0)
    return make_error(
        ErrorCode::kBadInput, st.st_size == 0 ? "the file is empty" : "this is no SQLite database",
        st.st_size == 0 ? "was the disk full when it was written?" : "was it cut or overwritten on the way?", {path});
  if (busy)
    return make_error(ErrorCode::kUnavailable, "another program is writing to this database",
                      "wait until it is done, or copy the file and name the copy", {path});
  if (size_of(path + "-journal") > 0)
    return make_error(ErrorCode::kUnavailable, "a half-done change lies beside this database",
                      "open a copy of both files with sqlite3 once, which undoes it, and name that copy",
                      {path + "-journal"});
  if (const int64_t whole = got == kHeadBytes ? bytes_by_header(head) : 0; whole > st.st_size)
    notes.add(problem::sqlite_cut, Args().set("whole", std::to_string(whole)).set("found", std::to_string(st.st_size)),
              {path});
  if (size_of(path + "-wal") > 0) notes.add(problem::sqlite_unmerged_log, {path + "-wal"});
  return {};
}

// Returns a file name as a URI that SQLite can parse.
std::string uri_of(const std::string& path, std::string_view options) {
  static const char* const kHex = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      const auto byte = static_cast<unsigned char>(c);
      uri += '%';
      uri += kHex[byte >> 4];
      uri += kHex[byte & 15];
    } else {
      uri += c;
    }
  }
  return uri + std::string(options);
}

Error error_of(sqlite3* db, int code, const std::string& path, const std::string& doing) {
  const int plain = code & 0xff;
  const ErrorCode kind = plain == SQLITE_CORRUPT || plain == SQLITE_NOTADB ? ErrorCode::kBadInput
                         : plain == SQLITE_BUSY || plain == SQLITE_LOCKED  ? ErrorCode::kUnavailable
                                                                           : ErrorCode::kIo;
  return {kind, doing + ": " + (db ? sqlite3_errmsg(db) : sqlite3_errstr(code)), {path}, ""};
}

// SQLite's own memory functions, and what each thread got from them.
sqlite3_mem_methods g_memory;
bool g_counted = false;
thread_local int64_t t_used = 0, t_limit = INT64_MAX;

void* counted_malloc(int bytes) {
  if (t_used > t_limit - bytes) return nullptr;
  void* const got = g_memory.xMalloc(bytes);
  if (got) t_used += g_memory.xSize(got);
  return got;
}
void counted_free(void* block) {
  if (block) t_used -= g_memory.xSize(block);
  g_memory.xFree(block);
}
void* counted_realloc(void* block, int bytes) {
  const int before = block ? g_memory.xSize(block) : 0;
  if (bytes > before && t_used > t_limit - (bytes - before)) return nullptr;
  void* const got = g_memory.xRealloc(block, bytes);
  if (got) t_used += g_memory.xSize(got) - before;
  return got;
}

// Temporary files of queries have the methods of the system's files, except for writing.
constexpr const char* kBoundedFiles = "stageline-bounded";
sqlite3_vfs g_bounded_files;
const sqlite3_vfs* g_files = nullptr;
const sqlite3_io_methods* g_methods = nullptr;
sqlite3_io_methods g_bounded;
thread_local int64_t t_most_bytes = INT64_MAX;

int write_bounded(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
  return at + count > t_most_bytes ? SQLITE_FULL : g_methods->xWrite(file, bytes, count, at);
}
int open_bounded(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* got) {
  const int code = g_files->xOpen(vfs, name, file, flags, got);
  if (code != SQLITE_OK || name) return code;
  static const bool once = [&] {
    g_methods = file->pMethods;
    g_bounded = *g_methods;
    g_bounded.xWrite = write_bounded;
    return true;
  }();
  struct statvfs disk;
  const bool known = statvfs(environment("TMPDIR", "/var/tmp").c_str(), &disk) == 0;
  t_most_bytes = known ? static_cast<int64_t>(disk.f_bavail / 4 * disk.f_frsize) : INT64_MAX;
  if (once && file->pMethods == g_methods) file->pMethods = &g_bounded;
  return code;
}

int open_handle(const std::string& name, sqlite3** handle, int flags) {
  set_up_sqlite();
  return sqlite3_open_v2(name.c_str(), handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
}

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sqlite3_strnicmp(a.data(), b.data(), static_cast<int>(a.size())) == 0;
}

// Returns the table's pages if the table is plain, else null. In a plain table the columns are as they were declared,
// without default values (which old rows would take) and without generated columns (which are not stored in the rows).
std::unique_ptr<SqlitePages> pages_of(const SqliteDb& db, std::string_view table,
                                      std::initializer_list<std::string_view> names) {
  if (!db.is_immutable()) return nullptr;
  SqliteRows root(
      db, "SELECT rootpage FROM sqlite_master WHERE type='table' AND name=" + sql_text(table) + " COLLATE NOCASE");
  if (!root.next()) return nullptr;
  const int64_t page = root.integer(0);
  if (page < 1 || page > UINT32_MAX || root.next()) return nullptr;
  std::vector<SqlitePages::Column> columns(names.size());
  int place = 0, keys = 0;
  SqliteRows info(db, "PRAGMA table_xinfo(" + sql_name(table) + ")");
  for (; info.next(); ++place) {
    if (info.integer(6) != 0) return nullptr;  // hidden: a generated column
    const bool is_key = info.integer(5) != 0;
    keys += is_key;
    if (keys > 1) return nullptr;
    size_t c = 0;
    for (std::string_view name : names) {
      if (name.ends_with('?')) name.remove_suffix(1);
      if (same_name(name, info.text(1))) {
        if (!info.is_null(4) || columns[c].place >= 0) return nullptr;
        columns[c].place = place;
        // The type is "REAL", "DOUBLE PRECISION" or "FLOAT" and contains none of the texts that come earlier in
        // SQLite's rules.
        std::string type(info.text(2));
        for (char& letter : type) letter = letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 32) : letter;
        const auto has = [&](const char* part) { return type.find(part) != std::string::npos; };
        columns[c].is_rowid = is_key && type == "INTEGER";
        columns[c].is_real = !has("INT") && !has("CHAR") && !has("CLOB") && !has("TEXT") && !has("BLOB") &&
                             (has("REAL") || has("FLOA") || has("DOUB"));
      }
      ++c;
    }
  }
  if (!info.ok()) return nullptr;
  return SqlitePages::open(db.path(), static_cast<uint32_t>(page), std::move(columns));
}

}  // namespace

const char* set_up_sqlite() {
  static const bool bounded = [] {
    // A program that embeds the library may have started SQLite already; then its own statistics count.
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &g_memory) == SQLITE_OK &&
        sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK) {
      sqlite3_mem_methods counted = g_memory;
      counted.xMalloc = counted_malloc;
      counted.xFree = counted_free;
      counted.xRealloc = counted_realloc;
      g_counted = sqlite3_config(SQLITE_CONFIG_MALLOC, &counted) == SQLITE_OK;
    }
    if (sqlite3_initialize() != SQLITE_OK) return false;
    g_files = sqlite3_vfs_find(nullptr);
    if (!g_files) return false;
    g_bounded_files = *g_files;
    g_bounded_files.zName = kBoundedFiles;
    g_bounded_files.xOpen = open_bounded;
    return sqlite3_vfs_register(&g_bounded_files, 0) == SQLITE_OK;
  }();
  return bounded ? kBoundedFiles : nullptr;
}

int64_t sqlite_memory() { return g_counted ? t_used : sqlite3_memory_used(); }

SqliteMemoryLimit::SqliteMemoryLimit(int64_t bytes) : before_(t_limit) {
  t_limit = std::min(before_, bytes < INT64_MAX / 2 - t_used ? t_used + bytes : INT64_MAX);
}
SqliteMemoryLimit::~SqliteMemoryLimit() { t_limit = before_; }

Result<SqliteDb> SqliteDb::open_read(const std::string& path, Diagnostics& notes) {
  // A reader that asks whether this is a database of its format continues when the file cannot be opened. The failure
  // must be reported nevertheless.
  const auto failed = [&](Error error) {
    if (error.code == ErrorCode::kIo || error.code == ErrorCode::kNotFound) note_input_failure(path, error.what);
    return error;
  };
  if (Status s = check_readable(path, notes); !s) return failed(std::move(s).error());
  note_content_read(path);
  SqliteDb db;
  db.path_ = path;
  sqlite3* handle = nullptr;
  const int code = open_handle(uri_of(path, "?immutable=1"), &handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  db.db_.reset(handle);
  if (code != SQLITE_OK) return failed(error_of(handle, code, path, "cannot open this database"));
  // A damaged file must not make SQLite trust expressions in its schema, nor let a cache grow without limit.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  // No real value is longer than the file, but a generated column could make one of any length. The minimum leaves room
  // for SQLite's own values.
  const int64_t size = std::max<int64_t>(size_of(path), 0);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, static_cast<int>(std::clamp<int64_t>(size, 1'000'000, 1'000'000'000)));
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  db.max_rows_ = size / kMinRowBytes + 1;
  db.is_immutable_ = true;
  sqlite3_exec(handle, "PRAGMA cache_size=-4096; PRAGMA temp_store=MEMORY", nullptr, nullptr, nullptr);
  if (Status s = db.run("SELECT count(*) FROM sqlite_master"); !s) return failed(std::move(s).error());
  return db;
}

Result<SqliteDb> SqliteDb::open_write(const std::string& path) {
  Diagnostics notes;
  TRY_OK(check_readable(path, notes));
  SqliteDb db;
  db.path_ = path;
  sqlite3* handle = nullptr;
  const int code = open_handle(path, &handle, SQLITE_OPEN_READWRITE);
  db.db_.reset(handle);
  if (code != SQLITE_OK) return error_of(handle, code, path, "cannot open this database for writing");
  if (sqlite3_db_readonly(handle, "main") == 1)
    return make_error(ErrorCode::kIo, "this database may not be written", "name another place with -o", {path});
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);  // so that only the rows that we write change
  db.max_rows_ = std::max<int64_t>(size_of(path), 0) / kMinRowBytes + 1;
  return db;
}

Result<SqliteDb> SqliteDb::open_new(const OutputFile& out) {
  if (out.path() == "-" || out.partial_path() == out.path())
    return make_error(ErrorCode::kUsage, "an SQLite database needs a regular file", "give a file name, not a pipe",
                      {out.path()});
  for (const char* suffix : {"-journal", "-wal"})
    if (size_of(out.path() + suffix) > 0)
      return make_error(ErrorCode::kUsage,
                        "this belongs to an earlier database of the same name and would be applied to the new one",
                        "open the earlier database with sqlite3 once, remove this file, or choose another name",
                        {out.path() + suffix});
  return open_new(out.partial_path());
}

Result<SqliteDb> SqliteDb::open_new(const std::string& path) {
  SqliteDb db;
  db.path_ = path;
  sqlite3* handle = nullptr;
  const int code = open_handle(path, &handle, SQLITE_OPEN_READWRITE);
  db.db_.reset(handle);
  if (code != SQLITE_OK) return error_of(handle, code, path, "cannot open this file for writing");
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  if (const int64_t size = size_of(path); size > 0) db.max_rows_ = size / kMinRowBytes + 1;
  TRY_OK(db.run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF"));
  return db;
}

std::vector<std::string> SqliteDb::columns(std::string_view table) const {
  std::vector<std::string> names;
  SqliteRows rows(*this, "PRAGMA table_info(" + sql_name(table) + ")");
  while (rows.next()) names.emplace_back(rows.text(1));
  return names;
}

bool SqliteDb::has_table(std::string_view table) const {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(handle(),
                     "SELECT 1 FROM sqlite_master WHERE type='table' AND rootpage>0 AND name=? COLLATE NOCASE", -1,
                     &statement, nullptr);
  if (statement == nullptr) return false;
  sqlite3_bind_text64(statement, 1, table.data() ? table.data() : "", table.size(), SQLITE_STATIC, SQLITE_UTF8);
  const bool found = sqlite3_step(statement) == SQLITE_ROW;
  sqlite3_finalize(statement);
  return found;
}

size_t SqliteDb::rows_at_most(std::string_view table) const {
  constexpr int64_t kRoom = 4;  // times the shortest row: what is stored has times in it
  sqlite3_stmt* statement = nullptr;
  if (!has_table(table)) return 0;
  sqlite3_prepare_v2(handle(), ("SELECT max(rowid) FROM " + sql_name(table)).c_str(), -1, &statement, nullptr);
  if (statement == nullptr) return 0;
  const int64_t highest = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
  sqlite3_finalize(statement);
  return std::clamp<int64_t>(highest, 0, max_rows_ / kRoom);
}

Status SqliteDb::run(const std::string& sql) const {
  const int code = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return {};
  return error_of(db_.get(), code, path_, "this database refused");
}

Error SqliteDb::error(const std::string& doing) const {
  return error_of(db_.get(), sqlite3_errcode(db_.get()), path_, doing);
}

SqliteRows::SqliteRows(const SqliteDb& db, const std::string& sql) : path_(db.path()), most_(db.max_rows()) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(db.handle(), sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr);
  statement_.reset(statement);
  if (code == SQLITE_OK) return;
  failed_ = true;
  error_ = db.error("cannot be asked");
}

bool SqliteRows::next() {
  if (failed_) return false;
  if (pages_) {
    if (count_ < most_ && pages_->next()) {
      ++count_;
      return true;
    }
    failed_ = pages_->is_damaged() || count_ >= most_;
    if (failed_)
      error_ = make_error(ErrorCode::kBadInput, "damaged after " + std::to_string(count_) + " rows", "", {path_});
    return false;
  }
  if (!statement_) return false;
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW && count_ < most_) {
    ++count_;
    return true;
  }
  if (code == SQLITE_ROW) {
    failed_ = true;
    error_ = make_error(ErrorCode::kBadInput, "damaged: it gives more rows than fit into the file", "", {path_});
    statement_.reset();
    return false;
  }
  if (code != SQLITE_DONE) {
    failed_ = true;
    error_ =
        error_of(sqlite3_db_handle(statement_.get()), code, path_, "damaged after " + std::to_string(count_) + " rows");
  }
  statement_.reset();
  return false;
}

std::string_view SqliteRows::text(int column) const {
  if (pages_) return pages_->text(column);
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

Status SqliteRows::status() const {
  if (failed_) return error_;
  return {};
}

SqliteRows rows_of(const SqliteDb& db, std::string_view table, std::initializer_list<std::string_view> columns,
                   std::string* missing, std::string_view rest) {
  const std::vector<std::string> there = db.has_table(table) ? db.columns(table) : std::vector<std::string>();
  const auto lacks = [&](std::string what) {
    if (missing) *missing = std::move(what);
    return SqliteRows();
  };
  if (there.empty()) return lacks(std::string(table));
  std::string sql;
  for (std::string_view name : columns) {
    const bool optional = name.ends_with('?');
    if (optional) name.remove_suffix(1);
    const bool found = std::ranges::any_of(there, [&](const std::string& c) { return same_name(c, name); });
    if (!found && !optional) return lacks(std::string(table) + "." + std::string(name));
    sql += sql.empty() ? "SELECT " : ",";
    sql += found ? sql_name(name) : "NULL";
  }
  if (rest.empty())
    if (auto pages = pages_of(db, table, columns)) return {db, std::move(pages)};
  return {db, sql + " FROM " + sql_name(table) + " " + std::string(rest)};
}

SqliteInsert::SqliteInsert(const SqliteDb& db, const std::string& table, int columns) : db_(&db), table_(table) {
  std::string sql = "INSERT INTO " + sql_name(table) + " VALUES(?";
  for (int c = 1; c < columns; ++c) sql += ",?";
  sql += ")";
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(db.handle(), sql.c_str(), -1, &statement, nullptr);
  statement_.reset(statement);
  bound(code);
}

SqliteInsert& SqliteInsert::bound(int code) {
  if (failed_ || code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return *this;
  failed_ = true;
  error_ = db_->error("writing table " + table_);
  if ((code & 0xff) == SQLITE_FULL) error_.hint = "the disk is full";
  return *this;
}

void SqliteInsert::next() {
  column_ = 0;
  if (failed_) return;
  bound(sqlite3_step(statement_.get()));
  bound(sqlite3_reset(statement_.get()));
}

Status SqliteInsert::status() const {
  if (failed_) return error_;
  return {};
}

std::string sql_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += '\'';
    if (c != '\0') out += c;
  }
  return out + "'";
}

std::string sql_name(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    if (c != '\0') out += c;  // SQL text would end at a NUL
  }
  return out + "\"";
}

}  // namespace stageline
