#include "diagnosis/profile/rank_losses.h"

#include "base/json_members.h"
#include "base/parallel.h"
#include "model/statistics.h"
#include "pipeline/sums/stage_costs.h"
#include "profile/device_timeline.h"
#include "profile/idle_gaps.h"
#include "profile/operator_work.h"

namespace stageline {
namespace {

// A node's time is about that child which holds this share of it, if one does.
constexpr double kMostly = 0.7;
constexpr size_t kMaxCandidates = 10;
// Kernels count as overlapping communication if at least half of their time does, and as alone if almost none does.
constexpr double kBeside = 0.5, kAlone = 0.05, kSlowed = 1.15;
constexpr size_t kFewestTwins = 3;
constexpr int64_t kInnerAxis = 256;    // elements in a line of Ascend's cube cores, as msprof-analyze's advisor has it
constexpr double kSteadyTwins = 1.15;  // most that a tenth of the twins may exceed, times their median

class LossFinder {
 public:
  // `keeps`: losses keep what their replays removed.
  LossFinder(const Trace& trace, const DeviceTimeline& timeline, bool keeps)
      : trace_(trace), part_(*timeline.part), t_(timeline), keeps_(keeps), culprits_(trace, timeline) {}

  std::vector<RankLoss> find() {
    recorded_ns_ = replayed_ns(t_, {});
    find_idle();
    find_drains();
    settle_drains();
    find_exposed();
    find_contention();
    find_weak_kernels();
    find_misaligned();
    // Exposed work was recorded, whether the step would be shorter without it or the host sets the pace.
    std::erase_if(losses_, [&](const RankLoss& x) {
      const bool exposed = x.kind == LossKind::kCollective || x.kind == LossKind::kCopy;
      return !exposed && std::max(x.price_ns, x.caused_ns) < kMinLoss * window();
    });
    sort_stably(losses_, std::greater(), &RankLoss::price_ns);
    return std::move(losses_);
  }

 private:
  double window() const { return t_.window_ns(); }
  std::string name(StringId id) const { return std::string(trace_.names.text(id)); }
  double won(const TakenOut& out) const { return recorded_ns_ - replayed_ns(t_, out); }
  void keep(const TakenOut& out, RankLoss& loss) const {
    if (keeps_) loss.out = std::make_shared<const TakenOut>(out);
  }

  int64_t step_at(int64_t time_ns) const {
    for (const ProfilerStep& step : part_.steps)
      if (step.start_ns <= time_ns && time_ns < step.end_ns) return step.number;
    return -1;
  }

  // ---- idle time by owner -----------------------------------------------------------------------------------------

  // Finds for each owner the smallest subtrees of the host's slices that hold most of its idle time.
  void find_idle() {
    std::vector<std::vector<uint32_t>> children(t_.nodes.size());
    for (uint32_t n = 1; n < t_.nodes.size(); ++n) children[t_.nodes[n].parent].push_back(n);
    for (size_t o = 0; o < kIdleCauses; ++o) {
      const auto owner = static_cast<IdleCause>(o);
      std::vector<int64_t> held(t_.nodes.size(), 0);
      int64_t fixed = 0;
      for (uint32_t n = static_cast<uint32_t>(t_.nodes.size()); n-- > 0;) {
        held[n] += t_.idle_of_key[owner_key(n, owner)];
        if (owner == IdleCause::kDispatch) held[n] += t_.short_pauses_ns[n] + fixed_ns(n), fixed += fixed_ns(n);
        if (n != kHostRoot) held[t_.nodes[n].parent] += held[n];
      }
      // A device that is never idle is not held up by its launches, however short its kernels are.
      if (held[kHostRoot] - fixed >= kMinLoss * window()) split(kHostRoot, owner, held, children);
    }
  }

