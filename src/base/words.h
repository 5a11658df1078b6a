// The sentences of the program as data: each has a name and a text in every language, in the words.json of its room.
// Sentences of several rooms are in src/words.json. The code names a sentence and gives its arguments; it contains no
// sentence itself. A name that two files have is an error of the build.
//
//     "rank.slow.title": {"en": "{rank} takes {ratio} the time of the others{some? in {count} steps}: check that
//     device",
//                         "zh": "{rank} 的用时是其他的 {ratio}{some?（其中 {count} 步）}：请检查该设备"}
//
//     words("rank.slow.title", Args().set("rank", "Rank 3").set("ratio", times(1.4)))
//
// {name} is an argument. {name?this} stands for "this" when the argument is set and not empty; {name?this|that} stands
// for "that" when it is not. An argument may have different texts in the two languages, and places may stand within
// others.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// Holds one text in both languages.
struct Text {
  std::string en, zh;
  bool empty() const { return en.empty(); }
  // Returns the Chinese if asked for and known, otherwise the English.
  const std::string& in(bool chinese) const { return chinese && !zh.empty() ? zh : en; }
  Text& operator+=(const Text& other) {
    en += other.en, zh += other.zh;
    return *this;
  }
};

// Returns the parts in their order, with `between` between each two.
Text joined(const std::vector<Text>& parts, const Text& between);

// The arguments of a sentence: numbers, names and other texts, each under the name that the sentence uses.
class Args {
 public:
  Args& set(std::string_view name, std::string value);  // the same in both languages
  Args& set(std::string_view name, Text value);
  Args& set(std::string_view name, int64_t value);  // written without separators: a stage, a rank, a step
  // Sets a count, which is written with separators. {NAME.one?step|steps} asks whether it is one.
  Args& count(std::string_view name, int64_t value);
  Args& flag(std::string_view name, bool on = true);
  bool has(std::string_view name) const { return values_.contains(name); }
  // Returns the argument in one of the languages; "" when it is not set.
  std::string_view of(std::string_view name, bool chinese) const;

 private:
  std::map<std::string, Text, std::less<>> values_;
};

// Returns the sentence of that name. The sentence must exist (has_words()), and so must every argument, except those
// that it only asks about. O(length). Thread-safe.
Text words(std::string_view name, const Args& args = {});
bool has_words(std::string_view name);

// All sentences by their names. The program has those of every words.json (base/sentences.cc); the replay in a report
// has the few that it says (cmake/wasm.cmake).
using Sentences = std::map<std::string, Text, std::less<>>;
const Sentences& sentences();

}  // namespace stageline
