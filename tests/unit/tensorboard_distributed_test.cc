#include "profile/tb_run.h"
#include "torch_traces.h"

using namespace stageline;

namespace {

using Row = std::vector<std::string>;
Row row_of(const Table& table, size_t row) {
  Row out;
  for (size_t c = 0; c < table.columns().size(); ++c) out.push_back(table.raw_text(row, c));
  return out;
}

Trace ranks_of(const std::vector<std::vector<std::string>>& ranks) {
  const Folder folder;
  std::vector<std::string> files;
  for (size_t r = 0; r < ranks.size(); ++r)
    files.push_back(folder.add("rank" + std::to_string(r) + ".json", torch_file(ranks[r], static_cast<int>(r))));
  return read_with("kineto", files);
}

std::string id(int external) { return "\"External id\":" + std::to_string(external); }
// Returns an operator with its id and the shape of one float tensor, on thread `tid`.
std::string op(const std::string& name, int ts, int dur, int external, const std::string& shape = "", int tid = 1) {
  const std::string input = shape.empty() ? "" : ",\"Input Dims\":[[" + shape + "]],\"Input type\":[\"float\"]";
  return torch_event("cpu_op", name, 100, tid, std::to_string(ts), std::to_string(dur), id(external) + input);
}
// A kernel of stream `stream` that belongs to the operator with that id.
std::string owned(const std::string& name, int ts, int dur, int external, int stream) {
  return torch_event("kernel", name, 0, stream, std::to_string(ts), std::to_string(dur),
                     launch_args(9000 + external, stream) + "," + id(external));
}
std::string nccl(int ts, int dur, const std::string& more, const std::string& name = "allreduce") {
  static int correlation = 100;
  return torch_event("kernel", "ncclDevKernel_Generic", 0, 9, std::to_string(ts), std::to_string(dur),
                     launch_args(++correlation, 9) + ",\"Collective name\":\"" + name +
                         "\",\"dtype\":\"Float\",\"In msg nelems\":1000,\"Out msg nelems\":1000,\"Group size\":2," +
                         more);
}
std::string group(int seq) {
  return R"("Process Group Name":"0","Process Group Ranks":"[0, 1]","Seq":)" + std::to_string(seq);
}

}  // namespace

TEST_CASE("computation, overlap, communication and waiting of two ranks") {
  const Trace trace =
      ranks_of({{work("gemm", "0", "50", 1), nccl(40, 60, group(1)), nccl(200, 5, group(2), "allgather")},
                {work("gemm", "0", "80", 1), nccl(80, 30, group(1))}});
  const auto tables = ask(trace, "tb-distributed");
  const Table& overlap = table_of(tables, "overlap-by-step");
  REQUIRE(overlap.row_count() == 2);
  //                          rank step  length    comp.    both     comm.    other
  CHECK(row_of(overlap, 0) == Row{"0", "", "205000", "40000", "10000", "55000", "100000", "0.15384615384615385"});
  CHECK(row_of(overlap, 1) == Row{"1", "", "110000", "80000", "0", "30000", "0", "0"});
  const Table& waits = table_of(tables, "waits-by-step");
  //                       rank step transfer  waiting  unknown
  CHECK(row_of(waits, 0) == Row{"0", "", "30000", "30000", "5000", "0.5", "0", "0"});
  CHECK(row_of(waits, 1) == Row{"1", "", "30000", "0", "0", "0", "0", "0"});
  const Table& calls = table_of(tables, "collectives");
  REQUIRE(calls.row_count() == 3);
  CHECK(row_of(calls, 1) ==
        Row{"0", "allreduce", "1", "4000", "4000", "60000", "60000", "1", "30000", "30000", "30000"});
  CHECK(cell(calls, "transfer_ns", "collective", "allgather").empty());
  const Table& sizes = table_of(tables, "collectives-by-size");
  CHECK(cell(sizes, "size_class", "collective", "allreduce") == "up to 4 KiB");
  CHECK(cell(sizes, "count", "collective", "allreduce") == "2");
  // 4000 B in 30 µs, and an all-reduce of two moves 2·(2−1)/2 of it over the bus.
  CHECK(cell(sizes, "algorithm_gbps", "collective", "allreduce") == "0.13333333333333333");
  CHECK(cell(sizes, "bus_gbps", "collective", "allreduce") == "0.13333333333333333");
}

