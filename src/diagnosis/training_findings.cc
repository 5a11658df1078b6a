#include "diagnosis/explain.h"
#include "pipeline/measure/training_time.h"

namespace stageline {
namespace {

// A smaller loss is not worth a sentence. A rank is late when it is last in this share of the steps. A step pauses when
// a rank's own part of it exceeds the usual by this share of the median step.
constexpr double kMinLossShare = 0.03, kMostlyLast = 0.6, kPause = 0.3;

// Sentences of the parts: "training.part.NAME" is a label, "training.does.NAME" says what one rank does, and
// "training.do.NAME" what all of them do.
constexpr const char* kParts[kTrainingParts] = {"collective", "input", "backward", "forward", "optimizer", "other"};

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
    sort_stably(e_.findings, std::greater(), &Finding::lost_ns_per_step);
    const double together = sum_over<double>(e_.findings, &Finding::lost_ns_per_step);
    e_.lost_ns = std::min(together, step_ns_);
    lead();
    return std::move(e_);
  }

 private:
  size_t steps() const { return time_.step_count(); }
  size_t ranks() const { return time_.ranks.size(); }
  double median_over_steps(size_t r, TrainingPart part) const {
    auto all = mapped<double>(time_.ranks[r].steps, [&](const TrainingStep& step) { return step.of(part); });
    return median_of(std::move(all));
  }

  void sum_up() {
    const double cases = ranks() * steps();
    for (const TrainingRank& rank : time_.ranks)
      for (const TrainingStep& step : rank.steps) {
        step_ns_ += step.whole_ns() / cases;
        transfer_ns_ += step.transfer_ns / cases;
        waiting_ns_ += step.waiting_ns / cases;
        for (size_t k = 0; k < kTrainingParts; ++k) mean_[k] += step.ns[k] / cases;
      }
    e_.step_ns = e_.wall_ns = e_.parts_of_ns = step_ns_;
    e_.steps = e_.parts_of_steps = steps();
    const auto part = [&](const char* id, const std::string& name, double ns) {
      if (ns > 0) e_.headline.parts.push_back(span_part(id, "training.part." + name, ns / step_ns_));
    };
    const auto mean = [&](TrainingPart p) { return mean_[p]; };
    part("compute", "forward", mean(TrainingPart::kForward));
    part("compute", "backward", mean(TrainingPart::kBackward));
    part("optimizer", "optimizer", mean(TrainingPart::kOptimizer));
    part("idle-input", "input", mean(TrainingPart::kInput));
    // Calls that overlap on a rank are one stretch of its time, so that stretch is shared out.
    const double both = transfer_ns_ + waiting_ns_, in_calls = mean(TrainingPart::kCollective);
    part("comm", "exposed", both > 0 ? in_calls * transfer_ns_ / both : 0);
    part("bubble", "waiting", both > 0 ? in_calls * waiting_ns_ / both : 0);
    part("rest", "other", mean(TrainingPart::kOther));
    e_.parts = e_.headline.parts;
  }

  void say_run() {
    Args args;
    args.count("ranks", ranks()).count("steps", e_.steps).set("time", human_duration(step_ns_));
    e_.run = words("training.run", args);
    if (time_.first_left_out < 0) return;
    e_.note = words("training.first", Args().set("step", int64_t{time_.first_left_out}));
  }

  Finding finding(const char* id, double ns) const {
    Finding f{.id = id, .weight = ns / step_ns_, .lost_ns_per_step = ns};
    f.value = percent(f.weight);
    f.value_note = words("note.step");
    return f;
  }

  // Steps in which a rank, or all of them together, did something much longer than usual.
  struct Pauses {
    double ns = 0, longest_ns = 0;
    std::vector<int32_t> steps;
    int32_t longest = 0;
    void add(double ns_more, double ns_longest, int32_t step) {
      ns += ns_more;
      steps.push_back(step);
      if (ns_longest > longest_ns) longest_ns = ns_longest, longest = step;
    }
  };
  // The part of a rank's step that took longest beyond the usual; 0: none did.
  struct Worst {
    size_t part = 0;
    double more = 0;
  };
  // The usual times of a rank.
  struct Usual {
    ByEnum<TrainingPart, double, kTrainingParts> of_part;
    double own_ns = 0;
  };
  static constexpr size_t kAll = SIZE_MAX;  // as a rank

