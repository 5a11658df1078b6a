#include "pipeline/measure/host_delays.h"

#include "model/statistics.h"

namespace stageline {
namespace {

constexpr double kTimesUsual = 5;      // minimum delay of a pause, in upper quartiles of its sort
constexpr double kLateShare = 0.02;    // minimum late_ns of a late launch, as a share of the rank's usual cell
constexpr double kLateTimesUsual = 3;  // and in multiples of the delay of other ranks
constexpr double kMinLateNs = 10'000;
constexpr size_t kSorts = 3;  // what a cell waited for last: its own rank, a forward message, a backward message

double nearest_quantile(std::span<double> values, double share) {
  if (values.empty()) return 0;
  const auto k = static_cast<size_t>(share * (values.size() - 1));
  std::nth_element(values.begin(), values.begin() + k, values.end());
  return values[k];
}

size_t sort_of(const StepGraph& graph, uint32_t op) {
  uint32_t last = kNoCell;
  for (const uint32_t on : graph.waits(op))
    if (last == kNoCell || graph.ended_ns(on) >= graph.ended_ns(last)) last = on;
  if (last == kNoCell || !is_message(graph.kind[last])) return 0;
  return is_of_forward(graph.kind[last]) ? 1 : 2;
}

// Values in groups, one group after the other in one list: lists that grow one by one take twice the memory, half a
// gigabyte for ten thousand ranks. All are counted before the first is put; the list may serve other groups later.
class Groups {
 public:
  Groups(size_t count, std::vector<double>& values) : begin_(count + 1, 0), values_(values) {}
  void count(size_t group) { ++begin_[group]; }
  // Afterwards begin_ has the groups' ends, until they are filled from behind.
  void make_room() {
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    values_.resize(std::max(values_.size(), begin_.back()));
  }
  void put(size_t group, double value) { values_[--begin_[group]] = value; }
  std::span<double> of(size_t first, size_t count) const {
    return std::span(values_).subspan(begin_[first], begin_[first + count] - begin_[first]);
  }

 private:
  std::vector<size_t> begin_;
  std::vector<double>& values_;
};

class DelayFinder {
 public:
  DelayFinder(const Trace& trace, const StepGraph& graph, const RunCoverage& coverage)
      : graph_(graph), coverage_(coverage), sort_(graph.size(), UINT8_MAX), cells_(trace.parts.size(), values_),
        delays_(trace.parts.size() * kSorts, values_), usual_cell_(trace.parts.size()) {
    out_.ranks.resize(trace.parts.size());
  }

  HostDelays find() {
    sort_cells();
    measure_cells();
    if (!measure_late()) return std::move(out_);
    find_pauses();
    return std::move(out_);
  }

 private:
  bool tells(uint32_t op) const {
    return graph_.cell[op] == kNoCell || (coverage_.fed(graph_.cell[op]) && !coverage_.repeated(graph_.cell[op]));
  }
  size_t group_of(uint32_t op) const { return graph_.part[op] * kSorts + sort_[op]; }

  // A rank's first cell of a step waits for the step, not for its host.
  void sort_cells() {
    std::vector<uint32_t> first(out_.ranks.size());
    for (const GraphStep& step : graph_.steps) {
      if (!step.counts) continue;
      std::ranges::fill(first, UINT32_MAX);
      for (uint32_t i = step.begin; i < step.end; ++i) {
        if (!is_compute(graph_.kind[i])) continue;
        uint32_t& own = first[graph_.part[i]];
        if (own == UINT32_MAX || graph_.start_ns[i] < graph_.start_ns[own]) own = i;
      }
      for (uint32_t i = step.begin; i < step.end; ++i) {
        if (!is_compute(graph_.kind[i])) continue;
        cells_.count(graph_.part[i]);
        if (first[graph_.part[i]] == i || !tells(i)) continue;
        sort_[i] = static_cast<uint8_t>(sort_of(graph_, i));
        delays_.count(group_of(i));
      }
    }
  }

  void measure_cells() {
    cells_.make_room();
    for (const GraphStep& step : graph_.steps)
      for (uint32_t i = step.begin; step.counts && i < step.end; ++i)
        if (is_compute(graph_.kind[i])) cells_.put(graph_.part[i], graph_.dur_ns[i]);
    for (size_t p = 0; p < usual_cell_.size(); ++p) usual_cell_[p] = nearest_quantile(cells_.of(p, 1), 0.5);
  }

  // Returns false where no rank has a known delay.
  bool measure_late() {
    delays_.make_room();
    for (uint32_t i = 0; i < sort_.size(); ++i)
      if (sort_[i] != UINT8_MAX) delays_.put(group_of(i), graph_.delay_ns[i]);
    std::vector<double> usual;
    for (size_t p = 0; p < usual_cell_.size(); ++p) {
      for (size_t s = p * kSorts; s < (p + 1) * kSorts; ++s)
        min_.push_back(std::max(kPauseShare * usual_cell_[p], kTimesUsual * nearest_quantile(delays_.of(s, 1), 0.75)));
      const std::span<double> all = delays_.of(p * kSorts, kSorts);
      out_.ranks[p].cells = all.size();
      if (all.empty()) continue;
      out_.ranks[p].late_ns = std::max(0.0, nearest_quantile(all, 0.25));
      usual.push_back(out_.ranks[p].late_ns);
    }
    if (usual.empty()) return false;
    out_.usual_late_ns = median_of(std::move(usual));
    for (size_t p = 0; p < usual_cell_.size(); ++p) {
      const double late = out_.ranks[p].late_ns;
      out_.ranks[p].late =
          late >= kMinLateNs && late >= kLateShare * usual_cell_[p] && late >= kLateTimesUsual * out_.usual_late_ns;
    }
    return true;
  }

  void find_pauses() {
    for (const GraphStep& step : graph_.steps)
      for (uint32_t i = step.begin; i < step.end; ++i) {
        const double delay = graph_.delay_ns[i];
        if (sort_[i] == UINT8_MAX || !(delay > 0) || delay < min_[group_of(i)]) continue;
        RankDelays& rank = out_.ranks[graph_.part[i]];
        rank.pause_ns += delay - rank.late_ns;
        rank.pause_at_ns.push_back(step.start_ns + graph_.start_ns[i]);
      }
    for (RankDelays& rank : out_.ranks) std::ranges::sort(rank.pause_at_ns);
  }

  const StepGraph& graph_;
  const RunCoverage& coverage_;
  HostDelays out_;
  std::vector<uint8_t> sort_;  // of each operation whose delay is known, else UINT8_MAX
  std::vector<double> values_;
  Groups cells_, delays_;           // durations by part; delays by part and sort
  std::vector<double> usual_cell_;  // for each part
  std::vector<double> min_;         // for each part and sort: the delay that makes a pause
};

}  // namespace

HostDelays host_delays(const Trace& trace, const StepGraph& graph, const RunCoverage& coverage) {
  return DelayFinder(trace, graph, coverage).find();
}

}  // namespace stageline
