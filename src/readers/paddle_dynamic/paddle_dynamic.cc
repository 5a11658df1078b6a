// Reads the timestamps of Paddle's dynamic-graph pipeline (pp_configs.profiling): see docs/formats/paddle-dynamic.md.
#include <algorithm>
#include <optional>

#include "base/number.h"
#include "base/text.h"
#include "readers/paddle_dynamic/problems.h"
#include "readers/paddle_dynamic/record_file.h"
#include "readers/reader.h"

namespace stageline {
namespace paddle_dynamic {
namespace {

constexpr std::string_view kLead = "profile_record_tmp_file_for_rank_";
constexpr std::string_view kFormat = "paddle_dynamic";

int32_t rank_of(const std::string& path) {
  std::string name = file_name(path);
  if (!name.starts_with(kLead)) return kUnknown;
  for (const std::string_view suffix : {".gz", ".zst"})
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  const auto rank = parse_int(std::string_view(name).substr(kLead.size()));
  return rank && *rank >= 0 && *rank <= kMaxRankNumber ? static_cast<int32_t>(*rank) : kUnknown;
}

// The category identifies these files; the static-graph tool's file of the same name does not have it.
bool looks_ours(std::string_view head) {
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (at == std::string_view::npos || (head[at] != '[' && head[at] != '{')) return false;
  return head.find("\"pipeline timeline\"") != std::string_view::npos ||
         head.find("\"virtual pipeline timeline\"") != std::string_view::npos;
}

Match sniff(const Source& source) {
  constexpr size_t kSniffedFiles = 64;
  for (size_t i = 0; i < std::min(source.files.size(), kSniffedFiles); ++i)
    if (looks_ours(source.head(i))) return Match::kCertain;
  return Match::kNo;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "paddle-dynamic";
  trace.clock = ClockState::kUnaligned;
  std::vector<size_t> records, joined;
  for (size_t i = 0; i < source.files.size(); ++i) {
    const SourceFile& file = source.files[i];
    if (looks_ours(source.head(i)))
      (rank_of(file.path) == kUnknown ? joined : records).push_back(i);
    else if (file.given || rank_of(file.path) != kUnknown)
      trace.diagnostics.add(problem::paddle_dynamic_unusable_file, {file.path});
  }
  // A joined file next to the files that it was made of contains nothing new.
  if (!records.empty() && !joined.empty()) {
    trace.diagnostics.add(problem::paddle_dynamic_joined_file_ignored, {source.files[joined[0]].path}, joined.size());
    joined.clear();
  }
  const std::vector<size_t>& chosen = records.empty() ? joined : records;
  if (options.progress)
    for (const size_t i : chosen) options.progress->expect(source.files[i].size_bytes);

  std::vector<Op> ops;
  std::vector<std::string> paths;
  int32_t next_rank = 0;
  std::optional<Error> first_error;
  for (uint32_t k = 0; k < chosen.size(); ++k) {
    const std::string& path = source.files[chosen[k]].path;
    paths.push_back(path);
    const int32_t rank = rank_of(path);
    Result<RecordOps> result = read_records(path, k, rank, options.progress);
    if (!result) {
      if (!first_error) first_error = result.error();
      trace.diagnostics.add(problem::paddle_dynamic_unusable_file, {path});
      continue;
    }
    std::vector<StringId> name_id(result->names.size());
    for (StringId id = 0; id < name_id.size(); ++id) name_id[id] = trace.names.intern(result->names.text(id));
    for (Op& op : result->ops) {
      op.name_id = name_id[op.name_id];
      if (rank == kUnknown)
        op.rank = static_cast<int32_t>(std::min<int64_t>(op.rank + int64_t{next_rank}, kMaxRankNumber));
    }
    if (rank == kUnknown) {
      next_rank += result->ranks;
      trace.diagnostics.add(problem::paddle_dynamic_ranks_inferred, {path}, result->ranks);
    }
    ops.insert(ops.end(), result->ops.begin(), result->ops.end());
    trace.diagnostics.merge(result->diagnostics);
  }
  if (ops.empty()) {
    if (first_error) return std::move(*first_error);
    return Error{ErrorCode::kBadInput,
                 "no complete forward or backward in these records",
                 {source.roots.empty() ? "" : source.roots[0]},
                 "expected files profile_record_tmp_file_for_rank_N with lines such as {\"name\": \"F0\", "
                 "\"cat\": \"pipeline timeline\", \"ph\": \"B\", …}"};
  }
  resolve_ranks(ops, kFormat, trace.diagnostics);
  trace.diagnostics.add(problem::paddle_dynamic_steps_counted);
  build_parts(ops, kind_lane_names(), paths, trace);
  count_duplicates(trace, kFormat, trace.diagnostics);
  trace.description = std::to_string(trace.parts.size()) + (trace.parts.size() == 1 ? " rank" : " ranks") +
                      " of Paddle's dynamic-graph pipeline timestamps";
  return trace;
}

}  // namespace
}  // namespace paddle_dynamic

extern const Reader paddle_dynamic_reader;
const Reader paddle_dynamic_reader = {"paddle-dynamic", "Paddle dynamic graph: profile_record_tmp_file_for_rank_N",
                                      paddle_dynamic::sniff, paddle_dynamic::read};

}  // namespace stageline
