#include "diagnosis/what_if/what_if_words.h"

#include <algorithm>
#include <cmath>

#include "base/number.h"

namespace stageline {
namespace {

std::string number(int64_t n) { return std::to_string(n); }
std::string times(double ratio) { return fixed(ratio, 2) + "×"; }

// Where the frameworks take a schedule.
std::string schedule_flags(const std::string& name, int32_t chunks, int32_t layers, int32_t stages, int32_t m,
                           bool zh) {
  const std::string v = number(chunks);
  const std::string csv = "torch: stageline schedule " + name + " --stages " + number(stages) + " --micro-batches " +
                          number(m) + (chunks > 1 && name != "zb-v" && name != "dualpipe-v" ? " --chunks " + v : "") +
                          " --format torch -o " + name + ".csv";
  if (name == "1f1b") return "torchtitan: pipeline_parallel_schedule = \"1F1B\"; Paddle: schedule_mode \"1F1B\"";
  if (name == "eager-1f1b") return "Paddle: schedule_mode \"Eager1F1B\"; " + csv;
  if (name == "vpp")
    return "Megatron: --num-layers-per-virtual-pipeline-stage " + number(std::max(1, layers / chunks)) +
           "; torchtitan: pipeline_parallel_schedule = \"Interleaved1F1B\"; Paddle: schedule_mode \"VPP\", "
           "vpp_degree " +
           v;
  if (name == "interleaved-zb") return "torchtitan: pipeline_parallel_schedule = \"InterleavedZeroBubble\"";
  if (name == "zb-v")
    return "torchtitan: pipeline_parallel_schedule = \"ZBVZeroBubble\"; Paddle: schedule_mode \"ZBVPP\"";
  if (name == "dualpipe-v")
    return "torchtitan: pipeline_parallel_schedule = \"DualPipeV\"; MindSpeed: --schedules-method dualpipev";
  return csv + (zh ? "，再在 torchtitan 中设 pipeline_parallel_schedule_csv"
                   : ", then pipeline_parallel_schedule_csv in torchtitan");
}

// "NAME: what it assumes. NAME: …", of every part. A split of the layers is for the present chunks: with another
// schedule it says what becomes of it instead.
std::string named_parts(const std::vector<const Fix*>& parts, bool zh, FixText Fix::* field) {
  std::string text;
  const bool other_order =
      std::any_of(parts.begin(), parts.end(), [](const Fix* fix) { return fix->id == "schedule"; });
  Fix split;
  for (const Fix* fix : parts) {
    if (other_order && fix->id == "balance" && field == &Fix::how) {
      split.name = fix->name;
      split.how = {
          "layers move between the same ranks; how the new schedule's chunks divide them, what-if says of a run "
          "of it",
          "层在相同的 rank 之间移动；新调度的各块如何划分，请对采用该调度的运行再用 what-if"};
      fix = &split;
    }
    if (!text.empty()) text += zh ? "。" : ". ";
    text += zh ? "“" + fix->name.zh + "”：" + (fix->*field).zh : "\"" + fix->name.en + "\": " + (fix->*field).en;
  }
  return text;
}

std::string list_of(const std::vector<const Fix*>& parts, bool zh, FixText Fix::* field, const char* between) {
  std::string text;
  for (const Fix* fix : parts) text += (text.empty() ? "" : between) + (zh ? (fix->*field).zh : (fix->*field).en);
  return text;
}

// A split of the layers as the frameworks take it.
FixText layout_text(const std::vector<int32_t>& split) {
  return {"Megatron: --pipeline-model-parallel-layout \"" + megatron_layout(split) +
              "\"; torchtitan: module_fqns_per_model_part " + torchtitan_split(split) + "; Paddle: seg_method=" +
              paddle_seg_method(split) + " (items of the layer list: the embedding is 0, N all of them)",
          "Megatron：--pipeline-model-parallel-layout \"" + megatron_layout(split) +
              "\"；torchtitan：module_fqns_per_model_part " + torchtitan_split(split) +
              "；Paddle：seg_method=" + paddle_seg_method(split) + "（按层列表计数：0 是词嵌入，N 为总数）"};
}

}  // namespace

FixWords own_words(const std::string& name) {
  return {{name, name}, {"everything else stays as recorded", "其他一切不变"}, {"your own change", "自定义的改动"}};
}

FixWords balance_words(const std::vector<int32_t>& now, const std::vector<int32_t>& then, bool assumed,
                       const LayerCosts& costs) {
  FixWords words;
  const std::string from = layers_text(now), to = layers_text(then);
  words.name = {"balance the stages: layers " + from + " → " + to, "均衡各级：层数 " + from + " → " + to};
  const std::string ends = costs.embedding && costs.head ? "embedding and head"
                           : costs.head                  ? "head"
                           : costs.embedding             ? "embedding"
                                                         : "";
  const std::string ends_zh = costs.embedding && costs.head ? "词嵌入和输出头"
                              : costs.head                  ? "输出头"
                              : costs.embedding             ? "词嵌入"
                                                            : "";
  words.assumes.en = std::string(assumed ? "equally many layers on every stage, taken as " + number(kAssumedLayers) +
                                               " (--layers says how many); "
                                         : "") +
                     "a layer costs what the stage's layers cost now" +
                     (ends.empty() ? "" : "; what the end costs beyond that is its " + ends + " and stays");
  words.assumes.zh =
      std::string(assumed ? "假定各级层数相同，各 " + number(kAssumedLayers) + " 层（--layers 可指定）；" : "") +
      "每层用时与该级现在相同" + (ends_zh.empty() ? "" : "；首末级多出的部分是" + ends_zh + "，不移动");
  words.how = layout_text(then);
  return words;
}

FixWords even_words() {
  return {{"the same work spread evenly over the stages", "把同样的计算均分到各级"},
          {"a bound: the work can be cut anywhere, embedding and head too; whole layers may come near it or not",
           "上界：计算可在任意处切分，词嵌入和输出头也可以；整层移动未必能达到"},
          {"move layers away from the slow stages, or split what only the ends have (embedding, head)",
           "把层从慢的级移走，或拆分首末级独有的部分（词嵌入、输出头）"}};
}

FixWords fair_stage_words(int32_t stage, double ratio) {
  const std::string s = number(stage);
  return {
      {"stage " + s + " at the mean of all stages", "第 " + s + " 级取各级均值"},
      {"a bound, as the straggler study's M_S has it: its operations take what their type does over all stages; the "
       "work (" +
           times(ratio) + " of the mean) vanishes and moves nowhere",
       "上界（即 straggler 研究的 M_S）：其操作取全部级的同类均值；多出的工作（均值的 " + times(ratio) +
           "）消失而非移走"},
      {"move layers away from it, or split what only it has (embedding, head)",
       "把它的层移到别的级，或拆分它独有的部分（词嵌入、输出头）"}};
}

FixWords order_words(const std::string& name, int64_t lists, int64_t of) {
  const std::string some = grouped(lists), all = grouped(of);
  return {{"restore the order of " + name, "恢复 " + name + " 的顺序"},
          {"every cell and message takes what it takes now; " + some + " of " + all +
               " lists of work leave the schedule's order",
           "每个单元和消息用时不变；" + all + " 个工作列表中有 " + some + " 个偏离调度的顺序"},
          {"stageline analyze schedule shows where they leave it: look for a hook, a hand-written schedule or a patch "
           "that reorders work",
           "stageline analyze schedule 指出从哪里偏离：检查改变次序的钩子、手写调度或补丁"}};
}

void add_layout(const std::vector<int32_t>* split, Fix& fix) {
  const FixText text = split ? layout_text(*split) : FixText{};
  fix.how.en += split ? ". In whole layers: " + text.en : "; no split of whole layers gains";
  fix.how.zh += split ? "。按整层：" + text.zh : "；按整层移动没有收益";
}

FixWords schedule_words(const std::string& name, int32_t chunks, const OrderModel& order, int32_t layers) {
  const std::string& present = order.recognition().best().name;
  const bool by_chunks = chunks > 1 && name != "zb-v" && name != "dualpipe-v";
  const std::string label = name + (by_chunks ? " with " + number(chunks) + " chunks" : "");
  const std::string label_zh = name + (by_chunks ? "，每 rank " + number(chunks) + " 块" : "");
  FixWords words;
  words.name = {"schedule " + present + " → " + label, "调度 " + present + " → " + label_zh};
  std::vector<std::string> en, zh;
  const ChunkLayout layout = name == "zb-v" || name == "dualpipe-v" ? ChunkLayout::kV : ChunkLayout::kLoop;
  if (chunks != order.sizes().chunks || (chunks > 1 && layout != order.layout())) {
    en.push_back("every chunk takes its share of the rank's cell; embedding and head stay with the first and the last");
    zh.push_back("每块按份分担该 rank 的单元用时；词嵌入与输出头归首块和末块");
  }
  if (name.starts_with("zb") || name == "interleaved-zb" || name == "dualpipe-v") {
    const std::string share = percent(order.weight_share());
    en.push_back(order.weight_measured() ? "weight gradients are " + share + " of a backward, as measured"
                                         : "a backward splits into equal halves: input and weight gradient");
    zh.push_back(order.weight_measured() ? "权重梯度占反向的 " + share + "（实测）"
                                         : "反向平分为输入梯度与权重梯度两半");
  }
  if (name == "dualpipe-v") {
    en.push_back("an overlapped F&B takes " + times(order.overlap_ratio()) + " of its halves");
    zh.push_back("重叠的 F&B 用时为两半之和的 " + times(order.overlap_ratio()));
  }
  en.push_back("messages take what they take now");
  zh.push_back("消息用时不变");
  for (size_t i = 0; i < en.size(); ++i) {
    words.assumes.en += (i > 0 ? "; " : "") + en[i];
    words.assumes.zh += (i > 0 ? "；" : "") + zh[i];
  }
  const ScheduleSizes& sizes = order.sizes();
  words.how.en = schedule_flags(name, chunks, layers, sizes.stages, sizes.micro_batches, false);
  words.how.zh = schedule_flags(name, chunks, layers, sizes.stages, sizes.micro_batches, true);
  return words;
}

FixWords micro_batch_words(int32_t now, int32_t then) {
  const std::string from = number(now), to = number(then);
  return {
      {"micro-batches " + from + " → " + to, "微批数 " + from + " → " + to},
      {"times are of " + from + " micro-batches, so half a step of " + to +
           "; each costs what it costs now, and the batch of a step doubles",
       "时间按 " + from + " 个微批计（即 " + to + " 个微批的半步）；每个微批用时不变，每步批量加倍"},
      {"Megatron: twice the --global-batch-size; torchtitan and Paddle: twice the gradient accumulation; or halve the "
       "micro-batch, where kernels stay as efficient",
       "Megatron：--global-batch-size 加倍；torchtitan、Paddle：梯度累积加倍；若算子效率不降，也可把微批减半"}};
}

FixWords worker_words(int32_t rank, int32_t dp, int32_t stage, double ratio) {
  const std::string r = number(rank), d = number(dp), s = number(stage);
  return {{"replace rank " + r + " (stage " + s + ", replica " + d + ")",
           "更换 rank " + r + "（第 " + s + " 级，副本 " + d + "）"},
          {"its cells take what the same cells of the other replicas do on average; now they take " + times(ratio),
           "其单元取其他副本同一单元的均值；现在是它的 " + times(ratio)},
          {"check the device: clocks, temperature, neighbours on the host; else swap it",
           "检查该设备：频率、温度、同机负载；否则更换"}};
}

FixWords lone_worker_words(int32_t rank, int32_t stage, double ratio) {
  const std::string r = number(rank), s = number(stage);
  return {
      {"rank " + r + " (stage " + s + ") as fast as its neighbours", "rank " + r + "（第 " + s + " 级）与相邻级同速"},
      {"the stage's layers are like its neighbours', so that its device is what is slow (" + times(ratio) +
           "); there is no other replica to tell",
       "该级的层与相邻级相同，因此慢的是设备（" + times(ratio) + "）；没有其他副本可比"},
      {"check the device: clocks, temperature, neighbours on the host; where its layers are heavier, balance instead",
       "检查该设备：频率、温度、同机负载；若其层本身更重，请改为均衡各级"}};
}

FixWords links_words() {
  return {
      {"slow links at the median of their class", "慢链路取同类中位数"},
      {"classes are links within a machine and between machines; a slower link's messages shrink by its mean's ratio",
       "同类指机内或机间链路；较慢链路的消息按均值之比缩短"},
      {"stageline analyze links says which: check cables, NICs, routing",
       "stageline analyze links 指出是哪些：检查线缆、网卡、路由"}};
}

FixWords launch_words() {
  return {{"no launch delays", "没有下发延迟"},
          {"the gap between the last thing an operation waited for and its start is the host's and can be hidden",
           "操作最后等待的事物结束到其开始之间的间隔是主机造成的，可以隐藏"},
          {"CUDA graphs, fewer synchronising calls, planned garbage collection, prefetched data",
           "CUDA graph、减少同步调用、定时垃圾回收、预取数据"}};
}

FixWords jitter_words() {
  return {
      {"every cell at its usual time", "每个单元取其通常用时"},
      {"a bound: each cell takes the mean of its rank, kind and chunk over micro-batches and steps; nobody can switch "
       "all of this off",
       "上界：每个单元取其 rank、类型、块在各微批各步的均值；不可能全部消除"},
      {"where it follows the micro-batch: pack sequences to equal length; where it does not: steady clocks, no "
       "neighbours",
       "若随微批变化：把序列打包成等长；否则：稳定频率，避免同机干扰"}};
}

FixWords combined_words(const std::vector<const Fix*>& parts) {
  return {{list_of(parts, false, &Fix::name, " + "), list_of(parts, true, &Fix::name, " + ")},
          {"replayed together, not the sum. " + named_parts(parts, false, &Fix::assumes),
           "一起重放，不是相加。" + named_parts(parts, true, &Fix::assumes)},
          {named_parts(parts, false, &Fix::how), named_parts(parts, true, &Fix::how)}};
}

FixText sentence(const std::vector<Fix>& fixes, double recorded_ns) {
  const Fix *best = nullptr, *together = nullptr;
  for (const Fix& fix : fixes) {
    if (fix.id == "own" || fix.bound) continue;
    const Fix*& place = fix.id == "combined" ? together : best;
    if (!place || fix.price.saving_ns > place->price.saving_ns) place = &fix;
  }
  const std::string step = human_duration(recorded_ns);
  if (!best)
    return {"No fix is worth more than its own uncertainty; a step takes " + step + ".",
            "没有任何改动的收益超过其自身的不确定度；每步 " + step + "。"};
  const auto saves = [](const Fix& fix) { return percent(fix.price.share()); };
  const bool other_size = best->changes.micro_batches > 0;
  FixText text = {(other_size ? "A micro-batch, of a step of " + step + ", would take " + saves(*best) + " less"
                              : "A step of " + step + " would be " + saves(*best) + " shorter") +
                      " with one fix: " + best->name.en,
                  "每步 " + step + (other_size ? "，做一项改动可使每个微批缩短 " : "，做一项改动可缩短 ") +
                      saves(*best) + "：" + best->name.zh};
  if (together && together->price.saving_ns > best->price.saving_ns) {
    const bool also_size = together->changes.micro_batches > 0;
    text.en += "; " + saves(*together) + (also_size ? " per micro-batch" : "") + " with several at once";
    text.zh += (also_size ? "；几项一起可使每个微批缩短 " : "；几项一起可缩短 ") + saves(*together);
  }
  text.en += ".";
  text.zh += "。";
  return text;
}

}  // namespace stageline
