#include "cli/commands.h"
#include "cli/model_flags.h"
#include "cli/paths.h"
#include "cli/questions.h"
#include "diagnosis/what_if/what_if_fixes.h"
#include "exporters/table_text.h"

namespace stageline {
namespace {

constexpr int kIndent = 4, kLabel = 9;  // in columns

// Returns "−18.5 %": a saving as the change of the step.
std::string change(double saving_share) {
  return (saving_share > 0 ? "−" : saving_share < 0 ? "+" : "") + percent(std::abs(saving_share));
}

// Returns `lead`, with `text` wrapped to the right of it.
std::string beside(const std::string& lead, int columns, const std::string& text, int width) {
  const std::string lines = wrapped(text, width, columns);
  return lead + std::string(std::max(0, columns - display_width(lead)), ' ') + lines.substr(columns);
}

// A step of another size does other work, so its price is given for one micro-batch.
std::string price_text(const Fix& fix, const Terminal& terminal) {
  Args args;
  args.flag("per_micro_batch", fix.changes.micro_batches > 0).set("change", change(fix.price.share()));
  return terminal.say("what_if.price", args);
}

// Returns "2.21 s a step, 32 steps; replayed to 0.00 %, other orders to +0.3 %".
std::string base_text(const WhatIf& model, const Terminal& terminal) {
  const ModelError& error = model.error();
  const int64_t steps = sum_over<int64_t>(model.counts());
  const bool known = error.recorded_ns > 0;
  const auto off = [&](double ns) {
    return !known || std::isnan(ns) ? "" : fixed((ns / error.recorded_ns - 1) * 100, 2) + "\u202f%";
  };
  Args args;
  args.set("schedule", model.order().known() ? recognition_text(model.order().recognition()) : Text());
  args.set("steps", steps).flag("one", steps == 1).set("mean", human_duration(error.recorded_ns));
  args.set("error", off(error.graph_ns)).set("orders", off(error.order_ns));
  if (!args.of("error", false).empty() && !args.of("orders", false).empty())
    args.set("error", words("what_if.base.orders", args));
  return terminal.say("what_if.base", args);
}

// Returns "1.  balance the stages …                  −18.1 % a step": the price stands at the right edge of the last
// line.
std::string title_line(const std::string& number, const std::string& name, const std::string& price, int width) {
  std::string text = beside(number, kIndent, name, std::max(width - display_width(price) - 2, kIndent + 20));
  text.pop_back();
  const size_t line = text.rfind('\n');
  const int used = display_width(line == std::string::npos ? text : text.substr(line + 1));
  return text + std::string(std::max(2, width - used - display_width(price)), ' ') + price + "\n";
}

std::string what_if_text(const WhatIf* model, const FixList& list, const Terminal& terminal) {
  const int width = std::clamp(terminal.width, 60, 100);
  const auto in = [&](const Text& text) { return text.in(terminal.chinese()); };
  const std::string margin(kIndent, ' ');
  std::string out = wrapped(in(list.sentence), width, 0);
  if (model) out += wrapped(base_text(*model, terminal), width, 0);
  int place = 0;
  bool bounds = false;
  for (const Fix& fix : list.fixes) {
    if (fix.bound && !bounds) {
      bounds = true;
      out += "\n" + wrapped(terminal.say("what_if.bounds"), width, 0);
    }
    const std::string number = fix.id == "own" ? "?" : fix.bound ? "≤" : std::to_string(++place) + ".";
    out += "\n" + title_line(number, in(fix.name), price_text(fix, terminal), width);
    Args step;
    step.set("now", human_duration(fix.price.recorded_ns)).set("then", human_duration(fix.price.step_ns));
    step.set("error", std::isnan(fix.price.error_ns) ? "" : human_duration(fix.price.error_ns));
    const int32_t m = fix.changes.micro_batches > 0 ? model->order().sizes().micro_batches : 0;
    step.set("micro_batches", int64_t{m}).flag("one", m == 1);
    Text more;
    if (m > 0) more += words("what_if.step.micro_batches", step);
    if (fix.changes.changes_order() && !std::isnan(fix.price.held)) {
      step.set("held", fixed(fix.price.held, 2)).set("held_now", fixed(model->order().present().max_held(), 2));
      more += words("what_if.step.held", step);
    }
    step.set("more", more);
    const auto line = [&](const char* label, const std::string& text) {
      out += beside(margin + terminal.say(std::string("what_if.label.") + label), kIndent + kLabel, text, width);
    };
    line("step", terminal.say("what_if.step", step));
    line("assumes", in(fix.assumes));
    if (!fix.how.empty()) line("how", in(fix.how));
  }
  std::vector<Text> rest;
  const auto others = [&](const char* name, int64_t count) {
    if (count > 0)
      rest.push_back(words(std::string("what_if.rest.") + name, Args().set(name, count).flag("one", count == 1)));
  };
  others("no_gain", list.no_gain);
  others(list.limited ? "over_limit" : "over_memory", list.over_memory);
  if (!rest.empty()) out += "\n" + wrapped(in(joined(rest, {" ", ""})), width, 0);
  return out;
}

}  // namespace

Result<int> run_what_if(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "csv" && format != "json")
    return make_error(ErrorCode::kUsage, "what-if comes as text, csv or json, not \"" + format + "\"");
  TRY(ask, what_if_question(arguments));
  TRY_OK(check_writable(arguments.get("output", "-"), arguments.operands));
  TRY(trace, open_run(arguments, *terminal, arguments.operands, "", Clocks::kCompared));
  Diagnostics notes;
  TRY_OK(take(stage_bytes_of(arguments, *trace), ask->bytes));
  const Run run(*trace);
  TRY(found, what_if_answer(run, *ask, notes));
  const WhatIf* model = found->model ? &*found->model : nullptr;
  TRY(out, open_output(arguments.get("output", "-"), arguments.operands));
  if (format == "text") {
    out->write(terminal_text(what_if_text(model, found->list, *terminal), true));
  } else {
    const std::vector<Table> tables = what_if_tables(model, found->list);
    if (format == "csv") out->write(format_table_csv(tables[1]));
    else out->write(what_if_json(found->list, tables) + "\n");
  }
  TRY_OK(out->commit());
  for (const Diagnostic& d : notes.items())
    if (d.severity == Severity::kInfo) note(*terminal, message_text(*terminal, d));
  Diagnostics flaws = trace->diagnostics;
  flaws.merge(notes);
  print_notes(*terminal, flaws, arguments.operands[0]);
  return kExitGood;
}

}  // namespace stageline
