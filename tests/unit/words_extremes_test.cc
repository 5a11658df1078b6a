// Renders every sentence of every words.json with extreme arguments and reads the result as a person would.
//
// A sentence is a tree: texts, arguments, and questions {name?this|that}. The test walks the tree itself, so it renders
// also what no fixture of the tests brings about. Arguments are 0, 1, many and a very long name; each question is
// answered both ways. An argument NAME.one (or a flag called "one…") is set where the numbers are 1.
#include <doctest/doctest.h>
#include <simdjson.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/words.h"
#include "source_dir.h"

namespace stageline {
namespace {

struct Sentence {
  std::string name, en, zh;
};

// The sentences {"name": {"en": …, "zh": …}} of the program; those of the viewer are ["…", "…"] with numbered places.
std::vector<Sentence> sentences_below(const std::string& folder) {
  std::vector<Sentence> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() + folder)) {
    if (entry.path().filename() != "words.json") continue;
    simdjson::dom::parser parser;
    const simdjson::dom::object names = parser.load(entry.path().string());
    for (const auto& [name, value] : names) {
      std::string_view en, zh;
      if (value["en"].get(en) == simdjson::SUCCESS && value["zh"].get(zh) == simdjson::SUCCESS)
        all.push_back({std::string(name), std::string(en), std::string(zh)});
      else if (value.is_array() && value.at(0).get(en) == simdjson::SUCCESS && value.at(1).get(zh) == simdjson::SUCCESS)
        all.push_back({std::string(name), std::string(en), std::string(zh)});
    }
  }
  return all;
}

// ---- the tree of a sentence
// ------------------------------------------------------------------------------------------

struct Node {
  enum { kText, kArgument, kQuestion } kind = kText;
  std::string text;  // the text itself, or the name of the argument
  std::vector<Node> then, otherwise;
};

// Outside of questions a bar is text: of a shell's pipe.
std::vector<Node> parse(const std::string& text, size_t& at, bool asked = false) {
  std::vector<Node> nodes;
  const char* const ends = asked ? "{}|" : "{}";
  while (at < text.size() && text[at] != '}' && !(asked && text[at] == '|')) {
    Node node;
    if (text[at] != '{') {
      const size_t end = std::min(text.find_first_of(ends, at), text.size());
      node.text = text.substr(at, end - at);
      at = end;
    } else {
      const size_t end = text.find_first_of("?}", at);
      REQUIRE(end != std::string::npos);
      node.kind = text[end] == '?' ? Node::kQuestion : Node::kArgument;
      node.text = text.substr(at + 1, end - at - 1);
      at = end + 1;
      if (node.kind == Node::kQuestion) {
        node.then = parse(text, at, true);
        if (at < text.size() && text[at] == '|') node.otherwise = parse(text, ++at, true);
        ++at;  // the closing brace
      }
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}
std::vector<Node> tree_of(const std::string& text) {
  size_t at = 0;
  return parse(text, at);
}

// The arguments whose text a sentence contains. Arguments that it only asks about may differ between languages, because
// of grammar.
std::set<std::string> arguments_in(const std::vector<Node>& nodes) {
  std::set<std::string> names;
  for (const Node& node : nodes) {
    if (node.kind == Node::kArgument) names.insert(node.text);
    for (const auto* part : {&node.then, &node.otherwise}) names.merge(arguments_in(*part));
  }
  return names;
}

std::set<std::string> arguments_of(const std::string& text) {
  size_t at = 0;
  const std::vector<Node> nodes = parse(text, at);
  CHECK_MESSAGE(at == text.size(), "a brace does not close, or closes nothing");
  return arguments_in(nodes);
}

bool has_chinese_script(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0xe4 && byte <= 0xe9;
  });
}

// Returns whether a condition is only about grammar: {steps.one?step|steps}.
bool asks_for_one(const std::string& name) {
  return name == "one" || name.starts_with("one_") || name.ends_with(".one") || name.ends_with("_one");
}

void questions_of(const std::vector<Node>& nodes, std::set<std::string>& names) {
  for (const Node& node : nodes) {
    if (node.kind == Node::kQuestion && !asks_for_one(node.text)) names.insert(node.text);
    questions_of(node.then, names);
    questions_of(node.otherwise, names);
  }
}

