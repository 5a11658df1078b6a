// Findings about slow links between two ranks, by transfers that were recorded link by link (Ascend).
#include "diagnosis/profile/transfer_findings.h"

namespace stageline {
namespace {

constexpr double kLostShare = 0.01;  // share of the longest span of a rank

struct LinkCause {
  double lost_ns = 0, worst_ratio = 0;
  int64_t links = 0, src = 0, dst = 0;  // src and dst: of the slowest link
  std::string link;
};

bool on_one_machine(const Trace& trace, int64_t a, int64_t b) {
  const auto machine = [&](int64_t rank) {
    const auto at = std::ranges::find(trace.parts, rank, &Part::rank);
    return at == trace.parts.end() ? kUnknown : at->machine;
  };
  return machine(a) != kUnknown && machine(a) == machine(b);
}

}  // namespace

void add_link_findings(const Trace& trace, const ProfileFacts& facts, const ProfileSums& sums,
                       std::vector<Finding>& out) {
  // key: reading, and the rank or the row that it is about.
  std::map<std::pair<std::string_view, int64_t>, LinkCause> causes;
  for (const SlowLinkSum& link : sums.slow_links) {
    const int64_t of = link.reading.starts_with("source") ? link.src
                       : link.reading == "destination"    ? link.dst
                                                          : &link - sums.slow_links.data();
    LinkCause& cause = causes[{link.reading, of}];
    cause.lost_ns += link.lost_ns;
    ++cause.links;
    if (link.ratio <= cause.worst_ratio) continue;
    cause.worst_ratio = link.ratio;
    cause.src = link.src;
    cause.dst = link.dst;
    cause.link = link.link;
  }
  const auto worst = std::ranges::max_element(causes, {}, [](const auto& a) { return a.second.lost_ns; });
  double span = max_over<double>(facts.ranks, &RankFacts::span_ns);
  if (worst == causes.end() || !(span > 0) || worst->second.lost_ns < kLostShare * span) return;
  const auto& [key, cause] = *worst;
  Finding x;
  x.id = "comm.slow_link";
  x.weight = std::min(1.0, cause.lost_ns / span);
  x.value = fixed(cause.worst_ratio, 2) + "×";
  Args args;
  args.set("rank", key.second).set("from", cause.src).set("to", cause.dst).set("link", cause.link);
  args.flag("one_host", on_one_machine(trace, cause.src, cause.dst));
  args.count("count", cause.links).set("lost", time_per_step(facts, cause.lost_ns));
  const bool one_end = key.first != "link";
  if (one_end) x.places = {{.kind = PlaceKind::kRanks, .ranks = {static_cast<int32_t>(key.second)}}};
  else
    x.places = {
        {.kind = PlaceKind::kLink, .ranks = {static_cast<int32_t>(cause.src), static_cast<int32_t>(cause.dst)}}};
  x.title = words(key.first.starts_with("source") ? "profile.link.source"
                  : key.first == "destination"    ? "profile.link.destination"
                                                  : "profile.link.pair",
                  args);
  x.detail = words("profile.link.detail", args);
  x.value_note = words("profile.link.note");
  out.push_back(std::move(x));
}

}  // namespace stageline
