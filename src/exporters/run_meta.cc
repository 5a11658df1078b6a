#include "exporters/run_meta.h"

#include "model/pipeline_words.h"

namespace stageline {

std::vector<MetaEntry> run_meta(const Trace& trace) {
  const Extent extent = extent_of(trace);
  std::vector<MetaEntry> meta;
  const auto text = [&](const char* key, std::string value) { meta.push_back({key, true, std::move(value), 0}); };
  const auto integer = [&](const char* key, int64_t value) { meta.push_back({key, false, {}, value}); };
  text("format", trace.format);
  text("description", trace.description);
  integer("machines", trace.machine_count());
  integer("ranks", trace.parts.size());
  integer("stages", extent.stage_count);
  integer("replicas", replica_count(trace, extent.dp_count));
  integer("steps", extent.step_count);
  integer("chunks", extent.chunk_count);
  integer("micro_batches", micro_batches_per_step(trace));
  integer("cells", trace.cells.size());
  integer("slices", trace.slice_count());
  integer("start_ns", extent.start_ns);
  integer("end_ns", extent.end_ns);
  switch (trace.clock) {
    case ClockState::kShared: text("clock", "shared"); break;
    case ClockState::kUnaligned: text("clock", "unaligned"); break;
    case ClockState::kPerRank: text("clock", "per_rank"); break;
    case ClockState::kPartlyAligned:
    case ClockState::kAligned:
      text("clock", trace.clock == ClockState::kAligned ? "aligned" : "partly_aligned");
      text("clock_by", evidence_list(clock_summary(trace).by).en);
      if (trace.alignment_half_ns() >= 0) integer("clock_offset_half_ns", trace.alignment_half_ns());
      break;
  }
  integer("steps_laid_end_to_end", trace.steps_laid_end_to_end ? 1 : 0);
  text("stageline_version", STAGELINE_VERSION);
  return meta;
}

}  // namespace stageline
