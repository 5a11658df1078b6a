// Tables of one rank, and how they are written: into its database, or into a copy of it.
#pragma once

#include "compat/msprof/communication.h"

namespace stageline {

// StepTaskInfo: the table from which MindStudio Insight draws a pipeline chart. It has one row for each block of work
// on the device.
struct StepTask {
  int64_t start_ns = 0, end_ns = 0;
  uint32_t name = 0;  // index into StepTasks::names
  int32_t type = 0;   // the colour: 0 forward, 1 backward; for DualPipeV the phase (dualpipev_rows.h)
};

struct StepTasks {
  std::vector<std::string> names;
  std::vector<StepTask> rows;  // in the order in which they are written

  uint32_t name_id(std::string_view name) {
    const auto [at, fresh] = ids_.try_emplace(std::string(name), static_cast<uint32_t>(names.size()));
    if (fresh) names.emplace_back(name);
    return at->second;
  }

 private:
  std::unordered_map<std::string, uint32_t> ids_;
};

// Writes tables into one rank's database, or into a copy of it. (write_in_place() writes into the original.)
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

// Writes a rank's tables into the measured database itself, the only file of a user's that stageline changes.
//
//     database ── copy ──▶ database.partial.PID ── tables ──▶ fsync ──▶ rename over database
//         └───────── hard link ──▶ database.stageline-backup   (just before the rename)
//
// No journal is ever needed: whenever the program ends, the name refers either to the old file or to the new one.

inline constexpr const char* kBackupSuffix = ".stageline-backup";

// A backup is made unless there is one of this measurement already, which has the same first and last rows in every
// table that pp-chart leaves alone. Mode and owner are kept. After an error the file is as it was before, and no backup
// was made of it. Errors: kUnavailable when another program uses the file, kUsage when the backup is of another
// measurement, kIo, and those of write_tables. Takes as much space on disk as the file, once more.
Status write_in_place(const std::string& path, const RankTables& tables);

}  // namespace stageline
