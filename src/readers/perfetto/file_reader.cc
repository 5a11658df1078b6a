#include "readers/perfetto/file_reader.h"

#include "base/error_words.h"
#include "base/gzip_bytes.h"
#include "base/json_writer.h"
#include "base/proto_scan.h"
#include "readers/perfetto/problems.h"

namespace stageline::pftrace {

using namespace perfetto;

namespace {

constexpr size_t kMaxUnpacked = size_t{1} << 30;  // of one packet; and of all of a file 64 times that
constexpr size_t kMaxRatio = 1000;
constexpr size_t kMaxSequences = size_t{1} << 20;
constexpr size_t kLongestText = size_t{1} << 20;

bool is_ascii(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) >= 128; });
}

}  // namespace

FileReader::FileReader(std::string path, const ClockBook* book)
    : path_(std::move(path)), has_book_(book != nullptr), builder_(path_, "pftrace"),
      annotations_(builder_.dictionaries().names) {
  if (book) clocks_ = *book;
  category_id("");
  sync_category_ = category_id("cuda_sync");
  overhead_category_ = category_id("overhead");
  kernel_category_ = category_id("kernel");
  copy_category_ = category_id("gpu_memcpy");
}

uint32_t FileReader::text_id(std::string_view text) {
  text = text.substr(0, kLongestText);
  if (is_ascii(text)) return builder_.dictionaries().names.intern(text);
  return builder_.dictionaries().names.intern(valid_utf8(text));
}

uint16_t FileReader::category_id(std::string_view text) {
  const std::string clean = valid_utf8(text.substr(0, 4096));
  return static_cast<uint16_t>(std::min<uint32_t>(builder_.dictionaries().categories.intern(clean), 0x7fff));
}

Sequence& FileReader::find_sequence(uint32_t id) {
  if (sequences_.size() >= kMaxSequences) id = 0;  // more than any writer has: they share what is left
  std::unique_ptr<Sequence>& at = sequences_[id];
  if (!at) at = std::make_unique<Sequence>(), at->id = id;
  return *(last_sequence_ = at.get());
}

Status FileReader::read(int64_t size_bytes, Progress* progress) {
  TRY(input, Input::open(path_, progress));
  // Room for as many events as fit into a plain file of this size, so that nothing is copied while they come in; what
  // is not used is never touched.
  if (!input->compressed()) {
    constexpr size_t kBytesPerEvent = 16, kMaxReserved = size_t{1} << 24;
    const auto events = std::min(static_cast<size_t>(std::max<int64_t>(size_bytes, 0)) / kBytesPerEvent, kMaxReserved);
    log_.reserve(events / 2);
    builder_.reserve(events / 2);
  }
  PacketFile file(*input, path_, notes_);
  std::string_view bytes;
  int64_t offset = 0;
  while (file.next(bytes, offset))
    if (!plain_event(bytes, offset)) packet(bytes, offset, false);
  if (file.error()) {
    if (packets_ == 0) return *file.error();
    lose(problem::pftrace_read_stopped, file.error()->where.byte, Args().set("why", error_text(*file.error())));
  }
  if (packets_ == 0)
    return make_error(ErrorCode::kBadInput, "no packet of a Perfetto trace in this file",
                      "a Perfetto trace begins with packets (protobuf, field 1)", {path_, 0, 0});
  return {};
}

void FileReader::compressed(std::string_view bytes, bool zstd, int64_t offset) {
  const size_t limit = std::min<uint64_t>(
      {kMaxUnpacked, std::max<uint64_t>(bytes.size(), 64) * kMaxRatio, 64 * kMaxUnpacked - unpacked_});
  const std::optional<std::string> whole = zstd ? unzstd_bytes(bytes, limit) : inflate_bytes(bytes, limit);
  if (!whole) return lose(problem::pftrace_bad_compressed, offset);
  unpacked_ += static_cast<int64_t>(whole->size());
  ProtoScan scan(*whole);
  while (scan.next())
    if (scan.id == kTracePacket && scan.is_bytes() && !plain_event(scan.bytes, offset))
      packet(scan.bytes, offset, true);
  if (scan.is_damaged()) lose(problem::pftrace_bad_compressed, offset);
}

