// Causes in when compute starts: late ranks, pauses, late messages, or late starts on most ranks.
#include <algorithm>
#include <cmath>

#include "diagnosis/causes/start_delays.h"
#include "diagnosis/causes/step_begins.h"

namespace stageline {
namespace {

constexpr double kStandsOut = 2;  // delays that are this many times the next shorter one are of another kind
constexpr size_t kMinApart = 4;   // fewer delays are no kind of their own

// Whether cells are late on most ranks, and too often for pauses.
bool late_everywhere(const StartDelays& starts) {
  if (starts.hosts() == StartDelays::Hosts::kPrompt && few_links_are_late(starts)) return false;
  int64_t count = 0, often = 0;
  for (uint32_t worker = 0; worker < starts.delays().keys(); ++worker) {
    if (starts.delays().of(worker).empty()) continue;
    const int64_t own = starts.late_of(worker);
    count += own;
    often += static_cast<double>(own) >= kRareLate * static_cast<double>(starts.delays().of(worker).size());
  }
  return often > 1 && 2 * often >= starts.worked() &&
         static_cast<double>(count) >= kRareLate * static_cast<double>(starts.cells());
}

// For late starts everywhere: the delay above which delays are of another kind than the rest. These must be few cells
// that hold half of all that is lost, with a gap of a factor of two down to the next one. Returns ∞ where there are
// none.
//
//     cells  ▁▁▂▂▂▃▃                █ █    a busy host makes many cells a little late, a collector a few by much
//     late by 1 … 12 ms       60 … 300 ms
double standing_out_above_ns(const StartDelays& starts) {
  const double limit = starts.best_ns() + kLateStart * starts.cell_ns();
  std::vector<double> late;
  double all_ns = 0;
  for (uint32_t worker = 0; worker < starts.delays().keys(); ++worker)
    for (const double ns : starts.delays().of(worker))
      if (ns > limit) late.push_back(ns - starts.best_ns()), all_ns += ns - starts.best_ns();
  std::sort(late.begin(), late.end(), std::greater<>());
  const auto most = static_cast<size_t>(kRareLate * static_cast<double>(starts.cells()));
  double above_ns = 0;
  for (size_t i = 0; i + 1 < late.size() && i < most; ++i) {
    above_ns += late[i];
    if (i + 1 >= kMinApart && late[i] >= kStandsOut * late[i + 1] && late[i] >= kLongPause * starts.cell_ns() &&
        2 * above_ns >= all_ns)
      return starts.best_ns() + (late[i] + late[i + 1]) / 2;
  }
  return INFINITY;
}

// Drafts a cause for the pauses longer than `above_ns`, on ranks whose other starts are late as well, but by less.
void draft_standing_out(const StartDelays& starts, double above_ns, std::vector<CauseDraft>& out) {
  CauseDraft draft;
  draft.cause.kind = CauseKind::kPauses;
  draft.cause.of = static_cast<int64_t>(starts.cells());
  for (uint32_t worker = 0; worker < starts.delays().keys(); ++worker) {
    int64_t count = 0;
    for (const double ns : starts.delays().of(worker)) {
      if (ns <= above_ns) continue;
      ++count;
      draft.cause.pause_ns += ns - starts.usual_ns();
    }
    if (count == 0) continue;
    draft.cause.part = draft.cause.ranks == 0 ? starts.scene().times.workers()[worker].part : kUnknown;
    draft.cause.count += count;
    ++draft.cause.ranks;
  }
  draft.cause.pause_ns /= static_cast<double>(draft.cause.count);
  draft.cause.collector = draft.cause.ranks > 1;
  draft.without = [&scene = starts.scene(), above_ns, usual = starts.usual_ns()](uint32_t op, double&, double& delay) {
    if (delay > above_ns && scene.tells_delay(op)) delay = usual;
  };
  out.push_back(std::move(draft));
}

// Drafts a cause for late starts of at most `above_ns`.
void draft_everywhere(const StartDelays& starts, double above_ns, std::vector<CauseDraft>& out) {
  CauseDraft draft;
  draft.cause.kind = CauseKind::kLateStarts;
  draft.cause.guessed = starts.hosts() == StartDelays::Hosts::kUnknown && !starts.messages().any();
  draft.cause.hosts_prompt = starts.hosts() == StartDelays::Hosts::kPrompt;
  draft.cause.of = static_cast<int64_t>(starts.cells());
  double worst = 0;
  const double limit = starts.best_ns() + kLateStart * starts.cell_ns();
  for (uint32_t worker = 0; worker < starts.delays().keys(); ++worker) {
    const std::span<const double> delays = starts.delays().of(worker);
    if (delays.empty()) continue;
    int64_t count = 0;
    for (const double ns : delays) {
      if (ns <= limit || ns > above_ns) continue;
      ++count;
      draft.cause.pause_ns += ns - starts.best_ns();
    }
    draft.cause.count += count;
    draft.cause.ranks += count > 0;
    const double share = static_cast<double>(count) / static_cast<double>(delays.size());
    if (share <= worst) continue;
    worst = draft.cause.ratio = share;  // that of the worst worker
    draft.cause.part = starts.scene().times.workers()[worker].part;
  }
  if (draft.cause.count == 0) return;
  draft.cause.pause_ns /= static_cast<double>(draft.cause.count);
  draft.without = [&scene = starts.scene(), limit, above_ns, best = starts.best_ns()](uint32_t op, double&,
                                                                                      double& delay) {
    if (delay > limit && delay <= above_ns && scene.tells_delay(op)) delay = best;
  };
  out.push_back(std::move(draft));
}

}  // namespace

LateWorkers draft_delays(const CauseScene& scene, std::vector<CauseDraft>& out) {
  const StartDelays starts(scene);
  if (!starts.known()) return {};
  if (starts.own_sends()) draft_blocking_sends(starts.own_sends(), starts.cells(), out);
  const bool everywhere = late_everywhere(starts);
  const auto begins = draft_late_begins(scene, everywhere ? LateWorkers{} : starts.late_workers(), starts.cell_ns(),
                                        starts.cells(), out);
  if (everywhere) {
    const double above_ns = standing_out_above_ns(starts);
    if (std::isfinite(above_ns)) draft_standing_out(starts, above_ns, out);
    draft_everywhere(starts, above_ns, out);
    return {};
  }
  draft_late_workers(starts, begins, out);
  draft_pauses(starts, draft_late_links(starts, out), out);
  return starts.late_receivers();
}

}  // namespace stageline
