#include "server/page/page_slices.h"

#include "server/timeline/lane_walk.h"
#include "server/timeline/slice_window.h"
#include "server/timeline/timeline_sums.h"

namespace stageline {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint64_t kSteps = 1, kFacts = 2, kCells = 4, kPartners = 8, kParents = 16;
constexpr int kFar = 256;  // most parents that are followed

void put(std::string& out, uint64_t value) {
  while (value >= 128) {
    out += static_cast<char>(value | 128);
    value >>= 7;
  }
  out += static_cast<char>(value);
}
void put_signed(std::string& out, int64_t value) { put(out, static_cast<uint64_t>(value) << 1 ^ (value >> 63)); }

// The unit of which all times of a lane are multiples: a microsecond for many profilers, else a nanosecond.
int64_t unit_of(const ViewLane& lane) {
  int64_t unit = 0;
  for (size_t i = 0; i < lane.count && unit != 1; ++i) {
    unit = std::gcd(unit, lane.start(i));
    if (lane.has_slices()) unit = std::gcd(unit, lane.dur(i));
  }
  return unit == 0 ? 1 : unit;
}

class LaneWriter {
 public:
  LaneWriter(const Timeline& timeline, const PageLanes& lanes, const PagePlaces& places, uint32_t id)
      : timeline_(timeline), lanes_(lanes), places_(places), lane_(timeline.lanes()[id]), unit_(unit_of(lane_)),
        holders_(lane_, 0, [](size_t i) { return static_cast<uint32_t>(i); }) {}

  // Writes the slices [begin, end); blocks must come in order.
  void block(std::string& out, size_t begin, size_t end) {
    if (begin == 0) put(out, static_cast<uint64_t>(unit_));
    if (!lane_.has_slices()) return samples(out, begin, end);
    starts(out, begin, end);
    for (size_t i = begin; i < end; ++i) put(out, static_cast<uint64_t>(lane_.dur(i) / unit_));
    const NameKinds& kinds = timeline_.name_kinds();
    for (size_t i = begin; i < end; ++i) put(out, places_.place_of[kinds.place_of(lane_, i)]);
    const std::string steps = steps_of(begin, end), facts = facts_of(begin, end);
    const std::string partners = partners_of(begin, end), parents = parents_of(begin, end);
    put(out, (steps.empty() ? 0 : kSteps) | (facts.empty() ? 0 : kFacts) | (lane_.cells ? kCells : 0) |
                 (partners.empty() ? 0 : kPartners) | (parents.empty() ? 0 : kParents));
    out += steps;
    out += facts;
    if (lane_.cells) cells(out, begin, end);
    out += partners;
    out += parents;
  }

 private:
  const Part& part() const { return timeline_.trace().parts[lane_.part]; }

