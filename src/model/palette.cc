#include "model/palette.h"

namespace stageline {
namespace {

constexpr Rgb rgb(uint32_t hex) {
  return {static_cast<uint8_t>(hex >> 16), static_cast<uint8_t>(hex >> 8), static_cast<uint8_t>(hex)};
}

// The optimizer's ochre is darker than the others on light and lighter on dark: at equal lightness a deuteranope cannot
// distinguish it from the backward's vermilion (tests/unit/palette_test.cc).
//
// Order of groups: forward, backward, weight, message, collective, optimizer, other.
constexpr Theme kLight = {
    rgb(0xffffff),
    rgb(0x16191d),
    rgb(0x5c6670),
    rgb(0xe3e7eb),
    rgb(0xf5f7f9),
    rgb(0xeef1f4),
    rgb(0xd5dbe1),
    rgb(0x0b5cad),
    {rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xcc79a7), rgb(0xcc79a7), rgb(0x806633), rgb(0x999999)},
    {rgb(0xffffff), rgb(0x16191d), rgb(0x16191d), rgb(0x16191d), rgb(0x16191d), rgb(0xffffff), rgb(0x16191d)},
    {rgb(0x0072b2), rgb(0xcc79a7), rgb(0x8a5a00), rgb(0x4b5563)}};

constexpr Theme kDark = {
    rgb(0x0f1216),
    rgb(0xe6eaee),
    rgb(0x93a0ac),
    rgb(0x27303a),
    rgb(0x1a2027),
    rgb(0x1b2229),
    rgb(0x2d3843),
    rgb(0x6cb2ff),
    {rgb(0x4aa3df), rgb(0xf0803c), rgb(0x3ccb9b), rgb(0xe39cc6), rgb(0xe39cc6), rgb(0xf2d24a), rgb(0x8b949e)},
    {rgb(0x0d1013), rgb(0x0d1013), rgb(0x0d1013), rgb(0x0d1013), rgb(0x0d1013), rgb(0x0d1013), rgb(0x0d1013)},
    {rgb(0x4aa3df), rgb(0xe39cc6), rgb(0xe69f00), rgb(0x6b7480)}};

double luminance(Rgb colour) {
  const auto linear = [](uint8_t channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour.r) + 0.7152 * linear(colour.g) + 0.0722 * linear(colour.b);
}

void write_theme(JsonWriter& json, std::string_view name, const Theme& theme) {
  json.key(name).begin_object();
  json.field("bg", hex(theme.background)).field("ink", hex(theme.ink)).field("mut", hex(theme.muted));
  json.field("line", hex(theme.line)).field("soft", hex(theme.soft)).field("idle", hex(theme.idle));
  json.field("idle2", hex(theme.idle_hatch)).field("acc", hex(theme.accent));
  json.list("group", theme.group, hex).list("kernel", theme.kernel, hex).end_object();
}

}  // namespace

const Theme& light_theme() { return kLight; }
const Theme& dark_theme() { return kDark; }

double contrast_ratio(Rgb a, Rgb b) {
  const double la = luminance(a), lb = luminance(b);
  return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

Rgb mix(Rgb a, Rgb b, double share_of_b) {
  const auto channel = [&](uint8_t x, uint8_t y) {
    return static_cast<uint8_t>(std::lround(x + (y - x) * std::clamp(share_of_b, 0.0, 1.0)));
  };
  return {channel(a.r, b.r), channel(a.g, b.g), channel(a.b, b.b)};
}

Rgb chunk_fill(const Theme& theme, KindGroup group, int32_t chunk, int32_t chunk_count) {
  const Rgb base = theme.group[group];
  if (chunk <= 0 || chunk_count < 2) return base;
  const double white = chunk_count == 2 ? 0.42 : 0.22 + 0.38 * std::min(1.0, (chunk - 1.0) / (chunk_count - 2.0));
  return mix(base, rgb(0xffffff), white);
}

Rgb text_on(Rgb fill) {
  constexpr Rgb kWhite = rgb(0xffffff), kInk = rgb(0x0d1013);
  return contrast_ratio(fill, kWhite) >= contrast_ratio(fill, kInk) ? kWhite : kInk;
}

std::string hex(Rgb colour) {
  std::string out = "#";
  for (const uint8_t byte : {colour.r, colour.g, colour.b}) append_hex(out, byte);
  return out;
}

void write_palette(JsonWriter& json) {
  json.key("palette").begin_object();
  write_theme(json, "light", light_theme());
  write_theme(json, "dark", dark_theme());
  json.end_object();
}

}  // namespace stageline