std::string render(const std::vector<Node>& nodes, const std::set<std::string>& yes, const std::string& value) {
  std::string out;
  for (const Node& node : nodes) switch (node.kind) {
      case Node::kText: out += node.text; break;
      case Node::kArgument: out += value; break;
      case Node::kQuestion: {
        const bool on = asks_for_one(node.text) ? value == "1" : yes.contains(node.text);
        out += render(on ? node.then : node.otherwise, yes, value);
      }
    }
  return out;
}

struct Alternatives {
  int32_t count = 0, depth = 0;
};
Alternatives alternatives_of(const std::vector<Node>& nodes) {
  Alternatives all;
  for (const Node& node : nodes) {
    if (node.kind != Node::kQuestion) continue;
    const int32_t own = asks_for_one(node.text) ? 0 : 1;
    const Alternatives then = alternatives_of(node.then), otherwise = alternatives_of(node.otherwise);
    all.count += own + then.count + otherwise.count;
    all.depth = std::max(all.depth, own + std::max(then.depth, otherwise.depth));
  }
  return all;
}

// Every way to answer the questions; of more than eight questions, all yes, all no, and each one alone.
std::vector<std::set<std::string>> answers_to(const std::set<std::string>& names) {
  constexpr size_t kAll = 8;
  const std::vector<std::string> list(names.begin(), names.end());
  std::vector<std::set<std::string>> out;
  if (list.size() > kAll) {
    out = {{}, names};
    for (const std::string& name : list) out.push_back({name});
    return out;
  }
  for (size_t bits = 0; bits < size_t{1} << list.size(); ++bits) {
    std::set<std::string> yes;
    for (size_t i = 0; i < list.size(); ++i)
      if (bits >> i & 1) yes.insert(list[i]);
    out.push_back(std::move(yes));
  }
  return out;
}

// ---- what a reader would object to
// -----------------------------------------------------------------------------------

