#include "diagnosis/profile/transfer_findings.h"

#include "model/statistics.h"
#include "model/torch_facts.h"
#include "pipeline/sums/stage_costs.h"
#include "profile/expected_transfer.h"
#include "profile/slow_groups.h"

namespace stageline {
namespace {

constexpr double kMinSaving = 0.02;              // share of a step that a change has to save
constexpr int64_t kUsualBucketBytes = 25 << 20;  // of DistributedDataParallel
constexpr double kMostly = 0.5, kHardly = 0.05;
constexpr double kSlower = 1.15;               // median of calls with a property, to those without
constexpr int64_t kStalledNs = 4'000'000'000;  // timeouts after which transports send again are about as long
constexpr double kStalledTimes = 10;
constexpr size_t kFewest = 4;        // calls with a property, and without
constexpr int64_t kAlignment = 512;  // bytes, from which on SDMA of Ascend moves whole lines
constexpr double kMinSpan = 4;       // sizes from which a latency is read are this many times apart
constexpr double kLostShare = 0.01;  // share of the longest span of a rank

struct LinkCause {
  double lost_ns = 0, worst_ratio = 0;
  int64_t links = 0, src = 0, dst = 0;  // src and dst: of the slowest link
  std::string link;
};

bool on_one_machine(const Trace& trace, int64_t a, int64_t b) {
  const auto machine = [&](int64_t rank) {
    const auto at = std::ranges::find(trace.parts, rank, &Part::rank);
    return at == trace.parts.end() ? kUnknown : at->machine;
  };
  return machine(a) != kUnknown && machine(a) == machine(b);
}

// Collectives of one kind in one group, by start.
struct Calls {
  CollectiveKind kind = CollectiveKind::kUnknown;
  const LedgerGroup* group = nullptr;
  std::vector<const LedgerInstance*> list;
  double latency_ns = 0;  // what each takes whatever its size; 0: unknown
  bool measured = false;  // by calls of sizes that are far apart
};

std::string kind_text(CollectiveKind kind) { return std::string(collective_kind_name(kind)); }

const Fabric* fabric_of(const LedgerOfRun& run) {
  return fabric_of_device(device_name(run.torch.trace->parts[run.torch.parts[0]]));
}
TransferRoute route_of(const LedgerOfRun& run, CollectiveKind kind, const LedgerGroup& group, const Fabric* fabric) {
  return {kind, group.size, static_cast<int64_t>(machines_of(run.torch, group.members)), fabric};
}

// The latency by the times of the smallest and the largest of the calls, where their sizes are far apart; else NCCL's
// own estimate for a message of nothing. It is at most what the shortest call takes.
double latency_of(const LedgerOfRun& run, Calls& calls) {
  std::map<int64_t, std::vector<double>> by_size;
  double shortest = 0;
  for (const LedgerInstance* instance : calls.list) {
    const auto took = static_cast<double>(instance->took_ns);
    by_size[instance->bytes].push_back(took);
    shortest = shortest > 0 ? std::min(shortest, took) : took;
  }
  const auto small = static_cast<double>(by_size.begin()->first), large = static_cast<double>(by_size.rbegin()->first);
  calls.measured = large >= kMinSpan * small;
  if (calls.measured) {
    const double least = median_of(by_size.begin()->second), most = median_of(by_size.rbegin()->second);
    return std::clamp(least - (most - least) / (large - small) * small, 0.0, shortest);
  }
  TransferRoute route = route_of(run, calls.kind, *calls.group, fabric_of(run));
  route.nic_gbps = 1;  // a message of one byte asks only for latency
  return route.known() && route.fabric->chips != Fabric::Chips::kOther ? std::min(expected_ns(route, 1), shortest) : 0;
}

std::vector<Calls> calls_of(const LedgerOfRun& run) {
  std::map<std::pair<int32_t, CollectiveKind>, Calls> all;
  for (const LedgerInstance& instance : run.ledger.instances) {
    if (!instance.complete || instance.low >= 0 || instance.group < 0 || instance.bytes <= 0 ||
        !run.ledger.in_steps(instance))
      continue;
    Calls& calls = all[{instance.group, instance.kind}];
    calls.kind = instance.kind, calls.group = &run.ledger.groups[static_cast<size_t>(instance.group)];
    calls.list.push_back(&instance);
  }
  std::vector<Calls> out;
  const auto start = [&](const LedgerInstance* x) { return run.ledger.parts[x->begin].call->start_ns; };
  for (auto& [key, calls] : all) {
    sort_stably(calls.list, {}, start);
    calls.latency_ns = latency_of(run, calls);
    out.push_back(std::move(calls));
  }
  return out;
}

// Small calls that nothing awaits one by one, those that computing waits for, and gradients in one piece.
enum class Batch : uint8_t { kSmall, kAwaited, kBucket };

// The saving of a finding, and the groups in which it arises.
struct Change {
  JobReplay::Shorter shorter;
  const Calls* worst = nullptr;  // that saves most
  double worst_ns = 0;
  void add(const Calls& calls, JobReplay::Shorter list) {
    double sum = 0;
    for (const auto& [call, ns] : list) sum += static_cast<double>(ns);
    if (sum > worst_ns) worst = &calls, worst_ns = sum;
    shorter.insert(shorter.end(), list.begin(), list.end());
  }
};

class TransferFindings {
 public:
  TransferFindings(const LedgerOfRun& run, const ProfileFacts& facts, JobOnce& job)
      : run_(run), f_(facts), job_(job), calls_(calls_of(run)) {}

