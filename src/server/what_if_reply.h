// What a world costs and how a step would run in it, as the page takes it: one answer for the server, which has the
// run, and for a report, whose page has the model alone (src/wasm).
#pragma once

#include <string>

#include "base/json_writer.h"
#include "base/result.h"
#include "diagnosis/what_if/packed_model.h"
#include "server/query.h"

namespace stageline {

// The answer to /api/pipeline/what-if. Errors: kUsage naming the parameter. O(operations).
Result<std::string> what_if_reply(const AskedModel& asked, const Query& query);

// Members of an open object.
void ns_or_null(JsonWriter& json, const char* name, double ns);
void write_price(JsonWriter& json, const Price& price);

}  // namespace stageline
