// args(): what the source says of one slice, fetched from its file.
#include "base/json_members.h"
#include "profile/event_text.h"
#include "sql/run_tables.h"

namespace stageline::sql {
namespace {

// The maximum number of slices whose arguments one connection reads from their files.
constexpr int64_t kMaxArgumentSlices = 10'000;

// Fetches arguments for one connection, through one set of restart points.
struct ArgumentFetcher {
  EventTexts texts;
  int64_t fetched = 0;
};

const char* kind_of(std::string_view json) {
  switch (json.empty() ? '\0' : json[0]) {
    case '"': return "string";
    case '{': return "object";
    case '[': return "array";
    case 't': return "true";
    case 'f': return "false";
    case 'n': return "null";
    default: return "number";
  }
}

RunData::Made args(const RunData& data, ArgumentFetcher& fetcher, const std::vector<Argument>& arguments) {
  constexpr size_t kMaxArguments = 10'000;
  if (!is_given(arguments[0]))
    return make_error(ErrorCode::kUsage, "args needs the slice whose arguments are wanted",
                      "SELECT * FROM args(17), or JOIN args a ON a.slice_id = k.id");
  TRY(place, slice_of(data, "args", arguments[0]));
  if (++fetcher.fetched > kMaxArgumentSlices)
    return make_error(ErrorCode::kLimit,
                      "arguments of more than " + std::to_string(kMaxArgumentSlices) + " slices are wanted",
                      "choose fewer slices before the join: a LIMIT in a sub-query");
  TRY(text, fetcher.texts.text(data.trace().parts[place->part], place->slice));
  Table table(declared_table("sql/args"));
  for (const JsonMember& member : json_members(json_member(*text, "args"), kMaxArguments))
    table.add_row({json_text("\"" + std::string(member.key) + "\""), json_text(member.value),
                   std::string(kind_of(member.value))});
  return table_rows(std::move(table));
}

}  // namespace

std::shared_ptr<const TableSource> args_function(const std::shared_ptr<const RunData>& data) {
  return table_function(
      data, "args",
      [fetcher = std::make_shared<ArgumentFetcher>()](const RunData& run, const std::vector<Argument>& arguments) {
        return args(run, *fetcher, arguments);
      });
}

}  // namespace stageline::sql
