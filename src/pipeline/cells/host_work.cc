#include "pipeline/cells/host_work.h"

#include "base/json_members.h"
#include "base/parallel.h"

namespace stageline {
namespace {

constexpr std::string_view kEngineName = "autograd::engine::evaluate_function: ";

enum class NameKind : uint8_t { kNone, kEngine, kSend, kReceive, kOptimizer, kDetach };

std::vector<NameKind> kinds_of_names(const Trace& trace) {
  std::vector<NameKind> out(trace.names.size(), NameKind::kNone);
  for (StringId id = 0; id < out.size(); ++id) {
    const std::string_view name = trace.names.text(id);
    out[id] = name.starts_with(kEngineName)         ? NameKind::kEngine
              : name == "c10d::send"                ? NameKind::kSend
              : name == "c10d::recv_"               ? NameKind::kReceive
              : name == "aten::detach"              ? NameKind::kDetach
              : name.starts_with("Optimizer.step#") ? NameKind::kOptimizer
                                                    : NameKind::kNone;
  }
  return out;
}

enum class ItemKind : uint8_t { kForward, kNode, kSend, kReceive };

// One event of the host that decides where stretches begin and end.
struct Item {
  int64_t start_ns = 0, end_ns = 0;
  int64_t sequence = -1;  // for forward operators and nodes
  uint32_t slice = 0;     // for forward operators the outermost operator around it
  uint32_t lane = 0;
  ItemKind kind = ItemKind::kForward;
};

struct Sequence {  // says which stretch made the node with this number
  int64_t number = 0;
  uint32_t forward = kNoStretch;
};

// Items come thread after thread, so most of the time they are in order already.
template <class Less> void sort_unless_sorted(std::vector<Item>& items, Less less) {
  if (!std::ranges::is_sorted(items, less)) sort_stably(items, less);
}

class PartReader {
 public:
  PartReader(const Trace& trace, size_t index, const std::vector<NameKind>& names, const MessagePeers& peers)
      : trace_(trace), part_(trace.parts[index]), index_(index), names_(names), peers_(peers) {}

  HostWork read() {
    collect();
    if (out_.sends + out_.receives == 0 || out_.nodes == 0) return std::move(out_);
    cut_forward();
    cut_backward();
    split_forward();
    reach_forward();
    name_kinds();
    attach_messages();
    drop_shape_passes();
    return std::move(out_);
  }

 private:
  struct Found {
    std::vector<Item> made;    // operators with sequence numbers
    std::vector<int64_t> run;  // the sequence numbers of the nodes that ran
    std::vector<int64_t> optimizer_ends;
  };

  // Collects the items of all threads in order of start.
  void collect() {
    if (part_.slices.category_id.empty()) return;
    // Kind of each category id, since comparing the text of every row would go through the cache.
    std::array<Category, 256> kinds;
    kinds.fill(Category::kOther);
    for (size_t c = 0; c < trace_.categories.size() && c < kinds.size(); ++c) kinds[c] = trace_.categories[c].kind;
    Found found;
    size_t fact = 0;
    for (uint32_t l = 0; l < part_.lanes.size(); ++l)
      if (part_.lanes[l].kind != LaneKind::kDeviceStream) read_lane(l, kinds, fact, found);
    if (out_.sends + out_.receives == 0 || out_.nodes == 0) return;
    keep_makers(found);
    sort_unless_sorted(items_, [](const Item& a, const Item& b) { return a.start_ns < b.start_ns; });
    std::ranges::sort(found.optimizer_ends);
    borders_ =
        part_.steps.empty() ? std::move(found.optimizer_ends) : mapped<int64_t>(part_.steps, &ProfilerStep::start_ns);
  }

