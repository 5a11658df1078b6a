#include "diagnosis/profile/profile_diff.h"

#include "diagnosis/diff/diff_report.h"
#include "diagnosis/diff/diff_side.h"
#include "diagnosis/profile/change_of_steps.h"
#include "diagnosis/profile/part_items.h"
#include "profile/python_stacks.h"

namespace stageline {
namespace {

// A change is named after one rank if that has at least four fifths of it.
constexpr double kOneRank = 0.8;
constexpr double kMinItem = 0.05;  // share of a part's change; smaller changes behind it are not listed
constexpr size_t kMaxItems = 8, kMaxKernelNames = 2;

class Differ {
 public:
  // `joined`: one of the runs has no steps, so that the other's were joined.
  Differ(const ProfileParts& a, const ProfileParts& b, DiffItemsBy by, bool joined)
      : a_(a), b_(b), joined_(joined), change_(a.lengths, b.lengths, kMinDiffShare * a.step_ns) {
    diff_.items_by = by;
  }

  RunDiff diff() {
    diff_.a = described(a_);
    diff_.b = described(b_);
    diff_.change_ns = b_.step_ns - a_.step_ns;
    diff_.error_ns = ChangeOfSteps::error_ns(a_.lengths, b_.lengths);
    diff_.independent = change_.steps();
    diff_.certain_ns = change_.certain_ns(diff_.change_ns, a_.lengths, b_.lengths);
    diff_.sure = diff_.certain_ns != 0;
    describe_differences();
    add_parts();
    return std::move(diff_);
  }

 private:
  static DiffRun described(const ProfileParts& parts) {
    return DiffRun{.ranks = static_cast<int32_t>(parts.ranks.size()),
                   .profile = true,
                   .steps = parts.steps,
                   .step_ns = parts.step_ns,
                   .error_ns = standard_error(parts.lengths, std::ssize(parts.lengths))};
  }

  void describe_differences() {
    const auto add_count = [&](const char* name, int64_t a, int64_t b) {
      diff_.changes.push_back(words(name, Args().count("a", a).count("b", b)));
    };
    if (a_.ranks.size() != b_.ranks.size()) add_count("diff.shape.ranks", std::ssize(a_.ranks), std::ssize(b_.ranks));
    if (a_.headline.host_alone != b_.headline.host_alone)
      diff_.changes.push_back(words("diff.profile.devices", Args().flag("b", a_.headline.host_alone)));
    if (a_.requests > 0) diff_.changes.push_back(words("diff.profile.requests"));
    if (joined_) diff_.changes.push_back(words("diff.profile.joined"));
    else if (a_.steps == 0) diff_.changes.push_back(words("diff.profile.whole"));
    else if (change_.steps() < 2) diff_.changes.push_back(words("diff.profile.one_step"));
  }

  void add_parts() {
    std::vector<SpanPart> parts = b_.headline.parts;
    for (const SpanPart& part : a_.headline.parts)
      if (!part_of(b_, part.id)) parts.push_back(part);
    double left_ns = diff_.change_ns;
    for (const SpanPart& part : parts) {
      DiffGroup group = group_of(part);
      left_ns -= group.effect_ns;
      diff_.groups.push_back(std::move(group));
    }
    sort_stably(diff_.groups,
                [](const DiffGroup& x, const DiffGroup& y) { return std::abs(x.effect_ns) > std::abs(y.effect_ns); });
    diff_.groups.push_back({.effect_ns = left_ns, .error_ns = std::nan("")});
    diff_.matched = matched_.size(), diff_.unmatched = only_b_.size(), diff_.unused = only_a_.size();
  }

  static const SpanPart* part_of(const ProfileParts& run, const std::string& id) {
    const auto it = std::ranges::find_if(run.headline.parts, [&](const SpanPart& part) { return part.id == id; });
    return it == run.headline.parts.end() ? nullptr : &*it;
  }
  static double part_ns(const ProfileParts& run, const std::string& id) {
    const SpanPart* part = part_of(run, id);
    return part ? part->share * run.step_ns : 0;
  }
  // The time of a part, by its id, in each step; zeros where a run has none of it.
  static std::vector<double> steps_of(const ProfileParts& run, const std::string& id) {
    const auto it = run.of_step.find(id);
    return it == run.of_step.end() ? std::vector<double>(run.lengths.size()) : it->second;
  }

