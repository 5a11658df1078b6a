#include "pipeline/measure/waterfall.h"

#include "base/parallel.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/measure/link_transfers.h"

namespace stageline {
namespace {

// A gap counts as its message up to this many times what messages of its link usually take.
constexpr double kMaxOfMedian = 2;

// One stage of one pipeline: its number of ranks, and their busy time with equal costs and with measured ones.
struct StageBusy {
  int32_t stage = 0;
  double ranks = 0, equal_ns = 0, own_ns = 0;
};

struct Pipeline {
  size_t first = 0, last = 0;  // lists
  ReplayLevels level_ns{};
  double work_ns = 0, order_ns = kNaN;
  int64_t start_ns = 0, end_ns = 0;  // as recorded
  double busiest_ns = 0;             // of its ranks
  double longest_ns = 0;             // over its ranks, each on its own clock: first start to last end
  std::vector<StageBusy> stages;     // by stage; only stages that it has
  std::vector<GapSample> gaps;
  std::vector<WaterfallBubble> bubbles;
  int64_t units = 0, unnumbered = 0, without_producer = 0, broken = 0;
  double overlap_ns = 0, busy_ns = 0;
};

class Splitter {
 public:
  Splitter(const Trace& trace, const TheoryRun& theory, const RankLists& lists)
      : trace_(trace), lists_(lists),
        layout_(theory.recognition.recognised ? theory.recognition.best().layout : guess_chunk_layout(trace)),
        graphs_(trace, lists, layout_), sequences_(theory) {}

  // Without `whole` only the gaps are collected.
  void replay(Pipeline& pipeline, bool whole) const {
    const OrderGraph graph = graphs_.graph(pipeline.first, pipeline.last);
    if (trace_.comparable()) collect_gaps(pipeline, graph);
    if (!whole) return;
    OrderReplay replayer(graph, lists_, pipeline.first);
    replayer.without_messages(pipeline.level_ns);
    pipeline.units = graph.units.size();
    pipeline.unnumbered = graph.unnumbered;
    pipeline.without_producer = graph.without_producer;
    pipeline.broken = graph.broken;
    pipeline.overlap_ns = graph.overlap_ns;
    pipeline.start_ns = graph.start_ns;
    pipeline.end_ns = graph.end_ns;
    for (const int32_t stage : replayer.stages()) pipeline.stages.push_back({stage, 0, 0, 0});
    for (size_t l = pipeline.first; l < pipeline.last; ++l) {
      const uint32_t begin = graph.list_begin[l - pipeline.first], end = graph.list_begin[l - pipeline.first + 1];
      StageBusy& stage = pipeline.stages[replayer.place_of(lists_.lists[l].stage)];
      ++stage.ranks;
      int64_t last_ns = graph.units[begin].end_ns;
      double own_ns = 0;
      for (uint32_t u = begin; u < end; ++u) {
        stage.equal_ns += replayer.equal_ns(u);
        stage.own_ns += graph.units[u].own_ns;
        own_ns += graph.units[u].own_ns;
        last_ns = std::max(last_ns, graph.units[u].end_ns);
      }
      pipeline.busy_ns += own_ns;
      pipeline.busiest_ns = std::max(pipeline.busiest_ns, own_ns);
      pipeline.longest_ns = std::max<double>(pipeline.longest_ns, between_ns(graph.units[begin].start_ns, last_ns));
    }
    pipeline.work_ns = pipeline.busy_ns / (pipeline.last - pipeline.first);
    pipeline.order_ns = cost_of_order(pipeline, graph, replayer);
  }

  // `with_bubbles`: also collects where every rank waits.
  void replay_messages(Pipeline& pipeline, const EdgeLatencies& latencies, bool with_bubbles) const {
    const OrderGraph graph = graphs_.graph(pipeline.first, pipeline.last);
    const std::vector<MessageTime> messages = message_times(pipeline, graph, latencies);
    const OrderReplay replayer(graph, lists_, pipeline.first);
    replayer.with_messages(messages, pipeline.level_ns);
    if (with_bubbles) collect_bubbles(pipeline, graph, replayer.waits(messages));
  }

