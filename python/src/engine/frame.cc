#include "frame.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>

#include "base/text.h"

namespace stageline::python {

void Texts::add(std::string_view text) {
  bytes += valid_utf8(std::string(text));
  offsets.push_back(static_cast<int32_t>(bytes.size()));
}

namespace {

// The columns of `all` that are asked for by name, in that order; none asked: all.
Result<std::vector<size_t>> chosen(const std::vector<FrameColumn>& all, const std::vector<std::string>& names,
                                   const char* table) {
  std::vector<size_t> out;
  std::vector<std::string> known;
  for (const FrameColumn& column : all) known.push_back(column.name);
  for (size_t c = 0; c < all.size() && names.empty(); ++c) out.push_back(c);
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      const std::string near = nearest(name, known);
      std::string list;
      for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
      return Error{ErrorCode::kUsage,
                   std::string(table) + " have no column \"" + name + "\"",
                   {},
                   near.empty() ? "there are " + list : "did you mean " + near + "?"};
    }
    out.push_back(static_cast<size_t>(found - known.begin()));
  }
  return out;
}

template <class T> FrameData owned(std::vector<T> values) {
  auto shared = std::make_shared<const std::vector<T>>(std::move(values));
  FrameData data;
  data.values = shared->data();
  data.owner = shared;
  return data;
}

// `valid(i)` for `count` rows as a bitmap, or none where all are.
template <class Valid> void mark_nulls(FrameData& data, size_t count, const Valid& valid) {
  std::vector<uint8_t> bits((count + 7) / 8, 0);
  int64_t nulls = 0;
  for (size_t i = 0; i < count; ++i)
    if (valid(i)) bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | 1u << (i % 8));
    else ++nulls;
  if (nulls == 0) return;
  data.nulls = nulls;
  data.valid = std::make_shared<const std::vector<uint8_t>>(std::move(bits));
}

FrameData nullable(std::vector<int64_t> values) {
  FrameData data = owned(std::move(values));
  const auto* v = static_cast<const int64_t*>(data.values);
  mark_nulls(data, static_cast<const std::vector<int64_t>*>(data.owner.get())->size(),
             [&](size_t i) { return v[i] != kNullInteger; });
  return data;
}

FrameData all_null(size_t count) { return nullable(std::vector<int64_t>(count, kNullInteger)); }

class TableFrame : public Frame {
 public:
  explicit TableFrame(std::shared_ptr<const Table> table)
      : Frame(table->name(), table->title()), table_(std::move(table)) {
    for (size_t c = 0; c < table_->columns().size(); ++c) {
      const ColumnSpec& spec = table_->columns()[c];
      const size_t storage = table_->column(c).index();
      columns_.push_back({spec.name, spec.title, std::string(column_type_name(spec.type)),
                          std::string(raw_unit(spec.type)), spec.help,
                          storage == 0   ? Form::kInt64
                          : storage == 1 ? Form::kFloat64
                                         : Form::kUtf8});
    }
  }
  int64_t row_count() const override { return static_cast<int64_t>(table_->row_count()); }
  size_t batch_count() const override { return table_->row_count() == 0 ? 0 : 1; }
  int64_t batch_rows(size_t) const override { return row_count(); }
  const Table* table() const override { return table_.get(); }

  FrameData data(size_t, size_t column) const override {
    const size_t rows = table_->row_count();
    FrameData out;
    out.owner = table_;
    if (const auto* texts = std::get_if<2>(&table_->column(column))) {
      auto joined = std::make_shared<Texts>();
      for (const std::string& text : *texts) joined->add(text);
      out.values = joined->offsets.data();
      out.bytes = joined->bytes.data();
      out.owner = joined;
      return out;
    }
    if (const auto* integers = std::get_if<0>(&table_->column(column))) out.values = integers->data();
    else out.values = std::get<1>(table_->column(column)).data();
    mark_nulls(out, rows, [&](size_t i) { return !table_->is_null(i, column); });
    return out;
  }

 private:
  std::shared_ptr<const Table> table_;
};

// Where the rows of a batch come from: rows [begin, end) of `rows`, or of the whole part.
struct SliceBatch {
  size_t part = 0, begin = 0, end = 0;
  std::shared_ptr<const std::vector<uint32_t>> rows;  // null: all slices of the part
  size_t size() const { return end - begin; }
  size_t at(size_t i) const { return rows ? (*rows)[begin + i] : begin + i; }
};

