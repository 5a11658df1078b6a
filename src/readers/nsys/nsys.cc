// Reports of Nsight Systems, exported to SQLite: docs/formats/nsys.md.
#include "readers/common/ranks.h"
#include "readers/common/read_files.h"
#include "readers/common/rows/identity.h"
#include "readers/nsys/problems.h"
#include "readers/nsys/tables.h"

namespace stageline::nsys {
namespace {

bool is_sqlite(std::string_view head) { return head.starts_with(std::string_view("SQLite format 3\0", 16)); }

// A database of this kind, and none that another profiler's names claim already.
bool is_ours(const Source& source, size_t file) {
  const std::string& path = source.files[file].path;
  return is_sqlite(source.head(file)) && !is_ascend_file(file_name(path)) && is_report(path);
}

// "report_rank3.sqlite", "node1.rank_3.sqlite" → 3; −1 without.
int64_t rank_in_name(const std::string& path) {
  const std::string name = file_name(path);
  size_t at = name.rfind("rank");
  if (at == std::string::npos) return -1;
  at += 4;
  while (at < name.size() && (name[at] == '_' || name[at] == '-' || name[at] == '.')) ++at;
  const size_t end = name.find_first_not_of("0123456789", at);
  return parse_int(std::string_view(name).substr(at, end == std::string::npos ? end : end - at)).value_or(-1);
}

// Where names differ only in one number ("report_0.sqlite", "report_1.sqlite"): that number of each; else empty.
std::vector<int64_t> numbers_that_differ(const std::vector<std::string>& paths) {
  std::vector<int64_t> numbers;
  std::set<std::string> around;
  for (const std::string& path : paths) {
    std::string name = file_name(path);
    const size_t last = name.find_last_of("0123456789", name.rfind('.'));
    if (last == std::string::npos) return {};
    size_t first = last;
    while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') --first;
    const auto number = parse_int(std::string_view(name).substr(first, last - first + 1));
    if (!number || *number > kMaxRankNumber) return {};
    numbers.push_back(*number);
    around.insert(name.replace(first, last - first + 1, "#"));
  }
  if (around.size() != 1 || std::set<int64_t>(numbers.begin(), numbers.end()).size() != numbers.size()) return {};
  return numbers;
}

struct Placed {
  ProcessPart* process;
  const Report* report;
  int64_t rank = -1;
};

// Ranks by what says them best, for all processes or for none: the reports' names, NCCL, MPI, devices.
void number_ranks(std::vector<Placed>& all, const std::vector<Report>& reports, Diagnostics& notes) {
  const auto take = [&](const auto& rank_of, std::string_view how) {
    std::set<int64_t> seen;
    std::vector<int64_t> ranks;
    for (const Placed& one : all) {
      const int64_t rank = rank_of(one);
      if (rank < 0 || rank > kMaxRankNumber || !seen.insert(rank).second) return false;
      ranks.push_back(rank);
    }
    for (size_t i = 0; i < all.size(); ++i) all[i].rank = ranks[i];
    notes.add(problem::nsys_ranks, Args().set("how", words(how)), {reports.front().path});
    return true;
  };
  std::set<const Report*> given = mapped<std::set>(all, &Placed::report);
  const bool one_each = all.size() == given.size();
  if (one_each && take([](const Placed& p) { return rank_in_name(p.report->path); }, "nsys.ranks.names")) return;
  if (take([](const Placed& p) { return p.process->communicator_rank; }, "nsys.ranks.nccl")) return;
  if (take([](const Placed& p) { return p.process->mpi_rank; }, "nsys.ranks.mpi")) return;
  const auto path_of = [](const Placed& p) { return p.report->path; };
  if (rows::leave_out_earlier_runs(all, path_of, "nsys", notes)) return number_ranks(all, reports, notes);
  if (one_each && all.size() > 1) {
    auto paths = mapped<std::string>(all, [&](const Placed& one) { return one.report->path; });
    const std::vector<int64_t> numbers = numbers_that_differ(paths);
    if (!numbers.empty() && take([&](const Placed& p) { return numbers[&p - all.data()]; }, "nsys.ranks.names")) return;
  }
  std::stable_sort(all.begin(), all.end(), [](const Placed& a, const Placed& b) {
    if (a.report != b.report) return a.report < b.report;
    const int64_t x = a.process->part.device, y = b.process->part.device;
    return x != y ? x < y : a.process->pid < b.process->pid;
  });
  for (size_t i = 0; i < all.size(); ++i) all[i].rank = i;
  if (all.size() > 1) notes.add(problem::nsys_ranks_by_device, {reports.front().path});
}

// Reports of one host share its monotonic clock, which is surer than the epoch that each looked up for itself.
bool on_one_clock(const std::vector<Report>& reports) {
  if (reports.size() == 1) return true;
  return std::all_of(reports.begin(), reports.end(), [&](const Report& report) {
    return !report.host.empty() && report.host == reports.front().host && report.system_ns >= 0 &&
           !report.is_normalized;
  });
}

void add_parts(std::vector<Placed>& all, const std::vector<Report>& reports, Trace& trace) {
  const bool shared = on_one_clock(reports);
  trace.clock = shared ? ClockState::kShared : ClockState::kUnaligned;
  std::vector<NameMap> maps(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    ProcessPart& process = *all[i].process;
    trace.diagnostics.merge(process.notes);
    process.part.rank = static_cast<int32_t>(all[i].rank);
    maps[i] = adopt_names(process.names, trace);
    process.names = {};
  }
  const Report& first = reports.front();
  parallel_for(all.size(), [&](size_t i) {
    rename_part(maps[i], all[i].process->part);
    const Report& report = *all[i].report;
    if (shared && reports.size() > 1)
      shift_part(all[i].process->part, (first.utc_ns - report.utc_ns) + (report.system_ns - first.system_ns));
  });
  for (Placed& one : all) trace.parts.push_back(std::move(one.process->part));
}

// The reports of the folder; what else lies there is noted.
std::vector<const SourceFile*> choose_reports(const Source& source, Progress* progress, Diagnostics& notes) {
  std::vector<const SourceFile*> chosen;
  for (size_t i = 0; i < source.files.size(); ++i) {
    const SourceFile& file = source.files[i];
    if (is_ours(source, i)) {
      chosen.push_back(&file);
      if (progress) progress->expect(file.size_bytes);
    } else if (file.path.ends_with(".nsys-rep") || file.path.ends_with(".qdrep")) {
      const std::string stem = file.path.substr(0, file.path.rfind('.'));
      const bool exported = std::any_of(source.files.begin(), source.files.end(),
                                        [&](const SourceFile& other) { return other.path == stem + ".sqlite"; });
      if (!exported) notes.add(problem::nsys_not_exported, {file.path});
    } else {
      notes.add(problem::nsys_unusable_file.as(file.given ? Severity::kLoss : Severity::kInfo), {file.path});
    }
  }
  return chosen;
}

}  // namespace

Match sniff(const Source& source) {
  return sniff_some(
      source, [&](size_t i) { return is_sqlite(source.head(i)); }, [&](size_t i) { return is_ours(source, i); });
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "nsys";
  trace.categories.push_back({"", Category::kOther});
  const std::vector<const SourceFile*> chosen = choose_reports(source, options.progress, trace.diagnostics);
  std::vector<Report> reports;
  const auto read_one = [&](size_t k) {
    Result<Report> report = read_report(chosen[k]->path);
    if (options.progress) options.progress->add(chosen[k]->size_bytes);
    return report;
  };
  const auto first_error = read_files(
      chosen.size(), read_one, [&](size_t, Report report) { reports.push_back(std::move(report)); },
      [&](size_t k, const Error& error) {
        trace.diagnostics.add(problem::nsys_unusable_report, Args().set("why", error_text(error)), {chosen[k]->path});
      });
  if (reports.empty()) return nothing_read(first_error, source, "nsys.nothing");
  std::vector<Placed> all;
  for (Report& report : reports) {
    trace.diagnostics.merge(report.notes);
    if (report.left_out_rows > 0)
      trace.diagnostics.add(problem::nsys_other_processes, {report.path}, report.left_out_processes);
    for (ProcessPart& process : report.processes) all.push_back({&process, &report, -1});
  }
  number_ranks(all, reports, trace.diagnostics);
  std::stable_sort(all.begin(), all.end(), [](const Placed& a, const Placed& b) { return a.rank < b.rank; });

  add_parts(all, reports, trace);
  number_machines(trace);
  trace.writer = "Nsight Systems" + (reports.front().version.empty() ? "" : " " + reports.front().version);
  trace.description = counted(trace.parts.size(), "process", "processes") + " of " +
                      counted(reports.size(), "report", "reports") + " of Nsight Systems";
  return trace;
}

}  // namespace stageline::nsys
