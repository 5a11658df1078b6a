// Compares each operator with known work to the peak of its device. Definitions: docs/analyses/roofline.md.
#include "analyses/analysis.h"
#include "analyses/roofline/problems.h"
#include "base/parallel.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "profile/operator_work.h"

namespace stageline {
namespace {

// The maximum rates of a device, as published or as options give them; 0 if unknown.
struct Roof {
  double flops_per_ns = 0, bytes_per_ns = 0;

  // Additions and multiplications need at most half a FLOP for each byte. That is far below the ridge of every device
  // in the table of peaks, so their arithmetic needs no peak. Recorded FLOPs have no bytes, and so no roof of memory.
  bool known(bool is_matrix, int64_t bytes = 1) const {
    return (bytes_per_ns > 0 || bytes == 0) && (flops_per_ns > 0 || !is_matrix);
  }
  double compute_ns(int64_t flops) const { return share_or_zero(flops, flops_per_ns); }
  double memory_ns(int64_t bytes) const { return share_or_zero(bytes, bytes_per_ns); }
  // The shortest time in which the work can be done.
  double min_ns(int64_t flops, int64_t bytes) const { return std::max(compute_ns(flops), memory_ns(bytes)); }
};

struct GivenPeaks {
  double tflops = 0, gbps = 0;  // 0: not given

