// HIP has the same shape as CUDA, with devices for contexts. Events are made without the system-scope fence, which
// orders memory for other agents; the recorder's events order nothing.
#include <dlfcn.h>

#include <initializer_list>

#include "driver.h"

namespace slr {
namespace {

constexpr unsigned kStreamNonBlocking = 1, kCaptureRelaxed = 2, kDisableSystemFence = 0x20000000;
constexpr int kNotReady = 600;

struct Functions {
  int (*get_device)(int*);
  int (*set_device)(int);
  int (*stream_get_device)(void*, int*);  // may be missing
  int (*is_capturing)(void*, int*);
  int (*exchange_capture_mode)(unsigned*);
  int (*stream_create)(void**, unsigned);
  int (*event_create)(void**, unsigned);
  int (*event_record)(void*, void*);
  int (*event_query)(void*);
  int (*event_elapsed)(float*, void*, void*);
  int (*event_destroy)(void*);
} hip;

void* as_context(int device) { return reinterpret_cast<void*>(static_cast<uintptr_t>(device) + 1); }

int current(void** context) {
  int device = 0;
  const int error = hip.get_device(&device);
  *context = as_context(device);
  return error;
}
int of_stream(void* stream, void** context, int* device, uint64_t* id) {
  *id = reinterpret_cast<uintptr_t>(stream);
  int error = hip.stream_get_device && stream ? hip.stream_get_device(stream, device) : hip.get_device(device);
  *context = as_context(*device);
  return error;
}
int bind(void* context) { return hip.set_device(static_cast<int>(reinterpret_cast<uintptr_t>(context) - 1)); }
int is_capturing(void* stream, int* status) { return hip.is_capturing(stream, status); }
void allow_queries() {
  unsigned mode = kCaptureRelaxed;
  hip.exchange_capture_mode(&mode);
}
int make_stream(void** stream) { return hip.stream_create(stream, kStreamNonBlocking); }
int make_event(void** event) { return hip.event_create(event, kDisableSystemFence); }
int record(void* event, void* stream) { return hip.event_record(event, stream); }
int query(void* event) { return hip.event_query(event); }
int elapsed(float* ms, void* from, void* to) { return hip.event_elapsed(ms, from, to); }
int destroy(void* event) { return hip.event_destroy(event); }
bool is_capture_error(int code) { return code >= 900 && code <= 907; }
bool is_lost(int code) { return code == 4 || code == 201 || (code >= 700 && code < 800) || code == 999; }

constexpr Driver kHip = {"hip",         false,       current,    of_stream,        bind,   is_capturing,
                         allow_queries, make_stream, make_event, record,           query,  elapsed,
                         nullptr,       destroy,     kNotReady,  is_capture_error, is_lost};

template <class Function> bool find(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  return to != nullptr;
}

}  // namespace

const Driver* hip_driver() {
  void* library = nullptr;
  for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"})
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  if (!library) return nullptr;
  find(library, "hipStreamGetDevice", hip.stream_get_device);
  const bool whole =
      find(library, "hipGetDevice", hip.get_device) && find(library, "hipSetDevice", hip.set_device) &&
      find(library, "hipStreamIsCapturing", hip.is_capturing) &&
      find(library, "hipThreadExchangeStreamCaptureMode", hip.exchange_capture_mode) &&
      find(library, "hipStreamCreateWithFlags", hip.stream_create) &&
      find(library, "hipEventCreateWithFlags", hip.event_create) && find(library, "hipEventRecord", hip.event_record) &&
      find(library, "hipEventQuery", hip.event_query) && find(library, "hipEventElapsedTime", hip.event_elapsed) &&
      find(library, "hipEventDestroy", hip.event_destroy);
  return whole ? &kHip : nullptr;
}

}  // namespace slr
