// PyTorch profiler traces (Kineto's Chrome JSON) and any other Chrome-trace JSON: docs/formats/kineto.md.
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/number.h"
#include "base/parallel.h"
#include "base/text.h"
#include "readers/kineto/finish_part.h"
#include "readers/kineto/read_file.h"
#include "readers/reader.h"

namespace stageline {
namespace kineto {
namespace {

Match sniff_head(std::string_view head) {
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (at == std::string_view::npos || (head[at] != '[' && head[at] != '{')) return Match::kNo;
  const auto has = [&](std::string_view word) { return head.find(word) != std::string_view::npos; };
  if (has("\"schemaVersion\"") && (has("\"deviceProperties\"") || has("\"traceEvents\""))) return Match::kCertain;
  for (const std::string_view mark :
       {"\"External id\"", "\"external id\"", "\"Ev Idx\"", "\"baseTimeNanoseconds\"", "\"cpu_op\"", "\"cuda_runtime\"",
        "\"python_function\"", "\"gpu_memcpy\"", "\"distributedInfo\""})
    if (has(mark) && has("\"ph\"")) return Match::kCertain;
  return has("\"ph\"") && (has("\"traceEvents\"") || head[at] == '[') ? Match::kMaybe : Match::kNo;
}

Match sniff(const Source& source) {
  Match best = Match::kNo;
  for (size_t i = 0; i < source.files.size() && best != Match::kCertain; ++i)
    best = std::max(best, sniff_head(source.head(i)));
  return best;
}

std::optional<int32_t> number_after(std::string_view text, std::string_view word) {
  const size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  const size_t begin = text.find_first_of("0123456789", at + word.size());
  if (begin == std::string_view::npos || begin > at + word.size() + 4) return std::nullopt;
  size_t end = begin;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9' && end - begin < 9) ++end;
  return static_cast<int32_t>(*parse_int(text.substr(begin, end - begin)));
}

const MetaField* field_of(const std::vector<MetaField>& fields, std::string_view key) {
  for (const MetaField& field : fields)
    if (field.key == key) return &field;
  return nullptr;
}

SourceRef source_ref(const std::string& path) {
  SourceRef ref;
  ref.path = path;
  struct stat st;
  if (stat(path.c_str(), &st) == 0) {
    ref.size_bytes = st.st_size;
    ref.modified_ns = st.st_mtim.tv_sec * int64_t{1'000'000'000} + st.st_mtim.tv_nsec;
  }
  return ref;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < source.files.size(); ++i)
    if (sniff_head(source.head(i)) != Match::kNo) chosen.push_back(i);
  if (chosen.empty() && source.files.size() == 1) chosen.push_back(0);
  struct FileResult {
    std::optional<Error> error;
    Part part;
    FileNames names;
    Diagnostics diagnostics;
    std::vector<StringId> name_map;
    std::vector<uint8_t> category_map;
  };
  std::vector<FileResult> results(chosen.size());
  const size_t workers = std::max<size_t>(1, static_cast<size_t>(thread_count()) / std::max<size_t>(chosen.size(), 1));
  parallel_for(chosen.size(), [&](size_t k) {
    FileResult& result = results[k];
    const std::string& path = source.files[chosen[k]].path;
    Result<FileRows> rows = read_file(path, workers, options.progress);
    if (!rows) {
      result.error = std::move(rows).error();
      return;
    }
    result.diagnostics = std::move(rows->rest.diagnostics);
    int64_t base_ns = 0;
    if (const MetaField* base = field_of(rows->metadata, "baseTimeNanoseconds"))
      base_ns = parse_int(base->json).value_or(0);
    result.names = build_part(std::move(*rows), base_ns, result.part);
    result.part.source = path;
    result.part.files.push_back(source_ref(path));
  });

  Trace trace;
  trace.format = "kineto";
  trace.categories.push_back({"", Category::kOther});
  int32_t next_rank = 0;
  std::optional<Error> first_error;
  for (size_t k = 0; k < chosen.size(); ++k) {
    FileResult& result = results[k];
    const SourceFile& file = source.files[chosen[k]];
    if (result.error) {
      trace.diagnostics.add("kineto.unusable_file", Severity::kLoss, result.error->what, {file.path});
      if (!first_error) first_error = std::move(result.error);
      continue;
    }
    Part& part = result.part;
    std::optional<int32_t> rank;
    if (const MetaField* info = field_of(part.metadata, "distributedInfo")) rank = number_after(info->json, "\"rank\"");
    if (!rank) rank = number_after(file_name(file.path), "rank");
    part.rank = rank.value_or(next_rank);
    next_rank = std::max(next_rank, part.rank + 1);
    trace.diagnostics.merge(result.diagnostics);
    adopt_names(result.names, trace, result.name_map, result.category_map);
    result.names = {};
  }
  parallel_for(results.size(), [&](size_t k) {
    if (!results[k].name_map.empty()) rename_part(results[k].name_map, results[k].category_map, results[k].part);
  });
  for (FileResult& result : results)
    if (!result.name_map.empty()) trace.parts.push_back(std::move(result.part));
  if (trace.parts.empty()) {
    if (first_error) return std::move(*first_error);
    return Error{
        ErrorCode::kBadInput, "no Chrome trace among these files", {source.roots.empty() ? "" : source.roots[0]}, ""};
  }
  std::stable_sort(trace.parts.begin(), trace.parts.end(),
                   [](const Part& a, const Part& b) { return a.rank < b.rank; });
  trace.description = std::to_string(trace.parts.size()) + (trace.parts.size() == 1 ? " rank" : " ranks");
  return trace;
}

}  // namespace
}  // namespace kineto

extern const Reader kineto_reader;
const Reader kineto_reader = {"kineto", "PyTorch profiler traces (Kineto) and other Chrome-trace JSON", kineto::sniff,
                              kineto::read};

}  // namespace stageline
