#include <algorithm>
#include <cmath>

#include "base/json_writer.h"
#include "base/number.h"
#include "base/output_file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_common.h"
#include "engine/explain.h"

namespace stageline {
namespace {

constexpr int kBar = 50;  // columns of a whole step

std::string padded(const std::string& text, int width) {
  return std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ') + text;
}

std::string joined_paths(const std::vector<std::string>& paths) {
  std::string all;
  for (const std::string& path : paths) all += " " + path;
  return all;
}

std::string command_of(const Finding& f, const std::vector<std::string>& paths) {
  if (!f.price.command.empty()) return f.price.command;
  if (f.evidence.analysis.empty()) return "";
  std::string command = "stageline analyze " + f.evidence.analysis;
  for (const std::string& path : paths) command += " " + path;
  if (!f.evidence.table.empty()) command += " --table " + f.evidence.table;
  return command;
}

std::string text_of(const Terminal& terminal, const Explanation& e, const std::vector<std::string>& paths) {
  const bool zh = terminal.lang == "zh";
  const auto pick = [&](const std::string& en, const std::string& other) { return zh ? other : en; };
  std::string out = pick(e.run_en, e.run_zh);
  if (out.empty()) out = pick(e.headline.title_en, e.headline.title_zh);
  out += "\n";
  if (e.run_en.empty()) out += wrapped(pick(e.headline.lead_en, e.headline.lead_zh), terminal.width, 0);
  const std::vector<SpanPart>& parts = e.parts;
  int widest = 0;
  for (const SpanPart& part : parts) widest = std::max(widest, display_width(pick(part.label_en, part.label_zh)));
  if (!parts.empty()) out += "\n";
  for (const SpanPart& part : parts) {
    const std::string label = pick(part.label_en, part.label_zh);
    const auto length = static_cast<size_t>(std::clamp(std::lround(part.share * kBar), 0L, static_cast<long>(kBar)));
    std::string bar;
    for (size_t i = 0; i < length; ++i) bar += "█";
    std::string line = padded(percent(part.share), 9) + "  " + label +
                       std::string(static_cast<size_t>(widest - display_width(label) + 2), ' ') + bar;
    while (line.ends_with(' ')) line.pop_back();
    out += line + "\n";
  }
  out += "\n";
  if (!e.run_en.empty() && !e.note_en.empty()) out += wrapped(pick(e.note_en, e.note_zh), terminal.width, 0) + "\n";
  int number = 0;
  for (const Finding& f : e.findings) {
    const std::string title = std::to_string(++number) + ". " + pick(f.title_en, f.title_zh);
    out += priced_title(terminal, title, price_of(f, zh));
    out += wrapped(pick(f.detail_en, f.detail_zh), terminal.width, 3);
    if (const std::string command = command_of(f, paths); !command.empty()) out += "   " + command + "\n";
  }
  std::string offers;
  for (const Finding& f : e.offers)
    offers += priced_title(terminal, "   " + pick(f.title_en, f.title_zh), price_of(f, zh));
  const std::string more = paths.empty() ? "" : "stageline report " + paths[0] + " -o report.html";
  if (!e.why_not.empty())
    out += pick("What costs time here cannot be told from waits.", "无法从等待中判断时间花在哪里。");
  else if (e.findings.empty())
    out += pick("Nothing stands out: no stage, rank, link or pause costs more than 1 % of a step.",
                "没有突出的问题：没有哪一级、rank、链路或停顿的代价超过每步的 1 %。");
  else
    out += pick("\nNothing else costs more than 1 % of a step.", "\n其他问题的代价都不超过每步的 1 %。");
  out += "\n";
  if (!offers.empty()) {
    out += pick("\nNo fault, but worth a try, at the same memory, if the replay is right:\n",
                "\n并非故障，但按重放值得一试（内存相同）：\n") +
           offers;
    out += "   stageline what-if" + joined_paths(paths) + "\n";
  }
  return out + pick("Report: ", "报告：") + more + "\n";
}

void finding_json(JsonWriter& json, const Finding& f, double step_ns, const std::vector<std::string>& paths) {
  const auto whole = [](double ns) { return static_cast<int64_t>(std::llround(ns)); };
  json.begin_object().field("id", f.id).field("cause", f.cause).field("priced", f.price.saving_ns > 0);
  json.field("lost_ns", whole(f.lost_ns_per_step)).field("uncertainty_ns", whole(f.uncertainty_ns));
  json.field("lost_share", step_ns > 0 ? f.lost_ns_per_step / step_ns : f.weight);
  json.field("saving_ns", whole(f.price.saving_ns));
  json.field("saving_share", step_ns > 0 ? f.price.saving_ns / step_ns : 0.0);
  json.field("value", f.value).field("title_en", f.title_en).field("title_zh", f.title_zh);
  json.field("detail_en", f.detail_en).field("detail_zh", f.detail_zh);
  json.field("fix_en", f.price.fix_en).field("fix_zh", f.price.fix_zh);
  json.field("assumption_en", f.price.assumption_en).field("assumption_zh", f.price.assumption_zh);
  json.field("analysis", f.evidence.analysis).field("table", f.evidence.table).field("command", command_of(f, paths));
  json.end_object();
}

std::string json_of(const Explanation& e, const std::vector<std::string>& paths) {
  JsonWriter json;
  json.begin_object().field("run_en", e.run_en).field("run_zh", e.run_zh);
  json.field("steps", e.steps).field("step_ns", static_cast<int64_t>(std::llround(e.step_ns)));
  json.field("lost_ns", static_cast<int64_t>(std::llround(e.lost_ns))).field("lost_share", e.lost_share());
  json.field("note_en", e.note_en).field("note_zh", e.note_zh).field("why_not", e.why_not);
  json.key("parts").begin_array();
  for (const SpanPart& part : e.parts)
    json.begin_object()
        .field("id", part.id)
        .field("label_en", part.label_en)
        .field("label_zh", part.label_zh)
        .field("share", part.share)
        .end_object();
  json.end_array();
  json.key("findings").begin_array();
  for (const Finding& f : e.findings) finding_json(json, f, e.step_ns, paths);
  json.end_array();
  json.key("offers").begin_array();
  for (const Finding& f : e.offers) finding_json(json, f, e.step_ns, paths);
  json.end_array().end_object();
  return json.text() + "\n";
}

}  // namespace

int run_explain(const Arguments& arguments) {
  Result<Terminal> terminal = terminal_for(arguments);
  if (!terminal) return fail(terminal.error());
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "json")
    return fail({ErrorCode::kUsage, "explain comes as text or json, not \"" + format + "\"", {}, ""});
  Result<std::optional<double>> limit = share_flag(arguments, "fail-on");
  if (!limit) return fail(limit.error());
  Result<OutputFile> out = OutputFile::create(arguments.get("output", "-"));
  if (!out) return fail(out.error());
  Result<Trace> trace = open_run(arguments, *terminal, arguments.operands, "", Clocks::kCompared);
  if (!trace) return fail(trace.error());
  // Findings of profiler traces are read off tables; those of cells are not.
  const bool profiled =
      std::any_of(trace->parts.begin(), trace->parts.end(), [](const Part& part) { return part.event_count > 0; });
  const Explanation e = explain(*trace, profiled ? all_tables(*trace, trace->diagnostics) : std::vector<Table>{}, true);
  out->write(format == "json" ? json_of(e, arguments.operands) : text_of(*terminal, e, arguments.operands));
  if (Status s = out->commit(); !s) return fail(s.error());
  for (const Diagnostic& d : trace->diagnostics.items())
    if (d.name == "clock.aligned") note(*terminal, d.message);
  print_notes(*terminal, trace->diagnostics, arguments.operands[0]);
  return *limit && e.lost_share() > **limit ? kExitFinding : kExitGood;
}

}  // namespace stageline
