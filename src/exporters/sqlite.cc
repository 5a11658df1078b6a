// SQLite: every table as a table, with its columns documented inside the file. Values are raw, units
// are in the names ("dur_ns"), unknown is NULL. The schema is in docs/exporters/tables.md.
//
// SQLite insists on opening a file by name, so it writes to the partial file that OutputFile has
// already made; commit() then gives it its own name. No journal: a file that was not finished is
// thrown away as a whole.
#include <sqlite3.h>

#include <set>

#include "base/output_file.h"
#include "exporters/exporter.h"
#include "exporters/run_meta.h"
#include "exporters/table_text.h"

namespace stageline {
namespace {

// One connection and the first thing that went wrong with it; after an error every call is a no-op.
struct Database {
  sqlite3* handle = nullptr;
  std::string error;
  bool full = false;

  ~Database() { sqlite3_close(handle); }
  bool ok() const { return error.empty(); }
  void check(int code) {
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW || !ok()) return;
    error = handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
    full = code == SQLITE_FULL;
  }
  void run(const std::string& sql) {
    if (ok()) check(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr));
  }
};

struct Insert {
  Database& db;
  sqlite3_stmt* statement = nullptr;
  int column = 0;

  Insert(Database& database, const std::string& table, size_t columns) : db(database) {
    std::string sql = "INSERT INTO " + table + " VALUES(?";
    for (size_t c = 1; c < columns; ++c) sql += ",?";
    sql += ")";
    if (db.ok()) db.check(sqlite3_prepare_v2(db.handle, sql.c_str(), -1, &statement, nullptr));
  }
  Insert(const Insert&) = delete;
  Insert& operator=(const Insert&) = delete;
  ~Insert() { sqlite3_finalize(statement); }

  Insert& null() { return bound(sqlite3_bind_null(statement, ++column)); }
  Insert& integer(int64_t value) { return bound(sqlite3_bind_int64(statement, ++column, value)); }
  Insert& real(double value) { return bound(sqlite3_bind_double(statement, ++column, value)); }
  // `text` must live until next().
  Insert& text(std::string_view text) {
    return bound(sqlite3_bind_text64(statement, ++column, text.data() ? text.data() : "", text.size(), SQLITE_STATIC,
                                     SQLITE_UTF8));
  }
  void next() {
    if (!db.ok()) return;
    db.check(sqlite3_step(statement));
    db.check(sqlite3_reset(statement));
    column = 0;
  }

 private:
  Insert& bound(int code) {
    db.check(code);
    return *this;
  }
};

std::string quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    if (c != '\0') out += c;
  }
  return out + "\"";
}

// SQLite's names are case-insensitive (ASCII); a second "F" beside "f" becomes "f_2".
std::string unique(std::string_view name, std::set<std::string>& taken) {
  const auto lower = [](std::string text) {
    for (char& c : text)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
  };
  std::string candidate(name);
  for (int n = 2; !taken.insert(lower(candidate)).second; ++n) candidate = std::string(name) + "_" + std::to_string(n);
  return candidate;
}

std::string_view sql_type(ColumnType type) {
  switch (type) {
    case ColumnType::kText: return "TEXT";
    case ColumnType::kReal:
    case ColumnType::kShare:
    case ColumnType::kRatio: return "REAL";
    default: return "INTEGER";
  }
}

void write_table(Database& db, const Table& table, std::set<std::string>& taken) {
  const size_t columns = table.columns().size();
  if (columns == 0) return;
  const std::string name = unique(table.name(), taken);
  std::set<std::string> column_names;
  std::string sql = "CREATE TABLE " + quoted(name) + " (";
  Insert document(db, "columns", 6);
  for (size_t c = 0; c < columns; ++c) {
    const ColumnSpec& spec = table.columns()[c];
    const std::string column = unique(spec.name, column_names);
    sql += (c > 0 ? ", " : "") + quoted(column) + " " + std::string(sql_type(spec.type));
    document.text(name).text(column).text(spec.title).text(column_type_name(spec.type)).text(raw_unit(spec.type));
    document.text(spec.help).next();
  }
  db.run(sql + ")");
  Insert insert(db, quoted(name), columns);
  for (size_t r = 0; r < table.row_count() && db.ok(); ++r) {
    for (size_t c = 0; c < columns; ++c) {
      if (table.is_null(r, c)) {
        insert.null();
        continue;
      }
      const std::string_view type = sql_type(table.columns()[c].type);
      if (type == "TEXT")
        insert.text(table.text(r, c));
      else if (type == "REAL")
        insert.real(table.real(r, c));
      else
        insert.integer(table.integer(r, c));
    }
    insert.next();
  }
}

