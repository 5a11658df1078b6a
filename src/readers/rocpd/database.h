// Reads one database of AMD's profilers: rocpd, from rocprofv3 and rocprof-sys, or rocmProfileData's older .rpd.
// Tables, columns and what becomes of them: docs/formats/rocpd.md.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "readers/rocpd/record.h"

namespace stageline::rocpd {

enum class Dialect : uint8_t { kNone, kRocpd, kRpd };
Dialect dialect_of(const std::string& path);

// Returns true for an SQLite file of which not even the names of tables can be read.
bool is_damaged(const std::string& path);

// Errors: those of SqliteDb::open_read; kBadInput when nothing in it could be drawn.
Result<Record> read_database(const std::string& path);

}  // namespace stageline::rocpd
