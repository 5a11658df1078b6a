// Model and hardware FLOPs utilisation by step, rank, stage, module and operator, and what the rest of the time went
// to. Definitions: docs/analyses/mfu.md.
#include "analyses/analysis.h"
#include "analyses/mfu/problems.h"
#include "base/error_words.h"
#include "facts/utilisation_facts.h"
#include "model/statistics.h"
#include "plan/model_flops.h"

namespace stageline {
namespace {

// The model, and the sequences of a step.
struct Wanted {
  std::optional<plan::Model> model;
  plan::SequenceLengths lengths;
  std::string formula;
};

Error bad_option(std::string what) { return make_error(ErrorCode::kUsage, std::move(what)); }

Result<Wanted> read_wanted(const AnalysisOptions& options) {
  Wanted wanted;
  wanted.formula = options.text("formula", "stageline");
  if (!options.has("model")) return wanted;
  TRY(model, plan::read_model(options.text("model"), "--model", plan::ModelUse::kFlops));
  wanted.model = std::move(*model);
  TRY(batch, options.integer("global-batch", 1, 1, int64_t{1} << 40));
  for (const std::string& item : options.list("seq")) {
    const auto length = parse_int(item);
    if (!length || *length < 1 || *length > int64_t{1} << 40)
      return bad_option("--seq is a whole number above 0, or a list");
    wanted.lengths.count_of[static_cast<double>(*length)] += static_cast<double>(*batch);
  }
  const auto formulas = plan::flops_by_formula(*wanted.model, wanted.lengths);
  const auto chosen = std::ranges::find(formulas, wanted.formula, &plan::FlopsByFormula::formula);
  if (chosen == formulas.end() || std::isnan(chosen->flops)) return worded_error(ErrorCode::kUsage, "mfu.formula");
  if (wanted.lengths.count_of.empty() || !options.has("global-batch"))
    return bad_option("--model needs the sequences of a step: --seq N and --global-batch N");
  return wanted;
}

// Reads "900" for every precision, or "bf16=900,fp8=1800".
Result<Tflops> read_peaks(const AnalysisOptions& options) {
  Tflops given = {};
  for (const std::string& item : options.list("peak-tflops")) {
    const size_t equals = item.find('=');
    const auto rate = parse_double(item.substr(equals == std::string::npos ? 0 : equals + 1));
    bool known = false;
    for (size_t i = 0; i < given.size(); ++i)
      if (equals == std::string::npos ||
          to_lower(item.substr(0, equals)) == to_lower(precision_name(static_cast<Precision>(i))))
        given[i] = rate.value_or(0), known = true;
    if (!known || !rate || !(*rate > 0) || !(*rate < 1e9))
      return bad_option("--peak-tflops is a number above 0 and below 10⁹, or bf16=X,fp8=X");
  }
  return given;
}

// NaN also above 1, which only a mistake can be.
double share(double part, double whole) { return part > 0 && part <= whole ? part / whole : kNaN; }

// The FLOPs of the model against the 16-bit peaks of all devices, step by step.
class Meter {
 public:
  Meter(const Utilisation& use, const Wanted& wanted) : use_(use), wanted_(wanted) {
    for (const RankUse& rank : use.ranks) {
      const double bf16 = rank.peaks[Precision::kBf16], peak = bf16 > 0 ? bf16 : rank.peaks[Precision::kFp16];
      if (peak > 0) against_ = precision_name(bf16 > 0 ? Precision::kBf16 : Precision::kFp16);
      peak_ += peak / static_cast<double>(use.ranks.size());
      highest_ = std::max({highest_, rank.highest_tflops, peak});
      for (const StepUse& of : rank.steps) {
        Step& step = steps_[of.number];
        step.ns = std::max(step.ns, of.step_ns);
        step.all_ns += static_cast<double>(of.step_ns);
        step.peak_ns += of.peak_ns;
        step.matrix_ns += of.matrix_ns;
        step.known_ns += of.known_ns;
      }
    }
    if (!wanted.model) return;
    formulas_ = plan::flops_by_formula(*wanted.model, wanted.lengths);
    flops_ = std::ranges::find(formulas_, wanted.formula, &plan::FlopsByFormula::formula)->flops;
    for (const auto& [number, step] : steps_)
      if (peak_ > 0) max_mfu_ = std::max(max_mfu_, mfu(flops_, step.ns));
  }