  Usual usual_of(size_t r) const {
    Usual usual;
    for (size_t k = 0; k < kTrainingParts; ++k) usual.of_part[k] = median_over_steps(r, static_cast<TrainingPart>(k));
    auto own = mapped<double>(time_.ranks[r].steps, &TrainingStep::own_ns);
    usual.own_ns = median_of(std::move(own));
    return usual;
  }

  static Worst worst_of(const TrainingStep& step, const Usual& usual, double long_ns) {
    Worst worst;
    if (step.own_ns() < usual.own_ns + long_ns) return worst;
    for (size_t k = 1; k < kTrainingParts; ++k)
      if (step.ns[k] - usual.of_part[k] > worst.more) worst = {k, step.ns[k] - usual.of_part[k]};
    return worst;
  }

  // Finds steps in which a rank did its own part much longer than usual, so that the others waited for it in the next
  // collective. If all ranks took longer, by the same part, no rank waited for another; their common part is one pause
  // of all.
  void add_pauses() {
    std::vector<Usual> usual;
    for (size_t r = 0; r < ranks(); ++r) usual.push_back(usual_of(r));
    const double long_ns = kPause * median_step();
    std::map<std::pair<size_t, size_t>, Pauses> found;  // key: rank (or kAll), part
    for (size_t s = 0; s < steps(); ++s) {
      std::vector<Worst> worst;
      for (size_t r = 0; r < ranks(); ++r) worst.push_back(worst_of(time_.ranks[r].steps[s], usual[r], long_ns));
      const int32_t number = time_.ranks[0].steps[s].step;
      const double least = std::ranges::min_element(worst, {}, &Worst::more)->more;
      const bool together = ranks() > 1 && std::ranges::all_of(worst, [&](const Worst& w) {
                              return w.part != 0 && w.part == worst[0].part;
                            });
      double shared = 0;  // ranks that pause together delay the step only once
      if (together) found[{kAll, worst[0].part}].add(shared = least, least, number);
      for (size_t r = 0; r < ranks(); ++r) {
        const double beyond_ns = worst[r].more - shared;
        if (worst[r].part == 0 || (together && beyond_ns < long_ns)) continue;
        found[{r, worst[r].part}].add(std::max(0.0, beyond_ns), worst[r].more, number);
        shared = std::max(shared, worst[r].more);
      }
    }
    for (const auto& [at, pauses] : found)  // an event in more than half of the steps does not count as a pause
      if (pauses.ns >= kMinLossShare * step_ns_ * steps() && 2 * pauses.steps.size() <= steps())
        add_pause(at.first, at.second, pauses);
  }

  void add_pause(size_t rank, size_t part, const Pauses& p) {
    Finding f = finding("step.outlier", p.ns / steps());
    std::string list;
    for (size_t i = 0; i < p.steps.size() && i < 5; ++i) append_item(list, std::to_string(p.steps[i]));
    if (p.steps.size() > 5) list += ", …";
    f.step = p.longest;
    const bool all = rank == kAll;
    Args args;
    args.count("steps", p.steps.size()).set("list", list);
    args.set("does", words(std::string(all ? "training.do." : "training.does.") + kParts[part]));
    args.set("longest", human_duration(p.longest_ns)).flag("alone", ranks() == 1);
    args.flag("other", static_cast<TrainingPart>(part) == TrainingPart::kOther);
    if (all) {
      f.key = "all";
      say(f, "training.pause_of_all", args);
    } else {
      f.rank = time_.ranks[rank].rank;
      f.places = {{.kind = PlaceKind::kHost, .ranks = {*f.rank}}};
      say(f, "training.pause", args.set("rank", int64_t{*f.rank}));
    }
    e_.findings.push_back(std::move(f));
  }

  double median_step() const {
    std::vector<double> all;
    for (const TrainingRank& rank : time_.ranks)
      for (const TrainingStep& step : rank.steps) all.push_back(step.whole_ns());
    return median_of(std::move(all));
  }

