#include "model/palette_json.h"

#include "base/text.h"

namespace stageline {

std::string hex(Rgb colour) {
  std::string out = "#";
  for (const uint8_t byte : {colour.r, colour.g, colour.b}) append_hex(out, byte);
  return out;
}

namespace {

void write_theme(JsonWriter& json, std::string_view name, const Theme& theme) {
  json.key(name).begin_object();
  json.field("bg", hex(theme.background)).field("ink", hex(theme.ink)).field("mut", hex(theme.muted));
  json.field("line", hex(theme.line)).field("soft", hex(theme.soft)).field("idle", hex(theme.idle));
  json.field("idle2", hex(theme.idle_hatch)).field("acc", hex(theme.accent));
  json.list("group", theme.group, hex).list("kernel", theme.kernel, hex).end_object();
}

}  // namespace

void write_palette(JsonWriter& json) {
  json.key("palette").begin_object();
  write_theme(json, "light", light_theme());
  write_theme(json, "dark", dark_theme());
  json.end_object();
}

}  // namespace stageline
