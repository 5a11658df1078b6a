#include "pipeline/replay/order_text.h"

#include "base/csv.h"
#include "pipeline/order/check_order.h"
#include "pipeline/replay/schedule_numbers.h"

namespace stageline {
namespace {

constexpr std::string_view kHeader = "stage,index,kind,microbatch,chunk";
constexpr int64_t kMaxStages = 4096, kMaxMicroBatches = 65536, kMaxChunks = 64;
constexpr int64_t kMaxVirtualStages = kMaxStages * kMaxChunks;
constexpr size_t kMaxActions = size_t{3} << 23;

struct Row {
  int32_t rank, index;
  Action action;
};

std::string shown(std::string_view text) { return "\"" + std::string(text.substr(0, 40)) + "\""; }

// Parses a whole number from 0 to most − 1.
std::optional<int32_t> number_below(std::string_view text, int64_t max) {
  const auto value = parse_int(trim(text));
  if (!value || *value < 0 || *value >= max) return std::nullopt;
  return static_cast<int32_t>(*value);
}

std::optional<CellKind> action_kind(std::string_view code) {
  const auto kind = kind_from_code(code);
  return kind && *kind <= CellKind::kWeightGrad ? kind : std::nullopt;
}

// Makes a schedule of the rows, with as many ranks, micro-batches and chunks as the rows name.
Result<Schedule> assemble(std::vector<Row> rows, const std::string& path) {
  sort_stably(rows, {}, [](const Row& a) { return std::tie(a.rank, a.index); });
  Schedule schedule{"given", {}, ChunkLayout::kLoop};
  schedule.sizes = {.stages = rows.back().rank + 1, .micro_batches = 1, .chunks = 1};
  schedule.ranks.resize(schedule.sizes.stages);
  for (size_t i = 0; i < rows.size();) {
    size_t end = i;
    for (; end < rows.size() && rows[end].rank == rows[i].rank && rows[end].index == rows[i].index; ++end) {
      schedule.sizes.micro_batches = std::max(schedule.sizes.micro_batches, rows[end].action.micro_batch + 1);
      schedule.sizes.chunks = std::max(schedule.sizes.chunks, rows[end].action.chunk + 1);
    }
    RankOrder& order = schedule.ranks[rows[i].rank];
    Action first = rows[i].action, second = rows[end - 1].action;
    if (second.kind == CellKind::kForward) std::swap(first, second);
    const bool pair = first.kind == CellKind::kForward && is_backward(second.kind);
    if (end - i > 2 || (end - i == 2 && !pair))
      return make_error(ErrorCode::kBadInput,
                        "rank " + std::to_string(rows[i].rank) + " has " + std::to_string(end - i) +
                            " actions at index " + std::to_string(rows[i].index) +
                            "; only one F and one B can share a cell",
                        "", {path});
    if (end - i == 2) order.emplace_back(first, second);
    else order.emplace_back(rows[i].action);
    i = end;
  }
  return schedule;
}

Result<std::vector<Row>> read_table(std::string_view text, const std::string& path) {
  std::vector<Row> rows;
  std::vector<std::string_view> fields;
  std::vector<std::string> storage;
  int64_t lines = 0;
  next_csv_record(text, fields, storage, &lines);  // skips the header
  for (int64_t line = lines + 1; next_csv_record(text, fields, storage, &lines); line = lines + 1) {
    if (fields.size() == 1 && trim(fields[0]).empty()) continue;
    const auto bad = [&](const std::string& what) {
      return make_error(ErrorCode::kBadInput, what, "the columns are " + std::string(kHeader), {path, line});
    };
    if (fields.size() != 5) return bad(std::to_string(fields.size()) + " fields, not 5");
    const auto stage = number_below(fields[0], kMaxStages);
    const auto index = number_below(fields[1], int64_t{INT32_MAX});
    const auto kind = action_kind(trim(fields[2]));
    const auto micro_batch = number_below(fields[3], kMaxMicroBatches);
    const auto chunk = number_below(fields[4], kMaxChunks);
    if (!stage) return bad(shown(fields[0]) + " is not a stage (0 to " + std::to_string(kMaxStages - 1) + ")");
    if (!index) return bad(shown(fields[1]) + " is not an index");
    if (!kind) return bad(shown(fields[2]) + " is not F, B, I or W");
    if (!micro_batch)
      return bad(shown(fields[3]) + " is not a micro-batch (0 to " + std::to_string(kMaxMicroBatches - 1) + ")");
    if (!chunk) return bad(shown(fields[4]) + " is not a chunk (0 to " + std::to_string(kMaxChunks - 1) + ")");
    if (rows.size() == kMaxActions) return make_error(ErrorCode::kLimit, "more than 3·2^23 actions", "", {path, line});
    rows.push_back({*stage, *index, {*kind, *micro_batch, *chunk}});
  }
  return rows;
}

// Parses "5F0" into virtual stage (kept in `chunk`), kind and micro-batch.
std::optional<Action> torch_action(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits + 1 >= text.size()) return std::nullopt;
  const auto stage = number_below(text.substr(0, digits), kMaxVirtualStages);
  const auto kind = action_kind(text.substr(digits, 1));
  const auto micro_batch = number_below(text.substr(digits + 1), kMaxMicroBatches);
  if (!stage || !kind || !micro_batch) return std::nullopt;
  return Action{*kind, *micro_batch, *stage};
}

bool is_no_computation(std::string_view text) {
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') text.remove_prefix(1);
  for (const std::string_view word : {"UNSHARD", "RESHARD", "REDUCE_GRAD", "SEND_F", "RECV_F", "SEND_B", "RECV_B"})
    if (text.starts_with(word)) return true;
  return false;
}

// Turns the virtual stages in Action::chunk into chunks, and returns the layout that the stages of each rank show.
Result<ChunkLayout> chunks_of_stages(std::vector<Row>& rows, const std::string& path) {
  int32_t p = max_over<int32_t>(rows, [&](const Row& row) { return row.rank + 1; });
  std::vector<std::set<int32_t>> held(p);
  for (const Row& row : rows) held[row.rank].insert(row.action.chunk);
  for (const ChunkLayout layout : {ChunkLayout::kLoop, ChunkLayout::kV}) {
    Schedule shape{"", {.stages = p}, layout};
    bool fits = true;
    for (int32_t r = 0; r < p && fits; ++r) {
      int32_t chunk = 0;
      for (const int32_t stage : held[r]) fits &= virtual_stage(shape, r, chunk++) == stage;
    }
    if (!fits) continue;
    for (Row& row : rows) row.action.chunk /= p;
    return layout;
  }
  std::string stages;
  for (const int32_t stage : held[0]) append_item(stages, std::to_string(stage));
  return make_error(
      ErrorCode::kBadInput,
      "the virtual stages lie neither in a loop nor in a V over the ranks (rank 0 holds " + stages.substr(0, 60) + ")",
      "rank r of p holds r, p+r, 2p+r … or r, 2p−1−r, 2p+r …", {path});
}

Result<std::vector<Row>> read_torch(std::string_view text, const std::string& path, int64_t& left_out) {
  std::vector<Row> rows;
  std::vector<std::string_view> fields;
  std::vector<std::string> storage;
  int64_t lines = 0;
  int32_t rank = 0;
  for (int64_t line = 1; next_csv_record(text, fields, storage, &lines); line = lines + 1, ++rank) {
    if (rank >= kMaxStages) return make_error(ErrorCode::kLimit, "more than 4096 ranks", "", {path, line});
    int32_t index = 0;
    for (std::string_view field : fields) {
      field = trim(field);
      if (field.empty()) continue;  // idle
      const Error bad{ErrorCode::kBadInput,
                      shown(field) + " is no action",
                      {path, line},
                      "an action is STAGE KIND MICRO-BATCH such as 5F0, or (0F4;7B2)OVERLAP_F_B"};
      std::vector<std::string_view> parts = {field};
      if (field.starts_with('(')) {
        const size_t close = field.find(')');
        if (close == std::string_view::npos || field.substr(close + 1) != "OVERLAP_F_B") return bad;
        parts = split(field.substr(1, close - 1), ';');
      } else if (is_no_computation(field)) {
        ++left_out;
        continue;
      }
      for (const std::string_view part : parts) {
        const auto action = torch_action(trim(part));
        if (!action) return bad;
        if (rows.size() == kMaxActions)
          return make_error(ErrorCode::kLimit, "more than 3·2^23 actions", "", {path, line});
        rows.push_back({rank, index, *action});
      }
      ++index;
    }
  }
  return rows;
}

// The last word of a line: "f0;f1;b0;…" of a stage, as Paddle's get_static_scheduler() returns it.
std::string_view paddle_order(std::string_view line) {
  line = trim(line);
  return line.substr(line.find_last_of(" \t") + 1);
}

// Our table of Paddle's orders, a line a stage: "f3_vp1" is the forward of micro-batch 3 and chunk 1.
std::string table_of_paddle(std::string_view text) {
  std::string table = std::string(kHeader) + "\n";
  size_t stage = 0;
  for (const std::string_view line : split(text, '\n')) {
    size_t index = 0;
    for (const std::string_view word : split(paddle_order(line), ';')) {
      if (word.empty()) continue;
      const size_t chunk = word.find("_vp");
      table += std::to_string(stage) + ',' + std::to_string(index++) + ',' + (word[0] == 'f' ? "F" : "B") + ',' +
               std::string(word.substr(1, chunk - 1)) + ',' +
               (chunk == std::string_view::npos ? "0" : std::string(word.substr(chunk + 3))) + '\n';
    }
    stage += index > 0;
  }
  return table;
}

// Sets the layout under which the order runs; of several the one with the shortest span.
Status settle_layout(Schedule& schedule, std::optional<ChunkLayout> layout, const std::string& path) {
  std::optional<ChunkLayout> best;
  int64_t best_span = 0;
  Status first_problem;
  for (const ChunkLayout tried : {ChunkLayout::kLoop, ChunkLayout::kV, ChunkLayout::kBidirectional}) {
    if (layout && tried != *layout) continue;
    if (tried == ChunkLayout::kBidirectional && schedule.sizes.chunks != 2) continue;
    if (tried != ChunkLayout::kLoop && !layout && schedule.sizes.chunks == 1) continue;
    schedule.layout = tried;
    Status fits = check_order(schedule);
    if (fits) {
      const auto times = replay(schedule, UnitCosts{});
      if (times) {
        const int64_t span = schedule_numbers(schedule, *times).span_ns;
        if (!best || span < best_span) best = tried, best_span = span;
      } else {
        fits = times.error();
      }
    }
    if (!fits && first_problem) first_problem = std::move(fits);
  }
  if (!best) {
    if (first_problem) return make_error(ErrorCode::kUsage, "--layout bidirectional is for two chunks", "", {path});
    Error error = first_problem.error();
    error.where.file = path;
    error.hint = layout || schedule.sizes.chunks == 1 ? "" : "no layout of the chunks makes it run";
    return error;
  }
  schedule.layout = *best;
  return {};
}

}  // namespace

