// Tracks of a Perfetto trace: their descriptors, in any order, and the lanes they become.
#pragma once

#include "base/vocabulary.h"

namespace stageline::pftrace {

inline constexpr int64_t kNoNumber = INT64_MIN;

struct TrackInfo {
  uint64_t uuid = 0, parent = 0;
  std::string name;   // of the descriptor itself
  int name_rank = 0;  // static_name 3, name 2, atrace_name 1
  bool has_parent = false, is_thread = false, is_process = false, is_device = false, is_async = false;
  int64_t pid = kNoNumber, tid = kNoNumber;
  std::string process_name, thread_name;
  int64_t stream = -1;  // of device lanes
  bool is_incremental = false;
  int64_t multiplier = 1;
};

class Tracks {
 public:
  // The track of a descriptor's uuid, made when it is new.
  uint32_t of_uuid(uint64_t uuid) { return last_ != UINT32_MAX && uuid == last_uuid_ ? last_ : find_uuid(uuid); }
  // The events of a sequence that name no track; of a thread by its numbers; any other by a key of its own.
  uint32_t of_sequence(uint32_t sequence);
  uint32_t of_thread(int64_t pid, int64_t tid);
  uint32_t of_key(const std::string& key, std::string_view name);
  TrackInfo& operator[](uint32_t track) { return tracks_[track]; }
  const TrackInfo& operator[](uint32_t track) const { return tracks_[track]; }
  size_t size() const { return tracks_.size(); }

  // Reads a TrackDescriptor; false when it is damaged.
  bool describe(std::string_view descriptor, uint64_t machine);
  // A legacy ThreadDescriptor of its own packet: the thread's track.
  uint32_t describe_thread(std::string_view descriptor, int64_t& reference_us);

  const std::string& root_description() const { return root_description_; }

  // The title of a track: names from the outermost to the track's, "GPU 0 / compute", without processes and threads.
  std::string path(uint32_t track) const;
  // The process (or thread) that the track lies in, by its descriptors: an index, or its own when there is none.
  uint32_t process_of(uint32_t track) const;
  uint32_t thread_of(uint32_t track) const;
  std::string process_name(uint32_t track) const;
  // Lane identity, as Chrome's JSON would have it.
  struct Lane {
    std::string pid, tid, name;
  };
  Lane lane(uint32_t track) const;

 private:
  uint32_t add(uint64_t uuid);
  uint32_t find_uuid(uint64_t uuid);
  template <class Visit> void climb(uint32_t track, Visit visit) const;

  std::vector<TrackInfo> tracks_;
  std::unordered_map<uint64_t, uint32_t> by_uuid_;
  std::unordered_map<uint32_t, uint32_t> by_sequence_;
  std::map<std::pair<int64_t, int64_t>, uint32_t> by_thread_;
  std::unordered_map<std::string, uint32_t> by_key_;
  std::map<int64_t, std::string> process_names_;
  std::string root_description_;
  uint64_t last_uuid_ = 0;
  uint32_t last_ = UINT32_MAX;
};

}  // namespace stageline::pftrace
