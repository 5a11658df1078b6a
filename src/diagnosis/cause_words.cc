#include "diagnosis/cause_words.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/number.h"
#include "base/text.h"
#include "diagnosis/what_if/layer_price.h"

namespace stageline {
namespace {

std::string times(double ratio) { return fixed(ratio, 2) + "×"; }
std::string times_zh(double ratio) { return fixed(ratio, 2) + " 倍"; }
std::string n(int64_t count) { return grouped(count); }
std::string share_words(int64_t count, int64_t of) {
  return percent(static_cast<double>(count) / static_cast<double>(std::max<int64_t>(of, 1)));
}
std::string in_steps(int64_t slow, int64_t all) {
  if (all == 1) return "in the one step looked at";
  return "in " + n(slow) + " of " + n(all) + " steps";
}
std::string in_steps_zh(int64_t slow, int64_t all) {
  return all == 1 ? "所看的一步如此" : n(all) + " 步中有 " + n(slow) + " 步如此";
}
std::string ms(double ns) { return human_duration(ns); }

std::string kind_zh(CellKind kind) {
  switch (kind) {
    case CellKind::kForward: return "前向";
    case CellKind::kBackward: return "反向";
    case CellKind::kInputGrad: return "输入梯度";
    case CellKind::kWeightGrad: return "权重梯度";
    case CellKind::kForwardBackward: return "重叠的前向与反向";
    default: return "消息";
  }
}

class Words {
 public:
  Words(const Trace& trace, const CauseList& list, const Recognition& recognition)
      : trace_(trace), list_(list), recognition_(recognition) {
    for (const Part& part : trace.parts) {
      replicas_ = std::max(replicas_, part.dp + 1);
      stages_ = std::max(stages_, part.stage + 1);
    }
  }

  // A further slow link, told with the one that costs most.
  void add_link(const Cause& c, Finding& f) const {
    const std::string from = std::to_string(c.from_stage), to = std::to_string(c.stage);
    const std::string less = share(c.lost_ns);
    f.detail_en += (c.both_ways ? " Slow too: between stages " + from + " and " + to
                                : " Slow too: from stage " + from + " to stage " + to) +
                   " (" + ms(c.times.front().own_ns) + ", " + less + " of a step).";
    f.detail_zh += "同样偏慢：第 " + from + " 级" + (c.both_ways ? "与" : "到") + "第 " + to + " 级（" +
                   ms(c.times.front().own_ns) + "，每步 " + less + "）。";
  }

  Finding of(const Cause& c) const {
    Finding f;
    switch (c.kind) {
      case CauseKind::kSlowStage: slow_stage(c, f); break;
      case CauseKind::kSlowWorker: slow_worker(c, f); break;
      case CauseKind::kSlowLink: slow_link(c, f); break;
      case CauseKind::kLongSequences: long_sequences(c, f); break;
      case CauseKind::kPauses: pauses(c, f); break;
      case CauseKind::kLateWorker: late_worker(c, f); break;
      case CauseKind::kLateStarts: late_starts(c, f); break;
      case CauseKind::kOrder: order(c, f); break;
      case CauseKind::kUnsplit: unsplit(c, f); break;
      case CauseKind::kBetweenSteps: between_steps(c, f); break;
      case CauseKind::kTail: tail(c, f); break;
      case CauseKind::kMessageTail: message_tail(c, f); break;
      case CauseKind::kPosition: position(c, f); break;
      case CauseKind::kRouting: routing(c, f); break;
      case CauseKind::kSlowGroup: slow_group(c, f); break;
      case CauseKind::kAllSlow: all_slow(c, f); break;
      case CauseKind::kBlockingSends: blocking_sends(c, f); break;
    }
    f.detail_en += when_en(c.lost_course);
    f.detail_zh += when_zh(c.lost_course);
    f.lost_ns_per_step = c.lost_ns;
    f.uncertainty_ns = std::isnan(c.error_ns) ? 0 : c.error_ns;
    f.weight = list_.step_ns > 0 ? c.lost_ns / list_.step_ns : 0;
    f.price.saving_ns = c.price_ns();
    f.value = "−" + percent(f.price.saving_ns / list_.step_ns);
    f.value_note_en = "a step";
    f.value_note_zh = "每步";
    return f;
  }

