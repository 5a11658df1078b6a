// Writes every table as a table of an SQLite file, with descriptions of its columns inside the file. Values are raw,
// units are in the names ("dur_ns"), and unknown values are NULL. The schema is in docs/exporters/tables.md.
//
// SQLite always opens a file by name, so it writes to the partial file that OutputFile has already made; commit() then
// renames it. There is no journal, because an unfinished file is thrown away as a whole.
#include "base/sqlite_db.h"
#include "exporters/exporter.h"
#include "exporters/run_meta.h"
#include "exporters/table_text.h"

namespace stageline {
namespace {

// Remembers the first error. Nothing more is written after it.
struct Output {
  const SqliteDb& db;
  Status status;

  bool ok() const { return static_cast<bool>(status); }
  void keep(Status s) {
    if (ok()) status = std::move(s);
  }
  void run(const std::string& sql) {
    if (ok()) keep(db.run(sql));
  }
};

// Returns a name that is not taken. SQLite's names are case-insensitive (ASCII), so an "F" after an "f" becomes "F_2".
std::string unique(std::string_view name, std::set<std::string>& taken) {
  std::string candidate(name);
  for (int n = 2; !taken.insert(to_lower(candidate)).second; ++n)
    candidate = std::string(name) + "_" + std::to_string(n);
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

void write_table(Output& out, const Table& table, std::set<std::string>& taken) {
  const size_t columns = table.columns().size();
  if (columns == 0) return;
  const std::string name = unique(table.name(), taken);
  std::set<std::string> column_names;
  std::string sql = "CREATE TABLE " + sql_name(name) + " (";
  SqliteInsert document(out.db, "columns", 6);
  for (size_t c = 0; c < columns; ++c) {
    const ColumnSpec& spec = table.columns()[c];
    const std::string column = unique(spec.name, column_names);
    sql += (c > 0 ? ", " : "") + sql_name(column) + " " + std::string(sql_type(spec.type));
    document.text(name).text(column).text(spec.title).text(column_type_name(spec.type)).text(raw_unit(spec.type));
    document.text(spec.help).next();
  }
  out.keep(document.status());
  out.run(sql + ")");
  if (!out.ok()) return;
  SqliteInsert insert(out.db, name, static_cast<int>(columns));
  for_each_block(table, 0, table.row_count(), [&](const Table& block, size_t begin, size_t end) {
    for (size_t r = begin; r < end && insert.ok(); ++r) {
      for (size_t c = 0; c < columns; ++c) {
        if (block.is_null(r, c)) {
          insert.null();
          continue;
        }
        const std::string_view type = sql_type(table.columns()[c].type);
        if (type == "TEXT") insert.text(block.text(r, c));
        else if (type == "REAL") insert.real(block.real(r, c));
        else insert.integer(block.integer(r, c));
      }
      insert.next();
    }
  });
  out.keep(insert.status());
}

void write_diagnostics(Output& out, const Diagnostics& diagnostics) {
  out.run(
      "CREATE TABLE diagnostics (name TEXT, severity TEXT, count INTEGER, file TEXT, line INTEGER, byte INTEGER, "
      "message TEXT)");
  if (!out.ok()) return;
  SqliteInsert insert(out.db, "diagnostics", 7);
  for (const Diagnostic& d : diagnostics.items()) {
    insert.text(d.name).text(severity_name(d.severity)).integer(d.count).text(d.first.file);
    d.first.line > 0 ? insert.integer(d.first.line) : insert.null();
    d.first.byte >= 0 ? insert.integer(d.first.byte) : insert.null();
    insert.text(d.message.en).next();
  }
  out.keep(insert.status());
}

void write_findings(Output& out, const std::vector<Finding>& findings) {
  out.run(
      "CREATE TABLE findings (position INTEGER, id TEXT, weight REAL, value TEXT, value_note_en TEXT, "
      "value_note_zh TEXT, title_en TEXT, title_zh TEXT, detail_en TEXT, detail_zh TEXT)");
  if (!out.ok()) return;
  SqliteInsert insert(out.db, "findings", 10);
  for (size_t i = 0; i < findings.size(); ++i) {
    const Finding& f = findings[i];
    insert.integer(i).text(f.id).real(f.weight).text(f.value).text(f.value_note.en);
    insert.text(f.value_note.zh).text(f.title.en).text(f.title.zh).text(f.detail.en).text(f.detail.zh).next();
  }
  out.keep(insert.status());
}

void write_all(Output& out, const ExportInput& input) {
  out.run("BEGIN");
  out.run("CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID");
  if (out.ok()) {
    SqliteInsert insert(out.db, "meta", 2);
    const std::vector<MetaEntry> meta = run_meta(input.trace);
    for (const MetaEntry& entry : meta) {
      insert.text(entry.key);
      entry.is_text ? insert.text(entry.text).next() : insert.integer(entry.integer).next();
    }
    out.keep(insert.status());
  }
  out.run("CREATE TABLE columns (table_name TEXT, \"column\" TEXT, title TEXT, type TEXT, unit TEXT, help TEXT)");
  std::set<std::string> taken = {"meta", "columns", "findings"};
  bool has_diagnostics = false;
  for (const Table& table : input.tables) {
    has_diagnostics |= table.name() == "diagnostics";
    write_table(out, table, taken);
  }
  if (!has_diagnostics) write_diagnostics(out, input.diagnostics);
  write_findings(out, input.findings);
  out.run("COMMIT");
}

}  // namespace

Status write_sqlite(const ExportInput& input, const std::string& path) {
  TRY(out, OutputFile::create(path));
  {
    TRY(db, SqliteDb::open_new(*out));
    Output tables{*db};
    write_all(tables, input);
    if (!tables.ok())
      return Error{tables.status.error().code, tables.status.error().what, {path}, tables.status.error().hint};
  }
  return out->commit();
}

}  // namespace stageline
