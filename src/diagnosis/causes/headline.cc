#include "diagnosis/causes/headline.h"

#include <cctype>
#include <string>

#include "base/number.h"
#include "model/pipeline_words.h"
#include "model/run_extent.h"

namespace stageline {
namespace {

// Shares of a step's work become shares of its period, with the time between steps beside them.
std::vector<SpanPart> of_period(const FindingFacts& f, double span_ns, std::vector<SpanPart> parts) {
  if (!(f.gap_ns > 0) || !(span_ns > 0)) return parts;
  const double period_ns = span_ns + f.gap_ns;
  for (SpanPart& part : parts) part.share *= span_ns / period_ns;
  parts.push_back({"between", "between steps", "步间", f.gap_ns / period_ns});
  return parts;
}

std::vector<SpanPart> parts_of(const FindingFacts& f, const Waterfall& w) {
  const WaterfallStep mean = mean_of(w);
  const auto unknown = static_cast<double>(w.unnumbered + w.without_producer);
  // Of a part of a run, or of work that is there several times, the sum says nothing.
  if (f.coverage.by_warm_up() || f.coverage.untold() || !w.known() || !(mean.span_ns > 0) ||
      unknown > kMostUnknownWaits * static_cast<double>(w.units))
    return of_period(f, f.mean_step_ns,
                     {{"compute", "compute", "计算", f.compute},
                      {"bubble", "waiting in the pipeline", "流水线内等待", f.bubble},
                      {"outside", "outside the pipeline", "流水线之外", f.outside}});
  const auto share = [&](WaterfallPart part) { return mean.part_ns[static_cast<size_t>(part)] / mean.span_ns; };
  std::vector<SpanPart> parts = {{"compute", "compute", "计算", share(WaterfallPart::kCompute)},
                                 {"bubble", "schedule bubble", "调度气泡", share(WaterfallPart::kSchedule)},
                                 {"imbalance", "stage imbalance", "级间不均衡", share(WaterfallPart::kImbalance)},
                                 {"jitter", "jitter", "抖动", share(WaterfallPart::kJitter)},
                                 {"message", "message latency", "消息延迟", share(WaterfallPart::kLatency)}};
  // What the fastest replicas wait for is a cause of its own, and on some jobs the largest one.
  double tail = share(WaterfallPart::kTail), replicas = 0;
  if (!w.clock_free) replicas = mean.tail_ns[static_cast<size_t>(TailPart::kReplicas)] / mean.span_ns;
  if (replicas > 0) parts.push_back({"replicas", "waiting for replicas", "等待其他副本", replicas});
  parts.push_back({"tail", "before and after the pipeline", "流水线前后", tail - replicas});
  parts.push_back({"rest", "unexplained", "未解释", share(WaterfallPart::kRest)});
  return of_period(f, mean.span_ns, std::move(parts));
}

}  // namespace

Headline headline_of(const FindingFacts& f, const Recognition& recognition, const Waterfall& waterfall) {
  Headline h;
  const double period_ns = f.mean_step_ns + f.gap_ns;
  const std::string step = human_duration(period_ns);
  const double waiting = period_ns > 0 ? 1 - f.compute * f.mean_step_ns / period_ns : 1;
  const std::string waiting_share = fixed(waiting * 100, 0) + "\u202f%";
  const bool unsure = !f.trace.comparable();
  h.title_en = step + " a step on average, " + (unsure ? "perhaps " : "") + waiting_share + " of it not computing.";
  h.title_zh = "平均每步 " + step + "，其中" + (unsure ? "大约 " : " ") + waiting_share + " 没有在计算。";
  const auto count = [](int32_t n, const char* one, const char* many) {
    return std::to_string(n) + " " + (n == 1 ? one : many);
  };
  // Labels may be any; a schedule counts its own.
  const int32_t micro_batches =
      recognition.recognised ? recognition.best().sizes.micro_batches : micro_batches_per_step(f.trace);
  const bool two_ways = recognition.recognised && recognition.best().layout == ChunkLayout::kBidirectional;
  const std::string& part_en = f.coverage.part().en;
  const std::string& part_zh = f.coverage.part().zh;
  h.sizes_en = part_en.empty() ? count(f.coverage.stages(), "stage", "stages")
                               : std::string(1, static_cast<char>(std::toupper(part_en.front()))) + part_en.substr(1);
  h.sizes_en += std::string() + (f.extent.dp_count > 1 ? " × " + pipelines_text(f.trace, f.extent.dp_count).en : "") +
                ", " + count(micro_batches, "micro-batch", "micro-batches") +
                (f.extent.chunk_count > 1
                     ? ", " + std::to_string(f.extent.chunk_count) + (two_ways ? " directions" : " chunks a rank")
                     : "") +
                ", " + count(f.extent.step_count, "step", "steps") + ".";
  h.sizes_zh = part_zh.empty() ? std::to_string(f.coverage.stages()) + " 级" : part_zh;
  h.sizes_zh += std::string() + (f.extent.dp_count > 1 ? " × " + pipelines_text(f.trace, f.extent.dp_count).zh : "") +
                "，" + std::to_string(micro_batches) + " 个微批" +
                (f.extent.chunk_count > 1 ? (two_ways ? "，" : "，每 rank ") + std::to_string(f.extent.chunk_count) +
                                                (two_ways ? " 个方向" : " 个分块")
                                          : "") +
                "，" + std::to_string(f.extent.step_count) + " 步。";
  if (recognition.recognised) {
    const std::string schedule = recognition_share(recognition), near = runner_up_text(recognition);
    std::string schedule_zh = schedule;
    schedule_zh.replace(schedule.rfind(", "), 2, "，");
    h.lead_en += "Schedule: " + schedule + " of the lists of work match" +
                 (near.empty() ? "." : "; " + near + " is nearly as near.");
    h.lead_zh += "调度：" + schedule_zh + " 的工作列表吻合" + (near.empty() ? "。" : "；" + near + " 几乎同样接近。");
  } else if (!recognition.candidates.empty()) {
    const std::string nearest = recognition.best().name + " with a score of " + percent(recognition.best().score);
    h.lead_en += "Schedule: not recognised; the nearest is " + nearest + ".";
    h.lead_zh +=
        "调度：未能识别；最接近的是 " + recognition.best().name + "，" + percent(recognition.best().score) + "。";
  }
  if (f.trace.parts.size() == 1 && f.coverage.stages() <= 1) {
    h.lead_en += (h.lead_en.empty() ? "" : " ") +
                 std::string("Only one rank was given: what it waits for is not in the picture.");
    h.lead_zh += "只给了一个 rank：看不到它在等什么。";
  }
  if (unsure) {
    h.lead_en += (h.lead_en.empty() ? "" : " ") +
                 std::string("The ranks are not on one clock, so what they wait for each other is uncertain.");
    h.lead_zh += "各 rank 不在同一时钟上，相互等待的时间并不确定。";
  }
  h.parts = parts_of(f, waterfall);
  return h;
}

}  // namespace stageline
