#include "profile/slow_transfers.h"

namespace stageline {
namespace {

using Class = std::pair<std::string_view, std::string_view>;  // transport, link type

constexpr double kRest = 0.1;    // share of a slow link's transfers that may be fast
constexpr size_t kMinLinks = 3;  // for each class: with fewer links there are no outliers

// Small transfers take longer for each byte on any link, and transfers with a reduction take longer than copies. So
// each transfer is compared with the median of its operation, size (power of two) and class.
using Like = std::pair<std::string_view, int>;
int size_of(int64_t bytes) { return std::ilogb(std::max<int64_t>(bytes, 1)); }

void read_pattern(std::vector<RankLink>& links, double threshold) {
  std::map<int32_t, std::pair<int, int>> rows, columns;  // number of slow links, and of all links
  // A bad link is slow in nearly every transfer; waiting inside transfers affects only some of them.
  const auto slow = [&](const RankLink& link) { return link.lasting && link.ratio() >= threshold; };
  for (const RankLink& link : links)
    for (auto* at : {&rows[link.src], &columns[link.dst]}) at->first += slow(link) ? 1 : 0, ++at->second;
  const auto mostly = [](const std::pair<int, int>& count) {
    return count.second >= 2 && 2 * count.first > count.second;
  };
  for (RankLink& link : links) {
    if (!slow(link)) continue;
    const bool row = mostly(rows[link.src]), column = mostly(columns[link.dst]);
    link.reading = row && column ? "source and destination" : row ? "source" : column ? "destination" : "link";
  }
}

Like like_of(const Transfer& t) { return {t.kind == "receive" ? "send" : t.kind, size_of(t.bytes)}; }

using Call = std::tuple<std::string_view, std::string_view, int32_t, int64_t>;  // group, operation, step, number
// Returns the collectives in which all transfers, on at least three links, were slow at once: they waited for another
// cause than a link.
std::set<Call> calls_slow_everywhere(const std::vector<Transfer>& list, const std::map<Like, double>& median,
                                     double threshold) {
  struct Links {
    std::set<std::pair<int32_t, int32_t>> slow;
    bool some_fast = false;
  };
  std::map<Call, Links> calls;
  for (const Transfer& t : list) {
    if (t.message || t.number < 0) continue;
    const double expected = median.at(like_of(t)) * t.bytes;
    Links& of = calls[{t.group, t.kind, t.step, t.number}];
    if (t.time_ns >= threshold * expected) of.slow.insert({t.src, t.dst});
    else of.some_fast = true;
  }
  std::set<Call> out;
  for (const auto& [call, of] : calls)
    if (!of.some_fast && of.slow.size() >= kMinLinks) out.insert(call);
  return out;
}

TransferClass answer_for(const Class& name, std::vector<Transfer>& list, double threshold, size_t max) {
  TransferClass answer{.name = name, .threshold = threshold};
  std::map<Like, std::vector<double>> costs;  // ns for each byte
  std::vector<double> gbps;
  for (const Transfer& t : list) {
    costs[like_of(t)].push_back(t.time_ns / static_cast<double>(t.bytes));
    gbps.push_back(t.gbps());
    answer.transfers += t.count;
    answer.bytes = sum_or_limit(answer.bytes, t.bytes);
    answer.time_ns = sum_or_limit(answer.time_ns, t.time_ns);
  }
  std::map<Like, double> median;
  for (auto& [like, values] : costs) {
    std::ranges::sort(values);
    median[like] = quantile(values, 0.5);
  }
  std::ranges::sort(gbps);
  answer.median_gbps = quantile(gbps, 0.5);
  const std::set<Call> late_together = calls_slow_everywhere(list, median, threshold);
  std::map<std::pair<int32_t, int32_t>, RankLink> links;
  std::vector<SlowestTransfer> outliers;
  for (const Transfer& t : list) {
    RankLink& link = links[{t.src, t.dst}];
    link.src = t.src;
    link.dst = t.dst;
    link.count += t.count;
    link.bytes = sum_or_limit(link.bytes, t.bytes);
    link.time_ns = sum_or_limit(link.time_ns, t.time_ns);
    const double expected = median[like_of(t)] * t.bytes;
    link.expected_ns += expected;
    const double ratio = expected > 0 ? t.time_ns / expected : 0;
    if (ratio < threshold || !late_together.contains(Call{t.group, t.kind, t.step, t.number}))
      link.ratios.push_back(ratio);
    if (ratio >= threshold) outliers.push_back({t, expected});
  }
  for (auto& [key, link] : links) {
    std::ranges::sort(link.ratios);
    link.lasting = !link.ratios.empty() && quantile(link.ratios, kRest) >= threshold;
    link.ratios = {};
  }
  if (links.size() < kMinLinks) outliers.clear();
  for (auto& [key, link] : links) answer.links.push_back(link);
  if (links.size() >= kMinLinks) read_pattern(answer.links, threshold);
  sort_stably(outliers, std::greater(), &SlowestTransfer::lost_ns);
  outliers.resize(std::min(max, outliers.size()));
  answer.worst = std::move(outliers);
  return answer;
}

}  // namespace

SlowTransfers slow_transfers(std::vector<RankTransfers> ranks, double threshold, size_t max) {
  SlowTransfers out;
  std::map<Class, std::vector<Transfer>> by_class;
  for (RankTransfers& rank : ranks) {
    out.messages_alone += rank.source == TransferSource::kMessages ? 1 : 0;
    for (const Transfer& t : rank.list)  // copies within a device do not use a link
      if (rank.source != TransferSource::kMessages && t.src != t.dst && t.bytes > 0)
        by_class[{t.transport, t.link}].push_back(t);
    rank = {};
  }
  for (auto& [name, list] : by_class) {
    out.classes.push_back(answer_for(name, list, threshold, max));
    list = {};
  }
  return out;
}

std::vector<SlowRankLink> slow_links(const std::vector<TransferClass>& classes) {
  std::vector<SlowRankLink> out;
  for (const TransferClass& c : classes)
    for (const RankLink& link : c.links)
      if (link.reading[0] != '\0') out.push_back({&c, &link});
  sort_stably(out, std::greater(), [](const SlowRankLink& a) { return a.link->lost_ns(); });
  return out;
}

}  // namespace stageline
