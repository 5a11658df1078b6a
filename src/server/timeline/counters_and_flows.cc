#include "server/http/wire.h"
#include "server/timeline/answers.h"
#include "server/timeline/row_index.h"
#include "server/timeline/slice_window.h"

namespace stageline {
namespace {

class FlowList {
 public:
  FlowList(const Timeline& timeline, const std::vector<uint32_t>& lanes, const TimeWindow& window, size_t limit)
      : timeline_(timeline), lanes_(lanes), window_(window), limit_(limit), chosen_(timeline.lanes().size()) {
    for (const uint32_t l : lanes) chosen_[l] = true;
  }

  void add_messages() {
    const Trace& trace = timeline_.trace();
    for (const Link& link : trace.links) {
      const SlicePlace from = timeline_.place_of_cell(link.from_cell), to = timeline_.place_of_cell(link.to_cell);
      if (from && to && (touches(from) || touches(to))) add(FlowType::kMessage, from, to);
    }
  }
  void add_slice_links() {
    const Trace& trace = timeline_.trace();
    for (uint32_t p = 0; p < trace.parts.size(); ++p)
      for (const SliceLink& link : trace.parts[p].slice_links) {
        const SlicePlace from = timeline_.place_of_slice(p, link.from), to = timeline_.place_of_slice(p, link.to);
        if (!from || !to || (!touches(from) && !touches(to))) continue;
        add(link.kind == SliceLinkKind::kForwardBackward ? FlowType::kForwardBackward : FlowType::kOther, from, to);
      }
  }
  // Device work refers to its launch, and a launch to its last device work.
  void add_launches() {
    struct Stretch {
      uint32_t lane;
      const ViewRow* row;
      size_t from, to;
    };
    std::vector<Stretch> stretches;
    size_t slices = 0;
    for (const uint32_t l : lanes_) {
      const ViewLane& lane = timeline_.lanes()[l];
      if (lane.cells || !lane.has_slices() || part_of(lane).slices.partner.empty()) continue;
      for (const ViewRow& row : lane.rows) {
        const size_t from = first_ending_after(lane, row, window_.from_ns());
        const size_t to = first_starting_from(lane, row, window_.to_ns());
        if (from >= to) continue;
        stretches.push_back({l, &row, from, to});
        slices += to - from;
      }
    }
    if (slices > kMaxLaunchSlices) {
      complete_ = false;
      return;
    }
    for (const Stretch& s : stretches) {
      const ViewLane& lane = timeline_.lanes()[s.lane];
      const std::vector<uint32_t>& partner = part_of(lane).slices.partner;
      const bool on_device = lane.type == ViewLaneType::kStream;
      for (size_t p = s.from; p < s.to; ++p) {
        const SlicePlace own{s.lane, static_cast<uint32_t>(s.row->slice_at(p))};
        const uint32_t other = partner[lane.first + own.slice];
        const SlicePlace there = other == kNoSliceIndex ? SlicePlace{} : timeline_.place_of_slice(lane.part, other);
        if (!there) continue;
        if (on_device) add(FlowType::kLaunch, there, own);
        else if (timeline_.lanes()[there.lane].type == ViewLaneType::kStream && !touches(there))
          add(FlowType::kLaunch, own, there);
      }
    }
  }

  std::string wire() && {
    WireColumns wire;
    wire.add("from_lane", "u32", from_lane_);
    wire.add("from_slice", "u32", from_slice_);
    wire.add("from_row", "u8", from_row_);
    wire.add("from_t", "f64", from_t_);
    wire.add("to_lane", "u32", to_lane_);
    wire.add("to_slice", "u32", to_slice_);
    wire.add("to_row", "u8", to_row_);
    wire.add("to_t", "f64", to_t_);
    wire.add("type", "u8", type_);
    JsonWriter json;
    json.begin_object().field("count", type_.size()).field("complete", complete_);
    json.key("types").begin_array();
    for (uint8_t t = 0; t <= static_cast<uint8_t>(FlowType::kOther); ++t)
      json.value(flow_type_name(static_cast<FlowType>(t)));
    json.end_array();
    wire.describe(json);
    json.end_object();
    return std::move(wire).with_header(json.text());
  }

