// Computes which sequences of kernels the calls of an operator launch, most frequent first. Definitions:
// docs/analyses/frequent-cuda-kernel-sequences.md.
#include "analyses/analysis.h"
#include "base/json_writer.h"
#include "model/statistics.h"
#include "profile/call_graph.h"
#include "profile/name_totals.h"

namespace stageline {
namespace {

struct Pattern {
  std::string text;
  int64_t count = 0, kernels = 0, kernel_ns = 0, op_ns = 0;
  int64_t wall_ns = 0, gap_ns = 0;  // from the first start to the last end of each call's kernels; what no kernel fills
  std::vector<int32_t> calls;       // rows of the operator
};

struct RankPatterns {
  std::vector<Pattern> patterns;
  std::vector<std::vector<int32_t>> marked;  // rows of the calls that have one of the first top-k patterns
  int64_t device_ns = 0;
};

struct Options {
  std::string name;
  int64_t min = 3, top_k = 5;
  bool compress = true;
};

// Returns the kernels below a call by start; equal starts are sorted by place in the file. Work of backward operators
// does not count as below their forward operators.
void kernels_below(const TorchRank& rank, const CallGraph& graph, int32_t call, bool hta, std::vector<int32_t>& out) {
  out.clear();
  const CallGraph::Range range = graph.subtree(call);
  for (const int32_t* at = range.begin(); at != range.end();) {
    const size_t i = *at;
    if (*at != call && graph.edge[i] == CallEdge::kForward) {
      at += graph.subtree_size[i];
      continue;
    }
    if (hta ? rank.rows[i].stream != -1 : rank.rows[i].on_device) out.push_back(*at);
    ++at;
  }
  sort_stably(out, [&](int32_t a, int32_t b) {
    const TorchRow &x = rank.rows[a], &y = rank.rows[b];
    return x.start_ns != y.start_ns ? x.start_ns < y.start_ns : x.index < y.index;
  });
}

// HTA takes the rows of the name that have the smallest depth of any such row; rows without a depth (−1) count too.
std::vector<int32_t> hta_calls(const TorchRank& rank, const CallGraph& graph, const std::vector<uint8_t>& named,
                               int64_t min) {
  std::vector<int32_t> calls;
  int32_t depth = INT32_MAX;
  const auto node_of = [&](const TorchRow& row) { return rank.row_at(row.index); };
  for (const TorchRow& row : rank.rows)
    if (named[row.name]) depth = std::min(depth, graph.depth[node_of(row)]);
  for (const TorchRow& row : rank.rows) {
    if (!named[row.name]) continue;
    const size_t node = node_of(row);
    if (graph.depth[node] == depth && graph.kernel_count[node] >= min) calls.push_back(node_of(row));
  }
  return calls;
}

// Our mode takes, on every branch of the host, the outermost calls of the name.
std::vector<int32_t> exact_calls(const TorchRank& rank, const CallGraph& graph, const std::vector<uint8_t>& named,
                                 int64_t min) {
  std::vector<int32_t> calls;
  for (size_t k = 0; k < graph.preorder.size();) {
    const size_t i = graph.preorder[k];
    if (!named[rank.rows[i].name] || rank.rows[i].on_device) {
      ++k;
      continue;
    }
    if (graph.kernel_count[i] >= min) calls.push_back(graph.preorder[k]);
    k += graph.subtree_size[i];
  }
  return calls;
}

Result<RankPatterns> patterns_of(const TorchRun& run, const TorchRank& rank, const Options& options,
                                 const std::vector<uint8_t>& named) {
  const bool hta = run.options.hta;
  RankPatterns out;
  TRY(built, hta ? hta_call_graph(run, rank) : Result<CallGraph>(exact_call_graph(rank)));
  const CallGraph& graph = *built;
  const std::vector<int32_t> calls = (hta ? hta_calls : exact_calls)(rank, graph, named, options.min);
  NameSequences sequences;
  std::vector<int32_t> kernels;
  std::vector<std::pair<int64_t, int64_t>> walls(calls.size());  // of each call: wall, gaps
  for (uint32_t c = 0; c < calls.size(); ++c) {
    sequences.begin(rank.rows[calls[c]].name, c);
    kernels_below(rank, graph, calls[c], hta, kernels);
    int64_t end = 0;
    for (const int32_t kernel : kernels) {
      const TorchRow& row = rank.rows[kernel];
      sequences.add(row.name);
      if (kernel != kernels.front()) walls[c].second += std::max<int64_t>(0, row.start_ns - end);
      end = kernel == kernels.front() ? row.end_ns() : std::max(end, row.end_ns());
    }
    if (!kernels.empty()) walls[c].first = end - rank.rows[kernels.front()].start_ns;
  }
  for (const NameSequences::Group& group : sequences.groups()) {
    Pattern pattern;
    for (const StringId* name = group.first; name != group.last; ++name)
      (pattern.text += name == group.first ? "" : "|") += run.trace->names.text(*name);
    pattern.count = group.count();
    pattern.kernels = group.last - group.first - 1;
    for (const uint32_t* item = group.items; item != group.items_end; ++item) {
      const size_t i = calls[*item];
      pattern.kernel_ns += graph.kernel_ns[i];
      pattern.op_ns += rank.rows[i].dur_ns;
      pattern.wall_ns += walls[*item].first;
      pattern.gap_ns += walls[*item].second;
      pattern.calls.push_back(calls[*item]);
    }
    out.patterns.push_back(std::move(pattern));
  }
  sort_stably(out.patterns, [](const Pattern& a, const Pattern& b) {
    return a.count != b.count ? a.count > b.count : a.text < b.text;
  });
  for (size_t p = 0; p < out.patterns.size() && p < static_cast<size_t>(options.top_k); ++p) {
    std::vector<int32_t> rows;
    for (const int32_t call : out.patterns[p].calls) {
      rows.push_back(call);
      kernels_below(rank, graph, call, hta, kernels);
      rows.insert(rows.end(), kernels.begin(), kernels.end());
    }
    out.marked.push_back(std::move(rows));
  }
  for (const TorchRow& row : rank.rows)
    if (row.on_device) out.device_ns += row.dur_ns;
  return out;
}

// Marks the calls of the most frequent patterns and their kernels. With compression, all other slices are left out,
// except annotations, which help to recognise the place.
TraceOverlay overlay_of(const TorchRank& rank, size_t part, const RankPatterns& found, const Options& options) {
  TraceOverlay overlay{.part = part};
  for (size_t p = 0; p < found.marked.size(); ++p) {
    std::string member = "\"Patterns\":{";
    append_json_string(member, found.patterns[p].text);
    member += ":" + std::to_string(found.patterns[p].count) + "}";
    for (const int32_t row : found.marked[p]) overlay.extra_args.emplace(rank.rows[row].index, member);
  }
  if (!options.compress) return overlay;
  overlay.leave_out.assign(rank.part->event_count, false);
  for (const TorchRow& row : rank.rows)
    overlay.leave_out[row.index] = row.category != Category::kUserAnnotation &&
                                   row.category != Category::kGpuAnnotation &&
                                   overlay.extra_args.find(row.index) == overlay.extra_args.end();
  return overlay;
}

}  // namespace

Result<AnalysisResult> run_frequent_cuda_kernel_sequences(const AnalysisInput& input) {
  Options options;
  options.name = input.options.text("operator-name");
  if (options.name.empty())
    return make_error(ErrorCode::kUsage, "--operator-name is missing", "for example --operator-name aten::linear");
  int64_t wanted = 0;
  TRY_OK(take(input.options.integer("min-pattern-len", 3, 0), options.min));
  TRY_OK(take(input.options.integer("top-k", 5, 0), options.top_k));
  TRY_OK(take(input.options.integer("rank", input.hta ? 0 : -1, 0), wanted));
  TRY_OK(take(input.options.flag("compress-other-kernels", true), options.compress));
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  if (wanted >= 0) {
    std::erase_if(torch->parts, [&](size_t p) { return torch->ranks[p] != wanted; });
    if (torch->parts.empty())
      return make_error(ErrorCode::kBadInput, (input.hta ? "KeyError: " : "there is no rank ") + std::to_string(wanted),
                        "--rank names another");
  }
  std::vector<uint8_t> named(torch->trace->names.size());
  for (StringId id = 0; id < named.size(); ++id)
    named[id] = torch->trace->names.text(id).find(options.name) != std::string_view::npos;
  TRY(found, try_ranks(*torch, [&](const TorchRank& rank) { return patterns_of(*torch, rank, options, named); }));
  const std::vector<RankPatterns>& ranks = *found;
  AnalysisResult result = answer_of(*torch);
  Table table(declared_table("frequent-cuda-kernel-sequences/frequent-cuda-kernel-sequences", input.hta ? "hta" : ""));
  for (size_t k = 0; k < ranks.size(); ++k) {
    const int64_t rank = torch->ranks[torch->parts[k]];
    const double device = ranks[k].device_ns;
    for (const Pattern& p : ranks[k].patterns)
      if (input.hta) table.add_row({rank, p.text, p.count, to_us(p.kernel_ns), to_us(p.op_ns)});
      else
        table.add_row({rank, p.text, p.count, p.kernels, p.kernel_ns, share_of(p.kernel_ns, device), p.op_ns, p.wall_ns,
                       p.gap_ns});
  }
  if (!ranks.empty() && input.wants_overlay)
    result.overlay = overlay_of(*torch_rank(*torch, torch->parts[0]), torch->parts[0], ranks[0], options);
  return result.with(std::move(table));
}

}  // namespace stageline