  // Work inside a node (recomputation) is part of that node. `fact`: index of the next fact on operators.
  void read_lane(uint32_t l, const std::array<Category, 256>& kinds, size_t& fact, Found& found) {
    const Slices& slices = part_.slices;
    int64_t top_end = INT64_MIN, node_end = INT64_MIN;
    uint32_t top = 0;
    for (auto i = static_cast<uint32_t>(part_.lanes[l].begin); i < part_.lanes[l].end; ++i) {
      const Category category = kinds[slices.category_id[i]];
      if (category != Category::kCpuOp && category != Category::kUserAnnotation) continue;
      const NameKind name = names_[slices.name_id[i]];
      if (name == NameKind::kOptimizer && category == Category::kUserAnnotation)
        found.optimizer_ends.push_back(slices.end_ns(i));
      if (category != Category::kCpuOp || slices.start_ns[i] < node_end) continue;
      while (fact < part_.operators.size() && part_.operators[fact].slice < i) ++fact;
      const bool has_fact = fact < part_.operators.size() && part_.operators[fact].slice == i;
      if (slices.start_ns[i] >= top_end) {
        top = i;
        top_end = slices.end_ns(i);
        if (name != NameKind::kDetach) tops_.push_back({slices.start_ns[i], top_end, l});
      }
      Item item{slices.start_ns[i], slices.end_ns(i), has_fact ? part_.operators[fact].sequence_number : -1, i, l, {}};
      if (name == NameKind::kEngine) {
        item.kind = ItemKind::kNode;
        node_end = item.end_ns;
        ++out_.nodes;
        if (item.sequence >= 0) found.run.push_back(item.sequence);
        items_.push_back(item);
      } else if (name == NameKind::kSend || name == NameKind::kReceive) {
        item.kind = name == NameKind::kSend ? ItemKind::kSend : ItemKind::kReceive;
        ++(name == NameKind::kSend ? out_.sends : out_.receives);
        items_.push_back(item);
      } else if (has_fact && part_.operators[fact].forward_thread <= 0) {
        item.slice = top;
        found.made.push_back(item);
      }
    }
  }

  // An operator makes a node when it is the last one with a sequence number that the engine runs later.
  void keep_makers(Found& found) {
    std::vector<Item>& made = found.made;
    std::ranges::sort(found.run);
    sort_unless_sorted(made, [](const Item& a, const Item& b) {
      return std::tuple(a.sequence, a.start_ns) < std::tuple(b.sequence, b.start_ns);
    });
    items_.reserve(items_.size() + made.size());
    auto run = found.run.begin();  // both lists ascend
    for (size_t i = 0; i < made.size(); ++i) {
      while (run != found.run.end() && *run < made[i].sequence) ++run;
      if ((i + 1 == made.size() || made[i + 1].sequence != made[i].sequence) && run != found.run.end() &&
          *run == made[i].sequence)
        items_.push_back(made[i]);
    }
  }

  // Returns ProfilerStep's number, so that ranks agree even if the trace of one begins later; without ProfilerSteps,
  // how many optimizer steps are over.
  int64_t step_at(int64_t time_ns) const {
    const auto over = std::ranges::upper_bound(borders_, time_ns) - borders_.begin();
    if (part_.steps.empty()) return over;
    if (over == 0) return kOutside;
    const ProfilerStep& step = part_.steps[over - 1];
    return time_ns < step.end_ns ? step.number : kOutside;
  }

  Stretch begun(const Item& item, CellKind kind) const {
    return {.kind = kind,
            .lane = item.lane,
            .slice = item.slice,
            .start_ns = part_.slices.start_ns[item.slice],
            .end_ns = part_.slices.end_ns(item.slice),
            .step = step_at(item.start_ns)};
  }

  void cut_forward() {
    uint32_t open = kNoStretch;
    for (const Item& item : items_) {
      if (item.kind != ItemKind::kForward) {
        open = kNoStretch;
        continue;
      }
      if (open == kNoStretch || forward_[open].step != step_at(item.start_ns)) {
        open = static_cast<uint32_t>(forward_.size());
        forward_.push_back(begun(item, CellKind::kForward));
      }
      made_by_.push_back({item.sequence, open});
      forward_[open].end_ns = std::max(forward_[open].end_ns, part_.slices.end_ns(item.slice));
    }
    std::ranges::sort(made_by_, {}, &Sequence::number);
  }

