// Ranks are written in parallel, each from the plan of its place in the pipeline:
//
//   device   ──[F0]──[F1]──wait──[B0]──        blocks in true time, as simulated; kernels inside
//   host     ─F0─F1─B0─                        up to 25 ms ahead, never behind
//
// The host's part of a block takes at most half of the block and half of the block before it, so that the host always
// runs ahead.
#include "exporters/ascend_db/ascend_db.h"

#include <atomic>
#include <chrono>
#include <filesystem>

#include "base/json_writer.h"
#include "base/parallel.h"
#include "exporters/ascend_db/rank_rows.h"

namespace stageline {
namespace ascend_db {
namespace {

// The text of a marked range. The guide numbers micro-batch i of chunk c in DualPipeV as c·m + i, and it does spell
// "overlaping" in this way. The chunks of DualPipe are directions, with micro-batches of their own.
std::string guide_text(const AscendDbOptions& options, const Block& b) {
  const bool halves = options.schedule.name.starts_with("dualpipe");
  if (b.mark == Mark::kWeight || b.mark == Mark::kEmptyPop) return "{'name': 'WeightGradStore.pop'}";
  if (!halves) return b.mark == Mark::kForward ? "{'name': 'forward_step'}" : "{'name': 'backward_step'}";
  if (b.mark == Mark::kBackward || b.mark == Mark::kLogits) return "{'name': 'backward_step_with_model_graph'}";
  const bool counts_on = options.schedule.layout == ChunkLayout::kV;
  const int32_t number = (counts_on ? b.chunk * options.schedule.sizes.micro_batches : 0) + b.micro_batch;
  return std::string("{'name': '") +
         (b.mark == Mark::kForward ? "forward_step_with_model_graph" : "forward_backward_overlaping") +
         "', 'current_microbatch': " + std::to_string(number) + "}";
}

std::string helper_text(const AscendDbOptions& options, const Block& b, int32_t stage) {
  const bool halves = options.schedule.name.starts_with("dualpipe");
  JsonWriter json;
  json.begin_object();
  switch (b.mark) {
    case Mark::kForward: json.field("name", halves ? "forward_step_with_model_graph" : "forward_step"); break;
    case Mark::kOverlap: json.field("name", "forward_backward_overlaping"); break;
    case Mark::kWeight:
    case Mark::kEmptyPop: json.field("name", "WeightGradStore.pop"); break;
    case Mark::kBackward:
    case Mark::kLogits: json.field("name", halves ? "backward_step_with_model_graph" : "backward_step"); break;
  }
  if (b.mark != Mark::kEmptyPop && b.mark != Mark::kLogits) {
    json.field("micro_batch", int64_t{b.micro_batch});
    if (options.schedule.sizes.chunks > 1) json.field("chunk", int64_t{b.chunk});
  }
  json.field("stage", int64_t{stage}).field("step", options.first_step + b.step).end_object();
  return json.take();
}

std::string mark_text(const AscendDbOptions& options, const Block& block, int32_t stage) {
  return options.marks == AscendMarks::kGuide ? guide_text(options, block) : helper_text(options, block, stage);
}

constexpr int64_t kLeadNs = 25'000'000;    // how far the host runs ahead
constexpr int64_t kHostBlockNs = 300'000;  // time that the host takes for one block
constexpr int64_t kElements = 33'554'432;  // elements of one tensor between stages
constexpr int64_t kComputeStream = 2, kFirstP2pStream = 9, kTensorStream = 20, kDataStream = 21;

constexpr std::pair<Mark, RankRows::KernelName> kKernels[] = {
#define KERNEL(mark, ...) {Mark::mark, {__VA_ARGS__}},
#include "exporters/ascend_db/kernels.def"
};
constexpr RankRows::KernelName kOptimizerKernel = {"Optimizer.step#AdamW.step",
                                                   "aclnnApplyAdamWV2_ApplyAdamWV2_ApplyAdamWV2",
                                                   "ApplyAdamWV2",
                                                   "KERNEL_AIVEC",
                                                   "AI_VECTOR_CORE",
                                                   "\"16777216;16777216\"",
                                                   "\"16777216\""};

// An overlapped cell launches the kernels of a forward and a backward.
std::vector<RankRows::KernelName> kernels_of(Mark mark) {
  std::vector<RankRows::KernelName> out;
  for (const auto& [work, name] : kKernels)
    if (work == mark || (mark == Mark::kOverlap && work != Mark::kWeight) ||
        (mark == Mark::kLogits && work == Mark::kWeight))
      out.push_back(name);
  return out;
}

// Writes the rows of one rank by following it through its run.
class RankWriter {
 public:
  RankWriter(RankRows& rows, const Plan& plan, const Place& place, const AscendDbOptions& options, int32_t rank,
             int32_t stage, const std::vector<Group>& groups)
      : rows_(rows), plan_(plan), place_(place), o_(options), rank_(rank), stage_(stage), groups_(groups) {
    for (uint32_t i = 0; i < place.exchanges.size(); ++i) order_.push_back(i);
    sort_stably(order_, [&](uint32_t a, uint32_t b) { return slot(a) < slot(b); });
  }

