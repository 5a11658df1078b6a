// Communication operations by type, group and operation: how often, how long. Definitions: docs/analyses/hccl-sum.md.
#include "analyses/cluster/cluster.h"
#include "model/message_names.h"

namespace stageline {
namespace {

using Ops = std::vector<std::vector<CommunicationOp>>;

std::string text_of(const TorchRun& run, StringId id) { return std::string(run.trace->names.text(id)); }

struct Line {
  std::vector<Table::Value> keys, behind;  // columns before and after the durations
  std::vector<int64_t> ns;
  double order = 0;
};

// Sorts the largest first. Lines come in the order of their keys, and equal lines keep that order.
void fill(Table& table, std::vector<Line> lines, bool msprof, size_t max = SIZE_MAX) {
  sort_stably(lines, std::greater(), &Line::order);
  for (size_t i = 0; i < std::min(max, lines.size()); ++i) {
    std::vector<Table::Value> row = with_durations(std::move(lines[i].keys), lines[i].ns, msprof);
    row.insert(row.end(), lines[i].behind.begin(), lines[i].behind.end());
    table.add_row(std::move(row));
  }
}

std::string_view variant_of(bool msprof) { return msprof ? "msprof" : ""; }

Table all_table(const TorchRun& run, const Ops& ranks, bool msprof) {
  std::map<std::string, std::vector<int64_t>> sums;
  for (const auto& rank : ranks)
    for (const CommunicationOp& op : rank)
      sums[msprof ? hccl_type(text_of(run, op.name)) : text_of(run, op.kind)].push_back(op.dur_ns);
  Table table(declared_table("hccl-sum/hccl-types", variant_of(msprof)));
  std::vector<Line> lines;
  for (auto& [kind, ns] : sums) {
    // msprof-analyze keeps them in the order of their names.
    const double order = msprof ? 0 : static_cast<double>(sum_of(ns));
    lines.push_back({{kind}, {}, std::move(ns), order});
  }
  fill(table, std::move(lines), msprof);
  return table;
}

Table rank_hccl_sum_table(const TorchRun& run, const Ops& ranks, bool msprof) {
  Table table(declared_table("hccl-sum/hccl-ranks", variant_of(msprof)));
  for (size_t k = 0; k < ranks.size(); ++k) {
    const int64_t number = run.ranks[run.parts[k]];
    std::map<std::tuple<std::string, std::string, std::string>, std::vector<int64_t>> sums;
    for (const CommunicationOp& op : ranks[k])
      if (msprof) sums[{hccl_type(text_of(run, op.name)), "", ""}].push_back(op.dur_ns);
      else sums[{text_of(run, op.group), text_of(run, op.description), text_of(run, op.kind)}].push_back(op.dur_ns);
    std::vector<Line> lines;
    for (auto& [key, ns] : sums) {
      const auto& [first, second, third] = key;
      const double order = msprof ? 0 : static_cast<double>(sum_of(ns));
      lines.push_back(
          {msprof ? std::vector<Table::Value>{first, number} : std::vector<Table::Value>{number, first, second, third},
           {},
           std::move(ns),
           order});
    }
    fill(table, std::move(lines), msprof);
  }
  return table;
}

// Each row is one operation, by name, on all its ranks. msprof-analyze uses the name alone, so two groups whose names
// have the same hash share a row.
Table top_table(const TorchRun& run, const Ops& ranks, bool msprof, size_t max) {
  struct Op {
    std::vector<int64_t> ns;
    int64_t min = INT64_MAX, longest = INT64_MIN, min_rank = 0, longest_rank = 0;
  };
  // Messages with the same number on two ranks are two messages, so the rank is part of the key.
  using Key = std::tuple<StringId, StringId, StringId, int64_t>;
  std::map<Key, Op> by_op;
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const CommunicationOp& op : ranks[k]) {
      const int64_t number = run.ranks[run.parts[k]];
      Op& o =
          msprof ? by_op[{op.name, 0, 0, -1}] : by_op[{op.name, op.group, op.group_ranks, op.messages ? number : -1}];
      if (op.dur_ns < o.min) std::tie(o.min, o.min_rank) = std::pair(op.dur_ns, number);
      if (op.dur_ns > o.longest) std::tie(o.longest, o.longest_rank) = std::pair(op.dur_ns, number);
      o.ns.push_back(op.dur_ns);
    }
  std::vector<std::pair<double, const std::pair<const Key, Op>*>> order;
  for (const auto& entry : by_op)
    order.emplace_back(sum_of(entry.second.ns) / static_cast<double>(entry.second.ns.size()), &entry);
  const auto texts = [&](const auto* entry) {
    const auto& [name, group, members, rank] = entry->first;
    return std::tuple(run.trace->names.text(name), run.trace->names.text(group), run.trace->names.text(members), rank);
  };
  sort_stably(order, [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : texts(a.second) < texts(b.second);
  });
  Table table(declared_table("hccl-sum/hccl-top", variant_of(msprof)));
  for (size_t i = 0; i < std::min(max, order.size()); ++i) {
    const auto& [key, op] = *order[i].second;
    std::vector<Table::Value> keys = {text_of(run, std::get<0>(key))};
    if (!msprof) keys.emplace_back(text_of(run, std::get<1>(key)));
    std::vector<int64_t> ns = op.ns;
    std::vector<Table::Value> row = with_durations(std::move(keys), ns, msprof);
    row.emplace_back(op.min_rank);
    row.emplace_back(op.longest_rank);
    table.add_row(std::move(row));
  }
  return table;
}

std::string joined(const std::set<int64_t>& ranks, const char* between) {
  std::string out;
  for (const int64_t rank : ranks) out += (out.empty() ? "" : between) + std::to_string(rank);
  return out;
}

Table group_table(const TorchRun& run, const Ops& ranks, bool msprof) {
  struct Group {
    std::set<int64_t> ranks;
    std::string description, members;
    int64_t count = 0;
  };
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const CommunicationOp& op : ranks[k]) {
      Group& group = groups[{text_of(run, op.group), msprof ? "" : text_of(run, op.group_ranks)}];
      group.ranks.insert(run.ranks[run.parts[k]]);
      if (group.description.empty()) group.description = text_of(run, op.description);
      ++group.count;
    }
  if (msprof) {
    Table table(declared_table("hccl-sum/hccl-groups/msprof"));
    std::vector<std::tuple<std::string, std::string, std::string>> rows;
    for (const auto& [key, group] : groups)
      rows.emplace_back(hccl_group_id(key.first), key.first, joined(group.ranks, ";"));
    std::ranges::sort(rows);
    for (const auto& [id, name, members] : rows) table.add_row({name, id, members});
    return table;
  }
  Table table(declared_table("hccl-sum/hccl-groups"));
  const bool ascend = run.trace->device_family == DeviceFamily::kNpu;
  for (const auto& [key, group] : groups)
    table.add_row({key.first, ascend ? hccl_group_id(key.first) : std::string(), group.description, key.second,
                   joined(group.ranks, " "), group.count});
  return table;
}

