#include "model/intervals.h"
#include "pipeline/replay/peer_cells.h"
#include "pipeline/replay/step_draft.h"

namespace stageline {
namespace {

constexpr double kNearlyAll = 0.95;
constexpr size_t kCellsPerStep = 2;  // fewer cells of a kind in a step do not show that each of them holds a row
// Where the rest of a cell shrinks by more than this for each nanosecond of waiting, the collective runs during it.
constexpr double kBeside = -0.5;
constexpr double kErrors = 3;  // standard errors by which it must shrink

struct Row {
  uint32_t row, cell;  // a collective, and the compute cell that it is in
  int64_t earlier_ns;  // what the collectives before it in that cell take
  int64_t later_ns;    // and those behind it
  int32_t later;       // their number
};

// Rows of one name in cells of one kind on one stage.
using RowsKey = std::tuple<int32_t, CellKind, StringId>;

// The ranks that meet: all of a stage, those of one position over the replicas, or those of one replica.
enum class Among : uint8_t { kStage, kReplicas, kPeers };
constexpr std::array kAmong = {Among::kStage, Among::kReplicas, Among::kPeers};

class Finder {
 public:
  explicit Finder(const Trace& trace) : trace_(trace), cells_(trace.cells), position_(peer_positions(trace)) {}

  InnerMeetings find() {
    find_rows();
    if (rows_.empty()) return {};
    count_cells();
    std::map<int32_t, Among> among_of;  // for each stage, the widest of its names
    std::set<int32_t> mixed;            // stages whose names differ in that
    std::vector<std::pair<const std::vector<Row>*, Among>> used;
    for (const auto& [key, rows] : rows_) {
      if (!in_every_cell(rows, counts_[{std::get<0>(key), std::get<1>(key)}])) continue;
      const auto among = std::ranges::find_if(kAmong, [&](Among one) { return meet(rows, one); });
      if (among == kAmong.end()) continue;
      used.emplace_back(&rows, *among);
      Among& widest = among_of.try_emplace(std::get<0>(key), *among).first->second;
      if (widest != *among) mixed.insert(std::get<0>(key));
      widest = std::min(widest, *among);
    }
    if (used.empty()) return {};
    InnerMeetings out;
    out.wait_ns.assign(cells_.size(), 0);
    out.last_row.assign(cells_.size(), InnerMeetings::kNone);
    out.meets_as.assign(cells_.size(), InnerMeetings::kNone);
    out.inside.assign(cells_.size(), 0);
    for (const auto& [rows, among] : used)
      each_meeting(*rows, among, [&](const std::vector<Row>& members) {
        const int64_t shortest = shortest_of(members);
        for (const Row& one : members) {
          out.inside[one.row] = 1;
          if (!mixed.contains(trace_.parts[cells_.part[one.row]].stage)) out.rows.emplace_back(one.cell, one.row);
          out.wait_ns[one.cell] += cells_.dur_ns(one.row) - shortest;
          uint32_t& last = out.last_row[one.cell];
          if (last == InnerMeetings::kNone || cells_.end_ns[one.row] > cells_.end_ns[last]) last = one.row;
        }
      });
    std::ranges::sort(out.rows);  // the rows of a rank's step are in the order of their starts
    std::map<std::tuple<int32_t, int32_t, int32_t, CellKind, int32_t, int32_t>, uint32_t> numbers;
    for (uint32_t cell = 0; cell < cells_.size(); ++cell) {
      if (out.last_row[cell] == InnerMeetings::kNone) continue;
      const int32_t part = cells_.part[cell], stage = trace_.parts[part].stage;
      const std::tuple key(stage, group_of(among_of.at(stage), part), cells_.step[cell], cells_.kind[cell],
                           cells_.chunk[cell], cells_.micro_batch[cell]);
      out.meets_as[cell] = numbers.try_emplace(key, static_cast<uint32_t>(numbers.size())).first->second;
    }
    return out;
  }

