#include "exporters/chart/plan_panels.h"

namespace stageline {
namespace {

using Paint = ChartPiece::Paint;

constexpr double kMargin = 32, kPanelH = 260, kSize = 12, kHeadSize = 15, kGiB = 1 << 30;
constexpr const char* kNames[] = {"parameters", "gradients", "optimizer", "activations", "recompute",
                                  "head",       "scratch",   "transient", "other",       "reserve"};

// Parts have the colours of the work that they belong to: activations are made by forwards, gradients by weight
// gradients, and what is computed again stands with the backward.
Rgb colour_of(const PlanPicture& picture, const Theme& theme, PlanPicture::Part part, int32_t chunk) {
  switch (part) {
    case PlanPicture::kParameters: return mix(theme.muted, theme.background, 0.25);
    case PlanPicture::kGradients: return theme.group[KindGroup::kWeight];
    case PlanPicture::kOptimizer: return theme.group[KindGroup::kOptimizer];
    case PlanPicture::kActivations: return chunk_fill(theme, KindGroup::kForward, chunk, picture.chunks);
    case PlanPicture::kRecompute: return theme.group[KindGroup::kBackward];
    case PlanPicture::kHead: return mix(theme.group[KindGroup::kBackward], theme.background, 0.55);
    case PlanPicture::kTransient: return theme.group[KindGroup::kCollective];
    case PlanPicture::kScratch: return mix(theme.muted, theme.background, 0.6);
    default: return theme.group[KindGroup::kOther];
  }
}

struct Panels {
  const PlanPicture& picture;
  const Theme& theme;
  ChartLang lang;
  const MeasureText& measure;
  ChartLayout& out;

  // `align`: 0 from x to the right, 0.5 around x, 1 to its left.
  double write(double x, double y, std::string text, double align = 0, bool strong = false, double size = kSize) const {
    const double width = measure(text, size, strong);
    out.texts.push_back({x - align * width, y, width, size, strong, strong, std::move(text)});
    return width;
  }
  void add(Paint paint, double x, double y, double w, double h, Rgb colour) const {
    out.pieces.push_back({{x, y, w, h}, paint, colour});
  }
  // Lines across a panel at round values from 0, with `label` left of them.
  template <class Label> void grid(const ChartRect& panel, double max, Label label) const {
    double step = std::pow(10, std::floor(std::log10(max)));
    if (max / step < 2) step /= 5;
    else if (max / step < 5) step /= 2;
    for (double at = 0; at <= max; at += step) {
      const double y = panel.y + panel.h * (1 - at / max);
      add(Paint::kLine, panel.x, y, panel.w, 0, theme.line);
      write(panel.x - 8, y + 4, label(at), 1);
    }
  }
  static std::string gib(double bytes) { return fixed(bytes / kGiB, 1) + " GiB"; }

  double legend(double x, double right, double y) const {
    double at = x;
    for (int32_t part = 0; part < PlanPicture::kParts; ++part)
      for (int32_t chunk = 0; chunk < (part == PlanPicture::kActivations ? std::min(picture.chunks, 4) : 1); ++chunk) {
        const auto has = [&](const PlanPicture::Bar& bar) {
          return std::ranges::any_of(bar.pieces, [&](const auto& p) { return p.part == part && p.bytes > 0; });
        };
        if (std::ranges::none_of(picture.bars, has)) continue;
        Args args;
        if (part == PlanPicture::kActivations && picture.chunks > 1) args.set("chunk", int64_t{chunk});
        const std::string text = chart_word(lang, std::string("plan.") + kNames[part], args);
        const double width = 19 + measure(text, kSize, false);
        if (at > x && at + width > right) at = x, y += 21;
        const auto own = static_cast<PlanPicture::Part>(part);
        add(own == PlanPicture::kReserve ? Paint::kHatch : Paint::kFill, at, y - 10.5, 12, 12,
            colour_of(picture, theme, own, chunk));
        write(at + 19, y, text);
        at += width + 20;
      }
    return y;
  }

