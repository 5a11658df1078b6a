// The events of one rank with their arguments as a Frame: texts and JSON values are codes into dictionaries.
#include <algorithm>

#include "frame.h"
#include "profile/event_text.h"
#include "profile/torch_rows.h"

namespace stageline::python {
namespace {

class EventFrame : public Frame {
 public:
  EventFrame(std::shared_ptr<const OpenRun> run, size_t part, EventArguments events)
      : Frame("events", "Events"), run_(std::move(run)), part_(part), events_(std::move(events)) {
    columns_ = {{"index", "index", "integer", "", "Position in traceEvents.", Form::kUint32},
                {"cat", "category", "text", "", "Category as the file spells it.", Form::kCode32},
                {"name", "name", "text", "", "Name as the file spells it.", Form::kCode32},
                {"ts", "start", "real", "µs", "Start as in the file.", Form::kFloat64},
                {"dur", "duration", "real", "µs", "Duration as in the file.", Form::kFloat64}};
    fixed_ = columns_.size();
    json_ = {&events_.pid, &events_.tid};
    for (const ArgumentColumn& one : events_.arguments) json_.push_back(&one);
    for (size_t c = 0; c < json_.size(); ++c)
      columns_.push_back({c == 0   ? "pid"
                          : c == 1 ? "tid"
                                   : json_[c]->name,
                          "", "text", "", "The value as JSON.", Form::kCode32});
  }
  int64_t row_count() const override { return std::ssize(events_.slices); }
  size_t batch_count() const override { return events_.slices.empty() ? 0 : 1; }
  int64_t batch_rows(size_t) const override { return row_count(); }

  FrameData data(size_t, size_t column) const override {
    const Part& part = run_->trace.parts[part_];
    const Slices& s = part.slices;
    switch (column) {
      case 0: return made<uint32_t>([&](uint32_t i) { return s.file_index[i]; });
      case 1: return made<uint32_t>([&](uint32_t i) { return s.category_id[i]; });
      case 2: return made<uint32_t>([&](uint32_t i) { return s.name_id[i]; });
      case 3: return made<double>([&](uint32_t i) { return hta_raw_us(s.start_ns[i] - part.base_time_ns); });
      case 4: return made<double>([&](uint32_t i) { return hta_raw_us(s.dur_ns[i]); });
      default: return codes(json_[column - fixed_]->codes);
    }
  }

  std::shared_ptr<const Texts> dictionary(size_t column) const override {
    const Trace& trace = run_->trace;
    if (column != 1 && column != 2 && column < fixed_) return nullptr;
    auto texts = std::make_shared<Texts>();
    if (column == 1)
      for (const CategoryInfo& category : trace.categories) texts->add(category.text);
    else if (column == 2)
      for (StringId id = 0; id < trace.names.size(); ++id) texts->add(trace.names.text(id));
    else
      for (const std::string& value : json_[column - fixed_]->values) texts->add(value);
    return texts;
  }

 private:
  template <class Value, class Of> FrameData made(const Of& of) const {
    auto values = std::make_shared<std::vector<Value>>();
    values->reserve(events_.slices.size());
    for (const uint32_t slice : events_.slices) values->push_back(of(slice));
    FrameData out;
    out.values = values->data();
    out.owner = values;
    return out;
  }

  FrameData codes(const std::vector<int32_t>& given) const {
    FrameData out;
    out.values = given.data();
    out.nulls = std::ranges::count(given, -1);
    if (out.nulls == 0) return out;
    std::vector<uint8_t> bits((given.size() + 7) / 8, 0);
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i] >= 0) bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | 1u << (i % 8));
    out.valid = std::make_shared<const std::vector<uint8_t>>(std::move(bits));
    return out;
  }

  std::shared_ptr<const OpenRun> run_;
  size_t part_, fixed_ = 0;
  EventArguments events_;
  std::vector<const ArgumentColumn*> json_;
};

}  // namespace

Result<EventRows> event_rows(std::shared_ptr<const OpenRun> run, int32_t rank, const std::vector<std::string>& names) {
  const std::vector<Part>& parts = run->trace.parts;
  const auto part = std::ranges::find(parts, rank, &Part::rank);
  if (part == parts.end()) return Error{ErrorCode::kUsage, "the run has no rank " + std::to_string(rank), {}, ""};
  const auto place = static_cast<size_t>(part - parts.begin());
  TRY(events, event_arguments(run->trace, place, names));
  EventRows out{nullptr, part->fractional_time, events->all_starts, events->whole_durations && !part->fractional_time};
  out.frame = std::make_shared<const EventFrame>(std::move(run), place, std::move(*events));
  return out;
}

}  // namespace stageline::python
