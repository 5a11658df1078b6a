// Writes a rank's tables into the measured database itself, the only file of a user's that stageline changes.
//
//     database ── copy ──▶ database.partial.PID ── tables ──▶ fsync ──▶ rename over database
//         └───────── hard link ──▶ database.stageline-backup   (just before the rename)
//
// No journal is ever needed: whenever the program ends, the name refers either to the old file or to the new one.
#pragma once

#include <string>

#include "base/result.h"
#include "compat/msprof/rank_tables.h"

namespace stageline {

inline constexpr const char* kBackupSuffix = ".stageline-backup";

// A backup is made unless there is one of this measurement already, which has the same first and last rows in every
// table that pp-chart leaves alone. Mode and owner are kept. After an error the file is as it was before, and no backup
// was made of it. Errors: kUnavailable when another program uses the file, kUsage when the backup is of another
// measurement, kIo, and those of write_tables. Takes as much space on disk as the file, once more.
Status write_in_place(const std::string& path, const RankTables& tables);

}  // namespace stageline
