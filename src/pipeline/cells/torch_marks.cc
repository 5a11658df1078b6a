#include <atomic>

#include "base/parallel.h"
#include "model/message_names.h"
#include "pipeline/cells/marks.h"
#include "pipeline/cells/problems.h"

namespace stageline {
namespace {

constexpr uint32_t kNoMatch = UINT32_MAX;
constexpr size_t kWheres = 3;
constexpr size_t kMaxSets = 8;  // limit: the set that is chosen, and those that are used with every set

// Returns where rules look for slices of this category; kWheres when nowhere.
size_t where_of(Category category) {
  switch (category) {
    case Category::kUserAnnotation: return static_cast<size_t>(RuleWhere::kAnnotation);
    case Category::kPythonFunction: return static_cast<size_t>(RuleWhere::kFrame);
    case Category::kCpuOp: return static_cast<size_t>(RuleWhere::kOperator);
    default: return kWheres;
  }
}

struct Lookup {
  std::vector<uint8_t> where;                    // for each category id
  ByEnum<RuleWhere, bool, kWheres> wanted = {};  // whether some rule looks there
};

Lookup make_lookup(const Trace& trace, const CellRules& rules) {
  Lookup out;
  for (const CellRule& rule : rules.rules()) out.wanted[rule.where] = true;
  for (const CategoryInfo& category : trace.categories) {
    // Before torch 1.12 annotations had no category of their own, and were "Operator".
    size_t where = where_of(category.kind);
    if (category.text == "Operator") where = static_cast<size_t>(RuleWhere::kAnnotation);
    out.where.push_back(static_cast<uint8_t>(where < kWheres && out.wanted[where] ? where : kWheres));
  }
  return out;
}

bool has_facts(const Part& part) { return part.slices.size() > 0 && part.slices.has_facts(); }

// Calls take(slice, where) for every slice of host threads that some rule looks at, in order of lanes.
template <class Take>
void for_each_candidate(const Part& part, const Lookup& lookup, Take take) {
  if (!has_facts(part)) return;
  const Slices& s = part.slices;
  for (uint32_t l = 0; l < part.lanes.size(); ++l) {
    const Lane& lane = part.lanes[l];
    if (lane.kind == LaneKind::kDeviceStream) continue;
    for (size_t i = lane.begin; i < lane.end; ++i)
      if (const uint8_t where = lookup.where[s.category_id[i]]; where < kWheres)
        take(l, static_cast<uint32_t>(i), where);
  }
}

// Calls take(slice) for every annotation of the device. Where a CUDA graph is replayed, they stand for the marks of its
// nodes, and the host has none.
template <class Take>
void for_each_device_annotation(const Trace& trace, const Part& part, Take take) {
  if (!has_facts(part)) return;
  for (uint32_t l = 0; l < part.lanes.size(); ++l)
    if (const Lane& lane = part.lanes[l]; lane.kind == LaneKind::kDeviceStream)
      for (size_t i = lane.begin; i < lane.end; ++i)
        if (trace.categories[part.slices.category_id[i]].kind == Category::kGpuAnnotation)
          take(l, static_cast<uint32_t>(i));
}

// Returns for each name where it occurs: bit w is set when a slice of where w has the name.
std::vector<uint8_t> used_names(const Trace& trace, const Lookup& lookup) {
  std::vector<uint8_t> used(trace.names.size());
  parallel_for(trace.parts.size(), [&](size_t p) {
    const Part& part = trace.parts[p];
    const auto use = [&](uint32_t slice, uint8_t where) {
      const std::atomic_ref<uint8_t> flags(used[part.slices.name_id[slice]]);
      const auto bit = static_cast<uint8_t>(1u << where);
      if ((flags.load(std::memory_order_relaxed) & bit) == 0) flags.fetch_or(bit, std::memory_order_relaxed);
    };
    for_each_candidate(part, lookup, [&](uint32_t, uint32_t slice, uint8_t where) { use(slice, where); });
    for_each_device_annotation(
        trace, part, [&](uint32_t, uint32_t slice) { use(slice, static_cast<uint8_t>(RuleWhere::kAnnotation)); });
  });
  return used;
}

// Returns true when ranks send to each other: names such as "gloo:send" or "nccl:recv 1<-0" occur.
bool has_messages(const Trace& trace, const std::vector<uint8_t>& used) {
  for (StringId name = 0; name < used.size(); ++name) {
    if (used[name] == 0) continue;
    const std::string_view text = trace.names.text(name);
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos || colon > 8) continue;
    const std::string_view what = text.substr(colon + 1);
    if (what.starts_with("send") || what.starts_with("recv")) return true;
  }
  return false;
}

// The matches of the rules of one set among the names.
struct SetMatches {
  std::vector<RuleMatch> matches;
  std::unordered_map<uint64_t, uint32_t> at;  // key: name · kWheres + where; value: index of matches
  bool has_work = false, has_pipeline = false, interleaved = false, has_weight = false, has_numbers = false;
  int64_t out_of_range = 0;
  StringId example = 0;
};

SetMatches match_names(const Trace& trace, const CellRules& rules, uint32_t set, const std::vector<uint8_t>& used) {
  SetMatches out;
  for (StringId name = 0; name < used.size(); ++name) {
    for (size_t where = 0; used[name] != 0 && where < kWheres; ++where) {
      if ((used[name] >> where & 1) == 0) continue;
      const auto match = rules.match(set, static_cast<RuleWhere>(where), trace.names.text(name));
      if (!match) continue;
      if (match->out_of_range) {
        ++out.out_of_range;
        continue;
      }
      const CellRule& rule = rules.rules()[match->rule];
      out.has_pipeline |= rule.role == RuleRole::kPipeline || rule.role == RuleRole::kInterleaved;
      out.interleaved |= rule.role == RuleRole::kInterleaved;
      if (rule.role == RuleRole::kCell && is_compute(rule.kinds[0])) {
        // Pieces of modules do not prove pipeline work, for "attn(F)" can be the name of any forward.
        const bool whole = !rule.piece || rules.sets()[set].from_user;
        if (whole && !out.has_work) out.example = name;
        out.has_work |= whole;
        out.has_numbers |= match->halves[0].micro_batch != kUnknown;
        out.has_weight |= rule.kinds[0] == CellKind::kWeightGrad;
      }
      out.at.emplace(uint64_t{name} * kWheres + where, static_cast<uint32_t>(out.matches.size()));
      out.matches.push_back(*match);
    }
  }
  return out;
}

// Warns about a file of rules that matches no name of the trace, which is most likely a mistake.
void say_unused_rules(const Trace& trace, const CellRules& rules, const std::vector<uint8_t>& used,
                      Diagnostics& diagnostics) {
  int64_t count = 0;
  std::string source;
  for (uint32_t s = 0; s < rules.sets().size(); ++s) {
    const RuleSet& set = rules.sets()[s];
    if (!set.from_user) continue;
    const SetMatches found = match_names(trace, rules, s, used);
    if (!found.matches.empty() || found.out_of_range > 0) return;
    count += set.end - set.begin;
    append_item(source, set.name);
  }
  if (count > 0)
    diagnostics.add(problem::cells_rules_unused,
                    Args().set("count", grouped(count)).flag("one", count == 1).set("source", valid_utf8(source)));
}

class MarkMaker {
 public:
  MarkMaker(const Trace& trace, const CellRules& rules, const Lookup& lookup, const std::vector<SetMatches>& sets)
      : trace_(trace), rules_(rules), lookup_(lookup), sets_(sets), match_of_(trace.names.size() * kWheres, kNoMatch) {
    for (uint32_t s = 0; s < sets.size(); ++s)
      for (const auto& [key, match] : sets[s].at)
        if (match_of_[key] == kNoMatch) match_of_[key] = (s << 28) | match;
  }

