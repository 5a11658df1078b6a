// A cause: its kind, place, certainty, cost, and the saving of a fix. Code outside reads only this, and it has no field
// for a single kind: a kind's other data is in OwnData, which only its words read.
#pragma once

#include "base/words.h"
#include "diagnosis/causes/beyond_noise.h"
#include "model/place.h"
#include "pipeline/sums/course.h"

namespace stageline {

// How late the late messages of a link are. Such delays follow Pareto's law from the shortest one on, as delays by
// retransmission do.
//
//     late by 8 … 60 ms, thirteen of them        320 ms: one of fourteen by the same law in one run of eight
class LateLengths {
 public:
  LateLengths() = default;
  explicit LateLengths(const std::vector<double>& late_ns);
  // Returns whether a message that is late by `ns` may be of the same kind as these. Then at least one run of a hundred
  // has one that late.
  bool may_hold(double ns) const;

 private:
  // spread_: mean logarithm of the ratios to the shortest one (Hill's estimator).
  double min_ns_ = 0, spread_ = 0, count_ = 0;
};

struct CauseKind;  // diagnosis/causes/cause_kind.h

// Data of one kind of cause, whose type only that kind knows.
class OwnData {
 public:
  OwnData() = default;
  template <class T>
  OwnData(T data)  // NOLINT(google-explicit-constructor): a cause is given its data
      : data_(std::make_shared<const T>(std::move(data))), type_(type_of<T>()) {}
  // The data as what it is; without any, a T as it begins.
  template <class T> const T& as() const {
    static const T kNone{};
    return type_ == type_of<T>() ? *static_cast<const T*>(data_.get()) : kNone;
  }

 private:
  template <class T> static const void* type_of() {
    static char kType = 0;
    return &kType;
  }
  std::shared_ptr<const void> data_;
  const void* type_ = nullptr;
};

// The time that costs and savings are shares of.
enum class PriceBase : uint8_t {
  kStep,    // the mean step
  kPeriod,  // the mean period of all steps, as of gaps that only a few steps have
};

struct CausePrice {
  double lost_ns = 0;        // what the cause costs the mean step; 0 where the run cannot be replayed
  double lost_error_ns = 0;  // its standard error over steps; NaN with one step
  double otherwise_ns = 0;   // the cost by another reading of what is normal; 0: there is none
  double open_ns = 0;        // how far it may be off whatever the steps say: what is normal is unknown, replays miss
  double excess_error = 0;   // standard error of the excess over what is normal, relative to that excess
  double saving_ns = 0;      // what evening out saves, where work can only be moved; 0: it saves nothing, or is unknown
  // Where the run cannot be replayed: by how much longer cells are because of it, on the rank where that is most, in
  // the mean step. It decides what is named and gives the order, and says nothing of what the step would gain.
  double longer_ns = 0;
  // The saving of the best fix that can be typed, and a sentence on it; what_if/layer_price writes both. 0: there is
  // none, or only the sentence.
  struct Fix {
    double saving_ns = 0;
    Text words = {};
  } fix = {};
  // The cost of all causes that are reported as one: removing only one may save nothing, because the others still delay
  // the step. 0: there is no other.
  double joint_ns = 0, joint_error_ns = 0;
  // It costs much, but evening out saves too little, so saving_ns is 0. In movable_ns is that saving once all other
  // causes are gone, if it is large enough then; otherwise 0.
  bool unmovable = false;
  double movable_ns = 0;
  PriceBase base = PriceBase::kStep;
  bool outside = false;  // it is in long gaps only, which are not part of CauseList::step_ns

  // The standard error by which a cost is judged: `open_ns` counts as two of them.
  double error_ns() const {
    return std::isnan(lost_error_ns) && open_ns > 0 ? open_ns / 2 : std::hypot(lost_error_ns, open_ns / 2);
  }
  // Half the width of the interval around a cost over `steps` steps that holds the true one in 95 of 100 runs. By the
  // delta method, chance has two parts: steps differ, and so do the cells whose excess the simulation removes.
  double half_interval_ns(double cost_ns, double over_steps_ns, int64_t steps) const {
    const double chance_ns = std::hypot(std::isnan(over_steps_ns) ? 0 : over_steps_ns, cost_ns * excess_error);
    return std::hypot(half_interval(chance_ns, steps), open_ns);
  }

  // The fix saves less than half of what evening out would: most of the excess cannot be moved.
  bool fix_brings_little() const { return fix.saving_ns > 0 && fix.saving_ns < 0.5 * saving_ns; }
  // The fix that can be typed saves less than evening out does.
  bool falls_short() const { return fix.saving_ns > 0 && fix.saving_ns < 0.95 * saving_ns; }
  // Returns what a fix saves. This is the fix that can be typed if it saves much less than evening out, else evening
  // out if its saving is known, else the whole cost.
  double best_ns() const { return fix_brings_little() ? fix.saving_ns : saving_ns > 0 ? saving_ns : lost_ns; }
};

// The figures that tables show of any cause.
struct CauseFigures {
  double ratio = 0;           // its time to the others'; 0: it has none
  double each_ns = 0;         // mean length of one event: a pause, a late start
  int64_t count = 0, of = 0;  // affected events, cells, rank-steps or steps, and all
  int32_t rank = kUnknown;    // the rank that it names
  int32_t stage = kUnknown;   // the stage of that rank, or the one that it names
};

// In how many steps it shows, of those that were looked at.
struct StepShare {
  int64_t count = 0, all = 0;
};

// Several causes that are reported as one.
struct Together {
  enum class Role : uint8_t { kAlone, kEqual, kLeads, kFollows, kPartOf };  // kPartOf: only the price tells of it
  std::string_view id = {};                                                 // "": none
  Role role = Role::kAlone;
  bool follows() const { return role == Role::kFollows || role == Role::kPartOf; }
};

struct Cause {
  const CauseKind* kind = nullptr;
  std::vector<Place> places = {}, or_else = {};
  CausePrice price = {};
  Together together = {};
  Course course = {};       // its ratio by step, where that has a shape
  Course lost_course = {};  // what it costs by step, in ns, where that has a shape and `course` has none
  bool sometimes = false;   // it is there in some steps only
  bool certain = false;     // its own evidence is above noise, even if its cost differs much from step to step
  bool estimated = false;   // its price is an estimate that may be far off
  CauseFigures figures = {};
  StepShare in_steps = {};
  std::optional<LateLengths> events = {};  // of late messages: how late they are
  OwnData own = {};

  const Place& place() const {
    static const Place kRun;
    return places.empty() ? kRun : places.front();
  }
};

inline constexpr double kMinLost = 0.01;       // share of the step; a cause that costs less is not named
void sort_causes(std::vector<Cause>& causes);  // by price.best_ns(), equal ones by lost_ns

// One line of the breakdown of a step: time that is neither compute nor the schedule's, and that no cause is named for.
struct AccountLine {
  // "imbalance", "jitter", "replica-jitter" (waits for the slowest replica of a step), "message", "late", "tail",
  // "between", "rest": the time that replays do not explain.
  std::string_view id;
  std::string name;                  // of a tail or a gap: the collective, the phase
  CellKind kind = CellKind::kOther;  // of a tail
  double ns = 0;                     // of the mean step; below 0 as in the waterfall
  double error_ns = 0;               // its standard error over steps, where replays give it; NaN for one step
};

}  // namespace stageline
