// Problem: one kind of flaw or fact that Stageline reports on its input or its answer, for example a line of a log that
// was cut. Each room has its own in words.json, with the severity and the sentence in both languages. The build makes
// a constant of each in the header problems.h of the room (cmake/chinese.cmake):
//
//     "problem.paddle.bad_number": {"severity": "loss", "en": …, "zh": …}   // readers/paddle_log/words.json
//     #include "readers/paddle_log/problems.h"
//     diagnostics.add(problem::paddle_bad_number, {path});                  // base/diagnostics.h
//
// Names are stable, dotted and lower-case: "paddle.bad_number". A third part names another sentence of the problem:
// "problem.paddle.bad_number.time". They are counted together, and the first that occurs is shown.
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

}  // namespace stageline
