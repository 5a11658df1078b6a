#include "cli/commands.h"
#include "cli/open_run.h"
#include "cli/paths.h"
#include "profile/event_text.h"

namespace stageline {
namespace {

Result<const Part*> part_of_rank(const Trace& trace, const Arguments& arguments) {
  if (!arguments.has("rank") && trace.parts.size() == 1) return &trace.parts[0];
  TRY(rank, arguments.integer("rank", -1, 0, INT32_MAX));
  std::string ranks;
  for (const Part& part : trace.parts) {
    if (part.rank == *rank) return &part;
    append_item(ranks, std::to_string(part.rank));
  }
  return make_error(ErrorCode::kUsage,
                    *rank < 0 ? "there are several ranks; --rank says whose event" : "no rank " + std::to_string(*rank),
                    "it has ranks " + ranks);
}

}  // namespace

Result<int> run_event(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  TRY(index, arguments.integer("index", -1, 0, INT64_MAX));
  if (*index < 0)
    return make_error(ErrorCode::kUsage, "--index says which event",
                      "its position in traceEvents, from 0, as tables give it");
  TRY(out, open_output(arguments.get("output", "-"), arguments.operands));
  TRY(trace, open_run(arguments, *terminal, arguments.operands));
  TRY(part, part_of_rank(*trace, arguments));
  const uint32_t slice = slice_of_index(**part, *index);
  if (slice == kNoSliceIndex)
    return make_error(
        ErrorCode::kBadInput,
        "event " + std::to_string(*index) + " is not a slice of rank " + std::to_string((*part)->rank),
        "it has " + std::to_string((*part)->event_count) + " events; arrows, instants and names are not slices",
        {(*part)->source});
  TRY(text, event_text(**part, slice));
  out->write(*text + "\n");
  TRY_OK(out->commit());
  return kExitGood;
}

}  // namespace stageline
