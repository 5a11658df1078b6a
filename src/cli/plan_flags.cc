#include "cli/plan_flags.h"

#include "base/input.h"
#include "cli/model_flags.h"
#include "schedules/registry.h"

namespace stageline {
namespace {

using namespace plan;

Status take_list(const Arguments& arguments, const char* flag, std::vector<int32_t>& into) {
  if (!arguments.has(flag)) return {};
  into.clear();
  const std::string list = arguments.get(flag);
  for (const std::string_view word : split(list, ',')) {
    const auto number = parse_int(trim(word));
    if (!number || *number < 1 || *number > 1'000'000)
      return make_error(ErrorCode::kUsage, "--" + std::string(flag) + " is one number or a list: 2,4,8");
    into.push_back(static_cast<int32_t>(*number));
  }
  return {};
}

Status take_hardware(const Arguments& arguments, Wish& wish) {
  const std::string name = arguments.get("hardware", "H100-SXM");
  bool known = false;
  std::string list;
  for (const Hardware& h : known_hardware()) {
    append_item(list, h.name);
    if (h.name == name) wish.rates.hardware = h, known = true;
  }
  if (!known) {
    if (!name.ends_with(".json"))
      return make_error(ErrorCode::kUsage, "no device \"" + valid_utf8(name) + "\" is known",
                        "known: " + list + ", or a FILE.json");
    TRY(text, read_all(name, kMaxModelBytes));
    TRY(read, read_hardware(*text, name));
    wish.rates.hardware = *read;
  }
  wish.rates.per_node = wish.per_node;
  return take_share(arguments, "mfu", 0.01, 1, wish.rates.mfu);
}

Status take_degrees(const Arguments& arguments, Wish& wish) {
  for (const auto& [flag, list] :
       {std::pair("tp", &wish.tp), std::pair("cp", &wish.cp), std::pair("ep", &wish.ep), std::pair("etp", &wish.etp),
        std::pair("pp", &wish.pp), std::pair("dp", &wish.dp), std::pair("micro-batch-size", &wish.micro_batch),
        std::pair("chunks", &wish.chunks), std::pair("micro-batches", &wish.micro_batches)})
    TRY_OK(take_list(arguments, flag, *list));
  // Context parallelism saves nothing with short sequences.
  if (wish.cp.empty() && wish.sequence <= 16'384) wish.cp = {1};
  const std::string wanted = arguments.get("schedule");
  for (const std::string_view word : split(wanted, ',')) {
    if (word.empty()) continue;
    TRY(schedule, schedule_named(trim(word)));
    wish.schedules.emplace_back((*schedule)->name);
  }
  return {};
}

// Layers without sizes, for a run whose model is not given.
Model nameless_model(int64_t layers) {
  Model model{.type = "unknown", .kinds = {{.name = "layer", .custom = true}}};
  model.kind_of.assign(static_cast<size_t>(layers), 0);
  return model;
}

// Errors: kUsage for a flag that would do nothing.
Status check_used(const Arguments& arguments, const Model& model, bool recorded) {
  const auto refuse = [](const std::string& what, std::string hint = {}) {
    return make_error(ErrorCode::kUsage, what, std::move(hint));
  };
  const std::pair<const char*, const char*> exclude[] = {
      {"global-batch", "global-tokens"}, {"split", "budget"}, {"emit", "json"}, {"emit", "format"}};
  for (const auto& [one, other] : exclude)
    if (arguments.has(one) && arguments.has(other))
      return refuse("--" + std::string(one) + " and --" + other + " exclude each other");
  if (!arguments.operands.empty() && arguments.has("model"))
    return refuse("the model is given twice: MODEL and --model");
  if (!recorded && arguments.has("layers"))
    return refuse("--layers goes with --from", "the description has the layers; --split prices a split");
  for (const char* flag : {"gpus", "gpus-per-node", "global-batch", "global-tokens", "mfu", "measured"})
    if (recorded && arguments.has(flag))
      return refuse("--" + std::string(flag) + " and --from exclude each other: the run says it",
                    "--tp, --pp, --cp and --micro-batches change the run's degrees");
  for (const char* flag : {"ep", "etp", "moe-imbalance", "capacity-factor"})
    if (!model.moe && arguments.has(flag) && arguments.get(flag) != "1")
      return refuse("--" + std::string(flag) + ": the model has no experts");
  for (const char* flag : {"memory", "reserve", "fragmentation", "optimizer", "attention", "loss", "compare"})
    if (!model.sized() && arguments.has(flag))
      return refuse("--" + std::string(flag) + " needs the sizes of the model", "--model config.json");
  return {};
}

// Takes the model: from its description or, of a run, by its number of layers alone.
Status take_model(const Arguments& arguments, const PlanGiven& given, const std::optional<RecordedRun>& run,
                  Wish& wish) {
  const std::string description = arguments.operands.empty() ? arguments.get("model") : arguments.operands[0];
  if (!description.empty() || !given.model.empty())
    return take(described_model(description, given.model, arguments.has("tied")), wish.model);
  if (!run) return make_error(ErrorCode::kUsage, "which model?", "stageline plan config.json --gpus N --memory 80GiB");
  if (run->layers.empty())
    return make_error(ErrorCode::kUsage, "how many layers has the model?",
                      "--layers 32, or the description of the model");
  wish.model = nameless_model(sum_over<int64_t>(run->layers));
  return {};
}

Status take_batch(const Arguments& arguments, Wish& wish) {
  TRY(sequence, arguments.integer("seq", 4096, 1, 1'000'000'000));
  wish.sequence = static_cast<double>(*sequence);
  TRY_OK(arguments.take("global-batch", 1, 1'000'000'000, wish.global_batch));
  if (!arguments.has("global-tokens")) return {};
  TRY(tokens, arguments.integer("global-tokens", 1, 1, INT64_MAX));
  wish.global_batch = std::max<int64_t>(1, *tokens / *sequence);
  return {};
}

// Where neither an option nor a run gives the number of devices, the fixed degrees do.
Status count_devices(Wish& wish) {
  int64_t product = 1;
  for (const auto* list : {&wish.tp, &wish.cp, &wish.pp, &wish.dp}) product *= list->empty() ? 1 : list->front();
  if (wish.pp.empty() && wish.dp.empty())
    return make_error(ErrorCode::kUsage, "how many devices?", "--gpus N, or --tp, --pp and --dp");
  for (auto* list : {&wish.tp, &wish.dp, &wish.pp})
    if (list->empty()) *list = {1};
  wish.gpus = static_cast<int32_t>(std::min<int64_t>(product, 1'000'000));
  return {};
}

constexpr std::pair<std::string_view, RecomputeWish> kRecomputes[] = {{"none", RecomputeWish::kNone},
                                                                      {"full", RecomputeWish::kFull},
                                                                      {"selective", RecomputeWish::kSelective},
                                                                      {"auto", RecomputeWish::kAuto}};

// Takes --recompute: a word, or into `counts` the layers that each virtual stage of --split recomputes.
Status take_recompute(const Arguments& arguments, Wish& wish, std::optional<std::vector<int32_t>>& counts) {
  if (arguments.has("recompute-per-stage")) wish.per_rank = arguments.get("recompute-per-stage") == "yes";
  const std::string asked = arguments.get("recompute", "auto");
  for (const auto& [word, kind] : kRecomputes)
    if (word == asked) {
      wish.recompute = kind;
      return {};
    }
  return take(parse_split(asked, "recompute", 0), counts);
}

Status take_split(const Arguments& arguments, std::optional<std::vector<int32_t>> recomputed, Wish& wish) {
  if (arguments.has("split")) {
    TRY_OK(take(parse_split(arguments.get("split"), "split", 0), wish.split));
    if (const int64_t sum = sum_over<int64_t>(wish.split); sum != wish.model.layers())
      return make_error(ErrorCode::kUsage, "--split has " + std::to_string(sum) + " layers, the model has " +
                                               std::to_string(wish.model.layers()));
  }
  if (!recomputed) return {};
  if (wish.split.empty()) return make_error(ErrorCode::kUsage, "numbers of recomputed layers go with --split");
  if (recomputed->size() == 1) recomputed->assign(wish.split.size(), recomputed->front());
  if (recomputed->size() != wish.split.size())
    return make_error(ErrorCode::kUsage, "--recompute and --split have different numbers of virtual stages");
  for (size_t s = 0; s < wish.split.size(); ++s)
    wish.split_recompute.push_back({0, std::min(recomputed->at(s), wish.split[s])});
  return {};
}

}  // namespace

Result<std::vector<MeasuredStep>> parse_measured(const std::string& text, const Wish& wish) {
  std::vector<MeasuredStep> out;
  for (const std::string_view measured : split(text, ',')) {
    const auto bad = [&] {
      return make_error(ErrorCode::kUsage, "--measured " + valid_utf8(measured) + " is no measured step",
                        "write the layout and its step: --measured \"tp2 pp1 m8=1387ms,tp2 pp1 m4=725.5ms\"");
    };
    MeasuredStep step;
    Layout& layout = step.layout;
    layout.sequence = wish.sequence, layout.dp = 0;
    const size_t equals = measured.find('=');
    if (equals == std::string_view::npos) return bad();
    const auto ns = parse_duration(trim(measured.substr(equals + 1)));
    if (!ns || *ns <= 0) return bad();
    step.step_ns = static_cast<double>(*ns);
    for (const std::string_view word : split(trim(measured.substr(0, equals)), ' ')) {
      const size_t digits = std::min(word.find_first_of("0123456789"), word.size());
      const auto number = parse_int(word.substr(digits));
      const std::pair<std::string_view, int32_t*> names[] = {
          {"tp", &layout.tp},   {"pp", &layout.pp}, {"cp", &layout.cp},           {"ep", &layout.ep},
          {"etp", &layout.etp}, {"dp", &layout.dp}, {"mbs", &layout.micro_batch}, {"m", &step.micro_batches}};
      const auto known = std::ranges::find(names, word.substr(0, digits), [](const auto& n) { return n.first; });
      if (word.empty()) continue;
      if (known == std::end(names) || !number || *number < 1 || *number > 65'536) return bad();
      *known->second = static_cast<int32_t>(*number);
    }
    if (layout.dp == 0) layout.dp = std::max(1, wish.gpus / std::max(1, layout.tp * layout.pp * layout.cp));
    if (layout.pp > wish.model.layers() || step.micro_batches * layout.pp > 10'000'000) return bad();
    out.push_back(step);
  }
  return out;
}

Result<Wish> wish_of(const Arguments& arguments, const Terminal& terminal, const PlanGiven& given, PlanAnswer& answer) {
  TRY_OK(check_choices(arguments));
  Wish wish;
  std::optional<RecordedRun> run;
  TRY_OK(take(run_of_plan(arguments, terminal, given), run));
  TRY_OK(take_model(arguments, given, run, wish));
  TRY_OK(check_used(arguments, wish.model, run.has_value()));
  wish.framework = find_framework(arguments.get("framework", "any"));
  TRY_OK(arguments.take("gpus", 1, 1'000'000, wish.gpus));
  TRY_OK(arguments.take("gpus-per-node", 1, 4096, wish.per_node));
  TRY_OK(take_batch(arguments, wish));
  TRY_OK(take_degrees(arguments, wish));
  if (!arguments.has("gpus") && !run) TRY_OK(count_devices(wish));
  // All layouts do the same work; otherwise the smallest batch would win.
  if (!run && wish.global_batch == 0 && wish.micro_batches.empty()) wish.global_batch = int64_t{4} * wish.gpus;
  TRY_OK(take_hardware(arguments, wish));
  TRY_OK(take_memory(arguments, wish));
  if (!arguments.has("memory") && arguments.has("hardware")) wish.rates.memory.limit = wish.rates.hardware.memory;
  std::optional<std::vector<int32_t>> recomputed;
  TRY_OK(take_recompute(arguments, wish, recomputed));
  TRY_OK(take_split(arguments, std::move(recomputed), wish));
  TRY(top, arguments.integer("top", 5, 1, 1000));
  wish.top = static_cast<size_t>(*top);
  TRY(budget, arguments.duration_ns("budget", 10'000'000'000));
  wish.work = std::max<int64_t>(1'000'000, *budget / 50);  // a replayed cell takes some 50 ns
  wish.pareto = arguments.has("pareto");
  if (run) TRY_OK(take_run(std::move(*run), arguments, wish, answer));
  if (arguments.has("measured")) {
    TRY(steps, parse_measured(arguments.get("measured"), wish));
    TRY_OK(calibrate(wish.model, *steps, wish.rates));
    wish.calibrated = true;
  }
  return wish;
}

}  // namespace stageline
