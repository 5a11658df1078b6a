// Tools that draw and write: chart, report.
#include <sys/stat.h>

#include "base/hashes.h"
#include "mcp/tools.h"
#include "model/intervals.h"

namespace stageline::mcp {
namespace {

// The sums that the picture shows of one rank.
struct RankSums {
  int32_t stage = kUnknown;
  int64_t cells = 0, busy_ns = 0;
  Span span;
};

// Kinds of device work as the timeline shows them, in the order of KernelClass from 1. The time of each is without
// moments in which an earlier kind runs as well.
struct Work {
  const char *name, *shown;
};
constexpr std::array<Work, 4> kWork = {{{"compute_ns", "computing"},
                                        {"communication_alone_ns", "communication alone"},
                                        {"memory_alone_ns", "copies alone"},
                                        {"other_alone_ns", "other work alone"}}};

std::string cannot(const char* name) {
  const Reason& why = reason(name);
  return cannot_answer(why.name, why.meaning, why.help);
}

constexpr size_t kMaxDrawn = 32, kMaxReportedCount = 64, kHost = kWork.size();

// The window that a timeline shows, and the ranks that have slices in it.
struct Window {
  int64_t from = INT64_MAX, to = INT64_MIN;
  std::vector<size_t> parts;
  int64_t length() const { return to - from; }
};
// From the first slice to the last, or of the step.
Window window_of(const sql::RunData& data, const Trace& trace, const std::optional<int64_t>& step) {
  Window out;
  const auto take = [&](size_t p, int64_t start_ns, int64_t end_ns) {
    out.from = std::min(out.from, data.time_ns(p, start_ns));
    out.to = std::max(out.to, data.time_ns(p, end_ns));
  };
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    const Part& part = trace.parts[p];
    if (!data.has_part(p) || part.slices.size() == 0) continue;
    out.parts.push_back(p);
    for (const ProfilerStep& one : part.steps)
      if (step && one.number == *step) take(p, one.start_ns, one.end_ns);
    for (size_t i = 0; !step && i < part.slices.size(); ++i) take(p, part.slices.start_ns[i], part.slices.end_ns(i));
  }
  return out;
}

// Holds the time of a rank within the window. Each nanosecond of the device counts once: where several kinds of work
// run, it belongs to the one that comes first in the key.
struct RankCover {
  std::vector<CoveredTime> upto;  // [kind]: that kind and those before it
  CoveredTime host{{}};
};
RankCover cover_of(const sql::RunData& data, const Part& part, size_t p, const Window& window) {
  std::array<std::vector<Interval>, kHost + 1> by_kind;
  for (const Lane& lane : part.lanes)
    for (size_t i = lane.begin; i < lane.end; ++i) {
      const auto kind =
          static_cast<size_t>(part.slices.kernel_class.empty() ? KernelClass::kNone : part.slices.class_of(i));
      const bool is_device = data.is_device(p, i) && kind >= 1 && kind <= kHost;
      if (!is_device && lane.kind != LaneKind::kHostThread) continue;
      const int64_t begin = data.time_ns(p, part.slices.start_ns[i]);
      const int64_t start = std::max(window.from, begin);
      const int64_t end = std::min(window.to, sum_or_limit(begin, part.slices.dur_ns[i]));
      if (start < end) by_kind[is_device ? kind - 1 : kHost].push_back({start, end});
    }
  RankCover out;
  std::vector<Interval> all;
  for (size_t c = 0; c < kHost; ++c) {
    all.insert(all.end(), by_kind[c].begin(), by_kind[c].end());
    all = union_of(std::move(all));
    out.upto.emplace_back(all);
  }
  out.host = CoveredTime(union_of(std::move(by_kind[kHost])));
  return out;
}

void draw_rank(const RankCover& cover, int32_t rank, const Window& window, Bands& bands) {
  BandRow device = {"rank " + std::to_string(rank), {}}, calls = {"  host", {}};
  const int columns = bands_columns(bands.width);
  for (int x = 0; x < columns; ++x) {
    const auto edge = [&](int at) {
      return window.from + static_cast<int64_t>(static_cast<double>(window.length()) * at / columns);
    };
    const int64_t begin = edge(x), end = std::max(edge(x + 1), begin + 1);
    const auto share = [&](int64_t ns) { return ns / static_cast<double>(end - begin); };
    std::vector<double> shares;
    int64_t before = 0;
    for (const CoveredTime& upto : cover.upto) {
      const int64_t covered = upto.within(begin, end);
      shares.push_back(share(covered - before));
      before = covered;
    }
    device.shares.push_back(std::move(shares));
    std::vector<double> busy(kHost + 1);
    busy[kHost] = share(cover.host.within(begin, end));
    calls.shares.push_back(std::move(busy));
  }
  bands.rows.push_back(std::move(device));
  if (cover.host.total() > 0) bands.rows.push_back(std::move(calls));
}

}  // namespace

