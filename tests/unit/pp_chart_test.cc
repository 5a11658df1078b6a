#include <doctest/doctest.h>

#include <set>

#include "compat/msprof/cell_ranks.h"
#include "compat/msprof/communication.h"
#include "compat/msprof/dualpipev_rows.h"
#include "model/message_names.h"

using namespace stageline;

TEST_CASE("pp_chart: DualPipeV's rows are as many as counted, and every micro-batch goes each way once a chunk") {
  for (int32_t p = 1; p <= 6; ++p)
    for (int32_t m = 2 * p; m <= 2 * p + 5; ++m)
      for (int32_t r = 0; r < p; ++r) {
        const std::vector<DualPipeVRow> rows = dualpipev_rows(p, m, r);
        CAPTURE(p);
        CAPTURE(m);
        CAPTURE(r);
        REQUIRE(static_cast<int64_t>(rows.size()) == dualpipev_row_count(p, m, r));
        std::multiset<int32_t> forwards, backwards;
        int last_phase = 0, logits = 0;
        for (const DualPipeVRow& row : rows) {
          CHECK(row.phase >= last_phase);
          last_phase = row.phase;
          logits += row.what == DualPipeVRow::What::kLogits;
          if (row.forward >= 0) forwards.insert(row.forward);
          if (row.backward >= 0 && row.what != DualPipeVRow::What::kWeight) backwards.insert(row.backward);
        }
        std::multiset<int32_t> all;
        for (int32_t i = 0; i < 2 * m; ++i) all.insert(i);
        CHECK(forwards == all);
        CHECK(backwards == all);
        CHECK(logits == (r == 0 ? m : 0));
      }
  CHECK(dualpipev_row_count(4, 10, 0) == 44);  // the figures of the guide
  CHECK(dualpipev_row_count(4, 10, 1) == 32);
  CHECK(dualpipev_row_count(4, 10, 2) == 30);
  CHECK(dualpipev_row_count(4, 10, 3) == 29);
  CHECK(dualpipev_row_count(4, 7, 0) == 35);
  CHECK(dualpipev_row_count(4, 6, 0) == 0);
  CHECK(dualpipev_row_count(4, int64_t{1} << 60, 0) == 0);
  CHECK(dualpipev_row_count(int64_t{1} << 60, 10, 0) == 0);
  CHECK(dualpipev_row_count(0, 10, 0) == 0);
}

namespace {

PeerOp transfer(PeerOp::Kind kind, int64_t src, int64_t dst, int64_t end, int64_t row) {
  return {kind, src, dst, end - 5, end, "377", "group", {row}};
}

}  // namespace

TEST_CASE("pp_chart: transfers pair where both ends end together, whichever end lost some") {
  for (const bool head : {true, false})
    for (const bool sender_lost : {true, false}) {
      RankPeers a{0, "[0, 1]", {}}, b{1, "[0, 1]", {}};
      const int64_t skew = 1'000'000;  // between the clocks
      for (int64_t i = 0; i < 10; ++i) {
        const bool lost = head ? i < 3 : i >= 7;
        const int64_t end = 100 * i * i + 50;  // no two distances alike
        if (!lost || !sender_lost) a.ops.push_back(transfer(PeerOp::Kind::kSend, 0, 1, end, i));
        if (!lost || sender_lost) b.ops.push_back(transfer(PeerOp::Kind::kReceive, 0, 1, end + skew, i));
      }
      const PairedLinks links = pair_links({a, b});
      CHECK(links.pairs == 7);
      REQUIRE(links.by_rank[0].size() == 7);
      CHECK(links.by_rank[0] == links.by_rank[1]);  // the same number stands for the same transfer
      CHECK(links.remarks.size() == 1);
    }
}

TEST_CASE("pp_chart: links are of two ends, also of groups of one name and of batches") {
  // Two pipelines whose groups bear one name, and a batch each way.
  std::vector<RankPeers> ranks;
  for (int32_t r = 0; r < 4; ++r) {
    RankPeers peers{r, r % 2 == 0 ? "[0, 2]" : "[1, 3]", {}};
    peers.ops.push_back(transfer(r < 2 ? PeerOp::Kind::kSend : PeerOp::Kind::kReceive, 0, 1, 100, 0));
    peers.ops.push_back(transfer(PeerOp::Kind::kBatch, r < 2 ? 0 : 1, r < 2 ? 1 : 0, 200, 1));
    ranks.push_back(peers);
  }
  PairedLinks links = pair_links(ranks);
  CHECK(links.pairs == 4);
  std::multiset<std::string> texts;
  for (const auto& rank : links.by_rank)
    for (const auto& [row, text] : rank) texts.insert(text);
  for (const std::string& text : texts) CHECK(texts.count(text) == 2);
  CHECK(texts.count("377_0_1_0") == 2);
  // Nothing distinguishes them: no link is better than a wrong one.
  for (RankPeers& rank : ranks) rank.pipeline.clear();
  links = pair_links(ranks);
  CHECK(links.pairs == 0);
  CHECK(!links.remarks.empty());
}

TEST_CASE("pp_chart: the tag of a group") {
  CHECK(hccl_group_id("10.0.0.1%eth0_60000_0_1738895521183247") == "377");
  CHECK(hccl_group_id("group_name_0") == "612");
  CHECK(hccl_group_id("") == "0");
  CHECK(hccl_group_id("\xff\xfe").size() <= 3);
}
