#include "base/input.h"
#include "cli/commands.h"
#include "cli/model_flags.h"
#include "cli/paths.h"
#include "cli/picture_flags.h"
#include "cli/plan_tables.h"
#include "cli/questions.h"
#include "cli/schedule_options.h"
#include "exporters/table_text.h"
#include "model/pipeline_words.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/replay/order_text.h"
#include "pipeline/replay/schedule_numbers.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"
#include "server/page/page_file.h"

namespace stageline {
namespace {

constexpr size_t kMaxDrawnRanks = 64, kMaxDrawnColumns = 2000;

constexpr char kRule = 1, kIdle = 2;  // for a row with one byte for each column

std::string label_of(const ScheduleCell& cell, bool with_chunk) {
  std::string text;
  for (const Action& a : cell.actions()) {
    append_item(text, std::string(kind_code(a.kind)) + std::to_string(a.micro_batch), "&");
    if (!with_chunk) continue;
    if (a.chunk < 26) text += static_cast<char>('a' + a.chunk);
    else text += "." + std::to_string(a.chunk);
  }
  return text;
}

const char* colour_of(CellKind kind) {
  switch (kind) {
    case CellKind::kForward: return "36";
    case CellKind::kWeightGrad: return "35";
    case CellKind::kInputGrad: return "33";
    default: return "32";
  }
}

struct Row {
  std::string columns;
  std::vector<const char*> colours;  // one for each column; nullptr where it is idle
};

void append_slice(std::string& out, const Row& row, size_t begin, size_t end, bool colour) {
  const char* now = nullptr;
  for (size_t i = begin; i < end; ++i) {
    if (colour && row.colours[i] != now) {
      now = row.colours[i];
      out += "\x1b[" + std::string(now ? now : "0") + "m";
    }
    const char c = row.columns[i];
    out += c == kRule ? "─" : c == kIdle ? "·" : std::string(1, c);
  }
  if (now) out += "\x1b[0m";
}

// Returns one line for each rank, with time to the right. A cell is its label and a rule as long as the cell takes;
// idle time is dots. Wider drawings continue in further blocks of `width_columns`. Labels are "F3", or "F3a", "F3b"
// when there are several chunks. Returns "" when that would take more than kMaxDrawnRanks ranks or kMaxDrawnColumns
// columns.
std::string drawn_schedule(const Schedule& schedule, const std::vector<std::vector<ReplayedCell>>& times,
                           int width_columns, bool colour) {
  if (times.size() > kMaxDrawnRanks) return {};
  const bool with_chunk = schedule.sizes.chunks > 1;
  // A column is so short that every label fits into its cell, with a blank after it.
  double column_ns = 1e300;
  int64_t last = 0;
  for (size_t r = 0; r < times.size(); ++r)
    for (size_t i = 0; i < times[r].size(); ++i) {
      const int64_t dur = times[r][i].end_ns - times[r][i].start_ns;
      column_ns = std::min(column_ns, dur / static_cast<double>(label_of(schedule.ranks[r][i], with_chunk).size() + 1));
      last = std::max(last, times[r][i].end_ns);
    }
  const double wide = last / column_ns;
  if (!(wide >= 1 && wide <= kMaxDrawnColumns)) return {};
  const auto column = [&](int64_t t) { return static_cast<size_t>(std::llround(t / column_ns)); };
  const size_t columns = column(last);
  std::vector<Row> rows;
  for (size_t r = 0; r < times.size(); ++r) {
    Row row{std::string(columns, kIdle), std::vector<const char*>(columns, nullptr)};
    for (size_t i = 0; i < times[r].size(); ++i) {
      const ScheduleCell& cell = schedule.ranks[r][i];
      const std::string label = label_of(cell, with_chunk);
      const size_t begin = column(times[r][i].start_ns), end = column(times[r][i].end_ns);
      for (size_t x = begin; x < end; ++x) {
        row.columns[x] = x - begin < label.size() ? label[x - begin] : x + 1 < end ? kRule : ' ';
        const auto actions = cell.actions();
        row.colours[x] = colour_of(actions[(x - begin) * actions.size() / (end - begin)].kind);
      }
    }
    rows.push_back(std::move(row));
  }
  const std::string widest = std::to_string(times.size() - 1);
  const size_t margin = 5 + widest.size() + 2;
  const size_t room = std::max<size_t>(20, std::max(0, width_columns) - margin);
  std::string out;
  for (size_t begin = 0; begin < columns; begin += room) {
    if (begin > 0) out += '\n';
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::string number = std::to_string(r);
      out += "rank " + std::string(widest.size() - number.size(), ' ') + number + "  ";
      append_slice(out, rows[r], begin, std::min(columns, begin + room), colour);
      while (out.ends_with(' ')) out.pop_back();
      out += '\n';
    }
  }
  return out;
}

constexpr size_t kMaxOrderBytes = size_t{512} << 20;
constexpr int kPipeColumns = 160;  // width of a drawing that goes into a pipe

struct Answer {
  Schedule schedule;
  const ScheduleDef* def = nullptr;  // nullptr when the order was read from a file
  UnitCosts costs;
  std::vector<std::vector<ReplayedCell>> times;
  ScheduleNumbers numbers;
  std::optional<Table> stages;  // bytes, where the model is described
  int64_t bubble_ns = 0;        // the bubble that the published formula describes, without latency
};

// `remarks` gets notes on what was left out of an order that was read.
Result<Schedule> chosen_schedule(const Arguments& arguments, std::vector<std::string>& remarks) {
  if (!arguments.has("from-csv")) {
    if (arguments.has("layout")) return make_error(ErrorCode::kUsage, "--layout goes with --from-csv");
    if (arguments.operands.empty())
      return make_error(ErrorCode::kUsage, "which schedule?",
                        "stageline schedule 1f1b, or --from-csv FILE; stageline help schedules lists them");
    return schedule_of(arguments);
  }
  if (!arguments.operands.empty())
    return make_error(ErrorCode::kUsage, "the order is in the file; no schedule's name goes with --from-csv");
  for (const char* flag : {"stages", "micro-batches", "chunks", "group", "dw-detach", "plan-cost"})
    if (arguments.has(flag))
      return make_error(ErrorCode::kUsage, std::string("the sizes are in the file; --") + flag + " does not apply");
  std::optional<ChunkLayout> layout;
  if (arguments.has("layout")) {
    for (const ChunkLayout known : {ChunkLayout::kLoop, ChunkLayout::kV, ChunkLayout::kBidirectional})
      if (arguments.get("layout") == layout_name(known)) layout = known;
    if (!layout) return make_error(ErrorCode::kUsage, "--layout is loop, v or bidirectional");
  }
  const std::string path = arguments.get("from-csv");
  TRY(text, read_all(path, kMaxOrderBytes));
  TRY(read, read_order(*text, path, layout));
  if (read->left_out > 0)
    remarks.push_back(path + "  " + grouped(read->left_out) +
                      " actions are messages or parameter handling and were left out");
  return std::move(read->schedule);
}

Table ranks_table(const Answer& answer) {
  Table table(declared_table("generated-schedule/ranks"));
  for (uint32_t r = 0; r < answer.numbers.ranks.size(); ++r) {
    const RankNumbers& n = answer.numbers.ranks[r];
    table.add_row({r, n.busy_ns, n.span_bubble_ns, n.inner_bubble_ns, int64_t{n.activations},
                   answer.def ? answer.def->activations(answer.schedule.sizes, static_cast<int32_t>(r)) : kNullInteger,
                   int64_t{n.activations_input}});
  }
  return table;
}

Text sizes_text(const Schedule& s) { return sizes_text(s.sizes, s.layout, s.sizes.group); }

int64_t published_bubble_ns(const Answer& answer) {
  return std::llround(answer.def->bubble_ns(answer.schedule.sizes, answer.costs));
}

// Returns the reason why the published formula does not hold for this order; empty when it holds. Formulas ignore
// latency, which the text mentions when there is one.
std::string published_for(const Answer& answer) {
  std::string text = answer.costs.latency_ns > 0 ? "; without latency" : "";
  if (answer.bubble_ns == published_bubble_ns(answer)) return text;
  const ScheduleSizes& sizes = answer.schedule.sizes;
  const int32_t group = sizes.group > 0 ? sizes.group : sizes.stages;
  const int32_t min = answer.def->bubble_min_micro_batches ? answer.def->bubble_min_micro_batches(sizes) : 0;
  const std::string here = ", here are " + std::to_string(sizes.micro_batches);
  text += "; does not hold here: ";
  if (sizes.micro_batches < min) text += "it takes at least " + std::to_string(min) + " micro-batches" + here;
  else if (answer.def->grouped && group > 0 && sizes.micro_batches % group != 0)
    text += "it takes a multiple of " + std::to_string(group) + " micro-batches" + here;
  else text += "the order at these costs";
  return text + (text.ends_with("costs") ? " waits " : "; the order waits ") + ns_as_decimal(answer.bubble_ns, 6) +
         " ms";
}

std::string numbers_text(const Answer& answer) {
  const ScheduleNumbers& n = answer.numbers;
  const auto line = [](const std::string& name, const std::string& text) {
    return name + std::string(14 - name.size(), ' ') + text + "\n";
  };
  const auto ms = [](int64_t ns) { return ns_as_decimal(ns, 6) + " ms"; };
  const auto of_span = [&](int64_t ns) {
    const double share = share_or_zero(ns, n.span_ns);
    return ms(ns) + "  (" + percent(share) + " of the span)";
  };
  std::string out = line("span", ms(n.span_ns));
  out += line("span bubble", of_span(n.max_span_bubble_ns));
  out += line("inner bubble", of_span(n.max_inner_bubble_ns));
  if (answer.def) {
    out +=
        line("published", std::string(answer.def->bubble_is_inner ? "inner" : "span") + " bubble " +
                              ms(published_bubble_ns(answer)) + ": " + answer.def->bubble_text + published_for(answer));
  }
  out += line("activations", std::to_string(n.max_activations) + " at most on one rank" +
                                 (answer.def ? "; published " + std::string(answer.def->activations_text) : ""));
  return out;
}

std::string answer_text(const Answer& answer, const Terminal& terminal, size_t max_rows) {
  std::string out = terminal_text(answer.schedule.name) + "  " + sizes_text(answer.schedule).en + "\n";
  if (answer.def) out += std::string(answer.def->summary) + "; " + answer.def->source + "\n";
  const std::string drawing =
      drawn_schedule(answer.schedule, answer.times, terminal.table_width > 0 ? terminal.table_width : kPipeColumns,
                     terminal.colour_out);
  out += "\n" + (drawing.empty() ? "too large to draw with letters; -o FILE.svg draws it\n" : drawing) + "\n";
  if (!drawing.empty() && answer.schedule.sizes.chunks > 1)
    out += "a, b, … are chunks 0, 1, …: F0b is what charts and tables call F0.c1\n\n";
  out += numbers_text(answer) + "\n";
  const auto table = [&](const Table& rows) {
    out += format_table_text(rows, terminal.table_width, terminal.colour_out, max_rows, false, 0, terminal.chinese());
  };
  table(ranks_table(answer));
  if (answer.stages) out += "\n", table(*answer.stages);
  return out;
}

std::string answer_json(const Answer& answer) {
  JsonWriter json;
  const ScheduleSizes& sizes = answer.schedule.sizes;
  json.begin_object();
  json.field("schedule", answer.schedule.name);
  json.field("stages", sizes.stages).field("micro_batches", sizes.micro_batches).field("chunks", sizes.chunks);
  json.field("layout", layout_name(answer.schedule.layout));
  json.field("span_ns", answer.numbers.span_ns);
  json.field("span_bubble_ns", answer.numbers.max_span_bubble_ns);
  json.field("inner_bubble_ns", answer.numbers.max_inner_bubble_ns);
  json.field("activations", answer.numbers.max_activations);
  json.key("published");
  if (answer.def) {
    json.begin_object();
    json.field("bubble", answer.def->bubble_is_inner ? "inner" : "span").field("formula", answer.def->bubble_text);
    json.field("bubble_ns", published_bubble_ns(answer))
        .field("holds", answer.bubble_ns == published_bubble_ns(answer));
    json.field("activations", answer.def->activations_text).field("source", answer.def->source);
    json.end_object();
  } else {
    json.null();
  }
  json.key("table");
  append_table_json(json, ranks_table(answer));
  json.key("stage_bytes");
  answer.stages ? append_table_json(json, *answer.stages) : void(json.null());
  json.end_object();
  return json.take() + "\n";
}

// The chart exporters draw runs, so this makes a run with one step of the schedule.
Status draw(const Answer& answer, const Arguments& arguments, const Terminal& terminal, const std::string& to,
            const std::string& path) {
  const Args drawn = Args().set("schedule", answer.schedule.name).set("sizes", sizes_text(answer.schedule));
  TRY(options, picture_options(arguments, terminal.lang, terminal.say("schedule.drawn", drawn)));
  options->ghosts = Ghosts::kOff;  // a plan is its own theory
  SimulateOptions o{.schedule = answer.schedule, .steps = 1, .costs = answer.costs, .start_ns = 0};
  TRY(run, simulate_run(o));
  run->trace.cells.sort();
  link_cells(run->trace);
  Diagnostics notes = run->trace.diagnostics;
  return export_run(std::make_shared<const Run>(run->trace), notes, path, to, *options, {});
}

// Computes the bubble that the published formula describes, from the order without latency.
Status measure_bubble(Answer& answer) {
  if (!answer.def) return {};
  const auto of = [&](const ScheduleNumbers& n) {
    return answer.def->bubble_is_inner ? n.max_inner_bubble_ns : n.max_span_bubble_ns;
  };
  answer.bubble_ns = of(answer.numbers);
  if (answer.costs.latency_ns == 0) return {};
  UnitCosts costs = answer.costs;
  costs.latency_ns = 0;
  TRY(times, replay(answer.schedule, costs));
  answer.bubble_ns = of(schedule_numbers(answer.schedule, *times));
  return {};
}

// Computes the times of the cells at these costs, and their sums; and the bytes of --model.
Status replay_answer(const Arguments& arguments, Answer& answer) {
  int32_t dp = 1;
  TRY_OK(arguments.take("dp", 1, 1'000'000, dp));
  TRY(bytes, stage_bytes_of(arguments, dp));
  for (const char* flag : {"tp", "dp", "split"})
    if (!*bytes && arguments.has(flag))
      return make_error(ErrorCode::kUsage, "--" + std::string(flag) + " goes with --model", "--model config.json");
  if (*bytes) {
    std::vector<int32_t> layers = (*bytes)->even(virtual_stage_count(answer.schedule));
    if (arguments.has("split")) TRY_OK(take(parse_split(arguments.get("split"), "split", 1), layers));
    if (std::ssize(layers) != virtual_stage_count(answer.schedule) ||
        std::accumulate(layers.begin(), layers.end(), int64_t{0}) != (*bytes)->model.layers())
      return make_error(ErrorCode::kUsage,
                        "--split needs the layers of " + std::to_string(virtual_stage_count(answer.schedule)) +
                            " virtual stages, " + std::to_string((*bytes)->model.layers()) + " in all");
    answer.stages =
        stage_bytes_table(answer.schedule, layers, (*bytes)->peaks(answer.schedule, layers), (*bytes)->options.limit);
  }
  TRY(times, replay(answer.schedule, answer.costs));
  answer.times = std::move(*times);
  answer.numbers = schedule_numbers(answer.schedule, answer.times);
  return measure_bubble(answer);
}

// --format chooses what is written and --to what is drawn. A file name that means another format is an error.
Status check_form(const Arguments& arguments, const std::string& format, const std::string& output) {
  if (!arguments.has("format")) return {};
  if (arguments.has("to"))
    return make_error(ErrorCode::kUsage, "--format and --to each choose what is written", "give one of them");
  const std::string extension = file_extension(output);
  const std::string own = format == "text" ? "txt" : format == "torch" ? "csv" : format;
  if (output == "-" || extension == own || !choose_exporter("", output)) return {};
  return make_error(ErrorCode::kUsage,
                    "--format " + format + " and a name that ends in ." + extension + " say different things",
                    "leave --format out, or name the file ." + own, {output});
}

}  // namespace

