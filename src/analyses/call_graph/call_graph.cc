// Lists callers and callees, and the device work below every call. Definitions: docs/analyses/call-graph.md.
#include "profile/call_graph.h"

#include "analyses/analysis.h"

namespace stageline {
namespace {

// The tables to make. In the default mode, "both" is one graph in two tables.
struct Wanted {
  bool stack = true, graph = true;
};

struct GraphTables {
  std::optional<Table> stack, graph;
};

Result<GraphTables> hta_rows(const TorchRun& run, const TorchRank& rank, const Wanted& wanted) {
  GraphTables out;
  const auto index_of = [&](int32_t row) { return int64_t{rank.rows[row].index}; };
  const auto node_of = [&](size_t i) { return static_cast<size_t>(rank.row_at(rank.rows[i].index)); };
  if (wanted.stack) {
    const CallGraph stack = hta_call_stack(rank);
    Table table(declared_table("call-graph/call-stack/hta"));
    for (size_t i = 0; i < rank.rows.size(); ++i) {
      const TorchRow& row = rank.rows[i];
      const size_t node = node_of(i);
      int64_t parent = kNullInteger;
      if (row.stream != -1) parent = row.partner_index;
      else if (stack.parent[node] != CallGraph::kAbsent)
        parent = stack.parent[node] < 0 ? -1 : index_of(stack.parent[node]);
      table.add_row({int64_t{rank.rank}, int64_t{row.index}, parent,
                     stack.depth[node] == CallGraph::kNoDepth ? kNullInteger : int64_t{stack.depth[node]}});
    }
    out.stack = std::move(table);
  }
  if (!wanted.graph) return out;
  TRY(built, hta_call_graph(run, rank));
  const CallGraph& graph = *built;
  Table table(declared_table("call-graph/trace-call-graph/hta"));
  for (size_t i = 0; i < rank.rows.size(); ++i) {
    const size_t node = node_of(i);
    int64_t parent = -1;
    if (graph.parent[node] >= 0) parent = index_of(graph.parent[node]);
    if (graph.parent[node] == CallGraph::kTop) parent = graph.thread_root[node];
    const bool any = graph.kernel_count[node] > 0;
    // HTA shifts its starts to zero, but its ends stay on the clock of the file.
    const double start = any ? to_us(graph.first_kernel_ns[node]) : -1;
    const double end = any ? to_us(graph.last_kernel_ns[node] + run.zero_ns) : -1;
    table.add_row({int64_t{rank.rank}, int64_t{rank.rows[i].index}, parent, int64_t{graph.depth[node]},
                   int64_t{graph.height[node]}, int64_t{graph.kernel_count[node]}, to_us(graph.kernel_ns[node]),
                   any ? end - start : 0.0, start, end});
  }
  out.graph = std::move(table);
  return out;
}

int64_t index_above(const TorchRank& rank, const CallGraph& graph, size_t row) {
  const int32_t parent = graph.parent[row];
  return parent < 0 ? kNullInteger : int64_t{rank.rows[parent].index};
}

void add_stack_row(const TorchRun& run, const TorchRank& rank, const CallGraph& graph, size_t i, Table& out) {
  static constexpr ByEnum<CallEdge, const char*, 4> kEdges = {{"", "call", "launch", "forward"}};
  const TorchRow& row = rank.rows[i];
  out.add_row({int64_t{rank.rank}, int64_t{row.index}, index_above(rank, graph, i), int64_t{graph.depth[i]},
               std::string(kEdges[graph.edge[i]]), std::string(run.name(row)), run.category_text(*rank.part, row),
               row.start_ns, row.dur_ns, graph.self_ns[i]});
}

void add_graph_row(const TorchRun&, const TorchRank& rank, const CallGraph& graph, size_t i, Table& out) {
  const bool any = graph.kernel_count[i] > 0;
  out.add_row({int64_t{rank.rank}, int64_t{rank.rows[i].index}, index_above(rank, graph, i), int64_t{graph.depth[i]},
               int64_t{graph.height[i]}, int64_t{graph.kernel_count[i]}, graph.kernel_ns[i],
               any ? graph.last_kernel_ns[i] - graph.first_kernel_ns[i] : kNullInteger,
               any ? graph.first_kernel_ns[i] : kNullInteger, any ? graph.last_kernel_ns[i] : kNullInteger,
               graph.backward_kernel_ns[i]});
}

// The graphs of all ranks. They take some 150 bytes for each row, rows included; the two tables would take 400.
struct Graphs {
  struct Rank {
    std::shared_ptr<const TorchRank> rows;
    CallGraph graph;
  };
  TorchRun run;
  std::vector<Rank> ranks;
};

using AddRow = void (*)(const TorchRun&, const TorchRank&, const CallGraph&, size_t row, Table&);

// Makes a row for each call of every rank, or no rows when the table is not `wanted`.
Table graph_table(const std::shared_ptr<const Graphs>& graphs, Table head, bool wanted, AddRow add, bool later) {
  const auto make = [graphs, add](size_t first, size_t count, Table& out) {
    for (const Graphs::Rank& rank : graphs->ranks) {
      const std::vector<int32_t>& order = rank.graph.preorder;
      const size_t begin = std::min(first, order.size()), end = begin + std::min(count, order.size() - begin);
      for (size_t k = begin; k < end; ++k) add(graphs->run, *rank.rows, rank.graph, static_cast<size_t>(order[k]), out);
      first -= begin;
      count -= end - begin;
    }
  };
  size_t rows = 0;
  for (const Graphs::Rank& rank : graphs->ranks) rows += wanted ? rank.graph.preorder.size() : 0;
  if (later) return Table::later(std::move(head), rows, make);
  make(0, rows, head);
  return head;
}

AnalysisResult exact_call_graphs(TorchRun run, const Wanted& wanted, bool later) {
  auto graphs = std::make_shared<Graphs>();
  graphs->run = std::move(run);
  graphs->ranks.resize(graphs->run.parts.size());
  parallel_for(graphs->ranks.size(), [&](size_t k) {
    Graphs::Rank& rank = graphs->ranks[k];
    rank.rows = torch_rank(graphs->run, graphs->run.parts[k]);
    rank.graph = exact_call_graph(*rank.rows);
  });
  AnalysisResult result;
  return result.with(
      graph_table(graphs, declared_table("call-graph/call-stack"), wanted.stack, add_stack_row, later),
      graph_table(graphs, declared_table("call-graph/trace-call-graph"), wanted.graph, add_graph_row, later));
}

void append(Table& to, const Table& from) {
  for (size_t r = 0; r < from.row_count(); ++r) {
    std::vector<Table::Value> row;
    row.reserve(from.columns().size());
    for (size_t c = 0; c < from.columns().size(); ++c) {
      const ColumnType type = from.columns()[c].type;
      if (type == ColumnType::kText) row.emplace_back(from.text(r, c));
      else if (type == ColumnType::kInteger || type == ColumnType::kDuration || type == ColumnType::kTime)
        row.emplace_back(from.integer(r, c));
      else row.emplace_back(from.real(r, c));
    }
    to.add_row(std::move(row));
  }
}

}  // namespace

Result<AnalysisResult> run_call_graph(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  const std::string builder = input.options.text("builder", "both");
  const Wanted wanted = {builder != "trace-call-graph", builder != "call-stack"};
  if (!input.hta) return exact_call_graphs(std::move(*torch), wanted, input.rows_later);
  TRY(ranks, try_ranks(*torch, [&](const TorchRank& rank) { return hta_rows(*torch, rank, wanted); }));
  Table stack(declared_table("call-graph/call-stack/hta"));
  Table graph(declared_table("call-graph/trace-call-graph/hta"));
  for (GraphTables& rank : *ranks) {
    if (ranks->size() == 1) {
      if (rank.stack) stack = std::move(*rank.stack);
      if (rank.graph) graph = std::move(*rank.graph);
      continue;
    }
    if (rank.stack) append(stack, *rank.stack);
    if (rank.graph) append(graph, *rank.graph);
    rank = {};
  }
  AnalysisResult result = answer_of(*torch);
  return result.with(std::move(stack), std::move(graph));
}

}  // namespace stageline