  // A model's utilisation may be above 1 where matrices have fewer bits.
  bool refused() const { return max_mfu_ * peak_ > highest_; }
  double max_mfu() const { return max_mfu_; }
  // Returns the time that a device's equal share of the model's FLOPs takes at the peak, as a share of a rank's own
  // step.
  double model_share(int64_t step_ns) const { return refused() ? kNaN : mfu(flops_, step_ns); }

  Table steps() const {
    Table table(declared_table("mfu/mfu"));
    for (const auto& [number, step] : steps_)
      table.add_row({number < 0 ? kNullInteger : number, step.ns, wanted_.model ? wanted_.lengths.tokens() : kNaN,
                     flops_, model_share(step.ns), share(step.peak_ns, step.all_ns),
                     share_of(step.known_ns, step.matrix_ns), against_,
                     refused() ? percent(mfu(flops_, step.ns)) : std::string()});
    return table;
  }

  // The MFU of the run by every formula, over its mean step.
  Table formulas() const {
    double ns = 0;
    for (const auto& [number, step] : steps_) ns += static_cast<double>(step.ns) / static_cast<double>(steps_.size());
    Table table(declared_table("mfu/mfu-formulas"));
    for (const auto& [formula, flops] : formulas_)
      table.add_row({std::string(formula), flops, flops / ns / static_cast<double>(use_.devices) / 1e3,
                     share(flops, ns * static_cast<double>(use_.devices) * peak_ * 1e3)});
    return table;
  }

 private:
  struct Step {
    int64_t ns = 0;  // of the slowest rank
    double all_ns = 0, peak_ns = 0;
    int64_t matrix_ns = 0, known_ns = 0;
  };
  double mfu(double flops, int64_t step_ns) const {
    const double all = static_cast<double>(step_ns) * static_cast<double>(use_.devices) * peak_ * 1e3;
    return all > 0 ? flops / all : kNaN;
  }

