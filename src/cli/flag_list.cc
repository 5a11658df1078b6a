// Every flag that some command takes, once. When a flag means something special in a command, that command defines it
// (flag_table.cc).
#include <string>

#include "cli/flags.h"
#include "model/finding.h"

namespace stageline {
namespace {

std::string findings_text(std::string_view between) {
  std::string out;
  for (const std::string_view id : finding_ids()) out += std::string(id) + std::string(between);
  return out + "any";
}
const std::string& findings_list() {
  static const std::string list = findings_text(",");
  return list;
}
const std::string& findings_help() {
  static const std::string help =
      "Exit with 1 when one of these findings is reported: " + findings_text(", ") +
      "; or a share alone, P%: when the causes together cost more of the step than that. Names and a share "
      "cannot be combined";
  return help;
}

}  // namespace

const std::vector<Flag>& flag_table() {
  static const std::vector<Flag> table = {
      {"help", "", "Show help for this command"},
      {"lang", "LANG", "Language of findings and charts; default from $LC_ALL, $LC_MESSAGES, $LANG", "en,zh"},
      {"threads", "N", "Worker threads; default all cores"},
      {"max-memory", "SIZE",
       "Stop reading when the program holds this much: 8G. So much text of compressed files that are 200 times as long "
       "when decompressed is read too; default 64M of it, and nine tenths of the machine's memory"},
      {"color", "WHEN", "Colour in the terminal; default auto (also off when NO_COLOR is set)", "auto,always,never"},
      {"quiet", "", "Suppress progress and notes on stderr; errors are still printed"},
      {"reader", "NAME", "Use this reader instead of detecting the format (see stageline help readers)"},
      {"ranks", "LIST", "Read only these global ranks, such as 0-3,8"},
      {"steps", "A:B", "Read only these steps, both ends included: 3:5, 3:, :5 or 3"},
      {"pp", "P", "Number of pipeline stages, if the input does not state it"},
      {"stages", "P", "The same as --pp"},
      {"tp", "T", "Ranks per tensor-parallel group; together with --pp it assigns every rank by its number"},
      {"cp", "C", "Ranks of one context-parallel group"},
      {"ep", "E", "Ranks of one expert-parallel group; part of the data-parallel ones"},
      {"order", "DIMS",
       "Order of parallel dimensions in rank numbers, fastest first; default tp-cp-ep-dp-pp, as in Megatron"},
      {"cells", "FROM",
       "Source of pipeline cells in profiler traces; default auto: names, or messages if no name matches",
       "auto,annotations,inferred,off"},
      {"cell-rules", "FILE",
       "File of rules that map names to pipeline work, applied before the built-in ones (stageline help "
       "cell-rules)"},
      {"devices", "LIST", "Only the worker logs with these numbers, such as 0,1,2,3"},
      {"range", "T0:T1",
       "Include only what overlaps this time range, counted from the first cell or slice: 200ms:1.5s; without a "
       "unit, ms"},
      {"format", "KIND", "Form of the output: text (default), csv or json", "text,csv,json"},
      {"table", "NAME", "Only this table of the analysis"},
      {"rows", "N", "Maximum rows per text table; 0: no limit; default 100, on a terminal 40"},
      {"wide", "", "Do not shorten names in text tables; default: cut to the terminal width or 60 columns"},
      {"file", "FILE", "Read the query from this file; - is standard input"},
      {"timeout", "T", "Stop a query after this time: 30s; without a unit, ms; default never"},
      {"root", "DIR", "Runs below this folder may be opened; may be repeated; default the current one"},
      {"install", "DIR", "Write the skill's files below this folder, in stageline/"},
      {"allow-write", "DIR", "The tool report may write pages below this folder; may be repeated; default nowhere"},
      {"chars", "N", "Approximate maximum characters per answer; default 24000"},
      {"memory", "MIB",
       "Close the least recently used runs above this much memory; default half of the machine's memory"},
      {"schema", "", "List tables and columns with their units"},
      {"output", "FILE", "Where to write; - is stdout"},
      {"force", "", "Replace the file of --output even if it is a measurement that another program wrote"},
      {"to", "KIND", "Kind of output if the file extension does not decide it (stageline help exporters)"},
      {"align", "WHEN",
       "Align the ranks' clocks by their messages: auto (default; a shared clock is only checked), always, never",
       "auto,always,never"},
      {"nvtx", "", "Record NVTX and mstx ranges too, with device times where they are on torch's current stream"},
      {"nccl", "", "Record what NCCL sends, with peers and bytes, as its profiler plugin (NCCL 2.23 and newer)"},
      {"kernels", "", "Record kernels too (CUPTI); costs more, and cannot run together with another profiler"},
      {"trust-clocks", "", "Keep the recorded clocks of ranks that cannot be aligned"},
      {"align-on", "RANK:RANK:NAME",
       "Align two clocks by hand: this operator or cell starts on both at the same time; may be repeated"},
      {"dark", "", "Draw charts on a dark background"},
      {"ghosts", "WHEN",
       "Theory under the rows of a chart, the recognised schedule with mean times and no latency: on, off; default on "
       "where there is room",
       "on,off"},
      {"width", "PX", "Width of a chart in pixels; default from its content"},
      {"slices", "N", "Maximum slices in the page; a larger run is reduced to its pipeline; default 5000000"},
      {"title", "TEXT", "Title of charts and reports; default from the input's name"},
      {"json", "", "The same as --format json"},
      {"figures", "NAMES", "Print these figures alone (step_period,part.compute), or all: numbers with unit and base"},
      {"licences", "", "The licences of all works that the program carries"},
      {"compat", "NAME", "Reproduce another tool's output where a command supports it (paddle-timeline: paddle-v3)",
       "paddle-v3"},
      {"log-dir", "DIR", "Folder of workerlog.N; the two files are written here"},
      {"multi-machine", "", "The folder holds one folder machine* per machine"},
      {"db", "FILE",
       "The history; default stageline-history.sqlite next to the first run, for list and check in this folder"},
      {"label", "TEXT", "Label of the runs: a commit, a version"},
      {"fail-on", "LIST", findings_help().c_str(), findings_list().c_str()},
      {"micro-batches", "M", "Micro-batches per step"},
      {"chunks", "V", "Model chunks per rank, for schedules with a choice; default 1, interleaved and looped ones 2"},
      {"group", "G", "Interleaved schedules: micro-batches that take turns on a chunk; default as many as stages"},
      {"dw-detach", "", "dualpipe-v-mindspeed: weight gradients of the cool-down apart from the input gradients"},
      {"plan-cost", "F,I,W,L",
       "zbvpp: the costs it plans with, and the latency; default Paddle's 50,55,45,5 (whole numbers of any unit)"},
      {"from-csv", "FILE", "The order is in this file: our table (stage,index,kind,microbatch,chunk) or torch's CSV"},
      {"layout", "KIND", "Placement of chunks on ranks, with --from-csv; default: the one in which the order can run",
       "loop,v,bidirectional"},
      {"dp", "D", "Data-parallel replicas, of simulate default 1; with --pp it places every rank by its number"},
      {"cost", "F,B | F,I,W[,F&B]",
       "Cost of one cell, that is of one micro-batch on one chunk; without a unit, ms; default 10,10,10, and F&B the "
       "sum of its parts"},
      {"first-step", "N", "ascend: number of the first step; default 10"},
      {"level", "LEVEL",
       "ascend: what the profiler recorded: none: markers only (default), 0: kernels and communication operations too, "
       "1: and their transfers",
       "none,0,1"},
      {"marks", "KIND",
       "ascend: who wrote the markers, the vendor's guide (default) or our stageline_mstx.py, which says micro-batch, "
       "chunk, stage and step",
       "guide,helper"},
      {"p2p", "KIND", "ascend: one operation for each tensor (single, default) or batches, as in Megatron",
       "single,batch"},
      {"level-none-comm", "FORM",
       "ascend, --level none: the profiler's own ranges of communication, as older ones (plain) or newer ones "
       "(escaped) "
       "write them; default none",
       "plain,escaped"},
      {"pp-info", "", "ascend: with the pp_info metadata that msprof-analyze asks for"},
      {"empty-pop", "", "ascend: with the empty WeightGradStore.pop ranges that the guide's snippet leaves"},
      {"no-step-time", "", "ascend: without the table of steps"},
      {"framework", "NAME", "ascend: whose names files have; default pytorch", "pytorch,mindspore"},
      {"optimizer", "T", "Cost of the optimizer; default 0: none is written"},
      {"latency", "L", "Delay of every message between ranks; default 0"},
      {"jitter", "J", "Standard deviation of durations as a share of the cost; default 0"},
      {"clock-skew", "S", "Each machine's clock is off by up to ± this; default 0"},
      {"machines", "K", "Machines that hold the ranks in equal blocks; default 1"},
      {"messages", "", "Write sends and receives too; a link carries one message of a kind at a time"},
      {"reduce", "T",
       "Gradients are added up over the replicas: each stage waits for its slowest and then takes this long; default 0"},
      {"fault", "KIND:…",
       "Inject a fault; may be repeated: slow-stage:2,1.3, slow-rank:5,1.5, slow-step:1,1.5, slow-link:1,2,+3ms, "
       "long-sequences:0.2,3, gc:40ms,0.01, late-launch:5,2ms, wrong-order:2, missing-dw, heavy-head:0.8; an "
       "invalid one prints all forms"},
      {"rank", "R", "Global rank of the event; not needed when there is one rank"},
      {"index", "N", "Position of the event in traceEvents, from 0, as tables give it"},
      {"seed", "N", "Seed of everything random; default 1"},
      {"metric", "NAME", "Metric that weighs the stacks"},
      {"stacks", "KIND", "Where stacks come from"},
      {"aggregate", "", "One line for equal stacks"},
      {"leaf", "KIND", "Level to add below the frames of a stack"},
      {"unit", "UNIT", "Unit of times"},
      {"scale", "KEY=VALUE,…",
       "These cells take another time: stage=3,kind=F,by=0.9 or rank=5,set=3ms; keys stage, rank, dp, kind, chunk, "
       "micro-batch, step; may be repeated"},
      {"layers", "N | N,N,…", "Layers of the model, or of each stage as they are split now; default equal on all"},
      {"more-memory", "", "Also try orders that need more activation memory than the present one"},
      {"port", "N", "Port to listen on; 0: any that is free; default 8765 or the next free one"},
      {"host", "H", "Address to listen on; default only this machine"},
      {"token", "KIND",
       "path (default): the printed address contains a secret that is needed to read the run; none: no secret, "
       "for scripts on this machine only",
       "path,none"},
      {"confine", "WHEN",
       "auto (default): if the kernel supports Landlock, the server can read only its inputs and system folders; "
       "off: it can read everything its user can",
       "auto,off"},
      {"no-open", "", "Print the address without opening a browser"},
      {"follow", "", "Show a recording while its job runs (steps, pipeline, current findings), then the finished run"},
      {"webhook", "URL", "With --follow: POST a JSON object to this http address when a finding starts or ends"},
      {"compare", "PATH", "A second run, to compare with on the page Compare"},
  };
  return table;
}

}  // namespace stageline
