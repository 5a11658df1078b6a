#include "readers/foreign.h"

#include <sys/stat.h>

#include "readers/reader.h"

namespace stageline {
namespace {

// Texts that say what they are: all words of one are in the beginning of the file.
struct Marked {
  std::string_view first, second, format;
};
constexpr Marked kMarked[] = {
#define MARKED(first, second, format) {first, second, format},
#include "readers/foreign.def"
};

// Returns true when every line is a stack and a count: "main;step;forward 120".
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

std::string_view foreign_json(std::string_view head) {
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (at == std::string_view::npos) return {};
  head.remove_prefix(at);
  if (head[0] == '{') {
    if (!holds(head, "\"traceEvents\"") &&
        (holds(head, "speedscope.app/file-format-schema") ||
         (holds(head, "\"nodes\"") && holds(head, "\"callFrame\"") && holds(head, "\"functionName\""))))
      return "foreign.run.samples";
    if (holds(head, "\"schema\"") && !holds(head, "\"schemaVersion\"") && !holds(head, "\"traceEvents\"") &&
        (holds(head, "\"nodes\"") || holds(head, "\"op_schema\"") || holds(head, "\"rf_id\"")))
      return "foreign.execution_trace";
  }
  if (holds(head, "\"ph\"") && holds(head, "\"Ascend Hardware\"")) return "foreign.ascend";
  if (head[0] == '[' && holds(head, "\"frame\"") && holds(head, "\"metrics\"") && !holds(head, "\"ph\""))
    return "foreign.proton";
  if (head[0] == '[') {
    const size_t inner = head.find_first_not_of(" \t\r\n", 1);
    if (inner != std::string_view::npos && head[inner] == '[' && inner + 1 < head.size() &&
        holds("-0123456789", head.substr(inner + 1, 1)) && !holds(head, "\"ph\""))
      return "foreign.memory_timeline";
  }
  return {};
}

// Returns true when a database ends before its last page. Its header counts pages if the counters at 24 and 92 agree.
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

bool is_utf16(std::string_view head) {
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) return true;
  // Without its mark: every other byte of a line in Latin letters is zero.
  constexpr size_t kLooked = 32;
  if (head.size() < kLooked) return false;
  size_t zeros[2] = {0, 0};
  for (size_t i = 0; i < kLooked; ++i) zeros[i % 2] += head[i] == '\0';
  return (zeros[0] == kLooked / 2 && zeros[1] == 0) || (zeros[1] == kLooked / 2 && zeros[0] == 0);
}

// Returns true when the first line of a table holds no names: at least three fields, more than half of them numbers.
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

std::string_view unknown_json(std::string_view head, std::string_view extension) {
  const std::string_view text = trim(head);
  for (const std::string_view value : {"null", "true", "false"})
    if (text == value) return "foreign.json.value";
  if (text == "{}" || text == "[]") return "foreign.json.empty";
  if (extension == "json" && (parse_double(text) || (text.size() > 1 && text.front() == '"' && text.back() == '"')))
    return "foreign.json.value";
  const bool whole =
      !text.empty() && ((text.front() == '{' && text.back() == '}') || (text.front() == '[' && text.back() == ']'));
  if (!whole) return {};
  if (text.front() == '[' && trim(text.substr(1)).front() != '{') return "foreign.json.list";
  return "foreign.json.other";
}

// Returns what a SQLite database is that no reader takes.
std::string_view foreign_database(std::string_view head, std::string_view path, std::string_view extension) {
  if (extension == "nvvp" || extension == "nvprof") return "foreign.nvprof";
  if (is_cut_database(head, path)) return "foreign.cut_sqlite";
  if (holds(head, "ClusterStepTraceTime") || holds(head, "ClusterBaseInfo") || holds(head, "ClusterComm"))
    return "foreign.cluster_analysis";
  for (const std::string_view name : {"leaks_dump", "memscope_dump"})
    if (holds(head, name) || holds(file_name(path), name)) return "foreign.memscope";
  if (holds(head, "baseTimeNs") && holds(head, "COMPUTE_TASK_INFO")) return "foreign.old_msprof";
  return holds(head, "CUPTI_ACTIVITY") || file_name(path).find("nsys") != std::string::npos ? "foreign.nsys"
                                                                                            : "foreign.sqlite";
}

constexpr std::pair<std::string_view, std::string_view> kExtensions[] = {
#define EXTENSION(extension, format) {extension, format},
#include "readers/foreign.def"
};

}  // namespace

