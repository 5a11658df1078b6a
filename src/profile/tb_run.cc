#include "profile/tb_run.h"

#include "base/name_pattern.h"
#include "model/message_names.h"
#include "profile/device_peaks.h"

namespace stageline {
namespace {

bool is_data_loader(std::string_view name) {
  return (name.starts_with("enumerate(DataLoader)#") && name.ends_with(".__next__")) ||
         name.starts_with("enumerate(DataPipe)#") || name.starts_with("_DataLoaderIter");  // the last is Paddle's
}

int64_t step_number_of(std::string_view name) {
  constexpr std::string_view kStep = "ProfilerStep#";
  if (!name.starts_with(kStep)) return -1;
  return parse_int(name.substr(kStep.size())).value_or(-1);
}

TbEvent event_of(Category category) {
  switch (category) {
    case Category::kCpuOp: return TbEvent::kOperator;
    case Category::kUserAnnotation: return TbEvent::kAnnotation;
    case Category::kRuntime:
    case Category::kDriver: return TbEvent::kRuntime;
    case Category::kKernel:
    case Category::kMtiaWork: return TbEvent::kKernel;
    case Category::kMemcpy: return TbEvent::kMemcpy;
    case Category::kMemset: return TbEvent::kMemset;
    default: return TbEvent::kNone;
  }
}

bool sets_memory(std::string_view name) {  // for ROCm, whose copies and fills run as kernels
  return name.find("fill") != std::string_view::npos || name.find("Fill") != std::string_view::npos ||
         name.starts_with("Memset");
}

// Sorts the rows of a rank into roles. Communication of host and device is kept apart until all rows were seen.
class Sorter {
  struct HostOp {
    Interval at;
    bool talks = false, encloses = false;  // it is a call of a communication library; there is one within it
  };

 public:
  Sorter(const TbRun& run, TbRank& out) : run_(run), out_(out), spans_(out.rank.part->later_recordings_ns.size() + 1) {}

  void add(const TorchRow& row) {
    const TbEvent event = run_.event(out_.rank, row);
    if (event == TbEvent::kNone) return;
    const Interval at = {row.start_ns, row.end_ns()};
    switch (event) {
      case TbEvent::kKernel:
        if (row.kernel == KernelClass::kOther) break;  // waits and starts among MTIA's rows
        any_communication_kernel_ |= row.kernel == KernelClass::kCommunication;
        put(row.kernel == KernelClass::kCommunication ? TbRole::kCommunication : TbRole::kKernel, at);
        break;
      case TbEvent::kMemcpy: put(TbRole::kMemcpy, at); break;
      case TbEvent::kMemset: put(TbRole::kMemset, at); break;
      case TbEvent::kRuntime: put(TbRole::kRuntime, at); break;
      default: add_host(row, event, at);
    }
    const std::vector<int64_t>& later = out_.rank.part->later_recordings_ns;
    const auto recording = std::ranges::upper_bound(later, run_.torch.zero_ns + at.start) - later.begin();
    spans_[recording].add(at.start, at.end);
  }

  void finish() {
    auto& communication = out_.cover[TbRole::kCommunication];
    out_.host_communicates = !any_communication_kernel_;
    std::vector<Interval> in_flight = communication;
    in_flight.insert(in_flight.end(), host_collectives_.begin(), host_collectives_.end());
    in_flight = union_of(std::move(in_flight));
    for (std::vector<HostOp>& ops : host_ops_) put_host(ops, in_flight);
    if (!any_communication_kernel_)
      communication.insert(communication.end(), host_collectives_.begin(), host_collectives_.end());
    for (auto& role : out_.cover) role = union_of(std::move(role));
    sort_stably(steps_, {}, [](const auto& a) { return std::tie(a.first.start_ns, a.second); });
    for (const auto& step : steps_) out_.steps.push_back(step.first);
    if (!out_.steps.empty()) return;
    for (const Span& span : spans_)
      if (span.any()) out_.steps.push_back({kNullInteger, span.start_ns, span.end_ns});
  }

 private:
  void put(TbRole role, Interval at) { out_.cover[role].push_back(at); }

  void add_host(const TorchRow& row, TbEvent event, Interval at) {
    if (run_.is(row.name, TbRun::kDataLoader)) return put(TbRole::kDataLoader, at);
    if (run_.is_step(row, event)) {
      steps_.push_back({{run_.step_number[row.name], at.start, at.end}, row.index});
      return;
    }
    if (run_.is(row.name, TbRun::kHostCollective)) return put(TbRole::kCommunication, at);
    if (run_.is(row.name, TbRun::kDeviceCollective)) host_collectives_.push_back(at);
    else if (event == TbEvent::kOperator) {  // ranges around everything say nothing of what the host does
      if (host_ops_.size() <= row.lane) host_ops_.resize(row.lane + size_t{1});
      host_ops_[row.lane].push_back({at, run_.is(row.name, TbRun::kHostCall)});
    }
  }

