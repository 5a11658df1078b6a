#include "mcp/tool_table.h"

#include <algorithm>

#include "base/text.h"
#include "mcp/words.h"

namespace stageline::mcp {
namespace {

const Argument kTrace = {"trace", 't', true, 10, "", "The id that open returned: \"t1\"."};
const Argument kRows = {"rows", 'i', false, 200, "", "Maximum rows; default 50."};

constexpr const char* kClaimSchema =
    R"({"type":"object","required":["text","expect"],"additionalProperties":false,"properties":{)"
    R"("text":{"type":"string","maxLength":500},"handle":{"type":"string","maxLength":40},)"
    R"("at":{"type":"string","maxLength":200},"sql":{"type":"string","maxLength":20000},)"
    R"("expect":{"type":"object","required":["value"],"additionalProperties":false,"properties":{)"
    R"("value":{"type":["number","string","boolean"]},"unit":{"type":"string","maxLength":20},)"
    R"("tolerance":{"type":"number","minimum":0}}}}})";

// Holds JSON Schemas for the types of answers' members.
constexpr std::pair<std::string_view, const char*> kTypes[] = {
    {"text", R"({"type":"string"})"},
    {"texts", R"({"type":"array","items":{"type":"string"}})"},
    {"whole", R"({"type":"integer"})"},
    {"whole?", R"({"type":["integer","null"]})"},
    {"number?", R"({"type":["number","null"]})"},
    {"truth", R"({"type":"boolean"})"},
    {"object", R"({"type":"object"})"},
    {"objects", R"({"type":"array","items":{"type":"object"}})"},
    {"rows", R"({"type":"array","items":{"type":"array"}})"},
    {"columns",
     R"({"type":"array","items":{"type":"object","required":["name","unit"],"properties":{"name":{"type":"string"},)"
     R"("unit":{"type":"string"},"help":{"type":"string"}}}})"},
    {"handle", R"({"type":"string","pattern":"^h:t[0-9]+:[0-9a-f]{12}$"})"},
    {"verdicts",
     R"({"type":"array","items":{"type":"object","required":["text","verdict"],"properties":{)"
     R"("text":{"type":"string"},"verdict":{"enum":["holds","does_not","cannot_tell"]},)"
     R"("number":{"type":["number","string","boolean","null"]},"unit":{"type":"string"},"at":{"type":"string"},)"
     R"("from":{"type":"string"},"why":{"type":"string"}}}})"},
};
#define TABLE "columns:columns rows:rows truncated:truth more:text~ "

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
        {"align", 't', false, 10, "auto,always,never", "Whether the ranks' clocks are aligned; default auto."},
        {"reader", 't', false, 40, "", "Use this reader instead of detecting the format."}},
       "trace:text format:text description:text ranks:whole slices:whole cells:whole clock:text "
       "epoch_ns:text closed:texts~ suits:texts diagnostics:objects diagnostics_count:whole"},
      {"close", "Forget a run.", {kTrace}, "closed:text"},
      {"analyses",
       "Lists the analyses that ask can run here: names, summaries, tables, options. With words, the nearest first.",
       {kTrace, {"about", 't', false, 200, "", "Words to rank by."}},
       "analyses:objects count:whole left_out:whole"},
      {"schema",
       "Tables of sql, or the columns of one with units. Call it before sql.",
       {kTrace, {"table", 't', false, 200, "", "A table's name."}},
       TABLE "notes:texts~ handle:handle"},
      {"explain",
       "Explains where the time went: headline, parts that add up to 1, and findings, each with its cost, its fix and "
       "the saving.",
       {kTrace, {"lang", 't', false, 2, "en,zh", "Language of the sentences; default en."}},
       "headline:text lead:text run:text step_ns:whole? lost_ns:whole? steps:whole parts:objects "
       "findings:objects closing:text why_not:text handle:handle"},
      {"ask",
       "One analysis, one of its tables. Call analyses for names and options.",
       {kTrace,
        {"analysis", 't', true, 100, "", "Its name: waterfall."},
        {"table", 't', false, 100, "", "Default its first."},
        {"options", 'o', false, 50, "", "Options by name.", 0},
        kRows,
        {"sort", 't', false, 100, "", "A column to sort by, the largest first; -NAME: the smallest first."}},
       "analysis:text table:text " TABLE "row_count:whole tables:texts notes:texts handle:handle"},
      {"sql",
       "Run one read-only SELECT (SQLite) on a run. Times are ns. Call schema first; never guess columns.",
       {kTrace, {"query", 't', true, 20'000, "", "The statement."}, kRows},
       TABLE "notes:texts~ handle:handle"},
      {"slices",
       "Slices (operators, calls, kernels, ranges) that fit all that is given, with ids; how many there are and their "
       "time, too.",
       {kTrace,
        {"name", 't', false, 1000, "", "The whole name; * stands for anything."},
        {"rank", 'i', false, INT32_MAX, "", "Of this rank.", 0},
        {"step", 'i', false, INT32_MAX, "", "Of this step.", 0},
        {"class", 't', false, 20, "COMPUTATION,COMMUNICATION,MEMORY", "Device work of this class."},
        {"from_ns", 'i', false, INT64_MAX, "", "That end after this, from the run's start.", 0},
        {"to_ns", 'i', false, INT64_MAX, "", "That start before this.", 0},
        {"under", 't', false, 1000, "", "Below a slice of this name, on its thread or launched by it; * as above."},
        {"min_ns", 'i', false, INT64_MAX, "", "That take at least this.", 0},
        {"order", 't', false, 10, "longest,start", "Default longest first."},
        kRows},
       "count:whole total_ns:whole " TABLE "query:text handle:handle"},
      {"slice",
       "Everything about one slice: its columns, its arguments in the file, what is around it, what it called and "
       "launched.",
       {kTrace, {"id", 'i', true, INT64_MAX, "", "As slices, sql and tables give it.", 0}},
       "slice:object device_work:object~ arguments:objects path:objects children:objects kernels:objects "
       "kernel_count:whole kernel_total_ns:whole? notes:texts handle:handle"},
      {"what_if",
       "Simulates fixes of the run: the saving of each, ±, its assumptions and how to apply it. Arguments describe one "
       "change of yours; all of them apply together.",
       {kTrace,
        {"scale", 'a', false, 20, "",
         "Cells that take another time: stage=3,kind=F,by=0.9 or rank=5,set=3ms; keys stage, rank, dp, kind, chunk, "
         "micro-batch, step."},
        {"schedule", 't', false, 40, "", "Another schedule: zb-h1, 1f1b, interleaved-1f1b …"},
        {"chunks", 'i', false, 65'536, "", "Chunks per rank of schedule."},
        {"group", 'i', false, 65'536, "", "Micro-batches that take turns on a chunk, of schedule."},
        {"micro_batches", 'i', false, 65'536, "", "This number of micro-batches per step."},
        {"latency", 't', false, 40, "", "Every message takes this: 20us."},
        {"layers", 't', false, 1000, "", "Layers of the model, or of each stage as split now: N or N,N,…"},
        {"more_memory", 'b', false, 0, "", "Also try orders that need more activation memory than the present one."}},
       "sentence:text recorded_ns:whole? graph_ns:whole? model_error_share:number? schedule:text "
       "fixes:objects tried:whole no_gain:whole over_memory:whole notes:texts handle:handle"},
      {"diff",
       "Compares run b with run a: the change of the step with its uncertainty, whether it is above noise, and groups "
       "that add up to it.",
       {{"a", 't', true, 10, "", "The run compared with: \"t1\"."},
        {"b", 't', true, 10, "", "The run that is new: \"t2\"."},
        {"fail_on", 't', false, 20, "", "A share of the step: says whether b is slower by more: 3%."}},
       "headline:text cause:text change_ns:whole? error_ns:whole? change_share:number? beyond_noise:truth "
       "fails:truth~ a:text b:text changes:texts groups:objects matched:whole unmatched:whole unused:whole "
       "notes:texts handle:handle"},
      {"chart",
       "The run as a picture (PNG), with the numbers in it as text beside. pipeline: a row a rank, a cell a forward, "
       "backward or message. timeline: what each rank's device and host do over time, each nanosecond once. span: "
       "where "
       "the step goes, parts that add up to 1.",
       {kTrace,
        {"kind", 't', false, 20, "pipeline,timeline,span", "Default pipeline."},
        {"step", 'i', false, INT32_MAX, "", "This step alone; default all.", 0},
        {"range", 't', false, 100, "", "Only this time from the start: 200ms:1.5s."},
        {"width", 'i', false, 1600, "", "Pixels; default by what there is, at most 1600.", 200}},
       "alt:text width:whole height:whole cells:whole~ span_ns:whole~ ranks:objects~ ranks_count:whole~ parts:objects~ "
       "step_ns:whole~ handle:handle"},
      {"report",
       "Write the run as one page that opens without a network. Gives its path.",
       {kTrace, {"path", 't', true, 4096, "", "A file that ends in .html, in a folder that may be written to."}},
       "path:text bytes:whole",
       true},
      {"verify",
       "Check claims: each is compared with the first value of a query, or with a value of the answer that a handle "
       "names, asked again: the one at a JSON pointer (/rows/0/2), else the nearest number. Units ns us ms s, B kB MB "
       "GB KiB MiB GiB, % are converted. Says holds, does_not or cannot_tell.",
       {kTrace, {"claims", 'c', true, 20, "", "Claims with the value they rest on."}},
       "claims:verdicts"},
  };
  return table;
}
#undef TABLE

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
      case 'i': json.field("type", "integer").field("minimum", a.least).field("maximum", a.most); break;
      case 'b': json.field("type", "boolean"); break;
      case 'o':
        json.field("type", "object").key("additionalProperties").begin_object().key("type");
        json.begin_array().value("string").value("number").value("boolean").end_array().end_object();
        break;
      default:
        json.field("type", "array").field("minItems", a.least).field("maxItems", a.most).key("items");
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

void append_answer_schema(JsonWriter& json, const Tool& tool) {
  std::vector<std::string_view> always;
  json.begin_object().field("type", "object").key("properties").begin_object();
  for (const std::string_view member : split(tool.answer, ' ')) {
    const size_t colon = member.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = member.substr(0, colon);
    std::string_view type = member.substr(colon + 1);
    if (type.ends_with("~"))
      type.remove_suffix(1);
    else
      always.push_back(name);
    const auto* const known =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& one) { return one.first == type; });
    json.key(name).raw(known->second);
  }
  json.key("cannot_answer").raw("{\"const\":true}");
  for (const char* name : {"reason", "why", "what_would_help", "error", "hint"}) json.key(name).raw(kTypes[0].second);
  json.end_object().key("anyOf").begin_array();
  const auto requires_these = [&](const std::vector<std::string_view>& names) {
    json.begin_object().key("required").begin_array();
    for (const std::string_view name : names) json.value(name);
    json.end_array().end_object();
  };
  requires_these(always);
  requires_these({"cannot_answer", "reason", "why", "what_would_help"});
  requires_these({"error", "hint"});
  json.end_array().end_object();
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
    for (const std::string& known : names) append_item(list, known);
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
    const size_t most = a.most;
    if (a.type == 't' && (value.tag() != ValueTag::kText || value.text().size() > most))
      return wrong(name + " is a text of at most " + std::to_string(a.most) + " bytes");
    if (a.type == 'i' && (value.tag() != ValueTag::kInteger || *value.integer() < a.least || *value.integer() > a.most))
      return wrong(name + " is a whole number from " + std::to_string(a.least) + " to " + std::to_string(a.most));
    if (a.type == 'b' && value.tag() != ValueTag::kBool) return wrong(name + " is true or false");
    if (a.type == 'o' && (!value.is_dict() || value.size() > most)) return wrong(name + " is an object");
    if ((a.type == 'a' || a.type == 'c') && (!value.is_list() || std::ssize(value) < a.least || value.size() > most))
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
