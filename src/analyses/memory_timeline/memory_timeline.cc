// Computes how much memory each category holds over time, from torch's raw memory timeline
// (export_memory_timeline("….raw.json.gz")). Definitions: docs/analyses/memory-timeline.md.
#include <simdjson.h>

#include "analyses/analysis.h"
#include "base/input.h"

namespace stageline {
namespace {

namespace od = simdjson::ondemand;

constexpr size_t kCategories = 8;
constexpr size_t kMaxBytes = size_t{1} << 32;  // the JSON parser's limit
// torch.profiler._memory_profiler defines the order, in _CATEGORY_TO_INDEX.
struct Point {
  int64_t time_ns = 0;
  std::array<int64_t, kCategories> bytes{};
  int64_t total() const { return sum_over<int64_t>(bytes); }
};

struct Change {
  int64_t time_ns = 0, bytes = 0, category = 0;
};

Result<std::vector<Change>> read_changes(const std::string& path, bool hta) {
  if (hta) {
    TRY(input, Input::open(path));
    char first = 0;
    if (Result<size_t> got = input->read(&first, 1); !got) return std::move(got).error();
    if (!input->compressed())
      return make_error(ErrorCode::kBadInput, "BadGzipFile: Not a gzipped file",
                        "HTA reads memory timelines as gzip only", {path});
  }
  TRY(text, read_all(path, kMaxBytes - simdjson::SIMDJSON_PADDING));
  const auto bad = [&](int64_t entry) {
    return make_error(
        ErrorCode::kBadInput,
        hta ? "JSONDecodeError: not a memory timeline" : "not a memory timeline (entry " + std::to_string(entry) + ")",
        "torch writes [[time, action, bytes, category], …] with export_memory_timeline(\"….raw.json.gz\")", {path});
  };
  if (const std::string_view all = trim(*text); all.empty() || all.back() != ']') return bad(0);  // the file is cut off
  text->reserve(text->size() + simdjson::SIMDJSON_PADDING);
  od::parser parser;
  od::document document;
  if (parser.iterate(*text).get(document) != simdjson::SUCCESS) return bad(0);
  od::array entries;
  if (document.get_array().get(entries) != simdjson::SUCCESS) return bad(0);
  std::vector<Change> changes;
  for (auto entry : entries) {
    od::array numbers;
    if (entry.get_array().get(numbers) != simdjson::SUCCESS) return bad(changes.size());
    std::array<int64_t, 4> values{};
    size_t count = 0;
    for (auto number : numbers) {
      int64_t value = 0;
      if (count == 4 || number.get_int64().get(value) != simdjson::SUCCESS) return bad(changes.size());
      values[count++] = value;
    }
    if (count != 4) return bad(changes.size());
    // Python counts negative indices from the end, and so does HTA, unintentionally.
    if (hta && values[3] < 0) values[3] += kCategories;
    if (values[3] < 0 || values[3] >= static_cast<int64_t>(kCategories))
      return hta ? make_error(ErrorCode::kBadInput, "IndexError: list index out of range", "", {path})
                 : bad(changes.size());
    changes.push_back({values[0], values[2], values[3]});
  }
  return changes;
}

// Makes one point for each group of equal times. Memory that was allocated before the profile has a negative time, and
// is counted from the first point on.
std::vector<Point> points_of(const std::vector<Change>& changes, bool hta) {
  int64_t first = -1;
  std::vector<Point> points;
  for (const Change& c : changes) {
    if (hta ? first == -1 || (c.time_ns < first && c.time_ns > 0) : c.time_ns > 0 && (first < 0 || c.time_ns < first))
      first = c.time_ns;
    if (points.empty() || c.time_ns != points.back().time_ns) {
      points.push_back(points.empty() ? Point{} : points.back());
      points.back().time_ns = c.time_ns;
    }
    points.back().bytes[c.category] += c.bytes;
  }
  for (Point& p : points)
    if (p.time_ns < 0) p.time_ns = first;
  if (!hta) {  // times count from the start of the profile, and each instant occurs once
    const int64_t zero = std::max<int64_t>(0, first);
    std::vector<Point> merged;
    for (Point& p : points) {
      p.time_ns = std::max<int64_t>(0, p.time_ns - zero);
      if (!merged.empty() && merged.back().time_ns == p.time_ns) merged.back() = p;
      else merged.push_back(p);
    }
    return merged;
  }
  return points;
}

Table hta_memory_timeline_table(const std::vector<Point>& points) {
  Table table(declared_table("memory-timeline/memory-timeline/hta"));
  for (const Point& p : points) {
    std::vector<Table::Value> row(p.bytes.begin(), p.bytes.end());
    row.emplace_back(p.time_ns);
    table.add_row(std::move(row));
  }
  return table;
}

std::vector<Table::Value> exact_row(const std::string& file, const Point& p) {
  std::vector<Table::Value> row = {file, p.time_ns};
  for (const int64_t b : p.bytes) row.emplace_back(b);
  row.emplace_back(p.total());
  return row;
}

}  // namespace

Result<AnalysisResult> run_memory_timeline(const AnalysisInput& input) {
  AnalysisResult result;
  if (input.hta && input.paths.size() != 1)
    return make_error(ErrorCode::kUsage, "HTA reads one memory timeline at a time", "name one file");
  Table timeline(declared_table("memory-timeline/memory-timeline"));
  Table peaks(declared_table("memory-timeline/memory-peaks"));
  for (const std::string& path : input.paths) {
    TRY(changes, read_changes(path, input.hta));
    const std::vector<Point> points = points_of(*changes, input.hta);
    if (input.hta) return result.with(hta_memory_timeline_table(points));
    const std::string file(file_name(path));
    for (const Point& p : points) timeline.add_row(exact_row(file, p));
    const auto peak = std::ranges::max_element(points, {}, &Point::total);
    if (peak != points.end()) peaks.add_row(exact_row(file, *peak));
  }
  return result.with(std::move(peaks), std::move(timeline));
}

}  // namespace stageline
