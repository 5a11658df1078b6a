// Lists the calls of a flight recorder that belong together, calls that did not finish, and the rank that each rank
// waits for. Definitions: docs/analyses/flight-recorder.md.
#include "analyses/analysis.h"
#include "analyses/flight_recorder/problems.h"
#include "facts/profile_facts.h"

namespace stageline {
namespace {

std::string list_text(const std::vector<int32_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(ranks[i]);
  return text;
}

std::string_view state_name(FlightState state) {
  static constexpr auto kTexts = texts_by<FlightState::kCompleted>({"scheduled", "started", "completed"});
  return kTexts[state];
}

Table problems_table(const Trace& trace, const FlightReport& report) {
  Table table(declared_table("flight-recorder/flight-problems"));
  const auto known = [](int32_t rank) { return rank < 0 ? kNullInteger : int64_t{rank}; };
  for (const FlightProblem& p : report.problems) {
    const FlightGroup& group = trace.flight_groups[p.group];
    table.add_row({std::string(flight_verdict_name(p.verdict)), group.name, group.description, p.sequence,
                   std::string(trace.names.text(p.op)), known(p.src), known(p.dst), list_text(p.culprits),
                   list_text(p.waiting), list_text(p.not_started), list_text(p.without_dump), p.expected, p.found,
                   p.since_ns, flight_frame_text(trace, p.part, p.slice)});
  }
  return table;
}

Table waits_table(const Trace& trace, const FlightReport& report) {
  Table table(declared_table("flight-recorder/flight-waits"));
  for (const FlightWait& wait : report.waits) {
    const Part& part = trace.parts[wait.part];
    const FlightCall& call = part.flight_calls[wait.call];
    table.add_row({int64_t{wait.rank}, flight_call_text(trace, call), trace.flight_groups[call.group].name,
                   std::string(state_name(call.state)), list_text(wait.for_ranks), part.slices.start_ns[wait.slice],
                   flight_frame_text(trace, wait.part, wait.slice)});
  }
  return table;
}

Table groups_table(const Trace& trace, const FlightReport& report) {
  Table table(declared_table("flight-recorder/flight-groups"));
  const auto known = [](int64_t sequence) { return sequence < 0 ? kNullInteger : sequence; };
  for (const FlightGroupSum& sum : report.groups) {
    const FlightGroup& group = trace.flight_groups[sum.group];
    table.add_row({group.name, group.description, list_text(group.ranks),
                   std::string(group.members_known ? "said" : "seen"), sum.calls, sum.collectives, sum.messages,
                   known(sum.last_through), known(sum.last_made)});
  }
  return table;
}

Table calls_table(const Trace& trace) {
  Table table(declared_table("flight-recorder/flight-calls"));
  for (uint32_t p = 0; p < trace.parts.size(); ++p) {
    const Part& part = trace.parts[p];
    for (const FlightCall& call : part.flight_calls) {
      const StringId dtypes = call.in_dtypes != 0 ? call.in_dtypes : call.out_dtypes;
      table.add_row({int64_t{part.rank}, call.record_id, trace.flight_groups[call.group].name,
                     call.sequence < 0 ? kNullInteger : call.sequence, std::string(trace.names.text(call.op)),
                     call.peer < 0 ? kNullInteger : int64_t{call.peer}, std::string(state_name(call.state)),
                     part.slices.start_ns[call.slice], std::string(trace.names.text(call.in_sizes)),
                     std::string(trace.names.text(call.out_sizes)), std::string(trace.names.text(dtypes)),
                     flight_frame_text(trace, p, call.slice)});
    }
  }
  return table;
}

}  // namespace

Result<AnalysisResult> run_flight_recorder(const AnalysisInput& input) {
  const Run& run = input.run();
  const Trace& trace = run.trace();
  if (!has_flight_calls(trace)) return make_error(ErrorCode::kBadInput, "there are no calls of a flight recorder here");
  const FlightReport& report = flight_of(run);
  AnalysisResult result;
  result.add(problems_table(trace, report), waits_table(trace, report), groups_table(trace, report),
             calls_table(trace));
  result.notes.add(problem::flight_recorder_overwritten, {}, report.overwritten);
  return result;
}

}  // namespace stageline
