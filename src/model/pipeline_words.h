// What pipelines that run side by side are called: replicas, unless context parallelism makes several of one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "model/table.h"
#include "model/trace.h"

namespace stageline {

// Replicas among so many pipelines; a part of one counts.
inline int32_t replica_count(const Trace& trace, int32_t pipelines) {
  const int32_t cp = std::max(1, trace.context_parallel);
  return pipelines / cp + (pipelines % cp != 0 ? 1 : 0);
}

// "2 replicas", "2 context-parallel pipelines", "4 pipelines (2 replicas, 2 context-parallel in each)"; "3 pipelines"
// where --ranks left a replica incomplete.
inline std::string pipelines_text(const Trace& trace, int32_t pipelines) {
  const int32_t cp = trace.context_parallel;
  if (cp <= 1) return std::to_string(pipelines) + " replicas";
  if (pipelines % cp != 0) return std::to_string(pipelines) + " pipelines";
  if (cp == pipelines) return std::to_string(cp) + " context-parallel pipelines";
  return std::to_string(pipelines) + " pipelines (" + std::to_string(pipelines / cp) + " replicas, " +
         std::to_string(cp) + " context-parallel in each)";
}
inline std::string pipelines_text_zh(const Trace& trace, int32_t pipelines) {
  const int32_t cp = trace.context_parallel;
  if (cp <= 1) return std::to_string(pipelines) + " 个副本";
  if (pipelines % cp != 0) return std::to_string(pipelines) + " 条流水线";
  if (cp == pipelines) return std::to_string(cp) + " 条上下文并行流水线";
  return std::to_string(pipelines) + " 条流水线（" + std::to_string(pipelines / cp) + " 个副本，各 " +
         std::to_string(cp) + " 条上下文并行）";
}

// The column of Part::dp.
inline const ColumnSpec kPipelineColumn = {"dp", "dp", ColumnType::kInteger, "Data-parallel replica"};
// The same columns in words of this run: with context parallelism that number is no data-parallel index, and rank-map's
// is another one.
inline std::vector<ColumnSpec> in_words_of(const Trace& trace, std::vector<ColumnSpec> columns) {
  for (ColumnSpec& column : columns)
    if (trace.context_parallel > 1 && column.name == kPipelineColumn.name && column.help == kPipelineColumn.help) {
      column.title = "pipeline index";
      column.help = "Which of the pipelines side by side: replicas, and in each its context-parallel ranks";
    }
  return columns;
}

}  // namespace stageline
