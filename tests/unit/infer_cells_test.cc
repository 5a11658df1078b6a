// Pipelines inferred from messages and autograd's numbers, on traces small enough to see whole.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "pipeline/cells/find_cells.h"
#include "pipeline/cells/host_work.h"
#include "torch_traces.h"

using namespace stageline;

namespace {

// The host work of one rank, one piece after the other. A forward makes the nodes first … first + 1.
class Script {
 public:
  explicit Script(int rank, int64_t start_us = 1000) : rank_(rank), now_(start_us) {}

  Script& forward(int first) {
    for (int i = 0; i < 2; ++i) {
      const int64_t outer = now_;
      add("cpu_op", "aten::linear", outer, 10, numbers(first + i, 0));
      add("cpu_op", "aten::addmm", outer + 2, 6, numbers(first + i, 0));
      now_ += 12;
    }
    return *this;
  }
  Script& backward(int first, int count = 2) { return nodes(first, count, -1); }
  // The order in which zero-bubble schedules ask for weight gradients.
  Script& weights(int first, int count = 2) { return nodes(first, count, 1); }
  // `label`: an annotation inside that says the peer, such as "nccl:send 0->1".
  Script& send(const std::string& label = "") { return message("c10d::send", label); }
  Script& receive() { return message("c10d::recv_", ""); }
  Script& step(int number, int64_t length_us) {
    add("user_annotation", "ProfilerStep#" + std::to_string(number), now_, length_us, "");
    return *this;
  }
  Script& at(int64_t time_us) {
    now_ = time_us;
    return *this;
  }
  Script& raw(const std::string& cat, const std::string& name, int64_t dur_us, const std::string& args = "") {
    add(cat, name, now_, dur_us, args);
    now_ += dur_us + 1;
    return *this;
  }
  std::string text() const { return torch_file(events_, rank_); }

 private:
  static std::string numbers(int sequence, int thread) {
    return "\"Sequence number\":" + std::to_string(sequence) + ",\"Fwd thread id\":" + std::to_string(thread);
  }
  void add(const std::string& cat, const std::string& name, int64_t start, int64_t dur, const std::string& args) {
    events_.push_back(torch_event(cat, name, 100, 1, std::to_string(start), std::to_string(dur), args));
  }
  Script& nodes(int first, int count, int step) {
    for (int i = 0, at = step < 0 ? first + count - 1 : first; i < count; ++i, at += step) {
      add("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", now_, 20, numbers(at, 1));
      add("cpu_op", "AddmmBackward0", now_ + 1, 18, numbers(at, 1));
      now_ += 22;
    }
    return *this;
  }
  Script& message(const std::string& name, const std::string& label) {
    add("cpu_op", name, now_, 8, "");
    if (!label.empty()) add("user_annotation", label, now_ + 2, 4, "");
    now_ += 10;
    return *this;
  }

  int rank_;
  int64_t now_;
  std::vector<std::string> events_;
};

Trace trace_of(const std::vector<Script>& ranks) {
  const Folder folder;
  std::vector<std::string> files;
  for (size_t r = 0; r < ranks.size(); ++r)
    files.push_back(folder.add("rank" + std::to_string(r) + ".json", ranks[r].text()));
  return read_with("kineto", files);
}

// "0F0 0F1 …" of one part's work by start, without its messages; ? where stage or micro-batch is unknown.
std::string reported(const std::vector<CellMark>& marks, uint32_t part) {
  std::vector<CellMark> own;
  std::copy_if(marks.begin(), marks.end(), std::back_inserter(own),
               [&](const CellMark& m) { return m.part == part && is_compute(m.kind); });
  std::stable_sort(own.begin(), own.end(),
                   [](const CellMark& a, const CellMark& b) { return a.start_ns < b.start_ns; });
  const auto number = [](int32_t n) { return n == kUnknown ? std::string("?") : std::to_string(n); };
  std::string out;
  for (const CellMark& m : own)
    out += (out.empty() ? "" : " ") + number(m.stage) + std::string(kind_code(m.kind)) + number(m.micro_batch);
  return out;
}

Script first_rank(const std::string& label) {
  return Script(0).forward(10).send(label).forward(20).send(label).receive().backward(10).receive().backward(20);
}
Script last_rank(const std::string& label) {
  return Script(1, 1040).receive().forward(10).backward(10).send(label).receive().forward(20).backward(20).send(label);
}

}  // namespace