 private:
  std::vector<MessageTime> message_times(const Pipeline& pipeline, const OrderGraph& graph,
                                         const EdgeLatencies& latencies) const {
    std::vector<MessageTime> messages(graph.units.size());
    struct Known {
      uint32_t list;
      double max_ns;
    };
    std::vector<Known> known;  // of the list at hand, which has few producers
    for (uint32_t l = 0; l + 1 < graph.list_begin.size(); ++l) {
      known.clear();
      int64_t free_at = INT64_MIN;
      for (uint32_t u = graph.list_begin[l]; u < graph.list_begin[l + 1]; ++u) {
        const OrderUnit& unit = graph.units[u];
        int64_t came = INT64_MIN;  // when the last of its inputs was ready
        double max_ns = 0;         // the maximum time of a message to it
        for (size_t w = 0; w < 2; ++w) {
          if (unit.after[w] == kNoUnit || graph.units[unit.after[w]].list == l) continue;
          const OrderUnit& producer = graph.units[unit.after[w]];
          auto at = std::ranges::find_if(known, [&](const Known& k) { return k.list == producer.list; });
          if (at == known.end())
            at = known.insert(
                at, {producer.list, kMaxOfMedian * latencies.of(lists_.lists[pipeline.first + producer.list].part,
                                                                lists_.lists[pipeline.first + l].part)});
          messages[u].after_ns[w] = std::clamp<double>(between_ns(producer.end_ns, unit.start_ns), 0.0, at->max_ns);
          came = std::max(came, producer.end_ns);
          max_ns = std::max(max_ns, at->max_ns);
        }
        if (came != INT64_MIN && free_at != INT64_MIN && free_at >= came)
          messages[u].held_ns = std::clamp<double>(between_ns(free_at, unit.start_ns), 0.0, max_ns);
        free_at = std::max(free_at, unit.end_ns);
      }
    }
    return messages;
  }

  void collect_bubbles(Pipeline& pipeline, const OrderGraph& graph, const UnitWaits& waits) const {
    const int32_t step = lists_.lists[pipeline.first].step;
    const auto add = [&](size_t list, int64_t from_ns, int64_t to_ns, const ReplayLevels& level) {
      const double recorded = from_ns < to_ns ? static_cast<double>(between_ns(from_ns, to_ns)) : 0;
      const double parts[] = {level[0], level[1] - level[0], level[2] - level[1], level[4] - level[2],
                              recorded - level[4]};
      WaterfallBubble bubble{step, lists_.lists[pipeline.first + list].part, from_ns, std::max(from_ns, to_ns), {}};
      for (size_t k = 0; k < bubble.part_ns.size(); ++k) bubble.part_ns[k] = static_cast<float>(parts[k]);
      if (recorded > 0 || std::ranges::any_of(level, [](double ns) { return ns > 0; }))
        pipeline.bubbles.push_back(bubble);
    };
    for (size_t l = 0; l + 1 < graph.list_begin.size(); ++l) {
      int64_t free_at = graph.start_ns;
      for (uint32_t u = graph.list_begin[l]; u < graph.list_begin[l + 1]; ++u) {
        add(l, free_at, graph.units[u].start_ns, waits.before[u]);
        free_at = std::max(free_at, graph.units[u].end_ns);
      }
      add(l, free_at, graph.end_ns, waits.after[l]);
    }
  }

  // T0 in the order that ran minus T0 with the same units in the recognised schedule's order; NaN: unknown.
  double cost_of_order(const Pipeline& pipeline, const OrderGraph& graph, const OrderReplay& replayer) const {
    const ScheduleSequences::Sequence schedule = sequences_.of(graph, pipeline.first, pipeline.last);
    if (!schedule.known) return kNaN;
    return schedule.as_it_ran ? 0 : pipeline.level_ns[0] - replayer.equal_costs(schedule.order);
  }

