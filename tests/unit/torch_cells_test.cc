// Cells from profiler traces: marks, times on the device, ranks and stages.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/engine.h"
#include "pipeline/cells/find_cells.h"
#include "pipeline/cells/rank_layout.h"
#include "pipeline/order/recognise.h"
#include "torch_traces.h"

using namespace stageline;

namespace {

// Annotations on the main thread; a launch of correlation c on thread `tid` at ts, and its kernel.
std::string note(const std::string& name, int ts, int dur, int tid = 1) {
  return torch_event("user_annotation", name, 100, tid, std::to_string(ts), std::to_string(dur));
}
std::string frame(const std::string& name, int ts, int dur) {
  return torch_event("python_function", name, 100, 1, std::to_string(ts), std::to_string(dur));
}
std::string op(const std::string& name, int ts, int dur, int tid = 1, const std::string& args = "") {
  return torch_event("cpu_op", name, 100, tid, std::to_string(ts), std::to_string(dur), args);
}
struct Kernel {
  int launch, start, dur;
  int tid = 1, stream = 7;
  std::string name = "gemm";
  std::string args = "";
};
int next_correlation = 1;
void add(std::vector<std::string>& events, const Kernel& k) {
  const int c = next_correlation++;
  events.push_back(
      torch_event("cuda_runtime", "cudaLaunchKernel", 100, k.tid, std::to_string(k.launch), "1", launch_args(c)));
  events.push_back(torch_event("kernel", k.name, 0, k.stream, std::to_string(k.start), std::to_string(k.dur),
                               launch_args(c, k.stream) + (k.args.empty() ? "" : "," + k.args)));
}

Trace read_ranks(const std::vector<std::vector<std::string>>& ranks, OpenOptions options = {}) {
  const Folder folder;
  std::vector<std::string> paths;
  for (size_t r = 0; r < ranks.size(); ++r)
    paths.push_back(folder.add("rank" + std::to_string(r) + ".json", torch_file(ranks[r], static_cast<int>(r))));
  options.reader = "kineto";
  Result<Trace> trace = open_trace(paths, options);
  REQUIRE_MESSAGE(trace, (trace ? "" : trace.error().text()));
  return std::move(*trace);
}

// "F0@10-30 B0@40-60" of one part, in order of the cells; times in microseconds.
std::string cells_of(const Trace& trace, int part = 0, bool times = true) {
  std::string out;
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    const Cell cell = trace.cells.at(i);
    if (cell.part != part) continue;
    out += (out.empty() ? "" : " ") + cell_label(cell, extent_of(trace).chunk_count > 1);
    if (times) out += "@" + std::to_string(cell.start_ns / 1000) + "-" + std::to_string(cell.end_ns / 1000);
  }
  return out;
}

bool says(const Trace& trace, const char* name) { return trace.diagnostics.count(name) > 0; }

}  // namespace

TEST_CASE("torch cells: a cell lasts as long as the kernels that its annotation launched, on any thread") {
  std::vector<std::string> e = {step(3, "0", "1000"), note("PP:0F0", 10, 20), note("PP:0B0", 100, 50)};
  add(e, {.launch = 12, .start = 40, .dur = 10});
  add(e, {.launch = 25, .start = 60, .dur = 10});
  add(e, {.launch = 35, .start = 75, .dur = 5});               // between the annotations: no owner
  add(e, {.launch = 110, .start = 130, .dur = 10, .tid = 2});  // autograd's thread
  add(e, {.launch = 140, .start = 170, .dur = 30, .tid = 2});
  add(e, {.launch = 145, .start = 120, .dur = 300, .tid = 2, .stream = 20, .name = "ncclDevKernel_AllReduce"});
  const Trace trace = read_ranks({e});
  CHECK(cells_of(trace) == "F0@40-70 C@120-420 B0@130-200");
  CHECK(trace.cells.step[0] == 3);
  CHECK(trace.parts[0].stage == 0);
  CHECK(trace.slice_name(trace.cells.at(0)) == "PP:0F0");
  CHECK(says(trace, "cells.from_annotations"));
}

