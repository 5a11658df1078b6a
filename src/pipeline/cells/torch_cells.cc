#include "base/parallel.h"
#include "pipeline/cells/find_cells.h"
#include "pipeline/cells/problems.h"

namespace stageline {
namespace {

// The cells made of the marks of one part.
struct PartCells {
  std::vector<Cell> cells;
  StepSource steps = StepSource::kNamed;
  int64_t counted = 0;       // micro-batches that were counted, as no name gives them
  int64_t without_work = 0;  // marks without device work, on a rank where other marks have some
  int64_t empty = 0;         // compute marks without an operator, on a rank that records operators
  int64_t clipped = 0;       // cells that ended after the next one of their lane began
  int64_t unknown_messages = 0;
  int32_t interleaved = 0;  // chunks of a rank by Megatron's order; 0 where that is not its order
  bool on_device = false;
  bool calls = false;  // some message has the times of the call on the host
};

// Cuts overlaps on the compute lane, where the last kernels of one cell overlap the first of the next. The later start
// becomes the border, so that no time counts for two cells. Halves of an overlapped pair keep their common times.
int64_t clip_overlaps(std::vector<Cell>& cells) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < cells.size(); ++i)
    if (kind_lane(cells[i].kind) == 0) order.push_back(i);
  std::ranges::sort(order, {}, [&](uint32_t a) { return std::tuple(cells[a].start_ns, -cells[a].end_ns, a); });
  int64_t clipped = 0;
  for (size_t k = order.size(); k-- > 1;) {
    Cell& before = cells[order[k - 1]];
    const Cell& next = cells[order[k]];
    if (before.end_ns <= next.start_ns || before.slice == next.slice || before.start_ns == next.start_ns ||
        before.end_ns > next.end_ns)
      continue;
    before.end_ns = next.start_ns;
    ++clipped;
  }
  return clipped;
}

class CellMaker {
 public:
  CellMaker(Trace& trace, std::vector<CellMark> marks, const std::vector<std::vector<StepMark>>& steps, bool inferred)
      : trace_(trace), marks_(std::move(marks)), steps_(steps), inferred_(inferred) {
    const auto before = [](const CellMark& a, const CellMark& b) {
      return std::tuple(a.part, a.lane, a.start_ns, -a.end_ns, a.slice) <
             std::tuple(b.part, b.lane, b.start_ns, -b.end_ns, b.slice);
    };
    if (!std::ranges::is_sorted(marks_, before)) sort_stably(marks_, before);
  }

  // With `number`, micro-batches that no name gives are counted. With `unsure`, chunks cannot be distinguished, so
  // nothing is counted.
  bool make(const RankLayoutOptions& options, bool number, bool unsure) {
    lay_out(options);
    std::vector<std::pair<size_t, size_t>> ranges(trace_.parts.size());  // marks of each part
    for (size_t m = 0, p = 0; p < ranges.size(); ++p) {
      const size_t begin = m;
      while (m < marks_.size() && marks_[m].part == p) ++m;
      ranges[p] = {begin, m};
    }
    std::vector<PartCells> parts(ranges.size());
    parallel_for(parts.size(), [&](size_t p) {
      if (ranges[p].first < ranges[p].second)
        parts[p] = of_part(p, {marks_.begin() + ranges[p].first, marks_.begin() + ranges[p].second}, number && !unsure,
                           unsure);
    });
    int32_t chunks = 0;
    bool agree = unsure;
    for (const PartCells& part : parts) {
      if (part.cells.empty()) continue;
      agree = agree && part.interleaved > 0 && (chunks == 0 || part.interleaved == chunks);
      chunks = part.interleaved;
    }
    for (const PartCells& part : parts)
      for (Cell cell : part.cells) {
        if (unsure && !agree && is_compute(cell.kind)) cell.chunk = cell.micro_batch = kUnknown;
        if (unsure && !agree && is_message(cell.kind)) cell.chunk = 0, cell.micro_batch = kUnknown;
        trace_.cells.add(cell);
      }
    trace_.cells.sort();
    if (agree) trace_.diagnostics.add(problem::cells_numbered_interleaved, Args().count("chunks", chunks));
    say(parts, unsure && !agree);
    return trace_.cells.size() > 0;
  }

