#include "readers/common/rows/graph_marks.h"

#include "model/message_names.h"

namespace stageline::rows {
namespace {

int64_t end_of(const Row& row) { return row.start_ns + row.dur_ns; }

// The facts that a captured call shares with the node that it made: the kind of work, and whether it communicates.
using NodeKind = std::pair<Category, bool>;

struct Call {
  int64_t start_ns = 0;
  NodeKind kind;
  const Row* scope = nullptr;  // the range or operator that names its node
};
struct Capture {
  int64_t start_ns = 0, end_ns = 0;
  std::vector<Call> calls;
};
struct Graph {
  std::map<int64_t, NodeKind> nodes;  // by number
  int64_t first_ns = INT64_MAX;       // the start of its first replay
};

// The part that calls and operators of a name have in a capture.
struct NameRole {
  bool begins = false, ends = false, replays = false, communicates = false;  // begins or ends a capture
  Category makes = Category::kOther;                                         // of a call: the work that it launches
};

NameRole role_of(std::string_view name) {
  const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  return {has("StreamBeginCapture"), has("StreamEndCapture"), has("GraphLaunch"), is_communication_call(name),
          has("Launch") && has("Kernel") ? Category::kKernel
          : has("Memcpy")                ? Category::kMemcpy
          : has("Memset")                ? Category::kMemset
                                         : Category::kOther};
}

class CaptureNames {
 public:
  CaptureNames(const FileRows& rows, const std::vector<const Row*>& all) : rows_(rows), all_(all) {
    const TextInterner &names = rows.dictionaries.names, &categories = rows.dictionaries.categories;
    for (uint32_t id = 0; id < categories.size(); ++id) kinds_.push_back(category_of(categories.text(id)));
    for (uint32_t id = 0; id < names.size(); ++id) roles_.push_back(role_of(names.text(id)));
  }

  // Returns the range or operator that names the work of a node in a replay; nullptr where its graph has no capture of
  // its own.
  const Row* scope_of(int64_t node, const Row& row) const {
    const auto found = scopes_.find(node);
    return found == scopes_.end() || !replays_.contains(row.correlation) ? nullptr : found->second;
  }

  void find() {
    if (!find_captures()) return;
    find_calls();
    find_graphs();
    std::map<const Capture*, std::vector<const Graph*>> fits;
    std::map<const Graph*, int> captures_of;
    const auto kind_of_node = &std::pair<const int64_t, NodeKind>::second;
    for (const auto& [number, graph] : graphs_)
      for (const Capture& capture : captures_)
        if (capture.end_ns <= graph.first_ns &&
            std::ranges::equal(capture.calls, graph.nodes, {}, &Call::kind, kind_of_node))
          fits[&capture].push_back(&graph), ++captures_of[&graph];
    for (const auto& [capture, graphs] : fits) {
      if (graphs.size() != 1 || captures_of[graphs[0]] != 1) continue;
      auto call = capture->calls.begin();
      for (const auto& [node, kind] : graphs[0]->nodes) scopes_[node] = (call++)->scope;
    }
  }

 private:
  Category kind(const Row& row) const { return kinds_[row.category]; }
  bool is_captured_kind(const Row& row) const {
    return is_launch_call(kind(row)) && row.correlation != kNoCorrelation && roles_[row.name].makes != Category::kOther;
  }

  // Returns false where there is none, or where two overlap, so that calls could be of either.
  bool find_captures() {
    std::unordered_map<uint32_t, std::vector<std::pair<int64_t, bool>>> borders;  // of a thread: when, and what begins
    for (const Row* row : all_)
      if (const NameRole& role = roles_[row->name]; is_launch_call(kind(*row)) && (role.begins || role.ends))
        borders[row->thread].emplace_back(row->start_ns, role.begins);
    for (auto& [thread, list] : borders) {
      std::ranges::sort(list);
      for (size_t k = 1; k < list.size(); ++k)
        if (list[k - 1].second && !list[k].second) captures_.push_back({list[k - 1].first, list[k].first, {}});
    }
    std::ranges::sort(captures_, {}, &Capture::start_ns);
    const auto overlap = [](const Capture& a, const Capture& b) { return b.start_ns < a.end_ns; };
    return !captures_.empty() && std::ranges::adjacent_find(captures_, overlap) == captures_.end();
  }

  // The capture during which a row runs; nullptr outside of all.
  Capture* capture_of(const Row& row) {
    const int64_t end_ns = std::max(end_of(row), row.start_ns + 1);
    const auto next = std::ranges::lower_bound(captures_, end_ns, {}, &Capture::start_ns);
    return next == captures_.begin() || std::prev(next)->end_ns <= row.start_ns ? nullptr : &*std::prev(next);
  }

