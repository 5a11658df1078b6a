#include "readers/op_json/event.h"

#include "base/json_token.h"

namespace stageline::op_json {
namespace {

namespace od = simdjson::ondemand;

#define ARG(bit, number, names) {bit, names},
constexpr WordRow<ArgBit> kArgNames[] = {
#include "readers/op_json/args.def"
};

// Reads a number, a text or null as text; false for anything else.
bool scalar(od::value value, std::string_view json, std::string_view& out) {
  const std::string_view token = raw_token(value, json);
  if (token.empty()) return false;
  if (token[0] == '"') return value.get_string().get(out) == simdjson::SUCCESS;
  if (token == "null") {
    out = {};
    return true;
  }
  out = token;
  return token[0] == '-' || (token[0] >= '0' && token[0] <= '9');
}

bool index_field(od::value value, std::string_view json, int64_t max, int32_t& out) {
  std::string_view text;
  if (!scalar(value, json, text)) return false;
  const auto number = parse_index(text, max);
  if (number) out = *number;
  return number.has_value();
}

bool text_field(od::value value, std::string_view& out) { return value.get_string().get(out) == simdjson::SUCCESS; }

}  // namespace

EventFault EventParser::parse_args(od::object args, std::string_view json, EventArgs& out) {
  for (auto field : args) {
    std::string_view key;
    od::value value;
    if (field.unescaped_key().get(key) || field.value().get(value)) return EventFault::kMalformed;
    const auto known = key_of_word(kArgNames, key);
    if (!known) continue;
    const uint32_t bit = *known;
    if (out.present & bit) return EventFault::kDuplicateKey;
    out.present |= bit;
    bool good = true;
    switch (bit) {
      case kArgStep: good = index_field(value, json, kMaxStepNumber, out.step); break;
      case kArgStage: good = index_field(value, json, kMaxStageNumber, out.stage); break;
      case kArgChunk: good = index_field(value, json, kMaxChunkNumber, out.chunk); break;
      case kArgMicroBatch: good = index_field(value, json, kMaxMicroBatchNumber, out.micro_batch); break;
      case kArgSequence: good = index_field(value, json, INT32_MAX - 1, out.sequence); break;
      case kArgRank: good = index_field(value, json, kMaxRankNumber, out.rank); break;
      case kArgDp: good = index_field(value, json, kMaxRankNumber, out.dp); break;
      case kArgKind: good = text_field(value, out.kind); break;
      case kArgName: good = text_field(value, out.name); break;
      default: break;
    }
    if (!good) return EventFault::kBadField;
  }
  return EventFault::kNone;
}

EventFault EventParser::parse(std::string_view json, size_t readable_bytes, Event& event) {
  event = {};
  od::document document;
  od::object object;
  if (parser_.iterate(json, readable_bytes).get(document) || document.get_object().get(object))
    return EventFault::kMalformed;
  enum : uint32_t { kPh = 1, kName = 2, kCat = 4, kPid = 8, kTid = 16, kTs = 32, kDur = 64, kArgs = 128 };
  constexpr WordRow<uint32_t> names[] = {{kPh, "ph"},   {kName, "name"}, {kCat, "cat"}, {kPid, "pid"},
                                         {kTid, "tid"}, {kTs, "ts"},     {kDur, "dur"}, {kArgs, "args"}};
  uint32_t present = 0;
  for (auto field : object) {
    std::string_view key, text;
    od::value value;
    if (field.unescaped_key().get(key) || field.value().get(value)) return EventFault::kMalformed;
    const uint32_t bit = key_of_word(names, key).value_or(0);
    if (bit == 0) continue;
    if (present & bit) return EventFault::kDuplicateKey;
    present |= bit;
    bool good = true;
    switch (bit) {
      case kPh:
        good = text_field(value, text) && text.size() == 1;
        if (good) event.phase = text[0];
        break;
      case kName: good = scalar(value, json, event.name); break;
      case kCat: good = scalar(value, json, event.category); break;
      case kPid: good = scalar(value, json, event.pid); break;
      case kTid: good = scalar(value, json, event.tid); break;
      case kTs: good = scalar(value, json, event.ts); break;
      case kDur: good = scalar(value, json, event.dur); break;
      default: {
        if (raw_token(value, json) == "null") break;
        od::object args;
        if (value.get_object().get(args)) return EventFault::kBadField;
        if (const EventFault fault = parse_args(args, json, event.args); fault != EventFault::kNone) return fault;
      }
    }
    if (!good) return EventFault::kBadField;
  }
  if (!(present & kPh)) return EventFault::kBadField;
  return EventFault::kNone;
}

bool is_straggler_analysis(const EventArgs& args) {
  return args.has(kArgStep | kArgChunk | kArgMicroBatch | kArgSequence) && !args.has_any(kArgRank | kArgStage);
}

bool is_ndtimeline(const EventArgs& args) {
  return args.has(kArgRank | kArgStep | kArgTp | kArgStage) && !args.has_any(kArgDp | kArgKind);
}

}  // namespace stageline::op_json
