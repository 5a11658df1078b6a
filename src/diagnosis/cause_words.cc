#include "diagnosis/cause_words.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/number.h"
#include "base/text.h"
#include "base/words.h"
#include "diagnosis/what_if/layer_price.h"

namespace stageline {
namespace {

std::string n(int64_t count) { return grouped(count); }
std::string ms(double ns) { return human_duration(ns); }
Text times(double ratio) { return words("times", Args().set("ratio", fixed(ratio, 2))); }

// "1, 2, 3, …": lists at most `most` of them.
std::string some_of(const std::vector<std::string>& all, size_t most) {
  std::string text;
  for (size_t i = 0; i < std::min(all.size(), most); ++i) text += (i == 0 ? "" : ", ") + all[i];
  return all.size() > most ? text + ", …" : text;
}

class CauseWords {
 public:
  CauseWords(const Trace& trace, const CauseList& list, const Recognition& recognition)
      : trace_(trace), list_(list), recognition_(recognition) {
    for (const Part& part : trace.parts) {
      replicas_ = std::max(replicas_, part.dp + 1);
      stages_ = std::max(stages_, part.stage + 1);
    }
  }

  Finding of(const Cause& c) const {
    Args args = common(c);
    Finding f;
    f.id = finding_id(c);
    switch (c.kind) {
      case CauseKind::kSlowStage: slow_stage(c, args, f); break;
      case CauseKind::kSlowWorker: slow_worker(c, args, f); break;
      case CauseKind::kSlowLink: slow_link(c, args, f); break;
      case CauseKind::kLongSequences: long_sequences(args, f); break;
      case CauseKind::kPauses: pauses(c, args, f); break;
      case CauseKind::kLateWorker: late_worker(c, args, f); break;
      case CauseKind::kLateStarts: late_starts(c, args, f); break;
      case CauseKind::kOrder: order(args, f); break;
      case CauseKind::kUnsplit: unsplit(args, f); break;
      case CauseKind::kBetweenSteps: between_steps(c, args, f); break;
      case CauseKind::kTail: tail(c, args, f); break;
      case CauseKind::kMessageTail: message_tail(c, args, f); break;
      case CauseKind::kPosition: position(c, args, f); break;
      case CauseKind::kRouting: routing(c, args, f); break;
      case CauseKind::kSlowGroup: slow_group(c, args, f); break;
      case CauseKind::kAllSlow: all_slow(c, args, f); break;
      case CauseKind::kBlockingSends: blocking_sends(args, f); break;
    }
    add_detail(f, when(c.lost_course));
    f.lost_ns_per_step = c.lost_ns;
    f.uncertainty_ns = std::isnan(c.error_ns) ? 0 : c.error_ns;
    f.weight = list_.step_ns > 0 ? c.lost_ns / list_.step_ns : 0;
    f.price.saving_ns = c.price_ns();
    // What only a few gaps take is not part of a usual step: a gap of 20 minutes would be thousands of per cent of it.
    const bool of_period = c.kind == CauseKind::kBetweenSteps && c.sometimes && list_.wall_ns > 0;
    f.value = "−" + percent(f.price.saving_ns / (of_period ? list_.wall_ns : list_.step_ns));
    const Text note = words(of_period ? "cause.value.period" : "cause.value");
    f.value_note_en = note.en;
    f.value_note_zh = note.zh;
    return f;
  }

  // Uneven data, and replicas that have more data all along, are one finding with one price.
  void add_replicas_with_more(const Cause& routing, Finding& f) const {
    if (!(routing.joint_ns > 0)) return;
    double alone = 0, ratio = 1;
    for (const Cause& c : list_.causes)
      if (c.merged_into_data_cause) alone = std::max(alone, c.lost_ns), ratio = std::max(ratio, c.ratio);
    std::vector<std::string> replicas;
    for (const int32_t dp : routing.replicas) replicas.push_back(std::to_string(dp));
    Args args;
    args.set("replicas", some_of(replicas, replicas.size()))
        .flag("many", replicas.size() > 1)
        .set("ratio", times(ratio));
    args.set("alone", share(alone)).set("data", share(routing.lost_ns)).set("joint", share(routing.joint_ns));
    add_detail(f, words("data.uneven.joint", args));
    set_joint(routing, f);
  }

