// What the program says of a run, as data: sentences by name, in every language we speak (src/words.json). Logic names
// a sentence and gives its arguments; it holds no sentence itself.
//
//     "rank.slow.title": {"en": "{rank} takes {ratio} the time of the others{some? in {count} steps}: check that
//     device",
//                         "zh": "{rank} 的用时是其他的 {ratio}{some?（其中 {count} 步）}：请检查该设备"}
//
//     words("rank.slow.title", Args().set("rank", "Rank 3").set("ratio", times(1.4)))
//
// {name} is an argument; {name?this} stands where the argument is set and not empty, {name?this|that} has that instead
// where it is not. What stands for an argument may be different in the two languages, and places may stand within
// others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

// One text in both languages.
struct Text {
  std::string en, zh;
  bool empty() const { return en.empty(); }
  const std::string& in(bool chinese) const { return chinese ? zh : en; }
  Text& operator+=(const Text& other) {
    en += other.en, zh += other.zh;
    return *this;
  }
};

// The parts in their order, `between` between each two.
Text joined(const std::vector<Text>& parts, const Text& between);

// Numbers, names and other texts by the names that a sentence has for them.
class Args {
 public:
  Args& set(std::string_view name, std::string value);  // the same in both languages
  Args& set(std::string_view name, Text value);
  Args& set(std::string_view name, int64_t value);  // as it is, without separators: a stage, a rank, a step
  // How many there are, with separators; {NAME.one?step|steps} asks whether that is one.
  Args& count(std::string_view name, int64_t value);
  Args& flag(std::string_view name, bool on = true);
  bool has(std::string_view name) const { return values_.contains(name); }
  // The argument in one of the languages; "" where it is not set.
  std::string_view of(std::string_view name, bool chinese) const;

 private:
  std::map<std::string, Text, std::less<>> values_;
};

// The sentence of that name. Expects that there is one (has_words()), and every argument that it does not merely ask.
// O(length). Thread-safe.
Text words(std::string_view name, const Args& args = {});
bool has_words(std::string_view name);

// What is wrong with the sentences themselves: a language without one, braces that do not close, arguments that one
// language has and the other has not, a letter of the wrong language's script; each with the sentence's name.
std::vector<std::string> flaws_of_words();

}  // namespace stageline
