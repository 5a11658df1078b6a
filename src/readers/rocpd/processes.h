// The processes of a record of AMD's profilers while it is read: calls, device work, allocations and counters in any
// order, put together and linked by finish(). Times are nanoseconds as the file has them; one before zero is none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "readers/common/launched_work.h"
#include "readers/common/part_builder.h"
#include "readers/common/row_kinds.h"
#include "readers/rocpd/record.h"

namespace stageline::rocpd {

// "MEMORY_COPY_HOST_TO_DEVICE", "CopyHostToDevice" → "Memcpy HtoD"; others as they are.
std::string copy_name(std::string_view name);
// "0x00007ffb26354000"; without 0x a decimal number.
std::optional<uint64_t> parse_address(std::string_view text);

class Processes {
 public:
  struct Process {
    explicit Process(const std::string& path) : out(path, gpu_rows::kKinds, "rocpd") {}
    PartBuilder out;
    int64_t pid = 0, device_rows = 0, host_rows = 0, first_device = -1, said_rank = -1;
    std::string host;
    LaunchedWork launched;
    std::map<int64_t, int64_t> size_at;          // address → bytes of what is allocated: frees do not say
    std::map<int64_t, std::string> device_name;  // by the device's number
  };

  explicit Processes(std::string path) : path_(std::move(path)) {}

  // The process of that number, made when it is new; `pid` is the operating system's. nullptr: there are too many.
  Process* of(int64_t id, int64_t pid);
  bool empty() const { return all_.empty(); }
  Process* first() { return empty() ? nullptr : all_.begin()->second.get(); }
  // Numbers of processes and of launches mean others from here on: of merged files.
  void begin_next();
  Process* last_of_these();  // nullptr where none was made since begin_next()

  // A call of the host. `category`: "HIP_RUNTIME_API", "HSA_CORE_API", "MARKER_CORE_API", "RCCL_API", …; of a marker
  // `name` is its message. Device work names the `launch` that made it; 0 is none. kNoRow: it cannot be.
  uint32_t add_call(Process& p, std::string_view category, int64_t thread, int64_t start, int64_t end,
                    std::string_view name, int64_t launch);
  // `kind`: kKernel, kMemcpy, kMemset or kSync. `bytes` of a copy; −1: not known.
  uint32_t add_work(Process& p, gpu_rows::Kind kind, int64_t device, int64_t stream, int64_t start, int64_t end,
                    std::string_view name, int64_t launch, int64_t bytes = -1);
  // Work items of a group and of the grid; other profilers count the grid in blocks, and so do facts.
  struct Shape {
    int64_t group[3] = {1, 1, 1}, items[3] = {1, 1, 1};
    bool known = false;
    int64_t registers = -1, shared_bytes = -1;
  };
  static void describe_kernel(Process& p, uint32_t row, const Shape& shape);
  // ncclAllReduce(sendbuff, recvbuff, count, datatype, op, comm, stream): names of the arguments as RCCL has them.
  static void describe_collective(Process& p, uint32_t row, std::string_view name,
                                  std::map<std::string, std::string>& arguments);
  // `bytes` 0 or less: what stands at the address is freed.
  static void add_allocation(Process& p, int64_t at, int64_t address, int64_t bytes, int64_t device);

  // Links, draws ranges on the devices and moves what is kept to `out`. The processes are empty then.
  void finish(Record& out);

 private:
  uint32_t number_of(int64_t launch);

  std::string path_;
  int generation_ = 0;
  std::map<std::pair<int, int64_t>, std::unique_ptr<Process>> all_;
  std::map<int64_t, uint32_t> numbers_;  // of launches: the profilers' may be of 64 bits, so they are counted anew
  uint32_t last_number_ = 0;
};

}  // namespace stageline::rocpd
