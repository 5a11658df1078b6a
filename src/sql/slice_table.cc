#include "sql/slice_table.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/number.h"
#include "sql/slice_rows.h"
#include "sql/slice_test.h"

namespace stageline::sql {
namespace {

using Field = SliceColumn;
constexpr size_t kLargestBatch = RunData::kBlock;      // rows looked at together
constexpr int kByName = 1, kBackwards = 2, kById = 4;  // Plan::mode

// Slices of one lane, or of one name in one rank: places [begin, end) of `rows`, or of the part itself (null).
struct Stretch {
  size_t part = 0, lane = SIZE_MAX, begin = 0, end = 0;  // lane: SIZE_MAX: of any
  const std::vector<uint32_t>* rows = nullptr;
};

class SliceCursor : public Cursor {
 public:
  SliceCursor(std::shared_ptr<const RunData> data, const std::vector<SliceColumnSpec>& specs, bool kernels)
      : data_(std::move(data)), trace_(data_->trace()), specs_(specs), kernels_(kernels) {}

  Status filter(int mode, const std::vector<Pushed>& given) override {
    test_ = SliceTest();
    stretches_.clear();
    by_name_.clear();
    stretch_ = found_ = found_count_ = 0;
    batch_ = 64;
    for (const Pushed& p : given)
      if (Status s = add_test(test_, trace_, specs_[static_cast<size_t>(p.column)].field, p.op, p.value); !s) return s;
    if (test_.nothing || test_.low_ns > test_.high_ns) return {};
    if (test_.name_id)
      keep_texts(
          test_.names, trace_.names.size(), [](size_t i) { return static_cast<int64_t>(i); },
          [&](int64_t id) { return id == *test_.name_id; });
    std::vector<size_t> parts;
    if (test_.id) {
      find_one(*test_.id);
    } else {
      for (size_t p = 0; p < trace_.parts.size(); ++p)
        if (wants_part(p)) parts.push_back(p);
      if (mode & kBackwards) std::reverse(parts.begin(), parts.end());
      if (mode & kByName)
        order_by_name(parts, (mode & kBackwards) != 0);
      else
        for (const size_t p : parts) add_lanes(p);
    }
    at_ = stretches_.empty() ? 0 : stretches_[0].begin;
    if (!stretches_.empty()) enter(stretches_[0]);
    fill();
    return {};
  }

  bool at_end() const override { return found_ >= found_count_; }
  void next() override {
    if (++found_ >= found_count_) fill();
  }
  void column(sqlite3_context* out, int column) const override {
    const uint32_t slice = batch_rows_[found_];
    const Field field = specs_[static_cast<size_t>(column)].field;
    const Stretch& s = stretches_[row_stretch_];
    const bool needs_lane = field == Field::kLane || field == Field::kLaneKind || field == Field::kPid ||
                            field == Field::kTid || field == Field::kSelf;
    const size_t lane = s.lane != SIZE_MAX || !needs_lane ? s.lane : data_->lane_of(s.part, slice);
    show_slice(*data_, s.part, lane, slice, field, out);
  }
  int64_t row_id() const override { return slice_id(stretches_[row_stretch_].part, batch_rows_[found_]); }

 private:
  bool wants_part(size_t p) const {
    const Part& part = trace_.parts[p];
    if (!data_->has_part(p) || part.rank < test_.rank_low || part.rank > test_.rank_high) return false;
    if (test_.device && (part.device == kUnknown || part.device != *test_.device)) return false;
    for (const auto& id : {test_.parent, test_.launch, test_.op})  // lie in the same rank
      if (id && static_cast<size_t>(*id >> 32) != p) return false;
    return true;
  }

  bool wants_lane(const Lane& lane) const {
    if (test_.lane && lane.name != *test_.lane) return false;
    if (test_.tid && (lane.tid.empty() || lane.tid != *test_.tid)) return false;
    if (!test_.lane_kind) return true;
    return *test_.lane_kind == (lane.kind == LaneKind::kHostThread     ? "host"
                                : lane.kind == LaneKind::kDeviceStream ? "device"
                                                                       : "other");
  }

  const std::vector<uint32_t>* rows_of(size_t p) const {
    return kernels_ ? &data_->device_rows(p) : data_->chosen_rows(p);
  }

  void find_one(int64_t id) {
    const auto p = static_cast<size_t>(id >> 32), slice = static_cast<size_t>(id & UINT32_MAX);
    if (id < 0 || p >= trace_.parts.size() || slice >= trace_.parts[p].slices.size() || !wants_part(p)) return;
    const std::vector<uint32_t>* rows = rows_of(p);
    size_t place = slice;
    if (rows) {
      const auto found = std::lower_bound(rows->begin(), rows->end(), static_cast<uint32_t>(slice));
      if (found == rows->end() || *found != slice) return;
      place = static_cast<size_t>(found - rows->begin());
    }
    const size_t lane = data_->lane_of(p, slice);
    if (wants_lane(trace_.parts[p].lanes[lane])) stretches_.push_back({p, lane, place, place + 1, rows});
  }

