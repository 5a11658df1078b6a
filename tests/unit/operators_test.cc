// analyze operators: rows worked out by hand, the profiler's own table, and what a damaged trace may say. Times in µs.
#include <array>
#include <fstream>

#include "base/number.h"
#include "profile/device_peaks.h"
#include "profile/op_flops.h"
#include "shared_data.h"
#include "torch_traces.h"

using namespace stageline;

namespace {

std::string op(const std::string& name, const std::string& ts, const std::string& dur, const std::string& args = "") {
  return torch_event("cpu_op", name, 100, 1, ts, dur, args);
}
std::string shapes(const std::string& dims, const std::string& types, const std::string& concrete = "[]") {
  return R"("Input Dims":)" + dims + R"(,"Input type":)" + types + R"(,"Concrete Inputs":)" + concrete;
}
const std::vector<std::string> kStep = {torch_event("Trace", "PyTorch Profiler (0)", 1, 1, "0", "200"),
                                        step(1, "0", "100"),
                                        op("aten::linear", "10", "50"),
                                        op("aten::addmm", "15", "40"),
                                        call("cudaLaunchKernel", "40", "5", 11),
                                        op("aten::relu", "70", "20"),
                                        call("cudaLaunchKernel", "75", "5", 12),
                                        work("sgemm_kernel", "50", "20", 11),
                                        work("relu_kernel", "80", "8", 12)};

Result<AnalysisResult> answer(const Trace& trace, const std::vector<std::pair<std::string, std::string>>& options,
                              bool foreign = true) {
  AnalysisInput input;
  input.trace = &trace;
  input.foreign = foreign;
  for (const auto& [key, value] : options) input.options.set(key, value);
  return find_analysis("operators")->run(input);
}
std::string printed(const Trace& trace, const std::vector<std::pair<std::string, std::string>>& options) {
  auto result = answer(trace, options);
  REQUIRE_MESSAGE(result, (result ? "" : result.error().text()));
  CHECK(result->tables.empty());
  return result->foreign;
}
size_t line_count(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

}  // namespace

TEST_CASE("operators: rows of a step") {
  const Trace trace = torch_trace(kStep);
  const auto tables = ask(trace, "operators");
  const Table& table = table_of(tables, "operators");
  REQUIRE(table.row_count() == 7);
  CHECK(cell(table, "name") == "aten::addmm");  // most device time of its own, then most host time of its own
  CHECK(cell(table, "self_device_ns", "name", "aten::addmm") == "20000");
  CHECK(cell(table, "device_ns", "name", "aten::linear") == "20000");
  CHECK(cell(table, "self_host_ns", "name", "aten::linear") == "10000");
  CHECK(cell(table, "host_mean_ns", "name", "cudaLaunchKernel") == "5000");
  CHECK(cell(table, "count", "name", "cudaLaunchKernel") == "2");
  CHECK(cell(table, "kind", "name", "sgemm_kernel") == "kernel");
  CHECK(cell(table, "self_host_ns", "name", "ProfilerStep*") == "30000");
  CHECK(table.column_index("host_bytes") < 0);
  CHECK(ask(trace, "operators", {.options = {{"top-level-events-only", ""}}})[0].row_count() == 3);
  CHECK(ask(trace, "operators", {.options = {{"row-limit", "2"}, {"sort-by", "count"}}})[0].text(0, 1) ==
        "cudaLaunchKernel");
}

TEST_CASE("operators: the profiler's own table") {
  const Trace trace = torch_trace(kStep);
  const std::string text = printed(trace, {{"sort-by", "self_cuda_time_total"}});
  // The worked example of the page: every line ends in two blanks, and a wide title moves its column.
  const std::string rule = "--------------------  " + [] {
    std::string eleven;
    for (int c = 0; c < 10; ++c) eleven += "------------  ";
    return eleven;
  }() + "\n";
  CHECK(text.starts_with(
      rule +
      "                Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg     Self CUDA   "
      "Self CUDA %    CUDA total  CUDA time avg    # of Calls  \n" +
      rule +
      "         aten::addmm        35.00%      35.000us        40.00%      40.000us      40.000us      20.000us       "
      " 71.43%      20.000us      20.000us             1  \n"));
  CHECK(text.ends_with(rule + "Self CPU time total: 100.000us\nSelf CUDA time total: 28.000us\n"));
  CHECK(line_count(text) == 3 + 7 + 3);
  CHECK(line_count(printed(trace, {{"row-limit", "2"}})) == 3 + 2 + 3);
  CHECK(line_count(printed(trace, {{"row-limit", "0"}})) == 3 + 3);
  const std::string top = printed(trace, {{"top-level-events-only", ""}, {"header", "one step"}, {"time-unit", "ms"}});
  CHECK(top.find("=\none step\n=") != std::string::npos);
  CHECK(top.find("This report only display top-level ops statistics\n") != std::string::npos);
  CHECK(top.find("Self CPU time total: 0.100ms\n") != std::string::npos);
  CHECK(line_count(top) == 4 + 3 + 3 + 3);
  CHECK(printed(trace, {{"max-name-column-width", "10"}}).find("\naten::l...  ") != std::string::npos);
}

TEST_CASE("operators: shapes and FLOPs") {
  const std::string mm = shapes("[[4, 8], [8, 2]]", R"(["float", "float"])");
  const Trace trace =
      torch_trace({op("aten::mm", "0", "10", mm), op("aten::mm", "20", "10", mm),
                   op("aten::mm", "40", "10", shapes("[[1, 8], [8, 2]]", R"(["float", "float"])")),
                   op("aten::cat", "60", "10", shapes("[[[2, 3], [4, 3]], []]", R"(["TensorList", "Scalar"])")),
                   op("aten::relu", "80", "10")});
  const auto tables = ask(trace, "operators", {.options = {{"group-by-input-shape", "true"}, {"with-flops", "true"}}});
  const Table& table = tables[0];
  REQUIRE(table.row_count() == 4);
  CHECK(cell(table, "flops", "input_shapes", "[[4, 8], [8, 2]]") == "256");
  CHECK(cell(table, "count", "input_shapes", "[[4, 8], [8, 2]]") == "2");
  CHECK(cell(table, "flops", "input_shapes", "[[1, 8], [8, 2]]") == "32");
  CHECK(cell(table, "input_shapes", "name", "aten::cat") == "[[], []]");  // a list of tensors has no shape of its own
  CHECK(cell(table, "input_shapes", "name", "aten::relu") == "[]");
  const std::string text = printed(trace, {{"group-by-input-shape", ""}, {"with-flops", ""}});
  CHECK(text.find("Input Shapes   Total FLOPs  \n") != std::string::npos);
  CHECK(text.find("[[4, 8], [8, 2]]       256.000  \n") != std::string::npos);
  CHECK(text.find("--  \n") != std::string::npos);
}

TEST_CASE("operators: formulas of FLOPs") {
  CHECK(op_flops("aten::mm", "[[4, 8], [8, 2]]", "", "") == 128);
  CHECK(op_flops("aten::addmm", "[[2], [4, 8], [8, 2]]", "", "") == 128);
  CHECK(op_flops("aten::bmm", "[[3, 4, 8], [3, 8, 2]]", "", "") == 384);
  CHECK(op_flops("aten::baddbmm.out", "[[], [3, 4, 8], [3, 8, 2]]", "", "") == 384);
  CHECK(op_flops("aten::add", "[[5, 6], [6]]", R"(["float", "float"])", "") == 30);
  CHECK(op_flops("aten::mul", "[[], []]", R"(["float", "Scalar"])", "") == 1);
  const char* values = R"(["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "2"])";
  // Both directions have (8 + 2 − 2 − 1)/2 + 1 = 4: 2·1·4·4·3·3·4·6/2.
  CHECK(op_flops("aten::conv2d", "[[1, 4, 8, 8], [6, 2, 3, 3], []]", "", values) == 3456);
  CHECK(op_flops("aten::conv2d", "[[1, 4, 8, 8], [6, 2, 3, 3], []]", "", "[]") == 0);
  CHECK(op_flops("aten::linear", "[[4, 8], [8, 2]]", "", "") == 0);
  CHECK(op_flops("aten::mm", "[[9223372036854775807, 9], [9, 9223372036854775807]]", "", "") == INT64_MAX);
  CHECK(op_flops("aten::mm", "[[0, 0], [0, 5]]", "", "") == 0);
  CHECK(op_flops("aten::mm", "[[-1, 3", "", "") == 0);
  CHECK(op_flops("aten::bmm", "[[4294967296, 4294967296, 4], [4294967296, 4, 4]]", "", "") == INT64_MAX);
  CHECK(op_flops("aten::bmm", "[[4], [4]]", "", "") == 0);
  // Digits of a number that is not a whole number of 64 bits are not used as sizes.
  CHECK(shapes_text("[[1e300, 1], [1.5, 2], [9223372036854775808, -3]]") == "[[-1, 1], [-1, 2], [-1, -3]]");
  CHECK(op_flops("aten::mm", "[[1.5, 2], [2, 3]]", "", "") == 0);
  CHECK(shapes_text("]]][[[[[1,2],[") == "[[1, 2], []]");  // damaged: brackets are counted, whatever they enclose
}

