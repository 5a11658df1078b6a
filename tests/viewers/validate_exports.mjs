// validate_exports.mjs (FILE.json FILE.pftrace FILE.expect)… loads both files of each shape into Perfetto's trace
// processor. It checks by SQL that everything expected exists and nothing else, and that both formats agree.
// STAGELINE_TRACE_PROCESSOR names the wasm file.

import { createHash } from "node:crypto";
import fs from "node:fs";
import { openTraceProcessor } from "./trace_processor.mjs";

// Statistics of severity "info" that mean something was lost all the same.
const kMustBeZero = [
  "packet_skipped_seq_needs_incremental_state_invalid",
  "flow_end_without_start",
  "flow_no_enclosing_slice",
  "flow_duplicate_id",
  "flow_step_without_start",
  "slice_drop_overlapping_complete_event",
  "misplaced_end_event",
];

// The query gives one row per slice. JSON puts arguments under "args.", protobuf under "debug.".
const kSlices = (prefix) => `
  select s.id, s.ts, s.dur, s.depth, s.name, s.category, coalesce(th.name, t.name) track,
    coalesce(p.name, '') process, coalesce(th.tid, 0) tid, coalesce(p.pid, 0) pid,
    extract_arg(s.arg_set_id, '${prefix}.kind') kind, extract_arg(s.arg_set_id, '${prefix}.step') step,
    extract_arg(s.arg_set_id, '${prefix}.stage') stage, extract_arg(s.arg_set_id, '${prefix}.chunk') chunk,
    extract_arg(s.arg_set_id, '${prefix}.micro_batch') micro_batch, extract_arg(s.arg_set_id, '${prefix}.rank') rank,
    extract_arg(s.arg_set_id, '${prefix}.dp') dp, extract_arg(s.arg_set_id, 'debug.dur_ns') dur_ns
  from slice s join track t on s.track_id = t.id
    left join thread_track tt on tt.id = t.id left join thread th using (utid) left join process p using (upid)
  order by s.ts, tid, s.dur desc, s.id`;

// Threads in the order of the hints that each format gives the viewer. This version keeps the ranks of plain and
// process tracks, not those of threads (a unit test reads them); tids replace them.
const kOrder = {
  json: `select p.name process, th.name track, extract_arg(p.arg_set_id, 'process_sort_index_hint') a,
      extract_arg(th.arg_set_id, 'thread_sort_index_hint') b
    from thread th join process p using (upid) where th.tid > 0 and th.utid in (select utid from thread_track)
    order by a, b`,
  pftrace: `select coalesce(p.name, '') process, coalesce(th.name, t.name) track,
      extract_arg(t.source_arg_set_id, 'sibling_order_rank') a
    from track t left join thread_track tt on tt.id = t.id left join thread th using (utid)
      left join process p using (upid)
      left join track pt on pt.type = 'process_track_event' and extract_arg(pt.dimension_arg_set_id, 'upid') = p.upid
    where t.id in (select track_id from slice)
    order by coalesce(a, extract_arg(pt.source_arg_set_id, 'sibling_order_rank')), th.tid`,
};

const failures = [];
let shape = "";
function check(ok, what, detail = "") {
  if (!ok) failures.push(`${shape}: ${what} ${detail}`);
}
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const firstDifference = (a, b) => {
  const i = a.findIndex((x, k) => !same(x, b[k]));
  const at = i < 0 ? a.length : i;
  return `(${a.length} against ${b.length} rows; row ${at}: ${JSON.stringify(a[at])} against ${JSON.stringify(b[at])})`;
};
const sorted = (rows) => rows.map((r) => JSON.stringify(r)).sort();

