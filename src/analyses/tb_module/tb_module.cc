// Time of every nn.Module, as TensorBoard's profiler plugin shows it. Definitions: docs/analyses/tb-module.md.
#include "analyses/analysis.h"
#include "base/error_words.h"
#include "model/message_names.h"
#include "model/statistics.h"
#include "model/torch_facts.h"
#include "profile/module_answer.h"
#include "profile/operator_work.h"

namespace stageline {
namespace {

// tb-module as msprof-analyze answers it (--compat msprof, its mode module_statistic).
//
// Every operator of a module call that has device work, by its place in the call. Ranges and operators are nested by
// time alone, all threads together; a backward is the stretch of backward operators of one call, without a tree around
// it.

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
  std::vector<double> mfu;  // of each kernel that has recorded FLOPs
};

struct Line {
  std::string parent, module, op, kernels;
  int64_t place = 0, sequence = 0, first_ns = 0, ns = 0, count = 0;
  bool backward = false;
  std::vector<double> mfu;  // by place of the kernel, the sum over `known` calls
  int64_t known = 0;
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
  template <class Ops> std::vector<Event> nested(const Ops& ops) const {
    std::vector<Event> events = calls_;
    for (const auto& [op, of] : ops) {
      events.push_back(event_of(op));
      events.back().op = op;
    }
    sort_stably(events,
                [](const Event& a, const Event& b) { return a.start != b.start ? a.start < b.start : a.end > b.end; });
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
    sort_stably(ran, {}, [&](const auto& one) { return s_.start_ns[one.first]; });
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
    for (const RecordedKernel& k : recorded_kernels(trace_, part_))
      if (k.peak_tflops > 0) works[k.op].mfu.push_back(k.tflops(part_) / k.peak_tflops);
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
      Line line{.parent = path_above(events, call),
                .module = (backward ? "[Backward]" : "") + events[call].name,
                .sequence = sequences.try_emplace(sequence, std::ssize(sequences)).first->second,
                .backward = backward};
      for (const uint32_t op : ops) {
        line.op = name(op);
        line.kernels = work.at(op).kernels;
        line.first_ns = s_.start_ns[op];
        Line& to = lines.try_emplace(line.key(), line).first->second;
        to.first_ns = std::min(to.first_ns, line.first_ns);
        to.ns += work.at(op).ns;
        ++to.count;
        const std::vector<double>& mfu = work.at(op).mfu;
        to.known += !mfu.empty();
        if (to.mfu.size() < mfu.size()) to.mfu.resize(mfu.size());
        for (size_t k = 0; k < mfu.size(); ++k) to.mfu[k] += mfu[k];
        ++line.place;
      }
    }
    auto sorted = mapped<Line>(lines, [&](auto& entry) { return std::move(entry.second); });
    sort_stably(sorted, {}, &Line::first_ns);
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

// "151.14%,47.83%": the mean share of the peak of each kernel.
std::string mean_mfu(const Line& line) {
  std::string out;
  for (const double sum : line.mfu) {
    std::string percents = fixed(100 * sum / static_cast<double>(line.known), 2);
    if (percents.ends_with('0')) percents.pop_back();  // as Python writes it: 48.2, 48.0
    append_item(out, percents + "%", ",");
  }
  return out;
}

// Returns ModuleStatistic, and ModuleMFU of operator_mfu, which has the same rows without the backward.
AnalysisResult msprof_modules(const TorchRun& run) {
  Table table(declared_table("tb-module/modules", "msprof")), mfu(declared_table("tb-module/module-totals", "msprof"));
  const auto ranks = ask_ranks(run, [&](const TorchRank& rank) { return Statistic(*run.trace, rank).lines(); });
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const Line& line : ranks[k]) {
      const auto ns = static_cast<double>(line.ns), mean = ns / static_cast<double>(line.count);
      const int64_t rank = run.ranks[run.parts[k]];
      table.add_row({line.parent, line.module, line.op, line.kernels, ns, mean, line.count, rank});
      if (!line.backward)
        mfu.add_row({rank, line.parent, line.module, line.op, line.kernels, ns, mean, line.count, mean_mfu(line)});
    }
  return AnalysisResult{}.with(std::move(table), std::move(mfu));
}

void append_sums(std::vector<Table::Value>& row, const ModuleSums& s) {
  const int64_t calls = std::max<int64_t>(1, s.occurrences);
  for (const int64_t value : {s.occurrences, s.operators, s.host_ns, s.self_host_ns, s.device_ns, s.self_device_ns,
                              (s.device_ns > 0 ? s.device_ns : s.host_ns) / calls, s.backward_host_ns,
                              s.self_backward_host_ns, s.backward_device_ns, s.self_backward_device_ns})
    row.emplace_back(value);
  row.emplace_back(s.flops_ns > 0 ? s.flops / s.flops_ns / 1e3 : kNaN);
  row.emplace_back(s.peak_ns > 0 ? s.peak_ns / s.flops_ns : kNaN);
}

Table tree_table(const std::vector<ModuleAnswer>& ranks) {
  Table table(declared_table("tb-module/modules"));
  for (const ModuleAnswer& answer : ranks)
    for (size_t i = 0; i < answer.nodes.size(); ++i) {
      const ModuleNode& node = answer.nodes[i];
      std::vector<Table::Value> row = {int64_t{answer.rank}, int64_t{node.depth}, module_path(answer, i), node.name,
                                       node.module_id < 0 ? kNullInteger : node.module_id};
      append_sums(row, node.sums);
      table.add_row(std::move(row));
    }
  return table;
}

// Sums modules wherever they are called. When a module is called within a call of itself, its time is counted once.
Table flat_table(const std::vector<ModuleAnswer>& ranks) {
  Table table(declared_table("tb-module/module-totals"));
  for (const ModuleAnswer& answer : ranks) {
    using Key = std::pair<std::string_view, int64_t>;
    std::map<Key, std::pair<ModuleSums, int>> by_module;  // the second number counts its open calls
    std::vector<std::pair<const ModuleNode*, Key>> open;
    for (const ModuleNode& node : answer.nodes) {
      while (std::ssize(open) > node.depth) {
        --by_module[open.back().second].second;
        open.pop_back();
      }
      const Key key{node.name, node.module_id};
      auto& [sums, count] = by_module[key];
      ModuleSums added = node.sums;
      if (count > 0) {
        added.host_ns = added.device_ns = added.backward_host_ns = added.backward_device_ns = 0;
        added.flops = added.flops_ns = added.peak_ns = 0;
      }
      sums.add(added);
      ++count;
      open.emplace_back(&node, key);
    }
    std::vector<std::pair<Key, const ModuleSums*>> rows;
    for (const auto& [key, entry] : by_module) rows.emplace_back(key, &entry.first);
    const auto self = [](const ModuleSums& s) { return s.self_device_ns + s.self_backward_device_ns; };
    const auto host = [](const ModuleSums& s) { return s.self_host_ns + s.self_backward_host_ns; };
    sort_stably(rows, [&](const auto& a, const auto& b) {
      const int64_t x = self(*a.second), y = self(*b.second);
      return x != y ? x > y : host(*a.second) > host(*b.second);
    });
    for (const auto& [key, sums] : rows) {
      std::vector<Table::Value> row = {int64_t{answer.rank}, std::string(key.first),
                                       key.second < 0 ? kNullInteger : key.second};
      append_sums(row, *sums);
      table.add_row(std::move(row));
    }
  }
  return table;
}

}  // namespace

Result<AnalysisResult> run_tb_module(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {false, true}));
  if (input.msprof) return msprof_modules(*torch);
  const FunctionNames names(*input.trace);
  std::vector<ModuleAnswer> ranks(torch->parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = module_answer(*torch, torch->parts[k], names); });
  if (std::ranges::all_of(ranks, [](const ModuleAnswer& a) { return a.nodes.empty(); })) {
    if (input.for_report) return AnalysisResult{};  // nothing was asked: no flaw
    return worded_error(ErrorCode::kNotFound, "refused.not_recorded:modules", {}, {},
                        "torch.profiler records them with with_stack=True (or with_modules=True for TorchScript only)");
  }
  AnalysisResult result;
  return result.with(tree_table(ranks), flat_table(ranks));
}

}  // namespace stageline