  Roof roof(const std::optional<DevicePeaks>& published, std::optional<Precision> precision) const {
    Roof roof;
    if (published) {
      roof.bytes_per_ns = published->gbps;
      if (precision) roof.flops_per_ns = published->tflops[*precision] * 1e3;
    }
    if (tflops > 0 && precision) roof.flops_per_ns = tflops * 1e3;
    if (gbps > 0) roof.bytes_per_ns = gbps;
    return roof;
  }
};

// All calls of one operator with the same shapes, types and precision on one rank.
struct OpSum {
  StringId name = 0;
  std::string shapes;
  std::optional<Precision> precision;
  bool is_matrix = false;
  int64_t calls = 0, device_ns = 0;
  int64_t flops = 0, min_bytes = 0;  // those beyond the limits of int64 stay at the limit
};

struct RankRoofline {
  int32_t rank = 0;
  std::string device;
  std::optional<DevicePeaks> published;
  std::vector<OpSum> ops;
  int64_t work_ns = 0;       // all device work of the rank, sum of durations
  int64_t span_ns = 0;       // from its first start to its last end
  int64_t host_calls = 0;    // with known work, but none of it on the device
  int64_t without_work = 0;  // with a formula that does not fit; nothing around or inside them is counted instead
  bool has_shapes = false;
};

RankRoofline read_rank(const Trace& trace, const Part& part, const FunctionNames& names) {
  OperatorWork done = operator_work(trace, part, names);
  RankRoofline out{.rank = part.rank,
                   .device = done.device,
                   .published = done.published,
                   .without_work = done.without_work,
                   .has_shapes = done.has_shapes};
  Span span;
  for (const DeviceWork& work : done.work) {
    out.work_ns += work.end_ns - work.start_ns;
    span.add(work.start_ns, work.end_ns);
  }
  out.span_ns = span.length_ns();
  std::map<std::tuple<StringId, std::string, std::string>, size_t> known;
  for (const OperatorCall& call : done.calls) {
    if (call.work.min_bytes < 0 || call.work.max_flops > call.work.flops) {
      ++out.without_work;
      continue;
    }
    if (call.device_ns == 0) {
      ++out.host_calls;
      continue;
    }
    std::string shapes = shapes_text(trace.names.text(call.inputs->dims));
    const std::string kind(call.precision ? precision_name(*call.precision) : call.work.type);
    const auto [at, fresh] = known.try_emplace({call.name, shapes, kind}, out.ops.size());
    if (fresh) out.ops.push_back({call.name, std::move(shapes), call.precision, call.work.is_matrix});
    OpSum& sum = out.ops[at->second];
    ++sum.calls;
    sum.device_ns += call.device_ns;
    sum.flops = sum_or_limit(sum.flops, call.work.flops);
    sum.min_bytes = sum_or_limit(sum.min_bytes, call.work.min_bytes);
  }
  return out;
}

double or_nan(double value) { return value > 0 ? value : kNaN; }

Result<GivenPeaks> read_peaks(const AnalysisOptions& options) {
  GivenPeaks given;
  for (const auto& [name, value] : {std::pair{"peak-tflops", &given.tflops}, {"peak-gbps", &given.gbps}}) {
    if (!options.has(name)) continue;
    TRY(read, options.real(name, 0));
    if (!(*read > 0) || !(*read < 1e9))
      return make_error(ErrorCode::kUsage, "--" + std::string(name) + " must be above 0 and below 10⁹");
    *value = *read;
  }
  return given;
}

Table use_table(const std::vector<RankRoofline>& ranks, const GivenPeaks& given) {
  Table table(declared_table("roofline/roofline-use"));
  for (const RankRoofline& rank : ranks) {
    if (rank.ops.empty()) continue;
    int64_t calls = 0, known_ns = 0, with_roof_ns = 0, flops = 0, bytes = 0;
    double roof_ns = 0, above_ns = 0, peak_ns = 0;
    for (const OpSum& op : rank.ops) {
      const Roof roof = given.roof(rank.published, op.precision);
      calls += op.calls;
      known_ns += op.device_ns;
      flops = sum_or_limit(flops, op.flops);
      bytes = sum_or_limit(bytes, op.min_bytes);
      peak_ns += roof.compute_ns(op.flops);
      if (!roof.known(op.is_matrix, op.min_bytes)) continue;
      const double ns = roof.min_ns(op.flops, op.min_bytes);
      with_roof_ns += op.device_ns;
      roof_ns += ns;
      above_ns += std::max(0.0, op.device_ns - ns);
    }
    const bool has_roof = with_roof_ns > 0;
    table.add_row({int64_t{rank.rank}, rank.device, calls, known_ns, share_of(known_ns, rank.work_ns), flops,
                   flops / static_cast<double>(known_ns) / 1e3, bytes > 0 ? bytes : kNullInteger,
                   has_roof ? with_roof_ns : kNullInteger, whole_ns(has_roof ? roof_ns : kNaN),
                   whole_ns(has_roof ? above_ns : kNaN), peak_ns > 0 ? share_of(peak_ns, rank.span_ns) : kNaN});
  }
  return table;
}

Table ops_table(const Trace& trace, const std::vector<RankRoofline>& ranks, const GivenPeaks& given) {
  Table table(declared_table("roofline/roofline"));
  for (const RankRoofline& rank : ranks) {
    struct Row {
      const OpSum* op;
      Roof roof;
      double roof_ns, above_ns;
    };
    std::vector<Row> rows;
    for (const OpSum& op : rank.ops) {
      const Roof roof = given.roof(rank.published, op.precision);
      const double ns = roof.known(op.is_matrix, op.min_bytes) ? roof.min_ns(op.flops, op.min_bytes) : kNaN;
      rows.push_back({&op, roof, ns, op.device_ns - ns});
    }
    sort_stably(rows, [](const Row& a, const Row& b) {
      const auto gain = [](const Row& r) { return std::isnan(r.above_ns) ? -1e300 : r.above_ns; };
      return gain(a) != gain(b) ? gain(a) > gain(b) : a.op->device_ns > b.op->device_ns;
    });
    for (const Row& row : rows) {
      const OpSum& op = *row.op;
      const double ns = op.device_ns;
      const bool by_compute = row.roof.compute_ns(op.flops) >= row.roof.memory_ns(op.min_bytes);
      table.add_row({int64_t{rank.rank}, std::string(trace.names.text(op.name)), op.shapes,
                     op.precision ? std::string(precision_name(*op.precision)) : "", op.calls, op.device_ns, op.flops,
                     op.min_bytes > 0 ? op.min_bytes : kNullInteger, share_of(op.flops, op.min_bytes),
                     op.flops / ns / 1e3, or_nan(op.min_bytes / ns),
                     std::string(!row.roof.known(op.is_matrix, op.min_bytes) ? ""
                                 : by_compute                                ? "compute"
                                                                             : "memory"),
                     whole_ns(row.roof_ns), row.roof_ns / ns, whole_ns(row.above_ns)});
    }
  }
  return table;
}

Table peaks_table(const std::vector<RankRoofline>& ranks, const GivenPeaks& given) {
  Table table(declared_table("roofline/roofline-peaks"));
  std::set<std::pair<std::string, Precision>> reported;
  for (const RankRoofline& rank : ranks)
    for (const OpSum& op : rank.ops) {
      if (!op.precision || !reported.emplace(rank.device, *op.precision).second) continue;
      const Roof roof = given.roof(rank.published, op.precision);
      const bool all = given.tflops > 0 && given.gbps > 0, some = given.tflops > 0 || given.gbps > 0;
      table.add_row({rank.device, std::string(precision_name(*op.precision)), or_nan(roof.flops_per_ns / 1e3),
                     or_nan(roof.bytes_per_ns), roof.known(true) ? roof.flops_per_ns / roof.bytes_per_ns : kNaN,
                     std::string(all                                        ? "given"
                                 : some                                     ? "given in part"
                                 : !rank.published                          ? "unknown"
                                 : rank.published->source == kRecordedPeaks ? "recorded"
                                                                            : "published")});
    }
  return table;
}

double rounded(double value, double scale) { return std::round(value * scale) / scale; }

std::string without_quotes(std::string_view text) {
  std::string out(text);
  std::erase(out, '"');
  return out;
}

// Returns OperatorMFU of msprof-analyze's mode operator_mfu.
Table msprof_table(const Trace& trace) {
  Table table(declared_table("roofline/roofline", "msprof"));
  const auto text = [&](StringId id) { return std::string(trace.names.text(id)); };
  for (const Part& part : trace.parts)
    for (const RecordedKernel& k : recorded_kernels(trace, part)) {
      const Slices& s = part.slices;
      const InputFact* inputs = fact_of(part.inputs, k.slice);
      const double tflops = k.tflops(part);
      table.add_row({int64_t{part.rank}, text(s.name_id[k.op]), text(s.name_id[k.slice]), s.start_ns[k.slice],
                     s.end_ns(k.slice), static_cast<double>(s.dur_ns[k.slice]),
                     k.peak_tflops > 0 ? rounded(tflops / k.peak_tflops, 1e4) : kNaN, rounded(tflops, 100),
                     rounded(k.peak_tflops, 100), static_cast<double>(k.of.flops), std::string(k.of.name),
                     inputs ? without_quotes(trace.names.text(inputs->dims)) : "",
                     without_quotes(trace.names.text(fact_of(part.tasks, k.slice)->outputs))});
    }
  return table;
}

Error nothing_to_ask(const std::vector<RankRoofline>& ranks) {
  const bool shapes = std::ranges::any_of(ranks, [](const RankRoofline& rank) { return rank.has_shapes; });
  if (!shapes)
    return make_error(ErrorCode::kNotFound, "no operator of this trace was recorded with the shapes of its inputs",
                      "record with torch.profiler.profile(record_shapes=True)");
  return make_error(ErrorCode::kNotFound,
                    "no operator whose work follows from its shapes has device work in this trace",
                    "matrix products, convolutions, attention, additions and multiplications are known");
}

}  // namespace

Result<AnalysisResult> run_roofline(const AnalysisInput& input) {
  const Trace& trace = *input.trace;
  if (input.msprof) return AnalysisResult{}.with(msprof_table(trace));
  TRY(given, read_peaks(input.options));
  const FunctionNames names(trace);
  std::vector<RankRoofline> ranks(trace.parts.size());
  parallel_for(ranks.size(), [&](size_t p) { ranks[p] = read_rank(trace, trace.parts[p], names); });
  if (std::ranges::all_of(ranks, [](const RankRoofline& rank) { return rank.ops.empty(); })) {
    if (input.for_report) return AnalysisResult{};  // nothing was asked: no flaw
    return nothing_to_ask(ranks);
  }
  AnalysisResult result;
  std::set<std::string> unknown;
  int64_t unfit = 0, on_host = 0;
  for (const RankRoofline& rank : ranks) {
    if (!rank.ops.empty() && !rank.published && (given->tflops <= 0 || given->gbps <= 0)) unknown.insert(rank.device);
    unfit += rank.without_work;
    on_host += rank.host_calls;
  }
  for (const std::string& device : unknown)
    result.notes.add(problem::roofline_device_unknown, Args().set("device", device));
  result.notes.add(problem::roofline_work_unknown, {}, unfit);
  result.notes.add(problem::roofline_on_host, {}, on_host);
  return result.with(use_table(ranks, *given), ops_table(trace, ranks, *given), peaks_table(ranks, *given));
}

}  // namespace stageline