  bool runs_again(size_t run) const { return owner_[run] != kNoStretch; }

  size_t place_of(int64_t sequence) const {
    const auto at = std::ranges::lower_bound(made_by_, sequence, {}, &Sequence::number);
    return at != made_by_.end() && at->number == sequence ? static_cast<size_t>(at - made_by_.begin())
                                                          : made_by_.size();
  }

  // Backward stretches are the nodes between other events. They are split where nodes of another forward begin, and
  // where nodes run again that ran in an earlier stretch.
  void cut_backward() {
    backward_.clear();
    first_run_.assign(made_by_.size(), kNoStretch);
    owner_.clear();
    uint32_t open = kNoStretch;
    for (const Item& item : items_) {
      if (item.kind != ItemKind::kNode) {
        open = kNoStretch;
        continue;
      }
      if (item.sequence < 0) {  // adding up gradients, which is part of the stretch that runs
        if (open != kNoStretch) backward_[open].end_ns = std::max(backward_[open].end_ns, item.end_ns);
        continue;
      }
      const size_t place = place_of(item.sequence);
      const uint32_t forward = place < made_by_.size() ? made_by_[place].forward : kNoStretch;
      const bool again = place < made_by_.size() && first_run_[place] != kNoStretch;
      if (open == kNoStretch || backward_[open].forward != forward || backward_[open].step != step_at(item.start_ns) ||
          (again && owner_[open] != first_run_[place])) {
        open = static_cast<uint32_t>(backward_.size());
        backward_.push_back(begun(item, CellKind::kBackward));
        backward_[open].forward = forward;
        owner_.push_back(again ? first_run_[place] : kNoStretch);
      }
      backward_[open].end_ns = std::max(backward_[open].end_ns, item.end_ns);
      if (place < made_by_.size() && first_run_[place] == kNoStretch) first_run_[place] = open;
    }
  }

  // Two stages of one rank may run their forwards with nothing between. Their backwards, which run apart, distinguish
  // them.
  void split_forward() {
    std::vector<uint32_t> by_place(made_by_.size(), kNoStretch);
    bool any = false;
    for (size_t i = 0; i < made_by_.size(); ++i) {
      const uint32_t run = first_run_[i];
      if (run != kNoStretch) by_place[i] = runs_again(run) ? owner_[run] : run;
    }
    std::vector<uint32_t> last_run(forward_.size(), kNoStretch), now(forward_.size());
    for (uint32_t f = 0; f < now.size(); ++f) now[f] = f;
    for (size_t i = 0; i < made_by_.size(); ++i) {  // ascending numbers give the order in which nodes were made
      const uint32_t f = made_by_[i].forward;
      if (by_place[i] != kNoStretch && last_run[f] != kNoStretch && by_place[i] != last_run[f]) {
        now[f] = static_cast<uint32_t>(forward_.size());
        Stretch half = forward_[f];
        const Item& item = item_of(made_by_[i].number);
        half.slice = item.slice;
        half.start_ns = part_.slices.start_ns[item.slice];
        forward_.push_back(half);
        any = true;
      }
      if (by_place[i] != kNoStretch) last_run[f] = by_place[i];
      made_by_[i].forward = now[f];
    }
    if (!any) return;
    for (Stretch& f : forward_) f.end_ns = f.start_ns;
    for (const Item& item : items_)
      if (item.kind == ItemKind::kForward) {
        Stretch& f = forward_[made_by_[place_of(item.sequence)].forward];
        f.end_ns = std::max(f.end_ns, part_.slices.end_ns(item.slice));
      }
    cut_backward();
  }

