#include "server/page/answer_json.h"

#include "diagnosis/compare_runs.h"
#include "diagnosis/explain.h"
#include "diagnosis/profile/profile_diff.h"
#include "engine/diff_json.h"
#include "engine/engine.h"
#include "engine/model_tables.h"
#include "engine/what_if_question.h"
#include "exporters/table_text.h"
#include "exporters/table_words.h"
#include "facts/profile_facts.h"
#include "model/run_extent.h"
#include "profile/call_tree.h"
#include "server/http/wire.h"
#include "server/page/problems.h"

namespace stageline {
namespace {

constexpr size_t kMaxSentenceRows = 100'000;  // maximum rows of a table that are searched for words with a Chinese form
constexpr size_t kMaxEventRows = 2'000'000;   // as in all_tables(): with more slices, no table has a row per event

bool is_dump(const Analysis& analysis) { return analysis.name == "events"; }
bool is_of_ascend(const Analysis& analysis) { return analysis.name == "hccl-sum"; }  // its title names HCCL

void write_descriptor(JsonWriter& json, const Analysis& analysis) {
  json.begin_object().field("name", analysis.name).field("summary", analysis.summary);
  json.field("in_report", analysis.in_report);
  json.objects("tables", analysis.tables(),
               [&](const TableSpec* table) { json.field("name", table->name).field("summary", table->summary); });
  json.objects("options", analysis.options(), [&](const AnalysisOption& option) {
    json.field("name", option.name).field("value", option.value).field("help", option.help);
    const bool any = option.choices[0] != '\0';
    json.list("choices", any ? split(option.choices, ',') : std::vector<std::string_view>());
  });
  json.end_object();
}

// Numbers of a page have 53 bits, and timestamps of most runs need more, so times count from what axes call 0.
int64_t origin_of(const Trace& trace) { return trace.clock == ClockState::kPerRank ? 0 : axis_zero_ns(trace); }

std::string result_json(std::string_view name, const AnalysisResult& result, int64_t origin_ns, RowLimit limit,
                        const TablePart& part = {}, AnswerForm form = AnswerForm::kJson) {
  JsonWriter json;
  RowsApart apart;
  json.begin_object().field("analysis", name);
  json.each("tables", result.tables, [&](const Table& table) {
    if (part.table.empty() || part.table == table.name())
      append_table_page(json, table, limit(table), origin_ns, part.first_row,
                        form == AnswerForm::kApart ? &apart : nullptr);
  });
  append_notes(json, result.notes);
  write_sentences(json, result.tables, result.notes, kMaxSentenceRows);
  json.end_object();
  if (form == AnswerForm::kJson) return json.take();
  WireColumns rows;
  rows.add_bytes(apart.text);
  const uint64_t count = apart.places.size();
  std::string places(reinterpret_cast<const char*>(apart.places.data()), count * sizeof(RowsApart::Place));
  places.append(reinterpret_cast<const char*>(&count), sizeof count);
  rows.add_bytes(places);
  return std::move(rows).with_header(json.take());
}

bool has_facts(const Trace& trace) {
  return std::ranges::any_of(trace.parts,
                             [](const Part& part) { return part.slices.size() > 0 && part.slices.has_facts(); });
}

struct Column {
  const CallTree* tree;
  int32_t rank;
  bool is_other;
};

void add_columns(const Trace& trace, const std::vector<CallTree>& trees, bool is_other, std::vector<Column>& columns) {
  for (size_t p = 0; p < trees.size(); ++p)
    if (trees[p].nodes.size() > 1) columns.push_back({&trees[p], trace.parts[p].rank, is_other});
}

// One column of the answer: the values of all ranks, one rank after another.
std::vector<double> joined(const std::vector<std::vector<int64_t>>& values) {
  std::vector<double> out;
  for (const std::vector<int64_t>& column : values) out.insert(out.end(), column.begin(), column.end());
  return out;
}

Result<std::string> wire_of(const std::vector<Column>& columns, const CallsBudget& budget) {
  if (columns.empty())
    return make_error(ErrorCode::kUnavailable, "this run has no calls: no thread of a host was recorded");
  auto trees = mapped<const CallTree*>(columns, &Column::tree);
  const size_t max = std::clamp(budget.max_values / columns.size(), budget.min_nodes, budget.max_nodes);
  const MergedCalls merged = merge_calls(trees, max);

  JsonWriter json;
  json.begin_object().field("left_out", merged.left_out).field("cut_share", merged.max_left_out);
  json.objects("ranks", columns, [&](const Column& column) {
    json.field("rank", column.rank).field("other", column.is_other).field("steps", column.tree->steps);
  });
  json.key("frames").begin_array();
  for (StringId id = 0; id < merged.frames.size(); ++id) json.value(valid_utf8(merged.frames.text(id)));
  json.end_array();
  std::vector<uint32_t> parent, frame;
  std::vector<uint8_t> kind;
  constexpr uint8_t kRest = static_cast<uint8_t>(kFrameKindCount);
  for (const MergedCalls::Node& node : merged.nodes) {
    parent.push_back(node.parent);
    frame.push_back(node.frame);
    kind.push_back(node.is_rest ? kRest : static_cast<uint8_t>(node.kind));
  }
  WireColumns wire;
  wire.add("parent", "u32", parent);
  wire.add("frame", "u32", frame);
  wire.add("kind", "u8", kind);
  wire.add("host_ns", "f64", joined(merged.host_ns));
  wire.add("device_ns", "f64", joined(merged.device_ns));
  wire.add("calls", "f64", joined(merged.calls));
  wire.describe(json);
  json.end_object();
  return std::move(wire).with_header(json.take());
}

// `first` is the run that notes and times belong to. Notes and errors of the analysis go to `told`, if it is given.
Result<std::string> made_json(const Analysis& analysis, AnalysisInput input, const Trace& first, RowLimit limit,
                              const TablePart& part, AnswerForm form, NotesOfRun* reported = nullptr) {
  const bool huge = first.slice_count() > kMaxEventRows;
  input.for_report = input.brief = huge;
  input.rows_later = true;
  Result<AnalysisResult> result = analysis.run(input);
  if (reported && analysis.in_report) {
    if (result) merge_notes(reported->notes, result->notes);
    else add_not_possible(analysis, result.error(), reported->failed);
  }
  if (!result) return std::move(result).error();
  if (huge) result->notes.add(problem::view_no_event_tables, Args().set("analysis", analysis.name));
  return result_json(analysis.name, *result, origin_of(first), limit, part, form);
}

}  // namespace

bool is_offered(const Analysis& analysis, const Trace& trace) {
  if (analysis.needs == AnalysisNeeds::kTwoRuns || analysis.needs == AnalysisNeeds::kFiles) return false;
  if (is_of_ascend(analysis) && trace.device_family != DeviceFamily::kNpu) return false;
  return suits(analysis, trace) && !(is_dump(analysis) && trace.slice_count() > kMaxEventRows);
}

std::string offers_json(const Trace& trace, const std::vector<std::string>& paths, const SecondRun* other) {
  JsonWriter json;
  json.begin_object().each("answers", analyses(), [&](const Analysis* analysis) {
    if (is_offered(*analysis, trace)) write_descriptor(json, *analysis);
  });
  json.list("paths", paths, valid_utf8);
  json.key("other");
  if (other) {
    json.begin_object().field("title", valid_utf8(other->title));
    json.list("paths", other->paths, valid_utf8);
    json.end_object();
  } else {
    json.null();
  }
  json.end_object();
  return json.take();
}

Result<std::string> analysis_json(const Analysis& analysis, const AnalysisOptions& options,
                                  const std::shared_ptr<const Run>& run, RowLimit limit, const TablePart& part,
                                  AnswerForm form) {
  AnalysisInput input{.trace = &run->trace(), .facts = run, .options = options};
  return made_json(analysis, std::move(input), run->trace(), limit, part, form);
}

Result<std::string> noted_analysis_json(const Analysis& analysis, const std::shared_ptr<const Run>& run, RowLimit limit,
                                        NotesOfRun& reported) {
  AnalysisInput input{.trace = &run->trace(), .facts = run};
  return made_json(analysis, std::move(input), run->trace(), limit, {}, AnswerForm::kJson, &reported);
}

Result<std::string> two_runs_json(const Analysis& analysis, const AnalysisOptions& options, const Trace& control,
                                  const Trace& test, RowLimit limit, const TablePart& part, AnswerForm form) {
  for (const Trace* side : {&control, &test})  // a run without operators has none to compare, which is not an error
    if (!has_facts(*side)) return result_json(analysis.name, {}, 0, limit, {}, form);
  AnalysisInput input{.control = &control, .test = &test, .options = options};
  return made_json(analysis, std::move(input), control, limit, part, form);
}

std::string joined_answer(std::string_view apart) {
  uint32_t length = 0;
  std::memcpy(&length, apart.data(), sizeof length);
  const std::string_view json = apart.substr(sizeof length, length),
                         rows = apart.substr((sizeof length + length + 7) / 8 * 8);
  uint64_t count = 0;  // the places come last, followed by their number
  std::memcpy(&count, apart.data() + apart.size() - sizeof count, sizeof count);
  std::vector<RowsApart::Place> places(count);
  const size_t bytes = count * sizeof(RowsApart::Place);
  if (count > 0) std::memcpy(places.data(), apart.data() + apart.size() - sizeof count - bytes, bytes);
  std::string out;
  out.reserve(apart.size());
  size_t done = 0;
  for (const RowsApart::Place& place : places) {
    out.append(json, done, place.key_at - done).append("\"rows\":").append(rows, place.rows_at, place.bytes);
    done = place.key_end;
  }
  return out.append(json, done);
}

std::string losses_json(const Run& run) {
  if (run.trace().cells.size() > 0 || !is_profile(run.trace())) return "{}";
  const Result<FixList> list = profile_fixes(run);
  return list ? what_if_json(*list, what_if_tables(nullptr, *list)) : "{}";
}

Result<std::string> compare_json(const Run& control, const Run& test) {
  const bool cells = control.trace().cells.size() > 0 || test.trace().cells.size() > 0;
  const Result<RunDiff> diff = compare_runs(control, test);
  if (!diff && !cells) return std::string("{}");  // trace-diff says what differs
  if (!diff) return diff.error();
  return diff_json(*diff);
}

bool has_clocks(const Trace& trace) { return !clock_summary(trace).by.empty() || trace.alignment != AlignState::kRaw; }

std::string clocks_json(const Trace& trace, RowLimit limit) {
  auto clocks = mapped<ClockMap>(trace.parts, &Part::clock_map);
  AnalysisResult result;
  result.tables.push_back(clock_table(trace, clocks, false));
  return result_json("align", result, origin_of(trace), limit);
}

Result<std::string> calls_answer(const Run& run, const Run* other, const CallsBudget& budget) {
  std::vector<Column> columns;
  add_columns(run.trace(), call_trees_of(run), false, columns);
  if (other && !columns.empty()) add_columns(other->trace(), call_trees_of(*other), true, columns);
  return wire_of(columns, budget);
}

Result<std::string> area_calls_answer(const Trace& trace, const Timeline& timeline, const Query& query,
                                      const CallsBudget& budget) {
  TRY(lanes, list_parameter(query, "lanes", static_cast<uint32_t>(timeline.lanes().size())));
  TRY(window, window_parameters(query, timeline.span_ns()));
  std::vector<CallArea> areas(trace.parts.size());
  for (const uint32_t l : *lanes) {
    const ViewLane& lane = timeline.lanes()[l];
    if (lane.type != ViewLaneType::kStream && lane.type != ViewLaneType::kThread) continue;
    CallArea& area = areas[lane.part];
    area.from_ns = lane.zero_ns + window->from_ns();
    area.to_ns = lane.zero_ns + window->to_ns();
    area.chosen.resize(trace.parts[lane.part].slices.size());
    std::fill_n(area.chosen.begin() + lane.first, lane.count, true);
  }
  const FunctionNames names(trace);
  std::vector<CallTree> trees(trace.parts.size());
  parallel_for(trees.size(), [&](size_t p) {
    if (!areas[p].chosen.empty()) trees[p] = call_tree(trace, trace.parts[p], names, &areas[p]);
  });
  std::vector<Column> columns;  // also of ranks without a call there
  for (size_t p = 0; p < trees.size(); ++p)
    if (!areas[p].chosen.empty()) columns.push_back({&trees[p], trace.parts[p].rank, false});
  return wire_of(columns, budget);
}

}  // namespace stageline
