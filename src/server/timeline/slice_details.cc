#include "base/json_members.h"
#include "profile/event_text.h"
#include "server/timeline/lane_walk.h"
#include "server/timeline/slice_window.h"

namespace stageline {
namespace {

constexpr size_t kMaxArguments = 500, kMaxArgumentBytes = 20'000, kMaxFrames = 200, kMaxLinks = 200;

std::string cut(std::string_view text) {
  if (text.size() <= kMaxArgumentBytes) return valid_utf8(text);
  return valid_utf8(text.substr(0, kMaxArgumentBytes)) + "…";
}

class Details {
 public:
  Details(const Timeline& timeline, SlicePlace place)
      : timeline_(timeline), trace_(timeline.trace()), place_(place), lane_(timeline.lanes()[place.lane]),
        part_(trace_.parts[lane_.part]) {
    if (const uint32_t cell = lane_.cell_of(place.slice); cell != kNoSlice) {
      cell_ = cell;
      slice_ = trace_.cells.slice[cell];
    } else {
      slice_ = static_cast<uint32_t>(lane_.first + place.slice);
    }
  }

  std::string json() {
    json_.begin_object();
    write_identity();
    write_neighbours();
    write_stack();
    write_links();
    write_arguments();
    json_.end_object();
    return json_.take();
  }

 private:
  bool has_facts() const { return slice_ != kNoSlice && part_.slices.has_facts() && slice_ < part_.slices.size(); }

  void write_identity() {
    const size_t i = place_.slice;
    json_.field("lane", int64_t{place_.lane}).field("slice", int64_t{place_.slice});
    json_.field("lane_name", valid_utf8(lane_.name)).field("lane_type", lane_type_name(lane_.type));
    json_.field("name_id", int64_t{lane_.names[i]}).field("name", cut(timeline_.names().text(lane_.names[i])));
    json_.field("kind", int64_t{lane_.kind(i)});
    if (has_facts()) json_.field("category", valid_utf8(trace_.categories[part_.slices.category_id[slice_]].text));
    json_.field("start_ns", lane_.start(i)).field("dur_ns", lane_.dur(i)).field("end_ns", lane_.end(i));
    json_.field("self_ns", self_ns(lane_, i)).field("stamp_ns", std::to_string(lane_.starts[i]));
    json_.field("rank", int64_t{part_.rank}).field("machine", int64_t{part_.machine});
    json_.field("machine_name", valid_utf8(part_.machine_name)).field("device", int64_t{part_.device});
    json_.field("stage", int64_t{part_.stage}).field("dp", int64_t{part_.dp});
    int64_t step = -1;
    int32_t micro_batch = -1, chunk = -1;
    if (cell_ != kNoSlice) {
      const Cell cell = trace_.cells.at(cell_);
      step = cell.step;
      micro_batch = cell.micro_batch;
      chunk = cell.chunk;
      json_.field("label", cell_label(cell, timeline_.chunk_count() > 1));
    } else if (has_facts()) {
      const uint16_t number = part_.slices.step.empty() ? uint16_t{0} : part_.slices.step[slice_];
      if (number > 0 && number <= part_.steps.size()) step = part_.steps[number - 1u].number;
      if (const RangeFact* range = fact_of(part_.ranges, slice_)) {
        micro_batch = range->micro_batch;
        chunk = range->chunk;
      }
    }
    json_.field("step", step).field("micro_batch", int64_t{micro_batch}).field("chunk", int64_t{chunk});
  }

  void reference(const char* key, SlicePlace place) {
    json_.key(key);
    place ? write_slice_reference(json_, timeline_, place) : void(json_.null());
  }

  void write_neighbours() {
    SlicePlace before, after, around;
    if (const PlaceInRow at = row_place(lane_, place_.slice)) {
      const ViewRow& row = lane_.rows[at.row];
      json_.field("row", at.row);
      const auto neighbour = [&](size_t position) {
        return SlicePlace{place_.lane, static_cast<uint32_t>(row.slice_at(position))};
      };
      if (at.position > 0) before = neighbour(at.position - 1);
      if (at.position + 1 < row.count) after = neighbour(at.position + 1);
      if (const size_t above = enclosing_slice(lane_, at); above != SIZE_MAX)
        around = {place_.lane, static_cast<uint32_t>(above)};
    }
    reference("previous", before);
    reference("next", after);
    reference("parent", around);
    SlicePlace owner, source;
    if (cell_ != kNoSlice && slice_ != kNoSlice) source = timeline_.place_of_slice(lane_.part, slice_);
    if (has_facts() && cell_ == kNoSlice && lane_.type == ViewLaneType::kStream && !part_.slices.parent.empty() &&
        part_.slices.parent[slice_] != kNoSliceIndex)
      owner = timeline_.place_of_slice(lane_.part, part_.slices.parent[slice_]);
    reference("owner", owner);
    reference("source", source);
  }

  // Writes the frames that were recorded with the slice; otherwise the slices around it (for device work, around its
  // owner), the innermost first.
  void write_stack() {
    json_.key("stack").begin_array();
    const StackFact* fact = has_facts() ? fact_of(part_.stacks, slice_) : nullptr;
    if (fact) {
      size_t left = kMaxFrames;
      for (const std::string_view frame : split(trace_.names.text(fact->stack), ';'))
        if (left-- > 0) json_.value(cut(trim(frame)));
    } else if (has_facts() && cell_ == kNoSlice) {
      const std::vector<uint32_t>& parent = part_.slices.parent;
      uint32_t at = slice_;
      for (size_t k = 0; k < kMaxFrames && at < parent.size() && parent[at] != kNoSliceIndex; ++k) {
        at = parent[at];
        json_.value(short_name(trace_.names.text(part_.slices.name_id[at])));
      }
    }
    json_.end_array();
  }

