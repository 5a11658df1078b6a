// Reads one snapshot of PyTorch's allocator (torch.cuda.memory._dump_snapshot), as a pickle or as JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostics.h"
#include "base/result.h"
#include "base/string_pool.h"
#include "model/trace.h"

namespace stageline {
class Progress;
namespace memory_snapshot {

struct SnapshotFile {
  Part part;  // with ids of `names`
  StringPool names;
  bool is_dated = false;  // events say when they happened; otherwise they are numbered, a microsecond apart
  Diagnostics notes;
};

// Returns true when these first bytes are a snapshot's.
bool looks_like_snapshot(std::string_view head);

// Errors: those of Input and parse_pickle; kBadInput when the file holds nothing of an allocator.
Result<SnapshotFile> read_snapshot(const std::string& path, Progress* progress);

}  // namespace memory_snapshot
}  // namespace stageline
