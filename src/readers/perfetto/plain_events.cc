// Nine packets in ten are an event's begin or end and say it in numbers: a timestamp, a sequence, a track, interned
// names. They are read here in one walk over their bytes; whatever else a packet holds, it is left to the walk over all
// fields, which does the same and more. Both fill the same event, and what is done with it is written once: its
// time, its track, its begin or end (file_reader.h).
#include "base/proto_scan.h"
#include "readers/perfetto/file_reader.h"

namespace stageline::pftrace {

using namespace perfetto;

namespace {

constexpr uint32_t varint_key(uint32_t field) { return field << 3 | ProtoScan::kVarint; }
constexpr uint32_t bytes_key(uint32_t field) { return field << 3 | ProtoScan::kBytes; }

// A number of one byte nearly always, or of two.
inline bool number(const char*& at, const char* end, uint64_t& out) {
  if (at != end && static_cast<signed char>(*at) >= 0) {
    out = static_cast<unsigned char>(*at++);
    return true;
  }
  if (end - at >= 2 && static_cast<signed char>(at[1]) >= 0) {
    out = (static_cast<unsigned char>(at[0]) & 127u) | static_cast<uint64_t>(static_cast<unsigned char>(at[1])) << 7;
    at += 2;
    return true;
  }
  return ProtoScan::read_varint(at, end, out);
}

inline bool length(const char*& at, const char* end, std::string_view& out) {
  uint64_t size = 0;
  if (!number(at, end, size) || size > static_cast<uint64_t>(end - at)) return false;
  out = {at, static_cast<size_t>(size)};
  at += size;
  return true;
}

// Reads a packet that has one track event, and nothing that plain events lack. False: it is for the general reader.
inline bool read_packet(std::string_view bytes, Packet& p) {
  const char* at = bytes.data();
  const char* end = at + bytes.size();
  uint64_t key = 0, value = 0;
  while (at != end) {
    if (!number(at, end, key)) return false;
    switch (key) {
      case varint_key(packet::kTimestamp):
        if (!number(at, end, p.timestamp)) return false;
        p.has_time = true;
        break;
      case varint_key(packet::kClockId):
        if (!number(at, end, p.clock)) return false;
        p.has_clock = true;
        break;
      case varint_key(packet::kSequenceId):
        if (!number(at, end, value)) return false;
        p.sequence = static_cast<uint32_t>(value);
        p.has_sequence = value != 0;
        break;
      case varint_key(packet::kSequenceFlags):
        if (!number(at, end, value)) return false;
        p.flags |= value;
        break;
      case bytes_key(packet::kTrackEvent):
        if (p.payload != 0 || !length(at, end, p.body)) return false;
        p.payload = packet::kTrackEvent;
        break;
      default: return false;
    }
  }
  return p.payload != 0 && p.has_time && p.has_sequence && (p.flags & kStateCleared) == 0;
}

// Reads the event of a packet, whose name and category the sequence knows by number.
inline bool read_event(std::string_view body, const Sequence& sequence, TrackEvent& e) {
  if (!e.is_plain) e.clear();
  e.type = 0;
  e.track = {};
  e.name = 0;
  e.category = 0;
  e.annotations.clear();
  const char* at = body.data();
  const char* end = at + body.size();
  uint64_t key = 0, value = 0;
  std::string_view annotation;
  while (at != end) {
    if (!number(at, end, key)) return false;
    switch (key) {
      case varint_key(track_event::kType):
        if (!number(at, end, e.type)) return false;
        break;
      case varint_key(track_event::kTrackUuid):
        if (!number(at, end, value)) return false;
        e.track = value;
        break;
      case varint_key(track_event::kNameIid):
        if (!number(at, end, value)) return false;
        if (const uint32_t* known = sequence.event_names.get(value)) e.name = *known;
        break;
      case varint_key(track_event::kCategoryIid):
        if (!number(at, end, value)) return false;
        if (const uint16_t* known = sequence.categories.get(value); known && e.category == 0) e.category = *known;
        break;
      case bytes_key(track_event::kAnnotation):
        if (!length(at, end, annotation)) return false;
        e.annotations.push_back(annotation);
        break;
      default: return false;
    }
  }
  return e.type == kBegin || e.type == kEnd;
}

}  // namespace

bool FileReader::plain_event(std::string_view bytes, int64_t offset) {
  Packet p;
  if (!read_packet(bytes, p)) return false;
  Sequence& s = sequence_of(p.sequence);
  if ((p.flags & kNeedsState) != 0 && !s.valid) return false;
  if (!read_event(p.body, s, event_)) return false;
  p.offset = offset;
  ++packets_;
  s.seen = true;
  int64_t time = 0;
  if (!time_of(p, s, time)) return true;
  const uint32_t track = track_of_event(p, s);
  if (track >= kMaxTracks) return true;
  if (event_.type == kBegin) begin_slice(p, s, time, track);
  else end_slice(p, s, time, track);
  return true;
}

}  // namespace stageline::pftrace
