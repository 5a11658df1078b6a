#include "diagnosis/profile/culprit.h"

#include "model/row_names.h"
#include "model/torch_facts.h"
#include "profile/host_nodes.h"

namespace stageline {
namespace {

constexpr size_t kMaxName = 90;     // bytes of a name in a sentence
constexpr size_t kMaxInTitle = 48;  // and in a title

// A line of the program whose path is cut at its front: "…/pipelines/base.py(57): load".
std::string cut_path(const std::string& frame) {
  if (frame.size() <= kMaxName) return frame;
  const std::string cut = "…/";
  size_t begin = 0;
  for (size_t slash; frame.size() - begin > kMaxName - cut.size(); begin = slash + 1) {
    slash = frame.find('/', begin);
    if (slash == std::string::npos || slash > frame.find('(')) return cut_text(frame, kMaxName);
  }
  return cut + frame.substr(begin);
}

// A name that fits a title: without template arguments and parameters, then its last components, so that none is cut;
// empty if even the last is too long.
std::string title_name(std::string name) {
  const size_t arguments = std::min(name.find('<'), name.ends_with(')') ? name.find('(') : name.size());
  if (name.size() > kMaxInTitle && arguments > 0) name.resize(std::min(arguments, name.size()));
  while (name.size() > kMaxInTitle) {
    const size_t at = name.find_first_of("#/|:. ");
    if (at == std::string::npos) return {};
    name.erase(0, name.find_first_not_of("#/|:. ", at));
  }
  return name;
}

}  // namespace

Text Culprit::text() const {
  Text out;
  const auto add = [&](const std::string& name, const char* with) {
    if (name.empty()) return;
    if (!out.empty()) out += {with, " ← "};
    const std::string cut = cut_text(name, kMaxName);
    out += {cut, cut};
  };
  add(call, "");
  add(op, " in ");
  if (range != op) add(range, " in ");
  add(module, " of ");
  add(cut_path(frame), " from ");
  return out;
}

std::string Culprit::name() const {
  std::string name;
  const std::string line = frame_line(frame);
  const std::string function = line.empty() ? frame : frame.substr(frame.find("): ") + 3);
  for (const std::string* part : {&call, &op, &range, &module, &function})
    if (name.empty()) name = title_name(std::string(phase_name(built_in_name(*part))));
  return line.empty() || line.size() > kMaxInTitle ? name : name + " (" + line + ")";
}

std::string Culprit::where() const {
  const std::string line = frame_line(frame);
  return !line.empty() && line.size() <= kMaxInTitle ? line : module;
}

std::vector<Place> Culprit::places() const {
  std::vector<Place> places;
  const auto add = [&](PlaceKind kind, const std::string& name) {
    if (!name.empty()) places.push_back({.kind = kind, .name = name});
  };
  if (!call.empty() && call.front() != '<') add(PlaceKind::kCall, call);
  add(PlaceKind::kOperator, op);
  add(PlaceKind::kOperator, range);
  add(PlaceKind::kFrame, frame.substr(0, frame.find(": ")));
  return places;
}

std::string Culprit::key() const {
  std::vector<Place> all = places();
  // A line of the program says more than an operator.
  std::ranges::stable_partition(all, [](const Place& p) { return p.kind == PlaceKind::kCall; });
  const auto frame_at = std::ranges::find_if(all, [](const Place& p) { return p.kind == PlaceKind::kFrame; });
  if (all.empty()) return {};
  return key_of(all.front().kind != PlaceKind::kCall && frame_at != all.end() ? *frame_at : all.front());
}

Culprit CulpritFinder::of(uint32_t node) {
  Culprit c;
  std::string any_frame;
  for (uint32_t at = node; at != kHostRoot; at = t_.nodes[at].parent) {
    const HostNode& n = t_.nodes[at];
    const std::string text = n.counted ? without_numbers(name(n.name)) : name(n.name);
    const bool calls = is_launch_call(n.category) || (n.category == Category::kOther && is_host_message(text));
    if (calls && c.call.empty()) c.call = text;
    if (profiler_step_number(text) >= 0) continue;
    if (n.category == Category::kCpuOp && c.op.empty()) c.op = text;
    if (n.category == Category::kUserAnnotation && c.range.empty()) c.range = text;
    if (n.category != Category::kPythonFunction) continue;
    if (text.starts_with("nn.Module")) {
      if (c.module.empty()) c.module = text;
    } else if (text.find(".py(") != std::string::npos) {
      if (is_own_frame(text) && c.frame.empty()) c.frame = text;
      if (any_frame.empty()) any_frame = text;
    } else if (at == node && c.call.empty()) {
      c.call = without_address(text);
    }
  }
  if (c.frame.empty() && node != kHostRoot) c.frame = frame_by_stack(t_.nodes[node].slice);
  if (c.frame.empty()) c.frame = any_frame;
  return c;
}

// Work of the autograd thread belongs to the line of its forward operator.
std::string CulpritFinder::frame_by_stack(uint32_t slice) {
  const Part& part = *t_.part;
  if (part.python_parents.empty() && !any_python()) return "";
  if (!stacks_) stacks_ = std::make_unique<PythonStacks>(python_stacks(trace_, part));
  for (const std::string_view frame : stacks_->entries(stacks_->stack_of(slice)))
    if (is_own_frame(frame)) return std::string(frame);
  return "";
}

bool CulpritFinder::any_python() const {
  return std::ranges::any_of(t_.nodes, [&](const HostNode& n) { return n.category == Category::kPythonFunction; });
}

}  // namespace stageline
