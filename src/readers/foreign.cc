#include "readers/foreign.h"

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/number.h"
#include "base/text.h"

namespace stageline {
namespace {

constexpr ForeignFormat kExecutionTrace = {
    "this is a PyTorch execution trace (Chakra): a graph of operators without device times",
    "give the profiler trace of the same run beside it (torch.profiler's *.pt.trace.json, or export_chrome_trace): the "
    "two "
    "are joined"};
constexpr ForeignFormat kTorchSave = {
    "this is a file of torch.save or a pickle of tensors, with no times in it",
    "record with torch.profiler: prof.export_chrome_trace(\"rank0.pt.trace.json.gz\")"};
constexpr ForeignFormat kPickle = {
    "this is a Python pickle, and none of torch's flight recorder",
    "a pickle can run any code, so only plain data of known kinds is read; for a table of timings pandas writes CSV: "
    "pandas.read_pickle(\"FILE\").to_csv(\"timings.csv\")"};
constexpr ForeignFormat kNsys = {
    "this is an SQLite database of Nsight Systems without the tables that a timeline needs",
    "nsys export --type sqlite --include-blobs=true REPORT.nsys-rep makes one that Stageline reads"};
constexpr ForeignFormat kRocprofCsv = {
    "this is a table of rocprofv3 (--output-format csv) that holds neither calls nor work of a device",
    "give the folder with all tables of the run: PID_kernel_trace.csv, PID_hip_api_trace.csv and the others"};
constexpr ForeignFormat kNvprof = {
    "this is an SQLite database of nvprof, which NVIDIA has given up",
    "record with nsys profile -t cuda,nvtx, then nsys export --type sqlite REPORT.nsys-rep"};
constexpr ForeignFormat kSqlite = {"this is an SQLite database, and no reader takes it",
                                   "give the traces that it was made of, or a table of timings as CSV"};
constexpr ForeignFormat kClusterAnalysis = {
    "this is cluster_analysis.db, the results of msprof-analyze, without the times of work",
    "give the folder of the ranks' profiles that it was made of (ascend_pytorch_profiler_*.db)"};
constexpr ForeignFormat kOldMsprof = {
    "this is a database of an early msprof (report_N.db), before version 1.0 of its tables",
    "msprof --export=on --output=PROF_FOLDER, with a newer CANN, makes one that Stageline reads"};
constexpr ForeignFormat kMemscope = {
    "this is a database of msMemScope (msleaks): allocations of memory, and no work",
    "record the run with torch_npu.profiler (export_type db) and give the *_ascend_pt folders"};
constexpr ForeignFormat kProton = {
    "this is a profile of Proton (.hatchet): sums of its kernels, and no times",
    "record it anew with proton.start(\"NAME\", data=\"trace\"), which writes a Chrome trace"};
constexpr ForeignFormat kCutSqlite = {
    "this is the beginning of an SQLite database: the file is shorter than it says it is",
    "copy it once more, whole; of Nsight Systems export it again: nsys export --type sqlite REPORT.nsys-rep"};
constexpr ForeignFormat kNsysReport = {
    "this is a report of Nsight Systems (.nsys-rep)",
    "nsys export --type sqlite --include-blobs=true REPORT.nsys-rep makes a file that Stageline reads"};
constexpr ForeignFormat kOldNsysReport = {
    "this is a report of an older Nsight Systems (.qdrep)",
    "nsys export --type sqlite --include-blobs=true REPORT.qdrep makes a file that Stageline reads"};
constexpr ForeignFormat kNsysStream = {
    "this is what Nsight Systems recorded and has not made a report of (.qdstrm)",
    "QdstrmImporter --input-file FILE.qdstrm makes the report; then nsys export --type sqlite REPORT.nsys-rep"};
constexpr ForeignFormat kNcuReport = {
    "this is a report of Nsight Compute (.ncu-rep): counters of single kernels, and no times of a run",
    "record the run with nsys profile -t cuda,nvtx, then nsys export --type sqlite REPORT.nsys-rep"};
constexpr ForeignFormat kEtl = {
    "this is a trace of Event Tracing for Windows (.etl)",
    "record the training itself, with torch.profiler: prof.export_chrome_trace(\"rank0.pt.trace.json.gz\")"};
constexpr ForeignFormat kPerf = {
    "this is a recording of Linux perf (perf.data): samples of processors, not spans of work",
    "record the training itself: stageline record -- python train.py, or torch.profiler's export_chrome_trace"};
constexpr ForeignFormat kFuchsia = {"this is a trace in Fuchsia's format",
                                    "Perfetto's traceconv json FILE trace.json makes a file that Stageline reads"};
constexpr ForeignFormat kParquet = {
    "this is a table in Parquet or Arrow, and Stageline reads tables as CSV",
    "python -c 'import pandas; pandas.read_parquet(\"FILE\").to_csv(\"timings.csv\", "
    "index=False)', then stageline info timings.csv; of Nsight Systems export SQLite, or "
    "open the folder in Python: stageline.open(\"X.parquetdir\")"};
constexpr ForeignFormat kXz = {"this is compressed with xz, and Stageline reads gzip and zstd",
                               "xz -d FILE, then give what it makes"};
constexpr ForeignFormat kBzip2 = {"this is compressed with bzip2, and Stageline reads gzip and zstd",
                                  "bunzip2 FILE, then give what it makes"};
constexpr ForeignFormat kLz4 = {"this is compressed with LZ4, and Stageline reads gzip and zstd",
                                "lz4 -d FILE, then give what it makes"};
constexpr ForeignFormat kBrotli = {"this is called compressed with Brotli (.br), and Stageline reads gzip and zstd",
                                   "brotli -d FILE, then give what it makes"};
constexpr ForeignFormat kTar = {"this is an archive of files (tar)",
                                "mkdir run && tar -xf FILE -C run, then stageline info run"};
constexpr ForeignFormat kZip = {"this is an archive of files (ZIP)", "unzip FILE -d run, then stageline info run"};
constexpr ForeignFormat kNsysJax = {
    "this is an archive of nsys-jax, which holds a report of Nsight Systems",
    "unzip FILE -d run, then nsys export --type sqlite --include-blobs=true run/REPORT.nsys-rep makes a file that "
    "Stageline reads"};
constexpr ForeignFormat kNumpy = {
    "this is an array of numpy: numbers that do not say what they are",
    "a table of timings as CSV says it in its first line (docs/formats/op-table.md); in Python stageline.from_arrow "
    "takes a table"};
constexpr ForeignFormat kTensorBoard = {
    "these are TensorBoard's events (tfevents): scalars and pictures, no times of work",
    "a profile of the same run lies below it, in plugins/profile: give that folder; or record with torch.profiler"};
constexpr ForeignFormat kSamples = {
    "this is a profile of samples (speedscope, V8 or Python's): sums of functions, not the spans of a run",
    "record the training itself: stageline record -- python train.py, or torch.profiler's export_chrome_trace"};
constexpr ForeignFormat kOtf2 = {"this is a trace of Score-P's (OTF2), which no reader takes",
                                 "record the training itself: torch.profiler's export_chrome_trace, or nsys profile"};
constexpr ForeignFormat kProtobuf = {
    "this is called a protobuf (.pb), and is neither a trace of Perfetto's nor a profile of XLA's (.xplane.pb)",
    "graphs and models hold no times: record with a profiler (docs/formats has a page for each)"};
constexpr ForeignFormat kBeheaded = {
    "this file is called a Perfetto trace and does not begin with packets of one: its head is damaged, or it is "
    "another's",
    "stageline info --reader perfetto FILE looks for packets further on and keeps what it finds"};
constexpr ForeignFormat kXplane = {
    "this is called a profile of XLA (.xplane.pb), and its bytes are none",
    "copy the original as it is (binary, not as text); stageline reads HOST.xplane.pb, also gzipped"};
constexpr ForeignFormat kChakra = {
    "this is called an execution trace of Chakra (.et), and its bytes are none",
    "copy the original as it is (binary, not as text), or give the profile that it was made of: torch.profiler's "
    "*.pt.trace.json"};
constexpr ForeignFormat kAscend = {
    "this is an Ascend profiler's trace_view.json: a Chrome trace, but its rows are not Kineto's",
    "call it trace_view.json again, or give the folder that the profiler made: then the reader ascend takes it"};
constexpr ForeignFormat kUtf16 = {
    "this text is in UTF-16, and Stageline reads UTF-8",
    "iconv -f UTF-16 -t UTF-8 FILE > utf8.csv, and give that; in PowerShell Get-Content FILE | Set-Content -Encoding "
    "utf8 utf8.csv"};
constexpr ForeignFormat kNoHeader = {"this is a table without names of its columns: its first line holds values",
                                     "write the names into the first line, such as "
                                     "stage,kind,step,micro_batch,start_us,dur_us; docs/formats/op-table.md "
                                     "has them all"};
constexpr const char* kTraces =
    "a profiler trace is {\"traceEvents\": [{…}, …]} or [{…}, …] with events; torch.profiler writes it by "
    "prof.export_chrome_trace(\"rank0.pt.trace.json.gz\"); stageline help readers lists what else is read";
constexpr ForeignFormat kJsonValue = {"this is JSON, and holds one value instead of a trace", kTraces};
constexpr ForeignFormat kJsonEmpty = {"this is JSON, and there is nothing in it", kTraces};
constexpr ForeignFormat kJsonList = {"this is JSON, and its list holds values instead of events", kTraces};
constexpr ForeignFormat kJsonOther = {"this is JSON, and holds no events of a trace", kTraces};
constexpr ForeignFormat kBinary = {"this is no text, and begins like nothing that a reader takes",
                                   "stageline help readers lists what is read; a compressed file must be gzip or zstd, "
                                   "and one that was copied as text "
                                   "must be copied anew as it is"};
constexpr ForeignFormat kMemoryTimeline = {
    "this is a memory timeline (export_memory_timeline): sizes over time, not work",
    "give the profiler trace of the same run; its [memory] events hold the same and more"};

constexpr const char* kRecordFrames =
    "record some steps with torch.profiler and with_stack=True, then prof.export_chrome_trace(\"rank0.pt.trace.json.gz\"): "
    "the frames of Megatron and DeepSpeed show the pipeline";
constexpr const char* kRecordTraces =
    "record some steps with torch.profiler: prof.export_chrome_trace(\"rank0.pt.trace.json.gz\")";
constexpr const char* kExportOtlp =
    "export the spans as OTLP: the collector's file exporter writes them, or opentelemetry-exporter-otlp-proto-file";
constexpr const char* kRecordRun =
    "record the training itself: stageline record -- python train.py, or torch.profiler's export_chrome_trace";

// Texts that say what they are: all words of one are in the beginning of the file.
struct Marked {
  std::string_view first, second;
  ForeignFormat format;
};
constexpr Marked kMarked[] = {
    {"DeepSpeed Flops Profiler",
     "",
     {"this is a report of DeepSpeed's flops profiler: sums of modules, no timeline", kRecordFrames}},
    {"time (ms) |", "[logging.py", {"this is a log of DeepSpeed: sums of steps, no timeline", kRecordFrames}},
    {"DeepSpeed", "[INFO]", {"this is a log of DeepSpeed, without a timeline", kRecordFrames}},
    {"elapsed time per iteration (ms)",
     "",
     {"this is a log of Megatron: sums of iterations, no timeline", kRecordFrames}},
    {"times across ranks (ms)", "", {"this is a log of Megatron: sums of its timers, no timeline", kRecordFrames}},
    {"time across ranks (ms)", "", {"this is a log of Megatron: sums of its timers, no timeline", kRecordFrames}},
    {"timer_name,mean_ms,std_ms",
     "",
     {"this is a table of Megatron's --rl-profile: sums of timers, no timeline", kRecordFrames}},
    {"\"elapsed_time_ms\"",
     "\"timer_",
     {"this is a log of Megatron's --rl-profile: sums of timers, no timeline", kRecordFrames}},
    {"\"timing_s/", "\"step\"", {"this is a log of verl: sums of a step's phases, no timeline", kRecordTraces}},
    {"\"t0\"", "\"gpus\"", {"these are phases of a dashboard of miles, without the work in them", kRecordTraces}},
    {"time (ms) | forward_step",
     "",
     {"these are timers of Paddle's pipeline: sums of a step, no timeline",
      "FLAGS_profile_pipeline_details_steps=10 makes the same job log every forward and backward"}},
    {"metric_name: ",
     "recent_since_start_raw_parts",
     {"this is the raw log of ndtimeline",
      "give its trace_stepA_B files, Chrome traces that it writes in the same folder"}},
    {"\"operationName\"",
     "\"traceID\"",
     {"these are spans as Jaeger's page gives them out, and Stageline reads OTLP", kExportOtlp}},
    {"\"trace_id\"",
     "\"span_id\"",
     {"these are spans as OpenTelemetry's console exporter prints them, and Stageline reads OTLP", kExportOtlp}},
    {"\"resourceLogs\"", "", {"these are logs of OpenTelemetry (OTLP): no spans and no timeline", kRecordTraces}},
    {"\"resourceMetrics\"", "", {"these are metrics of OpenTelemetry (OTLP): no spans and no timeline", kRecordTraces}},
    {"# TYPE ", "# HELP ", {"these are metrics in Prometheus' text format: counters, no timeline", kRecordTraces}},
    {"Profiler Report",
     "Action",
     {"this is a report of Lightning's profiler (SimpleProfiler): sums of actions, no timeline",
      "Trainer(profiler=\"pytorch\") writes *.pt.trace.json files that Stageline reads"}},
    {"Self CPU %",
     "# of Calls",
     {"this is a printed table of torch.profiler (key_averages): sums of operators, no timeline",
      "keep the trace too: prof.export_chrome_trace(\"rank0.pt.trace.json.gz\")"}},
    {"\"elapsed_time_sec\"",
     "\"n_cpu_percent",
     {"this is a profile of Scalene: sums of lines, no timeline", kRecordRun}},
};

// Whether every line is a stack and a count: "main;step;forward 120".
bool is_folded_stacks(std::string_view head) {
  size_t lines = 0, stacks = 0;
  for (size_t at = 0, end = head.find('\n'); end != std::string_view::npos && lines < 64;
       at = end + 1, end = head.find('\n', at)) {
    const std::string_view line = trim(head.substr(at, end - at));
    const size_t blank = line.rfind(' ');
    ++lines;
    stacks +=
        blank != std::string_view::npos && line.find(';') < blank && parse_int(line.substr(blank + 1)).has_value();
  }
  return lines > 0 && stacks * 2 > lines;
}

bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

const ForeignFormat* foreign_json(std::string_view head) {
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (at == std::string_view::npos) return nullptr;
  head.remove_prefix(at);
  if (head[0] == '{') {
    if (!has(head, "\"traceEvents\"") &&
        (has(head, "speedscope.app/file-format-schema") ||
         (has(head, "\"nodes\"") && has(head, "\"callFrame\"") && has(head, "\"functionName\""))))
      return &kSamples;
    if (has(head, "\"schema\"") && !has(head, "\"schemaVersion\"") && !has(head, "\"traceEvents\"") &&
        (has(head, "\"nodes\"") || has(head, "\"op_schema\"") || has(head, "\"rf_id\"")))
      return &kExecutionTrace;
  }
  if (has(head, "\"ph\"") && has(head, "\"Ascend Hardware\"")) return &kAscend;
  if (head[0] == '[' && has(head, "\"frame\"") && has(head, "\"metrics\"") && !has(head, "\"ph\"")) return &kProton;
  if (head[0] == '[') {
    const size_t inner = head.find_first_not_of(" \t\r\n", 1);
    if (inner != std::string_view::npos && head[inner] == '[' && inner + 1 < head.size() &&
        has("-0123456789", head.substr(inner + 1, 1)) && !has(head, "\"ph\""))
      return &kMemoryTimeline;
  }
  return nullptr;
}

// Whether a database ends before its last page. Its header counts the pages, where the counter at 24 is the one at 92.
bool is_cut_database(std::string_view head, std::string_view path) {
  if (head.size() < 100 || head.substr(24, 4) != head.substr(92, 4)) return false;
  const auto number = [&](size_t at, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<unsigned char>(head[at + i]);
    return value;
  };
  const uint64_t page = number(16, 2) == 1 ? 65536 : number(16, 2);
  struct stat st = {};
  return stat(std::string(path).c_str(), &st) == 0 && S_ISREG(st.st_mode) &&
         static_cast<uint64_t>(st.st_size) < page * number(28, 4);
}

}  // namespace

namespace {

bool is_utf16(std::string_view head) {
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) return true;
  // Without its mark: every other byte of a line in Latin letters is zero.
  constexpr size_t kLooked = 32;
  if (head.size() < kLooked) return false;
  size_t zeros[2] = {0, 0};
  for (size_t i = 0; i < kLooked; ++i) zeros[i % 2] += head[i] == '\0';
  return (zeros[0] == kLooked / 2 && zeros[1] == 0) || (zeros[1] == kLooked / 2 && zeros[0] == 0);
}

// Whether the first line of a table holds numbers and no names: at least three fields, more than half of them numbers.
bool has_no_header(std::string_view head) {
  const std::string_view line = head.substr(0, head.find_first_of("\r\n"));
  for (const char separator : {',', ';', '\t'}) {
    const std::vector<std::string_view> fields = split(line, separator);
    size_t numbers = 0;
    for (const std::string_view field : fields) numbers += parse_double(trim(field)).has_value();
    if (fields.size() >= 3 && numbers * 2 > fields.size()) return true;
  }
  return false;
}

const ForeignFormat* unknown_json(std::string_view head, std::string_view extension) {
  const std::string_view text = trim(head);
  for (const std::string_view value : {"null", "true", "false"})
    if (text == value) return &kJsonValue;
  if (text == "{}" || text == "[]") return &kJsonEmpty;
  if (extension == "json" && (parse_double(text) || (text.size() > 1 && text.front() == '"' && text.back() == '"')))
    return &kJsonValue;
  const bool whole =
      !text.empty() && ((text.front() == '{' && text.back() == '}') || (text.front() == '[' && text.back() == ']'));
  if (!whole) return nullptr;
  if (text.front() == '[' && trim(text.substr(1)).front() != '{') return &kJsonList;
  return &kJsonOther;
}

// Returns what a SQLite database is that no reader takes.
const ForeignFormat* foreign_database(std::string_view head, std::string_view path, std::string_view extension) {
  if (extension == "nvvp" || extension == "nvprof") return &kNvprof;
  if (is_cut_database(head, path)) return &kCutSqlite;
  if (has(head, "ClusterStepTraceTime") || has(head, "ClusterBaseInfo") || has(head, "ClusterComm"))
    return &kClusterAnalysis;
  for (const std::string_view name : {"leaks_dump", "memscope_dump"})
    if (has(head, name) || has(file_name(path), name)) return &kMemscope;
  if (has(head, "baseTimeNs") && has(head, "COMPUTE_TASK_INFO")) return &kOldMsprof;
  return has(head, "CUPTI_ACTIVITY") || file_name(path).find("nsys") != std::string::npos ? &kNsys : &kSqlite;
}

constexpr std::pair<std::string_view, const ForeignFormat*> kExtensions[] = {{"nsys-rep", &kNsysReport},
                                                                             {"qdrep", &kOldNsysReport},
                                                                             {"qdstrm", &kNsysStream},
                                                                             {"ncu-rep", &kNcuReport},
                                                                             {"etl", &kEtl},
                                                                             {"nvvp", &kNvprof},
                                                                             {"nvprof", &kNvprof},
                                                                             {"et", &kChakra},
                                                                             {"br", &kBrotli},
                                                                             {"pkl", &kPickle},
                                                                             {"pickle", &kPickle},
                                                                             {"hatchet", &kProton},
                                                                             {"prof", &kSamples},
                                                                             {"pstats", &kSamples},
                                                                             {"cpuprofile", &kSamples},
                                                                             {"otf2", &kOtf2},
                                                                             {"pftrace", &kBeheaded},
                                                                             {"perfetto-trace", &kBeheaded}};

}  // namespace

