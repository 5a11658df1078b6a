// What is written into one rank's database, and into a copy of it (in_place.h: into itself).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "base/sqlite_db.h"
#include "compat/msprof/communication.h"
#include "compat/msprof/step_tasks.h"

namespace stageline {

struct RankTables {
  bool write_blocks = false;  // StepTaskInfo, made anew
  StepTasks blocks;
  bool write_ops = false;  // COMMUNICATION_OP, made anew, with the texts it needs in STRING_IDS
  std::vector<MarkedOp> ops;
  bool write_links = false;  // the column opConnectionId: added where missing, emptied, and set
  std::vector<std::pair<int64_t, std::string>> links;  // by rowid of COMMUNICATION_OP, of made ones index into `ops`

  bool empty() const { return !write_blocks && !write_ops && !write_links; }
};

// Into an open database. No index is ever made. Errors: what SQLite refuses, "the disk is full" among it.
Status write_tables(const SqliteDb& db, const RankTables& tables);

// `target` is `source` with the tables, and appears only when whole. Errors: kIo, and those of write_tables.
Status write_copy(const std::string& source, const std::string& target, const RankTables& tables);

// Only the tables, in a small database of their own.
Status write_tables_alone(const std::string& target, const RankTables& tables);

// The same, not committed yet. Errors: as write_copy; `out` then holds nothing of worth.
Status fill_copy(const std::string& source, const RankTables& tables, const OutputFile& out);

// A whole file to another name, sharing its blocks where the file system can. Errors: kIo.
Status copy_file(const std::string& source, const std::string& target);

}  // namespace stageline