  void bars(const ChartRect& panel) const {
    double max = picture.limit;
    for (const PlanPicture::Bar& bar : picture.bars) {
      double sum = sum_over<double>(bar.pieces, &PlanPicture::Piece::bytes);
      max = std::max({max, sum, bar.high});
    }
    max *= 1.06;
    grid(panel, max / kGiB, [&](double at) { return fixed(at, max < 5 * kGiB ? 1 : 0) + " GiB"; });
    const auto count = static_cast<double>(picture.bars.size());
    const double pitch = panel.w / count, w = std::min(pitch * 0.72, 84.0);
    const double every = std::ceil(measure("000", kSize, true) * 1.3 / pitch);
    for (size_t r = 0; r < picture.bars.size(); ++r) {
      const PlanPicture::Bar& bar = picture.bars[r];
      const double x = panel.x + pitch * (static_cast<double>(r) + 0.5) - w / 2, px = panel.h / max;
      double y = panel.y + panel.h;
      for (const PlanPicture::Piece& piece : bar.pieces) {
        y -= piece.bytes * px;
        add(piece.part == PlanPicture::kReserve ? Paint::kHatch : Paint::kFill, x, y, w, piece.bytes * px,
            colour_of(picture, theme, piece.part, piece.chunk));
      }
      const double high = panel.y + panel.h - bar.high * px, low = panel.y + panel.h - bar.low * px;
      add(Paint::kLine, x + w / 2, high, 0, low - high, theme.ink);
      for (const double end : {high, low}) add(Paint::kLine, x + w * 0.35, end, w * 0.3, 0, theme.ink);
      const bool decides = static_cast<int32_t>(r) == picture.decides;
      if (decides || std::fmod(static_cast<double>(r), every) == 0)
        write(x + w / 2, panel.y + panel.h + 18, std::to_string(r), 0.5, decides);
    }
    if (picture.limit <= 0) return;
    const double y = panel.y + panel.h * (1 - picture.limit / max);
    add(Paint::kDash, panel.x, y, panel.w, 0, theme.accent);
    write(panel.x + panel.w, y - 6, chart_word(lang, "plan.limit", Args().set("bytes", gib(picture.limit))), 1);
  }

  // Steps from left to right: with the bytes of a point, its time is the shortest until those of the next.
  void front(const ChartRect& panel) const {
    const double slowest = static_cast<double>(picture.front.front().step_ns) * 1.08;
    const double least = picture.front.front().bytes, most = picture.front.back().bytes;
    grid(panel, slowest / 1e6, [](double at) { return human_duration(at * 1e6); });
    const auto to_x = [&](double bytes) {
      return panel.x + panel.w * (0.06 + 0.84 * (bytes - least) / (most - least));
    };
    const auto to_y = [&](int64_t ns) { return panel.y + panel.h * (1 - static_cast<double>(ns) / slowest); };
    for (size_t i = 0; i < picture.front.size(); ++i) {
      const PlanPicture::Point& point = picture.front[i];
      const bool last = i + 1 == picture.front.size();
      const double x = to_x(point.bytes), y = to_y(point.step_ns),
                   end = last ? panel.x + panel.w : to_x(picture.front[i + 1].bytes);
      add(Paint::kLine, x, y, end - x, 0, theme.ink);
      if (!last) add(Paint::kLine, end, y, 0, to_y(picture.front[i + 1].step_ns) - y, theme.ink);
      if (point.chosen) add(Paint::kDot, x, y, 5, 5, theme.accent);
      if (i == 0 || last) write(x, panel.y + panel.h + 18, gib(point.bytes), 0.5);
    }
  }

  void place() const {
    const bool both = !picture.bars.empty() && picture.front.size() > 1;
    const double left = out.plot.x, width = out.plot.x + out.plot.w - left;
    double y = out.height + 4;
    const double bars_w = both ? width * 0.62 : width;
    if (!picture.bars.empty()) {
      const Args args = Args().set("stage", int64_t{picture.decides});
      write(kMargin, y, chart_word(lang, "plan.memory", args), 0, true, kHeadSize);
      if (both) write(left + bars_w + 90, y, chart_word(lang, "plan.front"), 0, true, kHeadSize);
      y = legend(kMargin, left + bars_w, y + 28) + 22;
      bars({left, y, bars_w, kPanelH});
      write(left + bars_w / 2, y + kPanelH + 36, chart_word(lang, "plan.stages"), 0.5);
      if (both) front({left + bars_w + 90, y, width - bars_w - 90, kPanelH});
      out.height = std::ceil(y + kPanelH + 36 + kMargin);
    }
  }
};

}  // namespace

void place_plan(const PlanPicture& picture, const Theme& theme, ChartLang lang, const MeasureText& measure,
                ChartLayout& layout) {
  Panels{picture, theme, lang, measure, layout}.place();
}

}  // namespace stageline
