#include "profile/python_stacks.h"

#include "model/lanes.h"

namespace stageline {
namespace {

constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";

Category category_at(const Trace& trace, const Part& part, size_t slice) {
  return trace.categories[part.slices.category_id[slice]].kind;
}

uint64_t pair_key(uint32_t high, uint32_t low) { return static_cast<uint64_t>(high) << 32 | low; }

// Returns the lanes of RecordFunction's thread numbers, which operators name as their forward thread: where the arrow
// from the forward side starts. The first arrow of a thread decides.
std::unordered_map<int32_t, size_t> forward_lanes(const Part& part) {
  std::unordered_map<int32_t, size_t> lanes;
  constexpr int kNear = 3;  // the arrow ends at the operator or at one of the first that it calls
  for (const SliceLink& link : part.slice_links) {
    if (link.kind != SliceLinkKind::kForwardBackward) continue;
    uint32_t at = link.to;
    for (int step = 0; step < kNear && at != kNoSliceIndex; ++step, at = part.slices.parent[at]) {
      const OperatorFact* fact = fact_of(part.operators, at);
      if (!fact || fact->forward_thread <= 0) continue;
      lanes.try_emplace(fact->forward_thread, lane_of(part, link.from));
      break;
    }
  }
  return lanes;
}

// Without arrows, returns the only lane that has forward operators; SIZE_MAX when there are several or none.
size_t only_forward_lane(const Part& part) {
  size_t found = SIZE_MAX;
  for (const OperatorFact& fact : part.operators) {
    if (fact.forward_thread > 0) continue;
    const size_t lane = lane_of(part, fact.slice);
    if (found != SIZE_MAX && found != lane) return SIZE_MAX;
    found = lane;
  }
  return found;
}

class ForwardThreads {
 public:
  explicit ForwardThreads(const Part& part) : lanes_(forward_lanes(part)), otherwise_(only_forward_lane(part)) {}
  size_t lane_of(int32_t thread) const {  // SIZE_MAX when unknown
    const auto it = lanes_.find(thread);
    return it == lanes_.end() ? otherwise_ : it->second;
  }