  // Adds the operators of one thread. Where no device communicates, calls of a communication library do: a thread in
  // such a call computes only in the operators within it. So it does in an operator around such calls, as in autograd's
  // nodes in which FSDP waits, while communication is in flight.
  void put_host(std::vector<HostOp>& ops, const std::vector<Interval>& in_flight) {
    sort_stably(ops, [](const HostOp& a, const HostOp& b) {
      return a.at.start != b.at.start ? a.at.start < b.at.start : a.at.end > b.at.end;
    });
    std::vector<HostOp*> open;
    for (HostOp& op : ops) {
      while (!open.empty() && open.back()->at.end <= op.at.start) open.pop_back();
      for (HostOp* outer : open) outer->encloses |= op.talks;
      open.push_back(&op);
    }
    std::vector<Interval> all, calls, within, around, others;
    int64_t call_ends = INT64_MIN;
    for (const HostOp& op : ops) {
      all.push_back(op.at);
      (op.encloses && !op.talks ? around : others).push_back(op.at);
      if (op.talks && out_.host_communicates) {
        calls.push_back(op.at);
        call_ends = std::max(call_ends, op.at.end);
      } else if (op.at.start < call_ends) {
        within.push_back(op.at);
      }
    }
    std::vector<Interval> talking = without(union_of(std::move(calls)), union_of(std::move(within)));
    if (out_.host_communicates) {
      const std::vector<Interval> waits =
          shared_of(without(union_of(std::move(around)), union_of(std::move(others))), in_flight);
      talking.insert(talking.end(), waits.begin(), waits.end());
      talking = union_of(std::move(talking));
    }
    for (const Interval& at : talking) put(TbRole::kCommunication, at);
    for (const Interval& at : without(union_of(std::move(all)), talking)) put(TbRole::kCpuExec, at);
  }

  const TbRun& run_;
  TbRank& out_;
  std::vector<std::pair<TbStep, uint32_t>> steps_;  // with their position in the file
  std::vector<Interval> host_collectives_;          // calls of libraries that work on the device
  std::vector<std::vector<HostOp>> host_ops_;       // operators of each thread
  bool any_communication_kernel_ = false;
  std::vector<Span> spans_;  // of the rows of each recording
};

struct Launch {  // a runtime call that launched device work
  int64_t start_ns = 0, end_ns = 0;
  uint32_t index = 0;
  Span work = {};
  int64_t work_count = 0;
};

struct DeviceWork {
  std::vector<Launch> launches;        // sorted by start
  std::vector<int32_t> launch_of_row;  // −1: no launch
};

DeviceWork device_side(const TbRun& run, const TorchRank& rank) {
  DeviceWork side;
  side.launch_of_row.assign(rank.rows.size(), -1);
  std::vector<int32_t> slot(rank.rows.size(), -1);  // indexed by row of the call
  for (size_t i = 0; i < rank.rows.size(); ++i) {
    const TorchRow& row = rank.rows[i];
    if (!is_work(run.event(rank, row)) || row.partner < 0) continue;
    const TorchRow& call = rank.rows[row.partner];
    if (run.event(rank, call) != TbEvent::kRuntime) continue;
    int32_t& at = slot[row.partner];
    if (at < 0) {
      at = static_cast<int32_t>(side.launches.size());
      side.launches.push_back({.start_ns = call.start_ns, .end_ns = call.end_ns(), .index = call.index});
    }
    Launch& launch = side.launches[at];
    launch.work.add(row.start_ns, row.end_ns());
    ++launch.work_count;
    side.launch_of_row[i] = at;
  }
  return side;
}

// The work that the launches inside each step started.
struct StepWork {
  Span span;
  int64_t count = 0;
};

// A launch belongs to the step in which it begins.
std::vector<StepWork> work_of_steps(const std::vector<TbStep>& steps, const std::vector<Launch>& launches) {
  std::vector<uint32_t> order(launches.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](uint32_t a) { return std::tie(launches[a].start_ns, launches[a].index); });
  std::vector<StepWork> work(steps.size());
  size_t s = 0, k = 0;
  while (s < steps.size() && k < order.size()) {
    const Launch& launch = launches[order[k]];
    if (launch.start_ns < steps[s].start_ns) {
      ++k;
    } else if (launch.start_ns < steps[s].end_ns || launch.end_ns <= steps[s].end_ns) {
      work[s].span.add(launch.work.start_ns, launch.work.end_ns);
      work[s].count += launch.work_count;
      ++k;
    } else {
      ++s;
    }
  }
  return work;
}

// Returns the end of the last work that ended before the first step's own work and was launched before that step; when
// there is none, the step's start.
int64_t first_step_start(const TbRun& run, const TbRank& rank, const DeviceWork& side, const StepWork& first) {
  const int64_t host_start = rank.steps[0].start_ns;
  int64_t start = host_start;
  if (first.count == 0) return start;
  for (size_t i = 0; i < rank.rank.rows.size(); ++i) {
    const TorchRow& row = rank.rank.rows[i];
    if (!is_work(run.event(rank.rank, row)) || row.end_ns() >= first.span.start_ns) continue;
    const int32_t launch = side.launch_of_row[i];
    const int64_t launched_ns = launch < 0 ? row.start_ns : side.launches[launch].start_ns;
    if (launched_ns < host_start) start = std::max(start, row.end_ns());
  }
  return start;
}

// Moves the steps to when the devices ran them, and drops incomplete steps at the end.
void move_steps(const TbRun& run, TbRank& rank) {
  if (rank.steps.empty()) return;
  const DeviceWork side = device_side(run, rank.rank);
  const std::vector<StepWork> work = work_of_steps(rank.steps, side.launches);
  if (std::ranges::none_of(work, [](const StepWork& w) { return w.count > 0; })) return;
  int64_t end_before = first_step_start(run, rank, side, work[0]);
  for (size_t i = 0; i < rank.steps.size(); ++i) {
    TbStep& step = rank.steps[i];
    step.start_ns = std::max(step.start_ns, end_before);
    step.end_ns = std::max(step.end_ns, step.start_ns);
    if (work[i].count > 0) step.end_ns = std::max(step.end_ns, work[i].span.end_ns);
    end_before = step.end_ns;
  }
  if (rank.steps.size() < 2 || run.keeps_last_step) return;
  size_t keep = rank.steps.size();
  while (keep > 0 && work[keep - 1].count == 0) --keep;
  // Checks the last kept step: 0.8 of the work of the step before is the plugin's limit for "not all of its work was
  // captured".
  if (keep > 1 && work[keep - 2].count * 0.8 > work[keep - 1].count) --keep;
  rank.dropped_steps = rank.steps.size() - keep;
  rank.steps.resize(keep);
}

}  // namespace

