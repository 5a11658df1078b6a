// Turns the cells of one row into rectangles. A row has three zones, one over the other:
//
//   ┌──────────────┐ full: compute and optimizer
//   │              │
//   │▄▄▄▄▄▄▄▄▄▄▄▄▄▄│ low: collectives and other work, so that overlap with compute shows
//   └▂▂▂▂▂▂▂▂▂▂▂▂▂▂┘ thin: messages
//
// Cells should not overlap within a zone. Where they do (two streams), that stretch is divided into as many lines as
// are needed. Cells narrower than 1.5 strips are not drawn but summed into strips.
#include "exporters/chart/chart_layout.h"

namespace stageline {
namespace {

constexpr int kZones = 3;
constexpr double kZoneShare[kZones] = {1.0, 0.36, 0.16};
constexpr double kZoneLine[kZones] = {6, 4, 3};       // minimum height of one line when a zone is divided
constexpr double kLabelSize = 13, kMinLabelSize = 8;  // smaller numbers cannot be read

int zone_of(CellKind kind) {
  if (is_message(kind)) return 2;
  return kind == CellKind::kCollective || kind == CellKind::kOther ? 1 : 0;
}

using Shares = ByEnum<KindGroup, double, 7>;

// The sums of one zone, kept only where there is something: a row of a million pixels may hold ten cells.
struct Strips {
  std::vector<Shares> share;  // one for each strip
  std::vector<bool> used;
  double strip_px = 1;

