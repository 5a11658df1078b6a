// LinkIndex: finds the links of a trace by either end. It is for exporters that walk the cells in time order and need
// the arrows of each cell. Takes two arrays of 4 bytes per cell and per link.
#pragma once

#include "exporters/track_layout.h"

namespace stageline {

class LinkIndex {
 public:
  // Leaves out links that have an end which the layout does not show.
  LinkIndex(const Trace& trace, const TrackLayout& layout) {
    std::vector<bool> shown(trace.cells.size(), layout.cells_left_out == 0);
    if (layout.cells_left_out > 0)
      for (const uint32_t cell : layout.cells) shown[cell] = true;
    const auto usable = [&](const Link& link) { return shown[link.from_cell] && shown[link.to_cell]; };
    out_ = group(trace, &Link::from_cell, usable);
    in_ = group(trace, &Link::to_cell, usable);
    left_out_ = trace.links.size() - out_.links.size();
  }

  // Both return indices into trace.links.
  std::span<const uint32_t> out_of(uint32_t cell) const { return out_.at(cell); }
  std::span<const uint32_t> into(uint32_t cell) const { return in_.at(cell); }
  size_t left_out() const { return left_out_; }

 private:
  struct Side {
    std::vector<uint32_t> begin, links;
    std::span<const uint32_t> at(uint32_t cell) const {
      return {links.data() + begin[cell], links.data() + begin[cell + 1]};
    }
  };
  template <class Usable> static Side group(const Trace& trace, uint32_t Link::* end, Usable usable) {
    Side side;
    // One more than needed: counting first moves each begin two places up.
    side.begin.assign(trace.cells.size() + 2, 0);
    for (const Link& link : trace.links)
      if (usable(link)) ++side.begin[link.*end + 2];
    for (size_t i = 2; i < side.begin.size(); ++i) side.begin[i] += side.begin[i - 1];
    side.links.resize(side.begin.back());
    for (uint32_t k = 0; k < trace.links.size(); ++k)
      if (usable(trace.links[k])) side.links[side.begin[trace.links[k].*end + 1]++] = k;
    return side;
  }

  Side out_, in_;
  size_t left_out_ = 0;
};

}  // namespace stageline
