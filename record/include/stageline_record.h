/* libstageline_record: times of pipeline jobs, taken in the running program and kept in a file.
 *
 *   slr_init(NULL);                                            once per process; STAGELINE_DIR says where to
 *   slr_lane lane = slr_lane_stream(SLR_CUDA, stream, "compute");
 *   slr_step(step);                                            each training step
 *   slr_job job = SLR_JOB(SLR_FORWARD, 3, 0);                  forward of micro-batch 3, chunk 0
 *   slr_range range = slr_begin(lane, &job);
 *   ...                                                        launch the work
 *   slr_end(range);
 *
 * Ranges of a stream lane have the device's own times: an event is put on the stream at each end, and nothing waits
 * for it. Ranges of a thread (lane 0 is the calling thread's) have the host's. `stageline report DIR` reads the files,
 * also while they are written and after a kill -9.
 *
 * Every function may be called from any thread, before slr_init, after slr_shutdown, in a child after fork and at
 * exit; outside of a recording it does nothing. slr_begin, slr_end, slr_switch, slr_past, slr_push, slr_pop, slr_mark,
 * slr_counter and slr_step never allocate, lock, wait or make a system call after the first call of their thread (and
 * the first on a device lane); they may also be called in signal handlers. Losses are counted in the file, by reason.
 * A handler may end the program or fork inside any call: while a call holds a lock, other signals than those of faults
 * wait for it.
 *
 * C99 and newer; the ABI only grows: structures begin with their size. No function sets errno.
 */
#ifndef STAGELINE_RECORD_H
#define STAGELINE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SLR_API __attribute__((visibility("default")))
#else
#define SLR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SLR_VERSION 1

typedef uint32_t slr_str;   /* an interned text; 0: no text */
typedef uint32_t slr_lane;  /* 0: the calling thread */
typedef uint64_t slr_range; /* 0: nothing was begun */

/* The kind of a job; the letters are those of pipeline schedules. */
enum slr_kind {
  SLR_USER = 0,             /* your range: any name */
  SLR_FORWARD = 1,          /* F */
  SLR_BACKWARD = 2,         /* B: gradients of inputs and weights in one piece */
  SLR_INPUT_GRAD = 3,       /* I: the first half of a split backward */
  SLR_WEIGHT_GRAD = 4,      /* W: the second */
  SLR_FORWARD_BACKWARD = 5, /* F and B overlapped in one piece */
  SLR_SEND_FORWARD = 6,     /* activations to the next stage */
  SLR_RECV_FORWARD = 7,
  SLR_SEND_BACKWARD = 8, /* gradients to the previous stage */
  SLR_RECV_BACKWARD = 9,
  SLR_COLLECTIVE = 10,
  SLR_OPTIMIZER = 11,
  SLR_LOAD = 12 /* waiting for data */
};

/* Whose stream a lane is. */
enum slr_device { SLR_HOST = 0, SLR_CUDA = 1, SLR_HIP = 2, SLR_ACL = 3 };

typedef struct slr_job {
  uint32_t size;       /* sizeof(slr_job) */
  uint32_t kind;       /* enum slr_kind */
  slr_str name;        /* 0: the kind's own */
  int32_t micro_batch; /* -1: none */
  int32_t chunk;       /* virtual stage on this rank; -1: none */
  int32_t stage;       /* -1: as slr_config says */
  int32_t peer;        /* global rank at the other end of a message; -1: none */
  int32_t reserved;    /* 0 */
  int64_t bytes;       /* of a message or collective; -1: not said */
  int64_t sequence;    /* number of the message between the two ranks, as both count it; -1: not said */
} slr_job;
#define SLR_JOB(kind, micro_batch, chunk) \
  { (uint32_t)sizeof(slr_job), (kind), 0, (micro_batch), (chunk), -1, -1, 0, -1, -1 }

/* Zero and NULL mean "as the environment says, else the default". */
typedef struct slr_config {
  uint32_t size;         /* sizeof(slr_config) */
  uint32_t memory_mb;    /* STAGELINE_MEM_MB, 64: most memory for records that are not written yet */
  const char* dir;       /* STAGELINE_DIR, "stageline-rec": where files go; made when missing */
  const char* job;       /* STAGELINE_JOB, the scheduler's job number: a run; ranks that restart belong to it */
  int32_t rank;          /* -1: RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PADDLE_TRAINER_ID, RANK_ID */
  int32_t world;         /* ranks in all; 0: WORLD_SIZE, SLURM_NTASKS, OMPI_COMM_WORLD_SIZE */
  int32_t stage;         /* pipeline stage of this rank; -1: not said */
  int32_t dp_rank;       /* which replica; -1: not said */
  int32_t pp, tp, dp, vp; /* sizes; 0: not said */
  double max_overhead;   /* STAGELINE_MAX_OVERHEAD, 0.001: share of the run that recording may cost; negative: any */
  uint32_t flush_ms;     /* STAGELINE_FLUSH_MS, 1000: how long a record waits for its file at most */
  uint32_t rotate_mb;    /* STAGELINE_ROTATE_MB, 256: size of one file */
  uint32_t rotate_s;     /* STAGELINE_ROTATE_S, 3600: age of one file */
  uint32_t keep_files;   /* STAGELINE_KEEP, 0: only this number of newest files of this process; 0: all */
  uint32_t ring_kb;      /* STAGELINE_RING_KB, 256: memory of one thread, a power of two */
  uint32_t reserved;
} slr_config;
#define SLR_CONFIG_INIT \
  { (uint32_t)sizeof(slr_config), 0, NULL, NULL, -1, 0, -1, -1, 0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0 }

