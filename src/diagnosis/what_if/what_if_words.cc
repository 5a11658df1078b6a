#include "diagnosis/what_if/what_if_words.h"

#include "plan/search.h"

namespace stageline {
namespace {

std::string number(int64_t n) { return std::to_string(n); }
std::string times(double ratio) { return fixed(ratio, 2) + "×"; }

// Returns the flags with which frameworks use a schedule.
Text schedule_flags(const std::string& name, int32_t chunks, int32_t layers, int32_t stages, int32_t m) {
  const std::string v = number(chunks);
  const std::string csv = "torch: stageline schedule " + name + " --stages " + number(stages) + " --micro-batches " +
                          number(m) + (chunks > 1 && name != "zb-v" && name != "dualpipe-v" ? " --chunks " + v : "") +
                          " --format torch -o " + name + ".csv";
  const auto both = [](const std::string& flags) { return Text{flags, flags}; };
  if (name == "1f1b") return both("torchtitan: pipeline_parallel_schedule = \"1F1B\"; Paddle: schedule_mode \"1F1B\"");
  if (name == "eager-1f1b") return both("Paddle: schedule_mode \"Eager1F1B\"; " + csv);
  if (name == "vpp")
    return both("Megatron: --num-layers-per-virtual-pipeline-stage " + number(std::max(1, layers / chunks)) +
                "; torchtitan: pipeline_parallel_schedule = \"Interleaved1F1B\"; Paddle: schedule_mode \"VPP\", "
                "vpp_degree " +
                v);
  if (name == "interleaved-zb") return both("torchtitan: pipeline_parallel_schedule = \"InterleavedZeroBubble\"");
  if (name == "zb-v")
    return both("torchtitan: pipeline_parallel_schedule = \"ZBVZeroBubble\"; Paddle: schedule_mode \"ZBVPP\"");
  if (name == "dualpipe-v")
    return both("torchtitan: pipeline_parallel_schedule = \"DualPipeV\"; MindSpeed: --schedules-method dualpipev");
  return words("fix.torch_csv", Args().set("command", csv));
}

// "NAME: what it assumes. NAME: …" for every part. A split of the layers is made for the present chunks; with another
// schedule, a sentence says what becomes of it instead.
Text named_parts(const std::vector<const Fix*>& parts, Text Fix::* field) {
  const bool other_order =
      std::any_of(parts.begin(), parts.end(), [](const Fix* fix) { return fix->id == "schedule"; });
  std::vector<Text> all;
  for (const Fix* fix : parts) {
    const bool split = other_order && fix->id == "balance" && field == &Fix::how;
    const Text text = split ? words("fix.balance.other_schedule") : fix->*field;
    all.push_back(words("fix.part", Args().set("name", fix->name).set("text", text)));
  }
  return joined(all, words("fix.parts.between"));
}

// A split of the layers in the forms that the frameworks take.
Text layout_text(const std::vector<int32_t>& split) {
  Args args;
  args.set("megatron", plan::write_megatron_layout(split)).set("torchtitan", torchtitan_split(split));
  return words("fix.layout", args.set("paddle", paddle_seg_method(split)));
}

// The words NAME.name, NAME.assumes and NAME.how.
FixWords words_of(const std::string& name, const Args& args = {}) {
  return {words(name + ".name", args), words(name + ".assumes", args), words(name + ".how", args)};
}

}  // namespace

FixWords own_words(const std::string& name) { return {{name, name}, words("fix.own.assumes"), words("fix.own.how")}; }

FixWords balance_words(const std::vector<int32_t>& now, const std::vector<int32_t>& then, bool assumed,
                       const LayerCosts& costs, double gap, bool checked) {
  Text ends;
  if (costs.embedding || costs.head)
    ends = words(!costs.head        ? "fix.balance.ends.embedding"
                 : !costs.embedding ? "fix.balance.ends.head"
                                    : "fix.balance.ends.both");
  Args args;
  args.set("from", layers_text(now)).set("to", layers_text(then)).set("ends", ends);
  args.set("assumed", assumed ? number(kAssumedLayers) : "").set("gap", gap >= 0.0005 ? percent(gap) : "");
  args.flag("best", gap < 0.0005);
  Text assumes = words("fix.balance.assumes", args);
  if (!checked) assumes += words("fix.balance.unchecked");
  assumes += words("fix.balance.bound", args);
  return {words("fix.balance.name", args), assumes, layout_text(then)};
}

FixWords even_words() { return words_of("fix.even"); }

FixWords fair_stage_words(int32_t stage, double ratio) {
  return words_of("fix.fair_stage", Args().set("stage", int64_t{stage}).set("ratio", times(ratio)));
}

FixWords order_words(const std::string& name, int64_t lists, int64_t of) {
  return words_of("fix.order", Args().set("schedule", name).set("lists", grouped(lists)).set("of", grouped(of)));
}

void add_layout(const std::vector<int32_t>* split, Fix& fix) {
  fix.how += words("fix.layout.after", Args().set("split", split ? layout_text(*split) : Text()));
}

FixWords schedule_words(const std::string& name, int32_t chunks, const OrderModel& order, int32_t layers) {
  const bool by_chunks = chunks > 1 && name != "zb-v" && name != "dualpipe-v";
  Args args;
  args.set("present", order.recognition().best().name).set("schedule", name);
  args.set("chunks", by_chunks ? number(chunks) : "").set("ratio", times(order.overlap_ratio()));
  args.set("share", order.weight_measured() ? percent(order.weight_share()) : "");
  std::vector<Text> assumed;
  const ChunkLayout layout = name == "zb-v" || name == "dualpipe-v" ? ChunkLayout::kV : ChunkLayout::kLoop;
  if (chunks != order.sizes().chunks || (chunks > 1 && layout != order.layout()))
    assumed.push_back(words("fix.schedule.chunks"));
  if (name.starts_with("zb") || name == "interleaved-zb" || name == "dualpipe-v")
    assumed.push_back(words("fix.schedule.weights", args));
  if (name == "dualpipe-v") assumed.push_back(words("fix.schedule.overlap", args));
  assumed.push_back(words("fix.schedule.messages"));
  const ScheduleSizes& sizes = order.sizes();
  return {words("fix.schedule.name", args), joined(assumed, words("list.semicolon")),
          schedule_flags(name, chunks, layers, sizes.stages, sizes.micro_batches)};
}

FixWords micro_batch_words(int32_t now, int32_t then) {
  return words_of("fix.micro_batches", Args().count("from", now).set("to", int64_t{then}));
}

FixWords worker_words(int32_t rank, int32_t dp, int32_t stage, double ratio) {
  Args args;
  args.set("rank", int64_t{rank}).set("stage", int64_t{stage}).set("replica", int64_t{dp});
  return words_of("fix.worker", args.set("ratio", times(ratio)));
}

Text divided_words(const std::vector<int32_t>& split) {
  const int64_t all = std::accumulate(split.begin(), split.end(), int64_t{0});
  return words("what_if.divided", Args().set("all", grouped(all)).set("split", layers_text(split)));
}

FixWords lone_worker_words(int32_t rank, int32_t stage, double ratio, const std::vector<int32_t>& split) {
  Args args;
  args.set("split", split.empty() ? "" : layers_text(split));
  args.set("rank", int64_t{rank}).set("stage", int64_t{stage});
  return words_of("fix.lone_worker", args.set("ratio", times(ratio)));
}

FixWords more_in_flight_words(const std::vector<int32_t>& extra) {
  size_t end = 0;
  int32_t max = 0;
  for (size_t s = 0; s < extra.size(); ++s)
    if (extra[s] > 0) end = s, max = std::max(max, extra[s]);
  Args args;
  args.set("more", int64_t{max}).flag("one", max == 1).set("last", end > 0 ? std::to_string(end) : "");
  args.set("list", layers_text(extra));
  return words_of("fix.more_in_flight", args);
}

Text measured_words(const std::vector<MeasuredStage>& memory) {
  const MeasuredStage& most = *std::ranges::max_element(memory, {}, &MeasuredStage::measured_bytes);
  const double share = most.model_bytes > 0 ? most.measured_bytes / most.model_bytes - 1 : 0;
  Args args;
  args.set("measured", fixed(most.measured_bytes / (1 << 30), 1)).set("model", fixed(most.model_bytes / (1 << 30), 1));
  args.set("stage", int64_t{most.stage}).set("share", (share > 0 ? "+" : "") + percent(share));
  return words("what_if.measured", args);
}

Text bytes_words(const StageBytes& bytes, const StageBytes::Most& now, const StageBytes::Most& then) {
  const auto gib = [](double count) { return fixed(count / (1 << 30), 1); };
  Args args;
  args.set("now", gib(now.bytes)).set("then", gib(then.bytes)).set("at", int64_t{now.rank});
  args.set("need", gib(then.needed)).set("limit", gib(bytes.options.limit)).set("stage", int64_t{then.rank});
  const bool same = now.rank == then.rank && gib(now.bytes) == gib(then.bytes);
  Text text = words(same ? "fix.bytes.same" : "fix.bytes", args);
  if (!bytes.fits(then)) text += words("fix.bytes.need", args);
  return text;
}

FixWords links_words(bool one_host) { return words_of("fix.links", Args().flag("one_host", one_host)); }
FixWords launch_words(bool hosts_alone) { return words_of("fix.launch", Args().flag("hosts_alone", hosts_alone)); }
FixWords jitter_words() { return words_of("fix.jitter"); }

FixWords combined_words(const std::vector<const Fix*>& parts) {
  auto names = mapped<Text>(parts, [&](const Fix* fix) { return fix->name; });
  return {joined(names, {" + ", " + "}),
          words("fix.combined.assumes", Args().set("parts", named_parts(parts, &Fix::assumes))),
          named_parts(parts, &Fix::how)};
}

Text sentence(const std::vector<Fix>& fixes, double recorded_ns) {
  const Fix *best = nullptr, *together = nullptr;
  for (const Fix& fix : fixes) {
    if (fix.id == "own" || fix.bound) continue;
    const Fix*& place = fix.id == "combined" ? together : best;
    if (!place || fix.price.saving_ns > place->price.saving_ns) place = &fix;
  }
  Args args;
  args.set("step", human_duration(recorded_ns));
  if (!best) return words("fix.none", args);
  const auto saves = [](const Fix& fix) -> Text {
    const std::string share = percent(fix.price.share());
    return fix.changes.micro_batches > 0 ? words("fix.best.saves", Args().set("saves", share)) : Text{share, share};
  };
  const bool more = together && together->price.saving_ns > best->price.saving_ns;
  args.set("best", best->name).set("saves", saves(*best)).set("together", more ? saves(*together) : Text());
  return words("fix.best", args);
}

}  // namespace stageline
