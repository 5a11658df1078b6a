// Reads spans of OpenTelemetry (OTLP): the pipelines of Megatron's, the requests of vLLM's, and others as host slices;
// docs/formats/otlp.md.
#include "model/run_extent.h"
#include "readers/common/host_spans.h"
#include "readers/common/read_files.h"
#include "readers/common/row_kinds.h"
#include "readers/otlp/problems.h"
#include "readers/otlp/span_file.h"

namespace stageline::otlp {
namespace {

// The spans of all files, in an order that does not depend on that of files and lines.
class Gathering {
 public:
  void add(SpanFile file, uint32_t number, Trace& trace) {
    trace.diagnostics.merge(file.diagnostics);
    std::vector<StringId> names(file.names.size());
    for (StringId name = 0; name < names.size(); ++name) names[name] = trace.names.intern(file.names.text(name));
    const auto first_resource = static_cast<uint32_t>(run_.resources.size());
    for (Resource& resource : file.resources) run_.resources.push_back(std::move(resource));
    const auto first_request = static_cast<uint32_t>(run_.requests.size());
    for (ServedRequest& request : file.requests) run_.requests.push_back(std::move(request));
    for (Span& span : file.spans) {
      if (span.request != kNoRequest) span.request += first_request;
      span.name_id = names[span.name_id];
      span.resource += first_resource;
      span.file = number;
      run_.spans.push_back(span);
    }
  }

  Run finish(Trace& trace) {
    sort(trace);
    keep_one_run(trace);
    return std::move(run_);
  }

