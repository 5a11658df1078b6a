// The chart of a run without pipeline cells: a row for each rank's devices and, below it, a thin one for its host.
#include "exporters/chart/chart_layout.h"
#include "model/intervals.h"
#include "profile/slice_select.h"

namespace stageline {
namespace {

constexpr double kMargin = 32, kLabelW = 96, kRowH = 34, kHostH = 10, kGap = 12, kMaxSame = 1.0 / 32;
constexpr size_t kWork = 4;  // kinds of device work, in the order of KernelClass from 1
constexpr std::array kWorkNames = {"kind.compute", "kind.comm", "kind.memory", "kind.device", "chart.profile.host"};

// The time of a rank: of several kinds of work at a time, the first one counts. The host counts calls of operators and
// of the runtime; annotations and Python frames last through everything.
struct Cover {
  int32_t rank;
  std::vector<CoveredTime> upto;  // [kind]: that kind and those before it; at last the host
  Span span;
};

Cover cover_of(const Trace& trace, size_t p) {
  const Part& part = trace.parts[p];
  const Slices& s = part.slices;
  std::array<std::vector<Interval>, kWork + 1> found;
  Cover out{part.rank, {}, {}};
  std::vector<bool> chosen(s.size(), false);
  for (const uint32_t i : select_slices(trace, p, {})) chosen[i] = true;
  for (const Lane& lane : part.lanes)
    for (size_t i = lane.begin; i < lane.end; ++i) {
      const auto work = static_cast<size_t>(s.class_of(i));
      const Category category = trace.categories[s.category_id[i]].kind;
      const bool is_call = category == Category::kCpuOp || is_launch_call(category) ||
                           (category == Category::kOther && lane.kind == LaneKind::kHostThread);
      if (!chosen[i] || s.dur_ns[i] <= 0 || (work == 0 && !is_call)) continue;
      const int64_t end_ns = sum_or_limit(s.start_ns[i], s.dur_ns[i]);
      found[work > 0 ? work - 1 : kWork].push_back({s.start_ns[i], end_ns});
      out.span.add(s.start_ns[i], end_ns);
    }
  std::vector<Interval> all;
  for (size_t kind = 0; kind < kWork; ++kind) {
    all.insert(all.end(), found[kind].begin(), found[kind].end());
    all = union_of(std::move(all));
    out.upto.emplace_back(all);
  }
  out.upto.emplace_back(union_of(std::move(found[kWork])));
  return out;
}

struct Builder {
  const Theme& theme;
  const ChartOptions& options;
  const MeasureText& measure;
  double ns_per_px;
  ChartLayout out;

  double write(double x, double y, std::string what, double size, bool strong) {
    const double width = measure(what, size, strong);
    out.texts.push_back({x, y, width, size, strong, strong, std::move(what)});
    return x + width;
  }

  double legend(const std::vector<Cover>& covers, double y) {
    double x = kMargin;
    for (size_t kind = 0; kind <= kWork; ++kind) {
      const auto has = [&](const Cover& one) {
        return one.upto[kind].total() > (kind == 0 || kind == kWork ? 0 : one.upto[kind - 1].total());
      };
      if (std::ranges::none_of(covers, has)) continue;
      const std::string name = words(kWorkNames[kind]).in(options.lang == ChartLang::kChinese);
      if (x > kMargin && x + 19 + measure(name, 12, false) > out.width - kMargin) x = kMargin, y += 21;
      out.pieces.push_back({{x, y - 10.5, 12, 12}, ChartPiece::Paint::kFill, colour(kind)});
      x = write(x + 19, y, name, 12, false) + 20;
    }
    return y;
  }
  Rgb colour(size_t kind) const { return kind == kWork ? theme.muted : theme.kernel[kind]; }

