#include "sql/slice_sums.h"

#include "base/parallel.h"
#include "model/table.h"
#include "sql/slice_scan.h"

namespace stageline::sql {
namespace {

using Field = SliceColumn;
constexpr size_t kRowsOfAPiece = size_t{1} << 20;  // maximum rows that one thread takes at a time
// Most combinations for which a table with room for all of them is made.
constexpr uint64_t kMaxDense = uint64_t{1} << 21;

// The property of a slice that determines its group; columns that follow from the same property share one axis.
enum class Axis : uint8_t { kNone, kName, kCategory, kClass, kStream, kStep, kLane, kOpName };

Axis axis_of(Field field) {
  switch (field) {
    case Field::kName:
    case Field::kNameId: return Axis::kName;
    case Field::kCategory: return Axis::kCategory;
    case Field::kClass: return Axis::kClass;
    case Field::kStream: return Axis::kStream;
    case Field::kStep: return Axis::kStep;
    case Field::kLane:
    case Field::kLaneKind:
    case Field::kPid:
    case Field::kTid: return Axis::kLane;
    case Field::kOpName: return Axis::kOpName;
    default: return Axis::kNone;  // these are the same within a rank, and slices of two ranks never share a group
  }
}

// Sums of one number over a group.
struct Number {
  int64_t known = 0, sum = 0, min = INT64_MAX, maximum = INT64_MIN;
  bool overflows = false;
  void add(int64_t value) {
    ++known;
    overflows = __builtin_add_overflow(sum, value, &sum) || overflows;
    min = std::min(min, value);
    maximum = std::max(maximum, value);
  }
};

struct Group {
  size_t part, lane;
  uint32_t slice;  // one of its slices, which shows what all of them share
  int64_t count;
};

struct PieceSums {
  std::vector<Group> groups;
  std::vector<Number> numbers;  // at group · asked numbers + number
};

// Adds up the rows of one piece. Groups start again with each rank, so a piece may hold many ranks.
class Adder {
 public:
  Adder(const RunData& data, const std::vector<Axis>& axes, const std::vector<Field>& numbers)
      : data_(data), axes_(axes), numbers_(numbers) {}

  // Returns false when there are more combinations than codes.
  bool add(SliceScan& scan, PieceSums& sums) {
    size_t part = SIZE_MAX;
    while (scan.fill()) {
      if (scan.part() != part) {
        part = scan.part();
        if (!enter(part)) return false;
      }
      find_groups(scan, sums);
      for (size_t n = 0; n < numbers_.size(); ++n) add_number(scan, n, sums);
    }
    return true;
  }

 private:
  uint64_t size_of(Axis axis, const Part& part) const {
    switch (axis) {
      case Axis::kName: return data_.trace().names.size();
      case Axis::kCategory: return 256;
      case Axis::kClass: return 256;
      case Axis::kStream: return std::max<size_t>(1, part.streams.size());
      case Axis::kStep: return part.steps.size() + 1;
      case Axis::kLane: return std::max<size_t>(1, part.lanes.size());
      case Axis::kOpName: return data_.trace().names.size() + 1;
      case Axis::kNone: break;
    }
    return 1;
  }

  bool enter(size_t p) {
    const Part& part = data_.trace().parts[p];
    combinations_ = 1;
    sizes_.clear();
    for (const Axis axis : axes_) {
      const uint64_t size = std::max<uint64_t>(1, size_of(axis, part));
      if (combinations_ > std::numeric_limits<uint64_t>::max() / size) return false;
      combinations_ *= size;
      sizes_.push_back(size);
    }
    sparse_.clear();
    dense_.clear();
    if (combinations_ <= kMaxDense) dense_.assign(combinations_, 0);
    return true;
  }

  template <class Value> void mix(std::span<const uint32_t> rows, uint64_t size, const Value& value) {
    for (size_t i = 0; i < rows.size(); ++i) codes_[i] = codes_[i] * size + static_cast<uint64_t>(value(rows[i]));
  }

  void find_groups(const SliceScan& scan, PieceSums& sums) {
    const std::span<const uint32_t> rows = scan.rows();
    const size_t p = scan.part();
    const Slices& s = data_.trace().parts[p].slices;
    std::fill_n(codes_.begin(), rows.size(), 0);
    for (size_t a = 0; a < axes_.size(); ++a) {
      const uint64_t size = sizes_[a];
      switch (axes_[a]) {
        case Axis::kName: mix(rows, size, [&](uint32_t i) { return s.name_id[i]; }); break;
        case Axis::kCategory:
          if (!s.category_id.empty()) mix(rows, size, [&](uint32_t i) { return s.category_id[i]; });
          break;
        case Axis::kClass:
          mix(rows, size, [&](uint32_t i) { return data_.is_device(p, i) ? static_cast<size_t>(s.class_of(i)) : 0; });
          break;
        case Axis::kStream:
          if (!s.stream_id.empty()) mix(rows, size, [&](uint32_t i) { return s.stream_id[i]; });
          break;
        case Axis::kStep:
          if (!s.step.empty()) mix(rows, size, [&](uint32_t i) { return s.step[i]; });
          break;
        case Axis::kLane:
          mix(rows, size, [&](uint32_t i) { return scan.lane() != SIZE_MAX ? scan.lane() : data_.lane_of(p, i); });
          break;
        case Axis::kOpName:
          if (!s.parent.empty())
            mix(rows, size, [&](uint32_t i) {
              const uint32_t op = data_.is_device(p, i) ? s.parent[i] : kNoSliceIndex;
              return op == kNoSliceIndex ? 0 : s.name_id[op] + uint64_t{1};
            });
          break;
        case Axis::kNone: break;
      }
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      uint32_t& place = dense_.empty() ? sparse_[codes_[i]] : dense_[codes_[i]];  // one more than the group's number
      if (place == 0) {
        sums.groups.push_back({p, scan.lane(), rows[i], 0});
        sums.numbers.resize(sums.numbers.size() + numbers_.size());
        place = static_cast<uint32_t>(sums.groups.size());
      }
      places_[i] = place - 1;
      ++sums.groups[place - 1].count;
    }
  }

