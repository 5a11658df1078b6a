#include "compat/msprof/pair_links.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/number.h"

namespace stageline {
namespace {

struct End {
  size_t rank;
  const PeerOp* op;
};

// All transfers in one direction, or all batches of two ranks; of batches, `sent` are those of the lower rank.
struct Way {
  std::vector<End> sent, received;
};

using Key = std::tuple<std::string, std::string, bool, int64_t, int64_t>;  // (pipeline, group, batch, from, to)

bool one_rank(const std::vector<End>& ends) {
  return std::ranges::all_of(ends, [&](const End& end) { return end.rank == ends[0].rank; });
}

// Returns how many of the longer list to leave out at its beginning.
size_t best_shift(const std::vector<End>& longer, const std::vector<End>& shorter) {
  const size_t extra = longer.size() - shorter.size();
  size_t best = extra;  // recordings usually lose their beginning
  double min = HUGE_VAL;
  for (size_t back = 0; back <= extra && back < kMaxShifts; ++back) {
    const size_t shift = extra - back;
    // Times are taken from the database as they are, so their difference may overflow an integer.
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (size_t i = 0; i < shorter.size(); ++i) {
      int64_t exact = 0;
      const int64_t a = longer[i + shift].op->end_ns, b = shorter[i].op->end_ns;
      const double apart = __builtin_sub_overflow(a, b, &exact) ? a - static_cast<double>(b) : exact;
      low = std::min(low, apart);
      high = std::max(high, apart);
    }
    if (high - low < min) {
      min = high - low;
      best = shift;
    }
  }
  return best;
}

std::string say(const std::vector<RankPeers>& ranks, const Way& way) {
  const size_t from = way.sent.size(), to = way.received.size();
  const auto who = [&](const std::vector<End>& ends) { return "rank " + std::to_string(ranks[ends[0].rank].rank); };
  if (from == 0) return who(way.received) + " received " + grouped(to) + " times from a rank that is not there";
  if (to == 0) return who(way.sent) + " sent " + grouped(from) + " times to a rank that is not there";
  return who(way.sent) + " sent " + grouped(from) + " times, " + who(way.received) + " received " + grouped(to) +
         " times: paired where both ends end together";
}

}  // namespace

PairedLinks pair_links(const std::vector<RankPeers>& ranks) {
  PairedLinks out;
  out.by_rank.resize(ranks.size());
  std::map<Key, Way> ways;
  for (size_t r = 0; r < ranks.size(); ++r)
    for (const PeerOp& op : ranks[r].ops) {
      const bool batch = op.kind == PeerOp::Kind::kBatch;
      Way& way = ways[{ranks[r].pipeline, op.group, batch, batch ? std::min(op.src, op.dst) : op.src,
                       batch ? std::max(op.src, op.dst) : op.dst}];
      const bool sent = batch ? op.src < op.dst : op.kind == PeerOp::Kind::kSend;
      (sent ? way.sent : way.received).push_back({r, &op});
    }
  std::set<std::string> used;  // for groups whose hashes end alike
  const auto remark = [&](std::string text) {
    if (out.remarks.size() < PairedLinks::kMaxRemarks) out.remarks.push_back(std::move(text));
  };
  int64_t number = 0;
  for (const auto& [key, way] : ways) {
    ++number;
    if (way.sent.size() != way.received.size()) remark(say(ranks, way));
    if (way.sent.empty() || way.received.empty()) continue;
    if (!one_rank(way.sent) || !one_rank(way.received)) {
      remark("several ranks send or receive as number " + std::to_string(std::get<3>(key)) + " of group " +
             std::get<1>(key) + ": not paired, for nothing tells their pipelines apart");
      continue;
    }
    const bool fewer_sent = way.sent.size() < way.received.size();
    const size_t shift = fewer_sent ? best_shift(way.received, way.sent) : best_shift(way.sent, way.received);
    const std::string begin = way.sent[0].op->tag + "_" + std::to_string(std::get<3>(key)) + "_" +
                              std::to_string(std::get<4>(key)) + (std::get<2>(key) ? "_b" : "_");
    const bool taken = !used.insert(begin).second;
    for (size_t k = 0; k < std::min(way.sent.size(), way.received.size()); ++k) {
      const std::string link = begin + std::to_string(k) + (taken ? "_g" + std::to_string(number) : "");
      for (const End& end : {way.sent[k + (fewer_sent ? 0 : shift)], way.received[k + (fewer_sent ? shift : 0)]})
        for (const int64_t row : end.op->row_numbers) out.by_rank[end.rank].emplace_back(row, link);
      ++out.pairs;
    }
  }
  return out;
}

}  // namespace stageline
