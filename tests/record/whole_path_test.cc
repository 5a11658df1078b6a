// From recorded ranges to what the program makes of them: messages by their numbers, skewed clocks, named ranges.
#include <atomic>
#include <thread>

#include "engine/engine.h"
#include "fake_host.h"
#include "inject_client.h"
#include "record_fixture.h"

using namespace stageline;

namespace {

constexpr int kMessages = 40;
constexpr int64_t kSkewNs = 3'200'000'000;

struct Wire {
  std::atomic<bool> down[kMessages], up[kMessages];
};

void wait_for(const std::atomic<bool>& flag) {
  while (!flag.load(std::memory_order_acquire)) usleep(20);
}

// Stage `rank` of two: sends or receives kMessages activations, then as many gradients, numbered as both ends count
// them. The receiver takes them two by two in the other order.
int run_stage(const RecordFolder& folder, Wire& wire, int32_t rank) {
  set_host_name(rank == 0 ? "node-a" : "node-b");
  set_wall_clock_ahead(rank == 0 ? 0 : kSkewNs);
  slr_config c = folder.config(rank);
  c.stage = rank;
  c.dp_rank = 0;
  c.world = c.pp = 2;
  if (slr_init(&c) != 0) return 1;
  slr_step(0);
  const auto job = [&](uint32_t kind, int number) {
    slr_job j = SLR_JOB(kind, number, 0);
    j.peer = 1 - rank;
    j.bytes = 1 << 20;
    j.sequence = number;
    return j;
  };
  const auto other_order = [](int i) { return i % 2 == 0 ? i + 1 : i - 1; };
  const auto send = [&](uint32_t kind, std::atomic<bool>* wires) {
    for (int i = 0; i < kMessages; ++i) {
      const slr_job j = job(kind, i);
      const slr_range range = slr_begin(0, &j);
      wires[i].store(true, std::memory_order_release);
      slr_end(range);
      usleep(300);
    }
  };
  const auto receive = [&](uint32_t kind, std::atomic<bool>* wires) {
    for (int i = 0; i < kMessages; ++i) {
      const slr_job j = job(kind, other_order(i));
      const slr_range range = slr_begin(0, &j);
      wait_for(wires[other_order(i)]);
      slr_end(range);
    }
  };
  // Some work on each side, so that there is a pipeline.
  for (int i = 0; i < 4; ++i) {
    const slr_job f = SLR_JOB(SLR_FORWARD, i, 0), b = SLR_JOB(SLR_BACKWARD, i, 0);
    slr_end(slr_begin(0, &f));
    slr_end(slr_begin(0, &b));
  }
  if (rank == 0) {
    send(SLR_SEND_FORWARD, wire.down);
    receive(SLR_RECV_BACKWARD, wire.up);
  } else {
    receive(SLR_RECV_FORWARD, wire.down);
    send(SLR_SEND_BACKWARD, wire.up);
  }
  return 0;
}

void record_pair(const RecordFolder& folder) {
  Shared<Wire> wire;
  int results[2] = {-1, -1};
  pid_t children[2];
  for (int32_t rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    REQUIRE(children[rank] >= 0);
    if (children[rank] == 0) {
      const int result = run_stage(folder, *wire, rank);
      slr_shutdown();
      _exit(result);
    }
  }
  for (int rank = 0; rank < 2; ++rank) {
    waitpid(children[rank], &results[rank], 0);
    CHECK(results[rank] == 0);
  }
}

Trace open(const RecordFolder& folder, AlignMode mode) {
  OpenOptions options;
  options.align.mode = mode;
  Result<Trace> trace = open_trace({folder.path()}, options);
  REQUIRE(trace);
  return std::move(*trace);
}

}  // namespace

TEST_CASE("recorded messages bring peer, bytes and number into the trace") {
  RecordFolder folder;
  record_pair(folder);
  const Trace trace = open(folder, AlignMode::kNever);
  REQUIRE(trace.parts.size() == 2);
  for (const Part& part : trace.parts) {
    REQUIRE(part.collectives.size() == 2 * kMessages);
    int64_t sends = 0;
    for (const CollectiveFact& fact : part.collectives) {
      const bool send = trace.names.text(fact.name) == "send";
      sends += send;
      CHECK(fact.bytes == 1 << 20);
      CHECK((send ? fact.src_rank : fact.dst_rank) == part.rank);
      CHECK((send ? fact.dst_rank : fact.src_rank) == 1 - part.rank);
      CHECK(fact.seq >= 0);
      CHECK(fact.seq < kMessages);
    }
    CHECK(sends == kMessages);
  }
}

TEST_CASE("clocks of two machines are told apart by recorded messages, whatever order they are taken in") {
  RecordFolder folder;
  record_pair(folder);
  const Trace trace = open(folder, AlignMode::kAlways);
  REQUIRE(trace.alignment == AlignState::kMapped);
  REQUIRE(trace.parts.size() == 2);
  // Rank 0 is the reference, rank 1 ahead of it. Bounds are what the fastest message each way took: a wake-up.
  const ClockMap& map = trace.parts[1].clock_map;
  REQUIRE(map.segments.size() == 1);
  CHECK(map.evidence == ClockEvidence::kMessages);
  CHECK(map.segments[0].message_count >= kMessages);
  const int64_t at = trace.cells.start_ns[trace.cells.size() / 2];
  const int64_t found = at - map.common_ns(at);
  const int64_t half = std::max<int64_t>(map.offset_half_ns(), 1000);
  CAPTURE(found);
  CAPTURE(half);
  CHECK(std::abs(found - kSkewNs) <= half);
  CHECK(half < 500'000'000);  // far below the skew, however busy the machine is
}