// Each row is a group and a type of operation. msprof-analyze's mode communication_group_map has the same rows, without
// what ran (CommunicationGroupMapping).
Table group_work_table(const TorchRun& run, const Ops& ranks, bool msprof) {
  struct Work {
    int64_t count = 0, bytes = 0, sum_ns = 0;
    bool bytes_known = true;
  };
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Work> groups;
  for (const std::vector<CommunicationOp>& ops : ranks)
    for (const CommunicationOp& op : ops) {
      Work& work = groups[{op.messages ? "p2p" : "collective", text_of(run, op.group_ranks), text_of(run, op.group),
                           text_of(run, op.description)}];
      ++work.count;
      work.bytes_known &= op.bytes >= 0;
      work.bytes += op.bytes;
      work.sum_ns += op.dur_ns;
    }
  Table table(declared_table("hccl-sum/hccl-group-work", msprof ? "msprof" : ""));
  for (const auto& [key, work] : groups) {
    const auto& [type, members, group, purpose] = key;
    std::string list = members;
    std::erase_if(list, [](char c) { return c == '[' || c == ']' || c == ' '; });
    if (msprof) table.add_row({type, "(" + list + ")", hccl_group_digits(group), group, purpose});
    else
      table.add_row(
          {group, purpose, list, type, work.count, work.bytes_known ? work.bytes : kNullInteger, work.sum_ns});
  }
  return table;
}

}  // namespace

Result<AnalysisResult> run_hccl_sum(const AnalysisInput& input) {
  TRY(max, input.options.integer("top", 15, 0));
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  const Ops ranks = all_communication_ops(*torch);
  AnalysisResult result;
  note_level_none(input, result.notes);
  return result.with(all_table(*torch, ranks, input.msprof), rank_hccl_sum_table(*torch, ranks, input.msprof),
                     top_table(*torch, ranks, input.msprof, *max), group_table(*torch, ranks, input.msprof),
                     group_work_table(*torch, ranks, input.msprof));
}

}  // namespace stageline
