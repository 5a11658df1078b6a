// Finding: one thing worth saying about a run, with its evidence, what it costs and what its fix is worth. Findings
// are made by the pipeline and engine layers, carry their sentences in every language we speak, and are ordered by
// weight; diagnosis/explain merges those of one cause and orders the rest by the time lost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

// Where the numbers of a finding can be looked up: `stageline analyze ANALYSIS …`, table TABLE of its answer.
struct FindingEvidence {
  std::string analysis;  // "links"; "": none
  std::string table;     // "by_link"; "": the whole analysis
};

// What would help and what that is worth, from a replay (diagnosis/what_if/what_if) or from sums.
struct FindingPrice {
  std::string fix_en, fix_zh;  // what to do, one clause without a full stop: "Move about two layers away from stage 3"
  std::string command;         // to type or to set: "stageline what-if … --micro-batches 8", a layout string; may be ""
  double saving_ns = 0;        // per step, of the mean step; 0: nobody computed it
  bool per_token = false;      // the fix changes how much work a step does: saving_ns is at equal work
  std::string assumption_en, assumption_zh;  // what the number rests on; may be ""
};

struct Finding {
  std::string id;                            // stable: one of finding_ids(), "none", or "offer.…" of what-if's
  double weight = 0;                         // share of the step's time that is at stake, 0..1; orders findings
  std::string value;                         // the number that matters, short: "2.08×", "36.4 %"
  std::string value_note_en, value_note_zh;  // what the value is: "of the median stage"
  std::string title_en, title_zh;            // one sentence
  std::string detail_en, detail_zh;          // evidence and what to try; one or two sentences

  // Priced findings. Times are per step, over the steps looked at (outliers left out, where the finding is not about
  // them). Two findings with the same cause are one: `explain` keeps the one with the better price, and the other's
  // evidence beside its own.
  // What is at fault: "stage:3", "link:1-2", "host"; all its names, parted by blanks, the first the best; "": never merged.
  std::string cause = {};  // NOLINT(readability-redundant-member-init): GCC wants it
  // Where it shows, when it is about one step or names a rank that `cause` does not: what a page brings into sight.
  std::optional<int64_t> step = std::nullopt;
  std::optional<int32_t> rank = std::nullopt;
  double lost_ns_per_step = 0;    // time of the mean step that would not be there without the cause; 0: not priced
  double uncertainty_ns = 0;      // standard error of lost_ns_per_step; below twice it nothing is said
  FindingEvidence evidence = {};  // NOLINT(readability-redundant-member-init): GCC wants it
  FindingPrice price = {};        // NOLINT(readability-redundant-member-init): GCC wants it
};

// The ids of all findings there are, as findings.def lists them.
const std::vector<std::string_view>& finding_ids();

// The first lines of a report: a sentence with the number that matters, and the span as parts
// that add up to 1.
struct SpanPart {
  std::string id;  // "compute", "bubble", …: also the name of its colour
  std::string label_en, label_zh;
  double share = 0;
};
struct Headline {
  std::string title_en, title_zh;
  std::string lead_en, lead_zh;
  std::string sizes_en = {}, sizes_zh = {};  // what `lead` begins with where no other line says stages, ranks and steps
  std::vector<SpanPart> parts;
  std::vector<SpanPart> device_parts = {};  // NOLINT(readability-redundant-member-init): of pipelines in profiles,
                                            // `parts` of their devices' time
  // Of profiles: what the findings leave, a sentence; and what shares are of. Else "" and 0.
  std::string closing_en, closing_zh;
  double step_ns = 0;  // the mean step, or the whole recording where it has no steps
  int64_t steps = 0;
};

}  // namespace stageline
