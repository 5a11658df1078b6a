// Finding: one fact worth reporting about a run, with its evidence, its cost and the saving of its fix. The rooms of
// diagnosis/ make findings; each carries its sentences in English and Chinese and is ordered by weight. In
// diagnosis/explain, findings with the same cause are merged, and the rest is ordered by the time lost.
#pragma once

#include "base/words.h"
#include "model/place.h"

namespace stageline {

// Where the numbers of a finding can be looked up: `stageline analyze ANALYSIS …`, in the table TABLE of its answer.
struct FindingEvidence {
  std::string analysis;  // the analysis, "links"; "" when no analysis shows these numbers
  std::string table;     // the table of its answer, "by_link"; "" means the whole answer
};

// The advice and its saving, from a replay (diagnosis/what_if/what_if) or from sums.
struct FindingPrice {
  Text fix;  // the advice, a clause without a full stop: "Move about two layers away from stage 3"
  // The command to type or the setting: "stageline what-if … --micro-batches 8", a layout string; may be "".
  std::string command;
  double saving_ns = 0;  // time saved in the mean step; 0 when it was not computed
  bool at_most = false;  // what can be typed saves less than saving_ns, as where layers stay whole
  Text assumption;       // the assumptions of the saving; may be ""
};

struct Finding {
  std::string id;     // stable name: one of finding_ids(), "none", or "offer.…" for offers of what-if
  double weight = 0;  // share of the step's time that is at stake, 0 … 1; findings are ordered by it
  std::string value;  // the number that matters, in short: "2.08×", "36.4 %"
  // The base of which the value is a share or multiple: "of the median stage".
  Text value_note;
  Text title;   // one sentence
  Text detail;  // evidence and what to try; one or two sentences

  // Fields of findings that have a price. Times are per step, the mean over the steps looked at; outlier steps are
  // excluded unless the finding is about them. Findings with the same place are merged: `explain` keeps the one with
  // the larger saving and appends the other's evidence.
  // All of these places, or one of `or_else` instead (model/place.h). A finding without places is never merged.
  std::vector<Place> places, or_else;
  // One word for labels, set where there is no place: "order", "sequences". key_of() makes the others from the places.
  std::string key;
  // The step and the rank that a page should bring into sight: set where the finding is about one step, or names a rank
  // that no place names.
  std::optional<int64_t> step = std::nullopt;
  std::optional<int32_t> rank = std::nullopt;
  double lost_ns_per_step = 0;  // how much shorter the mean step would be without the cause; 0 when not priced
  double uncertainty_ns = 0;    // the true cost is within ± this of lost_ns_per_step in 95 of 100 runs; 0: unknown
  FindingEvidence evidence;
  FindingPrice price;
  bool is_time = true;  // false: no time is lost; the weight only gives the order, and is never shown
};

// Returns the first finding with this id; null if there is none.
Finding* find_finding(std::vector<Finding>& list, std::string_view id);
bool has_finding(const std::vector<Finding>& list, std::string_view id);

// Its key, or that of its first place; "" without either.
std::string key_of(const Finding& finding);

// Returns the cost of the cause per mean step, or by how much it may be off, in whole ns. Empty where no time is lost,
// which every output shows as null.
std::optional<int64_t> cost_ns(const Finding& finding);
std::optional<int64_t> cost_error_ns(const Finding& finding);

// The ids of all findings, as findings.def lists them.
const std::vector<std::string_view>& finding_ids();

// One part of the span in the first lines of a report; the shares of all parts add up to 1.
struct SpanPart {
  std::string id;  // "compute", "bubble", …; the id also names the part's colour
  Text label;
  double share = 0;
};
struct Headline {
  Text title;
  Text lead;
  Text sizes;  // how `lead` begins where no other line gives stages, ranks and steps
  std::vector<SpanPart> parts;
  std::vector<SpanPart> device_parts;  // of pipelines in profiles, `parts` of their devices' time
  // The same of the hosts' time, where no device was recorded.
  std::vector<SpanPart> host_parts;
  bool host_alone = false;  // `parts` of a profile are of the hosts' time
  // For profiles only: a sentence on the time that no finding explains, and below it the step that shares refer to.
  Text closing;
  double step_ns = 0;  // the mean step, or the whole recording where it has no steps
  int64_t steps = 0;
};

// Appends a sentence to the lead; in English a blank parts it from the one before.
inline void add_lead(Headline& h, const Text& text) {
  if (!h.lead.empty() && !text.empty()) h.lead.en += ' ';
  h.lead += text;
}
// Puts a sentence in front of the lead.
inline void begin_lead(Headline& h, const Text& text) {
  const Text rest = std::exchange(h.lead, text);
  add_lead(h, rest);
}

// Makes one part of the span; the words called `name` are its label.
inline SpanPart span_part(const std::string& id, const std::string& name, double share) {
  return {id, words(name), share};
}

// Sets the title from the words NAME.title, and detail and note from NAME.detail and NAME.note where those exist.
inline void say(Finding& f, const std::string& name, const Args& args = {}) {
  f.title = words(name + ".title", args);
  if (has_words(name + ".detail")) f.detail += words(name + ".detail", args);
  if (has_words(name + ".note")) f.value_note = words(name + ".note", args);
}

// The single finding of a list that found nothing; the words called `name` say what was looked at.
inline Finding nothing_found(const std::string& name) {
  Finding none;
  none.id = "none";
  none.title = words(has_words(name + ".title") ? name + ".title" : "nothing.title");
  none.detail = words(name + ".detail");
  return none;
}

// Lists the parts of a whole with their shares, which add up to 100.0 % as printed.
inline Text parts_text(const std::vector<SpanPart>& parts) {
  auto shares = mapped<double>(parts, &SpanPart::share);
  const std::vector<std::string> printed = percents(shares);
  std::vector<Text> texts;
  for (size_t p = 0; p < parts.size(); ++p)
    texts.push_back(words("part.share", Args().set("label", parts[p].label).set("share", printed[p])));
  return joined(texts, words("list.comma"));
}

}  // namespace stageline
