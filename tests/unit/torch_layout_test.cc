// The user's stages and ranks, compared with those of the traces; rules that fit nothing; coalesced messages.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/engine.h"
#include "torch_traces.h"

using namespace stageline;

namespace {

using Events = std::vector<std::string>;

std::string note(const std::string& name, int ts, int dur) {
  return torch_event("user_annotation", name, 100, 1, std::to_string(ts), std::to_string(dur));
}
std::string op(const std::string& name, int ts, int dur, const std::string& args = "") {
  return torch_event("cpu_op", name, 100, 1, std::to_string(ts), std::to_string(dur), args);
}
std::string peer(const char* what, int src, int dst) {
  return std::string(R"("Collective name":")") + what + R"(","Src Rank":)" + std::to_string(src) + R"(,"Dst Rank":)" +
         std::to_string(dst);
}

Result<Trace> read_all_ranks(const std::vector<Events>& ranks, OpenOptions options = {},
                             const std::string& rules = "") {
  const Folder folder;
  std::vector<std::string> paths;
  for (size_t r = 0; r < ranks.size(); ++r)
    paths.push_back(folder.add("rank" + std::to_string(r) + ".json", torch_file(ranks[r], static_cast<int>(r))));
  options.reader = "kineto";
  if (!rules.empty()) options.cell_rules = folder.add("my.rules", rules);
  return open_trace(paths, options);
}

std::vector<Events> numbered_stages(int stages) {
  std::vector<Events> out;
  for (int s = 0; s < stages; ++s)
    out.push_back({note("PP:" + std::to_string(s) + "F0", 10 * s, 5), op("aten::mm", 10 * s + 1, 3),
                   note("PP:" + std::to_string(s) + "B0", 200 - 10 * s, 5), op("aten::mm", 201 - 10 * s, 3)});
  return out;
}

std::string message_of(const Trace& trace, const char* name) {
  for (const Diagnostic& item : trace.diagnostics.items())
    if (item.name == name) return item.message.en;
  return "";
}

OpenOptions layout(RankLayoutOptions said) {
  OpenOptions options;
  options.layout = std::move(said);
  return options;
}

}  // namespace

TEST_CASE("torch layout: --pp that names contradict is said and not taken") {
  for (const int pp : {2, 3}) {
    const auto trace = read_all_ranks(numbered_stages(4), layout({.pp = pp, .tp = 0, .dp = 0, .order = ""}));
    REQUIRE(trace);
    CHECK(trace->pipeline_stages == 4);
    CHECK(message_of(*trace, "cells.layout_contradicted") ==
          "--pp is not used: the stage numbers in names say 4 stages");
  }
  const auto right = read_all_ranks(numbered_stages(4), layout({.pp = 4, .tp = 0, .dp = 0, .order = ""}));
  REQUIRE(right);
  CHECK(right->diagnostics.count("cells.layout_contradicted") == 0);
  CHECK(message_of(*right, "cells.stages").find("--pp") != std::string::npos);
}

TEST_CASE("torch layout: an order of ranks that stage numbers contradict names the rank and --order") {
  std::vector<Events> ranks = numbered_stages(2);  // ranks 0, 1 and 2, 3 are pipelines
  for (const Events& rank : numbered_stages(2)) ranks.push_back(rank);
  const auto wrong = read_all_ranks(ranks, layout({.pp = 2, .tp = 0, .dp = 2, .order = ""}));
  REQUIRE(wrong);
  const std::string message = message_of(*wrong, "cells.layout_contradicted");
  CHECK(message.find("rank 1 at stage 0") != std::string::npos);
  CHECK(message.find("--order") != std::string::npos);
  CHECK(wrong->parts[1].stage == 1);
  const auto right = read_all_ranks(ranks, layout({.pp = 2, .tp = 0, .dp = 2, .order = "pp-dp"}));
  REQUIRE(right);
  CHECK(right->diagnostics.count("cells.layout_contradicted") == 0);
  CHECK(message_of(*right, "cells.stages").find("--order") != std::string::npos);
  CHECK(right->parts[2].dp == 1);
}

TEST_CASE("torch layout: ranks that send to each other are of one pipeline") {
  std::vector<Events> ranks;
  for (int r = 0; r < 4; ++r) {
    const int other = r ^ 1;
    ranks.push_back({note("forward_step", 0, 10), op("aten::mm", 1, 5), note("backward_step", 40, 10),
                     op("aten::mm", 41, 5), op("record_param_comms", 20, 5, peer("send", r, other)),
                     op("record_param_comms", 30, 5, peer("recv", other, r))});
  }
  const auto wrong = read_all_ranks(ranks, layout({.pp = 2, .tp = 0, .dp = 2, .order = ""}));
  REQUIRE(wrong);
  CHECK(message_of(*wrong, "cells.layout_contradicted").find("ranks 0 and 1 send to each other") != std::string::npos);
  CHECK(wrong->parts[1].stage == 1);
  const auto right = read_all_ranks(ranks, layout({.pp = 2, .tp = 0, .dp = 2, .order = "pp-dp"}));
  REQUIRE(right);
  CHECK(right->diagnostics.count("cells.layout_contradicted") == 0);
  CHECK(right->parts[1].stage == 1);
}

TEST_CASE("torch cells: a file of rules that fits nothing is named, with the number of its rules") {
  const std::string rules = "annotation F forward micro={mb}\nannotation B backward micro={mb}\n";
  const Events e = {note("forward micro=0", 0, 10), op("aten::mm", 1, 5), note("backward micro=0", 20, 10),
                    op("aten::mm", 21, 5)};
  const auto fits = read_all_ranks({e}, {}, rules);
  REQUIRE(fits);
  CHECK(fits->diagnostics.count("cells.rules_unused") == 0);
  CHECK(fits->diagnostics.count("cells.no_backward") == 0);
  const auto typo = read_all_ranks({e}, {}, "annotation F forwards micro={mb}\nannotation B backwards micro={mb}\n");
  REQUIRE(typo);
  const std::string message = message_of(*typo, "cells.rules_unused");
  CHECK(message.find("my.rules") != std::string::npos);
  CHECK(message.find("2 rules") != std::string::npos);
  const auto half = read_all_ranks({e}, {}, "annotation F forward micro={mb}\n");
  REQUIRE(half);
  CHECK(half->diagnostics.count("cells.no_backward") == 1);
}

TEST_CASE("torch cells: one kernel of several sends and receives is each of them") {
  const auto launch = [](int ts) {
    return torch_event("cuda_runtime", "cudaLaunchKernelExC", 100, 1, std::to_string(ts), "1", launch_args(ts));
  };
  std::vector<Events> ranks(2);
  for (int r = 0; r < 2; ++r) {
    ranks[r] = {step(1, "0", "900"),
                note("PP:" + std::to_string(r) + "F0", 10, 20),
                launch(12),
                work("gemm", "30", "10", 12),
                op("c10d::send", 50, 6),
                op("record_param_comms", 51, 4, peer("send", r, 1 - r)),
                op("c10d::recv_", 60, 6),
                op("record_param_comms", 61, 4, peer("recv", 1 - r, r)),
                note("nccl:coalesced", 70, 6),
                launch(72),
                work("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "80", "9", 72, 20)};
  }
  const auto trace = read_all_ranks(ranks);
  REQUIRE(trace);
  CHECK(trace->diagnostics.count("cells.unknown_messages") == 0);
  std::string found;
  for (size_t i = 0; i < trace->cells.size(); ++i)
    if (is_message(trace->cells.kind[i]))
      found += std::to_string(trace->cells.part[i]) + std::string(kind_code(trace->cells.kind[i])) + " ";
  CHECK(found == "0SF 0RB 1SB 1RF ");
}
