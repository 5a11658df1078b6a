// Scans worker logs and does nothing else: what the reader costs without the process around it.
//   stageline_scan_bench [--repeat N] FILE…
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "readers/paddle_log/scan.h"

int main(int argc, char** argv) {
  int first = 1;
  long repeat = 1;
  if (argc > 2 && std::strcmp(argv[1], "--repeat") == 0) {
    repeat = std::strtol(argv[2], nullptr, 10);
    first = 3;
  }
  size_t jobs = 0;
  for (long i = 0; i < repeat; ++i) {
    jobs = 0;
    for (int k = first; k < argc; ++k) {
      const stageline::Result<stageline::PaddleLog> log = stageline::scan_paddle_log(argv[k]);
      if (!log) {
        std::fprintf(stderr, "stageline_scan_bench: %s\n", log.error().text().c_str());
        return 2;
      }
      jobs += log->jobs.size();
    }
  }
  std::printf("%zu\n", jobs);
  return 0;
}
