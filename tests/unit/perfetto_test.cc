#include <doctest/doctest.h>

#include <map>
#include <optional>

#include "exporters/proto_writer.h"
#include "pipeline/cells/link_cells.h"
#include "unit/export_to_text.h"
#include "unit/make_trace.h"
#include "unit/torch_traces.h"

using namespace stageline;
using namespace stageline::testing;

namespace {

// The other direction, for checking: fields of one message in order.
struct Field {
  uint64_t number = 0, value = 0;  // value: also of fixed64
  std::string_view bytes;
};
std::vector<Field> fields_of(std::string_view message) {
  std::vector<Field> fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      REQUIRE(at < message.size());
      const auto byte = static_cast<unsigned char>(message[at++]);
      value |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    Field field{key >> 3, 0, {}};
    switch (key & 7) {
      case 0: field.value = varint(); break;
      case 1:
        for (int i = 0; i < 8; ++i) field.value |= uint64_t{static_cast<unsigned char>(message[at++])} << (8 * i);
        break;
      case 2: {
        const uint64_t length = varint();
        REQUIRE(length <= message.size() - at);
        field.bytes = message.substr(at, length);
        at += length;
        break;
      }
      default: FAIL("wire type");
    }
    fields.push_back(field);
  }
  return fields;
}
std::optional<Field> find(const std::vector<Field>& fields, uint64_t number) {
  for (const Field& field : fields)
    if (field.number == number) return field;
  return std::nullopt;
}
uint64_t number_in(std::string_view message, uint64_t number) {
  const auto field = find(fields_of(message), number);
  return field ? field->value : 0;
}

}  // namespace

TEST_CASE("protobuf's wire format, as its documentation writes it") {
  ProtoWriter out;
  out.number(1, 150);  // the encoding guide's own example
  CHECK(out.bytes() == std::string("\x08\x96\x01"));
  out.clear();
  out.text(2, "testing");
  CHECK(out.bytes() == "\x12\x07testing");
  out.clear();
  out.signed_number(1, -2);
  CHECK(out.bytes() == "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  out.clear();
  out.fixed64(47, 0x0102030405060708);
  CHECK(out.bytes() == "\xf9\x02\x08\x07\x06\x05\x04\x03\x02\x01");
  out.clear();
  out.number(1, UINT64_MAX);
  CHECK(fields_of(out.bytes())[0].value == UINT64_MAX);
}

TEST_CASE("nested messages of any length get the shortest length") {
  for (const size_t size :
       {size_t{0}, size_t{100}, size_t{125}, size_t{126}, size_t{16'000}, size_t{16'380}, size_t{3'000'000}}) {
    ProtoWriter out;
    out.number(1, 5);
    const size_t outer = out.begin(2);
    const size_t inner = out.begin(3);
    if (size > 0) out.text(4, std::string(size, 'x'));
    out.end(inner);
    out.end(outer);
    out.number(6, 7);
    const auto fields = fields_of(out.bytes());
    REQUIRE(fields.size() == 3);
    const auto deep = fields_of(fields_of(fields[1].bytes)[0].bytes);
    CHECK((size == 0 ? deep.empty() : deep[0].bytes == std::string(size, 'x')));
    CHECK(fields[2].value == 7);
  }
}

TEST_CASE("tracks carry the order in which to show them") {
  Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 2, .dp = 2, .machines = 2});
  const std::string file = export_to_text(trace, "perfetto", ".pftrace");
  struct Descriptor {
    uint64_t uuid, parent, rank;
    std::string name;
  };
  std::vector<Descriptor> tracks;
  bool root = false;
  for (const Field& packet : fields_of(file)) {
    CHECK(packet.number == 1);
    const auto descriptor = find(fields_of(packet.bytes), 60);
    if (!descriptor) continue;
    const auto fields = fields_of(descriptor->bytes);
    const auto value = [&](uint64_t n) { return find(fields, n) ? find(fields, n)->value : 0; };
    if (value(1) == 0) {
      root = true;
      CHECK(value(11) == 3);  // children, processes and threads: by explicit rank
      CHECK(value(19) == 1);
      CHECK(value(20) == 1);
      continue;
    }
    std::string name;
    if (find(fields, 2)) name = find(fields, 2)->bytes;
    if (find(fields, 3)) name = find(fields_of(find(fields, 3)->bytes), 6)->bytes;
    if (find(fields, 4)) name = find(fields_of(find(fields, 4)->bytes), 5)->bytes;
    tracks.push_back({value(1), value(5), value(12), name});
  }
  CHECK(root);
  REQUIRE(tracks.size() == 7);
  const char* names[] = {"steps",
                         "machine 0",
                         "rank 0 · stage 0 · dp 0",
                         "rank 1 · stage 1 · dp 0",
                         "machine 1",
                         "rank 2 · stage 0 · dp 1",
                         "rank 3 · stage 1 · dp 1"};
  const uint64_t ranks[] = {0, 1, 0, 1, 2, 2, 3};
  for (size_t i = 0; i < 7; ++i) {
    CHECK(tracks[i].name == names[i]);
    CHECK(tracks[i].rank == ranks[i]);
  }
  CHECK(tracks[3].parent == tracks[1].uuid);
  CHECK(tracks[6].parent == tracks[4].uuid);
}

