// Problem: one kind of flaw or fact that Stageline reports on its input or its answer, for example a line of a log that
// was cut. Each room lists its own in problems.h and has their sentences beside it in words.json, in both languages:
//
//     PROBLEM(paddle, bad_number, kLoss);                      // readers/paddle_log/problems.h
//     "problem.paddle.bad_number": {"en": …, "zh": …}          // readers/paddle_log/words.json
//     diagnostics.add(problem::paddle_bad_number, {path});     // base/diagnostics.h
//
// Names are stable, dotted and lower-case: "paddle.bad_number". tools/tidy.py checks that each has a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stageline {

enum class Severity : uint8_t {
  kInfo,     // a fact about how the input was read ("stages inferred from warm-up counts")
  kWarning,  // something is odd, but nothing was lost
  kLoss,     // part of the input could not be used
};

std::string_view severity_name(Severity severity);  // "info", "warning", "loss"

struct Problem {
  std::string_view name;         // "paddle.bad_number"
  Severity severity;             // unless as() changes it
  std::string_view words;        // the sentence: "problem.paddle.bad_number"
  std::string_view reader = {};  // stands for the first part of the name, in problems that several readers share
  std::string_view about = {};   // a last part of the name, where each rank or analysis has a problem of its own

  constexpr Problem as(Severity other) const { return {name, other, words, reader, about}; }
  // reader_no_steps.of("op_json") is named "op_json.no_steps".
  constexpr Problem of(std::string_view format) const { return {name, severity, words, format, about}; }
  // analysis_not_possible.on("roofline") is named "analysis.not_possible.roofline".
  constexpr Problem on(std::string_view what) const { return {name, severity, words, reader, what}; }
  std::string full_name() const;
};

// Defines problem::AREA_NAME, named "AREA.NAME".
#define PROBLEM(area, name, severity) \
  inline constexpr Problem area##_##name { #area "." #name, Severity::severity, "problem." #area "." #name }
// Defines another sentence of the problem AREA.NAME: they are counted together, and the first that occurs is shown.
#define PROBLEM_CASE(area, name, which, severity)                              \
  inline constexpr Problem area##_##name##_##which {                           \
    #area "." #name, Severity::severity, "problem." #area "." #name "." #which \
  }

}  // namespace stageline