std::string order_csv(const Schedule& schedule) {
  std::string out = std::string(kHeader) + "\n";
  for (size_t r = 0; r < schedule.ranks.size(); ++r)
    for (size_t i = 0; i < schedule.ranks[r].size(); ++i)
      for (const Action& a : schedule.ranks[r][i].actions()) {
        out += std::to_string(r) + ',' + std::to_string(i) + ',';
        out += kind_code(a.kind);
        out += ',' + std::to_string(a.micro_batch) + ',' + std::to_string(a.chunk) + '\n';
      }
  return out;
}

Result<std::string> torch_csv(const Schedule& schedule) {
  if (schedule.layout == ChunkLayout::kBidirectional)
    return make_error(ErrorCode::kUsage, "torch's schedules have one direction; " + schedule.name + " has two",
                      "dualpipe-v is its form for torch");
  std::string out;
  for (uint32_t r = 0; r < schedule.ranks.size(); ++r) {
    const auto text = [&](const Action& a) {
      return std::to_string(virtual_stage(schedule, r, a.chunk)) + std::string(kind_code(a.kind)) +
             std::to_string(a.micro_batch);
    };
    for (size_t i = 0; i < schedule.ranks[r].size(); ++i) {
      const auto actions = schedule.ranks[r][i].actions();
      if (i > 0) out += ',';
      out += actions.size() == 1 ? text(actions[0]) : "(" + text(actions[0]) + ";" + text(actions[1]) + ")OVERLAP_F_B";
    }
    out += '\n';
  }
  return out;
}