TEST_CASE("a wall clock that is set in mid-recording moves no record") {
  RecordFolder folder;
  CHECK(in_child([&] {
          slr_config c = folder.config();
          if (slr_init(&c) != 0) return 1;
          for (int i = 0; i < 12; ++i) {
            const slr_job job = SLR_JOB(SLR_FORWARD, i, 0);
            const slr_range range = slr_begin(0, &job);
            usleep(1000);
            slr_end(range);
            if (i == 5) set_wall_clock_ahead(-3'600'000'000'000);  // an hour back
          }
          return slr_flush(60'000);
        }) == 0);
  const Trace trace = open(folder, AlignMode::kNever);
  REQUIRE(trace.parts.size() == 1);
  const Slices& s = trace.parts[0].slices;
  REQUIRE(s.size() == 12);
  for (size_t i = 1; i < s.size(); ++i) {
    CHECK(s.start_ns[i] >= s.end_ns(i - 1));
    CHECK(s.start_ns[i] - s.end_ns(i - 1) < 1'000'000'000);
  }
  CHECK(trace.diagnostics.count("recording.clock_step") == 1);
}

TEST_CASE("where the hot file cannot be mapped records are kept all the same, until a kill") {
  RecordFolder folder;
  CHECK(in_child([&] {
          setenv("STAGELINE_HOT_DIR", "/proc/no/such/folder", 1);
          slr_config c = folder.config();
          if (slr_init(&c) != 0) return 1;
          for (int i = 0; i < 1000; ++i) {
            slr_push(0, 0);
            slr_pop(0);
          }
          return 0;
        }) == 0);
  CHECK(folder.files(".slhot").empty());
  const recording::Recording r = folder.read_one();
  CHECK(count_rows(r, recording::RecordType::kRange) == 1000);
  CHECK(r.content.ended);
}

TEST_CASE("a library that is closed in mid-recording stays, and the recording is closed at exit") {
  RecordFolder folder;
  fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    InjectedLibrary library;
    slr_config c = folder.config();
    if (library.init(&c) != 0) _exit(1);
    void (*push)(slr_lane, slr_str);
    void (*pop)(slr_lane);
    library.find("slr_push", push);
    library.find("slr_pop", pop);
    push(0, 0);
    std::thread([&] { dlclose(library.library); }).join();
    pop(0);
    for (int i = 0; i < 99; ++i) push(0, 0), pop(0);
    // The atexit handlers of this test's own library copies are the parent's, so exit() must not run them.
    library.shutdown();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(count_rows(folder.read_one(), recording::RecordType::kRange) == 100);
}

TEST_CASE("named ranges of NVTX become the pipeline's cells by the rules of profiles") {
  RecordFolder folder;
  for (int32_t rank = 0; rank < 2; ++rank)
    CHECK(in_child([&] {
            setenv("STAGELINE_DIR", folder.path().c_str(), 1);
            setenv("RANK", std::to_string(rank).c_str(), 1);
            InjectedLibrary library;
            nvtx_client::Tables t;
            if (!nvtx_client::attach(library, t)) return 1;
            const auto range = [&](const std::string& name) {
              nvtx_client::push(t, name.c_str());
              usleep(300);
              nvtx_client::pop(t);
            };
            for (int step = 0; step < 2; ++step) {
              library.step(step);
              for (int mb = 0; mb < 4; ++mb) range("PP:" + std::to_string(rank) + "F" + std::to_string(mb));
              for (int mb = 0; mb < 4; ++mb) range("PP:" + std::to_string(rank) + "B" + std::to_string(mb));
              range("something else");
            }
            library.shutdown();
            return 0;
          }) == 0);
  const Trace trace = open(folder, AlignMode::kNever);
  REQUIRE(trace.parts.size() == 2);
  CHECK(trace.pipeline_stages == 2);
  CHECK(trace.diagnostics.count("cells.from_ranges") == 1);
  int64_t forward = 0, backward = 0;
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    forward += trace.cells.kind[i] == CellKind::kForward;
    backward += trace.cells.kind[i] == CellKind::kBackward;
    CHECK(trace.cells.micro_batch[i] >= 0);
    CHECK(trace.cells.micro_batch[i] < 4);
    CHECK(trace.parts[static_cast<size_t>(trace.cells.part[i])].stage == trace.cells.part[i]);
  }
  CHECK(forward == 16);
  CHECK(backward == 16);
}

TEST_CASE("named ranges that no rule knows are refused with what to write") {
  RecordFolder folder;
  CHECK(in_child([&] {
          setenv("STAGELINE_DIR", folder.path().c_str(), 1);
          InjectedLibrary library;
          nvtx_client::Tables t;
          if (!nvtx_client::attach(library, t)) return 1;
          nvtx_client::push(t, "my forward");
          nvtx_client::pop(t);
          library.shutdown();
          return 0;
        }) == 0);
  const Result<Trace> trace = open_trace({folder.path()}, {});
  REQUIRE_FALSE(trace);
  CHECK(trace.error().what.find("\"my forward\"") != std::string::npos);
  CHECK(trace.error().hint.find("--cell-rules") != std::string::npos);
}
