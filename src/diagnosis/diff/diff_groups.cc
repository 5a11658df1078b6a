#include "diagnosis/diff/diff_parts.h"

namespace stageline {
namespace {

constexpr double kOneRank = 0.8;  // minimum share of a group's change that one rank must hold to be named
// Pauses are few, and hold nearly all of the delay that was added.
constexpr double kPausesHold = 0.8, kMaxPaused = 0.1, kMaxLateMessages = 0.3;

// cause, stage, from stage, kind, type.
using Key = std::tuple<DiffCause, int32_t, int32_t, CellKind, int32_t>;
constexpr int32_t kFirstNamed = 1 << 20;  // types from here on stand for named causes; those of a graph are all below

struct Sums {
  DiffGroup group;
  double change_ns = 0;  // sum of |B − A|
  std::map<int32_t, double> by_part;
};

class Grouper {
 public:
  Grouper(const StepGraph& g, const NamedWork& named) : g_(g), named_(named) {}

  Key dur_key(uint32_t op) const {
    const CellKind kind = g_.kind[op];
    if (is_compute(kind) && named_)
      if (const uint32_t cause = named_(op); cause != kNoCause)
        return {DiffCause::kCompute, kUnknown, kUnknown, CellKind::kOther, kFirstNamed + static_cast<int32_t>(cause)};
    if (is_compute(kind)) return {DiffCause::kCompute, g_.stage(op), kUnknown, kind, -1};
    if (!is_message(kind)) return {DiffCause::kTail, kUnknown, kUnknown, kind, g_.type[op]};
    const auto [from, to] = edge_of(op);
    return {DiffCause::kMessages, to, from, CellKind::kOther, -1};
  }
  Key delay_key(uint32_t op) const {
    const CellKind kind = g_.kind[op];
    // An unrecorded message has no host that launches it, so its delay is part of the transfer.
    if (g_.cell[op] == kNoCell) return dur_key(op);
    // Before a collective or the optimizer, delays of all stages are one kind of waiting, and no work of a stage.
    if (!is_compute(kind) && !is_message(kind)) return {DiffCause::kDelay, kUnknown, kUnknown, kind, g_.type[op]};
    return {DiffCause::kDelay, g_.stage(op), kUnknown, CellKind::kOther, -1};
  }

