#include "diagnosis/profile/transfer_findings.h"

#include "diagnosis/profile/transfer_calls.h"
#include "model/statistics.h"
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

// Sizes of calls that cost time: small calls that nothing awaits one by one, those that computing waits for, and
// gradients in one piece.
struct Batch {
  const char *id, *words;
  double min_saving;     // share of a step
  bool is_cost = false;  // latency cannot be removed, so nothing is saved
};
constexpr Batch kSmall = {.id = "comm.small", .words = "profile.small", .min_saving = kMinLoss};
constexpr Batch kAwaited = {
    .id = "comm.latency", .words = "profile.latency", .min_saving = kMinSaving, .is_cost = true};
constexpr Batch kBucket = {.id = "comm.bucket", .words = "profile.bucket", .min_saving = kMinLoss};

// The saving of a finding, and the groups in which it arises.
struct Change {
  JobReplay::Shorter shorter;
  const TransferCalls* worst = nullptr;  // that saves most
  double worst_ns = 0;
  void add(const TransferCalls& calls, JobReplay::Shorter list) {
    double sum = sum_over<double>(list, [&](const auto& entry) { return entry.second; });
    if (sum > worst_ns) worst = &calls, worst_ns = sum;
    shorter.insert(shorter.end(), list.begin(), list.end());
  }
};

using Is = std::optional<bool>;  // none: neither the one nor the other

// A property that makes transfers longer.
struct Property {
  const char *id, *words;
  std::function<int64_t(const LedgerInstance&)> size_class;
  std::function<Is(const LedgerInstance&)> has;
};

int64_t size_class(const LedgerInstance& x) { return std::lround(std::log2(static_cast<double>(x.bytes))); }
Is is_unaligned(const LedgerInstance& x) { return x.bytes > kAlignment && x.bytes % kAlignment != 0; }

class TransferFindings {
 public:
  TransferFindings(const LedgerOfRun& run, const ProfileFacts& facts, JobOnce& job)
      : run_(run), f_(facts), job_(job), calls_(transfer_calls(run)) {}

  void add(std::vector<Finding>& out) {
    add_slow_groups(out);
    Change small, awaited, bucket;
    for (const TransferCalls& calls : calls_) {
      if (has_latency(calls) && !is_awaited(calls)) small.add(calls, without_latency(calls));
      else if (has_latency(calls) && calls.measured && job().usable()) awaited.add(calls, all_latency(calls));
      if (JobReplay::Shorter list = in_pieces(calls); !list.empty()) bucket.add(calls, std::move(list));
    }
    add_change(small, kSmall, out);
    add_change(awaited, kAwaited, out);
    add_change(bucket, kBucket, out);
    add_stalled(out);
    const auto computes = [&](const LedgerInstance& x) { return under_computing(x); };
    add_slower({.id = "comm.slowed", .words = "profile.slowed", .size_class = &LedgerInstance::bytes, .has = computes},
               out);
    if (f_.npu)
      add_slower({.id = "comm.unaligned", .words = "profile.unaligned", .size_class = size_class, .has = is_unaligned},
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
        sum += std::min(at->second, run_.ledger.parts[k].exposed_transfer_ns);
    }
    return share_or_zero(sum, f_.whole.span_ns);
  }

  // ---- links ------------------------------------------------------------------------------------------------------

  void add_slow_groups(std::vector<Finding>& out) {
    for (const SlowGroup& group : slow_groups(run_.torch, run_.ledger)) {
      Finding x{.id = "comm.slow_link", .weight = saved(group.excess), .value = fixed(group.ratio, 2) + "×"};
      x.price.saving_ns = x.weight * f_.step_ns;
      x.places = {{.kind = PlaceKind::kCollective, .ranks = group.ranks}};
      Args args;
      args.set("ranks", rank_ranges(group.ranks)).set("ratio", x.value).count("siblings", group.siblings);
      args.set("kind", kind_text(group.kind)).set("bytes", human_bytes(group.bytes));
      args.set("longer", grouped(group.longer)).set("count", grouped(group.count)).flag("one_host", group.machines < 2);
      args.set("own", fixed(group.own_gbps, 1)).set("others", fixed(group.others_gbps, 1));
      say(x, "profile.link.group", args);
      x.value_note = words("profile.link.note");
      out.push_back(std::move(x));
    }
  }

