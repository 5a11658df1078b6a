// Finds what the end of a step had to wait for. Definitions: docs/analyses/critical-path-analysis.md.
#include "analyses/analysis.h"
#include "analyses/critical_path_analysis/exact_path.h"
#include "analyses/critical_path_analysis/problems.h"
#include "base/json_writer.h"
#include "compat/hta/hta.h"
#include "model/statistics.h"
#include "profile/torch_view.h"

namespace stageline {

namespace {

// The facts from which the tables are made. The tables share them as long as their rows are made later.
struct Answer {
  TorchRun run;
  std::shared_ptr<const TorchRank> held;
  PathGraph graph;
  std::vector<uint8_t> data_load;
  bool hta = false, later = false;

  const TorchRank& rank() const { return *held; }
  const TorchRow* row_of(const PathEdge& edge) const { return edge.row < 0 ? nullptr : &held->rows[edge.row]; }
};
using Shared = std::shared_ptr<const Answer>;

// Makes a table of `rows` rows. `row(n)` returns the n-th row as values in the order of the columns.
template <class Row> Table table_of(const Shared& answer, Table head, size_t rows, Row row) {
  const auto make = [answer, row](size_t first, size_t count, Table& out) {
    for (size_t n = first; n < first + count; ++n) out.add_row(row(*answer, n));
  };
  if (answer->later) return Table::later(std::move(head), rows, make);
  make(0, rows, head);
  return head;
}

std::string_view bound_by(const Answer& a, const PathEdge& edge) {
  const TorchRow* row = a.row_of(edge);
  const bool hta = a.hta;
  switch (edge.kind) {
    case PathEdgeKind::kKernelKernel: return hta ? "gpu_kernel_kernel_overhead" : "gap between kernels";
    case PathEdgeKind::kLaunchDelay: return hta ? "gpu_kernel_launch_overhead" : "launch delay";
    case PathEdgeKind::kDependency: return "";
    case PathEdgeKind::kSync: return hta ? "" : "return of a blocking call";
    case PathEdgeKind::kGap: return "gap between host operators";
    case PathEdgeKind::kHandOver: return "hand-over between threads";
    case PathEdgeKind::kHandOverInferred: return "hand-over between threads, inferred";
    case PathEdgeKind::kStreamWaitInferred: return "wait of a stream, inferred";
    case PathEdgeKind::kStreamGap: return "wait of a stream";
    case PathEdgeKind::kOperator: break;
  }
  if (row != nullptr && (hta ? row->stream < 0 : !row->on_device))
    return a.data_load[row->name] ? (hta ? "data_loading" : "data loading") : hta ? "cpu_bound" : "host operators";
  const KernelClass kernel = row == nullptr ? KernelClass::kComputation : row->kernel;
  if (hta) return kernel == KernelClass::kCommunication ? "gpu_communication_bound" : "gpu_compute_bound";
  if (kernel == KernelClass::kCommunication) return "communication";
  return kernel == KernelClass::kMemory ? "memory" : "computation";
}

Table summary_table(const Answer& a) {
  std::vector<std::pair<std::string_view, int64_t>> sums;
  int64_t total = 0;
  for (const uint32_t e : a.graph.path_edges) {
    const PathEdge& edge = a.graph.edges[e];
    const std::string_view by = bound_by(a, edge);
    auto at = std::ranges::find_if(sums, [&](const auto& s) { return s.first == by; });
    if (at == sums.end()) at = sums.insert(sums.end(), {by, 0});
    at->second += a.graph.weight_ns(edge);
    total += a.graph.weight_ns(edge);
  }
  std::ranges::sort(sums);
  if (a.hta) {
    Table table(declared_table("critical-path-analysis/summary/hta"));
    for (const auto& [by, ns] : sums)
      table.add_row({std::string(by), total != 0 ? 100 * to_us(ns) / to_us(total) : NAN});
    return table;
  }
  Table table(declared_table("critical-path-analysis/summary"));
  sort_stably(sums, [](const auto& x, const auto& y) { return x.second > y.second; });
  const int64_t wall = a.graph.to_ns - a.graph.from_ns;
  const auto add = [&](std::string_view by, int64_t ns) {
    const auto share = [&](int64_t of) { return share_of(ns, of); };
    table.add_row({int64_t{a.rank().rank}, std::string(by), ns, by == "wall" ? NAN : share(total), share(wall)});
  };
  for (const auto& [by, ns] : sums) add(by, ns);
  if (a.graph.found) {
    add("path", total);
    add("wall", wall);
  }
  return table;
}

std::vector<Table::Value> breakdown_row(const Answer& a, size_t n) {
  const PathEdge& edge = a.graph.edges[a.graph.path_edges[n]];
  const TorchRow* row = a.row_of(edge);
  const Lane* lane = row == nullptr ? nullptr : &a.rank().part->lanes[row->lane];
  const int64_t index = row != nullptr ? int64_t{row->index} : kNullInteger;
  std::string category = row == nullptr ? "" : a.run.category_text(*a.rank().part, *row);
  if (a.hta)
    return {edge.row == PathEdge::kRoot ? -1 : index,
            to_us(a.graph.weight_ns(edge)),
            std::string(path_edge_name(edge.kind, true)),
            row == nullptr ? "" : short_kernel_name(a.run.name(*row)),
            std::move(category),
            lane == nullptr ? "" : lane->pid,
            lane == nullptr ? "" : lane->tid,
            row == nullptr ? kNullInteger : int64_t{row->stream},
            index,
            std::string(bound_by(a, edge))};
  return {a.graph.nodes[edge.from].time_ns,
          a.graph.weight_ns(edge),
          std::string(path_edge_name(edge.kind, false)),
          std::string(bound_by(a, edge)),
          index,
          row == nullptr ? "" : std::string(a.run.name(*row)),
          std::move(category),
          lane == nullptr ? "" : lane->name};
}

Table breakdown_table(const Shared& answer) {
  Table head(declared_table("critical-path-analysis/breakdown", answer->hta ? "hta" : ""));
  return table_of(answer, std::move(head), answer->graph.path_edges.size(), breakdown_row);
}

bool blocks(std::string_view name) {
  for (const char* call : {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventQuery", "cudaEventSynchronize",
                           "cudaMemcpy", "cudaMemcpyAsync"})
    if (name == call) return true;
  return false;
}

Table nodes_table(const Shared& answer) {
  Table head(declared_table("critical-path-analysis/nodes", answer->hta ? "hta" : ""));
  std::vector<uint8_t> blocking(answer->run.trace->names.size());  // indexed by name
  for (StringId id = 0; id < blocking.size(); ++id) blocking[id] = blocks(answer->run.trace->names.text(id));
  const auto row_of = [blocking = std::move(blocking)](const Answer& a, size_t n) -> std::vector<Table::Value> {
    const PathNode& node = a.graph.nodes[n];
    const TorchRow& row = a.rank().rows[node.row];
    return {static_cast<int64_t>(n), int64_t{row.index},
            a.hta ? Table::Value(to_us(node.time_ns)) : Table::Value(node.time_ns),
            std::string(node.is_end ? "False" : "True"), std::string(blocking[row.name] ? "True" : "False")};
  };
  return table_of(answer, std::move(head), answer->graph.nodes.size(), row_of);
}

std::vector<Table::Value> edge_row(const Answer& a, size_t n) {
  const PathEdge& edge = a.graph.edges[n];
  const TorchRow* row = a.row_of(edge);
  const int64_t weight_ns = a.graph.weight_ns(edge);
  std::vector<Table::Value> values = {int64_t{edge.from}, int64_t{edge.to},
                                      std::string(path_edge_name(edge.kind, a.hta))};
  if (a.hta) {
    values.emplace_back(to_us(weight_ns));
    values.emplace_back(to_us(std::max<int64_t>(weight_ns, 0)));
  } else {
    values.emplace_back(weight_ns);
  }
  values.emplace_back(row != nullptr ? int64_t{row->index} : edge.row == PathEdge::kRoot ? -1 : kNullInteger);
  values.emplace_back(int64_t{edge.critical});
  return values;
}

Table edges_table(const Shared& answer) {
  return table_of(answer, declared_table("critical-path-analysis/edges", answer->hta ? "hta" : ""),
                  answer->graph.edges.size(), edge_row);
}

Table path_table(const Shared& answer) {
  Table head(declared_table("critical-path-analysis/path"));
  return table_of(answer, std::move(head), answer->graph.path.size(),
                  [](const Answer& a, size_t n) -> std::vector<Table::Value> {
                    return {static_cast<int64_t>(n), a.graph.path[n]};
                  });
}

// HTA leaves out launches of weight zero, which it adds on request to keep its graph connected. Unless all edges are
// asked for, it also leaves out the time inside events and between kernels, because the events themselves show it.
bool hta_draws(const Answer& a, const PathEdge& edge, bool all_edges) {
  if (edge.kind == PathEdgeKind::kLaunchDelay && a.graph.weight_ns(edge) == 0) return false;
  return all_edges || (edge.kind != PathEdgeKind::kOperator && edge.kind != PathEdgeKind::kKernelKernel);
}

// Adds args.critical to the events of the path, and an arrow for every edge of the path (or for all edges).
TraceOverlay overlay_of(const Answer& a, size_t part, bool only_critical, bool all_edges) {
  TraceOverlay overlay{.part = part};
  const Part& p = *a.rank().part;
  const auto row_of = [&](uint32_t node) -> const TorchRow& { return a.rank().rows[a.graph.nodes[node].row]; };
  for (const uint32_t node : a.graph.path) overlay.extra_args.emplace(row_of(node).index, "\"critical\":1");
  const auto member = [](std::string& out, const char* key, const std::string& text) {
    out += std::string(",\"") + key + "\":";
    if (parse_int(text)) out += text;
    else append_json_string(out, text);
  };
  int64_t id = 0;
  for (const PathEdge& edge : a.graph.edges) {
    if (!all_edges && !edge.critical) continue;
    if (a.hta && !hta_draws(a, edge, all_edges)) continue;
    ++id;
    for (const bool begins : {true, false}) {
      const uint32_t node = begins ? edge.from : edge.to;
      const TorchRow& row = row_of(node);
      const int64_t at =
          p.slices.start_ns[row.slice] - p.base_time_ns + (a.graph.nodes[node].is_end ? p.slices.dur_ns[row.slice] : 0);
      std::string event = std::string("{\"ph\":\"") + (begins ? "s" : "f") + "\",\"id\":" + std::to_string(id);
      if (!begins) event += ",\"bp\":\"e\"";
      member(event, "pid", p.lanes[row.lane].pid);
      member(event, "tid", p.lanes[row.lane].tid);
      event += ",\"ts\":" + ns_as_decimal(at, 3) +
               ",\"cat\":\"critical_path\",\"name\":\"critical_path\",\"args\":{\"weight\":" +
               ns_as_decimal(a.graph.weight_ns(edge), 3) + ",\"critical\":" + (edge.critical ? "true" : "false") +
               ",\"type\":\"" + std::string(path_edge_name(edge.kind, true)) + "\"}}";
      overlay.new_events.push_back(std::move(event));
    }
  }
  if (!only_critical) return overlay;
  overlay.leave_out.assign(p.event_count, false);
  // All slices of the file count, also those without a row here, such as the last step's.
  for (size_t i = 0; i < p.slices.size(); ++i) {
    const Category kind = a.run.trace->categories[p.slices.category_id[i]].kind;
    overlay.leave_out[p.slices.file_index[i]] =
        kind != Category::kUserAnnotation && kind != Category::kPythonFunction && (a.hta || kind != Category::kSpan);
  }
  for (const auto& [index, args] : overlay.extra_args) overlay.leave_out[index] = false;
  return overlay;
}

Status read_instances(const AnalysisInput& input, PathOptions& options) {
  const std::string text = input.options.text("instance-id", "0");
  const auto colon = text.find(':');
  const auto first = parse_int(trim(std::string_view(text).substr(0, colon)));
  const auto last = colon == std::string::npos ? first : parse_int(trim(std::string_view(text).substr(colon + 1)));
  if (!first || !last || *first < 0 || *last < *first)
    return make_error(ErrorCode::kUsage, "--instance-id is N or A:B, not \"" + text + "\"", "instances count from 0");
  options.first = *first;
  options.last = *last;
  return {};
}

// Adds notes that the reader needs to judge the path: how much it leaves unexplained, and what was not recorded.
void add_path_notes(const Answer& a, Diagnostics& notes) {
  const Where where = {a.rank().part->source};
  int64_t total = 0, hand_overs = 0, stream_waits = 0;
  for (const uint32_t e : a.graph.path_edges) {
    const PathEdge& edge = a.graph.edges[e];
    total += a.graph.weight_ns(edge);
    hand_overs += edge.kind == PathEdgeKind::kHandOverInferred;
    stream_waits += edge.kind == PathEdgeKind::kStreamWaitInferred || edge.kind == PathEdgeKind::kStreamGap;
  }
  const int64_t wall = a.graph.to_ns - a.graph.from_ns;
  if (wall > 0 && total < 0.95 * wall) {
    const PathNode& first = a.graph.nodes[a.graph.path.front()];
    const std::string start = ns_as_decimal((first.time_ns - a.graph.from_ns) / 1000, 3);
    notes.add(problem::critical_path_coverage,
              Args()
                  .set("percent", std::to_string(100 * total / wall))
                  .set("start", start)
                  .set("name", std::string(a.run.name(a.rank().rows[first.row]))),
              where);
  }
  notes.add(problem::critical_path_inferred_hand_overs, where, hand_overs);
  notes.add(problem::critical_path_inferred_stream_waits, Args().flag("syncs", a.graph.has_syncs), where, stream_waits);
}

// Adds notes on the window and on flaws of its graph, between them those of the path.
void add_window_notes(const Answer& a, const PathOptions& options, Diagnostics& notes) {
  const PathGraph& graph = a.graph;
  const Where where = {a.rank().part->source};
  if (!graph.found || (!a.hta && graph.path.empty()))
    notes.add(problem::critical_path_no_window, Args().set("annotation", options.annotation), where);
  if (!a.hta && !graph.path.empty()) add_path_notes(a, notes);
  if (!a.hta && graph.matches > 0 && options.last >= graph.matches)
    notes.add(problem::critical_path_fewer_instances,
              Args().set("instance", std::to_string(graph.matches - 1)).set("annotation", options.annotation), where);
  if (!graph.sound) notes.add(problem::critical_path_unsound, where);
  notes.add(problem::critical_path_acausal, where, graph.acausal);
}

// Returns the error for a window that does not exist. It reports the number of rows with the annotation in their names,
// and lists the annotations.
Error no_instance(const TorchRun& run, const TorchRank& rank, const PathOptions& options, size_t matches) {
  std::string text = std::to_string(matches) + (matches == 1 ? " row" : " rows") + " of rank " +
                     std::to_string(rank.rank) + (matches == 1 ? " has \"" : " have \"") + options.annotation +
                     "\" in the name";
  if (matches > 0)
    return make_error(ErrorCode::kBadInput, text + ": there is no instance " + std::to_string(options.first),
                      "instances count from 0; the last is --instance-id " + std::to_string(matches - 1),
                      {rank.part->source});
  std::vector<const TorchRow*> notes;
  for (const TorchRow& row : rank.rows)
    if (row.category == Category::kUserAnnotation ||  // old versions write all annotations as operators
        (row.category == Category::kCpuOp && run.name(row).substr(0, 13) == "ProfilerStep#"))
      notes.push_back(&row);
  sort_stably(notes, {}, [](auto* x) { return x->start_ns; });
  std::vector<std::string_view> kinds;  // names without their number: ProfilerStep#
  std::string list;
  for (const TorchRow* row : notes) {
    const std::string_view name = run.name(*row), kind = name.substr(0, name.find('#'));
    if (std::ranges::find(kinds, kind) != kinds.end()) continue;
    if (kinds.size() == 5) {
      list += ", …";
      break;
    }
    kinds.push_back(kind);
    list += (list.empty() ? "\"" : ", \"") + std::string(name) + "\"";
  }
  return make_error(ErrorCode::kBadInput, std::move(text),
                    list.empty() ? "the rank has no annotations; without --annotation the window is the whole trace"
                                 : "annotations there: " + list,
                    {rank.part->source});
}

}  // namespace

Result<AnalysisResult> run_critical_path_analysis(const AnalysisInput& input) {
  PathOptions options;
  options.annotation = input.options.text("annotation", input.hta ? "ProfilerStep" : "");
  options.data_load = input.options.list("data-load-events");
  TRY_OK(read_instances(input, options));
  TRY_OK(take(input.options.flag("add-zero-weight-launch-edges", false), options.zero_launch));
  TRY(only, input.options.flag("only-show-critical-events", true));
  TRY(all, input.options.flag("show-all-edges", false));
  TRY(wanted, input.options.integer("rank", -1, 0));
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  const auto at = *wanted < 0
                      ? torch->parts.begin()
                      : std::ranges::find(torch->parts, *wanted, [&](size_t p) { return torch->trace->parts[p].rank; });
  if (at == torch->parts.end())
    return make_error(ErrorCode::kBadInput, (input.hta ? "KeyError: " : "there is no rank ") + std::to_string(*wanted),
                      "stageline info lists the ranks");
  const size_t part = *at;
  const auto made = std::make_shared<Answer>();
  made->run = *torch;
  made->held = torch_rank(*torch, part);
  made->hta = input.hta;
  made->later = input.rows_later;
  made->data_load = names_with(*torch, options.data_load);
  made->graph = (input.hta ? hta_path_graph : exact_path_graph)(made->run, made->rank(), options);
  const Shared answer = made;
  if (!input.hta && !options.annotation.empty() && answer->graph.matches <= options.first)
    return no_instance(*torch, answer->rank(), options, answer->graph.matches);
  AnalysisResult result = answer_of(*torch);
  add_window_notes(*answer, options, result.notes);
  if (!input.hta && *wanted < 0 && torch->parts.size() > 1) result.notes.add(problem::critical_path_one_rank);
  result.tables = {summary_table(*answer), breakdown_table(answer), nodes_table(answer), edges_table(answer),
                   path_table(answer)};
  if (input.wants_overlay) result.overlay = overlay_of(*answer, part, *only, *all);
  return result;
}

}  // namespace stageline