void write_diagnostics(Database& db, const Trace& trace) {
  db.run(
      "CREATE TABLE diagnostics (name TEXT, severity TEXT, count INTEGER, file TEXT, line INTEGER, byte INTEGER, "
      "message TEXT)");
  Insert insert(db, "diagnostics", 7);
  for (const Diagnostic& d : trace.diagnostics.items()) {
    insert.text(d.name).text(severity_name(d.severity)).integer(d.count).text(d.first.file);
    d.first.line > 0 ? insert.integer(d.first.line) : insert.null();
    d.first.byte >= 0 ? insert.integer(d.first.byte) : insert.null();
    insert.text(d.message).next();
  }
}

void write_findings(Database& db, const std::vector<Finding>& findings) {
  db.run(
      "CREATE TABLE findings (position INTEGER, id TEXT, weight REAL, value TEXT, value_note_en TEXT, "
      "value_note_zh TEXT, title_en TEXT, title_zh TEXT, detail_en TEXT, detail_zh TEXT)");
  Insert insert(db, "findings", 10);
  for (size_t i = 0; i < findings.size(); ++i) {
    const Finding& f = findings[i];
    insert.integer(static_cast<int64_t>(i)).text(f.id).real(f.weight).text(f.value).text(f.value_note_en);
    insert.text(f.value_note_zh).text(f.title_en).text(f.title_zh).text(f.detail_en).text(f.detail_zh).next();
  }
}

void write_all(Database& db, const ExportInput& input) {
  db.run("PRAGMA journal_mode=OFF");
  db.run("PRAGMA synchronous=OFF");
  db.run("BEGIN");
  db.run("CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID");
  {
    Insert insert(db, "meta", 2);
    const std::vector<MetaEntry> meta = run_meta(input.trace);
    for (const MetaEntry& entry : meta) {
      insert.text(entry.key);
      entry.is_text ? insert.text(entry.text).next() : insert.integer(entry.integer).next();
    }
  }
  db.run("CREATE TABLE columns (table_name TEXT, \"column\" TEXT, title TEXT, type TEXT, unit TEXT, help TEXT)");
  std::set<std::string> taken = {"meta", "columns", "findings"};
  bool has_diagnostics = false;
  for (const Table& table : input.tables) {
    has_diagnostics |= table.name() == "diagnostics";
    write_table(db, table, taken);
  }
  if (!has_diagnostics) write_diagnostics(db, input.trace);
  write_findings(db, input.findings);
  db.run("COMMIT");
}

Status write_sqlite(const ExportInput& input, const std::string& path) {
  Result<OutputFile> out = OutputFile::create(path);
  if (!out) return std::move(out).error();
  if (out->partial_path() == path)
    return Error{ErrorCode::kUsage, "an SQLite database needs a regular file", {path}, "give a file name, not a pipe"};
  {
    Database db;
    // The path goes in as it is: "file:x" would be a URI only with SQLITE_OPEN_URI, which is off.
    db.check(sqlite3_open_v2(out->partial_path().c_str(), &db.handle, SQLITE_OPEN_READWRITE, nullptr));
    write_all(db, input);
    if (!db.ok())
      return Error{ErrorCode::kIo,
                   "SQLite cannot write: " + db.error,
                   {path},
                   db.full ? "the disk is full; nothing was left behind" : ""};
  }
  return out->commit();
}

}  // namespace

extern const Exporter sqlite_exporter;
const Exporter sqlite_exporter = {"sqlite",
                                  "every table in one SQLite database",
                                  {"sqlite", "sqlite3", "db"},
                                  false,
                                  true,
                                  write_sqlite,
                                  false,
                                  false,
                                  "",
                                  false,
                                  true};

}  // namespace stageline
