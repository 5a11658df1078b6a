#include "diagnosis/causes/peer_work.h"

#include "model/statistics.h"

namespace stageline {
namespace {

constexpr double kFloor = 1.03;         // a smaller ratio to the peers is not looked at
constexpr double kErrors = 4;           // standard errors by which a ratio must exceed 1
constexpr double kSmallStretch = 0.02;  // share of a cell; what takes less says nothing of a rank's speed
constexpr double kPaused = 3;           // a stretch that takes this many times its usual time may be paused
constexpr double kPausedCell = 0.5;     // and takes longer by this share of its cell
constexpr double kOfDevice = 0.5;  // share of the excess outside of experts with which a device's experts are slow, too
constexpr size_t kMinCells = 8;    // that a correlation needs

double median_beside_of(std::vector<double> values, size_t own) {
  values.erase(values.begin() + static_cast<ptrdiff_t>(own));
  return median_of(std::move(values));
}

}  // namespace

bool PeerWork::Ratio::sure() const { return value - 1 >= std::max(kFloor - 1, kErrors * error); }

PeerWork::PeerWork(const Trace& trace, const StepGraph& graph, const std::vector<bool>& counts)
    : trace_(trace), graph_(graph), counts_(counts), cells_(find_peer_cells(trace, graph)) {
  if (!any()) return;
  even_.assign(cells_.own_ns.size(), 1);
  unpaused_ = relative_ = even_;
  find_pauses();
  if (!cells_.experts) return;
  find_ratios();
  find_devices();
  even_experts();
  keep_noise();
}

int32_t PeerWork::class_of(const PeerCell& cell, size_t stretch) const {
  if (!cells_.is_experts(stretch)) return 0;
  const int32_t chunk = std::max(graph_.chunk[cell.op], 0), layers = static_cast<int32_t>(cell.meets / 2);
  return 1 + chunk * layers + static_cast<int32_t>(stretch / 2);
}

double PeerWork::device(int32_t part) const { return value_at(devices_, part, 1); }

// Calls body(members) for the groups of steps that count.
template <class Body> void PeerWork::each_group(const Body& body) const {
  size_t step = 0;
  for (const GraphGroup& group : cells_.groups) {
    const uint32_t op = cells_.cells[group.begin].op;
    while (op >= graph_.steps[step].end) ++step;
    if (counts_[step]) body(std::span(&cells_.cells[group.begin], group.end - group.begin));
  }
}

// A pause is in a forward or in its backward; long data are in both. No more than all rows of all peers can come to one
// rank's experts.
void PeerWork::find_pauses() {
  using Place = std::tuple<int32_t, CellKind, int32_t, size_t>;  // part, kind, chunk, stretch
  const auto place = [&](const PeerCell& cell, size_t stretch) {
    return Place(graph_.part[cell.op], graph_.kind[cell.op], graph_.chunk[cell.op], stretch);
  };
  std::map<Place, std::vector<double>> all;
  each_group([&](std::span<const PeerCell> members) {
    for (const PeerCell& cell : members)
      for (size_t j = 0; j <= cell.meets; ++j) all[place(cell, j)].push_back(cells_.own_ns[cell.first + j]);
  });
  std::map<Place, double> usual;
  for (auto& [at, values] : all) usual[at] = median_of(std::move(values));
  const auto usual_cell = [&](const PeerCell& cell) {
    double sum = 0;
    for (size_t j = 0; j <= cell.meets; ++j) sum += usual.at(place(cell, j));
    return sum;
  };
  const auto own_cell = [&](const PeerCell& cell) { return sum_over<double>(cells_.own(cell)); };
  // The other direction of each micro-batch: how much longer than usual it is, in usual times.
  std::map<std::tuple<int32_t, int32_t, int32_t, int32_t>, std::array<double, 2>> ways;  // forward, others
  const auto batch = [&](const PeerCell& cell) {
    return std::tuple(graph_.part[cell.op], trace_.cells.step[graph_.cell[cell.op]], graph_.chunk[cell.op],
                      graph_.micro_batch[cell.op]);
  };
  const auto way = [&](const PeerCell& cell) { return graph_.kind[cell.op] == CellKind::kForward ? 0 : 1; };
  each_group([&](std::span<const PeerCell> members) {
    for (const PeerCell& cell : members)
      if (const double ns = usual_cell(cell); ns > 0) ways[batch(cell)][way(cell)] += own_cell(cell) / ns - 1;
  });
  each_group([&](std::span<const PeerCell> members) {
    for (const PeerCell& cell : members) {
      const std::array<double, 2>& of = ways[batch(cell)];
      if (of[1 - way(cell)] > of[way(cell)] / 2) continue;
      for (size_t j = 0; j <= cell.meets; ++j) {
        const double own = cells_.own_ns[cell.first + j], ns = usual.at(place(cell, j));
        double least = kPaused * ns;
        if (cells_.is_experts(j)) {
          double rows = sum_over<double>(members, [&](const PeerCell& peer) { return usual.at(place(peer, j)); });
          least = std::max(least, rows);
        }
        if (own <= least || own - ns < kPausedCell * usual_cell(cell)) continue;
        pauses_.at.push_back(cell.first + j);
        pauses_.of_part[graph_.part[cell.op]] += own - ns, pauses_.ns += own - ns;
        unpaused_[cell.first + j] = ns / own;
      }
    }
  });
}

void PeerWork::find_ratios() {
  std::map<Key, std::vector<double>> all;
  each_group([&](std::span<const PeerCell> members) {
    for (size_t j = 0; j <= members.front().meets; ++j) {
      auto works = mapped<double>(members, [&](const PeerCell& cell) { return clean_ns(cell.first + j); });
      for (size_t i = 0; i < members.size(); ++i) {
        const double others = median_beside_of(works, i);
        if (others > kSmallStretch * graph_.dur_ns[members[i].op])
          all[{graph_.part[members[i].op], class_of(members[i], j)}].push_back(works[i] / others);
      }
    }
  });
  for (auto& [key, values] : all) {
    Ratio& ratio = ratios_[key];
    ratio.value = median_of(values);
    for (double& value : values) value = std::abs(value - ratio.value);
    // Returns the standard error of a median of normal values, from their median deviation.
    ratio.error = 1.2533 * 1.4826 * median_of(values) / std::sqrt(static_cast<double>(values.size()));
  }
}

// A slow device is slow in all that it computes; a rank with more tokens only outside of experts, whose rows come from
// all ranks. Rows change what experts take, so the work outside says how slow a device is.
void PeerWork::find_devices() {
  std::map<int32_t, std::vector<double>> experts;  // by part
  for (const auto& [key, ratio] : ratios_)
    if (key.second > 0) experts[key.first].push_back(ratio.value);
  for (auto& [part, values] : experts) {
    const auto outside = ratios_.find({part, 0});
    if (outside == ratios_.end()) continue;
    if (!outside->second.sure()) continue;
    const double excess = outside->second.value - 1;
    if (median_of(std::move(values)) - 1 >= kOfDevice * excess) devices_[part] = outside->second.value;
    else sources_[part] = outside->second;
  }
  for (const auto& [key, ratio] : ratios_) {
    Ratio own = ratio;
    own.value /= device(key.first);
    if (key.second == 0 || !own.sure() || own.value <= experts_.hottest.value) continue;
    experts_.hottest = own, experts_.part = key.first, experts_.layer = key.second - 1;
  }
}

void PeerWork::even_experts() {
  std::map<Key, std::vector<double>> shares;  // of a rank's work in the mean of all peers
  each_group([&](std::span<const PeerCell> members) {
    for (size_t j = 1; j <= members.front().meets; j += 2) {
      double sum = 0;
      for (const PeerCell& cell : members) sum += clean_ns(cell.first + j) / device(graph_.part[cell.op]);
      for (const PeerCell& cell : members)
        if (const int32_t part = graph_.part[cell.op]; sum > 0)
          shares[{part, class_of(cell, j)}].push_back(clean_ns(cell.first + j) / device(part) / sum *
                                                      static_cast<double>(members.size()));
    }
  });
  std::map<Key, double> lasting;
  for (auto& [key, values] : shares) lasting[key] = median_of(std::move(values));
  double all = 0, rest = 0;  // what the longest rank takes beyond the mean, as it is and without what lasts
  for (const GraphGroup& group : cells_.groups) {
    const std::span members(&cells_.cells[group.begin], group.end - group.begin);
    for (size_t j = 1; j <= members.front().meets; j += 2) {
      double sum = 0, max = 0, level = 0, level_max = 0;
      for (const PeerCell& cell : members) {
        const int32_t part = graph_.part[cell.op];
        const double own = clean_ns(cell.first + j) / device(part);
        const auto known = lasting.find({part, class_of(cell, j)});
        const double share = known == lasting.end() || !(known->second > 0) ? 1 : known->second;
        sum += own, max = std::max(max, own);
        level += own / share, level_max = std::max(level_max, own / share);
      }
      const double count = static_cast<double>(members.size());
      for (const PeerCell& cell : members)
        if (const double own = clean_ns(cell.first + j) / device(graph_.part[cell.op]); own > 0)
          even_[cell.first + j] = sum / count / own, relative_[cell.first + j] = own * count / sum;
      all += max - sum / count, rest += level_max - level / count;
    }
  }
  experts_.lasting = all > 0 ? 1 - rest / all : 0;
}

// Rows of a micro-batch are the same in its forward and its backward, so the difference of the two is noise, which even
// experts have, too. Backwards may pass the layers in the order of the forwards or the other way round.
void PeerWork::keep_noise() {
  std::map<std::tuple<int32_t, int32_t, int32_t, int32_t>, std::array<const PeerCell*, 2>>
      batches;  // forward, backward
  for (const PeerCell& cell : cells_.cells) {
    const CellKind kind = graph_.kind[cell.op];
    if (kind != CellKind::kForward && !is_backward(kind)) continue;
    batches[{graph_.part[cell.op], trace_.cells.step[graph_.cell[cell.op]], graph_.chunk[cell.op],
             graph_.micro_batch[cell.op]}][kind == CellKind::kForward ? 0 : 1] = &cell;
  }
  std::erase_if(batches, [](const auto& entry) {
    const auto [forward, backward] = entry.second;
    return !forward || !backward || forward->meets != backward->meets;
  });
  const auto each_pair = [&](bool turned, const auto& body) {
    for (const auto& [batch, both] : batches)
      for (uint32_t j = 1; j <= both[0]->meets; j += 2)
        body(both[0]->first + j, both[1]->first + (turned ? both[1]->meets - j : j));
  };
  const auto correlation = [&](bool turned) {
    double xx = 0, yy = 0, xy = 0, count = 0;
    each_pair(turned, [&](size_t a, size_t b) {
      const double x = relative_[a] - 1, y = relative_[b] - 1;  // their means are 0 by construction
      xx += x * x, yy += y * y, xy += x * y, ++count;
    });
    return count >= kMinCells && xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
  };
  const bool turned = correlation(true) > correlation(false);
  experts_.correlation = correlation(turned);
  if (experts_.correlation < kAgree) return;
  each_pair(turned, [&](size_t a, size_t b) {
    const double noise = (relative_[a] - relative_[b]) / std::sqrt(2);
    even_[a] *= std::max(0.0, 1 + noise), even_[b] *= std::max(0.0, 1 - noise);
  });
}

std::vector<double> PeerWork::usual_work() const {
  std::vector<double> work;
  if (!any()) return work;
  work = graph_.dur_ns;
  for (const PeerCell& cell : cells_.cells) {
    const auto source = sources_.find(graph_.part[cell.op]);
    double sum = 0;
    for (size_t j = 0; j <= cell.meets; ++j) {
      const bool longer = source != sources_.end() && !cells_.is_experts(j);
      sum += clean_ns(cell.first + j) * even_[cell.first + j] / (longer ? source->second.value : 1);
    }
    work[cell.op] = sum;
  }
  return work;
}

}  // namespace stageline