bool has_chinese(const std::string& text) {
  for (size_t i = 0; i + 2 < text.size(); ++i)
    if (const auto lead = static_cast<uint8_t>(text[i]); lead >= 0xe4 && lead <= 0xe9) return true;
  return false;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_'; }

// "1 ranks", but not "11 ranks", "2.1 steps" or "1 of 1 steps".
bool has_plural_of_one(const std::string& text) {
  static const std::set<std::string, std::less<>> nouns = {
      "ranks", "steps", "stages",  "micro-batches", "chunks",  "replicas", "pipelines", "cells",
      "rows",  "gaps",  "links",   "messages",      "kernels", "slices",   "layers",    "groups",
      "calls", "runs",  "devices", "times",         "orders",  "fixes"};
  for (size_t at = text.find("1 "); at != std::string::npos; at = text.find("1 ", at + 1)) {
    if (at > 0 && (is_word(text[at - 1]) || text[at - 1] == '.' || text[at - 1] == '\xaf')) continue;
    if (at >= 3 && text.compare(at - 3, 3, "of ") == 0) continue;
    size_t end = at + 2;
    while (end < text.size() && is_word(text[end])) ++end;
    if (nouns.contains(text.substr(at + 2, end - at - 2))) return true;
  }
  return false;
}

// "()" and "( )", but not the call "gc.collect()".
bool has_empty_brackets(const std::string& text) {
  for (size_t at = text.find_first_of("(["); at != std::string::npos; at = text.find_first_of("([", at + 1)) {
    const size_t next = text.find_first_not_of(' ', at + 1);
    if (next != std::string::npos && (text[next] == ')' || text[next] == ']') && (at == 0 || !is_word(text[at - 1])))
      return true;
  }
  return text.find("（）") != std::string::npos;
}

bool has_stray_punctuation(const std::string& text) {
  for (const char* two :
       {",,", ";;", "( ", "(,", "(;", "，，", "。。", "；；", "：：", "，。", "；。", "、、", "（，", "，）"})
    if (text.find(two) != std::string::npos) return true;
  for (size_t at = 0; at + 1 < text.size(); ++at) {
    const bool ends = at + 2 == text.size() || text[at + 2] == ' ';
    if (text[at] == ' ' && ends && std::string_view(",;:)").find(text[at + 1]) != std::string::npos) return true;
    const bool suffix = at + 2 < text.size() && is_word(text[at + 2]);  // "(.json)"
    if (text[at] == '(' && text[at + 1] == '.' && !suffix) return true;
    const bool dots = text[at] == '.' && text[at + 1] == '.';
    if (dots && (at == 0 || text[at - 1] != '.') && (at + 2 == text.size() || text[at + 2] != '.')) return true;
  }
  return false;
}

bool has_english(const std::string& text) {
  static const std::set<std::string, std::less<>> small = {"the", "of", "and", "is", "are", "with", "for", "from"};
  for (size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    for (end = at; end < text.size() && is_word(text[end]);) ++end;
    if (small.contains(text.substr(at, end - at))) return true;
  }
  return false;
}

// Returns the objections to a rendered text.
std::vector<std::string> objections(const std::string& text, bool english) {
  std::vector<std::string> out;
  if (text.find("  ") != std::string::npos) out.emplace_back("two blanks");
  if (has_empty_brackets(text)) out.emplace_back("empty brackets");
  if (has_stray_punctuation(text)) out.emplace_back("stray punctuation");
  if (english && has_plural_of_one(text)) out.emplace_back("a plural after 1");
  if (english && has_chinese(text)) out.emplace_back("Chinese");
  if (!english && has_english(text)) out.emplace_back("English");
  return out;
}

// Counts the words of a clause without the evidence in brackets.
int64_t words_in(const std::string& clause) {
  static const std::regex evidence("\\([^()]*\\)"), word("[^ –—·\xe2\x80\xaf]*[A-Za-z0-9%][^ –—·]*");
  const std::string bare = std::regex_replace(clause, evidence, "");
  return std::distance(std::sregex_iterator(bare.begin(), bare.end(), word), std::sregex_iterator());
}

bool is_title(const std::string& name) { return name.ends_with(".title"); }

// Where one is impossible, or where the number does not count what follows.
const std::set<std::string, std::less<>> kNeverOne = {
    "coverage.places",               // a part of several stages
    "coverage.part",                 // a pipeline has several stages
    "what_if.divided",               // of all layers
    "fix.balance.assumes",           // layers that can move
    "fix.lone_worker.assumes",       // "8, 8, 7, 7"
    "fix.schedule.name",             // set only where chunks are several
    "schedule.ways.chunks",          // as above
    "diff.run.sizes",                // set only where replicas are several
    "diff.run.chunks",               // as above
    "pipelines",                     // several
    "pipelines.odd",                 // several
    "pipelines.replicas",            // several
    "replicas.last.varies",          // of several steps
    "finding.uneven.detail",         // a longest and a shortest step
    "finding.late_start.detail",     // set only where stages are several
    "profile.link.detail",           // "other NVLink links"
    "profile.exposed.absent",        // a group of several
    "profile.loss.short.detail",     // many kernels
    "coverage.not_analysed.stages",  // more than there may be
    "notes.line",                    // a count is set only where it is several
    "allocator.oom.times",           // as above
    // Work that repeats, ranks of which some are missing, replicas that are several:
    "problem.reader.steps_missing", "problem.reader.steps_numbered", "problem.kineto.missing_ranks",
    "layout.inferred.replicas",
    // Sentences of causes, whose counts come without a number of their own:
    "course.some", "data.uneven.detail", "host.pauses.collector.detail", "host.pauses.many.detail",
    "host.pauses.guessed.detail", "host.late_starts.detail", "sends.blocking.detail", "long_step.link",
    "long_step.hosts"};

}  // namespace

TEST_CASE("every sentence has both languages, with the same arguments") {
  CHECK(!sentences().empty());
  for (const auto& [name, text] : sentences()) {
    CAPTURE(name);
    CHECK(!text.en.empty());
    CHECK(!text.zh.empty());
    CHECK(arguments_of(text.en) == arguments_of(text.zh));
    CHECK(!has_chinese_script(text.en));
  }
}

