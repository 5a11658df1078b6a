#include "diagnosis/profile/step_findings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "base/number.h"
#include "model/stage_costs.h"
#include "model/statistics.h"

namespace stageline {
namespace {

constexpr double kLoadingShare = 0.05, kWaitingShare = 0.05, kMostlyWaiting = 0.5, kMostlyKnown = 0.5;
constexpr double kEligibleShare = 0.5, kLateRatio = 0.5, kIdleLeft = 0.05, kLongestOperator = 0.1;

std::string rank_text(int64_t rank) { return "rank " + std::to_string(rank); }

Finding* find(std::vector<Finding>& list, std::string_view id) {
  const auto it = std::find_if(list.begin(), list.end(), [&](const Finding& x) { return x.id == id; });
  return it == list.end() ? nullptr : &*it;
}

// The mean step by category, summed over ranks; and who loses most to one of them.
struct StepShares {
  double total = 0;
  std::map<std::string, double, std::less<>> by_category;
  double worst_loading = 0;
  int64_t worst_rank = 0;
  double of(std::string_view category) const {
    const auto it = by_category.find(category);
    return it == by_category.end() ? 0 : share_or_zero(it->second, total);
  }
};

StepShares step_shares(const std::vector<Table>& tables) {
  StepShares s;
  const TableReader averages(tables, "step-averages");
  for (size_t i = 0; i < averages.row_count(); ++i) {
    const std::string_view category = averages.text(i, "category");
    const auto ns = static_cast<double>(averages.integer(i, "time_ns"));
    if (category == "Step") {
      s.total += ns;
      continue;
    }
    s.by_category[std::string(category)] += ns;
    if (category != "DataLoader" || averages.real(i, "time_share") <= s.worst_loading) continue;
    s.worst_loading = averages.real(i, "time_share");
    s.worst_rank = averages.integer(i, "rank");
  }
  return s;
}

// The device waits for a host that waits for its input: one cause, said once.
void tell_idle_from_loading(double loading, std::vector<Finding>& out) {
  Finding* idle = find(out, "device.idle");
  if (!idle || idle->title_en != "Devices wait for the host") return;
  idle->weight = std::max(0.0, idle->weight - loading);
  if (idle->weight < kIdleLeft) {
    out.erase(out.begin() + (idle - out.data()));
    return;
  }
  idle->detail_en += " Waiting for the DataLoader (" + percent(loading) + " of the host's step) is part of it.";
  idle->detail_zh += "其中包含等待 DataLoader 的时间（占主机步的 " + percent(loading) + "）。";
}

void add_input_loading(const std::vector<Table>& tables, std::vector<Finding>& out) {
  const StepShares steps = step_shares(tables);
  const double loading = steps.of("DataLoader");
  if (loading <= kLoadingShare) return;
  tell_idle_from_loading(loading, out);
  Finding x;
  x.id = "input.loading";
  x.weight = loading;
  x.value = percent(loading);
  x.value_note_en = "of the host's step";
  x.value_note_zh = "占主机的步";
  x.title_en = "Steps wait for their input";
  x.title_zh = "步在等输入数据";
  x.detail_en = "The DataLoader is waited for while nothing runs on a device";
  x.detail_zh = "等待 DataLoader 时没有设备在工作";
  if (steps.worst_loading > 1.1 * loading) {
    x.detail_en += "; most on " + rank_text(steps.worst_rank) + ", " + percent(steps.worst_loading);
    x.detail_zh += "；最多的是 " + rank_text(steps.worst_rank) + "，" + percent(steps.worst_loading);
  }
  x.detail_en += ". Load in other processes and ahead of time: num_workers, prefetch_factor, persistent_workers.";
  x.detail_zh += "。用其他进程提前加载：num_workers、prefetch_factor、persistent_workers。";
  out.push_back(std::move(x));
}

struct Waits {
  double transfer = 0, waiting = 0, unknown = 0, step = 0, exposed = 0;
  std::vector<std::pair<double, int64_t>> by_rank;  // waiting, rank
};

Waits read_waits(const std::vector<Table>& tables) {
  Waits w;
  const TableReader waits(tables, "waits"), overlap(tables, "overlap");
  for (size_t i = 0; i < waits.row_count(); ++i) {
    // Sends and receives are a pipeline's, no collectives: what they wait is its bubble.
    const auto waited = static_cast<double>(waits.integer(i, "synchronizing_ns") - waits.integer(i, "message_wait_ns"));
    w.transfer += static_cast<double>(waits.integer(i, "transfer_ns") - waits.integer(i, "message_transfer_ns"));
    w.waiting += waited;
    w.unknown += static_cast<double>(waits.integer(i, "unknown_ns"));
    w.by_rank.emplace_back(waited, waits.integer(i, "rank"));
  }
  for (size_t i = 0; i < overlap.row_count(); ++i) {
    w.step += static_cast<double>(overlap.integer(i, "step_ns"));
    w.exposed += static_cast<double>(overlap.integer(i, "communication_ns"));
  }
  return w;
}

void add_waiting(const std::vector<Table>& tables, std::vector<Finding>& out) {
  Waits w = read_waits(tables);
  const double known = w.transfer + w.waiting;
  if (w.by_rank.size() < 2 || known < kMostlyKnown * (known + w.unknown)) return;
  const double share = share_or_zero(w.waiting, known);
  // What lies under computation costs nothing; of the exposed part, waiting has at most its own length.
  const double weight = share_or_zero(std::min(w.waiting, w.exposed), w.step);
  if (share < kMostlyWaiting || weight < kWaitingShare) return;
  if (Finding* late = find(out, "rank.late")) {
    late->detail_en += " Of the collectives' time " + percent(share) + " is waiting, the rest transfer.";
    late->detail_zh += "集合通信的时间中 " + percent(share) + " 是等待，其余是传输。";
    return;
  }
  std::sort(w.by_rank.begin(), w.by_rank.end());
  std::vector<double> others;
  for (size_t i = 1; i < w.by_rank.size(); ++i) others.push_back(w.by_rank[i].first);
  const auto [least, rank] = w.by_rank.front();
  Finding x;
  x.id = "comm.waiting";
  x.weight = weight;
  x.value = percent(weight);
  x.value_note_en = "of a step";
  x.value_note_zh = "占每步";
  x.title_en = "Collectives wait more than they transfer";
  x.title_zh = "集合通信多半在等待而不是传输";
  x.detail_en = "The fastest rank of each call shows what the transfer takes; the rest, " + percent(share) +
                " of the collectives' time, is waiting for ranks that come later: " +
                human_duration(w.waiting / static_cast<double>(w.by_rank.size())) + " of a step on average.";
  x.detail_zh = "每次通信中最快的 rank 表明传输本身要多久；其余（集合通信时间的 " + percent(share) +
                "）是在等后到的 rank，平均每步 " + human_duration(w.waiting / static_cast<double>(w.by_rank.size())) +
                "。";
  if (least < kLateRatio * median_of(others)) {
    x.detail_en += " Rank " + std::to_string(rank) + " waits least, " + human_duration(least) +
                   ": the others wait for it. Look at its work and its host.";
    x.detail_zh +=
        rank_text(rank) + " 等得最少（" + human_duration(least) + "）：其他 rank 在等它。检查它的工作量和主机。";
  } else {
    x.detail_en += " No single rank is the late one: look for work that is uneven from step to step.";
    x.detail_zh += "没有固定的迟到者：检查各步之间是否不均匀。";
  }
  out.push_back(std::move(x));
}

void add_tensor_cores(const TableReader& advice, size_t row, std::vector<Finding>& out) {
  const double eligible = advice.real(row, "value_share");
  if (eligible < kEligibleShare) return;
  Finding x;
  x.id = "tensor_cores.unused";
  x.weight = 0;  // how much faster they would be, no recording says
  x.value = percent(eligible);
  x.value_note_en = "of the kernel time could use them";
  x.value_note_zh = "的核函数时间可用";
  x.title_en = "Tensor cores are not used";
  x.title_zh = "没有使用 Tensor Core";
  x.detail_en =
      "The device has them, and by their names no kernel runs on them. Matrix products and convolutions in FP16 or "
      "BF16 (torch.autocast), or in TF32 (torch.set_float32_matmul_precision(\"high\")), are several times as fast.";
  x.detail_zh =
      "设备有 Tensor Core，但从名称看没有核函数使用它。矩阵乘与卷积改用 FP16、BF16（torch.autocast）或 TF32"
      "（torch.set_float32_matmul_precision(\"high\")）可快数倍。";
  out.push_back(std::move(x));
}

// What most of the peak is, where it was sorted; by guess, so only what is most by far is named.
std::pair<std::string, std::string> largest_class(const std::vector<Table>& tables, int64_t rank) {
  static const std::map<std::string_view, std::pair<const char*, const char*>> kClasses = {
      {"parameter_bytes", {"parameters", "参数"}},
      {"optimizer_state_bytes", {"optimizer state", "优化器状态"}},
      {"activation_bytes", {"activations", "激活"}},
      {"gradient_bytes", {"gradients", "梯度"}},
      {"temporary_bytes", {"temporary tensors", "临时张量"}}};
  const TableReader peaks(tables, "memory-category-peaks"), allocated(tables, "memory-peaks");
  for (size_t i = 0; i < peaks.row_count(); ++i) {
    if (peaks.integer(i, "rank") != rank || peaks.text(i, "device") == "CPU") continue;
    // Blocks whose frees were not recorded pile up: then the sum is above what was ever allocated, and tells nothing.
    bool followed = false;
    for (size_t k = 0; k < allocated.row_count(); ++k)
      followed |= allocated.integer(k, "rank") == rank && allocated.text(k, "device") == peaks.text(i, "device") &&
                  static_cast<double>(peaks.integer(i, "total_bytes")) <=
                      1.1 * static_cast<double>(allocated.integer(k, "peak_bytes"));
    if (!followed) continue;
    for (const auto& [column, words] : kClasses) {
      const double share = share_or_zero(static_cast<double>(peaks.integer(i, column)),
                                         static_cast<double>(peaks.integer(i, "total_bytes")));
      if (share >= 0.5)
        return {" Most of it looks like " + std::string(words.first) + " (" + percent(share) + ").",
                "其中大部分看来是" + std::string(words.second) + "（" + percent(share) + "）。"};
    }
  }
  return {};
}

void add_full_memory(const std::vector<Table>& tables, double share, int64_t rank, std::vector<Finding>& out) {
  const auto [en, zh] = largest_class(tables, rank);
  Finding x;
  x.id = "memory.full";
  x.weight = 0;  // room, not time
  x.value = percent(share);
  x.value_note_en = "of the device's memory";
  x.value_note_zh = "占设备内存";
  x.title_en = "Memory of " + rank_text(rank) + " is nearly full at its peak";
  x.title_zh = rank_text(rank) + " 的内存峰值接近上限";
  x.detail_en = "Allocated by tensors, without what the allocator holds beside them." + en +
                " Activation checkpointing, smaller micro-batches or sharded states make room.";
  x.detail_zh = "指张量占用，不含分配器另外保留的部分。" + zh + "激活重算、更小的微批或分片状态可以腾出空间。";
  out.push_back(std::move(x));
}

void add_data_parallel(const TableReader& advice, size_t row, std::vector<Finding>& out) {
  Finding x;
  x.id = "data_parallel.one_process";
  x.weight = 0;  // whose idle time it is, other findings say
  x.title_en = "DataParallel drives several devices from one process";
  x.title_zh = "DataParallel 用一个进程驱动多个设备";
  x.detail_en = "On " + rank_text(advice.integer(row, "rank")) +
                " one Python process launches for all of them and copies the model every step. "
                "DistributedDataParallel has one process a device.";
  x.detail_zh =
      rank_text(advice.integer(row, "rank")) +
      " 上一个 Python 进程为所有设备发起启动，并且每步复制模型。改用 DistributedDataParallel，每个设备一个进程。";
  out.push_back(std::move(x));
}

}  // namespace

void add_step_findings(const ProfileFacts& facts, const std::vector<Table>& tables, std::vector<Finding>& out) {
  if (!facts.accounted) add_input_loading(tables, out);  // else its owner is known, gap by gap
  add_waiting(tables, out);
  const TableReader advice(tables, "recommendations");
  size_t eligible = SIZE_MAX, parallel = SIZE_MAX, full = SIZE_MAX;  // the worst rank speaks for all
  const auto worse = [&](size_t row, size_t best) {
    return best == SIZE_MAX || advice.real(row, "value_share") > advice.real(best, "value_share");
  };
  for (size_t i = 0; i < advice.row_count(); ++i) {
    const std::string_view about = advice.text(i, "recommendation");
    if (about == "tensor-cores" && worse(i, eligible)) eligible = i;
    if (about == "memory-full" && worse(i, full)) full = i;
    if (about == "data-parallel" && parallel == SIZE_MAX) parallel = i;
  }
  if (eligible != SIZE_MAX) add_tensor_cores(advice, eligible, out);
  if (parallel != SIZE_MAX) add_data_parallel(advice, parallel, out);
  if (full != SIZE_MAX) add_full_memory(tables, advice.real(full, "value_share"), advice.integer(full, "rank"), out);
}

void add_host_parts(const std::vector<Table>& tables, Headline& h) {
  const StepShares steps = step_shares(tables);
  if (!(steps.total > 0)) return;
  const auto part = [&](const char* id, const char* en, const char* zh, double share) {
    if (share > 0) h.parts.push_back({id, en, zh, share});
  };
  const double communication = steps.of("Communication"), operators = steps.of("CPU Exec"),
               loading = steps.of("DataLoader");
  part("compute", "operators", "算子", operators);
  part("comm", "communication", "通信", communication);
  part("idle-input", "waiting for input", "等输入", loading);
  part("rest", "other", "其他", std::max(0.0, 1 - communication - operators - loading));
  // Rows are in order of self device time, else of self host time; there is no device here.
  const TableReader table(tables, "operators");
  size_t longest = SIZE_MAX;
  for (size_t i = 0; i < table.row_count(); ++i)
    if (table.text(i, "kind") == "operator" &&
        (longest == SIZE_MAX || table.integer(i, "self_host_ns") > table.integer(longest, "self_host_ns")))
      longest = i;
  if (longest == SIZE_MAX || table.real(longest, "self_host_share") < kLongestOperator) return;
  const std::string name(table.text(longest, "name"));
  const std::string share = percent(table.real(longest, "self_host_share"));
  h.lead_en = "Of the operators " + name + " takes most of the host's time by itself (" + share + " on " +
              rank_text(table.integer(longest, "rank")) + "). " + h.lead_en;
  h.lead_zh = "算子中 " + name + " 自身占主机时间最多（" + rank_text(table.integer(longest, "rank")) + " 上为 " +
              share + "）。" + h.lead_zh;
}

}  // namespace stageline
