// Reads records of AMD's profilers (rocpd, .rpd, rocprofv3's JSON and CSV): docs/formats/rocpd.md.
#include <filesystem>

#include "readers/common/ranks.h"
#include "readers/common/read_files.h"
#include "readers/common/rows/identity.h"
#include "readers/rocpd/problems.h"
#include "readers/rocpd/processes.h"

namespace stageline::rocpd {
namespace {

bool is_database(const Source& source, size_t file) {
  return source.head(file).starts_with(std::string_view("SQLite format 3\0", 16)) &&
         !is_ascend_file(file_name(source.files[file].path)) && dialect_of(source.files[file].path) != Dialect::kNone;
}

// The files that become one record: a database, a JSON, or the tables of one name.
struct Chosen {
  enum class Form : uint8_t { kDatabase, kJson, kTables } form = Form::kDatabase;
  std::vector<TableFile> files;  // a database or JSON has one

  const std::string& path() const { return files.front().path; }
  Result<Record> read(Progress* progress) const {
    if (form == Form::kTables) return read_tables(files, progress);
    if (form == Form::kJson) return read_tool_json(path(), progress);
    Result<Record> record = read_database(path());
    if (progress) {
      std::error_code unknown;
      progress->add(std::filesystem::file_size(path(), unknown));
    }
    return record;
  }
};

// Returns the stem of a record's files: "node0/4242_results.db", "node0/4242_kernel_trace.csv" → "node0/4242".
std::string stem_of(const Chosen& one) {
  if (one.form == Chosen::Form::kTables) return table_stem(one.path());
  const std::string& path = one.path();
  const size_t end = path.rfind("_results.");
  return end == std::string::npos ? path : path.substr(0, end);
}

std::vector<Chosen> choose(const Source& source, const ReadOptions& options, Diagnostics& notes) {
  std::vector<Chosen> chosen;
  std::map<std::string, size_t> of_stem;
  for (size_t i = 0; i < source.files.size(); ++i) {
    const std::string& path = source.files[i].path;
    const std::string_view head = source.head(i);
    if (is_database(source, i)) {
      chosen.push_back({Chosen::Form::kDatabase, {{path, TableKind::kCalls}}});
    } else if (is_tool_json(head)) {
      chosen.push_back({Chosen::Form::kJson, {{path, TableKind::kCalls}}});
    } else if (const std::optional<TableKind> kind = table_kind(head)) {
      const auto [at, is_new] = of_stem.try_emplace(table_stem(path), chosen.size());
      if (is_new) chosen.push_back({Chosen::Form::kTables, {}});
      chosen[at->second].files.push_back({path, *kind});
    } else if (head.starts_with("SQLite format 3") && !is_ascend_file(file_name(path)) && is_damaged(path)) {
      notes.add(problem::rocpd_unusable_file_damaged, {path});
      continue;
    } else {
      if (source.files[i].given) notes.add(problem::rocpd_unusable_file_foreign, {path});
      continue;
    }
    if (options.progress) options.progress->expect(source.files[i].size_bytes);
  }
  // A process that was written in several forms counts once: its database says most, then its JSON.
  std::map<std::string, size_t> best;
  std::vector<bool> kept(chosen.size(), true);
  for (size_t k = 0; k < chosen.size(); ++k) {
    const auto [at, is_new] = best.try_emplace(stem_of(chosen[k]), k);
    if (is_new) continue;
    const size_t loser = chosen[k].form < chosen[at->second].form ? std::exchange(at->second, k) : k;
    kept[loser] = false;
    notes.add(problem::rocpd_same_process, {chosen[loser].path()});
  }
  std::vector<Chosen> out;
  for (size_t k = 0; k < chosen.size(); ++k)
    if (kept[k]) out.push_back(std::move(chosen[k]));
  return out;
}

struct Placed {
  ProcessPart* process;
  const Record* record;
  int64_t rank = -1;
};

// Numbers ranks by the best source that gives all of them: the processes' environments, the files' names, or else files
// and devices in order.
void number_ranks(std::vector<Placed>& all, Diagnostics& notes) {
  const auto take = [&](const auto& rank_of, std::string_view how) {
    std::set<int64_t> seen;
    for (const Placed& one : all)
      if (const int64_t rank = rank_of(one); rank < 0 || rank > kMaxRankNumber || !seen.insert(rank).second)
        return false;
    for (Placed& one : all) one.rank = rank_of(one);
    notes.add(problem::rocpd_ranks, Args().set("how", words(how)), {all[0].record->path});
    return true;
  };
  if (take([](const Placed& p) { return p.process->stated_rank; }, "rocpd.ranks.environment")) return;
  std::set<const Record*> records = mapped<std::set>(all, &Placed::record);
  if (all.size() == records.size() &&
      take([](const Placed& p) { return int64_t{rows::rank_in_name(file_name(p.record->path)).value_or(-1)}; },
           "rocpd.ranks.names"))
    return;
  const auto path_of = [](const Placed& p) { return p.record->path; };
  if (rows::leave_out_earlier_runs(all, path_of, "rocpd", notes)) return number_ranks(all, notes);
  for (size_t i = 0; i < all.size(); ++i) all[i].rank = i;
  if (all.size() > 1) notes.add(problem::rocpd_ranks_in_order, {all[0].record->path});
}

}  // namespace

Match sniff(const Source& source) {
  constexpr size_t kSniffedFiles = 64;
  size_t looked = 0;
  for (size_t i = 0; i < source.files.size() && looked < kSniffedFiles; ++i) {
    const std::string_view head = source.head(i);
    const std::optional<TableKind> kind = table_kind(head);
    if (is_tool_json(head) || (kind && *kind != TableKind::kAgents)) return Match::kCertain;
    if (!head.starts_with(std::string_view("SQLite format 3\0", 16))) continue;
    ++looked;
    if (is_database(source, i)) return Match::kCertain;
  }
  return Match::kNo;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "rocpd";
  trace.categories.push_back({"", Category::kOther});
  const std::vector<Chosen> chosen = choose(source, options, trace.diagnostics);
  std::vector<Record> records;
  const auto first_error = read_files(
      chosen.size(), [&](size_t k) { return chosen[k].read(options.progress); },
      [&](size_t, Record record) { records.push_back(std::move(record)); },
      [&](size_t k, const Error& error) {
        trace.diagnostics.add(problem::rocpd_unusable_file, Args().set("why", error_text(error)), {chosen[k].path()});
      });
  if (records.empty()) return nothing_read(first_error, source, "rocpd.nothing");
  std::vector<Placed> all;
  std::set<std::string> hosts;
  for (Record& record : records) {
    trace.diagnostics.merge(record.notes);
    trace.diagnostics.add(problem::rocpd_other_processes, {record.path}, record.left_out_processes);
    for (ProcessPart& process : record.processes) {
      all.push_back({&process, &record, -1});
      hosts.insert(process.part.machine_name);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Placed& a, const Placed& b) {
    const Part &x = a.process->part, &y = b.process->part;
    if (x.machine_name != y.machine_name) return natural_less(x.machine_name, y.machine_name);
    return x.device != y.device ? x.device < y.device : a.process->pid < b.process->pid;
  });
  number_ranks(all, trace.diagnostics);
  std::stable_sort(all.begin(), all.end(), [](const Placed& a, const Placed& b) { return a.rank < b.rank; });
  for (Placed& one : all) {
    Part& part = one.process->part;
    trace.diagnostics.merge(one.process->notes);
    part.rank = static_cast<int32_t>(one.rank);
    rename_part(adopt_names(one.process->names, trace), part);
    trace.parts.push_back(std::move(part));
  }
  trace.clock = hosts.size() == 1 ? ClockState::kShared : ClockState::kUnaligned;
  const ClockState clock = trace.clock;
  number_machines(trace);
  trace.clock = clock;
  trace.writer = records.front().written_by;
  trace.description =
      counted(trace.parts.size(), "process", "processes") + " of " + counted(records.size(), "record", "records");
  return trace;
}

}  // namespace stageline::rocpd
