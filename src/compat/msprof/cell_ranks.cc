#include "compat/msprof/cell_ranks.h"

#include "base/json_members.h"
#include "compat/msprof/problems.h"
#include "engine/one_clock.h"
#include "model/intervals.h"
#include "model/message_names.h"

namespace stageline {
namespace {

using Work = std::pair<int32_t, int32_t>;  // (chunk, micro-batch)

struct StepWork {
  std::multiset<Work> forwards, backwards;
  bool numbered = true;  // all of them give their micro-batch

  int64_t without_backward() const {
    if (!numbered) return std::max<int64_t>(0, std::ssize(forwards) - std::ssize(backwards));
    return std::ranges::count_if(forwards, [&](const Work& w) { return !backwards.contains(w); });
  }
};

std::vector<std::vector<uint32_t>> cells_by_part(const Trace& trace) {
  std::vector<std::vector<uint32_t>> by_part(trace.parts.size());
  for (uint32_t i = 0; i < trace.cells.size(); ++i) by_part[trace.cells.part[i]].push_back(i);
  return by_part;
}

// Without cells, all that is known of a block is whether it runs forward or backward.
Status plain_blocks(const SqliteDb& db, const PpChartOptions& options, RankTables& tables, PpChartRank& rank) {
  TRY(ranges, read_device_ranges(db, HostWindow()));
  const uint32_t names[] = {tables.blocks.name_id("F"), tables.blocks.name_id("B")};
  int64_t last_end = INT64_MIN;
  for (const DeviceRange& row : ranges->rows) {
    if (row.start_ns < last_end) continue;  // lies inside the block before
    last_end = row.end_ns;
    if (options.step && (!row.has_step || row.step != *options.step)) continue;
    const int type = row.forward ? 0 : 1;
    tables.blocks.rows.push_back({row.start_ns, row.end_ns, names[type], type});
  }
  rank.unlabelled = tables.blocks.rows.size();
  if (!ranges->missing.empty()) rank.remarks.push_back("the database has no " + ranges->missing);
  else if (tables.blocks.rows.empty())
    rank.remarks.emplace_back("no forward or backward range has a task on the device");
  return {};
}

struct Membership {
  std::string pipeline;                  // members of the group "pp", as written
  std::map<std::string, int64_t> place;  // group → this rank's position in it
  std::map<std::string, int64_t> size;
};

Membership membership_of(const SqliteDb& db) {
  Membership out;
  SqliteRows rows = rows_of(db, "META_DATA", {"name", "value"});
  while (rows.next()) {
    if (rows.text(0) != "parallel_group_info") continue;
    std::string text(rows.text(1));
    if (text.starts_with('"')) text = json_text(text);
    for (const JsonMember& group : json_members(text)) {
      const std::string name(group.key);
      const std::string_view members = json_member(group.value, "global_ranks");
      if (const auto place = json_integer(json_member(group.value, "group_rank"))) out.place[name] = *place;
      out.size[name] = json_members(members).size();
      if (json_text(json_member(group.value, "group_name")) == "pp") out.pipeline = members;
    }
  }
  return out;
}

// Finds sends and receives among marked operations whose peer is known, from their message or because the group has two
// members. Others go to `nameless`, and those that cannot even be used there are counted in `lost`.
std::vector<PeerOp> peers_of(const std::vector<MarkedOp>& ops, const Membership& membership,
                             std::vector<NamelessOp>& nameless, int64_t& lost) {
  std::vector<PeerOp> out;
  for (size_t i = 0; i < ops.size(); ++i) {
    const MarkedOp& op = ops[i];
    PeerOp peer;
    if (op.op_name == "HcclSend") peer.kind = PeerOp::Kind::kSend;
    else if (op.op_name == "HcclRecv" || op.op_name == "HcclReceive") peer.kind = PeerOp::Kind::kReceive;
    else if (op.op_name == "HcclBatchSendRecv") peer.kind = PeerOp::Kind::kBatch;
    else continue;
    const auto place = membership.place.find(op.group);
    const auto size = membership.size.find(op.group);
    int64_t other = op.peer;
    if (place != membership.place.end() && other < 0 && size != membership.size.end() && size->second == 2)
      other = 1 - place->second;
    if (place == membership.place.end() || other < 0) {
      if (place == membership.place.end() || peer.kind == PeerOp::Kind::kBatch) ++lost;
      else
        nameless.push_back({static_cast<int64_t>(i), op.start_ns, op.end_ns, peer.kind == PeerOp::Kind::kSend,
                            place->second, op.group});
      continue;
    }
    peer.src = place->second;
    peer.dst = other;
    if (peer.kind == PeerOp::Kind::kReceive) std::swap(peer.src, peer.dst);
    peer.start_ns = op.start_ns;
    peer.end_ns = op.end_ns;
    peer.tag = hccl_group_id(op.group);
    peer.group = op.group;
    peer.row_numbers = {static_cast<int64_t>(i)};
    out.push_back(std::move(peer));
  }
  return out;
}

struct Nameless {
  std::vector<NamelessOp> ops;
  int64_t lost = 0;
};

// Reads the communication of one rank: operations from marked ranges, and the peers of its sends and receives.
Status read_communication(const SqliteDb& db, RankTables& tables, RankPeers& peers, Nameless& nameless) {
  const Membership membership = membership_of(db);
  peers.pipeline = membership.pipeline;
  if (!db.has_table("COMMUNICATION_TASK_INFO")) {  // otherwise the profiler recorded the operations themselves
    TRY(ops, read_marked_ops(db, HostWindow(), false));
    tables.ops = std::move(ops->ops);
    tables.write_ops = !tables.ops.empty();
    peers.ops = peers_of(tables.ops, membership, nameless.ops, nameless.lost);
    return {};
  }
  TRY_OK(take(read_peer_ops(db, HostWindow(), true), peers.ops));
  return {};
}

// Links operations that do not name their peer, and counts those that get no link.
void link_nameless(const Trace* trace, const std::vector<size_t>& parts, std::vector<Nameless>& nameless,
                   CellRanks& tables, std::vector<PpChartRank>& ranks) {
  std::vector<std::vector<NamelessOp>> by_part(trace ? trace->parts.size() : 0);
  for (size_t i = 0; i < ranks.size(); ++i) {
    nameless[i].lost += static_cast<int64_t>(nameless[i].ops.size());
    // Where other operations have links already, the numbers of both kinds would collide.
    if (parts[i] < by_part.size() && tables[i].links.empty()) by_part[parts[i]] = std::move(nameless[i].ops);
  }
  if (trace) {
    std::vector<std::vector<std::pair<int64_t, std::string>>> links = link_by_cells(*trace, by_part);
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (parts[i] >= links.size() || links[parts[i]].empty()) continue;
      nameless[i].lost -= static_cast<int64_t>(links[parts[i]].size());
      tables[i].links = std::move(links[parts[i]]);
      tables[i].write_links = true;
    }
  }
  for (size_t i = 0; i < ranks.size(); ++i)
    if (nameless[i].lost > 0)
      ranks[i].remarks.push_back(grouped(nameless[i].lost) +
                                 " sends and receives do not say with whom (torch_npu before srcRank and destRank), "
                                 "and their times leave it open: no links");
}

// The tables contain raw timestamps, and Insight draws them as they are.
void say_clocks(Trace& trace, Diagnostics& notes) {
  constexpr int64_t kMinNs = 1000;
  if (trace.machine_count() < 2 || trace.cells.size() == 0) return;
  AlignOptions align{.mode = AlignMode::kAuto, .trust_clocks = true};
  if (!map_clocks(trace, align) || trace.alignment != AlignState::kMapped) return;
  int64_t min = INT64_MAX, max = INT64_MIN;
  for (const Part& part : trace.parts) {
    if (part.clock_map.segments.empty()) continue;
    min = std::min(min, part.clock_map.segments.front().offset_ns);
    max = std::max(max, part.clock_map.segments.front().offset_ns);
  }
  if (min > max || max - min < kMinNs || max - min <= trace.alignment_half_ns()) return;
  notes.add(problem::pp_chart_clocks_apart, Args().set("apart", human_duration(max - min)));
}

// Facts of all ranks' cells that are gathered before any is labelled.
struct Labelling {
  std::vector<std::vector<uint32_t>> cells;  // by part
  std::vector<uint32_t> overlapped;
  LabelPlan plan;
};

Labelling labelling_of(Trace& trace, const PpChartOptions& options, Diagnostics& notes) {
  Labelling out{cells_by_part(trace), overlapped_pairs(trace.cells),
                label_plan(trace, options.schedule, options.micro_batches)};
  notes.merge(trace.diagnostics);
  say_clocks(trace, notes);
  say_missing_backwards(trace, notes);
  return out;
}

// Drops notes about the order of ranks that have a remark about it, which has the names of the table as well.
void drop_repeated_notes(const std::vector<char>& has_remark, PpChart& chart) {
  std::erase_if(chart.notes.items(), [&](const Diagnostic& note) {
    return std::ranges::any_of(chart.ranks, [&](const PpChartRank& rank) {
      return note.name == "cells.off_schedule.rank_" + std::to_string(rank.rank) &&
             has_remark[&rank - chart.ranks.data()] != 0;
    });
  });
}

}  // namespace