let version = "";
function read(path, format, expect) {
  shape = `${expect.name}.${format}`;
  const tp = openTraceProcessor(process.env.STAGELINE_TRACE_PROCESSOR);
  version = tp.version();
  try {
    tp.load(fs.readFileSync(path));
  } catch (error) {
    // Only the message distinguishes a trace without a single event from damage.
    check(expect.cells.length === 0, "is refused:", error.message);
    if (expect.cells.length > 0) return null;
  }
  const stats = tp.query("select name, value, severity from stats where value != 0");
  for (const s of stats)
    check(!["error", "data_loss"].includes(s.severity) && !kMustBeZero.includes(s.name), `stat ${s.name} =`, s.value);

  const slices = tp.query(kSlices(format === "json" ? "args" : "debug"));
  const start = slices.length ? slices[0].ts : 0;
  const since = (ts) => Number(BigInt(ts) - BigInt(start));
  if (format === "pftrace" && slices.length) check(BigInt(start) === BigInt(expect.start_ns), "starts at", start);

  const steps = slices.filter((s) => s.category === "step");
  check(steps.length === expect.steps, "step slices:", steps.length);
  for (const s of steps) check(new RegExp(`^step ${s.step} \\(.* (us|ms|s)\\)$`).test(s.name) && s.track === "steps", "step", s.name);

  // Every cell, by its arguments; a wrong duration or a lost argument shows here.
  const cells = slices.filter((s) => s.category !== "step");
  const found = sorted(cells.map((s) => [since(s.ts), s.dur, s.kind, s.step, s.stage, s.chunk, s.micro_batch, s.rank, s.dp]));
  const wanted = sorted(expect.cells);
  // An unknown chunk is omitted like any other unknown.
  check(same(found, wanted), "cells differ", firstDifference(found, wanted));
  check(cells.every((s) => s.depth === 0), "a slice is nested in another");
  if (format === "pftrace") check(cells.every((s) => s.dur_ns === s.dur), "dur_ns differs from the duration");
  const names = new Set(slices.map((s) => s.name));
  for (const name of expect.some_names) check(names.has(name), "no slice is called", JSON.stringify(name));
  for (const s of cells) {
    const unit = { us: 1e3, ms: 1e6, s: 1e9 }[/ (us|ms|s)\)$/.exec(s.name)?.[1]];
    const shown = Number(/ \(([0-9]+\.[0-9]{2}) (?:us|ms|s)\)$/.exec(s.name)?.[1]) * unit;
    check(Math.abs(shown - s.dur) <= unit * 0.005 + 1e-6, "name and duration disagree:", `${s.name}, ${s.dur} ns`);
  }

  // Tracks and their order: steps first, then as listed by hand.
  const order = tp.query(kOrder[format]).map((r) => `${r.process}/${r.track}`).filter((t) => !t.endsWith("/steps"));
  check(same(order, expect.tracks), "tracks:", firstDifference(order, expect.tracks));
  const first = tp.query(kOrder[format])[0];
  check(!expect.steps || first?.track === "steps", "the first track is", first?.track);
  const pids = new Set(slices.map((s) => s.pid)), tids = new Set(slices.map((s) => s.tid));
  check(![...tids].some((tid) => tid !== 0 && pids.has(tid)), "a tid equals a pid");

  // Arrows.
  const byId = new Map(slices.map((s) => [s.id, s]));
  const end = (id) => [byId.get(id).rank, since(byId.get(id).ts)];
  const flows = tp.query("select slice_out, slice_in from flow").map((f) => [...end(f.slice_out), ...end(f.slice_in)]);
  // The importer lets every arrow start at the slice that begins first, whatever the file says; so
  // where clocks contradict the order both formats come out turned around.
  const forwards = ([a, b, c, d]) => (b < d || (b === d && a < c) ? [a, b, c, d] : [c, d, a, b]);
  const wantedFlows = sorted(expect.flows.filter((f) => format !== "json" || !f[4]).map(forwards));
  const foundFlows = sorted(flows.map(forwards));
  check(same(foundFlows, wantedFlows), "flows differ", firstDifference(foundFlows, wantedFlows));
  if (format === "json") {
    const whole = JSON.parse(fs.readFileSync(path, "utf8"));
    const left = whole.otherData.flows_left_out;
    check(left === expect.flows.filter((f) => f[4]).length, "otherData.flows_left_out", left);
    const times = whole.traceEvents.filter((e) => e.ph !== "M").map((e) => e.ts);
    check(times.every((t, i) => i === 0 || times[i - 1] <= t), "events are not in time order");
  }
  const hash = createHash("sha256");
  for (const s of slices) hash.update(JSON.stringify([since(s.ts), s.dur, s.depth, s.name, s.track, s.category, s.kind]) + "\n");
  return { hash: hash.digest("hex"), slices: slices.length, flows: flows.length };
}

const files = process.argv.slice(2);
if (files.length === 0 || files.length % 3 !== 0) {
  console.error("usage: validate_exports.mjs (FILE.json FILE.pftrace FILE.expect)…");
  process.exit(2);
}
for (let i = 0; i < files.length; i += 3) {
  const expect = JSON.parse(fs.readFileSync(files[i + 2], "utf8"));
  const json = read(files[i], "json", expect);
  const pftrace = read(files[i + 1], "pftrace", expect);
  shape = expect.name;
  check(json?.hash === pftrace?.hash, "the two formats differ");
  console.log(`${expect.name}: ${json?.slices} slices, ${json?.flows} + ${pftrace?.flows} flows, ${json?.hash.slice(0, 12)}`);
}
for (const failure of failures) console.error(`FAILED ${failure}`);
console.log(`${files.length / 3} shapes through ${version || "the trace processor"}: ${failures.length} failures`);
process.exit(failures.length ? 1 : 0);
