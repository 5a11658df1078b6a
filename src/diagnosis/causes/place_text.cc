#include "diagnosis/causes/place_text.h"

namespace stageline {
namespace {

Text stage_text(int32_t stage, int32_t chunk = kUnknown) {
  Args args;
  args.set("stage", int64_t{stage}).flag("unknown", stage == kUnknown);
  return words("place.stage", args.set("chunk", chunk == kUnknown ? "" : std::to_string(chunk)));
}

Text link_text(const Place& link, bool pipelines) {
  Args args;
  args.set("from", stage_text(link.from_stage)).set("to", stage_text(link.stage));
  args.set("a", int64_t{link.from_stage}).set("b", int64_t{link.stage});
  const char* of = pipelines ? "place.of.pipeline" : "place.of.replica";
  args.set("of", link.replica == kUnknown ? Text() : words(of, Args().set("replica", int64_t{link.replica})));
  return words(link.both_ways ? "place.link.both" : "place.link", args);
}

}  // namespace

Text place_text(const Place& place, bool pipelines) {
  switch (place.kind) {
    case PlaceKind::kStage: return stage_text(place.stage, place.chunk);
    case PlaceKind::kLink: return link_text(place, pipelines);
    case PlaceKind::kReplicas: return words("place.replica", Args().set("replica", int64_t{place.replica}));
    case PlaceKind::kRanks:
    case PlaceKind::kHost:
      if (place.ranks.size() == 1) return words("place.rank", Args().set("rank", int64_t{place.ranks.front()}));
      return {};
    default: return {};
  }
}

}  // namespace stageline
