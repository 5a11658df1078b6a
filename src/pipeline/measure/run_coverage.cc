#include "pipeline/measure/run_coverage.h"

#include <atomic>

#include "base/parallel.h"
#include "base/spares.h"
#include "model/intervals.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/measure/problems.h"

namespace stageline {
namespace {

constexpr uint8_t kForwards = 1, kBackwards = 2, kWeights = 4;
constexpr double kMaxSlots = 1e7;
constexpr int32_t kMaxStage = 1'000'000'000;
constexpr size_t kMaxRanges = 4;  // most ranges of stage numbers in one sentence

uint8_t bits_of(CellKind kind) {
  switch (kind) {
    case CellKind::kForward: return kForwards;
    case CellKind::kBackward: return kBackwards | kWeights;
    case CellKind::kInputGrad: return kBackwards;
    case CellKind::kWeightGrad: return kWeights;
    case CellKind::kForwardBackward: return kForwards | kBackwards;
    default: return 0;
  }
}

// "0, 1 and 3", "0 to 5 and 7"; "" where that gets long.
Text ranges_text(const std::vector<int32_t>& numbers) {
  std::vector<Text> ranges;
  for (size_t i = 0; i < numbers.size();) {
    size_t j = i;
    while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
    const std::string first = std::to_string(numbers[i]);
    if (j - i < 2) {
      ranges.push_back({first, first});
      ++i;
      continue;
    }
    ranges.push_back(words("coverage.range", Args().set("first", first).set("last", int64_t{numbers[j]})));
    i = j + 1;
  }
  if (ranges.size() > kMaxRanges) return {};
  Text text = ranges.empty() ? Text() : ranges.front();
  for (size_t i = 1; i < ranges.size(); ++i)
    text = words(i + 1 < ranges.size() ? "coverage.list" : "coverage.list.last",
                 Args().set("some", text).set("next", ranges[i]));
  return text;
}

std::string text_of(double count) { return grouped(static_cast<int64_t>(count)); }

struct Work {
  int32_t micro_batch, chunk;
  CellKind kind;
  uint32_t cell;
  auto key() const { return std::tuple(micro_batch, chunk, kind); }
};

// Lowest and highest of some numbers; size() is the length of a table that has a place for each between them.
struct Range {
  int64_t low = INT64_MAX, high = INT64_MIN;
  void see(int64_t value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  int64_t size() const { return high - low + 1; }
};

// Returns true if some work may occur twice in one rank's step; false is certain. Ordinary labels lie close together
// and are checked in a table, without sorting. `seen` is scratch memory. O(work).
bool may_repeat(const std::vector<Work>& work, std::vector<uint8_t>& seen) {
  constexpr int64_t kKinds = 5;  // F, B, I, W, F&B
  if (work.size() < 2) return false;
  Range batches, chunks;
  for (const Work& w : work) batches.see(w.micro_batch), chunks.see(w.chunk);
  const int64_t max = work.size() * 16 + 1024;
  if (batches.size() > max || chunks.size() > max || batches.size() * chunks.size() * kKinds > max) return true;
  seen.assign(batches.size() * chunks.size() * kKinds, 0);
  for (const Work& w : work) {
    uint8_t& at = seen[((w.micro_batch - batches.low) * chunks.size() + w.chunk - chunks.low) * kKinds +
                       static_cast<int64_t>(w.kind)];
    if (at != 0) return true;
    at = 1;
  }
  return false;
}

struct Listed {
  int64_t list;
  int32_t micro_batch;
  auto key() const { return std::pair(list, micro_batch); }
};

// Keeps each (list, micro-batch) once, in any order. Numbers that lie close together are checked in a table, without
// sorting.
void keep_different(std::vector<Listed>& all) {
  if (all.empty()) return;
  Range lists, batches;
  for (const Listed& one : all) lists.see(one.list), batches.see(one.micro_batch);
  const int64_t max = all.size() * 16 + 4096;
  if (lists.size() <= max && batches.size() <= max / lists.size()) {
    std::vector<uint8_t> seen(lists.size() * batches.size(), 0);
    std::erase_if(all, [&](const Listed& one) {
      uint8_t& at = seen[(one.list - lists.low) * batches.size() + one.micro_batch - batches.low];
      return std::exchange(at, uint8_t{1}) != 0;
    });
    return;
  }
  std::ranges::sort(all, {}, &Listed::key);
  all.erase(std::unique(all.begin(), all.end(), [](const Listed& a, const Listed& b) { return a.key() == b.key(); }),
            all.end());
}

// Calls body(i) for all cells, step by step and several steps at a time.
template <class Body> void each_cell(const Cells& cells, const Body& body) {
  const std::vector<StepRange> ranges = step_ranges(cells);
  parallel_for(ranges.size(), [&](size_t s) {
    for (size_t i = ranges[s].begin; i < ranges[s].end; ++i) body(i);
  });
}

// Notes are clauses: no full stop, and no capital at the start.
Text as_clause(Text sentence) {
  if (sentence.en.ends_with('.')) sentence.en.pop_back();
  if (const char first = sentence.en.front(); first == 'O' || first == 'R' || first == 'T')
    sentence.en.front() = static_cast<char>(first - 'A' + 'a');
  if (constexpr std::string_view kStop = "\u3002"; sentence.zh.ends_with(kStop))
    sentence.zh.resize(sentence.zh.size() - kStop.size());
  return sentence;
}

}  // namespace

RunCoverage::RunCoverage(const Trace& trace, const TheoryRun& theory, std::span<const int32_t> incomplete)
    : trace_(trace), incomplete_(incomplete) {
  find_places(theory);
  find_repetitions();
  find_holes();
}

size_t RunCoverage::slot(int32_t dp, int32_t way, int32_t vstage) const {
  return (dp * static_cast<size_t>(ways_) + way) * vstages_ + vstage;
}

uint8_t RunCoverage::needs(size_t cell, size_t& at) const {
  const Cells& cells = trace_.cells;
  const Part& part = trace_.parts[cells.part[cell]];
  const CellKind kind = cells.kind[cell];
  const int32_t chunk = trace_.chunks_are_pieces ? 0 : std::max(cells.chunk[cell], 0);
  if (!is_compute(kind) || part.stage == kUnknown || chunk >= shape_.sizes.chunks) return 0;
  const int32_t dp = std::max(part.dp, 0), way = ways_ == 2 && chunk == 1 ? 1 : 0;
  const int32_t vstage = virtual_stage(shape_, part.stage, chunk);
  if (kind == CellKind::kForward || kind == CellKind::kForwardBackward) {
    if (vstage == 0) return 0;
    at = slot(dp, way, vstage - 1);
    return kForwards;
  }
  if (kind == CellKind::kWeightGrad) {
    at = slot(dp, way, vstage);
    return kBackwards;
  }
  const bool last = vstage + 1 == vstages_;
  at = slot(dp, way, last ? vstage : vstage + 1);
  return last ? kForwards : kBackwards;
}

bool RunCoverage::fed_in_part(size_t cell) const {
  if (no_backwards_) return false;
  if (std::ranges::binary_search(holed_steps_, trace_.cells.step[cell])) return false;
  if (missing_.empty()) return true;
  size_t at = 0;
  const uint8_t needed = needs(cell, at);
  return (missing_[at] & needed) == needed;
}

// In 1F1B a stage runs (stages − stage) forwards before its first backward, or all of them if it has fewer. Three of
// stage 1 mean four stages, even if the last one was not read. Returns the number of stages where all lists agree on
// it; otherwise 0.
int32_t RunCoverage::stages_by_warm_up() const {
  const Cells& cells = trace_.cells;
  int32_t stages = 0, min_stages = 0;
  for (const StepRange& range : step_ranges(cells)) {
    if (range.step == kUnknown) continue;
    for (size_t i = range.begin; i < range.end;) {
      const int32_t part = cells.part[i], stage = trace_.parts[part].stage;
      int32_t before = 0, forwards = 0;
      bool backward = false;
      for (; i < range.end && cells.part[i] == part; ++i) {
        backward = backward || is_backward(cells.kind[i]);
        if (cells.kind[i] != CellKind::kForward) continue;
        ++forwards;
        before += backward ? 0 : 1;
      }
      if (stage == kUnknown || !backward) continue;
      if (stage > kMaxStage) return 0;
      const int32_t own = before + stage;
      // A list whose forwards all come first, as in GPipe, gives only the minimum number of stages.
      min_stages = std::max(min_stages, own);
      if (before == forwards) continue;
      if (stages != 0 && own != stages) return 0;
      stages = own;
    }
  }
  return min_stages <= stages ? stages : 0;
}

// Returns whether the last of `stages` stages sends activations or receives gradients: then an unread stage follows.
// In a ring, as with chunks, stage 0 receives activations or sends gradients too, and nothing follows. O(cells).
bool RunCoverage::sends_beyond(int32_t stages) const {
  const Cells& cells = trace_.cells;
  bool first_read = false, beyond = false;
  for (size_t i = 0; i < cells.size(); ++i) {
    const int32_t stage = trace_.parts[cells.part[i]].stage;
    const CellKind kind = cells.kind[i];
    const bool next = kind == CellKind::kSendForward || kind == CellKind::kRecvBackward;
    if (stage == 0 && (kind == CellKind::kRecvForward || kind == CellKind::kSendBackward)) return false;
    first_read = first_read || (stage == 0 && is_compute(kind));
    beyond = beyond || (next && stage + 1 == stages && cells.end_ns[i] > cells.start_ns[i]);
  }
  return first_read && beyond;
}

void RunCoverage::find_places(const TheoryRun& theory) {
  const Extent extent = extent_of(trace_);
  const Cells& cells = trace_.cells;
  int32_t chunks = 1;
  for (size_t i = 0; i < cells.size(); ++i)
    if (is_compute(cells.kind[i])) chunks = std::max(chunks, cells.chunk[i] < INT32_MAX ? cells.chunk[i] + 1 : 1);
  if (trace_.chunks_are_pieces) chunks = 1;
  stages_ = std::max({1, extent.stage_count, trace_.pipeline_stages});
  if (chunks == 1) {
    if (const int32_t stages = stages_by_warm_up(); stages > stages_) stages_ = stages, by_warm_up_ = true;
    else if (!trace_.chunks_are_pieces && stages_ == extent.stage_count && sends_beyond(stages_))
      ++stages_, by_messages_ = true;
  }
  shape_.sizes.stages = stages_;
  shape_.sizes.chunks = chunks;
  shape_.layout = theory.recognition.recognised ? theory.recognition.best().layout : guess_chunk_layout(trace_);
  ways_ = shape_.layout == ChunkLayout::kBidirectional ? 2 : 1;
  replicas_ = replicas_read_ = std::max({1, extent.dp_count, trace_.pipelines});
  const double slots = static_cast<double>(stages_) * replicas_ * chunks;
  if (extent.stage_count < 1 || slots > kMaxSlots) return;  // labels that make no sense
  vstages_ = virtual_stage_count(shape_);
  has_.assign(replicas_ * static_cast<size_t>(ways_) * vstages_, 0);
  each_cell(cells, [&](size_t i) {
    const Part& part = trace_.parts[cells.part[i]];
    const int32_t chunk = trace_.chunks_are_pieces ? 0 : std::max(cells.chunk[i], 0);
    if (part.stage == kUnknown || chunk >= chunks || !is_compute(cells.kind[i])) return;
    const int32_t way = ways_ == 2 && chunk == 1 ? 1 : 0;
    const std::atomic_ref bits(has_[slot(std::max(part.dp, 0), way, virtual_stage(shape_, part.stage, chunk))]);
    const uint8_t own = bits_of(cells.kind[i]);
    if ((bits.load(std::memory_order_relaxed) & own) != own) bits.fetch_or(own, std::memory_order_relaxed);
  });
  uint8_t kinds = 0;
  for (const uint8_t bits : has_) kinds |= bits;
  // With forwards alone, a rank's gaps may be backwards that were not recorded.
  const bool no_backwards = kinds == kForwards;
  missing_ = has_;
  std::atomic<bool> whole = !no_backwards;
  each_cell(cells, [&](size_t i) {
    if (whole.load(std::memory_order_relaxed) && !fed(i)) whole.store(false, std::memory_order_relaxed);
  });
  if (whole) missing_.clear();
  no_backwards_ = no_backwards;
  say_places();
}

void RunCoverage::say_places() {
  std::map<int32_t, std::vector<int32_t>> read;  // replica → stages
  uint8_t kinds = 0;
  for (const uint8_t bits : has_) kinds |= bits;
  for (int32_t dp = 0; dp < replicas_; ++dp)
    for (int32_t stage = 0; stage < stages_; ++stage) {
      uint8_t bits = 0;
      for (int32_t chunk = 0; chunk < shape_.sizes.chunks; ++chunk)
        bits |= has_[slot(dp, ways_ == 2 && chunk == 1 ? 1 : 0, virtual_stage(shape_, stage, chunk))];
      if (bits != 0) read[dp].push_back(stage);
    }
  size_t places = 0;
  bool alike = true;
  whole_replicas_.assign(replicas_, false);
  replicas_at_.assign(stages_, 0);
  for (const auto& [dp, stages] : read) {
    places += stages.size();
    for (const int32_t stage : stages) ++replicas_at_[stage];
    whole_replicas_[dp] = std::cmp_equal(stages.size(), stages_);
    alike = alike && stages == read.begin()->second;
  }
  // Where all stages were read, a kind of work is missing, or links, and no replica is whole.
  if (places == stages_ * read.size() || no_backwards_) whole_replicas_.assign(replicas_, false);
  if (!read.empty()) replicas_read_ = static_cast<int32_t>(read.size());
  const auto all = stages_ * read.size();
  Args args;
  if (places < all) {
    const std::vector<int32_t>& stages = read.begin()->second;
    const Text list = alike ? ranges_text(stages) : Text();
    part_is_counted_ = true;
    part_is_one_ = !list.empty() && stages.size() == 1;
    part_of_all_ = list.empty() && read.size() > 1;
    args.flag("one", part_is_one_)
        .set("list", list)
        .set("of", grouped(stages_))
        .flag("more", by_messages_)
        .flag("pipelines", read.size() > 1);
    args.set("places", grouped(places)).set("all", grouped(all));
    part_ = words(list.empty() ? "coverage.places" : "coverage.stages", args);
  } else if (!missing_.empty()) {
    const bool forwards = (kinds & kForwards) == 0, backwards = (kinds & kBackwards) == 0;
    part_is_run_ = forwards || backwards;
    part_is_one_ = !part_is_run_;
    part_ = words(!part_is_run_ ? "coverage.loose"
                  : !backwards  ? "coverage.lacks.forwards"
                  : !forwards   ? "coverage.lacks.backwards"
                                : "coverage.lacks.both");
  }
}

Text RunCoverage::part_note() const {
  if (whole()) return {};
  if (part_is_run_) return words("coverage.part.lacks", Args().set("part", part_));
  Args args;
  args.set("part", part_).flag("one", part_is_one_).flag("number", part_is_counted_).set("stages", grouped(stages_));
  args.set("why", by_warm_up_    ? words("coverage.why.warm_up", args)
                  : by_messages_ ? words("coverage.why.messages")
                                 : Text());
  return words("coverage.part", args);
}

Text RunCoverage::replicas_note() const {
  if (replicas_unread() == 0) return {};
  return words("coverage.replicas",
               Args().count("read", replicas_read_).set("all", grouped(replicas_)).flag("one", replicas_unread() == 1));
}

Text RunCoverage::incomplete_note() const {
  if (incomplete_.empty()) return {};
  return words("coverage.incomplete",
               Args()
                   .count("steps", incomplete_.size())
                   .set("which", ranges_text(std::vector(incomplete_.begin(), incomplete_.end()))));
}

Text RunCoverage::holes_note() const {
  if (not_analysable() || !holed()) return {};
  Args args;
  args.count("steps", holed_steps_.size());
  if (!(holes_ > 0)) return words("coverage.lost", args);
  args.count("missing", static_cast<int64_t>(holes_)).set("all", text_of(lists_cells_));
  return words("coverage.holes", args);
}

Text RunCoverage::evaluation_note() const {
  if (not_analysable() || evaluations_ == 0) return {};
  return words("coverage.evaluation", Args().count("steps", evaluations_));
}

Text RunCoverage::notes() const {
  std::vector<Text> notes = {part_note(), replicas_note(), incomplete_note(), holes_note(), evaluation_note()};
  std::erase_if(notes, [](const Text& note) { return note.empty(); });
  return joined(notes, {" ", ""});
}

void RunCoverage::note(const std::string& prefix, Diagnostics& notes) const {
  const auto add = [&](const Problem& problem, const Text& sentence) {
    if (!sentence.empty()) notes.add(problem.of(prefix), Args().set("text", as_clause(sentence)));
  };
  add(problem::analysis_part_of_run, part_note());
  add(problem::analysis_part_of_replicas, replicas_note());
  add(problem::analysis_incomplete_steps, incomplete_note());
  add(repeats() ? problem::analysis_repeated_work : problem::analysis_rows_missing,
      not_analysable() ? why_not_analysed() : holes_note());
}

void RunCoverage::find_repetitions() {
  const Cells& cells = trace_.cells;
  for (size_t i = 0; i < cells.size(); ++i) numbered_ += is_compute(cells.kind[i]) && cells.micro_batch[i] != kUnknown;
  if (trace_.chunks_are_pieces) return;
  const std::vector<StepRange> ranges = step_ranges(cells);
  std::vector<std::vector<uint32_t>> found(ranges.size());
  std::vector<size_t> compute(ranges.size(), 0);
  parallel_for(ranges.size(), [&](size_t s) {
    std::vector<Work> work;
    std::vector<uint8_t> seen;
    for (size_t i = ranges[s].begin; i < ranges[s].end;) {
      const int32_t part = cells.part[i];
      work.clear();
      for (; i < ranges[s].end && cells.part[i] == part; ++i) {
        if (!is_compute(cells.kind[i])) continue;
        ++compute[s];
        if (ranges[s].step != kUnknown && cells.micro_batch[i] != kUnknown)
          work.push_back({cells.micro_batch[i], cells.chunk[i], cells.kind[i], static_cast<uint32_t>(i)});
      }
      if (!may_repeat(work, seen)) continue;
      std::ranges::sort(work, {}, [](const Work& a) { return std::tuple(a.key(), a.cell); });
      for (size_t k = 0; k < work.size(); ++k)
        if ((k > 0 && work[k - 1].key() == work[k].key()) ||
            (k + 1 < work.size() && work[k + 1].key() == work[k].key()))
          found[s].push_back(work[k].cell);
    }
  });
  for (size_t s = 0; s < ranges.size(); ++s) {
    compute_ += compute[s];
    repeated_.insert(repeated_.end(), found[s].begin(), found[s].end());
  }
  if (repeated_.empty()) return;
  std::ranges::sort(repeated_);
  // The two pieces of the last stage's backward (its loss, and the rest) are not a repetition.
  const std::vector<uint32_t> loss_of = loss_backwards(cells);
  std::vector<bool> pieces(cells.size(), false);
  for (size_t i = 0; i < loss_of.size(); ++i)
    if (loss_of[i] != kNoPair) pieces[i] = pieces[loss_of[i]] = true;
  std::erase_if(repeated_, [&](uint32_t cell) { return pieces[cell]; });
}

struct RunCoverage::StepCount {
  double expected = 0, missing = 0, timed = 0, untimed = 0;
  double forwards = 0, backwards = 0, expected_forwards = 0;  // those that were read
};

struct RunCoverage::Lists {
  std::vector<Listed> batches, work;  // keyed by replica and way; keyed by part, chunk and kind
};

int64_t RunCoverage::list_of(const Part& part, int32_t chunk) const {
  return int64_t{std::max(part.dp, 0)} * ways_ + way_of(chunk);
}

// Fills the lists with the forwards and backwards of a step. False where no micro-batch has a number in the whole run:
// missing ones cannot be determined then. Where only some have none, they are counted.
bool RunCoverage::list_cells(const StepRange& range, bool numbered, Lists& lists, StepCount& count) const {
  const Cells& cells = trace_.cells;
  const int32_t chunks = shape_.sizes.chunks;
  std::unordered_map<int64_t, int32_t> unnumbered;  // number of cells
  lists.batches.clear(), lists.work.clear();
  for (size_t i = range.begin; i < range.end; ++i) {
    const uint8_t bit = bits_of(cells.kind[i]) & (kForwards | kBackwards);
    const Part& part = trace_.parts[cells.part[i]];
    const int32_t chunk = std::max(cells.chunk[i], 0);
    if (bit == 0 || part.stage == kUnknown || chunk >= chunks) continue;
    // The first layer of the model has no input with a gradient: torch leaves it empty.
    const bool empty = cells.kind[i] == CellKind::kInputGrad &&
                       (chunk == 0 ? part.stage == 0 : way_of(chunk) == 1 && part.stage == stages_ - 1);
    if (cells.end_ns[i] > cells.start_ns[i]) ++count.timed;
    else if (!empty) ++count.untimed;
    const int64_t group = (int64_t{cells.part[i]} * chunks + chunk) * 2 + (bit == kForwards ? 0 : 1);
    int32_t number = cells.micro_batch[i];
    if (number == kUnknown) {
      if (!numbered) return false;
      number = unnumbered[group]++;
    }
    lists.batches.push_back({list_of(part, chunk), number});
    lists.work.push_back({group, number});
  }
  keep_different(lists.batches);
  keep_different(lists.work);
  return true;
}

// Compares the lists with each other: a stage that has forwards (backwards) at all must have one for every micro-batch
// of the step and replica. `works` says of each part whether it has any.
void RunCoverage::count_holes(const std::vector<uint8_t>& works, Lists& lists, StepCount& count) const {
  std::unordered_map<int64_t, double> per_list;  // number of micro-batches
  for (const Listed& batch : lists.batches) ++per_list[batch.list];
  for (size_t p = 0; p < trace_.parts.size(); ++p) {
    const Part& part = trace_.parts[p];
    if (part.stage == kUnknown || works[p] == 0) continue;
    for (int32_t chunk = 0; chunk < shape_.sizes.chunks; ++chunk) {
      const auto found = per_list.find(list_of(part, chunk));
      if (found == per_list.end()) continue;
      const uint8_t has = has_[slot(std::max(part.dp, 0), way_of(chunk), virtual_stage(shape_, part.stage, chunk))];
      count.expected += found->second * ((has & kForwards) / kForwards + (has & kBackwards) / kBackwards);
      count.expected_forwards += found->second * ((has & kForwards) / kForwards);
    }
  }
  count.missing = std::max(0.0, count.expected - lists.work.size());
  for (const Listed& one : lists.work) ++(one.list % 2 == 0 ? count.forwards : count.backwards);
}

void RunCoverage::add_up(const std::vector<StepRange>& ranges, std::vector<StepCount> counts) {
  const bool trains = std::ranges::any_of(counts, [](const StepCount& c) { return c.backwards > 0; });
  for (size_t s = 0; s < ranges.size(); ++s) {
    StepCount& count = counts[s];
    // All forwards of every list and no backward at all: an evaluation between steps that train.
    if (trains && count.backwards == 0 && count.forwards > 0 && count.forwards >= count.expected_forwards) {
      ++evaluations_;
      count.expected = count.forwards, count.missing = 0;
    }
    lists_cells_ += count.expected;
    holes_ += count.missing;
    timed_ += count.timed;
    untimed_ += count.untimed;
    const bool lost = std::ranges::binary_search(trace_.lossy_steps, ranges[s].step);
    if (count.missing > 0 || lost) holed_steps_.push_back(ranges[s].step);
  }
  std::ranges::sort(holed_steps_);
}

// Weight gradients are not counted, because they may be part of whole backwards.
void RunCoverage::find_holes() {
  const Cells& cells = trace_.cells;
  if (trace_.chunks_are_pieces || has_.empty()) return;
  if (std::ranges::find(cells.kind, CellKind::kForwardBackward) != cells.kind.end()) return;
  // Other ranks, such as tensor-parallel ones, may have no cells at all.
  std::vector<uint8_t> works(trace_.parts.size(), 0);
  each_cell(cells, [&](size_t i) {
    if ((bits_of(cells.kind[i]) & (kForwards | kBackwards)) == 0) return;
    const std::atomic_ref works_here(works[cells.part[i]]);
    if (works_here.load(std::memory_order_relaxed) == 0) works_here.store(1, std::memory_order_relaxed);
  });
  bool numbered = false;
  for (size_t i = 0; i < cells.size() && !numbered; ++i)
    numbered = bits_of(cells.kind[i]) != 0 && cells.micro_batch[i] != kUnknown;
  const std::vector<StepRange> ranges = step_ranges(cells);
  std::vector<StepCount> counts(ranges.size());
  Spares<Lists> spares;
  parallel_for(ranges.size(), [&](size_t s) {
    if (ranges[s].step == kUnknown || is_incomplete(ranges[s].step)) return;
    const Spares<Lists>::Lent lists(spares);
    if (list_cells(ranges[s], numbered, *lists, counts[s])) count_holes(works, *lists, counts[s]);
  });
  add_up(ranges, std::move(counts));
}

Text RunCoverage::why_not_analysed() const {
  if (overlong())
    return words("coverage.not_analysed.stages",
                 Args().set("stages", grouped(stages_)).set("most", grouped(kMaxPipelineStages)));
  if (repeats()) return words("coverage.not_analysed.repeats");
  if (unnumbered()) return words("coverage.not_analysed.numbers");
  if (!not_analysable()) return {};
  const bool missing = holes_ > kMaxHoles * lists_cells_;
  Args args;
  args.set("missing", text_of(holes_)).set("untimed", text_of(untimed_));
  args.set("all", text_of(missing ? lists_cells_ : timed_ + untimed_));
  return words(missing ? "coverage.not_analysed.missing" : "coverage.not_analysed.untimed", args);
}

}  // namespace stageline