  // Several slow stages, or slow links, are one finding with one price; `all` are these causes, the most expensive
  // first.
  void add_further(const std::vector<const Cause*>& all, Finding& f) const {
    const Cause& first = *all.front();
    if (is_one_direction(all) && !first.lost_course.varies()) {
      Args args = common(first);
      args.flag("forward", first.from_stage < first.stage);
      const Text title = words("link.slow.direction.title", args), detail = words("link.slow.direction.detail", args);
      f.title_en = title.en, f.title_zh = title.zh, f.detail_en = detail.en, f.detail_zh = detail.zh;
    }
    for (size_t i = 1; i < all.size(); ++i) {
      add_detail(f, words(f.id + ".further", common(*all[i])));
      f.cause += " " + places_of(*all[i]);
    }
    if (all.size() == 1 || !(first.joint_ns > 0)) return;
    add_detail(f,
               words(f.id + ".joint", Args().set("joint", share(first.joint_ns)).set("alone", share(first.lost_ns))));
    const double saving_ns = f.price.saving_ns;
    const std::string value = f.value;
    set_joint(first, f);
    if (first.saving_ns > 0) f.price.saving_ns = saving_ns, f.value = value;  // evening out already is about all stages
  }

 private:
  void set_joint(const Cause& c, Finding& f) const {
    f.lost_ns_per_step = f.price.saving_ns = c.joint_ns;
    f.uncertainty_ns = std::isnan(c.joint_error_ns) ? 0 : c.joint_error_ns;
    f.weight = list_.step_ns > 0 ? c.joint_ns / list_.step_ns : 0;
    f.value = "−" + percent(f.weight);
  }

  static void add_detail(Finding& f, const Text& text) {
    f.detail_en += text.en;
    f.detail_zh += text.zh;
  }

  // Arguments that sentences of any cause may use; "" where one does not apply to this cause.
  Args common(const Cause& c) const {
    const std::string stage = c.stage == kUnknown ? "" : std::to_string(c.stage);
    const std::string replica = c.dp == kUnknown ? "" : std::to_string(c.dp);
    const auto of_all = static_cast<double>(c.count) / static_cast<double>(std::max<int64_t>(c.of, 1));
    const auto of_steps = static_cast<double>(c.count) / static_cast<double>(std::max<int64_t>(list_.steps, 1));
    Args args;
    args.set("lost", share(c.lost_ns)).set("saving", c.saving_ns > 0 ? share(c.saving_ns) : "");
    args.set("ratio", times(c.ratio)).set("by", percent(c.ratio)).set("pause", ms(c.pause_ns));
    args.set("stage", stage).set("from", std::to_string(c.from_stage)).set("replica", replica);
    args.set("chunk", c.chunk == kUnknown ? "" : std::to_string(c.chunk)).set("name", c.name);
    args.set("count", n(c.count)).set("of", n(c.of)).set("share", percent(of_all)).set("each", fixed(of_steps, 1));
    args.set("ranks", n(c.ranks)).set("steps", n(c.steps)).set("slow_steps", n(c.slowest_in));
    args.set("in_steps", in_steps(c.slowest_in, c.steps)).set("course", course(c.course, c.slowest_in == c.steps));
    args.set("own", c.times.empty() ? "" : ms(c.times.front().own_ns));
    args.set("others", c.times.empty() || !(c.times.front().others_ns > 0) ? "" : ms(c.times.front().others_ns));
    args.flag("unmovable", c.unmovable).set("movable", c.movable_ns > 0 ? share(c.movable_ns) : "");
    args.flag("unrecorded", c.unrecorded)
        .flag("guessed", c.guessed)
        .flag("sometimes", c.sometimes)
        .flag("both_ways", c.both_ways);
    args.set("schedule", recognition_.candidates.empty() ? words("schedule.the") : Text{schedule(), schedule()});
    if (c.part != kUnknown)
      args.set("rank", rank(c.part)).set("worker", worker(c.part, c.kind == CauseKind::kSlowWorker));
    return args;
  }

