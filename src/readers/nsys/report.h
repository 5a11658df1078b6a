// One report of Nsight Systems, exported to SQLite: its processes as parts. Tables, columns and what becomes of them:
// docs/formats/nsys.md.
#pragma once

#include <string>

#include "base/result.h"
#include "readers/nsys/parts.h"

namespace stageline::nsys {

// Returns true if an SQLite file is such an export.
bool is_report(const std::string& path);

// Errors: those of SqliteDb::open_read; kBadInput when it has no table that could be drawn.
Result<Report> read_report(const std::string& path);

}  // namespace stageline::nsys
