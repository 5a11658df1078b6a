/* libstageline_record as the Python module uses it: found at run time, so that a process has one recorder, whoever
 * loaded it first (the program, an injection, this module). Until it is found every call does nothing. */
#ifndef STAGELINE_PYTHON_LIBRARY_H
#define STAGELINE_PYTHON_LIBRARY_H

#include <stageline_record.h>

/* result, name, parameters, the action of the call without the library. */
#define SLR_FUNCTIONS(X)                                                           \
  X(int, init, (const slr_config* config), (void)config; return 3)                 \
  X(void, shutdown, (void), return)                                                \
  X(int, flush, (int timeout_ms), (void)timeout_ms; return 0)                      \
  X(void, stats, (slr_statistics * statistics), (void)statistics)                  \
  X(const char*, path, (void), return "")                                          \
  X(slr_str, intern, (const char* text, size_t length), (void)text; (void)length; return 0) \
  X(slr_lane, lane_stream, (int device, void* stream, const char* name), (void)device; (void)stream; (void)name; return 0) \
  X(slr_lane, lane_host, (const char* name), (void)name; return 0)                 \
  X(void, name_thread, (const char* name), (void)name)                             \
  X(void, lane_close, (slr_lane lane), (void)lane)                                 \
  X(slr_range, begin, (slr_lane lane, const slr_job* job), (void)lane; (void)job; return 0) \
  X(void, end, (slr_range range), (void)range)                                     \
  X(slr_range, switch, (slr_lane lane, slr_range range, const slr_job* next), (void)lane; (void)range; (void)next; return 0) \
  X(void, past, (slr_lane lane, const slr_job* job, uint64_t began_ns_ago, uint64_t ended_ns_ago),             \
    (void)lane; (void)job; (void)began_ns_ago; (void)ended_ns_ago)                 \
  X(void, push, (slr_lane lane, slr_str name), (void)lane; (void)name)             \
  X(void, pop, (slr_lane lane), (void)lane)                                        \
  X(void, mark, (slr_lane lane, slr_str name), (void)lane; (void)name)             \
  X(void, counter, (slr_str name, double value), (void)name; (void)value)          \
  X(void, step, (int64_t step), (void)step)                                        \
  X(void, window, (int64_t first, int64_t stop), (void)first; (void)stop)

typedef struct Library {
#define SLR_POINTER(result, name, parameters, otherwise) result(*name##_) parameters;
  SLR_FUNCTIONS(SLR_POINTER)
#undef SLR_POINTER
} Library;
extern Library library;

/* Takes the library that the process has, else the one at `path` ("" or NULL: none). NULL: done; else why not, valid
 * until the next call. */
const char* load_library(const char* path);
int library_is_loaded(void);

#endif
