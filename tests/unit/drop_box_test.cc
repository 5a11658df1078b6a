#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "server/http/http_site.h"

namespace stageline {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a dropped file's name never leads out of its drop, and files of one drop stay together") {
  std::string folder = (fs::temp_directory_path() / "stageline-drop-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  DropBox box(folder);
  for (const char* name : {"", ".", "..", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "./a", "a/.", "a\nb"})
    CHECK_MESSAGE(!box.place(0, name), name);
  CHECK(!box.place(0, std::string(300, 'a')));
  CHECK(!box.place(0, std::string("a\0b", 3)));
  CHECK(!box.place(7, "a"));  // there is no such drop
  const auto first = box.place(0, "run/machine0/workerlog.0");
  REQUIRE(first);
  CHECK(first->path == folder + "/drop-1/run/machine0/workerlog.0");
  CHECK(fs::is_directory(folder + "/drop-1/run/machine0"));
  CHECK(*box.path_of(1) == folder + "/drop-1/run");
  const auto second = box.place(first->drop, "run/machine1/workerlog.1");
  REQUIRE(second);
  CHECK(second->drop == first->drop);
  CHECK(*box.path_of(1) == folder + "/drop-1/run");
  REQUIRE(box.place(1, "more.json"));
  CHECK(*box.path_of(1) == folder + "/drop-1");  // no single file or folder contains all
  CHECK(box.name_of(1) == "run");
  const auto other = box.place(0, "trace.json");
  REQUIRE(other);
  CHECK(other->drop == 2);
  CHECK(*box.path_of(2) == folder + "/drop-2/trace.json");
  CHECK(box.take_bytes(DropBox::kMaxBytes));
  CHECK(!box.take_bytes(1));
  box.give_back(DropBox::kMaxBytes);
  CHECK(box.take_bytes(1));
  CHECK(!DropBox("").place(0, "a"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace stageline
