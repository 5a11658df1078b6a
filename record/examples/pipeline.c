/* One rank of a pipeline in C: three steps of four micro-batches, forwards first, then backwards. The work is sleeping.
 *
 *   cc pipeline.c $(pkg-config --cflags --libs stageline_record) -o pipeline
 *   STAGELINE_DIR=rec RANK=0 ./pipeline && stageline info rec
 */
#include <stageline_record.h>
#include <stdio.h>
#include <time.h>

static void work(long ms) {
  const struct timespec wanted = {0, ms * 1000000};
  nanosleep(&wanted, NULL);
}

int main(void) {
  slr_config config = SLR_CONFIG_INIT;
  config.stage = 0;
  config.pp = 1;
  if (slr_init(&config) != 0) fprintf(stderr, "nothing is recorded; the program runs as it would\n");
  const slr_str loading = slr_intern("load a batch", 12);
  for (int64_t step = 0; step < 3; ++step) {
    slr_step(step);
    slr_push(0, loading); /* lane 0 is this thread's */
    work(1);
    slr_pop(0);
    for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
      const slr_job job = SLR_JOB(SLR_FORWARD, micro_batch, 0);
      const slr_range range = slr_begin(0, &job);
      work(1);
      slr_end(range);
    }
    for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
      const slr_job job = SLR_JOB(SLR_BACKWARD, micro_batch, 0);
      const slr_range range = slr_begin(0, &job);
      work(2);
      slr_end(range);
    }
    slr_counter(slr_intern("loss", 4), 1.0 / (double)(step + 1));
  }
  slr_shutdown();
  return 0;
}
