#include "server/live/live_run.h"

#include <time.h>

#include "diagnosis/explain_json.h"
#include "facts/run.h"
#include "model/intervals.h"

namespace stageline {
namespace {

using LiveClock = std::chrono::steady_clock;
constexpr double kShare = 1;  // of a core, for all looks together
// Reading many steps costs several times as much as reading a few. So if nothing has changed, many are read only after
// this number of new steps, or when this multiple of the processor time of the last such look has passed.
constexpr int64_t kManyEvery = 4;
constexpr auto kPushEvery = std::chrono::seconds(10);
constexpr size_t kUnlikeSteps = 4;  // one of this number of last steps was unlike those before, or nothing has changed

std::chrono::nanoseconds used() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

// Returns true if one of the last `few` steps is further from those before than these are from each other, in any
// number that is measured of a step. Decides when the many steps are looked at, never what is found in them.
bool is_unlike(std::span<const RunningStep> steps, size_t few) {
  if (steps.size() < 2 * few) return true;  // nothing is usual yet
  const auto before = steps.first(steps.size() - few), last = steps.last(few);
  const auto unlike = [&](auto number) {
    double min = number(before[0]), max = min;
    for (const RunningStep& step : before) {
      min = std::min(min, number(step));
      max = std::max(max, number(step));
    }
    const double width = max - min;
    return std::ranges::any_of(
        last, [&](const RunningStep& step) { return number(step) > max + width || number(step) < min - width; });
  };
  return unlike([](const RunningStep& step) { return static_cast<double>(step.dur_ns); }) ||
         unlike([](const RunningStep& step) { return step.bubble; }) ||
         unlike([](const RunningStep& step) { return step.stage_ratio; }) ||
         unlike([](const RunningStep& step) { return step.rank_ratio; });
}

const char* state_name(Look::State state) {
  switch (state) {
    case Look::State::kWaiting:
    case Look::State::kGathering: return "waiting";
    case Look::State::kRecording: return "recording";
    case Look::State::kSilent: return "silent";
    case Look::State::kClosed: return "closed";
  }
  return "";
}

bool same_fault(const Finding& a, const Finding& b) { return a.id == b.id && key_of(a) == key_of(b); }

void write_step(JsonWriter& json, const RunningStep& step) {
  json.begin_object().field("step", int64_t{step.step}).field("dur_ns", step.dur_ns);
  json.field("ranks", step.ranks).maybe("bubble_share", step.bubble >= 0, step.bubble);
  json.maybe("slowest_stage", step.stage >= 0, step.stage).field("stage_ratio", step.stage_ratio);
  json.maybe("slowest_rank", step.rank >= 0, step.rank).field("rank_ratio", step.rank_ratio).end_object();
}

// The parts that are drawn: all of them or, for each stage, the one that computed longest and the one in the middle.
std::vector<int32_t> drawn_parts(const Trace& trace, int32_t from_step) {
  std::map<int32_t, int64_t> busy;
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (trace.cells.step[i] >= from_step && is_compute(trace.cells.kind[i]))
      busy[trace.cells.part[i]] += trace.cells.dur_ns(i);
  const auto stage_of = [&](int32_t part) { return trace.parts[part].stage; };
  std::vector<int32_t> parts;
  if (busy.size() <= LiveRun::kMaxDrawnRanks) {
    for (const auto& [part, ns] : busy) parts.push_back(part);
  } else {
    std::map<int32_t, std::vector<std::pair<int64_t, int32_t>>> of_stage;
    for (const auto& [part, ns] : busy) of_stage[stage_of(part)].emplace_back(ns, part);
    for (auto& [stage, ranks] : of_stage) {
      std::ranges::sort(ranks);
      parts.push_back(ranks.back().second);
      if (ranks.size() > 1) parts.push_back(ranks[(ranks.size() - 1) / 2].second);
    }
  }
  sort_stably(parts, [&](int32_t a, int32_t b) { return stage_of(a) < stage_of(b); });
  return parts;
}

// The last two steps, or one where they are large, as rows of [kind, start, duration, micro-batch], in microseconds
// from the picture's beginning.
std::string pipeline_of(const Trace& trace, const std::vector<RunningStep>& steps) {
  if (steps.empty()) return "null";
  const Cells& cells = trace.cells;
  int32_t from = steps.size() > 1 ? steps[steps.size() - 2].step : steps.back().step;
  std::vector<int32_t> parts = drawn_parts(trace, from);
  std::map<int32_t, std::vector<size_t>> rows;
  for (;;) {
    for (const int32_t part : parts) rows[part];
    size_t count = 0;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells.step[i] < from || cells.end_ns[i] <= cells.start_ns[i] ||
          !(is_compute(cells.kind[i]) || cells.kind[i] == CellKind::kCollective ||
            cells.kind[i] == CellKind::kOptimizer))
        continue;
      if (const auto row = rows.find(cells.part[i]); row != rows.end()) row->second.push_back(i), ++count;
    }
    if (count <= LiveRun::kMaxDrawnCells || from == steps.back().step) break;
    from = steps.back().step;
    rows.clear();
  }
  Span span;
  for (const auto& [part, row] : rows)
    for (const size_t i : row) span.add(trace.common_start_ns(i), trace.common_end_ns(i));
  if (!span.any()) return "null";
  const auto micros = [&](int64_t ns) { return (ns - span.start_ns + 500) / 1000; };
  JsonWriter json;
  json.begin_object().field("from_step", int64_t{from}).field("to_step", int64_t{steps.back().step});
  json.field("span_us", micros(span.end_ns)).key("rows").begin_array();
  size_t written = 0;
  for (const int32_t part : parts) {
    const Part& who = trace.parts[part];
    json.begin_object().field("rank", int64_t{who.rank}).field("stage", int64_t{who.stage});
    json.key("cells").begin_array();
    for (const size_t i : rows[part]) {
      if (written++ == LiveRun::kMaxDrawnCells * 4) break;  // of a step with very many cells only the first are drawn
      json.value(int64_t{static_cast<int>(cells.kind[i])}).value(micros(trace.common_start_ns(i)));
      json.value(micros(trace.common_end_ns(i)) - micros(trace.common_start_ns(i)));
      json.value(int64_t{cells.micro_batch[i]});
    }
    json.end_array().end_object();
  }
  return json.end_array().end_object().take();
}