uint8_t tb_name_facts(std::string_view name) {
  name = name.substr(0, kTellingBytes);
  uint8_t facts = 0;
  if (is_data_loader(name)) facts |= TbRun::kDataLoader;
  if (const size_t colon = name.find(':'); colon != std::string_view::npos && name.substr(colon, 2) != "::") {
    const std::string_view library = name.substr(0, colon);
    if (library == "gloo" || library == "mpi") facts |= TbRun::kHostCollective;
    for (const std::string_view device : {"nccl", "rccl", "ucc", "xccl", "hccl"})
      if (library == device) facts |= TbRun::kDeviceCollective;
  }
  if (uses_tensor_cores(name)) facts |= TbRun::kTensorCore;
  if (is_communication_call(name)) facts |= TbRun::kHostCall;
  if (says_no_units(name)) facts |= TbRun::kSilentKernel;
  if (may_use_tensor_cores(name)) facts |= TbRun::kTensorOperator;
  return facts;
}

std::string_view tb_role_name(TbRole role) {
  constexpr ByEnum<TbRole, std::string_view, kTbRoleCount> kNames = {
      {"Kernel", "Memcpy", "Memset", "Communication", "Runtime", "DataLoader", "CPU Exec", "Other"}};
  return kNames[role];
}

TbEvent TbRun::event(const TorchRank& rank, const TorchRow& row) const {
  const TbEvent event = category_event[rank.part->slices.category_id[row.slice]];
  if (event == TbEvent::kKernel && row.kernel == KernelClass::kMemory)
    return sets_memory(torch.trace->names.text(row.name)) ? TbEvent::kMemset : TbEvent::kMemcpy;
  return event;
}

Result<TbRun> make_tb_run(const Trace& trace, bool keeps_last_step) {
  TRY(torch, make_torch_run(trace, {.hta = false, .include_last_step = true}));
  TbRun run;
  run.torch = std::move(*torch);
  run.keeps_last_step = keeps_last_step;
  const StringPool& names = trace.names;
  run.name_facts.reserve(names.size());
  run.step_number.reserve(names.size());
  for (StringId id = 0; id < names.size(); ++id) {
    run.name_facts.push_back(tb_name_facts(names.text(id)));
    run.step_number.push_back(step_number_of(names.text(id)));
  }
  for (const CategoryInfo& category : trace.categories) run.category_event.push_back(event_of(category.kind));
  return run;
}

TbRank tb_rank(const TbRun& run, size_t part) {
  TbRank out;
  out.rank = *torch_rank(run.torch, part);
  Sorter sorter(run, out);
  for (const TorchRow& row : out.rank.rows) sorter.add(row);
  sorter.finish();
  move_steps(run, out);
  return out;
}

std::vector<TbCosts> tb_costs(const TbRank& rank) {
  std::vector<Interval> spans;
  for (const TbStep& step : rank.steps) spans.push_back({step.start_ns, step.end_ns});
  std::vector<TbCosts> costs(rank.steps.size(), TbCosts{});
  const auto charge = [&](size_t role, std::vector<Interval> time) {
    const CoveredTime covered(std::move(time));
    for (size_t i = 0; i < rank.steps.size(); ++i)
      costs[i][role] = covered.within(rank.steps[i].start_ns, rank.steps[i].end_ns);
  };
  std::vector<Interval> left = union_of(std::move(spans));
  for (size_t role = 0; role < kTbCoverCount; ++role) {
    std::vector<Interval> taken = shared_of(left, rank.cover[role]);
    left = without(left, taken);
    charge(role, std::move(taken));
  }
  charge(static_cast<size_t>(TbRole::kOther), std::move(left));
  return costs;
}

}  // namespace stageline