 private:
  // Whether the stage, or its chunk, holds the end (or the start) of the model.
  bool is_end(const Cause& c, bool end) const {
    const bool known = !recognition_.candidates.empty();
    const int32_t chunks = known ? recognition_.best().sizes.chunks : 1;
    const ChunkLayout layout = known ? recognition_.best().layout : ChunkLayout::kLoop;
    if (layout == ChunkLayout::kBidirectional) {
      if (c.chunk == kUnknown) return c.stage == 0 || c.stage == stages_ - 1;
      return c.stage == (end == (c.chunk == 0) ? stages_ - 1 : 0);
    }
    const int32_t chunk = end ? chunks - 1 : 0;
    if (c.chunk != kUnknown && c.chunk != chunk) return false;
    const bool turned = layout == ChunkLayout::kV && chunk % 2 == 1;
    return c.stage == (end != turned ? stages_ - 1 : 0);
  }
  // "rank 1's F0, rank 2's B1 and 3 more"
  std::string places(const Cause& c, const char* last, const char* rank_word, const char* of) const {
    constexpr size_t kShown = 2;
    std::string text;
    for (size_t i = 0; i < std::min(c.at.size(), kShown); ++i) {
      const Cell cell = trace_.cells.at(c.at[i]);
      text += (i == 0                              ? ""
               : c.at.size() == kShown             ? last
               : std::string_view(last) == " and " ? ", "
                                                   : "、") +
              (rank_word + rank(cell.part)) + of + cell_label(cell, cell.chunk > 0);
    }
    if (c.at.size() <= kShown) return text;
    const std::string more = n(static_cast<int64_t>(c.at.size() - kShown));
    return text + (std::string_view(last) == " and " ? " and " + more + " other cells" : " 等 " + more + " 处");
  }
  std::string share(double ns) const { return percent(ns / list_.step_ns); }
  int32_t rank_number(int32_t part) const { return trace_.parts[static_cast<size_t>(part)].rank; }
  std::string rank(int32_t part) const { return std::to_string(rank_number(part)); }
  std::string worker_en(const Cause& c) const {
    const Part& part = trace_.parts[static_cast<size_t>(c.part)];
    return "Rank " + rank(c.part) + (part.machine_name.empty() ? "" : " (" + part.machine_name + ")");
  }
  std::string worker_zh(const Cause& c) const {
    const Part& part = trace_.parts[static_cast<size_t>(c.part)];
    return "rank " + rank(c.part) + (part.machine_name.empty() ? "" : "（" + part.machine_name + "）");
  }
  void slow_stage(const Cause& c, Finding& f) const {
    const bool last = is_end(c, true), first = is_end(c, false);
    const std::string s = std::to_string(c.stage);
    const std::string chunk_en = c.chunk == kUnknown ? "" : "'s chunk " + std::to_string(c.chunk);
    const std::string chunk_zh = c.chunk == kUnknown ? "" : "的第 " + std::to_string(c.chunk) + " 个分块";
    f.id = "stage.slow";
    f.cause = "stage:" + s;
    const bool one_chunk = c.chunk != kUnknown;
    const std::string end_en = last ? "split the output head" : first ? "split the embedding" : "";
    const std::string end_zh = last ? "拆分输出头" : first ? "拆分词嵌入" : "";
    // Of a stage whose end layers cannot lighten, that end comes first.
    const bool end_first = c.layers_bring_little() && !end_en.empty();
    const std::string it_en = c.mirror != kUnknown ? "them" : "it";
    const std::string fix_en =
        (one_chunk ? " the time of the other chunks: " : " the time of the other stages: ") +
        (end_first ? end_en + ", or move layers away from " + it_en
                   : "move layers away from " + it_en + (end_en.empty() ? "" : ", or " + end_en));
    const std::string fix_zh =
        (one_chunk ? "的用时是其他分块的 " : "的用时是其他级的 ") + times_zh(c.ratio) + "：请" +
        (end_first ? end_zh + "，或把部分层移走" : "把部分层移到其他级" + (end_zh.empty() ? "" : "，或" + end_zh));
    if (c.mirror != kUnknown) {  // the same layers, once for each direction
      const bool both = last && first;
      const std::string m = std::to_string(c.mirror);
      f.title_en = "Stages " + s + " and " + m + ", which hold the " +
                   (both    ? "first and last"
                    : last  ? "last"
                    : first ? "first"
                            : "same") +
                   " layers of the two directions, take " + times(c.ratio) + fix_en;
      f.title_zh = "第 " + s + "、" + m + " 级（两个方向的" +
                   (both    ? "首尾各层"
                    : last  ? "最后几层"
                    : first ? "最初几层"
                            : "同一些层") +
                   "）" + fix_zh;
    } else {
      f.title_en = "Stage " + s + chunk_en + (last ? ", the last," : "") + " takes " + times(c.ratio) + fix_en;
      f.title_zh = "第 " + s + " 级" + chunk_zh + (last ? (one_chunk ? "（最后一个）" : "（最后一级）") : "") + fix_zh;
    }
    std::string en, zh;
    for (const CauseTimes& t : c.times) {
      en += (en.empty() ? "Its " : ", its ") + std::string(kind_name(t.kind)) + " takes " + ms(t.own_ns) + " against " +
            ms(t.others_ns);
      zh += (zh.empty() ? "其" : "，") + kind_zh(t.kind) + "用时 " + ms(t.own_ns) + "，其他级为 " + ms(t.others_ns);
    }
    if (en.empty())
      en = "Its cells take " + times(c.ratio) + " the others'", zh = "其单元用时是其他级的 " + times_zh(c.ratio);
    const LayerWords layers = layer_words(c, list_.step_ns, stages_);
    const bool two = c.mirror != kUnknown;
    const std::string were_en = two ? "were they as fast as the others, " : "were the stage as fast as the others, ";
    const std::string were_zh = two ? "若它们与其他级一样快" : "若它与其他级一样快";
    f.detail_en = en + ", " + in_steps(c.slowest_in, c.steps) + course_en(c.course) +
                  (c.saving_ns > 0 ? ". With the same work spread evenly over the stages a step takes " +
                                         share(c.saving_ns) + " less; " + were_en
                                   : ". W" + were_en.substr(1) + "a step would take ") +
                  share(c.lost_ns) + " less." + layers.en +
                  (replicas_ > 1 || two ? ""
                                        : " With one replica nobody can tell a heavy stage from a slow device: if its "
                                          "layers are no more than the others', look at the device.");
    f.detail_zh =
        zh + "，" + in_steps_zh(c.slowest_in, c.steps) + course_zh(c.course) +
        (c.saving_ns > 0 ? "。若把同样的计算均分到各级，每步少用 " + share(c.saving_ns) + "；" + were_zh + "，少用 "
                         : "。" + were_zh + "，每步少用 ") +
        share(c.lost_ns) + "。" + layers.zh +
        (replicas_ > 1 || two ? ""
                              : "只有一个副本时，无法区分是这一级太重还是设备太慢：如果它的层数并不多，请检查设备。");
    f.price.fix_en = "spread the layers evenly over the stages";
    f.price.fix_zh = "把各层均匀分到各级";
    f.price.assumption_en = "moving a layer moves its time";
    f.price.assumption_zh = "移动一层即移动其用时";
    f.evidence = {"waterfall", "waterfall-stages"};
  }

  void slow_worker(const Cause& c, Finding& f) const {
    const std::string s = std::to_string(c.stage);
    f.id = "rank.slow";
    f.cause = "rank:" + rank(c.part);
    f.title_en = worker_en(c) + " takes " + times(c.ratio) + " the time of the other ranks of stage " + s +
                 " for the same work" + (c.sometimes ? " " + in_steps(c.slowest_in, c.steps) : "") +
                 ": check or replace that device";
    const std::string when_zh = c.sometimes ? " 在 " + n(c.steps) + " 步中的 " + n(c.slowest_in) + " 步里，" : " 的";
    f.title_zh =
        worker_zh(c) + when_zh + "计算用时是第 " + s + " 级其他 rank 的 " + times_zh(c.ratio) + "：请检查或更换该设备";
    f.detail_en = "The work is the same as theirs and it is slower " + in_steps(c.slowest_in, c.steps) +
                  course_en(c.course) +
                  ", so it is the device or its host: clocks, heat, power limits, other processes. As fast as the "
                  "others, a step takes " +
                  share(c.lost_ns) + " less.";
    f.detail_zh = "工作量与它们相同，而它偏慢（" + in_steps_zh(c.slowest_in, c.steps) + course_zh(c.course) +
                  "），因此问题在设备或主机：频率、温度、功率限制、其他进程。若与其他 rank 一样快，每步少用 " +
                  share(c.lost_ns) + "。";
    f.price.fix_en = "replace the worker";
    f.price.fix_zh = "更换该设备";
    f.evidence = {"stragglers", "straggler-workers"};
  }

