#include "diagnosis/training_findings.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/counted.h"
#include "base/number.h"
#include "model/stage_costs.h"

namespace stageline {
namespace {

// A loss below is not worth a sentence; a rank is late when it is the last in this share of the steps; a step pauses
// when its rank did its own part of it this much longer than usual.
constexpr double kLeast = 0.03, kMostlyLast = 0.6, kPause = 0.3;

struct PartWords {
  const char *id, *en, *zh, *does_en, *does_zh;
};
const PartWords kParts[kTrainingParts] = {
    {"comm", "collectives", "集合通信", "stands in collectives", "停在集合通信中"},
    {"idle-input", "waiting for input", "等输入", "waits for its input", "在等输入数据"},
    {"compute", "backward", "反向", "runs backward", "在做反向"},
    {"compute", "forward", "前向", "runs forward", "在做前向"},
    {"optimizer", "optimizer", "优化器", "runs the optimizer", "在跑优化器"},
    {"rest", "nothing recorded", "没有记录", "does what nobody recorded", "在做没有记录的事"}};

class Teller {
 public:
  explicit Teller(const TrainingTime& time) : time_(time) {}

  Explanation tell() {
    sum_up();
    say_run();
    add_pauses();
    add_late_rank();
    add_input();
    add_transfer();
    add_rest();
    std::stable_sort(e_.findings.begin(), e_.findings.end(),
                     [](const Finding& a, const Finding& b) { return a.lost_ns_per_step > b.lost_ns_per_step; });
    double together = 0;
    for (const Finding& f : e_.findings) together += f.lost_ns_per_step;
    e_.lost_ns = std::min(together, step_ns_);
    lead();
    return std::move(e_);
  }

 private:
  size_t steps() const { return time_.step_count(); }
  size_t ranks() const { return time_.ranks.size(); }
  double median_over_steps(size_t r, TrainingPart part) const {
    std::vector<double> all;
    for (const TrainingStep& step : time_.ranks[r].steps) all.push_back(step.of(part));
    return median_of(std::move(all));
  }
  std::string rank_en(size_t r) const { return "rank " + std::to_string(time_.ranks[r].rank); }

  void sum_up() {
    const auto cases = static_cast<double>(ranks() * steps());
    for (const TrainingRank& rank : time_.ranks)
      for (const TrainingStep& step : rank.steps) {
        step_ns_ += step.whole_ns() / cases;
        transfer_ns_ += step.transfer_ns / cases;
        waiting_ns_ += step.waiting_ns / cases;
        for (size_t k = 0; k < kTrainingParts; ++k) mean_[k] += step.ns[k] / cases;
      }
    e_.step_ns = e_.wall_ns = step_ns_;
    e_.steps = static_cast<int64_t>(steps());
    const auto part = [&](const char* id, const char* en, const char* zh, double ns) {
      if (ns > 0) e_.headline.parts.push_back({id, en, zh, ns / step_ns_});
    };
    const auto mean = [&](TrainingPart p) { return mean_[static_cast<size_t>(p)]; };
    part("compute", "forward", "前向", mean(TrainingPart::kForward));
    part("compute", "backward", "反向", mean(TrainingPart::kBackward));
    part("optimizer", "optimizer", "优化器", mean(TrainingPart::kOptimizer));
    part("idle-input", "waiting for input", "等输入", mean(TrainingPart::kInput));
    // Calls that overlap on a rank are one stretch of its time.
    const double both = transfer_ns_ + waiting_ns_, in_calls = mean(TrainingPart::kCollective);
    part("comm", "collectives, exposed", "未被掩盖的集合通信", both > 0 ? in_calls * transfer_ns_ / both : 0);
    part("bubble", "waiting for other ranks", "等其他 rank", both > 0 ? in_calls * waiting_ns_ / both : 0);
    part("rest", "nothing recorded", "没有记录", mean(TrainingPart::kOther));
    e_.parts = e_.headline.parts;
  }

  void say_run() {
    e_.run_en = counted(static_cast<int64_t>(ranks()), "rank", "ranks") + ", no pipeline · " +
                counted(e_.steps, "step", "steps") + " · " + human_duration(step_ns_) + " a step on average";
    e_.run_zh = grouped(static_cast<int64_t>(ranks())) + " 个 rank，无流水线 · " + grouped(e_.steps) +
                " 步 · 平均每步 " + human_duration(step_ns_);
    if (time_.first_left_out >= 0) {
      e_.note_en = "The first step, " + std::to_string(time_.first_left_out) + ", is left out as a warm-up.";
      e_.note_zh = "第一步（" + std::to_string(time_.first_left_out) + "）视为预热，不计入。";
    }
  }

