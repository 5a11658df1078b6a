// One process of a report while its rows come in.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/text_interner.h"
#include "readers/common/launched_work.h"
#include "readers/common/number_map.h"
#include "readers/common/part_builder.h"
#include "readers/common/row_kinds.h"

namespace stageline::nsys {

// The number contains vm, pid and thread: these return the part above the thread, and its pieces.
inline int64_t process_of(int64_t global) { return static_cast<uint64_t>(global) >> 24; }
inline int64_t pid_of(int64_t process) { return process & 0xffffff; }
inline int64_t thread_of(int64_t global_tid) { return global_tid & 0xffffff; }

class Process {
 public:
  Process(const std::string& path, int64_t id) : out(path, gpu_rows::kKinds, "nsys"), process(id) {}

  PartBuilder out;
  const int64_t process;
  int64_t device_rows = 0, host_rows = 0, first_device = -1, nccl_kernels = 0;
  int64_t communicator_rank = -1, communicator_size = 0, mpi_rank = -1;
  LaunchedWork launched;
  NumberMap texts, call_names;  // of StringIds → of the builder; names of calls lose their versions

  struct Thread {
    uint32_t lane = 0;
    int64_t last_ns = 0;  // last timestamp seen, for ranges left open
  };
  // `name`: what the report calls the thread; "" where it says nothing.
  template <class Name>
  Thread& thread(int64_t global_tid, Name&& name) {
    if (last_thread_ && last_tid_ == global_tid) return *last_thread_;
    const auto [at, is_new] = threads_.try_emplace(global_tid);
    if (is_new) add_thread(global_tid, name(), at->second);
    last_tid_ = global_tid;
    return *(last_thread_ = &at->second);
  }
  // A stream's lane; work of a second context has lanes of its own.
  uint32_t device_lane(int64_t device, int64_t context, int64_t stream);
  // Returns "[1, 2, 3]" as a text of the builder.
  uint32_t shape_text(const std::array<int64_t, 3>& shape);

  // Holds the content of a range's text. Most texts are repeated, so each is parsed only once.
  struct KnownRange {
    uint32_t name = 0, full = 0;  // of the builder
    int32_t micro_batch = -1, chunk = -1, stage = -1, step = -1;
    bool is_profiler_step = false, is_step = false, starts_with_nccl = false;
    int64_t step_number = -1;  // −1: of a step that does not say it
  };
  // By value: a later call may move it.
  KnownRange known_range(std::string_view text);

  struct StepRange {
    int64_t global_tid, number, start_ns, end_ns;
    uint32_t text;  // of the builder
  };
  std::vector<StepRange> steps;
  bool has_profiler_steps = false;

  struct Call {  // of NCCL, with what it says
    int64_t global_tid, start_ns, end_ns;
    uint64_t communicator;
    CollectiveFact fact;  // its bytes are those of the call's count
  };
  std::vector<Call> calls;
  std::map<uint64_t, int64_t> communicator_calls, communicator_sizes;

  // Once all rows are there: ranges on the devices, and what NCCL's calls say on the kernels they launched.
  void project();
  // Steps that the user's own ranges mark: of one thread and one wording, apart from each other, two at least.
  void add_steps(Diagnostics& notes);

 private:
  void add_thread(int64_t global_tid, std::string_view name, Thread& thread);

  std::unordered_map<int64_t, Thread> threads_;
  Thread* last_thread_ = nullptr;
  int64_t last_tid_ = 0;
  std::map<int64_t, int64_t> first_context_;  // device → the context of its plain lanes
  std::array<int64_t, 3> last_stream_{};      // device, context, stream
  uint32_t last_stream_lane_ = UINT32_MAX;
  struct Shape {
    std::array<int64_t, 3> shape{};
    uint32_t text = 0;
    bool is_known = false;
  };
  std::array<Shape, 64> shapes_{};  // the last of each remainder
  TextInterner range_texts_;
  std::vector<KnownRange> ranges_;  // by id of range_texts_
};

}  // namespace stageline::nsys