void say_missing_backwards(const Trace& trace, Diagnostics& notes) {
  std::map<int32_t, std::map<int32_t, StepWork>> parts;  // part → step → its work
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    const Cell cell = trace.cells.at(i);
    const bool both = cell.kind == CellKind::kForwardBackward;
    if (cell.kind != CellKind::kForward && !is_backward(cell.kind) && !both) continue;
    StepWork& step = parts[cell.part][cell.step];
    step.numbered &= cell.micro_batch != kUnknown;
    if (cell.kind == CellKind::kForward || both) step.forwards.emplace(cell.chunk, cell.micro_batch);
    if (is_backward(cell.kind) || both) step.backwards.emplace(cell.chunk, cell.micro_batch);
  }
  int64_t all = 0, missing = 0;
  int32_t first_part = -1, first_step = -1;
  for (const auto& [part, steps] : parts)
    for (const auto& [step, work] : steps) {
      if (steps.size() > 1 && step == steps.rbegin()->first) continue;
      all += std::ssize(work.forwards);
      const int64_t here = work.without_backward();
      if (missing == 0 && here > 0) first_part = part, first_step = step;
      missing += here;
    }
  if (missing == 0) return;
  notes.add(problem::pp_chart_no_backwards, Args()
                                                .set("missing", grouped(missing))
                                                .set("all", grouped(all))
                                                .set("rank", int64_t{trace.parts[first_part].rank})
                                                .set("step", first_step == kUnknown ? "" : std::to_string(first_step)));
}