  // Work may go on after the last operator that makes a node: a cast, or a copy for the send. Up to the send it belongs
  // to the forward. A detach computes nothing; torch makes one right before a send, however late that is. Before a
  // backward there is no such limit, since the loss and the training loop follow the last stage's forward.
  void reach_forward() {
    const Item* last = nullptr;  // the last forward operator of the stretch that is open
    for (const Item& item : items_) {
      if (item.kind == ItemKind::kForward) {
        last = &item;
        continue;
      }
      if (last != nullptr && item.kind == ItemKind::kSend && step_at(last->start_ns) == step_at(item.start_ns)) {
        Stretch& forward = forward_[made_by_[place_of(last->sequence)].forward];
        auto top = std::lower_bound(tops_.begin(), tops_.end(), std::pair(forward.lane, forward.end_ns),
                                    [](const Top& t, const auto& at) { return std::pair(t.lane, t.start_ns) < at; });
        for (; top != tops_.end() && top->lane == forward.lane && top->start_ns < item.start_ns; ++top)
          forward.end_ns = std::max(forward.end_ns, std::min(top->end_ns, item.start_ns));
      }
      last = nullptr;
    }
  }

  const Item& item_of(int64_t sequence) {
    if (forward_items_.empty()) {
      for (uint32_t i = 0; i < items_.size(); ++i)
        if (items_[i].kind == ItemKind::kForward) forward_items_.push_back({items_[i].sequence, i});
      std::ranges::sort(forward_items_, {}, &Sequence::number);
    }
    return items_[std::ranges::lower_bound(forward_items_, sequence, {}, &Sequence::number)->forward];
  }

  void name_kinds() {
    std::vector<char> twice(forward_.size(), 0);
    for (size_t b = 0; b < backward_.size(); ++b)
      if (runs_again(b) && backward_[b].forward != kNoStretch) twice[backward_[b].forward] = 1;
    for (size_t b = 0; b < backward_.size(); ++b) {
      const uint32_t f = backward_[b].forward;
      backward_[b].kind = runs_again(b)                      ? CellKind::kWeightGrad
                          : f != kNoStretch && twice[f] != 0 ? CellKind::kInputGrad
                                                             : CellKind::kBackward;
    }
    std::vector<uint32_t> order(forward_.size() + backward_.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto at = [&](uint32_t i) -> Stretch& {
      return i < forward_.size() ? forward_[i] : backward_[i - forward_.size()];
    };
    sort_stably(order, {}, [&](uint32_t a) { return at(a).start_ns; });
    out_.stretches.reserve(order.size());
    std::vector<uint32_t> place(order.size());
    for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    for (const uint32_t i : order) {
      Stretch stretch = at(i);
      if (i < forward_.size()) stretch.forward = place[i];
      else if (stretch.forward != kNoStretch) stretch.forward = place[stretch.forward];
      out_.stretches.push_back(stretch);
    }
    for (uint32_t i = 0; i < out_.stretches.size(); ++i) {
      const Stretch& s = out_.stretches[i];
      if (is_backward(s.kind) && s.forward != kNoStretch && out_.stretches[s.forward].backward == kNoStretch)
        out_.stretches[s.forward].backward = i;
    }
  }

  // A send carries the result of the work before it, and a receive brings what the work after it needs; weight
  // gradients are not sent.
  void attach_messages() {
    const bool on_host =
        std::ranges::none_of(part_.lanes, [](const Lane& lane) { return lane.kind == LaneKind::kDeviceStream; });
    size_t next = 0;
    uint32_t last = kNoStretch;
    bool object_size[2] = {};  // the last receive (send) was the size of an object
    out_.has_peers = true;
    for (const Item& item : items_) {
      if (item.kind != ItemKind::kSend && item.kind != ItemKind::kReceive) continue;
      for (; next < out_.stretches.size() && out_.stretches[next].start_ns <= item.start_ns; ++next)
        if (out_.stretches[next].kind != CellKind::kWeightGrad) last = static_cast<uint32_t>(next);
      const bool is_send = item.kind == ItemKind::kSend;
      auto of = static_cast<uint32_t>(next);
      while (of < out_.stretches.size() && out_.stretches[of].kind == CellKind::kWeightGrad) ++of;
      if (is_send) of = last;
      const int64_t size = one_dimension(item.slice);
      const bool object = size == 1 || (size > 1 && object_size[is_send]);
      object_size[is_send] = size == 1;
      if (on_host && !object && of < out_.stretches.size())
        out_.messages.push_back({is_send, item.lane, item.slice, of});
      if (!is_send) continue;
      if (last == kNoStretch || out_.stretches[last].sends) continue;
      out_.stretches[last].sends = true;
      if (object) shape_passes_.push_back(last);
      out_.stretches[last].to_part = peers_.to_part(index_, item.lane, item.slice);
      out_.has_peers = out_.has_peers && out_.stretches[last].to_part != kNoPeer;
    }
  }

  // The size of a message of one dimension; −1: it has more, or its shape was not recorded. An object is sent as its
  // size, which is one number, and then its bytes.
  int64_t one_dimension(uint32_t slice) const {
    const InputFact* input = fact_of(part_.inputs, slice);
    std::string_view dims = input != nullptr ? trace_.names.text(input->dims) : std::string_view();
    if (!dims.starts_with("[[[")) return -1;
    dims = dims.substr(3, dims.find(']') - 3);
    return json_integer(dims).value_or(-1);
  }

  // Before its first step torch runs a forward and a backward through all stages, which send shapes instead of
  // activations. They belong to no micro-batch.
  void drop_shape_passes() {
    if (shape_passes_.empty()) return;
    std::vector<Stretch>& all = out_.stretches;
    std::vector<char> gone(all.size(), 0);
    for (const uint32_t i : shape_passes_) gone[i] = gone[all[i].forward != kNoStretch ? all[i].forward : i] = 1;
    std::vector<uint32_t> now(all.size(), kNoStretch);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all.size(); ++i) {
      if (all[i].forward != kNoStretch && gone[all[i].forward]) gone[i] = 1;
      if (!gone[i]) now[i] = kept++;
    }
    std::erase_if(out_.messages, [&](const HostMessage& message) { return gone[message.stretch] != 0; });
    for (HostMessage& message : out_.messages) message.stretch = now[message.stretch];
    size_t at = 0;
    std::erase_if(all, [&](const Stretch&) { return gone[at++] != 0; });
    for (Stretch& stretch : all)
      for (uint32_t* other : {&stretch.forward, &stretch.backward})
        if (*other != kNoStretch) *other = now[*other];
  }