TEST_CASE("operators: overloads are rows where asked") {
  const Trace trace =
      torch_trace({op("aten::add.Tensor", "0", "10"), op("aten::add.Scalar", "20", "10"), op("aten::add", "40", "10")});
  CHECK(ask(trace, "operators")[0].row_count() == 1);
  const auto tables = ask(trace, "operators", {.options = {{"group-by-overload-name", "true"}}});
  REQUIRE(tables[0].row_count() == 3);
  CHECK(cell(tables[0], "overload") == "Tensor");
  CHECK(cell(tables[0], "name") == "aten::add");
}

TEST_CASE("operators: stacks from frames, and none where torch recorded none") {
  const auto frame = [](const char* name, const char* ts, const char* dur, int id, const char* parent) {
    return torch_event("python_function", name, 100, 1, ts, dur,
                       "\"Python id\":" + std::to_string(id) + ",\"Python parent id\":" + parent);
  };
  const Trace trace =
      torch_trace({frame("main.py(1): <module>", "0", "100", 1, "null"), frame("a.py(1): f", "10", "20", 2, "1"),
                   op("aten::relu", "12", "5"), frame("b.py(1): g", "40", "20", 3, "1"), op("aten::relu", "42", "9")});
  const auto tables = ask(trace, "operators", {.options = {{"group-by-stack-n", "2"}}});
  REQUIRE(tables[0].row_count() == 2);
  CHECK(cell(tables[0], "stack") == "b.py(1): g; main.py(1): <module>");
  CHECK(cell(tables[0], "stack", "host_ns", "5000") == "a.py(1): f; main.py(1): <module>");
  CHECK(ask(trace, "operators", {.options = {{"include-python-functions", "true"}}})[0].row_count() == 4);
  CHECK(printed(trace, {{"group-by-stack-n", "2"}}).find("Source Location") == std::string::npos);
  const std::string rebuilt = printed(trace, {{"group-by-stack-n", "1"}, {"stacks", "rebuilt"}});
  CHECK(rebuilt.find("  Source Location ") != std::string::npos);
  auto result = answer(trace, {{"group-by-stack-n", "1"}, {"stacks", "torch"}}, false);
  REQUIRE(result);
  CHECK(result->notes.count("operators.no_stacks") == 1);
}