  struct PartMarks {
    std::vector<CellMark> marks;
    std::vector<StepMark> steps;
    int64_t slices = 0, nested = 0, frames = 0, captured = 0;
  };

  PartMarks of_part(uint32_t p) const {
    PartMarks out;
    const Part& part = trace_.parts[p];
    const Slices& s = part.slices;
    uint32_t lane = UINT32_MAX;
    int64_t busy_until[3] = {};  // for each group, when the last mark on this lane ends
    for_each_candidate(part, lookup_, [&](uint32_t l, uint32_t i, uint8_t where) {
      const uint32_t found = match_of_[size_t{s.name_id[i]} * kWheres + where];
      if (found == kNoMatch) return;
      const RuleMatch& match = sets_[found >> 28].matches[found & 0x0fffffff];
      const CellRule& rule = rules_.rules()[match.rule];
      ++out.slices;
      if (l != lane) std::fill(std::begin(busy_until), std::end(busy_until), INT64_MIN);
      lane = l;
      if (rule.role != RuleRole::kCell) {
        out.steps.push_back({s.start_ns[i], s.end_ns(i), match.step});
        return;
      }
      const CellKind first = rule.kinds[0];
      int64_t& until = busy_until[is_compute(first) ? 0 : is_message(first) ? 1 : 2];
      // Titles of messages last until the messages are complete, several at once.
      const bool title = is_message(first) && is_message_title(trace_.names.text(s.name_id[i]));
      if (!title && s.end_ns(i) <= until && s.start_ns[i] < until) {
        ++out.nested;
        return;
      }
      if (!title) until = std::max(until, s.end_ns(i));
      out.frames += rule.where == RuleWhere::kFrame;
      const bool split = rules_.sets()[rule.set].split_b && sets_[found >> 28].has_weight;
      for (size_t h = 0; h < rule.half_count; ++h) {
        const RuleHalf& half = match.halves[h];
        CellMark mark{.part = p, .lane = l, .slice = i, .start_ns = s.start_ns[i], .end_ns = s.end_ns(i)};
        mark.kind =
            split && half.kind == CellKind::kBackward && rule.half_count == 1 ? CellKind::kInputGrad : half.kind;
        mark.stage = half.stage;
        mark.chunk = half.chunk;
        mark.micro_batch = half.micro_batch;
        mark.step = match.step;
        mark.piece = rule.piece;
        out.marks.push_back(mark);
      }
    });
    keep_outermost(out.steps);
    drop_titles_of_numbered(out.marks);
    out.captured = drop_captured(part, out.marks);
    if (std::ranges::none_of(out.marks, [](const CellMark& mark) { return is_compute(mark.kind); }))
      add_node_marks(p, out);
    return out;
  }