  static void say(Finding& f, const std::string& name, const Args& args) {
    const Text title = words(name + ".title", args);
    const Text fix = words((has_words(name + ".fix") ? name : f.id) + ".fix", args);
    f.title_en = title.en, f.title_zh = title.zh;
    f.price.fix_en = fix.en, f.price.fix_zh = fix.zh;
    if (has_words(name + ".detail")) add_detail(f, words(name + ".detail", args));
    if (!has_words(f.id + ".assumption")) return;
    const Text assumption = words(f.id + ".assumption", args);
    f.price.assumption_en = assumption.en, f.price.assumption_zh = assumption.zh;
  }

  // Whether the slow links are all links between neighbouring stages in one direction.
  bool is_one_direction(const std::vector<const Cause*>& all) const {
    if (stages_ < 3 || all.size() + 1 != static_cast<size_t>(stages_)) return false;
    const bool forward = all.front()->from_stage < all.front()->stage;
    return std::all_of(all.begin(), all.end(), [&](const Cause* c) {
      return c->kind == CauseKind::kSlowLink && !c->both_ways && c->dp == kUnknown &&
             c->stage - c->from_stage == (forward ? 1 : -1);
    });
  }
  static std::string places_of(const Cause& c) {
    const std::string stage = std::to_string(c.stage), from = std::to_string(c.from_stage);
    if (c.kind == CauseKind::kSlowStage) return "stage:" + stage;
    return "link:" + from + "-" + stage + (c.both_ways ? " link:" + stage + "-" + from : "");
  }
  std::string share(double ns) const { return percent(ns / list_.step_ns); }
  int32_t rank_number(int32_t part) const { return trace_.parts[part].rank; }
  std::string rank(int32_t part) const { return std::to_string(rank_number(part)); }
  Text worker(int32_t part, bool with_peers) const {
    // Tensor-parallel ranks hold one stage of one replica together: what is compared is their work, not one rank's.
    const Part& own = trace_.parts[part];
    std::string peers;
    int64_t count = 0;
    for (size_t p = 0; p < trace_.parts.size() && with_peers; ++p) {
      const Part& other = trace_.parts[p];
      if (static_cast<int32_t>(p) == part || other.stage != own.stage || other.dp != own.dp) continue;
      peers += (count++ > 0 ? ", " : "") + rank(static_cast<int32_t>(p));
    }
    Args args;
    args.set("rank", rank(part)).set("machine", own.machine_name).set("peers", peers);
    return words("worker", args.flag("several", count > 1));
  }
  const std::string& schedule() const { return recognition_.best().name; }
  int32_t step_number(size_t index) const {
    return index < list_.step_numbers.size() ? list_.step_numbers[index] : static_cast<int32_t>(index);
  }
  static Text in_steps(int64_t slow, int64_t all) {
    return words("in_steps", Args().flag("one", all == 1).set("slow", n(slow)).set("all", n(all)));
  }

  // Whether the stage, or its chunk, holds the end (or, with `end` false, the start) of the model.
  bool is_end(const Cause& c, bool end) const {
    const bool known = !recognition_.candidates.empty();
    const int32_t chunks = known ? recognition_.best().sizes.chunks : 1;
    const ChunkLayout layout = known ? recognition_.best().layout : ChunkLayout::kLoop;
    if (layout == ChunkLayout::kBidirectional) {
      if (c.chunk == kUnknown) return c.stage == 0 || c.stage == stages_ - 1;
      return c.stage == (end == (c.chunk == 0) ? stages_ - 1 : 0);
    }
    const int32_t chunk = end ? chunks - 1 : 0;
    if (c.chunk != kUnknown && c.chunk != chunk) return false;
    const bool turned = layout == ChunkLayout::kV && chunk % 2 == 1;
    return c.stage == (end != turned ? stages_ - 1 : 0);
  }

