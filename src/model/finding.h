// Finding: one thing worth saying about a run, with its evidence. Findings are made by the
// pipeline layer, carry their sentences in every language we speak, and are ordered by weight.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stageline {

struct Finding {
  std::string id;                            // stable: "stage.slow"
  double weight = 0;                         // share of the step's time that is at stake, 0..1; orders findings
  std::string value;                         // the number that matters, short: "2.08×", "36.4 %"
  std::string value_note_en, value_note_zh;  // what the value is: "of the median stage"
  std::string title_en, title_zh;            // one sentence
  std::string detail_en, detail_zh;          // evidence and what to try; one or two sentences
};

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
  std::vector<SpanPart> parts;
};

}  // namespace stageline