TEST_CASE("torch cells: without a device the operators decide, and communication is taken off") {
  const std::vector<std::string> first = {note("Forward 0", 0, 100),   op("c10d::recv_", 1, 40),
                                          op("aten::mm", 50, 20),      op("aten::add", 75, 5),
                                          op("c10d::send", 85, 10),    note("gloo:send", 86, 500),
                                          note("Backward 0", 200, 90), op("AddmmBackward0", 230, 30)};
  const std::vector<std::string> last = {note("Forward 0", 0, 100), op("aten::mm", 50, 20), note("Backward 0", 200, 90),
                                         op("AddmmBackward0", 230, 30), op("c10d::send", 265, 10)};
  const Trace trace = read_ranks({first, last});
  CHECK(cells_of(trace, 0) == "RF0@1-41 F0@50-80 SF0@85-586 B0@230-260");
  CHECK(trace.parts[1].stage == 1);
  CHECK(trace.pipeline_stages == 0);  // one after the other by their numbers alone
}

TEST_CASE("torch cells: names in common use are no pipeline without a sign of one") {
  const std::vector<std::string> e = {note("Forward 0", 0, 100), op("aten::mm", 50, 20), note("Backward 0", 200, 90),
                                      note("forward_step", 300, 10), note("backward_step", 320, 10)};
  const Trace one = read_ranks({e});
  CHECK(one.cells.size() == 0);
  CHECK(says(one, "cells.no_pipeline"));
  CHECK(one.parts[0].stage == kUnknown);
  OpenOptions two_stages;
  two_stages.layout.pp = 2;
  CHECK(read_ranks({e, e}, two_stages).cells.size() == 4);
  OpenOptions off = two_stages;
  off.cells = CellSource::kOff;
  CHECK(read_ranks({e, e}, off).cells.size() == 0);
  // A profile without such names has nothing to say of it.
  CHECK_FALSE(says(read_ranks({{op("aten::mm", 1, 2)}}), "cells.no_pipeline"));
}

TEST_CASE("torch cells: messages prove a pipeline only where it has ends") {
  const auto rank = [](int self, int to, bool forward, bool backward) {
    const auto send = [&](int at) {
      return op("record_param_comms", at, 5, 1,
                R"("Collective name":"send","Dst Rank":)" + std::to_string(to) + R"(,"Src Rank":)" +
                    std::to_string(self) + R"(,"Group size":2)");
    };
    std::vector<std::string> e;
    for (int m = 0; m < 2; ++m) {
      const int at = m * 1000;
      e.push_back(note("forward_step_" + std::to_string(m), at, 100));
      e.push_back(op("aten::mm", at + 1, 50));
      if (forward) e.push_back(send(at + 60));
      e.push_back(note("backward_step_" + std::to_string(m), at + 500, 100));
      e.push_back(op("aten::mm", at + 501, 50));
      if (backward) e.push_back(send(at + 560));
    }
    return e;
  };
  const Trace pipeline = read_ranks({rank(0, 1, true, false), rank(1, 0, false, true)});
  CHECK(cells_of(pipeline, 0, false) == "F0 B0 F1 B1");
  CHECK(pipeline.pipeline_stages == 2);
  // Rings of attention send after everything, everywhere; data that one rank hands out goes one way.
  for (const auto& others :
       {std::vector{rank(0, 1, true, true), rank(1, 0, true, true)},
        std::vector{rank(0, 1, true, true), rank(1, 2, true, true), rank(2, 3, true, true), rank(3, 0, true, true)},
        std::vector{rank(0, 1, true, false), rank(1, 0, false, false)},
        std::vector{rank(0, 1, false, false), rank(1, 0, false, false)}}) {
    const Trace trace = read_ranks(others);
    CHECK(trace.cells.size() == 0);
    CHECK(says(trace, "cells.no_pipeline"));
    CHECK(trace.parts[0].stage == kUnknown);
  }
}

