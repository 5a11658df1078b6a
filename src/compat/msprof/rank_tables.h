// Writes tables into one rank's database, or into a copy of it. (in_place.h writes into the original.)
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "compat/msprof/communication.h"
#include "compat/msprof/step_tasks.h"

namespace stageline {

struct RankTables {
  bool write_blocks = false;  // rebuilds StepTaskInfo
  StepTasks blocks;
  bool write_ops = false;  // rebuilds COMMUNICATION_OP, and adds the texts that it needs to STRING_IDS
  std::vector<MarkedOp> ops;
  bool write_links = false;  // adds the column opConnectionId where it is missing, empties it, and sets it
  // The links, as (rowid in COMMUNICATION_OP, text); when the table is rebuilt, as (index into `ops`, text).
  std::vector<std::pair<int64_t, std::string>> links;

  bool empty() const { return !write_blocks && !write_ops && !write_links; }
};

// Writes `target`: `source` with the tables. It appears only when it is complete. Errors: kIo, and those of
// write_tables.
Status write_copy(const std::string& source, const std::string& target, const RankTables& tables);

// Writes only the tables, into a small database of their own.
Status write_tables_alone(const std::string& target, const RankTables& tables);

// Does what write_copy does, but does not commit yet. Errors: those of write_copy; the content of `out` is then
// unusable.
Status fill_copy(const std::string& source, const RankTables& tables, const OutputFile& out);

// Copies a whole file to another name; shares its blocks where the file system can. Errors: kIo.
Status copy_file(const std::string& source, const std::string& target);

}  // namespace stageline