  void slow_link(const Cause& c, Finding& f) const {
    const std::string from = std::to_string(c.from_stage), to = std::to_string(c.stage);
    const CauseTimes t = c.times.front();
    const std::string dp = std::to_string(c.dp);
    const bool replicas = trace_.context_parallel <= 1;
    const std::string in_en = c.dp == kUnknown ? "" : (replicas ? " of replica " : " of pipeline ") + dp;
    const std::string in_zh = c.dp == kUnknown ? "" : (replicas ? "（副本 " : "（流水线 ") + dp + "）";
    f.id = "link.slow";
    f.cause = "link:" + from + "-" + to + (c.both_ways ? " link:" + to + "-" + from : "");
    const bool recorded = t.others_ns > 0;
    const std::string who_en = c.both_ways ? "Messages between stages " + from + " and " + to
                                           : "Messages from stage " + from + " to stage " + to;
    f.title_en = who_en + in_en + " take " + ms(t.own_ns) + (c.both_ways ? " each way" : "") +
                 (recorded ? ", on the other links " + ms(t.others_ns) : " longer than on the other links") +
                 ": check that link";
    f.title_zh =
        (c.both_ways ? "第 " + from + " 级与第 " + to + " 级之间" : "第 " + from + " 级到第 " + to + " 级") + in_zh +
        "的消息" + (c.both_ways ? "每个方向" : "") +
        (recorded ? "用时 " + ms(t.own_ns) + "，其他链路为 " + ms(t.others_ns) : "比其他链路多用 " + ms(t.own_ns)) +
        "：请检查该链路";
    f.detail_en =
        (c.slowest_in > 0 && c.slowest_in < c.steps ? "It is slow " + in_steps(c.slowest_in, c.steps) + ". "
                                                    : std::string()) +
        "Waiting for either side is not counted, only the transfer. Look at cable, port, switch and which network "
        "interface these two use. As fast as the others, a step takes " +
        share(c.lost_ns) + " less." +
        (c.both_ways ? " Their clocks were put together by the same gaps, so one way alone may take all of it." : "");
    f.detail_zh =
        (c.slowest_in > 0 && c.slowest_in < c.steps ? in_steps_zh(c.slowest_in, c.steps) + "。" : std::string()) +
        "只计传输本身，不含等待对方的时间。请检查线缆、端口、交换机，以及这两端所用的网卡。若与其他链路一样快，每步少用"
        " " +
        share(c.lost_ns) + "。" + (c.both_ways ? "两端的时钟正是按这些间隔对齐的，因此也可能全在其中一个方向。" : "");
    f.price.fix_en = "a link as fast as the others";
    f.price.fix_zh = "使该链路与其他链路一样快";
    f.evidence = {"links", ""};
  }

  void long_sequences(const Cause& c, Finding& f) const {
    const std::string part = share_words(c.count, c.of);
    f.id = "sequence.long";
    f.cause = "sequences";
    f.title_en = part + " of the micro-batches take " + times(c.ratio) +
                 " the time of the usual one, on every stage: balance sequence lengths";
    f.title_zh = part + " 的微批在每一级上的用时都是通常的 " + times_zh(c.ratio) + "：请均衡序列长度";
    f.detail_en = std::string(
                      "Their forwards and their backwards are long together, which is what long sequences do and slow "
                      "devices do not. ") +
                  (c.saving_ns > 0 ? "Dealt out evenly over micro-batches and replicas a step takes " +
                                         share(c.saving_ns) + " less; all"
                                   : "All") +
                  " as short as the usual one, a step takes " + share(c.lost_ns) + " less.";
    f.detail_zh =
        std::string("它们的前向与反向同时变长：这是长序列的特征，而不是设备慢。") +
        (c.saving_ns > 0 ? "若把序列长度均匀分到各微批与副本，每步少用 " + share(c.saving_ns) + "；" : std::string()) +
        "若都与通常的一样短，每步少用 " + share(c.lost_ns) + "。";
    f.price.fix_en = "deal sequences out so that micro-batches are equally long";
    f.price.fix_zh = "按长度分配序列，使各微批等长";
    f.price.assumption_en = "time grows as it does in the long micro-batches";
    f.price.assumption_zh = "用时按长微批的比例变化";
    f.evidence = {"stragglers", "forward-backward"};
  }

