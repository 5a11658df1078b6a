#include "cli/plan_question.h"

#include "cli/plan_flags.h"
#include "cli/plan_json.h"
#include "cli/plan_text.h"
#include "cli/questions.h"

namespace stageline {
namespace {

using namespace plan;

// What other estimators say of the first plan or, where none fits, of the one that misses least.
std::vector<memory_estimates::Estimate> compared_estimates(const PlanAnswer& answer) {
  const Found& found = answer.found;
  if (found.plans.empty() && !found.shortfall) return {};
  const Candidate& plan = found.plans.empty() ? found.shortfall->candidate : found.plans.front();
  memory_estimates::Input input;
  input.world = answer.wish.gpus;
  input.distributed = answer.wish.rates.memory.sharding != Sharding::kReplicated;
  input.chunks = plan.chunks, input.micro_batches = plan.micro_batches;
  return memory_estimates::estimates(answer.wish.model, plan.layout, input);
}

}  // namespace

Result<PlanAnswer> answer_plan(const Arguments& arguments, const Terminal& terminal, const PlanGiven& given) {
  PlanAnswer answer;
  TRY_OK(take(wish_of(arguments, terminal, given, answer), answer.wish));
  answer.from = given.run ? "run" : arguments.get("from");
  TRY_OK(take(find_plans(answer.wish), answer.found));
  if (arguments.has("compare")) answer.compared = compared_estimates(answer);
  answer.limited = answer.wish.rates.memory.limit > 0, answer.sharding_given = arguments.has("optimizer");
  return answer;
}

Result<std::string> planned_json(const std::vector<std::string>& flags, const PlanGiven& given) {
  TRY(arguments, parse_arguments(*find_command("plan"), flags));
  TRY(answer, answer_plan(*arguments, Terminal{}, given));
  std::string json = plan_json(*answer);
  json.pop_back();  // the line's end
  return json;
}

Result<ReportedPlan> reported_plan(const Arguments& arguments) {
  TRY(answer, answer_plan(arguments, Terminal{}));
  return ReportedPlan{plan_json(*answer), plan_text(*answer, Terminal{})};
}

}  // namespace stageline
