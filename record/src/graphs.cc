// Records ranges of captured graphs (STAGELINE_GRAPHS=1).
//
//   capture   ──[node a]── work ──[node b]──▶ graph       the range is kept here, with its two events
//   replay 1       a1         b1
//   replay 2       a2         b2                          each replay stamps both anew
//   writer    ……… b's time is another: a replay that is over, recorded with a's and b's times
//
// The driver does not report graph replays, so their events are polled every few ms. If one graph is replayed faster
// than that, only the last replay is seen. A replay in progress shows a start after its end, or an end that changes
// between two reads; it is polled again. Each graph gets fresh events: a used event would show an old time. The events
// are never reused, because a graph may be replayed as long as it exists and its end is not reported.
#include "anchors.h"
#include "devices.h"

namespace slr {
namespace {

constexpr uint32_t kMaxGraphRanges = 512;
constexpr int64_t kSameNs = 2000;  // the same stamp read through two anchors

struct GraphRange {
  Record record;
  Extra extra;
  bool was_seen;
  int64_t end_ns;  // of the last replay
};
GraphRange ranges[kMaxGraphRanges];  // the background thread's
uint32_t range_count = 0;

// When the host's clock showed what the device's did then, nearly.
uint64_t host_ticks_of(const Device& d, int64_t device_ns) {
  const Anchor& a = d.anchors[(d.anchor_count - 1) % kKeptAnchors];
  const double ticks =
      static_cast<double>(device_ns - a.device_ns) * 1e-9 * static_cast<double>(state.ticks_per_second);
  return a.host_ticks + static_cast<uint64_t>(static_cast<int64_t>(ticks));
}

void look_at(GraphRange& g) {
  const Event &first = events[g.extra.start_event], &last = events[g.extra.end_event];
  Device& d = devices[last.device];
  if (!bind_device(d) || d.anchor_count == 0 || d.driver->query(last.handle) != 0) return;
  int error = 0;
  int64_t start = 0, end = 0, again = 0, distance = 0;
  // A stamp from long ago is known ever less well: float milliseconds.
  const auto is_same = [&](int64_t a, int64_t b) {
    const int64_t slack = kSameNs + (distance < 0 ? -distance : distance) / 1'000'000;
    return a - b <= slack && b - a <= slack;
  };
  // An error: it was never replayed.
  if (!time_of(d, last.handle, end, distance, error) || (g.was_seen && is_same(end, g.end_ns))) return;
  if (!time_of(d, first.handle, start, distance, error) || start > end) return;
  if (!time_of(d, last.handle, again, distance, error) || !is_same(again, end)) return;
  g.was_seen = true;
  g.end_ns = end;
  Record r = g.record;
  r.start_ticks = static_cast<uint64_t>(start);
  r.end_ticks = static_cast<uint64_t>(end);
  r.step = step_at(host_ticks_of(d, start));
  record_replay(r, g.extra);
}

}  // namespace

uint32_t stamp_graph(Device& d, void* stream) {
  if (!d.driver->record_in_graph) return kNoEvent;
  const uint32_t event = take_event(d.fresh_events);
  if (event == kNoEvent || d.driver->record_in_graph(events[event].handle, stream) != 0) return kNoEvent;
  return event;
}

bool keep_graph_range(const Record& record, const Extra& extra) {
  if (range_count == kMaxGraphRanges) return false;
  ranges[range_count++] = {record, extra, false, 0};
  return true;
}

void harvest_graphs() {
  for (uint32_t i = 0; i < range_count; ++i) look_at(ranges[i]);
}

bool graphs_wait() { return range_count > 0; }
void forget_graphs() { range_count = 0; }

}  // namespace slr