TEST_CASE("every sentence of the program reads well with 0, 1, many and very long names, in both languages") {
  const std::string long_name = "aten::" + std::string(300, 'x');
  size_t read = 0;
  for (const Sentence& sentence : sentences_below("/src"))
    for (const bool english : {true, false}) {
      const std::vector<Node> tree = tree_of(english ? sentence.en : sentence.zh);
      std::set<std::string> names, seen, texts;
      questions_of(tree, names);
      for (const std::set<std::string>& yes : answers_to(names))
        for (const std::string& value : {std::string("0"), std::string("1"), std::string("12\u202f345"), long_name}) {
          const std::string text = render(tree, yes, value);
          if (!texts.insert(text).second) continue;
          ++read;
          for (const std::string& objection : objections(text, english)) {
            if (objection == "a plural after 1" && kNeverOne.contains(sentence.name)) continue;
            if (seen.insert(objection).second) FAIL_CHECK(sentence.name << ": " << objection << ": " << text);
          }
        }
    }
  CHECK(read > 4'000);
}

TEST_CASE("every sentence of the viewer reads well, in both languages") {
  static const std::regex place("\\{[0-9]+\\}");
  // The name of the other language is in that language; keys are written as they are typed.
  const std::set<std::string> other = {"lang.other", "cmd.lang", "live.language", "details.none"};
  size_t read = 0;
  for (const Sentence& sentence : sentences_below("/web/src"))
    for (const bool english : {true, false})
      for (const std::string& value : {std::string("0"), std::string("12\u202f345"), std::string(300, 'x')}) {
        const std::string text = std::regex_replace(english ? sentence.en : sentence.zh, place, value);
        ++read;
        if (other.contains(sentence.name)) continue;
        for (const std::string& objection : objections(text, english))
          FAIL_CHECK(sentence.name << ": " << objection << ": " << text);
      }
  CHECK(read > 1'000);
}

TEST_CASE("a title has at most twelve words before and after its colon, and one colon") {
  constexpr int64_t kMaxWords = 12;
  constexpr int64_t kUnits = 4;  // a number is one word with its unit and its base: "10.9 % of each step"
  size_t read = 0;
  for (const Sentence& sentence : sentences_below("/src")) {
    if (!is_title(sentence.name)) continue;
    const std::vector<Node> tree = tree_of(sentence.en);
    std::set<std::string> names;
    questions_of(tree, names);
    for (const std::set<std::string>& yes : answers_to(names)) {
      ++read;
      const std::string text = std::regex_replace(render(tree, yes, "1"), std::regex("\\([^()]*\\)"), "");
      const size_t colon = text.find(": ");
      CHECK_MESSAGE((colon == std::string::npos || text.find(": ", colon + 1) == std::string::npos),
                    sentence.name << ": " << text);
      for (const std::string& clause :
           {text.substr(0, colon), colon == std::string::npos ? std::string() : text.substr(colon + 2)})
        CHECK_MESSAGE(words_in(clause) <= kMaxWords + kUnits, sentence.name << ": " << clause);
    }
  }
  CHECK(read > 100);
}

TEST_CASE("a sentence has at most two alternatives, none within another; variants are sentences of their own") {
  size_t flat = 0;
  for (const Sentence& sentence : sentences_below("/src")) {
    const Alternatives en = alternatives_of(tree_of(sentence.en)), zh = alternatives_of(tree_of(sentence.zh));
    const bool good = std::max(en.count, zh.count) <= 2 && std::max(en.depth, zh.depth) <= 1;
    flat += good;
    CHECK_MESSAGE(good, sentence.name << ": " << en.count << " alternatives, " << en.depth << " deep");
  }
  CHECK(flat > 700);
}

TEST_CASE("what the reader of sentences objects to") {
  const auto says = [](const std::string& text, bool english = true) {
    const std::vector<std::string> found = objections(text, english);
    return found.size() == 1 ? found.front() : std::to_string(found.size());
  };
  CHECK(says("It starts on 1 ranks.") == "a plural after 1");
  CHECK(says("It starts on 1 rank, 11 ranks, 2.1 steps, 1 of 1 steps.") == "0");
  CHECK(says("Rank 3  is slow.") == "two blanks");
  CHECK(says("Rank 3 () is slow.") == "empty brackets");
  CHECK(says("Call gc.collect() every few steps.") == "0");
  CHECK(says("Rank 3 , 4 are slow.") == "stray punctuation");
  CHECK(says("Rank 3 (.) is slow.") == "stray punctuation");
  CHECK(says("This is a trace (.json).") == "0");
  CHECK(says("Rank 3 is 慢.") == "Chinese");
  CHECK(says("the schedule 的顺序", false) == "English");
  CHECK(says("rank 3（）慢", false) == "empty brackets");
  CHECK(alternatives_of(tree_of("{a?x|y} {n.one?step|steps}")).count == 1);
  CHECK(alternatives_of(tree_of("{a?{b?x}|y}")).depth == 2);
  CHECK(words_in("Stage 2 (1.40× the other stages) is slow") == 4);
}

}  // namespace stageline