TEST_CASE("operators: impossible options are refused with a hint what to type") {
  const Trace trace = torch_trace(kStep);
  const auto refused = [&](const char* name, const char* value, const char* words, bool foreign) {
    auto result = answer(trace, {{name, value}}, foreign);
    REQUIRE_FALSE(result);
    CHECK(result.error().text().find(words) != std::string::npos);
  };
  refused("sort-by", "self_gpu_time", "self_device_time_total", false);
  refused("time-unit", "ms", "add --format torch", false);
  refused("group-by-stack-n", "-1", "whole number", true);
  const Folder folder;
  const Trace two = read_with(
      "kineto", {folder.add("rank0.json", torch_file(kStep, 0)), folder.add("rank1.json", torch_file(kStep, 1))});
  auto result = answer(two, {});
  REQUIRE_FALSE(result);
  CHECK(result.error().text().find("choose one with --ranks: 0, 1") != std::string::npos);
  CHECK(ask(two, "operators")[0].row_count() == 14);
}

TEST_CASE("operators: a report holds the first rows and says so; a trace of other things is noted") {
  std::vector<std::string> many;
  for (int i = 0; i < 250; ++i) many.push_back(op("op" + std::to_string(i), std::to_string(10 * i), "5"));
  const Trace trace = torch_trace(many);
  AnalysisInput input;
  input.trace = &trace;
  input.for_report = input.brief = true;
  auto result = find_analysis("operators")->run(input);
  REQUIRE(result);
  CHECK(result->tables[0].row_count() == 200);
  CHECK(result->tables[0].title() == "Operators by time, the first 200 of 250 rows");
  const Trace other = torch_trace({torch_event("mine", "a", 1, 1, "0", "5")});
  result = answer(other, {}, false);
  REQUIRE(result);
  CHECK(result->notes.count("operators.none") == 1);
  CHECK(printed(other, {}).empty());
}