  void split(uint32_t node, IdleCause owner, const std::vector<int64_t>& held,
             const std::vector<std::vector<uint32_t>>& children) {
    // Idle time of the other owners is reported as a whole.
    const bool whole = owner != IdleCause::kBlocked && owner != IdleCause::kWork && owner != IdleCause::kUnseen;
    const uint32_t top = node;
    for (;;) {  // goes down to where the time is, without recursion while there is a single way
      uint32_t maximum = kHostRoot;
      for (const uint32_t child : children[node])
        if (maximum == kHostRoot || held[child] > held[maximum]) maximum = child;
      if (maximum == kHostRoot || held[maximum] < kMostly * held[node]) break;
      node = maximum;
    }
    int64_t rest = held[node];
    std::vector<uint32_t> apart;
    // Calls and lines that delay the host are reported one by one.
    if (!whole)
      for (const uint32_t child : children[node])
        if (held[child] >= 2 * kMinLoss * window()) apart.push_back(child);
    for (const uint32_t child : apart) {
      rest -= held[child];
      split(child, owner, held, children);
    }
    if (rest < kMinLoss * window() || candidates_.size() >= 4 * kMaxCandidates) return;
    if (whole) rest = held[top];
    candidates_.push_back({node, whole ? top : node, owner, apart, rest});
    make_idle(candidates_.back());
  }

  int64_t fixed_ns(uint32_t node) const { return t_.short_kernel_count[node] * t_.shortest_kernel_ns; }

  struct Candidate {
    uint32_t named, node;
    IdleCause owner;
    std::vector<uint32_t> without;  // subtrees that are reported separately
    int64_t idle_ns;
  };

  std::vector<bool> below(const Candidate& candidate) const {
    std::vector<bool> in(t_.nodes.size(), false);
    for (uint32_t n = candidate.node; n < t_.nodes.size(); ++n) {
      in[n] = n == candidate.node || (n != kHostRoot && in[t_.nodes[n].parent]);
      if (std::ranges::find(candidate.without, n) != candidate.without.end()) in[n] = false;
    }
    return in;
  }

  // When the first slice with the node's name ends.
  int64_t first_end_of(uint32_t node) const {
    int64_t start = INT64_MAX, end = INT64_MIN;
    for (size_t i = 0; i < part_.slices.size(); ++i)
      if (part_.slices.name_id[i] == t_.nodes[node].name && part_.slices.start_ns[i] < start)
        start = part_.slices.start_ns[i], end = part_.slices.end_ns(i);
    return end;
  }

  // Returns true when the node is an operator, or torch's range around an optimizer, and itself launches computing
  // work.
  bool is_of_model(uint32_t node) const {
    const HostNode& n = t_.nodes[node];
    if (n.category != Category::kCpuOp && !trace_.names.text(n.name).starts_with("Optimizer.")) return false;
    return std::ranges::any_of(t_.device, [&](const DeviceTimeline::DeviceItem& item) {
      if (item.launch < 0 || item.kernel != KernelClass::kComputation) return false;
      uint32_t at = t_.host[item.launch].node;
      while (at != kHostRoot && at != node) at = t_.nodes[at].parent;
      return at == node;
    });
  }

