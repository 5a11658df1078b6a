// TrackEvents: slices, instants, counters, flows, and the phases of Chrome's older format inside them.
#include "base/proto_scan.h"
#include "readers/perfetto/file_reader.h"
#include "readers/perfetto/problems.h"

namespace stageline::pftrace {

using namespace perfetto;

namespace {

// A repeated number, packed into one field or one a field.
template <class Use> void numbers(const ProtoScan& scan, Use use) {
  if (!scan.is_bytes()) return use(scan.value);
  const char *at = scan.bytes.data(), *end = at + scan.bytes.size();
  for (uint64_t value = 0; at != end && ProtoScan::read_varint(at, end, value);) use(value);
}
template <class Use> void fixed_numbers(const ProtoScan& scan, Use use) {
  if (!scan.is_bytes()) return use(scan.value);
  for (size_t at = 0; at + 8 <= scan.bytes.size(); at += 8) {
    uint64_t value = 0;
    for (size_t i = 0; i < 8; ++i) value |= uint64_t{static_cast<unsigned char>(scan.bytes[at + i])} << (8 * i);
    use(value);
  }
}

}  // namespace

void TrackEvent::clear() {
  is_plain = true;
  type = 0;
  name = 0;
  category = 0;
  track = counter = {};
  counter_double = {};
  delta_us = absolute_us = thread_time_us = thread_instructions = {};
  legacy = {};
  annotations.clear();
  gpu_correlations.clear();
  flows.clear();
  extra_tracks.clear();
  extra_double_tracks.clear();
  extra_values.clear();
  extra_doubles.clear();
}

bool FileReader::scan_event(std::string_view body, const Sequence& sequence, TrackEvent& e) {
  e.clear();
  e.is_plain = false;
  ProtoScan scan(body);
  while (scan.next()) {
    switch (scan.id) {
      case track_event::kType: e.type = scan.value; break;
      case track_event::kTrackUuid: e.track = scan.value; break;
      case track_event::kNameIid:
        if (const uint32_t* known = sequence.event_names.get(scan.value)) e.name = *known;
        break;
      case track_event::kName:
        if (scan.is_bytes()) e.name = text_id(scan.bytes);
        break;
      case track_event::kCategoryIid:
        numbers(scan, [&](uint64_t iid) {
          if (const uint16_t* known = sequence.categories.get(iid); known && e.category == 0) e.category = *known;
        });
        break;
      case track_event::kCategory:
        if (scan.is_bytes() && e.category == 0) e.category = category_id(scan.bytes);
        break;
      case track_event::kAnnotation:
        if (scan.is_bytes()) e.annotations.push_back(scan.bytes);
        break;
      case track_event::kGpuCorrelation:
        if (scan.is_bytes()) e.gpu_correlations.push_back(scan.bytes);
        break;
      case track_event::kCounterValue: e.counter = scan.value; break;
      case track_event::kDoubleCounterValue: e.counter_double = scan.as_double(); break;
      case track_event::kFlowId: fixed_numbers(scan, [&](uint64_t id) { e.flows.push_back({id, false}); }); break;
      case track_event::kTerminatingFlowId:
        fixed_numbers(scan, [&](uint64_t id) { e.flows.push_back({id, true}); });
        break;
      case track_event::kOldFlowId: numbers(scan, [&](uint64_t id) { e.flows.push_back({id, false}); }); break;
      case track_event::kOldTerminatingFlowId:
        numbers(scan, [&](uint64_t id) { e.flows.push_back({id, true}); });
        break;
      case track_event::kExtraCounterTracks: numbers(scan, [&](uint64_t id) { e.extra_tracks.push_back(id); }); break;
      case track_event::kExtraValues: numbers(scan, [&](uint64_t value) { e.extra_values.push_back(value); }); break;
      case track_event::kExtraDoubleTracks:
        numbers(scan, [&](uint64_t id) { e.extra_double_tracks.push_back(id); });
        break;
      case track_event::kExtraDoubleValues:
        fixed_numbers(scan, [&](uint64_t bits) { e.extra_doubles.push_back(std::bit_cast<double>(bits)); });
        break;
      case track_event::kLegacy:
        if (scan.is_bytes()) e.legacy = scan.bytes.empty() ? std::string_view("", 0) : scan.bytes;
        break;
      case track_event::kDeltaUs: e.delta_us = scan.as_signed(); break;
      case track_event::kAbsoluteUs: e.absolute_us = scan.as_signed(); break;
      case track_event::kThreadTimeUs: e.thread_time_us = scan.as_signed(); break;
      case track_event::kThreadInstructions: e.thread_instructions = scan.as_signed(); break;
      default: break;
    }
  }
  return !scan.is_damaged();
}

void FileReader::too_many_rows(int64_t offset) { lose(problem::pftrace_too_many, offset); }

// Copies the annotations of an event into its row.
void FileReader::annotate(uint32_t number, const Sequence& sequence) {
  rows::Row& row = builder_.rows()[number];
  facts_ = {};
  own_ = {};
  annotations_.clear();
  for (const std::string_view annotation : event_.annotations) annotations_.read(annotation, sequence, facts_, own_);
  if (row.category == 0) {
    if (own_.has(OwnKey::kSyncKind)) row.category = sync_category_ & 0x7fff;
    else if (facts_.has_launch_shape) row.category = kernel_category_ & 0x7fff;
    else if (facts_.has_copy && facts_.stream >= 0) row.category = copy_category_ & 0x7fff;
  }
  facts_.cat = builder_.dictionaries().categories.text(row.category);
  facts_.name = builder_.dictionaries().names.text(row.name);
  builder_.describe(number, facts_);
  if (own_.is_cell()) own_cells_.emplace_back(number, own_);
}

void FileReader::add_flows(uint32_t at, bool at_end, int64_t time) {
  for (const TrackEvent::FlowId& flow : event_.flows) flows_.push_back({flow.id, time, at, at_end, flow.ends});
}

void FileReader::instant(const Packet& packet, const Sequence& sequence, int64_t time, uint32_t track, uint32_t name) {
  // An arrow needs a slice to begin or end at.
  if (!event_.flows.empty()) {
    const uint32_t row = begin_row(packet, sequence, time, 0, track, name);
    if (row != kNoRow) add_flows(row, false, time);
    return;
  }
  builder_.add_mark({time, name, track, 0});
}

void FileReader::count(Sequence& sequence, uint32_t track, int64_t time, int64_t value) {
  const TrackInfo& info = tracks_[track];
  if (info.is_incremental) {
    int64_t& sum = sequence.counter_sums[track];
    if (__builtin_add_overflow(sum, value, &sum)) sum = value;
    value = sum;
  }
  const double multiplier = info.multiplier == 0 ? 1 : info.multiplier;
  samples_.push_back({track, time, value * multiplier});
}

// Values that ride on an event of another kind: each belongs to the track in its place.
void FileReader::event_counters(Sequence& sequence, int64_t time, uint32_t track) {
  const std::vector<uint64_t>& tracks = event_.extra_tracks.empty() ? sequence.extra_counters : event_.extra_tracks;
  for (size_t k = 0; k < std::min(tracks.size(), event_.extra_values.size()); ++k)
    count(sequence, tracks_.of_uuid(tracks[k]), time, event_.extra_values[k]);
  const std::vector<uint64_t>& doubles =
      event_.extra_double_tracks.empty() ? sequence.extra_doubles : event_.extra_double_tracks;
  for (size_t k = 0; k < std::min(doubles.size(), event_.extra_doubles.size()); ++k)
    samples_.push_back({tracks_.of_uuid(doubles[k]), time, event_.extra_doubles[k]});
  const auto of_thread = [&](const char* what, double value) {
    samples_.push_back({tracks_.of_key(what + std::to_string(track), tracks_.path(track) + " / " + what), time, value});
  };
  if (event_.thread_time_us) of_thread("thread time", 1000.0 * *event_.thread_time_us);
  if (event_.thread_instructions) of_thread("thread instructions", *event_.thread_instructions);
}

void FileReader::track_event(const Packet& packet, Sequence& sequence) {
  TrackEvent& e = event_;
  if (!scan_event(packet.body, sequence, e)) return lose(problem::pftrace_damaged_packet, packet.offset);
  event_read(packet, sequence);
}

void FileReader::event_read(const Packet& packet, Sequence& sequence) {
  TrackEvent& e = event_;
  int64_t time = 0;
  if (packet.has_time) {
    if (!time_of(packet, sequence, time)) return;
  } else if (e.delta_us || e.absolute_us) {
    int64_t us = e.absolute_us.value_or(0);
    if (e.delta_us && !__builtin_add_overflow(sequence.reference_us, *e.delta_us, &us)) sequence.reference_us = us;
    Packet stamped = packet;
    stamped.timestamp = us >= 0 && us < INT64_MAX / 1000 ? static_cast<uint64_t>(us) * 1000 : UINT64_MAX;
    if (!time_of(stamped, sequence, time)) return;
  } else {
    return lose(problem::pftrace_no_time, packet.offset);
  }
  if (!packet.has_sequence) notes_.add(problem::pftrace_no_sequence, {path_, 0, packet.offset});
  const uint32_t track = track_of_event(packet, sequence);
  if (track >= kMaxTracks) return;
  if (!e.is_plain && (!e.extra_values.empty() || !e.extra_doubles.empty() || e.thread_time_us || e.thread_instructions))
    event_counters(sequence, time, track);
  switch (e.type) {
    case kBegin: {
      const uint32_t row = begin_slice(packet, sequence, time, track);
      if (row == kNoRow) return;
      if (!e.flows.empty()) add_flows(row, false, time);
      for (const std::string_view bytes : e.gpu_correlations)
        for (ProtoScan scan(bytes); scan.next();) {
          if (scan.id == 1) numbers(scan, [&](uint64_t id) { submissions_.emplace_back(id, row); });
          if (scan.id == 2) numbers(scan, [&](uint64_t id) { waits_.emplace_back(id, row); });
        }
      break;
    }
    case kEnd: {
      const uint32_t number = end_slice(packet, sequence, time, track);
      if (!e.flows.empty()) add_flows(number, true, time);
      break;
    }
    case kInstant: instant(packet, sequence, time, track, e.name); break;
    case kCounter:
      builder_.skip_entry();
      if (e.counter_double) samples_.push_back({track, time, *e.counter_double});
      else if (e.counter) count(sequence, track, time, *e.counter);
      break;
    case kState:
      states_.push_back({track, e.name, time, e.category, builder_.event_count(), packet.offset});
      builder_.skip_entry();
      break;
    default:
      if (e.legacy.data()) return legacy_event(packet, sequence, time, track);
      lose(problem::pftrace_unknown_type, packet.offset);
  }
  // This is the second meaning: Chrome's flows bound to slices by an id.
  if (e.legacy.data()) {
    for (ProtoScan scan(e.legacy); scan.next();)
      if (scan.id == legacy_event::kBindId && e.type == kBegin && builder_.row_count() > 0)
        flows_.push_back({scan.value, time, builder_.row_count() - 1, false, false});
  }
}

FileReader::Legacy FileReader::read_legacy(const Sequence& sequence) {
  Legacy legacy;
  for (ProtoScan scan(event_.legacy); scan.next();) {
    switch (scan.id) {
      case legacy_event::kNameIid:
        if (const uint32_t* known = sequence.event_names.get(scan.value); known && event_.name == 0)
          event_.name = *known;
        break;
      case legacy_event::kPhase: legacy.phase = static_cast<char>(scan.value); break;
      case legacy_event::kDurationUs: legacy.duration_us = scan.as_signed(); break;
      case legacy_event::kUnscopedId:
      case legacy_event::kLocalId:
      case legacy_event::kGlobalId:
        legacy.id = scan.value;
        legacy.id_kind = scan.id == legacy_event::kLocalId ? 'l' : 'g';
        break;
      case legacy_event::kScope:
        if (scan.is_bytes()) legacy.scope = scan.bytes;
        break;
      case legacy_event::kBindId: legacy.bind_id = scan.value; break;
      case legacy_event::kBindToEnclosing: legacy.binds_enclosing = scan.value != 0; break;
      case legacy_event::kPidOverride: legacy.pid = scan.as_signed(); break;
      case legacy_event::kTidOverride: legacy.tid = scan.as_signed(); break;
      default: break;
    }
  }
  return legacy;
}

void FileReader::legacy_event(const Packet& packet, Sequence& sequence, int64_t time, uint32_t track) {
  const Legacy legacy = read_legacy(sequence);
  if (legacy.pid != kNoNumber || legacy.tid != kNoNumber) track = tracks_.of_thread(legacy.pid, legacy.tid);
  const bool needs_state = (packet.flags & kNeedsState) != 0;
  const auto async_track = [&] {
    std::string key(1, legacy.id_kind);
    key += std::to_string(legacy.id) + '\n' + std::to_string(event_.category) + '\n' +
           std::string(legacy.scope.substr(0, 256));
    if (legacy.id_kind == 'l') key += '\n' + std::to_string(tracks_.process_of(track));
    const std::string_view name = builder_.dictionaries().names.text(event_.name);
    const uint32_t async = tracks_.of_key(key, std::string("async ") + std::string(name.empty() ? "events" : name));
    tracks_[async].is_async = true;
    return async;
  };
  const auto begin = [&](uint32_t at) {
    const uint32_t row = begin_row(packet, sequence, time, 0, at, event_.name);
    if (row == kNoRow) return;
    log_.begin(time, at, row, sequence.id, needs_state);
    add_flows(row, false, time);
    if (legacy.bind_id) flows_.push_back({*legacy.bind_id, time, row, false, false});
  };
  const auto end = [&](uint32_t at) {
    builder_.skip_entry();
    add_flows(log_.end(time, at, sequence.id, needs_state), true, time);
  };
  switch (legacy.phase) {
    case 'B': return begin(track);
    case 'E': return end(track);
    case 'b':
    case 'S': return begin(async_track());
    case 'e':
    case 'F': return end(async_track());
    case 'n':
    case 'T':
    case 'p': return instant(packet, sequence, time, async_track(), event_.name);
    case 'I':
    case 'i':
    case 'R': return instant(packet, sequence, time, track, event_.name);
    case 'X': {
      int64_t dur = 0;
      if (__builtin_mul_overflow(legacy.duration_us, int64_t{1000}, &dur) || dur < 0 || dur > kMaxTimeNs - time)
        dur = 0;
      const uint32_t row = begin_row(packet, sequence, time, dur, track, event_.name);
      if (row == kNoRow) return;
      last_ns_ = std::max(last_ns_, time + dur);
      add_flows(row, false, time);
      if (legacy.bind_id) flows_.push_back({*legacy.bind_id, time, row, false, false});
      return;
    }
    case 's':
    case 't':
    case 'f':
      builder_.skip_entry();
      legacy_flows_.push_back({legacy.bind_id.value_or(legacy.id), time, track, legacy.phase, legacy.binds_enclosing});
      return;
    default:
      builder_.skip_entry();
      if (legacy.phase != 'M') lose(problem::pftrace_unknown_type, packet.offset);
  }
}

}  // namespace stageline::pftrace
