#include <doctest/doctest.h>

#include "profile/memory_blocks.h"

using namespace stageline;

TEST_CASE("peak memory: torch's totals of devices, Ascend's tables and a program's counters") {
  Part part;
  CHECK(peak_device_memory(part) == -1);
  part.memory.resize(3);
  part.memory[0].total_allocated = 900, part.memory[0].device_type = 0, part.memory[0].device_id = -1;  // the host's
  CHECK(peak_device_memory(part) == -1);
  part.memory[1].total_allocated = 500, part.memory[1].device_type = 1, part.memory[1].device_id = 0;
  part.memory[2].total_allocated = 400, part.memory[2].device_type = 1, part.memory[2].device_id = 0;
  CHECK(peak_device_memory(part) == 500);
  part.counters.push_back({"NPU 0 memory of PTA / totalReserved", {1, 2}, {9000, 9000}});
  CHECK(peak_device_memory(part) == 500);
  part.counters.push_back({"NPU 0 memory of PTA / totalAllocated", {1, 2}, {600, 550}});
  CHECK(peak_device_memory(part) == 600);
  part.counters.push_back({"max_memory_allocated", {1, 2}, {700, -1}});
  CHECK(peak_device_memory(part) == 700);
  part.counters.push_back({"memory_allocated", {1}, {1e300}});  // damaged
  CHECK(peak_device_memory(part) == 700);
}

TEST_CASE("peak memory: a stage has the largest of its ranks") {
  Trace trace;
  trace.parts.resize(4);
  for (int32_t p = 0; p < 4; ++p) trace.parts[p].stage = p / 2;
  CHECK(peak_memory_of_stages(trace).empty());
  const auto count = [&](size_t part, double bytes) {
    trace.parts[part].counters.push_back({"max_memory_allocated", {1}, {bytes}});
  };
  count(2, 70), count(3, 80);
  CHECK(peak_memory_of_stages(trace) == std::vector<int64_t>{-1, 80});
}
