// Puts sentences of src/words.json into findings and headlines.
#pragma once

#include <string>

#include "base/words.h"
#include "model/finding.h"

namespace stageline {

inline Text title_of(const Finding& f) { return {f.title_en, f.title_zh}; }
inline Text detail_of(const Finding& f) { return {f.detail_en, f.detail_zh}; }

inline void set_title(Finding& f, const Text& text) { f.title_en = text.en, f.title_zh = text.zh; }
inline void set_detail(Finding& f, const Text& text) { f.detail_en = text.en, f.detail_zh = text.zh; }
inline void add_detail(Finding& f, const Text& text) { f.detail_en += text.en, f.detail_zh += text.zh; }
// Says what the finding's value is a share or a multiple of.
inline void set_note(Finding& f, const Text& text) { f.value_note_en = text.en, f.value_note_zh = text.zh; }

inline void set_fix(Finding& f, const Text& text) { f.price.fix_en = text.en, f.price.fix_zh = text.zh; }

inline void set_title(Headline& h, const Text& text) { h.title_en = text.en, h.title_zh = text.zh; }
inline void set_lead(Headline& h, const Text& text) { h.lead_en = text.en, h.lead_zh = text.zh; }
// Appends a sentence to the lead; in English a blank parts it from the one before.
inline void add_lead(Headline& h, const Text& text) {
  h.lead_en += (h.lead_en.empty() || text.empty() ? "" : " ") + text.en;
  h.lead_zh += text.zh;
}
// Puts a sentence in front of the lead.
inline void begin_lead(Headline& h, const Text& text) {
  h.lead_en = text.en + (h.lead_en.empty() || text.empty() ? "" : " ") + h.lead_en;
  h.lead_zh = text.zh + h.lead_zh;
}
inline void set_closing(Headline& h, const Text& text) { h.closing_en = text.en, h.closing_zh = text.zh; }

// Makes one part of the span; the words called `name` are its label.
inline SpanPart span_part(const std::string& id, const std::string& name, double share) {
  const Text label = words(name);
  return {id, label.en, label.zh, share};
}

// Sets the title from the words NAME.title, and detail and note from NAME.detail and NAME.note where those exist.
inline void say(Finding& f, const std::string& name, const Args& args = {}) {
  set_title(f, words(name + ".title", args));
  if (has_words(name + ".detail")) add_detail(f, words(name + ".detail", args));
  if (has_words(name + ".note")) set_note(f, words(name + ".note", args));
}

// The single finding of a list that found nothing; the words called `name` say what was looked at.
inline Finding nothing_found(const std::string& name) {
  Finding none;
  none.id = "none";
  set_title(none, words(has_words(name + ".title") ? name + ".title" : "nothing.title"));
  set_detail(none, words(name + ".detail"));
  return none;
}

}  // namespace stageline