  void add(std::vector<Finding>& out) {
    add_slow_groups(out);
    Change small, awaited, bucket;
    for (const Calls& calls : calls_) {
      if (has_latency(calls) && !is_awaited(calls)) small.add(calls, without_latency(calls));
      else if (has_latency(calls) && calls.measured && job().usable()) awaited.add(calls, all_latency(calls));
      if (JobReplay::Shorter list = in_pieces(calls); !list.empty()) bucket.add(calls, std::move(list));
    }
    add_change(small, Batch::kSmall, out);
    add_change(awaited, Batch::kAwaited, out);
    add_change(bucket, Batch::kBucket, out);
    add_stalled(out);
    add_slower(
        true, [](const LedgerInstance& instance) { return instance.bytes; },
        [&](const LedgerInstance& instance) { return under_computing(instance); }, out);
    if (f_.npu)
      add_slower(
          false,
          [](const LedgerInstance& instance) {
            return int64_t{std::lround(std::log2(static_cast<double>(instance.bytes)))};
          },
          [](const LedgerInstance& instance) {
            return Is(instance.bytes > kAlignment && instance.bytes % kAlignment != 0);
          },
          out);
  }

 private:
  const LedgerCall& first_call(const LedgerInstance* x) const { return *run_.ledger.parts[x->begin].call; }

  const JobReplay& job() { return job_(); }

  // The share of the windows that is saved. Without a replay, shorter transfers save what of them was exposed.
  double saved(const JobReplay::Shorter& shorter) {
    if (job().usable()) return job().saved_share(shorter);
    double sum = 0;
    std::map<const LedgerCall*, int64_t> by_call(shorter.begin(), shorter.end());
    for (const LedgerInstance& instance : run_.ledger.instances) {
      const auto at = by_call.find(run_.ledger.parts[instance.begin].call);
      for (size_t k = instance.begin; k < instance.end && at != by_call.end(); ++k)
        sum += static_cast<double>(std::min(at->second, run_.ledger.parts[k].exposed_transfer_ns));
    }
    return share_or_zero(sum, f_.whole.span_ns);
  }

  // ---- links ------------------------------------------------------------------------------------------------------

  void add_slow_groups(std::vector<Finding>& out) {
    for (const SlowGroup& group : slow_groups(run_.torch, run_.ledger)) {
      Finding x;
      x.id = "comm.slow_link";
      x.weight = saved(group.excess);
      x.value = fixed(group.ratio, 2) + "×";
      x.price.saving_ns = x.weight * f_.step_ns;
      x.places = {{.kind = PlaceKind::kCollective, .ranks = group.ranks}};
      Args args;
      args.set("ranks", rank_ranges(group.ranks)).set("ratio", x.value).count("siblings", group.siblings);
      args.set("kind", kind_text(group.kind)).set("bytes", human_bytes(static_cast<double>(group.bytes)));
      args.set("longer", grouped(group.longer)).set("count", grouped(group.count)).flag("one_host", group.machines < 2);
      args.set("own", fixed(group.own_gbps, 1)).set("others", fixed(group.others_gbps, 1));
      say(x, "profile.link.group", args);
      x.value_note = words("profile.link.note");
      out.push_back(std::move(x));
    }
  }

