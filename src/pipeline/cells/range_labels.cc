#include "base/parallel.h"
#include "pipeline/cells/range_rows.h"
#include "pipeline/cells/row_alignment.h"
#include "schedules/registry.h"

namespace stageline {
namespace {

constexpr size_t kMaxSampled = 256;     // where no schedule fits all lists, each is compared with this number of them
constexpr size_t kMaxAligned = 32;      // at most this number of schedules that fit equally well is kept
constexpr int64_t kMaxEditShare = 4;    // at most a quarter of a list's rows may be edits
constexpr int64_t kMaxWrongShare = 50;  // at most a fiftieth of the neighbours may be out of order
constexpr int64_t kMaxForwards = int64_t{1} << 21;  // limit for one schedule over all its sizes and stages
constexpr ExpectedRow kNoLabel{.action_count = 0};

bool same_label(const ExpectedRow& a, const ExpectedRow& b) {
  if (a.kind != b.kind || a.head != b.head || a.action_count != b.action_count) return false;
  return std::equal(a.actions, a.actions + a.action_count, b.actions);
}

class Labeller {
 public:
  Labeller(const Trace& trace, const RangeRows& rows, const RowLists& lists)
      : trace_(trace), rows_(rows), lists_(lists) {
    std::map<int32_t, std::set<int32_t>> forwards;
    for (const RowList& list : lists.lists) forwards[list.step].insert(list.forwards);
    for (const auto& [step, counts] : forwards) own_forwards_[step] = counts.size() == 1 ? *counts.begin() : 0;
  }

  // Adds the hypothesis for the number of micro-batches that this list's step has, unless `made` has it already.
  void prepare(const RowList& list, std::vector<RowHypothesis>& made) const {
    constexpr size_t kMaxSizes = 16;
    const int32_t m = own_micro_batches(list, made.front());
    if (made.size() >= kMaxSizes || &known(list, made) != &made.front() ||
        m == made.front().schedule.sizes.micro_batches)
      return;
    ScheduleSizes sizes = made.front().schedule.sizes;
    sizes.micro_batches = m;
    int64_t forwards = int64_t{sizes.stages} * m * sizes.chunks;
    for (const RowHypothesis& one : made)
      forwards += int64_t{sizes.stages} * one.schedule.sizes.micro_batches * sizes.chunks;
    if (forwards > kMaxForwards) return;
    Result<Schedule> schedule = make_schedule(made.front().schedule.name, sizes);
    if (!schedule) return;
    RowHypothesis one{std::move(*schedule), made.front().logits, made.front().apart, made.front().offset, {}};
    for (int32_t stage = 0; stage < sizes.stages; ++stage) one.stages.push_back(expected_rows(one, stage));
    made.push_back(std::move(one));
  }

  const RowHypothesis& known(const RowList& list, const std::vector<RowHypothesis>& made) const {
    const int32_t m = own_micro_batches(list, made.front());
    for (const RowHypothesis& one : made)
      if (one.schedule.sizes.micro_batches == m) return one;
    return made.front();
  }

  const std::vector<ExpectedRow>* expected_of(const RowHypothesis& hypothesis, const RowList& list) const {
    const int32_t stage = trace_.parts[list.part].stage;
    return stage < 0 || static_cast<size_t>(stage) >= hypothesis.stages.size() ? nullptr : &hypothesis.stages[stage];
  }

  bool can_be_at(const RowHypothesis& hypothesis, const RowList& list, const std::vector<ExpectedRow>& expected,
                 size_t i, size_t j) const {
    return can_be(rows_.parts[list.part][list.begin + i], expected[j], hypothesis.offset,
                  hypothesis.schedule.sizes.micro_batches);
  }

  // Returns true when the list is the rows `shift`, `shift` + 1, … of the schedule, and with `whole` up to its end.
  bool equals(const RowHypothesis& hypothesis, const RowList& list, size_t shift) const {
    const std::vector<ExpectedRow>* expected = expected_of(hypothesis, list);
    const size_t n = list.end - list.begin;
    if (expected == nullptr || shift + n > expected->size()) return false;
    for (size_t i = 0; i < n; ++i)
      if (!can_be_at(hypothesis, list, *expected, i, shift + i)) return false;
    return true;
  }

