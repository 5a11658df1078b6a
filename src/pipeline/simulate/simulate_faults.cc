#include "pipeline/order/check_order.h"
#include "pipeline/replay/replay.h"
#include "pipeline/simulate/simulate.h"

namespace stageline {
namespace {

constexpr int64_t kMaxNs = 3'600'000'000'000;
constexpr double kMaxFactor = 1000;
constexpr int kMaxSwaps = 64;  // this number of neighbours is tried; each takes a replay

// The fields that may be between the commas.
enum class Field : uint8_t { kStage, kRank, kStep, kFactor, kFactorOrTime, kTime, kShare, kExtra, kReplica, kIndex };

struct Form {
  std::string_view kind, text, meaning;
  std::array<Field, 4> fields;
  size_t min, max;
};

constexpr Form kForms[] = {
#define FAULT(kind, text, meaning, min, max, ...) {kind, text, meaning, {__VA_ARGS__}, min, max},
#include "pipeline/simulate/faults.def"
};

const Form* form_of(std::string_view kind) {
  const auto found = std::ranges::find_if(kForms, [&](const Form& f) { return f.kind == kind; });
  return found == std::end(kForms) ? nullptr : found;
}

bool names_stage(const Fault& f) {
  return f.kind == "slow-stage" || f.kind == "slow-link" || f.kind == "wrong-order" ||
         (f.kind == "missing-dw" && f.target >= 0);
}
bool names_rank(const Fault& f) {
  return f.kind == "slow-rank" || f.kind == "late-launch" || (f.kind == "gc" && f.target >= 0);
}

bool read_field(Field field, std::string_view text, size_t position, Fault& fault) {
  const auto whole = [&](int32_t& into) {
    const auto value = parse_int(text);
    if (!value || *value < 0 || *value > INT32_MAX) return false;
    into = static_cast<int32_t>(*value);
    return true;
  };
  const auto real = [&](double max, bool zero, double& into) {
    const auto value = parse_double(text);
    if (!value || !(*value <= max) || !(zero ? *value >= 0 : *value > 0)) return false;
    into = *value;
    return true;
  };
  const auto time = [&](std::string_view what) {
    const auto value = parse_duration(what);
    if (!value || *value < 0 || *value > kMaxNs) return false;
    fault.time_ns = *value;
    return true;
  };
  switch (field) {
    case Field::kRank: return whole(fault.target);
    case Field::kStage:
    case Field::kStep: return whole(position == 0 ? fault.target : fault.to);
    case Field::kFactor: return real(kMaxFactor, false, fault.factor);
    case Field::kFactorOrTime:
      return text.starts_with('+') ? time(text.substr(1)) : real(kMaxFactor, false, fault.factor);
    case Field::kTime: return time(text);
    case Field::kShare: return real(1, true, fault.share);
    case Field::kExtra: return real(kMaxFactor, true, fault.share);
    case Field::kReplica: return whole(fault.dp);
    case Field::kIndex: return whole(fault.index);
  }
  return false;
}

// The values that a field may have.
constexpr auto kWanted = texts_by<Field::kIndex, const char*>(
    {"a stage, a whole number from 0 on", "a rank, a whole number from 0 on", "a step, a whole number from 0 on",
     "a factor above 0 and at most 1000", "a factor above 0 and at most 1000, or + and a time up to an hour",
     "a time from 0 to an hour, such as 40ms", "a share from 0 to 1", "a share from 0 to 1000",
     "a replica, a whole number from 0 on", "an index, a whole number from 0 on"});

// Returns a number in [0, 1) that is a hash of the seed and `what` (SplitMix64's finisher over the chain of numbers).
double drawn(uint64_t seed, std::initializer_list<int64_t> what) {
  uint64_t z = seed;
  for (const int64_t value : what) {
    z = (z ^ value) + 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
  }
  return (z >> 11) * 0x1.0p-53;
}

Error usage(std::string what) { return make_error(ErrorCode::kUsage, std::move(what)); }

Status swap_neighbours(const Fault& fault, Schedule& schedule) {
  RankOrder& order = schedule.ranks[fault.target];
  const ReplayCosts equal{[](int32_t, const ScheduleCell&) { return int64_t{1}; }, 0, {}, {}};
  int tried = 0;
  for (size_t i = fault.index < 0 ? 0 : static_cast<size_t>(fault.index); i + 1 < order.size(); ++i) {
    std::swap(order[i], order[i + 1]);
    if (check_order(schedule) && replay(schedule, equal)) return {};
    std::swap(order[i], order[i + 1]);
    if (fault.index >= 0 || ++tried == kMaxSwaps) break;
  }
  return usage("--fault wrong-order:" + std::to_string(fault.target) +
               (fault.index < 0 ? ": no neighbouring cells of this stage can be swapped"
                                : "," + std::to_string(fault.index) + ": these two cells cannot be swapped"));
}

// Merges an I and the W of the same micro-batch and chunk into a B, at the place of the I.
Status merge_weight_grads(const Fault& fault, Schedule& schedule) {
  bool merged = false;
  for (size_t stage = 0; stage < schedule.ranks.size(); ++stage) {
    if (fault.target >= 0 && static_cast<size_t>(fault.target) != stage) continue;
    RankOrder kept;
    // A W whose I is half of an overlapped cell stays, since overlapped cells have a cost of their own.
    std::vector<std::pair<int32_t, int32_t>> whole;
    for (const ScheduleCell& cell : schedule.ranks[stage])
      if (!cell.overlapped() && cell.actions()[0].kind == CellKind::kInputGrad)
        whole.emplace_back(cell.actions()[0].chunk, cell.actions()[0].micro_batch);
    std::ranges::sort(whole);
    for (const ScheduleCell& cell : schedule.ranks[stage]) {
      const Action& action = cell.actions()[0];
      const bool alone = !cell.overlapped();
      if (alone && action.kind == CellKind::kWeightGrad &&
          std::ranges::binary_search(whole, std::pair(action.chunk, action.micro_batch)))
        continue;
      if (alone && action.kind == CellKind::kInputGrad) {
        kept.emplace_back(Action{CellKind::kBackward, action.micro_batch, action.chunk});
        merged = true;
      } else {
        kept.push_back(cell);
      }
    }
    schedule.ranks[stage] = std::move(kept);
  }
  if (merged) return {};
  return usage("--fault missing-dw: " + schedule.name + " does not split weight gradients off there");
}

// Returns pairs of stages that send to each other, the lower number first.
std::set<std::pair<int32_t, int32_t>> exchanging_stages(const Schedule& schedule) {
  const bool both_ways = schedule.layout == ChunkLayout::kBidirectional;
  std::map<std::pair<int32_t, int32_t>, int32_t> owner;  // (way, virtual stage) → stage
  for (int32_t stage = 0; stage < schedule.sizes.stages; ++stage)
    for (int32_t chunk = 0; chunk < schedule.sizes.chunks; ++chunk)
      owner[{both_ways ? chunk : 0, virtual_stage(schedule, stage, chunk)}] = stage;
  std::set<std::pair<int32_t, int32_t>> pairs;
  for (const auto& [place, stage] : owner) {
    const auto next = owner.find({place.first, place.second + 1});
    if (next != owner.end() && next->second != stage) pairs.insert(std::minmax(stage, next->second));
  }
  return pairs;
}

Status check_link(const Fault& fault, const Schedule& schedule) {
  const auto pairs = exchanging_stages(schedule);
  if (pairs.contains(std::minmax(fault.target, fault.to))) return {};
  constexpr size_t kMaxNamed = 8;
  std::string named;
  size_t count = 0;
  for (const auto& [a, b] : pairs) {
    if (count++ == kMaxNamed) break;
    append_item(named, std::to_string(a) + " and " + std::to_string(b), "; ");
  }
  return make_error(
      ErrorCode::kUsage,
      "--fault slow-link:" + std::to_string(fault.target) + "," + std::to_string(fault.to) +
          ": these stages send each other nothing in " + schedule.name,
      "messages pass between stages " + named +
          (pairs.size() > kMaxNamed ? "; and " + std::to_string(pairs.size() - kMaxNamed) + " more pairs" : ""));
}

}  // namespace

std::string fault_forms() {
  std::string text;
  for (const Form& form : kForms) append_item(text, std::string(form.text) + ": " + std::string(form.meaning), "\n");
  return text;
}

Result<Fault> parse_fault(std::string_view text) {
  const Error bad{
      ErrorCode::kUsage, "\"" + std::string(text) + "\" is not a fault", {}, "write one of\n" + fault_forms()};
  const size_t colon = std::min(text.find(':'), text.size());
  Fault fault;
  fault.kind = dashed(text.substr(0, colon));
  const Form* form = form_of(fault.kind);
  if (!form) return bad;
  const std::string_view rest = text.substr(std::min(colon + 1, text.size()));
  const auto parts = colon == text.size() ? std::vector<std::string_view>{} : split(rest, ',');
  const auto wrong = [&](const std::string& why) {
    return make_error(ErrorCode::kUsage, "--fault " + std::string(text) + ": " + why,
                      "write " + std::string(form->text) + ": " + std::string(form->meaning));
  };
  if (parts.size() < form->min) return wrong("something is missing");
  if (parts.size() > form->max) return wrong("there is more than it takes");
  if (form->min == 0 || fault.kind == "gc") fault.target = -1;
  for (size_t i = 0; i < parts.size(); ++i)
    if (!read_field(form->fields[i], trim(parts[i]), i, fault))
      return wrong("\"" + std::string(trim(parts[i])) + "\" is not " + kWanted[form->fields[i]]);
  return fault;
}

Status check_faults(const SimulateOptions& options) {
  const int64_t stages = options.schedule.sizes.stages, ranks = stages * options.dp * options.peers;
  for (const Fault& fault : options.faults) {
    if (!form_of(fault.kind)) return usage("--fault " + fault.kind + " is no fault that we know");
    const auto has = [&](const char* what, int64_t number, int64_t count) -> Status {
      if (number >= 0 && number < count) return {};
      return usage("--fault " + fault.kind + ":" + std::to_string(number) + " names a " + what +
                   " that the run does not have (0 to " + std::to_string(count - 1) + ")");
    };
    if (names_stage(fault)) TRY_OK(has("stage", fault.target, stages));
    if (names_rank(fault)) TRY_OK(has("rank", fault.target, ranks));
    if (fault.kind == "slow-step") TRY_OK(has("step", fault.target, options.steps));
    if (!(fault.factor > 0 && fault.factor <= kMaxFactor) || !(fault.share >= 0 && fault.share <= kMaxFactor) ||
        fault.time_ns < 0 || fault.time_ns > kMaxNs)
      return usage("--fault " + fault.kind + ": a factor is above 0 and at most 1000, a time at most an hour");
    if (fault.kind != "slow-link") continue;
    TRY_OK(has("stage", fault.to, stages));
    if (fault.dp != -1) TRY_OK(has("replica", fault.dp, options.dp));
    if (fault.to == fault.target) return usage("--fault slow-link: a link is between two stages");
    TRY_OK(check_link(fault, options.schedule));
    if (fault.time_ns == 0 && options.costs.latency_ns == 0)
      return usage("--fault slow-link: without --latency a factor changes nothing; write +TIME");
  }
  return {};
}

Result<Schedule> faulty_order(const SimulateOptions& options) {
  Schedule schedule = options.schedule;
  for (const Fault& fault : options.faults) {
    Status done;
    if (fault.kind == "wrong-order") done = swap_neighbours(fault, schedule);
    if (fault.kind == "missing-dw") done = merge_weight_grads(fault, schedule);
    if (!done) return std::move(done).error();
  }
  return schedule;
}

FaultLimits fault_limits(const SimulateOptions& options) {
  FaultLimits max;
  double link = 1;
  for (const Fault& fault : options.faults) {
    if (fault.kind == "slow-link") {
      link *= std::max(1.0, fault.factor);
      max.message_ns += fault.time_ns;
      continue;
    }
    max.factor *= std::max(1.0, fault.factor);
    if (fault.kind == "heavy-head") max.factor *= 1 + fault.share;
    max.cell_ns += fault.time_ns;
  }
  const double message_ns = options.costs.latency_ns * link + max.message_ns;
  max.message_ns = static_cast<int64_t>(std::min(message_ns, 2e18));
  return max;
}

FaultModel::FaultModel(const SimulateOptions& options, const std::vector<int32_t>& place_of) : options_(options) {
  for (const Fault& fault : options.faults) {
    fault_place_.push_back(names_rank(fault) ? place_of[fault.target] : -1);
    delays_ |= fault.kind == "gc" || fault.kind == "late-launch";
    slow_links_ |= fault.kind == "slow-link";
  }
}

double FaultModel::cell_factor(int32_t step, int32_t dp, int32_t stage, const ScheduleCell& cell) const {
  const Schedule& schedule = options_.schedule;
  const int32_t place = dp * schedule.sizes.stages + stage;
  const auto actions = cell.actions();
  double factor = 1;
  for (size_t i = 0; i < options_.faults.size(); ++i) {
    const Fault& fault = options_.faults[i];
    if ((fault.kind == "slow-stage" && fault.target == stage) ||
        (fault.kind == "slow-rank" && fault_place_[i] == place) || (fault.kind == "slow-step" && fault.target == step))
      factor *= fault.factor;
    // Half of an overlapped cell counts as half of its time.
    double extra = 0;
    if (fault.kind == "heavy-head")
      for (const Action& action : actions)
        if (virtual_stage(schedule, stage, action.chunk) == virtual_stage_count(schedule) - 1) extra += fault.share;
    if (fault.kind == "long-sequences")
      for (const Action& action : actions)
        if (drawn(options_.seed, {1, static_cast<int64_t>(i), step, dp, action.micro_batch}) < fault.share)
          extra += fault.factor - 1;
    factor *= 1 + extra / actions.size();
  }
  return factor;
}

double FaultModel::optimizer_factor(int32_t step, int32_t place) const {
  double factor = 1;
  for (size_t i = 0; i < options_.faults.size(); ++i) {
    const Fault& fault = options_.faults[i];
    if ((fault.kind == "slow-stage" && fault.target == place % options_.schedule.sizes.stages) ||
        (fault.kind == "slow-rank" && fault_place_[i] == place) || (fault.kind == "slow-step" && fault.target == step))
      factor *= fault.factor;
  }
  return factor;
}

int64_t FaultModel::delay_ns(int32_t step, int32_t dp, int32_t stage, const ScheduleCell& cell) const {
  const Action& action = cell.actions()[0];
  int64_t delay = 0;
  for (size_t i = 0; i < options_.faults.size(); ++i) {
    const Fault& fault = options_.faults[i];
    const bool here = fault_place_[i] == dp * options_.schedule.sizes.stages + stage;
    if (fault.kind == "late-launch" && here) delay += fault.time_ns;
    if (fault.kind == "gc" && (here || fault.target < 0) &&
        drawn(options_.seed, {2, static_cast<int64_t>(i), step, dp, stage, action.micro_batch, action.chunk,
                              static_cast<int64_t>(action.kind)}) < fault.share)
      delay += fault.time_ns;
  }
  return delay;
}

int64_t FaultModel::transfer_ns(int32_t dp, int32_t from, int32_t to) const {
  double time_ns = options_.costs.latency_ns;
  for (const Fault& fault : options_.faults)
    if (fault.kind == "slow-link" && fault.target == from && fault.to == to && (fault.dp < 0 || fault.dp == dp))
      time_ns = time_ns * fault.factor + fault.time_ns;
  return static_cast<int64_t>(time_ns);
}

}  // namespace stageline
