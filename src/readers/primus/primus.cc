// Reads dumps of Primus (AMD) --dump_pp_data: a folder with pp_rank_N.json and config.json; docs/formats/primus.md.
#include "model/run_extent.h"
#include "readers/common/read_files.h"
#include "readers/primus/problems.h"
#include "readers/primus/rank_file.h"

namespace stageline::primus {
namespace {

// Returns the rank in a name: "pp_rank_12.json" → 12.
std::optional<int32_t> pp_rank_of(const std::string& path) {
  constexpr std::string_view lead = "pp_rank_";
  const std::string name = file_name(path);
  if (!name.starts_with(lead)) return std::nullopt;
  int32_t rank = 0;
  const char* const end = name.data() + name.size();
  const auto [at, ec] = std::from_chars(name.data() + lead.size(), end, rank);
  if (ec != std::errc() || rank < 0 || rank > kMaxStageNumber || !std::string_view(at, end).starts_with(".json"))
    return std::nullopt;
  return rank;
}

bool looks_ours(std::string_view head) {
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return at != std::string_view::npos && head[at] == '{' &&
         (holds(head, "\"fwd_start\"") || holds(head, "\"bwd_start\""));
}

// Returns the folder part of a path, as the source names it.
std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

struct Chosen {
  std::vector<RankFile> files;
  std::string config_path;
};

bool is_config(const std::string& path) {
  const std::string name = file_name(path);
  return name == "config.json" || name == "config.json.gz" || name == "config.json.zst";
}

// Chooses the rank files of one folder, since two dumps side by side are two runs.
Chosen choose_files(const Source& source, Diagnostics& diagnostics) {
  Chosen chosen;
  std::set<int32_t> taken;
  std::string folder;
  for (size_t i = 0; i < source.files.size(); ++i) {
    const SourceFile& file = source.files[i];
    const auto rank = pp_rank_of(file.path);
    const bool first = chosen.files.empty();
    if (rank && looks_ours(source.head(i)) && (first || folder_of(file.path) == folder) && taken.insert(*rank).second) {
      folder = folder_of(file.path);
      chosen.files.push_back({file.path, *rank, static_cast<uint32_t>(chosen.files.size())});
    } else if (rank) {
      diagnostics.add(problem::primus_unusable_file, {file.path});
    } else if (file.given && !is_config(file.path)) {
      diagnostics.add(problem::primus_unusable_file_name, {file.path});
    }
  }
  for (const SourceFile& file : source.files)
    if (is_config(file.path) && folder_of(file.path) == folder) chosen.config_path = file.path;
  return chosen;
}

// A backward whose weight gradient is separate is the input half. (Zero-bubble schedules split all backwards, DualPipeV
// some of them.)
void split_backwards(std::vector<Op>& ops) {
  const auto key = [](const Op& op) { return std::tuple(op.rank, op.step, op.chunk, op.micro_batch); };
  std::set<std::tuple<int32_t, int32_t, int32_t, int32_t>> weights;
  for (const Op& op : ops)
    if (op.kind == CellKind::kWeightGrad) weights.insert(key(op));
  for (Op& op : ops)
    if (op.kind == CellKind::kBackward && weights.contains(key(op))) op.kind = CellKind::kInputGrad;
}

// Reads the configuration of a run, and writes its sizes to the files.
void read_sizes(Chosen& chosen, Diagnostics& diagnostics) {
  const Config config = chosen.config_path.empty() ? Config{} : read_config(chosen.config_path);
  if (config.pp_size == 0) diagnostics.add(problem::primus_no_config, {chosen.files.front().path});
  int32_t last_rank = max_over<int32_t>(chosen.files, &RankFile::pp_rank);
  for (RankFile& file : chosen.files) {
    file.pp_size = static_cast<int32_t>(std::max<int64_t>(config.pp_size, last_rank + 1));
    file.vp_size = static_cast<int32_t>(std::clamp<int64_t>(config.vp_size, 1, kMaxChunkNumber));
  }
  const int64_t missing = config.pp_size - std::ssize(chosen.files);
  diagnostics.add(problem::primus_missing_ranks, {chosen.config_path}, missing);
}

}  // namespace

Match sniff(const Source& source) {
  return sniff_some(
      source, [&](size_t i) { return pp_rank_of(source.files[i].path).has_value(); },
      [&](size_t i) { return looks_ours(source.head(i)); });
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "primus";
  trace.clock = ClockState::kPerRank;
  Chosen chosen = choose_files(source, trace.diagnostics);
  if (chosen.files.empty()) return no_such_input("primus.nothing", source);
  read_sizes(chosen, trace.diagnostics);
  if (options.progress)
    for (const SourceFile& file : source.files)
      if (pp_rank_of(file.path)) options.progress->expect(file.size_bytes);
  const StringId names[] = {trace.names.intern("forward"), trace.names.intern("backward"),
                            trace.names.intern("weight grad")};
  std::vector<Op> ops;
  std::vector<std::string> paths;
  std::map<int32_t, int64_t> min_ns;
  int64_t chunks_assigned = 0;
  for (const RankFile& file : chosen.files) paths.push_back(file.path);
  auto first_error = read_files(
      paths.size(), [&](size_t k) { return read_rank(chosen.files[k], options.progress); },
      [&](size_t, RankOps rank) {
        for (Op& op : rank.ops) op.name_id = names[op.name_id];
        ops.insert(ops.end(), rank.ops.begin(), rank.ops.end());
        for (const auto& [step, total] : rank.total_ns) min_ns[step] = std::max(min_ns[step], total);
        trace.diagnostics.merge(rank.diagnostics);
        trace.lossy_steps.insert(trace.lossy_steps.end(), rank.lossy_steps.begin(), rank.lossy_steps.end());
        chunks_assigned += rank.chunks_assigned;
      },
      [&](size_t k, const Error&) { trace.diagnostics.add(problem::primus_unusable_file, {paths[k]}); });
  if (ops.empty() && first_error) return std::move(*first_error);
  if (ops.empty())
    return make_error(ErrorCode::kBadInput, "the files hold no forward or backward with a start and an end",
                      "expected lists fwd_start, fwd_end, bwd_start, bwd_end per iteration", {paths.front()});
  split_backwards(ops);
  trace.diagnostics.add(problem::primus_chunks_assigned, {}, chunks_assigned);
  trace.steps_laid_end_to_end = lay_steps_end_to_end(ops, &min_ns);
  if (!trace.steps_laid_end_to_end) trace.diagnostics.add(problem::primus_too_long);
  trace.diagnostics.add(problem::primus_clock_per_rank);
  std::vector<std::string> lanes;
  for (int lane = 0; lane < kLaneCount; ++lane) lanes.emplace_back(lane_name(lane));
  build_parts(ops, lanes, paths, trace);
  settle_lossy_steps(trace);
  trace.description = std::to_string(trace.parts.size()) + " pipeline ranks × " + std::to_string(min_ns.size()) +
                      " iterations of a Primus dump";
  return trace;
}

}  // namespace stageline::primus