  void pauses(const Cause& c, Finding& f) const {
    const std::string part = share_words(c.count, c.of);
    const std::string each =
        fixed(static_cast<double>(c.count) / static_cast<double>(std::max<int64_t>(list_.steps, 1)), 1);
    const std::string saves_en = " Without them a step takes " + share(c.lost_ns) + " less.";
    const std::string saves_zh = "没有这些停顿，每步少用 " + share(c.lost_ns) + "。";
    f.id = "host.pauses";
    f.cause = "host";
    if (c.part != kUnknown) f.cause += " host:" + rank(c.part) + " rank:" + rank(c.part);
    if (c.guessed) {
      const std::string link = std::to_string(c.from_stage) + "-" + std::to_string(c.stage);
      f.cause += " message-tail:" + link + " link:" + link;
    }
    if (c.first_of_step) {  // of one rank: what it does before its step begins
      f.rank = rank_number(c.part);
      f.cause += " between-steps" + (c.name.empty() ? "" : ":" + dashed(c.name));
      const std::string what_en = c.name.empty() ? "" : " (" + c.name + ")",
                        what_zh = c.name.empty() ? "" : "（" + c.name + "）";
      f.title_en = worker_en(c) + " begins its steps " + ms(c.pause_ns) + " after the others" + what_en +
                   ": look at what it does between steps";
      f.title_zh =
          worker_zh(c) + " 每步比其他 rank 晚 " + ms(c.pause_ns) + " 开始" + what_zh + "：请看它在两步之间做什么";
      f.detail_en = "Its first work of a step starts late though nothing holds it up, " + in_steps(c.count, c.steps) +
                    ", and its other work does not" +
                    (c.name.empty() ? ". Nobody recorded what it does then: its data loader, logging, checkpoints, "
                                      "evaluation on one rank alone; rows of kind other around these would name it."
                                    : "; " + c.name + " was recorded there.") +
                    saves_en;
      f.detail_zh =
          "它每步的第一项工作在一切就绪后仍晚开始（" + in_steps_zh(c.count, c.steps) + "），其余工作则不然" +
          (c.name.empty() ? "。没有记录说明它此时在做什么：该 rank 自己的数据加载、日志、检查点或评估；用 other "
                            "类的行标出即可命名。"
                          : "；此处记录了 " + c.name + "。") +
          saves_zh;
    } else if (!c.at.empty()) {  // nor would it choose one place
      f.rank = rank_number(trace_.cells.at(c.at[0]).part);
      const std::string where_en = places(c, " and ", "rank ", "'s "), where_zh = places(c, "、", "rank ", " 的 ");
      f.title_en = "In every step " + where_en + " start" + (c.at.size() == 1 ? "s " : " ") + ms(c.pause_ns) +
                   " late though nothing holds " + (c.at.size() == 1 ? "it" : "them") +
                   " up: see what the order of work and the host do there";
      f.title_zh =
          "每一步中 " + where_zh + " 在一切就绪后仍晚 " + ms(c.pause_ns) + " 才开始：请检查该处的执行顺序与主机";
      const bool numbered = trace_.diagnostics.count("cells.schedule") > 0;
      f.detail_en = "The same place in every step, so it is neither chance nor garbage collection. " +
                    std::string(numbered ? "The recording does not number micro-batches, so a rank that runs them in "
                                           "another order than its neighbours looks just so: record the numbers "
                                           "(docs/howto/ascend.md); else "
                                         : "") +
                    (numbered ? "look" : "Look") +
                    " for what the training loop does there: logging, data loading, a synchronising call, a receive "
                    "that is posted late." +
                    saves_en;
      f.detail_zh =
          "每一步都在同一位置，因此既不是偶然，也不是垃圾回收。" +
          std::string(numbered ? "记录中没有微批编号：如果某个 rank "
                                 "执行微批的顺序与相邻级不同，看起来正是这样，请记录编号（docs/howto/ascend.md）；否则"
                               : "") +
          "请检查训练循环在该处做了什么：日志、数据加载、同步调用，或接收发起过晚。" + saves_zh;
    } else if (c.part != kUnknown) {  // one rank alone: no garbage collector would choose it
      f.title_en = worker_en(c) + " starts some of its work " + ms(c.pause_ns) +
                   " late though nothing that was recorded holds it up: look at what its host does then" +
                   (c.guessed ? ", and at its messages from stage " + std::to_string(c.from_stage) : "");
      f.title_zh = worker_zh(c) + " 有些工作在一切就绪后仍晚 " + ms(c.pause_ns) + " 才开始：请检查其主机此时在做什么" +
                   (c.guessed ? "，以及来自第 " + std::to_string(c.from_stage) + " 级的消息" : "");
      f.detail_en = part + " of all forwards and backwards, " + each +
                    " a step, all on this rank: data loading, logging, checkpoints, another process, or a receive that "
                    "is posted late." +
                    (c.guessed ? " All of it waits for stage " + std::to_string(c.from_stage) +
                                     ", whose messages nobody recorded: with so few late starts these may be it as "
                                     "well as the host; recorded messages tell."
                               : "") +
                    saves_en;
      f.detail_zh =
          "占全部前向与反向的 " + part + "，每步 " + each +
          " 次，都在这个 rank 上：可能是数据加载、日志、检查点、其他进程，或接收发起过晚。" +
          (c.guessed ? "它们都在等第 " + std::to_string(c.from_stage) +
                           " 级，而没有记录消息：晚开始的次数太少，可能是消息，也可能是主机；记录消息即可区分。"
                     : "") +
          saves_zh;
    } else if (c.collector) {
      f.title_en = part + " of all forwards and backwards start " + ms(c.pause_ns) +
                   " late though nothing holds them up: run garbage collection on all ranks at once";
      f.title_zh =
          part + " 的前向与反向在一切就绪后仍晚 " + ms(c.pause_ns) + " 才开始：请在所有 rank 上同时执行垃圾回收";
      f.detail_en = each + " long pauses a step, on " + n(c.ranks) +
                    " ranks, each at a time of its own: what Python's garbage collector does, and every pause makes "
                    "the whole pipeline wait. gc.disable(), and gc.collect() every so many steps on all ranks; if that "
                    "does not help, look at data loading, logging and checkpoints." +
                    saves_en;
      f.detail_zh =
          "每步 " + each + " 次较长的停顿，涉及 " + n(c.ranks) +
          " 个 rank，时间各不相同：这是 Python 垃圾回收的特征，每次停顿都会让整条流水线等待。请用 "
          "gc.disable()，并每隔若干步在所有 rank 上同时 gc.collect()；若无效，请检查数据加载、日志与检查点。" +
          saves_zh;
    } else {
      f.title_en = part + " of all forwards and backwards start " + ms(c.pause_ns) +
                   " late though nothing holds them up: look at what the hosts do then";
      f.title_zh = part + " 的前向与反向在一切就绪后仍晚 " + ms(c.pause_ns) + " 才开始：请检查主机此时在做什么";
      f.detail_en = each + " a step, on " + n(c.ranks) +
                    " ranks; too short or too many for a garbage collector: data loading, logging, other processes, or "
                    "receives that are posted late." +
                    saves_en;
      f.detail_zh = "每步 " + each + " 次，涉及 " + n(c.ranks) +
                    " 个 rank；比垃圾回收更短或更频繁：可能是数据加载、日志、其他进程，或接收发起过晚。" + saves_zh;
    }
    f.price.fix_en = "no pauses";
    f.price.fix_zh = "消除停顿";
    f.evidence = {"stragglers", "straggler-workers"};
  }

  void late_worker(const Cause& c, Finding& f) const {
    f.id = "rank.late_launch";
    f.cause = "rank:" + rank(c.part);
    const double others = c.times.empty() ? 0 : c.times.front().others_ns;
    f.title_en = worker_en(c) + " starts every forward and backward " + ms(c.pause_ns) +
                 " later than it could: look at its host";
    f.title_zh = worker_zh(c) + " 的每个前向与反向都比可开始的时刻晚 " + ms(c.pause_ns) + "：请检查其主机";
    f.detail_en =
        "Its inputs are there and its device is free; the other ranks " +
        (others > 0 ? "are late by " + ms(others) + " themselves, which is not counted"
                    : std::string("start at once")) +
        ". Look at CPU frequency, pinning of threads, other processes and what the training loop does between "
        "launches. " +
        (others > 0 ? "Started as early as theirs" : "Started at once") + ", a step takes " + share(c.lost_ns) +
        " less.";
    f.detail_zh = "输入已到、设备空闲，而其他 rank " +
                  (others > 0 ? "自身也晚 " + ms(others) + "（不计入）" : std::string("会立即开始")) +
                  "。请检查 CPU 频率、线程绑核、其他进程，以及训练循环在两次下发之间做了什么。若" +
                  (others > 0 ? "与它们一样及时" : "立即开始") + "，每步少用 " + share(c.lost_ns) + "。";
    f.price.fix_en = "launches as early as on the other ranks";
    f.price.fix_zh = "与其他 rank 一样及时下发";
    f.evidence = {"stragglers", "straggler-workers"};
  }

  void late_starts(const Cause& c, Finding& f) const {
    const std::string part = share_words(c.count, c.of);
    f.id = "host.late_starts";
    f.cause = "host";
    f.rank = rank_number(c.part);
    f.title_en = "Ranks start " + part + " of all forwards and backwards late, by " + ms(c.pause_ns) +
                 " on average: launch them earlier, and post receives ahead";
    f.title_zh =
        "各 rank 上 " + part + " 的前向与反向都晚开始，平均晚 " + ms(c.pause_ns) + "：请更早下发，并提前发起接收";
    f.detail_en = "Inputs are there and the ranks are free, on " + n(c.ranks) + " ranks, most often on rank " +
                  rank(c.part) + " (" + percent(c.ratio) +
                  " of its work): too often for a garbage collector. Either a rank still sits in a send or receive of "
                  "other work (post receives ahead, send without waiting), or its host launches kernels no faster than "
                  "the device runs them (CUDA graphs, fewer and larger kernels). All as prompt as the quickest "
                  "quarter, a step takes " +
                  share(c.lost_ns) + " less.";
    f.detail_zh = "输入已到、rank 空闲，涉及 " + n(c.ranks) + " 个 rank，最多的是 rank " + rank(c.part) +
                  "（占其工作的 " + percent(c.ratio) +
                  "）：垃圾回收不会如此频繁。或者 rank 仍停在其他工作的收发中（请提前发起接收，发送不要等待对方），"
                  "或者主机下发核函数赶不上设备执行（可用 CUDA Graph，或用更少、更大的核函数）。若都与最快的四分之一"
                  "一样及时，每步少用 " +
                  share(c.lost_ns) + "。";
    f.price.fix_en = "starts as prompt as the quickest quarter";
    f.price.fix_zh = "与最快的四分之一一样及时开始";
    f.evidence = {"theory", "late-reasons"};
  }

