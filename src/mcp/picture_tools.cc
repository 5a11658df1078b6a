// Tools that draw and write: chart, report.
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "base/base64.h"
#include "base/number.h"
#include "mcp/reasons.h"
#include "mcp/tools.h"
#include "mcp/words.h"

namespace stageline::mcp {
namespace {

// What the picture shows of one rank.
struct RankSums {
  int32_t stage = kUnknown;
  int64_t cells = 0, busy_ns = 0, first_ns = INT64_MAX, last_ns = INT64_MIN;
};

}  // namespace

Result<std::string> Tools::chart(const Value& arguments) {
  Result<Opened*> run = opened(arguments);
  if (!run) return std::move(run).error();
  if ((*run)->trace.cells.size() == 0) {
    const Reason& why = reason("no_pipeline_cells");
    return cannot_answer(why.name, why.meaning, why.help);
  }
  OpenOptions options = (*run)->options;
  if (const auto step = arguments["step"].integer()) options.first_step = options.last_step = *step;
  if (const Value range = arguments["range"]; !range.is_none()) {
    Result<TimeRange> time = parse_time_range(range.text());
    if (!time) return std::move(time).error();
    options.range = *time;
  }
  Result<Trace> trace = read_again(**run, options);
  if (!trace) return std::move(trace).error();
  ExportOptions drawing;
  drawing.ghosts = Ghosts::kOff;
  constexpr double kMostWidth = 1600;
  drawing.most_width_px = kMostWidth;
  if (const auto width = arguments["width"].integer()) drawing.width_px = static_cast<double>(*width);
  const DrawnRun drawn(std::make_shared<const Run>(*trace));
  const Result<ChartPicture> picture = chart_picture(drawn, drawing);
  if (!picture) return picture.error();
  // The numbers that the picture shows, so that nobody reads them off pixels.
  const Cells& cells = drawn.trace().cells;
  std::map<int32_t, RankSums> ranks;
  int64_t first = INT64_MAX, last = INT64_MIN;
  int32_t first_step = INT32_MAX, last_step = INT32_MIN;
  for (size_t i = 0; i < cells.size(); ++i) {
    const Part& part = drawn.trace().parts[static_cast<size_t>(cells.part[i])];
    const int64_t start_ns = cells.start_ns[i], end_ns = cells.end_ns[i];
    RankSums& rank = ranks[part.rank];
    ++rank.cells;
    rank.stage = part.stage;
    rank.busy_ns = sum_or_limit(rank.busy_ns, is_compute(cells.kind[i]) ? end_ns - start_ns : 0);
    rank.first_ns = std::min(rank.first_ns, start_ns);
    rank.last_ns = std::max(rank.last_ns, end_ns);
    first = std::min(first, start_ns);
    last = std::max(last, end_ns);
    if (cells.step[i] == kUnknown) continue;
    first_step = std::min(first_step, cells.step[i]);
    last_step = std::max(last_step, cells.step[i]);
  }
  std::string alt = "Pipeline chart";
  if (first_step <= last_step)
    alt += first_step == last_step ? " of step " + std::to_string(first_step)
                                   : " of steps " + std::to_string(first_step) + " to " + std::to_string(last_step);
  alt += ": " + grouped(static_cast<int64_t>(ranks.size())) + (ranks.size() == 1 ? " rank, " : " ranks, ") +
         grouped(static_cast<int64_t>(cells.size())) + " cells, " + human_duration(static_cast<double>(last - first)) +
         " from the first to the last.";
  JsonWriter json;
  json.begin_object().field("alt", alt).field("width", picture->width).field("height", picture->height);
  json.field("cells", static_cast<int64_t>(cells.size())).field("span_ns", last - first);
  json.key("ranks").begin_array();
  constexpr size_t kMostRanks = 64;
  size_t told = 0;
  for (const auto& [rank, sums] : ranks) {
    if (++told > kMostRanks) break;
    json.begin_object().field("rank", rank);
    if (sums.stage != kUnknown) json.field("stage", sums.stage);
    json.field("cells", sums.cells).field("compute_ns", sums.busy_ns);
    json.field("start_ns", sums.first_ns - first).field("end_ns", sums.last_ns - first).end_object();
  }
  json.end_array().field("ranks_count", static_cast<int64_t>(ranks.size()));
  json.field("handle", handle_of(**run, "chart", arguments)).end_object();
  png_ = base64(picture->png);
  return json.take();
}

Result<std::string> Tools::report(const Value& arguments) {
  Result<Opened*> run = opened(arguments);
  if (!run) return std::move(run).error();
  Result<std::string> path = writable(arguments["path"].text());
  if (!path) return std::move(path).error();
  Result<Trace> trace = read_again(**run, (*run)->options);
  if (!trace) return std::move(trace).error();
  if (Status s = limits_.report(std::move(*trace), (*run)->paths, *path); !s) return std::move(s).error();
  struct stat about = {};
  stat(path->c_str(), &about);
  JsonWriter json;
  json.begin_object().field("path", clean_text(*path, 4096)).field("bytes", static_cast<int64_t>(about.st_size));
  json.end_object();
  return json.take();
}

}  // namespace stageline::mcp