  void link(FlowType type, bool out, SlicePlace other) {
    if (!other || links_++ >= kMaxLinks) return;
    json_.begin_object().field("type", flow_type_name(type)).field("direction", out ? "out" : "in");
    json_.field("rank", int64_t{trace_.parts[timeline_.lanes()[other.lane].part].rank}).key("slice");
    write_slice_reference(json_, timeline_, other);
    json_.end_object();
  }

  void write_links() {
    json_.key("links").begin_array();
    if (cell_ != kNoSlice) {
      for (const Link& one : trace_.links) {
        if (one.from_cell == cell_) link(FlowType::kMessage, true, timeline_.place_of_cell(one.to_cell));
        if (one.to_cell == cell_) link(FlowType::kMessage, false, timeline_.place_of_cell(one.from_cell));
      }
    } else if (has_facts()) {
      const Slices& s = part_.slices;
      const bool on_device = lane_.type == ViewLaneType::kStream;
      if (!s.partner.empty() && s.partner[slice_] != kNoSliceIndex)
        link(FlowType::kLaunch, !on_device, timeline_.place_of_slice(lane_.part, s.partner[slice_]));
      for (const SliceLink& one : part_.slice_links) {
        const FlowType type =
            one.kind == SliceLinkKind::kForwardBackward ? FlowType::kForwardBackward : FlowType::kOther;
        if (one.from == slice_) link(type, true, timeline_.place_of_slice(lane_.part, one.to));
        if (one.to == slice_) link(type, false, timeline_.place_of_slice(lane_.part, one.from));
      }
    }
    json_.end_array();
  }

  void write_arguments() {
    json_.key("args").begin_array();
    std::string why_none;
    if (slice_ < part_.slices.size() && has_facts() && part_.slices.args_offset_low.empty()) {
      why_none = "the run is still being read";
    } else if (slice_ != kNoSlice && slice_ < part_.slices.size()) {
      // Restart points of gzip files are not kept between requests, since the next request may be on another thread.
      if (const Result<std::string> text = event_text(part_, slice_))
        for (const JsonMember& member : json_members(json_member(*text, "args"), kMaxArguments))
          json_.begin_object()
              .field("key", cut(json_text("\"" + std::string(member.key) + "\"")))
              .field("value", cut(json_text(member.value)))
              .end_object();
      else why_none = text.error().what;
      if (const RangeFact* range = fact_of(part_.ranges, slice_))
        json_.begin_object()
            .field("key", "message")
            .field("value", cut(trace_.names.text(range->message)))
            .end_object();
    }
    json_.end_array();
    if (!why_none.empty()) json_.field("args_missing", valid_utf8(why_none));
  }

  const Timeline& timeline_;
  const Trace& trace_;
  SlicePlace place_;
  const ViewLane& lane_;
  const Part& part_;
  uint32_t cell_ = kNoSlice;   // index into Trace::cells
  uint32_t slice_ = kNoSlice;  // index into the part's slices
  size_t links_ = 0;
  JsonWriter json_;
};

}  // namespace

const char* flow_type_name(FlowType type) {
  static constexpr auto kTexts =
      texts_by<FlowType::kOther, const char*>({"message", "launch", "forward-backward", "flow"});
  return kTexts[type];
}

void write_slice_reference(JsonWriter& json, const Timeline& timeline, SlicePlace place) {
  const ViewLane& lane = timeline.lanes()[place.lane];
  const size_t i = place.slice;
  json.begin_object().field("lane", int64_t{place.lane}).field("slice", int64_t{place.slice});
  const PlaceInRow at = row_place(lane, i);
  json.field("row", at ? static_cast<int64_t>(at.row) : int64_t{-1});
  json.field("name_id", int64_t{lane.names[i]}).field("name", short_name(timeline.names().text(lane.names[i])));
  json.field("kind", int64_t{lane.kind(i)}).field("start_ns", lane.start(i)).field("dur_ns", lane.dur(i));
  json.end_object();
}

int64_t self_ns(const ViewLane& lane, size_t slice) {
  int64_t self = lane.dur(slice);
  if (lane.type != ViewLaneType::kThread || !row_place(lane, slice)) return self;
  LaneWalk walk(lane, slice, [](size_t) { return 0u; });
  walk.until(first_starting_from(lane, lane.end(slice)), [&](size_t i, int64_t, int64_t dur, uint32_t holder) {
    if (holder == 1 && lane.takes_time(i)) self -= dur;
    return i == slice ? 1u : 0u;
  });
  return std::max<int64_t>(0, self);
}

Result<std::string> slice_answer(const Timeline& timeline, const Query& query) {
  const int64_t lanes = timeline.lanes().size();
  TRY(lane, integer_parameter(query, "lane", std::nullopt, 0, lanes - 1));
  const ViewLane& at = timeline.lanes()[*lane];
  if (!at.has_slices()) return make_error(ErrorCode::kUsage, "this lane is a counter and has no slices");
  TRY(slice, integer_parameter(query, "slice", std::nullopt, 0, static_cast<int64_t>(at.count) - 1));
  return Details(timeline, {static_cast<uint32_t>(*lane), static_cast<uint32_t>(*slice)}).json();
}

}  // namespace stageline
