#include "cli/confine.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

namespace stageline {
namespace {

namespace fs = std::filesystem;

bool can_open(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

// Returns the result of a child process: a process that is confined stays so.
int in_process(const std::function<int()>& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(body());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

TEST_CASE("a confined process reads its inputs, writes its private folder, and reaches nothing else") {
  std::string base = (fs::temp_directory_path() / "stageline-confine-XXXXXX").string();
  REQUIRE(mkdtemp(base.data()) != nullptr);
  for (const char* folder : {"/run/deep", "/home"}) fs::create_directories(base + folder);
  for (const char* file : {"/run/a", "/run/deep/b", "/home/secret", "/home/linked"})
    std::ofstream(base + file) << "text";
  fs::create_symlink(base + "/home/linked", base + "/run/link");
  const int code = in_process([&] {
    setenv("TMPDIR", base.c_str(), 1);
    Companion companion;
    const Result<Confined> confined = confine_to({base + "/run", base + "/run/link", base + "/nothing"}, companion);
    if (!confined) return 1;
    if (*confined == Confined::kNoLandlock) return 77;
    int wrong = 0;
    const auto check = [&] {
      wrong += !can_open(base + "/run/a", O_RDONLY) || !can_open(base + "/run/deep/b", O_RDONLY);
      wrong += !can_open(base + "/run/link", O_RDONLY) || !can_open("/proc/self/status", O_RDONLY);
      wrong += can_open(base + "/home/secret", O_RDONLY) || can_open(base + "/home", O_RDONLY | O_DIRECTORY);
      wrong += can_open(base + "/run/a", O_WRONLY) || can_open(base + "/run/new", O_WRONLY | O_CREAT);
      wrong += can_open(base + "/home/new", O_WRONLY | O_CREAT) || ::unlink((base + "/run/a").c_str()) == 0;
      const std::string own = getenv("TMPDIR");
      wrong += own == base || !can_open(own + "/new", O_WRONLY | O_CREAT) || ::unlink((own + "/new").c_str()) != 0;
      can_open(own + "/left", O_WRONLY | O_CREAT);
    };
    check();
    std::thread(check).join();
    return wrong == 0 ? 0 : 2;
  });
  if (code == 77) MESSAGE("note: this kernel has no Landlock; the confinement was not tried");
  else CHECK(code == 0);
  // The companion removes the private folder once its program has ended.
  const auto folders = [&] { return std::distance(fs::directory_iterator(base), fs::directory_iterator()); };
  while (folders() > 2) std::this_thread::yield();
  CHECK(folders() == 2);
  fs::remove_all(base);
}

TEST_CASE("the companion does what it was told at its start and nothing else, whoever asks") {
  std::string base = (fs::temp_directory_path() / "stageline-companion-XXXXXX").string();
  REQUIRE(mkdtemp(base.data()) != nullptr);
  for (const char* folder : {"/runs", "/private", "/home"}) fs::create_directories(base + folder);
  std::ofstream(base + "/home/mine") << "mine";
  fs::create_symlink(base + "/home/mine", base + "/runs/link.stageline-notes.json");
  fs::create_directory_symlink(base + "/home", base + "/runs/folder");
  {
    Companion companion({fs::canonical(base + "/runs").string()});
    companion.remove_at_end(base + "/private");
    companion.remove_at_end(base + "/home");  // a second one is not removed
    for (const char* name :
         {"/runs/link.stageline-notes.json", "/runs/folder/x.stageline-notes.json", "/home/x.stageline-notes.json",
          "/runs/../home/x.stageline-notes.json", "/runs/notes.json"})
      CHECK_FALSE(companion.write_notes(base + name, "", "bytes"));
    const std::string notes = base + "/runs/a.stageline-notes.json";
    const auto first = companion.write_notes(notes, "", "one");
    REQUIRE(first);
    CHECK_FALSE(first->has_value());
    const auto late = companion.write_notes(notes, "", "two");  // it is not as expected any more
    REQUIRE(late);
    CHECK(*late == "one");
    CHECK(companion.write_notes(notes, "one", "two"));
  }
  std::ifstream mine(base + "/home/mine");
  CHECK(std::string(std::istreambuf_iterator<char>(mine), {}) == "mine");
  CHECK(std::distance(fs::directory_iterator(base + "/home"), fs::directory_iterator()) == 1);
  fs::remove_all(base);
}

}  // namespace
}  // namespace stageline
