#include "pipeline/cells/range_rows.h"

#include "base/parallel.h"
#include "model/source_limits.h"

namespace stageline {
namespace {

constexpr int64_t kShortestPopNs = 5'000;
constexpr int64_t kEmptyShare = 50;  // a fiftieth, 2 %

bool is_described(const Trace& trace, const RangeFact& fact) {
  const std::string_view domain = trace.names.text(fact.domain);
  return domain != "communication" && domain != "Module" && domain != "mfu_flops";
}

// Returns the names of ranges, each once.
std::vector<StringId> range_names(const Trace& trace) {
  std::vector<char> seen(trace.names.size(), 0);
  std::vector<StringId> names;
  for (const Part& part : trace.parts)
    for (const RangeFact& fact : part.ranges) {
      const StringId name = part.slices.name_id[fact.slice];
      if (seen[name] || !is_described(trace, fact)) continue;
      seen[name] = 1;
      names.push_back(name);
    }
  std::ranges::sort(names);
  return names;
}

struct NameRules {
  std::string set;
  StringId example = 0;
  bool has_weight = false, has_forward = false, has_backward = false;
  int64_t out_of_range = 0;
  std::unordered_map<StringId, RuleMatch> match;
};

NameRules match_set(const Trace& trace, const CellRules& rules, uint32_t set, const std::vector<StringId>& names) {
  NameRules out;
  bool work = false;
  for (const StringId name : names) {
    const auto match = rules.match(set, RuleWhere::kAnnotation, trace.names.text(name));
    if (!match) continue;
    if (match->out_of_range) {
      ++out.out_of_range;
      continue;
    }
    const CellRule& rule = rules.rules()[match->rule];
    if (rule.role != RuleRole::kCell || rule.half_count > 2) continue;
    const bool direction = is_compute(rule.kinds[0]) && rule.kinds[0] != CellKind::kWeightGrad;
    if (direction && !work) out.example = name;
    work |= direction;
    out.has_weight |= rule.kinds[0] == CellKind::kWeightGrad;
    for (size_t half = 0; half < rule.half_count; ++half) {
      out.has_forward |= rule.kinds[half] == CellKind::kForward;
      out.has_backward |= is_backward(rule.kinds[half]);
    }
    out.match.emplace(name, *match);
  }
  if (work) out.set = rules.sets()[set].name;
  return out;
}

NameRules choose_rules(const Trace& trace, const CellRules& rules, const std::vector<StringId>& names, bool staged) {
  std::vector<uint32_t> order(rules.sets().size());
  for (uint32_t s = 0; s < order.size(); ++s) order[s] = s;
  sort_stably(order, [&](uint32_t a, uint32_t b) {
    const auto place = [&](const RuleSet& set) { return set.from_user ? 0 : set.name == "mstx" ? 1 : 2; };
    return place(rules.sets()[a]) < place(rules.sets()[b]);
  });
  NameRules best;
  for (const uint32_t s : order) {
    if (rules.sets()[s].always || (rules.sets()[s].only_ranges && !staged)) continue;
    NameRules found = match_set(trace, rules, s, names);
    const bool both = found.has_forward && found.has_backward;
    if (!found.set.empty() && (both || best.set.empty())) best = std::move(found);
    if (both) break;
  }
  for (uint32_t a = 0; !best.set.empty() && a < rules.sets().size(); ++a)
    if (rules.sets()[a].always) best.match.merge(match_set(trace, rules, a, names).match);
  return best;
}

void count_unknown(const Trace& trace, const NameRules& names, RangeRows& out) {
  std::map<StringId, int64_t> counts;
  for (const Part& part : trace.parts)
    for (const RangeFact& fact : part.ranges)
      if (const StringId name = part.slices.name_id[fact.slice];
          is_described(trace, fact) && !names.match.contains(name) && !trace.names.text(name).empty())
        ++counts[name];
  int64_t max = 0;
  for (const auto& [name, count] : counts) {
    ++out.unknown_names;
    out.unknown_ranges += count;
    if (count > max) out.unknown_example = trace.names.text(name);
    max = std::max(max, count);
  }
}

struct PartRows {
  std::vector<RangeRow> rows;
  int64_t ranges = 0, without_device = 0, nested = 0, empty_pops = 0;
};

int32_t sane(int32_t number, int64_t max) { return number >= 0 && number <= max ? number : kUnknown; }

RangeRow row_of(const CellRules& rules, const NameRules& names, const RangeFact& fact, const RuleMatch& match) {
  const CellRule& rule = rules.rules()[match.rule];
  const bool two = rule.half_count == 2;
  const size_t forward = two && match.halves[1].kind == CellKind::kForward ? 1 : 0;
  const RuleHalf& half = match.halves[forward];
  RangeRow row{.slice = fact.slice,
               .kind = two ? CellKind::kForwardBackward : half.kind,
               .whole = !(half.kind == CellKind::kBackward && names.has_weight)};
  const auto first_known = [](int32_t by_name, int32_t by_message) {
    return by_name != kUnknown ? by_name : by_message;
  };
  row.micro_batch = first_known(half.micro_batch, sane(fact.micro_batch, kMaxMicroBatchNumber));
  row.chunk = first_known(half.chunk, sane(fact.chunk, kMaxChunkNumber));
  row.stage = first_known(half.stage, sane(fact.stage, kMaxRankNumber));
  row.step = first_known(match.step, fact.step);
  if (two) {
    row.other_micro_batch = match.halves[1 - forward].micro_batch;
    row.other_chunk = match.halves[1 - forward].chunk;
  }
  return row;
}

// Drops rows that lie within the row before, of which they are a part.
int64_t drop_nested(std::vector<RangeRow>& rows) {
  size_t kept = 0;
  const size_t before = rows.size();
  for (const RangeRow& row : rows) {
    const bool inside = kept > 0 && row.start_ns < rows[kept - 1].end_ns && row.end_ns <= rows[kept - 1].end_ns &&
                        is_compute(row.kind) == is_compute(rows[kept - 1].kind);
    if (!inside) rows[kept++] = row;
  }
  rows.resize(kept);
  return before - kept;
}

int64_t median_ns(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

int64_t drop_empty_pops(std::vector<RangeRow>& rows) {
  std::vector<int64_t> pops, backwards;
  for (const RangeRow& row : rows) {
    const int64_t dur = row.end_ns - row.start_ns;
    if (row.kind == CellKind::kBackward) backwards.push_back(dur);
    if (row.kind == CellKind::kWeightGrad && dur >= kShortestPopNs) pops.push_back(dur);
  }
  const int64_t pop = median_ns(std::move(pops)), backward = median_ns(std::move(backwards));
  const auto backwards_of = [](CellKind kind) { return is_backward(kind) || kind == CellKind::kForwardBackward; };
  bool after_backward = false;
  const size_t before = rows.size();
  std::erase_if(rows, [&](const RangeRow& row) {
    const int64_t dur = row.end_ns - row.start_ns;
    const bool tiny = (dur < kShortestPopNs && dur < backward / kEmptyShare) || dur < pop / kEmptyShare;
    if (row.kind == CellKind::kWeightGrad && after_backward && tiny) return true;
    after_backward = backwards_of(row.kind);
    return false;
  });
  return before - rows.size();
}

PartRows part_rows(const Trace& trace, const Part& part, const CellRules& rules, const NameRules& names) {
  PartRows out;
  const Slices& s = part.slices;
  for (const RangeFact& fact : part.ranges) {
    const auto match = names.match.find(s.name_id[fact.slice]);
    if (match == names.match.end() || !is_described(trace, fact)) continue;
    ++out.ranges;
    // A range of a recording has the device's times itself, where those are known.
    const uint32_t device = !s.has_facts() || trace.format == "recording" ? fact.slice : s.partner[fact.slice];
    if (device == kNoSliceIndex) {
      ++out.without_device;
      continue;
    }
    RangeRow row = row_of(rules, names, fact, match->second);
    row.start_ns = s.start_ns[device];
    row.end_ns = s.end_ns(device);
    row.host_ns = s.start_ns[fact.slice];
    out.rows.push_back(row);
  }
  sort_stably(out.rows, [](const RangeRow& a, const RangeRow& b) {
    return std::tuple(a.start_ns, b.end_ns) < std::tuple(b.start_ns, a.end_ns);
  });
  out.nested = drop_nested(out.rows);
  out.empty_pops = drop_empty_pops(out.rows);
  return out;
}

}  // namespace

RangeRows find_range_rows(const Trace& trace, const CellRules& rules, bool staged) {
  RangeRows out;
  out.parts.resize(trace.parts.size());
  const NameRules names = choose_rules(trace, rules, range_names(trace), staged);
  if (staged && !(names.has_forward && names.has_backward)) count_unknown(trace, names, out);
  if (names.set.empty()) return out;
  std::vector<PartRows> parts(trace.parts.size());
  parallel_for(parts.size(), [&](size_t p) { parts[p] = part_rows(trace, trace.parts[p], rules, names); });
  for (uint32_t p = 0; p < parts.size(); ++p) {
    out.ranges += parts[p].ranges;
    out.without_device += parts[p].without_device;
    out.nested += parts[p].nested;
    out.empty_pops += parts[p].empty_pops;
    if (parts[p].empty_pops > 0 && out.empty_pop_part == kUnknown) out.empty_pop_part = p;
    out.parts[p] = std::move(parts[p].rows);
  }
  out.set = names.set;
  out.example = trace.names.text(names.example);
  out.names = names.match.size();
  out.out_of_range = names.out_of_range;
  return out;
}

}  // namespace stageline
