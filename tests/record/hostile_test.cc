// Programs that take away the recorder's descriptors and files, or were built for another recorder.
#include <fcntl.h>

#include <cstddef>
#include <cstring>
#include <thread>

#include "record_fixture.h"

using recording::RecordType;

namespace {

void record_jobs(int first, int count) {
  for (int i = first; i < first + count; ++i) {
    slr_job job = SLR_JOB(SLR_FORWARD, i, 0);
    slr_push_job(0, &job);
    slr_pop(0);
  }
}

}  // namespace

TEST_CASE("a program that closes all descriptors keeps its own files, and its recording") {
  RecordFolder folder, other;
  constexpr int kFiles = 8;
  const auto path_of = [&](int i) { return other.path() + "/mine" + std::to_string(i); };
  CHECK(in_child([&] {
          slr_config c = folder.config();
          if (slr_init(&c) != 0) return 1;
          record_jobs(0, 100);
          for (int fd = 3; fd < 256; ++fd) close(fd);
          int mine[kFiles];  // with the recorder's numbers among them
          for (int i = 0; i < kFiles; ++i) {
            mine[i] = open(path_of(i).c_str(), O_RDWR | O_CREAT, 0644);
            if (write(mine[i], "precious", 8) != 8) return 2;
          }
          std::thread([] { record_jobs(100, 100); }).join();  // a new ring: the hot file grows
          if (slr_flush(60'000) != 0) return 3;
          slr_shutdown();
          for (const int fd : mine)
            if (write(fd, "!", 1) != 1) return 4;  // and they were not closed
          return 0;
        }) == 0);
  for (int i = 0; i < kFiles; ++i) {
    std::ifstream in(path_of(i));
    CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == "precious!");
  }
  const recording::Recording r = folder.read_one();
  CHECK(count_rows(r, RecordType::kRange) == 200);
  CHECK(r.content.ended);
  CHECK(folder.files(".slhot").empty());
}

TEST_CASE("a file that is deleted under its recording is followed by another") {
  RecordFolder folder;
  CHECK(in_child([&] {
          slr_config c = folder.config();
          if (slr_init(&c) != 0) return 1;
          record_jobs(0, 100);
          if (slr_flush(60'000) != 0) return 2;
          unlink(slr_path());
          record_jobs(100, 50);
          if (slr_flush(60'000) != 0) return 3;
          record_jobs(150, 50);
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  REQUIRE(count_rows(r, RecordType::kRange) == 100);
  for (int i = 0; i < 100; ++i) CHECK(r.content.rows[static_cast<size_t>(i)].micro_batch == 100 + i);
  CHECK(r.content.ended);
}

TEST_CASE("a folder that is deleted under a recording harms neither program nor exit") {
  RecordFolder folder;
  CHECK(in_child([&] {
          slr_config c = folder.config();
          const std::string below = folder.path() + "/below";
          c.dir = below.c_str();
          if (slr_init(&c) != 0) return 1;
          record_jobs(0, 100);
          // The writer may make a file while the folder is emptied.
          for (std::error_code failed; std::filesystem::exists(below);) std::filesystem::remove_all(below, failed);
          std::thread([] { record_jobs(100, 100); }).join();
          if (slr_flush(200) != 1) return 2;  // it could not, and says so
          return write_fails() ? 0 : 3;
        }) == 0);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("programs built with an older or a newer header: structures end where they say") {
  RecordFolder folder;
  CHECK(in_child([&] {
          slr_config c = folder.config(6);
          c.size = offsetof(slr_config, world);  // an older one, with something else behind it
          c.world = c.stage = c.pp = 77;
          c.ring_kb = 3;
          if (slr_init(&c) != 0) return 1;
          struct {
            slr_job job;
            int64_t newer[4];
          } larger = {SLR_JOB(SLR_BACKWARD, 3, 1), {9, 9, 9, 9}};
          larger.job.size = sizeof larger;
          slr_push_job(0, &larger.job);
          slr_pop(0);
          slr_statistics s;
          memset(&s, 0x5a, sizeof s);
          s.size = offsetof(slr_statistics, written_bytes);
          slr_stats(&s);
          if (s.records != 1 || s.written_bytes != 0x5a5a5a5a5a5a5a5a) return 2;
          memset(&s, 0x5a, sizeof s);
          s.size = 2;  // of no version
          slr_stats(&s);
          return s.recording == 0x5a5a5a5a ? 0 : 3;
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(r.meta.rank == 6);
  CHECK(r.meta.stage == -1);
  CHECK(r.meta.pp == 0);
  REQUIRE(r.content.rows.size() == 1);
  CHECK(r.content.rows[0].kind == SLR_BACKWARD);
  CHECK(r.content.rows[0].micro_batch == 3);
}