  Args course_args(const Course& c) const {
    Args args;
    args.flag("rises", c.high > c.low).set("low", times(c.low)).set("high", times(c.high));
    args.set("at", int64_t{step_number(c.from)}).set("nth", nth(c.every));
    args.set("steps", n(static_cast<int64_t>(c.high_count)));
    return args;
  }
  // "from step 10 on (1.00× before, 1.31× after)"; "" where it is always the same. `always`: it was slow before as
  // well, and the step only says when it became slower.
  Text course(const Course& c, bool always) const {
    const Args args = course_args(c).flag("always", always);
    switch (c.kind) {
      case CourseKind::kOnset: return words("course.onset", args);
      case CourseKind::kTrend: return words("course.trend", args);
      case CourseKind::kEvery: return words("course.every", args);
      case CourseKind::kSome: return words("course.some", args);
      case CourseKind::kConstant: return {};
    }
    return {};
  }
  // " It is so from step 10 on, hardly before."; "" where all steps are alike, or without a plain shape.
  Text when(const Course& c) const {
    switch (c.kind) {
      case CourseKind::kOnset: return words("when.onset", course_args(c));
      case CourseKind::kTrend: return words("when.trend", course_args(c));
      case CourseKind::kEvery: return words("when.every", course_args(c));
      default: return {};
    }
  }
  static Text nth(size_t every) {
    const std::string name = "nth." + std::to_string(every);
    return has_words(name) ? words(name) : words("nth", Args().set("n", static_cast<int64_t>(every)));
  }

  void slow_stage(const Cause& c, Args& args, Finding& f) const {
    const bool two = c.mirror != kUnknown;  // the same layers, once for each direction
    f.cause = places_of(c);
    args.flag("last", is_end(c, true)).flag("first", is_end(c, false)).flag("two", two);
    args.set("mirror", int64_t{c.mirror}).flag("alone", replicas_ <= 1 && !two && !c.one_kind && !c.sometimes);
    if (c.one_kind && !c.sometimes) args.set("one", words("cell." + std::string(kind_code(c.times.front().kind))));
    const Text end = words("stage.slow.end", args);
    // Where moving layers helps little because those at the end of the model are heavy, the words on that end come
    // first.
    args.set("end", end).flag("end_first", c.layers_bring_little() && !end.empty());
    Text kinds;
    for (const CauseTimes& t : c.times)
      kinds += words("stage.slow.kind", Args()
                                            .flag("further", !kinds.empty())
                                            .set("kind", words("cell." + std::string(kind_code(t.kind))))
                                            .set("own", ms(t.own_ns))
                                            .set("others", ms(t.others_ns)));
    args.set("kinds", kinds).set("layers", layer_words(c, list_.step_ns, stages_, trace_.format.starts_with("paddle")));
    say(f, "stage.slow", args);
    f.evidence = {"waterfall", "waterfall-stages"};
  }

  void slow_worker(const Cause& c, Args& args, Finding& f) const {
    f.cause = "rank:" + rank(c.part);
    say(f, "rank.slow", args);
    f.evidence = {"stragglers", "straggler-workers"};
  }

  void slow_link(const Cause& c, Args& args, Finding& f) const {
    f.cause = places_of(c);
    args.flag("pipelines", trace_.context_parallel > 1);
    args.flag("part_of_steps", c.slowest_in > 0 && c.slowest_in < c.steps);
    say(f, "link.slow", args);
    f.evidence = {"links", ""};
  }

  void long_sequences(Args& args, Finding& f) const {
    f.cause = "sequences";
    say(f, "sequence.long", args);
    f.evidence = {"stragglers", "forward-backward"};
  }

  // "rank 1's F0, rank 2's B1 and 3 more"
  Text places(const Cause& c) const {
    constexpr size_t kShown = 2;
    Text text;
    for (size_t i = 0; i < std::min(c.at.size(), kShown); ++i) {
      const Cell cell = trace_.cells.at(c.at[i]);
      text += words("place", Args()
                                 .flag("further", i > 0)
                                 .flag("last", c.at.size() == kShown)
                                 .set("rank", rank(cell.part))
                                 .set("cell", cell_label(cell, cell.chunk > 0)));
    }
    if (c.at.size() > kShown)
      text += words("place.more", Args().set("more", n(static_cast<int64_t>(c.at.size() - kShown))));
    return text;
  }