  void order(const Cause& c, Finding& f) const {
    const std::string name = recognition_.candidates.empty() ? "the schedule" : recognition_.best().name;
    f.id = "schedule.order";
    f.cause = "order";
    f.price.fix_en = "the order of " + name;
    f.price.fix_zh = "恢复 " + name + " 的顺序";
    f.evidence = {"schedule", "divergence"};
    if (recognition_.divergences.empty()) {  // of another recognition than the cause
      f.title_en = n(c.count) + " of " + n(c.of) + " lists of work leave the order of " + name + "; restore the order";
      f.title_zh = n(c.of) + " 个工作列表中有 " + n(c.count) + " 个偏离了 " + name + " 的顺序；请恢复该顺序";
      return;
    }
    const Divergence& worst = recognition_.divergences.front();  // orders come first
    const std::string s = std::to_string(worst.stage);
    f.step = worst.step;
    f.rank = rank_number(worst.part);
    f.title_en = "Stage " + s + " leaves the order of " + name + ": it " + worst.sentence_en + "; restore the order";
    f.title_zh = "第 " + s + " 级偏离了 " + name + " 的顺序：" + worst.sentence_zh + "；请恢复该顺序";
    f.detail_en = "First in step " + std::to_string(worst.step) + " on rank " + rank(worst.part) + ", in " +
                  n(c.count) + " of " + n(c.of) +
                  " lists of work. With the same times in the schedule's order a step takes " + share(c.lost_ns) +
                  " less.";
    f.detail_zh = "首次出现于第 " + std::to_string(worst.step) + " 步、rank " + rank(worst.part) + "；" + n(c.of) +
                  " 个工作列表中有 " + n(c.count) + " 个如此。用时不变而按调度的顺序执行，每步少用 " +
                  share(c.lost_ns) + "。";
  }

  void unsplit(const Cause& c, Finding& f) const {
    const std::string name = recognition_.candidates.empty() ? "the schedule" : recognition_.best().name;
    const std::string who_en = c.stage != kUnknown ? "Stage " + std::to_string(c.stage) + " runs"
                                                   : n(c.count) + " of " + n(c.of) + " stages run";
    const std::string who_zh =
        c.stage != kUnknown ? "第 " + std::to_string(c.stage) + " 级" : n(c.of) + " 级中有 " + n(c.count) + " 级";
    f.id = "schedule.unsplit";
    f.cause = "order";
    f.title_en = who_en + " whole backwards where " + name + " splits weight gradients off: switch the split on";
    f.title_zh = who_zh + "没有把权重梯度从反向中拆出，而 " + name + " 要求拆分：请启用拆分";
    f.detail_en =
        "Weight gradients are what this schedule fills its waiting with; none were recorded there. Split as the "
        "schedule has "
        "it a step takes " +
        share(c.lost_ns) +
        " less, if the two halves take what they take elsewhere (half each where "
        "nobody knows).";
    f.detail_zh = "该调度用权重梯度来填补等待，而这里没有记录到。按调度拆分后每步少用 " + share(c.lost_ns) +
                  "（假定两半的用时与其他级相同；无从得知时各占一半）。";
    f.price.fix_en = "weight gradients apart, as " + name + " has them";
    f.price.fix_zh = "按 " + name + " 拆分权重梯度";
    f.evidence = {"schedule", "recognition"};
  }

  void between_steps(const Cause& c, Finding& f) const {
    const std::string named = c.name.empty() ? "" : " (" + c.name + ")",
                      named_zh = c.name.empty() ? "" : "（" + c.name + "）";
    f.id = "between.steps";
    f.cause = "between-steps" + (c.name.empty() ? "" : ":" + dashed(c.name));
    const bool one = c.count == 1;
    if (c.sometimes) {
      const std::string most = std::to_string(c.at_steps.front());
      if (one) f.step = c.at_steps.front();
      f.title_en = one ? "Before step " + most + " nothing that was recorded runs for " + ms(c.pause_ns) +
                             " longer than before the others" + named
                       : "Before " + n(c.count) + " of " + n(c.of) + " steps nothing that was recorded runs for " +
                             ms(c.pause_ns) + " longer than before the others" + named;
      f.title_zh = one ? "第 " + most + " 步之前，所有 rank 都比其他步之前多停 " + ms(c.pause_ns) + named_zh
                       : n(c.of) + " 步中有 " + n(c.count) + " 步之前，所有 rank 都多停 " + ms(c.pause_ns) + named_zh;
    } else {
      f.title_en =
          "Between steps nothing that was recorded runs for " + ms(c.pause_ns) + named + ": overlap that with the step";
      f.title_zh = "步与步之间，没有任何记录的工作，持续 " + ms(c.pause_ns) + named_zh + "：请让它与计算重叠";
    }
    std::string steps;
    constexpr size_t kShown = 6;
    for (size_t i = 0; i < std::min(c.at_steps.size(), kShown); ++i)
      steps += (i == 0 ? "" : ", ") + std::to_string(c.at_steps[i]);
    if (c.at_steps.size() > kShown) steps += ", …";
    const std::string who_en = c.part == kUnknown || c.name.empty()
                                   ? ""
                                   : " Rank " + rank(c.part) + " alone recorded it: the others wait for that rank.";
    const std::string who_zh =
        c.part == kUnknown || c.name.empty() ? "" : "只有 rank " + rank(c.part) + " 记录了它，其他 rank 都在等它。";
    if (c.part != kUnknown && !c.name.empty()) f.rank = rank_number(c.part);
    f.detail_en =
        "From the last end of a step's work to the first start of the next one's" +
        (c.sometimes ? ", before step " + steps : std::string()) + "." + who_en +
        (c.name.empty() ? (c.guessed ? std::string(" The optimizer was not recorded, and is part of it; so may be")
                                     : std::string(" Nothing recorded says what happens there:")) +
                              " waiting for data, a checkpoint, evaluation, "
                              "logging or a synchronising call. Rows of kind other (a range around it) would name it."
                        : std::string()) +
        " Loaded, written or evaluated beside the step, a period is " + share(c.lost_ns) +
        " of a step shorter on average.";
    f.detail_zh = "从一步工作的最后结束到下一步工作的最早开始" +
                  (c.sometimes ? "（第 " + steps + " 步之前）" : std::string()) + "。" + who_zh +
                  (c.name.empty() ? "没有记录说明此时在做什么：等待数据、检查点、评估、日志或同步调用。用 other "
                                    "类的行（在其外加一个区间）即可命名。"
                                  : "") +
                  "若与计算并行，平均每步少用 " + share(c.lost_ns) + "。";
    f.price.fix_en = "do it beside the step";
    f.price.fix_zh = "与计算并行";
    f.evidence = {"waterfall", "waterfall-periods"};
  }