  void run() {
    host_ = plan_.start_ns[0] - kLeadNs - 1'000'000;
    for (size_t step = 0; step < plan_.start_ns.size(); ++step) {
      host_ = std::max(host_ + 1'000, plan_.start_ns[step] - kLeadNs - 500'000);
      if (!steps.empty()) steps.back().end = host_;
      steps.push_back({host_, host_});
      for (uint32_t b = place_.step_first[step]; b < place_.step_first[step + 1]; ++b) block(b);
      end_of_step(step);
      const int64_t device_end = plan_.work_end_ns[step] + o_.reduce_ns;
      device_steps.push_back({plan_.start_ns[step], device_end});
      if (!place_.optimizer_end_ns.empty())
        device_steps.back().end = std::max(device_end, place_.optimizer_end_ns[step]);
      steps.back().end = std::max(host_, device_steps.back().end) + 1'000'000;
    }
  }

  std::vector<Span> steps, device_steps;  // those of the host, and those of the device

 private:
  // Receives come before their block; sends and batches come after it.
  uint64_t slot(uint32_t exchange) const {
    const Exchange& e = place_.exchanges[exchange];
    return uint64_t{e.block} * 2 + (e.sends ? 1 : 0);
  }

  void block(uint32_t b) {
    const Block& now = place_.blocks[b];
    int64_t budget = std::min(kHostBlockNs, (now.end_ns - now.start_ns) / 2);
    if (b > 0) budget = std::min(budget, (place_.blocks[b - 1].end_ns - place_.blocks[b - 1].start_ns) / 2);
    int64_t ready = now.start_ns;
    for (size_t e = next_; e < order_.size() && slot(order_[e]) <= uint64_t{b} * 2; ++e)
      ready = std::min(ready, place_.exchanges[order_[e]].start_ns);
    host_ = std::max(host_, ready - kLeadNs);
    const int64_t share = budget / 16;
    exchange(uint64_t{b} * 2, share);
    const Span host{host_ + share, host_ + share * 9};
    host_ = host.end;
    const bool tensor = find_group(groups_, "tp") && now.mark != Mark::kWeight && now.mark != Mark::kEmptyPop;
    const Span device{now.start_ns, now.end_ns};
    rows_.range(host, mark_text(o_, now, stage_), "default", device, kComputeStream);
    work(host, device, kernels_of(now.mark), tensor ? 10 : 0);
    if (tensor)
      all_reduce("tp", {host.end - share, host.end}, {device.end - (device.end - device.start) / 10, device.end},
                 kTensorStream, now.step, (device.end - device.start) / 20);
    host_ += share;
    exchange(uint64_t{b} * 2 + 1, share);
  }

  // Writes the kernels of a block one after another, with a tenth of each kernel's slot idle. The last `spare` per cent
  // of the block stay free.
  void work(Span host, Span device, const std::vector<RankRows::KernelName>& kernels, int64_t spare) {
    if (kernels.empty()) return;
    const int64_t count = kernels.size();
    const int64_t width = (device.end - device.start) * (100 - spare) / 100 / count;
    const int64_t slot = (host.end - host.start) / (count + 1);
    for (int64_t k = 0; k < count; ++k)
      rows_.kernel({host.start + k * slot, host.start + k * slot + slot * 9 / 10}, kernels[k],
                   {device.start + k * width, device.start + k * width + std::max<int64_t>(width * 9 / 10, 1)});
  }

