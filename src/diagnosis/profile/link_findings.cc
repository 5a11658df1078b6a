#include "diagnosis/profile/link_findings.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/number.h"
#include "model/finding_words.h"
#include "pipeline/sums/stage_costs.h"

namespace stageline {
namespace {

constexpr double kLostShare = 0.01;  // share of the longest span of a rank

struct LinkCause {
  double lost_ns = 0, worst_ratio = 0;
  int64_t links = 0, src = 0, dst = 0;  // src and dst: of the slowest link
  std::string link;
};

}  // namespace

void add_link_findings(const ProfileFacts& facts, const std::vector<Table>& tables, std::vector<Finding>& out) {
  const TableReader links(tables, "slow-links");
  // key: reading, and the rank or the row that it is about.
  std::map<std::pair<std::string, int64_t>, LinkCause> causes;
  for (size_t i = 0; i < links.row_count(); ++i) {
    const std::string reading(links.text(i, "reading"));
    const int64_t of = reading.starts_with("source") ? links.integer(i, "src_rank")
                       : reading == "destination"    ? links.integer(i, "dst_rank")
                                                     : static_cast<int64_t>(i);
    LinkCause& cause = causes[{reading, of}];
    cause.lost_ns += static_cast<double>(links.integer(i, "lost_ns"));
    ++cause.links;
    if (links.real(i, "ratio") <= cause.worst_ratio) continue;
    cause.worst_ratio = links.real(i, "ratio");
    cause.src = links.integer(i, "src_rank");
    cause.dst = links.integer(i, "dst_rank");
    cause.link = links.text(i, "link").empty() ? links.text(i, "transport") : links.text(i, "link");
  }
  const auto worst = std::max_element(causes.begin(), causes.end(),
                                      [](const auto& a, const auto& b) { return a.second.lost_ns < b.second.lost_ns; });
  double span = 0;
  for (const RankFacts& rank : facts.ranks) span = std::max(span, rank.span_ns);
  if (worst == causes.end() || !(span > 0) || worst->second.lost_ns < kLostShare * span) return;
  const auto& [key, cause] = *worst;
  Finding x;
  x.id = "link.slow";
  x.weight = std::min(1.0, cause.lost_ns / span);
  x.value = fixed(cause.worst_ratio, 2) + "×";
  Args args;
  args.set("rank", key.second).set("from", cause.src).set("to", cause.dst).set("link", cause.link);
  args.count("count", cause.links).set("lost", human_duration(cause.lost_ns));
  x.title = words(key.first.starts_with("source") ? "profile.link.source"
                  : key.first == "destination"    ? "profile.link.destination"
                                                  : "profile.link.pair",
                  args);
  x.detail = words("profile.link.detail", args);
  x.value_note = words("profile.link.note");
  out.push_back(std::move(x));
}

}  // namespace stageline
