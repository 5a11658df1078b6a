// Defines the tables of an Ascend profiler database, as in schema 1.2.0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/sqlite_db.h"
#include "exporters/ascend_db/db_options.h"

namespace stageline::ascend_db {

inline constexpr int64_t kNone32 = 4'294'967'295;     // "no value" in the profiler's own tables
inline constexpr int64_t kFirstMark = 4'000'000'001;  // connection id of the first range that has a device side
inline constexpr int64_t kBfp16 = 11, kHccsLink = 1, kRoceLink = 3, kSdma = 0, kRdma = 1, kInvalid = 65535;
inline constexpr int64_t kApiNode = 10000, kApiAcl = 20000, kApiHccl = 5500, kApiOp = 50001;

// Creates the tables that a profile of this level has, and fills the enumeration tables. Runs in the caller's
// transaction.
Status create_tables(const SqliteDb& db, AscendLevel level, bool step_time);
Status create_analysis_tables(const SqliteDb& db, AscendLevel level);

// The table STRING_IDS: it holds every text once, numbered in the order of first use.
class Strings {
 public:
  int64_t operator()(std::string_view text);
  void write(SqliteInsert& into) const;

 private:
  std::unordered_map<std::string, int64_t> ids_;
  std::vector<const std::string*> order_;
};

}  // namespace stageline::ascend_db
