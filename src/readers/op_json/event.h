// One event of a Chrome trace, with the fields that pipelines need.
#pragma once

#include <simdjson.h>

#include "readers/common/ops.h"

namespace stageline::op_json {

// Says which arguments an event has, whatever their values.
#define ARG(bit, number, names) bit = number,
enum ArgBit : uint32_t {
#include "readers/op_json/args.def"
};

struct EventArgs {
  uint32_t present = 0;  // bits of ArgBit
  int32_t step = kUnknown, stage = kUnknown, chunk = kUnknown, micro_batch = kUnknown;
  int32_t sequence = kUnknown, rank = kUnknown, dp = kUnknown;
  std::string_view kind, name;

  bool has(uint32_t bits) const { return (present & bits) == bits; }
  bool has_any(uint32_t bits) const { return (present & bits) != 0; }
};

// Views are valid until the parser's next event. Times and ids are the source's own text.
struct Event {
  char phase = 0;
  std::string_view name, category;
  std::string_view pid, tid;
  std::string_view ts, dur;  // empty when absent or null
  EventArgs args;
};

enum class EventFault : uint8_t { kNone, kMalformed, kBadField, kDuplicateKey };

class EventParser {
 public:
  EventFault parse(std::string_view json, size_t readable_bytes, Event& event);

 private:
  EventFault parse_args(simdjson::ondemand::object args, std::string_view json, EventArgs& out);
  simdjson::ondemand::parser parser_;
};

// Recognise tools by the arguments of their events.
bool is_straggler_analysis(const EventArgs& args);  // ByteDance: model_chunk, mb_id, seq_id, no rank
bool is_ndtimeline(const EventArgs& args);          // veScale: rank, step, tp, pp

}  // namespace stageline::op_json
