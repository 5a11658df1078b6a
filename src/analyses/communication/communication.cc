// Every collective and message by group, operation and size: bytes, time without waiting, rates, who came last, and
// whether that is normal for the links. Definitions: docs/analyses/communication.md.
#include "analyses/analysis.h"
#include "analyses/communication/problems.h"
#include "facts/profile_facts.h"
#include "model/run_extent.h"
#include "model/statistics.h"
#include "model/torch_facts.h"
#include "profile/expected_transfer.h"
#include "profile/host_nodes.h"

namespace stageline {
namespace {

struct Given {
  double nic_gbps = 0;
  int64_t domain = 0, gpus_per_host = 0;
  const Fabric* fabric = nullptr;
};

Result<Given> read_given(const AnalysisOptions& options) {
  Given given;
  TRY(gbit, options.real("network", 0));
  if (!(*gbit >= 0) || *gbit > 1e6) return make_error(ErrorCode::kUsage, "--network must be above 0 and below 10⁶");
  given.nic_gbps = *gbit / 8;
  TRY(domain, options.integer("nvlink-domain", 0, 1, 1 << 20));
  TRY(per_host, options.integer("gpus-per-host", 0, 1, 1 << 20));
  given.domain = *domain;
  given.gpus_per_host = *per_host;
  if (options.has("fabric")) given.fabric = find_fabric(options.text("fabric"));
  return given;
}

// Where the ranks sit, and what connects them.
class Places {
 public:
  Places(const TorchRun& torch, const Given& given) : given_(given) {
    std::map<std::string, int64_t> hosts;
    for (const size_t p : torch.parts) {
      const Part& part = torch.trace->parts[p];
      const int32_t rank = torch.ranks[p];
      const int64_t per = given.domain > 0 ? given.domain : given.gpus_per_host;
      const bool named = !part.machine_name.empty() || torch.trace->clock == ClockState::kShared;
      const int64_t host = per > 0 ? rank / per
                           : named ? hosts.try_emplace(part.machine_name, hosts.size()).first->second
                                   : -1;
      by_rank_[rank] = {host, part.device, device_name(part)};
    }
  }

  // Hosts of these ranks, of those that are in the trace; 0: unknown.
  template <class Ranks> int64_t hosts_of(const Ranks& ranks) const {
    std::set<int64_t> hosts;
    std::set<int32_t> devices;
    size_t seen = 0;
    for (const int32_t rank : ranks)
      if (const auto at = by_rank_.find(rank); at != by_rank_.end()) {
        ++seen;
        hosts.insert(at->second.host);
        if (at->second.device >= 0) devices.insert(at->second.device);
      }
    if (hosts.contains(-1)) return devices.size() == seen ? 1 : 0;
    return std::ssize(hosts);
  }
  int64_t host(int32_t rank) const {
    const auto at = by_rank_.find(rank);
    return at == by_rank_.end() ? -1 : at->second.host;
  }
  std::string device(int32_t rank) const {
    const auto at = by_rank_.find(rank);
    return at == by_rank_.end() ? std::string() : at->second.device_name;
  }

  TransferRoute route(CollectiveKind kind, int64_t ranks, int64_t hosts, int32_t one_rank) const {
    const std::string name = device(one_rank);
    const Fabric* fabric = given_.fabric ? given_.fabric : fabric_of_device(name);
    if (hosts > 1 && given_.domain == 0 && spans_hosts(name)) fabric = nullptr;
    return {kind, ranks, hosts, fabric, given_.nic_gbps};
  }