  void pauses(const Cause& c, Args& args, Finding& f) const {
    f.cause = "host";
    if (c.part != kUnknown) f.cause += " host:" + rank(c.part) + " rank:" + rank(c.part);
    if (c.guessed) {
      const std::string link = std::to_string(c.from_stage) + "-" + std::to_string(c.stage);
      f.cause += " message-tail:" + link + " link:" + link;
      const std::string back = std::to_string(c.stage) + "-" + std::to_string(c.from_stage);
      if (c.both_ways) f.cause += " message-tail:" + back + " link:" + back;
    }
    if (!c.at_steps.empty()) {
      f.step = c.at_steps.front();
      std::string list;
      for (const int32_t step : c.at_steps) list += (list.empty() ? "" : ", ") + std::to_string(step);
      args.set("in", list).flag("in_one", c.at_steps.size() == 1);
    }
    if (c.first_of_step) {  // of one rank: what it does before its step begins
      f.rank = rank_number(c.part);
      f.cause += " between-steps" + (c.name.empty() ? "" : ":" + dashed(c.name));
      say(f, "host.pauses.first", args.set("late_in_steps", in_steps(c.count, c.steps)));
    } else if (!c.at.empty()) {  // a garbage collector would not choose one place either
      f.rank = rank_number(trace_.cells.at(c.at[0]).part);
      args.set("places", places(c)).flag("one_place", c.at.size() == 1);
      say(f, "host.pauses.place", args.flag("numbered", trace_.diagnostics.count("cells.schedule") > 0));
    } else if (c.part != kUnknown) {  // one rank alone, which no garbage collector would choose
      say(f, "host.pauses.rank", args);
    } else {
      say(f, c.collector ? "host.pauses.collector" : "host.pauses.many", args);
    }
    f.evidence = {"stragglers", "straggler-workers"};
  }

  void late_worker(const Cause& c, Args& args, Finding& f) const {
    f.cause = "rank:" + rank(c.part);
    if (c.cell_kind != CellKind::kOther) args.set("kind", words("cell." + std::string(kind_code(c.cell_kind))));
    say(f, "rank.late_launch", args);
    f.evidence = {"stragglers", "straggler-workers"};
  }

  void late_starts(const Cause& c, Args& args, Finding& f) const {
    f.cause = c.hosts_prompt ? "messages" : c.guessed ? "host messages" : "host";
    f.rank = rank_number(c.part);
    say(f, "host.late_starts", args.flag("prompt", c.hosts_prompt));
    f.evidence = {"theory", "late-reasons"};
  }

  void order(Args& args, Finding& f) const {
    f.cause = "order";
    f.evidence = {"schedule", "divergence"};
    if (recognition_.divergences.empty()) {  // the recognition is another one than the cause's
      say(f, "schedule.order.lists", args);
      return;
    }
    const Divergence& worst = recognition_.divergences.front();  // orders come first
    f.step = worst.step;
    f.rank = rank_number(worst.part);
    args.set("stage", int64_t{worst.stage}).set("step", int64_t{worst.step}).set("rank", rank(worst.part));
    say(f, "schedule.order", args.set("divergence", worst.sentence));
  }

  void unsplit(Args& args, Finding& f) const {
    f.cause = "order";
    say(f, "schedule.unsplit", args);
    f.evidence = {"schedule", "recognition"};
  }

  void between_steps(const Cause& c, Args& args, Finding& f) const {
    constexpr size_t kShown = 6;
    f.cause = "between-steps" + (c.name.empty() ? "" : ":" + dashed(c.name));
    const bool one = c.count == 1;
    if (c.sometimes) {
      if (list_.wall_ns > 0) args.set("lost", percent(c.lost_ns / list_.wall_ns));
      if (one) f.step = c.at_steps.front();
      args.flag("one", one).set("step", int64_t{c.at_steps.front()});
    }
    std::vector<std::string> steps;
    for (const int32_t step : c.at_steps) steps.push_back(std::to_string(step));
    const bool only = c.part != kUnknown && !c.name.empty();  // one rank recorded it
    if (only) f.rank = rank_number(c.part);
    say(f, "between.steps",
        args.set("steps", some_of(steps, kShown)).flag("only", only).flag("unread", list_.replicas_unread));
    f.evidence = {"waterfall", "waterfall-periods"};
  }

