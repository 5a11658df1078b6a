#include "base/json_writer.h"
#include "compat/paddle_timeline/paddle_timeline.h"

namespace stageline {
namespace {

constexpr size_t kMaxEventBytes = 32 * 1024;  // OutputFile::reserve gives 64 KiB
constexpr size_t kMaxTypeBytes = 1024;        // longer types are written in a slower way
constexpr size_t kMaxTimeBytes = 64;          // repr_double gives at most 25

char* put(char* to, std::string_view text) {
  memcpy(to, text.data(), text.size());
  return to + text.size();
}

char* put_number(char* to, uint64_t value) {
  char digits[20];
  int n = 0;
  do {
    digits[n++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (n > 0) *to++ = digits[--n];
  return to;
}

constexpr std::array<char, 200> kDigitPairs = [] {
  std::array<char, 200> pairs{};
  for (size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

// Writes repr(float) of microseconds since the epoch, fast. From 2^50 to 2^51 (the years 2005 to 2041) doubles are a
// quarter apart. There the shortest decimal that reads back as the same double ends in .0, .2, .5 or .8.
char* put_time(char* to, double us) {
  if (us >= 0x1p50 && us < 0x1p51) {
    const auto quarters = static_cast<uint64_t>(us * 4);
    uint64_t whole = quarters >> 2;
    for (char* pair = to + 14; pair >= to; pair -= 2) {
      memcpy(pair, kDigitPairs.data() + 2 * (whole % 100), 2);
      whole /= 100;
    }
    to[16] = '.';
    to[17] = "0258"[quarters & 3];
    return to + 18;
  }
  // json.dumps writes infinities as JavaScript does, unlike repr.
  if (std::isinf(us)) return put(to, "Infinity");
  return put(to, repr_double(us));
}

char* put_time(char* to, const PyTime& time) { return time.is_integer_zero ? put(to, "0") : put_time(to, time.us); }

std::string_view colour_of(std::string_view type) {
  if (type == "forward") return "thread_state_running";
  if (type == "backward") return "rail_idle";
  if (type == "optimizer") return "rail_response";
  if (type == "default") return "thread_state_unknown";
  return {};
}

// Holds the constant texts of all events with one type and one row.
struct EventText {
  std::string name;                  // {"name": "forward_
  std::string begin, end;            // up to the time
  std::string begin_rest, end_rest;  // after the time
};

EventText event_parts(const std::string& type, std::string_view tid, std::string_view category) {
  EventText text;
  std::string quoted;
  append_json_string(quoted, type, true);
  text.name = "{\"name\": " + quoted.substr(0, quoted.size() - 1) + "_";
  const std::string cat = category.empty() ? quoted : std::string(category);
  text.begin = "\", \"cat\": " + cat + ", \"ph\": \"B\", \"ts\": ";
  text.end = "\", \"cat\": " + cat + ", \"ph\": \"E\", \"pid\": 0, \"ts\": ";
  std::string colour(colour_of(type));
  if (!colour.empty()) colour = ", \"cname\": \"" + colour + "\"";
  text.begin_rest = ", \"pid\": 0, \"tid\": " + std::string(tid) + colour + "}";
  text.end_rest = ", \"tid\": " + std::string(tid) + colour + "}";
  return text;
}

}  // namespace

TimelineWriter::TimelineWriter(OutputFile& chrome, OutputFile& perfetto, int64_t perfetto_devices)
    : chrome_(chrome), perfetto_(perfetto), devices_(perfetto_devices) {
  both("{\"traceEvents\": [");
}

void TimelineWriter::both(std::string_view text) {
  chrome_.write(text);
  perfetto_.write(text);
}

void TimelineWriter::jobs(const PaddleLog& log, const TimelineRow& row) {
  std::vector<EventText> chrome_texts, perfetto_texts;
  for (const std::string& type : log.types) {
    std::string replaced;
    if (type == "Step") replaced = "2333";
    for (int64_t j = 0; j < devices_; ++j)
      if (type == "GPU" + std::to_string(j)) replaced = std::to_string(2334 + j);
    chrome_texts.push_back(event_parts(type, row.chrome_tid, ""));
    perfetto_texts.push_back(event_parts(type, row.perfetto_tid, replaced));
  }
  const auto emit = [&](OutputFile& file, const EventText& text, const PaddleJob& job, std::string_view start,
                        std::string_view end) {
    // A hostile type may be megabytes long; everything else fits into the reserved room many times over.
    if (text.begin.size() > kMaxTypeBytes) {
      char number[20];
      for (const bool begin : {true, false}) {
        if (!begin || !first_) file.write(", ");
        file.write(text.name);
        file.write({number, static_cast<size_t>(put_number(number, job.id) - number)});
        file.write(begin ? text.begin : text.end);
        file.write(begin ? start : end);
        file.write(begin ? text.begin_rest : text.end_rest);
      }
      return;
    }
    char* const from = file.reserve(kMaxEventBytes);
    char* to = from;
    if (!first_) to = put(to, ", ");
    char* const name = to;
    to = put(to, text.name);
    to = put_number(to, job.id);
    const size_t name_size = to - name;
    to = put(to, text.begin);
    to = put(to, start);
    to = put(to, text.begin_rest);
    to = put(to, ", ");
    memcpy(to, name, name_size);
    to += name_size;
    to = put(to, text.end);
    to = put(to, end);
    to = put(to, text.end_rest);
    file.advance(to - from);
  };
  for (const PaddleJob& job : log.jobs) {
    char start_text[kMaxTimeBytes], end_text[kMaxTimeBytes];  // formatted once for both files
    const std::string_view start(start_text, put_time(start_text, job.start_us) - start_text);
    const std::string_view end(end_text, put_time(end_text, job.end_us) - end_text);
    emit(chrome_, chrome_texts[job.type], job, start, end);
    emit(perfetto_, perfetto_texts[job.type], job, start, end);
    first_ = false;
  }
}

void TimelineWriter::step(int64_t number, const PyTime& start, const PyTime& end) {
  for (OutputFile* file : {&chrome_, &perfetto_}) {
    const std::string tid = file == &chrome_ ? "\"Step\"" : "2333";
    for (const bool begin : {true, false}) {
      std::string time(kMaxTimeBytes, '\0');
      time.resize(put_time(time.data(), begin ? start : end) - time.data());
      file->write((first_ && begin ? "" : ", ") + ("{\"name\": \"step" + std::to_string(number)) +
                  "\", \"cat\": \"step\", \"ph\": \"" + (begin ? "B" : "E") + "\", \"ts\": " + time +
                  ", \"pid\": 0, \"tid\": " + tid + ", \"cname\": \"thread_state_unknown\"}");
    }
  }
  first_ = false;
}

void TimelineWriter::finish(const std::vector<TimelineRowName>& names) {
  const auto meta = [&](std::string_view name, int64_t tid) {
    perfetto_.write(std::string(first_ ? "" : ", ") + "{\"args\": {\"name\": \"" + std::string(name) +
                    "\"}, \"cat\": \"__metadata\", \"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 0, \"tid\": " +
                    std::to_string(tid) + ", \"ts\": 0}");
    first_ = false;
  };
  meta("STEP", 2333);
  for (const TimelineRowName& name : names) meta(name.name, name.tid);
  both("]}");
}

}  // namespace stageline