 private:
  void lay_out(const RankLayoutOptions& options) {
    const RankLayout stated = layout_from_options(trace_, options), evidence = known_layout(trace_, {});
    map_ = map_stages(trace_, marks_, evidence.stages > 0 ? evidence.stages : options.pp);
    // Inference follows work to its end, so no stage beyond those found is missing.
    if (inferred_ && options.pp > 0 && map_.chunks == 1) map_ = map_stages(trace_, marks_, evidence.stages);
    const Text against = contradiction(options, stated, evidence);
    const bool by_option = stated.stages > 0 && against.empty();
    const RankLayout& known = by_option ? stated : evidence;
    // Stage → replicas so far; used where nothing else gives the replica.
    std::map<std::pair<int32_t, int32_t>, int32_t> replicas;
    for (size_t p = 0; p < trace_.parts.size(); ++p) {
      Part& part = trace_.parts[p];
      const int32_t by_layout = known.stages > 0 ? known.stage[p] : kUnknown;
      const int32_t named = map_.stages > 0 ? map_.stage[p] : kUnknown;
      part.stage = by_option || named == kUnknown ? by_layout : named;
      part.dp = known.stages > 0 && known.dp[p] != kUnknown ? known.dp[p]
                : part.stage == kUnknown                    ? kUnknown
                                                            : replicas[{part.stage, 0}]++;
    }
    layout_known_ = map_.stages > 0 || known.stages > 0;
    trace_.pipeline_stages = std::max(map_.stages, known.stages);
    if (!layout_known_) return;
    Text how = by_option || map_.stages == 0 ? known.how : by_marks();
    if (!by_option && against.empty() && options.pp == trace_.pipeline_stages)
      how = words("layout.and_pp", Args().set("how", how));
    Args args;
    args.count("stages", trace_.pipeline_stages).set("how", how);
    if (map_.stages > 0 && map_.chunks > 1)
      args.set("chunks", int64_t{map_.chunks})
          .set("order", words(!map_.regular                    ? "layout.chunks.irregular"
                              : map_.layout == ChunkLayout::kV ? "layout.chunks.v"
                                                               : "layout.chunks.loop"));
    trace_.diagnostics.add(problem::cells_stages_torch.as(map_.regular ? Severity::kInfo : Severity::kWarning), args);
  }

  Text by_marks() const { return words(inferred_ ? "layout.flow" : "layout.names"); }

  // Returns what contradicts --pp, --tp, --dp and --order, and adds it to the diagnostics; "" when nothing does.
  Text contradiction(const RankLayoutOptions& options, const RankLayout& stated, const RankLayout& evidence) {
    if (options.pp == 0) return {};
    const auto says = [](const Text& how, int32_t stages) {
      return words("layout.against.stages", Args().set("how", how).count("stages", stages));
    };
    Text against;
    if (map_.stages > 0 && map_.stages != options.pp) {
      against = says(by_marks(), map_.stages);
    } else if (options.explicit_order() && stated.stages == 0) {
      against = words("layout.against.fewer");
    } else if (stated.stages > 0) {
      against = contradiction_of(trace_, stated);
      for (size_t p = 0; against.empty() && map_.stages > 0 && p < trace_.parts.size(); ++p)
        if (map_.stage[p] != kUnknown && map_.stage[p] != stated.stage[p])
          against = words("layout.against.place", Args()
                                                      .set("rank", int64_t{trace_.parts[p].rank})
                                                      .set("said", int64_t{stated.stage[p]})
                                                      .set("how", by_marks())
                                                      .set("stage", int64_t{map_.stage[p]}));
    } else if (evidence.stages > 0 && evidence.stages != options.pp) {
      against = says(evidence.how, evidence.stages);
    }
    if (!against.empty())
      trace_.diagnostics.add(problem::cells_layout_contradicted_torch,
                             Args().flag("order", options.explicit_order()).set("against", against));
    return against;
  }

