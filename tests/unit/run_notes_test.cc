#include "server/page/run_notes.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "base/input.h"
#include "base/output_file.h"
#include "readers/reader.h"
#include "unit/reader_fixture.h"

using namespace stageline;

namespace {

// Works as the viewer's companion: compares before it replaces. The companion is a separate process, so it does not use
// what the viewer read.
Result<std::optional<std::string>> keep_file(const std::string& path, const std::string& before,
                                             const std::string& bytes) {
  const Result<std::string> read = read_all(path, 10'000);
  std::string now = read ? *read : "";
  if (now != before) return std::optional(std::move(now));
  std::ofstream(path, std::ios::binary) << bytes;
  return std::optional<std::string>();
}

}  // namespace

TEST_CASE("notes: they stand beside the run, in its own time") {
  CHECK(notes_path({"-"}).empty());
  CHECK(notes_path({"https://host/run.json"}).empty());
  CHECK(notes_path({"/runs/a/"}) == "/runs/a.stageline-notes.json");
  CHECK(notes_path({"/runs/a/rank0.json", "/runs/a/rank1.json"}) == "/runs/a/rank0.json.stageline-notes.json");
  const Folder folder;
  const std::string path = notes_path({folder.path() + "/run"});
  RunNotes notes(path, keep_file);
  CHECK(notes.json(0).find("\"keeps\":true") != std::string::npos);
  REQUIRE(notes.take(R"({"notes": [{"t": 5000, "text": "checkpoint </script>"}, {"t": -3, "text": "检查"}]})",
                     1'760'000'000'123'456'789));
  CHECK(read_all(path, 10'000)->find("\"at_ns\":1760000000123461789") != std::string::npos);
  // The next one that opens the run has them, from its own zero on.
  const RunNotes next(path, keep_file);
  CHECK(next.json(1'760'000'000'123'456'789 + 1000)
            .find(R"({"t":4000,"text":"checkpoint <\/script>"},{"t":-1003,"text":"检查"})") != std::string::npos);
  // A report reads and does not keep.
  RunNotes reading(path);
  CHECK(reading.json(0).find("\"keeps\":false") != std::string::npos);
  CHECK_FALSE(reading.take(R"({"notes": []})", 0));
}

TEST_CASE("notes: what is no list of notes is refused, and what stands there is left alone") {
  const Folder folder;
  const std::string path = notes_path({folder.path() + "/run"});
  int kept = 0;
  const auto keep = [&kept](const std::string&, const std::string&, const std::string&) {
    ++kept;
    return Result<std::optional<std::string>>(std::optional<std::string>());
  };
  RunNotes notes(path, keep);
  for (const char* body : {"", "[]", "{\"notes\": 1}", "{\"notes\": [{\"t\": \"x\"}]}", "{\"notes\": [",
                           "{\"notes\": [{\"text\": \"no time\"}]}"}) {
    CAPTURE(std::string(body));
    CHECK_FALSE(notes.take(body, 0));
  }
  CHECK_FALSE(
      notes.take("{\"notes\": [{\"t\": 1, \"text\": \"" + std::string(RunNotes::kMaxText + 1, 'a') + "\"}]}", 0));
  CHECK(kept == 0);
  REQUIRE(write_file(path, "{\"somebody\": \"else's\"}"));
  RunNotes foreign(path, keep);
  CHECK(foreign.json(0).find("\"why_not\":\"unreadable\"") != std::string::npos);
  CHECK_FALSE(foreign.take("{\"notes\": []}", 0));
  CHECK(kept == 0);
}

TEST_CASE("notes: two viewers of a run lose none of theirs, and no file of somebody else") {
  const Folder folder;
  const std::string path = notes_path({folder.path() + "/run"});
  RunNotes alice(path, keep_file), bob(path, keep_file);
  REQUIRE(alice.take(R"({"notes": [{"t": 1, "text": "alice"}]})", 0));
  REQUIRE(bob.take(R"({"notes": [{"t": 2, "text": "bob"}]})", 0));
  CHECK(bob.json(0).find(R"({"t":2,"text":"bob"},{"t":1,"text":"alice"})") != std::string::npos);
  // Alice, who has not seen Bob's note, removes hers and adds another.
  REQUIRE(alice.take(R"({"notes": [{"t": 3, "text": "again"}]})", 0));
  CHECK(alice.json(0).find(R"([{"t":3,"text":"again"},{"t":2,"text":"bob"}])") != std::string::npos);
  std::ofstream(path, std::ios::binary) << "my own text\n";
  CHECK_FALSE(alice.take(R"({"notes": []})", 0));
  CHECK(*read_all(path, 100) == "my own text\n");
}

TEST_CASE("notes: a folder of traces is read without them") {
  const Folder folder;
  REQUIRE(write_file(folder.path() + "/rank0.json", "{}"));
  REQUIRE(write_file(folder.path() + "/rank0.json.stageline-notes.json", "{}"));
  const Result<Source> source = scan_source({folder.path()});
  REQUIRE(source);
  CHECK(source->files.size() == 1);
}
