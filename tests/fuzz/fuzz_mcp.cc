// Lines to the agents' interface, which may open nothing: each is answered by one line of JSON, or by none.
#include "base/json_tree.h"
#include "fuzz.h"
#include "mcp/server.h"

FUZZ_TARGET(mcp) {
  using namespace stageline;
  mcp::Server server(mcp::ToolLimits{});
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (int lines = 0; !text.empty() && lines < 50; ++lines) {
    const size_t end = std::min(text.size(), text.find('\n'));
    const mcp::Server::Notice notice = mcp::Server::notice_of(text.substr(0, end));
    FUZZ_CHECK(notice.cancels.empty() || notice.id.empty(), "a request is no notification");
    const std::string answer = server.answer(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
    if (answer.empty()) continue;
    FUZZ_CHECK(answer.find('\n') == std::string::npos, answer);
    const Result<JsonTree> tree = parse_json_tree(answer, "answer");
    FUZZ_CHECK(tree && tree->broken_at < 0, answer);
    const Value reported = tree->tree.root();
    FUZZ_CHECK(reported["jsonrpc"].text() == "2.0" && reported["result"].is_dict() != reported["error"].is_dict(),
               answer);
  }
  return 0;
}