  int32_t chunk_of(const CellMark& mark, bool unsure) const {
    if (mark.stage != kUnknown && map_.stages > 0) return map_.chunk_of(mark.part, mark.stage);
    if (mark.chunk != kUnknown) return mark.chunk;
    // Inferred work without a place may belong to any chunk, unless ranks have only one.
    if (inferred_ && is_compute(mark.kind) && !(map_.stages > 0 && map_.chunks == 1)) return kUnknown;
    return unsure && is_compute(mark.kind) ? kUnknown : 0;
  }

  // Returns false for marks of messages that no rank sent. A call named send_backward_recv_forward does nothing at an
  // end of the pipeline, and a fused call sends and receives only if its operators do. If it has fewer operators than
  // halves, or one kernel for all, the work around it decides. Then a send carries the work before it, a receive the
  // input of work after it. Such a kernel ends when it has received.
  std::vector<bool> messages_sent(const std::vector<uint32_t>& order, const std::vector<CellMark>& marks,
                                  const WorkSpans& spans, int32_t stage, int32_t stages, int32_t chunks) const {
    const auto is_forward = [&](uint32_t m) {
      return marks[m].kind == CellKind::kForward || is_of_forward(marks[m].kind);
    };
    struct Near {
      uint32_t of_way = UINT32_MAX, any = UINT32_MAX;  // the nearest work of its direction, and of either
    };
    std::vector<Near> near(marks.size());
    for (const bool send : {true, false}) {
      uint32_t last[2] = {UINT32_MAX, UINT32_MAX}, any = UINT32_MAX;
      for (size_t k = 0; k < order.size(); ++k) {
        const uint32_t m = order[send ? k : order.size() - 1 - k];
        if (is_compute(marks[m].kind)) any = last[is_forward(m)] = m;
        if (is_message(marks[m].kind) && is_send(marks[m].kind) == send) near[m] = {last[is_forward(m)], any};
      }
    }
    // Work at an end of the pipeline has no message on that side.
    const auto is_due = [&](uint32_t m) {
      if (near[m].of_way == UINT32_MAX || chunks == 0) return near[m].of_way != UINT32_MAX;
      const int32_t place = marks[near[m].of_way].chunk * stages + stage;
      return is_forward(m) == is_send(marks[m].kind) ? place < chunks * stages - 1 : place > 0;
    };
    std::map<uint32_t, std::vector<uint32_t>> calls;
    for (uint32_t m = 0; m < marks.size(); ++m)
      if (is_message(marks[m].kind)) calls[marks[m].slice].push_back(m);
    std::vector<bool> out(marks.size(), true);
    for (const auto& [slice, halves] : calls)
      for (const bool send : {true, false}) {
        std::vector<uint32_t> own;
        for (const uint32_t m : halves)
          if (is_send(marks[m].kind) == send) own.push_back(m);
        const WorkSpan& span = spans.spans[halves[0]];
        size_t count = static_cast<size_t>(send ? span.sends : span.receives);
        if (!spans.has_messages) count = own.size() < 2 ? own.size() : send ? 0 : 1;
        if (count >= own.size()) continue;
        for (const uint32_t m : own) out[m] = count > 0 && is_due(m);
        if (std::ranges::all_of(own, [&](uint32_t m) { return out[m]; }))
          for (const uint32_t m : own) out[m] = near[m].of_way == near[m].any;
      }
    return out;
  }

