#include "compat/paddle_timeline/timeline_writer.h"

#include "base/json_writer.h"

namespace stageline {
namespace {

// A job is two events, each with two texts of its type and a time. With a type of this length they fill some 5 KiB.
constexpr size_t kMaxTypeBytes = 1024, kMaxJobBytes = 32 * 1024;
static_assert(4 * kMaxTypeBytes + 2 * kMaxTimeBytes + 1024 < kMaxJobBytes);
static_assert(kMaxJobBytes <= 64 * 1024, "more than OutputFile::reserve gives");

char* put(char* to, std::string_view text) {
  memcpy(to, text.data(), text.size());
  return to + text.size();
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
char* put_us(char* to, double us) {
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

EventText event_text(const std::string& type, std::string_view tid, std::string_view category) {
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

// V3's number of the row that a type is named like; "": none. `devices`: rows GPU0, GPU1 …
std::string number_of_row(std::string_view type, int64_t devices) {
  if (type == "Step") return std::to_string(kStepsTid);
  for (int64_t d = 0; d < devices; ++d)
    if (type == "GPU" + std::to_string(d)) return std::to_string(kFirstRowTid + d);
  return "";
}

// What differs between jobs, formatted once for both files.
struct JobText {
  char id_bytes[20], start_bytes[kMaxTimeBytes], end_bytes[kMaxTimeBytes];
  std::string_view id, start, end;

  explicit JobText(const PaddleJob& job)
      : id(id_bytes, std::to_chars(id_bytes, std::end(id_bytes), uint64_t{job.id}).ptr),
        start(start_bytes, put_us(start_bytes, job.start_us)), end(end_bytes, put_us(end_bytes, job.end_us)) {}
};

void write_job(OutputFile& file, std::string_view before, const EventText& text, const JobText& job) {
  const std::string_view pieces[] = {before, text.name, job.id, text.begin, job.start, text.begin_rest,
                                     ", ",   text.name, job.id, text.end,   job.end,   text.end_rest};
  if (text.begin.size() > kMaxTypeBytes) {  // a hostile type may be megabytes long
    for (const std::string_view piece : pieces) file.write(piece);
    return;
  }
  char* const from = file.reserve(kMaxJobBytes);
  char* to = from;
  for (const std::string_view piece : pieces) to = put(to, piece);
  file.advance(to - from);
}

std::string step_event(int64_t number, const char* phase, const PyTime& time, const std::string& tid) {
  char bytes[kMaxTimeBytes];
  const std::string_view time_text(bytes, put_time(bytes, time));
  return "{\"name\": \"step" + std::to_string(number) + "\", \"cat\": \"step\", \"ph\": \"" + phase +
         "\", \"ts\": " + std::string(time_text) + ", \"pid\": 0, \"tid\": " + tid +
         ", \"cname\": \"thread_state_unknown\"}";
}

}  // namespace

char* put_time(char* to, const PyTime& time) { return time.is_integer_zero ? put(to, "0") : put_us(to, time.us); }

TimelineWriter::TimelineWriter(OutputFile& chrome, OutputFile& perfetto, int64_t perfetto_devices)
    : chrome_(chrome), perfetto_(perfetto), devices_(perfetto_devices) {
  both("{\"traceEvents\": [");
}

void TimelineWriter::both(std::string_view text) {
  chrome_.write(text);
  perfetto_.write(text);
}

std::string_view TimelineWriter::comma() { return std::exchange(first_, false) ? "" : ", "; }

void TimelineWriter::jobs(const PaddleLog& log, const TimelineRow& row) {
  std::vector<EventText> chrome_texts, perfetto_texts;
  for (const std::string& type : log.types) {
    chrome_texts.push_back(event_text(type, row.chrome_tid, ""));
    perfetto_texts.push_back(event_text(type, row.perfetto_tid, number_of_row(type, devices_)));
  }
  for (const PaddleJob& job : log.jobs) {
    const std::string_view before = comma();
    const JobText text(job);
    write_job(chrome_, before, chrome_texts[job.type], text);
    write_job(perfetto_, before, perfetto_texts[job.type], text);
  }
}

void TimelineWriter::step(int64_t number, const PyTime& start, const PyTime& end) {
  const std::string_view before = comma();
  for (OutputFile* file : {&chrome_, &perfetto_}) {
    const std::string tid = file == &chrome_ ? "\"Step\"" : std::to_string(kStepsTid);
    file->write(before);
    file->write(step_event(number, "B", start, tid) + ", " + step_event(number, "E", end, tid));
  }
}

void TimelineWriter::finish(const std::vector<TimelineRowName>& names) {
  const auto meta = [&](std::string_view name, int64_t tid) {
    perfetto_.write(std::string(comma()) + "{\"args\": {\"name\": \"" + std::string(name) +
                    "\"}, \"cat\": \"__metadata\", \"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 0, \"tid\": " +
                    std::to_string(tid) + ", \"ts\": 0}");
  };
  meta("STEP", kStepsTid);
  for (const TimelineRowName& name : names) meta(name.name, name.tid);
  both("]}");
}

}  // namespace stageline
