// The tolerant parser gives what the strict one gives on every valid event, and something sensible on the rest.
#include <doctest/doctest.h>
#include <simdjson.h>

#include <deque>
#include <random>
#include <string>

#include "base/input.h"
#include "base/json_events.h"
#include "readers/kineto/chunk_parser.h"
#include "shared_data.h"

using namespace stageline;
using namespace stageline::kineto;

namespace {

std::string padded(std::string text) {
  text.append(kJsonPaddingBytes, ' ');
  return text;
}

bool same(const rows::Event& a, const rows::Event& b) {
  return a.phase == b.phase && a.binding == b.binding && a.has_cat == b.has_cat && a.has_ts == b.has_ts &&
         a.has_dur == b.has_dur && a.fractional_ts == b.fractional_ts && a.has_collective == b.has_collective &&
         a.has_memory == b.has_memory && a.has_copy == b.has_copy && a.has_sync == b.has_sync &&
         a.has_operator == b.has_operator && a.has_python == b.has_python && a.cat == b.cat && a.name == b.name &&
         a.pid == b.pid && a.tid == b.tid && a.id == b.id && a.ts_ns == b.ts_ns && a.dur_ns == b.dur_ns &&
         a.stream == b.stream && a.correlation == b.correlation && a.external_id == b.external_id &&
         a.bytes == b.bytes && a.bandwidth_gbps == b.bandwidth_gbps && a.wait_on_stream == b.wait_on_stream &&
         a.wait_on_record == b.wait_on_record && a.python_id == b.python_id && a.python_parent == b.python_parent &&
         a.sequence_number == b.sequence_number && a.forward_thread == b.forward_thread &&
         a.collective == b.collective && a.dtype == b.dtype && a.group == b.group &&
         a.group_description == b.group_description && a.group_ranks == b.group_ranks && a.in_split == b.in_split &&
         a.out_split == b.out_split && a.comms_id == b.comms_id && a.in_elements == b.in_elements &&
         a.out_elements == b.out_elements && a.group_size == b.group_size && a.peer == b.peer &&
         a.src_rank == b.src_rank && a.dst_rank == b.dst_rank && a.seq == b.seq && a.address == b.address &&
         a.total_allocated == b.total_allocated && a.total_reserved == b.total_reserved &&
         a.device_type == b.device_type && a.device_id == b.device_id && a.input_dims == b.input_dims &&
         a.input_types == b.input_types && a.concrete_inputs == b.concrete_inputs && a.call_stack == b.call_stack &&
         a.module_hierarchy == b.module_hierarchy && a.grid == b.grid && a.block == b.block &&
         a.blocks_per_sm == b.blocks_per_sm && a.warps_per_sm == b.warps_per_sm && a.occupancy == b.occupancy &&
         a.registers == b.registers && a.shared_bytes == b.shared_bytes && a.python_module == b.python_module;
}

struct Differ {
  EventParser strict;
  TolerantParser tolerant;
  simdjson::dom::parser judge;
  int64_t compared = 0;

  // Both on one text that may be followed by more.
  void compare(const std::string& event) {
    if (event.empty() || event[0] != '{') return;
    const std::string text = padded(event);
    simdjson::dom::element root;
    if (judge.parse(text).get(root) || !root.is_object()) return;
    rows::Event a, b;
    const kineto::Fault fa = strict.parse(std::string_view(text).substr(0, event.size()), a);
    if (fa == kineto::Fault::kMalformed) return;  // a lone surrogate in a name
    const kineto::Fault fb = tolerant.parse(event, b);
    CHECK_MESSAGE(fa == fb, event);
    CHECK_MESSAGE(same(a, b), event);
    CHECK_MESSAGE(tolerant.end() == event.find_last_not_of(" \t\r\n") + 1, event);
    CHECK_MESSAGE(!tolerant.guessed(), event);
    const size_t first = event.find("\"args\"");
    if (first != std::string::npos && event[first - 1] != '\\' &&
        event.find("\"args\"", first + 1) == std::string::npos) {
      CHECK_MESSAGE(a.args == b.args, event);
    }
    ++compared;
  }
};

rows::Event parsed(const std::string& given, TolerantParser& parser, kineto::Fault expected = kineto::Fault::kNone) {
  static std::deque<std::string> kept;  // events point into their texts
  const std::string& text = kept.emplace_back(given);
  rows::Event event;
  const kineto::Fault fault = parser.parse(text, event);
  CHECK_MESSAGE(fault == expected, text);
  return event;
}

}  // namespace

