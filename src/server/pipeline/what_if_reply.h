// The cost of a scenario and the simulated times of a step, in the form in which the page takes them. The server, which
// has the run, and a report, whose page has only the model (src/wasm), give the same answer.
#pragma once

#include "base/json_writer.h"
#include "diagnosis/what_if/packed_model.h"
#include "server/http/query.h"

namespace stageline {

// The answer to /api/pipeline/what-if. Errors: kUsage, which names the parameter. O(operations).
Result<std::string> what_if_reply(const AskedModel& asked, const Query& query);

// These write members of an open object.
void write_price(JsonWriter& json, const Price& price);
void write_bytes(JsonWriter& json, const Text& bytes);

}  // namespace stageline
