// JSON: one object with everything that is known: facts about the run, every table, flaws and findings. Values are raw
// (integer nanoseconds, fractions of 1). Layout: docs/exporters/tables.md.
#include "base/output_file.h"
#include "exporters/exporter.h"
#include "exporters/run_meta.h"
#include "exporters/table_text.h"

namespace stageline {
namespace {

void append_place(JsonWriter& json, const Where& where) {
  json.key("first").begin_object().field("file", where.file).maybe("line", where.line > 0, where.line);
  json.maybe("byte", where.byte >= 0, where.byte).end_object();
}

void append_headline(JsonWriter& json, const Headline& headline) {
  json.key("headline").begin_object();
  json.field("title", headline.title).field("lead", headline.lead);
  json.objects("parts", headline.parts, [&](const SpanPart& part) {
    json.field("id", part.id).field("label", part.label).field("share", part.share);
  });
  json.end_object();
}

void append_findings(JsonWriter& json, const std::vector<Finding>& findings) {
  json.objects("findings", findings, [&](const Finding& finding) {
    json.field("id", finding.id).field("weight", finding.weight).field("value", finding.value);
    json.field("value_note", finding.value_note).field("title", finding.title).field("detail", finding.detail);
    json.field("lost_ns", cost_ns(finding)).field("uncertainty_ns", cost_error_ns(finding));
    json.field("saving_ns", std::llround(finding.price.saving_ns));
    json.field("analysis", finding.evidence.analysis).field("table", finding.evidence.table);
  });
}

}  // namespace

Status write_json(const ExportInput& input, const std::string& path) {
  TRY(out, OutputFile::create(path));
  JsonWriter json;
  const auto flush = [&](JsonWriter& writer) { writer.hand_over([&](std::string_view text) { out->write(text); }); };
  json.begin_object().key("meta").begin_object();
  for (const MetaEntry& entry : run_meta(input.trace))
    entry.is_text ? json.field(entry.key, entry.text) : json.field(entry.key, entry.integer);
  json.end_object();
  append_headline(json, input.headline);
  append_findings(json, input.findings);
  json.objects("diagnostics", input.diagnostics.items(), [&](const Diagnostic& diagnostic) {
    json.field("name", diagnostic.name)
        .field("severity", severity_name(diagnostic.severity))
        .field("count", diagnostic.count);
    json.field("message", diagnostic.message.en);
    append_place(json, diagnostic.first);
  });
  json.each("tables", input.tables, [&](const Table& table) { append_table_json(json, table, flush); });
  json.end_object();
  out->write(json.take());
  out->write("\n");
  return out->commit();
}

}  // namespace stageline