  // The lanes of a part, each as far as the window of time reaches.
  void add_lanes(size_t p) {
    const Part& part = trace_.parts[p];
    const std::vector<uint32_t>* const rows = rows_of(p);
    const bool by_time = !data_->is_mapped() &&
                         (test_.low_ns != INT64_MIN || test_.high_ns != INT64_MAX || test_.end_low_ns != INT64_MIN);
    for (size_t l = 0; l < part.lanes.size(); ++l) {
      const Lane& lane = part.lanes[l];
      if (!wants_lane(lane)) continue;
      Stretch s = {p, l, lane.begin, lane.end, rows};
      if (rows) {
        s.begin = static_cast<size_t>(std::lower_bound(rows->begin(), rows->end(), lane.begin) - rows->begin());
        s.end = static_cast<size_t>(std::lower_bound(rows->begin(), rows->end(), lane.end) - rows->begin());
      }
      if (by_time) narrow_stretch(s);
      if (s.begin < s.end) stretches_.push_back(s);
    }
  }

  void narrow_stretch(Stretch& s) const {
    const Slices& slices = trace_.parts[s.part].slices;
    const int64_t zero = data_->zero_ns(s.part);
    const auto stamp = [&](int64_t ns) {  // of SQL's time; the open ends stay open
      return ns == INT64_MIN || ns == INT64_MAX ? ns : sum_or_limit(ns, zero);
    };
    int64_t low = stamp(test_.low_ns);
    const int64_t high = stamp(test_.high_ns);  // an end says nothing of the start where a duration is negative
    if (test_.end_low_ns != INT64_MIN)
      low = std::max(low, between_ns(data_->bounds(s.part).longest_ns[s.lane], stamp(test_.end_low_ns)));
    const auto start = [&](size_t place) { return slices.start_ns[s.rows ? (*s.rows)[place] : place]; };
    const auto first = [&](const auto& above) {
      size_t at = s.begin;
      for (size_t left = s.end - s.begin; left > 0;) {
        const size_t half = left / 2;
        if (!above(start(at + half))) {
          at += half + 1;
          left -= half + 1;
        } else {
          left = half;
        }
      }
      return at;
    };
    const size_t begin = low == INT64_MIN ? s.begin : first([&](int64_t ns) { return ns >= low; });
    const size_t end = high == INT64_MAX ? s.end : first([&](int64_t ns) { return ns > high; });
    s.begin = begin;
    s.end = std::max(begin, end);
  }
  // Rows of all parts by the text of their names: a permutation of each part, 4 B a row.
  void order_by_name(const std::vector<size_t>& parts, bool backwards) {
    std::vector<StringId> names(trace_.names.size());
    std::iota(names.begin(), names.end(), StringId{0});
    std::erase_if(names, [&](StringId id) { return !test_.names.empty() && !test_.names[id]; });
    std::sort(names.begin(), names.end(), [&](StringId a, StringId b) {
      return backwards ? trace_.names.text(a) > trace_.names.text(b) : trace_.names.text(a) < trace_.names.text(b);
    });
    std::vector<std::vector<uint32_t>> ends(parts.size());
    for (size_t k = 0; k < parts.size(); ++k) {
      const Slices& s = trace_.parts[parts[k]].slices;
      const std::vector<uint32_t>* const rows = rows_of(parts[k]);
      const size_t count = rows ? rows->size() : s.size();
      std::vector<uint32_t>& end = ends[k];
      end.assign(trace_.names.size() + 1, 0);
      const auto slice = [&](size_t i) { return rows ? (*rows)[i] : static_cast<uint32_t>(i); };
      for (size_t i = 0; i < count; ++i) ++end[s.name_id[slice(i)] + 1u];
      std::partial_sum(end.begin(), end.end(), end.begin());
      std::vector<uint32_t>& order = *by_name_.emplace_back(std::make_unique<std::vector<uint32_t>>(count));
      for (size_t i = 0; i < count; ++i) order[end[s.name_id[slice(i)]]++] = slice(i);
    }
    for (const StringId name : names)
      for (size_t k = 0; k < parts.size(); ++k) {
        const uint32_t begin = name == 0 ? 0 : ends[k][name - 1u];  // counting moved each end to where the next begins
        if (begin < ends[k][name]) stretches_.push_back({parts[k], SIZE_MAX, begin, ends[k][name], by_name_[k].get()});
      }
    test_.names.clear();  // looked at already
  }

