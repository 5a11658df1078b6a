// Finds out the rank of a file, and machine and size of the job, by its content and by its name.
#pragma once

#include "model/trace.h"
#include "readers/common/problems.h"

namespace stageline::rows {

struct Identity {
  std::optional<int32_t> stated_rank;  // distributedInfo.rank; the last one if the file gives it twice
  std::optional<int32_t> named_rank;   // from the file's name, else from its folder's
  bool contradicts_itself = false;     // distributedInfo occurs twice, with different ranks
  int64_t world_size = -1;
  std::string host;  // host_name, else from the torch handler's "host_pid.time.pt.trace.json"; may be empty
  // The number in that name, where the host comes from it: the process's, or the name is a user's own ("worker0_12").
  std::string host_process;
  std::string worker;  // path without the handler's time: files of one worker that give no rank are one rank
};

Identity identify(const std::vector<MetaField>& metadata, const std::string& path);

// Returns the number in "rank0", "rank-0.", "rank_0", "rank=0" or "-TP-0", unless the name has other parallel
// dimensions too.
std::optional<int32_t> rank_in_name(std::string_view name);

struct FileFacts {
  std::string path;
  Identity identity;
  int64_t start_ns = 0, end_ns = 0;  // first start and last end of its slices; 0 and 0 when there are none
  std::string process = {};          // the pid of most of its host's slices
  // The place of a rank in a merged file. Its times are compared with those of separate files by their raw start.
  std::optional<size_t> merged_at = {};
  int64_t raw_start_ns = 0;  // of its host's and devices' work, without the base time
  int64_t known_count = 0;   // how many slices these are; TraceFuse leaves out Python's frames
  int32_t device = kUnknown;
};

// Returns first start and last end of a part's slices; 0 and 0 when there are none.
std::pair<int64_t, int64_t> times_of(const Part& part);
// Sets the process and the device of a file, and forgets a host that its name does not say after all.
void find_process(const Part& part, FileFacts& file);
// Makes files of one process that do not overlap (a profiler's cycles, under names of any kind) files of one worker.
void join_processes(std::vector<FileFacts>& files);
// Returns, in order, the files of earlier runs. Another process was the same rank later, or used the same device where
// no file says a rank: further apart than either recording is long, and not before. Ranks of one job overlap.
std::vector<size_t> earlier_runs(const std::vector<FileFacts>& files);
// Does the same for processes that are read from other files: takes those of earlier runs from `all`, whose elements
// have a `process` with `part` and `pid`. Returns true if there was one.
template <class Placed, class PathOf>
bool leave_out_earlier_runs(std::vector<Placed>& all, PathOf path_of, std::string_view format, Diagnostics& notes) {
  std::vector<FileFacts> files;
  for (const Placed& one : all) {
    const Part& part = one.process->part;
    FileFacts& file = files.emplace_back();
    file.identity.worker = file.path = path_of(one);
    file.identity.host = part.machine_name;
    file.process = std::to_string(one.process->pid);
    file.device = part.device;
    std::tie(file.start_ns, file.end_ns) = times_of(part);
  }
  const std::vector<size_t> earlier = earlier_runs(files);
  for (auto f = earlier.rbegin(); f != earlier.rend(); ++f) {
    notes.add(problem::reader_earlier_run.of(format), {files[*f].path});
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(*f));
  }
  return !earlier.empty();
}
// Returns, in order, ranks of merged files that other files hold too: those they were merged of.
std::vector<size_t> merged_copies(const std::vector<FileFacts>& files);

// Returns one rank per file, in the given order; several files may be of one rank. `diagnostics` says where ranks come
// from, with `format` as prefix of its names.
std::vector<int32_t> assign_ranks(const std::vector<FileFacts>& files, Diagnostics& diagnostics,
                                  std::string_view format = "kineto");

// Checks whether the ranks that are there fit the sizes of the job that files give.
void check_world(const std::vector<FileFacts>& files, const std::vector<int32_t>& ranks, Diagnostics& diagnostics);

}  // namespace stageline::rows