  // The devices, and what was taken for their links.
  Table fabrics() const {
    Table table(declared_table("communication/communication-fabric"));
    std::set<std::string> devices;
    for (const auto& [rank, place] : by_rank_) devices.insert(place.device_name);
    for (const std::string& device : devices) {
      const Fabric* fabric = given_.fabric ? given_.fabric : fabric_of_device(device);
      table.add_row({device, std::string(fabric ? fabric->name : ""), fabric ? fabric->peak_gbps : kNaN,
                     given_.nic_gbps > 0 ? given_.nic_gbps : kNaN, given_.domain > 0 ? given_.domain : kNullInteger,
                     std::string(given_.fabric ? "given"
                                 : fabric      ? "published"
                                               : "unknown")});
    }
    return table;
  }

 private:
  struct Place {
    int64_t host = -1;  // −1: unknown
    int32_t device = -1;
    std::string device_name;
  };
  const Given given_;
  std::map<int32_t, Place> by_rank_;
};

int64_t bucket_of(int64_t bytes) {
  return bytes <= 0 ? std::min<int64_t>(bytes, 0) : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes)));
}

// Bytes that have to leave hosts, summed over hosts. The splits of an all-to-all-v say it.
double bytes_across(CollectiveKind kind, int64_t n, int64_t hosts, int64_t bytes) {
  if (hosts < 2 || bytes < 0) return 0;
  const double size = static_cast<double>(bytes);
  if (kind == CollectiveKind::kAllReduce) return 2.0 * static_cast<double>(hosts - 1) * size;
  if (kind == CollectiveKind::kAllToAll) return static_cast<double>(n - n / hosts) * size;
  if (kind == CollectiveKind::kSendRecv) return size;
  return kind == CollectiveKind::kAllToAllV || kind == CollectiveKind::kBarrier ? 0
                                                                                : static_cast<double>(hosts - 1) * size;
}

std::string_view basis_name(TransferBasis basis) {
  constexpr std::array<std::string_view, 4> kNames = {"at least", "at most", "clock", "durations"};
  return kNames[static_cast<size_t>(basis)];
}

// Returns NCCL's algorithm by the name of a kernel. "RING_LL" says only that it is not a tree: it is the one ring
// kernel of most functions. Recordings have what NCCL says: "nccl:all_reduce (RING LL128, 16 channels)".
std::string algorithm_of(std::string_view kernel) {
  if (const size_t open = kernel.find(" ("), comma = kernel.find(", ");
      kernel.starts_with("nccl:") && open < comma && comma != std::string_view::npos)
    return std::string(kernel.substr(open + 2, comma - open - 2));
  for (const std::string_view head : {"ncclSymkDevKernel_", "ncclSymDevKernel_"})
    if (kernel.starts_with(head)) {
      std::string out = "symmetric ";
      kernel = kernel.substr(head.size(), kernel.find('(') - head.size());
      bool first = true;
      while (kernel.find('_') != std::string_view::npos) {
        kernel.remove_prefix(kernel.find('_') + 1);
        const std::string_view word = kernel.substr(0, kernel.find('_'));
        if (word.empty() || word[0] < 'A' || word[0] > 'Z') break;
        out += (std::exchange(first, false) ? "" : "_") + std::string(word);
      }
      return out;
    }
  if (kernel.find("_TREE_") != std::string_view::npos) return "tree";
  for (const std::string_view own : {"cross_device_reduce", "multimem_", "deep_ep", "pplx"})
    if (kernel.find(own) != std::string_view::npos) return "custom";
  return "";
}

struct LedgerRow {
  std::string group, description, algorithm;
  CollectiveKind kind = CollectiveKind::kUnknown;
  int64_t bucket = -1;
  int64_t ranks = 0, hosts = 0, channels = -1;
  int64_t count = 0, partly = 0, calls = 0, unmatched = 0;
  int64_t timed = 0, timed_bytes = 0;  // of `count` and `bytes`, those with times
  int64_t bytes = 0, transfer_ns = 0, wait_ns = 0, exposed_transfer_ns = 0, exposed_wait_ns = 0;
  double across = 0, bus_bytes = 0, expected_ns = 0;
  std::map<int32_t, int64_t> last;  // how often each rank came last
  std::set<TransferBasis> basis;
  std::map<std::string_view, int64_t> verdicts;
  double siblings_ratio = kNaN;

