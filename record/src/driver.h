// The recorder's interface to a device driver: one table of functions, which cuda.cc, hip.cc and acl.cc fill from
// libraries that the program has already loaded. RTLD_NOLOAD keeps a program without a GPU as it is.
//
// All return 0, or the driver's own error number.
#pragma once

#include <cstdint>

namespace slr {

struct Driver {
  const char* name;
  bool has_timestamps;  // read_event gives times; else only differences (`elapsed`)
  // The thread's device: whatever stands for it, the same for all its threads.
  int (*current)(void** context);
  int (*of_stream)(void* stream, void** context, int* device, uint64_t* id);
  int (*bind)(void* context);                         // the calling thread will call for this device
  int (*is_capturing)(void* stream, int* capturing);  // nullptr: the driver cannot capture
  void (*allow_queries)();                            // queries of this thread break no capture of another
  int (*make_stream)(void** stream);
  int (*make_event)(void** event);
  int (*record)(void* event, void* stream);
  int (*query)(void* event);  // kNotReady while work before it is under way
  int (*elapsed)(float* ms, void* from, void* to);
  int (*read_event)(void* event, int64_t* ns);
  int (*destroy_event)(void* event);
  int not_ready;                                          // what `query` says of an event that has not come
  bool (*is_capture_error)(int code);                     // the stream is being captured
  bool (*is_lost)(int code);                              // the context is gone, or every further call will fail
  int (*read_uuid)(int device, uint8_t* uuid) = nullptr;  // 16 bytes; nullptr: the driver has none
  // In a graph that is being captured: every replay stamps the event again. nullptr: the driver cannot.
  int (*record_in_graph)(void* event, void* stream) = nullptr;
};

// nullptr where the library is not loaded or lacks a function.
const Driver* cuda_driver();
const Driver* hip_driver();
const Driver* acl_driver();

}  // namespace slr
