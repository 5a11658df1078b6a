/* A pipeline of processes, 1F1B as Megatron runs it, that says what it does in two ways at once: to the recorder, and
 * as spans of OpenTelemetry with Megatron's names, stamped by the same machine's clock.
 *
 *   side_by_side STAGES MICRO_BATCHES STEPS FOLDER     FOLDER/rankN.jsonl, FOLDER/rankN.stamps
 *
 * Each cell is stamped before and after both calls of the recorder. A span begins with the second stamp and ends with
 * the third, so the recorder's own stamps lie between the first two and the last two, however the machine schedules it.
 * Messages go through pipes. */
#include <stageline_record.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int stages, micro_batches, steps, rank;
static FILE *spans, *stamps;
static int forwards[64][2], backwards[64][2]; /* pipes from rank r to r+1, and back */
static unsigned long long span_id;

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void work(long us) {
  const struct timespec wanted = {0, us * 1000};
  nanosleep(&wanted, NULL);
}

static void span(const char* name, long long start, long long end, const char* attributes) {
  fprintf(
      spans,
      "{\"resourceSpans\":[{\"resource\":{\"attributes\":["
      "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"megatron-lm\"}},"
      "{\"key\":\"dl.rank\",\"value\":{\"intValue\":\"%d\"}},{\"key\":\"dl.world_size\",\"value\":{\"intValue\":\"%d\"}},"
      "{\"key\":\"dl.pipeline_parallel.size\",\"value\":{\"intValue\":\"%d\"}},"
      "{\"key\":\"dl.data_parallel.size\",\"value\":{\"intValue\":\"1\"}},"
      "{\"key\":\"host.name\",\"value\":{\"stringValue\":\"node-0\"}}]},\"scopeSpans\":[{\"spans\":["
      "{\"traceId\":\"%032x\",\"spanId\":\"%016llx\",\"name\":\"%s\",\"kind\":1,\"startTimeUnixNano\":\"%lld\","
      "\"endTimeUnixNano\":\"%lld\",\"attributes\":[%s]}]}]}]}\n",
      rank, stages, stages, rank + 1, ((unsigned long long)rank + 1) << 32 | ++span_id, name, start, end, attributes);
}

static void pass(int to, char byte) {
  if (write(to, &byte, 1) != 1) exit(3);
}
static void wait_for(int from) {
  char byte;
  if (read(from, &byte, 1) != 1) exit(4);
}

static void cell(int is_forward, int step, int micro_batch) {
  if (is_forward && rank > 0) wait_for(forwards[rank - 1][0]);
  if (!is_forward && rank < stages - 1) wait_for(backwards[rank][0]);
  const slr_job job = SLR_JOB(is_forward ? SLR_FORWARD : SLR_BACKWARD, micro_batch, 0);
  const long long before = now();
  const slr_range range = slr_begin(0, &job);
  const long long start = now();
  work(is_forward ? 1000 : 2000);
  const long long end = now();
  slr_end(range);
  fprintf(stamps, "%s %d %d %lld %lld %lld %lld\n", is_forward ? "F" : "B", step, micro_batch, before, start, end,
          now());
  span(is_forward ? "megatron.microbatch.forward" : "megatron.microbatch.backward", start, end, "");
  if (is_forward && rank < stages - 1) pass(forwards[rank][1], 'f');
  if (!is_forward && rank > 0) pass(backwards[rank - 1][1], 'b');
}

static void train(const char* folder) {
  char path[4096], text[256];
  snprintf(path, sizeof path, "%s/rank%d.jsonl", folder, rank);
  spans = fopen(path, "w");
  snprintf(path, sizeof path, "%s/rank%d.stamps", folder, rank);
  stamps = fopen(path, "w");
  if (!spans || !stamps) exit(5);
  slr_config config = SLR_CONFIG_INIT;
  config.rank = rank;
  config.world = stages;
  config.stage = rank;
  config.pp = stages;
  if (slr_init(&config) != 0) exit(6);
  for (int step = 0; step < steps; ++step) {
    slr_step(step);
    const long long begin = now();
    const int warm_up = stages - 1 - rank < micro_batches ? stages - 1 - rank : micro_batches;
    for (int m = 0; m < warm_up; ++m) cell(1, step, m);
    for (int m = 0; m < micro_batches; ++m) {
      if (warm_up + m < micro_batches) cell(1, step, warm_up + m);
      cell(0, step, m);
    }
    const long long end = now();
    snprintf(text, sizeof text, "{\"key\":\"num_microbatches\",\"value\":{\"intValue\":\"%d\"}}", micro_batches);
    span("megatron.train.iteration.forward_backward", begin, end, text);
    snprintf(text, sizeof text, "{\"key\":\"megatron.iteration\",\"value\":{\"intValue\":\"%d\"}}", step);
    span("megatron.train.iteration", begin - 1000, end + 1000, text);
  }
  slr_shutdown();
  fclose(spans);
  fclose(stamps);
}

int main(int count, char** words) {
  if (count != 5) return 2;
  stages = atoi(words[1]), micro_batches = atoi(words[2]), steps = atoi(words[3]);
  if (stages < 1 || stages > 64) return 2;
  for (int r = 0; r + 1 < stages; ++r)
    if (pipe(forwards[r]) != 0 || pipe(backwards[r]) != 0) return 2;
  for (rank = 0; rank < stages; ++rank)
    if (fork() == 0) {
      train(words[4]);
      return 0;
    }
  int failed = 0, status;
  while (wait(&status) > 0) failed |= status != 0;
  return failed;
}
