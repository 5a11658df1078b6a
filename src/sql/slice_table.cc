#include "sql/run_tables.h"
#include "sql/slice_scan.h"

namespace stageline::sql {
namespace {

using Field = SliceColumn;
// Values of Plan::mode: those of SliceScan; kFirst: the first rows by a number, as many as LIMIT says, with that
// number's column in the bits from kColumnShift on.
constexpr int kByName = SliceScan::kByName, kBackwards = SliceScan::kBackwards, kFirst = 8, kColumnShift = 4;

// Ranges of these columns are exact where the value is a whole number; SQLite checks again where it is not.
bool is_exact_of_integers(Field field) {
  return field == Field::kRank || field == Field::kStep || field == Field::kStart || field == Field::kDur;
}

class SliceCursor : public Cursor {
 public:
  SliceCursor(std::shared_ptr<const RunData> data, const std::vector<SliceColumnSpec>& specs, bool kernels)
      : data_(std::move(data)), specs_(specs), scan_(data_, kernels) {}

  Status filter(int mode, const std::vector<Pushed>& given) override {
    std::vector<Pushed> conditions;
    int64_t limit = -1;        // below 0: none
    bool looks_again = false;  // SQLite checks again and may leave rows out
    for (const Pushed& p : given) {
      if (p.op == SQLITE_INDEX_CONSTRAINT_LIMIT) {
        limit = integer_of(p.value).value_or(-1);
        continue;
      }
      conditions.push_back(p);
      looks_again = looks_again ||
                    (is_exact_of_integers(specs_[p.column].field) && sqlite3_value_type(p.value) != SQLITE_INTEGER);
    }
    TRY_OK(scan_.ask(specs_, conditions));
    scan_.start(mode & kFirst ? 0 : mode);
    first_.clear();
    if (mode & kFirst) {
      find_first(specs_[mode >> kColumnShift].field, (mode & kBackwards) != 0,
                 limit < 0 || looks_again ? SIZE_MAX : static_cast<size_t>(limit));
    } else {
      fill();
    }
    return {};
  }

  bool at_end() const override { return found_ >= rows_.size(); }
  void next() override {
    if (++found_ < rows_.size()) return;
    if (first_.empty()) fill();
    else show_first(++shown_);
  }
  void column(sqlite3_context* out, int column) const override {
    const uint32_t slice = rows_[found_];
    const Field field = specs_[column].field;
    // These two are read in passes over all rows, so they are spared a further call.
    const Slices& s = data_->trace().parts[part_].slices;
    if (field == Field::kDur) return show_known(out, s.dur_ns[slice]);
    if (field == Field::kName) return show_text(out, data_->trace().names.text(s.name_id[slice]));
    const bool needs_lane = field == Field::kLane || field == Field::kLaneKind || field == Field::kPid ||
                            field == Field::kTid || field == Field::kSelf;
    const size_t lane = lane_ != SIZE_MAX || !needs_lane ? lane_ : data_->lane_of(part_, slice);
    show_slice(*data_, part_, lane, slice, field, out);
  }
  int64_t row_id() const override { return slice_id(part_, rows_[found_]); }

 private:
  void fill() {
    found_ = 0;
    rows_ = {};
    if (!scan_.fill()) return;
    rows_ = scan_.rows();
    part_ = scan_.part();
    lane_ = scan_.lane();
  }

  // Finds the first `most` rows by a number, and by id among equal ones, with a heap of at most `most` rows.
  void find_first(Field field, bool backwards, size_t max) {
    const auto before = [backwards](const Ranked& a, const Ranked& b) {
      if (a.value != b.value) return backwards ? a.value > b.value : a.value < b.value;
      return a.id < b.id;
    };
    while (max > 0 && scan_.fill()) {
      const size_t part = scan_.part();
      for (const uint32_t slice : scan_.rows()) {
        const Ranked one = {number_of(field, part, slice), slice_id(part, slice)};
        if (first_.size() == max) {
          if (!before(one, first_.front())) continue;
          std::ranges::pop_heap(first_, before);
          first_.back() = one;
        } else {
          first_.push_back(one);
        }
        std::ranges::push_heap(first_, before);
      }
    }
    std::sort_heap(first_.begin(), first_.end(), before);
    show_first(0);
  }
  int64_t number_of(Field field, size_t part, uint32_t slice) const {
    const Slices& s = data_->trace().parts[part].slices;
    return field == Field::kDur ? s.dur_ns[slice] : data_->time_ns(part, s.start_ns[slice]);
  }
  void show_first(size_t place) {
    shown_ = place;
    found_ = 0;
    rows_ = {};
    if (place >= first_.size()) return;
    part_ = first_[place].id >> 32;
    row_ = static_cast<uint32_t>(first_[place].id & UINT32_MAX);
    lane_ = SIZE_MAX;
    rows_ = {&row_, 1};
  }

  struct Ranked {
    int64_t value, id;
  };

  std::shared_ptr<const RunData> data_;
  const std::vector<SliceColumnSpec>& specs_;
  SliceScan scan_;
  std::span<const uint32_t> rows_;  // of the batch, or one of first_
  size_t found_ = 0, part_ = 0, lane_ = SIZE_MAX;
  std::vector<Ranked> first_;
  size_t shown_ = 0;
  uint32_t row_ = 0;
};

class SliceTable : public TableSource {
 public:
  SliceTable(std::shared_ptr<const RunData> data, const TableSpec& spec, const std::vector<SliceColumnSpec>& specs,
             bool kernels)
      : TableSource(spec.name, spec.summary), data_(std::move(data)), specs_(specs), kernels_(kernels) {}