TEST_CASE("operators: ResNet50 as the TensorBoard plugin's own test has it, which is key_averages()") {
  const std::string folder = shared_data("kineto/tb_plugin");
  if (folder.empty()) return;
  const Trace trace = read_with("kineto", {folder + "/worker0.1623143089861.pt.trace.json.gz"});
  const auto tables = ask(trace, "operators");
  const Table& table = tables[0];
  std::ifstream in(folder + "/result_check_file.txt");
  std::string line;
  for (int n = 0; n < 3; ++n) std::getline(in, line);  // the third line: rows by name
  const auto number = [&](size_t from, const char* key) {
    const size_t at = line.find(std::string("\"") + key + "\": ", from) + std::string(key).size() + 4;
    return parse_int(std::string_view(line).substr(at, line.find_first_of(",}", at) - at)).value_or(-1);
  };
  size_t rows = 0, same = 0;
  constexpr std::string_view kName = "\"name\": \"";
  for (size_t at = line.find(kName, line.find("\"data\"")); at != std::string::npos; at = line.find(kName, at + 1)) {
    const std::string name = line.substr(at + kName.size(), line.find('"', at + kName.size()) - at - kName.size());
    ++rows;
    const size_t object = line.rfind('{', at);
    for (size_t r = 0; r < table.row_count(); ++r) {
      if (table.text(r, 1) != name || table.text(r, 2) == "kernel") continue;
      bool equal = number(object, "calls") == table.integer(r, static_cast<size_t>(table.column_index("count")));
      for (const auto& [key, column] : {std::pair{"device_self_duration", "self_device_ns"},
                                        {"device_total_duration", "device_ns"},
                                        {"host_self_duration", "self_host_ns"},
                                        {"host_total_duration", "host_ns"}})
        equal &= number(object, key) == table.integer(r, static_cast<size_t>(table.column_index(column))) / 1000;
      same += equal;
      break;
    }
  }
  CHECK(rows == 76);
  CHECK(same == rows);
}

