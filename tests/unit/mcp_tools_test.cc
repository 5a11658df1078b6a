#include <doctest/doctest.h>

#include "base/json_tree.h"
#include "mcp/tools.h"

namespace stageline::mcp {
namespace {

// A tool that words.json declares and that call() does not know would end the program.
TEST_CASE("every declared tool can be called") {
  ToolLimits limits;
  limits.writes = {"/"};
  limits.plan = [](const std::vector<std::string>&) { return Result<std::string>("{}"); };
  Tools tools(std::move(limits));
  const Result<JsonTree> nothing = parse_json_tree("{}", "arguments");
  REQUIRE(nothing);
  REQUIRE(tool_table().size() > 10);
  for (const Tool& tool : tool_table()) {
    CAPTURE(tool.name);
    CHECK(tools.has(tool.name));
    CHECK_FALSE(tools.call(tool.name, nothing->tree.root()).json.empty());
  }
}

}  // namespace
}  // namespace stageline::mcp
