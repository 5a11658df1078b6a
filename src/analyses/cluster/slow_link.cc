// Finds links that are slower than others of their kind. The cause may be a single link, a rank that sends slowly to
// all, or a rank that all reach slowly. Definitions: docs/analyses/slow-link.md.
//
//              to 0   1   2   3
//   from 0      ·    ▪   ▫   ▫      a slow row: the source;   a slow column: the destination;
//        1      ▫    ·   ▫   ▫      a slow cell: the link
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "analyses/analysis.h"
#include "analyses/cluster/communication_ops.h"
#include "analyses/cluster/durations.h"
#include "analyses/cluster/problems.h"
#include "analyses/cluster/transfers.h"
#include "base/number.h"
#include "base/parallel.h"
#include "model/statistics.h"

namespace stageline {
namespace {

using Type = ColumnType;
using Class = std::pair<std::string_view, std::string_view>;  // transport, link type

constexpr double kSlowRatio = 1.5;  // relative to the usual time of this kind of link for such sizes
constexpr double kRest = 0.1;       // share of a slow link's transfers that may be fast
constexpr size_t kFewestLinks = 3;  // for each class: with fewer links there are no outliers

struct RankLink {
  int32_t src = 0, dst = 0;
  int64_t count = 0, bytes = 0, time_ns = 0;
  double expected_ns = 0;
  std::vector<double> ratios;  // one for each of its transfers
  bool lasting = false;        // at least nine tenths of its transfers are slow
  const char* reading = "";
  double ratio() const { return expected_ns > 0 ? static_cast<double>(time_ns) / expected_ns : 0; }
  int64_t lost_ns() const { return time_ns - std::llround(expected_ns); }
};

struct Outlier {
  Transfer transfer;
  double expected_ns = 0;
  int64_t lost_ns() const { return transfer.time_ns - std::llround(expected_ns); }
};

struct ClassAnswer {
  Class name;
  int64_t transfers = 0, bytes = 0, time_ns = 0;
  double median_gbps = NAN, threshold = 0;
  std::vector<RankLink> links;
  std::vector<Outlier> worst;
};

// Small transfers take longer for each byte on any link, and transfers with a reduction take longer than copies. So
// each transfer is compared with the median of its operation, size (power of two) and class.
using Like = std::pair<std::string_view, int>;
int size_of(int64_t bytes) { return static_cast<int>(std::ilogb(static_cast<double>(std::max<int64_t>(bytes, 1)))); }

void read_pattern(std::vector<RankLink>& links, double threshold) {
  std::map<int32_t, std::pair<int, int>> rows, columns;  // number of slow links, and of all links
  // A bad link is slow in nearly every transfer; waiting inside transfers affects only some of them.
  const auto slow = [&](const RankLink& link) { return link.lasting && link.ratio() >= threshold; };
  for (const RankLink& link : links) {
    for (auto* at : {&rows[link.src], &columns[link.dst]}) {
      at->first += slow(link) ? 1 : 0;
      ++at->second;
    }
  }
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

// Returns the collectives in which all transfers, on at least three links, were slow at once: they waited for another
// cause than a link.
using Call = std::tuple<std::string_view, std::string_view, int32_t, int64_t>;  // group, operation, step, number
std::set<Call> calls_slow_everywhere(const std::vector<Transfer>& list, const std::map<Like, double>& median,
                                     double threshold) {
  struct Links {
    std::set<std::pair<int32_t, int32_t>> slow;
    bool some_fast = false;
  };
  std::map<Call, Links> calls;
  for (const Transfer& t : list) {
    if (t.message || t.number < 0) continue;
    const double expected = median.at(like_of(t)) * static_cast<double>(t.bytes);
    Links& of = calls[{t.group, t.kind, t.step, t.number}];
    if (static_cast<double>(t.time_ns) >= threshold * expected) {
      of.slow.insert({t.src, t.dst});
    } else {
      of.some_fast = true;
    }
  }
  std::set<Call> out;
  for (const auto& [call, of] : calls)
    if (!of.some_fast && of.slow.size() >= kFewestLinks) out.insert(call);
  return out;
}

ClassAnswer answer_for(const Class& name, std::vector<Transfer>& list, double threshold, size_t most) {
  ClassAnswer answer;
  answer.name = name;
  answer.threshold = threshold;
  std::map<Like, std::vector<double>> costs;  // ns for each byte
  std::vector<double> gbps;
  for (const Transfer& t : list) {
    costs[like_of(t)].push_back(static_cast<double>(t.time_ns) / static_cast<double>(t.bytes));
    gbps.push_back(t.gbps());
    answer.transfers += t.count;
    answer.bytes = sum_or_limit(answer.bytes, t.bytes);
    answer.time_ns = sum_or_limit(answer.time_ns, t.time_ns);
  }
  std::map<Like, double> median;
  for (auto& [like, values] : costs) {
    std::sort(values.begin(), values.end());
    median[like] = quantile(values, 0.5);
  }
  std::sort(gbps.begin(), gbps.end());
  answer.median_gbps = quantile(gbps, 0.5);
  const std::set<Call> late_together = calls_slow_everywhere(list, median, threshold);
  std::map<std::pair<int32_t, int32_t>, RankLink> links;
  std::vector<Outlier> outliers;
  for (const Transfer& t : list) {
    RankLink& link = links[{t.src, t.dst}];
    link.src = t.src;
    link.dst = t.dst;
    link.count += t.count;
    link.bytes = sum_or_limit(link.bytes, t.bytes);
    link.time_ns = sum_or_limit(link.time_ns, t.time_ns);
    const double expected = median[like_of(t)] * static_cast<double>(t.bytes);
    link.expected_ns += expected;
    const double ratio = expected > 0 ? static_cast<double>(t.time_ns) / expected : 0;
    if (ratio < threshold || !late_together.contains(Call{t.group, t.kind, t.step, t.number}))
      link.ratios.push_back(ratio);
    if (ratio >= threshold) outliers.push_back({t, expected});
  }
  for (auto& [key, link] : links) {
    std::sort(link.ratios.begin(), link.ratios.end());
    link.lasting = !link.ratios.empty() && quantile(link.ratios, kRest) >= threshold;
    link.ratios = {};
  }
  if (links.size() < kFewestLinks) outliers.clear();
  for (auto& [key, link] : links) answer.links.push_back(link);
  if (links.size() >= kFewestLinks) read_pattern(answer.links, threshold);
  std::stable_sort(outliers.begin(), outliers.end(),
                   [](const Outlier& a, const Outlier& b) { return a.lost_ns() > b.lost_ns(); });
  outliers.resize(std::min(most, outliers.size()));
  answer.worst = std::move(outliers);
  return answer;
}

const ColumnSpec kTransport = {"transport", "transport", Type::kText, "SDMA, RDMA …; empty when unknown"};
const ColumnSpec kLink = {"link", "link", Type::kText, "HCCS, PCIE …; empty when unknown"};
const ColumnSpec kSource = {"src_rank", "from", Type::kInteger,
                            "Global rank of the sender; its rank in the group when the group's members are unknown"};
const ColumnSpec kTarget = {"dst_rank", "to", Type::kInteger, "Rank of the receiver, given like that of the sender"};

std::vector<ColumnSpec> slow_link_slow_links_columns() {
  return {kTransport,
          kLink,
          kSource,
          kTarget,
          {"transfer_count", "transfers", Type::kInteger, ""},
          {"bytes", "bytes", Type::kInteger, ""},
          {"transit_ns", "transit", Type::kDuration, "Summed over transfers"},
          {"gb_per_s", "GB/s", Type::kReal, "Bytes over transit, 10⁹ bytes a second"},
          {"expected_ns", "expected", Type::kDuration,
           "Time that its transfers would take at the median rate of their class, operation and size (powers of two)"},
          {"ratio", "slower", Type::kRatio, "Transit / expected"},
          {"lost_ns", "lost", Type::kDuration, "Transit − expected"},
          {"reading", "cause", Type::kText,
           "source: most links from that rank are slow; destination: most links to that rank are slow; link: only this "
           "link is slow"}};
}

Table link_table(const std::vector<ClassAnswer>& classes) {
  Table table("slow-links", "Links slower than others of their kind", slow_link_slow_links_columns());
  struct Line {
    const ClassAnswer* of;
    const RankLink* link;
  };
  std::vector<Line> lines;
  for (const ClassAnswer& c : classes)
    for (const RankLink& link : c.links)
      if (link.reading[0] != '\0') lines.push_back({&c, &link});
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.link->lost_ns() > b.link->lost_ns(); });
  for (const auto& [c, link] : lines)
    table.add_row({std::string(c->name.first), std::string(c->name.second), int64_t{link->src}, int64_t{link->dst},
                   link->count, link->bytes, link->time_ns,
                   share_of(static_cast<double>(link->bytes), static_cast<double>(link->time_ns)),
                   std::llround(link->expected_ns), link->ratio(), link->lost_ns(), std::string(link->reading)});
  return table;
}

std::vector<ColumnSpec> slow_link_link_classes_columns() {
  return {kTransport,
          kLink,
          {"link_count", "links", Type::kInteger,
           "Number of pairs of ranks; with fewer than three, no link is called slow"},
          {"slow_link_count", "slow", Type::kInteger, ""},
          {"transfer_count", "transfers", Type::kInteger, ""},
          {"bytes", "bytes", Type::kInteger, ""},
          {"transit_ns", "transit", Type::kDuration, "Summed over transfers"},
          {"median_gb_per_s", "median GB/s", Type::kReal, "Median of one transfer, in 10⁹ bytes per second"}};
}

Table class_table(const std::vector<ClassAnswer>& classes) {
  Table table("link-classes", "Kinds of links", slow_link_link_classes_columns());
  for (const ClassAnswer& c : classes) {
    const auto slow =
        std::count_if(c.links.begin(), c.links.end(), [](const RankLink& l) { return l.reading[0] != '\0'; });
    table.add_row({std::string(c.name.first), std::string(c.name.second), static_cast<int64_t>(c.links.size()),
                   int64_t{slow}, c.transfers, c.bytes, c.time_ns, c.median_gbps});
  }
  return table;
}

std::vector<ColumnSpec> slow_transfers_columns() {
  return {kTransport,
          kLink,
          kSource,
          kTarget,
          {"group", "group", Type::kText, "Communicator"},
          {"kind", "operation", Type::kText, "allReduce, send, …"},
          {"step", "step", Type::kInteger, "Empty outside of steps"},
          {"bytes", "bytes", Type::kInteger, ""},
          {"transit_ns", "transit", Type::kDuration, ""},
          {"expected_ns", "expected", Type::kDuration, "Time at the median rate of its class and size"},
          {"lost_ns", "lost", Type::kDuration, "Transit − expected"}};
}

Table transfer_table(const std::vector<ClassAnswer>& classes, size_t most) {
  Table table("slow-transfers", "Slowest transfers against others of their class and size", slow_transfers_columns());
  std::vector<std::pair<const ClassAnswer*, const Outlier*>> lines;
  for (const ClassAnswer& c : classes)
    for (const Outlier& o : c.worst) lines.emplace_back(&c, &o);
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.second->lost_ns() > b.second->lost_ns(); });
  lines.resize(std::min(most, lines.size()));
  for (const auto& [c, o] : lines) {
    const Transfer& t = o->transfer;
    table.add_row({std::string(c->name.first), std::string(c->name.second), int64_t{t.src}, int64_t{t.dst},
                   std::string(t.group), std::string(t.kind), t.step < 0 ? kNullInteger : int64_t{t.step}, t.bytes,
                   t.time_ns, std::llround(o->expected_ns), o->lost_ns()});
  }
  return table;
}