enum class SliceField : uint8_t {
  kId,
  kRank,
  kName,
  kCategory,
  kClass,
  kStart,
  kDur,
  kLane,
  kStream,
  kStep,
  kParent,
  kLaunch,
  kCorrelation,
  kFileIndex
};

const std::vector<FrameColumn>& slice_columns() {
  static const std::vector<FrameColumn> columns = {
      {"id", "id", "integer", "",
       "Id of the slice in this run: 2³² × the rank's place among those read + the slice's place within its rank.",
       Form::kInt64},
      {"rank", "rank", "integer", "", "Global rank.", Form::kInt32},
      {"name", "name", "text", "", "Name, as the source writes it.", Form::kCode32},
      {"category", "category", "text", "", "Category, as the source spells it; null where the source gives none.",
       Form::kCode8},
      {"class", "class", "text", "",
       "Class of device work: COMPUTATION, COMMUNICATION, MEMORY or OTHER; null for what ran on no device.",
       Form::kCode8},
      {"start_ns", "start", "time", "ns",
       "Start on the run's common clock where clocks were aligned, else as recorded.", Form::kInt64},
      {"dur_ns", "duration", "duration", "ns", "Duration, measured on the rank's own clock.", Form::kInt64},
      {"lane", "lane", "text", "", "Name of the thread or stream.", Form::kCode32},
      {"stream", "stream", "integer", "", "Number of the stream, as the event says; null where it names none.",
       Form::kInt64},
      {"step", "step", "integer", "", "Number of the profiler's step that holds it; null outside of every step.",
       Form::kInt64},
      {"parent_id", "parent", "integer", "",
       "Id of the slice that encloses it; for device work, id of the operator that owns it.", Form::kInt64},
      {"launch_id", "launch", "integer", "", "Id of the call that launched it; null for what ran on no device.",
       Form::kInt64},
      {"correlation", "correlation", "integer", "",
       "Correlation number, which a launch and the work it launched share.", Form::kInt64},
      {"file_index", "place in file", "integer", "", "Place of the slice in the source's own order, from 0.",
       Form::kUint32}};
  return columns;
}

class SliceFrame : public Frame {
 public:
  SliceFrame(std::shared_ptr<const OpenRun> run, const SliceCondition& where, const std::vector<size_t>& columns,
             size_t batch_rows)
      : Frame("slices", "Slices"), run_(std::move(run)) {
    for (const size_t c : columns) {
      columns_.push_back(slice_columns()[c]);
      fields_.push_back(static_cast<SliceField>(c));
    }
    const Trace& trace = run_->trace;
    const bool all =
        where.kind == SliceCondition::Kind::kAll && trace.slice_filter.ranks.empty() && !trace.slice_filter.any();
    for (size_t p = 0; p < trace.parts.size(); ++p) {
      SliceBatch batch;
      batch.part = p;
      size_t count = trace.parts[p].slices.size();
      if (!all) {
        batch.rows = std::make_shared<const std::vector<uint32_t>>(select_slices(trace, p, where));
        count = batch.rows->size();
      }
      for (size_t begin = 0; begin < count; begin += batch_rows) {
        batch.begin = begin;
        batch.end = std::min(count, begin + batch_rows);
        batches_.push_back(batch);
        longest_ = std::max(longest_, batch.size());
      }
      rows_ += static_cast<int64_t>(count);
    }
  }

  // One slice.
  SliceFrame(std::shared_ptr<const OpenRun> run, size_t part, uint32_t slice, const std::vector<size_t>& columns)
      : Frame("slices", "Slices"), run_(std::move(run)), longest_(1), rows_(1) {
    for (const size_t c : columns) {
      columns_.push_back(slice_columns()[c]);
      fields_.push_back(static_cast<SliceField>(c));
    }
    batches_.push_back({part, 0, 1, std::make_shared<const std::vector<uint32_t>>(1, slice)});
  }

  int64_t row_count() const override { return rows_; }
  size_t batch_count() const override { return batches_.size(); }
  int64_t batch_rows(size_t batch) const override { return static_cast<int64_t>(batches_[batch].size()); }

