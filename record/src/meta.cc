// META and END: small JSON objects, written without allocating.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crc32c.h"
#include "devices.h"
#include "json_text.h"
#include "own_file.h"
#include "recorder.h"

namespace slr {

std::atomic<const char*> kernels_known{nullptr};
void say_of_kernels(const char* what) { kernels_known.store(what, std::memory_order_release); }

void JsonText::raw(const char* format, ...) {
  if (size_ >= limit_) return;
  va_list arguments;
  va_start(arguments, format);
  const int n = vsnprintf(to_ + size_, limit_ - size_, format, arguments);
  va_end(arguments);
  size_ += n > 0 ? static_cast<size_t>(n) : 0;
  if (size_ > limit_) size_ = limit_;
}

void JsonText::text(const char* key, const char* value) {
  if (size_ + strlen(key) + 6 * strlen(value) + 16 > limit_) return;  // left out rather than cut
  raw("%s\"%s\":\"", comma(), key);
  for (; *value; ++value) {
    const auto c = static_cast<unsigned char>(*value);
    if (c < 0x20 || c >= 0x7f) raw("\\u%04x", c);
    else raw(c == '"' || c == '\\' ? "\\%c" : "%c", c);
  }
  raw("\"");
}

void JsonText::number(const char* key, int64_t value) {
  if (size_ + strlen(key) + 32 > limit_) return;
  raw("%s\"%s\":%lld", comma(), key, static_cast<long long>(value));
}

size_t JsonText::finish() {
  raw("}");
  return size_;
}

namespace {

// Distinguishes the boots of one machine, and machines of one name.
uint32_t boot_hash() {
  char text[64] = {};
  const ssize_t n = read_start("/proc/sys/kernel/random/boot_id", text, sizeof text - 1);
  return n > 0 ? crc32c(text, static_cast<size_t>(n)) : 0;
}

uint32_t command_hash() {
  char text[4096];
  const ssize_t n = read_start("/proc/self/cmdline", text, sizeof text);
  return n > 0 ? crc32c(text, static_cast<size_t>(n)) : 0;
}

}  // namespace

size_t write_meta(char* to, size_t size) {
  const Settings& s = state.settings;
  const HotHeader& hot = *state.hot;
  JsonText json(to, size);
  json.number("format", kFormatVersion);
  char uuid[33];
  for (int i = 0; i < 16; ++i) snprintf(uuid + 2 * i, 3, "%02x", hot.uuid[i]);
  json.text("uuid", uuid);
  json.number("rank", s.rank);
  json.number("pid", hot.pid);
  json.text("host", s.host);
  json.number("boot", boot_hash());
  if (s.job[0]) json.text("job", s.job);
  json.number("clock", hot.clock);
  json.number("tick_shift", tick_shift_of(hot.ticks_per_second));
  json.number("ticks_per_second", static_cast<int64_t>(hot.ticks_per_second));
  json.number("start_realtime_ns", static_cast<int64_t>(hot.start_realtime_ns));
  const struct {
    const char* key;
    int32_t value, none;
  } kNumbers[] = {{"world", s.world, 0}, {"stage", s.stage, -1}, {"dp_rank", s.dp_rank, -1},
                  {"pp", s.pp, 0},       {"tp", s.tp, 0},        {"dp", s.dp, 0},
                  {"vp", s.vp, 0}};
  for (const auto& n : kNumbers)
    if (n.value > n.none) json.number(n.key, n.value);
  if (const char* queues = getenv("CUDA_DEVICE_MAX_CONNECTIONS")) json.text("CUDA_DEVICE_MAX_CONNECTIONS", queues);
  char uuids[512] = "";
  const uint32_t count = device_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count && i < 12; ++i)
    if (devices[i].uuid[0])
      snprintf(uuids + strlen(uuids), sizeof uuids - strlen(uuids), "%s%s", uuids[0] ? " " : "", devices[i].uuid);
  if (uuids[0]) json.text("devices", uuids);
  if (const char* kernels = kernels_known.load(std::memory_order_acquire))
    json.text("kernels", *kernels ? kernels : "recorded");
  json.text("hot", state.hot_path);
  json.number("command", command_hash());
  json.text("recorder", SLR_RECORDER_VERSION);
  return json.finish();
}

}  // namespace slr
