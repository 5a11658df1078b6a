#include "diagnosis/profile/link_findings.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/number.h"
#include "model/stage_costs.h"

namespace stageline {
namespace {

constexpr double kLostShare = 0.01;  // of the longest span of a rank

struct LinkCause {
  double lost_ns = 0, worst_ratio = 0;
  int64_t links = 0, src = 0, dst = 0;  // of the slowest
  std::string link;
};

}  // namespace

void add_link_findings(const ProfileFacts& facts, const std::vector<Table>& tables, std::vector<Finding>& out) {
  const TableReader links(tables, "slow-links");
  std::map<std::pair<std::string, int64_t>, LinkCause> causes;  // by reading, and the rank or the row that it means
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
  const std::string rank = std::to_string(key.second), from = std::to_string(cause.src), to = std::to_string(cause.dst);
  Finding x;
  x.id = "link.slow";
  x.weight = std::min(1.0, cause.lost_ns / span);
  x.value = fixed(cause.worst_ratio, 2) + "×";
  x.value_note_en = "of the time expected";
  x.value_note_zh = "相对应有用时";
  if (key.first.starts_with("source")) {
    x.title_en = "Rank " + rank + " sends slowly";
    x.title_zh = "rank " + rank + " 发送偏慢";
  } else if (key.first == "destination") {
    x.title_en = "Rank " + rank + " is reached slowly";
    x.title_zh = "到 rank " + rank + " 的传输偏慢";
  } else {
    x.title_en = "The link from rank " + from + " to rank " + to + " is slow";
    x.title_zh = "rank " + from + " 到 rank " + to + " 的链路偏慢";
  }
  const std::string kind_en = cause.link.empty() ? "its kind" : cause.link;
  const std::string lost = human_duration(cause.lost_ns), count = grouped(cause.links);
  x.detail_en = count + (cause.links == 1 ? " link loses " : " links lose ") + lost + " against others of " + kind_en +
                " for transfers of the same size; the slowest leads from rank " + from + " to rank " + to +
                ". Check its cable, port and firmware before the job.";
  x.detail_zh = "与同类（" + (cause.link.empty() ? std::string("同种链路") : cause.link) + "）同样大小的传输相比，" +
                count + " 条链路共多用 " + lost + "；最慢的是 rank " + from + " 到 rank " + to +
                "。先检查线缆、端口和固件，再看任务。";
  out.push_back(std::move(x));
}

}  // namespace stageline
