// Reads what routers of a mixture of experts decided, a line of JSON for each call: docs/formats/router-trace.md.
//
//   {"step": 0, "stage": "pre_dispatch", "block": "decoder", "layer": 3, "rank": 0, "num_tokens": 128, "topk": 2,
//    "top_indices": [[1, 7], [0, −1], …]}                      −1: a token that goes nowhere (padding)
//
// Megatron-LM writes them (--moe-routing-trace-path, router_trace_rank0.jsonl).
#include "base/json_members.h"
#include "model/source_limits.h"
#include "readers/common/json_lines.h"
#include "readers/common/read_files.h"
#include "readers/router_trace/problems.h"

namespace stageline::router_trace {
namespace {

constexpr int64_t kMaxExperts = 1 << 13, kMaxLayers = 1 << 20, kMaxTokens = int64_t{1} << 40;

// Micro-batches of a step add up.
struct File {
  std::map<std::tuple<int64_t, std::string, int64_t, int64_t>, RouterLoad> loads;  // by rank, block, layer, step
  Diagnostics diagnostics;
};

// Adds the experts of "[[1, 7], [0, -1]]" to the rows of each; false where one is out of range.
bool count_rows(std::string_view indices, std::vector<int64_t>& rows) {
  const char *at = indices.data(), *const end = at + indices.size();
  while (at < end) {
    int64_t expert = 0;
    const auto [next, error] = std::from_chars(at, end, expert);
    if (next == at) {
      ++at;
      continue;
    }
    if (error != std::errc() || expert >= kMaxExperts || expert < -1) return false;
    at = next;
    if (expert < 0) continue;
    if (std::cmp_greater_equal(expert, rows.size())) rows.resize(static_cast<size_t>(expert) + 1);
    ++rows[static_cast<size_t>(expert)];
  }
  return true;
}

bool take_line(std::string_view text, File& out) {
  RouterLoad load;
  int64_t rank = -1;
  bool good = false;
  for (const auto& [key, value, whole] : json_members(text)) {
    const int64_t number = json_integer(value).value_or(-1);
    if (key == "block") load.block = valid_utf8(json_text(value));
    if (key == "layer") load.layer = number;
    if (key == "step") load.step = number;
    if (key == "rank") rank = number;
    if (key == "num_tokens") load.tokens = number;
    if (key == "topk") load.top_k = number;
    if (key == "top_indices") good = whole && count_rows(value, load.rows);
  }
  good &= rank >= 0 && rank < kMaxRankNumber && load.layer >= 0 && load.layer < kMaxLayers && load.step >= 0;
  good &= load.tokens >= 0 && load.tokens < kMaxTokens && load.top_k > 0 && load.top_k < kMaxExperts;
  if (!good) return false;
  const auto [at, fresh] = out.loads.try_emplace({rank, load.block, load.layer, load.step}, load);
  if (fresh) return true;
  at->second.tokens = sum_or_limit(at->second.tokens, load.tokens);
  at->second.rows.resize(std::max(at->second.rows.size(), load.rows.size()));
  for (size_t e = 0; e < load.rows.size(); ++e) at->second.rows[e] += load.rows[e];
  return true;
}

Result<File> read_log(const std::string& path, Progress* progress) {
  File out;
  TRY_OK(each_json_line(
      path, progress,
      {problem::router_trace_bad_line, problem::router_trace_damaged_text, problem::router_trace_read_stopped},
      out.diagnostics, [&](const JsonSpan& span) { return take_line(span.text, out); }));
  return out;
}

bool looks_like_log(std::string_view head) {
  const std::string_view line = first_json_line(head);
  return holds(line, "\"top_indices\"") && holds(line, "\"topk\"");
}

}  // namespace

Match sniff(const Source& source) { return sniff_heads(source, looks_like_log); }

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "router-trace";
  trace.clock = ClockState::kPerRank;
  const std::vector<std::string> paths =
      files_that(looks_like_log, source, options, problem::router_trace_unusable_file, trace.diagnostics);
  std::map<int64_t, Part> parts;
  auto first_error = read_files(
      paths.size(), [&](size_t k) { return read_log(paths[k], options.progress); },
      [&](size_t k, File file) {
        trace.diagnostics.merge(file.diagnostics);
        if (file.loads.empty()) trace.diagnostics.add(problem::router_trace_unusable_file, {paths[k]});
        for (auto& [key, load] : file.loads) {
          Part& part = parts[std::get<0>(key)];
          if (part.source.empty()) part.source = paths[k];
          part.router_loads.push_back(std::move(load));
        }
      },
      [&](size_t k, const Error&) { trace.diagnostics.add(problem::router_trace_unusable_file, {paths[k]}); });
  if (parts.empty()) return nothing_read(std::move(first_error), source, "router_trace.nothing");
  for (auto& [rank, part] : parts) {
    part.rank = static_cast<int32_t>(rank);
    part.event_count = std::ssize(part.router_loads);
    trace.parts.push_back(std::move(part));
  }
  trace.diagnostics.add(problem::router_trace_no_times);
  trace.description = counted(trace.parts.size(), "rank", "ranks");
  return trace;
}

}  // namespace stageline::router_trace
