// NVTX and mstx calls of an unmodified program, and the resulting recording.
#include <sys/syscall.h>

#include <set>
#include <thread>

#include "fake_gpu.h"
#include "inject_client.h"
#include "record_fixture.h"

using namespace nvtx_client;
using recording::RecordType;

namespace {

// The environment that `stageline record` sets up, and the library's own end, in a child.
int under_injection(const RecordFolder& folder, const std::function<int(InjectedLibrary&)>& body) {
  return in_child([&] {
    setenv("STAGELINE_DIR", folder.path().c_str(), 1);
    setenv("STAGELINE_MAX_OVERHEAD", "-1", 1);
    setenv("RANK", "3", 1);
    setenv("MSTX_INJECTION_PATH", STAGELINE_RECORD_LIBRARY, 1);
    InjectedLibrary library;
    const int result = body(library);
    library.shutdown();
    return result;
  });
}

std::string name_of(const recording::Recording& r, const recording::Row& row) {
  const auto name = r.content.names.find(row.name);
  return name == r.content.names.end() ? "" : name->second;
}
std::string lane_of(const recording::Recording& r, const recording::Row& row) {
  return r.content.lanes.at(row.lane).name;
}
const recording::Row* row_named(const recording::Recording& r, const std::string& name) {
  for (const auto& row : r.content.rows)
    if (name_of(r, row) == name) return &row;
  return nullptr;
}

struct Loaded {
  void* library;
  explicit Loaded(const char* file)
      : library(dlopen((std::string(STAGELINE_FAKE_FOLDER "/") + file).c_str(), RTLD_NOW)) {
    if (!library) _exit(96);
  }
  template <class F> F get(const char* name) const { return reinterpret_cast<F>(dlsym(library, name)); }
};

}  // namespace