  void add_number(const SliceScan& scan, size_t n, PieceSums& sums) {
    const std::span<const uint32_t> rows = scan.rows();
    const size_t p = scan.part();
    const Field field = numbers_[n];
    const auto place = [&](size_t i) -> Number& { return sums.numbers[places_[i] * numbers_.size() + n]; };
    if (field == Field::kDur) {
      const std::vector<int64_t>& dur_ns = data_.trace().parts[p].slices.dur_ns;
      for (size_t i = 0; i < rows.size(); ++i)
        if (dur_ns[rows[i]] != kNullInteger) place(i).add(dur_ns[rows[i]]);
      return;
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t lane = field == Field::kSelf && scan.lane() == SIZE_MAX ? data_.lane_of(p, rows[i]) : scan.lane();
      const int64_t value = number_of(data_, p, lane, rows[i], field);
      if (value != kNullInteger) place(i).add(value);
    }
  }

  const RunData& data_;
  const std::vector<Axis>& axes_;
  const std::vector<Field>& numbers_;
  uint64_t combinations_ = 1;
  std::vector<uint64_t> sizes_;
  std::vector<uint32_t> dense_;
  std::unordered_map<uint64_t, uint32_t> sparse_;
  std::array<uint64_t, RunData::kBlock> codes_ = {};
  std::array<uint32_t, RunData::kBlock> places_ = {};
};

// Columns are those of the table and the count. For each number the known values, their sum, minimum and maximum
// follow, then the wanted keys and numbers, as names with commas between.
constexpr int kOfANumber = 4;
// EXPLAIN QUERY PLAN shows the alias and this number: "SCAN slices VIRTUAL TABLE INDEX 64:".
constexpr int kShownMode = 64;

struct Layout {
  const std::vector<SliceColumnSpec>& specs;
  std::vector<Field> numbers;  // all numbers that the table has
  explicit Layout(const std::vector<SliceColumnSpec>& of) : specs(of) {
    for (const SliceColumnSpec& spec : specs)
      if (is_number(spec.field)) numbers.push_back(spec.field);
  }
  int count_column() const { return static_cast<int>(specs.size()); }
  int keys_column() const { return count_column() + 1 + kOfANumber * static_cast<int>(numbers.size()); }
};

std::vector<Field> fields_of(const Layout& layout, std::string_view list) {
  std::vector<Field> fields;
  while (!list.empty()) {
    const size_t end = std::min(list.size(), list.find(','));
    for (const SliceColumnSpec& spec : layout.specs)
      if (spec.column.name == list.substr(0, end)) fields.push_back(spec.field);
    list.remove_prefix(std::min(list.size(), end + 1));
  }
  return fields;
}

class SumsCursor : public Cursor {
 public:
  SumsCursor(std::shared_ptr<const RunData> data, const Layout& layout, bool kernels)
      : data_(std::move(data)), layout_(layout), kernels_(kernels) {}

  Status filter(int, const std::vector<Pushed>& given) override {
    std::vector<Pushed> conditions;
    for (const Pushed& p : given) {
      if (p.column == layout_.keys_column()) keys_ = fields_of(layout_, text_of(p.value));
      else if (p.column == layout_.keys_column() + 1) numbers_ = fields_of(layout_, text_of(p.value));
      else conditions.push_back(p);
      if (p.column < layout_.count_column() && !is_key(layout_.specs[p.column].field) &&
          sqlite3_value_type(p.value) != SQLITE_INTEGER)
        return make_error(ErrorCode::kUnavailable, "only whole numbers are compared before adding up");
    }
    std::vector<Axis> axes;
    for (const Field key : keys_)
      if (const Axis axis = axis_of(key); axis != Axis::kNone && std::ranges::find(axes, axis) == axes.end())
        axes.push_back(axis);
    SliceScan scan(data_, kernels_);
    TRY_OK(scan.ask(layout_.specs, conditions));
    scan.start(0);
    std::vector<SliceScan> pieces = scan.pieces(kRowsOfAPiece);
    sums_.assign(pieces.size(), {});
    std::vector<uint8_t> done(pieces.size());
    parallel_for(pieces.size(), [&](size_t i) { done[i] = Adder(*data_, axes, numbers_).add(pieces[i], sums_[i]); });
    if (std::ranges::find(done, 0) != done.end())
      return make_error(ErrorCode::kLimit, "there are more combinations of these columns than can be told apart");
    piece_ = group_ = 0;
    skip_empty();
    return {};
  }

