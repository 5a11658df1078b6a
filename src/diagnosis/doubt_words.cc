#include "diagnosis/doubt_words.h"

#include <algorithm>

#include "base/counted.h"
#include "base/number.h"
#include "diagnosis/share_findings.h"

namespace stageline {
namespace {

constexpr int64_t kManySteps = 20;  // more of them would tell no more

struct Suspicion {
  std::string en, zh;
};
Suspicion suspicion(const Cause& c) {
  const std::string stage = std::to_string(c.stage);
  switch (c.kind) {
    case CauseKind::kSlowStage: return {"a slow stage " + stage, "第 " + stage + " 级偏慢"};
    case CauseKind::kSlowWorker: return {"a slow rank of stage " + stage, "第 " + stage + " 级有 rank 偏慢"};
    case CauseKind::kSlowLink: return {"a slow link to stage " + stage, "到第 " + stage + " 级的链路偏慢"};
    case CauseKind::kLongSequences: return {"long sequences", "长序列"};
    case CauseKind::kPauses: return {"pauses of the hosts", "主机停顿"};
    case CauseKind::kLateWorker: return {"late launches on stage " + stage, "第 " + stage + " 级下发过晚"};
    case CauseKind::kLateStarts: return {"late starts", "普遍晚开始"};
    case CauseKind::kOrder: return {"a wrong order of work", "工作顺序有误"};
    case CauseKind::kUnsplit: return {"backwards that are not split", "反向未拆分"};
    case CauseKind::kBetweenSteps: return {"time between steps", "步间时间"};
    case CauseKind::kMessageTail:
      return {"now and then a late message to stage " + stage, "到第 " + stage + " 级的消息偶尔很慢"};
    case CauseKind::kPosition: return {"a micro-batch that is always long", "总是偏长的微批"};
    case CauseKind::kRouting: return {"work that varies with the data", "随数据变化的工作量"};
    case CauseKind::kSlowGroup: return {"ranks that are slow together", "一组 rank 同时偏慢"};
    case CauseKind::kAllSlow: return {"all ranks becoming slower", "所有 rank 变慢"};
    case CauseKind::kBlockingSends: return {"ranks that wait for their own sends", "rank 等待自己的发送"};
    case CauseKind::kTail: return {"work after the pipeline", "流水线之后的工作"};
  }
  return {};
}

}  // namespace

DoubtWords doubt_words(const CauseList& causes, const Headline& headline) {
  if (causes.untold || !(causes.step_ns > 0)) return {};
  const bool few = causes.steps < kManySteps;
  const std::string with_en = counted(causes.steps, "step", "steps"), with_zh = grouped(causes.steps) + " 步";
  if (!causes.doubtful.empty()) {
    const Cause& c = causes.doubtful.front();
    const Suspicion what = suspicion(c);
    const std::string share = percent(c.lost_ns / causes.step_ns);
    return {"What looks like " + what.en + " (" + share + " of a step) cannot be told from chance with " + with_en +
                (few ? ": record more." : "."),
            "看起来像" + what.zh + "（每步的 " + share + "），但只有 " + with_zh + "，无法与偶然区分" +
                (few ? "：请多记录几步。" : "。")};
  }
  const double jitter = part_share(headline, "jitter");
  const bool explained = std::any_of(causes.causes.begin(), causes.causes.end(), [](const Cause& c) {
    return c.kind == CauseKind::kLongSequences || c.kind == CauseKind::kSlowWorker;
  });
  if (jitter < kLargePart || explained) return {};
  const std::string share = percent(jitter);
  return {"Jitter, cells of the same work that take different times, costs " + share +
              " of a step and cannot be told from chance with " + with_en + (few ? ": record more." : "."),
          "抖动（同样的工作用时不同）占每步的 " + share + "，只有 " + with_zh + "，无法与偶然区分" +
              (few ? "：请多记录几步。" : "。")};
}

DoubtWords hidden_words(const CauseList& causes) {
  if (causes.hidden.empty()) return {};
  const Cause& c = causes.hidden.front();
  const Suspicion what = suspicion(c);
  const std::string share = percent(c.lost_ns / causes.step_ns);
  const bool one = causes.causes.size() == 1;
  return {std::string("Once ") + (one ? "that is" : "these are") +
              " mended, next to hold the step up is what looks like " + what.en + ": another " + share + " of a step.",
          std::string("修复") + (one ? "它" : "这些问题") + "之后，下一个瓶颈看起来是" + what.zh + "：再占每步的 " +
              share + "。"};
}

}  // namespace stageline