  int32_t step_number(size_t index) const {
    return index < list_.step_numbers.size() ? list_.step_numbers[index] : static_cast<int32_t>(index);
  }
  // "from step 10 on (1.00× before, 1.31× after)"; "" where it is the same all along.
  std::string course_en(const Course& c) const {
    switch (c.kind) {
      case CourseKind::kOnset:
        return (c.high > c.low ? " from step " : " until before step ") + std::to_string(step_number(c.from)) +
               (c.high > c.low ? " on" : "") + " (" + times(c.low) + " before, " + times(c.high) + " after)";
      case CourseKind::kTrend:
        return (c.high > c.low ? " and growing with every step, a trend ("
                               : " and falling with every step, a trend (") +
               times(c.low) + " at first, " + times(c.high) + " at last)";
      case CourseKind::kEvery:
        return " in every " + nth(c.every) + " step, from step " + std::to_string(step_number(c.from)) + " (" +
               times(c.high) + ", else " + times(c.low) + ")";
      case CourseKind::kSome:
        return " in " + n(static_cast<int64_t>(c.high_count)) + " steps (" + times(c.high) + ", else " + times(c.low) +
               ")";
      case CourseKind::kConstant: return "";
    }
    return "";
  }
  std::string course_zh(const Course& c) const {
    switch (c.kind) {
      case CourseKind::kOnset:
        return std::string(c.high > c.low ? "，自" : "，直到") + "第 " + std::to_string(step_number(c.from)) + " 步" +
               (c.high > c.low ? "起" : "前") + "（之前 " + times_zh(c.low) + "，之后 " + times_zh(c.high) + "）";
      case CourseKind::kTrend:
        return std::string("，且逐步") + (c.high > c.low ? "上升" : "下降") + "（起初 " + times_zh(c.low) + "，最后 " +
               times_zh(c.high) + "）";
      case CourseKind::kEvery:
        return "，每 " + std::to_string(c.every) + " 步一次，自第 " + std::to_string(step_number(c.from)) + " 步（" +
               times_zh(c.high) + "，其余 " + times_zh(c.low) + "）";
      case CourseKind::kSome:
        return "，在 " + n(static_cast<int64_t>(c.high_count)) + " 步中（" + times_zh(c.high) + "，其余 " +
               times_zh(c.low) + "）";
      case CourseKind::kConstant: return "";
    }
    return "";
  }
  // " It is so from step 10 on, hardly before."; "" where it is alike in all of them, or has no plain shape.
  std::string when_en(const Course& c) const {
    const std::string at = std::to_string(step_number(c.from));
    switch (c.kind) {
      case CourseKind::kOnset:
        return c.high > c.low ? " It is so from step " + at + " on, and hardly before."
                              : " It is so until before step " + at + ", and hardly after.";
      case CourseKind::kTrend:
        return c.high > c.low ? " It grows with every step, a trend." : " It shrinks with every step, a trend.";
      case CourseKind::kEvery:
        return " It comes in every " + nth(c.every) + " step, from step " + at + ", and hardly in the others.";
      default: return "";
    }
  }
  std::string when_zh(const Course& c) const {
    const std::string at = std::to_string(step_number(c.from));
    switch (c.kind) {
      case CourseKind::kOnset:
        return c.high > c.low ? "自第 " + at + " 步起如此，之前几乎没有。" : "第 " + at + " 步之前如此，之后几乎没有。";
      case CourseKind::kTrend: return c.high > c.low ? "它逐步增大。" : "它逐步减小。";
      case CourseKind::kEvery:
        return "自第 " + at + " 步起每 " + std::to_string(c.every) + " 步出现一次，其余步几乎没有。";
      default: return "";
    }
  }
  static std::string nth(size_t every) {
    return every == 2 ? "second" : every == 3 ? "third" : every == 4 ? "fourth" : std::to_string(every) + "th";
  }

  void position(const Cause& c, Finding& f) const {
    const std::string mb = std::to_string(c.micro_batch), s = std::to_string(c.stage);
    const CauseTimes t = c.times.front();
    const std::string cell = std::string(kind_code(c.cell_kind)) + mb;
    const bool first = c.micro_batch == 0;
    f.id = c.stage == kUnknown ? "micro_batch.slow" : "cell.slow";
    f.cause =
        c.stage == kUnknown ? "micro-batch:" + mb : "cell:" + s + "." + cell + " micro-batch:" + mb + " stage:" + s;
    f.title_en = c.stage == kUnknown ? "Micro-batch " + mb + " takes " + times(c.ratio) +
                                           " the time of the others in every step, on every stage"
                                     : "In every step " + cell + " of stage " + s + " takes " + ms(t.own_ns) + ", " +
                                           times(c.ratio) + " the time of that stage's other ones";
    f.title_zh = c.stage == kUnknown ? "每一步中微批 " + mb + " 在每一级上的用时都是其他微批的 " + times_zh(c.ratio)
                                     : "每一步中第 " + s + " 级的 " + cell + " 用时 " + ms(t.own_ns) +
                                           "，是该级其他同类单元的 " + times_zh(c.ratio);
    f.detail_en = std::string("The same place in every step, so it is not the data. ") +
                  (first ? "Look for what the first one of a step does alone: autotuning, parameters that are gathered "
                           "lazily, allocation, a cache that was emptied, a synchronising call."
                         : "Look for what runs beside it there: gradients that are reduced, the last micro-batch's "
                           "bookkeeping, logging.") +
                  " As quick as the others, a step takes " + share(c.lost_ns) + " less.";
    f.detail_zh =
        std::string("每一步都在同一位置，因此不是数据的原因。") +
        (first ? "请检查每步第一个微批独有的工作：自动调优、延迟聚合的参数、内存分配、被清空的缓存、同步调用。"
               : "请检查与它同时运行的工作：梯度归约、最后一个微批的收尾、日志。") +
        "若与其他一样快，每步少用 " + share(c.lost_ns) + "。";
    f.price.fix_en = "as quick as the others";
    f.price.fix_zh = "与其他一样快";
    f.evidence = {"forward-backward", ""};
  }

  void routing(const Cause& c, Finding& f) const {
    f.id = "data.uneven";
    f.cause = "routing experts";
    f.title_en = "Work differs with the data, by " + percent(c.ratio) +
                 " from cell to cell: even out what experts, or stages, are given";
    f.title_zh = "工作量随数据变化，各单元相差 " + percent(c.ratio) + "：请均衡各专家（或各级）分到的数据";
    f.detail_en = "The forward and the backward of one micro-batch on one stage are long together (r = " +
                  fixed(c.correlation, 2) + " over " + n(c.of) +
                  " cells), and other stages are not: neither chance nor a device does that, routing to experts does. "
                  "Dealt evenly, a step takes " +
                  share(c.lost_ns) + " less: capacity factors, an auxiliary loss or other placement of experts.";
    f.detail_zh = "同一微批在同一级上的前向与反向同时变长（" + n(c.of) + " 个单元，r = " + fixed(c.correlation, 2) +
                  "），而其他级不然：这不是偶然，也不是设备，而是专家路由的特征。若均匀分配，每步少用 " +
                  share(c.lost_ns) + "：请看容量因子、辅助损失或专家的放置。";
    f.price.fix_en = "data dealt evenly";
    f.price.fix_zh = "均匀分配数据";
    f.evidence = {"stragglers", "forward-backward"};
  }