TEST_CASE("events: one sequence a track, exact times, flows on both ends") {
  Trace trace = make_1f1b_trace({.stages = 2, .micro_batches = 3, .start_ns = 1'760'000'000'123'456'789});
  link_cells(trace);
  const std::string file = export_to_text(trace, "perfetto", ".pftrace");
  std::map<uint64_t, uint64_t> now, open_since, tracks, begins;  // by sequence
  std::map<uint64_t, int> flow_ends;
  std::vector<std::pair<int64_t, int64_t>> slices;
  std::map<uint64_t, std::vector<uint64_t>> correlation;  // id → begins
  for (const Field& packet : fields_of(file)) {
    const auto fields = fields_of(packet.bytes);
    if (find(fields, 60)) continue;
    const uint64_t sequence = find(fields, 10)->value;
    CHECK(sequence > 1);
    CHECK(find(fields, 13)->value == (now.contains(sequence) ? 2 : 3));  // the first one clears the state
    now.try_emplace(sequence, 0);
    if (const auto defaults = find(fields, 59)) {
      CHECK(number_in(defaults->bytes, 58) == 64);
      tracks[sequence] = number_in(find(fields_of(defaults->bytes), 11)->bytes, 11);
    }
    if (const auto snapshot = find(fields, 6))
      for (const Field& clock : fields_of(snapshot->bytes))
        if (clock.number == 1 && number_in(clock.bytes, 1) == 64) now[sequence] = number_in(clock.bytes, 2);
    const auto event = find(fields, 11);
    if (!event) continue;
    now[sequence] += find(fields, 8)->value;
    if (number_in(event->bytes, 9) == 1) {
      CHECK(open_since[sequence] == 0);  // the slice before has ended
      open_since[sequence] = now[sequence];
      ++begins[sequence];
      for (const Field& field : fields_of(event->bytes))
        if (field.number == 47) ++flow_ends[field.value];
      if (const uint64_t id = number_in(event->bytes, 52)) correlation[id].push_back(now[sequence]);
    } else {
      slices.emplace_back(open_since[sequence], now[sequence]);
      open_since[sequence] = 0;
    }
  }
  CHECK(tracks.size() == 3);
  std::vector<std::pair<int64_t, int64_t>> expected = {{extent_of(trace).start_ns, extent_of(trace).end_ns}};
  for (size_t i = 0; i < trace.cells.size(); ++i) expected.emplace_back(trace.cells.start_ns[i], trace.cells.end_ns[i]);
  std::sort(slices.begin(), slices.end());
  std::sort(expected.begin(), expected.end());
  CHECK(slices == expected);
  CHECK(flow_ends.size() == trace.links.size());
  for (const auto& [id, ends] : flow_ends) CHECK(ends == 2);
  CHECK(correlation.size() == 3);
  for (const auto& [id, times] : correlation) CHECK(times.size() == 4);
}

TEST_CASE("gzip and plain protobuf hold the same") {
  Trace trace = make_1f1b_trace({.steps = 20});
  CHECK(export_to_text(trace, "perfetto", ".pftrace.gz") == export_to_text(trace, "perfetto", ".pftrace"));
}