 private:
  // A message may have both its action's name, with the micro-batch, and the title of its transfer.
  static void drop_titles_of_numbered(std::vector<CellMark>& marks) {
    std::set<std::pair<CellKind, int32_t>> numbered;
    for (const CellMark& mark : marks)
      if (is_message(mark.kind) && mark.micro_batch != kUnknown) numbered.emplace(mark.kind, mark.stage);
    std::erase_if(marks, [&](const CellMark& mark) {
      return is_message(mark.kind) && mark.micro_batch == kUnknown && numbered.contains({mark.kind, mark.stage});
    });
  }

  // Removes what ran while a graph was captured: nothing of it was done then. Returns how many.
  int64_t drop_captured(const Part& part, std::vector<CellMark>& marks) const {
    const Slices& s = part.slices;
    std::vector<std::pair<int64_t, bool>> borders;  // of captures: when, and whether one begins
    if (!marks.empty())
      for (size_t i = 0; i < s.size(); ++i)
        if (is_launch_call(trace_.categories[s.category_id[i]].kind)) {
          const std::string_view name = trace_.names.text(s.name_id[i]);
          if (name.starts_with("cudaStreamBeginCapture")) borders.emplace_back(s.start_ns[i], true);
          if (name.starts_with("cudaStreamEndCapture")) borders.emplace_back(s.start_ns[i], false);
        }
    std::ranges::sort(borders);
    return static_cast<int64_t>(std::erase_if(marks, [&](const CellMark& mark) {
      const auto next = std::ranges::upper_bound(borders, std::pair(mark.start_ns, true));
      return next != borders.begin() && std::prev(next)->second && next != borders.end();
    }));
  }

