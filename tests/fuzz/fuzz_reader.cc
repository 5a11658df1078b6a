// Runs every reader of the registry on hostile files, then the code that uses its Trace: layout, links, sums, findings,
// tables and one exporter.
//
// Input: byte 0 chooses the reader (STAGELINE_FUZZ_READER=name fixes it; fuzz_replay tries all), byte 1 the way the
// files are offered, byte 2 the exporter. The rest are files as split_texts() cuts them.
#include "base/parallel.h"
#include "base/zip_archive.h"
#include "look_at_trace.h"
#include "readers/reader.h"

namespace stageline::fuzz {
namespace {

// Names that some reader looks for. Appending keeps old inputs meaning what they meant.
constexpr const char* kNames[] = {
    "workerlog.0",
    "workerlog.1",
    "workerlog.2",
    "machine0/workerlog.0",
    "machine1/workerlog.0",
    "machine1/workerlog.1",
    "workerlog.0.gz",
    "trace.json",
    "rank_0.json",
    "rank_1.json",
    "ops.csv",
    "ops.tsv",
    "profile.json",
    "notes.txt",
    "dp0_pp0.json",
    "dp0_pp1.json",
    "pipeline_profile.json",
    "ops.jsonl",
    "events.log",
    "rank0/trace.json",
    "profile_record_tmp_file_for_rank_0",
    "profile_record_tmp_file_for_rank_1",
    "pp_rank_0.json",
    "pp_rank_1.json",
    "config.json",
    "trace_rank3.json",
    "rank_0_ascend_pt/profiler_info_0.json",
    "rank_0_ascend_pt/profiler_metadata.json",
    "rank_0_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv",
    "rank_0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json",
    "rank_0_ascend_pt/ASCEND_PROFILER_OUTPUT/communication.json",
    "rank_0_ascend_pt/ASCEND_PROFILER_OUTPUT/communication_matrix.json",
    "rank_0_ascend_pt/ASCEND_PROFILER_OUTPUT/step_trace_time.csv",
    "rank_1_ascend_pt/profiler_info_1.json",
    "rank_1_ascend_pt/profiler_metadata.json",
    "rank_1_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv",
    "rank_1_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json",
    "rank_1_ascend_pt/ASCEND_PROFILER_OUTPUT/communication.json",
    "rank_1_ascend_pt/ASCEND_PROFILER_OUTPUT/communication_matrix.json",
    "rank_1_ascend_pt/ASCEND_PROFILER_OUTPUT/step_trace_time.csv",
    "rank_0_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db",
    "rank_0_ascend_pt/ASCEND_PROFILER_OUTPUT/analysis.db",
    "h.r00000.p1.1.000.slrec",
    "h.r00000.p1.1.001.slrec",
    "h.r00000.p1.1.slhot",
    "rank0.pftrace",
    "rank1.pftrace",
    "host0.xplane.pb",
    "host1.xplane.pb",
    "rank0.pickle",
    "4242_results.db",
    "4243_results.db",
    "report.sqlite",
    "et_rank0.json",
    "nccl_trace_rank_0",
    "nccl_trace_rank_1",
    "rank-00000.7da688bf0821c6b9.sldigest",
    "rank-00001.b80cc38b03c14195.sldigest",
    "rank0_results.json",
    "rank1_results.json",
    "4242_agent_info.csv",
    "4242_kernel_trace.csv",
    "4242_hip_api_trace.csv",
    "4242_memory_copy_trace.csv",
    "4242_memory_allocation_trace.csv",
    "4242_marker_api_trace.csv",
    "4242_rccl_api_trace.csv",
    "run.zip",
};
constexpr size_t kMaxFiles = 8;

// zstd makes gigabytes of four bytes; fuzz_input has its own cap and takes care of compressed files.
bool is_bomb(std::string_view bytes) { return bytes.find("\x28\xb5\x2f\xfd") != std::string_view::npos; }

// An archive that contradicts itself is not a source.
Result<Source> offer(const TempFolder& folder, std::string_view bytes, uint8_t how) {
  std::vector<std::string> names;
  for (const NamedText& text : split_texts(bytes)) {
    if (names.size() == kMaxFiles) break;
    const std::string name = kNames[text.choice % std::size(kNames)];
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    folder.write(name, text.text);
    names.push_back(name);
  }
  std::vector<std::string> paths{folder.path()};
  if (how & 1) {
    paths.clear();
    for (const std::string& name : names) paths.push_back(folder / name);
  }
  Result<Source> source = scan_source(paths);
  const bool archive =
      std::any_of(names.begin(), names.end(), [&](const std::string& name) { return is_zip(folder / name); });
  FUZZ_CHECK(source || (archive && source.error().code != ErrorCode::kNotFound), source.error().text());
  return source;
}

void read_with(const Reader& reader, const TempFolder& folder, const Source& source, uint8_t how, uint8_t exporter) {
  ReadOptions options;
  if (how & 32) options.devices = {0};
  Result<Trace> trace = reader.read(source, options);
  if (!trace) {
    FUZZ_CHECK(!trace.error().what.empty(), reader.name);
    return;
  }
  const bool has_rows = std::any_of(trace->parts.begin(), trace->parts.end(), [](const Part& part) {
    return part.slices.size() > 0 || !part.marks.empty() || !part.counters.empty() || !part.allocator.empty();
  });
  FUZZ_CHECK(trace->cells.size() > 0 || has_rows, reader.name);
  look_at(*trace, folder, how, exporter);
}

}  // namespace
}  // namespace stageline::fuzz

FUZZ_TARGET(reader) {
  using namespace stageline;
  using namespace stageline::fuzz;
  static const TempFolder folder;
  set_thread_count(1);  // coverage of one thread is the same every time
  Bytes input{data, size};
  const uint8_t choice = input.byte(), how = input.byte(), exporter = input.byte();
  if (is_bomb(input.rest())) return 0;
  folder.clear();
  const Result<Source> offered = offer(folder, input.rest(), how);
  if (!offered) return 0;
  const Source& source = *offered;
  for (const Reader* reader : readers()) reader->sniff(source);
  const char* const fixed = getenv("STAGELINE_FUZZ_READER");
#ifdef STAGELINE_FUZZ_REPLAY
  constexpr bool all = true;
#else
  constexpr bool all = false;
#endif
  const size_t count = readers().size();
  for (size_t i = 0; i < count; ++i) {
    const Reader& reader = *readers()[i];
    if (fixed ? std::string_view(fixed) == reader.name : all || choice % count == i)
      read_with(reader, folder, source, how, exporter);
  }
  return 0;
}
