// libamdhip64.so.6 over fake_gpu.cc.
#include "fake_gpu.h"

extern "C" {

FakeGpu* fake_gpu();
int fake_make_event(void** event);
int fake_record(void* event, void* stream);
int fake_query(void* event);
int fake_elapsed(float* ms, void* from, void* to);
int fake_free(void* event);
void* fake_stream();

int hipGetDevice(int* device) { return *device = 2, 0; }
int hipSetDevice(int) { return 0; }
int hipStreamGetDevice(void*, int* device) { return *device = 2, 0; }
int hipStreamIsCapturing(void*, int* status) {
  return *status = fake_gpu()->capturing ? 1 : 0, fake_gpu()->capturing_error;
}
int hipThreadExchangeStreamCaptureMode(unsigned* mode) { return *mode = 0, 0; }
int hipStreamCreateWithFlags(void** stream, unsigned) { return *stream = fake_stream(), 0; }
int hipEventCreateWithFlags(void** event, unsigned) { return fake_make_event(event); }
int hipEventRecord(void* event, void* stream) { return fake_record(event, stream); }
int hipEventQuery(void* event) { return fake_query(event); }
int hipEventElapsedTime(float* ms, void* from, void* to) { return fake_elapsed(ms, from, to); }
int hipEventDestroy(void* event) { return fake_free(event); }
}
