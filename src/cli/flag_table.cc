#include <algorithm>
#include <deque>

#include "analyses/analysis.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/flags.h"

namespace stageline {

const FlagNames& common_flags() {
  static const FlagNames flags = split("lang threads color quiet help", ' ');
  return flags;
}

FlagNames with_open(std::string_view names) {
  static const FlagNames open = split("reader ranks steps pp stages tp cp ep dp order cells cell-rules devices max-memory", ' ');
  FlagNames flags = split(names, ' ');
  flags.insert(flags.end(), open.begin(), open.end());
  return flags;
}

namespace {

constexpr const char* kLastStepHelp =
    "Keep the last profiler step, which is skipped when there are several (it is often cut off)";

// Makes one flag of an option that several analyses have. Its help reads "operators: …; tb-operator: …" when the option
// means something different in each; when only few analyses have it, the help names them.
Flag shared_option(const std::vector<std::pair<const Analysis*, const AnalysisOption*>>& uses) {
  static std::deque<std::string> kept;  // owns the texts
  constexpr size_t kFew = 3;
  const AnalysisOption& first = *uses[0].second;
  std::string help, names, choices;
  bool alike = true, any_text = false;
  for (const auto& [analysis, option] : uses) {
    alike &= std::string_view(option->help) == first.help && std::string_view(option->choices) == first.choices;
    any_text |= option->choices[0] == '\0';
    append_item(names, analysis->name);
    append_item(help, std::string(analysis->name) + ": " + option->help, "; ");
    for (const std::string_view choice : split(option->choices, ','))
      if (const auto known = split(choices, ','); std::find(known.begin(), known.end(), choice) == known.end())
        append_item(choices, choice, ",");
  }
  if (alike) help = (uses.size() <= kFew ? names + ": " : "") + first.help;
  kept.push_back(std::move(help));
  const char* const text = kept.back().c_str();
  kept.push_back(any_text ? "" : std::move(choices));
  return {first.name, first.value, text, kept.back().c_str()};
}

// Returns the options that analyses declare themselves, each name once.
std::vector<Flag> analysis_flags() {
  std::vector<Flag> flags = {
      {"compat", "NAME",
       "Reproduce another tool's numbers and columns where supported: hta (HTA), msprof (msprof-analyze)",
       "hta,msprof"},
      {"format", "KIND", "text (default), csv or json; torch where an analysis prints the profiler's own table",
       "text,csv,json,torch"},
      {"overlay", "FILE", "Write the source trace with this answer marked on it"},
      {"include-last-profiler-step", "BOOL", kLastStepHelp},
  };
  std::vector<std::vector<std::pair<const Analysis*, const AnalysisOption*>>> options;  // for each name
  for (const Analysis* analysis : analyses())
    for (const AnalysisOption& option : analysis->options) {
      if (std::any_of(flags.begin(), flags.end(),
                      [&](const Flag& f) { return std::string_view(f.name) == option.name; }))
        continue;
      const auto same = [&](const auto& uses) { return std::string_view(uses[0].second->name) == option.name; };
      auto of_name = std::find_if(options.begin(), options.end(), same);
      if (of_name == options.end()) of_name = options.emplace(of_name);
      of_name->emplace_back(analysis, &option);
    }
  for (const auto& uses : options) flags.push_back(shared_option(uses));
  return flags;
}

FlagNames with_analysis_flags(FlagNames names) {
  for (const Flag& f : analysis_flags())
    if (std::find(names.begin(), names.end(), f.name) == names.end()) names.emplace_back(f.name);
  return names;
}

}  // namespace

const std::vector<Command>& command_table() {
  static const std::vector<Command> table = {
      {"report",
       {"PATH…", 1, -1},
       "Write a one-file HTML report: findings, pipeline, timeline, tables",
       "Reads files or folders of one run, writes an HTML page that works offline, then prints the findings.",
       with_open("output force range ghosts title slices compare fail-on align trust-clocks align-on"),
       run_report,
       {{"output", "FILE", "Where to write the page; default report.html, - is stdout"},
        {"compare", "PATH", "A second run to show on the page Compare"}}},
      {"explain",
       {"PATH…", 1, -1},
       "List what costs time, why, and what each fix would save",
       "Prints up to twelve findings, the most costly first. Each has a cause, a number, what to do, and the "
       "saving, estimated by simulating the recorded steps. Causes below 1 % of step time, or below their "
       "uncertainty, are not listed. Exits with 1 when the causes together (for a profile: the largest finding) "
       "cost more than --fail-on allows.",
       with_open("json format output force fail-on range align trust-clocks align-on"),
       run_explain,
       {{"fail-on", "P%", "Exit with 1 when the findings cost more than this share of the mean step: 3%"},
        {"format", "KIND", "text (default) or json", "text,json"}}},
      {"view",
       {"[PATH…]", 0, -1},
       "Open a run in the browser: findings, timeline, all analyses",
       "Reads files or folders of one run, serves it on this machine and opens the page. The page appears at "
       "once and shows the reading progress; press Ctrl-C to stop. Without a run, it shows a start page: open "
       "and compare runs below --root, or drop files on the page.",
       with_open("follow webhook port host token confine no-open title compare root align trust-clocks align-on"),
       run_view,
       {{"title", "TEXT", "Title of the page; default from the input's name"},
        {"compare", "PATH", "A second run to show on the page Compare"}}},
      {"serve",
       {"[PATH…]", 0, -1},
       "Serve a run like view, without opening a browser",
       "For a machine without a desktop: forward the port (ssh -L 8765:localhost:8765 HOST) and open the address here.",
       with_open("follow webhook port host token confine no-open title compare root align trust-clocks align-on"),
       run_view,
       {{"title", "TEXT", "Title of the page; default from the input's name"},
        {"compare", "PATH", "A second run to show on the page Compare"}}},
      {"analyze",
       {"ANALYSIS[,ANALYSIS…] PATH…", 1, -1},
       "Run one or more analyses and print their tables",
       "Runs an analysis (stageline help analyses; stageline help NAME for one with its options) and prints its "
       "tables. CSV and JSON carry raw values: nanoseconds and fractions of 1. With --format csv several tables are "
       "separated by a blank line; --table picks one. Several analyses, separated by commas, share one reading.",
       with_analysis_flags(with_open("table format output force range rows wide align trust-clocks align-on")),
       run_analyze,
       analysis_flags()},
      {"diff",
       {"A B", 2, 2},
       "Explain why steps of run B are slower or faster than those of run A",
       "Matches cells of the two runs by replica, stage, kind, chunk and micro-batch, and steps by order. Prints "
       "changes in schedule and sizes first, then the change of the mean step, group by group, each estimated by "
       "simulation; the groups add up to the whole change. The runs may come from different frameworks. Exits "
       "with 1 when B is slower than --fail-on allows.",
       with_open("json format table output force fail-on range align trust-clocks align-on"),
       run_diff,
       {{"fail-on", "P%", "Exit with 1 when B's mean step is longer than A's by more than this, beyond noise: 3%"},
        {"table", "NAME", "Only this table: runs or groups", "runs,groups"}}},
      {"export",
       {"PATH…", 1, -1},
       "Export a run for other tools: Perfetto, Chrome, SVG, PNG, PDF, CSV, JSON, SQLite",
       "The kind of output follows the extension of --output, or --to. Several ranks merge into one file, except with "
       "--to trace-with-counters: out.json becomes out.rank0.json, out.rank1.json, …",
       with_open("output force to range dark ghosts width title compat align trust-clocks align-on"),
       run_export,
       {{"compat", "NAME", "hta: HTA's own counters, of trace-with-counters", "hta"}}},
      {"export-stacks",
       {"PATH…", 1, -1},
       "Export Python stacks with their time, for flame graphs",
       "Reads PyTorch profiler traces recorded with with_stack=True. The collapsed format is that of torch's "
       "export_stacks(): one line per event, or one line per distinct stack with --aggregate. Several ranks give "
       "one file each; with --aggregate one root frame each, with --format speedscope one profile each.",
       with_open("metric stacks aggregate leaf unit format rank output force range"),
       run_export_stacks,
       {{"metric", "NAME", "self_cpu_time_total (default), self_cuda_time_total, self_cpu_memory_usage, samples, …"},
        {"stacks", "KIND", "rebuilt (default): from Python frames; torch: as torch itself writes them",
         "rebuilt,torch"},
        {"leaf", "KIND", "Level to add below the frames: none, op (default with --aggregate) or kernel",
         "none,op,kernel"},
        {"unit", "UNIT", "Collapsed times: us (default; less than 1 µs has no line of its own) or ns", "us,ns"},
        {"format", "KIND", "collapsed (default) or speedscope (default for names that end in .json)",
         "collapsed,speedscope"},
        {"rank", "R", "Only this global rank"},
        {"output", "FILE", "Where to write; - is stdout"}}},
      {"align",
       {"PATH…", 1, -1},
       "Measure the offsets between the ranks' clocks, with error bounds",
       "Prints offset and drift of every rank's clock relative to the first rank's, with error bounds, measured "
       "from messages, collectives, or gaps between dependent cells. Exits with 2 when a rank cannot be aligned.",
       with_open("json format output force align align-on trust-clocks"),
       run_align,
       {{"trust-clocks", "", "Exit with 0 even if some ranks cannot be aligned"}}},
      what_if_command(),
      sql_command(),
      {"mcp",
       {"", 0, 0},
       "Serve agents over standard input and output (Model Context Protocol)",
       "Offers tools to open runs below --root and to explain, query, simulate, compare, draw and verify them; speaks "
       "one JSON-RPC message per line. Writes nothing except reports below --allow-write, starts no program and does "
       "not use the network.",
       split("root allow-write rows chars memory max-memory timeout confine", ' '),
       run_mcp,
       {{"rows", "N", "Maximum rows per answer, up to 200; default 200"},
        {"timeout", "T", "Stop a query after this time: 30s; without a unit, ms; default 60s"}}},
      {"skill",
       {"", 0, 0},
       "Print or install the skill that teaches agents to use this program",
       "A skill is a folder of pages that agents load when a question needs them. SKILL.md comes first. Other pages "
       "cover each kind of question, the SQL tables, the analyses, and the reasons why a run cannot answer a question. "
       "The server of stageline mcp offers the same pages.",
       split("install", ' '),
       run_skill},
      {"info",
       {"PATH…", 1, -1},
       "Summarise the input and list problems found while reading it",
       "Prints format, machines, ranks, stages, steps, counts, and every problem in the input with its first "
       "position.",
       with_open("json format output force range figures align trust-clocks align-on"),
       run_info,
       {{"format", "KIND", "text (default) or json", "text,json"}}},
      {"digest",
       {"PATH…", 1, -1},
       "Write a small digest file per rank that every command can read instead of the run",
       "Writes one file per rank, a few bytes per cell. Cluster nodes digest their own logs, and one machine "
       "then reads all digests together. Complete digests are kept, so an interrupted run continues; digests of "
       "changed files and damaged digests are written again. Use --ranks to write a part of them, in a Slurm "
       "array or a Kubernetes job.",
       split("output ranks reader json format max-memory", ' '),
       run_digest,
       {{"output", "DIR", "Folder to write digests to; created if missing"},
        {"ranks", "A:B", "Only these ranks, both ends included: 0:63, 64:, :63 or 7"},
        {"format", "KIND", "text (default) or json", "text,json"}}},
      {"record",
       {"[--] COMMAND…", 1, -1},
       "Run a training program and record when each pipeline job ran",
       "Runs COMMAND (torchrun, mpirun, srun, python, …) with the recorder's variables: one file per rank in --output. "
       "Python programs on " STAGELINE_RECORDED " need no change; others use stageline.record, the C library or "
       "--nvtx. Signals and exit code are passed on; 127: no such "
       "program, 126: it cannot be run.",
       split("output steps nvtx nccl kernels", ' '),
       run_record,
       {{"output", "DIR", "Folder of the files; default stageline-rec"},
        {"steps", "A:B", "Record only these steps, both ends included: 10:15, 10:, :15 or 10"}},
       true},
      {"recover",
       {"PATH…", 1, -1},
       "Repair recordings that were damaged or whose process was killed",
       "Reads files of libstageline_record (.slrec, .slhot) and writes one complete file per recording: every "
       "intact part, then what the process still held in memory. The input is not changed. Other commands read "
       "recordings without repair; use recover to archive them.",
       split("output", ' '),
       run_recover,
       {{"output", "DIR", "Folder to write to; default recovered"}}},
      {"tail",
       {"PATH…", 1, -1},
       "Print each training step of a recording as it finishes, while the job runs",
       "Prints one line per step: time, bubble (mean over ranks, share of the pipeline span), slowest stage "
       "relative to the median stage, and slowest rank relative to its stage's median. Prints the last finished "
       "steps first (--rows), then each step when all ranks have finished it. Waits for a recording that does "
       "not exist yet. Stops when all recordings are closed, when none was written for one minute, or on Ctrl-C. "
       "With --format json, prints one object per line. Checks the end of each recording every second.",
       split("json format rows ranks pp stages tp cp ep order cells cell-rules threads align", ' '),
       run_tail,
       {{"format", "KIND", "text (default) or json, one object a line", "text,json"},
        {"rows", "N", "Maximum number of earlier steps to print; 0: all; default 10"}}},
      {"history",
       {"[add RUN… | list | check]", 0, -1},
       "Track step times over runs and report the run where they changed",
       "The subcommand add stores a run's mean step, its parts and the work of its stages in an SQLite file; "
       "list shows all runs. The subcommand check reports changes (E-divisive, 1 false alarm in 200 histories) "
       "and the part of the step that changed. It exits with 1 when the last change made steps slower.",
       with_open("json format db label align"),
       run_history,
       {{"format", "KIND", "text (default) or json", "text,json"}}},
      {"event",
       {"PATH…", 1, -1},
       "Print one event of a profiler trace as stored, with all arguments",
       "Tables identify events by rank and index. In a gzip file, only the part around the event is decompressed "
       "again.",
       split("rank index reader output force max-memory", ' '),
       run_event,
       {{"output", "FILE", "Where to write; default and - are stdout"}}},
      {"paddle-timeline",
       {"", 0, 0},
       "Drop-in for Paddle's profiler_helper_static.py",
       "Writes pipeline_profile.json and pipeline_profile_perfetto.json into --log-dir, byte for byte as "
       "Paddle's script (version V3) does where that works. Where the script fails, the output is correct and a "
       "note says so; --compat paddle-v3 reproduces its bugs.",
       split("devices log-dir multi-machine compat", ' '),
       run_paddle_timeline,
       {{"compat", "NAME", "paddle-v3: the script's output including its bugs", "paddle-v3"},
        {"log-dir", "DIR",
         "Folder of workerlog.N; the two files are written here (--log_dir is the same: _ serves for - in every flag)"},
        {"devices", "LIST", "Rows in this order, such as 0,1,2,3; default all logs found"}}},
      {"pp-chart",
       {"[DIR]", 0, 2},
       "Write the pipeline chart's tables for MindStudio Insight into Ascend profiles",
       "Labels the blocks of every pipeline stage (StepTaskInfo) and links sends to receives (opConnectionId of "
       "COMMUNICATION_OP) as Insight draws them, into copies of the databases unless --in-place is given. Takes what "
       "msprof-analyze cluster -m pp_chart takes. Exit 0: written; 1: --fail-on unlabelled and some block has no "
       "number; 2: nothing to show, or an error.",
       split("profiling-path output output-path in-place tables-only compat rank-list step-id pp stages tp dp cp "
             "ep order micro-batches schedule cell-rules fail-on mode export-type parallel-mode force agent",
             ' '),
       run_pp_chart,
       {{"profiling-path", "DIR", "Folder with the *_ascend_pt folders, at any depth; the same as the operand"},
        {"output", "DIR", "Where copies with the tables go; default stageline_pp_chart in the current folder"},
        {"output-path", "DIR", "The same as --output"},
        {"in-place", "", "Write into the databases themselves, after a backup next to each (*.stageline-backup)"},
        {"tables-only", "", "Small databases with nothing but the tables instead of copies"},
        {"compat", "NAME", "msprof: what msprof-analyze writes, row for row, including its bugs", "msprof"},
        {"rank-list", "LIST", "Only these ranks, such as 0,2 or 0-3; all"},
        {"step-id", "N", "Only this step; with --compat msprof as theirs, which filters little; -1: all"},
        {"schedule", "NAME", "dualpipev or 1f1b, where pp_info does not say", "dualpipev,1f1b,vpp"},
        {"fail-on", "LIST", "unlabelled: exit with 1 when a block's micro-batch is not known", "unlabelled"},
        {"mode", "NAME", "msprof-analyze's -m: pp_chart", "pp_chart"},
        {"export-type", "KIND", "msprof-analyze's: db", "db"},
        {"parallel-mode", "NAME", "msprof-analyze's: changes nothing here"},
        {"force", "", "msprof-analyze's: changes nothing here"},
        {"agent", "", "msprof-analyze's: changes nothing here"}}},
      {"schedule",
       {"[SCHEDULE]", 0, 1},
       "Draw a schedule and compare its span, bubbles and activations with published formulas",
       "Replays the order of a schedule (stageline help schedules) or of a file (--from-csv) with the given costs. "
       "Writes the order as a table that --from-csv reads (--format csv, or -o FILE.csv), as the CSV that torch and "
       "torchtitan run (--format torch), or as numbers (--format json). Draws it with -o FILE.svg (.png, .pdf, .html, "
       ".json, …). With --to csv, writes its cells with their times. Times without a unit are milliseconds.",
       split("stages micro-batches chunks group dw-detach plan-cost cost latency from-csv layout format output force to "
             "rows dark width title",
             ' '),
       run_schedule,
       {{"stages", "P", "Ranks of one pipeline; default 4"},
        {"micro-batches", "M", "Micro-batches per step; default 8"},
        {"cost", "F,B | F,I,W[,F&B]",
         "Cost of one cell, that is of one micro-batch on one chunk; default 1,1,1, and F&B the sum of its parts"},
        {"format", "KIND", "text (default), csv: the order as a table, torch: as torch's CSV, json: the numbers",
         "text,csv,torch,json"}}},
      {"simulate",
       {"SCHEDULE", 1, 1},
       "Generate a synthetic run (worker logs, a cell table or Ascend profiles) with its ground truth",
       "Replays a schedule (stageline help schedules) with the given costs and writes workerlog.N (--format paddle), "
       "cells.csv (--format cells) or Ascend profiler databases, one folder a rank (--format ascend), and truth.csv. "
       "Times without a unit are milliseconds.",
       split("stages pp micro-batches chunks group dw-detach plan-cost dp tp cp order steps first-step cost "
             "optimizer latency jitter messages reduce clock-skew machines fault seed format level marks p2p "
             "level-none-comm pp-info empty-pop no-step-time framework output",
             ' '),
       run_simulate,
       {{"stages", "P", "Ranks of one pipeline; default 4"},
        {"dp", "D", "Data-parallel replicas; default 1"},
        {"steps", "N", "Steps to simulate; default 3"},
        {"micro-batches", "M", "Micro-batches per step; default 8"},
        {"pp", "P", "The same as --stages"},
        {"tp", "T", "ascend: tensor-parallel ranks; default 1"},
        {"latency", "L", "Delay of every message between ranks; default 0, of ascend 0.2"},
        {"format", "KIND",
         "paddle: workerlog.N (default); cells: one table, cells.csv; ascend: databases of Ascend's PyTorch profiler",
         "paddle,cells,ascend"},
        {"output", "DIR", "Folder to write to; made when missing"}}},
      {"help",
       {"[TOPIC]", 0, 1},
       "Show help for a command, or list readers, analyses, exporters, schedules, cell-rules",
       "Without a topic, an overview.",
       {},
       run_help},
      {"completion",
       {"SHELL", 1, 1},
       "Print a completion script for bash, zsh or fish",
       "For example: source <(stageline completion bash)",
       {},
       run_completion},
      {"man", {"", 0, 0}, "Print the manual page in troff", "For example: stageline man | man -l -", {}, run_man},
      {"version",
       {"", 0, 0},
       "Print the version, included third-party works and their licences",
       "Without options, prints one line: stageline 0.1.0.",
       split("json licences", ' '),
       run_version,
       {{"json", "", "As JSON: version, commit, compiler, libraries with their versions and licences"}}},
  };
  return table;
}

const Flag& flag_of(const Command& command, std::string_view name) {
  for (const Flag& own : command.own_flags)
    if (own.name == name) return own;
  const auto& table = flag_table();
  return *std::find_if(table.begin(), table.end(), [&](const Flag& f) { return f.name == name; });
}

const Command* find_command(std::string_view name) {
  const std::string wanted = dashed(name);
  for (const Command& command : command_table())
    if (command.name == wanted) return &command;
  return nullptr;
}

}  // namespace stageline
