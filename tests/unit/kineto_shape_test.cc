// The predicted-shape parser against the general one, and files parsed in stretches against whole ones.
#include <doctest/doctest.h>

#include <random>
#include <string>

#include "reader_fixture.h"
#include "readers/kineto/chunk_parser.h"
#include "readers/kineto/read_file.h"
#include "readers/kineto/shape_tree.h"

using namespace stageline;
using namespace stageline::kineto;

namespace {

// Returns every field of an event as text.
std::string dump(const rows::Event& e) {
  std::string out;
  const auto put = [&](const char* name, const auto& value) {
    out += name;
    out += '=';
    if constexpr (std::is_convertible_v<decltype(value), std::string_view>) out += std::string_view(value);
    else out += std::to_string(value);
    out += ' ';
  };
  put("ph", static_cast<int>(e.phase));
  put("bp", static_cast<int>(e.binding));
  put("cat?", e.has_cat);
  put("ts?", e.has_ts);
  put("dur?", e.has_dur);
  put("fraction", e.fractional_ts);
  if (e.phase == 'M' || e.phase == 'C') return out + std::string(e.args);  // read as text
  put("collective?", e.has_collective);
  put("memory?", e.has_memory);
  put("copy?", e.has_copy);
  put("sync?", e.has_sync);
  put("python?", e.has_python);
  put("inputs?", e.has_inputs);
  put("launch shape?", e.has_launch_shape);
  put("stack?", e.has_stack);
  for (const std::string_view text : {e.cat,
                                      e.name,
                                      e.pid,
                                      e.tid,
                                      e.id,
                                      e.collective,
                                      e.dtype,
                                      e.group,
                                      e.group_description,
                                      e.group_ranks,
                                      e.in_split,
                                      e.out_split,
                                      e.comms_id,
                                      e.input_dims,
                                      e.input_types,
                                      e.concrete_inputs,
                                      e.call_stack,
                                      e.module_hierarchy,
                                      e.grid,
                                      e.block,
                                      e.blocks_per_sm,
                                      e.warps_per_sm,
                                      e.occupancy})
    put("text", text);
  for (const int64_t n : {e.ts_ns,
                          e.dur_ns,
                          e.stream,
                          e.correlation,
                          e.external_id,
                          e.bytes,
                          e.wait_on_stream,
                          e.wait_on_record,
                          e.python_id,
                          e.python_parent,
                          e.sequence_number,
                          e.forward_thread,
                          e.in_elements,
                          e.out_elements,
                          e.group_size,
                          e.peer,
                          e.src_rank,
                          e.dst_rank,
                          e.seq,
                          e.total_allocated,
                          e.total_reserved,
                          e.device_type,
                          e.device_id,
                          e.registers,
                          e.shared_bytes,
                          e.python_module})
    put("n", n);
  put("address", e.address);
  put("bandwidth", e.bandwidth_gbps);
  return out;
}

class Writer {
 public:
  explicit Writer(uint32_t seed) : random_(seed) {}

