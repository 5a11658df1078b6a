#include "pipeline/replay/peer_cells.h"

#include "model/statistics.h"

namespace stageline {
namespace {

constexpr int64_t kStampNs = 1000;     // stamps of one clock are rounded to at most this
constexpr double kNearlyAll = 0.99;    // share of meetings that a clock has to fit, and of cells that must be known
constexpr double kLongTransfer = 1.5;  // a rank's transfers to its peers', from which its clock is checked
constexpr double kAtLeastHalf = 0.5;   // share of its lateness with which it must end its steps, too

bool is_exchange(std::string_view name) {
  const std::string word = to_lower(name);
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"all-to-all", "alltoall", "all_to_all", "dispatch", "combine"},
      [&](std::string_view part) { return word.find(part) != std::string::npos; });
}

enum class Clock : uint8_t { kStamped, kCommon, kNone };

class PeerFinder {
 public:
  PeerFinder(const Trace& trace, const StepGraph& graph)
      : trace_(trace), cells_(trace.cells), graph_(graph), rows_(find_inner_meetings(trace).rows) {}

  PeerCells find() {
    out_.of_op.assign(graph_.size(), PeerCells::kNone);
    out_.experts = true;
    size_t meetings = 0;
    for (const GraphGroup& group : graph_.groups) {
      if (!graph_.types[graph_.type[group.begin]].inside) continue;
      add_group(group);
      meetings += group.end - group.begin;
    }
    if (!out_.any() || static_cast<double>(out_.cells.size()) < kNearlyAll * static_cast<double>(meetings)) return {};
    clock_ = fits(Clock::kStamped) ? Clock::kStamped : fits(Clock::kCommon) ? Clock::kCommon : Clock::kNone;
    for (size_t g = 0; g < out_.groups.size(); ++g) measure(g, clock_);
    check_late_ones();
    return std::move(out_);
  }

 private:
  using Rows = std::span<const std::pair<uint32_t, uint32_t>>;

  Rows rows_of(uint32_t cell) const {
    const auto all = std::ranges::equal_range(rows_, cell, {}, &std::pair<uint32_t, uint32_t>::first);
    return {all.begin(), all.end()};
  }
  Rows rows_of(const PeerCell& cell) const { return rows_of(graph_.cell[cell.op]); }

  // Adds the cells of a meeting whose ranks meet equally often in it, in collectives of the same names.
  void add_group(const GraphGroup& group) {
    const auto name = [&](uint32_t row) { return trace_.slice_name(cells_.at(row)); };
    std::vector<PeerCell> members;
    Rows first;
    for (uint32_t meeting = group.begin; meeting < group.end; ++meeting) {
      if (graph_.waits(meeting).size() != 1) return;
      const uint32_t op = graph_.waits(meeting).front();
      const Rows rows = rows_of(graph_.cell[op]);
      if (rows.empty()) return;
      if (first.empty()) first = rows;
      if (!std::ranges::equal(rows, first,
                              [&](const auto& a, const auto& b) { return name(a.second) == name(b.second); }))
        return;
      members.push_back(
          {op, meeting, static_cast<uint32_t>(out_.groups.size()), 0, static_cast<uint32_t>(rows.size())});
    }
    out_.experts = out_.experts && first.size() % 2 == 0 &&
                   std::ranges::all_of(first, [&](const auto& row) { return is_exchange(name(row.second)); });
    const auto begin = static_cast<uint32_t>(out_.cells.size());
    int64_t latest = INT64_MIN;
    for (PeerCell& member : members) {
      member.first = out_.own_ns.size();
      out_.of_op[member.op] = out_.of_op[member.meeting] = static_cast<uint32_t>(out_.cells.size());
      add_work(member);
      latest = std::max(latest, graph_.start_ns[member.op] + static_cast<int64_t>(out_.own_ns[member.first]));
      out_.cells.push_back(member);
    }
    for (const PeerCell& member : members)
      out_.meeting_ns.push_back(static_cast<double>(graph_.ended_ns(member.meeting) - latest));
    out_.groups.push_back({begin, static_cast<uint32_t>(out_.cells.size())});
  }

  void add_work(const PeerCell& member) {
    const uint32_t cell = graph_.cell[member.op];
    int64_t since = cells_.start_ns[cell];
    for (const auto& [own, row] : rows_of(member)) {
      out_.own_ns.push_back(std::max<double>(0, static_cast<double>(cells_.start_ns[row] - since)));
      since = cells_.end_ns[row];
    }
    out_.own_ns.push_back(std::max<double>(0, static_cast<double>(cells_.end_ns[cell] - since)));
    out_.transfer_ns.resize(out_.own_ns.size());
  }

  std::span<const PeerCell> members_of(size_t group) const {
    return {&out_.cells[out_.groups[group].begin], &out_.cells[out_.groups[group].end - 1] + 1};
  }
  int64_t at(Clock clock, int32_t part, int64_t ns) const {
    return clock == Clock::kCommon ? trace_.common_ns(part, ns) : ns;
  }

  // Calls body(latest start, first end) for the k-th meeting of a group.
  template <class Body> void each_meeting(size_t group, Clock clock, const Body& body) const {
    const std::span<const PeerCell> members = members_of(group);
    for (uint32_t k = 0; k < members.front().meets; ++k) {
      int64_t latest = INT64_MIN, first_end = INT64_MAX;
      for (const PeerCell& member : members) {
        const uint32_t row = rows_of(member)[k].second;
        latest = std::max(latest, at(clock, graph_.part[member.op], cells_.start_ns[row]));
        first_end = std::min(first_end, at(clock, graph_.part[member.op], cells_.end_ns[row]));
      }
      body(k, latest, first_end);
    }
  }