 private:
  // Compute cells of one kind on one stage, and the ranks' steps that have any.
  struct Count {
    size_t cells = 0, lists = 0;
  };

  // A number that the ranks of a stage which meet have in common.
  int32_t group_of(Among among, int32_t part) const {
    return among == Among::kStage ? 0 : among == Among::kReplicas ? position_[part] : trace_.parts[part].dp;
  }

  // Rows of one rank and step are side by side, in the order of their starts.
  void find_rows() {
    uint32_t cell = InnerMeetings::kNone;
    for (uint32_t i = 0; i < cells_.size(); ++i) {
      const CellKind kind = cells_.kind[i];
      if (is_compute(kind)) cell = i;
      if (kind != CellKind::kCollective || cell == InnerMeetings::kNone || cells_.slice[i] == kNoSlice ||
          cells_.part[cell] != cells_.part[i] || cells_.step[cell] != cells_.step[i] || cells_.step[i] == kUnknown ||
          cells_.micro_batch[cell] == kUnknown || cells_.end_ns[i] > cells_.end_ns[cell] + kSameNs)
        continue;
      const Part& part = trace_.parts[cells_.part[i]];
      if (part.stage == kUnknown) continue;
      rows_[{part.stage, cells_.kind[cell], part.slices.name_id[cells_.slice[i]]}].push_back({i, cell, 0, 0, 0});
    }
    std::vector<Row*> all;
    for (auto& [key, rows] : rows_)
      for (Row& row : rows) all.push_back(&row);
    std::ranges::sort(all, std::greater(), [](const Row* row) { return std::pair(row->cell, row->row); });
    for (size_t i = 1; i < all.size(); ++i)
      if (all[i]->cell == all[i - 1]->cell) {
        all[i]->later_ns = all[i - 1]->later_ns + cells_.dur_ns(all[i - 1]->row);
        all[i]->later = all[i - 1]->later + 1;
      }
    for (size_t i = all.size(); i-- > 1;)
      if (all[i]->cell == all[i - 1]->cell) all[i - 1]->earlier_ns = all[i]->earlier_ns + cells_.dur_ns(all[i]->row);
  }

  void count_cells() {
    for (const RankRange& range : rank_ranges(cells_)) {
      std::map<CellKind, size_t> own;
      for (size_t i = range.begin; i < range.end; ++i) ++own[cells_.kind[i]];
      for (const auto& [kind, count] : own) {
        Count& all = counts_[{trace_.parts[range.part].stage, kind}];
        all.cells += count, ++all.lists;
      }
    }
  }

  // Returns true when nearly all these cells hold equally many of the rows; false where there are too few cells.
  static bool in_every_cell(const std::vector<Row>& rows, const Count& all) {
    if (all.cells < kCellsPerStep * all.lists) return false;
    std::map<size_t, size_t> cells_with;  // number of rows → cells
    for (size_t i = 0, end = 0; i < rows.size(); i = end) {
      while (end < rows.size() && rows[end].cell == rows[i].cell) ++end;
      ++cells_with[end - i];
    }
    size_t max = max_over<size_t>(cells_with, [&](const auto& entry) { return entry.second; });
    return max >= kNearlyAll * all.cells;
  }

  // Calls take(members) for each meeting, that is for the k-th rows in the cells of one piece of work.
  template <class Take> void each_meeting(const std::vector<Row>& rows, Among among, const Take& take) const {
    std::map<std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t>, std::vector<Row>> meetings;
    int32_t k = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      k = i > 0 && rows[i - 1].cell == rows[i].cell ? k + 1 : 0;
      const uint32_t cell = rows[i].cell;
      meetings[{group_of(among, cells_.part[cell]), cells_.step[cell], cells_.chunk[cell], cells_.micro_batch[cell], k}]
          .push_back(rows[i]);
    }
    for (const auto& [key, members] : meetings) take(members);
  }

