#include "base/number.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/run_common.h"

namespace stageline {
namespace {

std::string info_text(const Trace& trace) {
  const Extent extent = extent_of(trace);
  std::string out;
  const auto line = [&](std::string_view name, const std::string& value) {
    out += std::string(name) + std::string(14 - name.size(), ' ') + value + "\n";
  };
  line("format", trace.format + (trace.description.empty() ? "" : "  (" + trace.description + ")"));
  if (trace.machine_count() > 1) line("machines", std::to_string(trace.machine_count()));
  line("ranks", std::to_string(trace.parts.size()));
  line("stages", std::to_string(extent.stage_count) +
                     (extent.dp_count > 1 ? " × " + std::to_string(extent.dp_count) + " replicas" : ""));
  if (extent.chunk_count > 1) line("chunks", std::to_string(extent.chunk_count) + " a rank");
  line("micro-batches", std::to_string(extent.micro_batch_count));
  line("steps", std::to_string(extent.step_count));
  line("cells", grouped(static_cast<int64_t>(trace.cells.size())) + " of " +
                    grouped(static_cast<int64_t>(trace.slice_count())) + " slices");
  line("time", human_duration(static_cast<double>(extent.end_ns - extent.start_ns)) + " from first start to last end" +
                   (trace.steps_laid_end_to_end ? ", steps laid end to end" : ""));
  line("clocks", trace.clock == ClockState::kShared      ? "one clock"
                 : trace.clock == ClockState::kUnaligned ? "as recorded, not aligned"
                                                         : "each rank counts from its own zero");
  if (trace.diagnostics.empty()) {
    out += "\nnothing was wrong with it\n";
    return out;
  }
  out += "\n";
  for (const Diagnostic& d : trace.diagnostics.items()) {
    out += std::string(severity_name(d.severity)) + std::string(9 - severity_name(d.severity).size(), ' ') + d.name +
           (d.count > 1 ? " × " + grouped(d.count) : "") + "\n";
    const std::string where = d.first.text();
    out += wrapped((where.empty() ? "" : where + ": ") + d.message, 100, 9);
  }
  return out;
}

}  // namespace

int run_info(const Arguments& arguments) {
  Result<Terminal> terminal = terminal_for(arguments);
  if (!terminal) return fail(terminal.error());
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "json")
    return fail({ErrorCode::kUsage, "info comes as text or json, not \"" + format + "\"", {}, ""});
  Result<OutputFile> out = OutputFile::create(arguments.get("output", "-"));
  if (!out) return fail(out.error());
  Result<Trace> trace = open_run(arguments, *terminal, arguments.operands);
  if (!trace) return fail(trace.error());
  out->write(format == "json" ? info_json(*trace) + "\n" : info_text(*trace));
  if (Status s = out->commit(); !s) return fail(s.error());
  return kExitGood;
}

}  // namespace stageline