TEST_CASE("torch cells: pieces of modules alone are no pipeline, and ranks in a row are no schedule") {
  CHECK(read_ranks({{note("attn(F)", 0, 10), op("aten::mm", 1, 5), note("mlp(B)", 20, 10)}}).cells.size() == 0);
  const std::vector<std::string> pair = {note("1F1B", 0, 100), op("aten::mm", 1, 50)};
  for (const Trace& trace : {read_ranks({pair}), read_ranks({pair, pair})}) {
    CHECK(trace.cells.size() > 0);
    CHECK(trace.pipeline_stages == 0);
    CHECK(recognise(trace).candidates.empty());
  }
  const Trace named = read_ranks({{note("PP:0F0", 0, 10), op("aten::mm", 1, 5), note("PP:0B0", 20, 10)}});
  CHECK(named.pipeline_stages == 1);
  CHECK(recognition_text(recognise(named)).en.find("1 stage, 1 micro-batch,") != std::string::npos);
}

TEST_CASE("torch cells: virtual stages lie in a loop or in a V") {
  const auto stage = [](int s, int at) {
    return std::vector<std::string>{note("PP:" + std::to_string(s) + "F0", at, 5), op("aten::mm", at + 1, 3)};
  };
  const auto ranks = [&](std::vector<std::vector<int>> own) {
    std::vector<std::vector<std::string>> out;
    for (const auto& list : own) {
      out.emplace_back();
      for (const int s : list)
        for (const std::string& e : stage(s, 10 * s + 1)) out.back().push_back(e);
    }
    return out;
  };
  const Trace loop = read_ranks(ranks({{0, 2}, {1, 3}}));
  CHECK(cells_of(loop, 1, false) == "F0.c0 F0.c1");
  CHECK(loop.parts[1].stage == 1);
  const Trace v = read_ranks(ranks({{0, 7}, {1, 6}, {2, 5}, {3, 4}}));
  CHECK(cells_of(v, 0, false) == "F0.c0 F0.c1");
  CHECK(v.parts[3].stage == 3);
  CHECK(v.pipeline_stages == 4);
  const Trace replicas = read_ranks(ranks({{0}, {1}, {0}, {1}}));
  CHECK(replicas.parts[2].stage == 0);
  CHECK(replicas.parts[2].dp == 1);
  const Trace odd = read_ranks(ranks({{0, 1}, {2, 3}}));  // neither: a warning, and chunks by position
  CHECK(cells_of(odd, 1, false) == "F0.c0 F0.c1");
  CHECK(odd.parts[1].stage == 1);
}

TEST_CASE("torch cells: an overlapped pair is a forward and a backward with the same times") {
  std::vector<std::string> e = {note("PP:(0F4;1B2)OVERLAP_F_B", 0, 50), note("PP:0F5", 60, 10)};
  add(e, {.launch = 5, .start = 10, .dur = 10});
  add(e, {.launch = 30, .start = 50, .dur = 30, .tid = 2});
  add(e, {.launch = 62, .start = 85, .dur = 5});
  CHECK(cells_of(read_ranks({e})) == "F4.c0@10-80 B2.c1@10-80 F5.c0@85-90");
}

TEST_CASE("torch cells: frames without numbers are counted in each step") {
  const std::string stage = "torch/distributed/pipelining/stage.py(1): ";
  const std::string run = "torch/distributed/pipelining/schedules.py(1): step";
  std::vector<std::string> e;
  for (const int at : {0, 100})
    for (const std::string& x :
         {frame(run, at, 90), frame(stage + "forward_one_chunk", at + 1, 9), op("aten::mm", at + 2, 3),
          frame(stage + "forward_one_chunk", at + 11, 9), op("aten::mm", at + 12, 3),
          frame(stage + "backward_one_chunk", at + 21, 9), op("aten::mm", at + 22, 3),
          frame(stage + "backward_one_chunk", at + 31, 9), op("aten::mm", at + 32, 3)})
      e.push_back(x);
  const Trace trace = read_ranks({e});
  CHECK(cells_of(trace, 0, false) == "F0 F1 B0 B1 F0 F1 B0 B1");
  CHECK(trace.cells.step.back() == 1);
  CHECK(trace.diagnostics.count("cells.numbered") == 8);
}