TEST_CASE("NVTX pushes, pops, starts, ends and marks are recorded with NVTX's own answers") {
  RecordFolder folder;
  CHECK(under_injection(folder, [&](InjectedLibrary& library) {
          Tables t;
          if (!attach(library, t)) return 1;
          if (injection_version == 0) return 2;
          if (push(t, "outer") != 0 || push(t, "inner") != 1) return 3;
          call<void>(t.core[kMarkA], "a mark");
          if (pop(t) != 1 || pop(t) != 0) return 4;
          if (pop(t) != -2) return 5;  // nothing was open
          const auto id = call<uint64_t>(t.core[kRangeStartA], "started");
          if (id == 0) return 6;
          uint64_t from_wide = 0;
          std::thread([&] {
            call<void>(t.core[kRangeEnd], id);
            from_wide = call<uint64_t>(t.core[kRangeStartW], L"größer");
          }).join();
          call<void>(t.core[kRangeEnd], from_wide);
          if (stub_calls != 0) return 7;
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(r.meta.rank == 3);
  CHECK(count_rows(r, RecordType::kRange) == 4);
  CHECK(count_rows(r, RecordType::kInstant) == 1);
  for (const char* name : {"outer", "inner", "a mark", "started", "größer"}) CHECK(row_named(r, name) != nullptr);
  const auto *outer = row_named(r, "outer"), *inner = row_named(r, "inner");
  REQUIRE((outer && inner));
  CHECK(outer->start <= inner->start);
  CHECK(inner->end <= outer->end);
  CHECK(r.content.drops[SLR_DROP_BAD_HANDLE] == 1);
  CHECK(r.content.ended);
}

TEST_CASE("a process that only has NVTX in it and never marks anything gets no file") {
  RecordFolder folder;
  CHECK(under_injection(folder, [&](InjectedLibrary& library) {
          Tables t;
          return attach(library, t) ? 0 : 1;
        }) == 0);
  CHECK(folder.files(".slrec").empty());
}

TEST_CASE("stacks of domains and threads are apart, and have lanes of their own") {
  RecordFolder folder;
  CHECK(under_injection(folder, [&](InjectedLibrary& library) {
          Tables t;
          if (!attach(library, t)) return 1;
          void* own = call<void*>(t.core2[kDomainCreateA], "loader");
          if (!own || own != call<void*>(t.core2[kDomainCreateW], L"loader")) return 2;
          const Attributes read = message("read");
          if (push(t, "step") != 0) return 3;
          if (call<int>(t.core2[kDomainRangePushEx], own, &read) != 0) return 4;
          if (push(t, "forward") != 1) return 5;
          if (call<int>(t.core2[kDomainRangePop], own) != 0) return 6;  // beneath another domain's
          if (pop(t) != 1 || pop(t) != 0) return 7;
          std::thread([&] {
            push(t, "elsewhere");
            pop(t);
          }).join();
          call<void>(t.core2[kDomainDestroy], own);
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  REQUIRE(count_rows(r, RecordType::kRange) == 4);
  CHECK(r.content.drops[SLR_DROP_BAD_HANDLE] == 0);
  CHECK(lane_of(r, *row_named(r, "read")).rfind("loader ", 0) == 0);
  CHECK(row_named(r, "step")->lane == row_named(r, "forward")->lane);
  std::set<uint16_t> lanes;
  for (const auto& row : r.content.rows) lanes.insert(row.lane);
  CHECK(lanes.size() == 3);
}

TEST_CASE("registered strings, threads' and streams' names, and what is no message") {
  RecordFolder folder;
  CHECK(under_injection(folder, [&](InjectedLibrary& library) {
          Tables t;
          if (!attach(library, t)) return 1;
          void* text = call<void*>(t.core2[kDomainRegisterStringA], static_cast<void*>(nullptr), "registered");
          if (!text) return 2;
          Attributes a = message(nullptr);
          a.message_type = kRegistered;
          a.message = text;
          for (int i = 0; i < 3; ++i) {
            call<int>(t.core[kRangePushEx], &a);
            pop(t);
          }
          call<void>(t.core[kNameOsThreadA], static_cast<uint32_t>(syscall(SYS_gettid)), "trainer");
          call<void>(t.cuda[kNameCuStreamA], reinterpret_cast<void*>(0x1000), "pp comm");
          // Whatever a client sends, it is answered and nothing falls over.
          Attributes older = message("cut off");
          older.size = 32;
          Attributes wild = message("x");
          wild.message_type = 77;
          Attributes foreign = a;
          foreign.message = &foreign;
          Attributes newer = message("newer client");
          newer.size = 200;
          newer.payload_type = static_cast<int32_t>(0xDFBD0009);
          newer.payload = 1;  // a pointer that must not be followed
          const Attributes* const all[] = {nullptr, &older, &wild, &foreign, &newer};
          for (const Attributes* one : all) {
            if (call<int>(t.core[kRangePushEx], one) != 0 || pop(t) != 0) return 3;
            call<void>(t.core[kMarkEx], one);
            call<void>(t.core2[kDomainRangeEnd], reinterpret_cast<void*>(0x77),
                       call<uint64_t>(t.core2[kDomainRangeStartEx], reinterpret_cast<void*>(0x77), one));
          }
          push(t, nullptr);
          pop(t);
          call<void>(t.core[kRangeEnd], uint64_t{0});
          call<void>(t.core[kRangeEnd], UINT64_MAX);
          push(t, std::string(5000, 'l').c_str());
          pop(t);
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(count_rows(r, RecordType::kRange) == 3 + 2 * 5 + 2);
  CHECK(row_named(r, "cut off") == nullptr);
  REQUIRE(row_named(r, "newer client") != nullptr);
  CHECK(lane_of(r, *row_named(r, "registered")) == "trainer");
  int64_t registered = 0;
  for (const auto& row : r.content.rows) registered += name_of(r, row) == "registered";
  CHECK(registered == 3);
  CHECK(std::count_if(r.content.names.begin(), r.content.names.end(),
                      [](const auto& name) { return name.second == "registered"; }) == 1);
  CHECK(std::any_of(r.content.lanes.begin(), r.content.lanes.end(), [](const auto& lane) {
    return lane.second.name == "pp comm" && lane.second.device_kind == SLR_CUDA;
  }));
}

TEST_CASE("every library of a program attaches with a table of its own, and small tables are not overrun") {
  RecordFolder folder;
  CHECK(under_injection(folder, [&](InjectedLibrary& library) {
          Tables first, second, small;
          small.core_size = kRangePushA + 1;  // an NVTX without pops
          if (!attach(library, first) || !attach(library, second) || !attach(library, small)) return 1;
          if (push(first, "a") != 0 || push(second, "b") != 1 || pop(first) != 1 || pop(second) != 0) return 2;
          if (small.core[kRangePop] != stub || small.core[kRangePushA] != first.core[kRangePushA]) return 3;
          int (*initialize)(GetExportTable);
          library.find("InitializeInjectionNvtx2", initialize);
          if (initialize(nullptr) != 0) return 4;
          if (initialize([](uint32_t) -> const void* { return nullptr; }) != 0) return 5;
          return 0;
        }) == 0);
  CHECK(count_rows(folder.read_one(), RecordType::kRange) == 2);
}

TEST_CASE("ranges on torch's current stream have the device's times, two deep") {
  RecordFolder folder;
  CHECK(under_injection(folder, [&](InjectedLibrary& library) {
          const Loaded cuda("libcuda.so.1"), torch("libtorch_cuda.so");
          const auto new_stream = cuda.get<FakeStreamFunction>("fake_stream");
          const auto kernel = cuda.get<FakeKernelFunction>("fake_kernel");
          const auto set_stream = torch.get<void (*)(void*)>("fake_torch_set_stream");
          const auto asked = torch.get<int (*)()>("fake_torch_asked");
          Tables t;
          if (!attach(library, t)) return 1;
          push(t, "before CUDA is used");
          pop(t);
          if (asked() != 0) return 2;  // torch would have made a context
          void* context = nullptr;
          cuda.get<int (*)(void*, void**)>("cuStreamGetCtx")(nullptr, &context);
          cuda.get<int (*)(void*)>("cuCtxSetCurrent")(context);
          void *compute = new_stream(), *comm = new_stream();
          set_stream(compute);
          for (int i = 0; i < 20; ++i) {
            push(t, "F");
            kernel(compute, 300'000);
            push(t, "attention");
            kernel(compute, 100'000);
            push(t, "too deep");
            pop(t);
            pop(t);
            set_stream(comm);  // between push and pop: the range stays where it began
            pop(t);
            push(t, "comm");
            kernel(comm, 50'000);
            pop(t);
            set_stream(compute);
            usleep(1000);
          }
          return library.flush(60'000);
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(count_rows(r, RecordType::kRange) == 81);
  std::map<std::string, int64_t> device, host;
  std::map<std::string, std::set<uint16_t>> lanes;
  for (const auto& row : r.content.rows) {
    ++(row.device_times ? device : host)[name_of(r, row)];
    lanes[name_of(r, row)].insert(row.lane);
    if (row.device_times && name_of(r, row) == "F") CHECK(row.end - row.start >= 400'000);
  }
  CHECK(device == std::map<std::string, int64_t>{{"F", 20}, {"attention", 20}, {"comm", 20}});
  CHECK(host == std::map<std::string, int64_t>{{"before CUDA is used", 1}, {"too deep", 20}});
  CHECK(lanes["F"].size() == 1);
  CHECK(lanes["comm"].size() == 1);
  CHECK(lanes["F"] != lanes["comm"]);
}

TEST_CASE("a forked child of an injected program records nothing and does not fall over") {
  RecordFolder folder;
  CHECK(under_injection(folder, [&](InjectedLibrary& library) {
          Tables t;
          if (!attach(library, t)) return 1;
          push(t, "parent");
          const pid_t child = fork();
          if (child == 0) {
            for (int i = 0; i < 100; ++i) {
              if (push(t, "child") != -2 || pop(t) != -2) _exit(1);
              if (call<uint64_t>(t.core[kRangeStartA], "child") != 0) _exit(2);
            }
            _exit(0);
          }
          int status = 0;
          waitpid(child, &status, 0);
          pop(t);
          return status;
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(count_rows(r, RecordType::kRange) == 1);
  CHECK(folder.files(".slrec").size() == 1);
}

TEST_CASE("many threads attach and mark at once") {
  RecordFolder folder;
  constexpr int kThreads = 16, kRanges = 500;
  CHECK(under_injection(folder, [&](InjectedLibrary& library) {
          Tables t;
          if (!attach(library, t)) return 1;
          std::vector<std::thread> threads;
          for (int k = 0; k < kThreads; ++k)
            threads.emplace_back([&, k] {
              // Calls that meet the recorder while another thread starts it have no record, and return that fact.
              for (int i = 0; i < kRanges;) {
                const std::string name = "range " + std::to_string((i * 7 + k) % 97);
                if (push(t, name.c_str()) == -2) continue;
                pop(t);
                ++i;
              }
            });
          for (auto& thread : threads) thread.join();
          return library.statistics().drops[SLR_DROP_BAD_HANDLE] == 0 ? 0 : 2;
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(count_rows(r, RecordType::kRange) == kThreads * kRanges);
  CHECK(r.content.names.size() == 97);
  for (const auto& row : r.content.rows) CHECK(name_of(r, row).rfind("range ", 0) == 0);
}

TEST_CASE("mstx ranges are recorded on the stream that they name") {
  RecordFolder folder;
  CHECK(under_injection(folder, [&](InjectedLibrary& library) {
          const Loaded acl("libascendcl.so");
          void* stream = acl.get<FakeStreamFunction>("fake_stream")();
          const auto kernel = acl.get<FakeKernelFunction>("fake_kernel");
          if (!mstx_client::attach(library)) return 1;
          const auto start = [](const char* text, void* on) { return call<uint64_t>(mstx_client::core[2], text, on); };
          const auto end = [](uint64_t id) { call<void>(mstx_client::core[3], id); };
          for (int i = 0; i < 5; ++i) {
            const uint64_t id = start("{'name': 'forward_step', 'current_microbatch': 3}", stream);
            kernel(stream, 200'000);
            end(id);
          }
          end(start("host only", nullptr));
          if (start(nullptr, stream) != 0) return 2;
          call<void>(mstx_client::core[1], "mark", static_cast<void*>(nullptr));
          void* domain = call<void*>(mstx_client::domain[1], "communication");
          if (!domain) return 3;
          const auto id = call<uint64_t>(mstx_client::domain[4], domain, "hcom", static_cast<void*>(nullptr));
          call<void>(mstx_client::domain[5], domain, id);
          call<void>(mstx_client::domain[3], domain, "mark there", static_cast<void*>(nullptr));
          call<void>(mstx_client::domain[2], domain);
          if (mstx_client::core[4] != nullptr) return 4;  // the tool's id does not matter
          return library.flush(60'000);
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(count_rows(r, RecordType::kRange) == 7);
  CHECK(count_rows(r, RecordType::kInstant) == 2);
  int64_t on_device = 0;
  for (const auto& row : r.content.rows) on_device += row.device_times;
  CHECK(on_device == 5);
  CHECK(lane_of(r, *row_named(r, "hcom")).rfind("communication ", 0) == 0);
}

TEST_CASE("mstx asks every library that is loaded; one that is merely linked stays out") {
  RecordFolder folder;
  CHECK(in_child([&] {
          unsetenv("MSTX_INJECTION_PATH");
          InjectedLibrary library;
          return mstx_client::attach(library) ? 1 : 0;
        }) == 0);
}

TEST_CASE("nothing begins again at exit") {
  RecordFolder folder;
  CHECK(under_injection(folder, [&](InjectedLibrary& library) {
          Tables t;
          if (!attach(library, t)) return 1;
          push(t, "one");
          pop(t);
          library.shutdown();
          return push(t, "static destructor") == -2 && pop(t) == -2 ? 0 : 2;
        }) == 0);
  CHECK(folder.files(".slrec").size() == 1);
}

TEST_CASE("a tool that was there before is called too, with its own handles") {
  struct FakeTool {
    int pushes, pops, starts, ends, domains, strings, mstx_starts, mstx_ends, foreign;
  };
  RecordFolder folder;
  CHECK(under_injection(folder, [&](InjectedLibrary& library) {
          setenv("STAGELINE_CHAIN_NVTX", STAGELINE_FAKE_FOLDER "/libfake_tool.so", 1);
          setenv("STAGELINE_CHAIN_MSTX", STAGELINE_FAKE_FOLDER "/libfake_tool.so", 1);
          Tables t;
          if (!attach(library, t)) return 1;
          const Loaded other("libfake_tool.so");
          const FakeTool& tool = *other.get<FakeTool* (*)()>("fake_tool")();
          if (push(t, "a") != 0 || pop(t) != 0) return 2;
          for (int i = 0; i < 3; ++i) call<void>(t.core[kRangeEnd], call<uint64_t>(t.core[kRangeStartA], "started"));
          void* domain = call<void*>(t.core2[kDomainCreateA], "loader");
          void* text = call<void*>(t.core2[kDomainRegisterStringA], domain, "text");
          Attributes a = message(nullptr);
          a.message_type = kRegistered;
          a.message = text;
          call<int>(t.core2[kDomainRangePushEx], domain, &a);
          call<int>(t.core2[kDomainRangePop], domain);  // an entry that it left alone
          if (stub_calls != 0) return 3;
          library.window(100, 200);  // from here on we keep nothing, and it everything
          call<void>(t.core[kRangeEnd], call<uint64_t>(t.core[kRangeStartA], "only theirs"));
          library.window(-1, 0);
          if (!mstx_client::attach(library)) return 4;
          call<void>(mstx_client::core[3], call<uint64_t>(mstx_client::core[2], "mstx", static_cast<void*>(nullptr)));
          if (tool.pushes != 2 || tool.pops != 1 || tool.starts != 4 || tool.ends != 4) return 5;
          if (tool.domains != 1 || tool.strings != 1 || tool.mstx_starts != 1 || tool.mstx_ends != 1) return 6;
          return tool.foreign == 0 ? 0 : 7;
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(count_rows(r, RecordType::kRange) == 6);
  CHECK(row_named(r, "text") != nullptr);
}
