// Sums the sends between ranks by link, with their rates. Definitions: docs/analyses/communication-matrix.md.
#include "analyses/cluster/cluster.h"
#include "analyses/cluster/problems.h"
#include "profile/transfers.h"

namespace stageline {
namespace {

struct Sum {
  int64_t count = 0, bytes = 0, time_ns = 0;
  bool waits = false;  // the time includes waiting, so no rate can be given
  void add(const Sum& other) {
    waits |= other.waits;
    count += other.count;
    bytes = sum_or_limit(bytes, other.bytes);
    time_ns = sum_or_limit(time_ns, other.time_ns);
  }
};
using RankLink = std::tuple<int32_t, int32_t, std::string_view, std::string_view>;  // src, dst, transport, link
using LinkOp = std::tuple<std::string_view, std::string_view, int32_t, int32_t, std::string_view, std::string_view>;
using Size = std::tuple<std::string_view, std::string_view, int>;  // transport, link, log2 of the bytes

struct Sums {
  TransferSource source = TransferSource::kNone;
  std::map<RankLink, Sum> links;
  std::map<LinkOp, Sum> ops;
  std::map<Size, Sum> sizes;
};

Sums sums_of(const RankTransfers& rank) {
  Sums sums;
  sums.source = rank.source;
  for (const Transfer& t : rank.list) {
    const Sum one{t.count, t.bytes, t.time_ns, rank.source == TransferSource::kMessages};
    sums.links[{t.src, t.dst, t.transport, t.link}].add(one);
    sums.ops[{t.group, t.kind, t.src, t.dst, t.transport, t.link}].add(one);
    if (rank.source != TransferSource::kSummaries) sums.sizes[{t.transport, t.link, std::ilogb(t.bytes)}].add(one);
  }
  return sums;
}

std::vector<Table::Value> with_sum(std::vector<Table::Value> keys, const Sum& sum) {
  keys.emplace_back(sum.count);
  keys.emplace_back(sum.bytes);
  keys.emplace_back(sum.time_ns);
  keys.emplace_back(sum.waits ? kNaN : share_of(sum.bytes, sum.time_ns));
  return keys;
}

std::string power_text(int log2) {
  constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  const int unit = std::min(log2 / 10, 5);
  return std::to_string(int64_t{1} << std::min(log2 - 10 * unit, 62)) + " " + kUnits[unit];
}

}  // namespace

Result<AnalysisResult> run_communication_matrix(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  std::vector<RankTransfers> transfers = all_transfers(*torch);
  std::vector<Sums> ranks(transfers.size());
  parallel_for(ranks.size(), [&](size_t k) {
    ranks[k] = sums_of(transfers[k]);
    transfers[k] = {};
  });
  Sums all;
  ByEnum<TransferSource, int64_t, 4> sources = {};
  for (Sums& rank : ranks) {
    ++sources[rank.source];
    for (const auto& [key, sum] : rank.links) all.links[key].add(sum);
    for (const auto& [key, sum] : rank.ops) all.ops[key].add(sum);
    for (const auto& [key, sum] : rank.sizes) all.sizes[key].add(sum);
    rank = {};
  }
  AnalysisResult result;
  note_level_none(input, result.notes);
  for (const TransferSource source : {TransferSource::kSummaries, TransferSource::kMessages})
    if (const int64_t count = sources[source]; count > 0)
      result.notes.add(problem::communication_no_tasks, Args().set("source", std::string(transfer_source_text(source))),
                       {}, count);
  // Without links there is nothing to draw. When only times of messages are known, which include waiting, the picture
  // would show late receivers and not slow links.
  const bool from_links = sources[TransferSource::kTasks] > 0 || sources[TransferSource::kSummaries] > 0;
  if (input.for_report && (all.links.empty() || !from_links)) return AnalysisResult();
  Table links(declared_table("communication-matrix/links"));
  for (const auto& [key, sum] : all.links) {
    const auto& [src, dst, transport, link] = key;
    links.add_row(with_sum({int64_t{src}, int64_t{dst}, std::string(transport), std::string(link)}, sum));
  }
  Table ops(declared_table("communication-matrix/links-by-operation"));
  for (const auto& [key, sum] : all.ops) {
    const auto& [group, kind, src, dst, transport, link] = key;
    ops.add_row(with_sum(
        {std::string(group), std::string(kind), int64_t{src}, int64_t{dst}, std::string(transport), std::string(link)},
        sum));
  }
  Table sizes(declared_table("communication-matrix/bandwidth-by-size"));
  for (const auto& [key, sum] : all.sizes) {
    const auto& [transport, link, log2] = key;
    sizes.add_row(with_sum({std::string(transport), std::string(link), int64_t{1} << log2,
                            power_text(log2) + " – " + power_text(log2 + 1)},
                           sum));
  }
  result.tables.push_back(std::move(links));
  if (!input.for_report) result.tables.push_back(std::move(ops));
  return result.with(std::move(sizes));
}

}  // namespace stageline
