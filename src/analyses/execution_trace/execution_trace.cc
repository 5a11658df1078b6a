// Nodes of an execution trace with the times of their events, and the tensors between them. Definitions:
// docs/analyses/execution-trace.md.
#include "analyses/analysis.h"
#include "base/json_tree.h"

namespace stageline {
namespace {

struct Tensor {
  int64_t storage = -1, bytes = 0, producer = -1, uses = 0, first_ns = INT64_MAX, last_ns = INT64_MIN;
  std::string device, made_by;
};

// Calls use(id, storage, elements, item size, device) for the tensors in "[[13,14,0,128,4,\"cpu\"],1,[[…],[…]]]".
template <class Use> void for_tensors(Value value, int depth, Use&& use) {
  if (!value.is_list() || depth > 4) return;
  if (value.size() == 6 && value.item(0).integer() && value.item(3).integer() && !value.item(5).text().empty()) {
    use(value.item(0).integer().value_or(-1), value.item(1).integer().value_or(-1), value.item(3).integer().value_or(0),
        value.item(4).integer().value_or(0), std::string(value.item(5).text()));
    return;
  }
  for (size_t i = 0; i < value.size(); ++i) for_tensors(value.item(i), depth + 1, use);
}

template <class Use> void for_tensors_of(std::string_view json, Use&& use) {
  if (json.size() < 4) return;
  if (const Result<JsonTree> tree = parse_json_tree(json, "")) for_tensors(tree->tree.root(), 0, use);
}

// Returns for each slice the time of the device work of the slice itself and of all slices within it.
std::vector<int64_t> device_ns_of(const Part& part, const std::vector<CategoryInfo>& categories) {
  const Slices& s = part.slices;
  std::vector<int64_t> out(s.size(), 0);
  for (size_t i = 0; i < s.size(); ++i) {
    if (!is_device_work(categories[s.category_id[i]].kind)) continue;
    uint32_t up = s.parent[i] != kNoSliceIndex ? s.parent[i] : s.partner[i];
    for (int depth = 0; up != kNoSliceIndex && depth < 4096; ++depth, up = s.parent[up])
      out[up] = sum_or_limit(out[up], s.dur_ns[i]);
  }
  return out;
}

}  // namespace

Result<AnalysisResult> run_execution_trace(const AnalysisInput& input) {
  const Trace& trace = input.run().trace();
  Table nodes(declared_table("execution-trace/execution-nodes"));
  Table tensors(declared_table("execution-trace/execution-tensors"));
  for (const Part& part : trace.parts) {
    if (part.graph_nodes.empty()) continue;
    const Slices& s = part.slices;
    const std::vector<int64_t> device_ns = device_ns_of(part, trace.categories);
    std::map<int64_t, Tensor> known;
    auto order = mapped<const GraphNodeFact*>(part.graph_nodes, [&](const GraphNodeFact& fact) { return &fact; });
    sort_stably(order, {}, [&](const GraphNodeFact* a) { return std::tie(s.start_ns[a->slice], a->node); });
    for (const GraphNodeFact* fact : order) {
      const uint32_t i = fact->slice;
      const std::string name(trace.names.text(s.name_id[i]));
      nodes.add_row({int64_t{part.rank}, fact->node, fact->parent < 0 ? kNullInteger : fact->parent, name,
                     s.start_ns[i], s.dur_ns[i], device_ns[i], std::string(trace.names.text(fact->inputs)),
                     std::string(trace.names.text(fact->outputs)), std::string(trace.names.text(fact->schema))});
      const auto see = [&](int64_t id, int64_t storage, int64_t elements, int64_t size,
                           const std::string& device) -> Tensor& {
        Tensor& tensor = known[id];
        tensor.storage = storage;
        if (elements >= 0 && size >= 0 && elements < (int64_t{1} << 48) && size < 4096) tensor.bytes = elements * size;
        tensor.device = device;
        tensor.first_ns = std::min(tensor.first_ns, s.start_ns[i]);
        tensor.last_ns = std::max(tensor.last_ns, s.end_ns(i));
        return tensor;
      };
      for_tensors_of(trace.names.text(fact->inputs),
                     [&](int64_t id, int64_t storage, int64_t elements, int64_t size, const std::string& device) {
                       Tensor& tensor = see(id, storage, elements, size, device);
                       ++tensor.uses;
                     });
      for_tensors_of(trace.names.text(fact->outputs),
                     [&](int64_t id, int64_t storage, int64_t elements, int64_t size, const std::string& device) {
                       Tensor& tensor = see(id, storage, elements, size, device);
                       if (tensor.producer < 0 && tensor.uses == 0) tensor.producer = fact->node, tensor.made_by = name;
                     });
    }
    for (const auto& [id, tensor] : known)
      tensors.add_row({int64_t{part.rank}, id, tensor.storage, tensor.bytes, tensor.device,
                       tensor.producer < 0 ? kNullInteger : tensor.producer, tensor.made_by, tensor.uses,
                       tensor.first_ns, tensor.last_ns});
  }
  AnalysisResult result;
  return result.with(std::move(nodes), std::move(tensors));
}

}  // namespace stageline