CellRanks label_ranks(const PpChartOptions& options, const std::vector<RankDatabase>& ranks, const Diagnostics& finding,
                      std::vector<Diagnostics>& notes, PpChart& chart) {
  OpenOptions open = options.open;
  open.progress = options.progress;
  Result<Trace> trace = open_trace({options.folder}, open);
  Labelling all;
  if (trace) {
    all = labelling_of(*trace, options, chart.notes);
  } else {
    chart.notes.merge(finding);
    chart.notes.add(problem::pp_chart_no_cells, Args().set("why", error_text(trace.error())), trace.error().where);
  }
  std::set<int64_t> steps;
  if (options.step && trace)
    for (const int32_t step : trace->cells.step)
      if (steps.size() < kMaxStepsListed) steps.insert(step);
  if (options.step && !steps.contains(*options.step)) chart.steps = step_list(steps);
  chart.schedule = all.plan.dualpipev ? "dualpipev" : "forward and backward";

  CellRanks tables(ranks.size());
  std::vector<char> off(ranks.size(), 0);  // ranks with a remark about their order
  std::vector<RankPeers> peers(ranks.size());
  std::vector<Nameless> nameless(ranks.size());
  std::vector<size_t> parts(ranks.size(), SIZE_MAX);
  const int64_t* step = options.step ? &*options.step : nullptr;
  parallel_for(ranks.size(), [&](size_t i) {
    PpChartRank& rank = chart.ranks[i];
    peers[i].rank = rank.rank;
    Result<SqliteDb> db = SqliteDb::open_read(ranks[i].path, notes[i]);
    if (!db) {
      rank.error = std::move(db).error();
      return;
    }
    size_t part = 0;
    while (trace && part < trace->parts.size() && trace->parts[part].rank != rank.rank) ++part;
    if (trace) parts[i] = part;
    if (trace && part < all.cells.size() && !all.cells[part].empty()) {
      CellLabels labels =
          label_cells(*trace, static_cast<int32_t>(part), all.cells[part], all.overlapped, all.plan, step);
      tables[i].blocks = std::move(labels.blocks);
      rank.unlabelled = labels.unlabelled;
      rank.remarks = std::move(labels.remarks);
      off[i] = !rank.remarks.empty();
    } else if (Status s = plain_blocks(*db, options, tables[i], rank); !s) {
      rank.error = std::move(s).error();
      return;
    }
    tables[i].write_blocks = !tables[i].blocks.rows.empty();
    if (Status s = read_communication(*db, tables[i], peers[i], nameless[i]); !s) rank.error = std::move(s).error();
  });
  PairedLinks links = pair_links(peers);
  for (size_t i = 0; i < ranks.size(); ++i) {
    tables[i].links = std::move(links.by_rank[i]);
    tables[i].write_links = !tables[i].links.empty();
  }
  link_nameless(trace ? &*trace : nullptr, parts, nameless, tables, chart.ranks);
  drop_repeated_notes(off, chart);
  for (const std::string& remark : links.remarks)
    chart.notes.add(problem::pp_chart_links, Args().set("remark", remark));
  return tables;
}

}  // namespace stageline