  // ---- sizes ------------------------------------------------------------------------------------------------------

  // Returns true when computing usually waits for a call before the next one begins. Such calls cannot become one.
  bool is_awaited(const TransferCalls& calls) {
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
    return times >= kMostly * calls.list.size();
  }

  // Returns true when the latency of calls that fill no bucket may cost enough.
  bool has_latency(const TransferCalls& calls) const {
    double most = 0;
    for (const LedgerInstance* instance : calls.list)
      if (instance->bytes < kUsualBucketBytes) most += calls.latency_ns;
    return most * calls.group->size >= kMinLoss * f_.whole.span_ns;
  }

  JobReplay::Shorter all_latency(const TransferCalls& calls) const {
    JobReplay::Shorter out;
    for (const LedgerInstance* instance : calls.list)
      if (instance->bytes < kUsualBucketBytes) out.emplace_back(&first_call(instance), std::llround(calls.latency_ns));
    return out;
  }

  // The latency of all calls but those at which a usual bucket is full.
  JobReplay::Shorter without_latency(const TransferCalls& calls) {
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
  JobReplay::Shorter in_pieces(const TransferCalls& calls) {
    if (calls.kind != CollectiveKind::kAllReduce && calls.kind != CollectiveKind::kReduceScatter) return {};
    JobReplay::Shorter out;
    double exposed = 0;
    std::map<int32_t, std::vector<const LedgerInstance*>> steps;
    for (const LedgerInstance* instance : calls.list) {
      steps[first_call(instance).step].push_back(instance);
      for (size_t k = instance->begin; k < instance->end; ++k) exposed += run_.ledger.parts[k].exposed_transfer_ns;
    }
    if (exposed < kMinLoss * f_.whole.span_ns) return {};
    for (const auto& [step, list] : steps) {
      const LedgerInstance* largest = *std::ranges::max_element(list, {}, &LedgerInstance::bytes);
      const auto sum = sum_over<double>(list, &LedgerInstance::bytes);
      if (largest->bytes < kMostly * sum || largest != list.back()) return {};
      const int64_t pieces = largest->bytes / kUsualBucketBytes;
      if (pieces < 2) return {};
      const double later = largest->took_ns * (1 - 1.0 / pieces);
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
    return computed;
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
    for (const TransferCalls& calls : calls_) {
      std::map<int64_t, std::vector<double>> took;  // by size
      for (const LedgerInstance* x : calls.list) took[x->bytes].push_back(x->took_ns);
      std::map<int64_t, double> usual;
      for (auto& [size, all] : took) usual[size] = median_of(std::move(all));
      JobReplay::Shorter list;
      for (const LedgerInstance* x : calls.list) {
        if (x->took_ns < kStalledNs || x->took_ns < kStalledTimes * usual[x->bytes]) continue;
        list.emplace_back(&first_call(x), x->took_ns - std::llround(usual[x->bytes]));
        longest_ns = std::max(longest_ns, x->took_ns);
      }
      if (!list.empty()) change.add(calls, std::move(list));
    }
    Finding x;
    x.id = "comm.stalled";
    if (!price(change, x)) return;
    x.value = human_duration(longest_ns);
    Args args;
    args.set("kind", kind_text(change.worst->kind)).set("ranks", rank_ranges(change.worst->group->members));
    say(x, "profile.stalled", args.set("longest", x.value).count("count", std::ssize(change.shorter)));
    out.push_back(std::move(x));
  }

  // ---- a property that makes transfers longer ---------------------------------------------------------------------

  // Returns true when a rank computes during most of the transfer, false when none does during any of it.
  Is under_computing(const LedgerInstance& instance) const {
    double most = 0;
    for (size_t k = instance.begin; k < instance.end; ++k) {
      const LedgerPart& part = run_.ledger.parts[k];
      if (part.transfer_ns > 0) most = std::max(most, 1 - share_or_zero(part.exposed_transfer_ns, part.transfer_ns));
    }
    return most >= kMostly ? Is(true) : most <= kHardly ? Is(false) : Is();
  }

  // The usual time beyond the latency for each byte of calls without the property, by class of sizes.
  std::map<int64_t, double> usual_rates(const TransferCalls& calls, const Property& property) const {
    std::map<int64_t, std::vector<double>> without;
    for (const LedgerInstance* x : calls.list)
      if (property.has(*x) == false)
        without[property.size_class(*x)].push_back(share_or_zero(x->took_ns - calls.latency_ns, x->bytes));
    std::map<int64_t, double> usual;
    for (auto& [size, rates] : without)
      if (rates.size() >= kFewest) usual[size] = median_of(std::move(rates));
    return usual;
  }

  // Compares calls that have the property with those of the same group, kind and class of sizes that have not, by the
  // time beyond the latency for each byte.
  void add_slower(const Property& property, std::vector<Finding>& out) {
    Change change;
    double worst_ratio = 0;
    for (const TransferCalls& calls : calls_) {
      const std::map<int64_t, double> usual = usual_rates(calls, property);
      std::vector<double> ratios;
      JobReplay::Shorter shorter;
      for (const LedgerInstance* x : calls.list) {
        const auto at = usual.find(property.size_class(*x));
        if (at == usual.end() || property.has(*x) != true) continue;
        const double more = x->took_ns - calls.latency_ns - at->second * x->bytes;
        ratios.push_back(share_or_zero(x->took_ns, x->took_ns - more));
        if (more > 0) shorter.emplace_back(&first_call(x), std::llround(more));
      }
      if (ratios.size() < kFewest) continue;
      const double ratio = median_of(std::move(ratios));
      if (ratio < kSlower) continue;
      change.add(calls, std::move(shorter));
      if (change.worst == &calls) worst_ratio = ratio;
    }
    Finding x;
    x.id = property.id;
    if (!price(change, x)) return;
    x.value = fixed(worst_ratio, 2) + "×";
    Args args;
    args.set("ratio", x.value).set("kind", kind_text(change.worst->kind)).set("alignment", kAlignment);
    args.set("ranks", rank_ranges(change.worst->group->members)).set("count", grouped(std::ssize(change.shorter)));
    say(x, property.words, args);
    out.push_back(std::move(x));
  }

  void add_change(const Change& change, const Batch& of, std::vector<Finding>& out) {
    Finding x;
    x.id = of.id;
    if (!price(change, x, of.min_saving)) return;
    if (of.is_cost) x.price.saving_ns = 0;
    x.value = percent(x.weight);
    std::vector<double> sizes, took;
    for (const LedgerInstance* call : change.worst->list) sizes.push_back(call->bytes), took.push_back(call->took_ns);
    const double per_step = 1.0 * sizes.size() / std::max<size_t>(1, f_.step_count);
    Args args;
    args.set("kind", kind_text(change.worst->kind)).set("ranks", rank_ranges(change.worst->group->members));
    args.set("calls", fixed(per_step, per_step < 10 ? 1 : 0)).set("bytes", human_bytes(median_of(std::move(sizes))));
    args.set("each", human_duration(median_of(std::move(took))));
    args.set("latency", human_duration(change.worst->latency_ns)).flag("steps", f_.step_count > 0);
    args.set("bucket", human_bytes(kUsualBucketBytes));
    say(x, of.words, args);
    out.push_back(std::move(x));
  }

  const LedgerOfRun& run_;
  const ProfileFacts& f_;
  JobOnce& job_;
  const std::vector<TransferCalls> calls_;
};

}  // namespace

void add_transfer_findings(const LedgerOfRun& run, const ProfileFacts& facts, JobOnce& job, std::vector<Finding>& out) {
  if (run.ledger.instances.empty() || !(facts.whole.span_ns > 0)) return;
  TransferFindings(run, facts, job).add(out);
}

}  // namespace stageline
