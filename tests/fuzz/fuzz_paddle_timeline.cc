// Runs worker logs through the drop-in converter, repaired and in V3's manner. For all logs, the two files must be JSON
// and contain as many events as there are jobs and steps.
//
// Input: byte 0 is options, the rest logs as split_texts() cuts them.
#include <simdjson.h>

#include "base/parallel.h"
#include "compat/paddle_timeline/paddle_timeline.h"
#include "fuzz.h"

namespace stageline::fuzz {
namespace {

constexpr const char* kNames[] = {"workerlog.0",          "workerlog.1",          "workerlog.3",
                                  "machine0/workerlog.0", "machine1/workerlog.0", "machine10/workerlog.1",
                                  "workerlog.0.gz"};

int64_t event_count(const std::string& path) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const auto error = parser.load(path).get(root);
  FUZZ_CHECK(!error, path + ": " + simdjson::error_message(error));
  simdjson::dom::array events;
  FUZZ_CHECK(!root["traceEvents"].get(events), path);
  int64_t count = 0;
  for (const simdjson::dom::element event : events) {
    simdjson::dom::object object;
    FUZZ_CHECK(!event.get(object) && !object["name"].error() && !object["ts"].error(), path);
    ++count;
  }
  return count;
}

}  // namespace
}  // namespace stageline::fuzz

FUZZ_TARGET(paddle_timeline) {
  using namespace stageline;
  using namespace stageline::fuzz;
  static const TempFolder folder;
  set_thread_count(1);
  Bytes input{data, size};
  const uint8_t how = input.byte();
  if (input.rest().find("\x28\xb5\x2f\xfd") != std::string_view::npos) return 0;  // see fuzz_reader.cc
  folder.clear();
  for (const NamedText& text : split_texts(input.rest()))
    folder.write(kNames[text.choice % std::size(kNames)], text.text);
  for (const bool compat : {false, true}) {
    PaddleTimelineOptions options;
    options.log_dir = folder.path();
    options.compat_v3 = compat;
    options.multi_machine = (how & 1) != 0;
    if (how & 2) options.devices = {{0}};
    if (how & 4) options.devices = {{1, 0, 1}};
    const Result<PaddleTimeline> done = write_paddle_timeline(options);
    if (!done) {
      FUZZ_CHECK(!done.error().what.empty(), "error without words");
      continue;
    }
    const int64_t events = 2 * (done->jobs + done->steps);
    FUZZ_CHECK(event_count(done->chrome_path) == events, std::to_string(events));
    FUZZ_CHECK(event_count(done->perfetto_path) >= events + 1, std::to_string(events));
  }
  return 0;
}