TEST_CASE("collectives are matched by their ids, then by their numbers, then by order when the ranks agree in it") {
  // By Comms Id, whatever the order, and a send meets its receive.
  const auto ids = ask(ranks_of({{nccl(0, 10, "\"Comms Id\":\"a\""), nccl(20, 50, "\"Comms Id\":\"b\"", "send")},
                                 {nccl(0, 30, "\"Comms Id\":\"b\"", "recv"), nccl(40, 4, "\"Comms Id\":\"a\"")}}),
                       "tb-distributed");
  CHECK(row_of(table_of(ids, "waits"), 0) == Row{"0", "34000", "26000", "0", "0.43333333333333335", "30000", "20000"});
  CHECK(row_of(table_of(ids, "waits"), 1) == Row{"1", "34000", "0", "0", "0", "30000", "0"});
  // By ranks and sequence: messages have their own names and meet all the same.
  const auto messages = ask(ranks_of({{nccl(0, 10, group(7) + ",\"Dst Rank\":1", "send")},
                                      {nccl(0, 4, group(7) + ",\"Src Rank\":0", "recv")}}),
                            "tb-distributed");
  CHECK(cell(table_of(messages, "waits"), "synchronizing_ns") == "6000");
  // By order: kernels that say nothing, one more on rank 1 in the second step.
  const auto launched = [](int ts, int dur, int correlation) {
    return std::vector<std::string>{
        call("cudaLaunchKernel", std::to_string(ts), "1", correlation),
        work("ncclKernel_AllReduce_RING", std::to_string(ts + 2), std::to_string(dur), correlation, 9)};
  };
  std::vector<std::vector<std::string>> ranks(2);
  for (int r = 0; r < 2; ++r) {
    ranks[r] = {step(1, "0", "100"), step(2, "100", "100")};
    const std::vector<std::pair<int, int>> calls = r == 0
                                                       ? std::vector<std::pair<int, int>>{{10, 20}, {110, 20}}
                                                       : std::vector<std::pair<int, int>>{{10, 5}, {110, 5}, {130, 5}};
    int correlation = 0;
    for (const auto& [ts, dur] : calls)
      for (const std::string& event : launched(ts, dur, ++correlation)) ranks[r].push_back(event);
  }
  const Trace trace = ranks_of(ranks);
  const Table waits = table_of(ask(trace, "tb-distributed"), "waits-by-step");
  REQUIRE(waits.row_count() == 4);
  CHECK(row_of(waits, 0) == Row{"0", "1", "5000", "15000", "0", "0.75", "0", "0"});
  CHECK(row_of(waits, 1) ==
        Row{"0", "2", "0", "0", "20000", "", "0", "0"});  // not joined: who was waiting is not known
  AnalysisInput input;
  input.trace = &trace;
  CHECK(find_analysis("tb-distributed")->run(input)->notes.count("tb.collectives_unequal") == 3);
}

TEST_CASE("without numbers, all-reduces of equal size are matched") {
  const auto rank = [](int small_at, int large_at) {
    return std::vector<std::string>{
        op("nccl:all_reduce", small_at, 5, 1, "100"), owned("nccl1", small_at + 2, 10, 1, 9),
        op("nccl:all_reduce", large_at, 5, 2, "900"), owned("nccl2", large_at + 2, 30, 2, 9)};
  };
  const auto tables = ask(ranks_of({rank(0, 100), rank(100, 0)}), "tb-distributed");
  CHECK(cell(table_of(tables, "collectives"), "joined_count") == "2");
  CHECK(cell(table_of(tables, "collectives"), "synchronizing_ns") == "0");  // in order of start it would be 20 µs
}

TEST_CASE("kernels without arguments take those of the operator around their launch") {
  const auto rank = [](int dur) {
    return std::vector<std::string>{
        torch_event(
            "cpu_op", "record_param_comms", 100, 1, "0", "20",
            R"("External id":1,"Collective name":"_allgather_base","dtype":"BFloat16","In msg nelems":8,"Out msg nelems":64,"Group size":8,)" +
                group(3)),
        torch_event("user_annotation", "nccl:_all_gather_base", 100, 1, "2", "10"),
        call("cudaLaunchKernel", "5", "1", 1),
        work("ncclDevKernel_AllGather_RING_LL", "10", std::to_string(dur), 1, 9)};
  };
  const Table calls = table_of(ask(ranks_of({rank(10), rank(7)}), "tb-distributed"), "collectives");
  REQUIRE(calls.row_count() == 2);
  CHECK(row_of(calls, 0) ==
        Row{"0", "_allgather_base", "1", "128", "128", "10000", "10000", "1", "7000", "7000", "3000"});
}

TEST_CASE("collectives count the time of kernels alone, not of the calls that launch them") {
  const Trace trace = ranks_of({{op("nccl:all_reduce", 0, 30, 1, "100"), owned("ncclKernel_AllReduce", 10, 50, 1, 16),
                                 op("aten::add", 35, 15, 2), owned("gemm", 40, 50, 2, 7)},
                                {op("nccl:all_reduce", 0, 20, 1, "100"), owned("ncclKernel_AllReduce", 15, 20, 1, 16),
                                 op("aten::add", 22, 20, 2), owned("gemm", 30, 50, 2, 7)}});
  const auto ours = ask(trace, "tb-distributed");
  CHECK(cell(table_of(ours, "collectives"), "latency_ns") == "50000");
  CHECK(cell(table_of(ours, "collectives"), "transfer_ns") == "20000");
}

TEST_CASE("bytes of an operator's inputs") {
  CHECK(input_bytes("[[2, 3], []]", R"(["float", "Scalar"])") == 24);
  CHECK(input_bytes("[[2, 3], [4]]", R"(["c10::BFloat16", "long int"])") == 12 + 32);
  CHECK(input_bytes("[[[2, 3], [4]]]", R"(["TensorList"])") == 0);
  CHECK(input_bytes("[[9223372036854775807, 9]]", R"(["float"])") == 0);
  CHECK(input_bytes("[[2", R"(["float"])") >= 0);  // cut
  CHECK(input_bytes("", "") == 0);
}