  FrameData data(size_t batch, size_t column) const override {
    const SliceBatch& b = batches_[batch];
    const Part& part = run_->trace.parts[b.part];
    const Slices& s = part.slices;
    const auto id_of = [&](uint32_t slice) {
      return slice == kNoSliceIndex ? kNullInteger : static_cast<int64_t>(b.part << 32 | slice);
    };
    switch (fields_[column]) {
      case SliceField::kId: return made<int64_t>(b, [&](size_t i) { return id_of(static_cast<uint32_t>(i)); });
      case SliceField::kRank: return rank_of(part.rank);
      case SliceField::kName: return of_column(b, s.name_id);
      case SliceField::kDur: return of_column(b, s.dur_ns);
      case SliceField::kFileIndex: return of_column(b, s.file_index);
      case SliceField::kStart: return starts(b);
      case SliceField::kCategory: {
        if (s.category_id.empty()) return null_codes(b.size());
        return of_column(b, s.category_id);
      }
      case SliceField::kClass: {
        if (s.kernel_class.empty()) return null_codes(b.size());
        FrameData data = made<uint8_t>(b, [&](size_t i) { return static_cast<uint8_t>(s.class_of(i)); });
        mark_nulls(data, b.size(), [&](size_t i) { return s.class_of(b.at(i)) != KernelClass::kNone; });
        return data;
      }
      case SliceField::kLane: return lanes(b);
      case SliceField::kStream:
        if (s.stream_id.empty()) return all_null(b.size());
        return known(b, [&](size_t i) { return s.stream_id[i] == 0 ? kNullInteger : part.streams[s.stream_id[i]]; });
      case SliceField::kStep:
        if (s.step.empty()) return all_null(b.size());
        return known(b, [&](size_t i) { return s.step[i] == 0 ? kNullInteger : part.steps[s.step[i] - 1u].number; });
      case SliceField::kParent:
        if (s.parent.empty()) return all_null(b.size());
        return known(b, [&](size_t i) { return id_of(s.parent[i]); });
      case SliceField::kLaunch:
        if (s.partner.empty()) return all_null(b.size());
        return known(b, [&](size_t i) {
          const bool work = is_device_work(run_->trace.categories[s.category_id[i]].kind);
          return work ? id_of(s.partner[i]) : kNullInteger;
        });
      case SliceField::kCorrelation:
        if (s.correlation.empty()) return all_null(b.size());
        return known(b, [&](size_t i) {
          return s.correlation[i] == kNoCorrelation ? kNullInteger : static_cast<int64_t>(s.correlation[i]);
        });
    }
    return {};
  }

  std::shared_ptr<const Texts> dictionary(size_t column) const override {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const Texts>& known = texts_[static_cast<size_t>(fields_[column])];
    if (known) return known;
    auto texts = std::make_shared<Texts>();
    const Trace& trace = run_->trace;
    switch (fields_[column]) {
      case SliceField::kName:
        for (StringId id = 0; id < trace.names.size(); ++id) texts->add(trace.names.text(id));
        break;
      case SliceField::kCategory:
        for (const CategoryInfo& category : trace.categories) texts->add(category.text);
        break;
      case SliceField::kClass:
        for (int c = 0; c <= static_cast<int>(KernelClass::kOther); ++c)
          texts->add(kernel_class_name(static_cast<KernelClass>(c)));
        break;
      case SliceField::kLane:
        for (const Part& part : trace.parts)
          for (const Lane& lane : part.lanes) texts->add(lane.name);
        break;
      default: return nullptr;
    }
    return known = texts;
  }