  int64_t known(int64_t ns) const { return count > 0 && timed == 0 ? kNullInteger : ns; }
  bool has_rate() const { return transfer_ns > 0 && timed_bytes > 0 && !basis.contains(TransferBasis::kAtLeast); }
  double algorithm_gbps() const {
    return has_rate() ? static_cast<double>(timed_bytes) / static_cast<double>(transfer_ns) : kNaN;
  }
  double bus_gbps() const { return has_rate() ? bus_bytes / static_cast<double>(transfer_ns) : kNaN; }
  std::pair<int64_t, int64_t> last_rank() const {  // and how often
    const auto best = std::ranges::max_element(last, {}, [](const auto& of) { return of.second; });
    return best == last.end() ? std::pair(kNullInteger, int64_t{0}) : std::pair<int64_t, int64_t>(*best);
  }
  std::string_view verdict() const {
    std::pair<std::string_view, int64_t> best = {verdict_name(TransferVerdict::kUnknown), 0};
    for (const auto& [name, times] : verdicts)
      if (times >= best.second) best = {name, times};
    return best.first;
  }
  int64_t exposed_ns() const { return sum_or_limit(exposed_transfer_ns, exposed_wait_ns); }
};

// Facts of an instance that its times do not contain.
struct Judged {
  int64_t hosts = 0;
  double across = 0, expected_ns = kNaN;
  TransferVerdict verdict = TransferVerdict::kUnknown;
};

class Accounts {
 public:
  Accounts(const LedgerOfRun& run, const Given& given)
      : torch_(run.torch), ledger_(run.ledger), names_(run.torch.trace->names), places_(run.torch, given) {
    for (const LedgerInstance& instance : ledger_.instances) add(instance);
    for (const auto& [call, low, high] : ledger_.unmatched) ++row_of(*call, low, high, call->bytes, {}).unmatched;
    find_siblings();
  }

  std::vector<const LedgerRow*> rows() const {
    auto out = mapped<const LedgerRow*>(rows_, [&](const auto& entry) { return &entry.second; });
    sort_stably(out, std::greater(), &LedgerRow::exposed_ns);
    return out;
  }
  const std::vector<Judged>& judged() const { return judged_; }
  const Places& places() const { return places_; }
  int32_t rank_of(const LedgerCall& call) const { return torch_.ranks[torch_.parts[call.rank_index]]; }
  std::span<const LedgerPart> parts_of(const LedgerInstance& instance) const {
    return std::span(ledger_.parts).subspan(instance.begin, instance.end - instance.begin);
  }

  // The rank with the shortest wait, the lowest of equals.
  int32_t last_of(std::span<const LedgerPart> parts) const {
    std::pair<int64_t, int32_t> min = {INT64_MAX, INT32_MAX};
    for (const LedgerPart& part : parts) min = std::min(min, {part.wait_ns, rank_of(*part.call)});
    return min.second;
  }

  std::vector<int32_t> members_of(const LedgerCall& call, int32_t low, int32_t high,
                                  std::span<const LedgerPart> seen) const {
    if (low >= 0) return {low, high};
    if (call.group >= 0 && !ledger_.groups[static_cast<size_t>(call.group)].members.empty())
      return ledger_.groups[static_cast<size_t>(call.group)].members;
    return mapped<int32_t>(seen, [&](const LedgerPart& part) { return rank_of(*part.call); });
  }

  // Logs of NCCL Inspector number ranks within a communicator, which they know by an id.
  bool by_id(const LedgerCall& call) const {
    return call.group >= 0 && call.kind != CollectiveKind::kSendRecv && torch_.trace->format == "nccl-inspector";
  }
  std::string group_text(const LedgerCall& call, const std::vector<int32_t>& members) const {
    return by_id(call) ? std::string(names_.text(ledger_.groups[static_cast<size_t>(call.group)].own_name))
                       : rank_ranges(members);
  }