  bool exact(const RowHypothesis& hypothesis, const RowList& list) const {
    const std::vector<ExpectedRow>* expected = expected_of(hypothesis, list);
    return expected != nullptr && expected->size() == list.end - list.begin && equals(hypothesis, list, 0);
  }

  RowAlignment align(const RowHypothesis& hypothesis, const RowList& list) const {
    const std::vector<ExpectedRow>* expected = expected_of(hypothesis, list);
    // A list outside the recorded steps is a step only if it is exactly one, so no edits are allowed.
    if (expected == nullptr || (list.guessed && lists_.any_recorded)) return {};
    const size_t n = list.end - list.begin;
    RowAlignment out = align_rows(n, expected->size(),
                                  [&](size_t i, size_t j) { return can_be_at(hypothesis, list, *expected, i, j); });
    const int64_t longer = std::max(n, expected->size());
    if (out.close && int64_t{out.edits} * kMaxEditShare <= longer) return out;
    // A recording that began or ended in mid-step may lack most of the step; then the list must be exactly its end or
    // its beginning.
    out = {};
    for (const bool head : {true, false}) {
      if ((head ? !list.first : !list.last) || n >= expected->size() || n * kMaxEditShare < expected->size()) continue;
      const size_t shift = head ? expected->size() - n : 0;
      if (!equals(hypothesis, list, shift)) continue;
      out.close = true;
      out.edits = static_cast<int32_t>(expected->size() - n);
      for (size_t i = 0; i < n; ++i) out.early.push_back(static_cast<int32_t>(shift + i));
      out.late = out.early;
      break;
    }
    return out;
  }

  // Returns how many rows the lists of the sample lack or have too many; a list far from the schedule counts with all
  // its rows.
  int64_t cost(const RowHypothesis& hypothesis, const std::vector<size_t>& sample) const {
    std::vector<RowHypothesis> made = {hypothesis};
    for (const size_t l : sample) prepare(lists_.lists[l], made);
    std::vector<int64_t> costs(sample.size(), 0);
    parallel_for(sample.size(), [&](size_t k) {
      const RowList& list = lists_.lists[sample[k]];
      const RowHypothesis& own = known(list, made);
      if (exact(own, list)) return;
      const RowAlignment way = align(own, list);
      costs[k] = way.close ? std::max(way.edits, 1) : static_cast<int64_t>(list.end - list.begin);
    });
    return sum_over<int64_t>(costs);
  }

  RangeLabels label(const RowHypothesis& hypothesis) const;

 private:
  // Returns the micro-batches of this list's step if every rank has the same number of forwards in it, else the usual
  // number.
  int32_t own_micro_batches(const RowList& list, const RowHypothesis& usual) const {
    const int32_t forwards = value_at(own_forwards_, list.step);
    const int32_t chunks = chunks_of_a_micro_batch(usual.schedule);
    return forwards <= 0 || forwards % chunks != 0 ? usual.schedule.sizes.micro_batches : forwards / chunks;
  }
  std::vector<RowAlignment> align_all(RangeLabels& out) const;
  RowOrder order_of_labels(const RowHypothesis& hypothesis, const RangeLabels& labels) const;
  void count_lost(const RowHypothesis& hypothesis, const RowList& list, const RowAlignment& way,
                  OffSchedule& off) const;
  void say_off(const RowHypothesis& hypothesis, const RowList& list, const RowAlignment& way, RangeLabels& out) const;
  void decide(const RowHypothesis& hypothesis, const RowOrder& order, const RowList& list, const RowAlignment& way,
              std::vector<ExpectedRow>& labels) const;

