// Finds the work of a pipeline in a profiler's trace by names of annotations, Python frames and operators.
//
//   names × rules ──▶ matches of each set ──▶ is there work, and a proof of a pipeline? ──▶ marks of the first such set
//
//   host thread     ├ ProfilerStep#3 ──────────────────────────────┤   a step
//                     ├ Forward 0 ────────┤ ├ Backward 0 ────────┤     two marks
//                         ├ aten::linear ┤                             nested in a mark: part of its work
//   device stream          ├ Forward 0 ┤ ├ Forward 0 ┤                 nodes of a replayed graph: one mark by launch
//
// Every name is matched once, because a trace has a few thousand names and millions of slices. Slices then look up the
// match of their name. Where the host has no marks of compute, annotations of the device stand for replayed graphs.
#include <atomic>

#include "base/parallel.h"
#include "model/message_names.h"
#include "pipeline/cells/marks.h"
#include "pipeline/cells/problems.h"

namespace stageline {
namespace {

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

// Calls take(lane, slice, where) for every slice of host threads that some rule looks at, in order of lanes.
template <class Take> void for_each_candidate(const Part& part, const Lookup& lookup, Take take) {
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

// Calls take(lane, slice) for every annotation of the device. Where a CUDA graph is replayed, they stand for the marks
// of its nodes, and the host has none.
template <class Take> void for_each_device_annotation(const Trace& trace, const Part& part, Take take) {
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
void report_unused_rules(const Trace& trace, const CellRules& rules, const std::vector<uint8_t>& used,
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

bool has_compute(const std::vector<CellMark>& marks) {
  return std::ranges::any_of(marks, [](const CellMark& mark) { return is_compute(mark.kind); });
}

struct PartMarks {
  std::vector<CellMark> marks;
  std::vector<StepMark> steps;
  int64_t slices = 0, nested = 0, frames = 0, captured = 0;
};

class MarkMaker {
 public:
  MarkMaker(const Trace& trace, const CellRules& rules, const Lookup& lookup, const std::vector<SetMatches>& sets)
      : trace_(trace), rules_(rules), lookup_(lookup), sets_(sets), match_of_(trace.names.size() * kWheres) {
    for (uint32_t s = 0; s < sets.size(); ++s)
      for (const auto& [key, match] : sets[s].at)
        if (match_of_[key].set == kNoSet) match_of_[key] = {s, match};
  }

  PartMarks of_part(uint32_t p) const {
    PartMarks out;
    const Part& part = trace_.parts[p];
    const Slices& s = part.slices;
    uint32_t lane = UINT32_MAX;
    std::array<int64_t, 3> busy_until_ns{};  // when the last mark on this lane ends: of compute, messages, the others
    for_each_candidate(part, lookup_, [&](uint32_t l, uint32_t i, uint8_t where) {
      const std::optional<Found> found = find(s.name_id[i], where);
      if (!found) return;
      ++out.slices;
      if (std::exchange(lane, l) != l) busy_until_ns.fill(INT64_MIN);
      const CellKind kind = found->rule.kinds[0];
      if (found->rule.role != RuleRole::kCell) {
        out.steps.push_back({s.start_ns[i], s.end_ns(i), found->match.step});
      } else if (is_nested(s, i, kind, busy_until_ns[is_compute(kind) ? 0 : is_message(kind) ? 1 : 2])) {
        ++out.nested;
      } else {
        out.frames += found->rule.where == RuleWhere::kFrame;
        add_halves(p, l, i, *found, out.marks);
      }
    });
    keep_outermost(out.steps);
    drop_titles_of_numbered(out.marks);
    out.captured = drop_captured(part, out.marks);
    if (!has_compute(out.marks)) add_node_marks(p, out);
    return out;
  }

 private:
  static constexpr uint32_t kNoSet = 15;
  static_assert(kMaxSets <= kNoSet);
  struct PackedMatch {  // there is one for each name and where
    uint32_t set : 4 = kNoSet, match : 28 = 0;
  };
  struct Found {
    const SetMatches& set;
    const RuleMatch& match;
    const CellRule& rule;
  };

  std::optional<Found> find(StringId name, size_t where) const {
    const PackedMatch at = match_of_[size_t{name} * kWheres + where];
    if (at.set == kNoSet) return std::nullopt;
    const RuleMatch& match = sets_[at.set].matches[at.match];
    return Found{sets_[at.set], match, rules_.rules()[match.rule]};
  }

  // Returns true when a slice lies in the last mark of its group; otherwise the slice becomes the last mark.
  bool is_nested(const Slices& s, uint32_t i, CellKind kind, int64_t& busy_until_ns) const {
    // Titles of messages last until the messages are complete, several at once.
    if (is_message(kind) && is_message_title(trace_.names.text(s.name_id[i]))) return false;
    if (s.end_ns(i) <= busy_until_ns && s.start_ns[i] < busy_until_ns) return true;
    busy_until_ns = std::max(busy_until_ns, s.end_ns(i));
    return false;
  }

  // The mark of one half of a rule, without its step.
  CellMark mark_of(uint32_t p, uint32_t lane, uint32_t i, const Found& found, size_t h) const {
    const Slices& s = trace_.parts[p].slices;
    const RuleHalf& half = found.match.halves[h];
    CellMark mark{.part = p, .lane = lane, .slice = i, .start_ns = s.start_ns[i], .end_ns = s.end_ns(i)};
    mark.kind = half.kind;
    mark.stage = half.stage;
    mark.chunk = half.chunk;
    mark.micro_batch = half.micro_batch;
    mark.piece = found.rule.piece;
    return mark;
  }

  void add_halves(uint32_t p, uint32_t lane, uint32_t i, const Found& found, std::vector<CellMark>& marks) const {
    const bool split = rules_.sets()[found.rule.set].split_b && found.set.has_weight && found.rule.half_count == 1;
    for (size_t h = 0; h < found.rule.half_count; ++h) {
      CellMark& mark = marks.emplace_back(mark_of(p, lane, i, found, h));
      if (split && mark.kind == CellKind::kBackward) mark.kind = CellKind::kInputGrad;
      mark.step = found.match.step;
    }
  }

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

  // Returns the first kernel below an annotation of the device, which may start with it.
  static std::optional<uint32_t> first_node_in(const Slices& s, const Lane& lane, uint32_t i) {
    uint32_t node = i;
    while (node > lane.begin && s.start_ns[node - 1] == s.start_ns[i]) --node;
    while (node < lane.end && s.start_ns[node] <= s.end_ns(i) && s.class_of(node) == KernelClass::kNone) ++node;
    if (node >= lane.end || s.start_ns[node] > s.end_ns(i)) return std::nullopt;
    return node;
  }

  // Adds cells of replayed graphs. All nodes of one mark and one replay, on any stream, are one cell; every message is
  // one.
  void add_node_marks(uint32_t p, PartMarks& out) const {
    const Part& part = trace_.parts[p];
    const Slices& s = part.slices;
    std::map<std::tuple<StringId, uint32_t, size_t>, size_t> known;  // by name, launch and half: the mark
    for_each_device_annotation(trace_, part, [&](uint32_t l, uint32_t i) {
      const std::optional<Found> found = find(s.name_id[i], static_cast<size_t>(RuleWhere::kAnnotation));
      if (!found || found->rule.role != RuleRole::kCell) return;
      const std::optional<uint32_t> node = first_node_in(s, part.lanes[l], i);
      if (!node) return;
      ++out.slices;
      const uint32_t whole = is_message(found->rule.kinds[0]) ? i : s.partner[*node];
      for (size_t h = 0; h < found->rule.half_count; ++h) {
        const auto [at, fresh] = known.try_emplace({s.name_id[i], whole, h}, out.marks.size());
        if (fresh) {
          CellMark& mark = out.marks.emplace_back(mark_of(p, l, i, *found, h));
          if (s.step[*node] > 0) mark.step = static_cast<int32_t>(part.steps[s.step[*node] - 1u].number);
        } else {
          CellMark& mark = out.marks[at->second];
          mark.start_ns = std::min(mark.start_ns, s.start_ns[i]);
          mark.end_ns = std::max(mark.end_ns, s.end_ns(i));
        }
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
  std::vector<PackedMatch> match_of_;  // index: name · kWheres + where
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

// Appends the matches of the sets that are used with every set.
void add_always(const Trace& trace, const CellRules& rules, const std::vector<uint8_t>& used,
                std::vector<SetMatches>& chosen) {
  for (uint32_t s = 0; s < rules.sets().size() && chosen.size() < kMaxSets; ++s)
    if (rules.sets()[s].always) chosen.push_back(match_names(trace, rules, s, used));
}

std::vector<PartMarks> marks_of_parts(const Trace& trace, const CellRules& rules, const Lookup& lookup,
                                      const std::vector<SetMatches>& chosen) {
  const MarkMaker maker(trace, rules, lookup, chosen);
  std::vector<PartMarks> parts(trace.parts.size());
  parallel_for(parts.size(), [&](size_t p) { parts[p] = maker.of_part(static_cast<uint32_t>(p)); });
  return parts;
}

// Returns the marks of one set, and of the sets that are used with every set.
FoundMarks marks_of(const Trace& trace, const CellRules& rules, const Lookup& lookup, const std::vector<uint8_t>& used,
                    SetMatches set) {
  FoundMarks out{.names = std::ssize(set.matches), .interleaved = set.interleaved};
  std::vector<SetMatches> chosen;
  chosen.push_back(std::move(set));
  add_always(trace, rules, used, chosen);
  int64_t frames = 0;
  for (PartMarks& part : marks_of_parts(trace, rules, lookup, chosen)) {
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

// Returns what proves that the names found are those of a pipeline. `of_stages` is filled when first asked.
Proof proof_for(const Trace& trace, const RuleSet& set, const SetMatches& found, const RankLayoutOptions& layout,
                const std::vector<uint8_t>& used, std::optional<Proof>& of_stages) {
  if (!set.needs_stages || set.from_user || found.has_pipeline) return Proof::kStages;
  if (!of_stages) of_stages = proof_of_stages(trace, layout);
  const bool may_send = *of_stages == Proof::kNone && found.has_numbers && layout.pp == 0;
  return may_send && has_messages(trace, used) ? Proof::kMessages : *of_stages;
}

}  // namespace

FoundMarks find_marks(const Trace& trace, const CellRules& rules, const RankLayoutOptions& layout,
                      Diagnostics& diagnostics) {
  const Lookup lookup = make_lookup(trace, rules);
  const std::vector<uint8_t> used = used_names(trace, lookup);
  report_unused_rules(trace, rules, used, diagnostics);
  FoundMarks out;
  int64_t out_of_range = 0, captured = 0;
  std::optional<Proof> of_stages;
  for (uint32_t s = 0; s < rules.sets().size() && out.set.empty(); ++s) {
    const RuleSet& set = rules.sets()[s];
    if (set.always || set.only_ranges) continue;
    SetMatches found = match_names(trace, rules, s, used);
    out_of_range += found.out_of_range;
    if (!found.has_work) continue;
    const std::string example(trace.names.text(found.example));
    const Proof proof = proof_for(trace, set, found, layout, used, of_stages);
    if (proof != Proof::kNone) {
      FoundMarks made = marks_of(trace, rules, lookup, used, std::move(found));
      captured += made.captured;
      if (!has_compute(made.marks)) continue;
      if (proof == Proof::kStages || sends_flow(trace, made.marks)) {
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
  diagnostics.add(problem::cells_bad_number, {}, out_of_range);
  diagnostics.add(problem::cells_captured, {}, captured);
  diagnostics.add(problem::cells_nested_slice, {}, out.nested);
  return out;
}

std::vector<CellMark> find_always_marks(const Trace& trace, const CellRules& rules) {
  const Lookup lookup = make_lookup(trace, rules);
  std::vector<SetMatches> chosen;
  add_always(trace, rules, used_names(trace, lookup), chosen);
  std::vector<CellMark> out;
  for (const PartMarks& part : marks_of_parts(trace, rules, lookup, chosen))
    out.insert(out.end(), part.marks.begin(), part.marks.end());
  return out;
}

}  // namespace stageline
