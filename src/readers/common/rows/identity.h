// Whose trace a file is: rank, machine and job size, by what the file says and what it is called.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "model/trace.h"

namespace stageline::kineto {

struct Identity {
  std::optional<int32_t> said_rank;   // distributedInfo.rank; the last one when the file says it twice
  std::optional<int32_t> named_rank;  // of the file's name, else of its folder's
  bool contradicts_itself = false;    // distributedInfo twice, with different ranks
  int64_t world_size = -1;
  std::string host;    // host_name, else of the torch handler's "host_pid.time.pt.trace.json"; may be empty
  std::string worker;  // files of one worker without a rank are one rank: path without the handler's time
};

Identity identify(const std::vector<MetaField>& metadata, const std::string& path);

// "rank0", "rank-0.", "rank_0", "rank=0", "-TP-0": the number, unless other parallel dimensions are named too.
std::optional<int32_t> rank_in_name(std::string_view name);

struct FileFacts {
  std::string path;
  Identity identity;
  int64_t start_ns = 0, end_ns = 0;  // of its slices; 0,0 without any
};

// One rank per file, in the order given; files may share one. Says in `diagnostics` where ranks come from.
// `format` stands before the names of diagnostics.
std::vector<int32_t> assign_ranks(const std::vector<FileFacts>& files, Diagnostics& diagnostics,
                                  std::string_view format = "kineto");

// Whether the ranks that are there fit the world sizes that were said.
void check_world(const std::vector<FileFacts>& files, const std::vector<int32_t>& ranks, Diagnostics& diagnostics);

}  // namespace stageline::kineto