  Finding finding(const char* id, double ns) const {
    Finding f;
    f.id = id;
    f.lost_ns_per_step = ns;
    f.weight = ns / step_ns_;
    f.value = percent(f.weight);
    f.value_note_en = "of a step";
    f.value_note_zh = "占每步";
    return f;
  }

  // Steps in which one rank did its own part much longer than it usually does: the others wait for it in the next
  // collective.
  void add_pauses() {
    struct Pauses {
      double ns = 0, longest_ns = 0;
      std::vector<int32_t> steps;
      int32_t longest = 0;
    };
    std::map<std::pair<size_t, size_t>, Pauses> found;  // rank, part
    std::map<int32_t, double> longest_of_step;
    for (size_t r = 0; r < ranks(); ++r) {
      std::array<double, kTrainingParts> usual = {};
      for (size_t k = 0; k < kTrainingParts; ++k) usual[k] = median_over_steps(r, static_cast<TrainingPart>(k));
      std::vector<double> own;
      for (const TrainingStep& step : time_.ranks[r].steps) own.push_back(step.own_ns());
      const double usual_own = median_of(std::move(own)), usual_step = median_step();
      for (const TrainingStep& step : time_.ranks[r].steps) {
        if (step.own_ns() < usual_own + kPause * usual_step) continue;
        size_t worst = 0;
        double more = 0;
        for (size_t k = 1; k < kTrainingParts; ++k)
          if (step.ns[k] - usual[k] > more) more = step.ns[k] - usual[k], worst = k;
        if (worst == 0) continue;
        // Ranks that stand still together hold the step up once.
        double& said = longest_of_step[step.step];
        const double new_ns = std::max(0.0, more - said);
        said = std::max(said, more);
        Pauses& p = found[{r, worst}];
        p.ns += new_ns;
        p.steps.push_back(step.step);
        if (more > p.longest_ns) p.longest_ns = more, p.longest = step.step;
      }
    }
    for (const auto& [at, p] : found) {
      // In half of the steps it is no pause.
      if (p.ns < kLeast * step_ns_ * static_cast<double>(steps()) || 2 * p.steps.size() > steps()) continue;
      Finding f = finding("step.outlier", p.ns / static_cast<double>(steps()));
      const PartWords& words = kParts[at.second];
      std::string list;
      for (size_t i = 0; i < p.steps.size() && i < 5; ++i) list += (i ? ", " : "") + std::to_string(p.steps[i]);
      if (p.steps.size() > 5) list += ", …";
      f.rank = time_.ranks[at.first].rank;
      f.step = p.longest;
      f.cause = "pause:" + std::to_string(time_.ranks[at.first].rank);
      const std::string many = counted(static_cast<int64_t>(p.steps.size()), "step", "steps");
      f.title_en = "In " + many + " " + rank_en(at.first) + " " + words.does_en + " up to " +
                   human_duration(p.longest_ns) + " longer than usual";
      f.title_zh = "有 " + std::to_string(p.steps.size()) + " 步，" + rank_en(at.first) + " " + words.does_zh +
                   "，最多比平时长 " + human_duration(p.longest_ns);
      f.detail_en = (p.steps.size() == 1 ? "It is step " : "They are steps ") + list + "; the other ranks wait for it.";
      f.detail_zh = "是第 " + list + " 步；其他 rank 在等它。";
      if (static_cast<TrainingPart>(at.second) == TrainingPart::kOther) {
        f.detail_en +=
            " Between its work nothing was recorded: a checkpoint, an evaluation, logging, Python's garbage "
            "collection.";
        f.detail_zh += "这段时间没有记录：可能是保存检查点、评估、日志或 Python 的垃圾回收。";
      }
      e_.findings.push_back(std::move(f));
    }
  }

  double median_step() const {
    std::vector<double> all;
    for (const TrainingRank& rank : time_.ranks)
      for (const TrainingStep& step : rank.steps) all.push_back(step.whole_ns());
    return median_of(std::move(all));
  }