Result<std::string> Tools::chart(const Value& arguments) {
  TRY(run, opened(arguments));
  const std::string_view kind = arguments["kind"].text();
  return kind == "timeline" ? timeline_chart(**run, arguments)
         : kind == "span"   ? span_chart(**run, arguments)
                            : pipeline_chart(**run, arguments);
}

Result<std::string> Tools::timeline_chart(Opened& run, const Value& arguments) {
  const auto step = arguments["step"].integer();
  Window window = window_of(*run.data, run.trace, step);
  if (window.parts.empty()) return cannot("no_profiler_slices");
  if (window.from > window.to) return cannot("not_recorded:steps");
  if (const Value range = arguments["range"]; !range.is_none()) {
    TRY(time, parse_time_range(range.text()));
    window.from = std::max(window.from, time->from_ns);
    window.to = std::min(window.to, time->to_ns);
  }
  if (window.from >= window.to) return cannot("not_recorded");
  const Theme& theme = light_theme();
  Bands bands;
  bands.width = static_cast<int>(arguments["width"].integer().value_or(1200));
  bands.from = human_duration(window.from);
  bands.to = human_duration(window.to);
  for (size_t c = 0; c < kWork.size(); ++c) bands.colours.emplace_back(kWork[c].shown, theme.kernel[c]);
  bands.colours.emplace_back("host: any thread in a call", theme.muted);
  JsonWriter ranks;
  ranks.begin_array();
  size_t reported = 0;
  bool any = false;
  for (const size_t p : window.parts) {
    if (reported++ == kMaxReportedCount) break;
    const Part& part = run.trace.parts[p];
    const RankCover cover = cover_of(*run.data, part, p, window);
    const auto& upto = cover.upto;
    any = any || upto.back().total() > 0 || cover.host.total() > 0;
    ranks.begin_object().field("rank", part.rank);
    for (size_t c = 0; c < kHost; ++c) ranks.field(kWork[c].name, upto[c].total() - (c == 0 ? 0 : upto[c - 1].total()));
    ranks.field("nothing_ns", window.length() - upto.back().total()).field("host_ns", cover.host.total()).end_object();
    if (reported <= kMaxDrawn) draw_rank(cover, part.rank, window, bands);
  }
  ranks.end_array();
  if (!any) return cannot(step || !arguments["range"].is_none() ? "not_recorded" : "no_profiler_slices");
  std::string alt = "Timeline of " + grouped(window.parts.size()) +
                    (window.parts.size() == 1 ? " rank, " : " ranks, ") + human_duration(window.length()) +
                    ": what devices do and whether the host is in a call.";
  if (window.parts.size() > kMaxDrawn) alt += " The first " + std::to_string(kMaxDrawn) + " ranks are drawn.";
  bands.title = "Devices and hosts over " + human_duration(window.length());
  if (step) bands.title += ", step " + std::to_string(*step);
  TRY(picture, bands_png(bands));
  JsonWriter json;
  json.begin_object().field("alt", alt).field("width", picture->width).field("height", picture->height);
  json.field("span_ns", window.length()).key("ranks").raw(ranks.text());
  json.field("ranks_count", window.parts.size());
  json.field("handle", handle_of(run, "chart", arguments)).end_object();
  png_ = base64(picture->bytes);
  return json.take();
}

Result<std::string> Tools::span_chart(Opened& run, const Value& arguments) {
  for (const char* name : {"step", "range"})
    if (!arguments[name].is_none())
      return wrong(std::string("kind span takes no ") + name, "open the run with steps or range, and ask that");
  const Explanation& e = explanation_of(run);
  const std::vector<SpanPart>& parts = parts_of(e);
  if (parts.empty()) return cannot("not_in_this_run");
  const Theme& theme = light_theme();
  Bands bands;
  bands.width = static_cast<int>(arguments["width"].integer().value_or(1200));
  const int columns = bands_columns(bands.width);
  BandRow row = {"the step", {}};
  const double step_ns = e.step_ns > 0 ? e.step_ns : e.headline.step_ns;
  JsonWriter list;
  list.begin_array();
  double before = 0;
  for (const SpanPart& part : parts) {
    const auto k = bands.colours.size();
    bands.colours.emplace_back(clean_text(part.label.en) + " " + fixed(part.share * 100, 1) + " %",
                               k < 7 ? theme.group[k] : mix(theme.group[k % 7], theme.background, 0.5));
    list.begin_object().field("id", part.id).field("label", clean_text(part.label.en));
    list.field("share", part.share).end_object();
    before += part.share;
  }
  // Each column of pixels holds as much of each part as lies within it.
  for (int x = 0; x < columns; ++x) {
    const double begin = before * x / columns, end = before * (x + 1) / columns;
    std::vector<double> shares;
    double at = 0;
    for (const SpanPart& part : parts) {
      const double within = std::min(end, at + part.share) - std::max(begin, at);
      shares.push_back(end > begin ? std::max(0.0, within) / (end - begin) : 0);
      at += part.share;
    }
    row.shares.push_back(std::move(shares));
  }
  bands.rows.push_back(std::move(row));
  bands.title = "Where the step goes: " + human_duration(step_ns);
  bands.from = "0";
  bands.to = human_duration(step_ns);
  TRY(picture, bands_png(bands));
  JsonWriter json;
  json.begin_object().field("alt", clean_text(e.headline.title.en, 2000));
  json.field("width", picture->width).field("height", picture->height);
  json.field("step_ns", std::llround(step_ns)).key("parts").raw(list.end_array().text());
  json.field("handle", handle_of(run, "chart", arguments)).end_object();
  png_ = base64(picture->bytes);
  return json.take();
}

