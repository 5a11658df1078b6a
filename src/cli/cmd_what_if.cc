#include "base/json_writer.h"
#include "base/output_file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_common.h"
#include "cli/what_if_text.h"
#include "engine/what_if_answer.h"
#include "exporters/table_text.h"
#include "schedules/registry.h"

namespace stageline {
namespace {

struct Asked {
  Changes own;
  std::string name;
  bool more_memory = false;
};

Result<Asked> asked(const Arguments& arguments) {
  Asked a;
  const auto also = [&](const std::string& text) { a.name += (a.name.empty() ? "" : "; ") + text; };
  for (const std::string& text : arguments.all("scale")) {
    const Result<CellScale> scale = parse_scale(text);
    if (!scale) return std::move(scale).error();
    a.own.scales.push_back(*scale);
    also(valid_utf8(text));
  }
  if (arguments.has("schedule")) {
    const std::string name = dashed(arguments.get("schedule"));
    if (!find_schedule(name)) {
      std::vector<std::string> names;
      for (const ScheduleDef* def : schedules()) names.emplace_back(def->name);
      const std::string near = nearest(name, names);
      return Error{ErrorCode::kUsage,
                   "no schedule \"" + valid_utf8(name) + "\"",
                   {},
                   near.empty() ? "stageline help schedules lists them" : "did you mean \"" + near + "\"?"};
    }
    a.own.schedule = name;
    also("schedule " + name);
  }
  for (const auto& [flag, place] : {std::pair("micro-batches", &a.own.micro_batches),
                                    std::pair("chunks", &a.own.chunks), std::pair("group", &a.own.group)}) {
    if (!arguments.has(flag)) continue;
    Result<int64_t> value = arguments.integer(flag, 0, 1, 65'536);
    if (!value) return std::move(value).error();
    *place = static_cast<int32_t>(*value);
    const std::string noun = std::string(flag) == "chunks" ? "chunk" : "micro-batch";
    also(std::to_string(*value) + " " + noun +
         (*value == 1       ? ""
          : noun == "chunk" ? "s"
                            : "es") +
         (std::string(flag) == "group" ? " a group" : ""));
  }
  if (a.own.schedule.empty() && (a.own.chunks > 0 || a.own.group > 0))
    return Error{ErrorCode::kUsage, "--chunks and --group go with --schedule", {}, ""};
  if (arguments.has("latency")) {
    Result<int64_t> latency = arguments.duration_ns("latency", 0);
    if (!latency) return std::move(latency).error();
    if (*latency < 0 || *latency > 3'600'000'000'000)
      return Error{ErrorCode::kUsage, "--latency is a time from 0 to an hour", {}, ""};
    a.own.latency_ns = static_cast<double>(*latency);
    also("latency " + arguments.get("latency"));
  }
  a.more_memory = arguments.has("more-memory");
  return a;
}

// A change of cells that are not there would be priced at nothing.
Status check_scales(const WhatIf& model, const std::vector<std::string>& texts, const Changes& own) {
  for (size_t i = 0; i < own.scales.size(); ++i)
    if (model.touched(own.scales[i]) == 0)
      return Error{ErrorCode::kUsage,
                   "--scale " + valid_utf8(texts[i]) + " fits no operation of this run",
                   {},
                   "stageline info says which stages, ranks and steps there are"};
  return {};
}

int run_what_if(const Arguments& arguments) {
  Result<Terminal> terminal = terminal_for(arguments);
  if (!terminal) return fail(terminal.error());
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "csv" && format != "json")
    return fail({ErrorCode::kUsage, "what-if comes as text, csv or json, not \"" + format + "\"", {}, ""});
  Result<Asked> ask = asked(arguments);
  if (!ask) return fail(ask.error());
  if (Status s = check_writable(arguments.get("output", "-"), arguments.operands); !s) return fail(s.error());
  Result<Trace> trace = open_run(arguments, *terminal, arguments.operands, "", Clocks::kCompared);
  if (!trace) return fail(trace.error());
  Diagnostics notes;
  Result<WhatIf> model = WhatIf::of(*trace, notes);
  if (!model) return fail(model.error());
  if (Status s = check_scales(*model, arguments.all("scale"), ask->own); !s) return fail(s.error());
  FixOptions options;
  options.more_memory = ask->more_memory;
  if (arguments.has("layers")) {
    const OrderModel& order = model->order();
    if (!order.known())
      return fail({ErrorCode::kUnavailable,
                   "--layers needs a recognised schedule: " + order.why_not(),
                   {},
                   "stageline analyze schedule shows what was compared"});
    Result<std::vector<int32_t>> layers =
        parse_layers(arguments.get("layers"), order.sizes().stages, order.sizes().chunks, order.layout());
    if (!layers) return fail(layers.error());
    options.layers = std::move(*layers);
  }
  if (!(ask->own == Changes{})) {
    options.own = {ask->own};
    options.own_names = {ask->name};
  }
  const FixList list = price_fixes(*model, options);
  for (const Fix& fix : list.fixes)
    if (fix.id == "own" && !fix.price.why_not.empty())
      return fail({ErrorCode::kUsage, fix.name.en + ": " + fix.price.why_not, {}, "stageline help schedules"});
  Result<OutputFile> out = OutputFile::create(arguments.get("output", "-"));
  if (!out) return fail(out.error());
  if (format == "text") {
    out->write(what_if_text(*model, list, *terminal));
  } else {
    const std::vector<Table> tables = what_if_tables(*model, list);
    if (format == "csv") {
      out->write(format_table_csv(tables[1]));
    } else {
      JsonWriter json;
      json.begin_object();
      json.field("sentence", list.sentence.en).field("sentence_zh", list.sentence.zh);
      json.field("tried", list.tried).field("no_gain", list.no_gain).field("over_memory", list.over_memory);
      json.key("tables").begin_array();
      for (const Table& table : tables) append_table_json(json, table);
      json.end_array().end_object();
      out->write(json.text() + "\n");
    }
  }
  if (Status s = out->commit(); !s) return fail(s.error());
  for (const Diagnostic& d : notes.items())
    if (d.severity == Severity::kInfo) note(*terminal, message_text(*terminal, d));
  Diagnostics flaws = trace->diagnostics;
  flaws.merge(notes);
  print_notes(*terminal, flaws, arguments.operands[0]);
  return kExitGood;
}

}  // namespace

Command what_if_command(const std::vector<const char*>& open_flags) {
  std::vector<const char*> flags = {"scale",   "schedule", "chunks",       "group",   "micro-batches",
                                    "latency", "layers",   "more-memory",  "json",    "format",
                                    "output",  "align",    "trust-clocks", "align-on"};
  flags.insert(flags.end(), open_flags.begin(), open_flags.end());
  return {
      "what-if",
      "PATH…",
      "Price the fixes of a run: each replayed, with what it assumes and how to make it",
      "Replays the run with its stages balanced, its slow workers replaced, in other schedules at the same memory, "
      "with more micro-batches, without slow links, launch delays, jitter, and with the best of these together; "
      "sorted by what a step saves. --scale, --schedule, --micro-batches, --latency price a change of your own, all "
      "of it at once.",
      flags,
      1,
      -1,
      run_what_if,
      {{"scale", "KEY=VALUE,…",
        "Your own: these cells take another time: stage=3,kind=F,by=0.9 or rank=5,set=3ms; keys stage, rank, dp, "
        "kind, chunk, micro-batch, step; may be repeated",
        ""},
       {"layers", "N | N,N,…", "Layers of the model, or of each stage as they are split now; default equal on all", ""},
       {"more-memory", "", "Also orders that hold more activations than the present one", ""},
       {"schedule", "NAME", "Your own: this schedule (stageline help schedules)", ""},
       {"chunks", "V", "Chunks a rank of --schedule", ""},
       {"group", "G", "Micro-batches that take turns on a chunk, of --schedule", ""},
       {"micro-batches", "M", "Your own: so many micro-batches a step, each as it is", ""},
       {"latency", "L", "Your own: every message takes this; without a unit, ms", ""},
       {"format", "KIND", "text (default), csv: the table of fixes, or json: all tables", "text,csv,json"}}};
}

}  // namespace stageline
