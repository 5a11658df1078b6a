#include "diagnosis/profile/finding_parts.h"
#include "model/message_names.h"
#include "model/statistics.h"

namespace stageline {
namespace {

// Every program feeds its device, loads its input and sometimes waits for a number, so these are reported from a
// twentieth on. Python and operators between launches are reported sooner, losses that no healthy step has soonest:
// waits after most kernels are among them.
constexpr double kUsualShare = 0.05, kWorkShare = 0.03, kFaultShare = 0.02, kContentionShare = 0.03;
constexpr double kOneRank = 2;  // a rank that loses this many times the median of the others is named
constexpr double kOnce = 0.5;   // a piece that is this share of a loss is reported as a single event

bool is_of_weak_kernels(const RankLoss& x) {
  return x.kind == LossKind::kAiCpu || x.kind == LossKind::kFewCores || x.kind == LossKind::kMisaligned;
}

double min_share(const RankLoss& x) {
  if (x.kind == LossKind::kContention) return kContentionShare;
  if (x.waits > 0 || is_of_weak_kernels(x)) return kFaultShare;
  if (x.kind != LossKind::kIdle) return kUsualShare;
  switch (x.owner) {
    case IdleCause::kCollector:
    case IdleCause::kAllocator:
    case IdleCause::kHostCollective:
    case IdleCause::kBlocked: return kFaultShare;
    case IdleCause::kWork: return kWorkShare;
    default: return kUsualShare;
  }
}

// A loss, joined over all ranks.
struct JoinedLoss {
  RankLoss worst;  // of the rank that loses most by it
  double worst_share = 0, worst_window_ns = 0;
  int32_t rank = 0;
  bool one_rank = false;  // that rank loses far more than the others
  double share = 0;       // share of a step
  double caused_share = 0;
  double recorded_share = 0;
};

std::string join_key(const RankLoss& x) {
  const Culprit& c = x.at;
  return std::to_string(static_cast<int>(x.kind)) + "|" + std::to_string(static_cast<int>(x.owner)) + "|" + c.call +
         "|" + c.op + "|" + c.range + "|" + c.frame + "|" +
         (x.kind == LossKind::kIdle || is_of_weak_kernels(x) ? "" : x.what);
}

// Ranks that meet in collectives wait for the worst of them, so its loss counts, but at most what they save if they do
// not wait for it. Other ranks lose the mean.
std::vector<JoinedLoss> join_ranks(const ProfileFacts& facts, const ProfileAccount& account, JobOnce& job) {
  std::map<std::string, JoinedLoss> joined;
  std::map<std::string, std::vector<double>> shares;
  for (const RankAccount& rank : account)
    for (const RankLoss& x : rank.losses) {
      const std::string key = join_key(x);
      JoinedLoss& j = joined[key];
      const double share = x.price_ns / rank.window_ns;
      shares[key].push_back(share);
      j.caused_share += x.caused_ns / rank.window_ns / account.size();
      j.recorded_share += x.recorded_ns / rank.window_ns / account.size();
      if (share <= j.worst_share) continue;
      j.worst_share = share;
      j.worst_window_ns = rank.window_ns;
      j.worst = x;
      j.rank = rank.rank;
    }
  std::vector<JoinedLoss> out;
  for (auto& [key, j] : joined) {
    std::vector<double>& all = shares[key];
    const double sum = sum_over<double>(all);
    all.resize(account.size(), 0);  // ranks without this loss count as 0
    std::ranges::sort(all);
    all.pop_back();
    j.one_rank = !all.empty() && j.worst_share > kOneRank * median_of(all);
    const bool waited = j.one_rank && facts.whole.comm_ns > 0;
    j.share = waited ? j.worst_share : sum / account.size();
    if (waited && j.share >= min_share(j.worst) && job().usable())
      j.share = std::min(j.share, job().saved_by_punctual(j.rank));
    if (j.share >= min_share(j.worst)) out.push_back(std::move(j));
  }
  sort_stably(out, std::greater(), &JoinedLoss::share);
  return out;
}

// The finding that reports a loss, and its sentence.
struct Reported {
  const char *id, *sentence;
};

Reported reported_by(const RankLoss& x) {
  if (x.kind == LossKind::kDrain) return {"host.sync", "profile.loss.drain"};
  switch (x.owner) {
    case IdleCause::kInput: return {"input.loading", "profile.loss.input"};
    case IdleCause::kCollector: return {"host.collector", "profile.loss.collector"};
    case IdleCause::kAllocator: return {"host.allocator", "profile.loss.allocator"};
    case IdleCause::kHostCollective: return {"host.collective", "profile.loss.hosts"};
    case IdleCause::kBlocked: return {"host.blocked", "profile.loss.blocked"};
    case IdleCause::kWork: return {"host.busy", "profile.loss.work"};
    case IdleCause::kDispatch: return {"launch.bound", "profile.loss.launch"};
    case IdleCause::kUnseen:
    case IdleCause::kBetween:
    case IdleCause::kStream: break;
  }
  return {"device.idle", "profile.loss.unseen"};
}

// A message, a barrier or a collective of MPI, in which the host does nothing but wait.
bool waits_for_peer(const Culprit& at) {
  for (const std::string* name : {&at.call, &at.op, &at.range}) {
    const bool meets = is_message_name(*name) || name->find("barrier") != std::string::npos;
    if (name->starts_with("MPI_") || name->starts_with("mpi:") || (meets && is_communication_call(*name))) return true;
  }
  return false;
}

// Adds what makes the host launch faster and is not already in use.
void advise_larger_kernels(const ProfileFacts& facts, const RankLoss& loss, Finding& finding) {
  std::vector<Text> means;
  // This is the range that torch puts around Optimizer.step() and zero_grad().
  if (loss.at.range.starts_with("Optimizer.") && !facts.fused_optimizer)
    means.push_back(words("profile.means.optimizer"));
  const bool xla = facts.recorder == "xplane";  // it compiles, and has its own graphs
  if (!facts.compiled && !xla) means.push_back(words("profile.means.compile"));
  if (!facts.graphs && !xla) means.push_back(device_graphs(facts));
  if (means.empty()) means.push_back(words("profile.means.batches"));
  finding.detail += words("profile.fewer_kernels", Args().set("means", joined(means, words("list.comma"))));
}

// Adds what would help, with options of the profiler that the run was made with.
void advise(const ProfileFacts& facts, const RankLoss& loss, const std::string& sentence, Finding& finding) {
  if (facts.logs_much && (finding.id == "host.busy" || finding.id == "launch.bound"))
    finding.detail += words("profile.loss.logs");
  if (facts.fixed_segments && finding.id == "host.allocator") finding.detail += words("profile.loss.segments");
  std::string advice = sentence + ".advice";
  if (loss.kind == LossKind::kIdle) {
    if (loss.owner == IdleCause::kInput) advice = loader_advice(facts);
    if (loss.owner == IdleCause::kDispatch || loss.of_model) return advise_larger_kernels(facts, loss, finding);
    if (loss.owner == IdleCause::kHostCollective && waits_for_peer(loss.at)) advice = "profile.loss.peer.advice";
    if (loss.at.call == "aclopCompileAndExecute") {
      if (facts.changing_kinds >= 0)
        finding.detail +=
            words("profile.loss.shapes", Args().set("kinds", facts.changing_kinds).set("most", facts.changing_most));
      advice = "profile.loss.compile.advice";
    }
    if (sentence == "profile.loss.unseen") advice = "profile.loss.unseen." + std::string(facts.recorder);
  }
  // A trace can only show a collection that the program itself calls, or a range that the program puts around one.
  const bool called = loss.at.call.starts_with("<built-in ");
  if (facts.launches_block && (finding.id == "host.sync" || finding.id == "host.blocked"))
    finding.detail += words("profile.loss.launches_block");
  if (has_words(advice))
    finding.detail += words(
        advice,
        Args().flag("called", called).flag("alone", facts.ranks.size() < 2).flag("fixed", facts.changing_kinds == 0));
}

void say_place(const ProfileFacts& facts, const JoinedLoss& j, Finding& finding) {
  const RankLoss& loss = j.worst;
  const bool once = loss.longest_ns > kOnce * loss.recorded_ns;
  const std::string part = percent(share_or_zero(loss.longest_ns, loss.recorded_ns));
  if (once && loss.longest_step >= 0) finding.step = loss.longest_step;
  if (once && loss.first_call) {
    Args args;
    args.set("longest", human_duration(loss.longest_ns)).set("part", part);
    const auto rank = std::ranges::find_if(facts.ranks, [&](const RankFacts& r) { return r.rank == j.rank; });
    args.set("compute", percent(share_or_zero(rank->compute_ns, rank->span_ns - loss.longest_ns)));
    finding.detail += words("profile.loss.first", args);
  } else if (once && loss.longest_step >= 0) {
    Args args;
    args.set("longest", human_duration(loss.longest_ns)).set("step", loss.longest_step).set("part", part);
    finding.detail += words("profile.loss.once", args);
  }
  if (!j.one_rank || facts.ranks.size() < 2) return;
  finding.rank = j.rank;
  const Args args = Args().set("rank", int64_t{j.rank}).flag("waited", facts.whole.comm_ns > 0);
  finding.detail += words("profile.loss.rank", args);
}

// A title: the sentence, the rank that alone loses so much, and where the loss is.
Text titled(const char* sentence, const ProfileFacts& facts, const JoinedLoss& j) {
  Args args;
  args.set("title", words(sentence)).set("at", j.worst.at.name());
  if (j.one_rank && facts.ranks.size() > 1) args.set("rank", int64_t{j.rank});
  return words("profile.loss.title", args);
}

// Explains work in small pieces: either the host cannot launch faster, or devices pause between kernels that do nearly
// nothing.
void say_short_kernels(const ProfileFacts& facts, const JoinedLoss& j, Finding& finding) {
  const RankLoss& loss = j.worst;
  if (loss.owner != IdleCause::kDispatch || loss.short_kernels == 0 || !(loss.fixed_ns > 0)) return;
  const double window = j.worst_window_ns, n = loss.short_kernels;
  if (2 * loss.pauses_ns > loss.recorded_ns) finding.title = titled("profile.loss.short", facts, j);
  Args args;
  args.count("kernels", loss.short_kernels).set("pauses", percent(loss.pauses_ns / window));
  args.set("least", human_duration(loss.fixed_ns / n)).set("all", percent(loss.fixed_ns / window));
  finding.detail += words("profile.loss.short.detail", args);
  finding.uncertainty_ns = loss.uncertainty_ns / window * facts.step_ns;
}

void set_places(const Culprit& at, Finding& finding) {
  finding.places = at.places();
  finding.key = at.key();
}

Finding idle_finding(const ProfileFacts& facts, const JoinedLoss& j) {
  const RankLoss& loss = j.worst;
  const Reported reported = reported_by(loss);
  Finding x{.id = reported.id, .weight = j.share, .value = percent(j.share), .value_note = words("profile.loss.note")};
  set_places(loss.at, x);
  x.title = titled(reported.sentence, facts, j);
  Args args;
  args.set("recorded", percent(j.recorded_share)).flag("mean", j.one_rank && facts.ranks.size() > 1);
  if (percent(j.share) != percent(j.recorded_share)) args.set("share", percent(j.share));
  x.detail = words("profile.loss.detail", args);
  if (loss.at.name() != loss.at.text().en) x.detail += words("profile.loss.at", Args().set("at", loss.at.text()));
  if (loss.waits > 0)
    x.detail += words("profile.loss.waits",
                      Args().count("waits", loss.waits).set("each", human_duration(loss.recorded_ns / loss.waits)));
  if (!loss.beside.empty()) {
    args.flag("drains", loss.kind == LossKind::kDrain).set("beside", loss.beside.text());
    x.detail += words("profile.loss.beside", args);
  }
  if (!loss.next.empty()) x.detail += words("profile.loss.next", Args().set("next", loss.next.text()));
  say_short_kernels(facts, j, x);
  say_place(facts, j, x);
  advise(facts, loss, reported.sentence, x);
  x.price.saving_ns = x.weight * facts.step_ns;
  return x;
}

Finding contention_finding(const ProfileFacts& facts, const JoinedLoss& j) {
  Finding x;
  x.id = "comm.contention";
  x.weight = std::max(j.share, j.caused_share);
  x.value = fixed(j.worst.ratio, 2) + "×";
  Args args;
  args.set("ratio", x.value).set("what", j.worst.what).set("share", percent(j.share));
  say(x, "profile.contention", args.set("caused", percent(j.caused_share)));
  x.price.saving_ns = j.share * facts.step_ns;
  return x;
}

// Reports kernels that do not run on the cores that could compute them, or run on few of these.
Finding weak_kernels_finding(const ProfileFacts& facts, const JoinedLoss& j) {
  const bool cpu = j.worst.kind == LossKind::kAiCpu, axes = j.worst.kind == LossKind::kMisaligned;
  Finding x;
  x.id = cpu ? "compute.aicpu" : axes ? "compute.misaligned" : "compute.few_cores";
  x.weight = j.share;
  x.value = percent(j.share);
  Args args;
  args.set("what", j.worst.what).set("recorded", percent(j.recorded_share)).set("share", percent(j.share));
  args.set("used", percent(j.worst.ratio)).set("ratio", fixed(j.worst.ratio, 2) + "×");
  say(x, cpu ? "profile.aicpu" : axes ? "profile.misaligned" : "profile.few_cores", args);
  if (axes && !j.worst.at.empty()) {
    set_places(j.worst.at, x);
    x.detail += words("profile.loss.at", Args().set("at", j.worst.at.text()));
  }
  x.price.saving_ns = j.share * facts.step_ns;
  return x;
}

}  // namespace

bool is_about(const Finding& finding, const RankLoss& loss) {
  const bool idle = loss.kind == LossKind::kIdle || loss.kind == LossKind::kDrain;
  return idle && finding.id == reported_by(loss).id && finding.key == loss.at.key();
}

void add_loss_findings(const ProfileFacts& facts, const ProfileAccount& account, JobOnce& job,
                       std::vector<Finding>& out) {
  double stream_wait = 0;
  const RankAccount* longest = nullptr;
  for (const RankAccount& rank : account) {
    stream_wait += rank.idle_ns[IdleCause::kStream];
    if (!longest || rank.idle_ns[IdleCause::kStream] > longest->idle_ns[IdleCause::kStream]) longest = &rank;
  }
  for (const JoinedLoss& j : join_ranks(facts, account, job)) {
    if (j.worst.kind == LossKind::kIdle || j.worst.kind == LossKind::kDrain) out.push_back(idle_finding(facts, j));
    if (j.worst.kind == LossKind::kContention) out.push_back(contention_finding(facts, j));
    if (is_of_weak_kernels(j.worst)) out.push_back(weak_kernels_finding(facts, j));
  }
  const double waits = share_or_zero(stream_wait, window_of(account));
  if (waits >= kUsualShare) {
    Finding x{
        .id = "device.idle", .weight = waits, .value = percent(waits), .value_note = words("profile.note.devices")};
    say(x, "profile.waits");
    if (account.size() > 1 && longest->idle_ns[IdleCause::kStream] > stream_wait / 2) x.rank = longest->rank;
    out.push_back(std::move(x));
  }
}

}  // namespace stageline
