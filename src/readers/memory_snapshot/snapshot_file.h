// One snapshot of PyTorch's allocator (torch.cuda.memory._dump_snapshot), as a pickle or as JSON.
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
  Part part;  // ids of `names`
  StringPool names;
  bool is_dated = false;  // events say when they happened; else they are numbered, a microsecond each
  Diagnostics notes;
};

// Whether these first bytes are one.
bool looks_like_snapshot(std::string_view head);

// Errors: those of Input and parse_pickle; kBadInput where nothing of an allocator stands in it.
Result<SnapshotFile> read_snapshot(const std::string& path, Progress* progress);

}  // namespace memory_snapshot
}  // namespace stageline
