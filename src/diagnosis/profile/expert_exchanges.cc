#include "diagnosis/profile/expert_exchanges.h"

#include "diagnosis/causes/cause.h"
#include "model/statistics.h"
#include "pipeline/replay/peer_cells.h"
#include "profile/expert_products.h"

namespace stageline {
namespace {

constexpr double kHot = 1.1, kOften = 0.6, kMoving = 1.15;  // rows to the other ranks' median, share of dispatches
constexpr double kSlow = 1.05, kSlowLink = 1.5;

struct Member {
  uint32_t rank_index = 0;
  double sent = 0, received = 0, expert_ns = 0, outside_ns = 0, transfer_ns = 0, moved = 0;
  std::vector<double> rows;  // received, for each dispatch
  double row_ns() const { return expert_ns / std::max(1.0, received); }
  double byte_ns() const { return transfer_ns / std::max(1.0, moved); }
};

struct Exchange {
  const LedgerInstance* instance = nullptr;
  bool dispatch = true;
};

class Group {
 public:
  // `grouped` is that of grouped_names().
  Group(const LedgerOfRun& run, const std::vector<bool>& grouped, std::vector<const LedgerInstance*> instances)
      : run_(run) {
    sort_stably(instances, {}, [&](const LedgerInstance* one) { return start_of(*one); });
    for (const LedgerInstance* one : instances)
      all_.push_back({one, all_.empty() || !all_.back().dispatch || !sends_back(*all_.back().instance, *one)});
    for (size_t i = all_.front().instance->begin; i < all_.front().instance->end; ++i)
      members_.push_back({.rank_index = run.ledger.parts[i].call->rank_index});
    parallel_for(members_.size(), [&](size_t i) { measure(i, grouped); });
  }

  int32_t rank(size_t i) const { return run_.torch.ranks[run_.torch.parts[members_[i].rank_index]]; }

  // Returns a rank's value ÷ the median of the others.
  template <class Of> double ratio(size_t i, Of of) const {
    std::vector<double> others;
    for (size_t k = 0; k < members_.size(); ++k)
      if (k != i) others.push_back(std::invoke(of, members_[k]));
    return share_of(std::invoke(of, members_[i]), median_of(std::move(others)));
  }

  bool differs() const {
    return std::ranges::any_of(members_, [&](const Member& one) { return one.rows != members_.front().rows; });
  }

  void add_ranks(std::vector<std::vector<Table::Value>>& rows) const {
    for (size_t i = 0; i < members_.size(); ++i) {
      const Member& m = members_[i];
      rows.push_back({int64_t{rank(i)}, kNullInteger, ratio(i, &Member::outside_ns), ratio(i, &Member::expert_ns),
                      kNullInteger, std::llround(m.sent), std::llround(m.received), ratio(i, &Member::sent),
                      ratio(i, &Member::received), std::llround(m.expert_ns), std::llround(m.outside_ns),
                      ratio(i, &Member::row_ns), ratio(i, &Member::byte_ns)});
    }
  }

