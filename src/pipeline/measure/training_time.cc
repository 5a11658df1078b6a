#include "pipeline/measure/training_time.h"

#include "base/json_members.h"
#include "model/intervals.h"
#include "model/lanes.h"

namespace stageline {
namespace {

constexpr std::string_view kDataWait = "data wait", kOwnLane = "collectives", kWait = "wait for ";
constexpr size_t kFewestWithWarmUp = 4;

struct Piece {
  TrainingPart part;
  Interval time;
  int32_t step;
  std::string_view name;  // only of collectives
};

// The number of ranks that a name ends with, as in "… (default_pg, 4 ranks)"; 0 where it has none.
size_t ranks_known(std::string_view name) {
  const size_t end = name.rfind(" ranks)"), begin = end == std::string_view::npos ? end : name.rfind(' ', end - 1);
  if (begin == std::string_view::npos) return 0;
  return std::max<int64_t>(0, json_integer(name.substr(begin + 1, end - begin - 1)).value_or(0));
}

// The pieces of work of a rank; `hidden` are collectives on a lane of their own.
struct RankPieces {
  std::vector<Piece> pieces;
  std::vector<Piece> hidden;
  bool marked = false;  // true: it has slices that only the hooks for plain training record
};

RankPieces pieces_of(const Trace& trace, size_t p, const std::vector<size_t>& cells) {
  const Part& part = trace.parts[p];
  RankPieces out;
  std::vector<std::pair<int64_t, int32_t>> works;  // start and step of each forward or backward
  // Our export draws all collectives on such a lane. A collective that a rank waits for by another slice runs at
  // the same time as its work.
  std::set<std::string_view> awaited;
  for (const StringId id : part.slices.name_id)
    if (const std::string_view name = trace.names.text(id); name.starts_with(kWait))
      awaited.insert(name.substr(kWait.size()));
  const auto runs_beside = [&](uint32_t slice) {
    const size_t lane = lane_of(part, slice);
    return lane != SIZE_MAX && part.lanes[lane].name == kOwnLane &&
           (trace.format == "recording" || awaited.contains(trace.names.text(part.slices.name_id[slice])));
  };
  for (const size_t i : cells) {
    const Cells& c = trace.cells;
    const Interval time{c.start_ns[i], c.end_ns[i]};
    std::string_view name;
    if (c.slice[i] != kNoSlice) name = trace.names.text(part.slices.name_id[c.slice[i]]);
    switch (c.kind[i]) {
      case CellKind::kForward:
      case CellKind::kBackward:
        works.emplace_back(time.start, c.step[i]);
        out.pieces.push_back(
            {c.kind[i] == CellKind::kForward ? TrainingPart::kForward : TrainingPart::kBackward, time, c.step[i], {}});
        break;
      case CellKind::kOptimizer: out.pieces.push_back({TrainingPart::kOptimizer, time, c.step[i], {}}); break;
      case CellKind::kCollective:
        if (runs_beside(c.slice[i])) {
          out.marked = true;
          out.hidden.push_back({TrainingPart::kCollective, time, c.step[i], name});
        } else {
          out.marked |= ranks_known(name) > 0;
          out.pieces.push_back({TrainingPart::kCollective, time, c.step[i], name});
        }
        break;
      default: break;
    }
  }
  std::ranges::sort(works);
  for (size_t s = 0; s < part.slices.size(); ++s) {
    if (trace.names.text(part.slices.name_id[s]) != kDataWait) continue;
    out.marked = true;
    const Interval time{part.slices.start_ns[s], part.slices.end_ns(s)};
    // A wait for data belongs to the step whose work comes next.
    const auto next = std::ranges::lower_bound(works, std::pair(time.end, INT32_MIN));
    if (next != works.end()) out.pieces.push_back({TrainingPart::kInput, time, next->second, {}});
  }
  return out;
}

// Gives each instant of [start, end) to the first part that claims it.
void share_out(const std::vector<Piece>& pieces, TrainingStep& step) {
  ByEnum<TrainingPart, std::vector<Interval>, kTrainingParts> claimed;
  for (const Piece& piece : pieces) {
    const int64_t start = std::max(piece.time.start, step.start_ns), end = std::min(piece.time.end, step.end_ns);
    if (start < end) claimed[piece.part].push_back({start, end});
  }
  std::vector<Interval> taken;
  int64_t before = 0;
  for (size_t k = 0; k + 1 < kTrainingParts; ++k) {
    taken.insert(taken.end(), claimed[k].begin(), claimed[k].end());
    taken = union_of(std::move(taken));
    const int64_t all = length_of(taken);
    step.ns[k] = all - before;
    before = all;
  }
  step.ns[kTrainingParts - 1] = step.whole_ns() - before;
}

// The collectives of one step by name, in order of time: the k-th one of a name is the same call on all ranks.
using Calls = std::map<std::string_view, std::vector<Interval>>;

// Returns the pieces of each part; none where the run is a pipeline or was not recorded by the hooks for plain
// training.
std::vector<RankPieces> pieces_of_ranks(const Trace& trace) {
  std::vector<std::vector<size_t>> cells(trace.parts.size());
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    const size_t p = trace.cells.part[i];
    if (is_message(trace.cells.kind[i]) || trace.parts[p].stage > 0) return {};
    cells[p].push_back(i);
  }
  std::vector<RankPieces> all(trace.parts.size());
  bool marked = false;
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    if (cells[p].empty()) continue;
    all[p] = pieces_of(trace, p, cells[p]);
    marked |= all[p].marked;
  }
  return marked ? std::move(all) : std::vector<RankPieces>();
}

