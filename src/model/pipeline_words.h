// Names pipelines that run side by side: they are replicas, unless context parallelism makes several pipelines of one
// replica.
#pragma once

#include "model/run_extent.h"
#include "model/schedule.h"
#include "model/table.h"

namespace stageline {

// Returns the number of replicas in this number of pipelines; a partially recorded replica counts as one.
inline int32_t replica_count(const Trace& trace, int32_t pipelines) {
  const int32_t cp = std::max(1, trace.context_parallel);
  return pipelines / cp + (pipelines % cp != 0 ? 1 : 0);
}

// Returns "2 replicas", "2 context-parallel pipelines" or "4 pipelines (2 replicas, 2 context-parallel in each)"; "3
// pipelines" where --ranks left a replica incomplete.
inline Text pipelines_text(const Trace& trace, int32_t pipelines) {
  const int32_t cp = std::max(1, trace.context_parallel);
  Args args;
  args.set("pipelines", int64_t{pipelines}).set("replicas", int64_t{pipelines / cp}).set("each", int64_t{cp});
  if (cp <= 1) return words("pipelines.replicas", args);
  if (pipelines % cp != 0) return words("pipelines.odd", args);
  return words(cp == pipelines ? "pipelines.parallel" : "pipelines", args);
}

// Returns "4 stages, 8 micro-batches, 2 chunks per rank in a V, groups of 4"; `group` 0 is not mentioned.
inline Text sizes_text(const ScheduleSizes& sizes, ChunkLayout layout, int32_t group) {
  const bool two_ways = layout == ChunkLayout::kBidirectional;
  Args args;
  args.count("stages", sizes.stages).count("micro_batches", sizes.micro_batches);
  args.set("chunks", std::to_string(sizes.chunks)).flag("v", layout == ChunkLayout::kV);
  args.set("ways", sizes.chunks > 1 ? words(two_ways ? "schedule.ways.two" : "schedule.ways.chunks", args) : Text());
  return words("schedule.sizes", args.set("group", group > 0 ? std::to_string(group) : ""));
}

// Returns "4 stages × 2 replicas", or `part` where only a part of the run was read.
inline Text run_text(const Trace& trace, const Extent& extent, int64_t stages, const Text& part, bool part_of_all) {
  Text what = part.empty() ? words("chart.stages", Args().count("n", stages)) : part;
  if (extent.dp_count <= 1 || part_of_all) return what;
  what += {" × ", " × "};
  return what += pipelines_text(trace, extent.dp_count);
}

// Sets {micro_batches}: `usual` per step (0: the most common number); "4 to 16" where steps or replicas differ and no
// rows are missing.
inline void set_micro_batches(Args& args, const Trace& trace, int32_t usual, bool rows_missing) {
  if (usual == 0) usual = micro_batches_per_step(trace);
  args.count("micro_batches", usual);
  const MicroBatchRange range = micro_batch_range(trace);
  if (rows_missing || range.min == range.max || range.max != usual) return;
  args.set("micro_batches", words("micro_batches.range", Args().count("least", range.min).count("most", range.max)));
}

// Returns the table with title and help of its column "dp" changed for runs with context parallelism. There Part::dp
// counts pipelines; it is neither a data-parallel index nor the dp that rank-map shows.
inline TableSpec in_words_of(const Trace& trace, TableSpec table) {
  for (ColumnSpec& column : table.columns)
    if (trace.context_parallel > 1 && column.name == "dp" && column.help == "Data-parallel replica") {
      column.title = "pipeline index";
      column.help = "Which of the pipelines side by side: replicas, and in each its context-parallel ranks";
    }
  return table;
}

}  // namespace stageline
