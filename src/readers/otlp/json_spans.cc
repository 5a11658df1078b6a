// OTLP as JSON: {"resourceSpans":[{"resource":{…},"scopeSpans":[{"scope":{…},"spans":[{…}]}]}]}, once or once a line.
// 64-bit numbers are quoted, and ids are hexadecimal.
#include "base/json_events.h"
#include "base/json_tree.h"
#include "readers/otlp/problems.h"
#include "readers/otlp/span_file.h"

namespace stageline::otlp {
namespace {

// The low 64 bits of an id; 0 where it is none.
uint64_t hexadecimal(std::string_view digits) {
  constexpr size_t kMaxDigits = 16;
  uint64_t id = 0;
  const char* const end = digits.data() + digits.size();
  std::from_chars(end - std::min(digits.size(), kMaxDigits), end, id, 16);
  return id;
}

// The value of {"intValue": "8"} as text; "" for a list or map.
std::string value_text(Value any) {
  const Value value = any.item(0);
  if (const auto flag = value.boolean()) return *flag ? "true" : "false";
  if (!value.text().empty()) return std::string(value.text());
  if (const auto integer = value.integer()) return std::to_string(*integer);
  return value.real() ? json_double(*value.real()) : "";
}

template <class Set> void read_attributes(Value list, Set set) {
  for (size_t i = 0; i < list.size(); ++i) set(list.item(i)["key"].text(), value_text(list.item(i)["value"]));
}

void read_span(Value object, int64_t offset, SpanSink& sink) {
  if (object.is_cut()) return;  // the damage is counted
  RawSpan raw;
  raw.name = object["name"].text();
  raw.start_ns = object["startTimeUnixNano"].integer();
  raw.end_ns = object["endTimeUnixNano"].integer();
  raw.span.id = hexadecimal(object["spanId"].text());
  raw.span.trace = hexadecimal(object["traceId"].text());
  read_attributes(object["attributes"], [&](auto key, const auto& value) { raw.set(key, value); });
  sink.take(std::move(raw), offset);
}

void read_document(std::string_view text, int64_t offset, SpanSink& sink) {
  const Result<JsonTree> json = parse_json_tree(text, "");
  if (!json || json->broken_at >= 0) sink.lose(problem::otlp_damaged_text, offset + (json ? json->broken_at : 0));
  if (!json) return;
  const Value document = json->tree.root(), all = document["resourceSpans"];
  const bool other = !document["resourceMetrics"].is_none() || !document["resourceLogs"].is_none();
  if (other) sink.lose(problem::otlp_other_signals, offset);
  if (all.is_none() && !other) sink.lose(problem::otlp_bad_span_object, offset);
  for (size_t i = 0; i < all.size(); ++i) {
    Resource resource;
    read_attributes(all.item(i)["resource"]["attributes"],
                    [&](auto key, const auto& value) { set_attribute(resource, key, value); });
    sink.begin_resource(std::move(resource));
    Value scopes = all.item(i)["scopeSpans"];
    if (scopes.is_none()) scopes = all.item(i)["instrumentationLibrarySpans"];  // its name until 2022
    for (size_t k = 0; k < scopes.size(); ++k) {
      const Value spans = scopes.item(k)["spans"];
      for (size_t s = 0; s < spans.size(); ++s) read_span(spans.item(s), offset, sink);
    }
  }
}

}  // namespace

void read_json(std::string_view text, SpanSink& sink) {
  for (size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at)) {
    size_t end = after_closing_brace(text, at);
    // Where a writer was stopped within a line, whole ones may follow.
    if (end == std::string_view::npos) end = std::min(text.find("\n{\"resourceSpans\"", at), text.size());
    read_document(text.substr(at, end - at), static_cast<int64_t>(at), sink);
    at = end;
  }
}

}  // namespace stageline::otlp