  // An event in one of a few layouts, with keys and values as Kineto, other producers and none write them.
  std::string event() {
    const bool compact = chance(3), indented = chance(3);
    const std::string colon = compact ? ":" : ": ", line = indented ? "\n      " : compact ? "" : " ";
    std::string out = "{" + line;
    const auto field = [&](std::string_view key, const std::string& value) {
      if (out.back() != '{' && out != "{" + line) out += "," + line;
      out += "\"" + std::string(key) + "\"" + colon + value;
    };
    const char* phases[] = {"X", "X", "X", "s", "f", "i", "M", "C", "B", "E", "b"};
    field("ph", "\"" + std::string(phases[below(11)]) + "\"");
    if (!chance(6)) field("cat", text(4));
    field("name", text(9));
    field("pid", chance(4) ? text(3) : number());
    field("tid", chance(4) ? "\"stream 7\"" : number());
    if (!chance(9)) field("ts", time());
    if (!chance(5)) field("dur", time());
    if (chance(4)) field("id", chance(2) ? number() : text(3));
    if (chance(6)) field("bp", "\"e\"");
    if (chance(9)) field("extra", any(2));
    if (chance(5)) return out + (indented ? "\n    }" : "}");
    std::string args;
    const char* keys[] = {"External id",
                          "correlation",
                          "stream",
                          "bytes",
                          "memory bandwidth (GB/s)",
                          "wait_on_stream",
                          "wait_on_cuda_event_record_corr_id",
                          "Python id",
                          "Python parent id",
                          "Sequence number",
                          "Fwd thread id",
                          "Collective name",
                          "dtype",
                          "In msg nelems",
                          "Out msg nelems",
                          "Group size",
                          "Rank",
                          "Process Group Ranks",
                          "Addr",
                          "Bytes",
                          "Total Allocated",
                          "Device Type",
                          "Input Dims",
                          "Concrete Inputs",
                          "grid",
                          "block",
                          "blocks per SM",
                          "registers per thread",
                          "shared memory",
                          "Input type",
                          "Call stack",
                          "Python module id",
                          "unknown",
                          "Seq",
                          "Comms Id"};
    const int count = below(7);
    for (int k = 0; k < count; ++k) {
      const std::string key = keys[below(35)];
      if (args.find("\"" + key + "\"") != std::string::npos) continue;
      args += (args.empty() ? "" : ",") + std::string(chance(3) ? "      " : " ") + "\"" + key + "\"" + colon + any(2);
    }
    field("args", "{" + args + "}");
    return out + (indented ? "\n    }" : "}");
  }
  // The same event with other digits: what a trace's next event of the shape looks like.
  std::string varied(std::string event) {
    for (size_t i = 1; i < event.size(); ++i)
      if (event[i] >= '1' && event[i] <= '9' && chance(2)) event[i] = static_cast<char>('1' + below(9));
    return event;
  }
  std::string broken(std::string event) {
    const size_t at = static_cast<size_t>(below(static_cast<int>(event.size())));
    const char bytes[] = "\"\\{}[],:0x\n-.eE ";
    if (chance(3)) event.erase(at, 1 + static_cast<size_t>(below(4)));
    else event[at] = bytes[below(17)];
    return event;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  bool chance(int n) { return below(n) == 0; }
  std::string number() {
    const char* odd[] = {"0", "-1", "4294967295", "123456789012345678", "1e3", "7.5", "-0", "12345678901234567890"};
    return chance(5) ? odd[below(8)] : std::to_string(below(100000));
  }
  std::string time() {
    const char* odd[] = {"1669783687464181",
                         "1713000000000000.123",
                         "0",
                         "-5",
                         "1e3",
                         "1.5e2",
                         "0.0001",
                         "12.3456",
                         "\"17.5\"",
                         "null",
                         "9223372036854775",
                         "9223372036854776.5",
                         "99999999999999999999"};
    if (chance(4)) return odd[below(13)];
    return std::to_string(below(1000000)) + (chance(2) ? "." + std::to_string(below(1000)) : "");
  }
  std::string text(int longest) {
    std::string out = "\"";
    const char* pieces[] = {"aten::add",
                            "Memcpy HtoD (Pageable -> Device)",
                            "x",
                            " ",
                            "void k<4, f>(int)",
                            "{",
                            "]",
                            "\\\"",
                            "\\u00e9",
                            "µ",
                            "\\\\",
                            "Ω"};
    for (int k = below(longest); k > 0; --k) out += pieces[chance(4) ? below(12) : below(7)];
    return out + "\"";
  }
  std::string any(int depth) {
    switch (below(depth > 0 ? 8 : 5)) {
      case 0: return text(4);
      case 1: return "null";
      case 2: return chance(2) ? "true" : "false";
      case 5: return "[" + any(depth - 1) + ", " + any(depth - 1) + "]";
      case 6: return "[]";
      case 7: return "{\"a\": " + any(depth - 1) + "}";
      default: return number();
    }
  }
  std::mt19937 random_;
};

std::string padded(const std::string& text) { return text + std::string(64, '\0'); }

}  // namespace

TEST_CASE("the shape tree gives what the general parser gives") {
  Writer writer(7);
  ShapeTree tree;
  EventParser parser;
  int by_shape = 0, both = 0;
  for (int round = 0; round < 8000; ++round) {
    if (round % 500 == 0) tree = ShapeTree();  // it stops learning when it is large
    std::string text = writer.event();
    for (int k = 0; k < 8; ++k) {
      const std::string buffer = padded(text + ",\n");
      rows::Event general, predicted;
      const kineto::Fault fault = parser.parse(std::string_view(buffer).substr(0, text.size()), general);
      const char* after = tree.match(buffer.data(), buffer.data() + text.size(), predicted);
      if (after) {
        ++by_shape;
        if (fault == kineto::Fault::kNone && k < 7) {
          REQUIRE(after == buffer.data() + text.size());
          ++both;
          const std::string want = dump(general), got = dump(predicted);
          REQUIRE_MESSAGE(want == got, text);
        }
      }
      if (fault == kineto::Fault::kNone) tree.learn(std::string_view(buffer).substr(0, text.size()));
      text = k == 6 ? writer.broken(text) : writer.varied(text);
    }
  }
  CHECK(by_shape > 5000);
  CHECK(both > 5000);
}

TEST_CASE("an event cut anywhere fits no shape") {
  ShapeTree tree;
  const std::string event =
      "{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": 7,\n    \"ts\": 1.5, \"dur\": "
      "2,\n    \"args\": {\n      "
      "\"stream\": 7, \"grid\": [1, 2, 3]\n    }\n  }";
  tree.learn(event);
  rows::Event out;
  const std::string whole = padded(event);
  REQUIRE(tree.match(whole.data(), whole.data() + event.size(), out) == whole.data() + event.size());
  for (size_t cut = 0; cut < event.size(); ++cut) {
    const std::string part = padded(event.substr(0, cut));
    CHECK(tree.match(part.data(), part.data() + cut, out) == nullptr);
  }
}

TEST_CASE("a file parsed in stretches has the rows of one parsed whole") {
  Writer writer(11);
  std::string text = "{\"schemaVersion\": 1, \"traceEvents\": [\n";
  for (int i = 0; text.size() < 5'000'000; ++i) {
    text += (i ? ",\n  " : "  ") + writer.event();
    if (i % 1000 == 999) text += ",\n  " + writer.broken(writer.event());
  }
  text += "\n], \"traceName\": \"x\"}";
  const Folder folder;
  const std::string path = folder.add("trace.json", text);
  const auto all = read_file(path, 1, nullptr);
  REQUIRE(all);
  REQUIRE(all->size() == 1);
  const rows::FileRows& one = all->front();
  const auto rows_of = [](const rows::FileRows& file) {
    std::vector<std::string> rows;
    for (const auto& block : file.blocks)
      for (const rows::Row& row : block)
        rows.push_back(std::to_string(row.offset) + " " + std::to_string(row.file_index) + " " +
                       std::to_string(row.start_ns) + " " + std::to_string(row.dur_ns) + " " +
                       std::string(file.dictionaries.names.text(row.name)) + " " +
                       std::string(file.dictionaries.threads.text(row.thread)) + " " + std::to_string(row.stream) +
                       " " + std::string(file.dictionaries.categories.text(row.category)));
    return rows;
  };
  const auto want = rows_of(one);
  CHECK(want.size() > 1000);
  for (const size_t workers : {2, 3, 7}) {
    const auto read = read_file(path, workers, nullptr);
    REQUIRE(read);
    const rows::FileRows& many = read->front();
    CHECK(many.rest.event_count == one.rest.event_count);
    auto got = rows_of(many);
    REQUIRE(got.size() == want.size());
    // Joined B and E rows stand after the chunk that closed them, so only the order within blocks may differ.
    auto sorted_want = want;
    std::sort(sorted_want.begin(), sorted_want.end());
    std::sort(got.begin(), got.end());
    for (size_t i = 0; i < got.size(); ++i) REQUIRE(got[i] == sorted_want[i]);
    CHECK(many.rest.copies.size() == one.rest.copies.size());
    CHECK(many.rest.flows.size() == one.rest.flows.size());
    CHECK(many.rest.diagnostics.items().size() == one.rest.diagnostics.items().size());
  }
}