TEST_CASE("tolerant parser: agrees with the strict one on real traces and their mutations") {
  Differ differ;
  std::mt19937 random(1);
  for (const char* rel :
       {"kineto/hta/critical_path/cuda_event_sync/event_sync_trace.json.gz",
        "kineto/hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
        "kineto/hta/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz",
        "kineto/hta/trace_file_list/inference_rank_1.json.gz", "kineto/hta/triton_example/triton_example.json.gz",
        "kineto/gen_small_8ranks_ns/rank-3.pt.trace.json.gz"}) {
    const std::string path = shared_data(rel);
    if (path.empty()) continue;
    Result<Input> input = Input::open(path);
    REQUIRE(input);
    JsonEvents events(*input, JsonLayout::kTrace);
    int budget = 3000;
    for (;;) {
      auto spans = events.next();
      REQUIRE(spans);
      if (spans->empty() || budget < 0) break;
      for (const JsonSpan& span : *spans) {
        if (--budget < 0) break;
        const std::string event(span.text);
        differ.compare(event);
        for (int m = 0; m < 4; ++m) {
          std::string mutant = event;
          constexpr std::string_view kPieces[] = {"\\n", "\\u00e9", "null",    "0",        "{}",   "[1,{}]", ",", "1e3",
                                                  "\"",  " ",       "\"ts\":", "\xc3\xa9", "\\\"", "-",      "."};
          const size_t at = random() % mutant.size();
          const std::string_view piece = kPieces[random() % std::size(kPieces)];
          if (random() % 2 == 0) mutant.insert(at, piece);
          else mutant.replace(at, std::min(piece.size(), mutant.size() - at), piece);
          differ.compare(mutant);
          rows::Event any;
          differ.tolerant.parse(mutant, any);  // whatever it is, it is survived
        }
      }
    }
  }
  if (!shared_data("kineto").empty()) CHECK(differ.compared > 5000);
}

