#include "diagnosis/causes/findings.h"
#include "diagnosis/causes/telling.h"

namespace stageline {
namespace {

using Causes = std::vector<const Cause*>;

// Sets the cost of causes that are reported as one. Evening out already is about all of them.
void set_joint_price(const CauseList& list, const Cause& first, Finding& f) {
  f.lost_ns_per_step = first.price.joint_ns;
  f.uncertainty_ns = first.price.half_interval_ns(first.price.joint_ns, first.price.joint_error_ns, list.steps);
  f.weight = list.step_ns > 0 ? first.price.joint_ns / list.step_ns : 0;
  if (first.together.role == Together::Role::kEqual && first.price.saving_ns > 0) return;
  f.price.saving_ns = first.price.joint_ns;
  f.value = "−" + percent(f.weight);
}

Finding finding_of(const TellContext& context, const Causes& causes) {
  const Cause& first = *causes.front();
  const CauseList& list = context.list;
  Telling telling = first.kind->tell(std::span(causes), context);
  Finding f;
  f.id = telling.id;
  f.key = std::move(telling.key);
  for (const Cause* cause : causes)
    if (cause->together.role != Together::Role::kPartOf)
      f.places.insert(f.places.end(), cause->places.begin(), cause->places.end());
  f.or_else = first.or_else;
  f.title = telling.title;
  f.detail = telling.detail;
  f.detail += context.when(first.lost_course);
  f.detail += telling.more;
  f.price.fix = telling.fix;
  f.price.assumption = telling.assumption;
  f.evidence = std::move(telling.table);
  f.step = telling.step, f.rank = telling.rank;
  f.lost_ns_per_step = first.price.lost_ns;
  f.uncertainty_ns = first.price.half_interval_ns(first.price.lost_ns, first.price.lost_error_ns, list.steps);
  f.weight = list.step_ns > 0 ? (list.unpriced ? first.price.longer_ns : first.price.lost_ns) / list.step_ns : 0;
  if (list.unpriced) {
    f.is_time = false;
    f.price.assumption = {};
    if (first.figures.ratio > 0) f.value = fixed(first.figures.ratio, 2) + "×";
    return f;
  }
  f.price.saving_ns = first.price.best_ns();
  const bool of_period = first.price.base == PriceBase::kPeriod && list.wall_ns > 0;
  f.value = "−" + percent(f.price.saving_ns / (of_period ? list.wall_ns : list.step_ns));
  f.price.at_most = first.price.falls_short() && !first.price.fix_brings_little();
  f.value_note = words(of_period ? "cause.value.period" : f.price.at_most ? "cause.value.at_most" : "cause.value");
  if (causes.size() > 1 && first.price.joint_ns > 0) set_joint_price(list, first, f);
  return f;
}

// All causes of the list that are reported with this one, it first.
Causes reported_with(const CauseList& list, const Cause& first) {
  Causes causes = {&first};
  if (first.together.id.empty()) return causes;
  for (const Cause& other : list.causes)
    if (&other != &first && other.together.id == first.together.id) causes.push_back(&other);
  return causes;
}

}  // namespace

Finding cause_finding(const Trace& trace, const CauseList& list, const Cause& cause, const Recognition& recognition) {
  return finding_of(TellContext(trace, list, recognition), {&cause});
}

std::vector<Finding> cause_findings(const Trace& trace, const CauseList& list, const Recognition& recognition) {
  const TellContext context(trace, list, recognition);
  std::vector<Finding> findings;
  std::vector<std::string_view> reported;  // ids of groups
  for (const Cause& cause : list.causes) {
    const Together& together = cause.together;
    if (together.follows()) continue;
    if (!together.id.empty()) {
      if (std::ranges::find(reported, together.id) != reported.end()) continue;
      reported.push_back(together.id);
    }
    findings.push_back(finding_of(context, reported_with(list, cause)));
  }
  return findings;
}

}  // namespace stageline