  DiffGroup group_of(const SpanPart& part) {
    DiffGroup group{.cause = DiffCause::kPart, .type = part.id, .what = part.label};
    group.a_ns = part_ns(a_, part.id), group.b_ns = part_ns(b_, part.id);
    group.effect_ns = group.b_ns - group.a_ns;
    const std::vector<double> a = steps_of(a_, part.id), b = steps_of(b_, part.id);
    group.error_ns = ChangeOfSteps::error_ns(a, b);
    group.sure = change_.is_sure(group.effect_ns, a, b);
    group.rank = rank_of(ranks_of(a_, part.id), ranks_of(b_, part.id));
    const bool waits = part.id == "comm-wait" || (part.id == "comm" && b_.headline.host_alone);
    if (waits && a_.late != b_.late) {
      group.late = group.effect_ns > 0 ? b_.late : a_.late;
      group.why = words(b_.late == kUnknown   ? "diff.profile.late.a"
                        : a_.late == kUnknown ? "diff.profile.late.b"
                                              : "diff.profile.late.both",
                        Args().set("a", int64_t{a_.late}).set("b", int64_t{b_.late}));
    }
    add_items(group);
    return group;
  }

  void add_items(DiffGroup& group) {
    const auto first = [&](const ProfileParts& run) { return run.items.lower_bound({group.type, ""}); };
    std::set<std::string> names;
    for (const ProfileParts* run : {&a_, &b_})
      for (auto it = first(*run); it != run->items.end() && it->first.first == group.type; ++it)
        names.insert(it->first.second);
    static const PartItem none;
    const bool lists_all = diff_.items_by != DiffItemsBy::kOperator && !group.type.starts_with("idle");
    for (const std::string& name : names) {
      const auto item_in = [&](const ProfileParts& run) {
        const auto it = run.items.find({group.type, name});
        return it == run.items.end() ? &none : &it->second;
      };
      const PartItem *a = item_in(a_), *b = item_in(b_);
      (a == &none ? only_b_ : b == &none ? only_a_ : matched_).insert(name);
      DiffItem item = item_of(name, *a, *b);
      if (lists_all || std::abs(item.effect_ns) >= std::max(change_.min_ns(), kMinItem * std::abs(group.effect_ns)))
        group.behind.push_back(std::move(item));
    }
    sort_stably(group.behind,
                [](const DiffItem& x, const DiffItem& y) { return std::abs(x.effect_ns) > std::abs(y.effect_ns); });
    if (!lists_all && group.behind.size() > kMaxItems) group.behind.resize(kMaxItems);
  }

  DiffItem item_of(const std::string& name, const PartItem& a, const PartItem& b) const {
    DiffItem item;
    item.a_ns = a_.step_share(a.ns), item.b_ns = b_.step_share(b.ns);
    item.effect_ns = item.b_ns - item.a_ns;
    const auto padded = [](std::vector<double> values, size_t size) {
      values.resize(size);
      return values;
    };
    const std::vector<double> steps_a = padded(a.of_step, a_.lengths.size()),
                              steps_b = padded(b.of_step, b_.lengths.size());
    item.error_ns = ChangeOfSteps::error_ns(steps_a, steps_b);
    item.sure = change_.is_sure(item.effect_ns, steps_a, steps_b);
    const PartItem& shown = b.ns > 0 ? b : a;
    item.places = shown.at.places();
    const std::string what = name.empty() ? shown.at.name() : built_in_name(name);
    item.name = !shown.label.empty() ? shown.label : what.empty() ? words("diff.profile.unnamed") : Text{what, what};
    item.rank = rank_of(a.of_rank, b.of_rank);
    if (item.rank != kUnknown) item.places.push_back({.kind = PlaceKind::kRanks, .ranks = {item.rank}});
    item.at = shown.at.where();
    describe_kernels(a, b, item);
    return item;
  }

