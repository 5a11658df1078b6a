// The tools and what they take: declared once, checked and published from here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"
#include "base/value_tree.h"

namespace stageline::mcp {

// An argument of a tool: what is sent is checked by it, and the schema is written from it.
struct Argument {
  const char* name;
  char type;  // 't' text, 'i' whole number, 'b' truth, 'a' list of texts, 'o' object, 'c' list of claims
  bool required;
  int64_t most;         // bytes of a text, the number itself, entries of a list
  const char* choices;  // comma list, or ""
  const char* help;
  int64_t least = 1;  // of a number, and entries of a list
};
struct Tool {
  const char* name;
  const char* description;
  std::vector<Argument> arguments;
  const char* answer;  // members of its answer with their types (tool_table.cc): "cells:whole"; with ~ not always there
  bool writes = false;  // listed only where a folder may be written to
};

const std::vector<Tool>& tool_table();
const Tool* find_tool(std::string_view name);  // nullptr: there is none

// What the tool takes, as JSON Schema.
void append_schema(JsonWriter& json, const Tool& tool);
// What it says: its answer, that a run cannot say it, or an error.
void append_answer_schema(JsonWriter& json, const Tool& tool);
// The arguments as the tool has declared them. Errors: kUsage naming the first that is not.
Status check_arguments(const Tool& tool, const Value& given);

inline Error wrong(std::string what, std::string hint = "") {
  return {ErrorCode::kUsage, std::move(what), {}, std::move(hint)};
}

}  // namespace stageline::mcp