  void slow_group(const Cause& c, Finding& f) const {
    constexpr size_t kShown = 8;
    std::string ranks, keys;
    std::set<int32_t> replicas;
    std::set<std::string> machines;
    for (size_t i = 0; i < c.parts.size(); ++i) {
      const Part& part = trace_.parts[static_cast<size_t>(c.parts[i])];
      if (i < kShown) ranks += (i == 0 ? "" : ", ") + rank(c.parts[i]);
      keys += " rank:" + rank(c.parts[i]);
      replicas.insert(part.dp), machines.insert(part.machine_name);
    }
    if (c.parts.size() > kShown) ranks += ", …";
    size_t ranks_of_them = 0;
    for (const Part& part : trace_.parts) ranks_of_them += replicas.contains(part.dp);
    const bool replica = replicas.size() < static_cast<size_t>(replicas_) && c.parts.size() == ranks_of_them;
    const bool machine = machines.size() == 1 && !machines.begin()->empty();
    std::string dp, replica_keys;
    for (const int32_t r : replicas) {
      dp += (dp.empty() ? "" : ", ") + std::to_string(r);
      replica_keys += "replica:" + std::to_string(r) + " ";
    }
    std::string joined = ranks;
    std::erase(joined, ' ');
    std::replace(joined.begin(), joined.end(), ',', '+');
    f.id = "ranks.slow";
    f.cause = (replica   ? replica_keys + "ranks:"
               : machine ? "node:" + *machines.begin() + " ranks:"
                         : "ranks:") +
              joined + keys;
    const std::string who_en = replica
                                   ? (replicas.size() > 1 ? "Replicas " : "Replica ") + dp + " (ranks " + ranks + ")"
                               : machine ? "The ranks of " + *machines.begin() + " (" + ranks + ")"
                                         : "Ranks " + ranks;
    const std::string who_zh = replica   ? "副本 " + dp + "（rank " + ranks + "）"
                               : machine ? *machines.begin() + " 的 rank（" + ranks + "）"
                                         : "rank " + ranks;
    f.title_en = who_en + " together take " + times(c.ratio) + " the time of the others for the same work" +
                 course_en(c.course) + ": one machine, switch or power supply, or longer data";
    f.title_zh = who_zh + "对同样的工作一起用了其他 rank 的 " + times_zh(c.ratio) + course_zh(c.course) +
                 "：可能是同一台机器、交换机、电源，或数据更长";
    f.detail_en = "They are slow by the same, " + in_steps(c.slowest_in, c.steps) +
                  "; mending one of them changes little while the others hold the step up. As fast as the others, all "
                  "together, a step takes " +
                  share(c.lost_ns) + " less." +
                  (replica ? " A whole replica may also be given longer sequences each step: compare its tokens." : "");
    f.detail_zh = "它们偏慢的程度相同（" + in_steps_zh(c.slowest_in, c.steps) +
                  "），只修好其中一个作用不大。若全部与其他一样快，每步少用 " + share(c.lost_ns) + "。" +
                  (replica ? "整个副本也可能每步分到更长的序列：请比较其 token 数。" : "");
    f.price.fix_en = "all of them as fast as the others";
    f.price.fix_zh = "全部与其他一样快";
    f.evidence = {"stragglers", "straggler-workers"};
  }

  void all_slow(const Cause& c, Finding& f) const {
    const bool trend = c.course.kind == CourseKind::kTrend, every = c.course.kind == CourseKind::kEvery;
    const std::string by = times(c.ratio), at = std::to_string(step_number(c.course.from));
    const std::string period = std::to_string(c.course.every);
    f.id = "run.slower";
    f.cause = trend ? "trend all" : every ? "every:" + period + " all" : "onset:" + at + " onset all";
    if (!trend) f.step = step_number(c.course.from);
    f.title_en = trend   ? "Every step is slower than the one before, on all ranks: " + by + " by the end, a trend"
                 : every ? "In every " + nth(c.course.every) + " step, from step " + at + ", all ranks take " + by +
                               " the time of the other steps"
                         : "From step " + at + " on all ranks take " + by + " the time of before, an onset";
    f.title_zh =
        trend   ? "在所有 rank 上，每一步都比前一步慢：到最后为起初的 " + times_zh(c.ratio)
        : every ? "自第 " + at + " 步起，每 " + period + " 步有一步，所有 rank 的用时是其他步的 " + times_zh(c.ratio)
                : "自第 " + at + " 步起，所有 rank 的用时是之前的 " + times_zh(c.ratio);
    if (every) {
      f.detail_en =
          "No stage and no rank alone, and at a fixed distance: what comes round by the step's number, as logging, "
          "evaluation, a profiler's window, longer data, garbage collection by count. As quick as the other steps, a "
          "step takes " +
          share(c.lost_ns) + " less on average.";
      f.detail_zh =
          "不是某一级或某个 rank，且间隔固定：请看按步号轮到的工作，如日志、评估、剖析窗口、较长的数据、"
          "按计数触发的垃圾回收。若与其他步一样快，平均每步少用 " +
          share(c.lost_ns) + "。";
      f.price.fix_en = "as quick as the other steps";
      f.price.fix_zh = "与其他步一样快";
      f.evidence = {"stragglers", ""};
      return;
    }
    f.detail_en =
        "No stage and no rank alone: clocks and heat of the whole machine room, memory that fragments, data that "
        "grows, a profiler that was switched on. As at first, a step takes " +
        share(c.lost_ns) + " less.";
    f.detail_zh =
        "不是某一级或某个 "
        "rank：请看整个机房的频率与温度、显存碎片、变长的数据、被打开的剖析器。若与起初一样快，每步少用 " +
        share(c.lost_ns) + "。";
    f.price.fix_en = "as fast as at first";
    f.price.fix_zh = "与起初一样快";
    f.evidence = {"stragglers", ""};
  }

