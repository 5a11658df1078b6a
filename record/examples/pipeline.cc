// The same in C++: ranges end with their scope. Linked with the static library.
#include <chrono>
#include <cstdio>
#include <stageline_record.hpp>
#include <thread>

namespace {

void work(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

}  // namespace

int main() {
  slr_config config = SLR_CONFIG_INIT;
  config.stage = 0;
  config.pp = 1;
  if (slr_init(&config) != 0) std::fprintf(stderr, "nothing is recorded; the program runs as it would\n");
  const slr_str loading = slr::intern("load a batch");
  for (int step = 0; step < 3; ++step) {
    slr_step(step);
    {
      const slr::Scope scope(loading);
      work(1);
    }
    for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
      const slr::Range range(slr::Job(SLR_FORWARD, micro_batch, 0));
      work(1);
    }
    for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
      const slr::Range range(slr::Job(SLR_BACKWARD, micro_batch, 0));
      work(2);
    }
  }
  slr_shutdown();
}
