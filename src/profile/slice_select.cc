#include "profile/slice_select.h"

#include "base/name_pattern.h"
#include "model/intervals.h"
#include "model/torch_facts.h"

namespace stageline {
namespace {

using Kind = SliceCondition::Kind;
using Mask = std::vector<uint8_t>;  // one byte a slice, since a vector<bool> takes longer to fill

constexpr std::string_view kNumberColumns = "rank,step,stream,start_ns,end_ns,dur_ns";
constexpr std::string_view kTextColumns = "name,category,class,lane";

bool is_one_of(std::string_view column, std::string_view list) {
  const auto names = split(list, ',');
  return std::ranges::find(names, column) != names.end();
}

// Returns true when the text fits a pattern with * and ?. It needs no extra memory. The time is linear, unless the
// pattern has several stars; then it is at most |pattern| · |text| steps.
bool fits_glob(std::string_view text, std::string_view pattern) {
  size_t t = 0, p = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Compiles expressions once per condition; check_condition() has refused invalid ones.
std::vector<NamePattern> patterns_of(const SliceCondition& condition) {
  std::vector<NamePattern> out;
  if (condition.kind != Kind::kMatches) return out;
  for (const std::string& text : condition.texts)
    if (Result<NamePattern> pattern = NamePattern::expression(text)) out.push_back(std::move(*pattern));
  return out;
}

bool fits_text(const SliceCondition& condition, const std::vector<NamePattern>& patterns, std::string_view text) {
  if (condition.kind == Kind::kMatches)
    return std::ranges::any_of(patterns, [&](const NamePattern& p) { return p.matches(text); });
  return std::ranges::any_of(condition.texts, [&](const std::string& wanted) {
    return condition.kind == Kind::kGlob       ? fits_glob(text, wanted)
           : condition.kind == Kind::kContains ? text.find(wanted) != std::string_view::npos
                                               : text == wanted;
  });
}

class Selector {
 public:
  Selector(const Trace& trace, size_t part)
      : trace_(trace), part_index_(part), part_(trace.parts[part]), slices_(part_.slices) {}

  Mask mask_of(const SliceCondition& condition) const {
    switch (condition.kind) {
      case Kind::kAll: return Mask(slices_.size(), 1);
      case Kind::kAnd:
      case Kind::kOr: return joined(condition);
      case Kind::kNot: {
        Mask mask = mask_of(condition.parts[0]);
        for (uint8_t& m : mask) m = !m;
        return mask;
      }
      case Kind::kNumbers:
      case Kind::kBetween: return of_numbers(condition);
      case Kind::kUnder: return under(condition);
      case Kind::kBefore:
      case Kind::kAfter: return beside(condition);
      default: return of_texts(condition);
    }
  }

  // Returns what --steps and --range leave of the part.
  Mask open_mask() const {
    const SliceFilter& filter = trace_.slice_filter;
    Mask mask(slices_.size(), 1);
    if (!filter.any()) return mask;
    const bool by_step = filter.first_step != INT64_MIN || filter.last_step != INT64_MAX;
    const int64_t zero = first_start_ns(trace_);
    for (size_t i = 0; i < mask.size(); ++i) {
      int64_t step = 0;
      if (by_step && (!step_of(i, step) || step < filter.first_step || step > filter.last_step)) mask[i] = 0;
      if (slices_.end_ns(i) - zero < filter.from_ns || slices_.start_ns[i] - zero > filter.to_ns) mask[i] = 0;
    }
    return mask;
  }

 private:
  Mask joined(const SliceCondition& condition) const {
    Mask mask(slices_.size(), condition.kind == Kind::kAnd);
    for (const SliceCondition& part : condition.parts) {
      const Mask other = mask_of(part);
      for (size_t i = 0; i < mask.size(); ++i)
        mask[i] = condition.kind == Kind::kAnd ? mask[i] & other[i] : mask[i] | other[i];
    }
    return mask;
  }

  bool step_of(size_t i, int64_t& step) const {
    if (slices_.step.empty() || slices_.step[i] == 0) return false;
    step = part_.steps[slices_.step[i] - 1u].number;
    return true;
  }

  template <class Value>  // `value` is bool(size_t slice, int64_t& value) and returns false where the slice has none
  Mask by_number(const SliceCondition& condition, const Value& value) const {
    Mask mask(slices_.size(), 0);
    for (size_t i = 0; i < mask.size(); ++i) {
      int64_t v = 0;
      if (!value(i, v)) continue;
      mask[i] = condition.kind == Kind::kBetween ? v >= condition.low && v <= condition.high
                                                 : std::ranges::find(condition.numbers, v) != condition.numbers.end();
    }
    return mask;
  }

  Mask of_numbers(const SliceCondition& condition) const {
    const auto time = [&](int64_t stamp) { return trace_.common_ns(static_cast<int32_t>(part_index_), stamp); };
    if (condition.column == "rank")
      return by_number(condition, [&](size_t, int64_t& v) { return v = part_.rank, true; });
    if (condition.column == "step") return by_number(condition, [&](size_t i, int64_t& v) { return step_of(i, v); });
    if (condition.column == "start_ns")
      return by_number(condition, [&](size_t i, int64_t& v) { return v = time(slices_.start_ns[i]), true; });
    if (condition.column == "end_ns")
      return by_number(condition, [&](size_t i, int64_t& v) { return v = time(slices_.end_ns(i)), true; });
    if (condition.column == "dur_ns")
      return by_number(condition, [&](size_t i, int64_t& v) { return v = slices_.dur_ns[i], true; });
    return by_number(condition, [&](size_t i, int64_t& v) {  // the column is stream
      if (slices_.stream_id.empty() || slices_.stream_id[i] == 0) return false;
      v = part_.streams[slices_.stream_id[i]];
      return true;
    });
  }

  Mask names_that_fit(const SliceCondition& condition) const {
    const std::vector<NamePattern> patterns = patterns_of(condition);
    Mask fits(trace_.names.size(), 0);
    for (StringId id = 0; id < fits.size(); ++id) fits[id] = fits_text(condition, patterns, trace_.names.text(id));
    return fits;
  }

  Mask of_texts(const SliceCondition& condition) const {
    Mask mask(slices_.size(), 0);
    const std::vector<NamePattern> patterns = patterns_of(condition);
    if (condition.column == "name") {
      const Mask fits = names_that_fit(condition);
      for (size_t i = 0; i < mask.size(); ++i) mask[i] = fits[slices_.name_id[i]];
    } else if (condition.column == "lane") {
      for (const Lane& lane : part_.lanes)
        std::fill(mask.begin() + lane.begin, mask.begin() + lane.end, fits_text(condition, patterns, lane.name));
    } else if (condition.column == "category" && !slices_.category_id.empty()) {
      Mask fits;
      for (const CategoryInfo& category : trace_.categories)
        fits.push_back(fits_text(condition, patterns, category.text));
      for (size_t i = 0; i < mask.size(); ++i) mask[i] = fits[slices_.category_id[i]];
    } else if (condition.column == "class" && !slices_.kernel_class.empty()) {
      for (size_t i = 0; i < mask.size(); ++i)
        mask[i] = fits_text(condition, patterns, kernel_class_name(slices_.class_of(i)));
    }
    return mask;
  }

  uint32_t step_index(size_t i) const { return slices_.step.empty() ? 0u : uint32_t{slices_.step[i]}; }

  // Returns the slices that before, after and under refer to.
  Mask named(const SliceCondition& condition) const {
    const Mask fits = names_that_fit(condition);
    Mask mask(slices_.size(), 0);
    std::map<std::pair<uint32_t, StringId>, std::vector<uint32_t>> found;  // key: step and name
    for (uint32_t i = 0; i < mask.size(); ++i) {
      if (!fits[slices_.name_id[i]]) continue;
      if (condition.occurrence) found[{step_index(i), slices_.name_id[i]}].push_back(i);
      else mask[i] = 1;
    }
    for (auto& [of, slices] : found) {
      sort_stably(slices, [&](uint32_t a, uint32_t b) { return slices_.start_ns[a] < slices_.start_ns[b]; });
      const int64_t count = slices.size();
      const int64_t place = *condition.occurrence < 0 ? *condition.occurrence + count : *condition.occurrence;
      if (place >= 0 && place < count) mask[slices[place]] = 1;
    }
    return mask;
  }

  // A parent may be in another lane, before or after its children, so each chain is walked up once and then known.
  Mask under(const SliceCondition& condition) const {
    constexpr uint8_t kNo = 0, kYes = 1, kOpen = 2;
    Mask mask(slices_.size(), kOpen);
    if (slices_.parent.empty()) return Mask(slices_.size(), kNo);
    const Mask wanted = named(condition);
    std::vector<uint32_t> chain;
    for (uint32_t i = 0; i < mask.size(); ++i) {
      uint32_t at = i;
      uint8_t answer = kOpen;
      for (chain.clear(); answer == kOpen && mask[at] == kOpen;) {
        chain.push_back(at);
        const uint32_t above = slices_.parent[at];
        if (above == kNoSliceIndex || chain.size() > mask.size()) answer = kNo;
        else if (wanted[above]) answer = kYes;
        else at = above;
      }
      if (answer == kOpen) answer = mask[at];
      for (const uint32_t link : chain) mask[link] = answer;
    }
    return mask;
  }

  // Finds what is before and after an operator, step by step. Device work runs later than what asked for it, so its
  // launch is compared.
  //
  //   step 7   | a |  op  | b |   op   | c |      before: a      after: c
  Mask beside(const SliceCondition& condition) const {
    const Mask wanted = named(condition);
    std::map<uint32_t, Span> spans;
    for (size_t i = 0; i < slices_.size(); ++i)
      if (wanted[i]) spans[step_index(i)].add(slices_.start_ns[i], slices_.end_ns(i));
    Mask mask(slices_.size(), 0);
    for (size_t i = 0; i < slices_.size(); ++i) {
      const auto span = spans.find(step_index(i));
      if (span == spans.end()) continue;
      const bool launched = !slices_.partner.empty() && !slices_.kernel_class.empty() &&
                            slices_.class_of(i) != KernelClass::kNone && slices_.partner[i] != kNoSliceIndex;
      const size_t at = launched ? slices_.partner[i] : i;
      mask[i] = condition.kind == Kind::kBefore ? slices_.end_ns(at) <= span->second.start_ns
                                                : slices_.start_ns[at] >= span->second.end_ns;
    }
    return mask;
  }

  const Trace& trace_;
  size_t part_index_;
  const Part& part_;
  const Slices& slices_;
};

}  // namespace

Status check_condition(const SliceCondition& condition) {
  for (const SliceCondition& part : condition.parts) TRY_OK(check_condition(part));
  const bool number = condition.kind == Kind::kNumbers || condition.kind == Kind::kBetween;
  const bool text = condition.kind == Kind::kTexts || condition.kind == Kind::kGlob ||
                    condition.kind == Kind::kContains || condition.kind == Kind::kMatches;
  if (condition.kind == Kind::kMatches)
    for (const std::string& expression : condition.texts)
      if (auto pattern = NamePattern::expression(expression); !pattern) return std::move(pattern).error();
  if (!number && !text) return {};
  if (is_one_of(condition.column, number ? kNumberColumns : kTextColumns)) return {};
  const std::string wanted(number ? kNumberColumns : kTextColumns);
  if (is_one_of(condition.column, number ? kTextColumns : kNumberColumns))
    return make_error(ErrorCode::kUsage,
                      "slices: " + condition.column + " holds " + (number ? "text, not numbers" : "numbers, not text"),
                      std::string(number ? "numbers" : "texts") + " are " + wanted);
  std::vector<std::string> names;
  for (const std::string_view list : {kNumberColumns, kTextColumns})
    for (const std::string_view name : split(list, ',')) names.emplace_back(name);
  const std::string near = nearest(condition.column, names);
  return make_error(ErrorCode::kUsage, "slices have no column \"" + condition.column + "\" to choose by",
                    near.empty() ? "there are " + std::string(kNumberColumns) + "," + std::string(kTextColumns)
                                 : "did you mean " + near + "?");
}

std::vector<uint32_t> select_slices(const Trace& trace, size_t part, const SliceCondition& condition) {
  const std::vector<int32_t>& ranks = trace.slice_filter.ranks;
  if (!ranks.empty() && !std::ranges::binary_search(ranks, trace.parts[part].rank)) return {};
  const Selector selector(trace, part);
  const Mask open = selector.open_mask();
  const Mask mask = selector.mask_of(condition);
  std::vector<uint32_t> chosen;
  for (uint32_t i = 0; i < mask.size(); ++i)
    if (mask[i] && open[i]) chosen.push_back(i);
  return chosen;
}

}  // namespace stageline
