// What a user looks for in names: a text, or a regular expression. ASCII letters match either case.
//
// Expressions: . [a-z] [^…] \d \w \s and their capitals, ( ) |, * + ?, ^ $, \ before anything else. They run as a set
// of states (Thompson's construction), so the time is expression × text whatever both are: no expression makes a
// program hang, which std::regex cannot promise.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stageline {

class NamePattern {
 public:
  static constexpr size_t kMaxBytes = 256;

  static NamePattern text(std::string_view what);
  // Errors: kUsage saying what is wrong with the expression, or that it is too long.
  static Result<NamePattern> expression(std::string_view what);

  // Whether it stands anywhere in the name.
  bool matches(std::string_view name) const;

 private:
  struct State {
    enum class Type : uint8_t { kBytes, kSplit, kStart, kEnd, kMatch } type = Type::kMatch;
    uint32_t bytes = 0;            // into sets_
    uint32_t next = 0, other = 0;  // states; other: of kSplit
  };
  using ByteSet = std::bitset<256>;
  class Parser;

  std::string text_;  // lower case; used when there are no states
  std::vector<State> states_;
  std::vector<ByteSet> sets_;
  uint32_t first_ = 0;
};

}  // namespace stageline