  void make_idle(const Candidate& candidate) {
    RankLoss x;
    x.kind = LossKind::kIdle;
    x.owner = candidate.owner;
    x.at = culprits_.of(candidate.named);
    int64_t longest_start = 0;
    x.of_model = candidate.owner == IdleCause::kWork && is_of_model(candidate.named);
    x.recorded_ns = candidate.idle_ns;
    TakenOut out;
    out.keys.assign(t_.idle_of_key.size(), false);
    const std::vector<bool> in = below(candidate);
    double pauses = 0, fixed = 0;  // pauses would go away with fewer, longer kernels
    int64_t longest_end = 0;
    for (uint32_t n = 0; n < t_.nodes.size(); ++n) {
      if (!in[n]) continue;
      const OwnerKey key = owner_key(n, candidate.owner);
      out.keys[key] = true;
      if (candidate.owner == IdleCause::kDispatch) {
        pauses += t_.short_pauses_ns[n];
        fixed += fixed_ns(n);
        x.short_kernels += t_.short_kernel_count[n];
      }
      const auto& longest = t_.longest_of_key[key];
      if (longest.dur_ns <= x.longest_ns) continue;
      x.longest_ns = longest.dur_ns;
      x.longest_step = step_at(longest.start_ns);
      longest_start = longest.start_ns;
      longest_end = longest.start_ns + longest.dur_ns;
    }
    x.first_call = candidate.owner == IdleCause::kBlocked && longest_start < first_end_of(candidate.named);
    if (x.at.empty()) {
      const auto next = std::ranges::partition_point(
          t_.host, [&](const DeviceTimeline::HostItem& item) { return item.start_ns < longest_end; });
      if (next != t_.host.end() && next->slice != kNoSliceIndex) x.next = culprits_.of(next->node);
    }
    // Work that could then run earlier, in parallel with other work, is another saving and does not belong to this gap.
    x.recorded_ns -= fixed;
    x.price_ns = std::min(won(out) + pauses, x.recorded_ns);
    // Fused kernels would save between none and all of the fixed time that kernels take whatever they do.
    x.pauses_ns = pauses;
    x.fixed_ns = fixed;
    x.uncertainty_ns = fixed / 2;
    x.price_ns += fixed / 2;
    keep(out, x);
    keys_.push_back(std::move(out.keys));
    losses_.push_back(std::move(x));
  }

  // ---- waits that run the devices dry -----------------------------------------------------------------------------

  void find_drains() {
    std::map<std::string, std::vector<size_t>> by_wait;  // key: what waits; values: indexes of `drained`
    for (size_t i = 0; i < t_.drained.size(); ++i) {
      const Culprit c = culprits_.of(t_.drained[i].wait_node);
      by_wait[c.call + "\n" + c.op + "\n" + c.frame].push_back(i);
    }
    for (const auto& [text, rows] : by_wait) {
      int64_t idle = 0;
      std::map<OwnerKey, int64_t> then;
      TakenOut out;
      out.wait_nodes.assign(t_.nodes.size(), false);
      for (const size_t i : rows) {
        idle += t_.drained[i].idle_ns;
        then[t_.drained[i].key] += t_.drained[i].idle_ns;
        out.wait_nodes[t_.drained[i].wait_node] = true;
      }
      if (idle < kMinLoss * window()) continue;
      RankLoss x;
      x.kind = LossKind::kDrain;
      x.at = culprits_.of(t_.drained[rows.front()].wait_node);
      x.recorded_ns = idle;
      const auto waits = std::ranges::count_if(t_.host, [&](const DeviceTimeline::HostItem& item) {
        return item.waits_for >= 0 && out.wait_nodes[item.node];
      });
      if (2 * waits > std::ssize(t_.device)) x.waits = waits;
      const auto maximum = std::ranges::max_element(then, {}, [](const auto& of) { return of.second; });
      if (2 * maximum->second > idle) x.beside = culprits_.of(node_of_key(maximum->first));
      x.price_ns = std::min(won(out), x.recorded_ns);
      keep(out, x);
      drains_.push_back({losses_.size(), std::move(then)});
      losses_.push_back(std::move(x));
      keys_.emplace_back();
    }
  }

  // A gap after a wait has two owners: the wait, without which work would have been queued, and the host's work before
  // it launched again. The one whose absence saves more is reported, together with the other. If they are nearly equal
  // the work is reported, because faster work makes it unnecessary to remove the wait.
  void settle_drains() {
    constexpr double kClearlyMore = 1.15, kNearly = 0.8;
    std::vector<bool> gone(losses_.size(), false);
    for (const Drain& drain : drains_) {
      RankLoss& wait = losses_[drain.loss];
      double contested = 0, best = 0;
      std::vector<size_t> works;
      for (size_t k = 0; k < losses_.size(); ++k) {
        if (losses_[k].kind != LossKind::kIdle || gone[k]) continue;
        double both = 0;
        for (const auto& [key, idle] : drain.then)
          if (keys_[k][key]) both += idle;
        if (both < 0.5 * losses_[k].recorded_ns) continue;
        works.push_back(k);
        contested += losses_[k].price_ns;
        best = std::max(best, losses_[k].price_ns);
      }
      if (works.empty()) continue;
      // Launches are never fast enough to refill a queue that a wait has emptied, so of those two the wait is the
      // cause.
      const bool launches =
          std::ranges::all_of(works, [&](size_t k) { return losses_[k].owner == IdleCause::kDispatch; });
      if (wait.price_ns > (launches ? kNearly : kClearlyMore) * contested) {
        for (const size_t k : works) gone[k] = true;
        continue;
      }
      gone[drain.loss] = true;
      for (const size_t k : works)
        if (losses_[k].beside.empty()) losses_[k].beside = wait.at;
    }
    size_t k = 0;
    std::erase_if(losses_, [&](const RankLoss&) { return gone[k++]; });
  }