Result<ReadOrder> read_order(std::string_view text, const std::string& path, std::optional<ChunkLayout> layout) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::string_view first_line = text.substr(0, text.find('\n'));
  if (const std::string_view order = paddle_order(first_line);
      order.starts_with("f0") && order.find(';') < order.size())
    return read_order(table_of_paddle(text), path, layout);
  const bool table = trim(first_line) == kHeader;
  if (!table && first_line.find("start_ns") != std::string_view::npos)
    return make_error(ErrorCode::kBadInput, "this is a table of cells with their times, not an order",
                      "stageline schedule NAME -o order.csv writes an order; stageline report " + shell_word(path) +
                          " reads the cells",
                      {path, 1});
  ReadOrder read;
  TRY(rows, table ? read_table(text, path) : read_torch(text, path, read.left_out));
  if (rows->empty())
    return make_error(ErrorCode::kBadInput, "no action of a schedule is in it",
                      "write a table with the columns " + std::string(kHeader) + ", torch's CSV or Paddle's orders",
                      {path});
  if (!table) TRY_OK(take(chunks_of_stages(*rows, path), layout));
  TRY(schedule, assemble(std::move(*rows), path));
  TRY_OK(settle_layout(*schedule, layout, path));
  read.schedule = std::move(*schedule);
  return read;
}

}  // namespace stageline
