// `stageline digest`: writes one file per rank with the model's data of this rank (docs/formats/digest.md). Any number
// of threads and processes may make them, in any order. An intact existing digest is not made again.
#pragma once

#include "readers/reader.h"

namespace stageline {

struct DigestOptions {
  std::string reader;                             // the reader to use; "" chooses by sniffing
  int32_t first_rank = 0, last_rank = INT32_MAX;  // both are included
  Progress* progress = nullptr;
};

// The work of one process at a time: one rank, or all ranks of a source that can only be read as a whole.
struct DigestUnit {
  RankSource rank;  // for a whole source it has no `who` and all the files
};

struct DigestPlan {
  Source source;
  const Reader* reader = nullptr;
  std::string folder;
  std::string root;                // the paths that the user named, as absolute paths
  std::vector<std::string> there;  // names of the digests that the folder held before, sorted
  DigestOptions options;
  std::vector<DigestUnit> units;  // the largest come first, so that the last ones take little time
  int64_t bytes = 0;              // size of all their files
  Diagnostics notes;              // notes from listing the source
};

// Lists the ranks of `paths`, and makes `folder` if it does not exist. Errors: those of scan_source and choose_reader;
// kUsage when the folder is inside the source or holds digests of another source; kBadInput when no rank is left.
Result<DigestPlan> plan_digests(const std::vector<std::string>& paths, const std::string& folder,
                                const DigestOptions& options);

struct DigestCount {
  int64_t made = 0;    // made new
  int64_t remade = 0;  // part of `made`: they replaced a damaged digest, or one of an older state of the source
  int64_t kept = 0;    // they were there, intact and of the present state of the source
  int64_t cells = 0;   // number in the digests that were made
  int64_t bytes = 0;   // size in the folder of all digests
  std::vector<Error> failures;
  Diagnostics
      losses{};  // of what was read, and of files that are of no rank: those of a whole source are in its digests too
  void add(const DigestCount& other);
};
// Makes a digest; several units may be made at once. A failure is added to `failures` and leaves no digest.
DigestCount make_digest(const DigestPlan& plan, const DigestUnit& unit);

// Makes all units on all threads.
DigestCount make_digests(const DigestPlan& plan);

}  // namespace stageline
