// NCCL's operations as its profiler plugin receives them, through the table of every version of the interface.
#include <time.h>

#include <thread>
#include <type_traits>

#include "fake_nccl.h"
#include "inject_client.h"
#include "record_fixture.h"

using namespace fake_nccl;
using recording::RecordType;

namespace {

constexpr uint64_t kHash = 0xfeedfacecafe1234;
constexpr double kDeviceAhead = 7e12;  // of its global timer before the host's clock, ns

uint64_t device_timer() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec) +
         static_cast<uint64_t>(kDeviceAhead);
}

int with_plugin(const RecordFolder& folder, const std::function<int(InjectedLibrary&)>& body) {
  return in_child([&] {
    setenv("STAGELINE_DIR", folder.path().c_str(), 1);
    setenv("RANK", "1", 1);
    InjectedLibrary library;
    const int result = body(library);
    library.shutdown();
    return result;
  });
}

template <class T> const T* table_of(const InjectedLibrary& library, const char* name) {
  return static_cast<const T*>(dlsym(library.library, name));
}

const recording::Row* row_named(const recording::Recording& r, const std::string& name, size_t k = 0) {
  for (const auto& row : r.content.rows) {
    const auto text = r.content.names.find(row.name);
    if (text != r.content.names.end() && text->second == name && k-- == 0) return &row;
  }
  return nullptr;
}

// Algorithm and protocol as NCCL says them, in numbers or in texts.
template <class Coll> void set_how(Coll& coll) {
  if constexpr (std::is_same_v<decltype(coll.algo), uint8_t>) coll.algo = 1, coll.proto = 2;
  else coll.algo = "RING", coll.proto = "SIMPLE";
  if constexpr (requires { coll.max_channels; }) coll.max_channels = 24;
  else coll.channels = 3;
}

// Versions 1 to 3 report the host's calls.
template <class T, class Event, class Func, class Datatype>
int send_and_reduce(const InjectedLibrary& library, const char* table, Func send, Func receive, Func all_reduce,
                    Datatype half) {
  const T* plugin = table_of<T>(library, table);
  if (!plugin || !plugin->name) return 1;
  void *context = &context, *handle = nullptr;
  int mask = 0;
  if (plugin->init(&context, &mask) != 0 || (mask & (kColl | kP2p)) != (kColl | kP2p) || (mask & kProxyOp)) return 2;
  for (int i = 0; i < 2; ++i)
    for (const Func func : {send, receive}) {
      Event e{};
      e.type = kP2p;
      e.rank = 1;
      e.p2p = {"pp", kHash, func, nullptr, half, 1000, func == send ? 2 : 0};
      if (plugin->start(context, &handle, &e) != 0 || !handle || plugin->stop(handle) != 0) return 3;
    }
  Event e{};
  e.type = kColl;
  e.rank = 1;
  e.coll.name = "pp";
  e.coll.hash = kHash;
  e.coll.sequence = 41;
  e.coll.func = all_reduce;
  e.coll.count = 64;
  e.coll.datatype = half;
  set_how(e.coll);
  plugin->start(context, &handle, &e);
  plugin->stop(handle);
  for (const int other : {kGroup, kProxyOp}) {  // not asked for; told all the same
    Event more{};
    more.type = static_cast<uint8_t>(other);
    handle = &handle;
    if (plugin->start(context, &handle, &more) != 0 || handle != nullptr || plugin->stop(handle) != 0) return 4;
  }
  plugin->stop(&mask);  // a foreign handle
  return plugin->finalize(context);
}