  // ---- exposed communication and copies ---------------------------------------------------------------------------

  std::string label_of(const DeviceTimeline::DeviceItem& item) const {
    if (const CollectiveFact* fact = fact_of(part_.collectives, item.slice); fact && fact->name != 0)
      if (std::string text = name(fact->name); !text.empty()) return text;
    const std::string text = name(part_.slices.name_id[item.slice]);
    return item.kernel == KernelClass::kMemory ? text : short_kernel_name(text);
  }

  double computing_on(uint16_t stream) const {
    double sum = 0;
    for (const auto& item : t_.device)
      if (item.kernel == KernelClass::kComputation && part_.slices.stream_id[item.slice] == stream)
        sum += item.end_ns - item.start_ns;
    return sum;
  }

  void find_exposed() {
    std::vector<Interval> compute, comm;
    for (const auto& item : t_.device) {
      if (item.kernel == KernelClass::kComputation) compute.push_back({item.start_ns, item.end_ns});
      if (item.kernel == KernelClass::kCommunication) comm.push_back({item.start_ns, item.end_ns});
    }
    compute = union_of(std::move(compute));
    comm = union_of(std::move(comm));
    std::vector<Interval> both = compute;
    both.insert(both.end(), comm.begin(), comm.end());
    const CoveredTime under_compute(compute), under_both(union_of(std::move(both)));
    struct Group {
      double exposed_ns = 0, worst_ns = 0;
      size_t worst = 0;
      std::vector<size_t> items;
    };
    std::map<std::pair<bool, std::string>, Group> groups;
    for (size_t j = 0; j < t_.device.size(); ++j) {
      const auto& item = t_.device[j];
      const bool copies = item.kernel == KernelClass::kMemory;
      if (!copies && item.kernel != KernelClass::kCommunication) continue;
      const CoveredTime& cover = copies ? under_both : under_compute;
      const double exposed = item.end_ns - item.start_ns - cover.within(item.start_ns, item.end_ns);
      if (exposed <= 0) continue;
      std::string text = label_of(item);
      if (item.launch >= 0) text += "\n" + std::to_string(t_.host[item.launch].node);
      Group& g = groups[{copies, text}];
      g.exposed_ns += exposed;
      g.items.push_back(j);
      if (exposed > g.worst_ns) g.worst_ns = exposed, g.worst = j;
    }
    std::vector<int32_t> waits_for(t_.device.size(), -1);
    for (size_t j = 0; j < t_.device.size(); ++j)
      if (t_.device[j].other >= 0) waits_for[t_.device[j].other] = static_cast<int32_t>(j);
    for (const auto& [key, g] : groups) {
      if (g.exposed_ns < kMinLoss * window()) continue;
      const auto& worst = t_.device[g.worst];
      RankLoss x;
      x.kind = key.first ? LossKind::kCopy : LossKind::kCollective;
      x.what = label_of(worst);
      x.recorded_ns = g.exposed_ns;
      if (const CollectiveFact* fact = fact_of(part_.collectives, worst.slice)) x.members = fact->group_size;
      if (worst.launch >= 0) x.at = culprits_.of(t_.host[worst.launch].node);
      x.stream = part_.streams[part_.slices.stream_id[worst.slice]];
      x.one_stream = !key.first && 2 * computing_on(part_.slices.stream_id[worst.slice]) > t_.compute_ns;
      if (const int32_t next = waits_for[g.worst]; next >= 0)
        x.waiting = part_.streams[part_.slices.stream_id[t_.device[next].slice]];
      TakenOut out;
      out.device_ns.assign(t_.device.size(), -1);
      for (const size_t j : g.items) out.device_ns[j] = 0;
      x.price_ns = won(out);
      keep(out, x);
      losses_.push_back(std::move(x));
    }
  }

