// The tables of shared/data/planner, where they are there.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/json_tree.h"
#include "plan/model.h"
#include "unit/shared_data.h"

namespace planner_data {

using Row = std::map<std::string, std::string>;

inline std::vector<std::string> csv_line(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line)
    if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted) out.emplace_back();
    else out.back() += c;
  return out;
}

// Rows by the names of the header; empty, with a message, where the table is missing.
inline std::vector<Row> rows(const std::string& name) {
  std::vector<Row> out;
  const std::string path = shared_data("planner/" + name);
  if (path.empty()) return out;
  std::ifstream file(path);
  std::vector<std::string> head;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> cells = csv_line(line);
    if (head.empty()) {
      head = cells;
      continue;
    }
    Row row;
    for (size_t i = 0; i < head.size(); ++i) row[head[i]] = i < cells.size() ? cells[i] : "";
    out.push_back(std::move(row));
  }
  return out;
}

inline double number(const Row& row, const std::string& name) { return std::stod(row.at(name)); }
inline int whole(const Row& row, const std::string& name) { return std::stoi(row.at(name)); }

inline std::string text_of(const std::string& name) {
  std::ifstream file(shared_data("planner/" + name));
  return {std::istreambuf_iterator<char>(file), {}};
}

// The JSON text of one model of models.json, `form` huggingface or megatron.
inline std::string model_text(const std::string& form, const std::string& name) {
  const std::string all = text_of("models.json");
  const size_t from = all.find("\"" + form + "\": {");
  const size_t at = all.find("\"" + name + "\": {", from);
  if (from == std::string::npos || at == std::string::npos) return "{}";
  size_t begin = all.find('{', at), end = begin;
  for (int depth = 0; end < all.size(); ++end) {
    depth += all[end] == '{' ? 1 : all[end] == '}' ? -1 : 0;
    if (depth == 0) break;
  }
  return all.substr(begin, end + 1 - begin);
}

inline stageline::plan::Model model(const std::string& form, const std::string& name) {
  auto found = stageline::plan::read_model(model_text(form, name), name);
  REQUIRE(found);
  return *found;
}

}  // namespace planner_data