 private:
  LedgerRow& row_of(const LedgerCall& call, int32_t low, int32_t high, int64_t bytes,
                    std::span<const LedgerPart> seen) {
    const std::vector<int32_t> members = members_of(call, low, high, seen);
    const std::string group = group_text(call, members);
    const auto [at, fresh] = rows_.try_emplace({group, collective_kind_name(call.kind), bucket_of(bytes)});
    LedgerRow& row = at->second;
    if (!fresh) return row;
    row.group = group;
    row.kind = call.kind;
    row.bucket = bucket_of(bytes);
    row.hosts = places_.hosts_of(members);
    row.ranks = std::ssize(members);
    row.channels = call.channels;
    row.algorithm = algorithm_of(names_.text(call.kernel));
    if (call.group < 0) return row;
    const LedgerGroup& of = ledger_.groups[static_cast<size_t>(call.group)];
    row.description = names_.text(of.description);
    if (low < 0) row.ranks = std::max(of.size, row.ranks);
    return row;
  }

  void add(const LedgerInstance& instance) {
    const std::span<const LedgerPart> parts = parts_of(instance);
    const LedgerCall& first = *parts[0].call;
    LedgerRow& row = row_of(first, instance.low, instance.high, instance.bytes, parts);
    row.calls += std::ssize(parts);
    const Judged& judged = judged_.emplace_back(judge(instance, row));
    if (!instance.complete) {
      ++row.partly;
      return;
    }
    ++row.count;
    const bool timed = instance.took_ns >= 0;
    if (timed) {
      ++row.timed;
      row.transfer_ns = sum_or_limit(row.transfer_ns, instance.took_ns);
      row.basis.insert(instance.basis);
    }
    if (instance.bytes >= 0) {
      row.bytes = sum_or_limit(row.bytes, instance.bytes);
      if (timed) row.timed_bytes = sum_or_limit(row.timed_bytes, instance.bytes);
      if (timed) row.bus_bytes += instance.bus_bytes;
      row.across += judged.across;
      if (judged.expected_ns > 0) row.expected_ns += judged.expected_ns;
      ++row.verdicts[verdict_name(judged.verdict)];
    }
    for (const LedgerPart& part : parts) {
      row.wait_ns = sum_or_limit(row.wait_ns, part.wait_ns);
      row.exposed_wait_ns = sum_or_limit(row.exposed_wait_ns, part.exposed_wait_ns);
      row.exposed_transfer_ns = sum_or_limit(row.exposed_transfer_ns, part.exposed_transfer_ns);
    }
    if (!timed || (!synchronises(instance.kind) && instance.kind != CollectiveKind::kAllToAllV)) return;
    const std::vector<int32_t> members = members_of(first, -1, -1, parts);
    const int32_t last = last_of(parts);
    ++row.last[by_id(first) ? static_cast<int32_t>(std::ranges::find(members, last) - members.begin()) : last];
  }

  Judged judge(const LedgerInstance& instance, const LedgerRow& row) const {
    Judged out{.hosts = row.hosts};
    if (!instance.complete || instance.bytes < 0) return out;
    out.across = instance.kind == CollectiveKind::kAllToAllV
                     ? split_across(instance)
                     : bytes_across(instance.kind, row.ranks, row.hosts, instance.bytes);
    const TransferRoute route =
        places_.route(instance.kind, row.ranks, row.hosts, rank_of(*ledger_.parts[instance.begin].call));
    if (!route.known() || instance.took_ns < 0) return out;
    // The estimate is of NCCL; RCCL and HCCL choose otherwise.
    if (route.fabric->chips != Fabric::Chips::kOther) out.expected_ns = expected_ns(route, instance.bytes);
    out.verdict = judge_transfer(route, instance.bytes, instance.took_ns);
    // Such a time is a bound from one side, so some verdicts do not follow.
    if (instance.basis == TransferBasis::kAtLeast ||
        (instance.basis == TransferBasis::kAtMost && out.verdict == TransferVerdict::kSlow))
      out.verdict = TransferVerdict::kUnknown;
    return out;
  }

