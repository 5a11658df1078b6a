#include "profile/name_totals.h"

#include "model/statistics.h"

namespace stageline {
namespace {

bool kept_by_text(std::string_view name, const std::vector<std::string>& keep) {
  return std::ranges::any_of(keep, [&](const std::string& part) { return name.find(part) != std::string_view::npos; });
}

double us(int64_t ns) { return ns / 1000.0; }

}  // namespace

void DurationStats::add(int64_t ns) {
  ++count;
  sum_ns = sum_or_limit(sum_ns, ns);
  min_ns = std::min(min_ns, ns);
  max_ns = std::max(max_ns, ns);
  const double delta = ns - mean_ns;
  mean_ns += delta / count;
  squares += delta * (ns - mean_ns);
}

void DurationStats::merge(const DurationStats& other) {
  if (other.count == 0) return;
  const double a = count, b = other.count;
  const double delta = other.mean_ns - mean_ns;
  mean_ns += delta * b / (a + b);
  squares += other.squares + delta * delta * a * b / (a + b);
  count += other.count;
  sum_ns = sum_or_limit(sum_ns, other.sum_ns);
  min_ns = std::min(min_ns, other.min_ns);
  max_ns = std::max(max_ns, other.max_ns);
}

double DurationStats::std_ns() const { return count < 2 ? 0 : std::sqrt(squares / (count - 1)); }

std::vector<DurationTotal> NameTotals::sorted(const StringPool& names) const {
  std::vector<DurationTotal> out = totals_;
  sort_stably(out, [&](const DurationTotal& a, const DurationTotal& b) {
    if (a.stats.sum_ns != b.stats.sum_ns) return a.stats.sum_ns > b.stats.sum_ns;
    return names.text(a.name) < names.text(b.name);
  });
  return out;
}

std::vector<DurationTotal> fold_by_share(std::vector<DurationTotal> totals, const StringPool& names,
                                         const FoldOptions& options) {
  double whole = 0, before = 0;
  for (const DurationTotal& total : totals) whole += total.stats.sum_ns;
  DurationTotal others;
  std::vector<DurationTotal> out;
  for (size_t i = 0; i < totals.size(); ++i) {
    const bool large = static_cast<int64_t>(i) < options.max_names && (i == 0 || before < options.share * whole);
    before += totals[i].stats.sum_ns;
    if (large || kept_by_text(names.text(totals[i].name), options.keep)) {
      out.push_back(totals[i]);
    } else {
      ++others.folded;
      others.stats.merge(totals[i].stats);
    }
  }
  if (others.folded > 0) out.push_back(others);
  return out;
}

std::vector<HtaTotal> hta_fold(const std::vector<DurationTotal>& totals, const StringPool& names,
                               const FoldOptions& options) {
  std::vector<HtaTotal> out;
  out.reserve(totals.size());
  if (std::ssize(totals) <= options.max_names) {
    for (const DurationTotal& t : totals)
      out.push_back({names.text(t.name), us(t.stats.sum_ns), us(t.stats.max_ns), us(t.stats.min_ns),
                     t.stats.std_ns() / 1000.0, t.stats.mean_ns / 1000.0});
    return out;
  }
  std::vector<double> cumulative;
  double sum = 0;
  for (const DurationTotal& t : totals) cumulative.push_back(sum += us(t.stats.sum_ns));
  std::vector<double> sorted = cumulative;
  std::ranges::sort(sorted);
  const double cut = quantile(sorted, options.share);
  DurationStats others;
  for (size_t i = 0; i < totals.size(); ++i) {
    const int64_t sum_ns = totals[i].stats.sum_ns;
    const bool exempt = options.keep.empty() ? sum_ns < 0 : kept_by_text(names.text(totals[i].name), options.keep);
    if (!exempt && (cumulative[i] > cut || static_cast<int64_t>(i) >= options.max_names)) {
      others.add(sum_ns);
    } else {
      const double total = us(sum_ns);
      out.push_back({names.text(totals[i].name), total, total, total, 0, total});
    }
  }
  if (others.count > 0)
    out.push_back({"others", us(others.sum_ns), us(others.max_ns), us(others.min_ns), others.std_ns() / 1000.0,
                   others.mean_ns / 1000.0});
  return out;
}

}  // namespace stageline
