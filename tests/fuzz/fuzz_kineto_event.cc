// Runs the tolerant event parser on any bytes. It must end inside its text, and its views must be in the text or its
// own storage. For input that the strict parser and JSON allow, both must agree.
#include <simdjson.h>

#include <memory>

#include "base/json_events.h"
#include "fuzz.h"
#include "readers/kineto/chunk_parser.h"

FUZZ_TARGET(kineto_event) {
  using namespace stageline;
  using namespace stageline::kineto;
  static EventParser strict;
  static TolerantParser tolerant;
  static simdjson::dom::parser judge;
  // A copy of its own size, so that a step outside is seen.
  const std::unique_ptr<char[]> copy(new char[size]);
  if (size > 0) memcpy(copy.get(), data, size);
  const std::string_view text(copy.get(), size);
  rows::Event b;
  const Fault fb = tolerant.parse(text, b);
  FUZZ_CHECK(tolerant.end() <= size, "end");
  size_t sum = 0;  // every view can be read
  for (const std::string_view view :
       {b.cat, b.name, b.pid, b.tid, b.id, b.collective, b.dtype, b.group, b.comms_id, b.args})
    for (const char c : view) sum += static_cast<unsigned char>(c);
  FUZZ_CHECK(sum < SIZE_MAX, "views");
  if (size == 0 || text[0] != '{') return 0;
  std::string padded(text);
  padded.append(kJsonPaddingBytes, ' ');
  simdjson::dom::element root;
  if (judge.parse(padded).get(root) || !root.is_object()) return 0;
  rows::Event a;
  const Fault fa = strict.parse(std::string_view(padded).substr(0, size), a);
  if (fa == Fault::kMalformed) return 0;
  FUZZ_CHECK(fa == fb, std::string(text));
  FUZZ_CHECK(
      a.phase == b.phase && a.name == b.name && a.cat == b.cat && a.pid == b.pid && a.tid == b.tid && a.id == b.id,
      std::string(text));
  FUZZ_CHECK(a.ts_ns == b.ts_ns && a.dur_ns == b.dur_ns && a.has_ts == b.has_ts && a.has_dur == b.has_dur,
             std::string(text));
  FUZZ_CHECK(
      a.correlation == b.correlation && a.stream == b.stream && a.external_id == b.external_id && a.bytes == b.bytes,
      std::string(text));
  return 0;
}
