// Recordings that were damaged: every chunk that is still whole is found, nothing else is believed, nothing crashes.
#include <signal.h>

#include <filesystem>
#include <random>

#include "base/crc32c.h"
#include "readers/recording/recordings.h"
#include "record_fixture.h"

namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_bytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// Makes a recording of many small chunks of every kind.
std::string record_many_chunks(const RecordFolder& folder) {
  CHECK(in_child([&] {
          slr_config c = folder.config();
          if (slr_init(&c) != 0) return 1;
          for (int i = 0; i < 150; ++i) {
            const std::string name = "name " + std::to_string(i);
            slr_job job = SLR_JOB(SLR_FORWARD, i, 0);
            job.name = slr_intern(name.c_str(), name.size());
            for (int k = 0; k < 20; ++k) {
              slr_push_job(0, &job);
              slr_pop(0);
            }
            slr_pop(0);  // one drop
            slr_flush(5000);
          }
          return 0;
        }) == 0);
  return folder.files(".slrec").at(0);
}

class Collector : public recording::ChunkSink {
 public:
  void take(const recording::Chunk& chunk) override { wholes.emplace_back(chunk.whole); }
  std::vector<std::string> wholes;
};
std::vector<std::string> chunks_of(const std::string& path, recording::ChunkCounts* counts = nullptr) {
  Collector collector;
  recording::FileHead head;
  const auto result = recording::for_each_chunk(path, head, collector);
  REQUIRE(result);
  if (counts) *counts = *result;
  return collector.wholes;
}

}  // namespace

TEST_CASE("random damage never hides an intact chunk") {
  RecordFolder folder;
  const std::string path = record_many_chunks(folder), whole = bytes_of(path);
  const auto chunks = chunks_of(path);
  REQUIRE(chunks.size() > 300);
  std::mt19937 random(3);
  const std::string damaged_path = folder.path() + "/damaged.000.slrec";
  const auto below = [&](size_t limit) { return limit == 0 ? 0 : random() % limit; };
  for (int round = 0; round < 300; ++round) {
    // Pieces of the file with something done to each; chunks lie whole within pieces or are touched.
    std::string damaged;
    std::vector<std::string> intact;
    size_t at = 64;
    damaged = whole.substr(0, 64);
    if (round % 5 == 0) damaged[random() % 64] ^= 1;
    for (const std::string& chunk : chunks) {
      std::string piece = chunk;
      const auto kind = below(60);
      if (kind == 0) piece[below(piece.size() - 8)] ^= static_cast<char>(1 << below(8));  // padding has no owner
      if (kind == 1) piece.resize(below(piece.size() - 8));
      if (kind == 2)
        piece.insert(1 + below(piece.size() - 9), std::string(1 + below(100), static_cast<char>(random())));
      if (kind == 3)
        std::fill(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(1 + below(piece.size() - 9)), '\0');
      if (kind == 4)
        piece += std::string(below(300), 'S') + "SLCK" + std::string(below(80), static_cast<char>(random()));
      if (kind == 5) piece = std::string(1 + below(5000), static_cast<char>(random())) + piece;
      if (kind > 3) intact.push_back(chunk);
      damaged += piece;
      at += chunk.size();
    }
    CHECK(at == whole.size());
    write_bytes(damaged_path, damaged);
    recording::ChunkCounts counts;
    const auto found = chunks_of(damaged_path, &counts);
    size_t next = 0;
    for (const std::string& chunk : found)
      if (next < intact.size() && chunk.starts_with(std::string_view(intact[next]).substr(0, 32))) ++next;
    CHECK(next == intact.size());
    // Damage beyond the padding was detected: a flipped bit, a cut, an insertion.
    CHECK(found.size() == intact.size());
    const auto content = recording::read_cold(damaged_path, nullptr);
    REQUIRE(content);
    CHECK(content->bad_chunks == 0);
  }
}

TEST_CASE("chunks in any order, and files whose headers are gone, are read whole") {
  RecordFolder folder, other;
  const std::string path = record_many_chunks(folder), whole = bytes_of(path);
  const recording::Recording straight = folder.read_one();
  auto chunks = chunks_of(path);
  std::mt19937 random(11);
  const auto in_order = [](const recording::Recording& r) {
    std::vector<std::pair<int64_t, int32_t>> rows;
    for (const auto& row : r.content.rows) rows.emplace_back(row.start, row.micro_batch);
    return rows;
  };
  for (int round = 0; round < 5; ++round) {
    std::shuffle(chunks.begin(), chunks.end(), random);
    const bool split = round > 2;  // in two files, the first of which has no header that could be believed
    std::string parts[2] = {whole.substr(0, 64), whole.substr(0, 64)};
    for (size_t i = 0; i < chunks.size(); ++i) parts[split && i > chunks.size() / 2] += chunks[i];
    if (split) std::fill(parts[0].begin(), parts[0].begin() + 64, round == 3 ? '\0' : 'x');
    for (int i = 0; i < 2; ++i)
      write_bytes(other.path() + "/host.r00000.p1.1.00" + std::to_string(i) + ".slrec",
                  i == 0 || split ? parts[i] : std::string());
    const auto all = other.read();
    REQUIRE(all.size() == 1);
    CHECK(in_order(all[0]) == in_order(straight));
    CHECK(all[0].lost_slots == 0);
    CHECK(all[0].repeated_rows == 0);
  }
}