// The steps that every rank has, without the first one where enough of them remain.
struct CommonSteps {
  std::vector<std::map<int32_t, Interval>> extent;  // [part]: a step lasts until the next one begins
  std::vector<int32_t> numbers;
  int32_t first_left_out = -1;
};
CommonSteps common_steps(const std::vector<RankPieces>& all) {
  CommonSteps out;
  out.extent.resize(all.size());
  std::map<int32_t, size_t> have;
  size_t ranks = 0;
  for (size_t p = 0; p < all.size(); ++p) {
    if (all[p].pieces.empty()) continue;
    ++ranks;
    std::map<int32_t, Interval>& extent = out.extent[p];
    for (const Piece& piece : all[p].pieces) {
      if (piece.step < 0) continue;
      const auto [at, is_new] = extent.try_emplace(piece.step, piece.time);
      if (is_new) continue;
      at->second.start = std::min(at->second.start, piece.time.start);
      at->second.end = std::max(at->second.end, piece.time.end);
    }
    for (auto at = extent.begin(); at != extent.end(); ++at) {
      if (const auto next = std::next(at); next != extent.end()) at->second.end = next->second.start;
      ++have[at->first];
    }
  }
  for (const auto& [step, count] : have)
    if (count == ranks) out.numbers.push_back(step);
  if (out.numbers.size() >= kFewestWithWarmUp) {
    out.first_left_out = out.numbers[0];
    out.numbers.erase(out.numbers.begin());
  }
  return out;
}

// Divides the steps of one rank; `calls` gets its collectives of each step.
std::vector<TrainingStep> steps_of_rank(std::vector<Piece>& pieces, const std::vector<int32_t>& steps,
                                        const std::map<int32_t, Interval>& extent, std::vector<Calls>& calls) {
  std::vector<TrainingStep> out;
  sort_stably(pieces, [](const Piece& a, const Piece& b) { return a.time.start < b.time.start; });
  for (const int32_t number : steps) {
    TrainingStep step{.step = number, .start_ns = extent.at(number).start};
    step.end_ns = std::max(step.start_ns, extent.at(number).end);
    out.push_back(step);
  }
  // Pieces are assigned by time, not by the step under which they were recorded. An optimizer that runs forward and
  // backward itself (Lightning) started before either, when the previous step was the last one known.
  std::vector<std::vector<Piece>> within(steps.size());
  calls.resize(steps.size());
  for (const Piece& piece : pieces) {
    auto at = std::ranges::upper_bound(out, piece.time.start, {}, &TrainingStep::end_ns);
    for (; at != out.end() && at->start_ns < piece.time.end; ++at) within[at - out.begin()].push_back(piece);
    const auto own = std::ranges::lower_bound(steps, piece.step);
    if (piece.part == TrainingPart::kCollective && own != steps.end() && *own == piece.step)
      calls[own - steps.begin()][piece.name].push_back(piece.time);
  }
  for (size_t k = 0; k < steps.size(); ++k) share_out(within[k], out[k]);
  return out;
}

