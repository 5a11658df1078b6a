#include "server/live/live_run.h"

namespace stageline {
namespace {

// A label's value in Prometheus' format.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? "\\n" : std::string(1, c);
  }
  return out;
}

void write_attributes(JsonWriter& json, const Metrics::Labels& labels) {
  json.key("attributes").begin_array();
  for (const auto& [key, text] : labels)
    json.begin_object()
        .field("key", key)
        .key("value")
        .begin_object()
        .field("stringValue", valid_utf8(text))
        .end_object()
        .end_object();
  json.end_array();
}

}  // namespace

void Metrics::add(const char* name, const char* type, const char* help, double value, Labels labels) {
  if (metrics_.empty() || metrics_.back().name != name) metrics_.push_back({name, type, help, {}});
  metrics_.back().samples.push_back({value, std::move(labels)});
}

std::string Metrics::prometheus() const {
  std::string out;
  for (const Metric& metric : metrics_) {
    out += "# HELP " + metric.name + " " + metric.help + "\n# TYPE " + metric.name + " " + metric.type + "\n";
    for (const Sample& sample : metric.samples) {
      std::string labels;
      for (const auto& [key, text] : sample.labels)
        labels += (labels.empty() ? "" : ",") + key + "=\"" + escaped(text) + "\"";
      out += metric.name + (labels.empty() ? "" : "{" + labels + "}") + " " + json_double(sample.value) + "\n";
    }
  }
  return out;
}

std::string Metrics::otlp(const std::string& run, int64_t begin_ns, int64_t now_ns) const {
  JsonWriter json;
  json.begin_object().key("resourceMetrics").begin_array().begin_object().key("resource").begin_object();
  write_attributes(json, {{"service.name", "stageline"}, {"service.instance.id", run}});
  json.end_object().key("scopeMetrics").begin_array().begin_object();
  json.key("scope").begin_object().field("name", "stageline").end_object().key("metrics").begin_array();
  for (const Metric& metric : metrics_) {
    const bool counts = metric.type == "counter";
    json.begin_object().field("name", metric.name).field("description", metric.help);
    json.field("unit", metric.name.ends_with("_seconds") ? "s" : "1").key(counts ? "sum" : "gauge").begin_object();
    if (counts) json.field("aggregationTemporality", 2).field("isMonotonic", true);  // 2: since the beginning
    json.key("dataPoints").begin_array();
    for (const Sample& sample : metric.samples) {
      json.begin_object().field("timeUnixNano", std::to_string(now_ns));
      if (counts) json.field("startTimeUnixNano", std::to_string(begin_ns));
      json.field("asDouble", sample.value);
      write_attributes(json, sample.labels);
      json.end_object();
    }
    json.end_array().end_object().end_object();
  }
  return json.end_array().end_object().end_array().end_object().end_array().end_object().take();
}

}  // namespace stageline