TEST_CASE("a file cut at any byte keeps the chunks before the cut") {
  RecordFolder folder;
  const std::string path = record_many_chunks(folder), whole = bytes_of(path);
  const auto chunks = chunks_of(path);
  const std::string cut_path = folder.path() + "/cut.000.slrec";
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const size_t cut = random() % whole.size();
    write_bytes(cut_path, whole.substr(0, cut));
    recording::ChunkCounts counts;
    const auto found = chunks_of(cut_path, &counts);
    size_t end = 64, expected = 0;
    for (const auto& chunk : chunks) {
      const size_t unpadded = 32 + recording::number_at<uint32_t>(chunk, recording::kChunkBytesAt);
      if (end + unpadded <= cut) ++expected;
      end += chunk.size();
    }
    CHECK(found.size() == expected);
    for (size_t i = 0; i < found.size(); ++i) CHECK(chunks[i].starts_with(found[i]));
  }
}

TEST_CASE("records that a damaged chunk took along are counted") {
  RecordFolder folder;
  const std::string path = record_many_chunks(folder);
  std::string bytes = bytes_of(path);
  const auto before = folder.read_one().content.rows.size();
  CHECK(before == 3000);
  size_t at = 64, ranges = 0;
  for (const auto& chunk : chunks_of(path)) {
    if (chunk[recording::kChunkTypeAt] == static_cast<char>(recording::ChunkType::kRanges) && ++ranges == 10)
      bytes[at + 40] ^= 1;
    at += chunk.size();
  }
  write_bytes(path, bytes);
  stageline::Diagnostics diagnostics;
  const auto all = folder.read(&diagnostics);
  REQUIRE(all.size() == 1);
  CHECK(all[0].content.rows.size() == 2980);
  CHECK(all[0].lost_slots == 20);
  CHECK(diagnostics.count("recording.damaged") > 0);
}

TEST_CASE("headers that lie cost no more than reading") {
  RecordFolder folder;
  // A megabyte of right headers, each of which claims 64 KiB that belong to others.
  std::string header(32, '\0'), bytes;
  header.replace(0, 4, "SLCK");
  header[4] = 4;
  const uint32_t claimed = recording::kMaxPayloadBytes;
  header.replace(8, 4, reinterpret_cast<const char*>(&claimed), 4);
  const uint32_t crc = stageline::crc32c(header);
  header.replace(12, 4, reinterpret_cast<const char*>(&crc), 4);
  for (int i = 0; i < 32768; ++i) bytes += header;
  const std::string path = folder.path() + "/h.r00000.p1.1.000.slrec";
  write_bytes(path, bytes);
  recording::ChunkCounts counts;
  CHECK(chunks_of(path, &counts).empty());
  // 64 MiB of sums, then whole steps: not 2 GiB.
  CHECK(counts.damaged < 1200);
}

TEST_CASE("recover makes a whole file of a killed process's remains") {
  RecordFolder folder, out;
  Shared<int> ready;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    slr_config c = folder.config(4);
    c.flush_ms = 60'000;
    if (slr_init(&c) != 0) _exit(1);
    const slr_str name = slr_intern("work", 4);
    for (int i = 0; i < 5000; ++i) {
      slr_job job = SLR_JOB(SLR_SEND_FORWARD, i, 0);
      job.name = name;
      job.peer = i % 2 ? 3 : -1;  // records of one place and of two
      slr_push_job(0, &job);
      slr_pop(0);
      if (i == 2500) slr_flush(5000);
      if (i == 4900)
        usleep(500'000);  // what is due is written by now; the rest, less than a quarter of the ring, is not
    }
    slr_push(0, name);
    *ready = 1;
    for (;;) pause();
  }
  while (*ready == 0) usleep(1000);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const auto before = folder.read_one();
  auto source = stageline::scan_source({folder.path()});
  REQUIRE(source);
  stageline::Diagnostics diagnostics;
  const auto recovered = recording::recover(*source, out.path(), diagnostics);
  REQUIRE_MESSAGE(recovered, (recovered ? "" : recovered.error().text()));
  REQUIRE(recovered->size() == 1);
  CHECK(recovered->at(0).ranges == 5000);
  CHECK(recovered->at(0).from_memory > 0);
  CHECK(recovered->at(0).unfinished == 1);
  const auto after = out.read_one();
  CHECK(after.content.ended);
  CHECK(after.meta.rank == 4);
  CHECK(after.hot_path.empty());
  CHECK(after.lost_slots == 0);
  REQUIRE(after.content.rows.size() == 5001);  // with the open one
  for (size_t i = 0; i < 5000; ++i) {
    const auto &a = before.content.rows[i], &b = after.content.rows[i];
    CHECK((a.micro_batch == b.micro_batch && a.start == b.start && a.end == b.end && a.peer == b.peer &&
           a.name == b.name));
  }
  CHECK(after.content.names == before.content.names);
  CHECK(after.content.rows.back().type == recording::RecordType::kOpenRange);
  // Once more: nothing is overwritten.
  CHECK(!recording::recover(*source, out.path(), diagnostics));
}