  PartCells of_part(size_t p, std::vector<CellMark> marks, bool number, bool unsure) const {
    const Part& part = trace_.parts[p];
    PartCells out;
    auto order = indexes<uint32_t>(marks.size());
    sort_stably(order, {}, [&](uint32_t a) { return marks[a].start_ns; });
    const bool named = std::ranges::any_of(marks, [](const CellMark& m) { return m.step != kUnknown; });
    static const std::vector<StepMark> kNoSteps;
    if (!named) out.steps = number_steps(part, p < steps_.size() ? steps_[p] : kNoSteps, order, marks);
    if (number) out.counted = number_micro_batches(order, marks);
    // Where nothing names the stages, ranks are taken in order; the order of every rank has to confirm it.
    const bool known = part.stage != kUnknown && trace_.pipeline_stages > 0;
    const auto stages = known ? trace_.pipeline_stages : static_cast<int32_t>(trace_.parts.size());
    const int32_t stage = known ? part.stage : static_cast<int32_t>(p);
    if (unsure) out.interleaved = number_interleaved(order, stage, stages, marks);
    const WorkSpans spans = work_spans(trace_, part, marks);
    out.on_device = spans.on_device;
    const std::vector<bool> sent = messages_sent(order, marks, spans, stage, stages, out.interleaved);
    if (out.interleaved > 1) number_interleaved_messages(order, sent, stage, stages, out.interleaved, marks);
    for (size_t m = 0; m < marks.size(); ++m)
      if (sent[m]) add_marked(p, marks[m], spans, spans.spans[m], unsure, out);
    out.clipped = clip_overlaps(out.cells);
    for (const LooseCommunication& loose : spans.loose)
      add_loose(p, loose.slice, loose.mark == UINT32_MAX ? nullptr : &marks[loose.mark], unsure, out);
    return out;
  }

  // Adds the cell of a mark, with the times of its work where that was recorded.
  void add_marked(size_t p, const CellMark& mark, const WorkSpans& spans, const WorkSpan& span, bool unsure,
                  PartCells& out) const {
    Cell cell{mark.step,        static_cast<int32_t>(p), mark.kind,   chunk_of(mark, unsure),
              mark.micro_batch, mark.start_ns,           mark.end_ns, mark.slice};
    if (span.found) {
      cell.start_ns = span.start_ns;
      cell.end_ns = span.end_ns;
    } else if (spans.on_device && mark.kind != CellKind::kOther) {
      ++out.without_work;  // its times on the host would say nothing about the device
      return;
    } else if (spans.has_messages && mark.kind == CellKind::kCollective) {
      return;  // nothing was exchanged in it: UNSHARD of a model that is not sharded
    } else if (spans.has_operators && is_compute(mark.kind)) {
      ++out.empty;
      cell.start_ns = cell.end_ns;
    }
    out.calls |= !spans.on_device && is_message(mark.kind) && !span.is_whole;
    out.cells.push_back(cell);
  }

  // Adds the cells of communication that no mark stands for. `around`: the mark whose work it is in; null where it is
  // in none.
  void add_loose(size_t p, uint32_t slice, const CellMark* around, bool unsure, PartCells& out) const {
    const Part& part = trace_.parts[p];
    const uint16_t step = part.slices.step[slice];
    if (around == nullptr && step == 0) return;
    for (const MessageKind& what : message_kinds(trace_, p, slice, around, map_.chunks)) {
      if (!what.known) {
        ++out.unknown_messages;
        continue;
      }
      Cell cell{.step = around != nullptr ? around->step : static_cast<int32_t>(part.steps[step - 1u].number),
                .part = static_cast<int32_t>(p),
                .kind = what.kind,
                .start_ns = part.slices.start_ns[slice],
                .end_ns = part.slices.end_ns(slice),
                .slice = slice};
      if (around != nullptr) {
        cell.chunk = chunk_of(*around, unsure);
        const bool forward = is_of_forward(what.kind);
        if (is_message(what.kind) && forward == (around->kind == CellKind::kForward))
          cell.micro_batch = around->micro_batch;
      }
      out.cells.push_back(cell);
    }
  }