  // ---- sizes ------------------------------------------------------------------------------------------------------

  // Returns true when computing usually waits for a call before the next one begins. Such calls cannot become one.
  bool is_awaited(const Calls& calls) {
    if (!job().usable()) return true;
    const uint32_t rank = first_call(calls.list[0]).rank_index;
    const DeviceTimeline& timeline = job().timelines()[rank];
    std::map<uint32_t, int32_t> item_of;  // by slice
    std::vector<int64_t> awaited(timeline.device.size(), INT64_MAX);
    for (size_t j = 0; j < timeline.device.size(); ++j) {
      const DeviceTimeline::DeviceItem& item = timeline.device[j];
      item_of[item.slice] = static_cast<int32_t>(j);
      if (item.kernel != KernelClass::kComputation) continue;
      for (const int32_t before : {item.before, item.other})
        if (before >= 0) awaited[before] = std::min(awaited[before], item.start_ns);
    }
    int64_t times = 0;
    for (size_t k = 0; k + 1 < calls.list.size(); ++k) {
      const auto own = item_of.find(first_call(calls.list[k]).slice);
      const auto next = item_of.find(first_call(calls.list[k + 1]).slice);
      if (own == item_of.end() || next == item_of.end()) continue;
      times += awaited[own->second] < timeline.device[next->second].start_ns;
    }
    return times >= kMostly * static_cast<double>(calls.list.size());
  }

  // Returns true when the latency of calls that fill no bucket may cost enough.
  bool has_latency(const Calls& calls) const {
    double most = 0;
    for (const LedgerInstance* instance : calls.list)
      if (instance->bytes < kUsualBucketBytes) most += calls.latency_ns;
    return most * static_cast<double>(calls.group->size) >= kMinLoss * f_.whole.span_ns;
  }

  JobReplay::Shorter all_latency(const Calls& calls) const {
    JobReplay::Shorter out;
    for (const LedgerInstance* instance : calls.list)
      if (instance->bytes < kUsualBucketBytes) out.emplace_back(&first_call(instance), std::llround(calls.latency_ns));
    return out;
  }

  // The latency of all calls but those at which a usual bucket is full.
  JobReplay::Shorter without_latency(const Calls& calls) {
    JobReplay::Shorter out;
    int64_t sum = 0;
    int32_t step = INT32_MIN;
    for (const LedgerInstance* instance : calls.list) {
      const LedgerCall& call = first_call(instance);
      if (call.step != std::exchange(step, call.step)) sum = 0;
      if (sum > 0) out.emplace_back(&call, std::llround(calls.latency_ns));
      sum = sum + instance->bytes >= kUsualBucketBytes ? 0 : sum + instance->bytes;
    }
    return out;
  }

  // Gradients of which most go in one piece after all were computed: in usual buckets, all but the last can start while
  // the others are computed.
  JobReplay::Shorter in_pieces(const Calls& calls) {
    if (calls.kind != CollectiveKind::kAllReduce && calls.kind != CollectiveKind::kReduceScatter) return {};
    JobReplay::Shorter out;
    double exposed = 0;
    std::map<int32_t, std::vector<const LedgerInstance*>> steps;
    for (const LedgerInstance* instance : calls.list) {
      steps[first_call(instance).step].push_back(instance);
      for (size_t k = instance->begin; k < instance->end; ++k)
        exposed += static_cast<double>(run_.ledger.parts[k].exposed_transfer_ns);
    }
    if (exposed < kMinLoss * f_.whole.span_ns) return {};
    for (const auto& [step, list] : steps) {
      const LedgerInstance* largest = *std::ranges::max_element(list, {}, &LedgerInstance::bytes);
      const auto sum = sum_over<double>(list, [](const LedgerInstance* x) { return static_cast<double>(x->bytes); });
      if (static_cast<double>(largest->bytes) < kMostly * sum || largest != list.back()) return {};
      const int64_t pieces = largest->bytes / kUsualBucketBytes;
      if (pieces < 2) return {};
      const double later = static_cast<double>(largest->took_ns) * (1 - 1 / static_cast<double>(pieces));
      out.emplace_back(&first_call(largest), std::llround(std::min(later, computed_before(first_call(largest)) / 2)));
    }
    return out;
  }