  using RankSums = std::map<int32_t, double>;
  static const RankSums& ranks_of(const ProfileParts& run, const std::string& id) {
    static const RankSums none;
    const auto it = run.of_rank.find(id);
    return it == run.of_rank.end() ? none : it->second;
  }
  // The rank that has most of the change, where the runs have others too.
  int32_t rank_of(const RankSums& a, const RankSums& b) const {
    if (a_.ranks != b_.ranks || a_.ranks.size() < 2) return kUnknown;
    const auto change = [&](int32_t rank) {
      const auto in_a = a.find(rank), in_b = b.find(rank);
      return (in_b == b.end() ? 0 : b_.step_share(in_b->second)) - (in_a == a.end() ? 0 : a_.step_share(in_a->second));
    };
    const double all = sum_over<double>(a_.ranks, [&](const int32_t rank) { return change(rank); });
    for (const int32_t rank : a_.ranks)
      if (all != 0 && change(rank) / all >= kOneRank) return rank;
    return kUnknown;
  }

  double per_step(const ProfileParts& run, int64_t count) const {
    return static_cast<double>(count) / std::max<size_t>(1, run.ranks.size()) / std::max<size_t>(1, run.lengths.size());
  }

  // Kernels that have another name in B, or another number in a step.
  void describe_kernels(const PartItem& a, const PartItem& b, DiffItem& item) const {
    int64_t in_a = 0, in_b = 0;
    for (const auto& [kernel, sum] : a.kernels) in_a += sum.count;
    for (const auto& [kernel, sum] : b.kernels) in_b += sum.count;
    item.a_count = per_step(a_, in_a), item.b_count = per_step(b_, in_b);
    if (in_a == 0 || in_b == 0) return;
    const std::string gone = names_without(a, b), fresh = names_without(b, a);
    if (!gone.empty() && !fresh.empty())
      item.kernels += words("diff.profile.renamed", Args().set("a", gone).set("b", fresh));
    const std::string count_a = short_number(item.a_count), count_b = short_number(item.b_count);
    if (count_a != count_b) {
      if (!item.kernels.empty()) item.kernels += words("list.comma");
      item.kernels += words("diff.profile.counted", Args().set("a", count_a).set("b", count_b));
    }
  }

  static std::string short_number(double count) { return fixed(count, count == std::floor(count) ? 0 : 1); }

  // The kernels of one run that the other has not, by their time.
  static std::string names_without(const PartItem& of, const PartItem& other) {
    std::vector<std::pair<double, std::string>> list;
    for (const auto& [kernel, sum] : of.kernels)
      if (!other.kernels.contains(kernel)) list.emplace_back(-sum.ns, kernel);
    std::ranges::sort(list);
    std::string out;
    for (size_t k = 0; k < list.size() && k < kMaxKernelNames; ++k) append_item(out, list[k].second, " + ");
    return out;
  }

  const ProfileParts &a_, &b_;
  const bool joined_;
  const ChangeOfSteps change_;
  std::set<std::string> matched_, only_a_, only_b_;
  RunDiff diff_;
};

Result<ProfileParts> parts_of(const Run& run, const char* name, DiffItemsBy by) {
  Result<ProfileParts> parts = profile_parts(run, by);
  if (parts) return parts;
  Error e = parts.error();
  e.what = std::string("run ") + name + ": " + e.what;
  return e;
}

// Makes one recording of all steps, as long as the mean of the ranks.
void join_steps(ProfileParts& parts) {
  const auto join = [](std::vector<double>& of_steps) { of_steps = {sum_over<double>(of_steps)}; };
  parts.step_ns = parts.recorded_ns / static_cast<double>(parts.ranks.size());
  parts.steps = 0;
  join(parts.lengths);
  for (auto& [part, values] : parts.of_step) join(values);
  for (auto& [key, item] : parts.items) join(item.of_step);
}

}  // namespace

Result<RunDiff> diff_profiles(const Run& a, const Run& b, DiffItemsBy by) {
  TRY(parts_a, parts_of(a, "A", by));
  TRY(parts_b, parts_of(b, "B", by));
  const bool joined = (parts_a->steps == 0) != (parts_b->steps == 0);
  if (joined) join_steps(*parts_a), join_steps(*parts_b);
  return Differ(*parts_a, *parts_b, by, joined).diff();
}

}  // namespace stageline
