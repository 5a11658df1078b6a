// libcuda.so.1 over fake_gpu.cc: the driver API's names that the recorder asks for.
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "fake_gpu.h"

extern "C" {

FakeGpu* fake_gpu();
int fake_make_event(void** event);
int fake_record(void* event, void* stream);
int fake_record_in_graph(void* event, void* stream);
int fake_query(void* event);
int fake_elapsed(float* ms, void* from, void* to);
int fake_free(void* event);
void* fake_made_stream();

static thread_local void* current_context = nullptr;
static char the_context;

int cuDriverGetVersion(int* version) { return *version = 12080, 0; }
int cuCtxGetCurrent(void** context) { return *context = current_context, 0; }
int cuCtxSetCurrent(void* context) {
  if (fake_gpu()->context_error) return fake_gpu()->context_error;
  return current_context = context, 0;
}
int cuCtxGetDevice(int* device) { return *device = 0, 0; }
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid[i] = static_cast<unsigned char>(i * 17 + device);
  return 0;
}
int cuStreamGetCtx(void*, void** context) { return *context = &the_context, 0; }
int cuStreamGetId(void* stream, unsigned long long* id) { return *id = reinterpret_cast<uintptr_t>(stream) >> 4, 0; }
int cuStreamIsCapturing(void*, int* status) {
  if (fake_gpu()->context_lost.load()) return 709;
  *status = fake_gpu()->capturing ? 1 : 0;
  return fake_gpu()->capturing_error;
}
static thread_local unsigned capture_mode = 0;  // global
int cuThreadExchangeStreamCaptureMode(unsigned* mode) {
  const unsigned before = capture_mode;
  capture_mode = *mode;
  return *mode = before, 0;
}
int cuStreamCreate(void** stream, unsigned) { return *stream = fake_made_stream(), 0; }
int cuEventCreate(void** event, unsigned) { return fake_make_event(event); }
int cuEventRecord(void* event, void* stream) { return fake_record(event, stream); }
int cuEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  return flags == 1 && fake_gpu()->capturing ? fake_record_in_graph(event, stream) : fake_record(event, stream);
}
int cuEventQuery(void* event) {
  constexpr unsigned kRelaxed = 2;
  fake_gpu()->broken_captures += fake_gpu()->capturing && capture_mode != kRelaxed;
  return fake_query(event);
}
int cuEventElapsedTime(float* ms, void* from, void* to) { return fake_elapsed(ms, from, to); }
int cuEventDestroy_v2(void* event) { return fake_free(event); }

// The program's own requests (record/examples/cuda_stream.c): memory that does not exist, filled in a millisecond.
int64_t fake_last(void* stream);
void fake_kernel(void* stream, int64_t dur_ns);
int cuInit(unsigned) { return 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &the_context, 0; }
int cuMemAlloc_v2(unsigned long long* memory, size_t) { return *memory = 1 << 20, 0; }
int cuMemsetD8Async(unsigned long long, unsigned char, size_t, void* stream) {
  return fake_kernel(stream, 1'000'000), 0;
}
int cuStreamSynchronize(void* stream) {
  for (timespec now{}; now.tv_sec * 1'000'000'000LL + now.tv_nsec < fake_last(stream); usleep(100))
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return 0;
}

// And what record/gpu/device.cc asks for: one kernel, which waits and stores the clock; one graph at a time.
void fake_stamping_kernel(void* stream, uint64_t* stamps, int64_t dur_ns);
void fake_begin_capture();
void fake_launch(void* stream);
static std::atomic<int64_t> broken_before{0};
int cuMemHostAlloc(void** memory, size_t bytes, unsigned) { return *memory = calloc(1, bytes), 0; }
int cuModuleLoadData(void** module, const void*) { return *module = &the_context, 0; }
int cuModuleGetFunction(void** function, void*, const char*) { return *function = &the_context, 0; }
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void* stream,
                   void** arguments, void**) {
  if (fake_gpu()->context_lost.load()) return 709;
  uint64_t *stamps = nullptr, dur_ns = 0;
  memcpy(&stamps, arguments[0], sizeof stamps);
  memcpy(&dur_ns, arguments[1], sizeof dur_ns);
  fake_stamping_kernel(stream, stamps, static_cast<int64_t>(dur_ns));
  return 0;
}
int cuStreamBeginCapture_v2(void*, int) {
  broken_before = fake_gpu()->broken_captures.load();
  return fake_begin_capture(), 0;
}
int cuStreamEndCapture(void*, void** graph) {
  fake_gpu()->capturing = false;
  const bool broken = fake_gpu()->broken_captures != broken_before;
  *graph = broken ? nullptr : &the_context;
  return broken ? 901 : 0;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) { return *executable = graph, 0; }
int cuGraphLaunch(void*, void* stream) { return fake_launch(stream), 0; }
int cuGraphDestroy(void*) { return 0; }
int cuDevicePrimaryCtxReset_v2(int) {
  fake_gpu()->context_lost = true;
  return 0;
}

int cuGetProcAddress_v2(const char* name, void** function, int, uint64_t, void*) {
  static const struct {
    const char* name;
    void* function;
  } kAll[] = {{"cuDriverGetVersion", reinterpret_cast<void*>(cuDriverGetVersion)},
              {"cuCtxGetCurrent", reinterpret_cast<void*>(cuCtxGetCurrent)},
              {"cuCtxSetCurrent", reinterpret_cast<void*>(cuCtxSetCurrent)},
              {"cuCtxGetDevice", reinterpret_cast<void*>(cuCtxGetDevice)},
              {"cuDeviceGetUuid", reinterpret_cast<void*>(cuDeviceGetUuid_v2)},
              {"cuStreamGetCtx", reinterpret_cast<void*>(cuStreamGetCtx)},
              {"cuStreamGetId", reinterpret_cast<void*>(cuStreamGetId)},
              {"cuStreamIsCapturing", reinterpret_cast<void*>(cuStreamIsCapturing)},
              {"cuThreadExchangeStreamCaptureMode", reinterpret_cast<void*>(cuThreadExchangeStreamCaptureMode)},
              {"cuStreamCreate", reinterpret_cast<void*>(cuStreamCreate)},
              {"cuEventCreate", reinterpret_cast<void*>(cuEventCreate)},
              {"cuEventRecord", reinterpret_cast<void*>(cuEventRecord)},
              {"cuEventRecordWithFlags", reinterpret_cast<void*>(cuEventRecordWithFlags)},
              {"cuEventQuery", reinterpret_cast<void*>(cuEventQuery)},
              {"cuEventElapsedTime", reinterpret_cast<void*>(cuEventElapsedTime)},
              {"cuEventDestroy", reinterpret_cast<void*>(cuEventDestroy_v2)}};
  const char* hidden = fake_gpu()->hidden;
  for (const auto& entry : kAll) {
    if (strcmp(entry.name, name) != 0 || (hidden && strcmp(hidden, name) == 0)) continue;
    *function = entry.function;
    return 0;
  }
  return 500;  // CUDA_ERROR_NOT_FOUND
}
}
