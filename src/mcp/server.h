// Serves agents by the Model Context Protocol: one line of JSON-RPC in, one line out. It uses no files and terminals
// other than the runs it opens, so that it can be fuzzed and tested line by line.
//
// One dispatcher serves two generations of clients: those that shake hands (initialize; revisions 2024-11-05 to
// 2025-11-25) and those that send an envelope with each request (2026-07-28; server/discover). A tool that fails
// answers with isError, which a model can read; a JSON-RPC error is sent only for invalid requests.
//
// Besides tools there are resources (answers by their handle, asked again; opened runs; pages of the skill) and prompts
// (the skill's workflows).
#pragma once

#include "mcp/tools.h"

namespace stageline::mcp {

class Server {
 public:
  explicit Server(ToolLimits limits) : tools_(std::move(limits)) {}
  // The line to send, or "" for notifications, to which nothing is sent. `progress` reports on a run that is being
  // read; cancelling it from another thread gives the question up.
  std::string answer(std::string_view line, Progress* progress = nullptr);

  // The facts of a line that are needed before its turn comes. Ids and tokens are JSON; "": it has none.
  struct Notice {
    std::string id, progress_token;
    std::string cancels;  // the id of the request that this line gives up
  };
  static Notice notice_of(std::string_view line);
  static std::string progress_line(const std::string& token, const Progress& progress);

  static constexpr size_t kMaxLineBytes = size_t{1} << 20;

 private:
  Tools tools_;
};

}  // namespace stageline::mcp
