// Long sequences: micro-batches that are long forward and backward, on every stage.
#include "diagnosis/causes/suspect.h"

#include "diagnosis/causes/long_sequences/long_sequences.h"

namespace stageline {

extern const CauseKind long_sequences_cause;

namespace {

void suspect_long_sequences(CauseScene& scene, std::vector<Suspect>& out) {
  const CellTimes::Sequences& all = scene.times.sequences();
  if (!scene.times.sequence_factor_known()) return;
  Suspect suspect;
  suspect.cause.kind = &long_sequences_cause;
  suspect.cause.figures = {.ratio = all.long_factor, .count = all.long_ones, .of = all.all};
  suspect.without = [&scene](uint32_t op, double& dur, double&) { dur /= scene.times.long_factor(op); };
  suspect.evened = [&scene](uint32_t op, double& dur, double&) { dur *= scene.times.even_factor(op); };
  out.push_back(std::move(suspect));
}

// If they are distributed evenly, jitter is gone too.
constexpr std::string_view kLines[] = {"jitter", "replica-jitter"};

}  // namespace

const CauseKind long_sequences_cause = {.id = "long_sequences",
                                        .name = "long sequences",
                                        .measured = Measured::kCounted,
                                        .takes_from = kLines,
                                        .of_work = true,
                                        .suspect = suspect_long_sequences,
                                        .tell = tell_long_sequences};

}  // namespace stageline