  // Whom the others wait for, and what it does longer than they.
  void add_late_rank() {
    if (ranks() < 2) return;
    std::vector<double> lost, last(ranks(), 0);
    for (size_t k = 0; k < steps(); ++k) {
      size_t least = 0;
      double sum = 0;
      for (size_t r = 0; r < ranks(); ++r) {
        if (time_.ranks[r].steps[k].waiting_ns < time_.ranks[least].steps[k].waiting_ns) least = r;
        sum += time_.ranks[r].steps[k].waiting_ns;
      }
      last[least] += 1;
      lost.push_back((sum - static_cast<double>(ranks()) * time_.ranks[least].steps[k].waiting_ns) /
                     static_cast<double>(ranks() - 1));
    }
    const double price = median_of(std::move(lost));  // what single steps take longer, the pauses say
    if (price < kLeast * step_ns_) return;
    const size_t who = static_cast<size_t>(std::max_element(last.begin(), last.end()) - last.begin());
    const double share = last[who] / static_cast<double>(steps());
    if (share < kMostlyLast) {
      Finding f = finding("comm.waiting", price);
      f.title_en = "Ranks wait for each other in collectives, now for one, now for another";
      f.title_zh = "各 rank 在集合通信中相互等待，没有固定的迟到者";
      f.detail_en = "No rank is the last in more than " + percent(share) +
                    " of the steps: look for work that is uneven from step to step, such as sequence lengths, and for "
                    "busy hosts.";
      f.detail_zh = "没有哪个 rank 在超过 " + percent(share) +
                    " 的步中最后到达：检查各步之间不均匀的工作（例如序列长度）以及繁忙的主机。";
      e_.findings.push_back(std::move(f));
      return;
    }
    size_t longer = 0;
    double more = 0, its = 0, theirs = 0;
    for (size_t k = 1; k < kTrainingParts; ++k) {
      std::vector<double> others;
      for (size_t r = 0; r < ranks(); ++r)
        if (r != who) others.push_back(median_over_steps(r, static_cast<TrainingPart>(k)));
      const double usual = median_of(std::move(others)), own = median_over_steps(who, static_cast<TrainingPart>(k));
      if (own - usual > more) more = own - usual, longer = k, its = own, theirs = usual;
    }
    Finding f = finding("rank.late", price);
    f.rank = time_.ranks[who].rank;
    f.cause = "rank:" + std::to_string(time_.ranks[who].rank);
    f.title_en = "The others wait for " + rank_en(who);
    f.title_zh = "其他 rank 在等 " + rank_en(who);
    f.detail_en = "It is the last to come into collectives in " + percent(share) + " of the steps; the others wait " +
                  human_duration(price) + " a step for it.";
    f.detail_zh =
        "在 " + percent(share) + " 的步中它最后进入集合通信；其他 rank 每步等它 " + human_duration(price) + "。";
    if (longer != 0) {
      f.detail_en += " Its " +
                     std::string(longer == 5   ? "time between what was recorded"
                                 : longer == 1 ? "wait for input"
                                               : kParts[longer].en) +
                     " takes " + human_duration(its) + " a step, on the others " + human_duration(theirs) + ".";
      f.detail_zh += std::string("它的") + (longer == 5 ? "未记录时间" : kParts[longer].zh) + "每步 " +
                     human_duration(its) + "，其他 rank 为 " + human_duration(theirs) + "。";
    }
    f.price.fix_en = "Give " + rank_en(who) + " equal work, or look at its host and device";
    f.price.fix_zh = "让 " + rank_en(who) + " 的工作量与其他 rank 相同，或检查它的主机和设备";
    f.price.saving_ns = price;
    e_.findings.push_back(std::move(f));
  }

  // Of the rank that waits least for it: where only some wait, the others wait for them, which is said above.
  void add_input() {
    double least = INFINITY;
    for (size_t r = 0; r < ranks(); ++r) least = std::min(least, median_over_steps(r, TrainingPart::kInput));
    if (least < kLeast * step_ns_) return;
    Finding f = finding("input.loading", least);
    f.title_en = "Steps wait for their input";
    f.title_zh = "步在等输入数据";
    f.detail_en = (ranks() > 1 ? "Every rank waits " : "It waits ") + human_duration(least) +
                  std::string(" or more of a step for the DataLoader, and does nothing else meanwhile.") +
                  " Load in other processes and ahead of time: num_workers, prefetch_factor, persistent_workers.";
    f.detail_zh =
        "每步至少有 " + human_duration(least) +
        " 在等 DataLoader，其间什么也不做。用其他进程提前加载：num_workers、prefetch_factor、persistent_workers。";
    f.price.fix_en = "Load batches ahead of time";
    f.price.fix_zh = "提前加载数据";
    f.price.saving_ns = least;
    e_.findings.push_back(std::move(f));
  }

