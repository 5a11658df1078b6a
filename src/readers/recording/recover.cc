#include <filesystem>

#include "base/crc32c.h"
#include "base/output_file.h"
#include "readers/recording/recordings.h"

namespace stageline::recording {
namespace {

template <class T> void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T> void put_at(std::string& to, size_t at, T value) {
  to.replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
}

std::string file_header(const Recording& recording) {
  std::string out(kFileHeaderBytes, '\0');
  out.replace(0, kFileMagic.size(), kFileMagic);
  put_at(out, kFileVersionAt, kFormatVersion);
  put_at(out, kFileTicksAt,
         recording.meta.ticks_per_second ? recording.meta.ticks_per_second : recording.content.head.ticks_per_second);
  put_at(
      out, kFileRealtimeAt,
      recording.meta.start_realtime_ns ? recording.meta.start_realtime_ns : recording.content.head.start_realtime_ns);
  put_at(out, kFilePidAt, recording.content.head.pid);
  put_at(out, kFileRankAt, recording.meta.rank);
  const std::string uuid = recording.content.head.good ? recording.content.head.uuid : recording.meta.uuid;
  out.replace(kFileUuidAt, std::min<size_t>(16, uuid.size()), uuid.substr(0, 16));
  put_at(out, kFileCrcAt, crc32c(out));
  return out;
}

class ChunkWriter {
 public:
  explicit ChunkWriter(OutputFile& out) : out_(out) {}
  void write(ChunkType type, std::string_view payload) {
    std::string header(kChunkHeaderBytes, '\0');
    header.replace(0, kChunkMagic.size(), kChunkMagic);
    header[kChunkTypeAt] = static_cast<char>(type);
    put_at(header, kChunkBytesAt, static_cast<uint32_t>(payload.size()));
    put_at(header, kChunkSequenceAt, next_sequence++);
    put_at(header, kChunkHeaderCrcAt, crc32c(header));
    put_at(header, kChunkPayloadCrcAt, crc32c(payload));
    out_.write(header);
    out_.write(payload);
    out_.write(std::string((8 - payload.size() % 8) % 8, '\0'));
  }
  uint32_t next_sequence = 0;

 private:
  OutputFile& out_;
};

// Copies intact chunks except END, because what the process held in memory comes after them.
class Copier : public ChunkSink {
 public:
  Copier(OutputFile& out, ChunkWriter& writer) : out_(out), writer_(writer) {}
  void take(const Chunk& chunk) override {
    writer_.next_sequence = std::max(writer_.next_sequence, chunk.sequence + 1);
    if (chunk.type == ChunkType::kEnd) {
      end_ = chunk.payload;
      return;
    }
    out_.write(chunk.whole);
    out_.write(std::string((8 - chunk.whole.size() % 8) % 8, '\0'));
  }
  const std::string& end() const { return end_; }

