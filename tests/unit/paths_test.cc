// Titles and shares that several commands read from paths and flags.
#include "cli/paths.h"

#include <doctest/doctest.h>

#include "cli/flags.h"

using namespace stageline;

TEST_CASE("a run is named after its first input, without what says its format") {
  CHECK(run_name({}) == "run");
  CHECK(run_name({"logs/run42"}) == "run42");
  CHECK(run_name({"a/trace.json.gz"}) == "trace");
  CHECK(run_name({"a/trace.json"}) == "trace");
  CHECK(run_name({".json"}) == ".json");
  CHECK(run_name({"."}) == "run");
  CHECK(run_name({"a", "b", "c", "d"}) == "a + 3 more");
}

TEST_CASE("a share is a number of per cent, with or without the sign") {
  const auto share = [](const char* text) {
    Arguments arguments;
    arguments.set("fail-on", text);
    return arguments.share("fail-on");
  };
  CHECK(**share("3%") == doctest::Approx(0.03));
  CHECK(**share(" 3 % ") == doctest::Approx(0.03));
  CHECK(**share("0.5") == doctest::Approx(0.005));
  CHECK_FALSE(*Arguments().share("fail-on"));
  for (const char* text : {"", "x", "-1", "1e9", "3%%", "nan"}) CHECK_MESSAGE(!share(text), text);
}

TEST_CASE("folders that a flag names have to be there") {
  const auto real = real_folders({"/"}, "root");
  REQUIRE(real);
  CHECK(*real == std::vector<std::string>{"/"});
  CHECK(real_folders({"/no/such/folder"}, "root").error().code == ErrorCode::kNotFound);
}