  double split_across(const LedgerInstance& instance) const {
    double sum = 0;
    for (const LedgerPart& part : parts_of(instance)) {
      const LedgerCall& call = *part.call;
      if (call.group < 0) continue;
      const std::vector<int32_t>& members = ledger_.groups[static_cast<size_t>(call.group)].members;
      const int64_t own = places_.host(rank_of(call));
      for (size_t j = 0; j < std::min(members.size(), call.sent_to.size()); ++j)
        if (places_.host(members[j]) != own) sum += static_cast<double>(call.sent_to[j]);
    }
    return sum;
  }

  // Finds how much slower a group is than the others of its kind, at least two of them.
  void find_siblings() {
    std::map<std::tuple<std::string, CollectiveKind, int64_t, int64_t, int64_t>, std::vector<LedgerRow*>> alike;
    for (auto& [key, row] : rows_)
      if (row.bus_gbps() > 0) alike[{row.description, row.kind, row.bucket, row.ranks, row.hosts}].push_back(&row);
    for (const auto& [key, rows] : alike) {
      if (rows.size() < 3) continue;
      for (LedgerRow* row : rows) {
        std::vector<double> others;
        for (const LedgerRow* other : rows)
          if (other != row) others.push_back(other->bus_gbps());
        std::ranges::sort(others);
        row->siblings_ratio = quantile(others, 0.5) / row->bus_gbps();
      }
    }
  }

  const TorchRun& torch_;
  const Ledger& ledger_;
  const StringPool& names_;
  const Places places_;
  std::map<std::tuple<std::string, std::string_view, int64_t>, LedgerRow> rows_;
  std::vector<Judged> judged_;  // of each instance
};

std::string algorithm_text(const LedgerRow& row, const Places& places, int32_t one_rank) {
  const TransferRoute route = places.route(row.kind, row.ranks, row.hosts, one_rank);
  // Nothing but reduction inside switches makes an all-reduce faster than the links of a device.
  const bool inside = row.algorithm.empty() && row.kind == CollectiveKind::kAllReduce && route.fabric != nullptr &&
                      row.hosts == 1 && row.bus_gbps() > 1.02 * route.fabric->peak_gbps;
  return inside ? "in-network (by rate)" : row.algorithm;
}

// Time that computing does not cover, unknown where nothing but communication was recorded.
class Exposed {
 public:
  explicit Exposed(const LedgerOfRun& run)
      : unknown_(is_only_communication(*run.torch.trace) || has_flight_calls(*run.torch.trace)) {}
  int64_t operator()(int64_t ns) const { return unknown_ ? kNullInteger : ns; }

 private:
  bool unknown_;
};

Table rows_table(const LedgerOfRun& run, const Accounts& accounts, int32_t one_rank) {
  Table table(declared_table("communication/communication"));
  const Exposed exposed(run);
  for (const LedgerRow* row : accounts.rows()) {
    std::string basis;
    for (const TransferBasis one : row->basis) basis += (basis.empty() ? "" : ", ") + std::string(basis_name(one));
    const auto [last, times] = row->last_rank();
    table.add_row({row->group,
                   row->description,
                   row->ranks,
                   row->hosts,
                   std::string(collective_kind_name(row->kind)),
                   row->bucket,
                   algorithm_text(*row, accounts.places(), one_rank),
                   row->channels < 0 ? kNullInteger : row->channels,
                   row->count,
                   row->partly,
                   row->calls,
                   row->unmatched,
                   row->bytes,
                   row->known(row->transfer_ns),
                   row->known(row->wait_ns),
                   exposed(row->exposed_transfer_ns),
                   exposed(row->exposed_wait_ns),
                   std::llround(std::min(row->across, 9e18)),
                   row->algorithm_gbps(),
                   row->bus_gbps(),
                   whole_ns(row->expected_ns > 0 ? row->expected_ns : kNaN),
                   std::string(row->verdict()),
                   row->siblings_ratio,
                   last,
                   times,
                   basis});
  }
  return table;
}