void check_calls(const RecordFolder& folder) {
  const recording::Recording r = folder.read_one();
  REQUIRE(count_rows(r, RecordType::kRange) == 5);
  for (size_t k = 0; k < 2; ++k) {
    const auto *send = row_named(r, "nccl:send", k), *receive = row_named(r, "nccl:recv", k);
    REQUIRE((send && receive));
    CHECK(send->peer == 2);
    CHECK(receive->peer == 0);
    CHECK(send->bytes == 2000);
    CHECK(send->sequence == static_cast<int64_t>(k));
    CHECK(receive->sequence == static_cast<int64_t>(k));
    CHECK(send->host_instead);  // when it was asked for
  }
  const auto* reduce = row_named(r, "nccl:all_reduce (RING SIMPLE, 24 channels)");
  REQUIRE(reduce);
  CHECK(reduce->sequence == 41);
  CHECK(reduce->bytes == 128);
  const recording::LaneRow& lane = r.content.lanes.at(reduce->lane);
  CHECK(lane.device_kind == 4);
  CHECK(lane.stream == kHash);
  CHECK(lane.device == 1);
  CHECK(lane.name == "NCCL pp");
}

// Versions 4 to 7: kernels report the device's times. Returns 0, and when the send's kernel ran on the host's clock.
template <class T, class Type, class Init>
int run_kernels(const InjectedLibrary& library, const char* table, Init init, uint64_t* start, uint64_t* stop) {
  const T* plugin = table_of<T>(library, table);
  if (!plugin) return 1;
  void *context = nullptr, *op = nullptr, *kernels[2] = {};
  int mask = 0;
  if (init(*plugin, &context, &mask) != 0 || !context || !(mask & kKernelCh)) return 2;
  for (int i = 0; i < 20; ++i) {
    EventFour<Type> e{};
    e.type = kP2p;
    e.rank = 1;
    e.p2p.func = "Send";
    e.p2p.datatype = "ncclBfloat16";
    e.p2p.count = 500;
    e.p2p.peer = 2;
    e.p2p.channels = 2;
    if (plugin->start(context, &op, &e) != 0 || !op || plugin->stop(op) != 0) return 3;
    const uint64_t began = device_timer();
    for (int channel = 0; channel < 2; ++channel) {
      EventFour<Type> k{};
      k.type = kKernelCh;
      k.parent = op;
      k.kernel = {static_cast<uint8_t>(channel), began + static_cast<uint64_t>(channel) * 1000};
      if (plugin->start(context, &kernels[channel], &k) != 0 || !kernels[channel]) return 4;
    }
    usleep(300);
    const uint64_t ended = device_timer();
    for (int channel = 0; channel < 2; ++channel) {
      uint64_t timer = ended - static_cast<uint64_t>(channel) * 2000;
      plugin->record_state(kernels[channel], 22, &timer);
      plugin->stop(kernels[channel]);
    }
    *start = began - static_cast<uint64_t>(kDeviceAhead);
    *stop = ended - static_cast<uint64_t>(kDeviceAhead);
  }
  // One whose channels never report: kept when the communicator goes.
  EventFour<Type> e{};
  e.type = kColl;
  e.coll.func = "ReduceScatter";
  e.coll.sequence = 9;
  e.coll.datatype = "ncclFloat32";
  e.coll.count = 10;
  set_how(e.coll);
  plugin->start(context, &op, &e);
  plugin->stop(op);
  return plugin->finalize(context);
}

