#include "cli/plan_question.h"

#include "base/input.h"
#include "cli/questions.h"
#include "diagnosis/what_if/what_if_fixes.h"
#include "exporters/table_text.h"
#include "exporters/table_words.h"
#include "plan/recorded.h"
#include "profile/memory_blocks.h"
#include "schedules/registry.h"

namespace stageline {
namespace {

using namespace plan;

constexpr double kGiB = 1 << 30;
constexpr double kMaxParameters = 1e15;  // times of a thousand times larger models would not fit into 64 bits
constexpr size_t kMaxModelBytes = size_t{16} << 20;

// Reads a size with its unit: 80GiB, 80GB, 512MiB, 512MB, 1000B.
std::optional<double> parse_size(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"GiB", kGiB}, {"GB", 1e9},          {"MiB", 1 << 20},
                                                            {"MB", 1e6},   {"TiB", kGiB * 1024}, {"B", 1}};
  for (const auto& [unit, bytes] : kUnits)
    if (text.ends_with(unit))
      if (const auto number = parse_double(trim(text.substr(0, text.size() - unit.size()))))
        return *number >= 0 && *number * bytes < 1e18 ? std::optional(*number * bytes) : std::nullopt;
  return std::nullopt;
}

Status take_size(const Arguments& a, const char* flag, double& into) {
  if (!a.has(flag)) return {};
  const auto size = parse_size(a.get(flag));
  if (!size || (*size == 0 && std::string_view(flag) == "memory"))
    return make_error(ErrorCode::kUsage, "--" + std::string(flag) + " " + valid_utf8(a.get(flag)) + " is not a size",
                      "write it with its unit: 80GiB, 80GB, 512MiB, 512MB");
  into = *size;
  return {};
}

Status take_list(const Arguments& a, const char* flag, std::vector<int32_t>& into) {
  if (!a.has(flag)) return {};
  into.clear();
  const std::string list = a.get(flag);
  for (const std::string_view word : split(list, ',')) {
    const auto number = parse_int(trim(word));
    if (!number || *number < 1 || *number > 1'000'000)
      return make_error(ErrorCode::kUsage, "--" + std::string(flag) + " is one number or a list: 2,4,8");
    into.push_back(static_cast<int32_t>(*number));
  }
  return {};
}

Status take_share(const Arguments& a, const char* flag, double min, double max, double& into) {
  if (!a.has(flag)) return {};
  const auto number = parse_double(a.get(flag));
  if (!number || *number < min || *number > max)
    return make_error(ErrorCode::kUsage,
                      "--" + std::string(flag) + " is a number from " + repr_double(min) + " to " + repr_double(max));
  into = *number;
  return {};
}

Status take_memory(const Arguments& a, Wish& w) {
  MemoryOptions& o = w.rates.memory;
  const std::string optimizer = a.get("optimizer");
  o.sharding = w.framework->sharding;
  const std::pair<std::string_view, Sharding> kinds[] = {{"distributed", Sharding::kDistributed},
                                                         {"replicated", Sharding::kReplicated},
                                                         {"zero2", Sharding::kZero2},
                                                         {"zero3", Sharding::kZero3},
                                                         {"fsdp", Sharding::kZero3}};
  for (const auto& [name, sharding] : kinds)
    if (optimizer == name) o.sharding = sharding;
  // Megatron accumulates gradients in fp32; with ZeRO 2 they are reduced in bf16 as they come.
  if (o.sharding == Sharding::kZero2) o.gradient = 2;
  const auto width = [&](const char* flag, double& into, double of_all) -> Status {
    if (!a.has(flag)) return {};
    const std::string type = a.get(flag);
    for (const auto& [name, bytes] : {std::pair("fp32", 4.0), std::pair("bf16", 2.0), std::pair("fp16", 2.0),
                                      std::pair("int16", 2.0), std::pair("fp8", 1.0), std::pair("none", 0.0)})
      if (type == name) {
        into = bytes * of_all;
        return {};
      }
    return make_error(ErrorCode::kUsage, "--" + std::string(flag) + " is fp32, bf16, fp16, int16, fp8 or none");
  };
  TRY_OK(width("param-dtype", o.parameter, 1));
  TRY_OK(width("grad-dtype", o.gradient, 1));
  if (o.parameter == 4 && !a.has("master-dtype")) o.master = 0;  // fp32 parameters are their own master copy
  TRY_OK(width("master-dtype", o.master, 1));
  TRY_OK(width("moment-dtype", o.moments, 2));
  o.fp8 = w.rates.fp8 = a.get("precision", "bf16") == "fp8";
  o.flash = a.get("attention", "flash") == "flash";
  o.fused_loss = a.get("loss", "fused") == "fused";
  TRY_OK(take_share(a, "moe-imbalance", 1, 100, o.imbalance));
  TRY_OK(take_share(a, "capacity-factor", 0.1, 100, o.capacity));
  TRY_OK(take_share(a, "w-keeps", 0, 10, o.w_keeps));
  TRY_OK(take_share(a, "fragmentation", 1, 2, o.fragmentation));
  TRY_OK(take_size(a, "reserve", o.reserve));
  TRY_OK(take_size(a, "memory", o.limit));
  o.scratch = w.framework->scratch, o.keeps_sent = o.keeps_whole = w.framework->keeps_sent;
  o.deepspeed_copy = w.framework->name == "deepspeed" && o.sharding == Sharding::kZero2;
  return {};
}