  void blocking_sends(const Cause& c, Finding& f) const {
    const std::string part = share_words(c.count, c.of);
    f.id = "sends.blocking";
    f.cause = "blocking";
    f.title_en = part + " of all forwards and backwards start only when their rank's own send has ended, " +
                 ms(c.pause_ns) + " later than they could: send without waiting";
    f.title_zh = part + " 的前向与反向要等本 rank 自己的发送结束才开始，晚 " + ms(c.pause_ns) + "：请勿等待发送完成";
    f.detail_en = "Their inputs are there and the device is free, on " + n(c.ranks) +
                  " ranks, and they begin when the send that was recorded there ends. A send that nobody waits for "
                  "(isend, a stream of its own, batched pairs) passes while the rank computes. Started at once, a "
                  "step takes " +
                  share(c.lost_ns) + " less.";
    f.detail_zh = "输入已到、设备空闲，涉及 " + n(c.ranks) +
                  " 个 rank，而它们正好在所记录的发送结束时开始。不等待的发送（isend、独立的流、成对批量收发）可与计算"
                  "同时进行。若立即开始，每步少用 " +
                  share(c.lost_ns) + "。";
    f.price.fix_en = "sends that nobody waits for";
    f.price.fix_zh = "不等待发送";
    f.evidence = {"theory", "late-reasons"};
  }

  void message_tail(const Cause& c, Finding& f) const {
    const std::string from = std::to_string(c.from_stage), to = std::to_string(c.stage);
    const std::string part = share_words(c.count, c.of), some = n(c.count) + " of " + n(c.of);
    f.id = "message.tail";
    f.cause = "message-tail:" + from + "-" + to;
    if (c.guessed) f.cause += " host:" + rank(c.part) + " rank:" + rank(c.part);
    f.rank = rank_number(c.part);
    if (c.guessed) {
      f.title_en = part + " of what comes from stage " + from + " to stage " + to + " starts " + ms(c.pause_ns) +
                   " late, the other direction does not: look at that link, then at the host";
      f.title_zh = "从第 " + from + " 级到第 " + to + " 级的工作有 " + part + " 晚 " + ms(c.pause_ns) +
                   " 才开始，另一方向则没有：请先检查该链路，再检查主机";
    } else {
      f.title_en = part + " of the messages from stage " + from + " to stage " + to + " take " + ms(c.pause_ns) +
                   " longer than the link's others: look for loss and retransmission on it";
      f.title_zh = "从第 " + from + " 级到第 " + to + " 级的消息有 " + part + " 比该链路的其他消息多用 " +
                   ms(c.pause_ns) + "：请检查丢包与重传";
    }
    f.detail_en =
        some +
        (c.guessed ? " cells of that direction, on rank " + rank(c.part) +
                         ". No messages were recorded: pauses of a host hit both directions, and would miss one of "
                         "them by chance in one run of a hundred at most; recorded messages tell for sure."
                   : std::string(", while the usual one is as quick as on the other links: counters of the port, "
                                 "cables, congestion, and what else uses that network interface.")) +
        " Without them a step takes " + share(c.lost_ns) + " less.";
    f.detail_zh =
        n(c.of) +
        (c.guessed
             ? " 个该方向的单元中有 " + n(c.count) + " 个，在 rank " + rank(c.part) +
                   " 上。没有记录消息：若是主机停顿，另一方向也会受影响，全部错过的概率至多百分之一；记录消息即可确认。"
             : " 条消息中有 " + n(c.count) +
                   " 条如此，而通常的消息与其他链路一样快：请检查端口计数器、线缆、拥塞，以及同一网卡上的其他流量。") +
        "没有它们，每步少用 " + share(c.lost_ns) + "。";
    f.price.fix_en = "messages as quick as the link's usual";
    f.price.fix_zh = "消息都与该链路通常的一样快";
    f.evidence = {"links", ""};
  }

  void tail(const Cause& c, Finding& f) const {
    const bool optimizer = c.cell_kind == CellKind::kOptimizer;
    const std::string what_en = optimizer ? "The optimizer" : c.name.empty() ? "A collective" : "Collective " + c.name;
    const std::string what_zh = optimizer ? "优化器" : c.name.empty() ? "集合通信" : "集合通信 " + c.name;
    f.id = "tail.exposed";
    f.cause = optimizer ? "tail:optimizer" : "tail:collective";
    if (!c.name.empty()) f.cause += " tail:" + c.name;
    const std::string takes = ms(c.lost_ns);
    f.title_en = what_en + " takes " + takes + " of every step with no compute beside it: " +
                 (optimizer ? "shard it, or fuse its kernels" : "overlap it with the backwards or forwards");
    f.title_zh = what_zh + "每步有 " + takes + " 没有任何计算与之重叠：" +
                 (optimizer ? "请分片，或融合其核函数" : "请与反向或前向重叠");
    f.detail_en =
        (optimizer ? std::string("It runs after the last backward, on every rank, and that is ")
                   : std::string("It runs before the first forward or after the last backward, and that is ")) +
        share(c.lost_ns) + " of a step" +
        (optimizer
             ? ". A sharded optimizer divides it by the number of replicas; fused and foreach kernels launch less."
             : ". Buckets that start while backwards run, or gathering beside the next forwards, hide it; "
               "else fewer bytes, or a faster network between replicas.");
    f.detail_zh = std::string(optimizer ? "它在最后一个反向之后运行，占每步的 "
                                        : "它在首个前向之前或末个反向之后运行，占每步的 ") +
                  share(c.lost_ns) +
                  (optimizer ? "。分片优化器可按副本数缩短它；融合的核函数可减少下发。"
                             : "。分桶并在反向期间开始，或在下一步前向期间聚合，可以掩盖它；否则请减少字节数，或使用更"
                               "快的副本间网络。");
    f.price.fix_en = optimizer ? "no optimizer time" : "behind compute";
    f.price.fix_zh = optimizer ? "没有优化器用时" : "由计算掩盖";
    f.evidence = {"waterfall", "waterfall"};
  }

  const Trace& trace_;
  const CauseList& list_;
  const Recognition& recognition_;
  int32_t replicas_ = 1, stages_ = 1;
};

}  // namespace

Finding cause_finding(const Trace& trace, const CauseList& causes, const Cause& cause, const Recognition& recognition) {
  return Words(trace, causes, recognition).of(cause);
}

std::vector<Finding> cause_findings(const Trace& trace, const CauseList& causes, const Recognition& recognition) {
  const Words words(trace, causes, recognition);
  std::vector<Finding> findings;
  size_t stage = SIZE_MAX, link = SIZE_MAX;  // the findings of the slow stage and of the slow link that cost most
  for (const Cause& cause : causes.causes) {
    // Several stages out of balance are one cause, with one fix; so are several links.
    if (cause.kind == CauseKind::kSlowStage && stage != SIZE_MAX) {
      const std::string s = std::to_string(cause.stage), ratio = times(cause.ratio);
      findings[stage].detail_en += " Stage " + s + " takes " + ratio + " too.";
      findings[stage].detail_zh += "第 " + s + " 级也偏慢（" + ratio + "）。";
      continue;
    }
    if (cause.kind == CauseKind::kSlowLink && link != SIZE_MAX) {
      words.add_link(cause, findings[link]);
      continue;
    }
    if (cause.kind == CauseKind::kSlowStage) stage = findings.size();
    if (cause.kind == CauseKind::kSlowLink) link = findings.size();
    findings.push_back(words.of(cause));
  }
  return findings;
}

}  // namespace stageline