TEST_CASE("slices of a profiler trace: one thread per lane, nested as they ran, overlapping ones on further threads") {
  const Trace trace =
      torch_trace({torch_event("cpu_op", "outer", 100, 1, "10", "100"), call("launch", "20", "5", 3),
                   torch_event("cpu_op", "crosses", 100, 1, "50", "100"),
                   torch_event("cpu_op", "instant", 100, 1, "60", "0"), work("kernel", "200", "40", 3)});
  const std::string file = export_to_text(trace, "perfetto", ".pftrace");
  struct Shown {
    std::string name, category;
    uint64_t begin = 0, end = 0, depth = 0, flow = 0;
  };
  std::map<uint64_t, std::vector<Shown>> by_track;
  std::map<uint64_t, std::string> thread_names;
  std::map<uint64_t, uint64_t> track_of, clock, base;                      // by sequence
  std::map<std::pair<uint64_t, uint64_t>, std::string> names, categories;  // by sequence and iid
  std::map<uint64_t, std::vector<size_t>> open;
  for (const Field& packet : fields_of(file)) {
    const auto fields = fields_of(packet.bytes);
    const uint64_t sequence = find(fields, 10) ? find(fields, 10)->value : 0;
    if (const auto descriptor = find(fields, 60))
      if (const auto thread = find(fields_of(descriptor->bytes), 4))
        thread_names[number_in(descriptor->bytes, 1)] = find(fields_of(thread->bytes), 5)->bytes;
    if (const auto defaults = find(fields, 59))
      track_of[sequence] = number_in(find(fields_of(defaults->bytes), 11)->bytes, 11);
    if (const auto snapshot = find(fields, 6))
      for (const Field& one : fields_of(snapshot->bytes))
        if (one.number == 1 && number_in(one.bytes, 1) == 64) clock[sequence] = number_in(one.bytes, 2);
    if (const auto interned = find(fields, 12))
      for (const Field& one : fields_of(interned->bytes)) {
        const std::string text(find(fields_of(one.bytes), 2)->bytes);
        (one.number == 1 ? categories : names)[{sequence, number_in(one.bytes, 1)}] = text;
      }
    const auto event = find(fields, 11);
    if (!event) continue;
    clock[sequence] += find(fields, 8)->value;
    std::vector<Shown>& shown = by_track[track_of[sequence]];
    if (number_in(event->bytes, 9) == 1) {
      const auto flow = find(fields_of(event->bytes), 47);
      shown.push_back({names[{sequence, number_in(event->bytes, 10)}],
                       categories[{sequence, number_in(event->bytes, 3)}], clock[sequence], 0, open[sequence].size(),
                       flow ? flow->value : 0});
      open[sequence].push_back(shown.size() - 1);
    } else {
      REQUIRE_FALSE(open[sequence].empty());
      shown[open[sequence].back()].end = clock[sequence];
      open[sequence].pop_back();
    }
  }
  for (const auto& [sequence, left] : open) CHECK(left.empty());
  std::map<std::string, std::vector<Shown>> by_name;
  for (const auto& [track, shown] : by_track) by_name[thread_names[track]] = shown;
  REQUIRE(by_name.size() == 3);
  const std::vector<Shown>&host = by_name["thread 1"], &beside = by_name["thread 1 (2)"];
  REQUIRE(host.size() == 3);
  CHECK(host[0].name == "outer");
  CHECK(host[1].name == "launch");
  CHECK(host[1].depth == 1);
  CHECK(host[1].category == "cuda_runtime");
  CHECK(host[2].name == "instant");
  CHECK(host[2].begin == host[2].end);
  CHECK(host[0].end - host[0].begin == 100'000);
  REQUIRE(beside.size() == 1);
  CHECK(beside[0].name == "crosses");
  const std::vector<Shown>& device = by_track.rbegin()->second;
  REQUIRE(device.size() == 1);
  CHECK(device[0].name == "kernel");
  CHECK(device[0].flow != 0);
  CHECK(device[0].flow == host[1].flow);
}
