#include "base/output_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/input_files.h"

namespace stageline {
namespace {

namespace fs = std::filesystem;

struct OutputFolder {
  fs::path path;
  OutputFolder() {
    std::string name = (fs::temp_directory_path() / "stageline-output-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~OutputFolder() { fs::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
  size_t count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void put_text(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

TEST_CASE("a set of files appears when it is committed, all at once") {
  const OutputFolder folder;
  put_text(folder / "b", "old");
  {
    OutputSet set;
    REQUIRE(write_file(folder / "a", "new a"));
    REQUIRE(write_file(folder / "b", "new b"));
    CHECK_FALSE(fs::exists(folder / "a"));
    CHECK(text_of(folder / "b") == "old");
    REQUIRE(set.commit());
  }
  CHECK(text_of(folder / "a") == "new a");
  CHECK(text_of(folder / "b") == "new b");
  CHECK(folder.count() == 2);
}

TEST_CASE("a set that is not committed leaves what was there") {
  const OutputFolder folder;
  put_text(folder / "b", "old");
  {
    const OutputSet set;
    REQUIRE(write_file(folder / "a", "new a"));
    REQUIRE(write_file(folder / "b", "new b"));
  }
  CHECK(text_of(folder / "b") == "old");
  CHECK(folder.count() == 1);
}

TEST_CASE("a set of which one file cannot take its name takes the others back") {
  const OutputFolder folder;
  put_text(folder / "a", "old a");
  {
    OutputSet set;
    REQUIRE(write_file(folder / "a", "new a"));
    REQUIRE(write_file(folder / "b", "new b"));
    REQUIRE(write_file(folder / "c", "new c"));

    fs::create_directory(folder / "c");
    put_text(folder / "c/inside", "kept");
    fs::permissions(folder / "c", fs::perms::all);
    // The third file has no bytes to give: they were removed.
    for (const fs::directory_entry& entry : fs::directory_iterator(folder.path))
      if (entry.path().filename().string().starts_with("c.partial.")) fs::remove(entry.path());
    CHECK_FALSE(set.commit());
  }
  CHECK(text_of(folder / "a") == "old a");
  CHECK_FALSE(fs::exists(folder / "b"));
  CHECK(text_of(folder / "c/inside") == "kept");
  CHECK(folder.count() == 2);
}

TEST_CASE("a set cannot contain two files of one name") {
  const OutputFolder folder;
  OutputSet set;
  REQUIRE(write_file(folder / "a", "one"));
  const Status second = write_file(folder / "a", "two");
  REQUIRE_FALSE(second);
  CHECK(second.error().where.file == folder / "a");
}

TEST_CASE("a file that becomes an input while the output is written is spared") {
  const OutputFolder folder;
  put_text(folder / "a", "measured");
  Result<OutputFile> out = OutputFile::create(folder / "a");
  REQUIRE(out);
  out->write("report");
  note_input_file(folder / "a");
  const Status done = out->commit();
  REQUIRE_FALSE(done);
  CHECK(done.error().what.find("input") != std::string::npos);
  CHECK(text_of(folder / "a") == "measured");
}

TEST_CASE("an output may get the inode number of a removed input") {
  const OutputFolder folder;
  put_text(folder / "a", "measured");
  note_input_file(folder / "a");
  fs::remove(folder / "a");
  for (int i = 0; i < 20; ++i) {  // file systems give numbers again soon, and not at a time that they say
    put_text(folder / "b", "old");
    REQUIRE(write_file(folder / "b", "new"));
  }
  CHECK(text_of(folder / "b") == "new");
}

TEST_CASE("an unfinished file that was replaced meanwhile does not get the final name") {
  const OutputFolder folder;
  Result<OutputFile> out = OutputFile::create(folder / "a");
  REQUIRE(out);
  out->write("ours");
  fs::remove(out->partial_path());
  put_text(out->partial_path(), "theirs");
  CHECK_FALSE(out->commit());
  CHECK_FALSE(fs::exists(folder / "a"));
}

TEST_CASE("pages and pictures are not protected as measurements") {
  for (const char* head :
       {"<!doctype html>", "<svg xmlns", "<?xml version=\"1.0\"?><svg", "\x89PNG\r\n\x1a\n", "%PDF-1.5"})
    CHECK(is_page_or_picture(head));
  for (const char* head : {"{\"traceEvents\":[]}", "", "stage,kind", "<?xml version=\"1.0\"?><other>"})
    CHECK_FALSE(is_page_or_picture(head));
}

}  // namespace
}  // namespace stageline
