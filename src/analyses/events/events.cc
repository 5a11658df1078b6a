// Every row as analyses see it after loading, and every name with its class. Definitions: docs/analyses/hta-loading.md.
#include "analyses/analysis.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

constexpr CopyFact kNoCopy = {};
constexpr SyncFact kNoSync = {};
constexpr CollectiveFact kNoCollective = {};

template <class Fact> const Fact& fact_or(const std::vector<Fact>& facts, const TorchRow& row, const Fact& none) {
  const Fact* fact = fact_of(facts, row.slice);
  return fact ? *fact : none;
}

void add_hta_rows(const TorchRun& run, const TorchRank& rank, size_t begin, size_t end, Table& table) {
  const Part& part = *rank.part;
  const auto text = [&](StringId id) { return std::string(run.trace->names.text(id)); };
  for (size_t i = begin; i < end; ++i) {
    const TorchRow& row = rank.rows[i];
    const Lane& lane = part.lanes[row.lane];
    const CopyFact& copy = fact_or(part.copies, row, kNoCopy);
    const SyncFact& sync = fact_or(part.syncs, row, kNoSync);
    const CollectiveFact* comm = fact_of(part.collectives, row.slice);
    const CollectiveFact& known = comm ? *comm : kNoCollective;
    // HTA shifts `ts` by the run's start, but not `end` (fault F10).
    table.add_row({int64_t{rank.rank},
                   int64_t{row.index},
                   run.category_text(part, row),
                   text(row.name),
                   lane.pid,
                   lane.tid,
                   to_us(row.start_ns),
                   to_us(row.dur_ns),
                   hta_raw_us(row.end_ns() + run.zero_ns),
                   row.stream,
                   row.correlation,
                   copy.bytes,
                   copy.bandwidth_gbps,
                   sync.wait_on_stream,
                   sync.wait_on_record_correlation,
                   comm ? text(known.name) : std::string(),
                   known.in_elements,
                   known.out_elements,
                   comm ? text(known.dtype) : std::string(),
                   known.group_size,
                   known.peer,
                   row.partner_index,
                   row.iteration == kNoIteration ? kNullInteger : int64_t{row.iteration}});
  }
}

void add_exact_rows(const TorchRun& run, const TorchRank& rank, size_t begin, size_t end, Table& table) {
  const Part& part = *rank.part;
  const auto text = [&](StringId id) { return std::string(run.trace->names.text(id)); };
  const auto or_null = [](int64_t value) { return value < 0 ? kNullInteger : value; };
  for (size_t i = begin; i < end; ++i) {
    const TorchRow& row = rank.rows[i];
    const Lane& lane = part.lanes[row.lane];
    const CopyFact& copy = fact_or(part.copies, row, kNoCopy);
    const CollectiveFact* comm = fact_of(part.collectives, row.slice);
    table.add_row({int64_t{rank.rank}, int64_t{row.index}, run.category_text(part, row), text(row.name), lane.pid,
                   lane.tid, row.start_ns, row.dur_ns, or_null(row.stream), std::string(kernel_class_name(row.kernel)),
                   or_null(row.correlation), or_null(row.partner_index), or_null(row.iteration),
                   or_null(comm ? comm->bytes : copy.bytes), copy.bandwidth_gbps > 0 ? copy.bandwidth_gbps : NAN,
                   comm ? text(comm->name) : std::string(), comm ? text(comm->dtype) : std::string(),
                   comm ? text(comm->group) : std::string(), comm ? comm->group_size : kNullInteger});
  }
}

Table head_of_events(const TorchRun& run) { return declared_table("events/events", run.options.hta ? "hta" : ""); }

// Makes the rows of one rank after another, because the table is in the order of ranks.
Table events_now(const TorchRun& run) {
  Table table = head_of_events(run);
  for (const size_t part : run.parts) {
    const auto rank = torch_rank(run, part);
    (run.options.hta ? add_hta_rows : add_exact_rows)(run, *rank, 0, rank->rows.size(), table);
  }
  return table;
}

