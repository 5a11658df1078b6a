#include "mcp/answer_parts.h"

#include "base/word_files.h"
#include "engine/engine.h"
#include "model/run_extent.h"

namespace stageline::mcp {

const std::vector<Reason>& reasons() {
  static const std::vector<Reason> list = [] {
    std::vector<Reason> all;
    for_each_declared("reasons", [&](std::string_view name, const simdjson::dom::element& texts) {
      all.push_back({std::string(name), declared_text(texts, 0), declared_text(texts, 1)});
    });
    return all;
  }();
  return list;
}

const Reason& reason(std::string_view name) {
  for (const Reason& one : reasons())
    if (name == one.name) return one;
  assert(false && "a reason that is not in the list");
  return reasons().back();
}

const Reason* reason_against(const Analysis& analysis, const Trace& trace) {
  switch (analysis.needs) {
    case AnalysisNeeds::kTwoRuns: return &reason("needs_two_runs");
    case AnalysisNeeds::kFiles: return &reason("needs_files");
    case AnalysisNeeds::kCells:
      if (trace.cells.size() == 0) return &reason("no_pipeline_cells");
      break;
    case AnalysisNeeds::kTorch:
    case AnalysisNeeds::kComputing:
      if (!suits(analysis, trace)) return &reason(is_only_communication(trace) ? "not_recorded" : "no_profiler_slices");
      break;
    case AnalysisNeeds::kCalls:
      if (!suits(analysis, trace)) return &reason("no_flight_recorder");
      break;
    case AnalysisNeeds::kRequests:
    case AnalysisNeeds::kXla:
    case AnalysisNeeds::kAllocator:
    case AnalysisNeeds::kNodes:
    case AnalysisNeeds::kExperts:
      if (!suits(analysis, trace)) return &reason("not_recorded");
      break;
  }
  return suits(analysis, trace) ? nullptr : &reason("not_in_this_run");
}

const Reason* reason_of(const Error& error, const Trace& trace, const Analysis* analysis) {
  // Errors that say why a run cannot answer are named after the reason: "refused.no_schedule.waterfall".
  if (constexpr std::string_view kRefused = "refused."; error.name.starts_with(kRefused)) {
    const std::string_view name = error.name.substr(kRefused.size());
    return &reason(name.substr(0, name.find('.')));
  }
  switch (error.code) {
    case ErrorCode::kLimit: return &reason("limit");
    case ErrorCode::kUnavailable:
    case ErrorCode::kBadInput: break;
    default: return nullptr;
  }
  if (analysis) {
    const Reason* const against = reason_against(*analysis, trace);
    if (against) return against;
  }
  if (!analysis && trace.cells.size() == 0) return &reason("no_pipeline_cells");
  return error.code == ErrorCode::kBadInput ? &reason("not_recorded") : &reason("not_in_this_run");
}

const Reason* reason_empty(std::string_view table, const Trace& trace) {
  if (table == "memory") return &reason("not_recorded:memory");
  if (table == "counters") return &reason("not_recorded:counters");
  if (table == "collectives") return &reason("not_recorded:collectives");
  if (table == "kernels" || table == "gaps") return &reason("not_recorded:device_work");
  if (table == "messages")
    return trace.cells.size() == 0 ? &reason("no_pipeline_cells") : &reason("not_recorded:messages");
  if (table == "cells" || table == "cell_links") return &reason("no_pipeline_cells");
  if (table == "steps") return &reason("not_recorded:steps");
  if (table == "slices") return &reason("no_profiler_slices");
  return nullptr;
}

std::string canonical_json(const Value& value, int depth) {
  if (depth > 64) return "null";
  switch (value.tag()) {
    case ValueTag::kBool: return *value.boolean() ? "true" : "false";
    case ValueTag::kInteger:
    case ValueTag::kUnsigned:
      if (const auto whole = value.integer()) return std::to_string(*whole);
      return json_double(value.real().value_or(0));
    case ValueTag::kReal: return json_double(value.real().value_or(0));
    case ValueTag::kText: {
      std::string out;
      append_json_string(out, value.text());
      return out;
    }
    case ValueTag::kList: {
      std::string out = "[";
      for (size_t i = 0; i < value.size(); ++i) out += (i > 0 ? "," : "") + canonical_json(value.item(i), depth + 1);
      return out + "]";
    }
    case ValueTag::kDict: {
      std::vector<std::pair<std::string, std::string>> members;
      for (size_t i = 0; i < value.size(); ++i)
        members.emplace_back(canonical_json(value.key(i), depth + 1), canonical_json(value.item(i), depth + 1));
      sort_stably(members, {}, &std::pair<std::string, std::string>::first);
      std::string out = "{";
      for (const auto& [key, text] : members) out += (out.size() > 1 ? "," : "") + key + ":" + text;
      return out + "}";
    }
    default: return "null";
  }
}

std::string clean_text(std::string_view text, size_t max) {
  const std::string valid = valid_utf8(text);
  std::string out;
  for (size_t i = 0; i < valid.size(); ++i) {
    const auto byte = static_cast<unsigned char>(valid[i]);
    const auto next = [&](size_t k) { return i + k < valid.size() ? static_cast<unsigned char>(valid[i + k]) : 0u; };
    // These are U+0080 to U+009F, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069.
    const bool c1 = byte == 0xc2 && next(1) < 0xa0;
    const bool marks =
        byte == 0xe2 &&
        ((next(1) == 0x80 && (next(2) == 0x8e || next(2) == 0x8f || (next(2) >= 0xaa && next(2) <= 0xae))) ||
         (next(1) == 0x81 && next(2) >= 0xa6 && next(2) <= 0xa9));
    if (c1 || marks) {
      out += "\xef\xbf\xbd";
      i += c1 ? 1 : 2;
    } else {
      out += byte < 0x20 || byte == 0x7f ? ' ' : valid[i];
    }
  }
  if (out.size() <= max) return out;
  const size_t head = character_start(out, max * 2 / 3), tail = character_start(out, out.size() - max / 3);
  return out.substr(0, head) + "…" + out.substr(tail);
}

std::string digest(std::string_view text) {
  uint64_t hash = 14695981039346656037ull;  // FNV-1a; the digits are a name, not a secret
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  std::string out;
  for (int shift = 44; shift >= 0; shift -= 4) out += "0123456789abcdef"[hash >> shift & 15];
  return out;
}

void append_cell(JsonWriter& json, const sql::SqlValue& value) {
  if (const auto* text = std::get_if<std::string_view>(&value)) json.value(clean_text(*text));
  else if (const auto* whole = std::get_if<int64_t>(&value)) json.value(*whole);
  else if (const auto* real = std::get_if<double>(&value)) json.value(*real);
  else json.null();
}

void CappedRows::begin(const std::vector<sql::ResultColumn>& all) {
  columns.begin_array();
  for (const sql::ResultColumn& c : all)
    columns.begin_object().field("name", clean_text(c.name)).field("unit", c.unit).end_object();
  columns.end_array();
  rows.begin_array();
}

bool CappedRows::row(const std::vector<sql::SqlValue>& values) {
  JsonWriter one;
  one.begin_array();
  for (const sql::SqlValue& value : values) {
    append_cell(one, value);
    any_value |= !std::holds_alternative<std::monostate>(value);
  }
  one.end_array();
  full = static_cast<int64_t>(rows.text().size() + one.text().size()) > max_chars;
  if (full) return false;
  rows.raw(one.text());
  ++count;
  return true;
}

void ObjectRows::begin(const std::vector<sql::ResultColumn>& all) {
  for (const sql::ResultColumn& c : all) names.push_back(c.name);
}

bool ObjectRows::row(const std::vector<sql::SqlValue>& values) {
  ++count;
  if (count > max || static_cast<int64_t>(rows.text().size()) > max_chars) return true;
  rows.begin_object();
  for (size_t c = 0; c < values.size(); ++c) {
    if (std::holds_alternative<std::monostate>(values[c])) continue;
    rows.key(names[c]);
    append_cell(rows, values[c]);
  }
  rows.end_object();
  return true;
}

}  // namespace stageline::mcp
