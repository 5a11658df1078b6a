// Data for the pipeline page: cells with the ideal schedule, tables about them, and simulated step times under changes.
// docs/viewer-protocol.md is the contract with the page.
#pragma once

#include <mutex>

#include "diagnosis/what_if/what_if_fixes.h"
#include "facts/pipeline_facts.h"
#include "server/http/query.h"

namespace stageline {

struct Trace;
class Timeline;

// With more cells, the page gets whole steps, those of steps_by_worth() first, and says so. This many take 1.3 GB of a
// browser's memory.
inline constexpr size_t kMaxPipelineCells = 4'000'000;

// The same limit where a stage has more than kManyRanks ranks. The page then draws a stage's ranks in one row, and
// other steps come when the user chooses them, so it need not start with as many. With 10 080 ranks this is one step.
inline constexpr size_t kMaxCellsOfMany = 1'000'000;
inline constexpr size_t kManyRanks = 32;  // as MANY in web/src/chart/layout.ts

// The same for a report's file, in which a cell takes some 22 bytes: together 20 MB, and 8 MB more for the timeline of
// as many cells. With 10 080 ranks that is one step, the worst.
inline constexpr size_t kMaxFileCells = 900'000;

// With more operations a report carries no what-if model, which takes some eight bytes of each, and names the command
// instead.
inline constexpr size_t kMaxFileOperations = 1'000'000;

inline constexpr size_t kMaxKeptPayload = size_t{256} << 20;  // bytes

// The run's what-if model, and the fixes that suit the run.
struct PricedRun {
  WhatIf model;
  FixList fixes;
  std::optional<StageBytes> bytes = {};  // where the model is described
};

// The parameters that describe a model and the memory of its devices: flags of what-if.
inline constexpr std::string_view kBytesParameters[] = {"model", "memory", "seq",       "micro_batch_size",
                                                        "tp",    "ep",     "optimizer", "recompute"};

// Reads the bytes of a run's stages from the flags of what-if in `query`; nothing without a description of the model.
// It belongs to a room above this one.
using DescribeBytes = std::function<Result<std::optional<StageBytes>>(const Query& query, const Trace& ran)>;

// Facts about one run's cells, each made once, when it is first asked for, and kept. Thread-safe.
class PipelineView {
 public:
  // `run`, drawn on one clock, and its `timeline`, where there is one, must outlive this. `max_cells` is how many
  // cells the page gets, `max_of_many` how many where there are more and a stage has many ranks.
  explicit PipelineView(const Run& run, const Timeline* timeline = nullptr, size_t max_cells = kMaxPipelineCells,
                        size_t max_of_many = kMaxCellsOfMany, DescribeBytes describe = {})
      : run_(run), timeline_(timeline), max_cells_(max_cells), max_of_many_(max_of_many),
        describe_(std::move(describe)) {}

  const Trace& trace() const { return run_.trace(); }
  const Timeline* timeline() const { return timeline_; }  // nullptr: the run is drawn only as a pipeline
  size_t max_cells() const { return max_cells_; }
  size_t max_of_many() const { return max_of_many_; }
  int64_t zero_ns() const;  // axis_zero_ns() of the trace
  const Run& run() const { return run_; }
  const TheoryRun& theory() const { return theory_of(run_); }
  // Returns prices, the same as those of `stageline what-if`. Errors: those of what_if_of().
  const Result<PricedRun>& what_if() const;
  // Returns the same with the bytes that `query` describes, and within its memory; what_if() where it describes none.
  // The newest is kept. Errors: those above, and those of reading the description.
  Result<std::shared_ptr<const PricedRun>> what_if(const Query& query) const;
  // The answer to /api/pipeline, with the cells of `steps` alone (ascending) where some are named. The newest is kept
  // unless it is larger than kMaxKeptPayload. Expects cells, and some of each of `steps`.
  std::shared_ptr<const std::string> payload(const std::vector<int32_t>& steps = {}) const;

 private:
  const Run& run_;
  const Timeline* timeline_;
  size_t max_cells_, max_of_many_;
  mutable std::once_flag zero_once_, what_if_once_;
  mutable int64_t zero_ns_ = 0;
  mutable std::optional<Result<PricedRun>> what_if_;
  DescribeBytes describe_;
  mutable std::mutex described_mutex_;
  mutable std::shared_ptr<const PricedRun> described_;
  mutable std::string described_by_;  // the flags of described_
  mutable std::mutex payload_mutex_;
  mutable std::shared_ptr<const std::string> payload_;
  mutable std::vector<int32_t> payload_steps_;  // of payload_
};

// Returns the steps to draw if not all can be drawn, in order of usefulness. First comes the longest of the outliers
// (PipelineSums::outliers), or of all steps if there are none. Then comes the usual step, to compare it with, then the
// other outliers, the longest first. O(steps log steps).
std::vector<int32_t> steps_by_worth(const PipelineSums& sums);

// Answers /api/pipeline: everything that the chart draws. Errors: kUnavailable for a run without pipeline cells;
// kNotFound for a step without cells. Also kUsage for `steps` that are not a list or, if there are several, have more
// cells than max_cells().
Result<std::string> pipeline_answer(const PipelineView& view, const Query& query);

// Finds which ranks a page shows first where there are too many to show all: those that hold the others up, as the
// analysis stragglers finds them.
inline constexpr size_t kMaxWorstRanks = 16;  // of one stage

// {ranks: [{rank, beyond_ns, peer_ratio, verdict}]}, the worst first (worst_workers()), at most kMaxWorstRanks of a
// stage. `run` is the run as recorded. Errors: those of the graph of what ran.
Result<std::string> worst_ranks_json(const Run& run);

// Answers the panel of the pipeline page: the times of the run's steps under changes, and all cells of one step. The
// numbers are those of `stageline what-if`. docs/viewer-protocol.md is the contract with the page.

class PipelineView;

// /api/pipeline/fixes: what can be changed, and the fixes that suit the run, with their prices. Errors: kUnavailable
// for a run without pipeline cells. Where nothing can be priced, the answer is unanswered_json().
Result<std::string> pipeline_fixes_answer(const PipelineView& view, const Query& query);
// /api/pipeline/what-if?scale=&schedule=&chunks=&group=&micro_batches=&latency_ns=&fix=&step=&dp=: the price of a world
// and the cells that the step has in it, of one replica if `dp` names it. Errors: those above, and kUsage, which names
// the parameter. O(operations).
Result<std::string> pipeline_what_if_answer(const PipelineView& view, const Query& query);
// The bytes from which a report's page answers the same (packed_model()); "" where nothing can be priced, or where
// there are more than `max_operations` operations.
std::string what_if_model_bytes(const PipelineView& view, size_t max_operations);

}  // namespace stageline