  // Adds cells of replayed graphs. All nodes of one mark and one replay, on any stream, are one cell; every message is
  // one.
  void add_node_marks(uint32_t p, PartMarks& out) const {
    const Part& part = trace_.parts[p];
    const Slices& s = part.slices;
    constexpr auto kWhere = static_cast<size_t>(RuleWhere::kAnnotation);
    std::map<std::tuple<StringId, uint32_t, size_t>, size_t> known;  // by name, launch and half: the mark
    for_each_device_annotation(trace_, part, [&](uint32_t l, uint32_t i) {
      const uint32_t found = match_of_[size_t{s.name_id[i]} * kWheres + kWhere];
      if (found == kNoMatch) return;
      const RuleMatch& match = sets_[found >> 28].matches[found & 0x0fffffff];
      const CellRule& rule = rules_.rules()[match.rule];
      uint32_t node = i;  // the first kernel below, which may start with it
      while (node > part.lanes[l].begin && s.start_ns[node - 1] == s.start_ns[i]) --node;
      while (node < part.lanes[l].end && s.start_ns[node] <= s.end_ns(i) && s.class_of(node) == KernelClass::kNone)
        ++node;
      if (rule.role != RuleRole::kCell || node >= part.lanes[l].end || s.start_ns[node] > s.end_ns(i)) return;
      ++out.slices;
      for (size_t h = 0; h < rule.half_count; ++h) {
        const uint32_t whole = is_message(rule.kinds[0]) ? i : s.partner[node];
        const auto [at, fresh] = known.try_emplace({s.name_id[i], whole, h}, out.marks.size());
        if (!fresh) {
          CellMark& mark = out.marks[at->second];
          mark.start_ns = std::min(mark.start_ns, s.start_ns[i]);
          mark.end_ns = std::max(mark.end_ns, s.end_ns(i));
          continue;
        }
        const RuleHalf& half = match.halves[h];
        CellMark mark{.part = p, .lane = l, .slice = i, .start_ns = s.start_ns[i], .end_ns = s.end_ns(i)};
        mark.kind = half.kind;
        mark.stage = half.stage;
        mark.chunk = half.chunk;
        mark.micro_batch = half.micro_batch;
        mark.piece = rule.piece;
        if (s.step[node] > 0) mark.step = static_cast<int32_t>(part.steps[s.step[node] - 1u].number);
        out.marks.push_back(mark);
      }
    });
  }

  static void keep_outermost(std::vector<StepMark>& steps) {
    sort_stably(steps, [](const StepMark& a, const StepMark& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
    });
    size_t kept = 0;
    for (const StepMark& step : steps)
      if (kept == 0 || step.start_ns >= steps[kept - 1].end_ns) steps[kept++] = step;
    steps.resize(kept);
  }

  const Trace& trace_;
  const CellRules& rules_;
  const Lookup& lookup_;
  const std::vector<SetMatches>& sets_;
  std::vector<uint32_t> match_of_;  // for each name and where: the set in the high 4 bits, the match below
};

// The evidence for a pipeline when the names found are used outside of pipelines too.
enum class Proof : uint8_t {
  kNone,
  kMessages,  // ranks send to each other; rings of attention do as well, so sends_flow() decides
  kStages,    // --pp or process groups give the stages
};

Proof proof_of_stages(const Trace& trace, const RankLayoutOptions& layout) {
  if (layout.pp > 0) return layout.pp > 1 ? Proof::kStages : Proof::kNone;
  if (layout_from_groups(trace).stages > 1) return Proof::kStages;
  return layout_from_messages(trace).stages > 1 ? Proof::kMessages : Proof::kNone;
}

// Returns the marks of one set, and of the sets that are used with every set.
FoundMarks marks_of(const Trace& trace, const CellRules& rules, const Lookup& lookup, const std::vector<uint8_t>& used,
                    SetMatches set) {
  FoundMarks out;
  out.interleaved = set.interleaved;
  out.names = set.matches.size();
  std::vector<SetMatches> chosen;
  chosen.push_back(std::move(set));
  for (uint32_t s = 0; s < rules.sets().size() && chosen.size() < kMaxSets; ++s)
    if (rules.sets()[s].always) chosen.push_back(match_names(trace, rules, s, used));
  const MarkMaker maker(trace, rules, lookup, chosen);
  std::vector<MarkMaker::PartMarks> parts(trace.parts.size());
  parallel_for(parts.size(), [&](size_t p) { parts[p] = maker.of_part(static_cast<uint32_t>(p)); });
  int64_t frames = 0;
  for (MarkMaker::PartMarks& part : parts) {
    out.marks.insert(out.marks.end(), part.marks.begin(), part.marks.end());
    out.steps.push_back(std::move(part.steps));
    out.slices += part.slices;
    out.nested += part.nested;
    out.captured += part.captured;
    frames += part.frames;
  }
  out.by_frames = frames * 2 > std::ssize(out.marks);
  return out;
}

}  // namespace

