// The passes of the search for causes, and what they hand on. causes.cc calls them in their order. Part of causes.
//
//   suspects ── price_each ──▶ each as if it were the only one ── judge_each ──▶ kept, doubtful, little
//   little ── look_behind ──▶ what comes up once the kept ones are gone: hidden, or kept too
//   kept ── price_together ──▶ all of them gone, and those that are reported as one
#pragma once

#include "diagnosis/causes/cause_list.h"
#include "diagnosis/causes/cause_worlds.h"

namespace stageline {

// The steps that count: all but outliers, later also long steps that the causes explain.
struct CountedSteps {
  std::vector<bool> counts;     // for each step of the graph
  std::vector<bool> complete;   // the same; a step that some rank did not record never counts
  std::vector<double> span_ns;  // the same; estimates for those that are not complete
  // The same: how many steps it stands for. Nothing is known of an incomplete step but its length, so a complete step
  // of that length stands for it too, or partly each of the two that are next to it in length.
  std::vector<double> weight;
  double without = 0;  // how many incomplete steps no cause lengthens: they are shorter than every complete one
  std::vector<double> usual_ns;  // times of those that counted from the beginning
  // Where several steps are under way at once, as forwards of an inference are, 1 ÷ their number: the run becomes
  // shorter by that part of what each of them does.
  double pace = 1;
  bool all() const { return usual_ns.size() == counts.size(); }
};

struct Gain {
  double ns = 0, error_ns = 0;  // mean and standard error over steps
};

// The input of the passes.
struct Search {
  const CauseScene& scene;
  CauseWorlds& model;
  const JudgeFacts& facts;
  CountedSteps& steps;
  CauseList& list;

  // How much shorter a step that counts is in world `to` than in world `from`: mean by `weight`.
  Gain gain(const WorldTimes& times, size_t from, size_t to) const;
  // Mean over all steps by `weight`: in a step that something else makes long, a cause costs what the replay of that
  // step says, often nothing.
  double gain_of_all(const WorldTimes& times, size_t from, size_t to) const;

 private:
  double weighted_gain(const WorldTimes& times, size_t from, size_t to, const std::vector<bool>& counts) const;
};

// Each suspicion gone alone.
struct PricedSuspects {
  // Indexes of a suspicion's worlds in `times`; 0: it has no such world.
  struct Worlds {
    size_t without = 0, evened = 0, otherwise = 0;
    // Where several are reported as one: the scenario without all others, and the one without it as well.
    size_t others_gone = 0, all_gone = 0;
  };
  std::vector<Suspect> all;
  std::vector<Worlds> worlds;
  WorldTimes times;  // world 0: as recorded
};
PricedSuspects price_each(const Search& search, std::vector<Suspect> suspects);

// The causes that were kept, and those that cost little as the step is.
struct Kept {
  std::vector<size_t> taken;                     // for each of list.causes the index of its suspicion
  CauseWorlds::World gone;                       // without all that were kept
  std::vector<std::pair<Cause, size_t>> little;  // what costs little, and the index of its suspicion
  std::vector<AccountLine> lines;                // of the breakdown
};
Kept judge_each(const Search& search, const PricedSuspects& priced);

// A cause that costs little as the step is may delay it once the causes that were kept are gone. A stage that alone
// costs enough is a cause too if its layers save nothing elsewhere only because another cause delays the step there.
// With it gone others may come up, so all are judged again as long as a cause was added.
void look_behind(const Search& search, const PricedSuspects& priced, Kept& kept);

// All that were kept gone together, and those that are reported as one gone alone.
struct GoneTogether {
  struct Group {
    std::vector<size_t> causes;  // indexes of list.causes that get its price
    size_t world;
  };
  std::vector<Group> groups;
  WorldTimes times;  // world 0: as recorded; world 1: without all
};
GoneTogether price_together(const Search& search, const PricedSuspects& priced, const Kept& kept);

// Takes a cause whose price is known into the list, if it costs enough above noise; returns whether it did.
bool take_known(const Search& search, Cause& cause);

// The line of the breakdown that a cause is where it is not named.
AccountLine line_of(const Cause& cause);

}  // namespace stageline
