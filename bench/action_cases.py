"""./dev bench action: what the GitHub Action's script (packaging/action/gate.py) finds among runs that `stageline simulate` makes: a
lasting shift of half a percent after the 30th of 60 runs, and how often it calls runs slower that are not. Histories are drawn at random
from 900 runs and 450 shifted ones."""
import json
import os
import pathlib
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HISTORIES = int(os.environ.get("STAGELINE_ACTION_HISTORIES", "200"))
RUNS, FIRST_SLOW, SHIFT, POOL = 60, 30, 0.005, int(os.environ.get("STAGELINE_ACTION_POOL", "900"))
SMALL_POOL, SMALL_HISTORIES = 60, 1
RUN = ("1f1b", "--stages", "4", "--micro-batches", "8", "--steps", "20", "--jitter", "0.05", "--optimizer", "5")
MOST_FALSE, LEAST_FOUND = 1 / 200, 0.95


def gate():
    sys.path.insert(0, str(HERE.parent / "packaging/action"))
    import gate as script  # noqa: PLC0415
    return script


def pool(tool, folder, first_seed, count, shift):
    """That many runs, each simulated by itself and added to a history: its rows."""
    made = []
    for i in range(count):
        made.append(folder / f"run{i:04d}")
        costs = f"{10 * (1 + shift):.4f},{20 * (1 + shift):.4f}"
        subprocess.run([tool, "simulate", *RUN, "--cost", costs, "--seed", str(first_seed + i), "-o", made[-1], "--quiet"], check=True, capture_output=True)
    history = folder / f"pool{first_seed}.sqlite"
    subprocess.run([tool, "history", "add", *made, "--db", history, "--quiet"], check=True, capture_output=True)
    for name in made:
        shutil.rmtree(name)
    return history


def write(history, pools, chosen):
    """A history of chosen runs, (which pool, which run of it) each, in this order."""
    shutil.copy(pools[0], history)
    with sqlite3.connect(history) as file:
        rows = []
        for which, name in enumerate(pools):
            file.execute(f"attach ? as pool{which}", (str(name),))
        for which, run_id in chosen:
            rows.append(file.execute(f"select added_s, steps, step_ns from pool{which}.runs where id = ?", (run_id,)).fetchone())
        file.execute("delete from parts")
        file.execute("delete from runs")
        file.executemany("insert into runs values (?, '', ?, '', ?, ?)", ((i, added, steps, step) for i, (added, steps, step) in enumerate(rows, 1)))
    file.close()


def measure(tool, histories, runs_made=POOL):
    script, r, spreads = gate(), random.Random(1), []
    verdicts = {"level": [], "shifted": []}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        folder = pathlib.Path(folder)
        pools = [pool(tool, folder, 1_000_000, runs_made, 0.0), pool(tool, folder, 2_000_000, runs_made // 2, SHIFT)]
        for _ in range(histories):
            for kind in verdicts:
                level = [(0, one) for one in r.sample(range(1, runs_made + 1), RUNS if kind == "level" else FIRST_SLOW)]
                slow = [(1, one) for one in r.sample(range(1, runs_made // 2 + 1), RUNS - len(level))]
                write(folder / "history.sqlite", pools, level + slow)
                verdict, _, _, figures = script.among([tool], folder / "history.sqlite", 0.0)
                at = figures["changes"][-1]["run"] if figures["changes"] else None
                verdicts[kind].append((verdict, at))
                spreads.append(figures["spread_share"])
    return {"histories": histories, "false": sum(verdict == script.FAIL for verdict, _ in verdicts["level"]),
            "found": sum(verdict == script.FAIL for verdict, _ in verdicts["shifted"]),
            "near": sum(at is not None and abs(at - FIRST_SLOW - 1) <= 2 for _, at in verdicts["shifted"]), "spread": statistics.median(spreads)}


def run(bench, tool):
    histories, runs_made = (SMALL_HISTORIES, SMALL_POOL) if bench.small else (HISTORIES, POOL)
    done = measure(tool, histories, runs_made)
    print(f"\n{RUNS} of {runs_made} simulated runs of 20 steps in each history (of {runs_made // 2} that are slower); mean steps of runs differ by {done['spread']:.2%} (standard deviation)\n", flush=True)
    bench.row("histories", "called slower", "within two runs of the true one")
    bench.row("---", "---:", "---:")
    bench.row(f"{histories} without a change", str(done["false"]), "")
    bench.row(f"{histories} that are {SHIFT:.1%} slower from run {FIRST_SLOW + 1} on", str(done["found"]), str(done["near"]))
    bench.bar(f"action: {done['false']} of {histories} called slower without a change, asked ≤ 1 in 200", done["false"] / histories <= MOST_FALSE)
    bench.bar(f"action: {done['found']} of {histories} shifts of {SHIFT:.1%} found, asked ≥ {LEAST_FOUND:.0%}", done["found"] / histories >= LEAST_FOUND)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], HISTORIES)))