  // Calls of any thread during a capture, with what is around them. One that has device work of its own was not
  // captured, and a driver's call of the same number is part of the runtime's.
  void find_calls() {
    std::vector<const Row*> looked;
    std::unordered_set<uint32_t> numbers;
    for (const Row* row : all_) {
      if (roles_[row->name].replays && is_launch_call(kind(*row))) replays_.insert(row->correlation);
      const bool is_call = is_captured_kind(*row);
      if (!is_call && kind(*row) != Category::kCpuOp && kind(*row) != Category::kUserAnnotation) continue;
      if (!capture_of(*row)) continue;
      looked.push_back(row);
      if (is_call) numbers.insert(row->correlation);
    }
    for (const Row* row : all_)
      if (is_device_work(kind(*row))) numbers.erase(row->correlation);
    sort_stably(looked, {}, [](const Row* row) { return std::tuple(row->thread, row->start_ns, -row->dur_ns); });
    std::vector<const Row*> open;  // from the outermost
    for (const Row* row : looked) {
      while (!open.empty() && (open.back()->thread != row->thread || end_of(*open.back()) <= row->start_ns))
        open.pop_back();
      if (!is_launch_call(kind(*row))) open.push_back(row);
      else if (numbers.erase(row->correlation) > 0) add_call(*row, open, *capture_of(*row));
    }
    for (Capture& capture : captures_) sort_stably(capture.calls, {}, &Call::start_ns);
  }

  void add_call(const Row& row, const std::vector<const Row*>& open, Capture& capture) const {
    const Row *range = nullptr, *op = nullptr;
    const Category makes = roles_[row.name].makes;
    bool communicates = false;
    for (const Row* around : open) {
      communicates |= roles_[around->name].communicates && makes == Category::kKernel;
      if (kind(*around) == Category::kCpuOp) op = around;
      else if (around->start_ns > capture.start_ns || end_of(*around) < capture.end_ns) range = around;
    }
    capture.calls.push_back({row.start_ns, {makes, communicates}, range ? range : op});
  }

  void find_graphs() {
    for (const GraphWork& work : rows_.rest.graph_work) {
      const Row& row = *all_[work.slice];
      if (!replays_.contains(row.correlation)) continue;
      const KernelClass is = classify_kernel(kind(row), rows_.dictionaries.names.text(row.name), false);
      const NodeKind found = {kind(row), is == KernelClass::kCommunication};
      Graph& graph = graphs_[work.node >> 32];
      // A node that changes from one replay to the next fits no call.
      NodeKind& known = graph.nodes.try_emplace(work.node, found).first->second;
      if (known != found) known.first = Category::kOther;
      graph.first_ns = std::min(graph.first_ns, row.start_ns);
    }
  }

  const FileRows& rows_;
  const std::vector<const Row*>& all_;
  std::vector<Category> kinds_;  // by category
  std::vector<NameRole> roles_;  // by name
  std::vector<Capture> captures_;
  std::map<int64_t, Graph> graphs_;
  std::unordered_set<uint32_t> replays_;            // the numbers of their launches
  std::unordered_map<int64_t, const Row*> scopes_;  // by node
};

}  // namespace

GraphNames add_graph_marks(FileRows& rows) {
  const std::vector<GraphWork>& work = rows.rest.graph_work;
  if (work.empty()) return {};
  std::vector<const Row*> all;
  each_row(std::as_const(rows), [&](const Row& row) { all.push_back(&row); });
  CaptureNames captures(rows, all);
  if (std::ranges::find(work, 0u, &GraphWork::name) != work.end()) captures.find();
  // By thread, replay, name, and the captured range: an operator that ran twice is two. Messages of one title are
  // apart, by their starts.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, const Row*, int64_t>, Row> marks;
  int64_t named = 0;
  for (const GraphWork& one : work) {
    const Row& row = *all[one.slice];
    const Row* scope = one.name == 0 ? captures.scope_of(one.node, row) : nullptr;
    if (one.name == 0 && !scope) continue;
    named += scope != nullptr;
    const uint32_t name = scope ? scope->name : one.name;
    const int64_t apart_ns = is_message_title(rows.dictionaries.names.text(name)) ? row.start_ns : 0;
    Row& mark = marks.try_emplace({row.thread, row.correlation, name, scope, apart_ns}, row).first->second;
    mark.name = name;
    mark.dur_ns = std::max(end_of(mark), end_of(row)) - std::min(mark.start_ns, row.start_ns);
    mark.start_ns = std::min(mark.start_ns, row.start_ns);
  }
  if (marks.empty()) return {0, std::ssize(work)};
  const uint32_t category =
      std::min<uint32_t>(rows.dictionaries.categories.intern("gpu_user_annotation"), kMaxCategories);
  std::vector<Row> added;
  for (auto& [key, mark] : marks) {
    mark.category = static_cast<uint16_t>(category) & 0x7fff;
    mark.correlation = mark.external_id = kNoCorrelation;
    added.push_back(mark);
  }
  rows.row_count += added.size();
  rows.blocks.push_back(std::move(added));
  return {named, 0};
}

}  // namespace stageline::rows
