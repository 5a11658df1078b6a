// Long sequences: some micro-batches take longer forward and backward, on every stage.
#include "diagnosis/causes/telling.h"

namespace stageline {
namespace {

// Returns the micro-batch that is the only long one in each of a few steps, or in the only one; kUnknown: there is
// none. Only more steps show whether its place makes it long (find_positions()).
int32_t same_in_few_steps(const CauseScene& scene) {
  if (!few_steps(scene)) return kUnknown;
  std::set<size_t> steps;
  bool same = true;
  int32_t number = kUnknown;
  scene.each_op([&](uint32_t op, size_t step) {
    if (!(scene.times.long_factor(op) > 1)) return;
    if (number == kUnknown) number = scene.graph.micro_batch[op];
    same = same && scene.graph.micro_batch[op] == number;
    steps.insert(step);
  });
  return same && std::cmp_equal(steps.size(), std::ranges::count(scene.counts, true)) ? number : kUnknown;
}

// The scenario in which each micro-batch's work takes factor(op) times as long, also where it was not read.
template <class Factor> CauseWorld with_lengths(const CauseScene& scene, const Factor& factor) {
  return [&scene, factor](uint32_t op, double& dur, double& delay) {
    dur *= factor(op);
    if (!scene.holds_unread(op)) return;
    if (is_compute(scene.graph.kind[op])) delay *= factor(op);
    else dur *= factor(scene.graph.waits(op).front());
  };
}

}  // namespace

void suspect_long_sequences(CauseScene& scene, std::vector<Suspect>& out) {
  const CellTimes::Sequences& all = scene.times.sequences();
  if (!scene.times.sequence_factor_known()) return;
  Suspect suspect;
  suspect.cause.kind = &long_sequences_cause;
  suspect.cause.figures = {.ratio = all.long_factor, .count = all.long_ones, .of = all.all};
  if (const int32_t number = same_in_few_steps(scene); number != kUnknown)
    suspect.cause.or_else = {{.kind = PlaceKind::kMicroBatches, .first = number, .last = number}};
  suspect.without = with_lengths(scene, [&scene](uint32_t op) { return 1 / scene.times.long_factor(op); });
  suspect.evened = with_lengths(scene, [&scene](uint32_t op) { return scene.times.even_factor(op); });
  out.push_back(std::move(suspect));
}

Telling tell_long_sequences(std::span<const Cause* const> causes, const TellContext& context) {
  Args args = context.args(*causes.front());
  if (!causes.front()->or_else.empty())
    args.set(context.list.steps > 1 ? "same" : "only", std::to_string(causes.front()->or_else.front().first));
  Telling telling = say_cause("sequence.long", "sequence.long", std::move(args));
  telling.key = "sequences";
  telling.table = {"stragglers", "forward-backward"};
  return telling;
}

}  // namespace stageline