  void exchange(uint64_t wanted, int64_t share) {
    int64_t left = 3;  // when a place has more than three exchanges, the later ones share the host time of the last
    for (; next_ < order_.size() && slot(order_[next_]) == wanted; ++next_) {
      const Exchange& e = place_.exchanges[order_[next_]];
      CommunicationOp op;
      op.kind = o_.batch_p2p ? "batchSendRecv" : e.sends ? "send" : "receive";
      op.group = find_group(groups_, "pp");
      op.host = {host_, host_ + std::max<int64_t>(share, 1)};
      if (left-- > 0) host_ = op.host.end;
      op.device = {e.start_ns, e.end_ns};
      op.stream = kFirstP2pStream + (e.peer_stage > stage_ ? 2 : 0) + (e.sends ? 1 : 0);
      op.elements = kElements;
      op.transit_ns = o_.latency_ns;
      op.step = e.step;
      if (e.sends) op.transfers.emplace_back(stage_, e.peer_stage);
      if (e.receives) op.transfers.emplace_back(e.peer_stage, stage_);
      rows_.communication(op);
    }
  }

  void all_reduce(std::string_view kind, Span host, Span device, int64_t stream, int32_t step, int64_t transit_ns) {
    CommunicationOp op{"allReduce", find_group(groups_, kind), host, device, stream, kElements, transit_ns, step, {}};
    const int32_t me = op.group->index_of(rank_), count = static_cast<int32_t>(op.group->ranks.size());
    op.transfers = {{me, (me + 1) % count}};
    if (count > 2) op.transfers.emplace_back((me + count - 1) % count, me);
    rows_.communication(op);
  }