 private:
  const Part& part_of(const ViewLane& lane) const { return timeline_.trace().parts[lane.part]; }
  bool touches(SlicePlace place) const {
    if (!chosen_[place.lane]) return false;
    const ViewLane& lane = timeline_.lanes()[place.lane];
    return lane.start(place.slice) < window_.to_ns() && lane.end(place.slice) >= window_.from_ns();
  }
  void add(FlowType type, SlicePlace from, SlicePlace to) {
    if (type_.size() >= limit_) {
      complete_ = false;
      return;
    }
    const ViewLane &a = timeline_.lanes()[from.lane], &b = timeline_.lanes()[to.lane];
    const PlaceInRow at = row_place(a, from.slice), then = row_place(b, to.slice);
    if (!at || !then) return;  // nested deeper than rows are drawn
    from_lane_.push_back(from.lane);
    from_slice_.push_back(from.slice);
    from_row_.push_back(static_cast<uint8_t>(at.row));
    // A message is sent when its work ends; a call passes on what it calls for from its start.
    from_t_.push_back(type == FlowType::kMessage ? a.end(from.slice) : a.start(from.slice));
    to_lane_.push_back(to.lane);
    to_slice_.push_back(to.slice);
    to_row_.push_back(static_cast<uint8_t>(then.row));
    to_t_.push_back(b.start(to.slice));
    type_.push_back(static_cast<uint8_t>(type));
  }

  const Timeline& timeline_;
  const std::vector<uint32_t>& lanes_;
  const TimeWindow& window_;
  size_t limit_;
  std::vector<bool> chosen_;
  bool complete_ = true;
  std::vector<uint32_t> from_lane_, from_slice_, to_lane_, to_slice_;
  std::vector<uint8_t> from_row_, to_row_, type_;
  std::vector<double> from_t_, to_t_;
};

// The number of samples that are at or before t.
size_t samples_until(const ViewLane& lane, double t_ns) {
  return first_not(0, lane.count, [&](size_t i) { return lane.start(i) <= t_ns; });
}

}  // namespace

Result<std::string> flows_answer(const Timeline& timeline, const Query& query) {
  TRY(lanes, list_parameter(query, "lanes", static_cast<uint32_t>(timeline.lanes().size())));
  TRY(window, window_parameters(query, timeline.span_ns()));
  TRY(limit, integer_parameter(query, "limit", 2000, 1, 100'000));
  FlowList list(timeline, *lanes, *window, *limit);
  list.add_messages();
  list.add_slice_links();
  list.add_launches();
  return std::move(list).wire();
}

Result<std::string> counter_answer(const Timeline& timeline, const Query& query) {
  TRY(lane_id, integer_parameter(query, "lane", std::nullopt, 0, static_cast<int64_t>(timeline.lanes().size()) - 1));
  const ViewLane& lane = timeline.lanes()[*lane_id];
  if (lane.has_slices()) return make_error(ErrorCode::kUsage, "this lane is no counter", "/api/tiles draws it");
  TRY(window, window_parameters(query, timeline.span_ns()));
  TRY(n, integer_parameter(query, "n", std::nullopt, 1, kMaxTileColumns));

  const std::vector<double>& values = lane.counter->value;
  const size_t columns = *n;
  std::vector<double> low(columns, kNaN), high(columns, kNaN), mean(columns, kNaN);
  const double width = (window->t1_ns - window->t0_ns) / columns;
  size_t next = samples_until(lane, window->t0_ns);
  for (size_t c = 0; c < columns; ++c) {
    const double left = window->t0_ns + width * c, right = left + width;
    double weight = 0, sum = 0, at = left;
    const auto hold = [&](double value, double until) {
      if (std::isnan(value)) return;
      low[c] = std::isnan(low[c]) ? value : std::min(low[c], value);
      high[c] = std::isnan(high[c]) ? value : std::max(high[c], value);
      weight += until - at;
      sum += value * (until - at);
    };
    double value = next > 0 ? values[next - 1] : kNaN;
    for (; next < lane.count && lane.start(next) < right; ++next) {
      const double t = std::max<double>(left, lane.start(next));
      if (t > at) hold(value, t);
      at = t;
      value = values[next];
      // It is seen, but lasts no time.
      if (next + 1 < lane.count && lane.start(next + 1) == lane.start(next)) hold(value, at);
    }
    hold(value, right);
    if (weight > 0) mean[c] = sum / weight;
  }
  double min = kNaN, greatest = kNaN;
  for (const double value : values) {  // fmin and fmax ignore NaN
    min = std::fmin(min, value);
    greatest = std::fmax(greatest, value);
  }
  WireColumns wire;
  wire.add("min", "f64", low);
  wire.add("max", "f64", high);
  wire.add("mean", "f64", mean);
  JsonWriter json;
  json.begin_object().field("t0", window->t0_ns).field("t1", window->t1_ns).field("n", *n);
  json.field("least", min).field("greatest", greatest);
  wire.describe(json);
  json.end_object();
  return std::move(wire).with_header(json.text());
}

}  // namespace stageline
