#include "model/palette.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

using namespace stageline;

namespace {

using Vec = std::array<double, 3>;

Vec linear(Rgb colour) {
  const auto channel = [](uint8_t value) {
    const double c = value / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return {channel(colour.r), channel(colour.g), channel(colour.b)};
}

Vec times(const std::array<Vec, 3>& m, const Vec& v) {
  Vec out;
  for (size_t i = 0; i < 3; ++i) out[i] = std::clamp(m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2], 0.0, 1.0);
  return out;
}

// Returns CIE L*a*b* under D65 from linear sRGB.
Vec lab(const Vec& c) {
  const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
  const double x = f((0.4124564 * c[0] + 0.3575761 * c[1] + 0.1804375 * c[2]) / 0.95047);
  const double y = f(0.2126729 * c[0] + 0.7151522 * c[1] + 0.0721750 * c[2]);
  const double z = f((0.0193339 * c[0] + 0.1191920 * c[1] + 0.9503041 * c[2]) / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

struct Vision {
  const char* name;
  std::array<Vec, 3> matrix;
};
// The matrices are those of Machado, Oliveira and Fernandes 2009, severity 1.0, on linear sRGB.
constexpr Vision kVisions[] = {
    {"normal", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
    {"protanopia",
     {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}}},
    {"deuteranopia",
     {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}}},
    {"tritanopia",
     {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}}},
};

const Theme* const kThemes[] = {&light_theme(), &dark_theme()};

}  // namespace

TEST_CASE("contrast is WCAG's") {
  CHECK(contrast_ratio({0, 0, 0}, {255, 255, 255}) == doctest::Approx(21.0));
  CHECK(contrast_ratio({119, 119, 119}, {255, 255, 255}) == doctest::Approx(4.48).epsilon(0.01));
}

TEST_CASE("text on cells and page reaches 4.5 to 1") {
  for (const Theme* theme : kThemes) {
    CHECK(contrast_ratio(theme->ink, theme->background) >= 4.5);
    CHECK(contrast_ratio(theme->muted, theme->background) >= 4.5);
    CHECK(contrast_ratio(theme->muted, theme->soft) >= 4.5);
    CHECK(contrast_ratio(theme->accent, theme->background) >= 4.5);
    for (size_t g = 0; g < 7; ++g)
      CHECK_MESSAGE(contrast_ratio(theme->group_text[g], theme->group[g]) >= 4.5, "group " << g);
    for (int32_t chunks = 1; chunks <= 16; ++chunks)
      for (int32_t chunk = 0; chunk < chunks; ++chunk)
        for (const KindGroup group : {KindGroup::kForward, KindGroup::kBackward, KindGroup::kWeight}) {
          const Rgb fill = chunk_fill(*theme, group, chunk, chunks);
          CHECK_MESSAGE(contrast_ratio(text_on(fill), fill) >= 4.5, "group " << int(group) << " chunk " << chunk);
        }
  }
}

TEST_CASE("what a cell does can be told apart with any kind of colour vision") {
  constexpr KindGroup groups[] = {KindGroup::kForward, KindGroup::kBackward, KindGroup::kWeight, KindGroup::kCollective,
                                  KindGroup::kOptimizer};
  for (const Theme* theme : kThemes)
    for (const Vision& vision : kVisions)
      for (const KindGroup a : groups)
        for (const KindGroup b : groups) {
          if (a >= b) continue;
          const Vec u = lab(times(vision.matrix, linear(theme->group[a])));
          const Vec v = lab(times(vision.matrix, linear(theme->group[b])));
          const double delta = std::hypot(u[0] - v[0], u[1] - v[1], u[2] - v[2]);
          // 2.3 is a just noticeable difference of two adjacent patches; cells have gaps between them.
          CHECK_MESSAGE(delta >= 15, std::string(vision.name)
                                         << " groups " << int(a) << " and " << int(b) << ": " << delta);
        }
}

TEST_CASE("kinds of device work and idle time can be told apart with any kind of colour vision") {
  for (const Theme* theme : kThemes)
    for (const Vision& vision : kVisions) {
      const Rgb colours[] = {theme->kernel[0], theme->kernel[1], theme->kernel[2], theme->kernel[3], theme->idle_hatch};
      for (size_t a = 0; a < 5; ++a)
        for (size_t b = a + 1; b < 5; ++b) {
          const Vec u = lab(times(vision.matrix, linear(colours[a])));
          const Vec v = lab(times(vision.matrix, linear(colours[b])));
          const double delta = std::hypot(u[0] - v[0], u[1] - v[1], u[2] - v[2]);
          CHECK_MESSAGE(delta >= 15, std::string(vision.name) << " kinds " << a << " and " << b << ": " << delta);
        }
      for (const Rgb colour : theme->kernel) CHECK(contrast_ratio(text_on(colour), colour) >= 4.5);
    }
}
