#include "server/page/calls_answer.h"

#include <algorithm>

#include "base/json_writer.h"
#include "base/parallel.h"
#include "base/text.h"
#include "facts/call_tree_facts.h"
#include "profile/merged_calls.h"
#include "server/http/wire.h"
#include "server/timeline/timeline.h"

namespace stageline {
namespace {

struct Column {
  const CallTree* tree;
  int32_t rank;
  bool is_other;
};

void add_columns(const Trace& trace, const std::vector<CallTree>& trees, bool is_other, std::vector<Column>& columns) {
  for (size_t p = 0; p < trees.size(); ++p)
    if (trees[p].nodes.size() > 1) columns.push_back({&trees[p], trace.parts[p].rank, is_other});
}

// One column of the answer: the values of all ranks, one rank after another.
std::vector<double> joined(const std::vector<std::vector<int64_t>>& values) {
  std::vector<double> out;
  for (const std::vector<int64_t>& column : values) out.insert(out.end(), column.begin(), column.end());
  return out;
}

Result<std::string> wire_of(const std::vector<Column>& columns, const CallsBudget& budget) {
  if (columns.empty())
    return make_error(ErrorCode::kUnavailable, "this run has no calls: no thread of a host was recorded");
  std::vector<const CallTree*> trees;
  for (const Column& column : columns) trees.push_back(column.tree);
  const size_t max = std::clamp(budget.max_values / columns.size(), budget.min_nodes, budget.max_nodes);
  const MergedCalls merged = merge_calls(trees, max);

  JsonWriter json;
  json.begin_object().field("left_out", merged.left_out).field("cut_share", merged.max_left_out);
  json.objects("ranks", columns, [&](const Column& column) {
    json.field("rank", column.rank).field("other", column.is_other).field("steps", column.tree->steps);
  });
  json.key("frames").begin_array();
  for (StringId id = 0; id < merged.frames.size(); ++id) json.value(valid_utf8(merged.frames.text(id)));
  json.end_array();
  std::vector<uint32_t> parent, frame;
  std::vector<uint8_t> kind;
  constexpr uint8_t kRest = static_cast<uint8_t>(kFrameKindCount);
  for (const MergedCalls::Node& node : merged.nodes) {
    parent.push_back(node.parent);
    frame.push_back(node.frame);
    kind.push_back(node.is_rest ? kRest : static_cast<uint8_t>(node.kind));
  }
  WireColumns wire;
  wire.add("parent", "u32", parent);
  wire.add("frame", "u32", frame);
  wire.add("kind", "u8", kind);
  wire.add("host_ns", "f64", joined(merged.host_ns));
  wire.add("device_ns", "f64", joined(merged.device_ns));
  wire.add("calls", "f64", joined(merged.calls));
  wire.describe(json);
  json.end_object();
  return std::move(wire).with_header(json.take());
}

}  // namespace

Result<std::string> calls_answer(const Run& run, const Run* other, const CallsBudget& budget) {
  std::vector<Column> columns;
  add_columns(run.trace(), call_trees_of(run), false, columns);
  if (other && !columns.empty()) add_columns(other->trace(), call_trees_of(*other), true, columns);
  return wire_of(columns, budget);
}

Result<std::string> area_calls_answer(const Trace& trace, const Timeline& timeline, const Query& query,
                                      const CallsBudget& budget) {
  TRY(lanes, list_parameter(query, "lanes", static_cast<uint32_t>(timeline.lanes().size())));
  TRY(window, window_parameters(query, timeline.span_ns()));
  std::vector<CallArea> areas(trace.parts.size());
  for (const uint32_t l : *lanes) {
    const ViewLane& lane = timeline.lanes()[l];
    if (lane.type != ViewLaneType::kStream && lane.type != ViewLaneType::kThread) continue;
    CallArea& area = areas[lane.part];
    area.from_ns = lane.zero_ns + window->from_ns();
    area.to_ns = lane.zero_ns + window->to_ns();
    area.chosen.resize(trace.parts[lane.part].slices.size());
    std::fill_n(area.chosen.begin() + lane.first, lane.count, true);
  }
  const FunctionNames names(trace);
  std::vector<CallTree> trees(trace.parts.size());
  parallel_for(trees.size(), [&](size_t p) {
    if (!areas[p].chosen.empty()) trees[p] = call_tree(trace, trace.parts[p], names, &areas[p]);
  });
  std::vector<Column> columns;  // also of ranks without a call there
  for (size_t p = 0; p < trees.size(); ++p)
    if (!areas[p].chosen.empty()) columns.push_back({&trees[p], trace.parts[p].rank, false});
  return wire_of(columns, budget);
}

}  // namespace stageline