TEST_CASE("roofline: work of matrix products and sums, by shapes and types") {
  const auto mm = op_work("aten::mm", "[[4, 8], [8, 2]]", R"(["c10::BFloat16", "c10::BFloat16"])", "");
  CHECK((mm && mm->flops == 2 * 4 * 8 * 2 && mm->min_bytes == 2 * (32 + 16 + 8) && mm->is_matrix));
  CHECK((mm && mm->type == "c10::BFloat16"));
  const auto addmm = op_work("aten::addmm", "[[2], [4, 8], [8, 2], [], []]",
                             R"(["float", "c10::Half", "c10::Half", "Scalar", "Scalar"])", "");
  CHECK((addmm && addmm->flops == 128 && addmm->min_bytes == 4 * 2 + 2 * (32 + 16 + 8) && addmm->type == "c10::Half"));
  const auto product = [](const char* beta) {  // what is multiplied by 0 is not read
    return op_work("aten::baddbmm", "[[3, 4, 2], [3, 4, 8], [3, 8, 2], [], []]",
                   R"(["float", "float", "float", "Scalar", "Scalar"])",
                   std::string(R"(["", "", "", ")") + beta + R"(", "1"])");
  };
  const auto alone = product("0."), added = product("0.5");
  CHECK((alone && alone->flops == 384 && alone->min_bytes == 4 * (96 + 48 + 24)));
  CHECK((added && added->flops == 384 && added->min_bytes == 4 * (24 + 96 + 48 + 24)));
  const auto bmm = op_work("aten::bmm", "[[3, 4, 8], [3, 8, 2]]", R"(["float", "float"])", "");
  CHECK((bmm && bmm->flops == 384 && bmm->min_bytes == 4 * (96 + 48 + 24)));
  // Both are stretched: a result of 5·6 elements.
  const auto add = op_work("aten::add", "[[5, 1], [6], []]", R"(["float", "float", "Scalar"])", "");
  CHECK((add && add->flops == 30 && add->min_bytes == 4 * (5 + 6 + 30) && !add->is_matrix));
}

TEST_CASE("roofline: work of convolutions, both ways") {
  const char* types = R"(["float", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar"])";
  const char* two = R"(["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "2"])";
  const auto conv2d = op_work("aten::conv2d", "[[1, 4, 8, 8], [6, 2, 3, 3], []]", types, two);
  CHECK((conv2d && conv2d->flops == 3456 && conv2d->min_bytes == 4 * (256 + 108 + 6 * 16)));
  const char* whole = R"(["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"])";
  const auto convolution = op_work("aten::convolution", "[[1, 4, 8, 8], [6, 2, 3, 3], []]", types, whole);
  CHECK((convolution && convolution->flops == 3456 && convolution->min_bytes == conv2d->min_bytes));
  // (4 − 1)·2 + 3 = 9 places are written; each of the 4 places read meets the whole weight: 2·4·(2·5·3)
  const char* turned = R"(["", "", "", "[2]", "[0]", "[1]", "True", "[0]", "1"])";
  const auto transposed = op_work("aten::convolution", "[[1, 2, 4], [2, 5, 3], []]", types, turned);
  CHECK((transposed && transposed->flops == 240 && transposed->min_bytes == 4 * (8 + 30 + 5 * 9)));
  const char* grads = R"(["float", "float", "float"])";
  const auto backward = [&](const std::string& mask) {
    return op_work("aten::convolution_backward", "[[1, 6, 4, 4], [1, 4, 8, 8], [6, 2, 3, 3]]", grads,
                   R"(["", "", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2", ")" + mask + "\"]");
  };
  // The weight's gradient needs no weight, the input's no input.
  const auto both = backward("[True, True, False]"), weight = backward("[False, True, False]");
  const auto input = backward("[True, False, False]");
  CHECK((both && both->flops == 2 * 3456 && both->min_bytes == 4 * (96 + 256 + 108 + 256 + 108)));
  CHECK((weight && weight->flops == 3456 && weight->min_bytes == 4 * (96 + 256 + 108)));
  CHECK((input && input->flops == 3456 && input->min_bytes == 4 * (96 + 108 + 256)));
}

