#include "pipeline/straggler_findings.h"

#include <cmath>

#include "base/number.h"

namespace stageline {
namespace {

std::string times(double ratio) { return fixed(ratio, 2) + "×"; }

struct Where {
  std::string en, zh;
};
Where worker_place(const Trace& trace, int32_t part) {
  const Part& p = trace.parts[static_cast<size_t>(part)];
  const std::string rank = std::to_string(p.rank), stage = std::to_string(p.stage);
  Where at{"Rank " + rank + " (stage " + stage, "rank " + rank + "（第 " + stage + " 级"};
  if (p.dp != kUnknown) {
    at.en += ", replica " + std::to_string(p.dp);
    at.zh += "，副本 " + std::to_string(p.dp);
  }
  if (!p.machine_name.empty()) {
    at.en += ", on " + p.machine_name;
    at.zh += "，位于 " + p.machine_name;
  }
  at.en += ")";
  at.zh += "）";
  return at;
}

void say(const Trace& trace, const StragglerLoss& loss, Finding& f) {
  const std::string count = grouped(loss.count), of = grouped(loss.of), each = human_duration(loss.each_ns);
  switch (loss.cause) {
    case StragglerCause::kSlowWorker: {
      const Where at = worker_place(trace, loss.part);
      f.id = "straggler.worker";
      f.title_en = at.en + " is slow: " + times(loss.ratio) + " its peers in " + count + " of " + of + " steps";
      f.title_zh = at.zh + "较慢：" + of + " 步中有 " + count + " 步是同级其他 rank 的 " + times(loss.ratio);
      f.detail_en =
          "The same work takes others less, step after step: look at that device (clocks, heat, power, other jobs on "
          "its "
          "host), or replace it.";
      f.detail_zh =
          "同样的计算其他 rank 用时更少，且步步如此：请检查该设备（频率、温度、功耗、同机其他任务），或更换它。";
      return;
    }
    case StragglerCause::kSlowStage: {
      const std::string stage = std::to_string(loss.stage);
      f.id = "straggler.stage";
      f.title_en =
          "Stage " + stage + " computes " + times(loss.ratio) + " as long as the median stage, in all replicas alike";
      f.title_zh = "第 " + stage + " 级的计算时间是中位级的 " + times(loss.ratio) + "，各副本都如此";
      f.detail_en =
          "It is what the stage holds, not a device: move layers away from it, or split what only it has (embedding, "
          "loss, head).";
      f.detail_zh =
          "原因在于该级承担的内容，而不是某个设备：请把它的层移到别的级，或拆分它独有的部分（词嵌入、损失、输出头）。";
      return;
    }
    case StragglerCause::kLongSequences:
      f.id = "straggler.sequences";
      f.title_en = "Some micro-batches are longer than others, forward and backward alike: sequences of unequal length";
      f.title_zh = "部分微批的前向与反向都更长：序列长度不均";
      f.detail_en = "Forwards and backwards of one micro-batch go together (r = " + fixed(loss.ratio, 2) + " over " +
                    count + " micro-batches of a stage, spread " + percent(loss.spread) +
                    "). The price is for micro-batches of equal cost: pack or sort sequences by length so that all "
                    "micro-batches of a step hold the same work.";
      f.detail_zh = "同一微批的前向与反向同步变化（某级 " + count + " 个微批，r = " + fixed(loss.ratio, 2) +
                    "，离散度 " + percent(loss.spread) +
                    "）。收益按各微批开销相等计算：请按长度打包或排序，使一步内各微批的工作量相同。";
      return;
    case StragglerCause::kPauses:
      f.id = "straggler.pauses";
      if (loss.part >= 0) {
        const Where at = worker_place(trace, loss.part);
        f.title_en = at.en + " pauses: " + count + " times, " + each + " each";
        f.title_zh = at.zh + "有停顿：" + count + " 次，平均每次 " + each;
        f.detail_en =
            "Work was ready and the host did not launch it. Look at what else its host does (logging, checkpoints, "
            "data "
            "loading, a garbage collector).";
        f.detail_zh = "计算已就绪，但主机没有及时下发。请检查该主机上的其他工作（日志、检查点、数据加载、垃圾回收）。";
        return;
      }
      f.title_en =
          grouped(loss.workers) + " ranks pause at moments of their own: " + count + " times, " + each + " each";
      f.title_zh = grouped(loss.workers) + " 个 rank 在各自的时刻停顿：共 " + count + " 次，平均每次 " + each;
      f.detail_en =
          "Work was ready and the host did not launch it, on changing ranks: the sign of a garbage collector. Collect "
          "on "
          "all ranks at once at a step's end (Python: gc.disable(), then gc.collect() every so many steps).";
      f.detail_zh =
          "计算已就绪，但主机没有及时下发，且发生在不同的 rank 上：这是垃圾回收的特征。请让所有 rank "
          "在步末同时回收（Python："
          "gc.disable()，并每隔若干步调用 gc.collect()）。";
      return;
    case StragglerCause::kLateLaunch: {
      const Where at = worker_place(trace, loss.part);
      f.id = "straggler.launch";
      f.title_en = at.en + " starts nearly every cell " + each + " later than it could";
      f.title_zh = at.zh + "几乎每个单元都比可开始的时刻晚 " + each;
      f.detail_en =
          "Its host is slow to launch: look at that host's processor (frequency, binding to the right socket, other "
          "processes), or launch less (graphs, fused operators).";
      f.detail_zh =
          "其主机下发较慢：请检查该主机的处理器（频率、是否绑定到正确的插槽、其他进程），或减少下发（图模式、融合算子）"
          "。";
      return;
    }
    case StragglerCause::kSlowStep:
      f.id = "straggler.step";
      f.title_en = "Step " + std::to_string(loss.step) + " took " + times(loss.ratio) + " the median step";
      f.title_zh = "第 " + std::to_string(loss.step) + " 步用时是中位步的 " + times(loss.ratio);
      f.detail_en =
          "It is left out of everything else here. Look at what happens in it: a checkpoint, an evaluation, the first "
          "step's compilation.";
      f.detail_zh = "其他各项均未计入该步。请查看该步发生了什么：保存检查点、评测，或首步编译。";
      return;
  }
}

}  // namespace

std::vector<Finding> straggler_findings(const Trace& trace, const Stragglers& stragglers) {
  std::vector<Finding> findings;
  for (const StragglerLoss& loss : stragglers.causes) {
    Finding f;
    f.weight = loss.saving_share;
    f.value = percent(loss.saving_share);
    f.value_note_en = "of a step";
    f.value_note_zh = "占每步";
    say(trace, loss, f);
    findings.push_back(std::move(f));
  }
  return findings;
}

std::string straggler_words(const StragglerWorker& worker) {
  const std::string in = grouped(worker.slow_steps) + " of " + grouped(worker.steps) + " steps";
  switch (worker.verdict) {
    case StragglerVerdict::kFine: return "";
    case StragglerVerdict::kPersistent: return times(worker.ratio) + " its peers, slow in " + in;
    case StragglerVerdict::kNowAndThen: return "slow in " + in;
    case StragglerVerdict::kLateLaunch: return "nearly every cell starts " + human_duration(worker.late_ns) + " late";
    case StragglerVerdict::kPauses:
      return grouped(worker.pauses) + " pauses of " +
             human_duration(worker.pause_ns / static_cast<double>(worker.pauses)) +
             (std::isfinite(worker.period_ns) ? ", every " + human_duration(worker.period_ns) : "");
    case StragglerVerdict::kAlone: return "no other rank holds its stage: worker and stage cannot be told apart";
  }
  return "";
}

}  // namespace stageline