TEST_CASE("torch cells: a step begins where a micro-batch comes again") {
  std::vector<std::string> e;
  for (int at = 0; at < 300; at += 100)
    for (const std::string& x :
         {note("PP:0F0", at, 10), op("aten::mm", at + 1, 5), note("PP:0F1", at + 20, 10), op("aten::mm", at + 21, 5)})
      e.push_back(x);
  const Trace trace = read_ranks({e});
  CHECK(trace.cells.step == std::vector<int32_t>{0, 0, 1, 1, 2, 2});
  CHECK(says(trace, "cells.steps"));
}

TEST_CASE("torch cells: backward beside weight gradients is the input's half") {
  const Trace trace = read_ranks({{note("B0.0.1", 0, 9), op("aten::mm", 1, 3), note("W0.0.2", 10, 9),
                                   op("aten::mm", 11, 3), note("F1.0.3", 20, 9), op("aten::mm", 21, 3)}});
  CHECK(cells_of(trace, 0, false) == "I0 W0 F1");
}

TEST_CASE("torch cells: ranks are stages by their process groups") {
  const auto file = [](int rank, const std::string& groups) {
    std::string text = torch_file({note("forward_step", 0, 10), op("aten::mm", 1, 5)}, rank);
    const std::string said = "{\"rank\": " + std::to_string(rank) + "}";
    return text.replace(text.find(said), said.size(),
                        "{\"rank\": " + std::to_string(rank) + ", \"pg_config\": [" + groups + "]}");
  };
  const auto group = [](const char* description, const char* ranks) {
    return std::string("{\"pg_name\": \"1\", \"pg_desc\": \"") + description +
           "\", \"pg_size\": 2, \"ranks\": " + ranks + "}";
  };
  const Folder folder;
  std::vector<std::string> paths;
  const char* pipelines[] = {"[0, 2]", "[1, 3]", "[0, 2]", "[1, 3]"};
  for (int r = 0; r < 4; ++r)
    paths.push_back(folder.add("rank" + std::to_string(r) + ".json",
                               file(r, group("default_pg", "[0, 1, 2, 3]") + "," + group("mesh_pp", pipelines[r]) +
                                           "," + group("mesh_dp_cp", "[0, 1]"))));
  const Result<Trace> trace = open_trace(paths, {});
  REQUIRE(trace);
  CHECK(trace->cells.size() == 4);
  const std::vector<std::pair<int, int>> places = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};  // stage, replica
  for (size_t r = 0; r < 4; ++r) {
    CHECK(trace->parts[r].stage == places[r].first);
    CHECK(trace->parts[r].dp == places[r].second);
  }
}

TEST_CASE("torch cells: an order of ranks places every one by its number") {
  std::vector<std::vector<std::string>> ranks(8, {note("forward_step", 0, 10), op("aten::mm", 1, 5)});
  OpenOptions options;
  options.layout = {.pp = 2, .tp = 2, .dp = 2, .order = ""};
  const Trace megatron = read_ranks(ranks, options);  // tp fastest, then dp, then pp
  CHECK(megatron.parts[5].stage == 1);
  CHECK(megatron.parts[5].dp == 0);
  CHECK(megatron.parts[3].dp == 1);
  options.layout.order = "pp-tp-dp";
  const Trace other = read_ranks(ranks, options);
  CHECK(other.parts[5].stage == 1);
  CHECK(other.parts[5].dp == 1);
  const auto takes = [](const char* order, int32_t tp) {
    return bool(check_rank_layout({.pp = 2, .tp = tp, .dp = 0, .order = order}));
  };
  CHECK_FALSE(takes("tp-dp-pp-xx", 0));
  CHECK_FALSE(takes("tp-dp-pp-tp", 0));
  CHECK_FALSE(takes("dp-pp", 2));
  CHECK_FALSE(takes("tp-dp", 0));  // says nothing of the two stages
  CHECK(takes("dp-pp", 0));
  CHECK(takes("pp-dp", 1));
  CHECK(takes("tp-cp-ep-dp-pp", 2));
}