FoundMarks find_marks(const Trace& trace, const CellRules& rules, const RankLayoutOptions& layout,
                      Diagnostics& diagnostics) {
  const Lookup lookup = make_lookup(trace, rules);
  const std::vector<uint8_t> used = used_names(trace, lookup);
  const auto count = static_cast<uint32_t>(rules.sets().size());
  say_unused_rules(trace, rules, used, diagnostics);
  FoundMarks out;
  int64_t out_of_range = 0, captured = 0;
  std::optional<Proof> proof;  // filled when first asked
  for (uint32_t s = 0; s < count && out.set.empty(); ++s) {
    const RuleSet& set = rules.sets()[s];
    if (set.always || set.only_ranges) continue;
    SetMatches found = match_names(trace, rules, s, used);
    out_of_range += found.out_of_range;
    if (!found.has_work) continue;
    const std::string example(trace.names.text(found.example));
    Proof own = Proof::kStages;
    if (set.needs_stages && !set.from_user && !found.has_pipeline) {
      if (!proof) proof = proof_of_stages(trace, layout);
      own = *proof;
      if (own == Proof::kNone && found.has_numbers && layout.pp == 0 && has_messages(trace, used))
        own = Proof::kMessages;
    }
    if (own != Proof::kNone) {
      FoundMarks made = marks_of(trace, rules, lookup, used, std::move(found));
      captured += made.captured;
      if (std::ranges::none_of(made.marks, [](const CellMark& mark) { return is_compute(mark.kind); })) continue;
      if (own == Proof::kStages || sends_flow(trace, made.marks)) {
        made.set = set.name;
        made.example = example;
        out = std::move(made);
        continue;
      }
    }
    diagnostics.add(problem::cells_no_pipeline, Args().set("example", valid_utf8(example)).set("rules", set.name));
  }
  const std::vector<CellMark> messages = message_marks(trace, out.marks);
  out.marks.insert(out.marks.end(), messages.begin(), messages.end());
  if (out_of_range > 0) diagnostics.add(problem::cells_bad_number, {}, out_of_range);
  if (captured > 0) diagnostics.add(problem::cells_captured, {}, captured);
  if (out.nested > 0) diagnostics.add(problem::cells_nested_slice, {}, out.nested);
  return out;
}

std::vector<CellMark> find_always_marks(const Trace& trace, const CellRules& rules) {
  const Lookup lookup = make_lookup(trace, rules);
  const std::vector<uint8_t> used = used_names(trace, lookup);
  std::vector<SetMatches> chosen;
  for (uint32_t s = 0; s < rules.sets().size() && chosen.size() < 8; ++s)
    if (rules.sets()[s].always) chosen.push_back(match_names(trace, rules, s, used));
  const MarkMaker maker(trace, rules, lookup, chosen);
  std::vector<std::vector<CellMark>> parts(trace.parts.size());
  parallel_for(parts.size(), [&](size_t p) { parts[p] = maker.of_part(static_cast<uint32_t>(p)).marks; });
  std::vector<CellMark> out;
  for (const std::vector<CellMark>& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

}  // namespace stageline