  void find(std::vector<ExpertCause>& out) const {
    bool hot = false;
    double received = 0;
    for (const Member& m : members_) received += m.received / static_cast<double>(members_.size());
    for (size_t i = 0; i < members_.size(); ++i) {
      const double row = ratio(i, &Member::row_ns), outside = ratio(i, &Member::outside_ns);
      const double rows = ratio(i, &Member::received), byte = ratio(i, &Member::byte_ns);
      // Divides the stretches of a rank; a stretch of experts follows a dispatch.
      const auto own = [&](double experts, double others) {
        return cost_without([=](size_t member, size_t, bool of_experts, double& own_ns, double&) {
          if (member == i) own_ns /= of_experts ? experts : others;
        });
      };
      const std::string name = std::to_string(rank(i));
      const auto add = [&](const char* what, const char* key, double of, double cost, double other = 0) {
        const Args args = Args().set("rank", name).set("ratio", fixed(of, 2)).set("other", fixed(other, 2));
        out.push_back({what + name, rank(i), words(key, args), of, cost});
      };
      if (const double device = std::min(row, outside); device >= kSlow)
        add("rank:", "expert_cause.device", device, own(device, device));
      else if (row >= kSlow) add("kernel rank ", "expert_cause.kernel", row, own(row, 1));
      else if (outside >= kSlow)
        add("sequences rank ", "expert_cause.sequences", outside, own(1, outside), ratio(i, &Member::sent));
      if (rows >= kHot && often(i) >= kOften) {
        hot = true;
        add("experts rank ", "expert_cause.experts", rows,
            cost_without([&](size_t member, size_t, bool of_experts, double& own_ns, double&) {
              if (of_experts && members_[member].received > 0) own_ns *= received / members_[member].received;
            }));
      }
      if (byte >= kSlowLink)
        add("link rank ", "expert_cause.link", byte,
            cost_without([=](size_t member, size_t, bool, double&, double& transfer_ns) {
              if (member == i) transfer_ns /= byte;
            }));
    }
    if (const double spread = mean_of(spreads()); !hot && spread >= kMoving)
      out.push_back({"routing", -1, words("expert_cause.routing", Args().set("ratio", fixed(spread, 2))), spread,
                     cost_without([&](size_t member, size_t dispatch, bool of_experts, double& own_ns, double&) {
                       if (!of_experts || !(members_[member].rows[dispatch] > 0)) return;
                       double mean = 0;
                       for (const Member& m : members_) mean += m.rows[dispatch] / static_cast<double>(members_.size());
                       own_ns *= mean / members_[member].rows[dispatch];
                     })});
  }

 private:
  const LedgerPart& part(const LedgerInstance& instance, size_t i) const {
    return run_.ledger.parts[instance.begin + i];
  }
  int64_t start_of(const LedgerInstance& instance) const {
    int64_t start = INT64_MAX;
    for (size_t i = instance.begin; i < instance.end; ++i) start = std::min(start, run_.ledger.parts[i].call->start_ns);
    return start;
  }
  bool sends_back(const LedgerInstance& dispatch, const LedgerInstance& next) const {
    for (size_t i = 0; i < next.end - next.begin; ++i) {
      const LedgerCall &there = *part(dispatch, i).call, &back = *part(next, i).call;
      if (there.rank_index != back.rank_index || there.rows_sent != back.rows_received ||
          there.rows_received != back.rows_sent)
        return false;
    }
    return true;
  }

  void measure(size_t i, const std::vector<bool>& grouped) {
    Member& m = members_[i];
    for (const auto& [instance, dispatch] : all_) {
      const LedgerPart& own = part(*instance, i);
      const LedgerCall& call = *own.call;
      if (dispatch) {
        m.rows.push_back(static_cast<double>(call.rows_received));
        m.sent += static_cast<double>(call.rows_sent), m.received += m.rows.back();
      }
      m.transfer_ns += static_cast<double>(own.transfer_ns);
      const std::vector<int32_t>& ranks = run_.ledger.groups[static_cast<size_t>(instance->group)].members;
      const auto at = static_cast<size_t>(std::ranges::find(ranks, rank(i)) - ranks.begin());
      m.moved += static_cast<double>(call.bytes - (at < call.sent_to.size() ? call.sent_to[at] : 0));
    }
    const auto rows = torch_rank(run_.torch, run_.torch.parts[m.rank_index]);
    const Slices& slices = rows->part->slices;
    for (const TorchRow& row : rows->rows) {
      if (!row.on_device || row.kernel != KernelClass::kComputation) continue;
      const uint32_t owner = slices.parent[row.slice];
      const bool product = grouped[row.name] || (owner != kNoSliceIndex && grouped[slices.name_id[owner]]);
      const auto next = std::ranges::upper_bound(
          all_, row.start_ns, {}, [&](const Exchange& one) { return part(*one.instance, i).call->end_ns; });
      const bool between = next != all_.begin() && std::prev(next)->dispatch &&
                           (next == all_.end() || row.end_ns() <= part(*next->instance, i).call->start_ns + 1);
      (product || between ? m.expert_ns : m.outside_ns) += static_cast<double>(row.dur_ns);
    }
  }

