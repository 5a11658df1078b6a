#include "sql/functions.h"
#include "sql/table_source.h"

namespace stageline::sql {
namespace {

// SQLite's functions that do not reach out of the query and make no values of unlimited size, and our own.
constexpr std::string_view kFunctions =
    "-> ->> abs acos acosh asin asinh atan atan2 atanh avg both_ns ceil ceiling char coalesce concat concat_ws "
    "cos cosh count cume_dist date datetime degrees dense_rank exp first_value floor format glob group_concat hex "
    "ifnull if iif instr json json_array json_array_length json_each json_extract json_group_array "
    "json_group_object json_object json_quote json_type json_valid julianday lag last_value lead length like "
    "likelihood likely ln log log10 log2 lower ltrim matches max median min mod ms nth_value ntile nullif "
    "octet_length percent_rank pi pow power pretty printf quantile quote radians random rank regexp replace round "
    "row_number rtrim short_name sign sin sinh sqrt strftime string_agg substr substring subtype sum tan tanh "
    "time timediff total trim trunc typeof unhex unicode union_ns unixepoch unlikely upper";

bool same(const char* a, std::string_view b) {
  return a && sqlite3_strnicmp(a, b.data(), static_cast<int>(b.size())) == 0 && a[b.size()] == '\0';
}

bool is_known_function(const char* name) {
  static const std::vector<std::string_view> known = split(kFunctions, ' ');
  return std::ranges::any_of(known, [&](std::string_view one) { return same(name, one); });
}

int refuse(void* stopped, std::string why) {
  static_cast<Stopped*>(stopped)->refused = std::move(why);
  return SQLITE_DENY;
}

}  // namespace

int authorize(void* stopped, int action, const char* first, const char* second, const char* database, const char*) {
  if (static_cast<Stopped*>(stopped)->declaring) return SQLITE_OK;
  const std::string what = first ? first : "";
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_CREATE_TEMP_TABLE:
    case SQLITE_CREATE_TEMP_VIEW:
    case SQLITE_CREATE_TEMP_INDEX:
    case SQLITE_DROP_TEMP_TABLE:
    case SQLITE_DROP_TEMP_VIEW:
    case SQLITE_DROP_TEMP_INDEX:
    case SQLITE_REINDEX: static_cast<Stopped*>(stopped)->spent = true; return SQLITE_OK;
    case SQLITE_READ:
      if (same(first, "args")) static_cast<Stopped*>(stopped)->spent = true;
      if (!static_cast<Stopped*>(stopped)->aggregating &&
          (same(first, "slices_aggregated") || same(first, "kernels_aggregated")))
        return refuse(stopped, "no such table: " + what);
      // SQLite's own pages and statistics say nothing about the run.
      if (sqlite3_strnicmp(what.c_str(), "sqlite_", 7) == 0 && !same(first, "sqlite_master") &&
          !same(first, "sqlite_schema") && !same(first, "sqlite_temp_master") && !same(first, "sqlite_temp_schema"))
        return refuse(stopped, "table " + what + " is SQLite's own");
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      if (is_known_function(second)) return SQLITE_OK;
      return refuse(stopped, std::string("function ") + (second ? second : "") + "() is not offered");
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
      if (same(database, "temp")) return SQLITE_OK;
      // SQLite records the name of a temporary table there.
      if (same(first, "sqlite_temp_master") || same(first, "sqlite_temp_schema")) return SQLITE_OK;
      if (!same(first, "sqlite_master") && !same(first, "sqlite_schema"))
        return refuse(stopped, what + " is the run itself and cannot be changed");
      [[fallthrough]];  // SQLite records the name of a new table
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_VIEW:
    case SQLITE_CREATE_INDEX:
      return refuse(stopped, "tables and views of a query are temporary: CREATE TEMP TABLE, CREATE TEMP VIEW");
    case SQLITE_PRAGMA: return refuse(stopped, "PRAGMA is not offered");
    case SQLITE_ATTACH: return refuse(stopped, "ATTACH is not offered: a query sees one run and no files");
    case SQLITE_DETACH: return refuse(stopped, "DETACH is not offered");
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT: return refuse(stopped, "transactions are not offered: nothing is changed");
    case SQLITE_CREATE_VTABLE:
    case SQLITE_DROP_VTABLE: return refuse(stopped, "virtual tables are not offered");
    default: return refuse(stopped, "only SELECT, and temporary tables and views, are offered");
  }
}

}  // namespace stageline::sql