  void add(double x, double w, CellKind kind, size_t count) {
    if (share.empty()) {
      share.resize(count);
      used.resize(count);
    }
    while (w > 0) {
      const auto s = static_cast<size_t>(std::clamp<double>(std::floor(x / strip_px), 0.0, count - 1));
      const double room = s + 1 == count ? w : (static_cast<double>(s) + 1) * strip_px - x;
      const double part = std::min(w, std::max(room, 1e-9));
      used[s] = true;
      if (kind == CellKind::kForwardBackward) {
        share[s][KindGroup::kForward] += part / strip_px / 2;
        share[s][KindGroup::kBackward] += part / strip_px / 2;
      } else {
        share[s][kind_group(kind)] += part / strip_px;
      }
      x += part;
      w -= part;
    }
  }
};

void emit_strips(const Strips& strips, const RowPlace& place, int zone, double y, double h, ChartLayout& layout) {
  ChartBlend run;
  run.zone = zone;
  Shares sum = {};
  size_t length = 0;
  const auto finish = [&](size_t end) {
    if (length == 0) return;
    const double x = (end - length) * strips.strip_px;
    run.box = {place.box.x + x, y, std::min(length * strips.strip_px, place.box.w - x), h};
    run.row = place.row;
    for (size_t g = 0; g < 7; ++g) run.share[g] = static_cast<float>(sum[g] / length);
    layout.blends.push_back(run);
    sum = {};
    length = 0;
  };
  for (size_t s = 0; s < strips.share.size(); ++s) {
    if (!strips.used[s]) {
      finish(s);
      continue;
    }
    Shares share = strips.share[s];
    const double total = sum_over<double>(share);
    if (total > 1)  // cells overlap: the strip counts as full, not as more than full
      for (double& part : share) part /= total;
    // Neighbouring strips that look alike become one rectangle with their exact mean.
    bool alike = true;
    for (size_t g = 0; g < 7; ++g) alike = alike && (length == 0 || std::fabs(share[g] - sum[g] / length) < 1.0 / 24);
    if (!alike) finish(s);
    for (size_t g = 0; g < 7; ++g) sum[g] += share[g];
    ++length;
  }
  finish(strips.share.size());
}

}  // namespace

void place_cells(const Cells& cells, const std::vector<uint32_t>& order, const RowPlace& place, ChartLayout& layout) {
  const auto strip_count = static_cast<size_t>(std::max(1.0, std::ceil(place.box.w / place.strip_px)));
  const auto touch_ns = static_cast<int64_t>(0.5 / place.px_per_ns);  // an overlap too short to be seen
  for (int zone = 0; zone < kZones; ++zone) {
    const double h = std::min(place.box.h, std::max(place.box.h * kZoneShare[zone], 2.0));
    const double y = place.box.y + place.box.h - h;
    const int max_lines = std::clamp(static_cast<int>(h / kZoneLine[zone]), 1, 4);
    Strips strips;
    strips.strip_px = place.strip_px;
    std::vector<uint32_t> cluster;  // a chain of cells, each overlapping the next
    std::vector<int64_t> starts, ends;
    std::vector<int> line;
    const auto finish_cluster = [&] {
      starts.clear();
      ends.clear();
      for (const uint32_t i : cluster) {
        starts.push_back(cells.start_ns[i]);
        ends.push_back(std::max(cells.start_ns[i], cells.end_ns[i] - touch_ns));
      }
      const int lines = cluster.size() > 1 ? assign_rows(starts, ends, line, max_lines) : 1;
      for (size_t k = 0; k < cluster.size(); ++k) {
        const uint32_t i = cluster[k];
        ChartCell cell{.kind = cells.kind[i], .chunk = cells.chunk[i], .row = place.row, .zone = zone};
        cell.label = cells.micro_batch[i];  // label_cells() replaces this
        const double line_h = h / lines;
        cell.box = {place.box.x + (cells.start_ns[i] - place.zero_ns) * place.px_per_ns,
                    y + line_h * (lines > 1 ? line[k] : 0), cells.dur_ns(i) * place.px_per_ns, line_h};
        layout.cells.push_back(cell);
      }
      cluster.clear();
    };
    int64_t cluster_end = 0;
    const size_t first_cell = layout.cells.size();
    for (const uint32_t i : order) {
      if (zone_of(cells.kind[i]) != zone || cells.end_ns[i] <= cells.start_ns[i]) continue;
      const double w = cells.dur_ns(i) * place.px_per_ns;
      if (w < 1.5 * place.strip_px) {
        strips.add((cells.start_ns[i] - place.zero_ns) * place.px_per_ns, w, cells.kind[i], strip_count);
        continue;
      }
      if (!cluster.empty() && cells.start_ns[i] >= cluster_end - touch_ns) finish_cluster();
      cluster_end = cluster.empty() ? cells.end_ns[i] : std::max(cluster_end, cells.end_ns[i]);
      cluster.push_back(i);
    }
    finish_cluster();
    // Other work is painted first, so that collectives lie on top of it.
    std::stable_partition(layout.cells.begin() + first_cell, layout.cells.end(),
                          [](const ChartCell& cell) { return cell.kind == CellKind::kOther; });
    emit_strips(strips, place, zone, y, h, layout);
  }
}

void label_cells(const MeasureText& measure, bool with_chunk, ChartLayout& layout) {
  struct Label {
    std::string text;
    double width;  // width at font size 100
  };
  std::unordered_map<int64_t, Label> labels;
  const auto label_of = [&](int32_t micro_batch, int32_t chunk) -> const Label& {
    const auto [it, fresh] = labels.try_emplace((int64_t{chunk} + 1) << 32 | micro_batch);
    if (fresh) {
      it->second.text = std::to_string(micro_batch) + (chunk >= 0 ? "·" + std::to_string(chunk) : "");
      it->second.width = measure(it->second.text, 100, true);
    }
    return it->second;
  };
  // A forward-backward cell has two colours, one above the other. Its number is in the upper half.
  const auto room_h = [](const ChartCell& c) { return c.kind == CellKind::kForwardBackward ? c.box.h / 2 : c.box.h; };
  const auto fits = [](const ChartCell& c, const Label& label, double size) {
    return label.width * size / 100 + (size < 9 ? 2 : size < 10 ? 3 : 6) <= c.box.w;
  };
  // The whole chart has one font size, so that numbers of large cells are not the ones that are missing. It is the
  // largest size at which nearly all cells that can show a number at the minimum size still show it.
  double tallest = 0;
  for (const ChartCell& c : layout.cells)
    if (c.label >= 0 && is_compute(c.kind)) tallest = std::max(tallest, room_h(c));
  double size = std::min(kLabelSize, std::floor(tallest * 2 * 0.58) / 2);
  for (; size > kMinLabelSize; size -= 0.5) {
    size_t could = 0, can = 0;
    for (const ChartCell& c : layout.cells) {
      if (c.label < 0 || !is_compute(c.kind)) continue;
      const Label& label = label_of(c.label, -1);
      if (!fits(c, label, kMinLabelSize)) continue;
      ++could;
      can += fits(c, label, size) ? 1 : 0;
    }
    if (can >= 0.95 * could) break;
  }
  for (ChartCell& c : layout.cells) {
    const int32_t micro_batch = c.label;
    c.label = -1;
    const double own_size = std::min(size, std::floor(room_h(c) * 2 * 0.58) / 2);
    if (micro_batch < 0 || !is_compute(c.kind) || own_size < kMinLabelSize) continue;
    for (const int32_t chunk : {with_chunk ? c.chunk : -1, -1}) {
      const Label& label = label_of(micro_batch, chunk);
      if (!fits(c, label, own_size)) continue;
      const double width = label.width * own_size / 100;
      c.label = static_cast<int32_t>(layout.cell_labels.size());
      layout.cell_labels.push_back({c.box.x + (c.box.w - width) / 2, c.box.y + room_h(c) / 2 + own_size * 0.36, width,
                                    own_size, true, true, label.text});
      break;
    }
  }
}

}  // namespace stageline
