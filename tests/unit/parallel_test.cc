// The parallel paths, mostly for ThreadSanitizer to watch: many indices, several threads, and the
// same bytes whatever their number.
#include "base/parallel.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/input.h"
#include "base/output_file.h"
#include "base/progress.h"
#include "compat/paddle_timeline/paddle_timeline.h"
#include "engine/engine.h"

using namespace stageline;

namespace {

struct Threads {
  explicit Threads(int count) { set_thread_count(count); }
  ~Threads() { set_thread_count(0); }
};

struct Folder {
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stageline-parallel-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

// Eight ranks of 1F1B with two steps; rank 5 has a damaged line, rank 6 bytes that are not UTF-8.
void write_logs(const std::string& folder) {
  for (int rank = 0; rank < 8; ++rank) {
    std::string log = "I1020 Schedule Profiler start at step 3 and end at step 5\n";
    int64_t ms = 1'697'793'307'213 + rank * 5;
    const auto job = [&](const char* type, int micro_batch, int cost_ms) {
      const auto number = std::to_string(micro_batch);
      log += "I1020 09:15:07.512326 22317 standalone_executor.cc:217] Profiler Info: Job (" + number +
             "), type = " + type + ", micro_batch_id = " + number + ", job_start_time = " + std::to_string(ms) +
             ".000000, job_end_time = " + std::to_string(ms + cost_ms) + ".500000\n";
      ms += cost_ms + 1;
    };
    for (int step = 0; step < 2; ++step) {
      for (int m = 0; m < 4; ++m) job("forward", m, 9);
      for (int m = 0; m < 4; ++m) job("backward", m, 18);
      job("optimizer", 0, 3);
    }
    if (rank == 5) log += "I1020 Profiler Info: Job (0), type = forw\n";
    if (rank == 6) log += "\xff\xfe\n";
    REQUIRE(write_file(folder + "/workerlog." + std::to_string(rank), log));
  }
}

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);  // unlike the program's inputs, this file stays an output
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("every index is visited once, from any number of threads") {
  for (const int threads : {1, 2, 4, 16}) {
    const Threads limit(threads);
    for (const size_t count : {size_t{0}, size_t{1}, size_t{3}, size_t{1000}}) {
      std::vector<int> visits(count);
      std::atomic<int64_t> sum{0};
      parallel_for(count, [&](size_t i) {
        ++visits[i];
        sum += static_cast<int64_t>(i);
      });
      CHECK(visits == std::vector<int>(count, 1));
      CHECK(sum == static_cast<int64_t>(count * (count ? count - 1 : 0) / 2));
    }
  }
}

TEST_CASE("loops inside loops end") {
  const Threads limit(4);
  std::vector<std::vector<int>> visits(8, std::vector<int>(50));
  parallel_for(visits.size(), [&](size_t i) { parallel_for(visits[i].size(), [&](size_t k) { ++visits[i][k]; }); });
  for (const auto& row : visits) CHECK(row == std::vector<int>(50, 1));
}

TEST_CASE(
    "what a body throws arrives at the caller, when no body runs any more, and the threads are there for the next "
    "loop") {
  for (const int threads : {1, 4}) {
    const Threads limit(threads);
    std::atomic<int> inside{0};
    const auto body = [&](size_t i) {
      ++inside;
      if (i == 700) {
        --inside;
        throw std::runtime_error("of index 700");
      }
      --inside;
    };
    CHECK_THROWS_WITH_AS(parallel_for(1000, body), "of index 700", std::runtime_error);
    CHECK(inside == 0);
    std::atomic<int> calls{0};
    parallel_for(100, [&](size_t) { ++calls; });
    CHECK(calls == 100);
  }
}

TEST_CASE("a caller that waits takes up no work of another loop: it may hold a lock that such work wants") {
  const Threads limit(4);
  std::mutex held;
  std::atomic<int> sum{0};
  parallel_for(64, [&](size_t i) {
    const std::lock_guard lock(held);  // a second lock by the same thread would never end
    if (i % 8 == 0) parallel_for(16, [&](size_t) { ++sum; });
  });
  CHECK(sum == 8 * 16);
}

TEST_CASE("worker logs read the same with one thread and with four") {
  const Folder folder;
  write_logs(folder.path);
  std::string described[2], exported[2];
  for (const int k : {0, 1}) {
    const Threads limit(k == 0 ? 1 : 4);
    Progress progress;
    OpenOptions options;
    options.progress = &progress;
    Result<Trace> trace = open_trace({folder.path}, options);
    REQUIRE(trace);
    CHECK(progress.done_bytes() >= progress.expected_bytes());
    CHECK(trace->parts.size() == 8);
    CHECK(trace->cells.size() == 8 * 2 * 9);
    described[k] = info_json(*trace);
    const Folder out;
    Diagnostics notes;
    REQUIRE(export_trace(std::make_shared<const Run>(*trace), notes, out.path + "/cells.csv", "csv", {}));
    exported[k] = content(out.path + "/cells.csv");
  }
  CHECK(described[0] == described[1]);
  CHECK(exported[0] == exported[1]);
}

TEST_CASE("the drop-in converter writes the same with one thread and with four") {
  const Folder folder;
  write_logs(folder.path);
  std::string chrome[2], perfetto[2];
  for (const int k : {0, 1}) {
    const Threads limit(k == 0 ? 1 : 4);
    Progress progress;
    PaddleTimelineOptions options;
    options.log_dir = folder.path;
    options.progress = &progress;
    const Result<PaddleTimeline> done = write_paddle_timeline(options);
    REQUIRE(done);
    CHECK(done->logs == 8);
    CHECK(done->jobs == 8 * 2 * 9);
    CHECK(done->steps == 2);
    chrome[k] = content(done->chrome_path);
    perfetto[k] = content(done->perfetto_path);
  }
  CHECK(chrome[0] == chrome[1]);
  CHECK(perfetto[0] == perfetto[1]);
}