TEST_CASE("roofline: work of attention, with and without a causal mask") {
  const std::string half = R"("c10::Half", "c10::Half", "c10::Half")";
  const auto flash = [&](const char* dims, const char* causal) {
    return op_work("aten::_scaled_dot_product_flash_attention", dims, "[" + half + R"(, "Scalar", "Scalar"])",
                   std::string(R"(["", "", "", "0.", ")") + causal + "\"]");
  };
  const char* dims = "[[2, 4, 5, 8], [2, 2, 5, 8], [2, 2, 5, 8], [], []]";
  const auto full = flash(dims, "False"), causal = flash(dims, "True");
  CHECK((full && full->flops == 2 * 2 * 4 * 25 * 16 && full->min_bytes == 2 * (320 + 160 + 160 + 320)));
  CHECK((causal && causal->flops == 2 * 2 * 4 * 15 * 16 && causal->min_bytes == full->min_bytes));
  const auto backward = op_work(
      "aten::_scaled_dot_product_flash_attention_backward", "[[2, 4, 5, 8], [2, 4, 5, 8], [2, 4, 5, 8], [2, 4, 5, 8]]",
      R"(["c10::Half", )" + half + "]", R"(["", "", "", "", "", "", "", "", "", "", "0.", "False"])");
  CHECK((backward && backward->flops == 2 * 2 * 4 * 25 * 5 * 8 && backward->min_bytes == 2 * (4 * 320 + 3 * 320)));
  // A mask has the shape of the scores, however few bytes lie behind it.
  const auto masked = op_work("aten::_scaled_dot_product_efficient_attention",
                              "[[2, 4, 5, 8], [2, 4, 5, 8], [2, 4, 5, 8], [2, 4, 5, 5]]",
                              "[" + half + R"(, "c10::Half"])", R"(["", "", "", "", "True", "0.", "False"])");
  CHECK((masked && masked->flops == 2 * 2 * 4 * 25 * 16 && masked->min_bytes == 2 * 4 * 320));
}

TEST_CASE("roofline: work of matrices with few bits, and of groups of matrices") {
  const char* eight = R"(["c10::Float8_e4m3fn", "c10::Float8_e4m3fn", "float", "float", "", "", "Scalar"])";
  const auto fp8 =
      op_work("aten::_scaled_mm", "[[4, 8], [8, 2], [], [], [], [], []]", eight, R"(["", "", "", "", "", "", "15"])");
  CHECK((fp8 && fp8->flops == 128 && fp8->min_bytes == 32 + 16 + 2 * 4 + 2 * 8 && fp8->type == "c10::Float8_e4m3fn"));
  const char* four = R"(["c10::Float4_e2m1fn_x2", "c10::Float4_e2m1fn_x2"])";  // two values of the inner dimension
  CHECK(op_work("aten::_scaled_mm_v2", "[[4, 8], [8, 2]]", four, "")->flops == 256);
  const auto grouped = [](const char* dims) {
    const auto work = op_work("aten::_grouped_mm", dims, R"(["c10::BFloat16", "c10::BFloat16", "int"])", "");
    return work ? work->flops : 0;
  };
  CHECK(grouped("[[48, 64], [3, 64, 32], [3]]") == 2 * 48 * 64 * 32);  // rows of three groups
  CHECK(grouped("[[3, 16, 64], [64, 96], [3]]") == 2 * 16 * 64 * 96);  // columns of three groups
  CHECK(grouped("[[64, 48], [48, 32], [3]]") == 2 * 64 * 48 * 32);     // a gradient of weights
  CHECK(grouped("[[3, 16, 64], [3, 64, 32], []]") == 2 * 3 * 16 * 64 * 32);
  CHECK(grouped("[[3, 16, 64], [4, 64, 32], []]") == 0);
}