  int64_t shortest_of(const std::vector<Row>& members) const {
    return min_over<int64_t>(members, [&](const Row& one) { return cells_.dur_ns(one.row); });
  }

  // Returns true when these ranks meet in these rows, and cells wait for that.
  bool meet(const std::vector<Row>& rows, Among among) const {
    size_t meetings = 0, met = 0, met_as_stamped = 0, size = 0;
    // For each part and place in the cell: waiting, own work before it, own work behind it.
    std::map<std::pair<int32_t, int32_t>, std::vector<std::array<double, 3>>> waited;
    each_meeting(rows, among, [&](const std::vector<Row>& members) {
      ++meetings;
      size = std::max(size, members.size());
      int64_t latest = INT64_MIN, first_end = INT64_MAX, latest_stamp = latest, first_stamp = first_end;
      const int64_t shortest = shortest_of(members);
      for (const Row& one : members) {
        const int32_t part = cells_.part[one.row];
        latest = std::max(latest, trace_.common_ns(part, cells_.start_ns[one.row]));
        first_end = std::min(first_end, trace_.common_ns(part, cells_.end_ns[one.row]));
        latest_stamp = std::max(latest_stamp, cells_.start_ns[one.row]);
        first_stamp = std::min(first_stamp, cells_.end_ns[one.row]);
        waited[{part, one.later}].push_back(
            {static_cast<double>(cells_.dur_ns(one.row) - shortest),
             static_cast<double>(cells_.start_ns[one.row] - cells_.start_ns[one.cell] - one.earlier_ns),
             static_cast<double>(cells_.end_ns[one.cell] - cells_.end_ns[one.row] - one.later_ns)});
      }
      met += members.size() == size && latest <= first_end + kSameNs;
      met_as_stamped += members.size() == size && latest_stamp <= first_stamp + kSameNs;
    });
    // An exchange that one rank leaves late shifts the estimate of its clock.
    if (size < 2 || std::max(met, met_as_stamped) < kNearlyAll * meetings) return false;
    double ww = 0, bb = 0, rr = 0, wb = 0, wr = 0, br = 0, free = -2;
    for (const auto& [place, points] : waited) {
      std::array<double, 3> mean{};
      const double count = points.size();
      for (const std::array<double, 3>& point : points)
        for (size_t i = 0; i < mean.size(); ++i) mean[i] += point[i] / count;
      for (const std::array<double, 3>& point : points) {
        const double w = point[0] - mean[0], b = point[1] - mean[1], r = point[2] - mean[2];
        ww += w * w, bb += b * b, rr += r * r, wb += w * b, wr += w * r, br += b * r;
      }
      free += count - 1;
    }
    // A cell with less work comes sooner, waits longer and has less left; the work before the meeting shows that.
    if (bb > 0) ww -= wb * wb / bb, wr -= wb * br / bb, rr -= br * br / bb;
    if (wr >= kBeside * ww) return true;
    // Where waits differ little, other differences of the rest outweigh them, and the slope says nothing.
    const double slope = wr / ww, error = std::sqrt(std::max(0.0, rr - slope * wr) / std::max(free, 1.0) / ww);
    return -slope < kErrors * error;
  }

  const Trace& trace_;
  const Cells& cells_;
  const std::vector<int32_t> position_;
  std::map<RowsKey, std::vector<Row>> rows_;
  std::map<std::pair<int32_t, CellKind>, Count> counts_;
};

}  // namespace

InnerMeetings find_inner_meetings(const Trace& trace) {
  const Cells& cells = trace.cells;
  if (trace.parts.size() < 2 || !trace.comparable() ||
      std::ranges::find(cells.kind, CellKind::kCollective) == cells.kind.end())
    return {};
  const std::vector<uint32_t> pairs = overlapped_pairs(cells);
  if (std::ranges::any_of(pairs, [](uint32_t pair) { return pair != kNoPair; })) return {};
  return Finder(trace).find();
}

}  // namespace stageline
