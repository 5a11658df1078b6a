// Another NCCL profiler plugin, which has version 5 of the interface alone and counts foreign handles.
#include "fake_nccl.h"

using namespace fake_nccl;
using Event = EventFour<uint64_t>;

extern "C" {

struct FakePlugin {
  int inits = 0, starts = 0, stops = 0, states = 0, finals = 0, children = 0, foreign = 0, unwanted = 0;
  int init_error = 0;
};
static FakePlugin plugin;
FakePlugin* fake_plugin() { return &plugin; }

static char a_context;
static Event seen[1024];

static int init(void** context, uint64_t, int* mask, const char*, int, int, int, void*) {
  ++plugin.inits;
  if (plugin.init_error) return plugin.init_error;
  *context = &a_context;
  *mask = kP2p | kProxyOp | kKernelCh;
  return 0;
}
static bool own(const void* handle) { return handle >= seen && handle < seen + 1024; }
static int start(void* context, void** handle, Event* e) {
  plugin.foreign += context != &a_context;
  plugin.unwanted += (e->type & (kP2p | kProxyOp | kKernelCh)) == 0;
  if (e->parent) own(e->parent) ? ++plugin.children : ++plugin.foreign;
  *handle = &seen[plugin.starts++ % 1024];
  return 0;
}
static int stop(void* handle) {
  plugin.foreign += !own(handle);
  return ++plugin.stops, 0;
}
static int record_state(void* handle, int, void*) {
  plugin.foreign += !own(handle);
  return ++plugin.states, 0;
}
static int finalize(void* context) {
  plugin.foreign += context != &a_context;
  return ++plugin.finals, 0;
}

extern const TableFive ncclProfiler_v5;
const TableFive ncclProfiler_v5 = {"fake", init, start, stop, record_state, finalize};
}
