// The dictionaries of base/chinese: names, sentences by template, sentences within sentences.
#include "base/chinese.h"

#include <doctest/doctest.h>

#include <string>

using namespace stageline;

TEST_CASE("chinese: names are looked up by key") {
  CHECK(chinese_name("table.steps") == "各步");
  CHECK(chinese_name("no.such.key").empty());
}

TEST_CASE("chinese: a sentence without places, and an unknown sentence") {
  CHECK(in_chinese("no steps are like this") == "no steps are like this");
  CHECK(in_chinese("one step tells no uncertainty: prices stand on it alone") ==
        "只有一步，没有不确定度：代价只依据这一步");
  CHECK(in_chinese("").empty());
}

TEST_CASE("chinese: places are carried over, and what fills them is looked up too") {
  CHECK(in_chinese("ranks 3 and 5 have no operator or cell \"F0\" in common") ==
        "rank 3 与 5 没有共同的算子或单元“F0”");
  CHECK(in_chinese("3 ranks were put on other ranks' clocks by compute gaps (576 matches): likely off by 175 µs at "
                   "worst, certainly within ± 606 µs") ==
        "3 个 rank 已按计算空隙对齐到其他 rank 的时钟（576 个匹配）：最坏可能偏差 175 µs，保证在 ± 606 µs 以内");
}

TEST_CASE("chinese: a place must not be empty, and a text that only begins like a template stays as it is") {
  CHECK(in_chinese("ranks  and 5 have no operator or cell \"F0\" in common").find("rank ") != std::string::npos);
  CHECK(in_chinese("rank 4 is beyond the") == "rank 4 is beyond the");
}

TEST_CASE("chinese: hostile texts are survived and long ones left as they are") {
  const std::string many(4000, ' '), longer = "rank " + std::string(100'000, 'x') + " is beyond the world size of 4";
  CHECK(in_chinese(many) == many);
  CHECK(in_chinese(longer) == longer);
  CHECK(in_chinese("{0} {1} {2}") == "{0} {1} {2}");
}
