// Every operator of a module call that has device work, by its place in the call. Ranges and operators are nested by
// time alone, all threads together; a backward is the stretch of backward operators of one call, without a tree around
// it.
#include "analyses/tb_module/msprof_module_statistic.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "model/hccl_names.h"
#include "model/torch_facts.h"

namespace stageline {
namespace {

constexpr size_t kMaxDepth = 20;  // operators of calls that lie deeper are left out

struct Event {  // a call of a module, or an operator
  std::string name;
  int64_t start = 0, end = 0;
  bool backward = false;
  uint32_t op = kNoSliceIndex;
  int32_t around = -1;  // the innermost call that holds it
};

struct Work {  // of an operator
  std::string kernels;
  int64_t ns = 0;
};

struct Line {
  std::string parent, module, op, kernels;
  int64_t place = 0, sequence = 0, first_ns = 0, ns = 0, count = 0;
  auto key() const { return std::tuple(parent, module, op, place, kernels, sequence); }
};

class Statistic {
 public:
  Statistic(const Trace& trace, const TorchRank& rank)
      : trace_(trace), part_(*rank.part), s_(part_.slices), rank_(rank) {}

  std::vector<Line> lines() {
    for (const RangeFact& range : part_.ranges)
      if (is_module_range(trace_, range)) calls_.push_back(event_of(range.slice));
    if (calls_.empty()) return {};
    add_backward();
    return sum();
  }

 private:
  std::string name(uint32_t slice) const { return std::string(trace_.names.text(s_.name_id[slice])); }
  Event event_of(uint32_t slice) const { return {name(slice), s_.start_ns[slice], s_.end_ns(slice)}; }

  // Calls and these operators in order of time, each with what holds it.
  template <class Ops>
  std::vector<Event> nested(const Ops& ops) const {
    std::vector<Event> events = calls_;
    for (const auto& [op, of] : ops) {
      events.push_back(event_of(op));
      events.back().op = op;
    }
    std::ranges::stable_sort(
        events, [](const Event& a, const Event& b) { return a.start != b.start ? a.start < b.start : a.end > b.end; });
    std::vector<int32_t> open;
    for (size_t i = 0; i < events.size(); ++i) {
      while (!open.empty() && events[open.back()].end < events[i].end) open.pop_back();
      if (!open.empty() && (events[i].op == kNoSliceIndex || open.size() <= kMaxDepth)) events[i].around = open.back();
      if (events[i].op == kNoSliceIndex) open.push_back(static_cast<int32_t>(i));
    }
    return events;
  }

  static std::string path_above(const std::vector<Event>& events, int32_t call) {
    std::string path;
    for (int32_t at = events[call].around; at >= 0; at = events[at].around)
      path = events[at].name + (path.empty() ? "" : "/") + path;
    return path;
  }

  void add_backward() {
    std::map<uint32_t, uint32_t> backward_of;
    for (const SliceLink& link : part_.slice_links)
      if (link.kind == SliceLinkKind::kForwardBackward) backward_of.emplace(link.from, link.to);
    const std::vector<Event> events = nested(backward_of);
    std::vector<std::pair<uint32_t, int32_t>> ran;  // backward operator, call of its forward
    for (const Event& event : events)
      if (event.op != kNoSliceIndex && event.around >= 0) ran.emplace_back(backward_of.at(event.op), event.around);
    std::ranges::stable_sort(ran, {}, [&](const auto& one) { return s_.start_ns[one.first]; });
    for (size_t i = 0; i < ran.size();) {
      const int32_t call = ran[i].second;
      Event back{events[call].name, s_.start_ns[ran[i].first], INT64_MIN, true};
      for (; i < ran.size() && ran[i].second == call; ++i) back.end = std::max(back.end, s_.end_ns(ran[i].first));
      if (std::string path = path_above(events, call); !path.empty())
        calls_.push_back({std::move(path), back.start - 1, back.end + 1, true});
      calls_.push_back(std::move(back));
    }
  }

  std::map<uint32_t, Work> works() const {
    std::map<uint32_t, Work> works;
    for (const bool communicates : {false, true})
      for (const TorchRow& row : rank_.rows) {
        const uint32_t op = s_.parent[row.slice];
        const bool counts = communicates ? fact_of(part_.collectives, row.slice) != nullptr
                                         : fact_of(part_.tasks, row.slice) != nullptr;
        if (!counts || !row.on_device || op == kNoSliceIndex) continue;
        append_item(works[op].kernels, communicates ? hccl_type(name(row.slice)) : name(row.slice), ", ");
        works[op].ns += row.dur_ns;
      }
    return works;
  }

  std::vector<Line> sum() const {
    const std::map<uint32_t, Work> work = works();
    const std::vector<Event> events = nested(work);
    std::map<int32_t, std::vector<uint32_t>> of_call;  // in order of the calls' starts
    for (const Event& event : events)
      if (event.op != kNoSliceIndex && event.around >= 0) of_call[event.around].push_back(event.op);
    std::map<std::string, int64_t> sequences;  // of operators, numbered as they first ran
    std::map<decltype(Line().key()), Line> lines;
    for (const auto& [call, ops] : of_call) {
      std::string sequence;
      for (const uint32_t op : ops) append_item(sequence, name(op), "/");
      bool backward = false;
      for (int32_t at = call; at >= 0; at = events[at].around) backward |= events[at].backward;
      Line line;
      line.parent = path_above(events, call);
      line.module = (backward ? "[Backward]" : "") + events[call].name;
      line.sequence = sequences.try_emplace(sequence, std::ssize(sequences)).first->second;
      for (const uint32_t op : ops) {
        line.op = name(op);
        line.kernels = work.at(op).kernels;
        line.first_ns = s_.start_ns[op];
        Line& to = lines.try_emplace(line.key(), line).first->second;
        to.first_ns = std::min(to.first_ns, line.first_ns);
        to.ns += work.at(op).ns;
        ++to.count;
        ++line.place;
      }
    }
    std::vector<Line> sorted;
    for (auto& [key, line] : lines) sorted.push_back(std::move(line));
    std::ranges::stable_sort(sorted, {}, &Line::first_ns);
    number_calls(sorted);
    return sorted;
  }

  // Lines of one module that follow each other but ran different operators get the number of their sequence.
  static void number_calls(std::vector<Line>& lines) {
    for (size_t i = 0, end = 0; i < lines.size(); i = end) {
      const std::pair<std::string, std::string> of{lines[i].parent, lines[i].module};
      std::map<int64_t, int> numbers;
      for (; end < lines.size() && lines[end].parent == of.first && lines[end].module == of.second; ++end)
        numbers[lines[end].sequence] = 0;
      int next = 0;
      for (auto& [sequence, number] : numbers) number = next++;
      for (size_t k = i; k < end && numbers.size() > 1; ++k)
        lines[k].module += "_" + std::to_string(numbers.at(lines[k].sequence));
    }
  }

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  const TorchRank& rank_;
  std::vector<Event> calls_;
};

}  // namespace

Table msprof_module_statistic(const TorchRun& run) {
  Table table(declared_table("tb-module/modules/msprof"));
  const auto ranks = ask_ranks(run, [&](const TorchRank& rank) { return Statistic(*run.trace, rank).lines(); });
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const Line& line : ranks[k])
      table.add_row({line.parent, line.module, line.op, line.kernels, static_cast<double>(line.ns),
                     static_cast<double>(line.ns) / static_cast<double>(line.count), line.count,
                     int64_t{run.ranks[run.parts[k]]}});
  return table;
}

}  // namespace stageline
