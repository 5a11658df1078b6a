/* Stages of a pipeline as MPI ranks: each takes a micro-batch from the stage before it and hands it on.
 *
 *   STAGELINE_DIR=rec mpirun -n 4 ./mpi_ring && stageline report rec
 */
#include <mpi.h>
#include <stageline_record.h>
#include <time.h>

#define COUNT 1024

int main(int argc, char** argv) {
  int rank = 0, world = 1;
  double values[COUNT] = {0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  slr_config config = SLR_CONFIG_INIT;
  config.rank = config.stage = rank;
  config.world = config.pp = world;
  slr_init(&config);
  for (int64_t step = 0; step < 2; ++step) {
    slr_step(step);
    for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
      const int64_t number = step * 4 + micro_batch;
      if (rank > 0) {
        slr_job take = SLR_JOB(SLR_RECV_FORWARD, micro_batch, 0);
        take.peer = rank - 1, take.bytes = sizeof values, take.sequence = number;
        const slr_range range = slr_begin(0, &take);
        MPI_Recv(values, COUNT, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        slr_end(range);
      }
      const slr_job job = SLR_JOB(SLR_FORWARD, micro_batch, 0);
      const slr_range range = slr_begin(0, &job);
      const struct timespec wanted = {0, 2000000};
      nanosleep(&wanted, NULL);
      slr_end(range);
      if (rank + 1 < world) {
        slr_job give = SLR_JOB(SLR_SEND_FORWARD, micro_batch, 0);
        give.peer = rank + 1, give.bytes = sizeof values, give.sequence = number;
        const slr_range sending = slr_begin(0, &give);
        MPI_Send(values, COUNT, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD);
        slr_end(sending);
      }
    }
  }
  slr_shutdown();
  MPI_Finalize();
  return 0;
}