  // Time that a rank computes in the step before a call, since the communication before it ended.
  double computed_before(const LedgerCall& call) {
    if (!job().usable()) return 0;
    const DeviceTimeline& timeline = job().timelines()[call.rank_index];
    const std::vector<uint16_t>& steps = timeline.part->slices.step;
    const auto own = std::ranges::find(timeline.device, call.slice, &DeviceTimeline::DeviceItem::slice);
    if (own == timeline.device.end()) return 0;
    int64_t computed = 0;
    for (auto item = own; item != timeline.device.begin();) {
      --item;
      if (!steps.empty() && steps[item->slice] != steps[call.slice]) break;
      if (item->kernel == KernelClass::kCommunication) break;
      if (item->kernel == KernelClass::kComputation) computed += std::min(item->end_ns, own->start_ns) - item->start_ns;
    }
    return static_cast<double>(computed);
  }

  // Sets what a change saves and where; returns false where it saves too little.
  bool price(const Change& change, Finding& finding, double min = kMinSaving) {
    finding.weight = change.worst ? saved(change.shorter) : 0;
    if (finding.weight < min) return false;
    finding.price.saving_ns = finding.weight * f_.step_ns;
    finding.places = {{.kind = PlaceKind::kCollective, .ranks = change.worst->group->members}};
    return true;
  }

  // ---- transfers of seconds ---------------------------------------------------------------------------------------

  // Calls that take seconds, and many times as long as others of the same size.
  void add_stalled(std::vector<Finding>& out) {
    Change change;
    int64_t longest_ns = 0;
    for (const Calls& calls : calls_) {
      std::map<int64_t, std::vector<double>> took;  // by size
      for (const LedgerInstance* x : calls.list) took[x->bytes].push_back(static_cast<double>(x->took_ns));
      std::map<int64_t, double> usual;
      for (auto& [size, all] : took) usual[size] = median_of(std::move(all));
      JobReplay::Shorter list;
      for (const LedgerInstance* x : calls.list) {
        if (x->took_ns < kStalledNs || static_cast<double>(x->took_ns) < kStalledTimes * usual[x->bytes]) continue;
        list.emplace_back(&first_call(x), x->took_ns - std::llround(usual[x->bytes]));
        longest_ns = std::max(longest_ns, x->took_ns);
      }
      if (!list.empty()) change.add(calls, std::move(list));
    }
    Finding x;
    x.id = "comm.stalled";
    if (!price(change, x)) return;
    x.value = human_duration(static_cast<double>(longest_ns));
    Args args;
    args.set("kind", kind_text(change.worst->kind)).set("ranks", rank_ranges(change.worst->group->members));
    say(x, "profile.stalled", args.set("longest", x.value).count("count", std::ssize(change.shorter)));
    out.push_back(std::move(x));
  }

  // ---- a property that makes transfers longer ---------------------------------------------------------------------

  using Is = std::optional<bool>;  // none: neither the one nor the other

  // Returns true when a rank computes during most of the transfer, false when none does during any of it.
  Is under_computing(const LedgerInstance& instance) const {
    double most = 0;
    for (size_t k = instance.begin; k < instance.end; ++k) {
      const LedgerPart& part = run_.ledger.parts[k];
      if (part.transfer_ns > 0) most = std::max(most, 1 - share_or_zero(part.exposed_transfer_ns, part.transfer_ns));
    }
    return most >= kMostly ? Is(true) : most <= kHardly ? Is(false) : Is();
  }

