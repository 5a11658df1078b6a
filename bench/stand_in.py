"""Worker logs → the two timeline files, in plain Python: ./dev bench times this if the reference tool cannot be
installed. It gives the same files and bytes for runs on one machine. A fixed text is searched before the regular
expression, so lines without jobs are cheap. It is only a yardstick."""
import argparse
import json
import os
import re

JOB = re.compile(r"Profiler Info: Job \((\d+)\), type = (\w+), micro_batch_id = (\d+), "
                 r"job_start_time = (\d+.\d+), job_end_time = (\d+.\d+)")
COLOURS = {"forward": "thread_state_running", "backward": "rail_idle", "optimizer": "rail_response",
           "default": "thread_state_unknown"}


def pair(name, kind, start, end, row, colour):
    colour = {"cname": colour} if colour else {}
    begin = {"name": name, "cat": kind, "ph": "B", "ts": start, "pid": 0, "tid": row, **colour}
    if kind == "step":
        return begin, {**begin, "ph": "E", "ts": end}
    return begin, {"name": name, "cat": kind, "ph": "E", "pid": 0, "ts": end, "tid": row, **colour}


def read_log(path, row, events):
    """Appends the jobs' events; returns [start, end] of every step."""
    with open(path) as log:
        text = log.read()
    marker, steps = None, []
    for job, kind, micro_batch, start, end in JOB.findall(text):
        start, end = float(start) * 1000, float(end) * 1000
        if marker is None and kind != "default":
            marker = kind
        if kind == marker and micro_batch == "0":
            steps.append([start, end])
        if steps:
            steps[-1][1] = end
        events.extend(pair(f"{kind}_{job}", kind, start, end, row, COLOURS.get(kind)))
    return steps or [[0, 0]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log_dir", required=True)
    parser.add_argument("--devices", required=True)
    args = parser.parse_args()
    devices = [int(d) for d in args.devices.split(",")]
    events, steps = [], []
    for device in devices:
        for i, (start, end) in enumerate(read_log(os.path.join(args.log_dir, f"workerlog.{device}"), f"GPU{device}", events)):
            if i == len(steps):
                steps.append([start, end])
            steps[i] = [min(steps[i][0], start), max(steps[i][1], end)]
    for i, (start, end) in enumerate(steps):
        if i > 0:
            start = max(start, steps[i - 1][1])
        events.extend(pair(f"step{i}", "step", start, end, "Step", COLOURS["default"]))
    with open(os.path.join(args.log_dir, "pipeline_profile.json"), "w") as out:
        out.write(json.dumps({"traceEvents": events}))
    numbers = {"Step": 2333, **{f"GPU{d}": 2334 + j for j, d in enumerate(devices)}}
    events = [{**e, "tid": numbers[e["tid"]]} for e in events]
    for name, tid in [("STEP", 2333)] + [(f"GPU:{j}", 2334 + j) for j in range(len(devices))]:
        events.append({"args": {"name": name}, "cat": "__metadata", "name": "thread_name", "ph": "M", "pid": 0,
                       "tid": tid, "ts": 0})
    with open(os.path.join(args.log_dir, "pipeline_profile_perfetto.json"), "w") as out:
        out.write(json.dumps({"traceEvents": events}))


main()