  bool fits(Clock clock) const {
    double all = 0, fit = 0;
    for (size_t g = 0; g < out_.groups.size(); ++g)
      each_meeting(g, clock,
                   [&](uint32_t, int64_t latest, int64_t first_end) { ++all, fit += first_end + kStampNs >= latest; });
    return fit >= kNearlyAll * all;
  }

  void measure(size_t group, Clock clock) {
    const std::span<const PeerCell> members = members_of(group);
    each_meeting(group, clock, [&](uint32_t k, int64_t latest, int64_t) {
      int64_t shortest = INT64_MAX;
      for (const PeerCell& member : members) shortest = std::min(shortest, cells_.dur_ns(rows_of(member)[k].second));
      for (const PeerCell& member : members) {
        const uint32_t row = rows_of(member)[k].second;
        const int64_t since = at(clock, graph_.part[member.op], cells_.end_ns[row]) - latest;
        const int64_t transfer = clock == Clock::kNone ? shortest : std::clamp<int64_t>(since, 0, cells_.dur_ns(row));
        out_.transfer_ns[member.first + k] = static_cast<double>(transfer);
      }
    });
  }

  // Ranks that meet: their transfers, and by step how long each of them took from its first cell to its last meeting.
  struct Peers {
    std::vector<size_t> groups;
    std::map<int32_t, std::vector<double>> transfers;                            // by part
    std::map<int32_t, std::map<int32_t, std::pair<int64_t, int64_t>>> steps_of;  // by part and step: start, last end
  };

  void check_late_ones() {
    if (clock_ == Clock::kNone) return;
    std::map<std::vector<int32_t>, Peers> all;  // by parts
    for (size_t g = 0; g < out_.groups.size(); ++g) {
      auto parts = mapped<int32_t>(members_of(g), [&](const PeerCell& member) { return graph_.part[member.op]; });
      Peers& peers = all[parts];
      peers.groups.push_back(g);
      for (const PeerCell& member : members_of(g)) {
        const uint32_t cell = graph_.cell[member.op];
        const std::span<const double> transfers = out_.transfers(member);
        std::vector<double>& own = peers.transfers[graph_.part[member.op]];
        own.insert(own.end(), transfers.begin(), transfers.end());
        const int64_t start = cells_.start_ns[cell], end = cells_.end_ns[rows_of(member).back().second];
        const auto [step, fresh] =
            peers.steps_of[graph_.part[member.op]].try_emplace(cells_.step[cell], std::pair(start, end));
        if (!fresh) step->second = {std::min(step->second.first, start), std::max(step->second.second, end)};
      }
    }
    for (auto& [parts, peers] : all)
      if (is_clock_off(parts, peers))
        for (const size_t g : peers.groups) measure(g, Clock::kNone);
  }

  // A clock that is off shifts the ends of all meetings; a rank that leaves late also needs longer for its steps.
  static bool is_clock_off(const std::vector<int32_t>& parts, Peers& peers) {
    std::vector<double> transfers;
    std::map<int32_t, std::vector<double>> spans;  // by step, in the order of parts
    for (const int32_t part : parts) {
      transfers.push_back(median_of(peers.transfers[part]));
      for (const auto& [step, at] : peers.steps_of[part])
        spans[step].push_back(static_cast<double>(at.second - at.first));
    }
    const auto beside = [](std::vector<double> values, size_t own) {
      values.erase(values.begin() + static_cast<ptrdiff_t>(own));
      return median_of(std::move(values));
    };
    for (size_t i = 0; i < parts.size(); ++i) {
      const double others = beside(transfers, i), more = transfers[i] - others;
      if (transfers[i] < kLongTransfer * others || more <= kStampNs) continue;
      std::vector<double> longer;
      for (const auto& [step, of] : spans)
        if (of.size() == parts.size()) longer.push_back(of[i] - beside(of, i));
      if (longer.empty() || median_of(std::move(longer)) < kAtLeastHalf * more) return true;
    }
    return false;
  }

  const Trace& trace_;
  const Cells& cells_;
  const StepGraph& graph_;
  const std::vector<std::pair<uint32_t, uint32_t>> rows_;
  Clock clock_ = Clock::kNone;
  PeerCells out_;
};

}  // namespace

PeerCells find_peer_cells(const Trace& trace, const StepGraph& graph) {
  if (std::ranges::none_of(graph.types, [](const GraphType& type) { return type.inside; })) return {};
  return PeerFinder(trace, graph).find();
}

void replay_meetings(const PeerTimes& times, size_t members, size_t meets, std::span<double> after_ns) {
  for (size_t i = 0; i < members; ++i) after_ns[i] = 0;  // all are in the first meeting
  for (size_t k = 0; k < meets; ++k) {
    double latest = 0;
    if (k > 0) latest = *std::ranges::max_element(after_ns);
    for (size_t i = 0; i < members; ++i) {
      const size_t at = i * (meets + 1) + k;
      after_ns[i] = latest + times.transfer_ns[at] + times.own_ns[at + 1];
    }
  }
}

}  // namespace stageline