  void position(const Cause& c, Args& args, Finding& f) const {
    constexpr int32_t kMaxKeys = 8;
    const std::string s = std::to_string(c.stage), code(kind_code(c.cell_kind));
    f.evidence = {"stragglers", "forward-backward"};
    if (c.cell_kind != CellKind::kOther) args.set("kind", words("cell." + code));
    if (c.within.varies()) {
      f.cause = c.stage == kUnknown ? "micro-batches" : "stage:" + s;
      args.flag("trend", c.within.kind == CourseKind::kTrend).flag("rises", c.within.high > c.within.low);
      say(f, "micro_batch.slow.within", args.set("at", static_cast<int64_t>(c.within.from)));
      return;
    }
    const auto number = [](int32_t mb) { return std::to_string(mb); };
    for (int32_t mb = c.micro_batch; mb <= std::min(c.last_micro_batch, c.micro_batch + kMaxKeys - 1); ++mb) {
      f.cause += f.cause.empty() ? "" : " ";
      if (c.stage != kUnknown) f.cause += "cell:" + s + "." + code + number(mb) + " ";
      f.cause += "micro-batch:" + number(mb);
    }
    if (c.stage != kUnknown) f.cause += " stage:" + s;
    const bool several = c.last_micro_batch > c.micro_batch;
    args.set("micro_batch", number(c.micro_batch)).set("cell", code + number(c.micro_batch));
    if (several) args.set("last", number(c.last_micro_batch)).set("last_cell", code + number(c.last_micro_batch));
    say(f, f.id, args.flag("first", c.micro_batch == 0).flag("every", c.every_stage));
  }

  void routing(const Cause& c, Args& args, Finding& f) const {
    f.cause = "routing experts";
    std::vector<std::string> replicas;
    for (const int32_t dp : c.replicas) {
      f.cause += " replica:" + std::to_string(dp);
      replicas.push_back(std::to_string(dp));
    }
    if (!replicas.empty()) args.set("replicas", some_of(replicas, replicas.size())).flag("many", replicas.size() > 1);
    say(f, "data.uneven", args.set("correlation", fixed(c.correlation, 2)).flag("shared", c.guessed));
    f.evidence = {"stragglers", "forward-backward"};
  }

  void slow_group(const Cause& c, Args& args, Finding& f) const {
    constexpr size_t kShown = 8;
    f.evidence = {"stragglers", "straggler-workers"};
    if (c.graded) {
      f.cause = "replicas replica:" + std::to_string(c.dp);
      args.set("fastest", int64_t{c.fastest}).set("otherwise", share(c.otherwise_ns));
      say(f, "ranks.slow.graded", args);
      return;
    }
    std::vector<std::string> ranks, dps;
    std::string joined, keys, replica_keys;
    std::set<int32_t> replicas;
    std::set<std::string> machines;
    for (const int32_t p : c.parts) {
      const Part& part = trace_.parts[p];
      ranks.push_back(rank(p));
      keys += " rank:" + rank(p);
      replicas.insert(part.dp), machines.insert(part.machine_name);
    }
    for (size_t i = 0; i < std::min(ranks.size(), kShown); ++i) joined += (i == 0 ? "" : "+") + ranks[i];
    if (ranks.size() > kShown) joined += "+…";
    size_t ranks_of_them = 0;
    for (const Part& part : trace_.parts) ranks_of_them += replicas.contains(part.dp);
    const bool replica = replicas.size() < static_cast<size_t>(replicas_) && c.parts.size() == ranks_of_them;
    const bool machine = machines.size() == 1 && !machines.begin()->empty();
    for (const int32_t r : replicas) {
      dps.push_back(std::to_string(r));
      replica_keys += "replica:" + std::to_string(r) + " ";
    }
    f.cause = (replica   ? replica_keys + "ranks:"
               : machine ? "node:" + *machines.begin() + " ranks:"
                         : "ranks:") +
              joined + keys;
    if (replica) args.set("replicas", some_of(dps, dps.size())).flag("many", dps.size() > 1);
    if (machine) args.set("machine", *machines.begin());
    say(f, "ranks.slow", args.set("group", some_of(ranks, kShown)));
  }