Result<AnalysisResult> run_slow_link(const AnalysisInput& input) {
  Result<double> ratio = input.options.real("ratio", kSlowRatio);
  if (!ratio) return std::move(ratio).error();
  if (!(*ratio > 1)) return Error{ErrorCode::kUsage, "--ratio must be more than 1", {}, "1.5: half as long again"};
  Result<int64_t> most = input.options.integer("top", 15, 0);
  if (!most) return std::move(most).error();
  Result<TorchRun> torch = make_torch_run(*input.trace, {.include_last_step = true});
  if (!torch) return std::move(torch).error();
  std::vector<RankTransfers> ranks = all_transfers(*torch);
  // Copies within a device are not links. Times of messages include waiting, so a slow message proves nothing.
  std::map<Class, std::vector<Transfer>> by_class;
  int64_t messages = 0;
  for (RankTransfers& rank : ranks) {
    messages += rank.source == TransferSource::kMessages ? 1 : 0;
    for (const Transfer& t : rank.list)
      if (rank.source != TransferSource::kMessages && t.src != t.dst && t.bytes > 0)
        by_class[{t.transport, t.link}].push_back(t);
    rank = {};
  }
  std::vector<ClassAnswer> classes;
  for (auto& [name, list] : by_class) {
    classes.push_back(answer_for(name, list, *ratio, static_cast<size_t>(*most)));
    list = {};
  }
  AnalysisResult result;
  note_level_none(input, result.notes);
  if (messages > 0) result.notes.add(problem::slow_link_no_tasks, {}, messages);
  if (input.for_report && classes.empty()) return result;
  result.tables.push_back(link_table(classes));
  result.tables.push_back(class_table(classes));
  result.tables.push_back(transfer_table(classes, static_cast<size_t>(*most)));
  return result;
}

}  // namespace

extern const Analysis slow_link_analysis;
const Analysis slow_link_analysis = {
    .name = "slow-link",
    .summary = "links slower than others of their kind: a bad source, a bad destination or one bad link",
    .tables = {{"slow-links", "one row per slow link, who costs most first", slow_link_slow_links_columns},
               {"link-classes", "one row per transport and link type", slow_link_link_classes_columns},
               {"slow-transfers", "the slowest single transfers", slow_transfers_columns}},
    .run = run_slow_link,
    .needs = AnalysisNeeds::kTorch,
    .options = {{"ratio", "X", "A link is slow from this ratio to the expected time on (default 1.5)", ""},
                {"top", "N",
                 "How many of the longest are listed (hccl-sum: default 15; free-analysis: 10 per rank; "
                 "slow-rank and slow-link: 15)",
                 ""}}};

}  // namespace stageline
