// The partial traces that a reader passes on before it has finished.
#include <doctest/doctest.h>

#include "readers/reader.h"
#include "unit/torch_traces.h"

using namespace stageline;

namespace {

std::vector<Trace> early_of(const std::vector<std::string>& paths, bool is_readable = true) {
  std::vector<Trace> seen;
  ReadOptions options;
  options.early = [&](Trace trace) { seen.push_back(std::move(trace)); };
  options.early_after_ms = 0;
  CHECK(static_cast<bool>(find_reader("kineto")->read(source_of(paths), options)) == is_readable);
  return seen;
}

}  // namespace

TEST_CASE("early: the rows of a file so far are lanes in order, named and classed") {
  std::vector<std::string> events = {work("ncclDevKernel_AllReduce", "900", "40", 3), call("launch", "20", "5", 3),
                                     torch_event("cpu_op", "outer", 100, 1, "10", "100")};
  for (int k = 0; k < 60'000; ++k)  // several windows
    events.push_back(torch_event("cpu_op", "op" + std::to_string(k % 7), 100, 1, std::to_string(1000 + k * 3), "2"));
  const Folder folder;
  const std::vector<Trace> seen = early_of({folder.add("rank0.json", torch_file(events))});
  REQUIRE_FALSE(seen.empty());
  const Trace& trace = seen.front();
  REQUIRE(trace.parts.size() == 1);
  const Part& part = trace.parts[0];
  const Slices& s = part.slices;
  REQUIRE(part.lanes.size() == 2);
  CHECK(part.lanes[0].kind == LaneKind::kDeviceStream);
  CHECK(part.lanes[1].kind == LaneKind::kHostThread);
  CHECK(static_cast<KernelClass>(s.kernel_class[part.lanes[0].begin]) == KernelClass::kCommunication);
  const size_t first = part.lanes[1].begin;
  CHECK(trace.names.text(s.name_id[first]) == "outer");  // the file has it after what stands within it
  CHECK(trace.names.text(s.name_id[first + 1]) == "launch");
  CHECK(s.start_ns[first] == 10'000);
  CHECK(s.dur_ns[first] == 100'000);
  CHECK(trace.categories[s.category_id[first]].kind == Category::kCpuOp);
  for (size_t i = first + 1; i < part.lanes[1].end; ++i) REQUIRE(s.start_ns[i - 1] <= s.start_ns[i]);
  CHECK(s.parent.empty());
  CHECK(s.size() < events.size());  // of the first window
  for (size_t k = 1; k < seen.size(); ++k) CHECK(seen[k].slice_count() > seen[k - 1].slice_count());
}

TEST_CASE("early: of several files the finished ones are shown, by rank") {
  const Folder folder;
  std::vector<std::string> paths;
  for (const int rank : {2, 0, 1}) {
    const std::string event = torch_event("cpu_op", "op" + std::to_string(rank), 100, 1, "10", "100");
    paths.push_back(folder.add("worker" + std::to_string(rank) + ".json", torch_file({event}, rank)));
  }
  const std::vector<Trace> seen = early_of(paths);
  REQUIRE_FALSE(seen.empty());
  for (const Trace& trace : seen)
    for (size_t p = 0; p < trace.parts.size(); ++p) {
      if (p > 0) CHECK(trace.parts[p - 1].rank < trace.parts[p].rank);
      CHECK(trace.names.text(trace.parts[p].slices.name_id[0]) == "op" + std::to_string(trace.parts[p].rank));
    }
}

TEST_CASE("early: a trace without slices is not handed over") {
  const Folder folder;
  CHECK(early_of({folder.add("a.json", "{\"schemaVersion\": 1, \"traceEvents\": []}")}, false).empty());
}
