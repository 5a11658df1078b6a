// The report: the viewer and what it shows of a run in one file, which opens from disk without a network.
//
//  <html data-command="…">          the command that shows what the file does not hold
//  <noscript>                       headline and findings, for readers without scripts
//  <script data-answer="run">       the answer to /api/run; likewise for explain, answers, pipeline, pipeline/fixes
//  …                                and clocks, and "answer NAME" for every analysis; with a second run also
//                                   "compare", "answer trace-diff" and "pipeline other"
//  <script data-timeline="head">    names and lanes; "links"
//  <script>                         the viewer's own, which runs while the browser reads what follows
//  <script data-lanes="0-15">       the slices of these lanes; several blocks, in the order of lanes (page_slices.h)
//  <script data-what-if="program">  what-if as WebAssembly (src/wasm), and "model": the run's steps (packed_model.h)
//
// Blocks are gzip in base64, so that no name in a trace can act as markup. The page's Content-Security-Policy lets it
// fetch nothing, and run nothing except its script (in the page or in a worker) and, for a run with a pipeline, that
// program.
#pragma once

#include "diagnosis/causes/findings.h"
#include "engine/engine.h"
#include "exporters/exporter.h"
#include "facts/run.h"

namespace stageline {

inline constexpr int64_t kMaxPageSlices = 50'000'000;  // a browser keeps some 30 bytes for each

struct PageOptions {
  std::string lang = "en";         // used where the reader has chosen none
  bool dark = false;               // the same; otherwise the reader's system decides
  std::string title;               // what the page calls the run
  std::vector<std::string> paths;  // what the user typed
  std::string command;             // "stageline view PATHS"
  std::string plan;                // the answer to /api/plan that the page carries; "": none
  Ghosts ghosts = Ghosts::kAuto;   // whether theory is drawn under the pipeline's rows
  // With more slices the page has only the pipeline's cells, and says what shows the rest.
  uint64_t max_slices = 5'000'000;
};

// A second run, which the page compares with the first.
struct ComparedRun {
  std::string title;
  std::vector<std::string> paths;
  Trace trace;  // as recorded
};

struct WrittenPage {
  size_t ranks = 0, cells = 0, slices = 0;  // drawn
  int32_t steps = 0;
  Findings findings;      // what the page says: explain()'s list first
  double lost_share = 0;  // of the mean step: what the causes cost together
};

// The output is deterministic: the same input gives the same bytes. Analyses run one by one on the recorded run, and
// each table is limited to kPageRows. Cached facts of the run are released once it is drawn from a copy and has no
// other user. `notes` as of export_trace(). Errors: kIo. A trace that is given away is drawn without a copy. Facts of a
// large one are computed again for the next part of the page instead of kept.
inline constexpr size_t kPageRows = 2000, kPageSeriesRows = 100'000;
Result<WrittenPage> write_page_file(std::shared_ptr<const Run> run, Diagnostics& notes, const std::string& path,
                                    const PageOptions& options, std::unique_ptr<ComparedRun> other = nullptr);
Result<WrittenPage> write_page_file(Trace&& recorded, Diagnostics& notes, const std::string& path,
                                    const PageOptions& options, std::unique_ptr<ComparedRun> other = nullptr);

// export_trace() for every kind of output: those that exporters write, and the page, which the viewer writes.

// Does the same as export_trace(); `inputs` is what the user typed to name the run.
Status export_run(const std::shared_ptr<const Run>& run, Diagnostics& notes, const std::string& path,
                  std::string_view to, const ExportOptions& options, const std::vector<std::string>& inputs,
                  std::vector<std::string>* written = nullptr);

}  // namespace stageline
