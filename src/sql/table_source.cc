#include "sql/table_source.h"

#include <new>

#include "base/give_up.h"
#include "base/sqlite_db.h"
#include "model/table.h"

namespace stageline::sql {
namespace {

struct Module {
  std::shared_ptr<const TableSource> source;
  Stopped* stopped;
};

struct VirtualTable : sqlite3_vtab {
  const Module* module = nullptr;
};
struct VirtualCursor : sqlite3_vtab_cursor {
  std::unique_ptr<Cursor> rows;
  std::vector<Pushed> given;
};

// SQLite calls from C, so exceptions (no memory, a question given up) must not pass through it.
template <class Body> int guarded(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  } catch (const GivenUp&) {
    return SQLITE_INTERRUPT;
  }
}

int fail(const Module& module, sqlite3_vtab* table, const Error& error) {
  module.stopped->problem = error;
  if (table) {
    sqlite3_free(table->zErrMsg);
    table->zErrMsg = sqlite3_mprintf("%s", error.what.c_str());
  }
  return SQLITE_ERROR;
}

int connect(sqlite3* db, void* aux, int, const char* const*, sqlite3_vtab** out, char** message) {
  return guarded([&] {
    const auto* module = static_cast<const Module*>(aux);
    const Result<std::vector<SqlColumn>> columns = module->source->columns();
    if (!columns) {
      module->stopped->problem = columns.error();
      *message = sqlite3_mprintf("%s", columns.error().what.c_str());
      return SQLITE_ERROR;
    }
    std::string sql = "CREATE TABLE x(";
    for (const SqlColumn& column : *columns) {
      if (&column != columns->data()) sql += ", ";
      sql += sql_name(column.name) + " " + std::string(type_name(column.type));
      if (column.is_option) sql += " HIDDEN";
    }
    module->stopped->declaring = true;
    const int code = sqlite3_declare_vtab(db, (sql + ")").c_str());
    module->stopped->declaring = false;
    if (code != SQLITE_OK) return code;
    // This lets the asker's own views use it; no other schema exists.
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    auto* table = new VirtualTable();
    table->module = module;
    *out = table;
    return SQLITE_OK;
  });
}

int disconnect(sqlite3_vtab* table) {
  delete static_cast<VirtualTable*>(table);
  return SQLITE_OK;
}

// Reports to SQLite which constraints filter() will get: a column and an operator each, in the order of its values.
int best_index(sqlite3_vtab* table, sqlite3_index_info* info) {
  return guarded([&] {
    Plan plan;
    for (int i = 0; i < info->nConstraint; ++i) {
      const auto& c = info->aConstraint[i];
      const char* collation = sqlite3_vtab_collation(info, i);
      plan.wanted.push_back(
          {c.iColumn, c.op, c.usable != 0, !collation || sqlite3_stricmp(collation, "BINARY") == 0, false, false});
    }
    for (int i = 0; i < info->nOrderBy; ++i) plan.order.emplace_back(info->aOrderBy[i].iColumn, info->aOrderBy[i].desc);
    plan.used = info->colUsed;
    static_cast<VirtualTable*>(table)->module->source->plan(plan);
    if (plan.impossible) return SQLITE_CONSTRAINT;
    std::string taken;
    int arguments = 0;
    for (int i = 0; i < info->nConstraint; ++i) {
      const Wanted& w = plan.wanted[i];
      if (!w.taken) continue;
      info->aConstraintUsage[i].argvIndex = ++arguments;
      info->aConstraintUsage[i].omit = w.exact;
      taken += std::to_string(w.column) + " " + std::to_string(w.op) + " ";
    }
    info->idxNum = plan.mode;
    info->idxStr = sqlite3_mprintf("%s", taken.c_str());
    if (!info->idxStr) return SQLITE_NOMEM;
    info->needToFreeIdxStr = 1;
    info->orderByConsumed = plan.ordered && !plan.order.empty();
    info->estimatedCost = plan.cost;
    info->estimatedRows = std::max<int64_t>(1, plan.rows);
    if (plan.one_row) info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    return SQLITE_OK;
  });
}

int open_cursor(sqlite3_vtab* table, sqlite3_vtab_cursor** out) {
  return guarded([&] {
    auto cursor = std::make_unique<VirtualCursor>();
    cursor->rows = static_cast<VirtualTable*>(table)->module->source->open();
    *out = cursor.release();
    return SQLITE_OK;
  });
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete static_cast<VirtualCursor*>(cursor);
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* base, int mode, const char* taken, int count, sqlite3_value** values) {
  return guarded([&] {
    auto* cursor = static_cast<VirtualCursor*>(base);
    cursor->given.clear();
    const char* at = taken;
    const auto number = [&] {
      int n = 0;
      const bool negative = *at == '-';
      if (negative) ++at;
      for (; *at >= '0' && *at <= '9'; ++at) n = n * 10 + (*at - '0');
      if (*at == ' ') ++at;
      return negative ? -n : n;
    };
    for (int i = 0; i < count; ++i) {
      const int column = number();
      const int op = number();
      cursor->given.push_back({column, static_cast<uint8_t>(op), values[i]});
    }
    const Status done = cursor->rows->filter(mode, cursor->given);
    return done ? SQLITE_OK : fail(*static_cast<VirtualTable*>(base->pVtab)->module, base->pVtab, done.error());
  });
}

int next_row(sqlite3_vtab_cursor* cursor) {
  return guarded([&] {
    static_cast<VirtualCursor*>(cursor)->rows->next();
    return SQLITE_OK;
  });
}
int at_end(sqlite3_vtab_cursor* cursor) { return static_cast<VirtualCursor*>(cursor)->rows->at_end(); }
int column_value(sqlite3_vtab_cursor* cursor, sqlite3_context* out, int column) {
  return guarded([&] {
    static_cast<VirtualCursor*>(cursor)->rows->column(out, column);
    return SQLITE_OK;
  });
}
int row_id(sqlite3_vtab_cursor* cursor, sqlite3_int64* out) {
  *out = static_cast<VirtualCursor*>(cursor)->rows->row_id();
  return SQLITE_OK;
}

// There is no xCreate, since the tables exist by their names alone, and no xUpdate, since nothing can be written.
const sqlite3_module& module_calls() {
  static const sqlite3_module calls = [] {
    sqlite3_module m = {};
    m.iVersion = 3;
    m.xConnect = connect;
    m.xDisconnect = disconnect;
    m.xBestIndex = best_index;
    m.xOpen = open_cursor;
    m.xClose = close_cursor;
    m.xFilter = filter;
    m.xNext = next_row;
    m.xEof = at_end;
    m.xColumn = column_value;
    m.xRowid = row_id;
    return m;
  }();
  return calls;
}

}  // namespace

