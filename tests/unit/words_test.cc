#include "base/words.h"

#include <doctest/doctest.h>

namespace stageline {

TEST_CASE("a sentence inserts its arguments, asks whether they are set, and may have places within places") {
  Args args;
  args.set("worker", Text{"Rank 3", "rank 3"}).set("ratio", Text{"1.40×", "1.40 倍"}).set("stage", int64_t{2});
  args.flag("sometimes", false);
  const Text whole = words("rank.slow.title", args);
  CHECK(whole.en == "Rank 3 is slow (1.40× the other ranks of stage 2): check or replace that device");
  CHECK(whole.zh == "rank 3 的计算用时是第 2 级其他 rank 的 1.40 倍：请检查或更换该设备");
  args.flag("sometimes").set("slow_steps", int64_t{4}).set("steps", int64_t{9});
  CHECK(words("rank.slow.title", args).en.find("stage 2, in 4 of 9 steps): check") != std::string::npos);

  Args move;
  CHECK(words("stage.slow.do.move", move).en == "move layers off it");
  CHECK(words("stage.slow.do.move", move.flag("two").set("end", "split both")).en ==
        "move layers off them, or split both");
}

TEST_CASE("a sentence can ask whether a count is one, and texts are joined in both languages") {
  const Text sizes =
      words("schedule.sizes", Args().count("stages", 1).count("micro_batches", 12'000).set("ways", Text()));
  CHECK(sizes.en == "1 stage, 12\u202f000 micro-batches");
  CHECK(sizes.zh == "1 级，12\u202f000 个微批");
  const Text list = joined({{"a", "甲"}, {"b", "乙"}, {"c", "丙"}}, words("list.semicolon"));
  CHECK(list.en == "a; b; c");
  CHECK(list.zh == "甲；乙；丙");
  CHECK(joined({}, list).empty());
}

TEST_CASE("a value that looks like a place stays a value") {
  const Text text = words("worker", Args().set("rank", "{machine?x|y}").set("machine", "a|b}"));
  CHECK(text.en == "Rank {machine?x|y} (a|b})");
}

}  // namespace stageline