  void end_of_step(size_t step) {
    const auto number = static_cast<int32_t>(step);
    const int64_t last = place_.blocks[place_.step_first[step + 1] - 1].end_ns;
    const int64_t reduced = plan_.work_end_ns[step] + o_.reduce_ns;
    if (find_group(groups_, "dp_cp") && o_.reduce_ns > 0) {
      all_reduce("dp_cp", {host_, host_ + 2'000}, {last, reduced}, kDataStream, number, o_.reduce_ns);
      host_ += 2'000;
    }
    if (place_.optimizer_end_ns.empty()) return;
    rows_.kernel({host_, host_ + 5'000}, kOptimizerKernel, {reduced, place_.optimizer_end_ns[step]});
    host_ += 5'000;
  }

  RankRows& rows_;
  const Plan& plan_;
  const Place& place_;
  const AscendDbOptions& o_;
  int32_t rank_, stage_;
  const std::vector<Group>& groups_;
  std::vector<uint32_t> order_;  // indices of exchanges, sorted by slot()
  size_t next_ = 0;
  int64_t host_ = 0;
};

std::string profiler_info(const AscendDbOptions& options, int32_t rank) {
  JsonWriter json;
  json.begin_object().key("config").begin_object().key("common_config").begin_object().end_object();
  json.key("experimental_config").begin_object();
  json.field("_profiler_level", options.level == AscendLevel::kNone     ? "Level_none"
                                : options.level == AscendLevel::kLevel0 ? "Level0"
                                                                        : "Level1");
  json.field("_msprof_tx", true).key("_export_type").begin_array().value("db").end_array().end_object().end_object();
  json.field("rank_id", int64_t{rank}).end_object();
  return json.take();
}

std::string stamp_of(int64_t epoch_ns) {
  namespace chrono = std::chrono;
  const chrono::sys_time<chrono::nanoseconds> when{chrono::nanoseconds(epoch_ns)};
  const auto day = chrono::floor<chrono::days>(when);
  const chrono::year_month_day date{day};
  const chrono::hh_mm_ss time{chrono::floor<chrono::milliseconds>(when - day)};
  char text[40];
  std::snprintf(text, sizeof text, "%04d%02u%02u%02d%02d%02d%03d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()), static_cast<int>(time.subseconds().count()));
  return text;
}

Status write_rank(const Trace& trace, const Part& part, const Plan& plan, int64_t offset_ns,
                  const AscendDbOptions& options, const std::string& folder) {
  namespace fs = std::filesystem;
  const std::string host = part.machine_name.empty() ? "node0" : part.machine_name;
  const RankIdentity me{part.rank, part.stage, part.device, kFirstSimulatedPid + part.rank, offset_ns, &trace.parts};
  const std::string suffix = options.mindspore ? "_ascend_ms" : "_ascend_pt";
  const fs::path root =
      fs::path(folder) / (host + "_" + std::to_string(me.pid) + "_" + stamp_of(plan.start_ns[0]) + suffix);
  const fs::path output = root / "ASCEND_PROFILER_OUTPUT";
  std::error_code ec;
  fs::create_directories(root, ec);
  if (ec) return make_error(ErrorCode::kIo, "cannot make this folder: " + ec.message(), "", {root.string()});
  const std::vector<Group> groups = groups_of(options.grid, part.rank);
  const std::vector<std::pair<std::string, std::string>> user = user_metadata(options, part.rank, groups);
  const std::string number = std::to_string(part.rank);
  // This file is written first, so that the remains of an interrupted run can be recognised as simulated.
  TRY_OK(write_file((root / ("profiler_info_" + number + ".json")).string(), profiler_info(options, part.rank)));
  fs::create_directories(output, ec);
  if (ec) return make_error(ErrorCode::kIo, "cannot make this folder: " + ec.message(), "", {output.string()});
  const std::string path =
      (output / ((options.mindspore ? "ascend_mindspore_profiler_" : "ascend_pytorch_profiler_") + number + ".db"))
          .string();
  TRY(out, OutputFile::create(path));
  {
    TRY(db, SqliteDb::open_new(*out));
    TRY_OK(db->run("BEGIN"));
    TRY_OK(create_tables(*db, options.level, options.step_time));
    {
      RankRows rows(*db, options, me);
      const Place& place = plan.places[part.dp * static_cast<size_t>(options.schedule.sizes.stages) + part.stage];
      RankWriter writer(rows, plan, place, options, part.rank, part.stage, groups);
      writer.run();
      std::vector<std::pair<std::string, std::string>> metadata = {{"SCHEMA_VERSION", "1.2.0"},
                                                                   {"SCHEMA_VERSION_MAJOR", "1"},
                                                                   {"SCHEMA_VERSION_MINOR", "2"},
                                                                   {"SCHEMA_VERSION_MICRO", "0"}};
      metadata.insert(metadata.end(), user.begin(), user.end());
      TRY_OK(rows.finish(metadata, host, writer.steps));
      TRY_OK(write_analysis_db(rows, options, writer.device_steps, offset_ns, (output / "analysis.db").string()));
    }
    TRY_OK(db->run("COMMIT"));
  }
  TRY_OK(out->commit());
  JsonWriter json;
  json.begin_object();
  for (const auto& [key, value] : user) json.key(key).raw(value);
  json.end_object();
  return write_file((root / "profiler_metadata.json").string(), json.text());
}

Status write_links(const Plan& plan, const AscendDbOptions& options, const std::string& folder) {
  std::string csv = "step,kind,chunk,micro_batch,src_rank,dst_rank,send_ns,receive_ns,end_ns\n";
  const int32_t p = options.schedule.sizes.stages;
  const auto rank_of = [&](int32_t place, int32_t tp, int32_t cp) {
    return std::to_string(options.grid.rank_at(tp, cp, place / p, place % p));
  };
  for (const Message& m : plan.messages)
    for (int32_t cp = 0; cp < options.grid.of(GridDim::kCp); ++cp)
      for (int32_t tp = 0; tp < options.grid.of(GridDim::kTp); ++tp) {
        csv += std::to_string(options.first_step + m.step) + (m.backward ? ",B," : ",F,") + std::to_string(m.chunk) +
               "," + std::to_string(m.micro_batch) + "," + rank_of(m.src_place, tp, cp) + "," +
               rank_of(m.dst_place, tp, cp);
        for (const int64_t t : {m.send_ns, m.post_ns, m.end_ns}) csv += "," + std::to_string(t);
        csv += "\n";
      }
  return write_file((std::filesystem::path(folder) / "truth_links.csv").string(), csv);
}

}  // namespace
}  // namespace ascend_db

Status write_ascend_databases(Trace& trace, const std::vector<int64_t>& clock_offset_ns, const AscendDbOptions& options,
                              const std::string& folder) {
  const ascend_db::Plan plan = ascend_db::make_plan(trace, clock_offset_ns, options);
  std::vector<Status> done(trace.parts.size());
  // Set by the first failure, so that the other ranks do not fail one by one on the same full disk.
  std::atomic<bool> failed = false;
  OutputSet::Files* const together = OutputSet::of_this_thread();
  parallel_for(trace.parts.size(), [&](size_t i) {
    const OutputSet::Join joined(together);
    if (failed) return;
    const Part& part = trace.parts[i];
    done[i] = ascend_db::write_rank(trace, part, plan, clock_offset_ns[part.machine], options, folder);
    if (!done[i]) failed = true;
  });
  for (Status& s : done)
    if (!s) return std::move(s).error();
  return ascend_db::write_links(plan, options, folder);
}

}  // namespace stageline