  // Collects the gaps of each pair of ranks between the end of the producer that a unit waited for and the unit's
  // start. The unit's own rank must have been free before. Keeps their median.
  void collect_gaps(Pipeline& pipeline, const OrderGraph& graph) const {
    struct Gap {
      uint32_t from;
      double ns;
    };
    std::vector<Gap> gaps;
    for (size_t l = 0; l + 1 < graph.list_begin.size(); ++l) {
      gaps.clear();
      int64_t free_at = INT64_MIN;
      for (uint32_t u = graph.list_begin[l]; u < graph.list_begin[l + 1]; ++u) {
        const OrderUnit& unit = graph.units[u];
        uint32_t last = kNoUnit;
        for (const uint32_t before : unit.after)
          if (before != kNoUnit && (last == kNoUnit || graph.units[before].end_ns > graph.units[last].end_ns))
            last = before;
        if (last != kNoUnit && graph.units[last].list != l && free_at <= graph.units[last].end_ns)
          gaps.push_back(
              {graph.units[last].list, static_cast<double>(between_ns(graph.units[last].end_ns, unit.start_ns))});
        free_at = std::max(free_at, unit.end_ns);
      }
      sort_stably(gaps, {}, [](const Gap& a) { return std::pair(a.from, a.ns); });
      for (size_t i = 0; i < gaps.size();) {
        size_t end = i;
        while (end < gaps.size() && gaps[end].from == gaps[i].from) ++end;
        const size_t n = end - i;
        pipeline.gaps.push_back({lists_.lists[pipeline.first + gaps[i].from].part,
                                 lists_.lists[pipeline.first + l].part,
                                 (gaps[i + (n - 1) / 2].ns + gaps[i + n / 2].ns) / 2, static_cast<int64_t>(n)});
        i = end;
      }
    }
  }

