#include "cli/schedule_text.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace stageline {
namespace {

constexpr char kRule = 1, kIdle = 2;  // for a row with one byte for each column

std::string label_of(const ScheduleCell& cell, bool with_chunk) {
  std::string text;
  for (const Action& a : cell.actions()) {
    append_item(text, std::string(kind_code(a.kind)) + std::to_string(a.micro_batch), "&");
    if (!with_chunk) continue;
    if (a.chunk < 26)
      text += static_cast<char>('a' + a.chunk);
    else
      text += "." + std::to_string(a.chunk);
  }
  return text;
}

const char* colour_of(CellKind kind) {
  switch (kind) {
    case CellKind::kForward: return "36";
    case CellKind::kWeightGrad: return "35";
    case CellKind::kInputGrad: return "33";
    default: return "32";
  }
}

struct Row {
  std::string columns;
  std::vector<const char*> colours;  // one for each column; nullptr where it is idle
};

void append_slice(std::string& out, const Row& row, size_t begin, size_t end, bool colour) {
  const char* now = nullptr;
  for (size_t i = begin; i < end; ++i) {
    if (colour && row.colours[i] != now) {
      now = row.colours[i];
      out += "\x1b[" + std::string(now ? now : "0") + "m";
    }
    const char c = row.columns[i];
    out += c == kRule ? "─" : c == kIdle ? "·" : std::string(1, c);
  }
  if (now) out += "\x1b[0m";
}

}  // namespace

std::string drawn_schedule(const Schedule& schedule, const std::vector<std::vector<ReplayedCell>>& times,
                           int width_columns, bool colour) {
  if (times.size() > kMaxDrawnRanks) return {};
  const bool with_chunk = schedule.sizes.chunks > 1;
  // A column is so short that every label fits into its cell, with a blank after it.
  double column_ns = 1e300;
  int64_t last = 0;
  for (size_t r = 0; r < times.size(); ++r)
    for (size_t i = 0; i < times[r].size(); ++i) {
      const int64_t dur = times[r][i].end_ns - times[r][i].start_ns;
      column_ns = std::min(column_ns, dur / static_cast<double>(label_of(schedule.ranks[r][i], with_chunk).size() + 1));
      last = std::max(last, times[r][i].end_ns);
    }
  const double wide = last / column_ns;
  if (!(wide >= 1 && wide <= kMaxDrawnColumns)) return {};
  const auto column = [&](int64_t t) { return static_cast<size_t>(std::llround(t / column_ns)); };
  const size_t columns = column(last);
  std::vector<Row> rows;
  for (size_t r = 0; r < times.size(); ++r) {
    Row row{std::string(columns, kIdle), std::vector<const char*>(columns, nullptr)};
    for (size_t i = 0; i < times[r].size(); ++i) {
      const ScheduleCell& cell = schedule.ranks[r][i];
      const std::string label = label_of(cell, with_chunk);
      const size_t begin = column(times[r][i].start_ns), end = column(times[r][i].end_ns);
      for (size_t x = begin; x < end; ++x) {
        row.columns[x] = x - begin < label.size() ? label[x - begin] : x + 1 < end ? kRule : ' ';
        const auto actions = cell.actions();
        row.colours[x] = colour_of(actions[(x - begin) * actions.size() / (end - begin)].kind);
      }
    }
    rows.push_back(std::move(row));
  }
  const std::string widest = std::to_string(times.size() - 1);
  const size_t margin = 5 + widest.size() + 2;
  const size_t room = std::max<size_t>(20, std::max(0, width_columns) - margin);
  std::string out;
  for (size_t begin = 0; begin < columns; begin += room) {
    if (begin > 0) out += '\n';
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::string number = std::to_string(r);
      out += "rank " + std::string(widest.size() - number.size(), ' ') + number + "  ";
      append_slice(out, rows[r], begin, std::min(columns, begin + room), colour);
      while (out.ends_with(' ')) out.pop_back();
      out += '\n';
    }
  }
  return out;
}

}  // namespace stageline
