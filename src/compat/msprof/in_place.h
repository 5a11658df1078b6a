// A rank's tables into the database that was measured, the one file of a user's that stageline changes.
//
//     database ── copy ──▶ database.partial.PID ── tables ──▶ fsync ──▶ rename over database
//         └───────── hard link ──▶ database.stageline-backup   (just before the rename)
//
// No journal is ever needed: whenever the program ends, the name stands for the old file or for the new one.
#pragma once

#include <string>

#include "base/result.h"
#include "compat/msprof/rank_tables.h"

namespace stageline {

inline constexpr const char* kBackupSuffix = ".stageline-backup";

// The backup is made unless there is one of this measurement: same first and last rows of every table that pp-chart
// leaves alone. Mode and owner stay. After an error the file is as it was, and no backup was made of it. Errors:
// kUnavailable when another program uses it, kUsage when the backup is another measurement's, kIo, those of
// write_tables. Takes the file's size on disk once more, as any backup would.
Status write_in_place(const std::string& path, const RankTables& tables);

}  // namespace stageline