  void say(const std::vector<PartCells>& parts, bool unsure) {
    PartCells sum;
    bool one = false, repetition = false, optimizer = false;
    for (const PartCells& part : parts) {
      sum.counted += part.counted;
      sum.without_work += part.without_work;
      sum.clipped += part.clipped;
      sum.empty += part.empty;
      sum.unknown_messages += part.unknown_messages;
      trace_.messages_are_calls |= part.calls;
      if (part.cells.empty()) continue;
      sum.on_device |= part.on_device;
      one |= part.steps == StepSource::kOne;
      repetition |= part.steps == StepSource::kRepetition;
      optimizer |= part.steps == StepSource::kOptimizer;
    }
    Diagnostics& diagnostics = trace_.diagnostics;
    diagnostics.add(problem::cells_times, Args().flag("device", sum.on_device));
    if (repetition) diagnostics.add(problem::cells_steps_repeats);
    if (optimizer) diagnostics.add(problem::cells_steps_optimizer);
    if (one) diagnostics.add(problem::cells_steps_none);
    diagnostics.add(problem::cells_numbered, {}, sum.counted);
    if (unsure) diagnostics.add(problem::cells_chunk_unknown);
    const std::vector<CellKind>& kinds = trace_.cells.kind;
    const auto backward = [](CellKind kind) { return is_compute(kind) && kind != CellKind::kForward; };
    if (std::ranges::find(kinds, CellKind::kForward) != kinds.end() && std::ranges::none_of(kinds, backward))
      diagnostics.add(problem::cells_no_backward);
    diagnostics.add(problem::cells_no_kernels, {}, sum.without_work);
    diagnostics.add(problem::cells_no_operators, {}, sum.empty);
    diagnostics.add(problem::cells_clipped, {}, sum.clipped);
    diagnostics.add(problem::cells_unknown_messages_kernels, {}, sum.unknown_messages);
  }

  Trace& trace_;
  std::vector<CellMark> marks_;
  const std::vector<std::vector<StepMark>>& steps_;
  bool inferred_;
  StageMap map_;
  bool layout_known_ = false;
};

Args evidence(const FoundMarks& found) {
  Args args;
  args.set("rules", found.set).count("names", found.names).count("slices", found.slices);
  return args.flag("frames", found.by_frames).set("example", valid_utf8(found.example));
}

// Makes cells of marks: layout, steps, numbers, times on the device. With `number`, micro-batches that the source does
// not give are counted (the k-th of its kind and chunk in the step); without, they stay unknown. Returns true when
// there are cells.
bool cells_from_marks(Trace& trace, std::vector<CellMark> marks, const RankLayoutOptions& layout, bool number) {
  static const std::vector<std::vector<StepMark>> kNoSteps;
  return CellMaker(trace, std::move(marks), kNoSteps, true).make(layout, number, false);
}

}  // namespace

bool find_torch_cells(Trace& trace, const CellRules& rules, const TorchCellOptions& options) {
  if (options.source == CellSource::kOff) return false;
  if (options.source != CellSource::kInferred) {
    FoundMarks found = find_marks(trace, rules, options.layout, trace.diagnostics);
    if (!found.set.empty()) {
      trace.diagnostics.add(problem::cells_from_annotations, evidence(found));
      return CellMaker(trace, std::move(found.marks), found.steps, false).make(options.layout, true, found.interleaved);
    }
    if (options.source == CellSource::kAnnotations) trace.diagnostics.add(problem::cells_none);
  }
  if (options.source == CellSource::kAnnotations || options.infer == nullptr) return false;
  std::vector<CellMark> marks = options.infer(trace, trace.diagnostics);
  if (marks.empty()) return false;
  // Optimizer steps are found by name in any case.
  const std::vector<CellMark> always = find_always_marks(trace, rules);
  marks.insert(marks.end(), always.begin(), always.end());
  const int64_t count = marks.size();
  if (!cells_from_marks(trace, std::move(marks), options.layout, false)) return false;
  trace.diagnostics.add(problem::cells_inferred, {}, count);
  return true;
}

}  // namespace stageline
