// Tables of the run as a whole: ranks, findings, flaws, and facts about the run.
#include "diagnosis/explain_json.h"
#include "engine/engine.h"
#include "engine/model_tables.h"
#include "sql/run_tables.h"

namespace stageline::sql {
namespace {

Table ranks_of(const RunData& data) {
  const Table devices = devices_table(data.trace());
  Table table("ranks", "Ranks", devices.columns());
  const int start = devices.column_index("start_ns"), end = devices.column_index("end_ns");
  for (size_t p = 0; p < data.trace().parts.size(); ++p) {
    if (!data.has_part(p)) continue;
    std::vector<Table::Value> row;
    for (uint32_t c = 0; c < devices.columns().size(); ++c) {
      if (devices.column(c).index() == 2) {
        row.emplace_back(devices.text(p, c));
        continue;
      }
      int64_t value = devices.integer(p, c);
      if ((static_cast<int>(c) == start || static_cast<int>(c) == end) && value != kNullInteger)
        value = data.time_ns(p, value);
      row.emplace_back(value);
    }
    table.add_row(std::move(row));
  }
  return table;
}

Table findings_of(const RunData& data) {
  Table table(declared_table("sql/findings"));
  if (data.trace().parts.empty()) return table;
  const Explanation& explanation = explained_run(*data.run());
  for (const Finding& f : explanation.findings) {
    const FindingEvidence shown = evidence_of(f);
    std::string evidence = shown.analysis;
    if (!shown.table.empty()) evidence += "__" + shown.table;
    for (char& c : evidence)
      if (c == '-') c = '_';
    table.add_row({static_cast<int64_t>(table.row_count() + 1), f.id, key_of(f), f.title.en, f.detail.en, f.value,
                   cost_ns(f).value_or(kNullInteger), cost_error_ns(f).value_or(kNullInteger),
                   whole_ns(f.price.saving_ns), f.price.fix.en, f.price.assumption.en, finding_command(f, data.paths()),
                   f.step.value_or(kNullInteger), f.rank ? int64_t{*f.rank} : kNullInteger, evidence});
  }
  return table;
}

Table finding_places_of(const RunData& data) {
  Table table(declared_table("sql/finding_places"));
  if (data.trace().parts.empty()) return table;
  const Explanation& explanation = explained_run(*data.run());
  for (size_t i = 0; i < explanation.findings.size(); ++i) {
    const Finding& f = explanation.findings[i];
    const auto add = [&](const char* relation, const Place& p) {
      const std::vector<int32_t> ranks = p.ranks.empty() ? std::vector<int32_t>{kUnknown} : p.ranks;
      for (const int32_t rank : ranks)
        table.add_row({static_cast<int64_t>(i + 1), std::string(relation), std::string(place_kind_name(p.kind)),
                       known_integer(p.stage), known_integer(p.from_stage), int64_t{p.both_ways},
                       known_integer(p.chunk), known_integer(p.replica), known_integer(p.first), known_integer(p.last),
                       p.cells == CellKind::kOther ? std::string() : std::string(kind_code(p.cells)),
                       known_integer(rank), p.name});
    };
    for (const Place& place : f.places) add("and", place);
    for (const Place& place : f.or_else) add("or", place);
  }
  return table;
}

Table flaws_of(const RunData& data) { return diagnostics_table(data.trace().diagnostics); }

Table meta_of(const RunData& data) {
  Table table(declared_table("sql/meta"));
  const Trace& t = data.trace();
  const auto add = [&](const char* key, std::string value) {
    table.add_row({kNullInteger, std::string(key), std::move(value)});
  };
  add("format", t.format);
  add("writer", t.writer);
  add("description", t.description);
  add("clock", std::string(clock_name(t.clock)));
  add("epoch_ns", std::to_string(data.epoch_ns()));
  add("ranks", std::to_string(t.parts.size()));
  add("slices", std::to_string(t.slice_count()));
  add("cells", std::to_string(t.cells.size()));
  for (size_t p = 0; p < t.parts.size(); ++p)
    if (data.has_part(p))
      for (const MetaField& field : t.parts[p].metadata)
        table.add_row({int64_t{t.parts[p].rank}, field.key, field.json});
  return table;
}

}  // namespace

void add_run_tables(const std::shared_ptr<const RunData>& data, std::vector<std::shared_ptr<const TableSource>>& out) {
  out.insert(out.end(), {run_table(data, "ranks", ranks_of), run_table(data, "findings", findings_of),
                         run_table(data, "finding_places", finding_places_of), run_table(data, "diagnostics", flaws_of),
                         run_table(data, "meta", meta_of)});
}

}  // namespace stageline::sql