  // In how many of the dispatches a rank receives clearly more than the others.
  double often(size_t i) const {
    const size_t count = members_[i].rows.size();
    double times = 0;
    for (size_t k = 0; k < count; ++k) times += ratio(i, [k](const Member& m) { return m.rows[k]; }) >= kHot;
    return share_or_zero(times, count);
  }
  // Returns for each dispatch the fullest rank ÷ the mean.
  std::vector<double> spreads() const {
    std::vector<double> out;
    for (size_t k = 0; k < members_.front().rows.size(); ++k) {
      double sum = 0, max = 0;
      for (const Member& m : members_) sum += m.rows[k], max = std::max(max, m.rows[k]);
      if (sum > 0) out.push_back(max * static_cast<double>(members_.size()) / sum);
    }
    return out;
  }

  using Change =
      std::function<void(size_t member, size_t dispatch, bool of_experts, double& own_ns, double& transfer_ns)>;
  double replayed(const Change& change) const {
    const size_t meets = all_.size();
    PeerTimes times;
    times.own_ns.assign(members_.size() * (meets + 1), 0), times.transfer_ns.assign(times.own_ns.size(), 0);
    for (size_t i = 0; i < members_.size(); ++i) {
      size_t dispatch = 0;  // the number of the last one
      for (size_t k = 0; k < meets; ++k) {
        const LedgerPart& own = part(*all_[k].instance, i);
        double& stretch_ns = times.own_ns[i * (meets + 1) + k + 1];
        double& transfer_ns = times.transfer_ns[i * (meets + 1) + k];
        if (k + 1 < meets)
          stretch_ns = static_cast<double>(part(*all_[k + 1].instance, i).call->start_ns - own.call->end_ns);
        transfer_ns = static_cast<double>(own.transfer_ns);
        dispatch += k > 0 && all_[k].dispatch;
        change(i, dispatch, all_[k].dispatch, stretch_ns, transfer_ns);
      }
    }
    std::vector<double> after(members_.size());
    replay_meetings(times, members_.size(), meets, after);
    return std::ranges::max(after);
  }
  double cost_without(const Change& change) const {
    const double recorded = replayed([](size_t, size_t, bool, double&, double&) {});
    return share_or_zero(recorded - replayed(change), recorded);
  }

  const LedgerOfRun& run_;
  std::vector<Exchange> all_;  // in the order of their starts
  std::vector<Member> members_;
};

}  // namespace

ExpertExchanges expert_exchanges(const LedgerOfRun& run) {
  std::map<int32_t, std::vector<const LedgerInstance*>> groups;
  for (const LedgerInstance& one : run.ledger.instances) {
    if (one.kind != CollectiveKind::kAllToAllV || !one.complete || one.group < 0) continue;
    const std::span parts(&run.ledger.parts[one.begin], one.end - one.begin);
    const auto known = [](const LedgerPart& of) { return of.call->rows_sent >= 0 && of.call->rows_received >= 0; };
    if (std::ranges::all_of(parts, known)) groups[one.group].push_back(&one);
  }
  const std::vector<bool> grouped = groups.empty() ? std::vector<bool>() : grouped_names(run.torch.trace->names);
  ExpertExchanges out;
  out.known = !groups.empty();
  for (auto& [number, instances] : groups) {
    const Group group(run, grouped, std::move(instances));
    group.add_ranks(out.ranks);
    group.find(out.causes);
    out.differs |= group.differs();
  }
  std::erase_if(out.causes, [](const ExpertCause& cause) { return cause.cost < kMinLost; });
  sort_stably(out.causes, std::greater(), &ExpertCause::cost);
  return out;
}

void explain_by_experts(const LedgerOfRun& run, std::vector<Finding>& list) {
  for (const ExpertCause& cause : expert_exchanges(run).causes) {
    const bool link = cause.name.starts_with("link");
    Finding* const of = find_finding(list, link ? "comm.exposed" : cause.rank < 0 ? "comm.waiting" : "rank.slow");
    if (of == nullptr || (of->id == "rank.slow" && of->places.front().ranks != std::vector{cause.rank})) continue;
    of->detail = words("expert_cause.why", Args().set("detail", of->detail).set("why", cause.how));
  }
}

}  // namespace stageline