bool FileReader::read_fields(std::string_view bytes, bool nested, Packet& p) {
  ProtoScan scan(bytes);
  while (scan.next()) {
    switch (scan.id) {
      case packet::kTimestamp:
        p.timestamp = scan.value;
        p.has_time = true;
        break;
      case packet::kClockId:
        p.clock = scan.value;
        p.has_clock = true;
        break;
      case packet::kSequenceId:
        p.sequence = static_cast<uint32_t>(scan.value);
        p.has_sequence = scan.value != 0;
        break;
      case packet::kSequenceFlags: p.flags |= scan.value; break;
      case packet::kStateCleared:
        if (scan.value != 0) p.flags |= kStateCleared;
        break;
      case packet::kPreviousDropped: p.dropped = scan.value != 0; break;
      case packet::kMachineId: p.machine = scan.value; break;
      case 87: p.is_first = scan.value != 0; break;
      case packet::kInternedData:
        if (scan.is_bytes()) p.interned = scan.bytes;
        break;
      case packet::kDefaults:
        if (scan.is_bytes()) p.defaults = scan.bytes;
        break;
      case packet::kCompressed:
      case packet::kZstdCompressed:
        if (!scan.is_bytes()) break;
        if (nested) lose(problem::pftrace_nested_compressed, p.offset);
        else compressed(scan.bytes, scan.id == packet::kZstdCompressed, p.offset);
        break;
      case packet::kTrackEvent:
      case packet::kTrackDescriptor:
      case packet::kClockSnapshot:
      case packet::kGpuStage:
      case packet::kGpuCounter:
      case packet::kGpuInfo:
      case packet::kThreadDescriptor:
      case packet::kFtraceEvents:
      case packet::kRemoteClockSync:
        if (!scan.is_bytes()) break;
        p.payload = scan.id;
        p.body = scan.bytes;
        break;
      default: break;
    }
  }
  return !scan.is_damaged();
}

void FileReader::packet(std::string_view bytes, int64_t offset, bool nested) {
  Packet p;
  p.offset = offset;
  if (!read_fields(bytes, nested, p)) return lose(problem::pftrace_damaged_packet, offset);
  ++packets_;
  Sequence& s = sequence_of(p.sequence);
  if (p.dropped) {
    // The first packet of a writer always says so: nothing was before it.
    if (s.seen && !p.is_first) lose(problem::pftrace_lost_packets, offset);
    s.valid = false;
  }
  if (p.flags & kStateCleared) {
    s.clear();
    s.valid = true;
  }
  s.seen = true;
  if ((p.flags & kNeedsState) && !s.valid) return lose(problem::pftrace_no_state, offset);
  if (!p.interned.empty()) intern(p.interned, s);
  if (!p.defaults.empty()) read_defaults(p.defaults, s);
  if (p.payload != 0) payload(p, s);
}

void FileReader::payload(const Packet& p, Sequence& sequence) {
  const uint64_t machine = p.machine * 0x9e3779b97f4a7c15ull;
  switch (p.payload) {
    case packet::kTrackEvent: track_event(p, sequence); break;
    case packet::kTrackDescriptor:
      if (!tracks_.describe(p.body, machine)) lose(problem::pftrace_damaged_packet, p.offset);
      break;
    case packet::kThreadDescriptor:
      sequence.thread_track = tracks_.describe_thread(p.body, sequence.reference_us);
      break;
    case packet::kClockSnapshot: snapshot(p, sequence); break;
    case packet::kGpuStage: gpu_stage(p, sequence); break;
    case packet::kGpuCounter: gpu_counter(p, sequence); break;
    case packet::kGpuInfo: gpu_info(p.body); break;
    case packet::kRemoteClockSync: notes_.add(problem::pftrace_remote_clocks, {path_, 0, p.offset}); break;
    default: notes_.add(problem::pftrace_other_data, {path_, 0, p.offset});
  }
}

void FileReader::intern(std::string_view data, Sequence& sequence) {
  for (ProtoScan scan(data); scan.next();) {
    if (!scan.is_bytes()) continue;
    uint64_t iid = 0, number = 0;
    std::string_view text, third;
    for (ProtoScan entry(scan.bytes); entry.next();) {
      if (entry.id == interned_entry::kIid) iid = entry.value;
      if (entry.id == interned_entry::kText && entry.is_bytes()) text = entry.bytes;
      if (entry.id == interned_entry::kContextPid && !entry.is_bytes()) number = entry.value;
      if (entry.id == interned_entry::kDemangled && entry.is_bytes()) third = entry.bytes;
    }
    switch (scan.id) {
      case interned::kCategories: sequence.categories.put(iid, category_id(text)); break;
      case interned::kEventNames: sequence.event_names.put(iid, text_id(text)); break;
      case interned::kAnnotationNames: sequence.annotation_names.put(iid, annotation_name(text)); break;
      case interned::kAnnotationTexts: sequence.annotation_texts.put(iid, text_id(text)); break;
      case interned::kGraphicsContexts: sequence.context_pids.put(iid, static_cast<int32_t>(number)); break;
      case interned::kGpuSpecifications: sequence.gpu_specs.put(iid, text_id(text)); break;
      case interned::kComputeKernels: sequence.kernels.put(iid, text_id(third.empty() ? text : third)); break;
      case interned::kComputeArgNames: sequence.kernel_args.put(iid, annotation_name(text)); break;
      case interned::kCounterDescriptors: {
        CounterSet set;
        for (ProtoScan entry(scan.bytes); entry.next();) {
          if (entry.id == interned_entry::kCounterGpu && !entry.is_bytes()) set.gpu = entry.as_signed();
          if (entry.id != interned_entry::kText || !entry.is_bytes()) continue;
          set.specs = counter_specs(entry.bytes, false);
        }
        sequence.counter_sets.put(iid, std::move(set));
        break;
      }
      default: break;
    }
  }
}