void check_kernels(const RecordFolder& folder, uint64_t start_ns, uint64_t stop_ns) {
  const recording::Recording r = folder.read_one();
  REQUIRE(count_rows(r, RecordType::kRange) == 21);
  const auto* last = row_named(r, "nccl:send", 19);
  REQUIRE(last);
  CHECK(last->bytes == 1000);
  CHECK(last->sequence == 19);
  CHECK_FALSE(last->host_instead);
  const auto& snapshot = r.content.snapshots.front();
  const auto raw_ns = [&](int64_t ticks) {
    return static_cast<double>(snapshot.raw_ns) +
           static_cast<double>(ticks - snapshot.ticks) * 1e9 / static_cast<double>(r.meta.ticks_per_second);
  };
  // Duration is the device's own; where it lies is known to the delay of the best report.
  CHECK(raw_ns(last->end) - raw_ns(last->start) ==
        doctest::Approx(static_cast<double>(stop_ns - start_ns)).epsilon(0.02));
  CHECK(raw_ns(last->end) >= static_cast<double>(stop_ns) - 20'000);
  CHECK(raw_ns(last->start) >= static_cast<double>(start_ns) - 20'000);
  const auto* lost = row_named(r, "nccl:reduce_scatter (RING SIMPLE, 3 channels)");
  REQUIRE(lost);
  CHECK(lost->host_instead);
  CHECK(lost->sequence == 9);
  CHECK(r.content.lanes.at(last->lane).thread == 4);
}

const auto init_four = [](const TableFour& t, void** context, int* mask) {
  return t.init(context, mask, "pp", kHash, 1, 4, 1, nullptr);
};
const auto init_five = [](const TableFive& t, void** context, int* mask) {
  return t.init(context, kHash, mask, "pp", 1, 4, 1, nullptr);
};

// The plugin as NCCL has initialised it, in the interface of version 5 and newer. It keeps the mask's address.
struct Plugin {
  const TableFive& table;
  void* context = nullptr;
  int mask = 0;

  explicit Plugin(const InjectedLibrary& library, const char* name = "ncclProfiler_v5")
      : table(*table_of<TableFive>(library, name)) {
    init_five(table, &context, &mask);
  }
  Plugin(const Plugin&) = delete;
  const TableFive* operator->() const { return &table; }
};

}  // namespace

TEST_CASE("NCCL's plugin interface, version 1: functions and types are numbers") {
  RecordFolder folder;
  CHECK(with_plugin(folder, [](InjectedLibrary& library) {
          return send_and_reduce<TableOne, EventOne, uint8_t, uint8_t>(library, "ncclProfiler_v1", 6, 7, 4, 6);
        }) == 0);
  check_calls(folder);
}

TEST_CASE("NCCL's plugin interface, versions 2 and 3: functions and types are texts") {
  for (const bool third : {false, true}) {
    RecordFolder folder;
    CHECK(with_plugin(folder, [&](InjectedLibrary& library) {
            return third ? send_and_reduce<TableThree, EventThree, const char*, const char*>(
                               library, "ncclProfiler_v3", "Send", "Recv", "AllReduce", "ncclFloat16")
                         : send_and_reduce<TableTwo, EventTwo, const char*, const char*>(
                               library, "ncclProfiler_v2", "Send", "Recv", "AllReduce", "ncclFloat16");
          }) == 0);
    check_calls(folder);
  }
}

TEST_CASE("NCCL's plugin interface, versions 4 to 7: kernels tell the device's times") {
  Shared<uint64_t> times(2);
  {
    RecordFolder folder;
    CHECK(with_plugin(folder, [&](InjectedLibrary& library) {
            return run_kernels<TableFour, uint8_t>(library, "ncclProfiler_v4", init_four, &times[0], &times[1]);
          }) == 0);
    check_kernels(folder, times[0], times[1]);
  }
  for (const char* table : {"ncclProfiler_v5", "ncclProfiler_v6", "ncclProfiler_v7"}) {
    RecordFolder folder;
    CHECK(with_plugin(folder, [&](InjectedLibrary& library) {
            return run_kernels<TableFive, uint64_t>(library, table, init_five, &times[0], &times[1]);
          }) == 0);
    check_kernels(folder, times[0], times[1]);
  }
}

TEST_CASE("a captured graph switches kernels' times off, which would put host callbacks into it") {
  RecordFolder folder;
  CHECK(with_plugin(folder, [](InjectedLibrary& library) {
          const Plugin plugin(library);
          const auto& [table, context, mask] = plugin;
          void* handle = nullptr;
          if (!(mask & kKernelCh) || !(mask & kP2pApi)) return 1;
          EventFour<uint64_t> e{};
          e.type = kP2pApi;
          e.p2p_api.func = "Send";
          plugin->start(context, &handle, &e);
          if (!(mask & kKernelCh) || handle != nullptr) return 2;
          e.p2p_api.captured = true;
          plugin->start(context, &handle, &e);
          if (mask & kKernelCh) return 3;
          EventFour<uint64_t> p{};
          p.type = kP2p;
          p.p2p.func = "Send";
          p.p2p.channels = 8;
          plugin->start(context, &handle, &p);
          return plugin->stop(handle);  // waits for no channel
        }) == 0);
  CHECK(count_rows(folder.read_one(), RecordType::kRange) == 1);
}

TEST_CASE("NCCL's operations beyond all tables, foreign parents and null arguments") {
  RecordFolder folder;
  constexpr int kMany = 40'000;
  CHECK(with_plugin(folder, [](InjectedLibrary& library) {
          if (table_of<TableFive>(library, "ncclProfiler_v6")->init(nullptr, 0, nullptr, nullptr, 0, 0, 0, nullptr) !=
              0)
            return 1;
          const Plugin plugin(library, "ncclProfiler_v6");
          void *context = plugin.context, *handle = nullptr;
          plugin->start(context, nullptr, nullptr);
          plugin->start(context, &handle, nullptr);
          plugin->start(nullptr, &handle, nullptr);
          plugin->record_state(nullptr, 22, nullptr);
          plugin->finalize(nullptr);
          EventFour<uint64_t> k{};
          k.type = kKernelCh;
          k.parent = &k;
          if (plugin->start(context, &handle, &k) != 0 || handle) return 2;
          for (int i = 0; i < kMany; ++i) {  // channels never report
            EventFour<uint64_t> e{};
            e.type = kP2p;
            e.p2p.func = nullptr;
            e.p2p.datatype = nullptr;
            e.p2p.count = SIZE_MAX;
            e.p2p.peer = i;
            e.p2p.channels = 1;
            plugin->start(context, &handle, &e);
            plugin->stop(handle);
          }
          std::vector<std::thread> threads;
          for (int t = 0; t < 4; ++t)
            threads.emplace_back([&, t] {
              void *own = nullptr, *op = nullptr;
              int bits = 0;
              plugin->init(&own, 100 + static_cast<uint64_t>(t), &bits, nullptr, 1, 2, 0, nullptr);
              for (int i = 0; i < 2000; ++i) {
                EventFour<uint64_t> e{};
                e.type = kColl;
                e.coll.func = "AllGather";
                e.coll.datatype = "ncclInt8";
                plugin->start(own, &op, &e);
                plugin->stop(op);
              }
              plugin->finalize(own);
            });
          for (auto& thread : threads) thread.join();
          for (uint64_t i = 0; i < 600; ++i) {  // more communicators than there is room for
            void* own = nullptr;
            int bits = 0;
            plugin->init(&own, 1000 + i, &bits, nullptr, 1, 2, 0, nullptr);
            if (!own && bits != 0) return 3;
          }
          plugin->finalize(context);
          library.flush(60'000);
          const slr_statistics s = library.statistics();
          return s.records + dropped_records(s) == kMany + 8000 ? 0 : 4;
        }) == 0);
  const recording::Recording r = folder.read_one();
  int64_t unknown_bytes = 0;
  for (const auto& row : r.content.rows) unknown_bytes += row.bytes < 0;
  CHECK(unknown_bytes > 0);
}

namespace {

struct FakePlugin {
  int inits, starts, stops, states, finals, children, foreign, unwanted, init_error;
};
FakePlugin& fake_plugin() {
  void* library = dlopen(STAGELINE_FAKE_FOLDER "/libnccl-profiler-fake.so", RTLD_NOW);
  if (!library) _exit(96);
  return *reinterpret_cast<FakePlugin* (*)()>(dlsym(library, "fake_plugin"))();
}

// Makes a send with its proxy's operation and one kernel's channel, as NCCL reports them.
int send_with_children(const TableFive& plugin, void* context) {
  void *op = nullptr, *proxy = nullptr, *kernel = nullptr;
  EventFour<uint64_t> e{};
  e.type = kP2p;
  e.rank = 1;
  e.p2p.func = "Send";
  e.p2p.datatype = "ncclInt8";
  e.p2p.count = 10;
  e.p2p.peer = 2;
  e.p2p.channels = 1;
  if (plugin.start(context, &op, &e) != 0 || !op || e.parent || plugin.stop(op) != 0) return 1;
  EventFour<uint64_t> p{};
  p.type = kProxyOp;
  p.parent = op;
  if (plugin.start(context, &proxy, &p) != 0 || !proxy || p.parent != op) return 2;
  EventFour<uint64_t> k{};
  k.type = kKernelCh;
  k.parent = op;
  k.kernel = {0, device_timer()};
  if (plugin.start(context, &kernel, &k) != 0 || !kernel) return 3;
  uint64_t timer = device_timer();
  plugin.record_state(kernel, 22, &timer);
  plugin.record_state(proxy, 3, nullptr);
  return plugin.stop(kernel) + plugin.stop(proxy);
}

}  // namespace

TEST_CASE("an NCCL plugin that was there before is told what it asked for, with its own handles") {
  for (const char* name : {STAGELINE_FAKE_FOLDER "/libnccl-profiler-fake.so", "fake"}) {
    RecordFolder folder;
    constexpr int kSends = 70'000;  // more than there are places
    CHECK(with_plugin(folder, [&](InjectedLibrary& library) {
            setenv("STAGELINE_CHAIN_NCCL", name, 1);
            FakePlugin& other = fake_plugin();
            const Plugin plugin(library);
            const auto& [table, context, mask] = plugin;
            void* handle = nullptr;
            if (other.inits != 1 || mask != (kColl | kP2p | kProxyOp | kKernelCh | kCollApi | kP2pApi)) return 2;
            for (int i = 0; i < kSends; ++i)
              if (const int wrong = send_with_children(table, context)) return 10 + wrong;
            EventFour<uint64_t> api{};
            api.type = kP2pApi;
            api.p2p_api.captured = true;
            plugin->start(context, &handle, &api);
            if (!(mask & kKernelCh)) return 3;  // it wants them still
            if (plugin->finalize(context) != 0) return 4;
            if (other.starts != 3 * kSends || other.stops != 3 * kSends || other.states != 2 * kSends) return 5;
            if (other.children != 2 * kSends || other.finals != 1 || other.unwanted != 0) return 6;
            library.flush(60'000);
            const slr_statistics s = library.statistics();
            if (s.records + dropped_records(s) != kSends) return 7;
            return other.foreign == 0 ? 0 : 8;
          }) == 0);
  }
}

TEST_CASE("an NCCL plugin that is not there, is of another version or refuses leaves us alone") {
  for (const int how : {0, 1, 2, 3}) {
    RecordFolder folder;
    CHECK(with_plugin(folder, [&](InjectedLibrary& library) {
            constexpr const char* kPlugin = STAGELINE_FAKE_FOLDER "/libnccl-profiler-fake.so";
            setenv("STAGELINE_CHAIN_NCCL",
                   how == 0   ? "/no/such/plugin.so"
                   : how == 1 ? STAGELINE_RECORD_LIBRARY
                              : kPlugin,
                   1);
            FakePlugin& other = fake_plugin();
            other.init_error = how == 3;
            if (how != 1 && freopen("/dev/null", "w", stderr) == nullptr) return 9;  // it says so once
            const Plugin plugin(library, how == 2 ? "ncclProfiler_v6" : "ncclProfiler_v5");
            if (plugin.mask & kProxyOp) return 1;
            EventFour<uint64_t> e{};
            e.type = kP2p;
            e.p2p.func = "Send";
            void* op = nullptr;
            plugin->start(plugin.context, &op, &e);
            return plugin->stop(op) + plugin->finalize(plugin.context) + other.starts + other.finals;
          }) == 0);
    CHECK(count_rows(folder.read_one(), RecordType::kRange) == 1);
  }
}