  const Trace& trace_;
  const RangeRows& rows_;
  const RowLists& lists_;
  std::map<int32_t, int32_t> own_forwards_;  // for each step; 0 where the ranks have different numbers
};

// Estimates how long the missing rows took from the rows of their kind in this step. Where no row of that kind is left,
// nothing is known.
void Labeller::count_lost(const RowHypothesis& hypothesis, const RowList& list, const RowAlignment& way,
                          OffSchedule& off) const {
  const std::vector<ExpectedRow>& expected = *expected_of(hypothesis, list);
  const std::vector<RangeRow>& rows = rows_.parts[list.part];
  std::map<CellKind, std::pair<int64_t, int64_t>> seen;  // kind → number of rows and their time
  for (size_t i = list.begin; i < list.end; ++i) {
    auto& [count, sum_ns] = seen[rows[i].kind];
    ++count;
    sum_ns = sum_or_limit(sum_ns, rows[i].end_ns - rows[i].start_ns);
  }
  std::vector<char> there(expected.size(), 0);
  for (const int32_t j : way.early)
    if (j != kNoRow) there[j] = 1;
  for (size_t j = 0; j < expected.size(); ++j) {
    if (there[j] != 0) continue;
    if (off.lost++ == 0) off.lost_first = row_text(expected[j], hypothesis.schedule.sizes.chunks > 1);
    if (const auto at = seen.find(expected[j].kind); at != seen.end())
      off.lost_ns = sum_or_limit(off.lost_ns, at->second.second / at->second.first);
  }
}

void Labeller::say_off(const RowHypothesis& hypothesis, const RowList& list, const RowAlignment& way,
                       RangeLabels& out) const {
  const std::vector<ExpectedRow>& expected = *expected_of(hypothesis, list);
  const std::vector<RangeRow>& rows = rows_.parts[list.part];
  const size_t n = list.end - list.begin;
  const bool chunks = hypothesis.schedule.sizes.chunks > 1;
  size_t at = 0;
  while (at < n && way.early[at] == static_cast<int32_t>(at)) ++at;
  OffSchedule off{.part = list.part, .step = list.step, .row = static_cast<int64_t>(at), .edits = way.edits};
  if (at < expected.size()) off.expected = row_text(expected[at], chunks);
  if (at < n) off.found_row = static_cast<uint32_t>(list.begin + at);
  const bool headless = n > 0 && way.late[0] > 0 && n < expected.size();
  const bool tailless = n > 0 && way.early[n - 1] != kNoRow && static_cast<size_t>(way.early[n - 1]) + 1 == n;
  off.why =
      words(headless && list.first                         ? "off_schedule.began"
            : headless                                     ? "off_schedule.first_rows"
            : n < expected.size() && tailless && list.last ? "off_schedule.ended"
            : n < expected.size()                          ? "off_schedule.rows"
            : n > expected.size() && at < n && rows[list.begin + at].kind == CellKind::kWeightGrad ? "off_schedule.pop"
            : n > expected.size()                                                                  ? "off_schedule.row"
                                  : "off_schedule.order");
  if (n < expected.size() && !(headless && list.first) && !(tailless && list.last))
    count_lost(hypothesis, list, way, off);
  out.off.push_back(std::move(off));
}

// A row within an edit can be any of the expected rows between the two alignments. It gets a label when time excludes
// all but one. With too early a label the work that takes its result would start before it ends. With too late a label
// the work that makes its input would end after it starts.
void Labeller::decide(const RowHypothesis& hypothesis, const RowOrder& order, const RowList& list,
                      const RowAlignment& way, std::vector<ExpectedRow>& labels) const {
  const std::vector<ExpectedRow>& expected = *expected_of(hypothesis, list);
  const size_t n = way.early.size();
  std::vector<int32_t> decided(n, kNoRow);
  for (size_t i = 0; i < n; ++i) {
    if (way.early[i] == way.late[i]) decided[i] = way.early[i];
    if (way.early[i] == way.late[i] || way.early[i] == kNoRow || way.late[i] == kNoRow) continue;
    const auto [first, last] = std::minmax(way.early[i], way.late[i]);
    int32_t left = kNoRow, count = 0;
    for (int32_t j = first; j <= last; ++j) {
      if (!can_be_at(hypothesis, list, expected, i, j)) continue;
      const auto [wrong, seen] = order.against(list, static_cast<uint32_t>(list.begin + i), expected[j]);
      if (wrong > 0) continue;
      left = j;
      ++count;
    }
    if (count == 1) decided[i] = left;
  }
  // Rows keep their order, so a label that would break it is not given.
  int32_t before = kNoRow;
  for (size_t i = 0; i < n; ++i) {
    if (decided[i] == kNoRow) continue;
    const bool rises = decided[i] > before;
    before = std::max(before, decided[i]);
    if (rises && way.early[i] != way.late[i]) labels[list.begin + i] = expected[decided[i]];
  }
}

// Labels the rows of lists that are a step of the schedule, and returns how each list lies along it. A row gets a label
// here where the earliest and the latest alignment agree.
std::vector<RowAlignment> Labeller::align_all(RangeLabels& out) const {
  std::vector<RowAlignment> ways(lists_.lists.size());
  parallel_for(lists_.lists.size(), [&](size_t l) {
    const RowList& list = lists_.lists[l];
    const RowHypothesis& own = known(list, out.made);
    const size_t n = list.end - list.begin;
    if (exact(own, list)) {
      ways[l].close = true;
      for (size_t i = 0; i < n; ++i) out.rows[list.part][list.begin + i] = (*expected_of(own, list))[i];
    } else if (ways[l] = align(own, list); ways[l].close) {
      for (size_t i = 0; i < n; ++i)
        if (const int32_t j = ways[l].early[i]; j != kNoRow && j == ways[l].late[i])
          out.rows[list.part][list.begin + i] = (*expected_of(own, list))[j];
    }
  });
  std::set<int32_t> doubtful;  // steps outside the recorded ones that are not a whole step on every rank
  for (size_t l = 0; l < ways.size() && lists_.any_recorded; ++l)
    if (lists_.lists[l].guessed && !ways[l].close) doubtful.insert(lists_.lists[l].step);
  for (size_t l = 0; l < ways.size(); ++l) {
    const RowList& list = lists_.lists[l];
    if (!list.guessed || !doubtful.contains(list.step)) continue;
    ways[l] = {};
    std::fill(out.rows[list.part].begin() + list.begin, out.rows[list.part].begin() + list.end, kNoLabel);
  }
  return ways;
}

RowOrder Labeller::order_of_labels(const RowHypothesis& hypothesis, const RangeLabels& labels) const {
  RowOrder order(trace_, rows_, hypothesis.schedule);
  for (size_t l = 0; l < lists_.lists.size(); ++l) {
    const RowList& list = lists_.lists[l];
    for (size_t i = list.begin; labels.list_proven[l] && i < list.end; ++i)
      if (const ExpectedRow& label = labels.rows[list.part][i]; label.action_count > 0)
        order.add(list, static_cast<uint32_t>(i), label);
  }
  order.finish();
  return order;
}

RangeLabels Labeller::label(const RowHypothesis& hypothesis) const {
  RangeLabels out;
  out.made = {hypothesis};
  out.rows.resize(rows_.parts.size());
  for (size_t p = 0; p < out.rows.size(); ++p) out.rows[p].assign(rows_.parts[p].size(), kNoLabel);
  out.list_proven.assign(lists_.lists.size(), 0);
  for (const RowList& list : lists_.lists) prepare(list, out.made);
  const std::vector<RowAlignment> ways = align_all(out);
  std::vector<size_t> open;  // lists with rows that the two alignments place differently
  for (size_t l = 0; l < ways.size(); ++l) {
    out.list_proven[l] = ways[l].close ? 1 : 0;
    if (ways[l].close && ways[l].edits > 0) say_off(known(lists_.lists[l], out.made), lists_.lists[l], ways[l], out);
    if (ways[l].close && ways[l].early != ways[l].late) open.push_back(l);
  }
  if (!open.empty()) {
    const RowOrder order = order_of_labels(hypothesis, out);
    for (const size_t l : open) {
      const RowList& list = lists_.lists[l];
      decide(known(list, out.made), order, list, ways[l], out.rows[list.part]);
    }
  }
  const RowOrder::Verdict verdict = order_of_labels(hypothesis, out).check();
  out.checked = verdict.checked;
  out.wrong = verdict.wrong;
  for (const auto& [part, row] : verdict.rows) out.rows[part][row] = kNoLabel;
  // The row at the gap is named by its label, or by its kind where it has none.
  for (OffSchedule& off : out.off) {
    if (off.found_row == UINT32_MAX) continue;
    const ExpectedRow& label = out.rows[off.part][off.found_row];
    const RangeRow& row = rows_.parts[off.part][off.found_row];
    off.found = label.action_count > 0 ? row_text(label, hypothesis.schedule.sizes.chunks > 1)
                                       : std::string(kind_code(row.kind));
  }
  return out;
}

HypothesisFacts facts_of(const Trace& trace, const RangeRows& rows, const RowLists& lists, const std::string& named) {
  HypothesisFacts facts{.stages = trace.pipeline_stages, .forwards = lists.forwards, .named = named};
  for (const auto& own : rows.parts)
    for (const RangeRow& row : own) {
      facts.largest = std::max({facts.largest, row.micro_batch, row.other_micro_batch});
      facts.chunks_known = std::max({facts.chunks_known, row.chunk + 1, row.other_chunk + 1});
      facts.overlaps |= row.kind == CellKind::kForwardBackward;
      facts.weights |= row.kind == CellKind::kWeightGrad;
    }
  return facts;
}

}  // namespace

RangeLabels label_rows(const Trace& trace, const RangeRows& rows, const RowLists& lists, const std::string& named) {
  RangeLabels none;
  none.rows.resize(rows.parts.size());
  for (size_t p = 0; p < none.rows.size(); ++p) none.rows[p].assign(rows.parts[p].size(), kNoLabel);
  none.list_proven.assign(lists.lists.size(), 0);
  for (const auto& part : rows.parts)
    none.unknown += std::ranges::count_if(part, [](const RangeRow& row) { return is_compute(row.kind); });
  if (trace.pipeline_stages <= 0) {
    none.why_not = words("unproven.layout");
    return none;
  }
  const HypothesisFacts facts = facts_of(trace, rows, lists, named);
  std::vector<RowHypothesis> hypotheses = row_hypotheses(facts);
  const Labeller labeller(trace, rows, lists);
  std::vector<size_t> sample;  // lists of recorded steps where there are any
  const auto counts = [&](const RowList& list) { return !list.guessed || !lists.any_recorded; };
  const size_t every = std::max<size_t>(1, lists.lists.size() / kMaxSampled);
  for (size_t l = 0; l < lists.lists.size(); l += every)
    if (counts(lists.lists[l]) && trace.parts[lists.lists[l].part].stage != kUnknown) sample.push_back(l);
  if (sample.empty() || hypotheses.empty()) {
    none.why_not = words(sample.empty() ? "unproven.steps" : "unproven.kinds");
    return none;
  }
  std::vector<int64_t> costs;
  int64_t min = INT64_MAX, rows_sampled = 0;
  for (const size_t l : sample) rows_sampled += static_cast<int64_t>(lists.lists[l].end - lists.lists[l].begin);
  for (RowHypothesis& h : hypotheses) {
    costs.push_back(labeller.cost(h, sample));
    min = std::min(min, costs.back());
  }
  if (min * kMaxEditShare > rows_sampled) {
    none.why_not = words("unproven.schedule");
    return none;
  }
  std::vector<size_t> tied;
  for (size_t h = 0; h < costs.size() && tied.size() < kMaxAligned; ++h)
    if (costs[h] == min) tied.push_back(h);
  // Where the job names its schedule, that decides between schedules that fit equally well.
  if (hypotheses[tied.front()].schedule.name == named)
    std::erase_if(tied, [&](size_t h) { return hypotheses[h].schedule.name != named; });
  RangeLabels out;
  for (const size_t h : tied) {
    RangeLabels labels = labeller.label(hypotheses[h]);
    if (labels.wrong * kMaxWrongShare > labels.checked) continue;
    const ScheduleSizes& sizes = hypotheses[h].schedule.sizes;
    if (!out.proven()) {
      out = std::move(labels);
    } else {
      for (size_t p = 0; p < out.rows.size(); ++p)
        for (size_t i = 0; i < out.rows[p].size(); ++i)
          if (!same_label(out.rows[p][i], labels.rows[p][i])) out.rows[p][i] = kNoLabel;
    }
    out.chunks = std::max(out.chunks, sizes.chunks);
    ++out.fitting;
  }
  if (!out.proven()) {
    none.why_not = words("unproven.early", Args().set("schedule", hypotheses[tied.front()].schedule.name));
    return none;
  }
  for (size_t p = 0; p < out.rows.size(); ++p)
    for (size_t i = 0; i < out.rows[p].size(); ++i)
      if (is_compute(rows.parts[p][i].kind)) ++(out.rows[p][i].action_count > 0 ? out.labelled : out.unknown);
  return out;
}

}  // namespace stageline