  // Compares calls that have the property with those of the same group, kind and class of sizes that have not, by the
  // time beyond the latency for each byte.
  template <class ClassOf, class Has>
  void add_slower(bool computing, ClassOf class_of, Has has, std::vector<Finding>& out) {
    Change change;
    double worst_ratio = 0;
    for (const Calls& calls : calls_) {
      const auto bytes_ns = [&](const LedgerInstance* x) { return static_cast<double>(x->took_ns) - calls.latency_ns; };
      std::map<int64_t, std::vector<double>> without;  // ns for each byte, by class
      for (const LedgerInstance* x : calls.list)
        if (has(*x) == false) without[class_of(*x)].push_back(share_or_zero(bytes_ns(x), x->bytes));
      std::erase_if(without, [](const auto& of) { return of.second.size() < kFewest; });
      std::map<int64_t, double> usual;
      for (auto& [size, rates] : without) usual[size] = median_of(std::move(rates));
      std::vector<double> ratios;
      JobReplay::Shorter shorter;
      for (const LedgerInstance* x : calls.list) {
        const auto at = usual.find(class_of(*x));
        if (at == usual.end() || has(*x) != true) continue;
        const double more = bytes_ns(x) - at->second * static_cast<double>(x->bytes);
        ratios.push_back(share_or_zero(x->took_ns, static_cast<double>(x->took_ns) - more));
        if (more > 0) shorter.emplace_back(&first_call(x), std::llround(more));
      }
      if (ratios.size() < kFewest) continue;
      const double ratio = median_of(std::move(ratios));
      if (ratio < kSlower) continue;
      change.add(calls, std::move(shorter));
      if (change.worst == &calls) worst_ratio = ratio;
    }
    Finding x;
    x.id = computing ? "comm.slowed" : "comm.unaligned";
    if (!price(change, x)) return;
    x.value = fixed(worst_ratio, 2) + "×";
    Args args;
    args.set("ratio", x.value).set("kind", kind_text(change.worst->kind)).set("alignment", kAlignment);
    args.set("ranks", rank_ranges(change.worst->group->members)).set("count", grouped(std::ssize(change.shorter)));
    say(x, computing ? "profile.slowed" : "profile.unaligned", args);
    out.push_back(std::move(x));
  }

  void add_change(const Change& change, Batch of, std::vector<Finding>& out) {
    Finding x;
    x.id = of == Batch::kSmall ? "comm.small" : of == Batch::kAwaited ? "comm.latency" : "comm.bucket";
    if (!price(change, x, of == Batch::kAwaited ? kMinSaving : kMinLoss)) return;
    if (of == Batch::kAwaited) x.price.saving_ns = 0;  // a cost: latency cannot be removed
    x.value = percent(x.weight);
    std::vector<double> sizes, took;
    for (const LedgerInstance* call : change.worst->list)
      sizes.push_back(static_cast<double>(call->bytes)), took.push_back(static_cast<double>(call->took_ns));
    const double per_step = static_cast<double>(sizes.size()) / static_cast<double>(std::max<size_t>(1, f_.step_count));
    Args args;
    args.set("kind", kind_text(change.worst->kind)).set("ranks", rank_ranges(change.worst->group->members));
    args.set("calls", fixed(per_step, per_step < 10 ? 1 : 0)).set("bytes", human_bytes(median_of(std::move(sizes))));
    args.set("each", human_duration(median_of(std::move(took))));
    args.set("latency", human_duration(change.worst->latency_ns)).flag("steps", f_.step_count > 0);
    args.set("bucket", human_bytes(static_cast<double>(kUsualBucketBytes)));
    say(x, of == Batch::kSmall ? "profile.small" : of == Batch::kAwaited ? "profile.latency" : "profile.bucket", args);
    out.push_back(std::move(x));
  }