 private:
  std::unordered_map<int32_t, size_t> lanes_;
  size_t otherwise_;
};

}  // namespace

bool drops_stack_entry(std::string_view frame) {
  // As in torch.autograd.profiler_util._filter_stack_entry, both texts must occur in the entry.
  static constexpr std::pair<std::string_view, std::string_view> kDropped[] = {
#define DROPPED(file, function) {file, function},
#include "profile/dropped_stack_entries.def"
  };
  return std::any_of(std::begin(kDropped), std::end(kDropped), [&](const auto& both) {
    return frame.find(both.first) != std::string_view::npos && frame.find(both.second) != std::string_view::npos;
  });
}

std::string without_address(std::string_view frame) {
  constexpr std::string_view kMark = " at 0x";
  std::string out;
  for (;;) {
    const size_t at = frame.find(kMark);
    if (at == std::string_view::npos) break;
    size_t end = at + kMark.size();
    while (end < frame.size() && std::string_view("0123456789abcdefABCDEF").find(frame[end]) != std::string_view::npos)
      ++end;
    out += frame.substr(0, end == at + kMark.size() ? end : at);
    frame.remove_prefix(end);
  }
  return out += frame;
}

std::string shortened_frame(std::string_view frame) {
  const size_t half = PythonStacks::kMaxFrameBytes / 2, head = character_start(frame, half);
  const size_t tail = character_end(frame, frame.size() - half - 1);
  return std::string(frame.substr(0, head)) + "…" + std::string(frame.substr(tail));
}

std::vector<uint32_t> backward_operators(const Trace& trace, const Part& part) {
  const Slices& s = part.slices;
  std::vector<bool> evaluates(trace.names.size());
  for (StringId id = 0; id < evaluates.size(); ++id) evaluates[id] = trace.names.text(id).starts_with(kEvaluate);
  std::vector<uint32_t> found(s.size(), kNoSliceIndex);
  for (const Lane& lane : part.lanes) {
    if (lane.kind == LaneKind::kDeviceStream) continue;
    for (uint32_t i = lane.begin; i < lane.end; ++i) {  // an enclosing slice comes before what it encloses
      const uint32_t up = s.parent[i];
      if (up >= i) continue;
      const bool node = evaluates[s.name_id[up]] && category_at(trace, part, i) == Category::kCpuOp &&
                        trace.names.text(s.name_id[up]).substr(kEvaluate.size()) == trace.names.text(s.name_id[i]);
      found[i] = node ? i : found[up];
    }
  }
  return found;
}

std::vector<uint32_t> forward_operators(const Trace&, const Part& part, const std::vector<uint32_t>& backward,
                                        OfEqualNumbers which) {
  const Slices& s = part.slices;
  std::vector<uint32_t> found(s.size(), kNoSliceIndex);
  if (part.operators.empty()) return found;
  const ForwardThreads threads(part);
  // (sequence number, lane) → slice on the forward side.
  struct Key {
    int64_t sequence;
    size_t lane;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const {
      return std::hash<uint64_t>()(static_cast<uint64_t>(k.sequence) * 0x9E3779B97F4A7C15u + k.lane);
    }
  };
  std::unordered_map<Key, uint32_t, KeyHash> found_at;
  for (const OperatorFact& fact : part.operators)  // in slice order, which within a lane is (start, longer first)
    if (fact.sequence_number >= 0 && backward[fact.slice] == kNoSliceIndex)
      if (const auto [it, added] = found_at.try_emplace({fact.sequence_number, lane_of(part, fact.slice)}, fact.slice);
          !added && which == OfEqualNumbers::kLast)
        it->second = fact.slice;
  for (const OperatorFact& fact : part.operators) {
    if (backward[fact.slice] != fact.slice) continue;
    const auto it = found_at.find({fact.sequence_number, threads.lane_of(fact.forward_thread)});
    if (it != found_at.end()) found[fact.slice] = it->second;
  }
  return found;
}

// ---- callers ----------------------------------------------------------------------------------------------------

std::vector<uint32_t> python_callers(const Trace& trace, const Part& part) {
  const Slices& s = part.slices;
  std::vector<uint32_t> caller = s.parent;
  for (size_t i = 0; i < s.size(); ++i) {
    if (!is_device_work(category_at(trace, part, i))) continue;
    const uint32_t launch = s.partner[i];
    if (launch != kNoSliceIndex && !is_device_work(category_at(trace, part, launch))) caller[i] = launch;
  }
  for (const PythonFact& fact : part.python_parents)
    if (category_at(trace, part, fact.slice) == Category::kPythonFunction) caller[fact.slice] = fact.parent;
  std::vector<SliceQuestion> questions;
  const ForwardThreads threads(part);
  for (const OperatorFact& fact : part.operators) {
    if (fact.forward_thread <= 0 || caller[fact.slice] != kNoSliceIndex) continue;
    const size_t lane = threads.lane_of(fact.forward_thread);
    if (lane != SIZE_MAX && lane != lane_of(part, fact.slice))
      questions.push_back({lane, s.start_ns[fact.slice], fact.slice});
  }
  find_open_slices(part, std::move(questions), [&](size_t slice, uint32_t open) { caller[slice] = open; });
  return caller;
}

// Climbs from every slice to one that has been placed, or to where a circle closes, and places slices on the way down.
std::vector<uint32_t> callers_first(std::vector<uint32_t>& caller) {
  enum : uint8_t { kNew, kOnPath, kPlaced };
  std::vector<uint8_t> state(caller.size(), kNew);
  std::vector<uint32_t> order, path;
  order.reserve(caller.size());
  for (uint32_t slice = 0; slice < caller.size(); ++slice) {
    for (uint32_t at = slice; at != kNoSliceIndex && state[at] == kNew; at = caller[at]) {
      state[at] = kOnPath;
      path.push_back(at);
    }
    if (!path.empty())
      if (uint32_t& up = caller[path.back()]; up != kNoSliceIndex && state[up] == kOnPath) up = kNoSliceIndex;
    for (; !path.empty(); path.pop_back()) {
      state[path.back()] = kPlaced;
      order.push_back(path.back());
    }
  }
  return order;
}

// ---- building ---------------------------------------------------------------------------------------------------

class PythonStackBuilder {
 public:
  PythonStackBuilder(const Trace& trace, const Part& part, const PythonStackOptions& options)
      : trace_(trace), part_(part), s_(part.slices), options_(options) {
    out_.around_.assign(s_.size(), PythonStacks::kEmpty);
    out_.inside_.assign(s_.size(), PythonStacks::kEmpty);
  }