// Splits the calls of one name in step `k` into transfer and waiting. The rank that came last waited least, so its time
// is the transfer, and the time of others beyond it is waiting.
void split_calls(const std::vector<std::vector<Calls>>& calls, size_t k, std::string_view name, TrainingCollective& sum,
                 std::vector<TrainingRank>& ranks) {
  size_t together = SIZE_MAX;  // number of calls that all ranks made
  for (const auto& of_rank : calls) {
    const auto at = of_rank[k].find(name);
    together = std::min(together, at == of_rank[k].end() ? 0 : at->second.size());
  }
  if (const size_t known = ranks_known(name); calls.size() < 2 || (known != 0 && known != calls.size())) together = 0;
  for (size_t r = 0; r < calls.size(); ++r) {
    const auto at = calls[r][k].find(name);
    if (at == calls[r][k].end()) continue;
    for (size_t c = 0; c < at->second.size(); ++c) {
      const auto length = [&](size_t rank) {
        const Interval& call = calls[rank][k].find(name)->second[c];
        return static_cast<double>(call.end - call.start);
      };
      double min = length(r);
      if (c < together)
        for (size_t other = 0; other < calls.size(); ++other) min = std::min(min, length(other));
      ++sum.count;
      sum.transfer_ns += min;
      sum.waiting_ns += length(r) - min;
      ranks[r].steps[k].transfer_ns += min;
      ranks[r].steps[k].waiting_ns += length(r) - min;
    }
  }
}

}  // namespace

TrainingTime training_time(const Trace& trace) {
  TrainingTime out;
  std::vector<RankPieces> all = pieces_of_ranks(trace);
  const CommonSteps common = common_steps(all);
  const std::vector<int32_t>& steps = common.numbers;
  out.first_left_out = common.first_left_out;
  if (steps.empty()) return out;

  std::vector<std::vector<Calls>> calls;  // [rank][step]
  std::map<std::string_view, double> bytes;
  for (uint32_t p = 0; p < all.size(); ++p) {
    if (all[p].pieces.empty()) continue;
    std::vector<Calls> of_rank;
    TrainingRank rank;
    rank.part = p;
    rank.rank = trace.parts[p].rank;
    rank.steps = steps_of_rank(all[p].pieces, steps, common.extent[p], of_rank);
    for (const Piece& piece : all[p].hidden)
      if (std::ranges::binary_search(steps, piece.step)) out.hidden_ns += piece.time.end - piece.time.start;
    for (const CollectiveFact& fact : trace.parts[p].collectives) {
      if (fact.bytes <= 0) continue;
      bytes[trace.names.text(trace.parts[p].slices.name_id[fact.slice])] += fact.bytes;
    }
    out.ranks.push_back(std::move(rank));
    calls.push_back(std::move(of_rank));
  }
  const double cases = out.ranks.size() * steps.size();
  out.hidden_ns /= cases;

  std::map<std::string_view, TrainingCollective> sums;
  for (size_t k = 0; k < steps.size(); ++k) {
    std::set<std::string_view> names;
    for (const auto& of_rank : calls)
      for (const auto& [name, list] : of_rank[k]) names.insert(name);
    for (const std::string_view name : names) split_calls(calls, k, name, sums[name], out.ranks);
  }
  for (auto& [name, sum] : sums) {
    sum.name = std::string(name);
    sum.transfer_ns /= cases;
    sum.waiting_ns /= cases;
    // A wait bears the name of the collective that it waits for; the size stands with the collective's own call.
    const std::string_view call = name.starts_with(kWait) ? name.substr(kWait.size()) : name;
    if (const auto at = bytes.find(call); at != bytes.end())
      sum.bytes = at->second / (cases + (out.first_left_out >= 0 ? out.ranks.size() : 0));
    sum.count = static_cast<int64_t>(sum.count / cases + 0.5);
    out.collectives.push_back(std::move(sum));
  }
  sort_stably(out.collectives, std::greater(), [](const auto& a) { return a.transfer_ns + a.waiting_ns; });
  out.reported = true;
  return out;
}

}  // namespace stageline
