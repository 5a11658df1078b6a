#include "diagnosis/causes/suspect.h"

#include "diagnosis/causes/long_place/long_place.h"

namespace stageline {

extern const CauseKind long_place_cause;

namespace {

void suspect_long_places(CauseScene& scene, std::vector<Suspect>& out) {
  const CellPositions& positions = scene.times.positions();
  for (size_t i = 0; i < std::min(positions.list.size(), kMaxWorkerCauses); ++i) {
    const CellPosition& position = positions.list[i];
    Suspect suspect;
    suspect.cause.kind = &long_place_cause;
    Place place{.kind = position.stage == kUnknown ? PlaceKind::kMicroBatches : PlaceKind::kCells,
                .stage = position.stage,
                .chunk = position.chunk,
                .first = position.micro_batch,
                .last = position.last_micro_batch,
                .cells = position.kind};
    if (position.within.varies()) place.first = place.last = kUnknown;
    suspect.cause.places = {place};
    suspect.cause.figures = {.ratio = position.ratio, .stage = position.stage};
    suspect.cause.own = LongPlaceOwn{position.within, position.every_stage, position.own_ns};
    suspect.cause.certain = true;
    suspect.cause.price.excess_error = position.excess_error;
    suspect.without = [&positions, number = static_cast<uint8_t>(i + 1)](uint32_t op, double& dur, double&) {
      if (positions.of[op] == number) dur /= positions.factor[op];
    };
    out.push_back(std::move(suspect));
  }
}

}  // namespace

const CauseKind long_place_cause = {.id = "long_place",
                                    .name = "long place of a step",
                                    .of_work = true,
                                    .suspect = suspect_long_places,
                                    .tell = tell_long_place};

}  // namespace stageline