  PythonStacks rebuilt() {
    if (!any_frame()) return std::move(out_);
    frame_of_name_.assign(trace_.names.size(), kUnknownFrame);
    find_edges();
    for (const uint32_t i : callers_first(from_)) resolve(i);
    return std::move(out_);
  }

  PythonStacks recorded() {
    for (const StackFact& fact : part_.stacks) out_.around_[fact.slice] = node_of_text(trace_.names.text(fact.stack));
    // A kernel has the stack that its operator was recorded with, even if the operator's own stack is replaced below.
    for (size_t i = 0; i < s_.size(); ++i)
      if (is_device_work(category_at(trace_, part_, i)) && s_.parent[i] != kNoSliceIndex)
        out_.around_[i] = out_.around_[s_.parent[i]];
    if (options_.backward == BackwardFrames::kForward && !part_.stacks.empty()) {
      const std::vector<uint32_t> backward = backward_operators(trace_, part_);
      const std::vector<uint32_t> forward = forward_operators(trace_, part_, backward, OfEqualNumbers::kFirst);
      for (size_t i = 0; i < s_.size(); ++i) {
        if (backward[i] == kNoSliceIndex) continue;
        const uint32_t from = forward[backward[i]];
        out_.around_[i] = from == kNoSliceIndex ? PythonStacks::kEmpty : out_.around_[from];
      }
    }
    out_.inside_ = out_.around_;
    return std::move(out_);
  }

 private:
  static constexpr StringId kUnknownFrame = UINT32_MAX, kDroppedFrame = UINT32_MAX - 1;

  bool is_frame(size_t i) const {
    const Category c = category_at(trace_, part_, i);
    return c == Category::kPythonFunction || (options_.operators && c == Category::kCpuOp);
  }
  bool any_frame() const {
    for (size_t i = 0; i < s_.size(); ++i)
      if (is_frame(i)) return true;
    return false;
  }

  // Finds whose frames each slice has: inside() of `from_`, or with same_stack_ its stack_of().
  void find_edges() {
    from_ = python_callers(trace_, part_);
    same_stack_.assign(s_.size(), false);
    if (options_.backward != BackwardFrames::kForward) return;
    const std::vector<uint32_t> backward = backward_operators(trace_, part_);
    const std::vector<uint32_t> forward = forward_operators(trace_, part_, backward, OfEqualNumbers::kLast);
    for (size_t i = 0; i < s_.size(); ++i) {
      if (backward[i] == kNoSliceIndex || (options_.operators && backward[i] != i)) continue;
      from_[i] = forward[backward[i]];
      same_stack_[i] = true;
    }
  }

  void resolve(uint32_t at) {
    const uint32_t from = from_[at];
    if (from != kNoSliceIndex) out_.around_[at] = same_stack_[at] ? out_.around_[from] : out_.inside_[from];
    out_.inside_[at] = is_frame(at) ? with_frame(out_.around_[at], frame_of(s_.name_id[at])) : out_.around_[at];
  }

  StringId frame_of(StringId name) {
    StringId& known = frame_of_name_[name];
    if (known == kUnknownFrame) known = frame_of_text(trace_.names.text(name));
    return known;
  }
  StringId frame_of_text(std::string_view text) {
    if (options_.drop_torch_entries && drops_stack_entry(text)) return kDroppedFrame;
    if (text.size() > PythonStacks::kMaxFrameBytes) return out_.frames_.intern(shortened_frame(text));
    return options_.cut_addresses ? out_.frames_.intern(without_address(text)) : out_.frames_.intern(text);
  }

  uint32_t with_frame(uint32_t parent, StringId frame) {
    if (frame == kDroppedFrame) return parent;
    const auto [it, added] = node_of_.try_emplace(pair_key(parent, frame), static_cast<uint32_t>(out_.nodes_.size()));
    if (added) out_.nodes_.push_back({parent, frame, out_.nodes_[parent].depth + 1});
    return it->second;
  }