 private:
  OutputFile& out_;
  ChunkWriter& writer_;
  std::string end_;
};

void write_names(const HotContent& hot, ChunkWriter& writer) {
  std::string payload;
  for (const auto& [id, name] : hot.content.names) {
    if (payload.size() + 4 + name.size() > kMaxPayloadBytes) {
      writer.write(ChunkType::kStrings, payload);
      payload.clear();
    }
    put(payload, id);
    put(payload, static_cast<uint16_t>(std::min<size_t>(name.size(), UINT16_MAX)));
    payload += name.substr(0, UINT16_MAX);
  }
  if (!payload.empty()) writer.write(ChunkType::kStrings, payload);
}

void write_lanes(const HotContent& hot, ChunkWriter& writer) {
  std::string payload;
  for (const auto& [id, lane] : hot.content.lanes) {
    std::string entry(kLaneRowBytes, '\0');
    put_at(entry, 0, uint32_t{id});
    entry[8] = static_cast<char>(lane.device_kind);
    entry[9] = static_cast<char>(lane.clock);
    put_at(entry, 10, lane.device);
    put_at(entry, 12, lane.thread);
    put_at(entry, 16, lane.stream);
    const std::string name = lane.name.substr(0, 47);
    entry.replace(8 + 16, name.size(), name);
    payload += entry;
    if (payload.size() + kLaneRowBytes > kMaxPayloadBytes) {
      writer.write(ChunkType::kLanes, payload);
      payload.clear();
    }
  }
  if (!payload.empty()) writer.write(ChunkType::kLanes, payload);
}

void write_clocks(const HotContent& hot, ChunkWriter& writer) {
  std::string payload;
  for (const HostSnapshot& s : hot.content.snapshots) {
    put(payload, uint64_t{0});
    for (const int64_t value : {s.ticks, s.raw_ns, s.monotonic_ns, s.realtime_ns, s.bracket_ticks}) put(payload, value);
  }
  writer.write(ChunkType::kClock, payload);
}

// Writes a ring's records in pieces that fit into a chunk; a record and its extra facts stay together.
void write_rings(const HotContent& hot, ChunkWriter& writer) {
  for (size_t b = 0; b < hot.content.blocks.size(); ++b) {
    const RowBlock& block = hot.content.blocks[b];
    const size_t raw_end = b + 1 < hot.raw_begin.size() ? hot.raw_begin[b + 1] : hot.raw.size();
    size_t at = hot.raw_begin[b];
    uint64_t position = block.first;
    while (at < raw_end) {
      std::string payload;
      put(payload, block.ring);
      put(payload, uint32_t{0});
      put(payload, position);
      while (at < raw_end && payload.size() + 2 * kRecordBytes <= kMaxPayloadBytes) {
        const size_t bytes = (static_cast<uint8_t>(hot.raw[at + 20]) & kHasExtra) != 0 && at + kRecordBytes < raw_end
                                 ? 2 * kRecordBytes
                                 : kRecordBytes;
        payload += std::string_view(hot.raw).substr(at, bytes);
        at += bytes;
        position += bytes / kRecordBytes;
      }
      writer.write(ChunkType::kRaw, payload);
    }
  }
}

void write_open(const HotContent& hot, ChunkWriter& writer) {
  std::string payload;
  for (const std::string& bytes : hot.open_bytes) {
    if (payload.size() + bytes.size() > kMaxPayloadBytes) {
      writer.write(ChunkType::kOpen, payload);
      payload.clear();
    }
    payload += bytes;
  }
  if (!payload.empty()) writer.write(ChunkType::kOpen, payload);
}

// Writes the drops that no GAP in the files reports.
void write_drops(const Recording& recording, ChunkWriter& writer) {
  std::string payload;
  for (uint32_t reason = 0; reason < kDropReasons; ++reason) {
    const int64_t more = recording.content.drops[reason] - recording.drops_in_files[reason];
    if (more <= 0) continue;
    put(payload, reason);
    put(payload, uint32_t{0});
    put(payload, more);
    put(payload, uint64_t{0});
    put(payload, uint64_t{0});
  }
  if (!payload.empty()) writer.write(ChunkType::kGap, payload);
}

Result<Recovered> recover_one(const Recording& recording, const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored))
    return make_error(ErrorCode::kUsage, "is there already", "give another folder with -o", {path});
  TRY(out, OutputFile::create(path, size_t{1} << 17, OutputFile::Over::kKept));
  out->write(file_header(recording));
  ChunkWriter writer(*out);
  Copier copier(*out, writer);
  Recovered result{
      path, recording.meta.rank, std::ssize(recording.content.rows), recording.hot_rows, std::ssize(recording.open), 0};
  for (const std::string& cold : recording.paths) {
    FileHead head;
    TRY(counts, for_each_chunk(cold, head, copier));
    result.skipped_bytes += counts->skipped_bytes;
  }
  if (!recording.hot_path.empty()) {
    TRY(hot, read_hot(recording.hot_path));
    if (recording.paths.empty()) writer.write(ChunkType::kMeta, hot->content.meta);
    write_names(*hot, writer);
    write_lanes(*hot, writer);
    write_clocks(*hot, writer);
    write_rings(*hot, writer);
    write_open(*hot, writer);
    write_drops(recording, writer);
  }
  writer.write(ChunkType::kEnd, !copier.end().empty()        ? copier.end()
                                : recording.hot_path.empty() ? "{\"recovered\":1,\"memory_lost\":1}"
                                                             : "{\"recovered\":1}");
  TRY_OK(out->commit());
  return result;
}

// Returns the stem of a recording: "host.r00003.p4711.1700000000.000.slrec" → "host.r00003.p4711.1700000000".
std::string stem_of(const Recording& recording) {
  std::string name = file_name(recording.paths.empty() ? recording.hot_path : recording.paths[0]);
  for (const std::string_view ending : {".gz", ".zst", ".slrec", ".slhot", ".000"})
    if (name.ends_with(ending) && name.size() > ending.size()) name.resize(name.size() - ending.size());
  return name;
}

}  // namespace

Result<std::vector<Recovered>> recover(const Source& source, const std::string& folder, Diagnostics& diagnostics) {
  const std::vector<Recording> recordings = read_recordings(source, nullptr, diagnostics);
  if (recordings.empty()) return no_such_input("recording.nothing", source);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return make_error(ErrorCode::kIo, "cannot be made: " + failed.message(), "", {folder});
  std::vector<Recovered> out;
  OutputSet together;
  for (const Recording& r : recordings) {
    TRY(one, recover_one(r, folder + "/" + stem_of(r) + ".recovered.000.slrec"));
    out.push_back(std::move(*one));
  }
  TRY_OK(together.commit());
  return out;
}

}  // namespace stageline::recording