// Keeps the rows of all ranks and makes the table's rows when they are asked for: a row takes 64 bytes, but some 400 in
// the table.
Table events_later(const TorchRun& run) {
  struct Ranks {
    TorchRun run;
    std::vector<std::shared_ptr<const TorchRank>> list;
  };
  auto ranks = std::make_shared<Ranks>(Ranks{run, {}});
  size_t count = 0;
  for (const size_t part : run.parts) {
    ranks->list.push_back(torch_rank(run, part));
    count += ranks->list.back()->rows.size();
  }
  return Table::later(head_of_events(run), count,
                      [held = std::shared_ptr<const Ranks>(ranks)](size_t first, size_t rows, Table& out) {
                        for (const auto& rank : held->list) {
                          const size_t begin = std::min(first, rank->rows.size());
                          const size_t end = begin + std::min(rows, rank->rows.size() - begin);
                          (held->run.options.hta ? add_hta_rows : add_exact_rows)(held->run, *rank, begin, end, out);
                          first -= begin;
                          rows -= end - begin;
                        }
                      });
}

// HTA decides classes by the text alone, so names and categories are listed together.
Table hta_symbols(const TorchRun& run) {
  const Trace& trace = *run.trace;
  std::set<std::string_view> symbols;
  std::vector<bool> name_seen(trace.names.size()), category_seen(trace.categories.size());
  for (const Part& part : trace.parts)
    for (size_t i = 0; i < part.slices.size(); ++i) {
      if (!is_hta_row(trace, part.slices, i)) continue;
      name_seen[part.slices.name_id[i]] = true;
      category_seen[part.slices.category_id[i]] = true;
    }
  for (StringId id = 0; id < name_seen.size(); ++id)
    if (name_seen[id]) symbols.insert(trace.names.text(id));
  for (size_t id = 0; id < category_seen.size(); ++id)
    if (category_seen[id]) symbols.insert(trace.categories[id].text);
  Table table(declared_table("events/symbols/hta"));
  for (const std::string_view symbol : symbols)
    table.add_row({std::string(symbol), std::string(kernel_class_name(hta_kernel_class(symbol))),
                   std::string(memory_kernel_label(symbol)), short_kernel_name(symbol)});
  return table;
}

// Lists name, category and class, because the name alone does not decide the class.
Table exact_symbols(const TorchRun& run) {
  const Trace& trace = *run.trace;
  struct Key {
    StringId name;
    uint8_t category, kernel;
    bool operator==(const Key&) const = default;
    auto operator<=>(const Key&) const = default;
  };
  std::vector<std::vector<std::pair<Key, int64_t>>> found(run.parts.size());
  const auto merge = [](std::vector<std::pair<Key, int64_t>>& list) {
    std::ranges::sort(list);
    size_t kept = 0;
    for (const auto& entry : list)
      if (kept > 0 && list[kept - 1].first == entry.first) list[kept - 1].second += entry.second;
      else list[kept++] = entry;
    list.resize(kept);
  };
  parallel_for(run.parts.size(), [&](size_t k) {
    const Slices& s = trace.parts[run.parts[k]].slices;
    found[k].reserve(s.size());
    for (size_t i = 0; i < s.size(); ++i)
      found[k].push_back({{s.name_id[i], s.category_id[i], static_cast<uint8_t>(s.class_of(i))}, 1});
    merge(found[k]);
  });
  std::vector<std::pair<Key, int64_t>> all;
  for (const auto& list : found) all.insert(all.end(), list.begin(), list.end());
  merge(all);
  sort_stably(all, [&](const auto& a, const auto& b) {
    const std::string_view x = trace.names.text(a.first.name), y = trace.names.text(b.first.name);
    return x != y ? x < y : a.first < b.first;
  });
  Table table(declared_table("events/symbols"));
  for (const auto& [key, count] : all) {
    const std::string_view name = trace.names.text(key.name);
    table.add_row({std::string(name), trace.categories[key.category].text,
                   std::string(kernel_class_name(static_cast<KernelClass>(key.kernel))), short_kernel_name(name),
                   count});
  }
  return table;
}

}  // namespace

Result<AnalysisResult> run_events(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  AnalysisResult result;
  return result.with(input.rows_later ? events_later(*torch) : events_now(*torch),
                     input.hta ? hta_symbols(*torch) : exact_symbols(*torch));
}

}  // namespace stageline
