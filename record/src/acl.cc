// Ascend: events with the time-line flag, which may be used again, and whose stamps are 64-bit numbers. Their unit is
// not documented (microseconds of the device were seen): anchors compare them with the host's clock, so that it does
// not matter once there are two. Streams cannot be captured the CUDA way.
#include <dlfcn.h>

#include "driver.h"

namespace slr {
namespace {

constexpr uint32_t kTimeLine = 8;
constexpr int kEventPending = 0;  // aclrtEventRecordedStatus
constexpr int kNotReady = -2;

struct Functions {
  int (*get_device)(int32_t*);
  int (*set_device)(int32_t);
  int (*stream_get_id)(void*, int32_t*);
  int (*create_stream)(void**);
  int (*create_event)(void**, uint32_t);
  int (*record_event)(void*, void*);
  int (*query_event)(void*, int*);
  int (*event_timestamp)(void*, uint64_t*);
  int (*destroy_event)(void*);
} acl;

void* as_context(int32_t device) { return reinterpret_cast<void*>(static_cast<uintptr_t>(device) + 1); }

int current(void** context) {
  int32_t device = 0;
  const int error = acl.get_device(&device);
  *context = as_context(device);
  return error;
}
int of_stream(void* stream, void** context, int* device, uint64_t* id) {
  int32_t number = 0;
  *id = stream && acl.stream_get_id(stream, &number) == 0 ? static_cast<uint64_t>(number)
                                                          : reinterpret_cast<uintptr_t>(stream);
  int32_t of = 0;
  const int error = acl.get_device(&of);  // streams are used on the device they were made on
  *device = of;
  *context = as_context(of);
  return error;
}
int bind(void* context) { return acl.set_device(static_cast<int32_t>(reinterpret_cast<uintptr_t>(context) - 1)); }
void allow_queries() {}
int make_stream(void** stream) { return acl.create_stream(stream); }
int make_event(void** event) { return acl.create_event(event, kTimeLine); }
int record(void* event, void* stream) { return acl.record_event(event, stream); }
int query(void* event) {
  int status = 0;
  if (const int error = acl.query_event(event, &status)) return error;
  return status == kEventPending ? kNotReady : 0;
}
int read_event(void* event, int64_t* ns) {
  uint64_t stamp = 0;
  const int error = acl.event_timestamp(event, &stamp);
  if (stamp > INT64_MAX / 1000) return error ? error : kNotReady;
  *ns = static_cast<int64_t>(stamp) * 1000;
  return error;
}
int destroy(void* event) { return acl.destroy_event(event); }
bool is_capture_error(int) { return false; }
// Not initialised, context gone, device lost: 107002, 107003 and the 507xxx errors of the runtime.
bool is_lost(int code) { return code == 107002 || code == 107003 || (code >= 507000 && code < 508000); }

constexpr Driver kAcl = {"acl",         true,        current,    of_stream,        bind,   nullptr,
                         allow_queries, make_stream, make_event, record,           query,  nullptr,
                         read_event,    destroy,     kNotReady,  is_capture_error, is_lost};

template <class Function> bool find(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  return to != nullptr;
}

}  // namespace

const Driver* acl_driver() {
  void* library = dlopen("libascendcl.so", RTLD_NOW | RTLD_NOLOAD);
  const bool whole =
      library && find(library, "aclrtGetDevice", acl.get_device) && find(library, "aclrtSetDevice", acl.set_device) &&
      find(library, "aclrtStreamGetId", acl.stream_get_id) && find(library, "aclrtCreateStream", acl.create_stream) &&
      find(library, "aclrtCreateEventExWithFlag", acl.create_event) &&
      find(library, "aclrtRecordEvent", acl.record_event) && find(library, "aclrtQueryEventStatus", acl.query_event) &&
      find(library, "aclrtEventGetTimestamp", acl.event_timestamp) &&
      find(library, "aclrtDestroyEvent", acl.destroy_event);
  return whole ? &kAcl : nullptr;
}

}  // namespace slr