  // ---- communication that slows computation beside it ---------------------------------------------------------------

  void find_contention() {
    std::vector<Interval> comm;
    for (const auto& item : t_.device)
      if (item.kernel == KernelClass::kCommunication) comm.push_back({item.start_ns, item.end_ns});
    if (comm.empty()) return;
    const CoveredTime under_comm(union_of(std::move(comm)));
    // Twins are kernels with one name that are launched by one place of the program.
    struct Twins {
      std::vector<double> alone;
      std::vector<size_t> beside;
    };
    std::unordered_map<uint64_t, Twins> twins;
    for (size_t j = 0; j < t_.device.size(); ++j) {
      const auto& item = t_.device[j];
      if (item.kernel != KernelClass::kComputation || item.launch < 0) continue;
      const double length = item.end_ns - item.start_ns;
      if (length <= 0) continue;
      const double share = under_comm.within(item.start_ns, item.end_ns) / length;
      Twins& pair = twins[static_cast<uint64_t>(t_.host[item.launch].node) << 32 | part_.slices.name_id[item.slice]];
      if (share <= kAlone) pair.alone.push_back(length);
      if (share >= kBeside) pair.beside.push_back(j);
    }
    TakenOut out;
    out.device_ns.assign(t_.device.size(), -1);
    double slower = 0, usual = 0;
    std::string worst;
    double worst_ns = 0;
    for (auto& [key, pair] : twins) {
      if (pair.alone.size() < kFewestTwins || pair.beside.size() < kFewestTwins) continue;
      std::ranges::sort(pair.alone);
      const double median = median_of(pair.alone);
      if (pair.alone[pair.alone.size() * 9 / 10] > kSteadyTwins * median) continue;
      double lost = 0;
      for (const size_t j : pair.beside) {
        const double length = t_.device[j].end_ns - t_.device[j].start_ns;
        lost += length - median;
        out.device_ns[j] = static_cast<int64_t>(std::min(length, median));
      }
      slower += lost;
      usual += median * pair.beside.size();
      if (lost > worst_ns) worst_ns = lost, worst = name(static_cast<StringId>(key & UINT32_MAX));
    }
    if (!(usual > 0) || slower + usual < kSlowed * usual) return;
    RankLoss x;
    x.kind = LossKind::kContention;
    x.ratio = (slower + usual) / usual;
    x.recorded_ns = slower;
    x.what = short_kernel_name(worst);
    x.price_ns = won(out);
    keep(out, x);
    // Also tries the window without that communication: moved to where it slows nothing, it may become exposed instead.
    std::vector<Interval> slowed;
    for (size_t j = 0; j < t_.device.size(); ++j)
      if (out.device_ns[j] >= 0) slowed.push_back({t_.device[j].start_ns, t_.device[j].end_ns});
    const CoveredTime under_slowed(union_of(std::move(slowed)));
    for (size_t j = 0; j < t_.device.size(); ++j)
      if (t_.device[j].kernel == KernelClass::kCommunication &&
          under_slowed.within(t_.device[j].start_ns, t_.device[j].end_ns) > 0)
        out.device_ns[j] = 0;
    x.caused_ns = won(out);
    losses_.push_back(std::move(x));
  }

  // ---- kernels that the cores for it do not compute
  // -------------------------------------------------------------------

  // The blocks of a kernel, one a core; 0: not recorded.
  int64_t blocks_of(uint32_t slice) const {
    const KernelFact* fact = fact_of(part_.kernels, slice);
    if (fact == nullptr) return 0;
    const std::vector<std::string_view> numbers = stageline::split(trace_.names.text(fact->grid), ',');
    return parse_int(trim(numbers[0].substr(std::min<size_t>(1, numbers[0].size())))).value_or(0);
  }