  void starts(std::string& out, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const int64_t start = lane_.start(i);
      const bool inside = start < last_end_;
      put(out, static_cast<uint64_t>((start - (inside ? last_start_ : last_end_)) / unit_) * 2 + (inside ? 1 : 0));
      last_start_ = start;
      last_end_ = start + lane_.dur(i);
    }
  }
  void samples(std::string& out, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      put(out, static_cast<uint64_t>((lane_.start(i) - last_start_) / unit_));
      last_start_ = lane_.start(i);
    }
    const std::vector<double>& values = lane_.counter->value;
    constexpr double kExact = 9007199254740992.0 / 4;  // with smaller values, distances are whole doubles
    const auto is_whole = [](double v) { return std::abs(v) < kExact && v == std::floor(v) && !std::signbit(v); };
    const bool whole = std::all_of(values.begin() + begin, values.begin() + end, is_whole);
    put(out, whole ? 0 : 1);
    if (!whole) {
      out.append(reinterpret_cast<const char*>(values.data() + begin), (end - begin) * sizeof(double));
      return;
    }
    int64_t last = 0;
    for (size_t i = begin; i < end; ++i) {
      const auto value = static_cast<int64_t>(values[i]);
      put_signed(out, value - last);
      last = value;
    }
  }
  int64_t step_of(size_t i) const {
    if (const uint32_t cell = lane_.cell_of(i); cell != kNoSlice) return timeline_.trace().cells.step[cell];
    const std::vector<uint16_t>& steps = part().slices.step;
    if (steps.empty()) return -1;
    const uint16_t number = steps[lane_.first + i];
    return number > 0 && number <= part().steps.size() ? part().steps[number - 1u].number : -1;
  }
  std::string steps_of(size_t begin, size_t end) const {
    std::string out;
    bool any = false;
    for (size_t i = begin; i < end;) {
      const int64_t step = step_of(i);
      size_t to = i + 1;
      while (to < end && step_of(to) == step) ++to;
      put(out, to - i);
      put_signed(out, step);
      any = any || step != -1;
      i = to;
    }
    return any ? out : std::string();
  }
  std::string facts_of(size_t begin, size_t end) const {
    if (lane_.cells || part().ranges.empty()) return {};
    std::string list;
    size_t count = 0, last = begin;
    for (size_t i = begin; i < end; ++i) {
      const RangeFact* fact = fact_of(part().ranges, static_cast<uint32_t>(lane_.first + i));
      if (!fact || (fact->micro_batch < 0 && fact->chunk < 0)) continue;
      put(list, i - last);
      put_signed(list, fact->micro_batch);
      put_signed(list, fact->chunk);
      last = i;
      ++count;
    }
    if (count == 0) return {};
    std::string out;
    put(out, count);
    return out + list;
  }
  void cells(std::string& out, size_t begin, size_t end) const {
    const Cells& all = timeline_.trace().cells;
    for (size_t i = begin; i < end; ++i) put_signed(out, all.micro_batch[lane_.cell_of(i)]);
    for (size_t i = begin; i < end; ++i) put_signed(out, all.chunk[lane_.cell_of(i)]);
  }
  // The place of a slice in the page; none where the page does not carry its lane.
  SlicePlace drawn(uint32_t slice) const {
    const SlicePlace there = slice == kNoSliceIndex ? SlicePlace{} : timeline_.place_of_slice(lane_.part, slice);
    return there && lanes_.page_lane[there.lane] != kNone ? there : SlicePlace{};
  }
  SlicePlace partner_of(size_t i) const {
    if (const uint32_t cell = lane_.cell_of(i); cell != kNoSlice) {
      const uint32_t source = timeline_.trace().cells.slice[cell];
      return source == kNoSlice ? SlicePlace{} : drawn(source);
    }
    const std::vector<uint32_t>& partner = part().slices.partner;
    if (partner.empty()) return {};
    return drawn(partner[lane_.first + i]);
  }
  std::string partners_of(size_t begin, size_t end) {
    std::string list, distances;
    bool any = false;
    for (size_t i = begin; i < end; ++i) {
      const SlicePlace other = partner_of(i);
      put(list, other ? lanes_.page_lane[other.lane] + 1 : 0);
      if (!other) continue;
      any = true;
      put_signed(distances, int64_t{other.slice} - last_partner_);
      last_partner_ = other.slice;
    }
    return any ? list + distances : std::string();
  }
  // The parent that the page derives for a slice by itself.
  uint32_t assumed_parent(size_t i, uint32_t holder) const {
    if (lane_.type != ViewLaneType::kStream)
      return holder == LaneWalk::kNoTag ? kNoSliceIndex : static_cast<uint32_t>(lane_.first + holder);
    if (!partner_of(i)) return kNoSliceIndex;
    const std::vector<uint32_t>& parent = part().slices.parent;
    uint32_t at = part().slices.partner[lane_.first + i];
    for (int step = 0; step < kFar; ++step) {
      at = parent[at];
      if (!drawn(at)) return kNoSliceIndex;
      if (is_operator(at)) return at;
    }
    return kNoSliceIndex;
  }
  bool is_operator(uint32_t slice) const {
    const SlicePlace at = timeline_.place_of_slice(lane_.part, slice);
    return timeline_.lanes()[at.lane].kind(at.slice) == static_cast<uint8_t>(ViewKind::kOperator);
  }
  // Adds the parent of slice i, `since` slices after the last one added, and returns true where it differs from the
  // parent that the page derives.
  bool add_parent(std::string& list, size_t i, size_t since, uint32_t holder) {
    const uint32_t parent = part().slices.parent[lane_.first + i];
    const SlicePlace there = drawn(parent);
    if ((there ? parent : kNoSliceIndex) == assumed_parent(i, holder)) return false;
    put(list, since);
    put(list, there ? uint64_t{lanes_.page_lane[there.lane]} + 1 : 0);
    if (!there) return true;
    put_signed(list, int64_t{there.slice} - last_parent_);
    last_parent_ = there.slice;
    return true;
  }
  std::string parents_of(size_t begin, size_t end) {
    if (lane_.cells || part().slices.parent.empty()) return {};
    std::string list;
    size_t count = 0, last = begin, next = begin;
    const auto check = [&](size_t i, uint32_t holder) {
      if (!add_parent(list, i, i - last, holder)) return;
      last = i;
      ++count;
    };
    holders_.until(end, [&](size_t i, int64_t, int64_t, uint32_t holder) {
      for (; next < i; ++next) check(next, LaneWalk::kNoTag);  // nested deeper than rows are drawn
      check(next++, holder);
      return static_cast<uint32_t>(i);
    });
    for (; next < end; ++next) check(next, LaneWalk::kNoTag);
    if (count == 0) return {};
    std::string out;
    put(out, count);
    return out + list;
  }

  const Timeline& timeline_;
  const PageLanes& lanes_;
  const PagePlaces& places_;
  const ViewLane& lane_;
  int64_t unit_, last_start_ = 0, last_end_ = 0, last_partner_ = 0, last_parent_ = 0;
  LaneWalk holders_;
};

}  // namespace

