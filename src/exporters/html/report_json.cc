#include "exporters/html/report_json.h"

#include <algorithm>
#include <cmath>

#include "base/json_writer.h"
#include "base/number.h"
#include "exporters/table_words.h"
#include "model/palette_json.h"
#include "model/run_extent.h"

namespace stageline {
namespace {

constexpr size_t kMinRowsForRuns = 64;

// What the page draws as a curve, and nobody reads row by row.
bool is_series(const Table& table) {
  return table.name().ends_with("-over-time") || table.name() == "memory-curve" || table.name() == "memory-categories";
}

void write_both(JsonWriter& json, std::string_view name, const std::string& en, const std::string& zh) {
  json.key(name).begin_array().value(en).value(zh).end_array();
}

void write_parts(JsonWriter& json, const Trace& trace, const CellPayload& payload) {
  json.key("parts").begin_array();
  for (size_t i = 0; i < trace.parts.size(); ++i) {
    const Part& part = trace.parts[i];
    json.begin_object().field("rank", part.rank).field("stage", part.stage).field("dp", part.dp);
    json.field("machine", part.machine).field("device", part.device);
    json.field("machineName", part.machine_name).field("source", part.source);
    json.field("zero", std::to_string(payload.part_zero_ns[i])).end_object();
  }
  json.end_array();
}

// `origin_ns`: what times count from, as the axis of the chart does.
void write_value(JsonWriter& json, const Table& table, size_t row, size_t column, int64_t origin_ns) {
  if (table.is_null(row, column)) {
    json.null();
    return;
  }
  switch (table.columns()[column].type) {
    case ColumnType::kInteger:
    case ColumnType::kDuration: json.value(table.integer(row, column)); break;
    case ColumnType::kTime: json.value(sum_or_limit(table.integer(row, column), -origin_ns)); break;
    case ColumnType::kText: json.value(table.text(row, column)); break;
    default:
      if (std::isfinite(table.real(row, column)))
        json.value(table.real(row, column));
      else
        json.null();
  }
}

// Series say the same rank, stream and length thousands of times: such a column becomes {"v": values, "n": how
// often each in a row}.
void write_column(JsonWriter& json, const Table& table, size_t column, size_t rows, int64_t origin_ns) {
  std::vector<size_t> firsts;  // of each run of equal values
  for (size_t r = 0; r < rows; ++r)
    if (r == 0 || table.raw_text(r, column) != table.raw_text(r - 1, column)) firsts.push_back(r);
  if (rows < kMinRowsForRuns || firsts.size() * 4 > rows) {
    json.begin_array();
    for (size_t r = 0; r < rows; ++r) write_value(json, table, r, column, origin_ns);
    json.end_array();
    return;
  }
  json.begin_object().key("v").begin_array();
  for (const size_t r : firsts) write_value(json, table, r, column, origin_ns);
  json.end_array().key("n").begin_array();
  for (size_t i = 0; i < firsts.size(); ++i)
    json.value(static_cast<int64_t>((i + 1 < firsts.size() ? firsts[i + 1] : rows) - firsts[i]));
  json.end_array().end_object();
}

void write_table(JsonWriter& json, const Table& table, size_t max_rows, int64_t origin_ns) {
  const size_t shown = std::min(table.row_count(), max_rows);
  json.begin_object().field("name", table.name()).field("title", table.title());
  json.field("rowCount", static_cast<int64_t>(table.row_count()));
  json.key("columns").begin_array();
  for (const ColumnSpec& spec : table.columns()) {
    json.begin_object().field("name", spec.name).field("title", spec.title).field("type", column_type_name(spec.type));
    json.field("unit", shown_unit(spec.type)).field("help", spec.help).end_object();
  }
  json.end_array().key("values").begin_array();
  for (size_t c = 0; c < table.columns().size(); ++c) write_column(json, table, c, shown, origin_ns);
  json.end_array().end_object();
}

void write_headline(JsonWriter& json, const Headline& headline) {
  json.key("headline").begin_object();
  write_both(json, "title", headline.title_en, headline.title_zh);
  write_both(json, "lead", headline.lead_en, headline.lead_zh);
  json.key("parts").begin_array();
  for (const SpanPart& part : headline.parts) {
    json.begin_object().field("id", part.id).field("share", part.share);
    write_both(json, "label", part.label_en, part.label_zh);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_findings(JsonWriter& json, const std::vector<Finding>& findings, const std::string& paths) {
  json.key("findings").begin_array();
  for (const Finding& finding : findings) {
    json.begin_object().field("id", finding.id).field("weight", finding.weight).field("value", finding.value);
    write_both(json, "note", finding.value_note_en, finding.value_note_zh);
    write_both(json, "title", finding.title_en, finding.title_zh);
    write_both(json, "detail", finding.detail_en, finding.detail_zh);
    if (finding.price.saving_ns > 0) {
      json.field("lost_ns", static_cast<int64_t>(std::llround(finding.lost_ns_per_step)));
      json.field("uncertainty_ns", static_cast<int64_t>(std::llround(finding.uncertainty_ns)));
      json.field("saving_ns", static_cast<int64_t>(std::llround(finding.price.saving_ns)));
    }
    const FindingEvidence& at = finding.evidence;
    if (!at.analysis.empty())
      json.field("analysis", at.analysis)
          .field("table", at.table)
          .field("command", "stageline analyze " + at.analysis + (paths.empty() ? " RUN" : paths) +
                                (at.table.empty() ? "" : " --table " + at.table));
    json.end_object();
  }
  json.end_array();
}

void write_flaws(JsonWriter& json, const Diagnostics& diagnostics) {
  json.key("flaws").begin_array();
  for (const Diagnostic& item : diagnostics.items()) {
    json.begin_object().field("name", item.name).field("severity", severity_name(item.severity));
    json.field("message", item.message).field("count", item.count).field("where", item.first.text()).end_object();
  }
  json.end_array();
}

// Steps are those whose cells may be embedded; ends count from the zero that all parts share.
void write_theory(JsonWriter& json, const Trace& trace, const Theory& theory, const CellPayload& payload) {
  json.key("theory").begin_object().field("schedule", theory.schedule).field("byRank", theory.by_rank);
  json.key("outliers").begin_array();
  for (const int32_t step : theory.outliers) json.value(int64_t{step});
  json.end_array().key("steps").begin_array();
  const int32_t last = payload.cell_count > 0 ? trace.cells.step[payload.cell_count - 1] : kUnknown;
  for (const TheoryStep& step : theory.steps) {
    if (theory.by_rank || payload.part_zero_ns.empty() || step.step > last) break;
    json.begin_array().value(int64_t{step.step}).value(int64_t{step.dp});
    json.value(step.end_ns - payload.part_zero_ns.front()).end_array();
  }
  json.end_array().end_object();
}

void write_cells(JsonWriter& json, const Trace& trace, const CellPayload& payload) {
  json.key("cells").begin_object();
  json.field("count", static_cast<int64_t>(payload.cell_count));
  json.field("total", static_cast<int64_t>(trace.cells.size()));
  json.field("steps", static_cast<int64_t>(step_ranges(trace.cells).size()));
  json.key("columns").begin_array();
  for (const PayloadColumn& column : payload.columns) {
    json.begin_object().field("name", column.name).field("type", column.type);
    json.field("offset", static_cast<int64_t>(column.offset_bytes));
    json.field("count", static_cast<int64_t>(column.count)).end_object();
  }
  json.end_array().key("names").begin_array();
  for (const std::string_view name : payload.names) json.value(name);
  json.end_array().end_object();
}

void write_clocks(JsonWriter& json, const Trace& trace) {
  json.field("clock", clock_name(trace.clock));
  const ClockSummary clocks = clock_summary(trace);
  if (clocks.by.empty()) return;
  json.key("clockBy").begin_array();
  for (const ClockEvidence one : clocks.by) json.value(evidence_name(one));
  json.end_array();
  if (clocks.error_ns >= 0) json.field("clockErrorNs", static_cast<int64_t>(std::llround(clocks.error_ns)));
  if (clocks.half_ns >= 0) json.field("clockHalfNs", clocks.half_ns);
}

}  // namespace

std::string report_json(const ExportInput& input, const CellPayload& payload, const HtmlLimits& limits) {
  const Trace& trace = input.trace;
  JsonWriter json;
  json.begin_object();
  json.field("version", STAGELINE_VERSION).field("title", input.options.title);
  json.field("lang", input.options.lang).field("dark", input.options.dark);
  json.field("format", trace.format).field("description", trace.description);
  if (trace.context_parallel > 1) json.field("contextParallel", trace.context_parallel);
  write_clocks(json, trace);
  json.field("laidEndToEnd", trace.steps_laid_end_to_end);
  json.field("slices", static_cast<int64_t>(trace.slice_count()));
  write_palette(json);
  write_headline(json, input.headline);
  write_findings(json, input.findings, input.options.paths);
  write_parts(json, trace, payload);
  write_cells(json, trace, payload);
  if (input.theory && input.options.ghosts != Ghosts::kOff && input.theory().known())
    write_theory(json, trace, input.theory(), payload);
  const int64_t origin_ns = trace.cells.size() > 0 ? axis_zero_ns(trace) : 0;
  json.key("tables").begin_array();
  for (const Table& table : input.tables)
    write_table(json, table, is_series(table) ? limits.series_rows : limits.table_rows,
                is_series(table) || trace.clock == ClockState::kPerRank ? 0 : origin_ns);
  json.end_array();
  write_flaws(json, trace.diagnostics);
  write_sentences(json, input.tables, trace.diagnostics, limits.table_rows);
  json.end_object();
  return json.take();
}

}  // namespace stageline
