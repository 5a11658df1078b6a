// Tables read from their pages, held to what SQLite itself says of the same rows.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "base/sqlite_db.h"
#include "reader_fixture.h"

using namespace stageline;

namespace {

// Every value of a row in all forms that a reader may ask for.
std::string reported(const SqliteRows& rows, int columns) {
  std::string out;
  for (int c = 0; c < columns; ++c) {
    // The type first: SQLite changes it when it converts a value.
    out += std::to_string(rows.type(c)) + "|" + std::to_string(rows.integer(c)) + "|";
    out += std::to_string(rows.real(c)) + "|";
    out += std::string(rows.text(c)) + ";";
  }
  return out;
}

std::string pages_path(const Folder& folder, const std::string& name, const std::string& sql) {
  const std::string path = folder.add(name, "");
  auto db = SqliteDb::open_new(path);
  REQUIRE(db);
  const Status made = db->run(sql);
  REQUIRE_MESSAGE(made, (made ? "" : made.error().text()));
  return path;
}

void check_same(const std::string& path, std::initializer_list<std::string_view> columns) {
  Diagnostics notes;
  const auto db = SqliteDb::open_read(path, notes);
  REQUIRE(db);
  std::string list;
  for (const std::string_view column : columns) list += (list.empty() ? "" : ",") + std::string(column);
  SqliteRows ours = rows_of(*db, "t", columns);
  SqliteRows theirs(*db, "SELECT " + list + " FROM t NOT INDEXED ORDER BY rowid");
  while (theirs.next()) {
    REQUIRE(ours.next());
    CHECK(reported(ours, static_cast<int>(columns.size())) == reported(theirs, static_cast<int>(columns.size())));
  }
  CHECK_FALSE(ours.next());
  CHECK(ours.ok());
  CHECK(ours.count() == theirs.count());
}

constexpr const char* kNumbers =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000) INSERT INTO t ";

}  // namespace

TEST_CASE("pages of SQLite: every kind of value, as SQLite says it") {
  const Folder folder;
  check_same(pages_path(folder, "kinds.db",
                        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c REAL, d, e BLOB);"
                        "INSERT INTO t VALUES (-7, 0, '', 0, NULL, x''), (1, 1, '12.7abc', 1, 2.5, x'00ff'),"
                        "(2, -1, ' -42', -3, 'x', x'3132'), (3, 127, '1e3', 1e300, -1e19, zeroblob(20)),"
                        "(4, -32768, '99999999999999999999', 0.1, 9223372036854775807, 'text'),"
                        "(5, 8388607, 'inf', 5, -9223372036854775808, 1), (6, -2147483648, '+5', 1e-5, 1e19, 2.25),"
                        "(7, 140737488355327, 'ä', 123456789012345678, 0.5, NULL), (99999999999, 140737488355328, "
                        "x'41', '7', '', '')"),
             {"id", "a", "b", "c", "d", "e"});
}

TEST_CASE("pages of SQLite: deep trees, rows longer than a page, small and large pages, columns that came later") {
  const Folder folder;
  for (const int page : {512, 4096, 65536})
    check_same(
        pages_path(folder, "deep" + std::to_string(page) + ".db",
                   "PRAGMA page_size=" + std::to_string(page) + ";CREATE TABLE t(a, b, c);" + kNumbers +
                       "SELECT i * 7919 % 9001, printf('%.*c', (i * i) % (CASE WHEN i % 100 = 0 THEN 9000 ELSE 60 "
                       "END), 'x'), i / 3.0 FROM n; ALTER TABLE t ADD COLUMN d; DELETE FROM t WHERE a % 5 = 0;"
                       "INSERT INTO t VALUES (1, 2, 3, 'later'); CREATE INDEX by_a ON t(a, b, c, d)"),
        {"c", "b", "a", "d"});
}

TEST_CASE("pages of SQLite: tables that are not plain are read by SQLite itself") {
  const Folder folder;
  check_same(pages_path(folder, "default.db",
                        "CREATE TABLE t(a); INSERT INTO t VALUES (1); ALTER TABLE t ADD COLUMN b DEFAULT 5"),
             {"a", "b"});
  check_same(
      pages_path(folder, "wide.db", "PRAGMA encoding='UTF-16'; CREATE TABLE t(a, b); INSERT INTO t VALUES ('ä', 1)"),
      {"a", "b"});
  check_same(pages_path(folder, "twice.db", "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2)"), {"a", "b", "a"});
  const std::string path = pages_path(
      folder, "without.db", "CREATE TABLE t(a, b, PRIMARY KEY (b, a)) WITHOUT ROWID; INSERT INTO t VALUES (1, 2)");
  Diagnostics notes;
  const auto db = SqliteDb::open_read(path, notes);
  SqliteRows rows = rows_of(*db, "t", {"a", "b"});
  REQUIRE(rows.next());
  CHECK(rows.integer(0) == 1);
  CHECK(rows.integer(1) == 2);
}

TEST_CASE("pages of SQLite: damaged bytes end the rows or become values, and there are never more rows than fit") {
  const Folder folder;
  const std::string path = pages_path(
      folder, "whole.db",
      std::string("CREATE TABLE t(a, b);") + kNumbers + "SELECT i, printf('%.*c', i % 700, 'y') FROM n WHERE i < 600");
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  std::mt19937 random(7);
  int64_t damaged = 0;
  for (int round = 0; round < 300; ++round) {
    std::string bytes = whole;
    for (int k = 0; k < 40; ++k) bytes[4096 + random() % (bytes.size() - 4096)] = static_cast<char>(random());
    const std::string broken = folder.add("broken.db", bytes);
    Diagnostics notes;
    const auto db = SqliteDb::open_read(broken, notes);
    if (!db) continue;
    SqliteRows rows = rows_of(*db, "t", {"a", "b"});
    size_t length = 0;
    while (rows.next()) length += rows.text(1).size() + reported(rows, 2).size();
    CHECK(length < 100 * whole.size());
    CHECK(rows.count() <= db->max_rows());
    damaged += !rows.ok();
  }
  CHECK(damaged > 20);
}
