#include <simdjson.h>

#include "base/json_events.h"
#include "base/json_token.h"
#include "readers/kineto/chunk_parser.h"

namespace stageline::kineto {
namespace {

namespace od = simdjson::ondemand;
constexpr int kMicroseconds = 3;

enum class Scalar : uint8_t { kText, kOther, kBroken };

// Returns a scalar as text: numbers as written, strings unescaped, null as "". Objects and arrays are kOther, except
// that arrays that are kept are returned as text.
Scalar scalar(od::value& value, std::string_view json, std::string_view& out, bool keep_array = false) {
  const std::string_view token = raw_token(value, json);
  if (token.empty()) return Scalar::kBroken;
  if (token[0] == '"') return value.get_string().get(out) == simdjson::SUCCESS ? Scalar::kText : Scalar::kBroken;
  if (token[0] == '[' && keep_array) {
    od::array array;
    if (value.get_array().get(array) || array.raw_json().get(out)) return Scalar::kBroken;
    out = trim(out);  // simdjson's token reaches to the next one
    return Scalar::kText;
  }
  if (token[0] == '[' || token[0] == '{') return Scalar::kOther;
  out = token == "null" ? std::string_view() : token;
  return Scalar::kText;
}

}  // namespace

bool is_field(std::string_view key) {
  for (const std::string_view known : {"ph", "cat", "name", "pid", "tid", "id", "id2", "bp", "ts", "dur"})
    if (key == known) return true;
  return false;
}

bool set_field(std::string_view key, std::string_view text, rows::Event& event) {
  if (key == "ph") {
    event.phase = text.empty() ? '\0' : text[0];
  } else if (key == "cat") {
    event.has_cat = true;
    event.cat = text;
  } else if (key == "name") {
    event.name = text;
  } else if (key == "pid") {
    event.pid = text;
  } else if (key == "tid") {
    event.tid = text;
  } else if (key == "id" || key == "id2") {
    event.id = text;
  } else if (key == "bp") {
    event.binding = text.empty() ? '\0' : text[0];
  } else if (key == "ts" || key == "dur") {
    if (text.empty()) return true;  // the value was null
    const auto ns = parse_decimal_ns(text, kMicroseconds);
    if (!ns) return false;
    if (key == "ts") {
      event.has_ts = true;
      event.ts_ns = *ns;
      event.fractional_ts = text.find_first_of(".eE") != std::string_view::npos;
    } else {
      event.has_dur = true;
      event.dur_ns = *ns;
    }
  }
  return true;
}

struct EventParser::Impl {
  od::parser parser;
};
EventParser::EventParser() : impl_(std::make_unique<Impl>()) {}
EventParser::~EventParser() = default;

Fault EventParser::parse(std::string_view text, rows::Event& event) {
  event = rows::Event();
  event.fractional_ts = true;  // holds until a whole ts is seen
  od::document document;
  od::object object;
  if (impl_->parser.iterate(text.data(), text.size(), text.size() + kJsonPaddingBytes).get(document) ||
      document.get_object().get(object))
    return Fault::kMalformed;
  Fault fault = Fault::kNone;
  for (auto field : object) {
    std::string_view key;
    od::value value;
    if (field.unescaped_key().get(key) || field.value().get(value)) return Fault::kMalformed;
    if (key == "args") {
      od::object args;
      if (value.get_object().get(args)) continue;
      for (auto arg : args) {
        std::string_view name, arg_text;
        od::value arg_value;
        if (arg.unescaped_key().get(name) || arg.value().get(arg_value)) return Fault::kMalformed;
        const rows::ArgKey known = rows::arg_key(name);
        if (known == rows::ArgKey::kNone) continue;
        const Scalar kind = scalar(arg_value, text, arg_text, rows::arg_field(known).array);
        if (kind == Scalar::kBroken) return Fault::kMalformed;
        if (kind == Scalar::kText) rows::set_arg(known, arg_text, event);
      }
      continue;
    }
    if (!is_field(key)) continue;
    std::string_view field_text;
    const Scalar kind = scalar(value, text, field_text);
    if (kind == Scalar::kBroken) return Fault::kMalformed;
    if (kind == Scalar::kText && !set_field(key, field_text, event)) fault = Fault::kBadField;
  }
  if (const size_t at = text.find("\"args\""); at != std::string_view::npos) {
    const size_t open = text.find('{', at);
    if (open != std::string_view::npos)
      if (const size_t end = after_closing_brace(text, open); end != std::string_view::npos)
        event.args = text.substr(open, end - open);
  }
  return fault;
}

}  // namespace stageline::kineto