  // Pixel columns are filled from below by kind. Columns that look alike are joined; the area of each kind
  // stays its time.
  void fill(const Cover& cover, size_t from, size_t to, int64_t start_ns, ChartRect row) {
    const auto time_at = [&](double x) -> int64_t { return sum_or_limit(start_ns, std::llround(x * ns_per_px)); };
    const auto share = [&](size_t k, double x0, double x1) {
      const int64_t t0 = time_at(x0), t1 = std::max(time_at(x1), sum_or_limit(t0, 1));
      return cover.upto[k].within(t0, t1) / std::max<double>(1, between_ns(t0, t1));
    };
    for (double begin = 0, x = 1; begin < row.w; ++x) {
      const double right = std::min(x, row.w);
      bool same = x < row.w;
      for (size_t k = from; k < to && same; ++k)
        same = std::abs(share(k, begin, begin + 1) - share(k, x, std::min(x + 1, row.w))) < kMaxSame;
      if (same) continue;
      double below = 0;
      for (size_t k = from; k < to; ++k) {
        const double upto = share(k, begin, right);
        const ChartRect box{row.x + begin, row.y + row.h * (1 - upto), right - begin, row.h * (upto - below)};
        if (upto > below) out.pieces.push_back({box, ChartPiece::Paint::kFill, colour(k)});
        below = upto;
      }
      begin = x;
    }
  }
};

}  // namespace

Result<ChartLayout> layout_profile(const Trace& trace, const Theme& theme, const ChartOptions& options,
                                   const MeasureText& measure) {
  std::vector<Cover> covers;
  Span all;
  int64_t longest_ns = 0;
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    if (!trace.parts[p].slices.has_facts() || trace.parts[p].slices.size() == 0) continue;
    Cover cover = cover_of(trace, p);
    if (!cover.span.any()) continue;
    all.add(cover.span.start_ns, cover.span.end_ns);
    longest_ns = std::max(longest_ns, cover.span.length_ns());
    covers.push_back(std::move(cover));
  }
  if (covers.empty())
    return make_error(ErrorCode::kBadInput,
                      "there is nothing to draw: the trace has neither pipeline cells nor device work",
                      "stageline export --to json or sqlite has every table");
  sort_stably(covers, {}, &Cover::rank);
  // Ranks whose clocks share no zero start at their first slice where the picture would be nearly empty.
  const bool own_zero = trace.clock != ClockState::kShared && all.length_ns() / 2 > longest_ns;
  std::map<int64_t, Span> steps;  // over all ranks
  for (size_t p = 0; p < trace.parts.size() && !own_zero; ++p)
    for (const ProfilerStep& step : trace.parts[p].steps) {
      steps[step.number].add(step.start_ns, step.end_ns);
      all.add(step.start_ns, step.end_ns);
    }
  const int64_t span_ns = std::max<int64_t>(1, own_zero ? longest_ns : all.length_ns());
  const double width = options.width_px > 0
                           ? options.width_px
                           : std::clamp(steps.size() * 110.0 + kLabelW + 2 * kMargin, 1320.0, options.max_width_px);
  const double left = kMargin + kLabelW, plot_w = width - left - kMargin;
  const double pitch = kRowH + kHostH + kGap;
  if (plot_w < 120) return make_error(ErrorCode::kUsage, "a chart cannot be that narrow", "leave the width out");
  if (covers.size() * pitch > options.max_height_px)
    return make_error(ErrorCode::kLimit, grouped(covers.size()) + " ranks do not fit on one picture",
                      "choose some with --ranks");
  Builder b{theme, options, measure, span_ns / plot_w, {}};
  ChartLayout& out = b.out;
  out.width = width;
  out.title = options.title.empty() ? chart_word(options.lang, "profile.title") : options.title;
  b.write(kMargin, 50, out.title, 20, true);
  b.write(kMargin, 75,
          chart_count(options.lang, "ranks", covers.size()) +
              (steps.empty() ? "" : " · " + chart_count(options.lang, "steps", steps.size())) + " · " +
              human_duration(span_ns),
          13.5, false);
  double y = 75;
  if (trace.clock == ClockState::kUnaligned && covers.size() > 1)
    b.write(kMargin, y += 20, chart_word(options.lang, "clocks.unaligned"), 13.5, false);
  y = b.legend(covers, y + 30) + 40;
  for (const ChartTick& tick : chart_ticks(span_ns, plot_w, 112)) {
    out.tick_x.push_back(left + tick.x);
    const double half = measure(tick.label, 11, false) / 2;
    if (left + tick.x + half < width - 4) b.write(left + tick.x - half, y - 6, tick.label, 11, false);
  }
  out.tick_top = y;
  y += 2;
  for (const auto& [number, step] : steps) {
    const double x0 = left + between_ns(all.start_ns, step.start_ns) / b.ns_per_px,
                 x1 = left + between_ns(all.start_ns, step.end_ns) / b.ns_per_px;
    out.step_bars.push_back({x0, y, x1 - x0, 17});
    out.step_line_x.push_back(x0);
    ChartText label{0, y + 12.5, 0, 11, false, false, chart_number(options.lang, "step", static_cast<int32_t>(number))};
    label.width = measure(label.text, 11, false);
    label.x = (x0 + x1 - label.width) / 2;
    if (label.width + 8 <= x1 - x0) out.step_labels.push_back(std::move(label));
  }
  y += steps.empty() ? 6 : 24;
  out.plot = {left, y, plot_w, covers.size() * pitch - kGap};
  for (const Cover& cover : covers) {
    const int64_t start_ns = own_zero ? cover.span.start_ns : all.start_ns;
    b.write(kMargin, y + kRowH / 2 + 4, chart_number(options.lang, "rank", cover.rank), 12, false);
    b.fill(cover, 0, kWork, start_ns, {left, y, plot_w, kRowH});
    b.fill(cover, kWork, kWork + 1, start_ns, {left, y + kRowH + 2, plot_w, kHostH});
    out.pieces.push_back({{left, y + kRowH + 1, plot_w, 0}, ChartPiece::Paint::kLine, theme.line});
    y += pitch;
  }
  out.tick_bottom = y - kGap + 6;
  out.height = std::ceil(y - kGap + kMargin);
  return std::move(out);
}

}  // namespace stageline
