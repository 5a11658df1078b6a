#include <simdjson.h>

#include "base/input.h"
#include "readers/kineto/problems.h"
#include "readers/kineto/read_file.h"

namespace stageline::kineto {
namespace {

namespace od = simdjson::ondemand;

constexpr size_t kMaxBytes = (size_t{1} << 32) - simdjson::SIMDJSON_PADDING;  // the maximum that the JSON parser takes
constexpr size_t kMaxTensorBytes = size_t{1} << 16;                           // for the tensors of a node
constexpr double kAlike = 0.9;  // so large a share of the nodes that have an event must have its name

struct Node {
  int64_t id = -1, parent = -1, record = -1;
  std::string name, inputs, outputs, schema;
};

std::string cut(std::string_view text) {
  text = trim(text);
  return valid_utf8(text.size() <= kMaxTensorBytes ? text : text.substr(0, kMaxTensorBytes));
}

// Reads "inputs": {"values": […], …}; before schema 1.0.2 it was the list itself.
void read_tensors(od::value value, std::string& to) {
  od::json_type type;
  if (value.type().get(type) != simdjson::SUCCESS) return;
  std::string_view raw;
  if (type == od::json_type::object) {
    od::value values;
    if (value["values"].get(values) != simdjson::SUCCESS) return;
    if (simdjson::to_json_string(values).get(raw) == simdjson::SUCCESS) to = cut(raw);
  } else if (simdjson::to_json_string(value).get(raw) == simdjson::SUCCESS) {
    to = cut(raw);
  }
}

void read_attribute(od::object attribute, Node& node) {
  std::string name;
  for (auto field : attribute) {
    std::string_view key;
    if (field.unescaped_key().get(key) != simdjson::SUCCESS) return;
    if (key == "name") {
      std::string_view text;
      if (field.value().get_string().get(text) == simdjson::SUCCESS) name = text;
    } else if (key == "value") {
      int64_t number = 0;
      std::string_view text;
      if (name == "rf_id" && field.value().get_int64().get(number) == simdjson::SUCCESS) node.record = number;
      if (name == "op_schema" && field.value().get_string().get(text) == simdjson::SUCCESS)
        node.schema = valid_utf8(text);
    }
  }
}

bool read_node(od::object object, Node& node) {
  for (auto field : object) {
    std::string_view key;
    od::value value;
    if (field.unescaped_key().get(key) != simdjson::SUCCESS || field.value().get(value) != simdjson::SUCCESS)
      return false;
    int64_t number = 0;
    std::string_view text;
    if (key == "id") {
      if (value.get_int64().get(number) == simdjson::SUCCESS) node.id = number;
    } else if (key == "ctrl_deps" || key == "parent") {
      if (value.get_int64().get(number) == simdjson::SUCCESS) node.parent = number;
    } else if (key == "rf_id") {
      if (value.get_int64().get(number) == simdjson::SUCCESS) node.record = number;
    } else if (key == "name") {
      if (value.get_string().get(text) == simdjson::SUCCESS) node.name = valid_utf8(text);
    } else if (key == "op_schema") {
      if (value.get_string().get(text) == simdjson::SUCCESS) node.schema = valid_utf8(text);
    } else if (key == "inputs") {
      read_tensors(value, node.inputs);
    } else if (key == "outputs") {
      read_tensors(value, node.outputs);
    } else if (key == "attrs") {
      od::array attributes;
      if (value.get_array().get(attributes) != simdjson::SUCCESS) continue;
      for (auto one : attributes) {
        od::object attribute;
        if (one.get_object().get(attribute) != simdjson::SUCCESS) break;
        read_attribute(attribute, node);
      }
    }
  }
  return true;
}

// Appends the nodes of a complete JSON text; false when it is damaged.
bool parse_nodes(std::string& text, std::vector<Node>& nodes) {
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  od::parser parser;
  od::document document;
  od::array list;
  if (parser.iterate(text).get(document) != simdjson::SUCCESS ||
      document["nodes"].get_array().get(list) != simdjson::SUCCESS)
    return false;
  for (auto one : list) {
    od::object object;
    Node node;
    if (one.get_object().get(object) != simdjson::SUCCESS || !read_node(object, node)) return false;
    nodes.push_back(std::move(node));
  }
  return true;
}

// An observer that was not stopped writes neither "]" nor "}", and perhaps half a node at the end. Returns the text up
// to the last complete node, closed.
std::string closed(const std::string& text) {
  size_t depth = 0, last = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && depth > 0 && --depth == 2 && c == '}') {
      last = i + 1;
    }
  }
  return last == 0 ? std::string() : text.substr(0, last) + "]}";
}

std::vector<Node> read_nodes(const std::string& path, Diagnostics& notes) {
  std::vector<Node> nodes;
  Result<std::string> text = read_all(path, kMaxBytes);
  const auto lose = [&](const Problem& problem, const Args& args = {}) { notes.add(problem, args, {path}); };
  if (!text) {
    lose(problem::kineto_bad_execution_trace, Args().set("why", error_text(text.error())));
    return nodes;
  }
  if (parse_nodes(*text, nodes)) return nodes;
  std::string whole = closed(*text);
  nodes.clear();
  if (whole.empty() || (!parse_nodes(whole, nodes) && nodes.empty())) lose(problem::kineto_bad_execution_trace_empty);
  else lose(problem::kineto_bad_execution_trace_cut);
  return nodes;
}