Result<ScheduleHint> reported_schedule(const Arguments& arguments) {
  TRY(costs, costs_of(arguments, {}));
  std::vector<std::string> remarks;
  TRY(schedule, chosen_schedule(arguments, remarks));
  Answer a{std::move(*schedule), nullptr, *costs, {}, {}, {}, 0};
  a.def = arguments.has("from-csv") ? nullptr : find_schedule(a.schedule.name);
  TRY_OK(replay_answer(arguments, a));
  TRY(order, arguments.get("format", "") == "torch" ? torch_csv(a.schedule) : order_csv(a.schedule));
  return ScheduleHint{answer_json(a), answer_text(a, Terminal{}, SIZE_MAX), std::move(*order), ranks_table(a)};
}

Result<int> run_schedule(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  const std::string output = arguments.get("output", "-"), extension = file_extension(output);
  const std::string format = arguments.get("format", output.ends_with(".csv") && !arguments.has("to") ? "csv" : "text");
  if (format != "text" && format != "csv" && format != "torch" && format != "json")
    return make_error(ErrorCode::kUsage, "--format is text, csv, torch or json, not \"" + format + "\"");
  TRY_OK(check_form(arguments, format, output));
  TRY(rows, arguments.integer("rows", 100, 0, INT64_MAX));
  const bool draws =
      arguments.has("to") || (!arguments.has("format") && output != "-" && extension != "txt" && format != "csv");
  if (draws)
    if (Result<const Exporter*> exporter = choose_exporter(arguments.get("to"), output); !exporter)
      return std::move(exporter).error();
  if (arguments.has("model") && (draws || format == "csv" || format == "torch"))
    return make_error(ErrorCode::kUsage, "--model prints bytes as text or json", "--format json");
  TRY_OK(check_writable(output, {arguments.get("from-csv")}));
  TRY(costs, costs_of(arguments, {}));
  std::vector<std::string> remarks;
  Result<Schedule> schedule = chosen_schedule(arguments, remarks);
  for (const std::string& line : remarks) note(*terminal, line);
  if (!schedule) return std::move(schedule).error();
  Answer a{std::move(*schedule), nullptr, *costs, {}, {}, {}, 0};
  a.def = arguments.has("from-csv") ? nullptr : find_schedule(a.schedule.name);
  std::string text;
  if (!draws && format == "csv") {
    text = order_csv(a.schedule);
  } else if (!draws && format == "torch") {
    TRY_OK(take(torch_csv(a.schedule), text));
  } else {
    TRY_OK(replay_answer(arguments, a));
    if (draws) {
      TRY_OK(draw(a, arguments, *terminal, arguments.get("to"), output));
      if (output != "-") note(*terminal, output + "  " + a.schedule.name + ", " + sizes_text(a.schedule).en);
      return kExitGood;
    }
    text = format == "json" ? answer_json(a)
                            : answer_text(a, *terminal, *rows == 0 ? SIZE_MAX : static_cast<size_t>(*rows));
  }
  TRY(out, OutputFile::create(output));
  format == "text" ? out->write_painted(text) : out->write(text);
  TRY_OK(out->commit());
  return kExitGood;
}

}  // namespace stageline
