/* Ranges on a CUDA stream, with the device's own times. CUDA's driver is opened at run time, so this builds without CUDA; a real
 * program has its stream from cudaStreamCreate or its framework, and calls only what begins with slr_.
 */
#include <dlfcn.h>
#include <stageline_record.h>
#include <stdio.h>

int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!driver) {
    fprintf(stderr, "there is no CUDA driver on this machine (libcuda.so.1)\n");
    return 1;
  }
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  int (*retain)(void**, int) = (int (*)(void**, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
  int (*make_current)(void*) = (int (*)(void*))dlsym(driver, "cuCtxSetCurrent");
  int (*make_stream)(void**, unsigned) = (int (*)(void**, unsigned))dlsym(driver, "cuStreamCreate");
  int (*make_memory)(unsigned long long*, size_t) = (int (*)(unsigned long long*, size_t))dlsym(driver, "cuMemAlloc_v2");
  int (*fill)(unsigned long long, unsigned char, size_t, void*) =
      (int (*)(unsigned long long, unsigned char, size_t, void*))dlsym(driver, "cuMemsetD8Async");
  int (*wait)(void*) = (int (*)(void*))dlsym(driver, "cuStreamSynchronize");
  void *context = NULL, *stream = NULL;
  unsigned long long memory = 0;
  const size_t size = (size_t)256 << 20;
  if (!init || !retain || !make_current || !make_stream || !make_memory || !fill || !wait || init(0) || retain(&context, 0) ||
      make_current(context) || make_stream(&stream, 1) || make_memory(&memory, size)) {
    fprintf(stderr, "CUDA's driver is there, but a device cannot be used\n");
    return 1;
  }
  if (slr_init(NULL) != 0) fprintf(stderr, "nothing is recorded; the program runs as it would\n");
  const slr_lane lane = slr_lane_stream(SLR_CUDA, stream, "compute"); /* costs a look-up: once, and kept */
  for (int64_t step = 0; step < 3; ++step) {
    slr_step(step);
    for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
      const slr_job job = SLR_JOB(SLR_FORWARD, micro_batch, 0);
      const slr_range range = slr_begin(lane, &job); /* an event on the stream at each end; nothing waits */
      if (fill(memory, (unsigned char)micro_batch, size, stream)) return 1;
      slr_end(range);
    }
  }
  if (wait(stream)) return 1;
  slr_statistics statistics = {sizeof(slr_statistics)};
  slr_flush(2000);
  slr_stats(&statistics);
  printf("%llu ranges with the device's times\n", (unsigned long long)statistics.device_ranges);
  slr_shutdown();
  return 0;
}
