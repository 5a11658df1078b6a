// Runs all code that uses a Trace of any reader: layout, links, sums, findings, tables and one exporter.
#pragma once

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "diagnosis/causes/findings.h"
#include "engine/engine.h"
#include "exporters/exporter.h"
#include "pipeline/cells/find_cells.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/cells/rank_layout.h"
#include "pipeline/sums/pipeline_sums.h"
#include "pipeline/sums/stage_costs.h"
#include "server/page/page_file.h"
#include "trace_invariants.h"

namespace stageline::fuzz {

inline void check_json(const std::string& path) {
  simdjson::dom::parser parser;
  const auto parsed = parser.load(path);
  FUZZ_CHECK(!parsed.error(), path + ": " + simdjson::error_message(parsed.error()));
}

inline void export_with(Trace& trace, const TempFolder& folder, const Exporter& exporter,
                        const ExportOptions& options) {
  const std::string name = exporter.name;
  if (name == "png" || name == "pdf" || name == "sqlite")
    return;  // libraries' work, and slow: svg and json stand for them
  const bool is_json = name == "chrome" || name == "json";
  const std::string path = is_json || exporter.one_file_per_rank ? folder / "out.json" : "/dev/null";
  Diagnostics notes = trace.diagnostics;
  const Status written = export_run(std::make_shared<const Run>(trace), notes, path, name, options, {});
  if (is_json && written) check_json(path);
}

// `how` and `exporter`: bytes of the input that choose.
inline void look_at(Trace& trace, const TempFolder& folder, uint8_t how, uint8_t exporter,
                    Places places = Places::kChecked) {
  check_trace(trace, places);
  RankLayoutOptions layout;
  layout.pp = (how >> 1) & 3;
  if (trace.cells.size() == 0) {  // cells of profiler traces, wherever they can come from
    static const CellRules rules = shipped_cell_rules();
    find_torch_cells(trace, rules, {(how & 64) ? CellSource::kInferred : CellSource::kAuto, layout, infer_cells});
    for (size_t i = 0; i < trace.cells.size(); ++i)
      FUZZ_CHECK(trace.cells.dur_ns(i) >= 0, "a cell ends before it starts");
  }
  infer_layout(trace, layout);
  std::vector<bool> has_cells(trace.parts.size());  // a rank without cells may have no place in the pipeline
  for (const uint32_t part : trace.cells.part) has_cells[part] = true;
  for (size_t p = 0; p < trace.parts.size(); ++p)
    FUZZ_CHECK(!has_cells[p] || (trace.parts[p].stage >= 0 && trace.parts[p].dp >= 0), trace.parts[p].source);
  link_cells(trace);
  check_trace(trace, places);
  const PipelineSums sums = pipeline_sums(trace);
  for (const StepSums& step : sums.steps) FUZZ_CHECK(step.span_ns() >= step.pipeline_span_ns(), "step");
  for (const RankSums& rank : sums.ranks)
    FUZZ_CHECK(rank.busy_ns >= 0 && rank.inner_bubble_ns >= 0 && rank.span_bubble_ns >= rank.inner_bubble_ns, "rank");
  for (const StageCost& cost : stage_costs(trace))
    FUZZ_CHECK(cost.count > 0 && cost.mean_ns >= 0 && cost.p50_ns <= cost.p95_ns, "cost");
  const Findings findings = find_findings(Run(trace));
  FUZZ_CHECK(!findings.headline.title.empty() && !findings.headline.title.zh.empty(), "headline");
  for (const Finding& finding : findings.list) {
    FUZZ_CHECK(std::isfinite(finding.weight) && finding.weight >= 0 && finding.weight <= 1.001, finding.id);
    FUZZ_CHECK(!finding.title.empty() && !finding.title.zh.empty(), finding.id);
  }
  simdjson::dom::parser parser;
  const std::string info = info_json(trace);
  FUZZ_CHECK(!parser.parse(info).error(), info);
  ExportOptions options;
  options.lang = (how & 8) ? "zh" : "en";
  options.dark = (how & 16) != 0;
  export_with(trace, folder, *exporters()[exporter % exporters().size()], options);
}

}  // namespace stageline::fuzz
