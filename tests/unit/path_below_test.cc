#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/input_files.h"

namespace stageline {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a path from outside may lead only below the roots, in whatever way it is written") {
  std::string base = (fs::temp_directory_path() / "stageline-below-XXXXXX").string();
  REQUIRE(mkdtemp(base.data()) != nullptr);
  base = fs::canonical(base).string();
  for (const char* folder : {"/root/run", "/root/linked", "/root-beside"}) fs::create_directories(base + folder);
  for (const char* file : {"/root/run/a", "/secret", "/root-beside/b"}) std::ofstream(base + file) << "text";
  fs::create_symlink(base + "/secret", base + "/root/linked/out");
  fs::create_symlink(base + "/root/run", base + "/root/in");
  const std::vector<std::string> roots = {base + "/root"};
  CHECK(*path_below(roots, base + "/root/run/a") == base + "/root/run/a");
  CHECK(*path_below(roots, base + "/root/run/../run") == base + "/root/run");
  CHECK(*path_below(roots, base + "/root/in/a") == base + "/root/run/a");
  for (const char* path : {"", "/..", "/secret", "/root/../secret", "/root/linked/out", "/root/linked", "/root",
                           "/root-beside", "/root-beside/b", "/root/nothing"})
    CHECK_MESSAGE(!path_below(roots, base + path), path);
  // Files elsewhere and missing files give the same message.
  CHECK(path_below(roots, base + "/secret").error().what == path_below(roots, base + "/nothing").error().what);
  CHECK(!path_below(roots, base + "/root/run/a" + std::string("\0b", 2)));
  CHECK(path_below(roots, base + "/root/run", 1));
  std::ofstream(base + "/root/run/b") << "text";
  CHECK(!path_below(roots, base + "/root/run", 1));
  CHECK(is_below({"/"}, "/etc"));
  CHECK(!is_below({"/a"}, "/ab"));
  fs::remove_all(base);
}

}  // namespace
}  // namespace stageline
