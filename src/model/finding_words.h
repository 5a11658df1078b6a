// Puts sentences of words.json into findings and headlines.
#pragma once

#include <string>
#include <utility>

#include "base/words.h"
#include "model/finding.h"

namespace stageline {

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

}  // namespace stageline
