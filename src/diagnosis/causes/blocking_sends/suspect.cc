#include "diagnosis/causes/blocking_sends/blocking_sends.h"
#include "diagnosis/causes/start_reasons.h"

namespace stageline {

extern const CauseKind blocking_sends_cause;

namespace {

void suspect_blocking_sends(CauseScene& scene, std::vector<Suspect>& out) {
  const StartDelays& starts = scene.measured<StartReasons>().starts;
  if (!starts.known() || !starts.own_sends()) return;
  const std::shared_ptr<const OwnSends> sends = starts.own_sends();
  Suspect suspect;
  suspect.cause.kind = &blocking_sends_cause;
  suspect.cause.figures = {
      .each_ns = sends->ns / sends->count, .count = sends->count, .of = static_cast<int64_t>(starts.cells())};
  suspect.cause.own = BlockingSendsOwn{sends->ranks};
  suspect.cause.certain = true;
  suspect.without = [sends](uint32_t op, double&, double& delay) {
    if (const double blocked = sends->blocked_by(op); blocked > 0) delay = std::max(0.0, delay - blocked);
  };
  out.push_back(std::move(suspect));
}

constexpr std::string_view kLines[] = {"late"};

}  // namespace

const CauseKind blocking_sends_cause = {.id = "blocking_sends",
                                        .name = "blocking sends",
                                        .takes_from = kLines,
                                        .suspect = suspect_blocking_sends,
                                        .tell = tell_blocking_sends};

}  // namespace stageline
