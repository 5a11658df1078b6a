// The Model Context Protocol, for agents: one JSON-RPC line in, one out. Knows nothing of files and terminals beside
// the runs it opens, so that it can be fuzzed and tested line by line.
//
// Two eras of clients are served by one dispatcher: those that shake hands (initialize; revisions 2024-11-05 to
// 2025-11-25) and those that send an envelope with each request (2026-07-28; server/discover). Tools that fail answer
// with isError, which a model can read; only what is no request is an error of JSON-RPC.
//
// Besides tools: resources (answers by their handle, asked again; opened runs; the skill's pages) and prompts (the
// skill's workflows).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/tools.h"

namespace stageline::mcp {

class Server {
 public:
  explicit Server(ToolLimits limits) : tools_(std::move(limits)) {}
  // The line to send; "": nothing is, of notifications. `progress`: of a run that is read meanwhile; cancelling it from
  // another thread gives the question up.
  std::string answer(std::string_view line, Progress* progress = nullptr);

  // What has to be known of a line before its turn comes. Ids and tokens as JSON; "": it has none.
  struct Notice {
    std::string id, progress_token;
    std::string cancels;  // the id of a request that is given up
  };
  static Notice notice_of(std::string_view line);
  static std::string progress_line(const std::string& token, const Progress& progress);

  static constexpr size_t kMostLineBytes = size_t{1} << 20;

 private:
  std::string read_resource(const std::string& id, bool envelope, std::string_view uri);

  Tools tools_;
};

}  // namespace stageline::mcp
