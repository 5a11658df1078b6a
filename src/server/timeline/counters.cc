#include "server/timeline/counters.h"

#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "server/http/wire.h"
#include "server/timeline/tiles.h"

namespace stageline {
namespace {

// The number of samples that are at or before t.
size_t samples_until(const ViewLane& lane, double t_ns) {
  return first_not(0, lane.count, [&](size_t i) { return lane.start(i) <= t_ns; });
}

}  // namespace

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