  const Trace& trace_;
  const RankLists& lists_;
  ChunkLayout layout_;
  OrderGraphs graphs_;
  ScheduleSequences sequences_;
};

// Differences of the levels become the parts; kRest takes what is left, so that they add up.
WaterfallStep step_of(const Pipeline& pipeline, const RankList& list, double pipeline_ns, double span_ns) {
  WaterfallStep step{.step = list.step,
                     .dp = list.dp,
                     .order_ns = pipeline.order_ns,
                     .held_ns = pipeline.level_ns[4] - pipeline.level_ns[3],
                     .span_ns = span_ns,
                     .pipeline_ns = pipeline_ns};
  step.part_ns[WaterfallPart::kCompute] = pipeline.work_ns;
  step.part_ns[WaterfallPart::kSchedule] = pipeline.level_ns[0] - pipeline.work_ns;
  step.part_ns[WaterfallPart::kImbalance] = pipeline.level_ns[1] - pipeline.level_ns[0];
  step.part_ns[WaterfallPart::kJitter] = pipeline.level_ns[2] - pipeline.level_ns[1];
  step.part_ns[WaterfallPart::kLatency] = pipeline.level_ns[4] - pipeline.level_ns[2];
  step.part_ns[WaterfallPart::kRest] = pipeline_ns - pipeline.level_ns[4];
  step.part_ns[WaterfallPart::kTail] = span_ns - pipeline_ns;
  return step;
}

void add_stages(const Pipeline& pipeline, const WaterfallStep& step, std::vector<WaterfallStage>& sums) {
  for (const StageBusy& busy : pipeline.stages) {
    WaterfallStage& sum = sums[busy.stage];
    sum.ranks += static_cast<int64_t>(busy.ranks);
    sum.pipeline_ns += step.pipeline_ns * busy.ranks;
    // Idle time with equal costs belongs to the schedule; what the stage's own costs change of it is imbalance.
    const std::array<double, kPipelineParts> own = {
        busy.own_ns,
        pipeline.level_ns[0] * busy.ranks - busy.equal_ns,
        (pipeline.level_ns[1] - pipeline.level_ns[0]) * busy.ranks - (busy.own_ns - busy.equal_ns),
        (pipeline.level_ns[2] - pipeline.level_ns[1]) * busy.ranks,
        (pipeline.level_ns[4] - pipeline.level_ns[2]) * busy.ranks,
        step.part_ns[WaterfallPart::kRest] * busy.ranks,
    };
    for (size_t k = 0; k < kPipelineParts; ++k) sum.part_ns[k] += own[k];
  }
}

std::vector<Pipeline> pipelines_of(const RankLists& lists) {
  std::vector<Pipeline> pipelines;
  for (size_t first = 0; first < lists.lists.size();) {
    Pipeline p;
    p.first = first;
    p.last = first = lists.group_end(first);
    pipelines.push_back(std::move(p));
  }
  return pipelines;
}

// Takes the gaps between cells out of all pipelines.
std::vector<GapSample> take_gaps(std::vector<Pipeline>& pipelines) {
  std::vector<GapSample> samples;
  for (Pipeline& p : pipelines) {
    samples.insert(samples.end(), p.gaps.begin(), p.gaps.end());
    std::vector<GapSample>().swap(p.gaps);
  }
  return samples;
}

// Replays pipelines with the latency of their messages, where any edge has some or bubbles are wanted.
void replay_latencies(const EdgeLatencies& latencies, const Splitter& splitter, bool bubbles,
                      std::vector<Pipeline>& pipelines, Waterfall& out) {
  for (const EdgeLatency& edge : latencies.edges())
    ++(edge.by_messages ? out.latency.by_messages : out.latency.by_gaps);
  out.latency.median_ns = latencies.median_ns();
  const bool any = std::ranges::any_of(latencies.edges(), [](const EdgeLatency& edge) { return edge.ns > 0; });
  if (any || bubbles)
    parallel_for(pipelines.size(), [&](size_t i) { splitter.replay_messages(pipelines[i], latencies, bubbles); });
}

std::vector<WaterfallStage> mean_stages(const std::vector<WaterfallStage>& sums) {
  std::vector<WaterfallStage> stages;
  for (uint32_t s = 0; s < sums.size(); ++s) {
    WaterfallStage stage = sums[s];
    if (stage.ranks == 0) continue;
    stage.stage = s;
    stage.pipeline_ns /= stage.ranks;
    for (double& ns : stage.part_ns) ns /= stage.ranks;
    stages.push_back(stage);
  }
  return stages;
}

// Adds the steps of all pipelines, and their counts.
void add_steps(const Trace& trace, const RankLists& lists, const PipelineSums& sums, const TakeBubbles& take,
               std::vector<Pipeline>& pipelines, Waterfall& out) {
  std::vector<StepTail> tails(pipelines.size());
  std::map<int32_t, const StepSums*> sums_of;
  for (const StepSums& step : sums.steps) sums_of[step.step] = &step;
  parallel_for(pipelines.size(), [&](size_t i) {
    const Pipeline& p = pipelines[i];
    tails[i] = step_tail(trace, lists, p.first, p.last, *sums_of.at(lists.lists[p.first].step), p.start_ns, p.end_ns);
  });
  std::vector<WaterfallStage> stages(lists.stages);
  for (size_t i = 0; i < pipelines.size(); ++i) {
    Pipeline& p = pipelines[i];
    const RankList& list = lists.lists[p.first];
    const StepSums& whole = *sums_of.at(list.step);
    const double pipeline_ns = out.clock_free ? p.longest_ns : between_ns(p.start_ns, p.end_ns);
    const double longest_ns = std::max(p.longest_ns, tails[i].longest_ns);
    const double span_ns = out.clock_free ? longest_ns : between_ns(whole.start_ns, whole.end_ns);
    WaterfallStep step = step_of(p, list, pipeline_ns, span_ns);
    step.outlier = sums.is_outlier(list.step);
    step.tail_ns = tails[i].part_ns;
    step.own_pipeline_ns = p.longest_ns;
    step.own_span_ns = longest_ns;
    step.busiest_ns = p.busiest_ns;
    if (out.clock_free) step.tail_ns.fill(kNaN);
    if (!step.outlier) add_stages(p, step, stages);
    out.units += p.units;
    out.unnumbered += p.unnumbered;
    out.without_producer += p.without_producer;
    out.broken += p.broken;
    out.overlap_ns += p.overlap_ns;
    out.busy_ns += p.busy_ns;
    if (take) take(p.bubbles);
    std::vector<WaterfallBubble>().swap(p.bubbles);
    out.steps.push_back(step);
  }
  out.stages = mean_stages(stages);
}

}  // namespace

std::string_view waterfall_part_name(WaterfallPart part) {
  static constexpr auto kTexts =
      texts_by<WaterfallPart::kTail>({"compute", "schedule bubble", "stage imbalance", "jitter", "message latency",
                                      "late starts", "before and after the pipeline"});
  return kTexts[part];
}

Waterfall waterfall_of(const Trace& trace, const TheoryRun& theory, const PipelineSums& sums, const TakeBubbles& take,
                       const IsStep& of_step) {
  Waterfall out;
  if (trace.chunks_are_pieces) {
    out.why_not = words("unknown.pieces");
    return out;
  }
  std::optional<RankLists> made;
  if (theory.lists.lists.empty()) made = rank_lists(trace, theory.recognition.rule);
  const RankLists& lists = made ? *made : theory.lists;
  if (lists.lists.empty()) {
    out.why_not = words("unknown.no_known_stage");
    return out;
  }
  out.clock_free = !trace.comparable() && trace.parts.size() > 1;
  std::vector<Pipeline> pipelines = pipelines_of(lists);
  const Splitter splitter(trace, theory, lists);
  const auto wanted = [&](const Pipeline& p) { return !of_step || of_step(lists.lists[p.first].step); };
  parallel_for(pipelines.size(), [&](size_t i) { splitter.replay(pipelines[i], wanted(pipelines[i])); });
  std::vector<GapSample> gaps = take_gaps(pipelines);
  std::erase_if(pipelines, [&](const Pipeline& p) { return !wanted(p); });
  for (Pipeline& p : pipelines) p.level_ns[3] = p.level_ns[4] = p.level_ns[2];
  if (!out.clock_free)
    replay_latencies(EdgeLatencies(trace, std::move(gaps)), splitter, take != nullptr, pipelines, out);
  add_steps(trace, lists, sums, take, pipelines, out);
  return out;
}

WaterfallStep mean_of(const Waterfall& waterfall) {
  WaterfallStep mean;
  mean.step = mean.dp = kUnknown;
  double count = 0, with_order = 0, order = 0;
  for (const WaterfallStep& step : waterfall.steps) {
    if (step.outlier) continue;
    ++count;
    mean.span_ns += step.span_ns;
    mean.pipeline_ns += step.pipeline_ns;
    for (size_t k = 0; k < kWaterfallParts; ++k) mean.part_ns[k] += step.part_ns[k];
    for (size_t k = 0; k < kTailParts; ++k) mean.tail_ns[k] += step.tail_ns[k];
    mean.held_ns += step.held_ns;
    mean.own_pipeline_ns += step.own_pipeline_ns;
    mean.own_span_ns += step.own_span_ns;
    mean.busiest_ns += step.busiest_ns;
    if (!std::isnan(step.order_ns)) ++with_order, order += step.order_ns;
  }
  mean.order_ns = with_order > 0 ? order / with_order : kNaN;
  if (count == 0) return mean;
  for (double* ns :
       {&mean.span_ns, &mean.held_ns, &mean.pipeline_ns, &mean.own_pipeline_ns, &mean.own_span_ns, &mean.busiest_ns})
    *ns /= count;
  for (double& ns : mean.part_ns) ns /= count;
  for (double& ns : mean.tail_ns) ns /= count;
  return mean;
}

}  // namespace stageline