void FileReader::read_defaults(std::string_view data, Sequence& sequence) {
  for (ProtoScan scan(data); scan.next();) {
    if (scan.id == packet_defaults::kClockId) sequence.default_clock = scan.value;
    if (scan.id != packet_defaults::kTrackEvent || !scan.is_bytes()) continue;
    sequence.has_default_track = false;
    sequence.extra_counters.clear();
    sequence.extra_doubles.clear();
    for (ProtoScan field(scan.bytes); field.next();) {
      if (field.id == track_event::kTrackUuid) {
        sequence.default_track = field.value;
        sequence.has_default_track = true;
      }
      const auto tracks = [&](std::vector<uint64_t>& list) {
        if (!field.is_bytes()) return list.push_back(field.value);
        const char *at = field.bytes.data(), *end = at + field.bytes.size();
        for (uint64_t value = 0; at != end && ProtoScan::read_varint(at, end, value);) list.push_back(value);
      };
      if (field.id == track_event::kExtraCounterTracks) tracks(sequence.extra_counters);
      if (field.id == track_event::kExtraDoubleTracks) tracks(sequence.extra_doubles);
    }
  }
}

void FileReader::snapshot(const Packet& packet, Sequence& sequence) {
  std::vector<ClockBook::Stamp> stamps;
  for (ProtoScan scan(packet.body); scan.next();) {
    if (scan.id == clock_snapshot::kPrimaryClock && trace_clock_ == 0) trace_clock_ = scan.value;
    if (scan.id != clock_snapshot::kClock || !scan.is_bytes()) continue;
    uint64_t id = 0, time = 0;
    SequenceClock clock;
    for (ProtoScan field(scan.bytes); field.next();) {
      if (field.id == clock_field::kId) id = field.value;
      if (field.id == clock_field::kTime) time = field.value;
      if (field.id == clock_field::kIsIncremental) clock.is_incremental = field.value != 0;
      if (field.id == clock_field::kUnitNs && field.value != 0 && field.value <= 1'000'000'000)
        clock.unit = field.as_signed();
    }
    int64_t ns = 0;
    if (time > INT64_MAX || __builtin_mul_overflow(static_cast<int64_t>(time), clock.unit, &ns)) continue;
    if (id >= kFirstSequenceClock && id < kFirstCustomClock) {
      clock.id = id;
      clock.last = ns;
      const auto known = std::ranges::find_if(sequence.clocks, [&](const auto& c) { return c.id == id; });
      if (known == sequence.clocks.end()) sequence.clocks.push_back(clock);
      else *known = clock;
    }
    if (stamps.size() < 64) stamps.push_back({clock_key(id, sequence.id), ns});
  }
  // A second reading knows the clocks of everyone already, but not where this sequence's own clock stands.
  clocks_.add_snapshot(std::move(stamps));
}

void FileReader::gpu_info(std::string_view bytes) {
  std::string json;
  int number = 0;
  for (ProtoScan scan(bytes); scan.next();) {
    if (scan.id != 1 || !scan.is_bytes()) continue;
    std::string name;
    for (ProtoScan field(scan.bytes); field.next();)
      if (field.id == 1 && field.is_bytes()) name = valid_utf8(field.bytes);
    json += (json.empty() ? "[{\"id\":" : ",{\"id\":") + std::to_string(number++) + ",\"name\":";
    append_json_string(json, name);
    json += "}";
  }
  if (!json.empty()) metadata_.push_back({"deviceProperties", json + "]"});
}

void FileReader::bad_time(int64_t offset) { lose(problem::pftrace_bad_time, offset); }

void FileReader::unknown_clock(int64_t offset) {
  late_clocks_ = true;
  clockless_ = true;
  notes_.add(problem::pftrace_unknown_clock, {path_, 0, offset});
}

}  // namespace stageline::pftrace
