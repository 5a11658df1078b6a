// The tools that agents can call, with their arguments, as words.json declares them.
#pragma once

#include "mcp/answer_parts.h"

namespace stageline::mcp {

enum class ArgumentType : uint8_t { kText, kWhole, kTruth, kTexts, kObject, kClaims };

// An argument of a tool: values that are sent are checked against it, and its schema is written from it.
struct Argument {
  std::string name;
  ArgumentType type;
  bool required;
  int64_t max;          // maximum bytes of a text, value of a number, entries of a list
  std::string choices;  // separated by commas, or ""
  std::string help;
  int64_t min = 1;  // minimum value of a number, entries of a list
};
struct Tool {
  std::string name;
  std::string description;
  std::vector<Argument> arguments;
  // Members of its answer with their types (tool_table.cc): "cells:whole"; a type with ~ is not always there.
  std::string answer;
  bool writes = false;  // the tool is listed only where some folder may be written to
};

const std::vector<Tool>& tool_table();
const Tool* find_tool(std::string_view name);  // nullptr: there is none

// Writes the JSON Schema of the tool's input.
void append_schema(JsonWriter& json, const Tool& tool);
// Writes the JSON Schema of what it returns: its answer, or that the run cannot say it, or an error.
void append_answer_schema(JsonWriter& json, const Tool& tool);
// Checks that the arguments are as the tool declares them. Errors: kUsage, which names the first that is not.
Status check_arguments(const Tool& tool, const Value& given);

inline Error wrong(std::string what, std::string hint = "") {
  return make_error(ErrorCode::kUsage, std::move(what), std::move(hint));
}

}  // namespace stageline::mcp