  void find_weak_kernels() {
    // By kind of core: their number, which the profile of a device has, or the most blocks of any kernel there.
    std::map<StringId, int64_t> cores;
    const std::string_view device = recorded_device(part_);
    for (const TaskFact& task : part_.tasks) {
      const std::string_view unit = trace_.names.text(task.unit);
      const bool vector = unit == "AI_VECTOR_CORE" || unit == "MIX_AIV";
      int64_t& most = cores[task.unit];
      if (most == 0) most = json_integer(json_member(device, vector ? "aiv_num" : "ai_core_num")).value_or(0);
      most = std::max(most, blocks_of(task.slice));
    }
    if (cores.empty()) return;
    for (const LossKind kind : {LossKind::kAiCpu, LossKind::kFewCores}) {
      RankLoss x;
      x.kind = kind;
      TakenOut out;
      out.device_ns.assign(t_.device.size(), -1);
      double could_ns = 0;
      for (size_t j = 0; j < t_.device.size(); ++j) {
        const auto& item = t_.device[j];
        const TaskFact* task = fact_of(part_.tasks, item.slice);
        if (task == nullptr || item.kernel != KernelClass::kComputation) continue;
        const std::string_view unit = trace_.names.text(task->unit);
        const bool cpu = unit == "AI_CPU" || unit == "AICPU";
        const int64_t blocks = blocks_of(item.slice), all = cores[task->unit], length = item.end_ns - item.start_ns;
        if (cpu != (kind == LossKind::kAiCpu) || (!cpu && (blocks <= 0 || blocks >= all))) continue;
        out.device_ns[j] = cpu ? 0 : length * blocks / all;
        x.recorded_ns += static_cast<double>(length);
        could_ns += static_cast<double>(out.device_ns[j]);
        if (const auto ns = static_cast<double>(length - out.device_ns[j]); ns > x.longest_ns) {
          x.longest_ns = ns;
          x.what = short_kernel_name(trace_.names.text(part_.slices.name_id[item.slice]));
        }
      }
      if (x.recorded_ns < kMinLoss * window()) continue;
      x.ratio = could_ns / x.recorded_ns;
      x.price_ns = won(out);
      keep(out, x);
      losses_.push_back(std::move(x));
    }
  }

  // ---- matrix products whose inner axes are not aligned -------------------------------------------------------------

  // Returns the two sizes of each tensor in "\"4,8;8,16\""; none where one is not a matrix.
  static std::vector<std::array<int64_t, 2>> matrices_of(std::string_view shapes) {
    std::vector<std::array<int64_t, 2>> out;
    std::string_view text = trim(shapes);
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
    for (const std::string_view tensor : stageline::split(text, ';')) {
      const std::vector<std::string_view> sizes = stageline::split(tensor, ',');
      if (sizes.size() != 2) return {};
      out.push_back({parse_int(sizes[0]).value_or(0), parse_int(sizes[1]).value_or(0)});
    }
    return out;
  }

