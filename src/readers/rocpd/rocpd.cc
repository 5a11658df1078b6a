// Databases of AMD's profilers (rocpd, .rpd): docs/formats/rocpd.md.
#include <algorithm>
#include <optional>
#include <set>

#include "base/counted.h"
#include "base/parallel.h"
#include "base/text.h"
#include "model/ops.h"
#include "readers/common/machines.h"
#include "readers/common/rows/identity.h"
#include "readers/reader.h"
#include "readers/rocpd/database.h"

namespace stageline {
namespace rocpd {
namespace {

bool is_ours(const Source& source, size_t file) {
  return source.head(file).starts_with(std::string_view("SQLite format 3\0", 16)) &&
         !is_ascend_file(file_name(source.files[file].path)) && dialect_of(source.files[file].path) != Dialect::kNone;
}

Match sniff(const Source& source) {
  constexpr size_t kSniffedFiles = 64;
  size_t looked = 0;
  for (size_t i = 0; i < source.files.size() && looked < kSniffedFiles; ++i) {
    if (!source.head(i).starts_with(std::string_view("SQLite format 3\0", 16))) continue;
    ++looked;
    if (is_ours(source, i)) return Match::kCertain;
  }
  return Match::kNo;
}

struct Placed {
  ProcessPart* process;
  const Database* database;
  int64_t rank = -1;
};

// By what says them best, for all processes or for none: their environments, the files' names, files and devices in
// order.
void number_ranks(std::vector<Placed>& all, size_t databases, Diagnostics& notes) {
  const auto take = [&](const auto& rank_of, const char* how) {
    std::set<int64_t> seen;
    for (const Placed& one : all)
      if (const int64_t rank = rank_of(one); rank < 0 || rank > kMaxRankNumber || !seen.insert(rank).second)
        return false;
    for (Placed& one : all) one.rank = rank_of(one);
    notes.add("rocpd.ranks", Severity::kInfo, std::string("ranks are numbered by ") + how, {all[0].database->path});
    return true;
  };
  if (take([](const Placed& p) { return p.process->said_rank; }, "RANK and the like in the processes' environments"))
    return;
  if (all.size() == databases &&
      take([](const Placed& p) { return int64_t{kineto::rank_in_name(file_name(p.database->path)).value_or(-1)}; },
           "the files' names"))
    return;
  for (size_t i = 0; i < all.size(); ++i) all[i].rank = static_cast<int64_t>(i);
  if (all.size() > 1)
    notes.add("rocpd.ranks_in_order", Severity::kWarning,
              "nothing says which rank a process was; they are numbered by host, device and process",
              {all[0].database->path});
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "rocpd";
  trace.categories.push_back({"", Category::kOther});
  std::vector<size_t> chosen;
  for (size_t i = 0; i < source.files.size(); ++i) {
    if (is_ours(source, i)) {
      chosen.push_back(i);
      if (options.progress) options.progress->expect(source.files[i].size_bytes);
    } else if (source.head(i).starts_with("SQLite format 3") && !is_ascend_file(file_name(source.files[i].path)) &&
               is_damaged(source.files[i].path)) {
      trace.diagnostics.add("rocpd.unusable_file", Severity::kLoss,
                            "a database was left out: it is damaged, and not even its tables' names can be read",
                            {source.files[i].path});
    } else if (source.files[i].given) {
      trace.diagnostics.add("rocpd.unusable_file", Severity::kLoss,
                            "a file was left out: it is no database of AMD's profilers", {source.files[i].path});
    }
  }
  std::vector<std::optional<Result<Database>>> results(chosen.size());
  parallel_for(chosen.size(), [&](size_t k) {
    results[k].emplace(read_database(source.files[chosen[k]].path));
    if (options.progress) options.progress->add(source.files[chosen[k]].size_bytes);
  });
  std::vector<Database> databases;
  std::optional<Error> first_error;
  for (size_t k = 0; k < chosen.size(); ++k) {
    if (*results[k]) {
      databases.push_back(std::move(**results[k]));
      continue;
    }
    trace.diagnostics.add("rocpd.unusable_file", Severity::kLoss,
                          "a database was left out: " + results[k]->error().what, {source.files[chosen[k]].path});
    if (!first_error) first_error = results[k]->error();
  }
  if (databases.empty()) {
    if (first_error) return std::move(*first_error);
    return Error{ErrorCode::kBadInput,
                 "no database of AMD's profilers here",
                 {source.roots.empty() ? "" : source.roots[0]},
                 "rocprofv3 --sys-trace -- PROGRAM writes PID_results.db"};
  }
  std::vector<Placed> all;
  std::set<std::string> hosts;
  for (Database& database : databases) {
    trace.diagnostics.merge(database.notes);
    if (database.left_out_processes > 0)
      trace.diagnostics.add("rocpd.other_processes", Severity::kInfo,
                            "processes without work on a device were left out: launchers, data loaders",
                            {database.path}, database.left_out_processes);
    for (ProcessPart& process : database.processes) {
      all.push_back({&process, &database, -1});
      hosts.insert(process.part.machine_name);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Placed& a, const Placed& b) {
    const Part &x = a.process->part, &y = b.process->part;
    if (x.machine_name != y.machine_name) return natural_less(x.machine_name, y.machine_name);
    return x.device != y.device ? x.device < y.device : a.process->pid < b.process->pid;
  });
  number_ranks(all, databases.size(), trace.diagnostics);
  std::stable_sort(all.begin(), all.end(), [](const Placed& a, const Placed& b) { return a.rank < b.rank; });
  for (Placed& one : all) {
    Part& part = one.process->part;
    trace.diagnostics.merge(one.process->notes);
    part.rank = static_cast<int32_t>(one.rank);
    std::vector<StringId> names;
    std::vector<uint8_t> categories;
    adopt_names(one.process->names, trace, names, categories);
    rename_part(names, categories, part);
    trace.parts.push_back(std::move(part));
  }
  trace.clock = hosts.size() == 1 ? ClockState::kShared : ClockState::kUnaligned;
  const ClockState clock = trace.clock;
  number_machines(trace);
  trace.clock = clock;
  const std::string& schema = databases.front().schema;
  trace.writer =
      schema == "rpd" ? "rocmProfileData" : "rocprofiler-sdk" + (schema.empty() ? "" : ", rocpd schema " + schema);
  trace.description = counted(static_cast<int64_t>(trace.parts.size()), "process", "processes") + " of " +
                      counted(static_cast<int64_t>(databases.size()), "database", "databases");
  return trace;
}

}  // namespace
}  // namespace rocpd

extern const Reader rocpd_reader;
const Reader rocpd_reader = {
    .name = "rocpd",
    .summary = "databases of AMD's profilers: rocprofv3 and rocprof-sys (rocpd), rocmProfileData (.rpd)",
    .sniff = rocpd::sniff,
    .read = rocpd::read};

}  // namespace stageline
