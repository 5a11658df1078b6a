#include "cli/explain_text.h"

#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "base/percents.h"
#include "base/shell_word.h"
#include "base/text.h"
#include "diagnosis/explain_json.h"

namespace stageline {
namespace {

constexpr int kBar = 50;  // width of a whole step

std::string padded(const std::string& text, int width) {
  return std::string(std::max(0, width - display_width(text)), ' ') + text;
}

}  // namespace

std::string explain_text(const Terminal& terminal, const Explanation& e, const std::vector<std::string>& paths) {
  const bool zh = terminal.lang == "zh";
  const auto pick = [&](const Text& text) { return text.in(zh); };
  std::string out = e.run.empty() ? wrapped(pick(e.headline.title), terminal.width, 0) : pick(e.run) + "\n";
  if (e.run.empty())
    out += wrapped(pick(e.headline.lead), terminal.width, 0);
  else if (!e.opening.empty())
    out += wrapped(pick(e.opening), terminal.width, 0);
  const auto bars = [&](const std::vector<SpanPart>& parts) {
    int widest = 0;
    for (const SpanPart& part : parts) widest = std::max(widest, display_width(pick(part.label)));
    if (!parts.empty()) out += "\n";
    std::vector<double> shares;
    for (const SpanPart& part : parts) shares.push_back(part.share);
    const std::vector<std::string> printed = percents(shares);
    const std::string zero = percent(0);
    for (size_t p = 0; p < parts.size(); ++p) {
      const SpanPart& part = parts[p];
      if (part.share >= 0 && printed[p] == zero) continue;
      const std::string label = pick(part.label);
      const size_t length = std::clamp<long>(std::lround(part.share * kBar), 0L, kBar);
      std::string bar;
      for (size_t i = 0; i < length; ++i) bar += "█";
      std::string line =
          padded(printed[p], 9) + "  " + label + std::string(widest - display_width(label) + 2, ' ') + bar;
      while (line.ends_with(' ')) line.pop_back();
      out += line + "\n";
    }
  };
  bars(e.parts);
  const auto of_recording = [&](const char* sentence, const std::vector<SpanPart>& parts) {
    if (!parts.empty()) out += "\n" + terminal.say(sentence) + "\n";
    bars(parts);
  };
  of_recording("explain.device_parts", e.headline.device_parts);
  of_recording("explain.host_parts", e.headline.host_parts);
  out += "\n";
  if (!e.note.empty()) out += wrapped(pick(e.note), terminal.width, 0) + "\n";
  int number = 0;
  for (const Finding& f : e.findings) {
    const std::string title = std::to_string(++number) + ". " + pick(f.title);
    out += priced_title(terminal, title, price_of(f, zh));
    out += wrapped(pick(f.detail), terminal.width, 3);
    if (const std::string command = finding_command(f, paths); !command.empty()) out += "   " + command + "\n";
  }
  std::string offers;
  for (const Finding& f : e.offers) offers += priced_title(terminal, "   " + pick(f.title), price_of(f, zh));
  const std::string more = paths.empty() ? "" : "stageline report" + shell_words(paths) + " -o report.html";
  if (!e.findings.empty()) out += "\n";
  const Text closing = closing_words(e);
  out += wrapped(pick(closing), terminal.width, 0);
  if (!offers.empty()) {
    out += "\n" + terminal.say("offers.head") + "\n" + offers;
    out += "   stageline what-if" + shell_words(paths) + "\n";
  }
  return out + terminal.say("explain.report", Args().set("command", more)) + "\n";
}

}  // namespace stageline
