#include "exporters/chart/chart_words.h"

#include <string_view>

#include "base/number.h"
#include "model/cells.h"

namespace stageline {
namespace {

std::string count(ChartLang lang, int64_t n, const char* one, const char* many, const char* chinese) {
  const std::string number = grouped(n);
  if (lang == ChartLang::kChinese) return number + " " + chinese;
  return number + " " + (n == 1 ? one : many);
}

std::string numbered(ChartLang lang, const char* english, const char* chinese, int32_t n) {
  return std::string(lang == ChartLang::kChinese ? chinese : english) + " " + std::to_string(n);
}

std::string say(ChartLang lang, const char* english, const char* chinese) {
  return lang == ChartLang::kChinese ? chinese : english;
}

}  // namespace

ChartLang chart_lang(const std::string& name) {
  return std::string_view(name).starts_with("zh") ? ChartLang::kChinese : ChartLang::kEnglish;
}

std::string word_stage(ChartLang lang, int32_t stage) {
  return lang == ChartLang::kChinese ? "第 " + std::to_string(stage) + " 级" : numbered(lang, "Stage", "", stage);
}
std::string word_rank(ChartLang lang, int32_t rank) { return numbered(lang, "rank", "rank", rank); }
std::string word_replica(ChartLang lang, const Trace& trace, int32_t dp) {
  if (trace.context_parallel > 1) return numbered(lang, "Pipeline", "流水线", dp);
  return numbered(lang, "Replica", "副本", dp);
}
std::string word_chunk(ChartLang lang, int32_t chunk) { return numbered(lang, "chunk", "分块", chunk); }
std::string word_step(ChartLang lang, int32_t step) {
  return lang == ChartLang::kChinese ? "第 " + std::to_string(step) + " 步" : numbered(lang, "Step", "", step);
}

std::string word_kind(ChartLang lang, CellKind kind) {
  if (is_message(kind)) return say(lang, "message", "点对点消息");
  if (lang == ChartLang::kEnglish) return std::string(kind_name(kind));
  switch (kind) {
    case CellKind::kForward: return "前向";
    case CellKind::kBackward: return "反向";
    case CellKind::kInputGrad: return "输入梯度";
    case CellKind::kWeightGrad: return "权重梯度";
    case CellKind::kForwardBackward: return "前向与反向重叠";
    case CellKind::kCollective: return "集合通信";
    case CellKind::kOptimizer: return "优化器";
    default: return "其他";
  }
}

std::string word_waiting(ChartLang lang) { return say(lang, "waiting", "等待"); }
std::string word_ghost(ChartLang lang, const std::string& schedule) {
  return say(lang, (schedule + " in theory: mean times, no latency").c_str(),
             (schedule + " 的理论值：平均耗时、无延迟").c_str());
}
std::string word_theory_end(ChartLang lang) { return say(lang, "end in theory", "理论终点"); }
std::string word_phase(ChartLang lang, int phase) {
  constexpr const char* kEnglish[] = {"warm-up", "steady", "cool-down"};
  constexpr const char* kChinese[] = {"预热", "稳定", "收尾"};
  return say(lang, kEnglish[phase], kChinese[phase]);
}
std::string word_phase_mark(ChartLang lang) { return say(lang, "first backward, last forward", "首个反向、最后前向"); }
std::string word_chunk_hint(ChartLang lang) {
  return say(lang, "3·1 is micro-batch 3 of chunk 1", "3·1 表示分块 1 的微批 3");
}

std::string word_title(ChartLang lang, int32_t first_step, int32_t last_step) {
  const std::string first = std::to_string(first_step), last = std::to_string(last_step);
  if (first_step == kUnknown) return say(lang, "Pipeline", "流水线");
  if (first_step == last_step)
    return lang == ChartLang::kChinese ? "第 " + first + " 步的流水线" : "Pipeline of step " + first;
  if (lang == ChartLang::kChinese) return "第 " + first + "–" + last + " 步的流水线";
  return "Pipeline, steps " + first + "–" + last;
}

std::string count_stages(ChartLang lang, int64_t n) { return count(lang, n, "stage", "stages", "级"); }
std::string count_ranks(ChartLang lang, int64_t n) { return count(lang, n, "rank", "ranks", "个 rank"); }
std::string count_micro_batches(ChartLang lang, int64_t n) {
  return count(lang, n, "micro-batch", "micro-batches", "个微批");
}
std::string count_chunks(ChartLang lang, int64_t n) { return count(lang, n, "chunk", "chunks", "个分块"); }
std::string count_steps(ChartLang lang, int64_t n) { return count(lang, n, "step", "steps", "步"); }

namespace {

std::string evidence_chinese(ClockEvidence evidence) {
  switch (evidence) {
    case ClockEvidence::kMessages: return "消息";
    case ClockEvidence::kMixed: return "消息和集合通信";
    case ClockEvidence::kCollectives: return "集合通信";
    case ClockEvidence::kGaps: return "计算间隙";
    case ClockEvidence::kOperator: return "指定算子";
    default: return std::string(evidence_name(evidence));
  }
}

}  // namespace

std::string note_clocks_per_rank(ChartLang lang) {
  return say(lang, "Ranks are not on one clock: compare along a row, not between rows.",
             "各 rank 不在同一时钟上：只能在行内比较，不能跨行比较。");
}
std::string note_clocks_unaligned(ChartLang lang) {
  return say(lang, "Clocks of the ranks are taken as recorded.", "各 rank 的时钟未经对齐，按记录值绘制。");
}
std::string note_clocks_aligned(ChartLang lang, const ClockSummary& clocks) {
  const bool zh = lang == ChartLang::kChinese;
  const std::string half = clocks.half_ns < 0 ? "" : human_duration(static_cast<double>(clocks.half_ns));
  const std::string error = clocks.error_ns < 0 ? "" : human_duration(clocks.error_ns);
  std::string by;
  for (const ClockEvidence one : clocks.by) by += (by.empty() ? "" : "、") + evidence_chinese(one);
  std::string out = zh ? "时钟已按" + by + "对齐" : "Clocks aligned by " + evidence_list(clocks.by);
  if (!error.empty()) out += zh ? "，误差约 " + error : ", off by some " + error;
  out += half.empty() ? (zh ? "，部分没有误差界" : ", some without bounds")
                      : (zh ? "，保证不超过 ± " + half : ", certainly within ± " + half);
  out += zh ? "。" : ".";
  if (clocks.untied.empty()) return out;
  const std::string n = std::to_string(clocks.untied.size());
  return out + (zh ? n + " 个 rank 无法与其余的对齐，各按自己的时钟绘制。"
                   : " " + n + (clocks.untied.size() == 1 ? " rank is" : " ranks are") +
                         " not tied to the others and drawn by clocks of their own.");
}
std::string note_steps_laid(ChartLang lang) {
  return say(lang, "The source restarts its time at every step; steps are laid end to end.",
             "源数据每步重新计时；各步首尾相接排列。");
}

}  // namespace stageline