Table instances_table(const LedgerOfRun& run, const Accounts& accounts) {
  Table table(declared_table("communication/communication-instances"));
  const Exposed exposed(run);
  struct Line {
    int64_t exposed_ns = 0;
    size_t instance = 0;
  };
  std::vector<Line> lines;
  for (size_t i = 0; i < run.ledger.instances.size(); ++i) {
    int64_t sum = 0;
    for (const LedgerPart& part : accounts.parts_of(run.ledger.instances[i]))
      sum = sum_or_limit(sum, part.exposed_wait_ns + part.exposed_transfer_ns);
    if (run.ledger.instances[i].complete) lines.push_back({sum, i});
  }
  sort_stably(lines, std::greater(), &Line::exposed_ns);
  for (const Line& line : lines) {
    const LedgerInstance& instance = run.ledger.instances[line.instance];
    const Judged& judged = accounts.judged()[line.instance];
    const auto parts = accounts.parts_of(instance);
    const LedgerCall& first = *parts[0].call;
    int64_t wait = 0, start = INT64_MAX;
    for (const LedgerPart& part : parts) {
      wait = sum_or_limit(wait, part.wait_ns);
      start = std::min(start, part.call->start_ns);
    }
    const bool timed = instance.took_ns >= 0;
    const bool rates = instance.bytes > 0 && instance.took_ns > 0 && instance.basis != TransferBasis::kAtLeast;
    table.add_row(
        {rank_ranges(accounts.members_of(first, instance.low, instance.high, parts)),
         std::string(collective_kind_name(instance.kind)), first.step < 0 ? kNullInteger : int64_t{first.step}, start,
         instance.bytes < 0 ? kNullInteger : instance.bytes, timed ? instance.took_ns : kNullInteger,
         timed ? wait : kNullInteger, exposed(line.exposed_ns),
         rates ? instance.bus_bytes / static_cast<double>(instance.took_ns) : kNaN, whole_ns(judged.expected_ns),
         std::string(verdict_name(judged.verdict)),
         instance.kind == CollectiveKind::kSendRecv || !timed ? kNullInteger : int64_t{accounts.last_of(parts)},
         std::string(timed ? basis_name(instance.basis) : "")});
  }
  return table;
}

// Over complete synchronising collectives: how often each rank came last, and what it alone made the others wait.
Table ranks_table(const LedgerOfRun& run, const Accounts& accounts) {
  struct Sums {
    int64_t calls = 0, timed = 0, last = 0, late_ns = 0, wait_ns = 0, exposed_wait_ns = 0;
    int64_t known(int64_t value) const { return calls > 0 && timed == 0 ? kNullInteger : value; }
  };
  std::map<int32_t, Sums> sums;
  for (const LedgerInstance& instance : run.ledger.instances) {
    if (!instance.complete || !synchronises(instance.kind)) continue;
    int64_t min = INT64_MAX, second = INT64_MAX;
    for (const LedgerPart& part : accounts.parts_of(instance)) {
      Sums& of = sums[accounts.rank_of(*part.call)];
      ++of.calls;
      of.timed += instance.took_ns >= 0;
      of.wait_ns = sum_or_limit(of.wait_ns, part.wait_ns);
      of.exposed_wait_ns = sum_or_limit(of.exposed_wait_ns, part.exposed_wait_ns);
      second = std::min(second, std::max(min, part.wait_ns));
      min = std::min(min, part.wait_ns);
    }
    if (instance.took_ns < 0) continue;
    Sums& last = sums[accounts.last_of(accounts.parts_of(instance))];
    ++last.last;
    last.late_ns = sum_or_limit(last.late_ns, second - min);
  }
  Table table(declared_table("communication/communication-ranks"));
  if (run.ledger.instances.empty() && run.ledger.unmatched.empty()) return table;
  const Exposed exposed(run);
  for (const size_t p : run.torch.parts) {
    const Sums& of = sums[run.torch.ranks[p]];
    table.add_row({int64_t{run.torch.ranks[p]}, run.torch.trace->parts[p].machine_name, of.calls, of.known(of.last),
                   of.known(of.late_ns), of.known(of.wait_ns), exposed(of.exposed_wait_ns)});
  }
  return table;
}