Result<std::string> Tools::pipeline_chart(Opened& run, const Value& arguments) {
  if (run.trace.cells.size() == 0) return cannot("no_pipeline_cells");
  OpenOptions options = run.options;
  if (const auto step = arguments["step"].integer()) options.first_step = options.last_step = *step;
  if (const Value range = arguments["range"]; !range.is_none())
    TRY_OK(take(parse_time_range(range.text()), options.range));
  TRY(trace, read_again(run, options));
  ExportOptions drawing;
  drawing.ghosts = Ghosts::kOff;
  constexpr double kMaxWidth = 1600;
  drawing.max_width_px = kMaxWidth;
  if (const auto width = arguments["width"].integer()) drawing.width_px = *width;
  const DrawnRun drawn(std::make_shared<const Run>(*trace));
  TRY(picture, chart_picture(drawn, drawing));
  // The answer also gives the numbers that the picture shows, so that they need not be read off pixels.
  const Cells& cells = drawn.trace().cells;
  std::map<int32_t, RankSums> ranks;
  Span all;
  int32_t first_step = INT32_MAX, last_step = INT32_MIN;
  for (size_t i = 0; i < cells.size(); ++i) {
    const Part& part = drawn.trace().parts[cells.part[i]];
    const int64_t start_ns = cells.start_ns[i], end_ns = cells.end_ns[i];
    RankSums& rank = ranks[part.rank];
    ++rank.cells;
    rank.stage = part.stage;
    rank.busy_ns = sum_or_limit(rank.busy_ns, is_compute(cells.kind[i]) ? end_ns - start_ns : 0);
    rank.span.add(start_ns, end_ns);
    all.add(start_ns, end_ns);
    if (cells.step[i] == kUnknown) continue;
    first_step = std::min(first_step, cells.step[i]);
    last_step = std::max(last_step, cells.step[i]);
  }
  std::string alt = "Pipeline chart";
  if (first_step <= last_step)
    alt += first_step == last_step ? " of step " + std::to_string(first_step)
                                   : " of steps " + std::to_string(first_step) + " to " + std::to_string(last_step);
  alt += ": " + grouped(ranks.size()) + (ranks.size() == 1 ? " rank, " : " ranks, ") + grouped(cells.size()) +
         " cells, " + human_duration(all.length_ns()) + " from the first to the last.";
  JsonWriter json;
  json.begin_object().field("alt", alt).field("width", picture->width).field("height", picture->height);
  json.field("cells", cells.size()).field("span_ns", all.length_ns());
  json.key("ranks").begin_array();
  constexpr size_t kMaxRanks = 64;
  size_t reported = 0;
  for (const auto& [rank, sums] : ranks) {
    if (++reported > kMaxRanks) break;
    json.begin_object().field("rank", rank);
    if (sums.stage != kUnknown) json.field("stage", sums.stage);
    json.field("cells", sums.cells).field("compute_ns", sums.busy_ns);
    json.field("start_ns", sums.span.start_ns - all.start_ns);
    json.field("end_ns", sums.span.end_ns - all.start_ns).end_object();
  }
  json.end_array().field("ranks_count", ranks.size());
  json.field("handle", handle_of(run, "chart", arguments)).end_object();
  png_ = base64(picture->png);
  return json.take();
}

Result<std::string> Tools::report(const Value& arguments) {
  TRY(run, opened(arguments));
  TRY(path, writable(arguments["path"].text()));
  TRY(trace, read_again(**run, (*run)->options));
  TRY_OK(limits_.report(std::move(*trace), (*run)->paths, *path));
  struct stat about = {};
  stat(path->c_str(), &about);
  JsonWriter json;
  json.begin_object().field("path", clean_text(*path, 4096)).field("bytes", about.st_size);
  json.end_object();
  return json.take();
}

}  // namespace stageline::mcp
