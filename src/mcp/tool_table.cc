#include "mcp/tool_table.h"

#include "base/word_files.h"

namespace stageline::mcp {
namespace {

namespace dom = simdjson::dom;

// Returns the JSON Schema of a type of answers' members, from "tool_types" of words.json.
const std::string& schema_of(std::string_view type) {
  static const auto schemas = [] {
    std::map<std::string, std::string, std::less<>> all;
    for_each_declared("tool_types", [&](std::string_view name, const dom::element& schema) {
      all.emplace(name, simdjson::minify(schema));
    });
    return all;
  }();
  return schemas.find(type)->second;
}

// The types of arguments by their names in words.json.
constexpr std::pair<std::string_view, ArgumentType> kArgumentTypes[] = {
    {"text", ArgumentType::kText},   {"whole", ArgumentType::kWhole},   {"truth", ArgumentType::kTruth},
    {"texts", ArgumentType::kTexts}, {"object", ArgumentType::kObject}, {"claims", ArgumentType::kClaims}};

Tool tool_from(std::string_view name, const dom::element& from) {
  Tool tool = {std::string(name),
               declared_text(from, "description"),
               {},
               declared_text(from, "answer"),
               from["writes"].error() == 0};
  for (const auto& [argument, fields] : dom::object(from["arguments"].value_unsafe())) {
    const std::string type = declared_text(fields, "type");
    int64_t min = 1;
    if (fields["least"].get(min)) min = 1;
    tool.arguments.push_back(
        {std::string(argument),
         std::ranges::find(kArgumentTypes, type, [](const auto& known) { return known.first; })->second,
         fields["required"].error() == 0, int64_t(fields["most"]), declared_text(fields, "choices"),
         declared_text(fields, "help"), min});
  }
  return tool;
}

Status check_names(const Tool& tool, const Value& given) {
  auto names = mapped<std::string>(tool.arguments, &Argument::name);
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string name(given.key(i).text());
    if (std::ranges::find(names, name) != names.end()) continue;
    const std::string near = nearest(name, names);
    std::string list;
    for (const std::string& known : names) append_item(list, known);
    return wrong(std::string(tool.name) + " takes no \"" + clean_text(name, 60) + "\"",
                 near.empty() ? "it takes " + list : "did you mean " + near + "?");
  }
  return {};
}

bool is_list_of_texts(const Value& value) {
  for (size_t i = 0; i < value.size(); ++i)
    if (value.item(i).tag() != ValueTag::kText) return false;
  return true;
}

// `name`: of the tool and its argument, for what is wrong.
Status check_value(const Argument& argument, const std::string& name, const Value& value) {
  const size_t max = argument.max;
  const std::string range = std::to_string(argument.min) + " to " + std::to_string(argument.max);
  switch (argument.type) {
    case ArgumentType::kText:
      if (value.tag() != ValueTag::kText || value.text().size() > max)
        return wrong(name + " is a text of at most " + std::to_string(argument.max) + " bytes");
      break;
    case ArgumentType::kWhole:
      if (value.tag() != ValueTag::kInteger || *value.integer() < argument.min || *value.integer() > argument.max)
        return wrong(name + " is a whole number from " + range);
      break;
    case ArgumentType::kTruth:
      if (value.tag() != ValueTag::kBool) return wrong(name + " is true or false");
      break;
    case ArgumentType::kObject:
      if (!value.is_dict() || value.size() > max) return wrong(name + " is an object");
      break;
    case ArgumentType::kTexts:
    case ArgumentType::kClaims:
      if (!value.is_list() || std::ssize(value) < argument.min || value.size() > max)
        return wrong(name + " is a list of " + range);
      if (argument.type == ArgumentType::kTexts && !is_list_of_texts(value)) return wrong(name + " is a list of texts");
  }
  const auto choices = split(argument.choices, ',');
  if (!argument.choices.empty() && std::ranges::find(choices, value.text()) == choices.end())
    return wrong(name + " is one of " + argument.choices);
  return {};
}

}  // namespace

const std::vector<Tool>& tool_table() {
  static const std::vector<Tool> table = [] {
    std::vector<Tool> tools;
    for_each_declared("tools",
                      [&](std::string_view name, const dom::element& from) { tools.push_back(tool_from(name, from)); });
    return tools;
  }();
  return table;
}

const Tool* find_tool(std::string_view name) {
  for (const Tool& tool : tool_table())
    if (name == tool.name) return &tool;
  return nullptr;
}

void append_schema(JsonWriter& json, const Tool& tool) {
  json.begin_object().field("type", "object").each("required", tool.arguments, [&](const Argument& a) {
    if (a.required) json.value(a.name);
  });
  json.field("additionalProperties", false).key("properties").begin_object();
  for (const Argument& a : tool.arguments) {
    json.key(a.name).begin_object();
    switch (a.type) {
      case ArgumentType::kText: json.field("type", "string").field("maxLength", a.max); break;
      case ArgumentType::kWhole: json.field("type", "integer").field("minimum", a.min).field("maximum", a.max); break;
      case ArgumentType::kTruth: json.field("type", "boolean"); break;
      case ArgumentType::kObject:
        json.field("type", "object").key("additionalProperties").begin_object().key("type");
        json.begin_array().value("string").value("number").value("boolean").end_array().end_object();
        break;
      case ArgumentType::kTexts:
      case ArgumentType::kClaims:
        json.field("type", "array").field("minItems", a.min).field("maxItems", a.max).key("items");
        json.raw(schema_of(a.type == ArgumentType::kTexts ? "path" : "claim"));
    }
    if (a.choices[0] != '\0') json.list("enum", split(a.choices, ','));
    json.field("description", a.help).end_object();
  }
  json.end_object().end_object();
}

void append_answer_schema(JsonWriter& json, const Tool& tool) {
  std::vector<std::string_view> always;
  json.begin_object().field("type", "object").key("properties").begin_object();
  for (const std::string_view member : split(tool.answer, ' ')) {
    const size_t colon = member.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = member.substr(0, colon);
    std::string_view type = member.substr(colon + 1);
    if (type.ends_with("~")) type.remove_suffix(1);
    else always.push_back(name);
    json.key(name).raw(schema_of(type));
  }
  json.key("cannot_answer").raw("{\"const\":true}");
  for (const char* name : {"reason", "why", "what_would_help", "error", "hint"}) json.key(name).raw(schema_of("text"));
  json.end_object().key("anyOf").begin_array();
  const auto requires_these = [&](const std::vector<std::string_view>& names) {
    json.begin_object().list("required", names).end_object();
  };
  requires_these(always);
  requires_these({"cannot_answer", "reason", "why", "what_would_help"});
  requires_these({"error", "hint"});
  json.end_array().end_object();
}

Status check_arguments(const Tool& tool, const Value& given) {
  if (!given.is_none() && !given.is_dict()) return wrong("arguments is an object");
  TRY_OK(check_names(tool, given));
  for (const Argument& argument : tool.arguments) {
    const Value value = given[argument.name];
    const std::string name = std::string(tool.name) + ": " + argument.name;
    if (!value.is_none()) TRY_OK(check_value(argument, name, value));
    else if (argument.required) return wrong(name + " is missing", argument.help);
  }
  return {};
}

}  // namespace stageline::mcp
