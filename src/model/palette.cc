#include "model/palette.h"

namespace stageline {
namespace {

constexpr Rgb rgb(uint32_t hex) {
  return {static_cast<uint8_t>(hex >> 16), static_cast<uint8_t>(hex >> 8), static_cast<uint8_t>(hex)};
}

// Order of groups: forward, backward, weight, message, collective, optimizer, other.
constexpr Theme kLight = {
    rgb(0xffffff), rgb(0x16191d), rgb(0x5c6670), rgb(0xe3e7eb), rgb(0xf5f7f9), rgb(0xeef1f4), rgb(0xd5dbe1), rgb(0x0b5cad),
    {rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xcc79a7), rgb(0xcc79a7), rgb(0xb8860b), rgb(0x999999)},
    {rgb(0xffffff), rgb(0x16191d), rgb(0x16191d), rgb(0x16191d), rgb(0x16191d), rgb(0x16191d), rgb(0x16191d)}};

constexpr Theme kDark = {
    rgb(0x0f1216), rgb(0xe6eaee), rgb(0x93a0ac), rgb(0x27303a), rgb(0x1a2027), rgb(0x1b2229), rgb(0x2d3843), rgb(0x6cb2ff),
    {rgb(0x4aa3df), rgb(0xf0803c), rgb(0x3ccb9b), rgb(0xe39cc6), rgb(0xe39cc6), rgb(0xe0b23a), rgb(0x8b949e)},
    {rgb(0x0d1013), rgb(0x0d1013), rgb(0x0d1013), rgb(0x0d1013), rgb(0x0d1013), rgb(0x0d1013), rgb(0x0d1013)}};

}  // namespace

const Theme& light_theme() { return kLight; }
const Theme& dark_theme() { return kDark; }

}  // namespace stageline
