#include "diagnosis/diff/diff_report.h"

namespace stageline {

std::vector<Table> diff_tables(const RunDiff& diff) {
  using enum ColumnType;
  Table runs(declared_table("diff/runs"));
  for (const auto& [name, run] : {std::pair{"a", &diff.a}, std::pair{"b", &diff.b}})
    runs.add_row({std::string(name), run->schedule, int64_t{run->stages}, int64_t{run->replicas}, int64_t{run->ranks},
                  int64_t{run->chunks}, int64_t{run->micro_batches}, run->steps, run->left_out, whole_ns(run->step_ns),
                  whole_ns(run->error_ns)});
  Table groups(declared_table("diff/groups"));
  // Rounded rows must add up to the rounded change, so the rest takes what rounding leaves.
  int64_t left = whole_ns(diff.change_ns);
  for (const DiffGroup& g : diff.groups) {
    const bool timed = g.cause != DiffCause::kSchedule && g.cause != DiffCause::kMore && g.cause != DiffCause::kRest;
    const auto place = [](int32_t value) { return value == kUnknown ? kNullInteger : int64_t{value}; };
    const bool rest = g.cause == DiffCause::kRest;
    const int64_t effect = rest ? left : whole_ns(g.effect_ns);
    if (effect != kNullInteger) left = sum_or_limit(left, -effect);
    const double share = diff.a.step_ns > 0 ? (rest ? effect : g.effect_ns) / diff.a.step_ns : std::nan("");
    groups.add_row({std::string(cause_id(g.cause)), place(g.stage), place(g.from_stage),
                    g.cause == DiffCause::kCompute ? std::string(kind_code(g.kind)) : g.type,
                    g.rank == kUnknown ? kNullInteger : int64_t{g.rank}, g.count,
                    timed ? whole_ns(g.a_ns) : kNullInteger, timed ? whole_ns(g.b_ns) : kNullInteger, effect, share,
                    whole_ns(g.error_ns), std::string(g.sure ? "yes" : "no"), g.paused > 0 ? g.paused : kNullInteger,
                    g.paused > 0 ? whole_ns(g.pause_ns) : kNullInteger});
  }
  std::vector<Table> tables;
  tables.push_back(std::move(runs)), tables.push_back(std::move(groups));
  if (!diff.a.profile) return tables;
  Table items(declared_table("diff/items"));
  for (const DiffGroup& g : diff.groups)
    for (const DiffItem& item : g.behind)
      items.add_row({g.type, item.name.en, item.kernels.en, item.at,
                     item.rank == kUnknown ? kNullInteger : int64_t{item.rank}, whole_ns(item.a_ns),
                     whole_ns(item.b_ns), whole_ns(item.effect_ns), item.effect_ns / diff.a.step_ns,
                     whole_ns(item.error_ns), std::string(item.sure ? "yes" : "no"), item.a_count, item.b_count});
  tables.push_back(std::move(items));
  return tables;
}

}  // namespace stageline