TEST_CASE("torch cells: send and receive kernels are messages by the work around them, else by their peers") {
  const auto message = [](const char* what, int src, int dst) {
    return std::string(R"("Collective name":")") + what + R"(","Src Rank":)" + std::to_string(src) + R"(,"Dst Rank":)" +
           std::to_string(dst) + R"(,"Group size":2)";
  };
  const std::string kernel = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
  std::vector<std::string> zero = {step(1, "0", "900"), note("Forward 0", 0, 50)};
  add(zero, {.launch = 5, .start = 10, .dur = 10});
  add(zero, {.launch = 40, .start = 20, .dur = 30, .stream = 9, .name = kernel, .args = message("send", -1, 1)});
  add(zero, {.launch = 60, .start = 90, .dur = 30, .stream = 9, .name = kernel, .args = message("recv", 1, -1)});
  add(zero, {.launch = 61, .start = 130, .dur = 30, .stream = 9, .name = kernel});
  std::vector<std::string> one = {step(1, "0", "900"), note("Forward 0", 0, 50)};
  add(one, {.launch = 5, .start = 60, .dur = 10});
  add(one, {.launch = 60, .start = 90, .dur = 30, .stream = 9, .name = kernel, .args = message("send", -1, 0)});
  OpenOptions two_stages;
  two_stages.layout.pp = 2;
  const Trace trace = read_ranks({zero, one}, two_stages);
  CHECK(cells_of(trace, 0) == "F0@10-20 SF0@20-50 RB@90-120");
  CHECK(cells_of(trace, 1) == "F0@60-70 SB@90-120");
  CHECK(trace.diagnostics.count("cells.unknown_messages") == 1);
}

TEST_CASE("torch cells: filters choose cells and slices alike") {
  std::vector<std::string> e;
  for (int s = 0; s < 3; ++s) {
    const int at = 1000 * s;
    e.push_back(step(s, std::to_string(at), "900"));
    e.push_back(note("PP:0F0", at + 10, 20));
    e.push_back(op("aten::mm", at + 12, 5));
  }
  OpenOptions options;
  options.first_step = options.last_step = 1;
  const Trace by_step = read_ranks({e, e}, options);
  CHECK(by_step.cells.step == std::vector<int32_t>{1, 1});
  CHECK(by_step.parts.size() == 2);
  options = {};
  options.ranks = {1};
  const Trace by_rank = read_ranks({e, e}, options);
  CHECK(by_rank.cells.part == std::vector<int32_t>{1, 1, 1});
  CHECK(by_rank.parts.size() == 2);  // slices of the whole run stay; outputs that draw parts leave rank 0 out
  const DrawnRun drawn(std::make_shared<const Run>(by_rank));
  CHECK(drawn.trace().parts.size() == 1);
  CHECK(drawn.trace().cells.part == std::vector<int32_t>{0, 0, 0});
  CHECK(by_rank.parts.size() == 2);  // what was read stays
  options = {};
  options.range = TimeRange{1'000'000, 1'500'000};
  CHECK(read_ranks({e}, options).cells.size() == 1);
}

TEST_CASE("torch cells: nested, overlapping and absurd names do no harm") {
  std::vector<std::string> e = {
      note("PP:0F0", 0, 100),        note("PP:0F0", 10, 20), note("PP:0F1", 90, 50), note("PP:99999999999F1", 200, 5),
      note("PP:0F99999999", 210, 5), note("PP:0B0", 300, 0), op("aten::mm", 20, 5),  op("aten::mm", 120, 5)};
  const Trace trace = read_ranks({e});
  CHECK(cells_of(trace) == "F0@20-25 F1@120-125 B0@300-300");
  CHECK(trace.diagnostics.count("cells.nested") == 1);
  CHECK(trace.diagnostics.count("cells.bad_number") == 2);
  // Kernels of two streams that overlap the next cell's do not make two cells overlap.
  std::vector<std::string> wide = {note("PP:0F0", 0, 10), note("PP:0F1", 20, 10)};
  add(wide, {.launch = 1, .start = 40, .dur = 10});
  add(wide, {.launch = 2, .start = 40, .dur = 35, .stream = 8});
  add(wide, {.launch = 21, .start = 60, .dur = 30});
  const Trace clipped = read_ranks({wide});
  CHECK(cells_of(clipped) == "F0@40-60 F1@60-90");
  CHECK(clipped.diagnostics.count("cells.clipped") == 1);
}

TEST_CASE("torch cells: work whose kernels were not recorded has no time on the device") {
  std::vector<std::string> e = {note("PP:0F0", 0, 10), note("PP:0F1", 20, 10)};
  add(e, {.launch = 1, .start = 40, .dur = 10});
  const Trace trace = read_ranks({e});
  CHECK(cells_of(trace) == "F0@40-50");
  CHECK(trace.diagnostics.count("cells.no_kernels") == 1);
}

TEST_CASE("torch cells: rules of the user's come first, and their faults stop the run") {
  const std::vector<std::string> e = {note("my work 3 on 0", 0, 10), op("aten::mm", 1, 5), note("PP:0F0", 20, 10)};
  const Folder folder;
  OpenOptions options;
  options.cell_rules = folder.add("mine.rules", "set mine\nannotation F my work {mb} on {stage}\n");
  CHECK(cells_of(read_ranks({e}, options), 0, false) == "F3");
  options.cell_rules = folder.add("bad.rules", "annotation F x{\n");
  const auto refused = open_trace({folder.add("rank0.json", torch_file(e))}, options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text().find("bad.rules:1: found a { that is not closed") != std::string::npos);
}

TEST_CASE("torch cells: the exchange of tokens under dispatch(F) is communication, whatever its kernels are called") {
  std::vector<std::string> e = {note("1F1B", 0, 100), note("attn(F)", 5, 20), note("dispatch(F)", 30, 20),
                                note("mlp(B)", 60, 10), note("attn(W)", 200, 10)};
  add(e, {.launch = 6, .start = 10, .dur = 30, .name = "void combine<4>(float*)"});  // of attention: computation
  add(e, {.launch = 32, .start = 40, .dur = 50, .stream = 20, .name = "void dispatch<false, 8>(int4*)"});
  add(e, {.launch = 34, .start = 90, .dur = 5, .name = "permute_kernel(float*)"});
  add(e, {.launch = 62, .start = 100, .dur = 20});
  add(e, {.launch = 201, .start = 210, .dur = 10});
  const Trace trace = read_ranks({e});
  const Part& part = trace.parts[0];
  for (size_t i = 0; i < part.slices.size(); ++i) {
    if (part.slices.class_of(i) == KernelClass::kNone) continue;
    const std::string_view name = trace.names.text(part.slices.name_id[i]);
    CHECK((part.slices.class_of(i) == KernelClass::kCommunication) ==
          (name.find("dispatch") != std::string_view::npos));
  }
  // The pair is one cell of both kinds; modules in it are part of it, modules outside it have no number.
  CHECK(cells_of(trace) == "F0@10-120 B0@10-120 C@40-90 W@210-220");
}