const ForeignFormat* unknown_content(std::string_view head, std::string_view path) {
  if (is_utf16(head)) return &kUtf16;
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const std::string extension = file_extension(path);
  if (has(head, std::string_view("\0", 1))) return &kBinary;
  if (const ForeignFormat* json = unknown_json(head, extension)) return json;
  return extension != "json" && has_no_header(head) ? &kNoHeader : nullptr;
}

bool is_foreign_json(std::string_view head) { return foreign_json(head) != nullptr; }

const ForeignFormat* foreign_format(std::string_view head, std::string_view path) {
  const std::string extension = file_extension(path);
  if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5)
    return has(head, "torch._utils") || has(head, "_rebuild_tensor") ? &kTorchSave : &kPickle;
  if (head.starts_with(std::string_view("PK\x03\x04", 4)))
    return has(head, "data.pkl")                                        ? &kTorchSave
           : has(head, ".npy")                                          ? &kNumpy
           : has(head, ".nsys-rep") || has(head, "nvtx_gpu_proj_trace") ? &kNsysJax
                                                                        : &kZip;
  if (head.starts_with("\x93NUMPY")) return &kNumpy;
  if (head.starts_with(std::string_view("\xfd"
                                        "7zXZ\0",
                                        6)))
    return &kXz;
  if (head.starts_with("BZh") && head.substr(4).starts_with("1AY&SY")) return &kBzip2;
  static constexpr ForeignFormat kMemray = {"this is a recording of memray: allocations, no times of work",
                                            "memray flamegraph FILE shows it; torch's memory: "
                                            "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")"};
  if (has(head.substr(0, 64), "memray")) return &kMemray;
  if (head.starts_with("\x04\x22\x4d\x18")) return &kLz4;
  if (head.size() > 262 && head.substr(257, 5) == "ustar") return &kTar;
  if (head.starts_with(std::string_view("SQLite format 3\0", 16))) return foreign_database(head, path, extension);
  if ((head.starts_with("\"Kind\",") || head.starts_with("\"Domain\",")) && has(head, "\"Start_Timestamp\""))
    return &kRocprofCsv;
  if (head.starts_with("PERFILE2") || head.starts_with("2ELIFREP")) return &kPerf;
  if (head.starts_with(std::string_view("\x10\x00\x04\x46\x78\x54\x16\x00", 8))) return &kFuchsia;
  if (head.starts_with("PAR1") || head.starts_with("ARROW1")) return &kParquet;
  for (const auto& [end, format] : kExtensions)
    if (extension == end) return format;
  if (file_name(path).ends_with(".xplane.pb")) return &kXplane;
  if (file_name(path).find("tfevents") != std::string::npos) return &kTensorBoard;
  if (const ForeignFormat* json = foreign_json(head)) return json;
  static constexpr ForeignFormat kPaddleProto = {
      "this is a profile of Paddle as protobuf (export_protobuf)",
      "python -c \"import paddle.profiler as p; p.load_profiler_result('F.pb').save('F.paddle_trace.json', 'json')\" "
      "makes a file that Stageline reads"};
  if (file_name(path).ends_with(".paddle_trace.pb") || head.starts_with("\x0a\x05"
                                                                        "1.0."))
    return &kPaddleProto;
  for (const Marked& known : kMarked)
    if (has(head, known.first) && has(head, known.second) && !has(head, "\"traceEvents\"")) return &known.format;
  static constexpr ForeignFormat kFolded = {
      "these are folded stacks (py-spy --format raw, flamegraph.pl): samples of functions, not the spans of a run",
      kRecordRun};
  if (is_folded_stacks(head)) return &kFolded;
  return extension == "pb" ? &kProtobuf : nullptr;
}

}  // namespace stageline
