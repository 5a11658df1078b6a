// Blocking sends: work starts only when its rank's own send has ended.
#include "diagnosis/causes/link_times.h"
#include "diagnosis/causes/start_reasons.h"
#include "diagnosis/causes/telling.h"

namespace stageline {
namespace {

struct BlockingSendsOwn {
  int64_t ranks = 0;
};

}  // namespace

void suspect_blocking_sends(CauseScene& scene, std::vector<Suspect>& out) {
  const StartDelays& starts = scene.measured<StartReasons>().starts;
  if (!starts.known() || !starts.rank_sends()) return;
  // Slow links and late messages make sends longer too; that time belongs to the link.
  auto blocked = std::make_shared<std::map<uint32_t, double>>();
  for (const auto& [op, of_send] : starts.rank_sends()->blocked) blocked->emplace(op, of_send.ns);
  const LinkTimes& links = scene.measured<LinkTimes>();
  for (const SlowTransfer& link : links.slow)
    for (const auto& [op, ns] : links.held_up(scene, link)) (*blocked)[op] -= ns;
  for (const LateTransfer& late : links.late)
    for (const auto& [op, ns] : late.held) (*blocked)[op] -= ns;
  double ns = 0;
  int64_t count = 0;
  std::set<int32_t> ranks;
  for (const auto& [op, own] : *blocked)
    if (own > 0) ns += own, ++count, ranks.insert(scene.graph.part[op]);
  if (count == 0) return;
  Suspect suspect;
  suspect.cause.kind = &blocking_sends_cause;
  suspect.cause.figures = {.each_ns = ns / count, .count = count, .of = static_cast<int64_t>(starts.cells())};
  suspect.cause.own = BlockingSendsOwn{std::ssize(ranks)};
  suspect.cause.certain = true;
  suspect.without = [blocked = std::shared_ptr<const std::map<uint32_t, double>>(std::move(blocked))](
                        uint32_t op, double&, double& delay) {
    if (const auto own = blocked->find(op); own != blocked->end()) delay = std::max(0.0, delay - own->second);
  };
  out.push_back(std::move(suspect));
}

Telling tell_blocking_sends(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  Args args = context.args(c);
  args.set("ranks", grouped(c.own.as<BlockingSendsOwn>().ranks));
  Telling telling = say_cause("sends.blocking", "sends.blocking", args);
  telling.key = "blocking";
  telling.table = {"theory", "late-reasons"};
  return telling;
}

}  // namespace stageline
