/* Sizes, places and numbers of the C ABI, one a line. Compiled as strict C99: the header is C99. */
#include <stdio.h>

#include "stageline_record.h"

#define SIZE(type) printf("sizeof %s = %lu\n", #type, (unsigned long)sizeof(type))
#define PLACE(type, field) printf("%s.%s at %lu\n", #type, #field, (unsigned long)offsetof(type, field))
#define NUMBER(name) printf("%s = %ld\n", #name, (long)(name))

int main(void) {
  slr_config config = SLR_CONFIG_INIT;
  slr_job job = SLR_JOB(SLR_FORWARD, 3, 0);
  SIZE(slr_str);
  SIZE(slr_lane);
  SIZE(slr_range);
  SIZE(slr_job);
  PLACE(slr_job, kind);
  PLACE(slr_job, name);
  PLACE(slr_job, micro_batch);
  PLACE(slr_job, chunk);
  PLACE(slr_job, stage);
  PLACE(slr_job, peer);
  PLACE(slr_job, bytes);
  PLACE(slr_job, sequence);
  SIZE(slr_config);
  PLACE(slr_config, memory_mb);
  PLACE(slr_config, dir);
  PLACE(slr_config, job);
  PLACE(slr_config, rank);
  PLACE(slr_config, world);
  PLACE(slr_config, stage);
  PLACE(slr_config, dp_rank);
  PLACE(slr_config, pp);
  PLACE(slr_config, vp);
  PLACE(slr_config, max_overhead);
  PLACE(slr_config, flush_ms);
  PLACE(slr_config, rotate_mb);
  PLACE(slr_config, rotate_s);
  PLACE(slr_config, keep_files);
  PLACE(slr_config, ring_kb);
  SIZE(slr_statistics);
  PLACE(slr_statistics, records);
  PLACE(slr_statistics, drops);
  PLACE(slr_statistics, write_errors);
  PLACE(slr_statistics, anchors);
  PLACE(slr_statistics, overhead);
  PLACE(slr_statistics, self_ns);
  NUMBER(SLR_VERSION);
  NUMBER(SLR_USER);
  NUMBER(SLR_FORWARD);
  NUMBER(SLR_BACKWARD);
  NUMBER(SLR_INPUT_GRAD);
  NUMBER(SLR_WEIGHT_GRAD);
  NUMBER(SLR_FORWARD_BACKWARD);
  NUMBER(SLR_SEND_FORWARD);
  NUMBER(SLR_RECV_FORWARD);
  NUMBER(SLR_SEND_BACKWARD);
  NUMBER(SLR_RECV_BACKWARD);
  NUMBER(SLR_COLLECTIVE);
  NUMBER(SLR_OPTIMIZER);
  NUMBER(SLR_LOAD);
  NUMBER(SLR_HOST);
  NUMBER(SLR_CUDA);
  NUMBER(SLR_HIP);
  NUMBER(SLR_ACL);
  NUMBER(SLR_DROP_RING_FULL);
  NUMBER(SLR_DROP_NO_RING);
  NUMBER(SLR_DROP_TOO_DEEP);
  NUMBER(SLR_DROP_REENTRANT);
  NUMBER(SLR_DROP_BAD_HANDLE);
  NUMBER(SLR_DROP_CAPTURE);
  NUMBER(SLR_DROP_NO_EVENT);
  NUMBER(SLR_DROP_DEVICE);
  NUMBER(SLR_DROP_BAD_TIME);
  NUMBER(SLR_DROP_GUARD);
  NUMBER(SLR_DROP_UNFINISHED);
  NUMBER(SLR_DROP_ONE_QUEUE);
  NUMBER(SLR_DROP_NAMES);
  NUMBER(SLR_DROP_KERNELS);
  NUMBER(SLR_DROP_REASONS);
  NUMBER(config.rank);
  NUMBER(config.stage);
  NUMBER(job.micro_batch);
  NUMBER(job.peer);
  return 0;
}
