// Splits a file that holds several ranks, so that it is read as the files that it was merged of.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "readers/common/rows/file_rows.h"

namespace stageline::rows {

struct RankRows {
  FileRows rows;
  std::optional<int32_t> rank;  // that the merged file gives; a file of one rank says it elsewhere (identify())
  bool is_merged = false;       // one of several ranks of the file
};

// `blocks` are the recordings of a file, one after another. In each of them, the first of these that is there names the
// ranks:
//
//   labels      processes "[TP02-PP01] 4711" (SGLang) and args.rank of every event (TraceFuse; RowBuilder::add makes
//               labels of them). Rank = PP × TP size + TP; where these repeat, in the order of DP
//   names       processes named "RANK 3 - CPU", "…global_rank_3…"; others join the process that launches their work
//   launches    processes whose calls launch work on devices of their own, by arrows of rpd2tracing; without a rank
//
// Otherwise a block is one rank, and blocks without a rank are numbered by the caller. Processes and threads get their
// own names back, and ids of each rank link only its own events. One process with several devices is one rank.
// Errors: kBadInput when several ranks are there that nothing separates.
Result<std::vector<RankRows>> split_ranks(std::vector<FileRows> blocks);

}  // namespace stageline::rows