 private:
  // Sorts spans by start, and leaves out those that a file or line repeats.
  void sort(Trace& trace) {
    std::vector<uint32_t> order(run_.spans.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto key = [&](uint32_t i) {
      const Span& span = run_.spans[i];
      return std::tuple(span.start_ns, -span.end_ns, run_.resources[span.resource].rank, span.id,
                        trace.names.text(span.name_id), std::string_view(run_.resources[span.resource].instance));
    };
    std::ranges::sort(order, [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    const size_t before = order.size();
    const auto repeated =
        std::ranges::unique(order, [&](uint32_t a, uint32_t b) { return run_.spans[a].id != 0 && key(a) == key(b); });
    order.erase(repeated.begin(), repeated.end());
    trace.diagnostics.add(problem::otlp_repeated_span, {}, static_cast<int64_t>(before - order.size()));
    take(order);
  }

  // Keeps the run with the most spans where the sizes or the names say that there are several.
  void keep_one_run(Trace& trace) {
    const auto key = [&](const Span& span) {
      const Resource& r = run_.resources[span.resource];
      return std::tuple(r.world_size, r.pipeline_size, r.data_size, r.run);
    };
    std::map<decltype(key(Span{})), int64_t> runs;
    for (const Span& span : run_.spans)
      if (run_.resources[span.resource].world_size > 0) ++runs[key(span)];
    if (runs.size() <= 1) return;
    const auto most = std::ranges::max_element(runs, {}, [](const auto& run) { return run.second; });
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < run_.spans.size(); ++i)
      if (run_.resources[run_.spans[i].resource].world_size == 0 || key(run_.spans[i]) == most->first)
        order.push_back(i);
    trace.diagnostics.add(problem::otlp_other_run, {}, static_cast<int64_t>(run_.spans.size() - order.size()));
    take(order);
  }

  // Keeps the spans of these numbers, in this order.
  void take(const std::vector<uint32_t>& order) {
    std::vector<Span> spans;
    for (const uint32_t i : order) spans.push_back(run_.spans[i]);
    run_.spans = std::move(spans);
  }

  Run run_;
};

// One process whose spans are drawn as calls of the host.
struct Process {
  const Resource* resource = nullptr;
  uint32_t file = 0;
  std::vector<HostSpan> spans;
  std::vector<ServedRequest> requests;
};

// Adds the queue, prefill and decode of a request, one after the other from its arrival.
void add_phases(const ServedRequest& request, const HostSpan& whole, std::vector<HostSpan>& spans) {
  int64_t at = whole.start_ns;
  for (const auto& [name, ns] : {std::pair("queue", request.queue_ns), std::pair("prefill", request.prefill_ns),
                                 std::pair("decode", request.decode_ns)}) {
    if (ns < 0) return;
    const int64_t end = std::min(whole.end_ns, at + ns);
    spans.push_back({at, end, whole.task, name});
    at = end;
  }
}

void add_host_parts(const Run& run, const std::vector<std::string>& paths, Trace& trace) {
  const auto key = [](const Resource& r) { return std::tuple(r.rank, r.instance, r.host, r.pid); };
  std::map<decltype(key(Resource{})), Process> processes;
  const StringId iteration = trace.names.intern("megatron.train.iteration");
  for (const Span& span : run.spans) {
    const Resource& resource = run.resources[span.resource];
    Process& process = processes.try_emplace(key(resource), Process{&resource, span.file, {}, {}}).first->second;
    // A task is a trace of spans that call each other; a span without a trace is a task of its own.
    const HostSpan whole = {span.start_ns, span.end_ns, span.trace != 0 ? span.trace : span.id,
                            trace.names.text(span.name_id), span.name_id == iteration ? span.iteration : -1};
    process.spans.push_back(whole);
    if (span.request == kNoRequest) continue;
    add_phases(run.requests[span.request], whole, process.spans);
    process.requests.push_back(run.requests[span.request]);
  }
  std::set<int64_t> ranks = mapped<std::set>(processes, [&](const auto& entry) { return entry.second.resource->rank; });
  const bool ranked = !ranks.contains(kUnknown) && ranks.size() == processes.size();
  if (!ranked && processes.size() > 1) trace.diagnostics.add(problem::otlp_ranks_in_order, {paths.front()});
  for (auto& [id, process] : processes) {
    PartBuilder builder(paths[process.file], gpu_rows::kKinds, "otlp");
    add_host_spans(process.resource->pid, std::move(process.spans), builder);
    finish_host_part(builder, ranked ? process.resource->rank : std::ssize(trace.parts), process.resource->host, trace);
    trace.parts.back().requests = std::move(process.requests);
  }
}

// Says which ranks or spans a run of Megatron did not export.
void tell_missing(const Run& run, Trace& trace) {
  std::set<int64_t> ranks;
  int64_t world = 0;
  bool iterations = false, micro_batches = false;
  const StringId forward = trace.names.intern("megatron.microbatch.forward");
  for (const Span& span : run.spans) {
    const Resource& resource = run.resources[span.resource];
    if (resource.rank != kUnknown) ranks.insert(resource.rank);
    world = std::max(world, resource.world_size);
    iterations |= span.iteration != kUnknown;
    micro_batches |= span.name_id == forward;
  }
  const std::string& path = trace.parts.front().source;
  if (world > std::ssize(ranks) && !ranks.empty()) {
    trace.diagnostics.add(problem::otlp_missing_ranks,
                          Args()
                              .set("present", std::to_string(ranks.size()))
                              .set("world", std::to_string(world))
                              .set("missing", missing_ranks(ranks, world)),
                          {path});
  }
  if (iterations && !micro_batches) trace.diagnostics.add(problem::otlp_no_micro_batches, {path});
  if (world > 0) trace.parts.front().metadata.push_back({"world_size", std::to_string(world)});
}

void add_pipeline(std::vector<Op> ops, const Run& run, const std::vector<std::string>& paths, Trace& trace) {
  std::map<int32_t, std::string> hosts;
  for (const Resource& resource : run.resources) {
    if (resource.rank != kUnknown) hosts.emplace(static_cast<int32_t>(resource.rank), resource.host);
    trace.pipeline_stages = std::max(trace.pipeline_stages, static_cast<int32_t>(resource.pipeline_size));
  }
  const int64_t places = std::ranges::count_if(ops, [](const Op& op) { return op.stage != kUnknown; });
  if (places > 0 && !names_stages(run)) trace.diagnostics.add(problem::otlp_stages_by_order);
  if (places < std::ssize(ops)) trace.pipeline_stages = 0;
  resolve_ranks(ops, "otlp", trace.diagnostics);
  build_parts(ops, kind_lane_names(), paths, trace);
  settle_lossy_steps(trace);
  for (Part& part : trace.parts) part.machine_name = hosts[part.rank];
}

}  // namespace

Match sniff(const Source& source) { return sniff_heads(source, looks_like_otlp); }

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "otlp";
  const std::vector<std::string> paths =
      files_that(looks_like_otlp, source, options, problem::otlp_unusable_file, trace.diagnostics);
  Gathering gathering;
  auto first_error = read_files(
      paths.size(), [&](size_t k) { return read_spans(paths[k], options.progress); },
      [&](size_t k, SpanFile file) { gathering.add(std::move(file), static_cast<uint32_t>(k), trace); },
      [&](size_t k, const Error&) { trace.diagnostics.add(problem::otlp_unusable_file, {paths[k]}); });
  const Run run = gathering.finish(trace);
  if (run.spans.empty())
    return nothing_read(
        std::move(first_error), source, "no whole span of OpenTelemetry in these files",
        "expected {\"resourceSpans\":[{\"resource\":{…},\"scopeSpans\":[{\"spans\":[…]}]}]} on a line, or "
        "the same as protobuf; metrics and logs hold no times of work");
  std::vector<Op> ops = pipeline_ops(run, trace);
  if (!ops.empty()) add_pipeline(std::move(ops), run, paths, trace);
  else add_host_parts(run, paths, trace);
  tell_missing(run, trace);
  settle_hosts(trace);
  std::set<std::string> services;
  for (const Span& span : run.spans) services.insert(run.resources[span.resource].service);
  if (!names_stages(run)) trace.diagnostics.add(problem::otlp_host_times);
  const std::string service = services.size() == 1 ? *services.begin() : "";
  trace.description = counted(std::ssize(run.spans), "span", "spans") + " of " +
                      (service.empty() ? counted(std::ssize(services), "service", "services") : service);
  return trace;
}

}  // namespace stageline::otlp