 private:
  template <class T, class Value> static FrameData made(const SliceBatch& b, const Value& value) {
    std::vector<T> out(b.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = value(b.at(i));
    return owned(std::move(out));
  }
  template <class Value> static FrameData known(const SliceBatch& b, const Value& value) {
    std::vector<int64_t> out(b.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = value(b.at(i));
    return nullable(std::move(out));
  }
  static FrameData null_codes(size_t count) {
    FrameData data = owned(std::vector<uint8_t>(count, 0));
    mark_nulls(data, count, [](size_t) { return false; });
    return data;
  }
  // A column that stands: handed out as it is, or gathered where rows were chosen.
  template <class T> FrameData of_column(const SliceBatch& b, const std::vector<T>& column) const {
    if (b.rows) return made<T>(b, [&](size_t i) { return column[i]; });
    FrameData data;
    data.values = column.data() + b.begin;
    data.owner = run_;
    return data;
  }
  FrameData starts(const SliceBatch& b) const {
    const Trace& trace = run_->trace;
    const auto& column = trace.parts[b.part].slices.start_ns;
    if (trace.alignment != AlignState::kMapped) return of_column(b, column);
    return made<int64_t>(b, [&](size_t i) { return trace.common_ns(static_cast<int32_t>(b.part), column[i]); });
  }
  // One number for all rows of a rank: its batches share the longest one's.
  FrameData rank_of(int32_t rank) const {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const std::vector<int32_t>>& column = ranks_[rank];
    if (!column) column = std::make_shared<const std::vector<int32_t>>(longest_, rank);
    FrameData data;
    data.values = column->data();
    data.owner = column;
    return data;
  }
  FrameData lanes(const SliceBatch& b) const {
    const Trace& trace = run_->trace;
    uint32_t first = 0;
    for (size_t p = 0; p < b.part; ++p) first += static_cast<uint32_t>(trace.parts[p].lanes.size());
    const std::vector<Lane>& lanes = trace.parts[b.part].lanes;
    size_t lane = 0;
    return made<uint32_t>(b, [&](size_t i) {  // rows ascend
      while (lane + 1 < lanes.size() && i >= lanes[lane].end) ++lane;
      return first + static_cast<uint32_t>(lane);
    });
  }

  std::shared_ptr<const OpenRun> run_;
  std::vector<SliceField> fields_;
  std::vector<SliceBatch> batches_;
  size_t longest_ = 0;
  int64_t rows_ = 0;
  mutable std::mutex mutex_;
  mutable std::map<size_t, std::shared_ptr<const Texts>> texts_;
  mutable std::map<int32_t, std::shared_ptr<const std::vector<int32_t>>> ranks_;
};

const std::vector<FrameColumn>& cell_columns() {
  static const std::vector<FrameColumn> columns = {
      {"id", "id", "integer", "", "Number of the cell in this run, from 0.", Form::kInt64},
      {"step", "step", "integer", "", "Training step; null when the source does not say.", Form::kInt64},
      {"rank", "rank", "integer", "", "Global rank.", Form::kInt64},
      {"stage", "stage", "integer", "", "Pipeline stage of the rank.", Form::kInt64},
      {"dp", "dp", "integer", "", "Data-parallel index of the rank.", Form::kInt64},
      {"kind", "kind", "text", "", "F, B, I, W, F&B, SF, RF, SB, RB, C, O or other; see docs/model.md.", Form::kCode8},
      {"chunk", "chunk", "integer", "", "Model chunk (virtual stage) within the rank.", Form::kInt64},
      {"micro_batch", "micro-batch", "integer", "", "Micro-batch index within the step.", Form::kInt64},
      {"start_ns", "start", "time", "ns",
       "Start on the run's common clock where clocks were aligned, else as recorded.", Form::kInt64},
      {"dur_ns", "duration", "duration", "ns", "Duration, measured on the rank's own clock.", Form::kInt64},
      {"name", "name", "text", "", "Of the source slice; null when the cell has none.", Form::kCode32},
      {"slice_id", "slice", "integer", "", "Id of the source slice.", Form::kInt64}};
  return columns;
}

class CellFrame : public Frame {
 public:
  CellFrame(std::shared_ptr<const OpenRun> run, std::vector<size_t> columns)
      : Frame("cells", "Cells"), run_(std::move(run)), fields_(std::move(columns)) {
    for (const size_t c : fields_) columns_.push_back(cell_columns()[c]);
  }
  int64_t row_count() const override { return static_cast<int64_t>(run_->trace.cells.size()); }
  size_t batch_count() const override { return run_->trace.cells.size() == 0 ? 0 : 1; }
  int64_t batch_rows(size_t) const override { return row_count(); }

  FrameData data(size_t, size_t column) const override {
    const Trace& trace = run_->trace;
    const Cells& cells = trace.cells;
    const auto part = [&](size_t i) -> const Part& { return trace.parts[static_cast<size_t>(cells.part[i])]; };
    const auto numbers = [&](const std::function<int64_t(size_t)>& value) {
      std::vector<int64_t> out(cells.size());
      for (size_t i = 0; i < out.size(); ++i) out[i] = value(i);
      return nullable(std::move(out));
    };
    switch (fields_[column]) {
      case 0: return numbers([](size_t i) { return static_cast<int64_t>(i); });
      case 1: return numbers([&](size_t i) { return known_integer(cells.step[i]); });
      case 2: return numbers([&](size_t i) { return int64_t{part(i).rank}; });
      case 3: return numbers([&](size_t i) { return known_integer(part(i).stage); });
      case 4: return numbers([&](size_t i) { return known_integer(part(i).dp); });
      case 5: {
        std::vector<uint8_t> codes(cells.size());
        for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(cells.kind[i]);
        return owned(std::move(codes));
      }
      case 6: return numbers([&](size_t i) { return known_integer(cells.chunk[i]); });
      case 7: return numbers([&](size_t i) { return known_integer(cells.micro_batch[i]); });
      case 8: return numbers([&](size_t i) { return trace.common_ns(cells.part[i], cells.start_ns[i]); });
      case 9: return numbers([&](size_t i) { return cells.dur_ns(i); });
      case 10: {
        std::vector<uint32_t> codes(cells.size(), 0);
        for (size_t i = 0; i < codes.size(); ++i)
          if (cells.slice[i] != kNoSlice) codes[i] = part(i).slices.name_id[cells.slice[i]];
        FrameData data = owned(std::move(codes));
        mark_nulls(data, cells.size(), [&](size_t i) { return cells.slice[i] != kNoSlice; });
        return data;
      }
      default:
        return numbers([&](size_t i) {
          return cells.slice[i] == kNoSlice ? kNullInteger : int64_t{cells.part[i]} << 32 | int64_t{cells.slice[i]};
        });
    }
  }

  std::shared_ptr<const Texts> dictionary(size_t column) const override {
    const Trace& trace = run_->trace;
    auto texts = std::make_shared<Texts>();
    if (fields_[column] == 5)
      for (size_t k = 0; k < kCellKindCount; ++k) texts->add(kind_code(static_cast<CellKind>(k)));
    else if (fields_[column] == 10)
      for (StringId id = 0; id < trace.names.size(); ++id) texts->add(trace.names.text(id));
    else return nullptr;
    return texts;
  }

 private:
  std::shared_ptr<const OpenRun> run_;
  std::vector<size_t> fields_;
};

}  // namespace

std::shared_ptr<const Frame> table_frame(std::shared_ptr<const Table> table) {
  return std::make_shared<const TableFrame>(std::move(table));
}

Result<std::shared_ptr<const Frame>> slice_frame(std::shared_ptr<const OpenRun> run, const SliceCondition& where,
                                                 const std::vector<std::string>& columns, int64_t batch_rows) {
  if (batch_rows < 1) return Error{ErrorCode::kUsage, "batch_rows is at least 1", {}, ""};
  Result<std::vector<size_t>> asked = chosen(slice_columns(), columns, "slices");
  if (!asked) return std::move(asked).error();
  if (Status s = check_condition(where); !s) return std::move(s).error();
  return std::shared_ptr<const Frame>(
      std::make_shared<const SliceFrame>(std::move(run), where, *asked, static_cast<size_t>(batch_rows)));
}

Result<std::shared_ptr<const Frame>> one_slice_frame(std::shared_ptr<const OpenRun> run, uint64_t id,
                                                     const std::vector<std::string>& columns) {
  const uint64_t part = id >> 32;
  const auto slice = static_cast<uint32_t>(id);
  if (part >= run->trace.parts.size() || slice >= run->trace.parts[part].slices.size())
    return Error{ErrorCode::kUsage,
                 "the run has no slice " + std::to_string(static_cast<int64_t>(id)),
                 {},
                 "slices() lists them in its column id"};
  Result<std::vector<size_t>> asked = chosen(slice_columns(), columns, "slices");
  if (!asked) return std::move(asked).error();
  return std::shared_ptr<const Frame>(std::make_shared<const SliceFrame>(std::move(run), part, slice, *asked));
}

Result<std::shared_ptr<const Frame>> cell_frame(std::shared_ptr<const OpenRun> run,
                                                const std::vector<std::string>& columns) {
  Result<std::vector<size_t>> asked = chosen(cell_columns(), columns, "cells");
  if (!asked) return std::move(asked).error();
  return std::shared_ptr<const Frame>(std::make_shared<const CellFrame>(std::move(run), *asked));
}

}  // namespace stageline::python
