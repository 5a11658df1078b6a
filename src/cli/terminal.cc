#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "base/environment.h"
#include "base/output_file.h"

namespace stageline {
namespace {

std::string language_of_environment() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const std::string value = environment(name);
    if (!value.empty()) return value.starts_with("zh") ? "zh" : "en";
  }
  return "en";
}

// Returns 0 when the width is unknown: the output is not a terminal and COLUMNS is not set.
int full_columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return size.ws_col;
  if (const auto value = parse_int(environment("COLUMNS")); value && *value >= 40)
    return static_cast<int>(std::min<int64_t>(*value, 1000));
  return 0;
}

int columns() {
  const int full = full_columns();
  return full == 0 ? 80 : std::min(full, 100);
}

std::string painted(std::string_view text, const char* code, bool colour) {
  return colour ? std::string("\x1b[") + code + "m" + std::string(text) + "\x1b[0m" : std::string(text);
}

// Splits text into tokens, each with the space after it. A line of CJK text may be broken between any two characters.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  std::string word;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t length = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    const std::string_view one = text.substr(i, length);
    i += length;
    if (one == " ") {
      if (!word.empty()) tokens.push_back(std::move(word));
      word.clear();
      tokens.emplace_back(" ");
    } else if (display_width(one) == 2) {
      const bool closes = one == "，" || one == "。" || one == "；" || one == "）" || one == "：" || one == "、";
      if (closes && word.empty() && !tokens.empty() && tokens.back() != " ") {
        tokens.back() += one;
      } else if (closes) {
        tokens.push_back(word + std::string(one));
        word.clear();
      } else {
        if (!word.empty()) tokens.push_back(std::move(word));
        word.clear();
        tokens.emplace_back(one);
      }
    } else {
      word += one;
    }
  }
  if (!word.empty()) tokens.push_back(std::move(word));
  return tokens;
}

}  // namespace

std::string wrapped(std::string_view text, int width, int indent) {
  std::string out, line;
  const std::string margin(indent, ' ');
  for (const std::string& token : tokens_of(text)) {
    if (!line.empty() && token != " " && indent + display_width(line) + display_width(token) > width) {
      while (line.ends_with(' ')) line.pop_back();
      out += margin + line + "\n";
      line.clear();
    }
    if (token != " " || !line.empty()) line += token;
  }
  while (line.ends_with(' ')) line.pop_back();
  return out + margin + line + "\n";
}

Result<Terminal> terminal_for(const Arguments& arguments) {
  Terminal terminal{.lang = arguments.get("lang", language_of_environment())};
  if (terminal.lang != "en" && terminal.lang != "zh")
    return make_error(ErrorCode::kUsage, "no language \"" + terminal.lang + "\"", "--lang en or --lang zh");
  terminal.quiet = arguments.has("quiet");
  terminal.stderr_is_terminal = isatty(STDERR_FILENO) != 0;
  const std::string when = arguments.get("color", "auto");
  if (when != "auto" && when != "always" && when != "never")
    return make_error(ErrorCode::kUsage, "--color is auto, always or never, not \"" + when + "\"");
  const bool allowed = when == "always" || (when == "auto" && environment("NO_COLOR").empty());
  terminal.colour_out = allowed && (when == "always" || isatty(STDOUT_FILENO) != 0);
  terminal.width = columns();
  terminal.table_width = full_columns();
  return terminal;
}

int fail(const Error& error) {
  // Names of files and values of flags may contain anything, but control characters must not reach a terminal.
  std::string text = terminal_text(error.text(), true);
  constexpr size_t kMaxShown = 3000;
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown / 2) + " … " + text.substr(text.size() - kMaxShown / 2);
  fprintf(stderr, "stageline: %s\n", valid_utf8(text).c_str());
  return 2;
}

void note(const Terminal& terminal, std::string_view text) {
  if (!terminal.quiet) fprintf(stderr, "%s\n", terminal_text(text, true).c_str());
}

std::string message_text(const Terminal& terminal, const Diagnostic& diagnostic) {
  return diagnostic.message.in(terminal.chinese());
}

void print_notes(const Terminal& terminal, const Diagnostics& diagnostics, const Text& about, const Text& rest,
                 bool facts) {
  constexpr int64_t kMaxShown = 12;
  if (terminal.quiet) return;
  const int64_t notes = facts ? static_cast<int64_t>(diagnostics.items().size()) : diagnostics.flaw_count();
  if (notes == 0) return;
  Args head;
  head.set("count", notes).flag("one", notes == 1).set("about", about);
  std::string out = terminal.say("notes.head", head) + "\n";
  int64_t shown = 0;
  for (const Diagnostic& d : diagnostics.items()) {
    if (d.severity == Severity::kInfo && !facts) continue;
    if (++shown > kMaxShown) break;
    Args line;
    line.set("where", d.first.text())
        .set("message", message_text(terminal, d))
        .set("count", d.count > 1 ? grouped(d.count) : "");
    out += "  " + terminal.say("notes.line", line) + "\n";
  }
  if (notes > kMaxShown)
    out += "  " + terminal.say("notes.more", Args().set("count", notes - kMaxShown).set("rest", rest)) + "\n";
  fputs(terminal_text(out, true).c_str(), stderr);
}

void print_notes(const Terminal& terminal, const Diagnostics& diagnostics, const std::string& path) {
  print_notes(terminal, diagnostics, {}, words("notes.rest", Args().set("path", path.empty() ? "" : shell_word(path))));
}

