#include "readers/perfetto/tracks.h"

#include "base/perfetto_fields.h"
#include "base/proto_scan.h"

namespace stageline::pftrace {
namespace {

using namespace perfetto;

constexpr int kDeepestTrack = 64;
constexpr size_t kLongestTrackName = 4096;

std::string text_of(std::string_view bytes) { return valid_utf8(bytes.substr(0, kLongestTrackName)); }

// int32 fields come as 64 bits.
int64_t number_of(const ProtoScan& scan) { return scan.as_signed(); }

}  // namespace

uint32_t Tracks::add(uint64_t uuid) {
  TrackInfo track;
  track.uuid = uuid;
  tracks_.push_back(std::move(track));
  return static_cast<uint32_t>(tracks_.size() - 1);
}

uint32_t Tracks::find_uuid(uint64_t uuid) {
  const auto [at, is_new] = by_uuid_.try_emplace(uuid, 0);
  if (is_new) at->second = add(uuid);
  last_uuid_ = uuid;
  return last_ = at->second;
}

uint32_t Tracks::of_sequence(uint32_t sequence) {
  const auto [at, is_new] = by_sequence_.try_emplace(sequence, 0);
  if (is_new) {
    at->second = add(0);
    tracks_[at->second].name = "sequence " + std::to_string(sequence);
    tracks_[at->second].name_rank = 1;
  }
  return at->second;
}

uint32_t Tracks::of_thread(int64_t pid, int64_t tid) {
  const auto [at, is_new] = by_thread_.try_emplace({pid, tid}, 0);
  if (is_new) {
    at->second = add(0);
    TrackInfo& track = tracks_[at->second];
    track.is_thread = true;
    track.pid = pid;
    track.tid = tid;
  }
  return at->second;
}

uint32_t Tracks::of_key(const std::string& key, std::string_view name) {
  const auto [at, is_new] = by_key_.try_emplace(key, 0);
  if (is_new) {
    at->second = add(0);
    tracks_[at->second].name = text_of(name);
    tracks_[at->second].name_rank = 2;
  }
  return at->second;
}

bool Tracks::describe(std::string_view descriptor, uint64_t machine) {
  uint64_t uuid = 0;
  ProtoScan first(descriptor);
  while (first.next())
    if (first.id == descriptor::kUuid && !first.is_bytes()) uuid = first.value;
  if (first.is_damaged()) return false;
  TrackInfo& track = tracks_[of_uuid(uuid ^ machine)];
  for (ProtoScan scan(descriptor); scan.next();) {
    const auto name = [&](int rank) {
      if (rank < track.name_rank || !scan.is_bytes()) return;
      track.name = text_of(scan.bytes);
      track.name_rank = rank;
    };
    switch (scan.id) {
      case descriptor::kParentUuid:
        track.parent = scan.value ^ machine;
        track.has_parent = scan.value != 0;
        break;
      case descriptor::kStaticName: name(3); break;
      case descriptor::kName: name(2); break;
      case descriptor::kAtraceName: name(1); break;
      case descriptor::kDescription:
        if (uuid == 0 && scan.is_bytes()) root_description_ = text_of(scan.bytes);
        break;
      case descriptor::kProcess:
        if (!scan.is_bytes()) break;
        track.is_process = true;
        for (ProtoScan inner(scan.bytes); inner.next();) {
          if (inner.id == process_field::kPid) track.pid = number_of(inner);
          if (inner.id == process_field::kName && inner.is_bytes()) track.process_name = text_of(inner.bytes);
        }
        if (track.pid != kNoNumber && !track.process_name.empty()) process_names_[track.pid] = track.process_name;
        break;
      case descriptor::kThread:
        if (!scan.is_bytes()) break;
        track.is_thread = true;
        for (ProtoScan inner(scan.bytes); inner.next();) {
          if (inner.id == thread_field::kPid) track.pid = number_of(inner);
          if (inner.id == thread_field::kTid) track.tid = number_of(inner);
          if (inner.id == thread_field::kName && inner.is_bytes()) track.thread_name = text_of(inner.bytes);
        }
        break;
      case descriptor::kCounter:
        if (!scan.is_bytes()) break;
        for (ProtoScan inner(scan.bytes); inner.next();) {
          if (inner.id == counter_field::kIsIncremental) track.is_incremental = inner.value != 0;
          if (inner.id == counter_field::kMultiplier) track.multiplier = number_of(inner);
        }
        break;
      default: break;
    }
  }
  return true;
}

uint32_t Tracks::describe_thread(std::string_view descriptor, int64_t& reference_us) {
  int64_t pid = 0, tid = 0;
  std::string name;
  for (ProtoScan scan(descriptor); scan.next();) {
    if (scan.id == thread_field::kPid) pid = number_of(scan);
    if (scan.id == thread_field::kTid) tid = number_of(scan);
    if (scan.id == thread_field::kReferenceTimeUs) reference_us = number_of(scan);
    if (scan.id == thread_field::kName && scan.is_bytes()) name = text_of(scan.bytes);
  }
  const uint32_t track = of_thread(pid, tid);
  if (!name.empty()) tracks_[track].thread_name = std::move(name);
  return track;
}

// The track and those it lies in, from the inside out; a circle of parents ends somewhere.
template <class Visit> void Tracks::climb(uint32_t track, Visit visit) const {
  for (int depth = 0; depth < kDeepestTrack; ++depth) {
    if (!visit(track)) return;
    if (!tracks_[track].has_parent) return;
    const auto parent = by_uuid_.find(tracks_[track].parent);
    if (parent == by_uuid_.end()) return;
    track = parent->second;
  }
}

std::string Tracks::path(uint32_t track) const {
  std::vector<const TrackInfo*> names;
  climb(track, [&](uint32_t at) {
    const TrackInfo& info = tracks_[at];
    if (at != track && (info.is_thread || info.is_process)) return false;
    if (!info.name.empty()) names.push_back(&info);
    return true;
  });
  std::string out;
  for (size_t k = names.size(); k-- > 0;) append_item(out, names[k]->name, " / ");
  if (out.empty() && tracks_[track].is_thread) out = tracks_[track].thread_name;
  if (out.empty() && tracks_[track].is_process) out = tracks_[track].process_name;
  if (!out.empty()) return out;
  return tracks_[track].uuid == 0 ? "global" : "Track " + std::to_string(tracks_[track].uuid);
}

uint32_t Tracks::process_of(uint32_t track) const {
  uint32_t found = track;
  climb(track, [&](uint32_t at) {
    found = at;
    return !tracks_[at].is_process;
  });
  return found;
}

uint32_t Tracks::thread_of(uint32_t track) const {
  uint32_t found = track;
  climb(track, [&](uint32_t at) {
    if (tracks_[at].is_thread) found = at;
    return !tracks_[at].is_thread;
  });
  return found;
}

std::string Tracks::process_name(uint32_t track) const {
  const uint32_t process = process_of(track);
  if (tracks_[process].is_process && !tracks_[process].process_name.empty()) return tracks_[process].process_name;
  const TrackInfo& thread = tracks_[thread_of(track)];
  return value_at(process_names_, thread.pid);
}

Tracks::Lane Tracks::lane(uint32_t track) const {
  const TrackInfo& info = tracks_[track];
  const auto number = [](int64_t n) { return n == kNoNumber ? std::string() : std::to_string(n); };
  if (info.is_device) {
    const std::string tid = info.stream >= 0 ? std::to_string(info.stream) : info.name;
    return {number(info.pid), tid, info.name};
  }
  if (info.is_thread)
    return {number(info.pid), number(info.tid), info.thread_name.empty() ? path(track) : info.thread_name};
  const TrackInfo& process = tracks_[process_of(track)];
  const TrackInfo& thread = tracks_[thread_of(track)];
  std::string name = path(track);
  if (info.is_process) name = (info.name.empty() ? "process" : info.name);
  else if (thread.is_thread && !thread.thread_name.empty()) name = thread.thread_name + " / " + name;
  const int64_t pid = process.is_process ? process.pid : thread.pid;
  // Tracks of one name are apart by their uuid; only sequences and keyed tracks have none, and their names differ.
  return {number(pid), name + (info.uuid == 0 ? "" : " #" + std::to_string(info.uuid)), name};
}

}  // namespace stageline::pftrace