// The record id of an event, with the position of the word that gives it.
struct FoundRecord {
  int64_t position = 0, record = 0;
};
// Returns the records of a file in its order; none where the file cannot be read again.
std::vector<FoundRecord> find_records(const std::string& path, std::string_view word) {
  std::vector<FoundRecord> out;
  Result<Input> input = Input::open(path);
  if (!input) return out;
  constexpr size_t kWindow = size_t{1} << 20, kOverlap = 64;  // a word and its number
  std::string window;
  int64_t offset = 0;  // decompressed position of window[0]
  for (;;) {
    const size_t kept = window.size();
    window.resize(kept + kWindow);
    Result<size_t> got = input->read(window.data() + kept, kWindow);
    window.resize(kept + (got ? *got : 0));
    const bool ends = !got || *got == 0;
    const size_t safe = ends ? window.size() : window.size() - std::min(kOverlap, window.size());
    size_t at = 0;
    while ((at = window.find(word, at)) != std::string::npos && at < safe) {
      size_t digit = at + word.size();
      while (digit < window.size() && (window[digit] == ' ' || window[digit] == ':')) ++digit;
      size_t end = digit;
      while (end < window.size() && window[end] >= '0' && window[end] <= '9') ++end;
      if (const auto record = parse_int(std::string_view(window).substr(digit, end - digit)))
        out.push_back({offset + static_cast<int64_t>(at), *record});
      at += word.size();
    }
    if (ends) return out;
    window.erase(0, safe);
    offset += static_cast<int64_t>(safe);
  }
}

// Returns record id → slice: the slice whose event's text contains the words.
std::unordered_map<int64_t, uint32_t> slices_by_record(const Part& part, std::string_view word) {
  std::unordered_map<int64_t, uint32_t> out;
  const Slices& s = part.slices;
  auto order = indexes<uint32_t>(s.size());
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) { return s.args_offset(a) < s.args_offset(b); });
  for (const SourceRef& file : part.files) {
    size_t next = 0;
    for (const FoundRecord& found : find_records(file.path, word)) {
      const int64_t position = found.position + file.first_offset;
      while (next < order.size() && s.args_offset(order[next]) <= position) ++next;
      if (next > 0) out.try_emplace(found.record, order[next - 1]);
    }
  }
  return out;
}

void lay_over_one(const std::string& path, Part& part, Trace& trace) {
  const std::vector<Node> nodes = read_nodes(path, trace.diagnostics);
  if (nodes.empty()) return;
  std::unordered_map<int64_t, uint32_t> slice_of = slices_by_record(part, "\"Record function id\"");
  if (slice_of.empty()) slice_of = slices_by_record(part, "\"External id\"");
  int64_t found = 0, alike = 0, recorded = 0;
  std::vector<GraphNodeFact> facts;
  for (const Node& node : nodes) {
    if (node.record <= 0) continue;
    ++recorded;
    const auto at = slice_of.find(node.record);
    if (at == slice_of.end()) continue;
    ++found;
    alike += trace.names.text(part.slices.name_id[at->second]) == node.name;
    facts.push_back({.slice = at->second, .node = node.id, .parent = node.parent});
  }
  if (found == 0 || alike < kAlike * found) {
    trace.diagnostics.add(problem::kineto_other_execution_trace, Args().flag("none", found == 0), {path});
    return;
  }
  size_t k = 0;
  for (const Node& node : nodes) {
    if (node.record <= 0 || !slice_of.contains(node.record)) continue;
    GraphNodeFact& fact = facts[k++];
    fact.inputs = trace.names.intern(node.inputs);
    fact.outputs = trace.names.intern(node.outputs);
    fact.schema = trace.names.intern(node.schema);
  }
  sort_stably(facts, {}, &GraphNodeFact::slice);
  part.graph_nodes = std::move(facts);
  trace.diagnostics.add(problem::kineto_execution_trace,
                        Args().set("found", std::to_string(found)).set("recorded", std::to_string(recorded)), {path});
}

}  // namespace

bool looks_like_execution_trace(std::string_view head) {
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const auto has = [&](std::string_view word) { return head.find(word) != std::string_view::npos; };
  return at != std::string_view::npos && head[at] == '{' && has("\"schema\"") && !has("\"schemaVersion\"") &&
         !has("\"traceEvents\"") && (has("\"nodes\"") || has("\"op_schema\"") || has("\"rf_id\""));
}

void lay_over(const std::vector<std::string>& paths, Trace& trace) {
  for (const std::string& path : paths) {
    const auto rank = rows::rank_in_name(file_name(path));
    Part* of = nullptr;
    if (paths.size() == 1 && trace.parts.size() == 1) of = &trace.parts[0];
    for (Part& part : trace.parts)
      if (!of && rank && part.rank == *rank) of = &part;
    if (!of || !of->graph_nodes.empty()) {
      trace.diagnostics.add(problem::kineto_other_execution_trace_rank, {path});
      continue;
    }
    lay_over_one(path, *of, trace);
  }
}

}  // namespace stageline::kineto
