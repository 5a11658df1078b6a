// The input and the result of every kind's `tell`, which puts causes into words.
#pragma once

#include "diagnosis/causes/cause_list.h"
#include "model/finding.h"
#include "pipeline/order/recognise.h"

namespace stageline {

// Holds the words of one finding.
struct Telling {
  std::string_view id;  // of the finding, of model/findings.def
  Text title, detail;   // one sentence; the evidence
  Text more = {};       // evidence that comes after the cause's shape in time
  Text fix, assumption = {};
  FindingEvidence table = {};
  std::string key = {};  // one word for labels where no place makes it; "": the first place does
  // The places to look at, if the cause's places do not give them; they are not the culprit.
  std::optional<int64_t> step = std::nullopt;
  std::optional<int32_t> rank = std::nullopt;
};

// The run whose causes are reported.
class TellContext {
 public:
  TellContext(const Trace& trace, const CauseList& list, const Recognition& recognition);

  const Trace& trace;
  const CauseList& list;
  const Recognition& recognition;
  int32_t replicas = 1, stages = 1;

  // "61.1 ms (15.5 %)": a time with its share of the step.
  Text share(double ns) const;
  int32_t step_number(size_t index) const;
  // "Rank 5 with its peers 4–7, …": tensor-parallel ranks hold one stage of one replica together.
  Text rank(int32_t rank, bool with_peers) const;
  Text schedule() const;  // its name
  // Arguments that words of any kind may use: price, figures, the first place, the shape in time.
  Args args(const Cause& cause) const;
  Args course_args(const Course& course) const;
  // " It happens since step 10 and rarely before."; "" where all steps are alike, or without a plain shape.
  Text when(const Course& course) const;

 private:
  Text course(const Course& course, bool always) const;
};

// "in 3 of 8 steps"
Text in_steps_text(const StepShare& steps);
// "third": the name of a small number.
Text nth_text(size_t every);
// "1, 2, 3, …": lists at most `max` of them.
std::string some_of(const std::vector<std::string>& all, size_t max);
// "forward"
Text cell_text(CellKind kind);

// Fills title, detail, fix and assumption from the words NAME.title and so on. If NAME has no fix or assumption, those
// of the finding are used. {saves} in the detail is NAME.saves or, where no cause has a cost, a sentence on that.
Telling say_cause(std::string_view id, const std::string& name, Args args);

}  // namespace stageline