  // Finds whom the others wait for, and what it does longer than they do.
  void add_late_rank() {
    if (ranks() < 2) return;
    std::vector<double> lost, last(ranks(), 0);
    for (size_t k = 0; k < steps(); ++k) {
      size_t min = 0;
      double sum = 0;
      for (size_t r = 0; r < ranks(); ++r) {
        if (time_.ranks[r].steps[k].waiting_ns < time_.ranks[min].steps[k].waiting_ns) min = r;
        sum += time_.ranks[r].steps[k].waiting_ns;
      }
      last[min] += 1;
      lost.push_back((sum - ranks() * time_.ranks[min].steps[k].waiting_ns) / (ranks() - 1));
    }
    const double price = median_of(std::move(lost));  // the extra time of single steps belongs to the pauses
    if (price < kMinLossShare * step_ns_) return;
    const size_t who = std::ranges::max_element(last) - last.begin();
    const double share = last[who] / steps();
    if (share < kMostlyLast) {
      Finding f = finding("comm.waiting", price);
      say(f, "training.waits", Args().set("share", percent(share)));
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
    f.places = {{.kind = PlaceKind::kRanks, .ranks = {*f.rank}}};
    Args args;
    args.set("rank", int64_t{*f.rank}).set("share", percent(share)).set("price", human_duration(price));
    args.set("own", human_duration(its)).set("others", human_duration(theirs));
    if (longer != 0) {
      const std::string its_name = std::string("training.its.") + kParts[longer];
      args.set("what", words(has_words(its_name) ? its_name : std::string("training.part.") + kParts[longer]));
    }
    say(f, "training.late", args);
    f.price.fix = words("training.late.fix", args);
    f.price.saving_ns = price;
    e_.findings.push_back(std::move(f));
  }

  // Takes the rank that waits least for input: if only some ranks wait, the others wait for those, which is reported
  // above.
  void add_input() {
    double min = INFINITY;
    for (size_t r = 0; r < ranks(); ++r) min = std::min(min, median_over_steps(r, TrainingPart::kInput));
    if (min < kMinLossShare * step_ns_) return;
    Finding f = finding("input.loading", min);
    say(f, "training.input", Args().set("time", human_duration(min)).flag("several", ranks() > 1));
    f.price.fix = words("training.input.fix");
    f.price.saving_ns = min;
    e_.findings.push_back(std::move(f));
  }

  void add_transfer() {
    if (transfer_ns_ < kMinLossShare * step_ns_) return;
    Finding f = finding("comm.exposed", transfer_ns_);
    Args args;
    args.set("time", human_duration(transfer_ns_)).set("largest", Text());
    if (!time_.collectives.empty()) {
      const TrainingCollective& max =
          *std::ranges::max_element(time_.collectives, {}, [](const auto& of) { return of.transfer_ns; });
      Args one;
      one.set("most", max.name).set("time", human_duration(max.transfer_ns));
      one.set("bytes", max.bytes > 0 ? human_bytes(max.bytes) : "");
      args.set("largest", words("training.exposed.largest", one));
    }
    say(f, "training.exposed", args.set("hidden", time_.hidden_ns > 0 ? human_duration(time_.hidden_ns) : ""));
    e_.findings.push_back(std::move(f));
  }

  // Reports the time of every rank besides its recorded work, step by step.
  void add_rest() {
    double min = INFINITY;
    for (size_t r = 0; r < ranks(); ++r) min = std::min(min, median_over_steps(r, TrainingPart::kOther));
    if (min < 0.1 * step_ns_) return;
    Finding f = finding("outside", min);
    say(f, "training.rest", Args().set("time", human_duration(min)));
    e_.findings.push_back(std::move(f));
  }

  void lead() {
    Headline& h = e_.headline;
    h.step_ns = step_ns_;
    h.steps = e_.steps;
    const double work = (mean_[2] + mean_[3] + mean_[4]) / step_ns_;
    Args args;
    args.flag("any", !e_.findings.empty()).set("time", human_duration(step_ns_)).set("share", percent(1 - work));
    args.count("ranks", ranks()).count("steps", e_.steps);
    args.set("finding", e_.findings.empty() ? Text() : e_.findings[0].title);
    h.closing = words("training.closing", args);
    h.title = words("training.title", args);
    h.lead = words("training.lead", args);
  }

  const TrainingTime& time_;
  Explanation e_;
  double step_ns_ = 0, transfer_ns_ = 0, waiting_ns_ = 0;
  ByEnum<TrainingPart, double, kTrainingParts> mean_ = {};
};

}  // namespace

Explanation explain_training(const TrainingTime& time) { return Teller(time).tell(); }

}  // namespace stageline
