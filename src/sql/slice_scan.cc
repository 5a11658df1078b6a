#include "sql/slice_scan.h"

namespace stageline::sql {

SliceScan::SliceScan(std::shared_ptr<const RunData> data, bool kernels)
    : data_(std::move(data)), trace_(&data_->trace()), kernels_(kernels) {}

Status SliceScan::ask(const std::vector<SliceColumnSpec>& columns, const std::vector<Pushed>& given) {
  filter_ = SliceFilter();
  for (const Pushed& p : given) TRY_OK(add_condition(filter_, *trace_, columns[p.column].field, p.op, p.value));
  if (filter_.name_id)
    keep_texts(
        filter_.names, trace_->names.size(), [](size_t i) { return static_cast<int64_t>(i); },
        [&](int64_t id) { return id == *filter_.name_id; });
  return {};
}

void SliceScan::start(int mode) {
  stretches_.clear();
  by_name_.clear();
  stretch_ = found_count_ = row_stretch_ = at_ = 0;
  batch_ = 64;
  if (filter_.nothing || filter_.low_ns > filter_.high_ns) return;
  if (filter_.id) {
    find_one(*filter_.id);
  } else {
    std::vector<size_t> parts;
    for (size_t p = 0; p < trace_->parts.size(); ++p)
      if (wants_part(p)) parts.push_back(p);
    if (mode & kBackwards) std::ranges::reverse(parts);
    if (mode & kByName) order_by_name(parts, (mode & kBackwards) != 0);
    else
      for (const size_t p : parts) add_lanes(p);
  }
  if (stretches_.empty()) return;
  at_ = stretches_[0].begin;
  enter(stretches_[0]);
}

std::vector<SliceScan> SliceScan::pieces(size_t rows) const {
  std::vector<SliceScan> out;
  size_t room = 0;
  for (const Stretch& stretch : stretches_) {
    for (Stretch rest = stretch; rest.begin < rest.end;) {
      if (room == 0) {
        out.push_back(*this);
        out.back().stretches_.clear();
        room = std::max<size_t>(1, rows);
      }
      Stretch one = rest;
      one.end = std::min(rest.end, rest.begin + room);
      rest.begin = one.end;
      room -= one.end - one.begin;
      out.back().stretches_.push_back(one);
    }
  }
  for (SliceScan& piece : out) {
    piece.at_ = piece.stretches_[0].begin;
    piece.enter(piece.stretches_[0]);
  }
  return out;
}

bool SliceScan::wants_part(size_t p) const {
  const Part& part = trace_->parts[p];
  if (!data_->has_part(p) || part.rank < filter_.rank_low || part.rank > filter_.rank_high) return false;
  if (filter_.device && (part.device == kUnknown || part.device != *filter_.device)) return false;
  for (const auto& id : {filter_.parent, filter_.launch, filter_.op})  // these must be in the same rank
    if (id && static_cast<size_t>(*id >> 32) != p) return false;
  return true;
}

bool SliceScan::wants_lane(const Lane& lane) const {
  if (filter_.lane && lane.name != *filter_.lane) return false;
  if (filter_.tid && (lane.tid.empty() || lane.tid != *filter_.tid)) return false;
  if (!filter_.lane_kind) return true;
  return *filter_.lane_kind == (lane.kind == LaneKind::kHostThread     ? "host"
                                : lane.kind == LaneKind::kDeviceStream ? "device"
                                                                       : "other");
}

const std::vector<uint32_t>* SliceScan::rows_of(size_t p) const {
  return kernels_ ? &data_->device_rows(p) : data_->chosen_rows(p);
}

void SliceScan::find_one(int64_t id) {
  const size_t p = id >> 32, slice = id & UINT32_MAX;
  if (id < 0 || p >= trace_->parts.size() || slice >= trace_->parts[p].slices.size() || !wants_part(p)) return;
  const std::vector<uint32_t>* rows = rows_of(p);
  size_t place = slice;
  if (rows) {
    const auto found = std::lower_bound(rows->begin(), rows->end(), static_cast<uint32_t>(slice));
    if (found == rows->end() || *found != slice) return;
    place = found - rows->begin();
  }
  const size_t lane = data_->lane_of(p, slice);
  if (wants_lane(trace_->parts[p].lanes[lane])) stretches_.push_back({p, lane, place, place + 1, rows});
}

// Adds the lanes of a part, each as far as the wanted window of time reaches.
void SliceScan::add_lanes(size_t p) {
  const Part& part = trace_->parts[p];
  const std::vector<uint32_t>* const rows = rows_of(p);
  const bool by_time = !data_->is_mapped() &&
                       (filter_.low_ns != INT64_MIN || filter_.high_ns != INT64_MAX || filter_.end_low_ns != INT64_MIN);
  for (size_t l = 0; l < part.lanes.size(); ++l) {
    const Lane& lane = part.lanes[l];
    if (!wants_lane(lane)) continue;
    Stretch s = {p, l, lane.begin, lane.end, rows};
    if (rows) {
      s.begin = std::lower_bound(rows->begin(), rows->end(), lane.begin) - rows->begin();
      s.end = std::lower_bound(rows->begin(), rows->end(), lane.end) - rows->begin();
    }
    if (by_time) narrow_stretch(s);
    if (s.begin < s.end) stretches_.push_back(s);
  }
}

void SliceScan::narrow_stretch(Stretch& s) const {
  const Slices& slices = trace_->parts[s.part].slices;
  const int64_t zero = data_->zero_ns(s.part);
  const auto stamp = [&](int64_t ns) {  // from SQL's time to a timestamp; open ends stay open
    return ns == INT64_MIN || ns == INT64_MAX ? ns : sum_or_limit(ns, zero);
  };
  int64_t low = stamp(filter_.low_ns);
  const int64_t high = stamp(filter_.high_ns);  // an end says nothing about the start where a duration is negative
  if (filter_.end_low_ns != INT64_MIN)
    low = std::max(low, between_ns(data_->bounds(s.part).longest_ns[s.lane], stamp(filter_.end_low_ns)));
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
// Orders the rows of all parts by the text of their names: one permutation per part, 4 bytes a row.
void SliceScan::order_by_name(const std::vector<size_t>& parts, bool backwards) {
  auto names = indexes<StringId>(trace_->names.size());
  std::erase_if(names, [&](StringId id) { return !filter_.names.empty() && !filter_.names[id]; });
  sort_stably(names, [&](StringId a, StringId b) {
    return backwards ? trace_->names.text(a) > trace_->names.text(b) : trace_->names.text(a) < trace_->names.text(b);
  });
  std::vector<std::vector<uint32_t>> ends(parts.size());
  for (size_t k = 0; k < parts.size(); ++k) {
    const Slices& s = trace_->parts[parts[k]].slices;
    const std::vector<uint32_t>* const rows = rows_of(parts[k]);
    const size_t count = rows ? rows->size() : s.size();
    std::vector<uint32_t>& end = ends[k];
    end.assign(trace_->names.size() + 1, 0);
    const auto slice = [&](size_t i) { return rows ? (*rows)[i] : static_cast<uint32_t>(i); };
    for (size_t i = 0; i < count; ++i) ++end[s.name_id[slice(i)] + 1u];
    std::partial_sum(end.begin(), end.end(), end.begin());
    const auto order_of_part = std::make_shared<std::vector<uint32_t>>(count);
    std::vector<uint32_t>& order = *order_of_part;
    by_name_.push_back(order_of_part);
    for (size_t i = 0; i < count; ++i) order[end[s.name_id[slice(i)]]++] = slice(i);
  }
  for (const StringId name : names)
    for (size_t k = 0; k < parts.size(); ++k) {
      // Counting has moved each end to where the next name begins.
      const uint32_t begin = name == 0 ? 0 : ends[k][name - 1u];
      if (begin < ends[k][name]) stretches_.push_back({parts[k], SIZE_MAX, begin, ends[k][name], by_name_[k].get()});
    }
  filter_.names.clear();  // the order already leaves the others out
}

// Prepares what does not change from row to row within a part.
void SliceScan::enter(const Stretch& s) {
  const Part& part = trace_->parts[s.part];
  if (filter_.any_step()) {
    steps_.assign(part.steps.size() + 1, 0);
    for (size_t i = 0; i < part.steps.size(); ++i)
      steps_[i + 1] = part.steps[i].number >= filter_.step_low && part.steps[i].number <= filter_.step_high;
  }
  if (filter_.stream) {
    streams_.assign(part.streams.size(), 0);
    for (size_t i = 1; i < part.streams.size(); ++i) streams_[i] = part.streams[i] == *filter_.stream;
  }
}

bool SliceScan::fill() {
  found_count_ = 0;
  for (; stretch_ < stretches_.size(); ++stretch_) {
    const Stretch& s = stretches_[stretch_];
    while (at_ < s.end) {
      const size_t count = std::min(batch_, s.end - at_);
      if (batch_ < kMaxBatchRows) batch_ *= 2;
      if (s.rows) std::copy_n(s.rows->begin() + at_, count, batch_rows_.begin());
      else std::iota(batch_rows_.begin(), batch_rows_.begin() + count, static_cast<uint32_t>(at_));
      at_ += count;
      found_count_ = passing(s, count);
      if (found_count_ == 0) continue;
      row_stretch_ = stretch_;
      return true;
    }
    if (stretch_ + 1 < stretches_.size()) {
      at_ = stretches_[stretch_ + 1].begin;
      if (stretches_[stretch_ + 1].part != s.part) enter(stretches_[stretch_ + 1]);
    }
  }
  return false;
}

// Keeps those of the batch's first `count` rows that pass, moved to its front; conditions are applied one at a time.
size_t SliceScan::passing(const Stretch& stretch, size_t count) {
  const Slices& s = trace_->parts[stretch.part].slices;
  // `column`: what the condition needs; where the part lacks it, no row passes.
  const auto only = [&](const auto& column, const auto& fits) {
    if (column.empty()) count = 0;
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
      const uint32_t slice = batch_rows_[i];
      batch_rows_[kept] = slice;
      kept += fits(slice) ? 1 : 0;
    }
    count = kept;
  };
  const auto on_device = [&](uint32_t i) { return data_->is_device(stretch.part, i); };
  if (filter_.end_low_ns != INT64_MIN && !stretch.rows && !data_->is_mapped() && count > 0) {
    // The whole block ended before the window.
    const std::vector<int64_t>& latest = data_->bounds(stretch.part).latest_end_ns;
    const size_t first = batch_rows_[0] / RunData::kBlock, last = batch_rows_[count - 1] / RunData::kBlock;
    const int64_t wanted = sum_or_limit(filter_.end_low_ns, data_->zero_ns(stretch.part));
    if (latest[first] < wanted && latest[last] < wanted) return 0;
  }
  if (!filter_.names.empty()) only(s.name_id, [&](uint32_t i) { return filter_.names[s.name_id[i]] != 0; });
  if (!filter_.categories.empty())
    only(s.category_id, [&](uint32_t i) { return filter_.categories[s.category_id[i]] != 0; });
  if (filter_.classes)
    only(s.category_id,
         [&](uint32_t i) { return (*filter_.classes)[static_cast<size_t>(s.class_of(i))] && on_device(i); });
  if (filter_.any_step()) only(s.step, [&](uint32_t i) { return steps_[s.step[i]] != 0; });
  if (filter_.stream) only(s.stream_id, [&](uint32_t i) { return streams_[s.stream_id[i]] != 0; });
  if (filter_.correlation) {
    if (*filter_.correlation < 0 || *filter_.correlation >= kNoCorrelation) return 0;
    only(s.correlation, [&](uint32_t i) { return s.correlation[i] == *filter_.correlation; });
  }
  if (filter_.parent) only(s.parent, [&](uint32_t i) { return s.parent[i] == static_cast<uint32_t>(*filter_.parent); });
  if (filter_.op)
    only(s.parent, [&](uint32_t i) { return s.parent[i] == static_cast<uint32_t>(*filter_.op) && on_device(i); });
  if (filter_.launch)
    only(s.partner, [&](uint32_t i) { return s.partner[i] == static_cast<uint32_t>(*filter_.launch) && on_device(i); });
  if (filter_.dur_low_ns != INT64_MIN || filter_.dur_high_ns != INT64_MAX)
    only(s.dur_ns, [&](uint32_t i) { return s.dur_ns[i] >= filter_.dur_low_ns && s.dur_ns[i] <= filter_.dur_high_ns; });
  if (filter_.end_low_ns != INT64_MIN && !data_->is_mapped()) {
    const int64_t wanted = sum_or_limit(filter_.end_low_ns, data_->zero_ns(stretch.part));
    only(s.dur_ns, [&](uint32_t i) { return sum_or_limit(s.start_ns[i], s.dur_ns[i]) >= wanted; });
  }
  // Tests the lane here where stretches are not lanes.
  if (stretch.lane == SIZE_MAX && (filter_.lane || filter_.tid || filter_.lane_kind))
    only(s.dur_ns,
         [&](uint32_t i) { return wants_lane(trace_->parts[stretch.part].lanes[data_->lane_of(stretch.part, i)]); });
  return count;
}

}  // namespace stageline::sql
