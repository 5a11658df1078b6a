#include "exporters/slice_names.h"

namespace stageline {

void append_number(std::string& out, uint64_t value) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

namespace {

constexpr ByEnum<NameUnit, uint64_t, 3> kUnitNs = {{1'000, 1'000'000, 1'000'000'000}};
constexpr ByEnum<NameUnit, const char*, 3> kUnitText = {{" us)", " ms)", " s)"}};

NameUnit unit_for(uint64_t dur_ns) {
  return dur_ns < 1'000'000 ? NameUnit::kMicro : dur_ns < 1'000'000'000 ? NameUnit::kMilli : NameUnit::kSecond;
}

uint64_t shown_dur_ns(const Cells& cells, size_t i) {
  return shown_end_ns(cells, i) - static_cast<uint64_t>(cells.start_ns[i]);
}

struct Shown {
  uint64_t hundredths;  // hundredths of the unit; a half is rounded up
  NameUnit unit;
};

Shown shown(uint64_t dur_ns, NameUnit unit) {
  const auto in = [&](NameUnit u) {
    const uint64_t step = kUnitNs[u] / 100;
    return dur_ns / step + (dur_ns % step >= step / 2 ? 1 : 0);
  };
  uint64_t hundredths = in(unit);
  if (dur_ns == 0) return {0, unit};
  while (hundredths == 0 && unit != NameUnit::kMicro) {
    unit = static_cast<NameUnit>(static_cast<int>(unit) - 1);
    hundredths = in(unit);
  }
  return {hundredths, unit};
}

void append_shown(std::string& out, Shown s) {
  out += " (";
  append_number(out, s.hundredths / 100);
  const auto rest = static_cast<unsigned>(s.hundredths % 100);
  out += '.';
  out += static_cast<char>('0' + rest / 10);
  out += static_cast<char>('0' + rest % 10);
  out += kUnitText[s.unit];
}

}  // namespace

SliceNames::SliceNames(const Trace& trace, bool with_chunk) : trace_(trace), with_chunk_(with_chunk) {
  // Only the unit of the median is needed, so counting the durations for each unit is enough.
  ByEnum<CellKind, ByEnum<NameUnit, size_t, 3>, kCellKindCount> count{};
  const Cells& cells = trace.cells;
  for (size_t i = 0; i < cells.size(); ++i) ++count[cells.kind[i]][unit_for(shown_dur_ns(cells, i))];
  for (size_t k = 0; k < count.size(); ++k) {
    const size_t half = (count[k][0] + count[k][1] + count[k][2]) / 2;
    unit_[k] = count[k][0] > half                 ? NameUnit::kMicro
               : count[k][0] + count[k][1] > half ? NameUnit::kMilli
                                                  : NameUnit::kSecond;
  }
}

bool SliceNames::has_own_name(size_t cell) const {
  const Cells& cells = trace_.cells;
  const CellKind kind = cells.kind[cell];
  if (is_compute(kind) || (is_message(kind) && cells.micro_batch[cell] >= 0)) return false;
  return cells.slice[cell] != kNoSlice && !trace_.slice_name(cells.at(cell)).empty();
}

void SliceNames::append_stem(std::string& out, size_t cell) const {
  const Cells& cells = trace_.cells;
  if (has_own_name(cell)) {
    out += valid_utf8(trace_.slice_name(cells.at(cell)));
    return;
  }
  // Does the same as cell_label(), without its temporary strings.
  const CellKind kind = cells.kind[cell];
  out += kind_code(kind);
  if (cells.micro_batch[cell] >= 0) append_number(out, cells.micro_batch[cell]);
  if (with_chunk_ && is_compute(kind) && cells.chunk[cell] >= 0) {
    out += ".c";
    append_number(out, cells.chunk[cell]);
  }
}

void SliceNames::append_duration(std::string& out, size_t cell) const {
  append_shown(out, shown(shown_dur_ns(trace_.cells, cell), unit_[trace_.cells.kind[cell]]));
}

uint64_t SliceNames::duration_code(size_t cell) const {
  const Shown s = shown(shown_dur_ns(trace_.cells, cell), unit_[trace_.cells.kind[cell]]);
  return s.hundredths * 3 + static_cast<uint64_t>(s.unit);
}

std::string step_name(int32_t step, int64_t dur_ns) {
  std::string name = "step " + std::to_string(step);
  const uint64_t dur = dur_ns;
  append_shown(name, shown(dur, unit_for(dur)));
  return name;
}

}  // namespace stageline