PageLanes lanes_of_page(const Timeline& timeline, uint64_t max_slices) {
  PageLanes out;
  uint64_t all = 0, cells = 0;
  for (const ViewLane& lane : timeline.lanes()) {
    all += lane.count;
    if (lane.cells) cells += lane.count;
  }
  out.page_lane.assign(timeline.lanes().size(), kNone);
  for (uint32_t l = 0; l < timeline.lanes().size(); ++l) {
    const ViewLane& lane = timeline.lanes()[l];
    const bool carried = all <= max_slices || (lane.cells && cells <= max_slices);
    if (!carried) {
      if (lane.has_slices()) out.left_out += lane.count;
      continue;
    }
    out.page_lane[l] = static_cast<uint32_t>(out.lanes.size());
    out.lanes.push_back(l);
    out.slices += lane.count;
  }
  return out;
}

PagePlaces places_of_page(const Timeline& timeline, const PageLanes& lanes) {
  const NameKinds& kinds = timeline.name_kinds();
  std::vector<uint64_t> counts(kinds.size());
  for (const uint32_t l : lanes.lanes) {
    const ViewLane& lane = timeline.lanes()[l];
    if (!lane.has_slices()) continue;
    for (size_t i = 0; i < lane.count; ++i) ++counts[kinds.place_of(lane, i)];
  }
  std::vector<uint32_t> order;
  for (uint32_t place = 0; place < counts.size(); ++place)
    if (counts[place] > 0) order.push_back(place);
  sort_stably(order, [&](uint32_t a, uint32_t b) { return counts[a] != counts[b] ? counts[a] > counts[b] : a < b; });
  PagePlaces out;
  out.place_of.assign(kinds.size(), kNone);
  std::vector<uint32_t> name_of(timeline.names().size(), kNone);
  for (const uint32_t place : order) {
    uint32_t& name = name_of[kinds.name(place)];
    if (name == kNone) {
      name = static_cast<uint32_t>(out.names.size());
      out.names.push_back(kinds.name(place));
    }
    out.place_of[place] = static_cast<uint32_t>(out.places.size());
    out.places.push_back({name, kinds.kind(place)});
  }
  return out;
}

void write_page_slices(const Timeline& timeline, const PageLanes& lanes, const PagePlaces& places,
                       const std::function<void(const PagePiece&)>& take) {
  PagePiece piece;
  const auto give = [&] {
    if (!piece.bytes.empty()) take(piece);
    piece.bytes.clear();
  };
  for (uint32_t n = 0; n < lanes.lanes.size(); ++n) {
    const size_t count = timeline.lanes()[lanes.lanes[n]].count;
    const bool is_long = count > kPageBlock;
    if (is_long || piece.bytes.size() >= kPageGroup) give();
    if (piece.bytes.empty()) piece.first_lane = n;
    piece.last_lane = n;
    LaneWriter writer(timeline, lanes, places, lanes.lanes[n]);
    for (size_t begin = 0; begin < count; begin += kPageBlock) {
      if (piece.bytes.size() >= kPagePiece) give();
      writer.block(piece.bytes, begin, std::min(count, begin + kPageBlock));
    }
    if (is_long) give();
  }
  give();
}

PageLinks links_of_page(const Timeline& timeline, const PageLanes& lanes) {
  const Trace& trace = timeline.trace();
  struct Ends {
    SlicePlace from, to;
    FlowType type;
  };
  std::vector<Ends> links;
  const auto add = [&](SlicePlace from, SlicePlace to, FlowType type) {
    if (from && to && lanes.page_lane[from.lane] != kNone && lanes.page_lane[to.lane] != kNone)
      links.push_back({from, to, type});
  };
  for (const Link& link : trace.links)
    add(timeline.place_of_cell(link.from_cell), timeline.place_of_cell(link.to_cell), FlowType::kMessage);
  for (uint32_t p = 0; p < trace.parts.size(); ++p)
    for (const SliceLink& link : trace.parts[p].slice_links)
      add(timeline.place_of_slice(p, link.from), timeline.place_of_slice(p, link.to),
          link.kind == SliceLinkKind::kForwardBackward ? FlowType::kForwardBackward : FlowType::kOther);
  PageLinks out;
  out.count = links.size();
  const auto column = [&](auto value_of) {
    int64_t last = 0;
    for (const Ends& link : links) {
      const int64_t value = value_of(link);
      put_signed(out.bytes, value - last);
      last = value;
    }
  };
  column([&](const Ends& link) { return int64_t{lanes.page_lane[link.from.lane]}; });
  column([](const Ends& link) { return int64_t{link.from.slice}; });
  column([&](const Ends& link) { return int64_t{lanes.page_lane[link.to.lane]}; });
  column([](const Ends& link) { return int64_t{link.to.slice}; });
  for (const Ends& link : links) put(out.bytes, static_cast<uint64_t>(link.type));
  return out;
}

}  // namespace stageline