  Result<std::vector<SqlColumn>> columns() const override {
    return mapped<SqlColumn>(specs_, &SliceColumnSpec::column);
  }

  void plan(Plan& plan) const override {
    const Estimate rows = take_conditions(plan);
    plan.one_row = rows.one;
    plan.rows = rows.one ? 1 : static_cast<int64_t>(rows.left) + 1;
    plan.cost = rows.one ? 2 : rows.looked_at * 0.1 + rows.left + 10;
    if (!plan.order.empty() && !rows.one) take_order(plan, rows);
  }

  std::unique_ptr<Cursor> open() const override { return std::make_unique<SliceCursor>(data_, specs_, kernels_); }

 private:
  struct Estimate {
    double left = 0;       // rows that come out
    double looked_at = 0;  // rows that are looked at
    bool one = false;
    bool all_taken = true;  // no condition is left to SQLite
    bool skips = false;
    Wanted* limit = nullptr;
  };

  // Takes the conditions that the table can apply itself.
  Estimate take_conditions(Plan& plan) const {
    const double count = std::max<size_t>(1, data_->trace().slice_count());
    Estimate rows{.left = kernels_ ? count / 4 : count};
    rows.looked_at = rows.left;
    for (Wanted& w : plan.wanted) {
      if (w.op == SQLITE_INDEX_CONSTRAINT_LIMIT || w.op == SQLITE_INDEX_CONSTRAINT_OFFSET) {
        if (w.op == SQLITE_INDEX_CONSTRAINT_LIMIT && w.usable) rows.limit = &w;
        else rows.skips = true;
        continue;
      }
      rows.all_taken = rows.all_taken && w.usable && w.column >= 0;
      if (!w.usable || w.column < 0) continue;
      const Field field = specs_[w.column].field;
      const Push push = push_of(field, w.op, w.binary);
      w.taken = push.taken;
      w.exact = push.taken && push.exact;
      rows.all_taken = rows.all_taken && w.taken && (w.exact || is_exact_of_integers(field));
      if (w.taken) narrow(rows, field);
    }
    return rows;
  }

  void narrow(Estimate& rows, Field field) const {
    const double ranks = std::max<size_t>(1, data_->trace().parts.size());
    if (field == Field::kId) {
      rows.one = true;
    } else if (field == Field::kRank) {
      rows.left /= ranks;
      rows.looked_at /= ranks;
    } else if (field == Field::kParent || field == Field::kLaunch || field == Field::kCall || field == Field::kOp) {
      rows.left = std::min(rows.left, 10.0);
      rows.looked_at /= ranks;
    } else if (field == Field::kStart || field == Field::kEnd) {
      rows.left /= 8;
      if (!data_->is_mapped()) rows.looked_at /= 8;
    } else {
      rows.left /= field == Field::kName || field == Field::kNameId ? 100 : 4;
    }
  }

  // Says in which order the rows come, where that is the one wanted.
  void take_order(Plan& plan, const Estimate& rows) const {
    const auto& [column, backwards] = plan.order[0];
    if (column < 0) return;
    const Field field = specs_[column].field;
    const auto is_id = [&](const std::pair<int, bool>& by) {
      return by.first >= 0 && specs_[by.first].field == Field::kId && !by.second;
    };
    if ((field == Field::kDur || field == Field::kStart) && rows.limit && !rows.skips && rows.all_taken &&
        !data_->is_mapped() && (plan.order.size() == 1 || (plan.order.size() == 2 && is_id(plan.order[1])))) {
      // SQLite applies the limit itself as well; this only announces the number of rows that it takes.
      rows.limit->taken = true;
      plan.ordered = true;
      plan.mode = kFirst | (backwards ? kBackwards : 0) | column << kColumnShift;
      plan.cost = rows.looked_at * 0.05 + 10;
      return;
    }
    if (plan.order.size() > 1) return;
    if (field == Field::kName) {
      plan.ordered = true;
      plan.mode = kByName | (backwards ? kBackwards : 0);
      plan.cost = rows.looked_at * 0.3 + rows.left + 10;
    } else if (field == Field::kRank || (field == Field::kId && !backwards)) {
      plan.ordered = field == Field::kId ? true : ranks_ascend();
      plan.mode = backwards ? kBackwards : 0;
    }
  }

  bool ranks_ascend() const {
    const std::vector<Part>& parts = data_->trace().parts;
    return std::ranges::is_sorted(parts, {}, &Part::rank);
  }

  std::shared_ptr<const RunData> data_;
  const std::vector<SliceColumnSpec>& specs_;
  const bool kernels_;
};

}  // namespace

std::shared_ptr<const TableSource> slice_table(std::shared_ptr<const RunData> data) {
  return std::make_shared<SliceTable>(std::move(data), declared_table("sql/slices"), slice_column_specs(), false);
}

std::shared_ptr<const TableSource> kernel_table(std::shared_ptr<const RunData> data) {
  return std::make_shared<SliceTable>(std::move(data), declared_table("sql/kernels"), kernel_column_specs(), true);
}

}  // namespace stageline::sql