  void add_transfer() {
    if (transfer_ns_ < kLeast * step_ns_) return;
    Finding f = finding("comm.exposed", transfer_ns_);
    f.title_en = "Collectives that nothing hides hold up a step";
    f.title_zh = "未被掩盖的集合通信拖住每步";
    f.detail_en =
        "When the last rank is there, all stand still for the transfer: " + human_duration(transfer_ns_) + " a step.";
    f.detail_zh = "最后一个 rank 到达后，所有 rank 仍要停下来等传输：每步 " + human_duration(transfer_ns_) + "。";
    if (!time_.collectives.empty()) {
      const TrainingCollective& most =
          *std::max_element(time_.collectives.begin(), time_.collectives.end(),
                            [](const auto& a, const auto& b) { return a.transfer_ns < b.transfer_ns; });
      f.detail_en += " Most of it: " + most.name + ", " + human_duration(most.transfer_ns);
      f.detail_zh += "其中最多的是 " + most.name + "，" + human_duration(most.transfer_ns);
      if (most.bytes > 0) {
        f.detail_en += " a step for " + human_bytes(most.bytes);
        f.detail_zh += "，" + human_bytes(most.bytes);
      }
      f.detail_en += ".";
      f.detail_zh += "。";
    }
    if (time_.hidden_ns > 0) {
      f.detail_en += " DDP's reductions run for " + human_duration(time_.hidden_ns) + " a step in all.";
      f.detail_zh += "DDP 的归约每步共 " + human_duration(time_.hidden_ns) + "。";
    }
    f.detail_en +=
        " Fewer bytes (bf16, accumulation with no_sync), other bucket sizes (bucket_cap_mb), or prefetching with FSDP "
        "hide more of it.";
    f.detail_zh += "减少字节（bf16、用 no_sync 累积）、调整桶大小（bucket_cap_mb）或 FSDP 的预取可以掩盖更多。";
    e_.findings.push_back(std::move(f));
  }

  // What every rank does beside its recorded work, step by step.
  void add_rest() {
    double least = INFINITY;
    for (size_t r = 0; r < ranks(); ++r) least = std::min(least, median_over_steps(r, TrainingPart::kOther));
    if (least < 0.1 * step_ns_) return;
    Finding f = finding("outside", least);
    f.title_en = "Between what was recorded, every step does something else";
    f.title_zh = "在有记录的工作之间，每步还在做别的事";
    f.detail_en = human_duration(least) +
                  " a step lie between data wait, forward, backward and optimizer: logging, metrics, .item(), copies. "
                  "Ranges of your own (stageline.record.range) name them.";
    f.detail_zh =
        "每步有 " + human_duration(least) +
        " 在取数据、前向、反向和优化器之间：日志、指标、.item()、拷贝。用 stageline.record.range 标记即可看到。";
    e_.findings.push_back(std::move(f));
  }

  void lead() {
    Headline& h = e_.headline;
    h.step_ns = step_ns_;
    h.steps = e_.steps;
    const double work = (mean_[2] + mean_[3] + mean_[4]) / step_ns_;
    h.closing_en = e_.findings.empty() ? "No input, rank, collective or pause costs 3 % of a step or more."
                                       : "What costs less than 3 % of a step is left unsaid.";
    h.closing_zh = e_.findings.empty() ? "没有哪个输入、rank、集合通信或停顿的代价达到每步的 3 %。"
                                       : "代价不到每步 3 % 的不列出。";
    h.title_en = "A step takes " + human_duration(step_ns_) + ", and " + percent(1 - work) +
                 " of it is not forward, backward or optimizer";
    h.title_zh = "平均每步 " + human_duration(step_ns_) + "，其中 " + percent(1 - work) + " 不是前向、反向或优化器";
    h.lead_en = counted(static_cast<int64_t>(ranks()), "rank", "ranks") + " without a pipeline, " +
                counted(e_.steps, "step", "steps") + ".";
    h.lead_zh = grouped(static_cast<int64_t>(ranks())) + " 个 rank，无流水线，" + grouped(e_.steps) + " 步。";
    if (!e_.findings.empty()) {
      h.lead_en += " " + e_.findings[0].title_en + ".";
      h.lead_zh += e_.findings[0].title_zh + "。";
    }
  }

  const TrainingTime& time_;
  Explanation e_;
  double step_ns_ = 0, transfer_ns_ = 0, waiting_ns_ = 0;
  std::array<double, kTrainingParts> mean_ = {};
};

}  // namespace

Explanation explain_training(const TrainingTime& time) { return Teller(time).tell(); }

}  // namespace stageline
