#include "pipeline/cells/range_rows.h"

namespace stageline {
namespace {

bool is_forward(const RangeRow& row) {
  return row.kind == CellKind::kForward || row.kind == CellKind::kForwardBackward;
}

// Returns for each row the recorded step; kUnknown where there is none.
std::vector<int32_t> recorded_steps(const Part& part, const std::vector<RangeRow>& rows) {
  std::vector<int32_t> steps;
  steps.reserve(rows.size());
  int32_t before = kUnknown;
  for (const RangeRow& row : rows) {
    if (part.steps.empty()) {
      before = row.step != kUnknown ? row.step : before;
      steps.push_back(before);
      continue;
    }
    const auto after = std::ranges::upper_bound(part.steps, row.host_ns, {}, &ProfilerStep::start_ns);
    const bool inside = after != part.steps.begin() && row.host_ns < (after - 1)->end_ns;
    const bool reported = inside && (after - 1)->number >= 0 && (after - 1)->number < INT32_MAX;
    steps.push_back(reported ? static_cast<int32_t>((after - 1)->number) : kUnknown);
  }
  return steps;
}

int32_t count_forwards(const std::vector<RangeRow>& rows, size_t begin, size_t end) {
  return static_cast<int32_t>(std::count_if(rows.begin() + begin, rows.begin() + end, is_forward));
}

// Returns how many forwards a step has. Where the whole list of rows repeats, that is the forwards of one period.
// Otherwise it is the most common distance, in forwards, from a forward with a given number to the next with the same
// number; else all forwards.
int32_t forwards_of_period(const std::vector<RangeRow>& rows) {
  const auto key = [](const RangeRow& r) { return std::tuple(r.kind, r.micro_batch, r.chunk); };
  const size_t n = rows.size();
  std::vector<uint32_t> border(n, 0);  // for each prefix the length of its border (Knuth, Morris and Pratt)
  for (size_t i = 1, k = 0; i < n; ++i) {
    while (k > 0 && key(rows[i]) != key(rows[k])) k = border[k - 1];
    if (key(rows[i]) == key(rows[k])) ++k;
    border[i] = static_cast<uint32_t>(k);
  }
  const size_t period = n == 0 ? 0 : n - border[n - 1];
  if (period * 2 <= n) return count_forwards(rows, 0, period);
  std::map<std::pair<int32_t, int32_t>, int32_t> seen;
  std::map<int32_t, int64_t> distances;
  int32_t forwards = 0;
  for (const RangeRow& row : rows) {
    if (!is_forward(row)) continue;
    if (row.micro_batch != kUnknown) {
      const auto [at, fresh] = seen.try_emplace({row.micro_batch, row.chunk}, forwards);
      if (!fresh) ++distances[forwards - std::exchange(at->second, forwards)];
    }
    ++forwards;
  }
  int32_t best = forwards;
  int64_t max = 0;
  for (const auto& [distance, count] : distances)
    if (count > max) best = distance, max = count;
  return best;
}

// Returns the most common value; of equally common values the largest.
int32_t commonest(const std::vector<int32_t>& values) {
  std::map<int32_t, int64_t> counts;
  for (const int32_t value : values)
    if (value > 0) ++counts[value];
  int32_t best = 0;
  int64_t max = 0;
  for (const auto& [value, count] : counts)
    if (count >= max) best = value, max = count;
  return best;
}

// Cuts rows [begin, end) wherever `forwards` forwards are reached, counting from the front or from the back.
void cut_stretch(const std::vector<RangeRow>& rows, RowList stretch, int32_t forwards, bool from_back,
                 std::vector<RowList>& out) {
  std::vector<size_t> cuts;
  int32_t count = 0;
  if (from_back) {
    for (size_t i = stretch.end; i-- > stretch.begin;) {
      if (!is_forward(rows[i]) || ++count < forwards || i == stretch.begin) continue;
      cuts.push_back(i);
      count = 0;
    }
    std::ranges::reverse(cuts);
  } else {
    for (size_t i = stretch.begin; i < stretch.end; ++i) {
      if (!is_forward(rows[i])) continue;
      if (count == forwards && forwards > 0) cuts.push_back(i), count = 0;
      ++count;
    }
  }
  cuts.push_back(stretch.end);
  for (const size_t cut : cuts) {
    if (cut <= stretch.begin) continue;
    RowList list = stretch;
    list.end = cut;
    out.push_back(list);
    stretch.begin = cut;
  }
}

// Numbers lists without a recorded step from the recorded ones around them.
void number_lists(std::vector<RowList>& lists, int32_t max_lists) {
  size_t known = lists.size();
  for (size_t i = lists.size(); i-- > 0;)
    if (!lists[i].guessed) known = i;
  if (known == lists.size()) {
    const auto first = max_lists - static_cast<int32_t>(lists.size());
    for (uint32_t i = 0; i < lists.size(); ++i) lists[i].step = first + i;
    return;
  }
  for (size_t i = known; i-- > 0;) lists[i].step = std::max(lists[i + 1].step - 1, kUnknown);
  for (size_t i = known + 1; i < lists.size(); ++i) {
    if (!lists[i].guessed || lists[i - 1].step >= INT32_MAX - 1) continue;
    size_t next = i;
    while (next < lists.size() && lists[next].guessed) ++next;
    // Lists between two recorded steps are numbered only where there are as many of them as step numbers are missing.
    const int64_t gap = next < lists.size() ? int64_t{lists[next].step} - lists[i - 1].step - 1 : INT64_MAX;
    const bool fits = next == lists.size() || gap == static_cast<int64_t>(next - i);
    for (size_t k = i; k < next; ++k) lists[k].step = fits ? lists[k - 1].step + 1 : kUnknown;
    i = next;
  }
}

}  // namespace

RowLists find_row_lists(const Trace& trace, const RangeRows& rows) {
  RowLists out;
  std::vector<std::vector<RowList>> parts(rows.parts.size());
  std::vector<int32_t> forwards, periods;
  for (uint32_t p = 0; p < parts.size(); ++p) {
    const std::vector<RangeRow>& own = rows.parts[p];
    const std::vector<int32_t> steps = recorded_steps(trace.parts[p], own);
    for (size_t i = 0; i < own.size();) {
      size_t end = i;
      while (end < own.size() && steps[end] == steps[i]) ++end;
      RowList list{p, steps[i], i, end, count_forwards(own, i, end)};
      list.guessed = steps[i] == kUnknown;
      if (!list.guessed) forwards.push_back(list.forwards);
      parts[p].push_back(list);
      i = end;
    }
  }
  out.any_recorded = !forwards.empty();
  if (forwards.empty())
    for (const auto& own : rows.parts) forwards.push_back(forwards_of_period(own));
  const int32_t usual = commonest(forwards);
  size_t max_lists = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    std::vector<RowList> cut;
    for (const RowList& list : parts[p])
      if (list.guessed && usual > 0) cut_stretch(rows.parts[p], list, usual, cut.empty(), cut);
      else cut.push_back(list);
    parts[p] = std::move(cut);
    max_lists = std::max(max_lists, parts[p].size());
  }
  std::vector<int32_t> counts;
  for (size_t p = 0; p < parts.size(); ++p) {
    number_lists(parts[p], static_cast<int32_t>(max_lists));
    for (RowList& list : parts[p]) {
      list.forwards = count_forwards(rows.parts[p], list.begin, list.end);
      list.first = &list == &parts[p].front();
      list.last = &list == &parts[p].back();
      out.guessed += list.guessed ? 1 : 0;
      counts.push_back(list.forwards);
      out.lists.push_back(list);
    }
  }
  out.forwards = usual > 0 ? usual : commonest(counts);
  return out;
}

}  // namespace stageline
