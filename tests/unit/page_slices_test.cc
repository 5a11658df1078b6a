// The columns of slices in a report, read back by a decoder of the test's own.
#include "server/page/page_slices.h"

#include <doctest/doctest.h>

#include <random>

#include "server/timeline/timeline_sums.h"
#include "torch_traces.h"

namespace stageline {
namespace {

struct Read {
  uint64_t at_lane = 0;
  std::vector<int64_t> start, dur;
  std::vector<uint64_t> place;
};

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}
  bool done() const { return at_ >= bytes_.size(); }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      if (at_ >= bytes_.size() || shift > 63) FAIL("a number is cut off");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
  }
  int64_t signed_number() {
    const uint64_t value = number();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  void skip(uint64_t numbers) {
    for (; numbers > 0; --numbers) number();
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

// Reads one lane without cells: block after block; of the data after the flags only the length is checked.
void read_block(Decoder& in, Read& lane, size_t count, uint64_t& unit) {
  const size_t begin = lane.start.size(), n = std::min(count - begin, kPageBlock);
  if (begin == 0) unit = in.number();
  std::vector<uint64_t> coded(n);
  for (uint64_t& one : coded) one = in.number();
  for (size_t i = 0; i < n; ++i) lane.dur.push_back(static_cast<int64_t>(in.number() * unit));
  for (size_t i = 0; i < n; ++i) {
    const size_t at = begin + i;
    const int64_t before = at == 0 ? 0 : lane.start[at - 1];
    const int64_t from = coded[i] % 2 == 1 || at == 0 ? before : before + lane.dur[at - 1];
    lane.start.push_back(from + static_cast<int64_t>(coded[i] / 2 * unit));
  }
  for (size_t i = 0; i < n; ++i) lane.place.push_back(in.number());
  const uint64_t flags = in.number();
  if (flags & 1)
    for (size_t left = n; left > 0;) {
      const uint64_t run = in.number();
      REQUIRE(run <= left);
      left -= run;
      in.number();
    }
  if (flags & 2) in.skip(in.number() * 3);
  CHECK((flags & 4) == 0);
  if (flags & 8) {
    uint64_t some = 0;
    for (size_t i = 0; i < n; ++i) some += in.number() > 0;
    in.skip(some);
  }
  if (flags & 16)
    for (uint64_t left = in.number(); left > 0; --left) {
      in.number();
      if (in.number() > 0) in.number();
    }
}

std::vector<Read> read_all(const Timeline& timeline, const PageLanes& lanes, const std::vector<PagePiece>& pieces) {
  std::vector<Read> out(lanes.lanes.size());
  uint32_t lane = 0;
  uint64_t unit = 1;
  const auto count = [&] { return timeline.lanes()[lanes.lanes[lane]].count; };
  for (const PagePiece& piece : pieces) {
    Decoder in(piece.bytes);
    CHECK(lane >= piece.first_lane);
    while (!in.done()) {
      REQUIRE(lane <= piece.last_lane);
      read_block(in, out[lane], count(), unit);
      if (out[lane].start.size() == count()) ++lane;
    }
  }
  CHECK(lane == lanes.lanes.size());
  return out;
}

// Writes, reads back, and compares with the timeline. Returns the pieces.
std::vector<PagePiece> check_round_trip(const Trace& trace) {
  const Timeline timeline(trace);
  const PageLanes lanes = lanes_of_page(timeline, UINT64_MAX);
  const PagePlaces places = places_of_page(timeline, lanes);
  std::vector<PagePiece> pieces;
  write_page_slices(timeline, lanes, places, [&](const PagePiece& piece) { pieces.push_back(piece); });
  const std::vector<Read> read = read_all(timeline, lanes, pieces);
  for (size_t l = 0; l < read.size(); ++l) {
    const ViewLane& lane = timeline.lanes()[lanes.lanes[l]];
    bool same = read[l].start.size() == lane.count;
    for (size_t i = 0; same && i < lane.count; ++i) {
      if (read[l].place[i] >= places.places.size()) FAIL("no such place");
      const PagePlaces::Place& place = places.places[read[l].place[i]];
      same = read[l].start[i] == lane.start(i) && read[l].dur[i] == lane.dur(i) &&
             places.names[place.name] == lane.names[i] && place.kind == lane.kind(i);
      if (!same)
        MESSAGE(lane.name << ", slice " << i << ": " << lane.start(i) << " + " << lane.dur(i) << ", read "
                          << read[l].start[i] << " + " << read[l].dur[i]);
    }
    CHECK(same);
  }
  return pieces;
}

// One part whose lanes hold (start, duration) as a reader leaves them: by start, the longer first.
Trace trace_of(std::vector<std::vector<std::pair<int64_t, int64_t>>> lanes, int names = 3) {
  Trace trace;
  trace.clock = ClockState::kShared;
  Part part;
  part.rank = 0;
  for (auto& slices : lanes) {
    std::stable_sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    Lane lane;
    lane.kind = LaneKind::kHostThread;
    lane.name = "thread " + std::to_string(part.lanes.size());
    lane.begin = part.slices.size();
    for (const auto& [start, dur] : slices) {
      const std::string name = "op " + std::to_string(part.slices.size() * 7919 % static_cast<size_t>(names));
      part.slices.start_ns.push_back(start);
      part.slices.dur_ns.push_back(dur);
      part.slices.name_id.push_back(trace.names.intern(name));
      part.slices.file_index.push_back(static_cast<uint32_t>(part.slices.size() - 1));
    }
    lane.end = part.slices.size();
    part.lanes.push_back(std::move(lane));
  }
  part.event_count = static_cast<int64_t>(part.slices.size());
  trace.parts.push_back(std::move(part));
  return trace;
}

}  // namespace

TEST_CASE("page slices: what is written is read back, whatever nests, overlaps or lasts no time") {
  std::mt19937_64 roll(7);
  for (const int64_t unit : {1, 1000}) {
    std::vector<std::vector<std::pair<int64_t, int64_t>>> lanes(12);
    for (auto& lane : lanes) {
      const int64_t spread = int64_t{1} << (5 + roll() % 30);
      for (size_t i = 0, n = 1 + roll() % 900; i < n; ++i)
        lane.emplace_back(
            static_cast<int64_t>(roll() % static_cast<uint64_t>(spread)) * unit,
            roll() % 4 == 0 ? 0 : static_cast<int64_t>(roll() % static_cast<uint64_t>(spread) / 3) * unit);
    }
    check_round_trip(trace_of(lanes, 200));
  }
}

TEST_CASE("page slices: one slice, instants at one time, times near both ends") {
  check_round_trip(trace_of({{{0, 0}}}));
  check_round_trip(trace_of({{{5, 0}, {5, 0}, {5, 7}, {5, 7}}}));
  check_round_trip(trace_of({{{0, 1}, {INT64_MAX - 3, 2}}, {{INT64_MAX - 1, 1}}}));
  check_round_trip(trace_of({{{INT64_MIN, 3}, {0, INT64_MAX}, {INT64_MAX, 0}}}));
  check_round_trip(trace_of({{{0, -7}, {10, -1}, {10, 5}}}));
  check_round_trip(trace_of({{{0, INT64_MAX}, {1, INT64_MAX}, {2, 1}}}));
}

TEST_CASE("page slices: pieces hold whole lanes, a long lane has its own") {
  std::vector<std::vector<std::pair<int64_t, int64_t>>> lanes(40);
  for (size_t l = 0; l < lanes.size(); ++l)
    for (size_t i = 0, n = l == 5 ? kPageBlock * 5 + 1 : l == 39 ? kPageBlock + 1 : 6000; i < n; ++i)
      lanes[l].emplace_back(static_cast<int64_t>(i) * 1000 + static_cast<int64_t>(i * 7919 % 911),
                            static_cast<int64_t>(i * 104729 % 997));
  const std::vector<PagePiece> pieces = check_round_trip(trace_of(lanes));
  uint32_t next = 0;
  size_t of_long = 0;
  for (size_t p = 0; p < pieces.size(); ++p) {
    const bool goes_on = p > 0 && pieces[p].first_lane == pieces[p - 1].first_lane;
    if (!goes_on) CHECK(pieces[p].first_lane == next);
    if (goes_on) CHECK(pieces[p].last_lane == pieces[p - 1].last_lane);
    next = pieces[p].last_lane + 1;
    if (pieces[p].first_lane == 5) {
      ++of_long;
      CHECK(pieces[p].last_lane == 5);
    }
  }
  CHECK(next == 40);
  CHECK(of_long > 1);
  CHECK(pieces.size() > of_long + 3);
}

TEST_CASE("page slices: above the limit nothing but cells, and all is counted") {
  const Trace trace = trace_of({{{0, 1}, {2, 1}}, {{0, 1}}});
  const Timeline timeline(trace);
  CHECK(lanes_of_page(timeline, 3).lanes.size() == 2);
  const PageLanes none = lanes_of_page(timeline, 2);
  CHECK(none.lanes.empty());
  CHECK(none.left_out == 3);
  size_t pieces = 0;
  write_page_slices(timeline, none, places_of_page(timeline, none), [&](const PagePiece&) { ++pieces; });
  CHECK(pieces == 0);
}

}  // namespace stageline
