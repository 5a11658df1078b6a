#include "cli/model_flags.h"

#include "base/input.h"
#include "model/run_extent.h"
#include "profile/memory_blocks.h"

namespace stageline {
namespace {

using namespace plan;

constexpr double kMaxParameters = 1e15;  // a step of a model with 10^18 takes more nanoseconds than 64 bits hold

constexpr std::pair<std::string_view, Sharding> kShardings[] = {{"distributed", Sharding::kDistributed},
                                                                {"replicated", Sharding::kReplicated},
                                                                {"zero2", Sharding::kZero2},
                                                                {"zero3", Sharding::kZero3},
                                                                {"fsdp", Sharding::kZero3}};
// Bytes of a number.
constexpr std::pair<std::string_view, double> kWidths[] = {{"fp32", 4},  {"bf16", 2}, {"fp16", 2},
                                                           {"int16", 2}, {"fp8", 1},  {"none", 0}};

Status take_size(const Arguments& arguments, const char* flag, double& into) {
  if (!arguments.has(flag)) return {};
  const auto size = parse_size(arguments.get(flag));
  if (!size || (*size == 0 && std::string_view(flag) == "memory"))
    return make_error(ErrorCode::kUsage,
                      "--" + std::string(flag) + " " + valid_utf8(arguments.get(flag)) + " is not a size",
                      "write it with its unit: 80GiB, 80GB, 512MiB, 512MB");
  into = *size;
  return {};
}

// Takes the type of `count` numbers as their bytes.
Status take_width(const Arguments& arguments, const char* flag, double count, double& into) {
  if (!arguments.has(flag)) return {};
  const auto* const width =
      std::ranges::find(kWidths, arguments.get(flag), [](const auto& known) { return known.first; });
  if (width == std::end(kWidths))
    return make_error(ErrorCode::kUsage, "--" + std::string(flag) + " is fp32, bf16, fp16, int16, fp8 or none");
  into = width->second * count;
  return {};
}

}  // namespace

std::optional<double> parse_size(std::string_view text) {
  constexpr double kGiB = 1 << 30;
  constexpr std::pair<std::string_view, double> kUnits[] = {{"GiB", kGiB}, {"GB", 1e9},          {"MiB", 1 << 20},
                                                            {"MB", 1e6},   {"TiB", kGiB * 1024}, {"B", 1}};
  for (const auto& [unit, bytes] : kUnits)
    if (text.ends_with(unit))
      if (const auto number = parse_double(trim(text.substr(0, text.size() - unit.size()))))
        return *number >= 0 && *number * bytes < 1e18 ? std::optional(*number * bytes) : std::nullopt;
  return std::nullopt;
}

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

Status take_share(const Arguments& arguments, const char* flag, double min, double max, double& into) {
  if (!arguments.has(flag)) return {};
  const auto number = parse_double(arguments.get(flag));
  if (!number || *number < min || *number > max)
    return make_error(ErrorCode::kUsage,
                      "--" + std::string(flag) + " is a number from " + repr_double(min) + " to " + repr_double(max));
  into = *number;
  return {};
}

Status take_memory(const Arguments& arguments, Wish& wish) {
  MemoryOptions& memory = wish.rates.memory;
  const std::string optimizer = arguments.get("optimizer");
  memory.sharding = wish.framework->sharding;
  for (const auto& [name, sharding] : kShardings)
    if (optimizer == name) memory.sharding = sharding;
  // Megatron accumulates gradients in fp32; with ZeRO 2 they are reduced in bf16 as they come.
  if (memory.sharding == Sharding::kZero2) memory.gradient = 2;
  TRY_OK(take_width(arguments, "param-dtype", 1, memory.parameter));
  TRY_OK(take_width(arguments, "grad-dtype", 1, memory.gradient));
  // Parameters in fp32 are their own master copy.
  if (memory.parameter == 4 && !arguments.has("master-dtype")) memory.master = 0;
  TRY_OK(take_width(arguments, "master-dtype", 1, memory.master));
  TRY_OK(take_width(arguments, "moment-dtype", 2, memory.moments));
  memory.fp8 = wish.rates.fp8 = arguments.get("precision", "bf16") == "fp8";
  memory.flash = arguments.get("attention", "flash") == "flash";
  memory.fused_loss = arguments.get("loss", "fused") == "fused";
  TRY_OK(take_share(arguments, "moe-imbalance", 1, 100, memory.imbalance));
  TRY_OK(take_share(arguments, "capacity-factor", 0.1, 100, memory.capacity));
  TRY_OK(take_share(arguments, "w-keeps", 0, 10, memory.w_keeps));
  TRY_OK(take_share(arguments, "fragmentation", 1, 2, memory.fragmentation));
  TRY_OK(take_size(arguments, "reserve", memory.reserve));
  TRY_OK(take_size(arguments, "memory", memory.limit));
  memory.scratch = wish.framework->scratch, memory.keeps_sent = memory.keeps_whole = wish.framework->keeps_sent;
  memory.deepspeed_copy = wish.framework->name == "deepspeed" && memory.sharding == Sharding::kZero2;
  return {};
}

Result<Model> described_model(const std::string& path, std::string text, bool tied) {
  if (text.empty()) TRY_OK(take(read_all(path, kMaxModelBytes), text));
  TRY(model, read_model(text, path));
  if (model->sized() && total_parameters(*model) > kMaxParameters)
    return make_error(ErrorCode::kBadInput, valid_utf8(path) + ": more than 10^15 parameters",
                      "a number of the description is too large");
  model->tied |= tied;
  return model;
}

Result<std::optional<StageBytes>> stage_bytes_of(const Arguments& arguments, int32_t dp, const std::string& model) {
  if (!arguments.has("model")) {
    for (const char* flag : {"memory", "seq", "micro-batch-size", "optimizer", "ep", "recompute"})
      if (arguments.has(flag))
        return make_error(ErrorCode::kUsage, "--" + std::string(flag) + " goes with --model, which says what is held",
                          "--model config.json");
    return std::optional<StageBytes>();
  }
  TRY_OK(check_choices(arguments));
  Wish wish;
  wish.framework = find_framework("any");
  TRY_OK(take(described_model(arguments.get("model"), model, false), wish.model));
  if (!wish.model.sized())
    return make_error(ErrorCode::kBadInput,
                      valid_utf8(arguments.get("model")) + ": the sizes of the model are missing");
  TRY_OK(take_memory(arguments, wish));
  StageBytes out;
  out.model = std::move(wish.model), out.options = wish.rates.memory, out.full = arguments.get("recompute") == "full";
  TRY(sequence, arguments.integer("seq", 4096, 1, 1'000'000'000));
  out.layout.sequence = static_cast<double>(*sequence), out.layout.dp = dp;
  TRY_OK(arguments.take("micro-batch-size", 1, 1'000'000, out.layout.micro_batch));
  TRY_OK(arguments.take("tp", 1, 1'000'000, out.layout.tp));
  TRY_OK(arguments.take("ep", 1, 1'000'000, out.layout.ep));
  return std::optional(std::move(out));
}

Result<std::optional<StageBytes>> stage_bytes_of(const Arguments& arguments, const Trace& ran,
                                                 const std::string& model) {
  TRY(bytes, stage_bytes_of(arguments, std::max(1, extent_of(ran).dp_count), model));
  if (*bytes) (*bytes)->measured = peak_memory_of_stages(ran);
  return bytes;
}

}  // namespace stageline
