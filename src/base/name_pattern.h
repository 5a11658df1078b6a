// The text or regular expression that a user searches for in names. Upper and lower case of ASCII letters are equal.
//
// An expression may contain [a-z] [^…] \d \w \s and their capitals, dots, ( ), the bar for alternatives, * + ?, ^ $,
// and a backslash before any other character. It runs as a set of states (Thompson's construction), so the time is at
// most length of expression × length of text. No expression can make the program hang, which std::regex cannot promise.
#pragma once

#include <bitset>

#include "base/vocabulary.h"

namespace stageline {

class NamePattern {
 public:
  static constexpr size_t kMaxBytes = 256;

  static NamePattern text(std::string_view what);
  // Errors: kUsage, whose message describes the mistake in the expression, or its excessive length.
  static Result<NamePattern> expression(std::string_view what);

  // Returns true when the pattern occurs anywhere in the name.
  bool matches(std::string_view name) const;

 private:
  struct State {
    enum class Type : uint8_t { kBytes, kSplit, kStart, kEnd, kMatch } type = Type::kMatch;
    uint32_t bytes = 0;            // index into sets_
    uint32_t next = 0, other = 0;  // indices of states; `other` is only for kSplit
  };
  using ByteSet = std::bitset<256>;
  class Parser;

  std::string text_;  // in lower case; used when there are no states
  std::vector<State> states_;
  std::vector<ByteSet> sets_;
  uint32_t first_ = 0;
};

// So many bytes of a name say what kind of work it is. Real names of kernels have up to some 20 000; one of megabytes
// is asked about by many analyses.
inline constexpr size_t kTellingBytes = 65536;

// Finds any of several texts of four bytes and more in one pass. The texts must outlive it.
class AnyOf {
 public:
  explicit AnyOf(std::vector<std::string_view> parts);
  // Returns whether one of the texts is in the first kTellingBytes of this name.
  bool in(std::string_view name) const;

 private:
  std::vector<std::string_view> parts_;
  std::bitset<4096> begins_;
};

}  // namespace stageline
