// Tables of rocprofv3 (--output-format csv) and of rocpd convert: PID_kernel_trace.csv and those beside it, which
// together are one process's record. Columns and what becomes of them: docs/formats/rocpd.md.
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

// Sums (…_stats.csv) and counters of single dispatches are no such tables.
enum class TableKind : uint8_t { kAgents, kCalls, kKernels, kCopies, kAllocations };
// By the columns that its first line names; nothing where it is another table.
std::optional<TableKind> table_kind(std::string_view head);

// "node0/4242_kernel_trace.csv" → "node0/4242": tables of one name belong together.
std::string table_stem(std::string_view path);

struct TableFile {
  std::string path;
  TableKind kind;
};
// `files`: of one stem. Errors: kBadInput when nothing in them could be drawn. A file that cannot be read to its end is
// a note.
Result<Record> read_tables(std::vector<TableFile> files, Progress* progress);

}  // namespace stageline::rocpd
