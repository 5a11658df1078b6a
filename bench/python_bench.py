"""./dev bench python: the session of HTA's users through Python, HTA and Stageline in one run. run.py calls it.

One script (hta_run.py) makes the same calls: load, then the eight cheap analyses with all ranks; once with HTA's module, once with
stageline.hta in its place. Frames come out on both sides. CPU is user + system of the process and its workers during the calls: what
imports cost (pandas, plotly, hta) is on neither side."""
import json
import os

import kineto_bench
import kineto_cases
import measure
import rival as rivals

PACKAGE = os.environ.get("STAGELINE_PACKAGE") or os.path.abspath("build/release/python")
CPU = {"json": 40, "gz": 35}  # times less CPU than HTA


def session(python, folder, ours):
    """(CPU, wall, peak MB) of load and eight analyses, and each call's cost."""
    result = os.path.join(kineto_cases.CACHE, "hta.json")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hta_run.py")
    said = os.path.join(kineto_cases.CACHE, "said.txt")
    environment = dict(os.environ, PYTHONPATH=PACKAGE if ours else "")
    cost = measure.run([python, script, os.path.abspath(folder), ",".join(kineto_bench.CHEAP), result, *(["ours"] if ours else [])], said, environment)
    inside = json.load(open(result))
    calls = {name: one for name, one in inside.items() if isinstance(one, dict)}
    failed = [f"{name}: {one['failed']}" for name, one in calls.items() if one["failed"]]
    if failed:
        raise RuntimeError("; ".join(failed))
    cpu = sum(one["cpu"] for one in calls.values()) - (inside["peak_cpu"] if not ours else 0)
    return measure.Cost(cpu, sum(one["wall"] for one in calls.values()), max(cost.rss, inside["peak_mb"])), calls


def run(report, full):
    python = rivals.find_hta()
    if not python:
        print("\nskipped: HTA could not be installed, and its Python runs both sides", flush=True)
        return
    case = kineto_cases.Case("ns4x1m").prepare()
    print(f"\n{case.text}, {case.bytes() / 1e6:.0f} MB of JSON; {rivals.hta_version(python)}.\n", flush=True)
    report.row("through Python", "stageline.hta CPU", "wall", "peak", "HTA CPU", "wall", "peak", "CPU ratio")
    report.row(*["---"] * 8)
    for kind in ("json", "gz"):
        folder = getattr(case, kind)
        runs = [session(python, folder, True) for _ in range(2)]
        theirs, their_calls = session(python, folder, False)
        runs.append(session(python, folder, True))
        ours = measure.median([cost for cost, _ in runs])
        calls = min(runs, key=lambda one: one[0].cpu)[1]
        ratio = theirs.cpu / ours.cpu
        report.row(f"load + eight analyses, .{kind if kind == 'json' else 'json.gz'}", report.seconds(ours.cpu), report.seconds(ours.wall), f"{ours.rss:.0f} MB",
                   report.seconds(theirs.cpu), report.seconds(theirs.wall), f"{theirs.rss:.0f} MB", report.times(ratio))
        for name, one in calls.items():
            hta = their_calls[name]
            report.row(f"… {name}", report.seconds(one["cpu"]), report.seconds(one["wall"]), "", report.seconds(hta["cpu"]), report.seconds(hta["wall"]), "",
                       report.times(hta["cpu"] / max(one["cpu"], 0.001)))
        report.bar(f"through Python on .{kind}: {report.times(ratio)} less CPU, asked ≥ {CPU[kind]}×", ratio >= CPU[kind])