Status take_hardware(const Arguments& a, Wish& w) {
  const std::string name = a.get("hardware", "H100-SXM");
  bool known = false;
  std::string list;
  for (const Hardware& h : known_hardware()) {
    append_item(list, h.name);
    if (h.name == name) w.rates.hardware = h, known = true;
  }
  if (!known) {
    if (!name.ends_with(".json"))
      return make_error(ErrorCode::kUsage, "no device \"" + valid_utf8(name) + "\" is known",
                        "known: " + list + ", or a FILE.json");
    TRY(text, read_all(name, kMaxModelBytes));
    TRY(read, read_hardware(*text, name));
    w.rates.hardware = *read;
  }
  w.rates.per_node = w.per_node;
  return take_share(a, "mfu", 0.01, 1, w.rates.mfu);
}

Status take_degrees(const Arguments& a, Wish& w) {
  for (const auto& [flag, list] :
       {std::pair("tp", &w.tp), std::pair("cp", &w.cp), std::pair("ep", &w.ep), std::pair("etp", &w.etp),
        std::pair("pp", &w.pp), std::pair("dp", &w.dp), std::pair("micro-batch-size", &w.micro_batch),
        std::pair("chunks", &w.chunks), std::pair("micro-batches", &w.micro_batches)})
    TRY_OK(take_list(a, flag, *list));
  if (w.cp.empty() && w.sequence <= 16'384) w.cp = {1};  // short sequences gain nothing from context parallelism
  const std::string wanted = a.get("schedule");
  for (const std::string_view word : split(wanted, ',')) {
    if (word.empty()) continue;
    TRY(schedule, schedule_named(trim(word)));
    w.schedules.emplace_back((*schedule)->name);
  }
  return {};
}

// Reads the stages of a run. `replicas` becomes its data parallelism.
Result<RecordedRun> recorded_run(const WhatIf& model, const Arguments& a, int32_t& replicas) {
  const OrderModel& order = model.order();
  if (!order.known())
    return make_error(ErrorCode::kUnavailable, "the run has no schedule that could be planned: " + order.why_not().en,
                      "stageline analyze schedule shows what was compared");
  RecordedRun out;
  out.schedule = order.recognition().best().name;
  out.sizes = order.sizes();
  out.stages = order.stages(), out.steps = order.step_costs(model.graph());
  out.weight_share = order.weight_share();
  if (order.overlap_ratio() != 1) out.overlap = order.overlap_ratio();
  if (a.has("layers")) {
    TRY(layers, parse_layers(a.get("layers"), out.sizes.stages, out.sizes.chunks, order.layout()));
    out.layers = std::move(*layers);
  }
  SlowestLinks links = slowest_links(model.latencies(), out.sizes.stages);
  out.there = std::move(links.there), out.back = std::move(links.back);
  const StepGraph& graph = model.graph();
  replicas = 1;
  for (size_t op = 0; op < graph.size(); ++op) replicas = std::max(replicas, graph.dp(op) + 1);
  out.step_ns = model.error().recorded_ns;
  out.error = std::abs(model.error().order_ns / out.step_ns - 1);
  return out;
}

Result<RecordedRun> read_run(const Arguments& a, const Terminal& terminal, int32_t& replicas) {
  Arguments reading = a;
  reading.operands = {a.get("from")};
  for (const char* flag : {"pp", "tp", "cp", "ep", "dp"}) reading.drop(flag);
  TRY(trace, open_run(reading, terminal, reading.operands, "", Clocks::kCompared));
  const Run run(*trace);
  Diagnostics notes;
  TRY(model, what_if_of(run, notes));
  TRY(found, recorded_run(*model, a, replicas));
  found->peak_bytes = peak_memory_of_stages(*trace);
  return found;
}

// Puts the run's times into the wish, and its degrees where none are given.
Status take_run(const RecordedRun& run, int32_t replicas, const Arguments& a, Wish& w, PlanAnswer& answer) {
  const auto stages = static_cast<int32_t>(run.stages.cost_ns.size());
  RecordedRun own = run;
  if (own.layers.empty()) own.layers = even_layers(w.model.layers(), stages);
  const int64_t sum = sum_over<int64_t>(own.layers);
  if (sum != w.model.layers())
    return make_error(ErrorCode::kUsage, "--layers gives " + std::to_string(sum) + " layers, the model has " +
                                             std::to_string(w.model.layers()));
  const RecordedTimes times = times_of_run(own, w.model.kind_of, w.model.kinds.size());
  w.recorded = times.times;
  w.resampled = resampled_times(own, w.model.kind_of, w.model.kinds.size(), 200);
  answer.slow = times.slow;
  w.recorded_error = std::max(0.001, run.error + times.residual);
  if (!times.kinds_distinct)
    w.model.notes.emplace_back("a price for each kind of layer: the run cannot tell them apart");
  for (auto* list : {&w.tp, &w.cp, &w.ep})
    if (list->empty()) *list = {1};
  if (w.pp.empty()) w.pp = {run.sizes.stages};
  if (w.micro_batch.empty()) w.micro_batch = {1};
  if (w.micro_batch.size() > 1)
    return make_error(ErrorCode::kUsage, "--micro-batch-size is one number with --from: the run's");
  w.gpus = run.sizes.stages * replicas * w.tp.front() * w.cp.front();
  if (w.micro_batches.empty())
    w.global_batch = int64_t{1} * run.sizes.micro_batches * replicas * w.micro_batch.front();
  else
    w.global_batch = 0;
  // The part of a step that is not the replayed pipeline stays as the run had it.
  Layout l;
  l.tp = w.tp.front(), l.cp = w.cp.front(), l.ep = w.ep.front(), l.pp = run.sizes.stages, l.dp = replicas;
  l.micro_batch = w.micro_batch.front(), l.sequence = w.sequence;
  TRY(problem, problem_of(w, l, run.schedule, run.sizes.chunks, run.sizes.micro_batches));
  TRY(span, span_of(*problem, times.stages));
  w.recorded_rest_ns = run.step_ns - static_cast<double>(*span);
  if (w.model.sized()) {
    StageBytes bytes;
    bytes.model = w.model, bytes.layout = l, bytes.options = w.rates.memory, bytes.measured = run.peak_bytes;
    bytes.full = w.recompute == RecomputeWish::kFull;
    answer.memory = bytes.compare_with(problem->schedule, own.layers);
    w.other_bytes = bytes.beyond;
  }
  if (!a.has("pp")) return {};
  // A link of another number of stages is none that was recorded.
  if (w.pp.size() > 1 || w.pp.front() != run.sizes.stages) {
    w.recorded->there.clear(), w.recorded->back.clear();
    for (Times& draw : w.resampled) draw.there.clear(), draw.back.clear();
  }
  return {};
}

// Reads a description from a file or, where one is given, from `text`.
Result<Model> described(const std::string& path, std::string text, bool tied) {
  if (text.empty()) TRY_OK(take(read_all(path, kMaxModelBytes), text));
  TRY(model, read_model(text, path));
  if (model->sized() && total_parameters(*model) > kMaxParameters)
    return make_error(ErrorCode::kBadInput, valid_utf8(path) + ": more than 10^15 parameters",
                      "a number of the description is too large");
  model->tied |= tied;
  return model;
}

// Layers without sizes, for a run whose model is not given.
Model nameless_model(int64_t layers) {
  Model m;
  m.type = "unknown";
  m.kinds = {{.name = "layer", .custom = true}};
  m.kind_of.assign(static_cast<size_t>(layers), 0);
  return m;
}

Status check_choices(const Arguments& a) {
  for (const std::string& name : a.given()) TRY_OK(check_choice(a, name));
  return {};
}

// Errors: kUsage for a flag that would do nothing.
Status check_used(const Arguments& a, const Model& model, bool recorded) {
  const auto refuse = [](const std::string& what, std::string hint = {}) {
    return make_error(ErrorCode::kUsage, what, std::move(hint));
  };
  const std::pair<const char*, const char*> exclude[] = {
      {"global-batch", "global-tokens"}, {"split", "budget"}, {"emit", "json"}, {"emit", "format"}};
  for (const auto& [one, other] : exclude)
    if (a.has(one) && a.has(other)) return refuse("--" + std::string(one) + " and --" + other + " exclude each other");
  if (!a.operands.empty() && a.has("model")) return refuse("the model is given twice: MODEL and --model");
  if (!recorded && a.has("layers"))
    return refuse("--layers goes with --from", "the description has the layers; --split prices a split");
  for (const char* flag : {"gpus", "gpus-per-node", "global-batch", "global-tokens", "mfu", "measured"})
    if (recorded && a.has(flag))
      return refuse("--" + std::string(flag) + " and --from exclude each other: the run says it",
                    "--tp, --pp, --cp and --micro-batches change the run's degrees");
  for (const char* flag : {"ep", "etp", "moe-imbalance", "capacity-factor"})
    if (!model.moe && a.has(flag) && a.get(flag) != "1")
      return refuse("--" + std::string(flag) + ": the model has no experts");
  for (const char* flag : {"memory", "reserve", "fragmentation", "optimizer", "attention", "loss", "compare"})
    if (!model.sized() && a.has(flag))
      return refuse("--" + std::string(flag) + " needs the sizes of the model", "--model config.json");
  return {};
}

// Reads "tp2 pp1 m8=1387ms,…": steps that were measured, of 1F1B with an even split. Degrees that are not named are 1,
// and dp is what the devices leave.
Result<std::vector<MeasuredStep>> parse_measured(const std::string& text, const Wish& w) {
  std::vector<MeasuredStep> out;
  for (const std::string_view one : split(text, ',')) {
    const auto bad = [&] {
      return make_error(ErrorCode::kUsage, "--measured " + valid_utf8(one) + " is no measured step",
                        "write the layout and its step: --measured \"tp2 pp1 m8=1387ms,tp2 pp1 m4=725.5ms\"");
    };
    MeasuredStep step;
    Layout& l = step.layout;
    l.sequence = w.sequence, l.dp = 0;
    const size_t equals = one.find('=');
    if (equals == std::string_view::npos) return bad();
    const auto ns = parse_duration(trim(one.substr(equals + 1)));
    if (!ns || *ns <= 0) return bad();
    step.step_ns = static_cast<double>(*ns);
    for (const std::string_view word : split(trim(one.substr(0, equals)), ' ')) {
      const size_t digits = std::min(word.find_first_of("0123456789"), word.size());
      const auto number = parse_int(word.substr(digits));
      const std::pair<std::string_view, int32_t*> names[] = {
          {"tp", &l.tp},   {"pp", &l.pp}, {"cp", &l.cp},           {"ep", &l.ep},
          {"etp", &l.etp}, {"dp", &l.dp}, {"mbs", &l.micro_batch}, {"m", &step.micro_batches}};
      const auto known = std::ranges::find(names, word.substr(0, digits), [](const auto& n) { return n.first; });
      if (word.empty()) continue;
      if (known == std::end(names) || !number || *number < 1 || *number > 65'536) return bad();
      *known->second = static_cast<int32_t>(*number);
    }
    if (l.dp == 0) l.dp = std::max(1, w.gpus / std::max(1, l.tp * l.pp * l.cp));
    if (l.pp > w.model.layers() || step.micro_batches * l.pp > 10'000'000) return bad();
    out.push_back(step);
  }
  return out;
}

// Takes the model: from its description or, of a run, by its number of layers alone.
Status take_model(const Arguments& a, const PlanGiven& given, const std::optional<RecordedRun>& run, Wish& w) {
  const std::string description = a.operands.empty() ? a.get("model") : a.operands[0];
  if (!description.empty() || !given.model.empty())
    return take(described(description, given.model, a.has("tied")), w.model);
  if (!run) return make_error(ErrorCode::kUsage, "which model?", "stageline plan config.json --gpus N --memory 80GiB");
  if (run->layers.empty())
    return make_error(ErrorCode::kUsage, "how many layers has the model?",
                      "--layers 32, or the description of the model");
  w.model = nameless_model(sum_over<int64_t>(run->layers));
  return {};
}

Status take_batch(const Arguments& a, Wish& w) {
  TRY(sequence, a.integer("seq", 4096, 1, 1'000'000'000));
  w.sequence = static_cast<double>(*sequence);
  TRY_OK(a.take("global-batch", 1, 1'000'000'000, w.global_batch));
  if (!a.has("global-tokens")) return {};
  TRY(tokens, a.integer("global-tokens", 1, 1, INT64_MAX));
  w.global_batch = std::max<int64_t>(1, *tokens / *sequence);
  return {};
}

// Where neither an option nor a run gives the number of devices, the fixed degrees do.
Status count_devices(Wish& w) {
  int64_t product = 1;
  for (const auto* list : {&w.tp, &w.cp, &w.pp, &w.dp}) product *= list->empty() ? 1 : list->front();
  if (w.pp.empty() && w.dp.empty())
    return make_error(ErrorCode::kUsage, "how many devices?", "--gpus N, or --tp, --pp and --dp");
  for (auto* list : {&w.tp, &w.dp, &w.pp})
    if (list->empty()) *list = {1};
  w.gpus = static_cast<int32_t>(std::min<int64_t>(product, 1'000'000));
  return {};
}

// Takes --recompute: a word, or into `counts` the layers that each virtual stage of --split recomputes.
Status take_recompute(const Arguments& a, Wish& w, std::optional<std::vector<int32_t>>& counts) {
  constexpr std::pair<std::string_view, RecomputeWish> kWords[] = {{"none", RecomputeWish::kNone},
                                                                   {"full", RecomputeWish::kFull},
                                                                   {"selective", RecomputeWish::kSelective},
                                                                   {"auto", RecomputeWish::kAuto}};
  if (a.has("recompute-per-stage")) w.per_rank = a.get("recompute-per-stage") == "yes";
  const std::string asked = a.get("recompute", "auto");
  for (const auto& [word, wish] : kWords)
    if (word == asked) {
      w.recompute = wish;
      return {};
    }
  return take(parse_split(asked, "recompute", 0), counts);
}

Status take_split(const Arguments& a, std::optional<std::vector<int32_t>> recomputed, Wish& w) {
  if (a.has("split")) {
    TRY_OK(take(parse_split(a.get("split"), "split", 0), w.split));
    if (const int64_t sum = sum_over<int64_t>(w.split); sum != w.model.layers())
      return make_error(ErrorCode::kUsage, "--split has " + std::to_string(sum) + " layers, the model has " +
                                               std::to_string(w.model.layers()));
  }
  if (!recomputed) return {};
  if (w.split.empty()) return make_error(ErrorCode::kUsage, "numbers of recomputed layers go with --split");
  if (recomputed->size() == 1) recomputed->assign(w.split.size(), recomputed->front());
  if (recomputed->size() != w.split.size())
    return make_error(ErrorCode::kUsage, "--recompute and --split have different numbers of virtual stages");
  for (size_t s = 0; s < w.split.size(); ++s) w.split_recompute.push_back({0, std::min(recomputed->at(s), w.split[s])});
  return {};
}

Result<Wish> wish_of(const Arguments& a, const Terminal& terminal, const PlanGiven& given, PlanAnswer& answer) {
  TRY_OK(check_choices(a));
  Wish w;
  std::optional<RecordedRun> run;
  int32_t replicas = 1;
  if (a.has("from") || given.run) {
    TRY(read, given.run ? recorded_run(*given.run, a, replicas) : read_run(a, terminal, replicas));
    run = std::move(*read);
    if (given.trace) run->peak_bytes = peak_memory_of_stages(*given.trace);
  }
  TRY_OK(take_model(a, given, run, w));
  TRY_OK(check_used(a, w.model, run.has_value()));
  w.framework = find_framework(a.get("framework", "any"));
  TRY_OK(a.take("gpus", 1, 1'000'000, w.gpus));
  TRY_OK(a.take("gpus-per-node", 1, 4096, w.per_node));
  TRY_OK(take_batch(a, w));
  TRY_OK(take_degrees(a, w));
  if (!a.has("gpus") && !run) TRY_OK(count_devices(w));
  // All layouts do the same work; otherwise the smallest batch would win.
  if (!run && w.global_batch == 0 && w.micro_batches.empty()) w.global_batch = int64_t{4} * w.gpus;
  TRY_OK(take_hardware(a, w));
  TRY_OK(take_memory(a, w));
  if (!a.has("memory") && a.has("hardware")) w.rates.memory.limit = w.rates.hardware.memory;
  std::optional<std::vector<int32_t>> recomputed;
  TRY_OK(take_recompute(a, w, recomputed));
  TRY_OK(take_split(a, std::move(recomputed), w));
  TRY(top, a.integer("top", 5, 1, 1000));
  w.top = static_cast<size_t>(*top);
  TRY(budget, a.duration_ns("budget", 10'000'000'000));
  w.work = std::max<int64_t>(1'000'000, *budget / 50);  // a replayed cell takes some 50 ns
  w.pareto = a.has("pareto");
  if (run) TRY_OK(take_run(*run, replicas, a, w, answer));
  if (a.has("measured")) {
    TRY(steps, parse_measured(a.get("measured"), w));
    TRY_OK(calibrate(w.model, *steps, w.rates));
    w.calibrated = true;
  }
  return w;
}

// Short names of modules, for tables; whole ones are in what is typed.
constexpr const char* kShort[kModules] = {"norm", "act", "up", "mlp", "attn"};

// "2×8 7": equal neighbours are one item.
template <class T>
std::string counted(const std::vector<T>& list, std::string (*text)(const T&)) {
  std::string out;
  for (size_t s = 0, end = 0; s < list.size(); s = end) {
    while (end < list.size() && list[end] == list[s]) ++end;
    append_item(out, (end - s > 1 ? std::to_string(end - s) + "×" : "") + text(list[s]), " ");
  }
  return out;
}

std::string recompute_text(const Candidate& c) {
  const auto text = [](const Recompute& r) {
    std::string own = r.full > 0 ? std::to_string(r.full) : "";
    for (size_t k = 0; k < kModules; ++k)
      if (r.modules >> k & 1) append_item(own, kShort[k], "+");
    return own.empty() ? "0" : own;
  };
  const bool none = std::ranges::all_of(c.plan.recompute, [](const Recompute& r) { return r == Recompute{}; });
  return none ? "" : counted<Recompute>(c.plan.recompute, text);
}

std::string layers_of(const Candidate& c) {
  return counted<int32_t>(c.plan.layers(), [](const int32_t& n) { return std::to_string(n); });
}

std::string gib(double bytes) { return fixed(bytes / kGiB, 1); }
// Rounds up, so that the bytes are enough.
std::string gib_up(double bytes) { return fixed(std::ceil(bytes / kGiB * 10) / 10, 1); }

// "tp 8 · pp 2 · dp 4 · ep 8": symbols of the field, the same in both languages.
std::string degrees_text(const Wish& w, const Candidate& c) {
  std::string out = "tp " + std::to_string(c.layout.tp) + " · pp " + std::to_string(c.layout.pp) + " · dp " +
                    std::to_string(c.layout.dp);
  if (c.layout.cp > 1) out += " · cp " + std::to_string(c.layout.cp);
  if (w.model.moe) out += " · ep " + std::to_string(c.layout.ep);
  return out;
}

Args shape_args(const Wish& w, const Candidate& c) {
  Args args;
  args.set("degrees", degrees_text(w, c));
  if (c.layout.pp > 1) args.set("schedule", c.schedule);
  if (c.chunks > 1) args.set("chunks", int64_t{c.chunks});
  args.count("m", int64_t{c.micro_batches}).set("mbs", int64_t{c.layout.micro_batch}).set("layers", layers_of(c));
  args.set("recompute", recompute_text(c));
  args.set("step", human_duration(static_cast<double>(c.step_ns))).set("error", human_duration(c.error_ns));
  args.set("peak", gib(c.peak_bytes)).set("stage", int64_t{c.peak_rank});
  return args;
}

// Without a pipeline there is no schedule.
std::string schedule_of(const Candidate& c) { return c.layout.pp > 1 ? c.schedule : ""; }

Table plans_table(const PlanAnswer& a) {
  Table table(declared_table("plan/plans"));
  int64_t rank = 0;
  for (const Candidate& c : a.found.plans)
    table.add_row({++rank, int64_t{c.layout.tp}, int64_t{c.layout.pp}, int64_t{c.layout.cp}, int64_t{c.layout.ep},
                   int64_t{c.layout.dp}, schedule_of(c), int64_t{c.chunks}, int64_t{c.layout.micro_batch},
                   int64_t{c.micro_batches}, layers_of(c), recompute_text(c), c.step_ns, std::llround(c.error_ns),
                   c.mfu, c.bubble, a.wish.model.sized() ? c.peak_bytes / kGiB : kNaN, int64_t{c.peak_rank}, c.gap()});
  return table;
}

Table stages_table(const PlanAnswer& a, const Candidate& c) {
  Schedule shape;
  shape.sizes.stages = c.layout.pp, shape.sizes.chunks = c.chunks;
  if (const ScheduleDef* def = find_schedule(c.schedule))
    if (const auto made = def->make({.stages = c.layout.pp, .micro_batches = 1, .chunks = c.chunks}))
      shape.layout = made->layout;
  return stage_bytes_table(shape, c.plan.layers(), c.peaks, a.wish.rates.memory.limit);
}

// Lists the bytes of a rank in a sentence.
Text parts_text(const RankPeak& p) {
  Args args;
  args.set("states", gib(p.states.sum())).set("activations", gib(p.activations)).set("scratch", gib(p.scratch));
  if (p.recompute > 0) args.set("recompute", gib(p.recompute));
  if (p.head > 0) args.set("head", gib(p.head));
  const Text parts = words("plan.parts", args);
  return p.transient > 0 ? words("plan.parts.transient", args.set("parts", parts).set("transient", gib(p.transient)))
                         : parts;
}

void append_stage_json(JsonWriter& json, const Wish& w, const Candidate& c, int32_t r) {
  const RankPeak& p = c.peaks[r];
  const PeakBar bar = peak_bar(w.model, c.layout, w.rates.memory);
  const auto whole = [](double bytes) { return static_cast<int64_t>(std::llround(bytes)); };
  json.begin_object().field("rank", r);
  json.field("parameters", whole(p.states.parameters)).field("gradients", whole(p.states.gradients));
  json.field("optimizer", whole(p.states.optimizer)).field("activations", whole(p.activations));
  json.list("held", p.held).field("recompute", whole(p.recompute)).field("head", whole(p.head));
  json.field("scratch", whole(p.scratch));
  json.field("transient", whole(p.transient)).field("other", whole(p.other)).field("peak", whole(p.sum()));
  json.field("low", whole(p.sum() * bar.low)).field("high", whole(p.sum() * bar.high)).field("at", p.cell).end_object();
}

void append_plan_json(JsonWriter& json, const PlanAnswer& a, const Candidate& c, int64_t rank) {
  const Layout& l = c.layout;
  json.begin_object();
  if (rank > 0) json.field("rank", rank);
  json.field("tp", l.tp).field("pp", l.pp).field("cp", l.cp).field("ep", l.ep).field("etp", l.etp).field("dp", l.dp);
  json.field("micro_batch_size", l.micro_batch).field("micro_batches", c.micro_batches);
  json.maybe("schedule", l.pp > 1, c.schedule).field("chunks", c.chunks).maybe("group", c.group > 0, c.group);
  json.list("layers", c.plan.layers());
  json.objects("recompute", c.plan.recompute, [&](const Recompute& r) {
    json.field("kind", r.full > 0 ? "full" : r.modules ? "selective" : "none").field("layers", r.full);
    json.key("modules").begin_array();
    for (size_t k = 0; k < kModules; ++k)
      if (r.modules >> k & 1) json.value(module_name(static_cast<Module>(k), a.wish.model.moe.has_value()));
    json.end_array();
  });
  json.field("step_ns", c.step_ns).field("step_se_ns", std::llround(c.error_ns));
  json.field("span_ns", c.plan.span_ns);
  const double tokens = a.wish.sequence * l.micro_batch * c.micro_batches / (double{1} * l.tp * l.cp * l.pp);
  json.field("tokens_s_gpu", c.step_ns > 0 ? tokens / (static_cast<double>(c.step_ns) / 1e9) : kNaN);
  json.field("mfu", c.mfu).field("bubble", c.bubble).field("gap", c.gap());
  const bool sized = a.wish.model.sized();
  json.maybe("peak_bytes", sized, std::llround(c.peak_bytes));
  json.maybe("needed_bytes", sized, std::llround(c.needed_bytes));
  json.key("stages").begin_array();
  for (size_t r = 0; sized && r < c.peaks.size(); ++r) append_stage_json(json, a.wish, c, static_cast<int32_t>(r));
  json.end_array().key("emit").begin_object();
  for (const Framework& f : frameworks())
    if (const auto text = emit_plan(f.name, a.wish, c)) json.field(f.name, *text);
  json.end_object().end_object();
}

// The times of layers, embedding and head that the first plan rests on.
void append_times_json(JsonWriter& json, const Wish& w, const Candidate& c) {
  const Times times = w.recorded ? *w.recorded : estimated_times(w.model, c.layout, w.rates);
  const auto append = [&](const std::string& of, const LayerTime& t) {
    json.begin_object().field("of", of).field("forward_ns", t.forward).field("input_ns", t.input);
    json.field("weight_ns", t.weight).end_object();
  };
  json.key("parts").begin_array();
  for (size_t k = 0; k < times.kinds.size(); ++k) append(w.model.kinds[k].name, times.kinds[k]);
  append("embedding", times.embedding), append("head", times.head);
  json.end_array();
}

// Returns how much faster than the first plan a plan of the whole space may be.
double gap_of(const Found& found) {
  const auto step = static_cast<double>(found.plans.front().step_ns);
  return step > 0 ? 1 - static_cast<double>(found.bound_ns) / step : 0;
}

}  // namespace

Result<std::vector<int32_t>> parse_split(const std::string& text, const char* flag, int32_t min) {
  std::vector<int32_t> out;
  const auto bad = [&] {
    return make_error(ErrorCode::kUsage, "--" + std::string(flag) + " " + valid_utf8(text) + " is no list of layers",
                      "write the layers of every virtual stage: 7,8*14,7");
  };
  for (const std::string_view word : split(text, ',')) {
    const size_t star = word.find('*');
    const auto layers = parse_int(trim(word.substr(0, star)));
    const auto count =
        star == std::string_view::npos ? std::optional<int64_t>(1) : parse_int(trim(word.substr(star + 1)));
    if (!layers || !count || *layers < min || *layers > kMaxModelLayers || *count < 1 ||
        *count + static_cast<int64_t>(out.size()) > 65'536)
      return bad();
    out.insert(out.end(), static_cast<size_t>(*count), static_cast<int32_t>(*layers));
  }
  return out;
}

Table stage_bytes_table(const Schedule& shape, const std::vector<int32_t>& layers, const std::vector<RankPeak>& peaks,
                        double limit) {
  Table table(declared_table("plan/stages"));
  for (size_t r = 0; r < peaks.size(); ++r) {
    const RankPeak& p = peaks[r];
    std::string own, held;
    for (int32_t k = 0; k < shape.sizes.chunks; ++k)
      append_item(own, std::to_string(layers[virtual_stage(shape, static_cast<int32_t>(r), k)]), "+");
    for (const int32_t n : p.held) append_item(held, std::to_string(n), "+");
    table.add_row({static_cast<int64_t>(r), own, held, p.states.sum() / kGiB, p.activations / kGiB, p.recompute / kGiB,
                   p.head / kGiB, p.scratch / kGiB, p.transient / kGiB, p.other / kGiB, p.sum() / kGiB,
                   limit > 0 ? (limit - p.sum()) / kGiB : kNaN});
  }
  return table;
}

Result<std::optional<StageBytes>> stage_bytes_of(const Arguments& a, int32_t dp, const std::string& model) {
  if (!a.has("model")) {
    for (const char* flag : {"memory", "seq", "micro-batch-size", "optimizer", "ep", "recompute"})
      if (a.has(flag))
        return make_error(ErrorCode::kUsage, "--" + std::string(flag) + " goes with --model, which says what is held",
                          "--model config.json");
    return std::optional<StageBytes>();
  }
  TRY_OK(check_choices(a));
  Wish w;
  w.framework = find_framework("any");
  TRY_OK(take(described(a.get("model"), model, false), w.model));
  if (!w.model.sized())
    return make_error(ErrorCode::kBadInput, valid_utf8(a.get("model")) + ": the sizes of the model are missing");
  TRY_OK(take_memory(a, w));
  StageBytes out;
  out.model = std::move(w.model), out.options = w.rates.memory, out.full = a.get("recompute") == "full";
  TRY(sequence, a.integer("seq", 4096, 1, 1'000'000'000));
  out.layout.sequence = static_cast<double>(*sequence), out.layout.dp = dp;
  TRY_OK(a.take("micro-batch-size", 1, 1'000'000, out.layout.micro_batch));
  TRY_OK(a.take("tp", 1, 1'000'000, out.layout.tp));
  TRY_OK(a.take("ep", 1, 1'000'000, out.layout.ep));
  return std::optional(std::move(out));
}

Result<std::optional<StageBytes>> stage_bytes_of(const Arguments& a, const Trace& ran, const std::string& model) {
  TRY(bytes, stage_bytes_of(a, std::max(1, extent_of(ran).dp_count), model));
  if (*bytes) (*bytes)->measured = peak_memory_of_stages(ran);
  return bytes;
}

Result<PlanAnswer> answer_plan(const Arguments& arguments, const Terminal& terminal, const PlanGiven& given) {
  PlanAnswer a;
  TRY(wish, wish_of(arguments, terminal, given, a));
  a.from = given.run ? "run" : arguments.get("from");
  a.wish = std::move(*wish);
  TRY(found, find_plans(a.wish));
  a.found = std::move(*found);
  if (arguments.has("compare")) {
    Layout l;
    memory_estimates::Input input;
    input.world = a.wish.gpus;
    input.distributed = a.wish.rates.memory.sharding != Sharding::kReplicated;
    const Candidate* c = !a.found.plans.empty() ? &a.found.plans.front()
                         : a.found.shortfall    ? &a.found.shortfall->candidate
                                                : nullptr;
    if (c) l = c->layout, input.chunks = c->chunks, input.micro_batches = c->micro_batches;
    if (c) a.compared = memory_estimates::estimates(a.wish.model, l, input);
  }
  a.limited = a.wish.rates.memory.limit > 0, a.sharding_given = arguments.has("optimizer");
  return a;
}

std::vector<Table> plan_tables(const PlanAnswer& a) {
  std::vector<Table> out;
  if (!a.found.plans.empty()) {
    out.push_back(plans_table(a));
    if (a.wish.model.sized()) out.push_back(stages_table(a, a.found.plans.front()));
  }
  if (!a.memory.empty()) out.push_back(memory_table(a.memory));
  if (!a.found.pareto.empty()) {
    Table table(declared_table("plan/pareto"));
    for (const Candidate& c : a.found.pareto)
      table.add_row({c.peak_bytes / kGiB, c.step_ns, degrees_text(a.wish, c), schedule_of(c), int64_t{c.chunks},
                     layers_of(c), recompute_text(c)});
    out.push_back(std::move(table));
  }
  if (!a.found.sensitivity.empty()) {
    Table table(declared_table("plan/sensitivity"));
    for (const Sensitivity& s : a.found.sensitivity)
      table.add_row({s.parameter, s.elasticity, s.flips_at > 0 ? s.flips_at : kNaN});
    out.push_back(std::move(table));
  }
  if (!a.compared.empty()) {
    Table table(declared_table("plan/compare"));
    for (const memory_estimates::Estimate& one : a.compared)
      for (const auto& [name, bytes] : one.bytes)
        table.add_row({one.tool, name, static_cast<int64_t>(std::llround(bytes))});
    out.push_back(std::move(table));
  }
  return out;
}

Text plan_headline(const PlanAnswer& a) {
  const bool fits = !a.found.plans.empty();
  Args args = shape_args(a.wish, fits ? a.found.plans.front() : a.found.shortfall->candidate);
  if (!a.wish.model.sized()) return words("plan.best", args);
  args.set("best", words("plan.best", args));
  return words(fits ? "plan.best.peak" : "plan.best.short", args);
}

std::string plan_text(const PlanAnswer& a, const Terminal& terminal) {
  std::string out;
  const auto line = [&](const char* name, const Args& args = {}) { out += terminal.say(name, args) + "\n"; };
  if (a.found.plans.empty()) {
    if (!a.found.shortfall) {
      line("plan.none", Args().flag("tried", a.found.tried > 0));
      return out;
    }
    const Shortfall& s = *a.found.shortfall;
    Args args = shape_args(a.wish, s.candidate);
    const RankPeak& peak = s.candidate.peaks[s.rank];
    args.flag("complete", a.found.complete)
        .set("margin", gib(s.candidate.needed_bytes - peak.sum() - a.wish.rates.memory.reserve));
    args.set("need", gib_up(s.candidate.needed_bytes))
        .set("limit", gib(a.wish.rates.memory.limit))
        .set("rank", int64_t{s.rank});
    args.set("parts", parts_text(peak)).set("reserve", gib(a.wish.rates.memory.reserve));
    line("plan.short", args);
    for (const Shortfall::Fix& fix : s.fixes)
      line("plan.short.fix", Args().set("change", fix.change).set("need", gib_up(fix.needed)));
    line("plan.short.memory", args);
    for (const Table& table : plan_tables(a))
      out += "\n" + format_table_text(table, terminal.table_width, terminal.colour_out, SIZE_MAX, false, 0,
                                      terminal.chinese());
    return out;
  }
  out += plan_headline(a).in(terminal.chinese()) + "\n";
  const Candidate& first = a.found.plans.front();
  Args basis = Args().set("hardware", a.wish.rates.hardware.name).set("run", a.from);
  basis.flag("unchecked", a.wish.model.sized() && !a.limited).flag("unsized", !a.wish.model.sized());
  basis.set("error", percent(first.error_ns / static_cast<double>(first.step_ns)));
  line(!a.from.empty()     ? "plan.basis.recorded"
       : a.wish.calibrated ? "plan.basis.measured"
                           : "plan.basis.estimated",
       basis);
  for (const auto& [rank, share] : a.slow)
    line("plan.slow", Args().set("stage", int64_t{rank}).set("share", percent(share)).set("run", shell_word(a.from)));
  if (!a.memory.empty()) out += std::string(trim(measured_words(a.memory).in(terminal.chinese()))) + "\n";
  if (a.wish.model.sized() && !a.sharding_given && a.wish.framework->sharding != Sharding::kDistributed)
    line("plan.sharding", Args().set("framework", std::string(a.wish.framework->name)));
  Args searched;
  searched.count("tried", a.found.tried).count("layouts", a.found.layouts).count("rejected", a.found.rejected);
  searched.flag("complete", a.found.complete).set("gap", percent(gap_of(a.found)));
  line("plan.searched", searched);
  for (const std::string& key : a.wish.model.notes) line("plan.not_modelled", Args().set("key", key));
  for (const Table& table : plan_tables(a))
    out += "\n" + table_title(table, terminal.chinese()) + "\n" +
           format_table_text(table, terminal.table_width, terminal.colour_out, SIZE_MAX, false, 0, terminal.chinese());
  bool typed = false;
  for (const Framework& f : frameworks()) {
    if (a.wish.framework->name != "any" && f.name != a.wish.framework->name) continue;
    if (const auto text = emit_plan(f.name, a.wish, a.found.plans.front())) {
      out += "\n" + terminal.say("plan.type", Args().set("framework", std::string(f.name))) + "\n" + *text;
      typed = true;
      if (a.wish.framework->name == "any") break;
    }
  }
  if (!typed) out += "\n" + terminal.say("plan.type.none") + "\n";
  return out;
}

std::string plan_json(const PlanAnswer& a) {
  JsonWriter json;
  const Wish& w = a.wish;
  json.begin_object().field("schema", "stageline-plan-1").key("model").begin_object();
  json.field("type", w.model.type).field("layers", w.model.layers()).field("hidden_size", w.model.hidden);
  json.field("parameters", std::llround(total_parameters(w.model)))
      .field("flops_per_token", total_flops(w.model, w.sequence));
  json.end_object().key("basis").begin_object().field("times", a.from.empty() ? "estimated" : "recorded");
  json.maybe("run", !a.from.empty(), a.from).field("hardware", w.rates.hardware.name).list("notes", w.model.notes);
  json.objects("slow_stages", a.slow,
               [&](const auto& slow) { json.field("stage", slow.first).field("longer", slow.second); });
  json.objects("memory", a.memory, [&](const MeasuredStage& s) {
    json.field("stage", s.stage).field("measured_bytes", std::llround(s.measured_bytes));
    json.field("model_bytes", std::llround(s.model_bytes));
  });
  if (!a.found.plans.empty()) append_times_json(json, w, a.found.plans.front());
  json.end_object().maybe("limit_bytes", w.rates.memory.limit > 0, std::llround(w.rates.memory.limit));
  json.key("searched").begin_object().field("configurations", a.found.tried).field("of", a.found.layouts);
  json.field("rejected", a.found.rejected).field("complete", a.found.complete).field("bound_ns", a.found.bound_ns);
  json.field("gap", a.found.plans.empty() ? kNaN : gap_of(a.found)).end_object();
  int64_t rank = 0;
  json.each("plans", a.found.plans, [&](const Candidate& c) { append_plan_json(json, a, c, ++rank); });
  json.objects("pareto", a.found.pareto, [&](const Candidate& c) {
    json.field("peak_bytes", std::llround(c.peak_bytes)).field("step_ns", c.step_ns).key("plan");
    append_plan_json(json, a, c, 0);
  });
  json.objects("sensitivity", a.found.sensitivity, [&](const Sensitivity& s) {
    json.field("parameter", s.parameter).field("elasticity", s.elasticity);
    json.maybe("flips_at", s.flips_at > 0, s.flips_at);
  });
  json.key("compare").begin_object();
  for (const memory_estimates::Estimate& one : a.compared) {
    json.key(one.tool).begin_object();
    for (const auto& [name, bytes] : one.bytes) json.field(name, std::llround(bytes));
    json.end_object();
  }
  json.end_object().key("infeasible");
  if (a.found.shortfall && a.found.plans.empty()) {
    const Shortfall& s = *a.found.shortfall;
    json.begin_object().field("stage", s.rank).field("excess_bytes", std::llround(s.excess_bytes)).key("parts");
    append_stage_json(json, w, s.candidate, s.rank);
    json.objects("fixes", s.fixes, [&](const Shortfall::Fix& fix) {
      json.field("change", fix.change).field("needed", std::llround(fix.needed));
    });
    json.key("plan");
    append_plan_json(json, a, s.candidate, 0);
    json.end_object();
  } else {
    json.null();
  }
  json.end_object();
  return json.take() + "\n";
}

Result<std::string> planned_json(const std::vector<std::string>& flags, const PlanGiven& given) {
  TRY(asked, parse_arguments(*find_command("plan"), flags));
  TRY(answer, answer_plan(*asked, Terminal{}, given));
  std::string json = plan_json(*answer);
  json.pop_back();  // the line's end
  return json;
}

Result<ReportedPlan> reported_plan(const Arguments& arguments) {
  TRY(answer, answer_plan(arguments, Terminal{}));
  return ReportedPlan{plan_json(*answer), plan_text(*answer, Terminal{})};
}

}  // namespace stageline
