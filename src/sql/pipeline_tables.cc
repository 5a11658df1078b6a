// Tables of pipelines: cells, what links them, messages, steps.
#include "facts/pipeline_facts.h"
#include "pipeline/measure/link_transfers.h"
#include "sql/run_tables.h"
#include "sql/slice_rows.h"

namespace stageline::sql {
namespace {

int64_t cell_number(const RunData& data, size_t row, int column) {
  const Trace& trace = data.trace();
  const Cells& c = trace.cells;
  const size_t p = c.part[row];
  switch (column) {
    case 0: return row;
    case 1: return known_integer(c.step[row]);
    case 2: return trace.parts[p].rank;
    case 3: return known_integer(trace.parts[p].stage);
    case 4: return known_integer(trace.parts[p].dp);
    case 6: return known_integer(c.chunk[row]);
    case 7: return known_integer(c.micro_batch[row]);
    case 8: return data.time_ns(p, c.start_ns[row]);
    case 9: return c.dur_ns(row);
    case 10: return sum_or_limit(data.time_ns(p, c.start_ns[row]), c.dur_ns(row));
    case 11: return c.slice[row] == kNoSlice ? kNullInteger : slice_id(p, c.slice[row]);
    default: return kNullInteger;
  }
}

void show_cell(const RunData& data, sqlite3_context* out, size_t row, int column) {
  const Cells& c = data.trace().cells;
  if (column == 5) return show_text(out, kind_code(c.kind[row]));  // kind codes are constants and need no copy
  if (column == 12) return show_text_or_null(out, data.trace().slice_name(c.at(row)));
  show_known(out, cell_number(data, row, column));
}

Table messages_of(const RunData& data) {
  Table table(declared_table("sql/messages"));
  const Trace& trace = data.trace();
  if (trace.cells.size() == 0) return table;
  const RunGraph& made = graph_of(*data.run(), LaunchRule::kInOrder);
  if (!made.graph) return table;
  const LinkTransfers transfers = find_transfers(trace, *made.graph);
  const char* const evidence = transfers.evidence == LinkEvidence::kMessages ? "messages" : "gaps";
  const auto id = [](uint32_t cell) { return cell == kNoSlice ? kNullInteger : int64_t{cell}; };
  for (size_t i = 0; i < transfers.size(); ++i) {
    const LinkTransfer t = transfers.at(i);
    const uint32_t reported = t.to_cell != kNoSlice ? t.to_cell : t.from_cell;
    table.add_row({static_cast<int64_t>(table.row_count()), known_integer(t.step),
                   int64_t{trace.parts[t.from_part].rank}, int64_t{trace.parts[t.to_part].rank},
                   std::string(t.forward ? "forward" : "backward"), std::string(t.forward ? "F" : "B"),
                   reported == kNoSlice ? kNullInteger : known_integer(trace.cells.micro_batch[reported]),
                   reported == kNoSlice ? kNullInteger : known_integer(trace.cells.chunk[reported]), id(t.from_cell),
                   id(t.to_cell), whole_ns(t.ns), t.bytes < 0 ? kNullInteger : std::llround(t.bytes),
                   std::string(evidence)});
  }
  return table;
}

Table steps_of(const RunData& data) {
  Table table(declared_table("sql/steps"));
  const Trace& trace = data.trace();
  if (trace.cells.size() > 0) {
    const PipelineSums& sums = sums_of(*data.run());
    for (const StepSums& step : sums.steps) {
      const int64_t start = between_ns(data.epoch_ns(), step.start_ns);
      table.add_row({known_integer(step.step), kNullInteger, start, step.span_ns(), sum_or_limit(start, step.span_ns()),
                     step.pipeline_span_ns(), int64_t{sums.is_outlier(step.step)}});
    }
    return table;
  }
  const SliceFilter& filter = trace.slice_filter;
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    if (!data.has_part(p)) continue;
    for (const ProfilerStep& step : trace.parts[p].steps) {
      if (step.number < filter.first_step || step.number > filter.last_step) continue;
      const int64_t start = data.time_ns(p, step.start_ns), dur = between_ns(step.start_ns, step.end_ns);
      table.add_row({step.number, int64_t{trace.parts[p].rank}, start, dur, sum_or_limit(start, dur), kNullInteger,
                     kNullInteger});
    }
  }
  return table;
}

}  // namespace

std::shared_ptr<const TableSource> made_once(const std::shared_ptr<const RunData>& data, const char* name,
                                             std::vector<SqlColumn> columns, std::function<RunData::Made()> make) {
  return std::make_shared<RowTable>(name, declared_table(std::string("sql/") + name).summary, std::move(columns),
                                    [data, key = std::string(name), make = std::move(make)](
                                        const std::vector<Argument>&) { return data->made(key, make); });
}

const RunData& no_run() {
  static const Trace kEmpty;
  static const RunData kNothing(std::make_shared<const Run>(kEmpty), nullptr, {});
  return kNothing;
}

std::shared_ptr<const TableSource> run_table(const std::shared_ptr<const RunData>& data, const char* name,
                                             Table (*make)(const RunData&)) {
  return made_once(data, name, columns_of(make(no_run())),
                   [d = data.get(), make]() -> RunData::Made { return table_rows(make(*d)); });
}

void add_pipeline_tables(const std::shared_ptr<const RunData>& data,
                         std::vector<std::shared_ptr<const TableSource>>& out) {
  out.push_back(made_once(data, "cells", columns_of(declared_table("sql/cells")), [d = data.get()]() -> RunData::Made {
    return std::shared_ptr<const Rows>(std::make_shared<MadeRows>(
        d->trace().cells.size(), [d](sqlite3_context* to, size_t row, int column) { show_cell(*d, to, row, column); },
        [d](size_t row, int column) { return cell_number(*d, row, column); }));
  }));
  out.push_back(
      made_once(data, "cell_links", columns_of(declared_table("sql/cell_links")), [d = data.get()]() -> RunData::Made {
        const auto number = [d](size_t row, int column) -> int64_t {
          const Link& link = d->trace().links[row];
          if (column == 0) return link.from_cell;
          if (column == 1) return link.to_cell;
          return between_ns(cell_number(*d, link.from_cell, 10), cell_number(*d, link.to_cell, 8));
        };
        return std::shared_ptr<const Rows>(std::make_shared<MadeRows>(
            d->trace().links.size(),
            [number](sqlite3_context* to, size_t row, int column) { show_known(to, number(row, column)); }, number));
      }));
  out.push_back(run_table(data, "messages", messages_of));
  out.push_back(run_table(data, "steps", steps_of));
}

}  // namespace stageline::sql