  // What of a part does not change from row to row.
  void enter(const Stretch& s) {
    const Part& part = trace_.parts[s.part];
    if (test_.any_step()) {
      steps_.assign(part.steps.size() + 1, 0);
      for (size_t i = 0; i < part.steps.size(); ++i)
        steps_[i + 1] = part.steps[i].number >= test_.step_low && part.steps[i].number <= test_.step_high;
    }
    if (test_.stream) {
      streams_.assign(part.streams.size(), 0);
      for (size_t i = 1; i < part.streams.size(); ++i) streams_[i] = part.streams[i] == *test_.stream;
    }
  }

  // The next rows that pass, of one stretch.
  void fill() {
    found_ = found_count_ = 0;
    for (; stretch_ < stretches_.size(); ++stretch_) {
      const Stretch& s = stretches_[stretch_];
      while (at_ < s.end) {
        const size_t count = std::min(batch_, s.end - at_);
        if (batch_ < kLargestBatch) batch_ *= 2;
        if (s.rows) {
          std::copy_n(s.rows->begin() + static_cast<ptrdiff_t>(at_), count, batch_rows_.begin());
        } else {
          std::iota(batch_rows_.begin(), batch_rows_.begin() + static_cast<ptrdiff_t>(count),
                    static_cast<uint32_t>(at_));
        }
        at_ += count;
        found_count_ = passing(s, count);
        if (found_count_ == 0) continue;
        row_stretch_ = stretch_;
        return;
      }
      if (stretch_ + 1 < stretches_.size()) {
        at_ = stretches_[stretch_ + 1].begin;
        if (stretches_[stretch_ + 1].part != s.part) enter(stretches_[stretch_ + 1]);
      }
    }
  }

  // Of the batch's first `count` rows those that pass, moved to its front; a condition at a time.
  size_t passing(const Stretch& stretch, size_t count) {
    const Slices& s = trace_.parts[stretch.part].slices;
    const auto only = [&](const auto& fits) {
      size_t kept = 0;
      for (size_t i = 0; i < count; ++i) {
        const uint32_t slice = batch_rows_[i];
        batch_rows_[kept] = slice;
        kept += fits(slice) ? 1 : 0;
      }
      count = kept;
    };
    const bool facts = !s.category_id.empty();
    if (test_.end_low_ns != INT64_MIN && !stretch.rows && !data_->is_mapped() && count > 0) {
      // A whole block that ended before the window.
      const std::vector<int64_t>& latest = data_->bounds(stretch.part).latest_end_ns;
      const size_t first = batch_rows_[0] / RunData::kBlock, last = batch_rows_[count - 1] / RunData::kBlock;
      const int64_t wanted = sum_or_limit(test_.end_low_ns, data_->zero_ns(stretch.part));
      if (latest[first] < wanted && latest[last] < wanted) return 0;
    }
    if (!test_.names.empty()) only([&](uint32_t i) { return test_.names[s.name_id[i]] != 0; });
    if (!test_.categories.empty()) {
      if (!facts) return 0;
      only([&](uint32_t i) { return test_.categories[s.category_id[i]] != 0; });
    }
    if (test_.classes) {
      if (!facts) return 0;
      only([&](uint32_t i) { return (*test_.classes)[s.kernel_class[i] & 7] && data_->is_device(stretch.part, i); });
    }
    if (test_.any_step()) {
      if (s.step.empty()) return 0;
      only([&](uint32_t i) { return steps_[s.step[i]] != 0; });
    }
    if (test_.stream) {
      if (s.stream_id.empty()) return 0;
      only([&](uint32_t i) { return streams_[s.stream_id[i]] != 0; });
    }
    if (test_.correlation) {
      if (s.correlation.empty() || *test_.correlation < 0 || *test_.correlation >= kNoCorrelation) return 0;
      only([&](uint32_t i) { return s.correlation[i] == *test_.correlation; });
    }
    if (test_.parent) {
      if (s.parent.empty()) return 0;
      only([&](uint32_t i) { return s.parent[i] == static_cast<uint32_t>(*test_.parent); });
    }
    if (test_.op) {
      if (s.parent.empty()) return 0;
      only([&](uint32_t i) {
        return s.parent[i] == static_cast<uint32_t>(*test_.op) && data_->is_device(stretch.part, i);
      });
    }
    if (test_.launch) {
      if (s.partner.empty()) return 0;
      only([&](uint32_t i) {
        return s.partner[i] == static_cast<uint32_t>(*test_.launch) && data_->is_device(stretch.part, i);
      });
    }
    if (test_.dur_low_ns != INT64_MIN || test_.dur_high_ns != INT64_MAX)
      only([&](uint32_t i) { return s.dur_ns[i] >= test_.dur_low_ns && s.dur_ns[i] <= test_.dur_high_ns; });
    if (test_.end_low_ns != INT64_MIN && !data_->is_mapped()) {
      const int64_t wanted = sum_or_limit(test_.end_low_ns, data_->zero_ns(stretch.part));
      only([&](uint32_t i) { return sum_or_limit(s.start_ns[i], s.dur_ns[i]) >= wanted; });
    }
    // By lane, where stretches are no lanes.
    if (stretch.lane == SIZE_MAX && (test_.lane || test_.tid || test_.lane_kind)) {
      only([&](uint32_t i) { return wants_lane(trace_.parts[stretch.part].lanes[data_->lane_of(stretch.part, i)]); });
    }
    return count;
  }