double usual_ns(const std::vector<RunningStep>& history, size_t max) {
  std::vector<double> spans;
  for (size_t i = history.size() > max ? history.size() - max : 0; i < history.size(); ++i)
    spans.push_back(history[i].dur_ns);
  return spans.empty() ? 0 : median_of(std::move(spans));
}

// The text of a message of Slack's, which has tags in angle brackets.
std::string slack_text(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

int64_t since_1970_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

LiveRun::LiveRun(std::string title, std::vector<std::string> paths, OpenOptions options, LiveOutlets outlets)
    : title_(std::move(title)), paths_(paths), steps_(paths, options), outlets_(std::move(outlets)),
      begin_ns_(since_1970_ns()), steps_of_many_(std::move(paths), std::move(options)) {}

Look::State LiveRun::follow(const std::function<void(const Text&)>& say) {
  LookPace pace(kShare);
  for (int32_t last = INT32_MIN;;) {
    const auto before = LiveClock::now();
    // Only the first look shows more than it explains: whoever opens the page sees a little of what was before.
    Look look = steps_.look(last, last == INT32_MIN ? kManySteps : kFewSteps, true);
    if (!look.steps.empty()) last = look.steps.back().step - look.last_may_grow;
    const Look::State state = look.state;
    take_many(say);
    take(std::move(look), std::chrono::duration<double>(LiveClock::now() - before).count(), say);
    const bool over = state == Look::State::kClosed || state == Look::State::kSilent;
    if (over && many_.valid()) many_.wait();
    if (over) take_many(say);
    push_metrics();
    tell_problems(say);
    if (over) {
      over_ = true;
      return state;
    }
    std::this_thread::sleep_for(pace.pause());
    steps_.wait_for_more();
  }
}

// Findings of the last `count` steps that were looked at; the look's trace has no others afterwards.
std::vector<LiveRun::Seen> LiveRun::find_in(Look& look, size_t count) {
  if (look.steps.size() > count) keep_steps_from(look.trace, look.steps[look.steps.size() - count].step);
  const Explanation explanation = explain(Run(look.trace), true);
  std::vector<Seen> found;
  for (const Finding& f : explanation.findings)
    found.push_back({f, explanation.step_ns, 0, 0, 0, false, count == kFewSteps});
  return found;
}

// Returns the findings of the long and the short window, each fault once. Findings about a single step before the short
// window are skipped.
std::vector<LiveRun::Seen> LiveRun::found_in_both() const {
  std::vector<Seen> found;
  // More steps come first: a finding that the few steps have as well keeps the price that was measured better.
  for (const std::vector<Seen>* of : {&found_in_many_, &found_in_few_})
    for (const Seen& fresh : *of) {
      if (fresh.finding.step && *fresh.finding.step < first_of_few_) continue;
      const auto same =
          std::ranges::find_if(found, [&](const Seen& s) { return same_fault(s.finding, fresh.finding); });
      if (same != found.end()) same->shows_in_few |= fresh.shows_in_few;
      else found.push_back(fresh);
    }
  return found;
}

// Begins to explain the many steps where that is due. It takes several times as long as the few do, and never holds
// them up.
void LiveRun::look_at_many(const std::vector<RunningStep>& steps) {
  const int64_t step = steps.back().step;
  if (many_.valid() || steps.size() <= kFewSteps) return;
  if (step - many_step_ < kManyEvery && LiveClock::now() - many_at_ < kManyEvery * many_used_ &&
      !is_unlike(std::span(steps).first(steps.size() - 1), kUnlikeSteps))  // the few cover the newest alone
    return;
  many_step_ = step;
  many_at_ = LiveClock::now();
  many_ = std::async(std::launch::async, [this] {
    const auto before = used();
    Look look = steps_of_many_.look(INT32_MIN, kManySteps, true);
    Many found;
    if (look.steps.size() > kFewSteps) found.findings = find_in(look, kManySteps);
    found.used = used() - before;
    return found;
  });
}

// Reports the findings in many steps once they are ready.
void LiveRun::take_many(const std::function<void(const Text&)>& say) {
  if (!many_.valid() || many_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  Many many = many_.get();
  found_in_many_ = std::move(many.findings);
  many_used_ = many.used;
  const std::lock_guard lock(mutex_);
  ++version_;
  take_findings(found_in_both(), Of::kMany, looked_at_, say);
}

void LiveRun::take(Look look, double seconds, const std::function<void(const Text&)>& say) {
  const auto began = LiveClock::now();
  const bool has_new = !look.steps.empty() && look.steps.back().step > looked_at_;
  std::string pipeline;
  int stages = 0;
  if (has_new) {
    looked_at_ = look.steps.back().step;
    stages = extent_of(look.trace).stage_count;
    pipeline = pipeline_of(look.trace, look.steps);
    first_of_few_ = look.steps[look.steps.size() - std::min(look.steps.size(), kFewSteps)].step;
    found_in_few_.clear();
    if (look.steps.size() > 1) found_in_few_ = find_in(look, kFewSteps);
    seconds += std::chrono::duration<double>(LiveClock::now() - began).count();
  }
  std::vector<RunningStep> last_steps;
  {
    const std::lock_guard lock(mutex_);
    ++version_;
    if (look.state != Look::State::kGathering) state_ = look.state;
    why_ = std::move(look.why);
    if (look.state == Look::State::kWaiting || look.state == Look::State::kGathering) return;
    look_seconds_ = seconds;
    ranks_ = look.ranks;
    under_way_ = look.under_way;
    behind_ = std::move(look.behind);
    lost_records_ = look.lost_records;
    without_device_ = look.without_device;
    const int64_t newest = history_.empty() ? INT64_MIN : history_.back().step;
    for (const RunningStep& step : std::span(look.steps).first(look.steps.size() - look.last_may_grow))
      if (step.step > newest) {
        history_.push_back(step);
        ++steps_over_;
      }
    if (history_.size() > kMaxSteps) history_.erase(history_.begin(), history_.end() - kMaxSteps);
    if (!history_.empty() && history_.back().step > newest) newest_ns_ = since_1970_ns();
    if (has_new) {
      stages_ = stages;
      pipeline_json_ = std::move(pipeline);
      take_findings(found_in_both(), Of::kFew, looked_at_, say);
      last_steps.assign(history_.end() - std::min(history_.size(), kManySteps), history_.end());
      if (look.last_may_grow) last_steps.push_back(look.steps.back());
    }
  }
  if (!last_steps.empty()) look_at_many(last_steps);
}

// Sends what /metrics says, after a new step or state, else at intervals.
void LiveRun::push_metrics() {
  const std::pair now(looked_at_, state_);
  if (!outlets_.otlp || (now == pushed_ && LiveClock::now() - pushed_at_ < kPushEvery)) return;
  pushed_ = now;
  pushed_at_ = LiveClock::now();
  outlets_.otlp->send(measured().otlp(title_, begin_ns_, since_1970_ns()));
}

// Each only once; /metrics counts the webhook's.
void LiveRun::tell_problems(const std::function<void(const Text&)>& say) {
  for (const auto& [outlet, name] : {std::pair(outlets_.webhook.get(), "follow.webhook_fails"),
                                     std::pair(outlets_.otlp.get(), "follow.otlp_fails")}) {
    if (!outlet) continue;
    const Webhook::Sums sums = outlet->sums();
    if (sums.given_up > 0 && stated_problems_.insert(name).second) say(words(name, Args().set("why", sums.problem)));
  }
}

// A slow rank makes steps long. These are not reported next to it, neither at its onset nor when only they are left.
// Where it is the only rank of its stage, either may be named.
bool LiveRun::is_part_of(const Seen& one, const std::vector<Seen>& others) {
  const auto places = [](const Finding& f) {
    std::vector<Place> all = f.places;
    all.insert(all.end(), f.or_else.begin(), f.or_else.end());
    return all;
  };
  return one.finding.step && !key_of(one.finding).empty() && std::ranges::any_of(others, [&](const Seen& all) {
           const bool in_time = all.last_step == 0 || (*one.finding.step <= all.last_step &&
                                                       *one.finding.step > all.begin_step - int64_t{kFewSteps});
           return !all.finding.step && in_time &&
                  (key_of(all.finding) == key_of(one.finding) ||
                   !shared_places(places(all.finding), places(one.finding)).empty());
         });
}

// Is called with the lock held.
void LiveRun::take_findings(std::vector<Seen> found, Of of, int64_t step, const std::function<void(const Text&)>& say) {
  const auto line = [&](const char* name, const Seen& seen) {
    const Text& title = seen.finding.title;
    const Text text = words(name, Args().set("step", step).set("title", Text{title.en, title.in(true)}));
    say(text);
    tell(seen.is_gone ? "finding.ends" : "finding.begins", text, seen, step);
  };
  const std::vector<Seen> all_found = found;
  std::erase_if(found, [&](const Seen& s) { return is_part_of(s, all_found) || is_part_of(s, findings_); });
  for (Seen& seen : findings_) {
    if (!seen.is_gone && is_part_of(seen, all_found)) {
      seen.is_gone = true;
      line("follow.ends", seen);
      continue;
    }
    const auto again = std::ranges::find_if(found, [&](const Seen& s) { return same_fault(s.finding, seen.finding); });
    // A fault that the few steps had and no longer have is over, however long the many steps still show some of it.
    const bool lingers = again != found.end() && seen.shows_in_few && !again->shows_in_few;
    if (seen.is_gone) {
      if (lingers && step - seen.last_step < static_cast<int64_t>(kManySteps)) found.erase(again);
      continue;
    }
    if (again != found.end() && !lingers) {
      seen.shows_in_few |= again->shows_in_few;
      seen.finding = std::move(again->finding);
      seen.step_ns = again->step_ns;
      seen.last_step = step;
      seen.misses = 0;
      found.erase(again);
      continue;
    }
    if (lingers) found.erase(again);
    // A finding that the few show is missed only by the few, and one that only the many had only by them.
    if (seen.shows_in_few != (of == Of::kFew)) continue;
    if (++seen.misses < kMisses) continue;
    seen.is_gone = true;
    line("follow.ends", seen);
  }
  for (Seen& fresh : found) {
    fresh.begin_step = fresh.last_step = step;
    line("follow.begins", fresh);
    findings_.push_back(std::move(fresh));
  }
  size_t gone = sum_over<size_t>(findings_, &Seen::is_gone);
  for (auto at = findings_.begin(); gone > kMaxGone && at != findings_.end();)
    at = at->is_gone ? (--gone, findings_.erase(at)) : at + 1;
}

void LiveRun::tell(const char* event, const Text& line, const Seen& seen, int64_t step) {
  if (!outlets_.webhook) return;
  JsonWriter json;
  json.begin_object();
  if (outlets_.slack) {
    std::string text = title_ + ": " + line.in(outlets_.chinese);
    if (!seen.is_gone && !seen.finding.value.empty())
      text += " – " + seen.finding.value + " " + seen.finding.value_note.in(outlets_.chinese);
    json.field("text", slack_text(text));
    return outlets_.webhook->send(json.end_object().take());
  }
  json.field("event", event).field("run", valid_utf8(title_)).field("step", step);
  json.field("begin_step", seen.begin_step).field("step_ns", std::llround(seen.step_ns));
  json.key("finding");
  write_finding(json, seen.finding, seen.step_ns, paths_);
  outlets_.webhook->send(json.end_object().take());
}

int64_t LiveRun::step_count() const {
  const std::lock_guard lock(mutex_);
  return steps_over_;
}

std::string LiveRun::json(int64_t known, int64_t after) const {
  const std::lock_guard lock(mutex_);
  JsonWriter json;
  json.begin_object().field("version", version_);
  if (known == version_) return json.end_object().take();
  json.field("state", state_name(state_)).field("why", valid_utf8(why_)).field("title", valid_utf8(title_));
  json.field("ranks", ranks_).field("stages", stages_);
  json.field("steps_over", steps_over_).field("under_way", int64_t{under_way_});
  json.field("usual_ns", std::llround(usual_ns(history_, kMaxSteps)));
  json.field("newest_ns", std::to_string(newest_ns_)).field("look_s", look_seconds_);
  json.field("lost_records", lost_records_).field("without_device_times", without_device_);
  constexpr size_t kMaxBehind = 8;
  json.field("behind_count", behind_.size()).key("behind").begin_array();
  for (size_t i = 0; i < behind_.size() && i < kMaxBehind; ++i) json.value(int64_t{behind_[i]});
  json.end_array().key("steps").begin_array();
  const auto first =
      std::ranges::partition_point(history_, [&](const RunningStep& step) { return int64_t{step.step} <= after; });
  for (auto at = first; at != history_.end(); ++at) write_step(json, *at);
  json.end_array().objects("findings", findings_, [&](const Seen& seen) {
    json.field("begin_step", seen.begin_step).field("last_step", seen.last_step);
    json.field("gone", seen.is_gone).key("finding");
    write_finding(json, seen.finding, seen.step_ns, paths_);
  });
  json.key("pipeline").raw(pipeline_json_);
  if (after < 0) write_palette(json);
  return json.end_object().take();
}

Metrics LiveRun::measured() const {
  const std::lock_guard lock(mutex_);
  Metrics m;
  const auto whole = [](int64_t value) { return static_cast<double>(value); };
  m.add("stageline_recording", "gauge", "1 while the followed job records, 0 before and after",
        whole(state_ == Look::State::kRecording));
  m.add("stageline_ranks", "gauge", "Ranks that have recorded work", whole(ranks_));
  m.add("stageline_steps_total", "counter", "Training steps that were seen to end", whole(steps_over_));
  m.add("stageline_lost_records_total", "counter", "Records that the recorder counted and could not keep",
        whole(lost_records_));
  m.add("stageline_without_device_times_total", "counter", "Records with the host's times instead of the device's",
        whole(without_device_));
  m.add("stageline_look_seconds", "gauge", "Time that the last look at the recording took", look_seconds_);
  if (outlets_.webhook) {
    const Webhook::Sums sums = outlets_.webhook->sums();
    m.add("stageline_webhook_sent_total", "counter", "Events that the webhook took", whole(sums.sent));
    m.add("stageline_webhook_given_up_total", "counter", "Events that the webhook did not take", whole(sums.given_up));
  }
  const int64_t there = std::ranges::count_if(findings_, [](const Seen& seen) { return !seen.is_gone; });
  m.add("stageline_findings", "gauge", "Findings that hold now", whole(there));
  for (const Seen& seen : findings_)
    if (!seen.is_gone)
      m.add("stageline_finding_lost_seconds", "gauge", "Time of a step that a finding costs; 0 where it has no price",
            seen.finding.lost_ns_per_step / 1e9, {{"id", seen.finding.id}, {"cause", key_of(seen.finding)}});
  if (history_.empty()) return m;
  const RunningStep& last = history_.back();
  m.add("stageline_step", "gauge", "Number of the last training step that is over", whole(last.step));
  m.add("stageline_step_seconds", "gauge", "What the last step took", last.dur_ns / 1e9);
  m.add("stageline_step_usual_seconds", "gauge", "Median of all steps so far", usual_ns(history_, kMaxSteps) / 1e9);
  m.add("stageline_step_end_timestamp_seconds", "gauge", "When the last step was seen to be over",
        static_cast<double>(newest_ns_ / 1'000'000) / 1e3);
  if (last.bubble >= 0)
    m.add("stageline_bubble_share", "gauge", "Share of the last step's pipeline in which a rank computes nothing, mean",
          last.bubble);
  if (last.stage >= 0) {
    m.add("stageline_slowest_stage", "gauge", "Stage that computed longest in the last step", whole(last.stage));
    m.add("stageline_slowest_stage_ratio", "gauge", "Its time by that of the middle stage", last.stage_ratio);
  }
  if (last.rank >= 0) {
    m.add("stageline_slowest_rank", "gauge", "Rank that computed longest by its stage's median in the last step",
          whole(last.rank));
    m.add("stageline_slowest_rank_ratio", "gauge", "Its time by that median", last.rank_ratio);
  }
  return m;
}

}  // namespace stageline
