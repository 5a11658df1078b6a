// Reads tables of rocprofv3 (--output-format csv) and of rocpd convert: PID_kernel_trace.csv and its neighbours, which
// together are one process's record. docs/formats/rocpd.md describes the columns and their use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "readers/rocpd/record.h"

namespace stageline {
class Progress;
}

namespace stageline::rocpd {

// The tables that are read. Sums (…_stats.csv) and counters of single dispatches are not among them.
enum class TableKind : uint8_t { kAgents, kCalls, kKernels, kCopies, kAllocations };
// Returns the kind of a table by the columns in its first line; nullopt for any other table.
std::optional<TableKind> table_kind(std::string_view head);

// Returns the stem of a path, "node0/4242_kernel_trace.csv" → "node0/4242"; tables with the same stem belong together.
std::string table_stem(std::string_view path);

struct TableFile {
  std::string path;
  TableKind kind;
};
// Reads `files`, which have the same stem. Errors: kBadInput when nothing in them could be drawn. A file that cannot be
// read to its end is noted.
Result<Record> read_tables(std::vector<TableFile> files, Progress* progress);

}  // namespace stageline::rocpd
