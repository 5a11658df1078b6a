// stageline-mpi: all processes of an MPI job make digests together, and then one process answers from them.
//
//   mpirun -n 64 stageline-mpi explain LOGS --digests DIR
//
// Process 0 hands out ranks, the largest first, to any process that is free, itself included. A digest is a file in a
// folder that all processes see, so only numbers of ranks and counts go through MPI. Then process 0 answers from the
// folder, in the order of ranks, as `stageline explain DIR` does. The answer has the same bytes whatever the number of
// processes. When a process dies, the whole job ends, as MPI prescribes; the complete digests stay, and the next run
// makes the missing ones.
#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>

#include "base/remote_file.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/paths.h"
#include "cli/questions.h"

namespace stageline {
namespace {

constexpr int kAsk = 1, kTake = 2;
constexpr useconds_t kPauseUs = 500;  // pause between looks for a request; a wait inside MPI would use a whole core

constexpr const char* kUsage =
    "usage: mpirun -n N stageline-mpi digest PATH… -o DIR\n"
    "       mpirun -n N stageline-mpi explain|report|analyze … PATH… --digests DIR\n\n"
    "Every process makes digests of ranks in DIR, a folder that all of them see; process 0 then answers from them.\n"
    "Flags are those of the commands of stageline; --threads is for the answer, digests take one thread a process.\n";

struct Made {
  size_t unit;
  DigestCount count;
};

// Makes the digests of this process. The main thread of process 0 only hands out ranks; its own share is made by a
// thread that does not use MPI.
std::vector<Made> make_share(const DigestPlan& plan, int process, int processes) {
  std::vector<Made> made;
  const auto make = [&](size_t unit) { made.push_back({unit, make_digest(plan, plan.units[unit])}); };
  const int64_t count = plan.units.size();
  if (process > 0) {
    for (;;) {
      int64_t unit = 0;
      MPI_Send(nullptr, 0, MPI_CHAR, 0, kAsk, MPI_COMM_WORLD);
      MPI_Recv(&unit, 1, MPI_INT64_T, 0, kTake, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (unit >= count) return made;
      make(unit);
    }
  }
  std::atomic<int64_t> next{0};
  std::thread own([&] {
    for (int64_t unit; (unit = next.fetch_add(1)) < count;) make(unit);
  });
  for (int working = processes - 1; working > 0;) {
    int asks = 0;
    MPI_Status who;
    MPI_Iprobe(MPI_ANY_SOURCE, kAsk, MPI_COMM_WORLD, &asks, &who);
    if (asks == 0) {
      usleep(kPauseUs);
      continue;
    }
    MPI_Recv(nullptr, 0, MPI_CHAR, who.MPI_SOURCE, kAsk, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const int64_t unit = std::min(next.fetch_add(1), count);
    if (unit == count) --working;
    MPI_Send(&unit, 1, MPI_INT64_T, who.MPI_SOURCE, kTake, MPI_COMM_WORLD);
  }
  own.join();
  return made;
}

std::string text_of(const Error& error) {
  std::string text;
  for (const std::string& field : {std::to_string(static_cast<int>(error.code)), error.what, error.where.file,
                                   std::to_string(error.where.line), std::to_string(error.where.byte), error.hint})
    text += field + '\x1f';
  return text;
}

// Collects the counts and failures of all processes on process 0, with the failures in the order of ranks.
DigestCount gather(const DigestPlan& plan, const std::vector<Made>& made, int processes) {
  DigestCount own;
  std::string failures;
  for (const Made& one : made) {
    own.add(one.count);
    for (const Error& error : one.count.failures)
      failures += std::to_string(plan.units[one.unit].rank.who.rank) + '\x1f' + text_of(error) + '\x1e';
  }
  int64_t sums[5] = {own.made, own.remade, own.kept, own.cells, own.bytes}, all[5] = {};
  MPI_Reduce(sums, all, 5, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  int size = static_cast<int>(std::min<size_t>(failures.size(), size_t{1} << 24));
  std::vector<int> sizes(processes), places(sizes.size());
  MPI_Gather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  int total = 0;
  for (size_t p = 0; p < sizes.size(); ++p) places[p] = total, total += sizes[p];
  std::string text(total, '\0');
  MPI_Gatherv(failures.data(), size, MPI_CHAR, text.data(), sizes.data(), places.data(), MPI_CHAR, 0, MPI_COMM_WORLD);
  DigestCount out{all[0], all[1], all[2], all[3], all[4], {}, {}};
  const auto number = [](std::string_view digits) { return parse_int(digits).value_or(0); };
  std::vector<std::pair<int64_t, Error>> by_rank;
  for (const std::string_view row : split(text, '\x1e')) {
    const std::vector<std::string_view> f = split(row, '\x1f');
    if (f.size() < 7) continue;
    by_rank.push_back({number(f[0]),
                       {static_cast<ErrorCode>(number(f[1])),
                        std::string(f[2]),
                        {std::string(f[3]), number(f[4]), number(f[5])},
                        std::string(f[6])}});
  }
  std::ranges::stable_sort(by_rank, {}, [](const auto& of) { return of.first; });
  for (auto& [rank, error] : by_rank) out.failures.push_back(std::move(error));
  return out;
}

// Process 0 may take minutes to answer; the other processes sleep meanwhile.
void wait_for_all() {
  MPI_Request all;
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  for (int done = 0; done == 0;) {
    MPI_Test(&all, &done, MPI_STATUS_IGNORE);
    if (done == 0) usleep(kPauseUs);
  }
}

// Takes --digests DIR out of the words and returns its value.
std::string take_digests(std::vector<std::string>& words) {
  std::string folder;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool joined = words[i].starts_with("--digests=");
    if (!joined && (words[i] != "--digests" || i + 1 == words.size())) continue;
    folder = joined ? words[i].substr(10) : words[i + 1];
    words.erase(words.begin() + i, words.begin() + (i + (joined ? 1 : 2)));
    --i;
  }
  return folder;
}

struct Job {
  Arguments arguments;
  bool digests_only = false;
  std::string folder;
  std::vector<std::string> paths;
};

Result<Job> job_of(std::vector<std::string> words) {
  static const std::vector<std::string> known = {"digest", "explain", "report", "analyze"};
  Job job;
  if (words.empty() || std::ranges::find(known, words[0]) == known.end())
    return make_error(ErrorCode::kUsage, "stageline-mpi has the commands digest, explain, report and analyze");
  const Command* command = find_command(words[0]);
  words.erase(words.begin());
  job.digests_only = command->name == std::string_view("digest");
  job.folder = take_digests(words);
  TRY(arguments, parse_arguments(*command, words));
  job.arguments = std::move(*arguments);
  if (job.digests_only) job.folder = job.arguments.get("output");
  if (job.folder.empty())
    return make_error(ErrorCode::kUsage,
                      job.digests_only ? "digest needs to know where to write" : "where digests go has to be said",
                      job.digests_only ? "-o DIR, a folder that all processes see"
                                       : "--digests DIR, a folder that all processes see");
  if (job.arguments.has("devices") || job.arguments.has("compare"))
    return make_error(ErrorCode::kUsage, "--devices and --compare are not for digests", "--ranks chooses ranks");
  const size_t names = command->name == std::string_view("analyze") ? 1 : 0;
  const std::vector<std::string>& operands = job.arguments.operands;
  if (operands.size() > names) job.paths.assign(operands.begin() + names, operands.end());
  if (job.paths.empty()) return make_error(ErrorCode::kUsage, "no path of a run is named");
  return job;
}

int answer(const Job& job, const Terminal& terminal, const DigestPlan& plan, const DigestCount& count) {
  if (job.digests_only) return exit_code(say_digests(job.arguments, terminal, plan, count));
  for (const Error& error : count.failures) fail(error);
  Arguments arguments = job.arguments;
  arguments.operands.resize(arguments.operands.size() - job.paths.size());
  arguments.operands.push_back(job.folder);
  arguments.drop("reader");
  // Pages get the name of the run, and not of the folder of its digests.
  if (arguments.command->name == std::string_view("report") && !arguments.has("title"))
    arguments.set("title", run_name(job.paths));
  const int code = exit_code(arguments.command->run(arguments));
  return count.failures.empty() ? code : kExitError;
}

int run(const std::vector<std::string>& words, int process, int processes) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    if (process == 0) fputs(kUsage, words.empty() ? stderr : stdout);
    return words.empty() ? kExitError : kExitGood;
  }
  // Every process computes the same plan, but an error in it is reported only once.
  const auto give_up = [&](const Error& error) { return process == 0 ? fail(error) : kExitError; };
  Result<Job> job = job_of(words);
  if (!job) return give_up(job.error());
  if (job->arguments.has("help")) {
    if (process == 0) fputs(command_help_text(*job->arguments.command).c_str(), stdout);
    return kExitGood;
  }
  Result<Terminal> terminal = terminal_for(job->arguments);
  if (!terminal) return give_up(terminal.error());
  DigestOptions options{.reader = job->arguments.get("reader")};
  if (job->digests_only) {
    Result<DigestOptions> asked = digest_options(job->arguments);
    if (!asked) return give_up(asked.error());
    options = *asked;
  }
  set_thread_count(1);
  Result<DigestPlan> plan = plan_digests(job->paths, job->folder, options);
  int failed = plan ? processes : process, first_failed = 0;
  MPI_Allreduce(&failed, &first_failed, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first_failed < processes) return first_failed == process ? fail(plan.error()) : kExitError;
  const std::vector<Made> made = make_share(*plan, process, processes);
  const DigestCount count = gather(*plan, made, processes);
  int code = kExitGood;
  if (process == 0) {
    set_thread_count(0);
    code = answer(*job, *terminal, *plan, count);
    fflush(stdout);
  }
  wait_for_all();
  MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return code;
}

void on_interrupt(int signal) {
  if (remove_partial_files_on_signal(signal)) _exit(kExitInterrupted);
}

}  // namespace
}  // namespace stageline

int main(int argc, char** argv) {
  int threads = 0, process = 0, processes = 1;
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads) != MPI_SUCCESS) return stageline::kExitError;
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, stageline::on_interrupt);
  std::signal(SIGPIPE, SIG_IGN);
  stageline::allow_remote_files(true);
  const int code = stageline::run({argv + 1, argv + argc}, process, processes);
  MPI_Finalize();
  return code;
}
