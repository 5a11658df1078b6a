#include "diagnosis/profile/loss_findings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "base/number.h"
#include "model/stage_costs.h"
#include "model/statistics.h"

namespace stageline {
namespace {

// Every program feeds its device, loads its input and now and then waits for a number: that is told where it takes a
// twentieth. Python and operators between launches are told sooner, and what no healthy step holds soonest.
constexpr double kUsualShare = 0.05, kWorkShare = 0.03, kFaultShare = 0.02, kContentionShare = 0.03;
constexpr double kOneRank = 2;  // a rank that loses this many times what the median of the others does is named
constexpr double kOnce = 0.5;   // one piece that is this much of a loss is told as one
constexpr double kMostOf = 0.5;

double least_share(const RankLoss& x) {
  if (x.kind == LossKind::kContention) return kContentionShare;
  if (x.kind != LossKind::kIdle) return kUsualShare;
  switch (x.owner) {
    case IdleOwner::kCollector:
    case IdleOwner::kAllocator:
    case IdleOwner::kHostCollective:
    case IdleOwner::kBlocked: return kFaultShare;
    case IdleOwner::kWork: return kWorkShare;
    default: return kUsualShare;
  }
}

// The same loss on all ranks.
struct JoinedLoss {
  RankLoss worst;  // of the rank that loses most by it
  double worst_share = 0, worst_window_ns = 0;
  int32_t rank = 0;
  bool one_rank = false;  // far more than the others
  double share = 0;       // of a step
  double caused_share = 0;
  double recorded_share = 0;
};

std::string join_key(const RankLoss& x) {
  const Culprit& c = x.at;
  return std::to_string(static_cast<int>(x.kind)) + "|" + std::to_string(static_cast<int>(x.owner)) + "|" + c.call +
         "|" + c.op + "|" + c.range + "|" + c.frame + "|" + (x.kind == LossKind::kIdle ? "" : x.what);
}

// Ranks that meet in collectives wait for the worst of them; others lose what they lose on average.
std::vector<JoinedLoss> join_ranks(const ProfileFacts& f, const ProfileAccount& account) {
  std::map<std::string, JoinedLoss> joined;
  std::map<std::string, std::vector<double>> shares;
  for (const RankAccount& rank : account)
    for (const RankLoss& x : rank.losses) {
      const std::string key = join_key(x);
      JoinedLoss& j = joined[key];
      const double share = x.price_ns / rank.window_ns;
      shares[key].push_back(share);
      j.caused_share += x.caused_ns / rank.window_ns / static_cast<double>(account.size());
      j.recorded_share += x.recorded_ns / rank.window_ns / static_cast<double>(account.size());
      if (share <= j.worst_share) continue;
      j.worst_share = share;
      j.worst_window_ns = rank.window_ns;
      j.worst = x;
      j.rank = rank.rank;
    }
  std::vector<JoinedLoss> out;
  for (auto& [key, j] : joined) {
    std::vector<double>& all = shares[key];
    double sum = 0;
    for (const double share : all) sum += share;
    all.resize(account.size(), 0);  // ranks without it
    std::sort(all.begin(), all.end());
    all.pop_back();
    j.one_rank = !all.empty() && j.worst_share > kOneRank * median_of(all);
    j.share = j.one_rank && f.whole.comm_ns > 0 ? j.worst_share : sum / static_cast<double>(account.size());
    if (j.share >= least_share(j.worst)) out.push_back(std::move(j));
  }
  std::stable_sort(out.begin(), out.end(), [](const JoinedLoss& a, const JoinedLoss& b) { return a.share > b.share; });
  return out;
}

struct Words {
  const char *id, *title_en, *title_zh, *advice_en, *advice_zh;
};

Words words_of(const RankLoss& x) {
  if (x.kind == LossKind::kDrain)
    return {"host.sync", "Devices run dry at waits of the host", "主机等待设备，设备随后空转",
            "Nothing is queued when such a wait returns. Leave it out, wait later, or copy the value with "
            "non_blocking=True and read it a step on.",
            "等待返回时队列里已没有工作。去掉它、推迟它，或用 non_blocking=True 拷贝，下一步再读。"};
  switch (x.owner) {
    case IdleOwner::kInput: return {"input.loading", "Steps wait for their input", "步在等输入数据", "", ""};
    case IdleOwner::kCollector:
      return {"host.collector", "Python's garbage collection stops the host", "Python 垃圾回收让主机停顿",
              "Call gc.freeze() after set-up, or gc.disable() and collect between steps on all ranks at once.",
              "初始化后调用 gc.freeze()，或用 gc.disable() 并让所有 rank 在步间同时回收。"};
    case IdleOwner::kAllocator:
      return {
          "host.allocator", "The driver allocates and frees memory while devices stand idle",
          "驱动分配、释放内存时设备空闲",
          "Keep memory in a caching allocator and reuse pinned buffers; if it is one already, its blocks do not fit: "
          "expandable segments, fewer different shapes, less memory in use.",
          "让缓存分配器保留内存，并复用锁页缓冲区；若已如此，则是块大小不合：可扩展段、减少形状种类、降低占用。"};
    case IdleOwner::kHostCollective:
      return {"host.collective", "Hosts talk to each other while devices stand idle", "主机之间通信时设备空闲",
              "Gather objects less often, on tensors of the device, or beside the step on another thread.",
              "减少对象收集，改用设备张量通信，或放到另一线程与步并行。"};
    case IdleOwner::kBlocked:
      return {"host.blocked", "One call holds the host while devices stand idle", "主机卡在一个调用里，设备空闲", "",
              ""};
    case IdleOwner::kWork:
      return {"host.busy", "Devices wait while the host works", "主机忙碌时设备在等",
              "Move it off the step's path: to another thread or process, less often, or beside queued device work.",
              "把它移出步的主路径：放到别的线程或进程、减少次数，或与已排队的设备工作并行。"};
    case IdleOwner::kDispatch:
      return {"launch.bound", "Devices wait for the next launch: the host launches no faster",
              "设备在等下一次启动：主机启动得不够快", "", ""};
    case IdleOwner::kUnseen: break;
  }
  return {"device.idle", "Devices wait for the host, and no slice says what it does",
          "设备在等主机，而没有记录说明主机在做什么", "Record with with_stack=True, and with the threads that launch.",
          "请用 with_stack=True 采集，并包含发起启动的线程。"};
}

// What helps and is not on already.
void advise(const ProfileFacts& f, IdleOwner owner, Finding& x) {
  if (owner == IdleOwner::kInput && f.loader_processes) {
    x.detail_en +=
        " Other processes load already: give them more (num_workers, prefetch_factor), or make a sample cheaper.";
    x.detail_zh += "已由其他进程加载：增加 num_workers、prefetch_factor，或降低每个样本的代价。";
  } else if (owner == IdleOwner::kInput) {
    x.detail_en += " Load in other processes and ahead of time: num_workers, prefetch_factor, persistent_workers.";
    x.detail_zh += "用其他进程提前加载：num_workers、prefetch_factor、persistent_workers。";
  }
  if (owner != IdleOwner::kDispatch) return;
  std::string en, zh;
  const auto add = [&](bool on, const char* text_en, const char* text_zh) {
    if (on) return;
    en += (en.empty() ? "" : ", ") + std::string(text_en);
    zh += (zh.empty() ? "" : "、") + std::string(text_zh);
  };
  const bool optimizer = x.title_en.find("ptimizer") != std::string::npos;
  if (optimizer) add(f.fused_optimizer, "a fused or foreach optimizer", "fused 或 foreach 优化器");
  add(f.compiled, "torch.compile", "torch.compile");
  add(f.graphs, "CUDA graphs", "CUDA Graph");
  if (en.empty()) en = "larger batches", zh = "更大的批";
  x.detail_en += " Fewer and larger kernels close it: " + en + ".";
  x.detail_zh += "用更少、更大的核函数：" + zh + "。";
}

void say_place(const ProfileFacts& f, const JoinedLoss& j, Finding& x) {
  const RankLoss& loss = j.worst;
  if (loss.longest_step >= 0 && loss.longest_ns > kOnce * loss.recorded_ns) {
    x.step = loss.longest_step;
    x.detail_en += " Most of it is once, " + human_duration(loss.longest_ns) + " in step " +
                   std::to_string(loss.longest_step) + ".";
    x.detail_zh +=
        "其中多半是一次：第 " + std::to_string(loss.longest_step) + " 步的 " + human_duration(loss.longest_ns) + "。";
  }
  if (!j.one_rank || f.ranks.size() < 2) return;
  x.rank = j.rank;
  x.detail_en +=
      " It is rank " + std::to_string(j.rank) + (f.whole.comm_ns > 0 ? ", and the others wait for it." : ".");
  x.detail_zh += "出自 rank " + std::to_string(j.rank) + (f.whole.comm_ns > 0 ? "，其他 rank 都在等它。" : "。");
}

// Work in small pieces: the host cannot launch faster, or the devices pause between kernels that do next to nothing.
void say_short_kernels(const ProfileFacts& f, const JoinedLoss& j, Finding& x) {
  const RankLoss& loss = j.worst;
  if (loss.owner != IdleOwner::kDispatch || loss.short_kernels == 0 || !(loss.fixed_ns > 0)) return;
  const double window = j.worst_window_ns, n = static_cast<double>(loss.short_kernels);
  const std::string fixed = human_duration(loss.fixed_ns / n), at_en = loss.at.text_en(), at_zh = loss.at.text_zh();
  if (2 * loss.pauses_ns > loss.recorded_ns) {
    x.title_en = "Many kernels are shorter than the calls that launch them" + (at_en.empty() ? "" : ": " + at_en);
    x.title_zh = "许多核函数比启动它的调用还短" + (at_zh.empty() ? "" : "：" + at_zh);
  }
  x.detail_en += " " + grouped(loss.short_kernels) +
                 " kernels are shorter than the calls that launch them; the pauses between them take " +
                 percent(loss.pauses_ns / window) + ", and " + fixed +
                 " of each is what the shortest kernel here takes too, " + percent(loss.fixed_ns / window) +
                 " in all: half of that is counted.";
  x.detail_zh += grouped(loss.short_kernels) + " 个核函数比启动它的调用还短；其间的停顿占 " +
                 percent(loss.pauses_ns / window) + "，每个核函数中有 " + fixed + " 是此处最短核函数也要用的时间，共 " +
                 percent(loss.fixed_ns / window) + "，计入其一半。";
  x.uncertainty_ns = loss.uncertainty_ns / window * f.step_ns;
}

Finding idle_finding(const ProfileFacts& f, const JoinedLoss& j) {
  const RankLoss& loss = j.worst;
  const Words w = words_of(loss);
  Finding x;
  x.id = w.id;
  x.weight = j.share;
  x.value = percent(j.share);
  x.value_note_en = "of the time";
  x.value_note_zh = "占时间";
  x.cause = loss.at.key();
  x.title_en = w.title_en;
  x.title_zh = w.title_zh;
  const std::string at_en = loss.at.text_en(), at_zh = loss.at.text_zh();
  if (!at_en.empty()) x.title_en += ": " + at_en, x.title_zh += "：" + at_zh;
  x.detail_en = "Devices stand idle " + percent(j.recorded_share) + " of the time then; by a replay " +
                percent(j.share) + " would be won without it.";
  x.detail_zh = "其间设备空闲占 " + percent(j.recorded_share) + "；按重放，去掉它可省 " + percent(j.share) + "。";
  if (!loss.beside.empty()) {
    const bool drains = loss.kind == LossKind::kDrain;
    x.detail_en +=
        (drains ? " After the wait the host is in " : " The devices had run dry at ") + loss.beside.text_en() + ".";
    x.detail_zh += (drains ? "等待之后主机在 " : "此前设备已在这里被等空：") + loss.beside.text_zh() + "。";
  }
  say_short_kernels(f, j, x);
  say_place(f, j, x);
  if (loss.kind == LossKind::kIdle) advise(f, loss.owner, x);
  if (*w.advice_en) x.detail_en += std::string(" ") + w.advice_en, x.detail_zh += w.advice_zh;
  x.price.saving_ns = x.weight * f.step_ns;
  return x;
}

Finding contention_finding(const ProfileFacts& f, const JoinedLoss& j) {
  Finding x;
  x.id = "comm.contention";
  x.weight = std::max(j.share, j.caused_share);
  x.value = fixed(j.worst.ratio, 2) + "×";
  x.value_note_en = "of the same kernels alone";
  x.value_note_zh = "相对单独运行的同一核函数";
  x.title_en = "Communication slows the computation that it overlaps";
  x.title_zh = "通信拖慢了与它重叠的计算";
  x.detail_en = "Kernels take " + x.value + " as long while a collective runs beside them, most of the difference in " +
                j.worst.what + "; by a replay " + percent(j.share) +
                " would be won if they ran at their own pace, and " + percent(j.caused_share) +
                " if that communication were not there. Give communication fewer channels or multiprocessors, or "
                "overlap it with other work.";
  x.detail_zh = "集合通信同时运行时，核函数用时为单独运行的 " + x.value + "，差别多半在 " + j.worst.what +
                "；按重放，若不受影响可省 " + percent(j.share) + "，若没有这些通信可省 " + percent(j.caused_share) +
                "。减少通信占用的通道或 SM，或与其他工作重叠。";
  x.price.saving_ns = j.share * f.step_ns;
  return x;
}

Finding* find(std::vector<Finding>& list, std::string_view id) {
  const auto it = std::find_if(list.begin(), list.end(), [&](const Finding& x) { return x.id == id; });
  return it == list.end() ? nullptr : &*it;
}

// Which findings a line of the bar is told by.
bool tells(const Finding& x, std::string_view part) {
  struct Pair {
    std::string_view part, id;
  };
  static constexpr Pair kPairs[] = {{"comm", "comm.exposed"},
                                    {"comm", "comm.waiting"},
                                    {"comm", "rank.late"},
                                    {"memory", "memory.exposed"},
                                    {"memory", "copies.pageable"},
                                    {"idle-input", "input.loading"},
                                    {"idle-blocked", "host.blocked"},
                                    {"idle-host", "host.busy"},
                                    {"idle-launch", "launch.bound"},
                                    {"idle-kernel", "launch.bound"},
                                    {"idle-collector", "host.collector"},
                                    {"idle-allocator", "host.allocator"},
                                    {"idle-host-collective", "host.collective"},
                                    {"idle-unseen", "device.idle"},
                                    {"idle-other", "device.idle"}};
  if (x.id == "host.sync" && part.starts_with("idle-")) return true;
  return std::any_of(std::begin(kPairs), std::end(kPairs),
                     [&](const Pair& pair) { return pair.part == part && pair.id == x.id; });
}

// The largest of a kind over all ranks.
const RankLoss* largest(const ProfileAccount& account, LossKind kind, std::string_view part = {}) {
  const RankLoss* best = nullptr;
  for (const RankAccount& rank : account)
    for (const RankLoss& x : rank.losses)
      if (x.kind == kind && x.what.find(part) != std::string::npos && (!best || x.recorded_ns > best->recorded_ns))
        best = &x;
  return best;
}

double window_of(const ProfileAccount& account) {
  double sum = 0;
  for (const RankAccount& rank : account) sum += rank.window_ns;
  return sum;
}

void name_exposed(const ProfileAccount& account, LossKind kind, std::string_view part, Finding& x) {
  const RankLoss* loss = largest(account, kind, part);
  if (!loss) return;
  const std::string at_en = loss->at.text_en(), at_zh = loss->at.text_zh();
  const std::string stream = std::to_string(loss->stream), waiting = std::to_string(loss->waiting);
  x.detail_en = "The most of it is " + loss->what + (loss->stream >= 0 ? " on stream " + stream : "") +
                (at_en.empty() ? "" : ", by " + at_en) +
                (loss->waiting >= 0 ? "; stream " + waiting + " waits for it. " : ". ") + x.detail_en;
  x.detail_zh = "其中最多的是 " + loss->what + (loss->stream >= 0 ? "（流 " + stream + "）" : "") +
                (at_zh.empty() ? "" : "，出自 " + at_zh) +
                (loss->waiting >= 0 ? "；流 " + waiting + " 在等它。" : "。") + x.detail_zh;
  if (x.cause.empty()) x.cause = loss->at.key();
}

}  // namespace

void take_account(const ProfileAccount& account, ProfileFacts& f) {
  // Where launches are not linked nobody knows what a gap waited for.
  const bool linked = std::all_of(account.begin(), account.end(), [](const RankAccount& a) { return a.linked; });
  if (account.empty() || !linked || account.size() != f.ranks.size()) return;
  const double comm_ns = f.whole.comm_ns;
  f.whole = {};
  f.whole.comm_ns = comm_ns;
  f.outside = {};
  f.window_ns = 0;
  double steps_ns = 0;
  int64_t steps = 0;
  for (RankFacts& r : f.ranks) {
    const auto it =
        std::find_if(account.begin(), account.end(), [&](const RankAccount& a) { return a.rank == r.rank; });
    if (it == account.end()) continue;
    const RankAccount& a = *it;
    r.span_ns = a.window_ns;
    r.compute_ns = a.compute_ns;
    r.exposed_comm_ns = a.exposed_comm_ns;
    r.exposed_memory_ns = a.exposed_memory_ns;
    r.idle_ns = a.all_idle_ns;
    r.host_wait_ns = a.all_idle_ns - a.between_ns - a.stream_wait_ns;
    f.whole.span_ns += r.span_ns;
    f.whole.compute_ns += r.compute_ns;
    f.whole.exposed_comm_ns += r.exposed_comm_ns;
    f.whole.exposed_memory_ns += r.exposed_memory_ns;
    f.whole.idle_ns += r.idle_ns;
    f.outside.ns += a.before_and_after_ns;
    f.window_ns = std::max(f.window_ns, r.span_ns);
    if (a.steps > 0) steps_ns += a.window_ns, steps += a.steps;
  }
  f.recorded_ns = f.whole.span_ns + f.outside.ns;
  if (f.ranks.size() > 0 && steps > 0)
    f.step_count = std::max<size_t>(f.step_count, static_cast<size_t>(steps) / f.ranks.size());
  f.step_ns = steps > 0 ? steps_ns / static_cast<double>(steps) : f.window_ns;
  f.accounted = true;
}

void add_loss_findings(const ProfileFacts& f, const ProfileAccount& account, std::vector<Finding>& out) {
  double stream_wait = 0, longest = 0;
  for (const RankAccount& rank : account)
    stream_wait += rank.stream_wait_ns, longest = std::max(longest, rank.stream_wait_ns);
  for (const JoinedLoss& j : join_ranks(f, account)) {
    if (j.worst.kind == LossKind::kIdle || j.worst.kind == LossKind::kDrain) out.push_back(idle_finding(f, j));
    if (j.worst.kind == LossKind::kContention) out.push_back(contention_finding(f, j));
  }
  const double waits = share_or_zero(stream_wait, window_of(account));
  if (waits >= kUsualShare) {
    Finding x;
    x.id = "device.idle";
    x.weight = waits;
    x.value = percent(waits);
    x.value_note_en = "of the devices' time";
    x.value_note_zh = "占设备时间";
    x.title_en = "Devices wait for events and other streams";
    x.title_zh = "设备在等事件或其他流";
    x.detail_en =
        "Nothing runs on them, though the next work had long been launched. Look for stream waits and for partners "
        "that "
        "arrive late.";
    x.detail_zh = "设备上没有任何工作在运行，而下一项工作早已启动。检查流之间的等待和迟到的通信对端。";
    out.push_back(std::move(x));
  }
}

void name_culprits(const ProfileFacts& f, const ProfileAccount& account, std::vector<Finding>& out) {
  if (Finding* x = find(out, "comm.exposed")) name_exposed(account, LossKind::kCollective, {}, *x);
  if (Finding* x = find(out, "copies.pageable")) {
    double exposed = 0;  // what lies under other work costs nothing
    for (const RankAccount& rank : account)
      for (const RankLoss& loss : rank.losses)
        if (loss.kind == LossKind::kCopy && loss.what.find("Pageable") != std::string::npos) exposed += loss.price_ns;
    x->weight = share_or_zero(exposed, window_of(account));
    x->value = percent(x->weight);
    name_exposed(account, LossKind::kCopy, "Pageable", *x);
    if (!(x->weight > 0)) std::erase_if(out, [](const Finding& y) { return y.id == "copies.pageable"; });
  }
  if (Finding* x = find(out, "memory.exposed")) {
    name_exposed(account, LossKind::kCopy, {}, *x);
    // The same copies are one finding, the one that says what is wrong with them.
    const Finding* pageable = find(out, "copies.pageable");
    if (pageable && pageable->weight > kMostOf * x->weight)
      std::erase_if(out, [](const Finding& y) { return y.id == "memory.exposed"; });
  }
  // A long step whose cause is known is told by that. The devices' steps end with their last work, so a pause at the
  // end of a step makes the next one longer.
  if (const Finding* step = find(out, "step.outlier")) {
    const auto cause = std::find_if(out.begin(), out.end(), [&](const Finding& x) {
      return x.id != "step.outlier" && x.step && step->step && (*x.step == *step->step || *x.step + 1 == *step->step) &&
             x.weight > kMostOf * step->weight;
    });
    if (cause != out.end()) {
      cause->detail_en += " " + step->title_en + ", " + step->value + " the median.";
      cause->detail_zh += step->title_zh + "，为中位步的 " + step->value + "。";
      std::erase_if(out, [](const Finding& x) { return x.id == "step.outlier"; });
    }
  }
  Finding* late = find(out, "rank.late");
  if (!late || !late->rank || f.ranks.size() < 2) return;
  const auto own = std::find_if(out.begin(), out.end(), [&](const Finding& x) {
    return x.rank == late->rank && (x.id.starts_with("host.") || x.id == "input.loading" || x.id == "launch.bound");
  });
  if (own == out.end()) return;
  late->detail_en += " " + own->title_en + ". " + own->detail_en;
  late->detail_zh += own->title_zh + "。" + own->detail_zh;
  late->weight = std::max(late->weight, own->weight);
  late->value = percent(late->weight);
  late->price.saving_ns = late->weight * f.step_ns;
  out.erase(own);
}

void add_idle_parts(const ProfileAccount& account, Headline& h) {
  struct Line {
    IdleOwner owner;
    const char *id, *en, *zh;
  };
  static constexpr Line kLines[] = {
      {IdleOwner::kInput, "idle-input", "waiting for input", "等输入"},
      {IdleOwner::kBlocked, "idle-blocked", "host held in a call", "主机卡在调用里"},
      {IdleOwner::kWork, "idle-host", "waiting for the host", "等主机"},
      {IdleOwner::kDispatch, "idle-launch", "waiting for launches", "等启动"},
      {IdleOwner::kCollector, "idle-collector", "garbage collection", "垃圾回收"},
      {IdleOwner::kAllocator, "idle-allocator", "memory allocation", "内存分配"},
      {IdleOwner::kHostCollective, "idle-host-collective", "hosts' collectives", "主机间通信"},
      {IdleOwner::kUnseen, "idle-unseen", "host, unrecorded", "主机（无记录）"}};
  const double window = window_of(account);
  const auto part = [&](const char* id, const char* en, const char* zh, double ns) {
    if (ns > 0) h.parts.push_back({id, en, zh, share_or_zero(ns, window)});
  };
  double between = 0, streams = 0, other = 0;
  for (const RankAccount& a : account) between += a.between_ns, streams += a.stream_wait_ns, other += a.other_work_ns;
  part("rest", "other work", "其他工作", other);
  for (const Line& line : kLines) {
    double ns = 0;
    for (const RankAccount& a : account) ns += a.idle_ns[static_cast<size_t>(line.owner)];
    part(line.id, line.en, line.zh, ns);
  }
  part("idle-kernel", "between kernels", "核函数之间", between);
  part("idle-other", "waiting for streams", "等其他流", streams);
}

void speak_in_time(const ProfileFacts& f, std::vector<Finding>& list) {
  for (Finding& x : list) {
    x.lost_ns_per_step = x.weight * f.step_ns;
    if (!(x.weight > 0)) continue;
    x.value = human_duration(x.lost_ns_per_step) + " (" + percent(x.weight) + ")";
    x.value_note_en = f.step_count > 0 ? "of a step" : "of the recording";
    x.value_note_zh = f.step_count > 0 ? "占每步" : "占记录";
  }
}

void close_account(const std::vector<Finding>& list, Headline& h) {
  constexpr double kWorthALine = 0.01;
  std::string en, zh;
  for (const SpanPart& part : h.parts) {
    if (part.id == "compute" || part.share < kWorthALine) continue;
    if (std::any_of(list.begin(), list.end(), [&](const Finding& x) { return tells(x, part.id); })) continue;
    en += (en.empty() ? "" : ", ") + part.label_en + " (" + percent(part.share) + ")";
    zh += (zh.empty() ? "" : "、") + part.label_zh + "（" + percent(part.share) + "）";
  }
  const bool any = std::any_of(list.begin(), list.end(), [](const Finding& x) { return x.weight > 0; });
  if (en.empty()) {
    h.closing_en = any ? "Nothing else keeps the devices from computing for more than 1 % of the time."
                       : "Nothing stands out: nothing keeps the devices from computing for more than 1 % of the time.";
    h.closing_zh = any ? "其他原因使设备不在计算的时间都不超过 1 %。"
                       : "没有突出的问题：没有任何原因使设备不在计算的时间超过 1 %。";
    return;
  }
  h.closing_en =
      (any ? "Beside this, the devices do not compute for: " : "Nothing stands out. The devices do not compute for: ") +
      en + "; the rest is under 1 % each.";
  h.closing_zh =
      (any ? "此外，设备不在计算的时间还有：" : "没有突出的问题。设备不在计算的时间有：") + zh + "；其余各不足 1 %。";
}

}  // namespace stageline