// Ranks of known groups without a trace, "2,5".
std::string missing_ranks(const LedgerOfRun& run) {
  std::set<int32_t> missing;
  for (const LedgerGroup& group : run.ledger.groups) missing.insert(group.members.begin(), group.members.end());
  for (const size_t p : run.torch.parts) missing.erase(run.torch.ranks[p]);
  return number_list({missing.begin(), missing.end()}, 12);
}

void add_notes(const LedgerOfRun& run, const Accounts& accounts, const Given& given, Diagnostics& notes) {
  int64_t partly = 0, durations = 0, untimed = 0, without_call = 0, no_group = 0, across = 0, no_links = 0;
  for (size_t i = 0; i < run.ledger.instances.size(); ++i) {
    const LedgerInstance& instance = run.ledger.instances[i];
    partly += !instance.complete;
    durations += instance.complete && instance.took_ns >= 0 && instance.basis != TransferBasis::kClock;
    untimed += instance.took_ns < 0;
    across += accounts.judged()[i].hosts > 1;
  }
  for (const Ledger::Unmatched& one : run.ledger.unmatched) {
    const bool unknown = one.call->kind == CollectiveKind::kUnknown;
    if (one.call->group < 0) ++(unknown ? without_call : no_group);
  }
  const Table fabrics = accounts.places().fabrics();
  for (size_t row = 0; row < fabrics.row_count(); ++row) no_links += fabrics.text(row, 1).empty();
  const auto unmatched = std::ssize(run.ledger.unmatched) - without_call - no_group;
  if (partly > 0) notes.add(problem::ledger_partly, Args().set("ranks", missing_ranks(run)), Where{}, partly);
  notes.add(problem::ledger_unmatched, Where{}, unmatched);
  notes.add(problem::ledger_no_call, Where{}, without_call);
  notes.add(problem::ledger_no_group, Where{}, no_group);
  notes.add(problem::ledger_untimed, Where{}, untimed);
  notes.add(problem::ledger_durations, Where{}, durations);
  if (across > 0 && given.nic_gbps <= 0) notes.add(problem::ledger_no_network, Where{}, across);
  notes.add(problem::ledger_no_fabric, Where{}, no_links);
  const auto host = [&](const Part& part) {
    return std::ranges::any_of(part.slices.name_id,
                               [&](StringId name) { return is_host_message(run.torch.trace->names.text(name)); });
  };
  if (std::ranges::any_of(run.torch.trace->parts, host)) notes.add(problem::ledger_on_host, Where{});
}

}  // namespace

Result<AnalysisResult> run_communication(const AnalysisInput& input) {
  TRY(given, read_given(input.options));
  const LedgerOfRun& run = ledger_of(input.run());
  if (run.torch.parts.empty()) return make_error(ErrorCode::kBadInput, "the trace has no profiler slices");
  AnalysisResult result;
  const Accounts accounts(run, *given);
  const int32_t one_rank = run.torch.ranks[run.torch.parts[0]];
  result.add(rows_table(run, accounts, one_rank), ranks_table(run, accounts), accounts.places().fabrics(),
             instances_table(run, accounts));
  add_notes(run, accounts, *given, result.notes);
  return result;
}

}  // namespace stageline
