// Reads the timestamps of Paddle's dynamic-graph pipeline (pp_configs.profiling): see docs/formats/paddle-dynamic.md.
#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "readers/common/read_files.h"
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

// Chooses the records of single ranks or, where there are none, files that were joined of them.
std::vector<size_t> choose_files(const Source& source, Diagnostics& diagnostics) {
  std::vector<size_t> records, joined;
  for (size_t i = 0; i < source.files.size(); ++i) {
    const SourceFile& file = source.files[i];
    if (looks_ours(source.head(i)))
      (rank_of(file.path) == kUnknown ? joined : records).push_back(i);
    else if (file.given || rank_of(file.path) != kUnknown)
      diagnostics.add(problem::paddle_dynamic_unusable_file, {file.path});
  }
  // A joined file next to the files that it was made of contains nothing new.
  if (!records.empty() && !joined.empty())
    diagnostics.add(problem::paddle_dynamic_joined_file_ignored, {source.files[joined[0]].path}, joined.size());
  return records.empty() ? joined : records;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "paddle-dynamic";
  trace.clock = ClockState::kUnaligned;
  const std::vector<size_t> chosen = choose_files(source, trace.diagnostics);
  expect_bytes(source, chosen, options.progress);
  std::vector<Op> ops;
  std::vector<std::string> paths;
  for (const size_t i : chosen) paths.push_back(source.files[i].path);
  int64_t next_rank = 0;
  auto first_error = read_files(
      paths.size(),
      [&](size_t k) { return read_records(paths[k], static_cast<uint32_t>(k), rank_of(paths[k]), options.progress); },
      [&](size_t k, RecordOps file) {
        if (rank_of(paths[k]) == kUnknown) {
          for (Op& op : file.ops)
            op.rank = static_cast<int32_t>(std::min<int64_t>(op.rank + next_rank, kMaxRankNumber));
          next_rank += file.ranks;
          trace.diagnostics.add(problem::paddle_dynamic_ranks_inferred, {paths[k]}, file.ranks);
        }
        append_ops(std::move(file.ops), file.names, trace, ops);
        trace.diagnostics.merge(file.diagnostics);
      },
      [&](size_t k, const Error&) { trace.diagnostics.add(problem::paddle_dynamic_unusable_file, {paths[k]}); });
  if (ops.empty())
    return nothing_read(std::move(first_error), source, "no complete forward or backward in these records",
                        "expected files profile_record_tmp_file_for_rank_N with lines such as {\"name\": \"F0\", "
                        "\"cat\": \"pipeline timeline\", \"ph\": \"B\", …}");
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

extern const Reader paddle_dynamic_reader = {"paddle-dynamic",
                                             "Paddle dynamic graph: profile_record_tmp_file_for_rank_N",
                                             paddle_dynamic::sniff, paddle_dynamic::read};

}  // namespace stageline