std::string_view type_name(SqlType type) {
  return type == SqlType::kInteger ? "INTEGER" : type == SqlType::kReal ? "REAL" : "TEXT";
}

Status add_table(sqlite3* db, std::shared_ptr<const TableSource> source, Stopped* stopped) {
  const std::string name = source->name();
  auto module = std::make_unique<Module>(Module{std::move(source), stopped});
  // SQLite calls the destructor even where this fails.
  if (sqlite3_create_module_v2(db, name.c_str(), &module_calls(), module.release(),
                               [](void* gone) { delete static_cast<Module*>(gone); }) != SQLITE_OK)
    return make_error(ErrorCode::kUnavailable, "SQLite takes no table " + name + ": " + sqlite3_errmsg(db));
  return {};
}

void show_known(sqlite3_context* out, int64_t value) {
  if (value == kNullInteger) return sqlite3_result_null(out);
  sqlite3_result_int64(out, value);
}
void show_known(sqlite3_context* out, int32_t value) { show_known(out, known_integer(value)); }
void show_real(sqlite3_context* out, double value) {
  if (std::isnan(value)) return sqlite3_result_null(out);
  sqlite3_result_double(out, value);
}

std::optional<int64_t> integer_of(sqlite3_value* value) {
  const int type = sqlite3_value_numeric_type(value);
  if (type == SQLITE_INTEGER) return sqlite3_value_int64(value);
  if (type != SQLITE_FLOAT) return {};
  const double real = sqlite3_value_double(value);
  if (!(real >= -0x1p63 && real < 0x1p63) || std::floor(real) != real) return {};
  return static_cast<int64_t>(real);
}

std::string_view text_of(sqlite3_value* value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  return text ? std::string_view(text, sqlite3_value_bytes(value)) : std::string_view();
}

void narrow(uint8_t op, sqlite3_value* value, int64_t& low, int64_t& high) {
  const int type = sqlite3_value_numeric_type(value);
  if (type == SQLITE_NULL) {  // NULL compares with nothing
    low = 1;
    high = 0;
    return;
  }
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return;  // texts sort after all numbers; SQLite handles them
  int64_t from = INT64_MIN, to = INT64_MAX;
  if (type == SQLITE_INTEGER) {
    from = to = sqlite3_value_int64(value);
  } else if (const double real = sqlite3_value_double(value); real >= -0x1p62 && real <= 0x1p62) {
    from = static_cast<int64_t>(std::floor(real));
    to = static_cast<int64_t>(std::ceil(real));
  } else {
    return;
  }
  switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
      low = std::max(low, from);
      high = std::min(high, to);
      break;
    case SQLITE_INDEX_CONSTRAINT_GT: low = std::max(low, type == SQLITE_INTEGER ? sum_or_limit(from, 1) : from); break;
    case SQLITE_INDEX_CONSTRAINT_GE: low = std::max(low, from); break;
    case SQLITE_INDEX_CONSTRAINT_LT: high = std::min(high, type == SQLITE_INTEGER ? sum_or_limit(to, -1) : to); break;
    case SQLITE_INDEX_CONSTRAINT_LE: high = std::min(high, to); break;
    default: break;
  }
}

}  // namespace stageline::sql
