// The Model Context Protocol, for agents: one JSON-RPC line in, one out. Knows nothing of files and terminals beside
// the runs it opens, so that it can be fuzzed and tested line by line.
//
// Two eras of clients are served by one dispatcher: those that shake hands (initialize; revisions 2024-11-05 to
// 2025-11-25) and those that send an envelope with each request (2026-07-28; server/discover). Tools that fail answer
// with isError, which a model can read; only what is no request is an error of JSON-RPC.
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
  // The line to send; "": nothing is, of notifications.
  std::string answer(std::string_view line);

  static constexpr size_t kMostLineBytes = size_t{1} << 20;

 private:
  Tools tools_;
};

}  // namespace stageline::mcp