std::string price_of(const Finding& finding, bool zh) {
  if (finding.value.empty() || finding.value_note.empty()) return finding.value;
  return zh ? finding.value_note.zh + " " + finding.value : finding.value + " " + finding.value_note.en;
}

std::string priced_title(const Terminal& terminal, const std::string& title, const std::string& price) {
  const auto line = [&](const std::string& text) {
    if (price.empty()) return text + "\n";
    const int gap = terminal.width - display_width(text) - display_width(price);
    return text + std::string(std::max(2, gap), ' ') + price + "\n";
  };
  const int room = price.empty() ? terminal.width : terminal.width - display_width(price) - 2;
  if (display_width(title) <= room) return line(title);
  // The price is at the end of the first line, and the sentence continues below it.
  const std::string lines = wrapped(title, std::max(room, 20), 0);
  const size_t first = lines.find('\n');
  std::string rest = lines.substr(first + 1);
  std::ranges::replace(rest, '\n', ' ');
  const std::string_view below = trim(rest);
  return line(lines.substr(0, first)) + (below.empty() ? "" : wrapped(std::string(below), terminal.width, 3));
}

std::string findings_text(const Terminal& terminal, const Findings& findings) {
  const bool zh = terminal.lang == "zh";
  const auto pick = [&](const Text& text) { return terminal_text(text.in(zh), true); };
  const Headline& h = findings.headline;
  std::string headline = wrapped(pick(h.title), terminal.width, 0);
  headline.pop_back();  // the end of the line stays without colour
  std::string out = painted(headline, "1", terminal.colour_out) + "\n";
  out += wrapped(pick(h.lead), terminal.width, 0) + "\n";
  int label_width = max_over<int>(h.parts, [&](const SpanPart& part) { return display_width(pick(part.label)); });
  auto shares = mapped<double>(h.parts, &SpanPart::share);
  const std::vector<std::string> printed = percents(shares);
  for (size_t p = 0; p < h.parts.size(); ++p) {
    const SpanPart& part = h.parts[p];
    const std::string label = pick(part.label);
    out += std::string(std::max(1, 8 - display_width(printed[p])), ' ') + printed[p] + "  " + label;
    std::string bar;
    for (int i = 0; i < static_cast<int>(std::lround(part.share * 40)); ++i) bar += "█";
    if (!bar.empty())
      out += std::string(label_width - display_width(label) + 2, ' ') + painted(bar,
                                                                                part.id == "compute"  ? "34"
                                                                                : part.id == "bubble" ? "33"
                                                                                                      : "90",
                                                                                terminal.colour_out);
    out += "\n";
  }
  if (!h.parts.empty()) out += "\n";
  int n = 0;
  for (const Finding& finding : findings.list) {
    const std::string number = finding.id == "none" ? "" : std::to_string(++n) + ". ";  // no finding has no number
    const std::string title = number + pick(finding.title);
    out += painted(priced_title(terminal, title, price_of(finding, zh)), "1", terminal.colour_out);
    out += wrapped(pick(finding.detail), terminal.width, 3);
  }
  for (const Finding& offer : findings.offers) {
    if (&offer == &findings.offers.front()) out += "\n" + terminal.say("offers.head") + "\n";
    out += priced_title(terminal, "   " + pick(offer.title), price_of(offer, zh));
  }
  return out;
}

struct ProgressBar::Impl {
  Progress own;
  Progress* progress = &own;
  std::string verb;
  bool draw = false, drawn = false, stop = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::thread thread;

  void run() {
    using Clock = std::chrono::steady_clock;
    const auto began = Clock::now();
    std::unique_lock lock(mutex);
    if (changed.wait_for(lock, std::chrono::seconds(1), [&] { return stop; })) return;
    do {
      const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
      const double done = progress->done_bytes();
      const double whole = progress->expected_bytes();
      const double rate = done / seconds;
      std::string line = verb + "  ";
      if (whole > 0) {
        const double share = std::min(1.0, done / whole);
        const int filled = static_cast<int>(share * 32);
        for (int i = 0; i < 32; ++i) line += i < filled ? "━" : "─";
        line += "  " + fixed(share * 100, 0) + "\u202f%  " + human_bytes(done) + " of " + human_bytes(whole);
      } else {
        line += human_bytes(done);
      }
      line += "  " + human_bytes(rate) + "/s";
      if (whole > done && rate > 0) line += "  " + human_duration((whole - done) / rate * 1e9) + " left";
      fprintf(stderr, "\r\x1b[K%s", line.c_str());
      fflush(stderr);
      drawn = true;
    } while (!changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return stop; }));
  }
};

ProgressBar::ProgressBar(const Terminal& terminal, std::string_view sentence, Progress* shared)
    : impl_(std::make_unique<Impl>()) {
  if (shared) impl_->progress = shared;
  impl_->verb = terminal.say(sentence);
  impl_->draw = terminal.stderr_is_terminal && !terminal.quiet;
  if (impl_->draw) impl_->thread = std::thread([this] { impl_->run(); });
}

ProgressBar::~ProgressBar() {
  if (!impl_->draw) return;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->changed.notify_all();
  impl_->thread.join();
  if (impl_->drawn) fprintf(stderr, "\r\x1b[K");
}

Progress* ProgressBar::progress() { return impl_->progress; }

WritingBar::WritingBar(const Terminal& terminal) : bar_(terminal, "progress.writing") { watch_output(bar_.progress()); }
WritingBar::~WritingBar() { watch_output(nullptr); }

}  // namespace stageline
