// Lists the calls of a flight recorder that belong together, calls that did not finish, and the rank that each rank
// waits for. Definitions: docs/analyses/flight-recorder.md.
#include <string>

#include "analyses/analysis.h"
#include "analyses/flight_recorder/problems.h"
#include "facts/flight_facts.h"

namespace stageline {
namespace {

std::string list_text(const std::vector<int32_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(ranks[i]);
  return text;
}

std::string_view state_name(FlightState state) {
  switch (state) {
    case FlightState::kScheduled: return "scheduled";
    case FlightState::kStarted: return "started";
    case FlightState::kCompleted: return "completed";
  }
  return "";
}

std::vector<ColumnSpec> flight_problems_columns() {
  return {{"verdict", "verdict", Type::kText,
           "missing: some members never made the call; type, sizes, dtype: the calls differ in these; stuck: finished "
           "on some members only; unfinished: made by all members, finished on none"},
          {"group", "group", Type::kText, "Name of the process group"},
          {"description", "description", Type::kText, "Purpose of the group, as the program named it"},
          {"sequence", "sequence", Type::kInteger,
           "Number of a collective within its group, or of a message from sender to receiver"},
          {"op", "operation", Type::kText, "Operation that most members called"},
          {"src", "from", Type::kInteger, "For a message: global rank that sends"},
          {"dst", "to", Type::kInteger, "For a message: global rank that receives"},
          {"culprits", "ranks at fault", Type::kText,
           "Global ranks that are missing or differ from the majority; empty when there is no majority"},
          {"waiting", "waiting ranks", Type::kText, "Global ranks that made the call and have not finished it"},
          {"not_started", "not started", Type::kText, "The waiting ranks that have only enqueued it"},
          {"without_dump", "no dump", Type::kText, "Members without a dump"},
          {"majority_have", "most have", Type::kText, "For calls that differ: the value of most members"},
          {"others_have", "others have", Type::kText, "The value of the others"},
          {"since_ns", "since", Type::kTime, "Time at which the first waiting rank made the call, on its host's clock"},
          {"frame", "frame", Type::kText,
           "Where the first rank at fault made its call, or its last call when it is missing"}};
}

Table problems_table(const Trace& trace, const FlightReport& report) {
  Table table("flight-problems", "Calls that did not go well", flight_problems_columns());
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

std::vector<ColumnSpec> flight_waits_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"call", "call", Type::kText, "Its oldest call that is not finished"},
          {"state", "state", Type::kText, "scheduled: enqueued; started: its work began"},
          {"for_ranks", "waits for", Type::kText, "Members that never made the call"},
          {"since_ns", "since", Type::kTime, "Time at which it made the call, on its host's clock"},
          {"frame", "frame", Type::kText, "Where it made the call"}};
}

Table waits_table(const Trace& trace, const FlightReport& report) {
  Table table("flight-waits", "What each rank waits in", flight_waits_columns());
  for (const FlightWait& wait : report.waits) {
    const Part& part = trace.parts[wait.part];
    const FlightCall& call = part.flight_calls[wait.call];
    table.add_row({int64_t{wait.rank}, flight_call_text(trace, call), std::string(state_name(call.state)),
                   list_text(wait.for_ranks), part.slices.start_ns[wait.slice],
                   flight_frame_text(trace, wait.part, wait.slice)});
  }
  return table;
}

std::vector<ColumnSpec> flight_groups_columns() {
  return {
      {"group", "group", Type::kText, "Name of the process group"},
      {"description", "description", Type::kText, "Purpose of the group, as the program named it"},
      {"ranks", "ranks", Type::kText, "Its members, global"},
      {"members_known", "members", Type::kText,
       "said: the dumps list the members; seen: the members are all ranks that made a call in the group"},
      {"calls", "calls", Type::kInteger, "Calls of all ranks"},
      {"collectives", "collectives", Type::kInteger, "Number of different collectives"},
      {"messages", "messages", Type::kInteger, "Sends with their receives"},
      {"last_through", "last through", Type::kInteger, "Number of the last collective that is finished on all members"},
      {"last_made", "last made", Type::kInteger, "Number of the last collective that any member made"}};
}

Table groups_table(const Trace& trace, const FlightReport& report) {
  Table table("flight-groups", "Process groups", flight_groups_columns());
  const auto known = [](int64_t sequence) { return sequence < 0 ? kNullInteger : sequence; };
  for (const FlightGroupSum& sum : report.groups) {
    const FlightGroup& group = trace.flight_groups[sum.group];
    table.add_row({group.name, group.description, list_text(group.ranks),
                   std::string(group.members_known ? "said" : "seen"), sum.calls, sum.collectives, sum.messages,
                   known(sum.last_through), known(sum.last_made)});
  }
  return table;
}

std::vector<ColumnSpec> flight_calls_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"record_id", "record", Type::kInteger, "Number of the call on its rank"},
          {"group", "group", Type::kText, "Name of the process group"},
          {"sequence", "sequence", Type::kInteger, "Its number in the group"},
          {"op", "operation", Type::kText, "Without the backend's name"},
          {"peer", "peer", Type::kInteger, "For a send or receive: global rank of the other side"},
          {"state", "state", Type::kText, "scheduled, started or completed; a retired call is completed"},
          {"created_ns", "made", Type::kTime, "When the host made the call"},
          {"input_sizes", "input sizes", Type::kText, "As recorded"},
          {"output_sizes", "output sizes", Type::kText, "As recorded"},
          {"dtypes", "data types", Type::kText, "Data types of the inputs, else of the outputs"},
          {"frame", "frame", Type::kText, "The innermost Python frame outside torch"}};
}

Table calls_table(const Trace& trace) {
  Table table("flight-calls", "All calls", flight_calls_columns());
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

Result<AnalysisResult> run_flight_recorder(const AnalysisInput& input) {
  const Run& run = input.run();
  const Trace& trace = run.trace();
  if (!has_flight_calls(trace)) return make_error(ErrorCode::kBadInput, "there are no calls of a flight recorder here");
  const FlightReport& report = flight_of(run);
  AnalysisResult result;
  result.tables.push_back(problems_table(trace, report));
  result.tables.push_back(waits_table(trace, report));
  result.tables.push_back(groups_table(trace, report));
  result.tables.push_back(calls_table(trace));
  if (report.overwritten > 0) result.notes.add(problem::flight_recorder_overwritten, {}, report.overwritten);
  return result;
}

}  // namespace

extern const Analysis flight_recorder_analysis = {
    .name = "flight-recorder",
    .summary = "which collective did not complete, and which ranks are missing, differ or wait for others",
    .tables = {{"flight-problems", "collectives and messages that did not go well", flight_problems_columns},
               {"flight-waits", "what each rank waits in, and for whom", flight_waits_columns},
               {"flight-groups", "process groups, and how far they came", flight_groups_columns},
               {"flight-calls", "one row per call", flight_calls_columns}},
    .run = run_flight_recorder,
    .needs = AnalysisNeeds::kCalls};

}  // namespace stageline
