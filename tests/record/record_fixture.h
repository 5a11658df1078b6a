// Recording in a process of its own, so that every test begins without a recorder, and reading it here.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "readers/reader.h"
#include "readers/recording/recordings.h"
#include "stageline_record.h"

namespace recording = stageline::recording;

class RecordFolder {
 public:
  RecordFolder() {
    char pattern[] = "/tmp/stageline_record_XXXXXX";
    REQUIRE(mkdtemp(pattern) != nullptr);
    path_ = pattern;
  }
  RecordFolder(const RecordFolder&) = delete;
  ~RecordFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  slr_config config(int32_t rank = 0) const {
    slr_config c = SLR_CONFIG_INIT;
    c.dir = path_.c_str();
    c.rank = rank;
    c.max_overhead = -1;
    return c;
  }
  std::vector<std::string> files(const std::string& ending) const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      if (entry.path().string().ends_with(ending)) out.push_back(entry.path());
    std::sort(out.begin(), out.end());
    return out;
  }
  std::vector<recording::Recording> read(stageline::Diagnostics* diagnostics = nullptr) const {
    stageline::Diagnostics ignored;
    auto source = stageline::scan_source({path_});
    REQUIRE(source);
    return recording::read_recordings(*source, nullptr, diagnostics ? *diagnostics : ignored);
  }
  recording::Recording read_one() const {
    auto all = read();
    REQUIRE(all.size() == 1);
    return std::move(all[0]);
  }

 private:
  std::string path_;
};

// Memory that a child and its parent both see.
template <class T> class Shared {
 public:
  explicit Shared(size_t count = 1)
      : bytes_(count * sizeof(T)),
        data_(static_cast<T*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    REQUIRE(data_ != MAP_FAILED);
  }
  Shared(const Shared&) = delete;
  ~Shared() { munmap(data_, bytes_); }
  T& operator[](size_t i) { return data_[i]; }
  T* operator->() { return data_; }
  T& operator*() { return *data_; }

 private:
  size_t bytes_;
  T* data_;
};

// Runs `body` in a child that leaves through exit() (so that the recorder closes its files), and returns wait()'s
// status.
inline int in_child(const std::function<int()>& body) {
  fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Doctest's own exit handlers are of the parent.
    const int result = body();
    slr_shutdown();
    _exit(result);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// wait()'s status as a shell says it; −1 where the child does not end within a minute and is killed.
inline int end_of(pid_t child) {
  for (int i = 0; i < 60'000; ++i) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    usleep(1000);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return -1;
}

inline int64_t count_rows(const recording::Recording& r, recording::RecordType type) {
  return std::count_if(r.content.rows.begin(), r.content.rows.end(),
                       [type](const recording::Row& row) { return row.type == type; });
}
inline slr_statistics stats_now() {
  slr_statistics s{};
  s.size = sizeof s;
  slr_stats(&s);
  return s;
}
// Whether a write has failed, or does when the writer's turn comes.
inline bool write_fails() {
  for (int i = 0; i < 60'000 && stats_now().write_errors == 0; ++i) usleep(1000);
  return stats_now().write_errors > 0;
}
inline uint64_t dropped_records(const slr_statistics& s) {
  uint64_t sum = 0;
  for (int reason = 0; reason < SLR_DROP_CAPTURE; ++reason) sum += s.drops[reason];
  return sum;
}
inline bool slow_tests() { return getenv("STAGELINE_SLOW_TESTS") != nullptr; }
