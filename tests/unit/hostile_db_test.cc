// Databases that lie: views without an end, values without a bound, other people's triggers, keys chosen to collide.
#include <doctest/doctest.h>

#include "base/hashes.h"
#include "base/sqlite_db.h"
#include "compat/msprof/cell_ranks.h"
#include "compat/msprof/rank_tables.h"
#include "reader_fixture.h"
#include "readers/common/number_map.h"

using namespace stageline;

namespace {

constexpr const char* kEndless =
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c) SELECT n id, n startNs, "
    "n endNs, n rankId, n deviceId, n connectionId FROM c";

std::string database(const Folder& folder, const std::string& name, const std::string& sql) {
  const std::string path = folder.add(name, "");
  auto db = SqliteDb::open_new(path);
  REQUIRE(db);
  const Status made = db->run(sql);
  REQUIRE_MESSAGE(made, (made ? "" : made.error().text()));
  return path;
}

int64_t only_number(const SqliteDb& db, const std::string& sql) {
  SqliteRows rows(db, sql);
  REQUIRE(rows.next());
  return rows.integer(0);
}

}  // namespace

TEST_CASE("hostile databases: only tables are read, and no value that the file cannot hold") {
  const Folder folder;
  const std::string path =
      database(folder, "x.db",
               std::string("CREATE TABLE real(id); INSERT INTO real VALUES (7); CREATE VIEW endless AS ") + kEndless +
                   ";CREATE TABLE huge(id, value GENERATED ALWAYS AS (zeroblob(900000000)) VIRTUAL);"
                   "INSERT INTO huge(id) VALUES (1)");
  Diagnostics notes;
  const auto db = SqliteDb::open_read(path, notes);
  REQUIRE(db);
  CHECK(db->has_table("REAL"));
  CHECK_FALSE(db->has_table("endless"));
  CHECK_FALSE(db->has_table("real'"));
  std::string missing;
  SqliteRows endless = rows_of(*db, "endless", {"id"}, &missing);
  CHECK(missing == "endless");
  CHECK_FALSE(endless.next());
  CHECK(endless.ok());
  rows_of(*db, "huge", {"id", "value"}, &missing);
  CHECK(missing == "huge.value");  // a generated column does not count as data
  SqliteRows huge(*db, "SELECT value FROM huge");
  CHECK_FALSE(huge.next());
  CHECK_FALSE(huge.ok());
  SqliteRows real = rows_of(*db, "real", {"id"});
  CHECK(real.next());
  CHECK(real.integer(0) == 7);
  CHECK_FALSE(real.next());
  CHECK(real.ok());
  SqliteRows many(*db, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c) SELECT n FROM c");
  while (many.next()) {
  }
  CHECK_FALSE(many.ok());
  CHECK(many.count() == db->max_rows());
}

TEST_CASE("hostile databases: the tables of a chart replace views, and no trigger of others fires") {
  const Folder folder;
  const std::string path = database(folder, "in.db",
                                    "CREATE TABLE TASK(id); INSERT INTO TASK VALUES (1), (2);"
                                    "CREATE TABLE COMMUNICATION_OP(opName); INSERT INTO COMMUNICATION_OP VALUES (1);"
                                    "CREATE TRIGGER evil AFTER UPDATE ON COMMUNICATION_OP BEGIN DELETE FROM TASK; END;"
                                    "CREATE VIEW StepTaskInfo AS SELECT 1 AS name");
  RankTables tables;
  tables.write_blocks = tables.write_links = true;
  tables.blocks.rows.push_back({1, 2, tables.blocks.name_id("0F"), 0});
  tables.links = {{1, "377_0_1_0"}};
  for (const bool in_place : {false, true}) {
    const std::string target = in_place ? path : folder.path() + "/out.db";
    const Status s = in_place ? write_in_place(path, tables) : write_copy(path, target, tables);
    REQUIRE_MESSAGE(s, (s ? "" : s.error().text()));
    Diagnostics notes;
    const auto db = SqliteDb::open_read(target, notes);
    REQUIRE(db);
    CHECK(only_number(*db, "SELECT count(*) FROM TASK") == 2);
    CHECK(only_number(*db, "SELECT count(*) FROM StepTaskInfo WHERE name='0F'") == 1);
    CHECK(only_number(*db, "SELECT count(*) FROM COMMUNICATION_OP WHERE opConnectionId='377_0_1_0'") == 1);
  }
}

TEST_CASE("hostile databases: rank, times and steps that cannot be are left out or counted") {
  const Folder folder;
  database(folder, "x_1_2_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler.db",
           std::string("CREATE TABLE TASK(startNs, endNs, connectionId, streamId);"
                       "INSERT INTO TASK VALUES (1000, 2000, 1, 2), (9223372036854775807, 9223372036854775807, 1, 2),"
                       "(1000, 9223372036854775807, 1, 2), (-9223372036854775808, 5, 1, 2);"
                       "CREATE TABLE STEP_TIME(id, startNs, endNs);"
                       "INSERT INTO STEP_TIME VALUES (1, 0, 9223372036854775807), (2, 500, 3000);"
                       "CREATE VIEW RANK_DEVICE_MAP AS ") +
               kEndless + ";CREATE VIEW MSTX_EVENTS AS " + kEndless);
  const auto trace = find_reader("ascend")->read(source_of({folder.path()}), {});
  REQUIRE_MESSAGE(trace, (trace ? "" : trace.error().text()));
  REQUIRE(trace->parts.size() == 1);
  CHECK(trace->parts[0].rank == 0);
  REQUIRE(trace->parts[0].steps.size() == 1);
  CHECK(trace->parts[0].steps[0].number == 2);
  CHECK(trace->parts[0].slices.size() == 2);  // a task and the step
}

TEST_CASE("hostile databases: keys that collided in the old table are found in time") {
  // Multiples of the inverse of the old factor: bits 11 to 53 of their product were all 0, so all fell into one slot.
  constexpr uint64_t kOldFactor = 0x9e3779b97f4a7c15u;
  uint64_t inverse = 1;
  for (int i = 0; i < 6; ++i) inverse *= 2 - kOldFactor * inverse;
  REQUIRE(inverse * kOldFactor == 1);
  NumberMap map;
  std::vector<int64_t> keys;
  for (uint64_t high = 0; high < 1024; ++high)
    for (uint64_t low = 0; low < 2048; ++low)
      if (const auto block = static_cast<int64_t>((high << 54 | low) * inverse);
          block >= -(int64_t{1} << 59) && block < int64_t{1} << 59)
        keys.push_back(block * 16);
  REQUIRE(keys.size() > 100'000);
  for (size_t i = 0; i < keys.size(); ++i) map.put(keys[i], static_cast<uint32_t>(i));
  size_t wrong = 0;
  for (size_t i = 0; i < keys.size(); ++i) wrong += map.get(keys[i]) != i;
  CHECK(wrong == 0);
  CHECK(seeded_hash(1, 3) != seeded_hash(1, 5));
}

TEST_CASE("hostile databases: ends of transfers as far apart as numbers go") {
  const auto op = [](PeerOp::Kind kind, int64_t end) { return PeerOp{kind, 0, 1, 0, end, "377", "group", {1}}; };
  RankPeers a{0, "", {op(PeerOp::Kind::kSend, INT64_MAX), op(PeerOp::Kind::kSend, INT64_MIN)}};
  RankPeers b{1, "", {op(PeerOp::Kind::kReceive, INT64_MIN)}};
  const PairedLinks links = pair_links({a, b});
  CHECK(links.pairs == 1);
  CHECK(links.by_rank[1].size() == 1);
}