  const Trace& trace_;
  const Part& part_;
  size_t index_;
  const std::vector<NameKind>& names_;
  const MessagePeers& peers_;
  HostWork out_;
  struct Top {  // an operator inside no other, but detach
    int64_t start_ns, end_ns;
    uint32_t lane;
  };
  std::vector<Item> items_;
  std::vector<Top> tops_;               // by lane, then start
  std::vector<uint32_t> shape_passes_;  // stretches whose result is an object
  std::vector<int64_t> borders_;
  std::vector<Stretch> forward_, backward_;
  // For each backward stretch the one that ran its nodes before; kNoStretch for a first run.
  std::vector<uint32_t> owner_;
  std::vector<Sequence> made_by_;        // in order of ascending numbers
  std::vector<uint32_t> first_run_;      // for each place in made_by_ the backward stretch that ran it first
  std::vector<Sequence> forward_items_;  // sequence number → item
};

}  // namespace

std::vector<HostWork> find_host_work(const Trace& trace) {
  std::vector<HostWork> out(trace.parts.size());
  const std::vector<NameKind> names = kinds_of_names(trace);
  // Most traces send nothing, and then no slice is looked at.
  if (std::ranges::none_of(names, [](NameKind kind) { return kind == NameKind::kSend || kind == NameKind::kReceive; }))
    return out;
  const MessagePeers peers(trace);
  parallel_for(out.size(), [&](size_t p) { out[p] = PartReader(trace, p, names, peers).read(); });
  return out;
}

}  // namespace stageline
