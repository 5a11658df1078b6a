// CUDA: the driver API, never the runtime's, whose last error belongs to the program. No header of CUDA is needed:
// results are ints, handles are pointers. Names are asked for by cuGetProcAddress, which gives the newest version not
// above 12.8.
#include <dlfcn.h>
#include <string.h>

#include "driver.h"

namespace slr {
namespace {

constexpr int kCudaVersion = 12080;
constexpr unsigned kStreamNonBlocking = 1, kCaptureRelaxed = 2, kEventDefault = 0, kEventRecordExternal = 1;

struct Functions {
  int (*driver_version)(int*);
  int (*ctx_get_current)(void**);
  int (*ctx_set_current)(void*);
  int (*ctx_get_device)(int*);
  int (*stream_get_ctx)(void*, void**);
  int (*device_get_uuid)(void*, int);                // may be missing
  int (*stream_get_id)(void*, unsigned long long*);  // CUDA 12; may be missing
  int (*stream_is_capturing)(void*, int*);
  int (*exchange_capture_mode)(unsigned*);
  int (*stream_create)(void**, unsigned);
  int (*event_create)(void**, unsigned);
  int (*event_record)(void*, void*);
  int (*event_record_with_flags)(void*, void*, unsigned);  // CUDA 11.1; may be missing
  int (*event_query)(void*);
  int (*event_elapsed)(float*, void*, void*);
  int (*event_destroy)(void*);
} cu;

int current(void** context) { return cu.ctx_get_current(context); }

int of_stream(void* stream, void** context, int* device, uint64_t* id) {
  if (const int error = cu.stream_get_ctx(stream, context)) return error;
  void* before = nullptr;
  *device = -1;
  *id = reinterpret_cast<uintptr_t>(stream);
  unsigned long long number = 0;
  if (cu.stream_get_id && cu.stream_get_id(stream, &number) == 0) *id = number;
  // The device is the current context's; the caller's is put back.
  if (cu.ctx_get_current(&before) != 0 || (before != *context && cu.ctx_set_current(*context) != 0)) return 0;
  if (cu.ctx_get_device(device) != 0) *device = -1;
  if (before != *context) cu.ctx_set_current(before);
  return 0;
}

int bind(void* context) { return cu.ctx_set_current(context); }

void allow_queries() {
  unsigned mode = kCaptureRelaxed;
  cu.exchange_capture_mode(&mode);
}

int make_stream(void** stream) { return cu.stream_create(stream, kStreamNonBlocking); }
int make_event(void** event) { return cu.event_create(event, kEventDefault); }
int record(void* event, void* stream) { return cu.event_record(event, stream); }
int query(void* event) { return cu.event_query(event); }
int elapsed(float* ms, void* from, void* to) { return cu.event_elapsed(ms, from, to); }
int destroy(void* event) { return cu.event_destroy(event); }
int is_capturing(void* stream, int* status) { return cu.stream_is_capturing(stream, status); }

int read_uuid(int device, uint8_t* uuid) { return cu.device_get_uuid ? cu.device_get_uuid(uuid, device) : 500; }

int record_in_graph(void* event, void* stream) {
  return cu.event_record_with_flags ? cu.event_record_with_flags(event, stream, kEventRecordExternal) : 801;
}

bool is_capture_error(int code) { return code >= 900 && code <= 907; }
// Deinitialised, invalid or destroyed context, and the errors after which a context answers nothing else.
bool is_lost(int code) { return code == 4 || code == 201 || code == 709 || (code >= 700 && code < 800) || code == 999; }

bool find_functions(void* library) {
  using GetProcV2 = int (*)(const char*, void**, int, uint64_t, void*);
  using GetProc = int (*)(const char*, void**, int, uint64_t);
  const auto newest = reinterpret_cast<GetProcV2>(dlsym(library, "cuGetProcAddress_v2"));
  const auto older = reinterpret_cast<GetProc>(dlsym(library, "cuGetProcAddress"));
  int version = 0;
  const auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDriverGetVersion"));
  if (!get_version || get_version(&version) != 0) return false;
  if (version > kCudaVersion) version = kCudaVersion;
  const auto find = [&](const char* name, const char* plain, auto& to) {
    void* found = nullptr;
    if (newest && newest(name, &found, version, 0, nullptr) != 0) found = nullptr;
    if (!newest && older && older(name, &found, version, 0) != 0) found = nullptr;
    if (!newest && !older) found = dlsym(library, plain);  // drivers before CUDA 11.3
    memcpy(&to, &found, sizeof found);
    return found != nullptr;
  };
  find("cuStreamGetId", "cuStreamGetId", cu.stream_get_id);
  find("cuEventRecordWithFlags", "cuEventRecordWithFlags", cu.event_record_with_flags);
  find("cuDeviceGetUuid", "cuDeviceGetUuid", cu.device_get_uuid);
  return find("cuDriverGetVersion", "cuDriverGetVersion", cu.driver_version) &&
         find("cuCtxGetCurrent", "cuCtxGetCurrent", cu.ctx_get_current) &&
         find("cuCtxSetCurrent", "cuCtxSetCurrent", cu.ctx_set_current) &&
         find("cuCtxGetDevice", "cuCtxGetDevice", cu.ctx_get_device) &&
         find("cuStreamGetCtx", "cuStreamGetCtx", cu.stream_get_ctx) &&
         find("cuStreamIsCapturing", "cuStreamIsCapturing", cu.stream_is_capturing) &&
         find("cuThreadExchangeStreamCaptureMode", "cuThreadExchangeStreamCaptureMode", cu.exchange_capture_mode) &&
         find("cuStreamCreate", "cuStreamCreate", cu.stream_create) &&
         find("cuEventCreate", "cuEventCreate", cu.event_create) &&
         find("cuEventRecord", "cuEventRecord", cu.event_record) &&
         find("cuEventQuery", "cuEventQuery", cu.event_query) &&
         find("cuEventElapsedTime", "cuEventElapsedTime", cu.event_elapsed) &&
         find("cuEventDestroy", "cuEventDestroy_v2", cu.event_destroy);
}

constexpr Driver kCuda = {
    "cuda", false,   current, of_stream, bind, is_capturing,     allow_queries, make_stream, make_event,     record,
    query,  elapsed, nullptr, destroy,   600,  is_capture_error, is_lost,       read_uuid,   record_in_graph};

}  // namespace

const Driver* cuda_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library && find_functions(library) ? &kCuda : nullptr;
}

}  // namespace slr