  const Utilisation& use_;
  const Wanted& wanted_;
  std::map<int64_t, Step> steps_;  // by number
  std::vector<plan::FlopsByFormula> formulas_;
  std::string against_;
  double peak_ = 0, highest_ = 0;  // TFLOP/s of a device: with 16 bits, and the highest of those that the run uses
  double flops_ = kNaN, max_mfu_ = 0;
};

Table::Value step_value(const StepUse& step) { return step.number < 0 ? kNullInteger : step.number; }

Table ranks_table(const Utilisation& use) {
  Table table(declared_table("mfu/mfu-ranks"));
  for (const RankUse& rank : use.ranks)
    for (const StepUse& step : rank.steps)
      table.add_row({int64_t{rank.rank}, rank.stage == kUnknown ? kNullInteger : int64_t{rank.stage}, step_value(step),
                     step.step_ns, step.matrix_ns, step.known_ns, share_of(step.known_ns, step.matrix_ns),
                     step.min_flops, step.max_flops, share(step.peak_ns, static_cast<double>(step.step_ns))});
  return table;
}

// Each row adds up to 1. Where FLOPs of some matrix work are unknown, or the model has more, the parts of the work
// at peak rates and of recomputation cannot be separated from slow kernels.
Table losses_table(const Utilisation& use, const Meter& meter) {
  Table table(declared_table("mfu/mfu-losses"));
  for (const RankUse& rank : use.ranks)
    for (const StepUse& step : rank.steps) {
      if (step.step_ns <= 0) continue;
      const auto whole = static_cast<double>(step.step_ns);
      const auto of = [&](StepUseKind kind) { return static_cast<double>(step.ns[kind]) / whole; };
      const double matrix = of(StepUseKind::kMatrix);
      double model = meter.model_share(step.step_ns), done = step.peak_within_ns / whole, recompute = kNaN;
      if (!(model <= matrix)) model = kNaN;
      if (!(done > 0 && done <= matrix)) done = kNaN;
      if (step.known_ns == step.matrix_ns && done >= model) recompute = done - model;
      double kernels = matrix;
      for (const double part : {model, recompute, std::isnan(model) ? done : kNaN})
        if (!std::isnan(part)) kernels -= part;
      const double sum =
          matrix + of(StepUseKind::kComputing) + of(StepUseKind::kCommunication) + of(StepUseKind::kRest);
      table.add_row({int64_t{rank.rank}, step_value(step), step.step_ns, model, recompute,
                     std::isnan(model) ? done : kNaN, kernels, of(StepUseKind::kComputing),
                     of(StepUseKind::kCommunication), of(StepUseKind::kRest), 1 - sum});
    }
  return table;
}

Table operators_table(const Utilisation& use) {
  Table table(declared_table("mfu/mfu-operators"));
  for (const RankUse& rank : use.ranks)
    for (const OperatorUse& of : rank.operators) {
      const double tflops = of.min_flops / static_cast<double>(of.device_ns) / 1e3;
      table.add_row({int64_t{rank.rank}, of.module, of.name,
                     of.precision ? std::string(precision_name(*of.precision)) : "", of.calls, of.device_ns,
                     of.min_flops, of.max_flops, tflops,
                     of.precision ? share(tflops, rank.peaks[*of.precision]) : kNaN});
    }
  return table;
}

Table peaks_table(const Utilisation& use) {
  Table table(declared_table("mfu/mfu-peaks"));
  std::set<std::string> reported;
  for (const RankUse& rank : use.ranks)
    for (size_t i = 0; i < rank.peaks.size() && (i > 0 || reported.insert(rank.device).second); ++i)
      if (rank.peaks[i] > 0)
        table.add_row(
            {rank.device, std::string(precision_name(static_cast<Precision>(i))), rank.peaks[i], rank.source});
  return table;
}

void add_notes(const Utilisation& use, const Wanted& wanted, const Meter& meter, Diagnostics& notes) {
  std::set<std::string> unknown;
  const RankUse* largest = &use.ranks[0];
  bool above = false;
  for (const RankUse& rank : use.ranks) {
    if (std::ranges::none_of(rank.peaks, [](double peak) { return peak > 0; })) unknown.insert(rank.device);
    if (rank.largest_flops > largest->largest_flops) largest = &rank;
    for (const StepUse& step : rank.steps) above |= step.peak_ns > static_cast<double>(step.step_ns);
  }
  for (const std::string& device : unknown) notes.add(problem::mfu_device_unknown, Args().set("device", device));
  if (above) notes.add(problem::mfu_hfu_refused);
  if (meter.refused())
    notes.add(problem::mfu_refused, Args().set("mfu", percent(meter.max_mfu())).set("largest", largest->largest));
  if (wanted.model)
    for (const std::string& key : wanted.model->notes) notes.add(problem::mfu_not_counted, Args().set("key", key));
}

}  // namespace

Result<AnalysisResult> run_mfu(const AnalysisInput& input) {
  TRY(wanted, read_wanted(input.options));
  TRY(given, read_peaks(input.options));
  const Utilisation& use = utilisation_of(input.run());
  if (use.ranks.empty()) return make_error(ErrorCode::kBadInput, "the trace has no profiler slices");
  const bool shapes = std::ranges::any_of(use.ranks, &RankUse::has_shapes);
  if (!shapes && !wanted->model)
    return worded_error(ErrorCode::kNotFound, "mfu.none", {}, {},
                        "record with torch.profiler.profile(record_shapes=True), or describe the model: --model FILE");
  const Utilisation own = input.options.has("peak-tflops") ? make_utilisation(*input.trace, *given) : Utilisation();
  const Utilisation& asked = own.ranks.empty() ? use : own;
  const Meter meter(asked, *wanted);
  AnalysisResult result;
  add_notes(asked, *wanted, meter, result.notes);
  return result.with(meter.steps(), ranks_table(asked), losses_table(asked, meter), operators_table(asked),
                     meter.formulas(), peaks_table(asked));
}

}  // namespace stageline
