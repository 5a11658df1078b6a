// libascendcl.so over fake_gpu.cc: events whose stamps are numbers, in microseconds (or whatever the chip has).
#include "fake_gpu.h"

extern "C" {

int fake_make_event(void** event);
int fake_record(void* event, void* stream);
int fake_query(void* event);
uint64_t fake_stamp(void* event);
int fake_free(void* event);
void* fake_stream();

int aclrtGetDevice(int32_t* device) { return *device = 5, 0; }
int aclrtSetDevice(int32_t) { return 0; }
int aclrtStreamGetId(void*, int32_t* id) { return *id = 7, 0; }
int aclrtCreateStream(void** stream) { return *stream = fake_stream(), 0; }
int aclrtCreateEventExWithFlag(void** event, uint32_t) { return fake_make_event(event); }
int aclrtRecordEvent(void* event, void* stream) { return fake_record(event, stream); }
int aclrtQueryEventStatus(void* event, int* status) {
  const int answer = fake_query(event);
  *status = answer == 0 ? 1 : 0;
  return answer == 600 ? 0 : answer;
}
int aclrtEventGetTimestamp(void* event, uint64_t* stamp) { return *stamp = fake_stamp(event), 0; }
int aclrtDestroyEvent(void* event) { return fake_free(event); }
}