  // Products are compared with aligned ones of their type whose work is nearest to the same power of two.
  void find_misaligned() {
    struct Products {
      std::vector<double> aligned, misaligned;       // ns for each multiplication
      std::vector<std::pair<size_t, double>> items;  // misaligned ones, with their multiplications
    };
    std::map<std::pair<StringId, int64_t>, Products> all;
    for (size_t j = 0; j < t_.device.size(); ++j) {
      const auto& item = t_.device[j];
      const TaskFact* task = fact_of(part_.tasks, item.slice);
      const InputFact* inputs = fact_of(part_.inputs, item.slice);
      if (task == nullptr || inputs == nullptr || item.kernel != KernelClass::kComputation) continue;
      if (const std::string_view type = trace_.names.text(task->op_type);
          !type.starts_with("MatMul") && !type.starts_with("BatchMatMul"))
        continue;
      auto of = matrices_of(trace_.names.text(inputs->dims));
      const auto made = matrices_of(trace_.names.text(task->outputs));
      if (of.size() < 2 || made.size() != 1) continue;
      of.resize(2), of.push_back(made[0]);
      // (rows · inner) · (inner · columns) · (rows · columns) is the square of their number, whichever are transposed.
      double square = 1;
      bool aligned = true;
      for (const auto& [outer, inner] : of) {
        square *= static_cast<double>(outer) * static_cast<double>(inner);
        aligned &= inner % kInnerAxis == 0;
      }
      if (!(square > 0)) continue;
      const double count = std::sqrt(square), rate = static_cast<double>(item.end_ns - item.start_ns) / count;
      Products& products = all[{task->op_type, std::lround(std::log2(count))}];
      (aligned ? products.aligned : products.misaligned).push_back(rate);
      if (!aligned) products.items.emplace_back(j, count);
    }
    RankLoss x;
    x.kind = LossKind::kMisaligned;
    TakenOut out;
    out.device_ns.assign(t_.device.size(), -1);
    double could_ns = 0;
    for (auto& [key, products] : all) {
      if (std::min(products.aligned.size(), products.misaligned.size()) < kFewestTwins) continue;
      const double usual = median_of(std::move(products.aligned));
      if (median_of(std::move(products.misaligned)) < kSlowed * usual) continue;
      for (const auto& [j, count] : products.items) {
        const auto& item = t_.device[j];
        const int64_t length = item.end_ns - item.start_ns;
        out.device_ns[j] = std::min<int64_t>(length, std::llround(usual * count));
        x.recorded_ns += static_cast<double>(length), could_ns += static_cast<double>(out.device_ns[j]);
        if (const auto more = static_cast<double>(length - out.device_ns[j]); more > x.longest_ns) {
          x.longest_ns = more;
          x.what = name(fact_of(part_.inputs, item.slice)->dims);
          x.at = item.launch >= 0 ? culprits_.of(t_.host[item.launch].node) : Culprit();
          const uint32_t op = part_.slices.parent[item.slice];
          if (x.at.op.empty() && op != kNoSliceIndex) x.at.op = name(part_.slices.name_id[op]);
        }
      }
    }
    if (!(could_ns > 0) || x.recorded_ns < kMinLoss * window()) return;
    x.ratio = x.recorded_ns / could_ns;
    x.price_ns = won(out);
    keep(out, x);
    losses_.push_back(std::move(x));
  }

  struct Drain {
    size_t loss;
    std::map<OwnerKey, int64_t> then;
  };

