#include "mcp/tool_table.h"

#include <algorithm>

#include "base/text.h"
#include "mcp/words.h"

namespace stageline::mcp {
namespace {

const Argument kTrace = {"trace", 't', true, 10, "", "What open gave: \"t1\"."};

constexpr const char* kClaimSchema =
    "{\"type\":\"object\",\"required\":[\"text\",\"expect\"],\"additionalProperties\":false,\"properties\":{"
    "\"text\":{\"type\":\"string\",\"maxLength\":500},\"handle\":{\"type\":\"string\",\"maxLength\":40},"
    "\"sql\":{\"type\":\"string\",\"maxLength\":20000},\"expect\":{\"type\":\"object\",\"required\":[\"value\"],"
    "\"additionalProperties\":false,\"properties\":{\"value\":{\"type\":\"number\"},\"unit\":{\"type\":\"string\","
    "\"maxLength\":20},"
    "\"tolerance\":{\"type\":\"number\",\"minimum\":0}}}}}";

}  // namespace

const std::vector<Tool>& tool_table() {
  static const std::vector<Tool> table = {
      {"open",
       "Read a run: files or folders of one training job below the allowed folders. Gives an id for the other tools, "
       "and what was found.",
       {{"paths", 'a', true, 64, "", "Files or folders."},
        {"ranks", 't', false, 1000, "", "Only these ranks: 0-3,8."},
        {"steps", 't', false, 100, "", "Only these steps, both ends included: 3:5."},
        {"range", 't', false, 100, "", "Only this time from the start: 200ms:1.5s."},
        {"align", 't', false, 10, "auto,always,never",
         "Whether the ranks' clocks are put on one axis; default auto."}}},
      {"close", "Forget a run.", {kTrace}},
      {"analyses",
       "What can be asked of this run with ask: names, summaries, tables, options. With words the nearest first.",
       {kTrace, {"about", 't', false, 200, "", "Words to rank by."}}},
      {"schema",
       "Tables of sql, or the columns of one with units. Call it before sql.",
       {kTrace, {"table", 't', false, 200, "", "A table's name."}}},
      {"explain",
       "Where the time went: the headline, parts that add up to 1, findings with what each costs, its fix and what "
       "that saves.",
       {kTrace, {"lang", 't', false, 2, "en,zh", "Language of the sentences; default en."}}},
      {"ask",
       "One analysis, one of its tables. Call analyses for names and options.",
       {kTrace,
        {"analysis", 't', true, 100, "", "Its name: waterfall."},
        {"table", 't', false, 100, "", "Default its first."},
        {"options", 'o', false, 50, "", "Options by name."},
        {"rows", 'i', false, 200, "", "Most rows; default 50."}}},
      {"sql",
       "Run one read-only SELECT (SQLite) on a run. Times are ns. Call schema first; never guess columns.",
       {kTrace,
        {"query", 't', true, 20'000, "", "The statement."},
        {"rows", 'i', false, 200, "", "Most rows; default 50."}}},
      {"verify",
       "Check claims: each is compared with the first number of a query, or with the numbers of the answer that a "
       "handle names, asked "
       "again. Says holds, does_not or cannot_tell.",
       {kTrace, {"claims", 'c', true, 20, "", "Claims with the number they rest on."}}},
  };
  return table;
}

const Tool* find_tool(std::string_view name) {
  for (const Tool& tool : tool_table())
    if (name == tool.name) return &tool;
  return nullptr;
}

void append_schema(JsonWriter& json, const Tool& tool) {
  json.begin_object().field("type", "object").key("required").begin_array();
  for (const Argument& a : tool.arguments)
    if (a.required) json.value(a.name);
  json.end_array().field("additionalProperties", false).key("properties").begin_object();
  for (const Argument& a : tool.arguments) {
    json.key(a.name).begin_object();
    switch (a.type) {
      case 't': json.field("type", "string").field("maxLength", a.most); break;
      case 'i': json.field("type", "integer").field("minimum", 1).field("maximum", a.most); break;
      case 'o':
        json.field("type", "object").key("additionalProperties").begin_object().key("type");
        json.begin_array().value("string").value("number").value("boolean").end_array().end_object();
        break;
      default:
        json.field("type", "array").field("minItems", 1).field("maxItems", a.most).key("items");
        json.raw(a.type == 'a' ? "{\"type\":\"string\",\"maxLength\":4096}" : kClaimSchema);
    }
    if (a.choices[0] != '\0') {
      json.key("enum").begin_array();
      for (const std::string_view choice : split(a.choices, ',')) json.value(choice);
      json.end_array();
    }
    json.field("description", a.help).end_object();
  }
  json.end_object().end_object();
}

Status check_arguments(const Tool& tool, const Value& given) {
  if (!given.is_none() && !given.is_dict()) return wrong("arguments is an object");
  std::vector<std::string> names;
  for (const Argument& a : tool.arguments) names.emplace_back(a.name);
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string name(given.key(i).text());
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = nearest(name, names);
    std::string list;
    for (const std::string& known : names) list += (list.empty() ? "" : ", ") + known;
    return wrong(std::string(tool.name) + " takes no \"" + clean_text(name, 60) + "\"",
                 near.empty() ? "it takes " + list : "did you mean " + near + "?");
  }
  for (const Argument& a : tool.arguments) {
    const Value value = given[a.name];
    const std::string name = std::string(tool.name) + ": " + a.name;
    if (value.is_none()) {
      if (a.required) return wrong(name + " is missing", a.help);
      continue;
    }
    const auto most = static_cast<size_t>(a.most);
    if (a.type == 't' && (value.tag() != ValueTag::kText || value.text().size() > most))
      return wrong(name + " is a text of at most " + std::to_string(a.most) + " bytes");
    if (a.type == 'i' && (value.tag() != ValueTag::kInteger || *value.integer() < 1 || *value.integer() > a.most))
      return wrong(name + " is a whole number from 1 to " + std::to_string(a.most));
    if (a.type == 'o' && (!value.is_dict() || value.size() > most)) return wrong(name + " is an object");
    if ((a.type == 'a' || a.type == 'c') && (!value.is_list() || value.size() < 1 || value.size() > most))
      return wrong(name + " is a list of 1 to " + std::to_string(a.most));
    if (a.type == 'a')
      for (size_t i = 0; i < value.size(); ++i)
        if (value.item(i).tag() != ValueTag::kText) return wrong(name + " is a list of texts");
    const auto choices = split(a.choices, ',');
    if (a.choices[0] != '\0' && std::find(choices.begin(), choices.end(), value.text()) == choices.end())
      return wrong(name + " is one of " + a.choices);
  }
  return {};
}

}  // namespace stageline::mcp
