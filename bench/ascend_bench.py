"""pp-chart against msprof-analyze and against bare SQLite, on the same profiles, made by ../shared/tools/gen_ascend.py."""
import glob
import os
import shutil
import subprocess
import sys

import cases
import measure
import rival

STAGELINE = os.path.abspath(cases.STAGELINE)
FLOOR = os.path.abspath("build/release/stageline_ascend_floor")
GENERATOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "shared", "tools", "gen_ascend.py")
SAID = os.path.join(cases.CACHE, "said_ascend.txt")
FASTER = 50
OF_FLOOR = 1.5
# name: (ranges a rank, arguments); --full: the sizes of the bars, otherwise a fraction that a shared machine can bear.
DUALPIPEV = (8, ["--schedule", "dualpipev", "--pp", "8", "--mb", "20", "--pp-info"], 300, 2564)
FORWARD = ([], ["--schedule", "1f1b", "--pp", "8"], (1, 200_000), (8, 200_000))
COMMUNICATION = ["--schedule", "1f1b", "--pp", "4", "--mb", "64", "--steps", "4", "--level-none-comm", "escaped"]


def make(name, arguments):
    folder = os.path.abspath(os.path.join(cases.CACHE, f"ascend_{name}"))
    if not os.path.exists(os.path.join(folder, "done")):
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, GENERATOR, "--out", os.path.join(folder, "data"), *arguments], check=True, stdout=subprocess.DEVNULL)
        open(os.path.join(folder, "done"), "w").close()
    return folder


def databases(folder):
    return sorted(glob.glob(os.path.join(folder, "*", "ASCEND_PROFILER_OUTPUT", "ascend_pytorch_profiler_*.db")))


def fresh(folder):
    """A copy to be written into: both sides change their input."""
    work = os.path.join(folder, "work")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(os.path.join(folder, "data"), work)
    return work


def ours(folder):
    return measure.run([STAGELINE, "pp-chart", "-q", "-d", fresh(folder), "--in-place", "--compat", "msprof"], SAID)


def theirs(folder, python):
    program = os.path.join(os.path.dirname(python), "msprof-analyze")
    return measure.run([program, "cluster", "-m", "pp_chart", "-d", fresh(folder), "--force"], SAID)


def floor(folder):
    return measure.run([FLOOR, *databases(fresh(folder))], SAID)


def run(full, seconds, times, row, bar):
    if not os.path.exists(GENERATOR):
        print("skipped: ascend, ../shared/tools/gen_ascend.py is not there")
        return
    os.makedirs(cases.CACHE, exist_ok=True)
    python = rival.find_msprof()
    print("\n| pp-chart | ranges | stageline CPU | wall | peak | against | CPU | wall | peak | ratio |\n|" + " --- |" * 10, flush=True)

    def compare(name, arguments, what, other, label, runs=3):
        folder = make(name, arguments)
        own = measure.median([ours(folder) for _ in range(runs)])
        cost = other(folder) if other else None
        row(name, what, seconds(own.cpu), seconds(own.wall), f"{own.rss:.0f} MB", label,
            *([seconds(cost.cpu), seconds(cost.wall), f"{cost.rss:.0f} MB", times(cost.cpu / own.cpu)] if cost else ["–"] * 4))
        shutil.rmtree(os.path.join(folder, "work"), ignore_errors=True)
        return own, cost

    their_run = (lambda folder: theirs(folder, python)) if python else None
    steps = DUALPIPEV[3] if full else DUALPIPEV[2]
    own, cost = compare(f"dualpipev_{steps}", [*DUALPIPEV[1], "--steps", str(steps)], f"8 × {steps * 75 // 1000}k", their_run, "msprof-analyze")
    if cost:
        bar(f"ascend: DualPipeV {times(cost.cpu / own.cpu)} less CPU than msprof-analyze, asked ≥ {FASTER}×", cost.cpu / own.cpu >= FASTER)
        bar(f"ascend: DualPipeV {own.rss:.0f} MB at the peak, msprof-analyze {cost.rss:.0f} MB in its largest process", own.rss < cost.rss)
    dp, bulk = FORWARD[3] if full else FORWARD[2]
    own, cost = compare(f"forward_{dp}", [*FORWARD[1], "--dp", str(dp), "--bulk", str(bulk)], f"{8 * dp} × {bulk // 1000}k", floor, "bare SQLite")
    bar(f"ascend: {times(own.cpu / cost.cpu)} the CPU of bare SQLite, asked ≤ {OF_FLOOR}×", own.cpu <= OF_FLOOR * cost.cpu)
    own, cost = compare("communication", COMMUNICATION, "4 ranks, Level_none sends and receives", their_run if full else None, "msprof-analyze")
    bar(f"ascend: communication ranges of Level_none in {seconds(own.cpu)}, asked < 1 s", own.cpu < 1)
