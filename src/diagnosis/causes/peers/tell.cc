#include "diagnosis/causes/peers/peers.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_peers(std::span<const Cause* const> causes, const TellContext& context) {
  constexpr size_t kShown = 8;
  const Cause& c = *causes.front();
  const auto& own = c.own.as<PeersOwn>();
  Args args = context.args(c);
  std::vector<std::string> ranks;
  for (const int32_t rank : c.place().ranks) ranks.push_back(std::to_string(rank));
  args.set("group", some_of(ranks, kShown)).set("layer", int64_t{own.layer});
  args.set("stage", int64_t{c.figures.stage}).flag("paired", own.correlation > 0);
  args.set("lasting", percent(own.lasting)).set("correlation", fixed(own.correlation, 2));
  args.set("own", human_duration(own.own_ns)).set("others", human_duration(own.others_ns));
  Telling telling;
  switch (own.fault) {
    case PeerFault::kExperts:
      telling = say_cause("data.uneven", "peers.experts", args);
      telling.key = "experts";
      break;
    case PeerFault::kRouting:
      telling = say_cause("data.uneven", "peers.routing", args);
      telling.key = "routing";
      break;
    case PeerFault::kSequences:
      telling = say_cause("sequence.long", "peers.sequences", args);
      telling.key = "sequences";
      break;
    case PeerFault::kLink:
      telling = say_cause("link.slow", "peers.link", args);
      telling.key = "link:" + std::to_string(c.figures.rank);
      break;
    case PeerFault::kCollective:
      telling = say_cause("link.slow", "peers.collective", args);
      telling.key = "collective:" + std::to_string(c.figures.stage);
      break;
    case PeerFault::kPauses: telling = say_cause("host.pauses", "peers.pauses", args); break;
  }
  telling.assumption = {};
  telling.table = {"stragglers", "straggler-workers"};
  return telling;
}

}  // namespace stageline