  const LedgerOfRun& run_;
  const ProfileFacts& f_;
  JobOnce& job_;
  const std::vector<Calls> calls_;
};

}  // namespace

void add_link_findings(const Trace& trace, const ProfileFacts& facts, const ProfileSums& sums,
                       std::vector<Finding>& out) {
  // key: reading, and the rank or the row that it is about.
  std::map<std::pair<std::string_view, int64_t>, LinkCause> causes;
  for (const SlowLinkSum& link : sums.slow_links) {
    const int64_t of = link.reading.starts_with("source") ? link.src
                       : link.reading == "destination"    ? link.dst
                                                          : &link - sums.slow_links.data();
    LinkCause& cause = causes[{link.reading, of}];
    cause.lost_ns += link.lost_ns;
    ++cause.links;
    if (link.ratio <= cause.worst_ratio) continue;
    cause.worst_ratio = link.ratio;
    cause.src = link.src;
    cause.dst = link.dst;
    cause.link = link.link;
  }
  const auto worst = std::ranges::max_element(causes, {}, [](const auto& a) { return a.second.lost_ns; });
  double span = 0;
  for (const RankFacts& rank : facts.ranks) span = std::max(span, rank.span_ns);
  if (worst == causes.end() || !(span > 0) || worst->second.lost_ns < kLostShare * span) return;
  const auto& [key, cause] = *worst;
  Finding x;
  x.id = "comm.slow_link";
  x.weight = std::min(1.0, cause.lost_ns / span);
  x.value = fixed(cause.worst_ratio, 2) + "×";
  Args args;
  args.set("rank", key.second).set("from", cause.src).set("to", cause.dst).set("link", cause.link);
  args.flag("one_host", on_one_machine(trace, cause.src, cause.dst));
  args.count("count", cause.links).set("lost", time_per_step(facts, cause.lost_ns));
  const bool one_end = key.first != "link";
  if (one_end) x.places = {{.kind = PlaceKind::kRanks, .ranks = {static_cast<int32_t>(key.second)}}};
  else
    x.places = {
        {.kind = PlaceKind::kLink, .ranks = {static_cast<int32_t>(cause.src), static_cast<int32_t>(cause.dst)}}};
  x.title = words(key.first.starts_with("source") ? "profile.link.source"
                  : key.first == "destination"    ? "profile.link.destination"
                                                  : "profile.link.pair",
                  args);
  x.detail = words("profile.link.detail", args);
  x.value_note = words("profile.link.note");
  out.push_back(std::move(x));
}

void add_transfer_findings(const LedgerOfRun& run, const ProfileFacts& facts, JobOnce& job, std::vector<Finding>& out) {
  if (run.ledger.instances.empty() || !(facts.whole.span_ns > 0)) return;
  TransferFindings(run, facts, job).add(out);
}

Text rate_of_exposed(const LedgerOfRun& run) {
  struct Sum {
    double exposed_ns = 0, took_ns = 0, bus_bytes = 0, expected_ns = 0;
    TransferRoute route;
  };
  std::map<std::tuple<CollectiveKind, int64_t, int64_t>, Sum> sums;
  const Fabric* const fabric = fabric_of(run);
  for (const LedgerInstance& x : run.ledger.instances) {
    if (!x.complete || x.low >= 0 || x.group < 0 || x.bytes <= 0 || x.basis == TransferBasis::kAtLeast ||
        !run.ledger.in_steps(x))
      continue;
    const TransferRoute route = route_of(run, x.kind, run.ledger.groups[static_cast<size_t>(x.group)], fabric);
    Sum& sum = sums[{x.kind, route.ranks, route.hosts}];
    sum.route = route;
    sum.took_ns += static_cast<double>(x.took_ns), sum.bus_bytes += x.bus_bytes;
    if (route.known() && route.fabric->chips != Fabric::Chips::kOther) sum.expected_ns += expected_ns(route, x.bytes);
    for (size_t k = x.begin; k < x.end; ++k)
      sum.exposed_ns += static_cast<double>(run.ledger.parts[k].exposed_transfer_ns);
  }
  const auto most = std::ranges::max_element(sums, {}, [](const auto& of) { return of.second.exposed_ns; });
  // A group without members has no rate of the bus.
  if (most == sums.end() || !(most->second.took_ns > 0) || most->second.route.ranks < 2) return {};
  const Sum& sum = most->second;
  Args args;
  args.set("kind", kind_text(sum.route.kind)).set("ranks", sum.route.ranks).count("hosts", sum.route.hosts);
  args.set("rate", fixed(sum.bus_bytes / sum.took_ns, 1));
  args.set("expected", sum.expected_ns > 0 ? fixed(sum.bus_bytes / sum.expected_ns, 1) : "");
  Text rate = words("profile.exposed.rate", args.flag("across", sum.route.hosts > 1));
  // Transfers that take far longer than they need are no matter of when they start, or of how much is sent.
  constexpr double kFarFromEstimate = 2;
  const double times = share_or_zero(sum.took_ns, sum.expected_ns);
  if (times >= kFarFromEstimate)
    rate += words("profile.exposed.advice.slow", Args().set("times", fixed(times, 1) + "×"));
  return rate;
}

}  // namespace stageline