TEST_CASE("tolerant parser: quotes that were not escaped") {
  TolerantParser parser;
  const auto with_name = [](const std::string& name) {
    return "{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"" + name +
           "\", \"pid\": 7, \"tid\": 8,\n    \"ts\": 10.5, \"dur\": 2,\n    \"args\": {\n      \"External id\": 5,"
           "\"Ev Idx\": 3, \"Sequence number\": 9\n    }\n  }";
  };
  for (const std::string& name :
       {std::string("{\"device\": \"cpu\"}"), std::string("f(\"x\", \"y\")"), std::string("a\"b"),
        std::string("{\"a\": {\"b\", \"x\": 1}}"), std::string("say \"}, {\" twice"), std::string("\"quoted\"")}) {
    CAPTURE(name);
    const rows::Event event = parsed(with_name(name), parser);
    CHECK(event.name == name);
    CHECK(event.pid == "7");
    CHECK(event.ts_ns == 10'500);
    CHECK(event.dur_ns == 2'000);
    CHECK(event.external_id == 5);
    CHECK(event.sequence_number == 9);
    CHECK(parser.guessed());
    CHECK(parser.end() == with_name(name).size());
    // With the next events behind it, the end is still found.
    const std::string two = with_name(name) + ",\n  " + with_name("next") + "\n ]\n}";
    CHECK(parsed(two, parser).name == name);
    CHECK(parser.end() == with_name(name).size());
  }
  const rows::Event kwargs = parsed(
      "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"k\", \"pid\": 1, \"tid\": 2, \"ts\": 1, \"dur\": 1, "
      "\"args\": {\"External id\": 4, \"kernel_file\": \"a \"b\" c\", \"Concrete Inputs\": [\"{\"k\": \"v\"\", \"\"], "
      "\"stream\": 7}}",
      parser);
  CHECK(kwargs.external_id == 4);
  CHECK(kwargs.stream == 7);
  CHECK(kwargs.name == "k");
}

TEST_CASE("tolerant parser: bytes that JSON forbids") {
  TolerantParser parser;
  const auto name_of = [&](const std::string& raw) {
    return std::string(
        parsed("{\"ph\":\"X\",\"name\":\"" + raw + "\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}", parser).name);
  };
  CHECK(name_of("C:\\data\\new") == "C:\\data\\new");  // \d is not an escape, so \n is not one either
  CHECK(name_of("a\\nb") == "a\nb");
  CHECK(name_of("a\nb\tc\x01") == "a\nb\tc\x01");
  CHECK(name_of("caf\xe9") == "caf\xef\xbf\xbd");
  CHECK(name_of("caf\xc3\xa9 \\d") == "caf\xc3\xa9 \\d");
  CHECK(name_of("\\ud83d\\ude00") == "\xf0\x9f\x98\x80");
  CHECK(name_of("\\ud83d") == "\xef\xbf\xbd");
  CHECK(name_of("C:\\dir\\") == "C:\\dir\\");
}

TEST_CASE("tolerant parser: values that are no JSON, commas too many, a brace too few") {
  TolerantParser parser;
  const std::string head = "{\"ph\":\"X\",\"name\":\"k\",\"pid\":1,\"tid\":1,\"ts\":1,";
  for (const char* word : {"NaN", "inf", "-Infinity", "N/A", "None", "nan"}) {
    const rows::Event event = parsed(head + "\"dur\":4,\"args\":{\"warps per SM\":" + word + ",\"bytes\":" + word +
                                         ",\"stream\":7, \"memory bandwidth (GB/s)\": " + word + "}}",
                                     parser);
    CHECK(event.stream == 7);
    CHECK(event.bytes == -1);
    CHECK(event.bandwidth_gbps == 0);
    const rows::Event without = parsed(head + "\"dur\":" + word + "}", parser);
    CHECK(without.has_ts);
    CHECK_FALSE(without.has_dur);
  }
  CHECK(parsed(head + "\"dur\":4,\"args\":{\"External id\": 5, }}", parser).external_id == 5);
  CHECK(parsed(head + "\"dur\":4,,\"args\":{,\"External id\": 5,,\"stream\": 6,},}", parser).stream == 6);
  CHECK(parsed(head + "\"dur\":4,\"args\":{\"External id\": ,\"stream\": 6}}", parser).stream == 6);
  CHECK(parsed(head + "\"dur\":4,\"args\":{\"stream\": 6}", parser).stream == 6);
  CHECK(parsed(head + "\"dur\":4,\"args\":{\"stream\": 6}\n]}", parser).stream == 6);
  const rows::Event lost_brace = parsed(head + "\"dur\":4,\"args\":{\"stream\": 6},\n" + head + "\"dur\":5}", parser);
  CHECK(lost_brace.stream == 6);
  CHECK(lost_brace.dur_ns == 4000);
  parsed(head + "\"dur\":\"soon\"}", parser, kineto::Fault::kBadField);
  parsed(head + "\"dur\":45", parser, kineto::Fault::kMalformed);  // perhaps 456 once
  parsed(head + "\"dur\":45,\"args\":{\"stream\": 7, \"correlation\": 12", parser, kineto::Fault::kMalformed);
  for (const char* text : {"", "{", "}", "[]", "{]", "{\"", "{\"ph", "{\"ph\":", "nothing", "{\"a\"\"b\"}"})
    parsed(text, parser, kineto::Fault::kMalformed);
}