  std::shared_ptr<const RunData> data_;
  const Trace& trace_;
  const std::vector<SliceColumnSpec>& specs_;
  const bool kernels_;
  SliceTest test_;
  std::vector<Stretch> stretches_;
  std::vector<std::unique_ptr<std::vector<uint32_t>>> by_name_;
  std::vector<uint8_t> steps_, streams_;  // of the part: those wanted
  size_t stretch_ = 0, at_ = 0, batch_ = 64;
  size_t found_ = 0, found_count_ = 0, row_stretch_ = 0;
  std::array<uint32_t, kLargestBatch> batch_rows_ = {};
};

class SliceTable : public TableSource {
 public:
  SliceTable(std::shared_ptr<const RunData> data, const char* name, const char* help,
             const std::vector<SliceColumnSpec>& specs, bool kernels)
      : TableSource(name, help), data_(std::move(data)), specs_(specs), kernels_(kernels) {}

  Result<std::vector<SqlColumn>> columns() const override {
    std::vector<SqlColumn> columns;
    for (const SliceColumnSpec& spec : specs_) columns.push_back(spec.column);
    return columns;
  }

  void plan(Plan& plan) const override {
    const double count = static_cast<double>(std::max<size_t>(1, data_->trace().slice_count()));
    double left = kernels_ ? count / 4 : count;  // rows that come out
    double looked_at = left;                     // and that are looked at
    bool one = false;
    for (Wanted& w : plan.wanted) {
      if (!w.usable || w.column < 0) continue;
      const Field field = specs_[static_cast<size_t>(w.column)].field;
      const Push push = push_of(field, w.op, w.binary);
      w.taken = push.taken;
      w.exact = push.taken && push.exact;
      if (!w.taken) continue;
      const double ranks = static_cast<double>(std::max<size_t>(1, data_->trace().parts.size()));
      if (field == Field::kId) {
        one = true;
      } else if (field == Field::kRank) {
        left /= ranks;
        looked_at /= ranks;
      } else if (field == Field::kParent || field == Field::kLaunch || field == Field::kCall || field == Field::kOp) {
        left = std::min(left, 10.0);
        looked_at /= ranks;
      } else if (field == Field::kStart || field == Field::kEnd) {
        left /= 8;
        if (!data_->is_mapped()) looked_at /= 8;
      } else {
        left /= field == Field::kName || field == Field::kNameId ? 100 : 4;
      }
    }
    plan.one_row = one;
    plan.rows = one ? 1 : static_cast<int64_t>(left) + 1;
    plan.cost = one ? 2 : looked_at * 0.1 + left + 10;
    if (plan.order.empty() || one) return;
    const auto& [column, backwards] = plan.order[0];
    if (column < 0 || plan.order.size() > 1) return;
    const Field field = specs_[static_cast<size_t>(column)].field;
    if (field == Field::kName) {
      plan.ordered = true;
      plan.mode = kByName | (backwards ? kBackwards : 0);
      plan.cost = looked_at * 0.3 + left + 10;
    } else if (field == Field::kRank || (field == Field::kId && !backwards)) {
      plan.ordered = field == Field::kId ? true : ranks_ascend();
      plan.mode = backwards ? kBackwards : 0;
    }
  }

  std::unique_ptr<Cursor> open() const override { return std::make_unique<SliceCursor>(data_, specs_, kernels_); }

 private:
  bool ranks_ascend() const {
    const std::vector<Part>& parts = data_->trace().parts;
    return std::is_sorted(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.rank < b.rank; });
  }

  std::shared_ptr<const RunData> data_;
  const std::vector<SliceColumnSpec>& specs_;
  const bool kernels_;
};

}  // namespace

std::shared_ptr<const TableSource> slice_table(std::shared_ptr<const RunData> data) {
  return std::make_shared<SliceTable>(std::move(data), "slices",
                                      "Every slice of every rank: operators, calls, kernels, ranges.",
                                      slice_column_specs(), false);
}

std::shared_ptr<const TableSource> kernel_table(std::shared_ptr<const RunData> data) {
  return std::make_shared<SliceTable>(std::move(data), "kernels",
                                      "The work of devices, with the call and the operator behind it.",
                                      kernel_column_specs(), true);
}

}  // namespace stageline::sql
