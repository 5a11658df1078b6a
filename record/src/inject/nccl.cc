// NCCL's operations: NCCL_PROFILER_PLUGIN=/path/libstageline_record.so. Sends and receives with peer, bytes and number,
// collectives with communicator and number.
//
//   enqueue ──start──▶ Op ──stop──▶ …            the host's times: when it was asked for
//                       ▲ ▲
//        KernelCh ──────┘ │ one per channel      the device's times: from the first channel's start to the last's end
//        KernelCh ────────┘
//
// NCCL stops an operation when it is enqueued; its kernel's channels report later, by a thread that polls. Their times
// are the device's global timer. A reported operation had ended before. So (time of the report − timer) is the two
// clocks' difference plus the delay of the report; its minimum in the last 0.2 s is used as the difference. An
// operation whose channels do not report (versions 1 to 3, graphs, a full table) keeps the host's times and is marked.
//
// A plugin that was named in the variable before receives everything too: nccl_behind.h.
//
// Nothing is returned to NCCL but success. Tables are fixed; what is oldest gives way and is written as it is.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "inject/injected.h"
#include "inject/nccl_abi.h"
#include "inject/nccl_behind.h"

namespace slr {
namespace nccl {
namespace {

constexpr uint32_t kMaxOps = 1 << 14, kMaxKernels = 1 << 15, kMaxComms = 256, kMaxPeers = 1 << 12;
constexpr uint32_t kTries = 64;

struct Comm {
  std::atomic<uint64_t> hash;
  std::atomic<uint32_t> is_used;
  slr_lane lane;
  int* mask;
  // Device's timer + this = ticks; the minimum of two spans of time.
  std::atomic<int64_t> least[2];
  std::atomic<int64_t> span;
  struct {
    std::atomic<uint64_t> key;  // peer · 2 + (1 receives), plus 1
    std::atomic<int64_t> count;
  } peers[kMaxPeers];
};
Comm comms[kMaxComms];
Lock lock;  // of new communicators
std::atomic<bool> kernels_wanted{true};

enum HandleKind : uint32_t { kOpHandle = 0x4f70, kKernelHandle = 0x4b65 };

struct Op {
  HandleKind kind;
  std::atomic<uint32_t> open;  // its stop, and channels that have not ended; 0: free
  std::atomic<Comm*> comm;     // finalize() looks at those of other threads
  DoneRange range;
  std::atomic<uint64_t> first_ticks, last_ticks;  // the device's
};
struct Kernel {
  HandleKind kind;
  std::atomic<uint32_t> is_used;
  Op* op;
  uint64_t start_timer, stop_timer;
};
Op ops[kMaxOps];
Kernel kernels[kMaxKernels];
std::atomic<uint32_t> next_op{0}, next_kernel{0};

double ticks_per_ns() { return static_cast<double>(state.hot->ticks_per_second) * 1e-9; }

void write(Op& op) {
  const uint64_t first = op.first_ticks.load(std::memory_order_acquire), last = op.last_ticks.load();
  op.range.timed = first <= last;  // some channel reported
  if (op.range.timed) {
    // Work does not begin before it was asked for: what says so is the clocks' difference not being known well yet.
    op.range.end_ticks = last > op.range.start_ticks ? last : op.range.start_ticks;
    op.range.start_ticks = first > op.range.start_ticks ? first : op.range.start_ticks;
  }
  record_done(op.range);
}

// One of those that kept it open is gone; the last one writes it.
void release(Op& op) {
  uint32_t open = op.open.load(std::memory_order_acquire);
  do {
    if (open == 0 || open == UINT32_MAX) return;  // given up
  } while (!op.open.compare_exchange_weak(open, open == 1 ? UINT32_MAX : open - 1, std::memory_order_acq_rel));
  if (open != 1) return;
  write(op);
  op.open.store(0, std::memory_order_release);
}

void give_up(Op& op) {
  uint32_t open = op.open.load(std::memory_order_acquire);
  do {
    if (open == 0 || open == UINT32_MAX) return;
  } while (!op.open.compare_exchange_weak(open, UINT32_MAX, std::memory_order_acq_rel));
  write(op);
  op.open.store(0, std::memory_order_release);
}

Op* take_op() {
  for (uint32_t i = 0; i < kTries; ++i) {
    Op& op = ops[next_op.fetch_add(1, std::memory_order_relaxed) % kMaxOps];
    if (i + 1 == kTries) give_up(op);
    uint32_t free = 0;
    if (op.open.compare_exchange_strong(free, UINT32_MAX, std::memory_order_acq_rel)) return &op;
  }
  return nullptr;
}

// Ours, by its place; anything else that NCCL passes is not looked at.
template <class T, size_t N> T* own(T (&table)[N], void* handle, HandleKind kind) {
  const auto at = reinterpret_cast<uintptr_t>(handle), first = reinterpret_cast<uintptr_t>(table);
  if (at < first || at >= first + sizeof table || (at - first) % sizeof(T) != 0) return nullptr;
  T* found = static_cast<T*>(handle);
  return found->kind == kind ? found : nullptr;
}

// The communicator of a number, made when it is new; nullptr: there are too many.
Comm* comm_of(uint64_t hash, const char* name, int rank, int ranks) {
  for (Comm& comm : comms)
    if (comm.is_used.load(std::memory_order_acquire) && comm.hash.load() == hash) return &comm;
  const Held held(lock);
  if (!held) return nullptr;
  Comm* found = nullptr;
  for (Comm& comm : comms) {
    if (comm.is_used.load() && comm.hash.load() != hash) continue;
    found = &comm;
    if (comm.is_used.load()) break;  // another thread made it
    LaneEntry entry{};
    entry.device_kind = kCommunicator;
    entry.device = static_cast<int16_t>(rank >= 0 && rank <= INT16_MAX ? rank : -1);
    entry.thread_id = static_cast<uint32_t>(ranks > 0 ? ranks : 0);
    entry.stream_id = hash;
    if (name && *name) snprintf(entry.name, sizeof entry.name, "NCCL %.40s", name);
    else snprintf(entry.name, sizeof entry.name, "NCCL %08x", static_cast<unsigned>(hash ^ hash >> 32));
    comm.lane = add_lane(entry, nullptr);
    comm.least[0] = comm.least[1] = INT64_MAX;
    comm.hash.store(hash);
    comm.is_used.store(1, std::memory_order_release);
    break;
  }
  return found;
}

// Returns how many messages there were to or from a peer before; −1: more peers than the table holds.
int64_t next_number(Comm& comm, int peer, bool receives) {
  const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(peer)) * 2 + receives + 1;
  for (uint32_t i = 0; i < kTries; ++i) {
    auto& entry = comm.peers[((key * 0x9e3779b97f4a7c15 >> 40) + i) & (kMaxPeers - 1)];
    uint64_t seen = entry.key.load(std::memory_order_acquire);
    if (seen == 0 && entry.key.compare_exchange_strong(seen, key, std::memory_order_acq_rel)) seen = key;
    if (seen == key) return entry.count.fetch_add(1, std::memory_order_relaxed);
  }
  return -1;
}

// The difference of the clocks, in ticks, after one more report.
int64_t difference(Comm& comm, uint64_t timer) {
  const uint64_t now = now_ticks();
  const auto timer_ticks = static_cast<int64_t>(static_cast<double>(timer % 1'000'000'000'000'000) * ticks_per_ns());
  const int64_t seen = static_cast<int64_t>(now) - timer_ticks;
  const auto span = static_cast<int64_t>(now / (state.hot->ticks_per_second / 10 + 1));
  int64_t before = comm.span.load(std::memory_order_acquire);
  if (span != before && comm.span.compare_exchange_strong(before, span, std::memory_order_acq_rel))
    comm.least[span & 1].store(INT64_MAX, std::memory_order_release);
  auto& least = comm.least[span & 1];
  int64_t known = least.load(std::memory_order_relaxed);
  while (seen < known && !least.compare_exchange_weak(known, seen, std::memory_order_relaxed)) {
  }
  const int64_t other = comm.least[~span & 1].load(std::memory_order_relaxed);
  return seen < known ? (seen < other ? seen : other) : (known < other ? known : other);
}

void note_kernel(Op& op, uint64_t start_timer, uint64_t stop_timer) {
  if (start_timer == 0 || stop_timer < start_timer || !is_on()) return;
  const int64_t clocks = difference(*op.comm.load(std::memory_order_relaxed), stop_timer);
  const auto ticks = [&](uint64_t timer) {
    return static_cast<uint64_t>(
        clocks + static_cast<int64_t>(static_cast<double>(timer % 1'000'000'000'000'000) * ticks_per_ns()));
  };
  const uint64_t start = ticks(start_timer), stop = ticks(stop_timer);
  uint64_t first = op.first_ticks.load(), last = op.last_ticks.load();
  while (start < first && !op.first_ticks.compare_exchange_weak(first, start)) {
  }
  while (stop > last && !op.last_ticks.compare_exchange_weak(last, stop)) {
  }
}

// How NCCL runs a collective, in its own words: "RING", "LL128"; nullptr where it does not say.
struct How {
  const char *algorithm, *protocol;
  int channels;
};

// "Send" → "nccl:send", "AllReduce" → "nccl:all_reduce (RING LL128, 16 channels)": functions as torch calls them.
slr_str name_of_function(const char* function, const How& how) {
  char text[128] = "nccl:";
  size_t n = 5;
  for (const char* c = function ? function : "?"; *c && n + 3 < 64; ++c) {
    const bool capital = *c >= 'A' && *c <= 'Z';
    if (capital && n > 5 && c[-1] >= 'a' && c[-1] <= 'z') text[n++] = '_';
    text[n++] = capital ? static_cast<char>(*c - 'A' + 'a') : *c;
  }
  if (how.algorithm && how.protocol && how.channels > 0)
    n += static_cast<size_t>(
        snprintf(text + n, sizeof text - n, " (%.16s %.16s, %d channels)", how.algorithm, how.protocol, how.channels));
  return slr_intern(text, n);
}

int64_t bytes_of(const char* datatype, size_t count) {
  // "ncclInt8", "ncclBfloat16", "ncclFloat8e4m3": the first number is the bits.
  const char* digit = datatype ? strpbrk(datatype, "0123456789") : nullptr;
  const long bits = digit ? strtol(digit, nullptr, 10) : 0;
  if (bits < 8 || bits > 64 || count > static_cast<size_t>(INT64_MAX) / 8) return -1;
  return static_cast<int64_t>(count) * (bits / 8);
}

struct Said {  // of an operation, in whatever version
  const char* function;
  const char* datatype;
  size_t count;
  int64_t sequence;
  int peer;
  int channels;  // that will report
  How how;
};

void* start_op(Comm* comm, const Said& said) {
  if (!injection_is_on()) return nullptr;
  if (!comm) {
    drop(SLR_DROP_TOO_DEEP);
    return nullptr;
  }
  const bool receives = said.function && strcmp(said.function, "Recv") == 0;
  // Counted whether it is kept or not: the other end counts too.
  const int64_t sequence = said.peer >= 0 ? next_number(*comm, said.peer, receives) : said.sequence;
  Op* op = take_op();
  if (!op) {
    drop(SLR_DROP_TOO_DEEP);  // more operations open at once than the table holds
    return nullptr;
  }
  op->kind = kOpHandle;
  op->comm.store(comm, std::memory_order_relaxed);
  op->first_ticks.store(UINT64_MAX, std::memory_order_relaxed);
  op->last_ticks.store(0, std::memory_order_relaxed);
  op->range = {now_ticks(),
               0,
               comm->lane,
               name_of_function(said.function, said.how),
               state.step.load(std::memory_order_relaxed),
               said.peer,
               bytes_of(said.datatype, said.count),
               sequence,
               false,
               false};
  const int channels = kernels_wanted.load(std::memory_order_relaxed) && said.channels > 0 ? said.channels : 0;
  op->open.store(1 + static_cast<uint32_t>(channels), std::memory_order_release);
  return op;
}

void* start_kernel(void* parent, uint64_t timer) {
  Op* op = own(ops, parent, kOpHandle);
  if (!op) return nullptr;
  for (uint32_t i = 0; i < kTries; ++i) {
    Kernel& kernel = kernels[next_kernel.fetch_add(1, std::memory_order_relaxed) % kMaxKernels];
    uint32_t free = 0;
    if (!kernel.is_used.compare_exchange_strong(free, 1, std::memory_order_acq_rel)) continue;
    kernel.kind = kKernelHandle;
    kernel.op = op;
    kernel.start_timer = timer;
    kernel.stop_timer = 0;
    return &kernel;
  }
  release(*op);
  return nullptr;
}

void see_capture(Comm* comm, bool captured) {
  // With kernels' times wanted, NCCL puts host callbacks into captured graphs.
  if (!captured || !kernels_wanted.exchange(false) || !comm || !comm->mask) return;
  __atomic_fetch_and(comm->mask, ~static_cast<int>(kKernelCh), __ATOMIC_RELAXED);
}

int wanted_mask(bool with_kernels, bool with_api) {
  const char* kernels_off = getenv("STAGELINE_NCCL_KERNELS");
  if (kernels_off && strcmp(kernels_off, "0") == 0) kernels_wanted.store(false);
  return static_cast<int>(kColl | kP2p) | (with_kernels && kernels_wanted.load() ? static_cast<int>(kKernelCh) : 0) |
         (with_api && kernels_wanted.load() ? static_cast<int>(kCollApi | kP2pApi) : 0);
}

int init_any(void** context, int* mask, const char* name, uint64_t hash, int ranks, int rank, bool with_api) {
  if (!context || !mask) return 0;
  Comm* comm = comm_of(hash, name, rank, ranks);
  if (comm) comm->mask = mask;
  *context = comm;
  *mask = comm ? wanted_mask(true, with_api) : 0;
  return 0;
}
template <int kVersion> int init_v1(void** context, int* mask) {
  return init_both<InitV1>(
      kVersion, context, mask,
      [](void** own, int* wanted) {
        if (wanted) *wanted = wanted_mask(false, false);
        if (own) *own = nullptr;
        return 0;
      },
      [](InitV1 init, void** own, int* wanted) { return init(own, wanted); });
}
int init_v4(void** context, int* mask, const char* name, uint64_t hash, int nodes, int ranks, int rank, void* log) {
  return init_both<InitV4>(
      4, context, mask, [&](void** own, int* wanted) { return init_any(own, wanted, name, hash, ranks, rank, false); },
      [&](InitV4 init, void** own, int* wanted) { return init(own, wanted, name, hash, nodes, ranks, rank, log); });
}
template <int kVersion>
int init_v5(void** context, uint64_t hash, int* mask, const char* name, int nodes, int ranks, int rank, void* log) {
  return init_both<InitV5>(
      kVersion, context, mask,
      [&](void** own, int* wanted) { return init_any(own, wanted, name, hash, ranks, rank, true); },
      [&](InitV5 init, void** own, int* wanted) { return init(own, hash, wanted, name, nodes, ranks, rank, log); });
}

// Names the ncclFunc_t and ncclDataType_t of NCCL 2.23.
const char* function_v1(uint8_t function) {
  static const char* const kNames[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                       "AllReduce", "SendRecv", "Send",      "Recv"};
  return function < sizeof kNames / sizeof kNames[0] ? kNames[function] : "Other";
}
const char* datatype_v1(uint8_t datatype) {
  static const char* const kNames[] = {"ncclInt8",   "ncclUint8",   "ncclInt32",   "ncclUint32",  "ncclInt64",
                                       "ncclUint64", "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16"};
  return datatype < sizeof kNames / sizeof kNames[0] ? kNames[datatype] : nullptr;
}

How how_v1(const CollV1& coll) {
  static const char* const kAlgorithms[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                            "NVLS_TREE", "PAT"};
  static const char* const kProtocols[] = {"LL", "LL128", "SIMPLE"};
  return {coll.algorithm < sizeof kAlgorithms / sizeof kAlgorithms[0] ? kAlgorithms[coll.algorithm] : nullptr,
          coll.protocol < sizeof kProtocols / sizeof kProtocols[0] ? kProtocols[coll.protocol] : nullptr,
          coll.channels};
}
template <class Coll> How how_of(const Coll& coll) { return {coll.algorithm, coll.protocol, coll.channels}; }

int start_ours_v1(void*, void** handle, EventV1* e) {
  if (!handle) return 0;
  *handle = nullptr;
  if (!e) return 0;
  if (e->type == kColl)
    *handle = start_op(comm_of(e->coll.comm_hash, e->coll.name, e->rank, 0),
                       {function_v1(e->coll.function), datatype_v1(e->coll.datatype), e->coll.count,
                        static_cast<int64_t>(e->coll.sequence), -1, 0, how_v1(e->coll)});
  else if (e->type == kP2p)
    *handle =
        start_op(comm_of(e->p2p.comm_hash, e->p2p.name, e->rank, 0),
                 {function_v1(e->p2p.function), datatype_v1(e->p2p.datatype), e->p2p.count, -1, e->p2p.peer, 0, {}});
  return 0;
}
template <class EventOf> int start_ours_v2(void*, void** handle, EventOf* e) {
  if (!handle) return 0;
  *handle = nullptr;
  if (!e) return 0;
  if (e->type == kColl)
    *handle = start_op(comm_of(e->coll.comm_hash, e->coll.name, e->rank, 0),
                       {e->coll.function, e->coll.datatype, e->coll.count, static_cast<int64_t>(e->coll.sequence), -1,
                        0, how_of(e->coll)});
  else if (e->type == kP2p)
    *handle = start_op(comm_of(e->p2p.comm_hash, e->p2p.name, e->rank, 0),
                       {e->p2p.function, e->p2p.datatype, e->p2p.count, -1, e->p2p.peer, 0, {}});
  return 0;
}
Comm* comm_at(void* context) {
  const auto at = reinterpret_cast<uintptr_t>(context), first = reinterpret_cast<uintptr_t>(comms);
  return at >= first && at < first + sizeof comms && (at - first) % sizeof(Comm) == 0 ? static_cast<Comm*>(context)
                                                                                      : nullptr;
}
template <class EventOf> int start_ours(void* context, void** handle, EventOf* e) {
  if (!handle) return 0;
  *handle = nullptr;
  if (!e) return 0;
  Comm* comm = comm_at(context);
  switch (static_cast<uint64_t>(e->type)) {
    case kColl:
      *handle = start_op(comm, {e->coll.function, e->coll.datatype, e->coll.count,
                                static_cast<int64_t>(e->coll.sequence), -1, e->coll.channels, how_of(e->coll)});
      break;
    case kP2p:
      *handle = start_op(comm, {e->p2p.function, e->p2p.datatype, e->p2p.count, -1, e->p2p.peer, e->p2p.channels, {}});
      break;
    case kKernelCh: *handle = start_kernel(e->parent, e->kernel.timer); break;
    case kCollApi: see_capture(comm, e->coll_api.captured); break;
    case kP2pApi: see_capture(comm, e->p2p_api.captured); break;
    default: break;
  }
  return 0;
}

int start_v1(void* context, void** handle, EventV1* e) { return start_both(context, handle, e, start_ours_v1); }
template <class EventOf> int start_v2(void* context, void** handle, EventOf* e) {
  return start_both(context, handle, e, start_ours_v2<EventOf>);
}
template <class EventOf> int start_new(void* context, void** handle, EventOf* e) {
  return start_both(context, handle, e, start_ours<EventOf>);
}

void stop_ours(void* handle) {
  if (Op* op = own(ops, handle, kOpHandle)) {
    op->range.end_ticks = now_ticks();
    release(*op);
  } else if (Kernel* kernel = own(kernels, handle, kKernelHandle)) {
    if (kernel->is_used.load(std::memory_order_acquire) == 0) return;
    note_kernel(*kernel->op, kernel->start_timer, kernel->stop_timer);
    release(*kernel->op);
    kernel->is_used.store(0, std::memory_order_release);
  }
}
int stop(void* handle) {
  Pair* pair = pair_at(handle);
  stop_ours(pair ? pair->ours : handle);
  if (!pair) return 0;
  if (pair->theirs) pair->plugin->stop(pair->theirs);
  give_pair(*pair);
  return 0;
}
int record_state(void* handle, int state_of, void* arguments) {
  const Pair* pair = pair_at(handle);
  Kernel* kernel = own(kernels, pair ? pair->ours : handle, kKernelHandle);
  if (kernel && state_of == kKernelChStop && arguments) memcpy(&kernel->stop_timer, arguments, 8);
  if (pair && pair->theirs) pair->plugin->record_state(pair->theirs, state_of, arguments);
  return 0;
}
void finalize_ours(void* context) {
  Comm* comm = comm_at(context);
  if (!comm) return;
  comm->mask = nullptr;
  for (Op& op : ops)
    if (op.comm.load(std::memory_order_relaxed) == comm) give_up(op);
}
int finalize(void* context) {
  Context* both = context_at(context);
  finalize_ours(both ? both->ours : context);
  if (!both) return 0;
  both->plugin->finalize(both->theirs);
  both->is_used.store(0, std::memory_order_release);
  return 0;
}

}  // namespace
}  // namespace nccl
}  // namespace slr

using namespace slr::nccl;

#define SLR_NAME "stageline"
extern "C" {
SLR_API extern const Plugin<InitV1, EventV1> ncclProfiler_v1;
SLR_API extern const Plugin<InitV1, EventV2> ncclProfiler_v2;
SLR_API extern const Plugin<InitV1, EventV3> ncclProfiler_v3;
SLR_API extern const Plugin<InitV4, EventV4> ncclProfiler_v4;
SLR_API extern const Plugin<InitV5, EventV5> ncclProfiler_v5;
SLR_API extern const Plugin<InitV5, EventV5> ncclProfiler_v6;
SLR_API extern const Plugin<InitV5, EventV5> ncclProfiler_v7;
const Plugin<InitV1, EventV1> ncclProfiler_v1 = {SLR_NAME, init_v1<1>, start_v1, stop, record_state, finalize};
const Plugin<InitV1, EventV2> ncclProfiler_v2 = {SLR_NAME, init_v1<2>, start_v2, stop, record_state, finalize};
const Plugin<InitV1, EventV3> ncclProfiler_v3 = {SLR_NAME, init_v1<3>, start_v2, stop, record_state, finalize};
const Plugin<InitV4, EventV4> ncclProfiler_v4 = {SLR_NAME, init_v4, start_new<EventV4>, stop, record_state, finalize};
const Plugin<InitV5, EventV5> ncclProfiler_v5 = {SLR_NAME, init_v5<5>,   start_new<EventV5>,
                                                 stop,     record_state, finalize};
const Plugin<InitV5, EventV5> ncclProfiler_v6 = {SLR_NAME, init_v5<6>,   start_new<EventV5>,
                                                 stop,     record_state, finalize};
const Plugin<InitV5, EventV5> ncclProfiler_v7 = {SLR_NAME, init_v5<7>,   start_new<EventV5>,
                                                 stop,     record_state, finalize};
}
