// The dictionary of base/chinese: names of tables and columns, and fixed sentences of tables.
#include "base/chinese.h"

#include <doctest/doctest.h>

#include <string>

using namespace stageline;

TEST_CASE("chinese: names are looked up by key") {
  CHECK(chinese_name("table.steps") == "各步");
  CHECK(chinese_name("no.such.key").empty());
  CHECK(any_chinese_name("value.links."));
  CHECK_FALSE(any_chinese_name("value.no-such-table."));
}

TEST_CASE("chinese: fixed sentences of an analysis are looked up as a whole") {
  CHECK(chinese_sentence("slow sender and receiver") == "收发都慢");
  CHECK(chinese_sentence("slow sender and receivers").empty());
  CHECK(chinese_sentence("").empty());
  CHECK(chinese_sentence(std::string(100'000, 'x')).empty());
}
