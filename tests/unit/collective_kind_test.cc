// Sizes and factors as nccl-tests has them.
#include "model/collective_kind.h"

#include <doctest/doctest.h>

#include <vector>

using namespace stageline;
using enum CollectiveKind;

TEST_CASE("collectives: sizes and factors are those of nccl-tests") {
  struct Row {
    CollectiveKind kind;
    double factor;           // of 4 ranks
    int64_t of_count;        // the message of a call with a count of 100 bytes
    int64_t in, out, bytes;  // elements of 2 bytes on one rank, and the message
  };
  const std::vector<Row> rows = {{kAllReduce, 1.5, 100, 50, 50, 100},       {kAllGather, 0.75, 400, 50, 200, 400},
                                 {kReduceScatter, 0.75, 400, 200, 50, 400}, {kAllToAll, 0.75, 400, 200, 200, 400},
                                 {kBroadcast, 1, 100, 50, 50, 100},         {kReduce, 1, 100, 50, 50, 100},
                                 {kGather, 0.75, 400, 50, 0, 400},          {kScatter, 0.75, 400, 0, 50, 400},
                                 {kSendRecv, 1, 100, 50, 50, 100}};
  for (const Row& row : rows) {
    CAPTURE(collective_kind_name(row.kind));
    CHECK(bus_factor(row.kind, 4) == row.factor);
    CHECK(message_bytes(row.kind, 4, 100) == row.of_count);
    CHECK(message_bytes(row.kind, 4, row.in, row.out, 2) == row.bytes);
  }
  for (const CollectiveKind kind : {kAllReduce, kAllToAllV, kGather, kScatter}) CHECK(bus_factor(kind, 1) == 0);
  CHECK(message_bytes(kAllGather, 4, INT64_MAX / 2) == -1);  // does not fit
}
