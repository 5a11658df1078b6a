// `stageline digest`: one file per rank that holds what the model holds of it (docs/formats/digest.md). Made by any
// number of threads and processes, in any order; what is there and whole is not made again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "readers/reader.h"

namespace stageline {

struct DigestOptions {
  std::string reader;                             // forces a reader
  int32_t first_rank = 0, last_rank = INT32_MAX;  // both included
  Progress* progress = nullptr;
};

// What one process makes at a time: a rank, or all ranks of a source that is read as a whole.
struct DigestUnit {
  RankSource rank;  // of a whole source: no `who`, all its files
};

struct DigestPlan {
  Source source;
  const Reader* reader = nullptr;
  std::string folder;
  std::string root;                // the paths as named, absolute
  std::vector<std::string> there;  // names of the digests that the folder held before, sorted
  DigestOptions options;
  std::vector<DigestUnit> units;  // the largest first, so that what is made last is short
  int64_t bytes = 0;              // of all their files
  Diagnostics notes;              // of listing
};

// Lists the ranks of `paths`, makes `folder` where it is missing. Errors: those of scan_source and choose_reader;
// kUsage when the folder lies within the source, or holds digests of another one; kBadInput when no rank is left.
Result<DigestPlan> plan_digests(const std::vector<std::string>& paths, const std::string& folder,
                                const DigestOptions& options);

struct DigestCount {
  int64_t made = 0;    // anew
  int64_t remade = 0;  // of `made`: in the place of one that was damaged, or of an older state of the source
  int64_t kept = 0;    // there, whole and of this state of the source
  int64_t cells = 0;   // of the digests made
  int64_t bytes = 0;   // of all: as they lie in the folder
  std::vector<Error> failures;
  Diagnostics
      losses{};  // of what was read, and of files that are of no rank: those of a whole source are in its digests too
  void add(const DigestCount& other);
};
// Any number of units at once. What fails is in `failures`: no digest of it is left or made.
DigestCount make_digest(const DigestPlan& plan, const DigestUnit& unit);

// All units, on all threads.
DigestCount make_digests(const DigestPlan& plan);

}  // namespace stageline
