// Measures the floor under writing StepTaskInfo: the time that SQLite alone needs to scan the two source tables and to
// insert as many rows. It uses one transaction per file, without joining, labelling or a backup.
#include <sqlite3.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

struct Row {
  int64_t start, end;
};

int scan(sqlite3* db, const char* sql, std::vector<Row>* rows) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db, sql, -1, &statement, nullptr) != SQLITE_OK) return 1;
  int64_t sum = 0;
  while (sqlite3_step(statement) == SQLITE_ROW) {
    const Row row{sqlite3_column_int64(statement, 0), sqlite3_column_int64(statement, 1)};
    sum += sqlite3_column_int64(statement, 2) + sqlite3_column_int64(statement, 3);
    if (rows) rows->push_back(row);
  }
  sqlite3_finalize(statement);
  return sum == 1 ? 2 : 0;  // keeps the reads
}

int write(sqlite3* db, const std::vector<Row>& rows) {
  sqlite3_exec(db,
               "BEGIN; DROP TABLE IF EXISTS StepTaskInfo; CREATE TABLE StepTaskInfo (name TEXT,startNs INTEGER,endNs "
               "INTEGER,type INTEGER)",
               nullptr, nullptr, nullptr);
  sqlite3_stmt* insert = nullptr;
  if (sqlite3_prepare_v2(db, "INSERT INTO StepTaskInfo VALUES(?,?,?,?)", -1, &insert, nullptr) != SQLITE_OK) return 1;
  for (const Row& row : rows) {
    sqlite3_bind_text(insert, 1, "FP", 2, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 2, row.start);
    sqlite3_bind_int64(insert, 3, row.end);
    sqlite3_bind_int64(insert, 4, 0);
    sqlite3_step(insert);
    sqlite3_reset(insert);
  }
  sqlite3_finalize(insert);
  return sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    sqlite3* db = nullptr;
    if (sqlite3_open_v2(argv[i], &db, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK) return 1;
    std::vector<Row> rows;
    int failed = scan(db, "SELECT startNs,endNs,message,connectionId FROM MSTX_EVENTS", nullptr);
    failed |= scan(db, "SELECT startNs,endNs,connectionId,globalTaskId FROM TASK", &rows);
    failed |= write(db, rows);
    sqlite3_close(db);
    if (failed) {
      std::fprintf(stderr, "%s: cannot be worked on\n", argv[i]);
      return 1;
    }
  }
  return 0;
}