  const Trace& trace_;
  const Part& part_;
  const DeviceTimeline& t_;
  const bool keeps_;
  int64_t recorded_ns_ = 0;
  std::vector<Candidate> candidates_;
  std::vector<RankLoss> losses_;
  std::vector<std::vector<bool>> keys_;  // for each loss, while there are only those of idle time
  std::vector<Drain> drains_;
  CulpritFinder culprits_;
};

RankAccount account_of(const Trace& trace, const Part& part, bool truncated) {
  RankAccount a;
  a.rank = part.rank;
  const auto timeline = std::make_shared<const DeviceTimeline>(device_timeline(trace, part));
  const DeviceTimeline& t = *timeline;
  if (t.device.empty() || t.window_ns() <= 0) return a;
  if (trace.slice_count() <= RankAccount::kMaxKeptSlices) a.timeline = timeline;
  a.window_ns = t.window_ns();
  a.steps_ns = t.window_ns() + t.lost_ns;
  a.compute_ns = t.compute_ns;
  a.comm_ns = t.comm_ns;
  a.exposed_comm_ns = t.exposed_comm_ns;
  a.exposed_memory_ns = t.exposed_memory_ns;
  a.other_work_ns = t.other_work_ns;
  for (size_t o = 0; o < kIdleCauses; ++o) a.idle_ns[o] = t.idle_ns[o];
  a.steps = t.step_count;
  int64_t first = t.start_ns, last = t.end_ns;  // after the end of a file that is cut off, nothing is known
  for (size_t i = 0; i < part.slices.size(); ++i) {
    const Category c = trace.categories[part.slices.category_id[i]].kind;
    if (!is_host(c) && !is_device_work(c)) continue;
    first = std::min(first, part.slices.start_ns[i]);
    if (!truncated) last = std::max(last, part.slices.end_ns(i));
  }
  a.before_and_after_ns = t.start_ns - first + last - t.end_ns;
  a.linked = t.linked;
  if (a.linked) a.losses = LossFinder(trace, t, false).find();
  return a;
}

}  // namespace

double RankAccount::all_idle_ns() const { return std::accumulate(idle_ns.begin(), idle_ns.end(), 0.0); }
double RankAccount::idle_of_host_ns() const {
  return all_idle_ns() - idle_ns[IdleCause::kBetween] - idle_ns[IdleCause::kStream];
}

double saved_without(const Trace& trace, const Part& part, const Removed& removed) {
  const DeviceTimeline t = device_timeline(trace, part);
  if (!t.linked) return 0;
  TakenOut out;
  out.keys.assign(t.idle_of_key.size(), false);
  out.wait_nodes.assign(t.nodes.size(), false);
  out.device_ns.assign(t.device.size(), -1);
  const auto shorten = [&](size_t j, int64_t length) {
    int64_t& known = out.device_ns[j];
    if (length >= 0) known = known < 0 ? length : std::min(known, length);
  };
  double beyond_replay = 0, most = 0;  // pauses between short kernels, and half of their time; all that was lost
  for (const RankLoss& loss : LossFinder(trace, t, true).find()) {
    if (!removed.loss(loss)) continue;
    beyond_replay += loss.pauses_ns + loss.fixed_ns / 2;
    most += loss.recorded_ns + loss.fixed_ns / 2;
    for (size_t k = 0; k < loss.out->keys.size(); ++k) out.keys[k] = out.keys[k] || loss.out->keys[k];
    for (size_t k = 0; k < loss.out->wait_nodes.size(); ++k)
      out.wait_nodes[k] = out.wait_nodes[k] || loss.out->wait_nodes[k];
    for (size_t j = 0; j < loss.out->device_ns.size(); ++j) shorten(j, loss.out->device_ns[j]);
  }
  std::vector<double> taken(t.device.size(), 0);
  for (const WindowPiece& piece : window_pieces(t)) {
    const double share = piece.part == WindowPart::kCompute         ? removed.compute
                         : piece.part == WindowPart::kCommunication ? removed.communication
                         : piece.part == WindowPart::kMemory        ? removed.copies
                                                                    : 0;
    if (share > 0) taken[piece.what] += share * piece.ns(), most += share * piece.ns();
  }
  for (size_t j = 0; j < taken.size(); ++j)
    if (taken[j] > 0)
      shorten(j, std::max<int64_t>(0, t.device[j].end_ns - t.device[j].start_ns - std::llround(taken[j])));
  return std::min(replayed_ns(t, {}) - replayed_ns(t, out) + beyond_replay, most);
}

double window_of(const ProfileAccount& account) { return sum_over<double>(account, &RankAccount::window_ns); }

bool is_linked(const ProfileAccount& account) {
  return !account.empty() && std::ranges::all_of(account, [](const RankAccount& a) { return a.linked; });
}

ProfileAccount profile_account(const Trace& trace) {
  const bool truncated = trace.diagnostics.count("kineto.truncated") > 0;
  const std::vector<int32_t>& wanted = trace.slice_filter.ranks;
  std::vector<RankAccount> all(trace.parts.size());
  parallel_for(trace.parts.size(), [&](size_t p) {
    const Part& part = trace.parts[p];
    if (part.slices.has_facts() && part.slices.size() > 0 &&
        (wanted.empty() || std::ranges::binary_search(wanted, part.rank)))
      all[p] = account_of(trace, part, truncated);
  });
  std::erase_if(all, [](const RankAccount& a) { return !(a.window_ns > 0); });
  return all;
}

}  // namespace stageline