std::string_view unknown_content(std::string_view head, std::string_view path) {
  if (is_utf16(head)) return "foreign.utf16";
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const std::string extension = file_extension(path);
  if (holds(head, std::string_view("\0", 1))) return "foreign.binary";
  if (const std::string_view json = unknown_json(head, extension); !json.empty()) return json;
  return extension != "json" && has_no_header(head) ? "foreign.no_header" : std::string_view();
}

bool is_foreign_json(std::string_view head) { return !foreign_json(head).empty(); }

std::string_view foreign_format(std::string_view head, std::string_view path) {
  const std::string extension = file_extension(path);
  if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5)
    return holds(head, "torch._utils") || holds(head, "_rebuild_tensor") ? "foreign.torch_save" : "foreign.pickle";
  if (head.starts_with(std::string_view("PK\x03\x04", 4)))
    return holds(head, "data.pkl")                                          ? "foreign.torch_save"
           : holds(head, ".npy")                                            ? "foreign.numpy"
           : holds(head, ".nsys-rep") || holds(head, "nvtx_gpu_proj_trace") ? "foreign.nsys_jax"
                                                                            : "foreign.zip";
  if (head.starts_with("\x93NUMPY")) return "foreign.numpy";
  if (head.starts_with(std::string_view("\xfd"
                                        "7zXZ\0",
                                        6)))
    return "foreign.xz";
  if (head.starts_with("BZh") && head.substr(4).starts_with("1AY&SY")) return "foreign.bzip2";
  if (holds(head.substr(0, 64), "memray")) return "foreign.memray";
  if (head.starts_with("\x04\x22\x4d\x18")) return "foreign.lz4";
  if (head.size() > 262 && head.substr(257, 5) == "ustar") return "foreign.tar";
  if (head.starts_with(std::string_view("SQLite format 3\0", 16))) return foreign_database(head, path, extension);
  if ((head.starts_with("\"Kind\",") || head.starts_with("\"Domain\",")) && holds(head, "\"Start_Timestamp\""))
    return "foreign.rocprof_csv";
  if (head.starts_with("PERFILE2") || head.starts_with("2ELIFREP")) return "foreign.run.perf";
  if (head.starts_with(std::string_view("\x10\x00\x04\x46\x78\x54\x16\x00", 8))) return "foreign.fuchsia";
  if (head.starts_with("PAR1") || head.starts_with("ARROW1")) return "foreign.parquet";
  for (const auto& [end, format] : kExtensions)
    if (extension == end) return format;
  if (file_name(path).ends_with(".xplane.pb")) return "foreign.xplane";
  if (file_name(path).find("tfevents") != std::string::npos) return "foreign.tensorboard";
  if (const std::string_view json = foreign_json(head); !json.empty()) return json;
  if (file_name(path).ends_with(".paddle_trace.pb") || head.starts_with("\x0a\x05"
                                                                        "1.0."))
    return "foreign.paddle_proto";
  for (const Marked& known : kMarked)
    if (holds(head, known.first) && holds(head, known.second) && !holds(head, "\"traceEvents\"")) return known.format;
  if (is_folded_stacks(head)) return "foreign.run.folded";
  return extension == "pb" ? "foreign.protobuf" : std::string_view();
}

Error foreign_error(ErrorCode code, std::string_view format, const std::string& path) {
  std::string to_do = std::string(format) + ".do";
  if (!has_words(to_do)) to_do = std::string(format.substr(0, format.rfind('.'))) + ".do";
  const Args shown = Args().set("object", "{\"traceEvents\": [{…}, …]}").set("list", "[{…}, …]");
  return worded_error(code, format, {}, {path}, words(to_do, shown).en);
}

}  // namespace stageline