  // Parses "innermost;…;outermost".
  uint32_t node_of_text(std::string_view stack) {
    const std::vector<std::string_view> entries = split(stack, ';');
    uint32_t node = PythonStacks::kEmpty;
    for (size_t k = entries.size(); k-- > 0;)
      if (!entries[k].empty()) node = with_frame(node, frame_of_text(entries[k]));
    return node;
  }

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  PythonStackOptions options_;
  PythonStacks out_;
  std::vector<uint32_t> from_;
  std::vector<bool> same_stack_;
  std::vector<StringId> frame_of_name_;
  std::unordered_map<uint64_t, uint32_t> node_of_;
};

PythonStacks python_stacks(const Trace& trace, const Part& part, const PythonStackOptions& options) {
  return PythonStackBuilder(trace, part, options).rebuilt();
}

PythonStacks recorded_stacks(const Trace& trace, const Part& part, const PythonStackOptions& options) {
  return PythonStackBuilder(trace, part, options).recorded();
}

std::vector<std::string_view> PythonStacks::entries(uint32_t node, size_t max) const {
  std::vector<std::string_view> out;
  for (; node != kEmpty && out.size() < max; node = nodes_[node].parent) out.push_back(frame_text(node));
  return out;
}

// Works by doubling: the 2k innermost frames follow from the k innermost of the stack and of its k-th ancestor.
std::vector<uint32_t> PythonStacks::groups_of_innermost(size_t n) const {
  const size_t count = nodes_.size();
  uint32_t deepest = max_over<uint32_t>(nodes_, &Node::depth);
  n = std::min<size_t>(n, deepest);
  std::vector<uint32_t> group(count, 0), rest(count), piece(count), above(count);
  for (uint32_t i = 0; i < count; ++i) {
    rest[i] = i;
    piece[i] = nodes_[i].frame;  // 0 for the root, the empty text, which no frame has
    above[i] = nodes_[i].parent;
  }
  const auto joined = [&](const std::vector<uint32_t>& first, auto second) {
    std::unordered_map<uint64_t, uint32_t> ids = {{0, 0}};
    std::vector<uint32_t> out(count);
    for (size_t i = 0; i < count; ++i)
      out[i] = ids.try_emplace(pair_key(first[i], second(i)), static_cast<uint32_t>(ids.size())).first->second;
    return out;
  };
  for (size_t bit = 1; bit <= n; bit *= 2) {
    if (n & bit) {
      group = joined(group, [&](size_t i) { return piece[rest[i]]; });
      for (uint32_t& at : rest) at = above[at];
    }
    if (bit > n / 2) break;
    piece = joined(piece, [&](size_t i) { return piece[above[i]]; });
    std::vector<uint32_t> further(count);
    for (size_t i = 0; i < count; ++i) further[i] = above[above[i]];
    above = std::move(further);
  }
  std::vector<uint32_t> first_of(count, UINT32_MAX);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t& first = first_of[group[i]];
    if (first == UINT32_MAX) first = i;
    group[i] = first;
  }
  return group;
}

bool is_own_frame(std::string_view name) {
  const auto contains = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return contains(".py(") && !name.starts_with("torch/") && !contains("/torch/") && !contains("site-packages") &&
         !contains("dist-packages") && !contains("lib/python") && !name.starts_with("<frozen") &&
         !name.starts_with("threading.py") && !name.starts_with("contextlib.py");
}

std::string frame_line(std::string_view frame) {
  const size_t open = frame.find('('), close = frame.find("): ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  const size_t slash = frame.find_last_of("/\\", open);
  const size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  return std::string(frame.substr(begin, open - begin)) + ":" + std::string(frame.substr(open + 1, close - open - 1));
}

std::string built_in_name(std::string_view name) {
  if (name.size() < 2 || name.front() != '<' || name.back() != '>') return std::string(name);
  name = name.substr(1, name.size() - 2);
  for (const std::string_view of : {"built-in function ", "built-in method "})
    if (name.starts_with(of)) return std::string(name.substr(of.size(), name.find(' ', of.size()) - of.size()));
  return std::string(name.substr(name.rfind(' ') + 1));
}

std::string name_with_line(const Trace& trace, const Part& part, uint32_t slice) {
  const Slices& s = part.slices;
  const std::string_view own = trace.names.text(s.name_id[slice]);
  std::string line;
  for (uint32_t at = slice; at != kNoSliceIndex && line.empty(); at = s.parent[at])
    if (const std::string_view frame = trace.names.text(s.name_id[at]); is_own_frame(frame)) line = frame_line(frame);
  const size_t function = own.find("): ");
  const std::string name = is_own_frame(own) && function != std::string_view::npos
                               ? std::string(own.substr(function + 3))
                               : built_in_name(own);
  return line.empty() ? name : name + " (" + line + ")";
}

}  // namespace stageline