 private:
  // Returns the stages (from, to) of a message: by the partner in its group, or by the cell that an unrecorded message
  // waits for; otherwise the neighbouring stage.
  std::pair<int32_t, int32_t> edge_of(uint32_t op) const {
    const CellKind kind = g_.kind[op];
    const int32_t own = g_.stage(op);
    const bool sends = is_send(kind);
    int32_t other = kUnknown;
    if (g_.group(op) != kNoGroup) {
      const GraphGroup& group = g_.groups[g_.group(op)];
      for (uint32_t i = group.begin; i < group.end && i < group.begin + 4; ++i)
        if (i != op) other = g_.stage(i);
    }
    if (other == kUnknown && g_.cell[op] == kNoCell)
      for (const uint32_t before : g_.waits(op))
        if (g_.stage(before) != own) other = g_.stage(before);
    if (other == kUnknown && own != kUnknown) {
      const bool up = kind == CellKind::kSendForward || kind == CellKind::kRecvBackward;
      const int32_t p = std::max(g_.stage_count, 1);
      other = (own + (up ? 1 : p - 1)) % p;
    }
    return sends ? std::pair(own, other) : std::pair(other, own);
  }
  const StepGraph& g_;
  const NamedWork& named_;
};

}  // namespace

DiffGroups group_operations(const StepGraph& b, const OpTimes& a_times, const std::vector<bool>& usual, size_t max,
                            const NamedWork& named) {
  const Grouper grouper(b, named);
  std::map<Key, Sums> sums;
  const auto add = [&](const Key& key, uint32_t op, double a_ns, double b_ns) {
    Sums& s = sums[key];
    s.group.a_ns += a_ns;
    s.group.b_ns += b_ns;
    ++s.group.count;
    s.change_ns += std::abs(b_ns - a_ns);
    s.by_part[b.part[op]] += b_ns - a_ns;
  };
  for (size_t step = 0; step < b.steps.size(); ++step)
    for (uint32_t op = b.steps[step].begin; usual[step] && op < b.steps[step].end; ++op) {
      const Key dur = grouper.dur_key(op), delay = grouper.delay_key(op);
      add(dur, op, a_times.dur_ns[op] + (delay == dur ? a_times.delay_ns[op] : 0),
          b.dur_ns[op] + (delay == dur ? b.delay_ns[op] : 0));
      if (delay != dur) add(delay, op, a_times.delay_ns[op], b.delay_ns[op]);
    }

  std::vector<std::map<Key, Sums>::iterator> changed;
  for (auto it = sums.begin(); it != sums.end(); ++it)
    if (it->second.change_ns > 0) changed.push_back(it);
  sort_stably(changed, std::greater(), [](const auto& x) { return x->second.change_ns; });
  DiffGroups groups;
  std::map<Key, uint32_t> index;
  for (uint32_t i = 0; i < changed.size(); ++i) {
    const auto& [key, s] = *changed[i];
    if (i >= max) {  // all further groups are one
      if (i == max) {
        groups.list.emplace_back().cause = DiffCause::kMore;
        groups.named.push_back(kNoCause);
      }
      index[key] = static_cast<uint32_t>(max);
      DiffGroup& more = groups.list.back();
      more.count += s.group.count;
      more.a_ns += s.group.a_ns;
      more.b_ns += s.group.b_ns;
      continue;
    }
    index[key] = i;
    DiffGroup group = s.group;
    int32_t type = -1;
    std::tie(group.cause, group.stage, group.from_stage, group.kind, type) = key;
    const bool of_cause = group.cause == DiffCause::kCompute && type >= kFirstNamed;
    groups.named.push_back(of_cause ? static_cast<uint32_t>(type - kFirstNamed) : kNoCause);
    if (type >= 0 && !of_cause) group.type = b.types[type].name;
    double all = sum_over<double>(s.by_part, [&](const auto& entry) { return std::abs(entry.second); });
    const double steps = std::ranges::count(usual, true);
    group.per_rank = group.count / (s.by_part.size() * std::max(steps, 1.0));
    for (const auto& [part, ns] : s.by_part)
      if (b.dp_count > 1 && !of_cause && std::abs(ns) >= kOneRank * all) group.part = part;
    groups.list.push_back(std::move(group));
  }
  for (DiffGroup& group : groups.list) {
    const double n = std::max<int64_t>(group.count, 1);
    group.a_ns /= n;
    group.b_ns /= n;
  }
  const auto find = [&](const Key& key) {
    const auto it = index.find(key);
    return it == index.end() ? static_cast<uint32_t>(groups.list.size()) : it->second;
  };
  groups.of_dur.reserve(b.size());
  groups.of_delay.reserve(b.size());
  for (uint32_t op = 0; op < b.size(); ++op) {
    groups.of_dur.push_back(find(grouper.dur_key(op)));
    groups.of_delay.push_back(find(grouper.delay_key(op)));
  }
  return groups;
}

void tell_pauses(const std::vector<double>& changes_ns, DiffGroup& group) {
  std::vector<double> later;
  double all = 0;
  for (const double ns : changes_ns) {
    all += std::abs(ns);
    if (ns > 0) later.push_back(ns);
  }
  sort_stably(later, std::greater<>());
  double held = 0;
  size_t paused = 0;
  while (paused < later.size() && held < kPausesHold * all) held += later[paused++];
  const double count = changes_ns.size();
  const double max = group.cause == DiffCause::kMessages ? kMaxLateMessages : kMaxPaused;
  if (paused == 0 || held < kPausesHold * all || paused > max * count) return;
  group.paused = paused;
  group.pause_ns = held / paused;
}

Text kind_words(CellKind kind) {
  const std::string name = "diff.kind." + std::string(kind_code(kind));
  return has_words(name) ? words(name) : Text{std::string(kind_name(kind)), std::string(kind_code(kind))};
}

}  // namespace stageline