/* The reason why something was not kept. The file uses the same numbers. */
enum slr_drop {
  SLR_DROP_RING_FULL = 0,  /* the writer or the disk could not follow */
  SLR_DROP_NO_RING = 1,    /* more threads at once than memory_mb allows */
  SLR_DROP_TOO_DEEP = 2,   /* more than 64 ranges open on one thread */
  SLR_DROP_REENTRANT = 3,  /* called from a signal handler that interrupted another call on this thread; or open when
                            * it ended the program there */
  SLR_DROP_BAD_HANDLE = 4, /* a range ended twice, or a pop without push */
  SLR_DROP_CAPTURE = 5,    /* device time only: the stream was being captured to a graph */
  SLR_DROP_NO_EVENT = 6,   /* device time only: all events were in flight */
  SLR_DROP_DEVICE = 7,     /* device time only: the driver refused, or its context is gone */
  SLR_DROP_BAD_TIME = 8,   /* device time only: the device's times were out of order or range */
  SLR_DROP_GUARD = 9,      /* device time only: the density guard kept max_overhead */
  SLR_DROP_UNFINISHED = 10, /* device time only: the work never finished, or not before the ring was full */
  SLR_DROP_ONE_QUEUE = 11, /* device time only: CUDA_DEVICE_MAX_CONNECTIONS=1 and not the first stream */
  SLR_DROP_NAMES = 12,     /* a name beyond 65534 names or 1 MiB of them; the record is kept without it */
  SLR_DROP_KERNELS = 13, /* kernels that CUPTI dropped, or gave without times */
  SLR_DROP_REASONS = 14
};

typedef struct slr_statistics {
  uint32_t size;           /* sizeof(slr_statistics), set by the caller */
  uint32_t recording;      /* 1 between slr_init and slr_shutdown */
  uint64_t records;        /* ranges, marks, counters and steps taken so far */
  uint64_t written_records; /* of these, in the file */
  uint64_t written_bytes;
  uint64_t drops[16]; /* by enum slr_drop */
  uint64_t write_errors;
  uint64_t device_ranges;   /* with the device's own times, so far */
  uint64_t events;          /* device events recorded */
  uint64_t driver_ns;       /* time inside the driver's calls, estimated from one call in 64 */
  uint64_t anchors;         /* comparisons of a device's clock with the host's that were kept */
  uint64_t anchors_refused; /* whose round trip was too long */
  uint64_t worst_round_trip_ns; /* of those kept */
  double overhead;          /* share of the last second that recording cost, estimated */
  uint64_t self_ns;         /* time the background thread has computed */
} slr_statistics;

/* Opens the file and starts the background thread. Returns 0 when it records. Otherwise nothing is recorded and the
 * number is the reason: 1 already recording, 2 STAGELINE_OFF=1 is set, 3 the folder cannot be made or written, 4 no
 * memory. The reason 5 means that there is no thread, or that of the previous recording still writes. */
SLR_API int slr_init(const slr_config* config);
/* Writes what is there, closes the file. Runs at exit by itself. Waits at most 2 s, and 2 s for kernels. */
SLR_API void slr_shutdown(void);
/* Records everything begun before the call into the file, waiting `timeout_ms` at most for devices and disk. 0: done. */
SLR_API int slr_flush(int timeout_ms);
SLR_API void slr_stats(slr_statistics* statistics);
/* Returns the file being written, "" when there is none. It is valid until slr_shutdown or rotation. */
SLR_API const char* slr_path(void);

/* The number of a text, the same in the whole process; also before slr_init. Takes a lock: do it once per name. */
SLR_API slr_str slr_intern(const char* text, size_t length);

/* Returns the lane of a device's stream (cudaStream_t, hipStream_t, aclrtStream), always the same for one stream.
 * The driver is looked for when the first range begins, and never loaded by us. 0 when there are too many (4095). */
SLR_API slr_lane slr_lane_stream(int device, void* stream, const char* name);
/* A lane of your own with the host's times: a queue, a coroutine, an engine. */
SLR_API slr_lane slr_lane_host(const char* name);
/* Says how the calling thread's lane is called; default its system name. */
SLR_API void slr_name_thread(const char* name);
/* The stream is destroyed: its handle may be reused by another. */
SLR_API void slr_lane_close(slr_lane lane);

/* A range that any thread may end. */
SLR_API slr_range slr_begin(slr_lane lane, const slr_job* job);
SLR_API void slr_end(slr_range range);
/* Ends `range` (0: there is none yet) and begins the next job; on the same lane with one event for both. */
SLR_API slr_range slr_switch(slr_lane lane, slr_range range, const slr_job* next);

/* Records a past range that another component timed: it started and ended this many nanoseconds before the call, by the
 * host's clock. */
SLR_API void slr_past(slr_lane lane, const slr_job* job, uint64_t began_ns_ago, uint64_t ended_ns_ago);

/* Nested ranges of one thread; a pop ends the last push of that lane on that thread. */
SLR_API void slr_push(slr_lane lane, slr_str name);
SLR_API void slr_push_job(slr_lane lane, const slr_job* job);
SLR_API void slr_pop(slr_lane lane);

SLR_API void slr_mark(slr_lane lane, slr_str name);
SLR_API void slr_counter(slr_str name, double value);
/* A training step begins; ranges begun from now on belong to it. */
SLR_API void slr_step(int64_t step);
/* Only steps in [first, stop) are recorded; before the first slr_step nothing is. A negative first removes the limits. */
SLR_API void slr_window(int64_t first, int64_t stop);

#ifdef __cplusplus
}
#endif
#endif /* STAGELINE_RECORD_H */