  void all_slow(const Cause& c, Args& args, Finding& f) const {
    f.evidence = {"stragglers", ""};
    const bool trend = c.course.kind == CourseKind::kTrend, every = c.course.kind == CourseKind::kEvery;
    if (c.course.kind == CourseKind::kSome) {
      constexpr size_t kShown = 8;
      std::vector<std::string> steps;
      for (size_t s = 0; s < c.course.level.size(); ++s) {
        if (c.course.level[s] != c.course.high) continue;
        if (steps.empty()) f.step = step_number(s);
        steps.push_back(std::to_string(step_number(s)));
      }
      f.cause = "steps:" + steps.front() + " all";
      return say(f, "run.slower.some", args.set("which", some_of(steps, kShown)));
    }
    args.flag("trend", trend).set("at", int64_t{step_number(c.course.from)}).set("nth", nth(c.course.every));
    if (c.course.high < c.course.low) {  // it is over after a while
      if (!trend) f.step = list_.first_step;
      f.cause = trend ? "trend all" : "steps:" + std::to_string(list_.first_step) + " all";
      return say(f, "run.slower.first", args);
    }
    const std::string at = std::to_string(step_number(c.course.from));
    f.cause = trend   ? "trend all"
              : every ? "every:" + std::to_string(c.course.every) + " all"
                      : "onset:" + at + " onset all";
    if (!trend) f.step = step_number(c.course.from);
    say(f, every ? "run.slower.every" : "run.slower", args);
  }

  void blocking_sends(Args& args, Finding& f) const {
    f.cause = "blocking";
    say(f, "sends.blocking", args);
    f.evidence = {"theory", "late-reasons"};
  }

  void message_tail(const Cause& c, Args& args, Finding& f) const {
    f.cause = "message-tail:" + std::to_string(c.from_stage) + "-" + std::to_string(c.stage);
    if (c.guessed) f.cause += " host:" + rank(c.part) + " rank:" + rank(c.part);
    f.rank = rank_number(c.part);
    say(f, "message.tail", args);
    f.evidence = {"links", ""};
  }

  void tail(const Cause& c, Args& args, Finding& f) const {
    if (c.cell_kind == CellKind::kOther) {  // idle time before tails
      f.cause = "tail:idle host" + (c.name.empty() ? "" : " tail:" + dashed(c.name));
      say(f, "tail.exposed.idle", args.set("lost_time", ms(c.lost_ns)));
      f.evidence = {"waterfall", "waterfall"};
      return;
    }
    const bool optimizer = c.cell_kind == CellKind::kOptimizer;
    f.cause = optimizer ? "tail:optimizer" : "tail:collective";
    if (!c.name.empty()) f.cause += " tail:" + c.name;
    if (c.stage != kUnknown) f.cause += " stage:" + std::to_string(c.stage);
    say(f, "tail.exposed",
        args.flag("optimizer", optimizer).set("lost_time", ms(c.lost_ns)).flag("lone", replicas_ <= 1));
    if (!c.twin.empty())
      add_detail(f,
                 words("tail.exposed.twin", Args().set("twin", c.twin).set("others", ms(c.times.front().others_ns))));
    f.evidence = {"waterfall", "waterfall"};
  }

  const Trace& trace_;
  const CauseList& list_;
  const Recognition& recognition_;
  int32_t replicas_ = 1, stages_ = 1;
};

}  // namespace

Finding cause_finding(const Trace& trace, const CauseList& causes, const Cause& cause, const Recognition& recognition) {
  return CauseWords(trace, causes, recognition).of(cause);
}

std::vector<Finding> cause_findings(const Trace& trace, const CauseList& causes, const Recognition& recognition) {
  const CauseWords words_of(trace, causes, recognition);
  std::vector<Finding> findings;
  // Several stages out of balance are one cause with one fix, and so are several links.
  // values: index of the finding, and the causes that it tells.
  std::map<CauseKind, std::pair<size_t, std::vector<const Cause*>>> joined;
  for (const Cause& cause : causes.causes) {
    if (cause.merged_into_data_cause) continue;
    const bool joins = cause.kind == CauseKind::kSlowStage || cause.kind == CauseKind::kSlowLink;
    if (joins) {
      const auto [at, first] = joined.try_emplace(cause.kind, findings.size(), std::vector<const Cause*>{});
      at->second.second.push_back(&cause);
      if (!first) continue;
    }
    findings.push_back(words_of.of(cause));
    if (cause.kind == CauseKind::kRouting) words_of.add_replicas_with_more(cause, findings.back());
  }
  for (const auto& [kind, reported] : joined) words_of.add_further(reported.second, findings[reported.first]);
  return findings;
}

}  // namespace stageline