TEST_CASE("infer cells: two stages of 1F1B whose annotations name the peers") {
  const Trace trace = trace_of({first_rank("nccl:send 0->1"), last_rank("nccl:send 1->0")});
  Diagnostics diagnostics;
  const std::vector<CellMark> marks = infer_cells(trace, diagnostics);
  CHECK(reported(marks, 0) == "0F0 0F1 0B0 0B1");
  CHECK(reported(marks, 1) == "1F0 1B0 1F1 1B1");
  CHECK(diagnostics.count("cells.inferred_flow") == 1);
  CHECK(diagnostics.count("cells.inferred_unknown") == 0);
  // From the first outermost operator to the end of the last.
  CHECK(marks[0].end_ns - marks[0].start_ns == 22'000);
}

TEST_CASE("infer cells: without peers the order of ranks is tried, and kept where it explains all") {
  Diagnostics diagnostics;
  const std::vector<CellMark> marks = infer_cells(trace_of({first_rank(""), last_rank("")}), diagnostics);
  CHECK(reported(marks, 0) == "0F0 0F1 0B0 0B1");
  CHECK(reported(marks, 1) == "1F0 1B0 1F1 1B1");
}

TEST_CASE("infer cells: without peers, work that starts before its input refutes the order of ranks") {
  Diagnostics diagnostics;
  const Script early =
      Script(1, 900).receive().forward(10).backward(10).send().receive().forward(20).backward(20).send();
  CHECK(infer_cells(trace_of({first_rank(""), early}), diagnostics).empty());
  CHECK(diagnostics.count("cells.no_flow") == 4 + 4);
}

TEST_CASE("infer cells: when one message is missing, nothing is inferred for that step") {
  const std::string there = "nccl:send 0->1", back = "nccl:send 1->0";
  const auto steps = [&](bool whole) {
    Script first = Script(0).step(5, 400).forward(10).send(there).receive().backward(10);
    first.at(2000).step(6, 400).forward(20).send(there).receive().backward(20);
    Script last = Script(1).step(5, 400).at(1040).receive().forward(10).backward(10).send(back);
    last.at(2000).step(6, 400).at(2040).receive().forward(20).backward(20);
    if (whole) last.send(back);
    Diagnostics diagnostics;
    const auto marks = infer_cells(trace_of({first, last}), diagnostics);
    return reported(marks, 0) + " | " + reported(marks, 1) + " | " +
           std::to_string(diagnostics.count("cells.inferred_unknown"));
  };
  CHECK(steps(true) == "0F0 0B0 0F0 0B0 | 1F0 1B0 1F0 1B0 | 0");
  CHECK(steps(false) == "0F0 0B0 ?F? ?B? | 1F0 1B0 ?F? ?B? | 4");
}

TEST_CASE("infer cells: nodes that run again are weight gradients") {
  const std::string there = "nccl:send 0->1", back = "nccl:send 1->0";
  const Script first = Script(0).forward(10).send(there).receive().backward(10);
  // The second run also reaches a node of the parameter's own, which the first did not need.
  const Script last = Script(1, 1040).receive().forward(10).backward(11, 1).send(back).weights(11, 1).weights(10, 1);
  Diagnostics diagnostics;
  const auto marks = infer_cells(trace_of({first, last}), diagnostics);
  CHECK(reported(marks, 0) == "0F0 0B0");
  CHECK(reported(marks, 1) == "1F0 1I0 1W0");
}

TEST_CASE("infer cells: a V, whose last stage is on the first rank and whose bend hands over within a rank") {
  const std::string there = "nccl:send 0->1", back = "nccl:send 1->0";
  // Stages 0 and 3 on rank 0, 1 and 2 on rank 1; the forwards of 1 and 2 have nothing between them, their backwards do.
  const Script first =
      Script(0).forward(10).send(there).receive().forward(20).backward(20).send(there).receive().backward(10);
  const Script last =
      Script(1, 1040).receive().forward(10).forward(20).send(back).receive().backward(20).receive().backward(10).send(
          back);
  Diagnostics diagnostics;
  const auto marks = infer_cells(trace_of({first, last}), diagnostics);
  CHECK(reported(marks, 0) == "0F0 3F0 3B0 0B0");
  CHECK(reported(marks, 1) == "1F0 2F0 2B0 1B0");
}

TEST_CASE("infer cells: rings of attention and single ranks are no pipeline") {
  Diagnostics diagnostics;
  // Everyone sends to the next within its forward, and again within its backward.
  const auto ring = [](int rank, const std::string& label) {
    return Script(rank).forward(10).send(label).receive().forward(20).backward(20).send(label).receive().backward(10);
  };
  CHECK(infer_cells(trace_of({ring(0, "nccl:send 0->1"), ring(1, "nccl:send 1->0")}), diagnostics).empty());
  CHECK(diagnostics.count("cells.no_flow") > 0);
  Diagnostics alone;
  CHECK(infer_cells(trace_of({Script(0).forward(10).backward(10)}), alone).empty());
  CHECK(alone.empty());  // no messages: nothing to say
  CHECK(infer_cells(trace_of({first_rank("nccl:send 0->1")}), alone).empty());
}

TEST_CASE("infer cells: recomputation inside a node, and operators whose numbers nobody runs, are no forwards") {
  const std::string there = "nccl:send 0->1", back = "nccl:send 1->0";
  Script first = Script(0).forward(10).raw("cpu_op", "aten::detach", 3, R"("Sequence number":12,"Fwd thread id":0)");
  first.send(there).receive().backward(10);
  Script last = Script(1, 1040).receive().forward(10);
  last.raw("cpu_op", "autograd::engine::evaluate_function: CheckpointFunctionBackward", 200,
           R"("Sequence number":11,"Fwd thread id":1)");
  last.at(1090).forward(30).backward(30).at(1320).backward(10, 1).send(back);
  Diagnostics diagnostics;
  const auto marks = infer_cells(trace_of({first, last}), diagnostics);
  CHECK(reported(marks, 0) == "0F0 0B0");
  CHECK(reported(marks, 1) == "1F0 1B0");
}

TEST_CASE("infer cells: hostile numbers, peers and nesting end quickly and say nothing false") {
  Script itself = Script(0);
  for (int i = 0; i < 50; ++i) itself.forward(7).send("nccl:send 0->0").receive().backward(7).send("nccl:send 0->0");
  Script far = Script(1);
  for (int i = 0; i < 50; ++i) far.forward(2 * i).send("nccl:send 1->99999999999999999999").receive().backward(2 * i);
  Script deep = Script(2);
  std::vector<std::string> nested;
  for (int i = 0; i < 20'000; ++i)
    nested.push_back(torch_event("cpu_op", "aten::x", 100, 1, std::to_string(1000 + i), std::to_string(100'000 - 2 * i),
                                 R"("Sequence number":9223372036854775807,"Fwd thread id":0)"));
  nested.push_back(torch_event("cpu_op", "c10d::send", 100, 1, "500000", "2"));
  nested.push_back(torch_event("cpu_op", "autograd::engine::evaluate_function: X", 100, 1, "500010", "2",
                               R"("Sequence number":9223372036854775807,"Fwd thread id":1)"));
  const Folder folder;
  const Trace trace =
      read_with("kineto", {folder.add("rank0.json", itself.text()), folder.add("rank1.json", far.text()),
                           folder.add("rank2.json", torch_file(nested, 2))});
  Diagnostics diagnostics;
  CHECK(infer_cells(trace, diagnostics).empty());
  const std::vector<HostWork> work = find_host_work(trace);
  REQUIRE(work.size() == 3);
  CHECK(work[2].stretches.size() == 2);  // one forward, however deep, and its backward
}

TEST_CASE("infer cells: what a forward does behind its last node, up to its send, is the forward's") {
  const auto script = [](int rank) { return rank == 0 ? Script(0) : Script(1, 1060); };
  const Script first = script(0)
                           .forward(10)
                           .raw("cpu_op", "aten::relu", 7)
                           .send("nccl:send 0->1")
                           .raw("cpu_op", "aten::copy_", 7)
                           .receive()
                           .backward(10);
  const Script last = script(1).receive().forward(10).backward(10).send("nccl:send 1->0");
  Diagnostics diagnostics;
  const std::vector<CellMark> marks = infer_cells(trace_of({first, last}), diagnostics);
  REQUIRE(reported(marks, 0) == "0F0 0B0");
  CHECK(marks[0].end_ns - marks[0].start_ns == 31'000);  // two operators of 12 µs, and relu's 7
}

TEST_CASE("infer cells: optimizer steps are cells by their names") {
  Script first = first_rank("nccl:send 0->1"), last = last_rank("nccl:send 1->0");
  first.raw("user_annotation", "Optimizer.step#AdamW.step", 20);
  last.raw("user_annotation", "Optimizer.step#AdamW.step", 20);
  Trace trace = trace_of({first, last});
  REQUIRE(find_torch_cells(trace, shipped_cell_rules(), {CellSource::kAuto, {}, infer_cells}));
  CHECK(trace.diagnostics.count("cells.inferred") > 0);
  CHECK(std::count(trace.cells.kind.begin(), trace.cells.kind.end(), CellKind::kOptimizer) == 2);
}
