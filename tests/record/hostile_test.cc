// Programs that take away the recorder's descriptors and files, or were built for another recorder.
#include <fcntl.h>
#include <sys/resource.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <random>
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

TEST_CASE("a program whose recording is cut, overwritten or taken away goes on") {
  constexpr int kRecordings = 50, kMischiefs = 20;
  RecordFolder folder;
  const int code = in_child([&] {
    std::mt19937 random(7);
    const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
    std::atomic<bool> over{false};
    std::atomic<long> done{0};
    const auto work = [&] {
      for (int i = 0; !over; ++i, ++done) {
        slr_job job = SLR_JOB(SLR_FORWARD, i % 8, 0);
        slr_step(i / 16);
        const slr_range range = slr_begin(0, &job);
        slr_push(0, slr_intern("part", 4));
        if (i % 64 == 0) std::thread([] { record_jobs(0, 1); }).join();  // another ring
        slr_pop(0);
        slr_end(range);
      }
    };
    std::thread first(work), second(work);
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, 2);  // it says each time that the recording has ended
    for (int r = 0; r < kRecordings; ++r) {
      slr_config c = folder.config();
      for (int tries = 0; slr_init(&c) > 1 && tries < 500; ++tries) usleep(10'000);
      for (int m = 0; m < kMischiefs; ++m) {
        std::vector<std::string> files = folder.files(".slhot");
        const std::vector<std::string> cold = folder.files(".slrec");
        files.insert(files.end(), cold.begin(), cold.end());
        if (files.empty()) break;
        const std::string path = files[below(files.size())];
        const auto size = static_cast<size_t>(std::filesystem::file_size(path));
        const size_t kind = below(8);
        if (kind == 0) truncate(path.c_str(), 0);
        if (kind == 1) truncate(path.c_str(), static_cast<off_t>(below(size + 1)));
        if (kind == 2) unlink(path.c_str());
        if (kind == 3) rename(path.c_str(), (path + ".away").c_str());
        if (kind >= 4) {
          std::string noise(1 + below(size_t{1} << 16), '\0');
          for (char& byte : noise) byte = static_cast<char>(kind == 4 ? 0xff : random());
          const int fd = open(path.c_str(), O_WRONLY);
          // Takes the header, or the first rings.
          const size_t at = kind == 5 ? 0 : below(size_t{4} << 20);
          if (fd >= 0 && pwrite(fd, noise.data(), noise.size(), static_cast<off_t>(at)) < 0) m = kMischiefs;
          close(fd);
        }
        const long before = done;
        while (done < before + 50) std::this_thread::yield();
      }
      slr_flush(20);
      slr_shutdown();
      for (const auto& entry : std::filesystem::directory_iterator(folder.path())) unlink(entry.path().c_str());
    }
    over = true;
    first.join();
    second.join();
    return 0;
  });
  CHECK(code == 0);
}

TEST_CASE("a limit of the size of files ends a recording and not its program") {
  for (const rlim_t limit : {rlim_t{0}, rlim_t{100}, rlim_t{1} << 16, rlim_t{1} << 20, rlim_t{50} << 20}) {
    CAPTURE(limit);
    RecordFolder folder;
    CHECK(in_child([&] {
            const struct rlimit max = {limit, limit};
            setrlimit(RLIMIT_FSIZE, &max);
            dup2(open("/dev/null", O_WRONLY), 2);
            slr_config c = folder.config();
            slr_init(&c);
            record_jobs(0, 20'000);
            std::thread([] { record_jobs(0, 20'000); }).join();
            slr_flush(1'000);
            slr_shutdown();
            return 0;
          }) == 0);
  }
}
