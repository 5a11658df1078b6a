#include "diagnosis/profile/step_findings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "base/number.h"
#include "model/finding_words.h"
#include "model/statistics.h"
#include "pipeline/sums/stage_costs.h"

namespace stageline {
namespace {

constexpr double kLoadingShare = 0.05, kEligibleShare = 0.5, kIdleLeft = 0.05, kLongestOperator = 0.1;

Finding* find(std::vector<Finding>& list, std::string_view id) {
  const auto it = std::find_if(list.begin(), list.end(), [&](const Finding& x) { return x.id == id; });
  return it == list.end() ? nullptr : &*it;
}

// Times of the mean step by category, summed over ranks, and the rank that loses most to loading.
struct StepShares {
  double total = 0;
  std::map<std::string, double, std::less<>> by_category;
  double worst_loading = 0;
  int64_t worst_rank = 0;
  double of(std::string_view category) const {
    const auto it = by_category.find(category);
    return it == by_category.end() ? 0 : share_or_zero(it->second, total);
  }
};

StepShares step_shares(const std::vector<Table>& tables) {
  StepShares s;
  const TableReader averages(tables, "step-averages");
  for (size_t i = 0; i < averages.row_count(); ++i) {
    const std::string_view category = averages.text(i, "category");
    const auto ns = static_cast<double>(averages.integer(i, "time_ns"));
    if (category == "Step") {
      s.total += ns;
      continue;
    }
    s.by_category[std::string(category)] += ns;
    if (category != "DataLoader" || averages.real(i, "time_share") <= s.worst_loading) continue;
    s.worst_loading = averages.real(i, "time_share");
    s.worst_rank = averages.integer(i, "rank");
  }
  return s;
}

// The device waits for a host that waits for its input; this is one cause and is reported once.
void tell_idle_from_loading(const ProfileFacts& facts, double loading, std::vector<Finding>& out) {
  Finding* idle = find(out, "device.idle");
  if (!idle || main_idle_cause(facts) != &facts.host_wait) return;
  idle->weight = std::max(0.0, idle->weight - loading);
  if (idle->weight < kIdleLeft) {
    out.erase(out.begin() + (idle - out.data()));
    return;
  }
  idle->detail += words("profile.idle.loading", Args().set("share", percent(loading)));
}

void add_input_loading(const ProfileFacts& facts, const std::vector<Table>& tables, std::vector<Finding>& out) {
  const StepShares steps = step_shares(tables);
  const double loading = steps.of("DataLoader");
  if (loading <= kLoadingShare) return;
  tell_idle_from_loading(facts, loading, out);
  Finding x;
  x.id = "input.loading";
  x.weight = loading;
  x.value = percent(loading);
  Args args;
  args.set("worst", steps.worst_loading > 1.1 * loading ? percent(steps.worst_loading) : "");
  args.flag("devices", !facts.ranks.empty());
  say(x, "profile.input", args.set("rank", steps.worst_rank));
  x.detail += words("profile.input.processes");
  out.push_back(std::move(x));
}

void add_tensor_cores(const TableReader& advice, size_t row, std::vector<Finding>& out) {
  const double eligible = advice.real(row, "value_share");
  if (eligible < kEligibleShare) return;
  Finding x;
  x.id = "tensor_cores.unused";
  x.weight = 0;  // no recording says how much faster they would be
  x.value = percent(eligible);
  say(x, "profile.tensor_cores");
  out.push_back(std::move(x));
}

// Returns the largest class of the memory's peak, if blocks were sorted into classes. The sorting guesses, so only a
// class that is at least half is named.
Text largest_class(const std::vector<Table>& tables, int64_t rank) {
  static constexpr const char* kClasses[] = {"activation_bytes", "gradient_bytes", "optimizer_state_bytes",
                                             "parameter_bytes", "temporary_bytes"};
  const TableReader peaks(tables, "memory-category-peaks"), allocated(tables, "memory-peaks");
  for (size_t i = 0; i < peaks.row_count(); ++i) {
    if (peaks.integer(i, "rank") != rank || peaks.text(i, "device") == "CPU") continue;
    // Blocks whose frees were not recorded pile up; then the sum exceeds what was ever allocated and says nothing.
    bool followed = false;
    for (size_t k = 0; k < allocated.row_count(); ++k)
      followed |= allocated.integer(k, "rank") == rank && allocated.text(k, "device") == peaks.text(i, "device") &&
                  static_cast<double>(peaks.integer(i, "total_bytes")) <=
                      1.1 * static_cast<double>(allocated.integer(k, "peak_bytes"));
    if (!followed) continue;
    for (const char* column : kClasses) {
      const double share = share_or_zero(static_cast<double>(peaks.integer(i, column)),
                                         static_cast<double>(peaks.integer(i, "total_bytes")));
      if (share < 0.5) continue;
      const Text what = words(std::string("profile.memory.") + column);
      return words("profile.memory.most", Args().set("what", what).set("share", percent(share)));
    }
  }
  return {};
}

void add_full_memory(const std::vector<Table>& tables, double share, int64_t rank, std::vector<Finding>& out) {
  Finding x;
  x.id = "memory.full";
  x.weight = 0;  // about room, not time
  x.value = percent(share);
  say(x, "profile.memory", Args().set("rank", rank).set("most", largest_class(tables, rank)));
  out.push_back(std::move(x));
}

void add_data_parallel(const TableReader& advice, size_t row, std::vector<Finding>& out) {
  Finding x;
  x.id = "data_parallel.one_process";
  x.weight = 0;  // other findings say whose idle time it is
  say(x, "profile.data_parallel", Args().set("rank", advice.integer(row, "rank")));
  out.push_back(std::move(x));
}

}  // namespace

void add_step_findings(const ProfileFacts& facts, const std::vector<Table>& tables, std::vector<Finding>& out) {
  if (!facts.accounted) add_input_loading(facts, tables, out);  // with an account, the owner is known gap by gap
  const TableReader advice(tables, "recommendations");
  size_t eligible = SIZE_MAX, parallel = SIZE_MAX, full = SIZE_MAX;  // the worst rank stands for all
  const auto worse = [&](size_t row, size_t best) {
    return best == SIZE_MAX || advice.real(row, "value_share") > advice.real(best, "value_share");
  };
  for (size_t i = 0; i < advice.row_count(); ++i) {
    const std::string_view about = advice.text(i, "recommendation");
    if (about == "tensor-cores" && worse(i, eligible)) eligible = i;
    if (about == "memory-full" && worse(i, full)) full = i;
    if (about == "data-parallel" && parallel == SIZE_MAX) parallel = i;
  }
  if (eligible != SIZE_MAX) add_tensor_cores(advice, eligible, out);
  if (parallel != SIZE_MAX) add_data_parallel(advice, parallel, out);
  if (full != SIZE_MAX) add_full_memory(tables, advice.real(full, "value_share"), advice.integer(full, "rank"), out);
}

void add_host_parts(const std::vector<Table>& tables, Headline& h) {
  const StepShares steps = step_shares(tables);
  if (!(steps.total > 0)) return;
  h.host_alone = true;
  const auto part = [&](const char* id, const char* name, double share) {
    if (share > 0) h.parts.push_back(span_part(id, name, share));
  };
  const double communication = steps.of("Communication"), operators = steps.of("CPU Exec"),
               loading = steps.of("DataLoader");
  part("compute", "profile.host.operators", operators);
  part("comm", "profile.host.communication", communication);
  part("idle-input", "profile.part.idle-input", loading);
  part("rest", "profile.host.other", std::max(0.0, 1 - communication - operators - loading));
  // Rows are sorted by self device time, else by self host time; here there is no device.
  const TableReader table(tables, "operators");
  size_t longest = SIZE_MAX;
  for (size_t i = 0; i < table.row_count(); ++i)
    if (table.text(i, "kind") == "operator" &&
        (longest == SIZE_MAX || table.integer(i, "self_host_ns") > table.integer(longest, "self_host_ns")))
      longest = i;
  if (longest == SIZE_MAX || table.real(longest, "self_host_share") < kLongestOperator) return;
  Args args;
  args.set("name", std::string(table.text(longest, "name"))).set("rank", table.integer(longest, "rank"));
  args.set("share", percent(table.real(longest, "self_host_share"))).set("lead", h.lead);
  h.lead = words("profile.host.longest", args);
}

}  // namespace stageline