  bool at_end() const override { return piece_ >= sums_.size(); }
  void next() override {
    ++group_;
    skip_empty();
  }
  int64_t row_id() const override { return piece_ << 32 | group_; }

  void column(sqlite3_context* out, int column) const override {
    const Group& group = sums_[piece_].groups[group_];
    if (column < layout_.count_column()) {
      const Field field = layout_.specs[column].field;
      if (std::ranges::find(keys_, field) == keys_.end())
        return sqlite3_result_error(out, "slices were not aggregated by this column", -1);
      const bool by_lane = axis_of(field) == Axis::kLane && group.lane == SIZE_MAX;
      return show_slice(*data_, group.part, by_lane ? data_->lane_of(group.part, group.slice) : group.lane, group.slice,
                        field, out);
    }
    if (column == layout_.count_column()) return show(out, group.count);
    if (column >= layout_.keys_column()) return sqlite3_result_null(out);
    const int place = column - layout_.count_column() - 1;
    const Field field = layout_.numbers[place / kOfANumber];
    const auto asked = std::ranges::find(numbers_, field);
    if (asked == numbers_.end()) return sqlite3_result_error(out, "this column was not aggregated", -1);
    const Number& number =
        sums_[piece_].numbers[group_ * numbers_.size() + static_cast<size_t>(asked - numbers_.begin())];
    if (place % kOfANumber == 0) return show(out, number.known);
    if (number.known == 0) return sqlite3_result_null(out);
    switch (place % kOfANumber) {
      case 1:
        if (number.overflows) return sqlite3_result_error(out, "integer overflow", -1);
        return show(out, number.sum);
      case 2: return show(out, number.min);
      default: return show(out, number.maximum);
    }
  }

 private:
  void skip_empty() {
    while (piece_ < sums_.size() && group_ >= sums_[piece_].groups.size()) ++piece_, group_ = 0;
  }

  std::shared_ptr<const RunData> data_;
  const Layout& layout_;
  const bool kernels_;
  std::vector<Field> keys_, numbers_;
  std::vector<PieceSums> sums_;
  size_t piece_ = 0, group_ = 0;
};

class SumsTable : public TableSource {
 public:
  SumsTable(std::shared_ptr<const RunData> data, const char* name, const std::vector<SliceColumnSpec>& specs,
            bool kernels)
      : TableSource(name, "Aggregates of slices."), data_(std::move(data)), layout_(specs), kernels_(kernels) {}

  Result<std::vector<SqlColumn>> columns() const override {
    auto columns = mapped<SqlColumn>(layout_.specs, &SliceColumnSpec::column);
    columns.push_back({"aggregate_count", SqlType::kInteger, "", "", false});
    for (const SliceColumnSpec& spec : layout_.specs)
      if (is_number(spec.field))
        for (const char* what : {"aggregate_known_", "aggregate_sum_", "aggregate_min_", "aggregate_max_"})
          columns.push_back({what + spec.column.name, SqlType::kInteger, spec.column.unit, "", false});
    for (const char* option : {"aggregate_keys", "aggregate_numbers"})
      columns.push_back({option, SqlType::kText, "", "", true});
    return columns;
  }

  void plan(Plan& plan) const override {
    int options = 0;
    for (Wanted& w : plan.wanted) {
      if (w.column >= layout_.keys_column() && w.op == SQLITE_INDEX_CONSTRAINT_EQ) {
        if (!w.usable) continue;
        w.taken = w.exact = true;
        ++options;
      } else if (w.usable && w.column >= 0 && w.column < layout_.count_column()) {
        const Push push = push_of(layout_.specs[w.column].field, w.op, w.binary);
        w.taken = push.taken;
        // A second check would need the slices' own values; where one is necessary, the query is asked without sums.
        const Field field = layout_.specs[w.column].field;
        w.exact = push.taken && (push.exact || field == Field::kDur || (field == Field::kStart && !data_->is_mapped()));
      }
    }
    plan.impossible = options < 2;
    plan.cost = 1000;
    plan.rows = 100;
    plan.mode = kShownMode;
  }

  std::unique_ptr<Cursor> open() const override { return std::make_unique<SumsCursor>(data_, layout_, kernels_); }

 private:
  std::shared_ptr<const RunData> data_;
  const Layout layout_;
  const bool kernels_;
};

}  // namespace

bool is_key(SliceColumn field) {
  return axis_of(field) != Axis::kNone || field == Field::kRank || field == Field::kDevice;
}

std::vector<std::shared_ptr<const TableSource>> sums_of_slices(const std::shared_ptr<const RunData>& data) {
  return {std::make_shared<SumsTable>(data, "slices_aggregated", slice_column_specs(), false),
          std::make_shared<SumsTable>(data, "kernels_aggregated", kernel_column_specs(), true)};
}

}  // namespace stageline::sql