TEST_CASE("roofline: work of attention of other packages, windows and packed sequences") {
  const std::string types = R"(["c10::Half", "c10::Half", "c10::Half", "int", "int"])";
  const auto flash = [&](const char* dims, const char* window) {
    return op_work("flash_attn::_flash_attn_forward", dims, types,
                   std::string(R"(["", "", "", "0.", "1.", "True", ")") + window + "\"]");
  };
  const char* dims = "[[2, 6, 4, 8], [2, 6, 2, 8], [2, 6, 2, 8]]";  // lengths come before heads
  CHECK(flash(dims, "-1")->flops == 2 * 2 * 4 * 21 * 16);
  CHECK(flash(dims, "2")->flops == 2 * 2 * 4 * (6 + 3 * 3) * 16);  // a query sees itself and two keys
  // Four sequences of ten tokens, the longest of five: at least 5, 2, 2, 1, at most 5, 3, 1, 1.
  const auto packed = op_work("flashattn::_flash_attn_varlen_forward", "[[10, 4, 8], [10, 2, 8], [10, 2, 8], [5], [5]]",
                              types, R"(["", "", "", "", "", "5", "5", "0.", "1.", "True", "-1"])");
  REQUIRE(packed);
  CHECK((packed->flops == 2 * 4 * (15 + 3 + 3 + 1) * 16 && packed->max_flops == 2 * 4 * (15 + 6 + 1 + 1) * 16));
}

TEST_CASE("roofline: work that is not told is not guessed") {
  const char* floats = R"(["float", "float", "float"])";
  CHECK(!op_work("aten::relu", "[[4, 8]]", floats, ""));
  CHECK(!op_work("aten::mm", "[[4, 8], [9, 2]]", floats, ""));  // these do not fit each other
  CHECK(!op_work("aten::addmm", "[[8, 4, 4], [4, 4], [4]]", floats, ""));
  // FLOPs follow from shapes alone, bytes do not.
  const auto untyped = op_work("aten::mm", "[[4, 8], [8, 2]]", R"(["float", "own::type"])", "");
  CHECK((untyped && untyped->flops == 128 && untyped->min_bytes == -1));
  CHECK(!op_work("aten::mm", "[[9223372036854775807, 9], [9, 9223372036854775807]]", floats, ""));
  CHECK(!op_work("aten::conv2d", "[[1, 4, 8, 8], [6, 2, 3, 3], []]", floats, "[]"));
  const char* beyond = R"(["", "", "", "[9223372036854775807]", "[9223372036854775807]", "[1]", "True", "[0]", "1"])";
  CHECK(!op_work("aten::convolution", "[[1, 2, 4], [2, 5, 3], []]", floats, beyond));
  // Whether the mask is causal decides the number: without the values it is not known.
  CHECK(
      !op_work("aten::_scaled_dot_product_flash_attention", "[[1, 1, 4, 8], [1, 1, 4, 8], [1, 1, 4, 8]]", floats, ""));
}

TEST_CASE("roofline: published peaks, by the whole name of the device") {
  const auto h100 = published_peaks("NVIDIA H100 80GB HBM3"), v100 = published_peaks("Tesla V100-SXM2-16GB");
  CHECK((h100 && h100->tflops[Precision::kBf16] == 989.4 && h100->gbps == 3350));
  CHECK((v100 && v100->tflops[Precision::kFp16] == 125 && v100->tflops[Precision::kBf16] == 0));
  CHECK((published_peaks("NVIDIA A10") && !published_peaks("NVIDIA A10G") && !published_peaks("NVIDIA A10-4Q")));
  // Halves of numbers with sparsity, by type; FP4 of B300 is disputed, so it has none.
  const auto b200 = published_peaks("NVIDIA B200"), b300 = published_peaks("NVIDIA B300");
  CHECK((b200 && b200->tflops[Precision::kFp8] == 4500 && b200->tflops[Precision::kFp4] == 9000));
  CHECK((b300 && b300->tflops[Precision::kFp4] == 0 && b300->tflops[Precision::kBf16] == 2250));
  CHECK(published_peaks("NVIDIA H200")->tflops[Precision::kFp16] !=
        published_peaks("NVIDIA H200 NVL")->tflops[Precision::kFp16]);
  // A part of a device, two products at once, a board that says no memory, and none.
  for (const char* name : {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", "AMD Instinct MI250X / MI250",
                           "AMD Instinct MI250X/MI250", "NVIDIA A100-PG509-200", ""})
    CHECK(!published_peaks(name));
}
