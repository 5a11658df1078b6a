#include "diagnosis/profile/profile_findings.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/number.h"
#include "diagnosis/profile/link_findings.h"
#include "diagnosis/profile/loss_findings.h"
#include "diagnosis/profile/profile_facts.h"
#include "diagnosis/profile/profile_headline.h"
#include "diagnosis/profile/step_findings.h"
#include "model/stage_costs.h"
#include "model/statistics.h"

namespace stageline {
namespace {

constexpr double kIdleShare = 0.05, kExposedShare = 0.05, kPageableShare = 0.01, kShortWorkShare = 0.3;
constexpr double kOutsideShare = 0.2, kFullQueueShare = 0.01;
constexpr double kSlowRankRatio = 1.1;  // computing of a rank against the median of the others
// The last to arrive at collectives spends the least time in them, for they end together.
constexpr double kLateCommRatio = 0.7, kLateShare = 0.05;
constexpr size_t kMinStepsForOutliers = 4;

std::string times(double ratio) { return fixed(ratio, 2) + "×"; }

template <class Get>
double median_of_other_ranks(const ProfileFacts& f, int32_t rank, Get&& get) {
  std::vector<double> values;
  for (const RankFacts& r : f.ranks)
    if (r.rank != rank) values.push_back(get(r));
  return median_of(values);
}

void add_idle(const ProfileFacts& f, std::vector<Finding>& out) {
  Finding x;
  x.id = "device.idle";
  const double idle = share_or_zero(f.whole.idle_ns, f.whole.span_ns);
  if (idle < kIdleShare) return;
  x.value_note_en = "of the devices' time";
  x.value_note_zh = "占设备时间";
  const IdleCause* top = &f.host_wait;
  for (const IdleCause* cause : {&f.kernel_wait, &f.other})
    if (cause->ns > top->ns) top = cause;
  // What the title names is what the number says: the cause's own share, as in the bar.
  const bool by_cause = f.idle_known && top->count > 0;
  x.weight = by_cause ? share_or_zero(top->ns, f.whole.span_ns) : idle;
  x.value = percent(x.weight);
  const std::string of_idle = percent(share_or_zero(top->ns, f.host_wait.ns + f.kernel_wait.ns + f.other.ns)) +
                              " of all idle time (" + percent(idle) + ")";
  const std::string of_idle_zh = "全部空闲（" + percent(idle) + "）的 " +
                                 percent(share_or_zero(top->ns, f.host_wait.ns + f.kernel_wait.ns + f.other.ns));
  const std::string longest = human_duration(top->max_ns), gaps = grouped(top->count);
  const std::string rank = std::to_string(top->max_rank);
  if (!by_cause) {
    x.title_en = "Devices stand idle";
    x.title_zh = "设备空闲";
    if (f.launches_unknown) {
      x.detail_en = "The recording does not say which calls launched their work, so not what they wait for.";
      x.detail_zh = "记录没有说明是哪些调用启动了设备上的工作，因此不知道设备在等什么。";
    }
  } else if (top == &f.host_wait) {
    x.title_en = "Devices wait for the host";
    x.title_zh = "设备在等主机";
    x.detail_en =
        of_idle + " lies in " + gaps +
        " gaps that end with a launch made after the device had run dry; the longest is " + longest + " on rank " +
        rank +
        ". Give the host less to do between launches: CUDA graphs or torch.compile, more data-loading workers, "
        "fewer .item() and synchronisations.";
    x.detail_zh =
        of_idle_zh + " 落在 " + gaps + " 个间隙里：设备已无事可做，主机才发起下一次启动；最长 " + longest +
        "，在 rank " + rank +
        "。减少主机在两次启动之间的工作：CUDA Graph 或 torch.compile，增加数据加载进程，少用 .item() 与同步。";
  } else if (top == &f.kernel_wait) {
    x.title_en = "Devices pause between short kernels";
    x.title_zh = "短核函数之间的停顿";
    x.detail_en =
        of_idle + " lies in " + gaps +
        " gaps of at most 30 µs between kernels that were launched in time. Fewer, larger kernels or CUDA graphs close "
        "them.";
    x.detail_zh = of_idle_zh + " 是 " + gaps +
                  " 个不超过 30 µs 的间隙，核函数启动得并不晚。用更少、更大的核函数或 CUDA Graph 消除它们。";
  } else {
    x.title_en = "Devices wait for events and other streams";
    x.title_zh = "设备在等事件或其他流";
    x.detail_en = of_idle + " lies in " + gaps + " gaps before work that had long been launched; the longest is " +
                  longest + " on rank " + rank + ". Look for stream waits and for partners that arrive late.";
    x.detail_zh = of_idle_zh + " 落在 " + gaps + " 个间隙里，其后的工作早已启动；最长 " + longest + "，在 rank " +
                  rank + "。检查流之间的等待和迟到的通信对端。";
  }
  out.push_back(std::move(x));
}

// Whether most exposed communication is waiting of collectives for late ranks, or messages, nearly all of whose exposed
// time is a pipeline's bubble.
bool mostly_waits(const std::vector<Table>& tables) {
  const TableReader ranks(tables, "cluster-time-ranks");
  double waits = 0, exposed = 0;
  for (size_t i = 0; i < ranks.row_count(); ++i) {
    const auto collectives = static_cast<double>(ranks.integer(i, "exposed_collective_ns"));
    const auto messages = static_cast<double>(ranks.integer(i, "exposed_message_ns"));
    waits += messages + std::min(collectives, static_cast<double>(ranks.integer(i, "communication_wait_ns")));
    exposed += collectives + messages;
  }
  return exposed > 0 && 2 * waits > exposed;
}

void add_exposed_communication(const ProfileFacts& f, const std::vector<Table>& tables, std::vector<Finding>& out) {
  Finding x;
  x.id = "comm.exposed";
  x.weight = share_or_zero(f.whole.exposed_comm_ns, f.whole.span_ns);
  if (x.weight < kExposedShare) return;
  const auto [least, most] =
      std::minmax_element(f.ranks.begin(), f.ranks.end(), [](const RankFacts& a, const RankFacts& b) {
        return share_or_zero(a.exposed_comm_ns, a.span_ns) < share_or_zero(b.exposed_comm_ns, b.span_ns);
      });
  const std::string hidden = percent(share_or_zero(f.comm_overlap_ns, f.whole.comm_ns));
  const std::string low = percent(share_or_zero(least->exposed_comm_ns, least->span_ns));
  const std::string high = percent(share_or_zero(most->exposed_comm_ns, most->span_ns));
  x.value = percent(x.weight);
  x.value_note_en = "of the devices' time";
  x.value_note_zh = "占设备时间";
  x.title_en = "Communication runs with nothing computed over it";
  x.title_zh = "通信没有被计算掩盖";
  x.detail_en = hidden + " of the communication lies under computation.";
  x.detail_zh = "只有 " + hidden + " 的通信时间与计算重叠。";
  if (f.ranks.size() > 1) {
    x.detail_en += " Exposed it takes " + low + " of rank " + std::to_string(least->rank) + " and " + high +
                   " of rank " + std::to_string(most->rank) + "; waiting for late ranks is part of it.";
    x.detail_zh += "未重叠的部分在 rank " + std::to_string(least->rank) + " 占 " + low + "，在 rank " +
                   std::to_string(most->rank) + " 占 " + high + "；其中包含等待迟到 rank 的时间。";
  }
  if (mostly_waits(tables)) {
    x.detail_en +=
        " Most of it is waiting for other ranks and for a pipeline's messages: even out the work of ranks and stages "
        "first.";
    x.detail_zh += "其中多半是在等其他 rank 和流水线的消息：先让各 rank、各阶段的工作均衡。";
  } else {
    x.detail_en += " Start it earlier (smaller buckets, prefetching), or send less (accumulation, compression).";
    x.detail_zh += "更早发起通信（更小的桶、预取），或减少通信量（梯度累积、压缩）。";
  }
  out.push_back(std::move(x));
}

void add_exposed_copies(const ProfileFacts& f, std::vector<Finding>& out) {
  Finding x;
  x.id = "memory.exposed";
  x.weight = share_or_zero(f.whole.exposed_memory_ns, f.whole.span_ns);
  if (x.weight < kExposedShare) return;
  x.value = percent(x.weight);
  x.value_note_en = "of the devices' time";
  x.value_note_zh = "占设备时间";
  x.title_en = "Copies and memsets run with nothing else over them";
  x.title_zh = "拷贝与置零没有被其他工作掩盖";
  x.detail_en = "Put copies on a stream of their own, from pinned memory, a step ahead of their use.";
  x.detail_zh = "把拷贝放到单独的流上，使用锁页内存，并提前一步发起。";
  out.push_back(std::move(x));
}

void add_pageable(const ProfileFacts& f, std::vector<Finding>& out) {
  const double share = share_or_zero(f.pageable_ns, f.whole.span_ns);
  if (share < kPageableShare) return;
  Finding x;
  x.id = "copies.pageable";
  // What lies under other work costs nothing; how much of the exposed copies these are, nobody wrote down.
  x.weight = std::min(share, share_or_zero(f.whole.exposed_memory_ns, f.whole.span_ns));
  x.value = percent(share);
  x.value_note_en = "of the devices' time";
  x.value_note_zh = "占设备时间";
  x.title_en = "Copies go through pageable memory";
  x.title_zh = "拷贝经过可分页内存";
  x.detail_en =
      "Mostly " + f.pageable_name + ", " + human_duration(f.pageable_ns) +
      " in all. Pinned memory is several times as fast and lets the host go on: pin_memory=True, non_blocking=True.";
  x.detail_zh = "主要是 " + f.pageable_name + "，共 " + human_duration(f.pageable_ns) +
                "。锁页内存快数倍，且主机不必等待：pin_memory=True、non_blocking=True。";
  out.push_back(std::move(x));
}

// Why a rank is late, where the tables tell: it computes longer, or its device waits for its host.
std::pair<std::string, std::string> reason_for(const ProfileFacts& f, const RankFacts& late) {
  const double compute = median_of_other_ranks(f, late.rank, [](const RankFacts& r) { return r.compute_ns; });
  const double waiting = median_of_other_ranks(f, late.rank, [](const RankFacts& r) { return r.host_wait_ns; });
  const double longer = late.compute_ns - compute, more = late.host_wait_ns - waiting;
  if (more > longer && more > 0.05 * late.span_ns)
    return {" Its device waits " + human_duration(late.host_wait_ns) + " for its host, the others " +
                human_duration(waiting) + ": look at its data loading and its CPU.",
            "它的设备等主机 " + human_duration(late.host_wait_ns) + "，其他为 " + human_duration(waiting) +
                "：检查它的数据加载和 CPU。"};
  if (longer > 0.05 * compute)
    return {" It computes " + human_duration(late.compute_ns) + ", the others " + human_duration(compute) +
                ": look at its share of the work and its clocks.",
            "它计算 " + human_duration(late.compute_ns) + "，其他为 " + human_duration(compute) +
                "：检查它分到的工作量和频率。"};
  return {};
}

// Of collectives matched over ranks, who came last; without such a match, the rank that spends least time in them.
const RankFacts* latest(const ProfileFacts& f, double& waiting_ns) {
  if (f.stragglers_known) {
    const auto it =
        std::find_if(f.ranks.begin(), f.ranks.end(), [&](const RankFacts& r) { return r.rank == f.straggler; });
    waiting_ns = f.caused_wait_ns / static_cast<double>(f.ranks.size() - 1);
    return it == f.ranks.end() || f.came_last * 2 < f.collectives ? nullptr : &*it;
  }
  const auto late = std::min_element(f.ranks.begin(), f.ranks.end(),
                                     [](const RankFacts& a, const RankFacts& b) { return a.comm_ns < b.comm_ns; });
  const double others = median_of_other_ranks(f, late->rank, [](const RankFacts& r) { return r.comm_ns; });
  waiting_ns = others - late->comm_ns;
  return late->comm_ns <= 0 || late->comm_ns > kLateCommRatio * others ? nullptr : &*late;
}

void add_late_rank(const ProfileFacts& f, std::vector<Finding>& out) {
  if (f.ranks.size() < 2) return;
  double waiting = 0;
  const RankFacts* late = latest(f, waiting);
  if (!late) return;
  // Of the spans of those who wait: the late rank's own may be shorter.
  const double span = median_of_other_ranks(f, late->rank, [](const RankFacts& r) { return r.span_ns; });
  if (waiting < kLateShare * span) return;
  Finding x;
  x.id = "rank.late";
  // Waiting that something is computed under costs nothing.
  const double exposed = median_of_other_ranks(f, late->rank, [](const RankFacts& r) { return r.exposed_comm_ns; });
  x.weight = share_or_zero(std::clamp(exposed - late->exposed_comm_ns, 0.0, waiting), span);
  x.value = percent(x.weight);
  x.value_note_en = "exposed waiting of the others";
  x.value_note_zh = "其他 rank 未被掩盖的等待";
  x.rank = late->rank;
  const std::string rank = std::to_string(late->rank);
  const auto [en, zh] = reason_for(f, *late);
  x.title_en = "Rank " + rank + " arrives last at collectives";
  x.title_zh = "rank " + rank + " 最晚到达集合通信";
  if (f.stragglers_known) {
    x.detail_en = "It came last to " + grouped(f.came_last) + " of " + grouped(f.collectives) +
                  " collectives; each of the others waited " + human_duration(waiting) + " in them on average." + en;
    x.detail_zh = grouped(f.collectives) + " 次集合通信中有 " + grouped(f.came_last) +
                  " 次它最晚到，其他 rank 平均各等 " + human_duration(waiting) + "。" + zh;
  } else {
    const double others = median_of_other_ranks(f, late->rank, [](const RankFacts& r) { return r.comm_ns; });
    x.detail_en = "Ranks leave a collective together, so who comes last spends the least time in it: " +
                  human_duration(late->comm_ns) + " against " + human_duration(others) + " of the median rank." + en;
    x.detail_zh = "各 rank 同时离开集合通信，最晚到的用时最少：它 " + human_duration(late->comm_ns) + "，中位 rank " +
                  human_duration(others) + "。" + zh;
  }
  out.push_back(std::move(x));
}

void add_slow_rank(const ProfileFacts& f, std::vector<Finding>& out) {
  if (f.ranks.size() < 2) return;
  const auto slow = std::max_element(f.ranks.begin(), f.ranks.end(), [](const RankFacts& a, const RankFacts& b) {
    return a.compute_ns < b.compute_ns;
  });
  const double others = median_of_other_ranks(f, slow->rank, [](const RankFacts& r) { return r.compute_ns; });
  if (!(others > 0) || slow->compute_ns < kSlowRankRatio * others) return;
  Finding x;
  x.id = "rank.slow";
  x.weight = share_or_zero(slow->compute_ns - others, slow->span_ns);
  x.value = times(slow->compute_ns / others);
  x.value_note_en = "the others' computing";
  x.value_note_zh = "相对其他 rank 的计算";
  const std::string rank = std::to_string(slow->rank);
  x.title_en = "Rank " + rank + " computes longer than the others";
  x.title_zh = "rank " + rank + " 的计算比其他 rank 久";
  x.detail_en =
      human_duration(slow->compute_ns) + " against " + human_duration(others) +
      " of the median rank. If its kernels are the same ones, look at clocks, power and temperature; if there are "
      "more of them, at how the work is split.";
  x.detail_zh = human_duration(slow->compute_ns) + "，中位 rank 为 " + human_duration(others) +
                "。若核函数相同，检查频率、功耗与温度；若数量更多，检查工作的划分。";
  out.push_back(std::move(x));
}

void add_launch_bound(const ProfileFacts& f, std::vector<Finding>& out) {
  const double share = share_or_zero(static_cast<double>(f.short_work), static_cast<double>(f.launches));
  if (share < kShortWorkShare) return;
  Finding x;
  x.id = "launch.bound";
  x.weight = share_or_zero(std::min(f.whole.idle_ns, f.call_ns), f.whole.span_ns) * share;
  x.value = percent(share);
  x.value_note_en = "of the launches";
  x.value_note_zh = "占启动次数";
  x.title_en = "Much device work is shorter than the call that launches it";
  x.title_zh = "许多核函数比启动它的调用还短";
  x.detail_en = grouped(f.short_work) + " of " + grouped(f.launches) + "; the calls take " + human_duration(f.call_ns) +
                " of the host. Fuse small operators (torch.compile, fused optimizers) or replay them as CUDA graphs.";
  x.detail_zh = grouped(f.launches) + " 次中有 " + grouped(f.short_work) + " 次；这些调用占主机 " +
                human_duration(f.call_ns) + "。融合小算子（torch.compile、融合优化器），或用 CUDA Graph 重放。";
  out.push_back(std::move(x));
}

void add_slow_steps(const ProfileFacts& f, std::vector<Finding>& out) {
  if (f.step_count < kMinStepsForOutliers || f.slow_steps == 0 || !(f.median_step_ns > 0)) return;
  Finding x;
  x.id = "step.outlier";
  x.value = times(f.max_step_ns / f.median_step_ns);
  x.value_note_en = "of the median step";
  x.value_note_zh = "相对中位步";
  const double all = f.accounted ? f.window_ns : f.median_step_ns * static_cast<double>(f.step_count);
  x.weight = std::min(1.0, share_or_zero(f.max_step_ns - f.median_step_ns, all));
  x.title_en = "Step " + std::to_string(f.max_step) + " takes " + human_duration(f.max_step_ns);
  x.title_zh = "第 " + std::to_string(f.max_step) + " 步用时 " + human_duration(f.max_step_ns);
  x.step = f.max_step;
  x.rank = f.max_step_rank;
  const std::string rank = std::to_string(f.max_step_rank), median = human_duration(f.median_step_ns);
  x.detail_en =
      "On rank " + rank + "; the median step of all ranks takes " + median + ". Lengths are the " +
      (f.device_steps ? "devices', from the last end of one step to that of the next." : "host's: no device worked.");
  x.detail_zh = "在 rank " + rank + "；全部 rank 的中位步用时 " + median + "。" +
                (f.device_steps ? "长度取自设备：从上一步最后结束到本步最后结束。" : "长度取自主机：没有设备工作。");
  out.push_back(std::move(x));
}

void add_full_queue(const ProfileFacts& f, std::vector<Finding>& out) {
  if (f.full_queue_share < kFullQueueShare) return;
  Finding x;
  x.id = "queue.full";
  x.weight = 0;  // the devices are busy meanwhile: it is the host that waits
  x.value = percent(f.full_queue_share);
  x.value_note_en = "of the span, worst rank";
  x.value_note_zh = "占跨度，最严重的 rank";
  x.title_en = "A launch queue is full";
  x.title_zh = "启动队列已满";
  x.detail_en =
      "On rank " + std::to_string(f.full_queue_rank) +
      " 1024 or more operations wait on one stream; the next launch blocks the host. The devices are the limit then.";
  x.detail_zh = "rank " + std::to_string(f.full_queue_rank) +
                " 的一个流上有 1024 个以上的操作在排队，下一次启动会阻塞主机。此时瓶颈是设备。";
  out.push_back(std::move(x));
}

void add_outside(const ProfileFacts& f, std::vector<Finding>& out) {
  const double share = share_or_zero(f.outside.ns, f.recorded_ns);
  if (share < kOutsideShare) return;
  Finding x;
  x.id = "device.unused";
  x.weight = 0;  // where a recording begins is a choice
  x.value = percent(share);
  x.value_note_en = "of the recording";
  x.value_note_zh = "占记录时间";
  x.title_en = "Much of the recording has no device work yet, or no more";
  x.title_zh = "记录中有很大一段还没有或不再有设备工作";
  x.detail_en = human_duration(f.outside.ns) + " before the first and after the last device work" +
                (f.ranks.size() > 1 ? ", summed over ranks" : "") + "; shares on this page leave it out.";
  x.detail_zh = "首个设备工作之前与最后一个之后共 " + human_duration(f.outside.ns) +
                (f.ranks.size() > 1 ? "（各 rank 之和）" : "") + "；本页的份额不含这一段。";
  out.push_back(std::move(x));
}

void see_what_is_on(const Trace& trace, ProfileFacts& f) {
  for (StringId id = 0; id < trace.names.size(); ++id) {
    const std::string_view name = trace.names.text(id);
    const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    f.graphs |= has("GraphLaunch");
    f.compiled |= has("Torch-Compiled Region") || has("CompiledFunction") || name.starts_with("triton_");
    f.fused_optimizer |= has("aten::_fused_") || has("aten::_foreach_");
    f.loader_processes |= has("_MultiProcessingDataLoaderIter");
  }
}

// What is advised in CUDA's words has other names on Ascend's devices.
void speak_of_ascend(std::vector<Finding>& list) {
  const auto replace = [](std::string& text, std::string_view from, std::string_view to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  for (Finding& x : list) {
    replace(x.detail_en, "CUDA graphs", "graph mode (NPU graphs)");
    replace(x.detail_zh, "CUDA Graph", "图模式（NPU Graph）");
  }
}

}  // namespace

Findings profile_findings(const Trace& trace, const std::vector<Table>& tables, const ProfileAccount& account) {
  ProfileFacts facts = profile_facts(tables);
  take_account(account, facts);
  facts.launches_unknown = !account.empty() && std::none_of(account.begin(), account.end(),
                                                            [](const RankAccount& rank) { return rank.linked; });
  if (facts.launches_unknown) facts.idle_known = false;
  see_what_is_on(trace, facts);
  const bool owned = facts.accounted &&
                     std::any_of(account.begin(), account.end(), [](const RankAccount& rank) { return rank.linked; });
  Findings result;
  result.headline = profile_headline(facts, trace, account);
  if (facts.ranks.empty()) add_host_parts(tables, result.headline);
  warn_of_runs(trace, result.headline);
  std::vector<Finding>& list = result.list;
  add_late_rank(facts, list);
  add_slow_rank(facts, list);
  if (owned) {
    add_loss_findings(facts, account, list);
  } else {
    add_idle(facts, list);
  }
  add_exposed_communication(facts, tables, list);
  add_exposed_copies(facts, list);
  add_pageable(facts, list);
  if (!owned) add_launch_bound(facts, list);
  add_slow_steps(facts, list);
  add_step_findings(facts, tables, list);
  add_link_findings(facts, tables, list);
  if (owned) name_culprits(facts, account, list);
  result.headline.step_ns = facts.step_ns;
  result.headline.steps = facts.accounted ? static_cast<int64_t>(facts.step_count) : 0;
  std::stable_sort(list.begin(), list.end(), [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
  add_full_queue(facts, list);
  add_outside(facts, list);
  // Who is late or slow comes before the waiting that follows from it.
  if (!facts.accounted)  // else all are prices, and stand by them
    std::stable_partition(list.begin(), list.end(),
                          [](const Finding& x) { return x.id == "rank.late" || x.id == "rank.slow"; });
  if (facts.accounted) speak_in_time(facts, list);
  if (owned) close_account(list, result.headline);
  if (trace.device_family == DeviceFamily::kNpu) speak_of_ascend(list);
  if (list.empty() && !facts.ranks.empty()) {
    Finding none;
    none.id = "none";
    none.title_en = "Nothing stands out";
    none.title_zh = "没有突出的问题";
    none.detail_en =
        "The devices are rarely idle, communication is hidden under computation, and no rank or step is slower than "
        "its peers.";
    none.detail_zh = "设备很少空闲，通信被计算掩盖，也没有哪个 rank 或哪一步明显慢于同类。";
    list.push_back(std::move(none));
  }
  if (list.empty() && facts.ranks.empty() && !result.headline.parts.empty()) {  // the host alone
    Finding none;
    none.id = "none";
    none.title_en = "Nothing stands out on the host";
    none.title_zh = "主机上没有突出的问题";
    none.detail_en = "Little time is spent waiting for input. What the operators take stands below.";
    none.detail_zh = "等待输入的时间很少。各算子的用时见下文。";
    list.push_back(std::move(none));
  }
  return result;
}

}  // namespace stageline
