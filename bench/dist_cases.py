"""./dev bench dist: compares the release (./dev dist, made before) with ./dev build's program. It runs the same
commands in turn, and measures the start."""
import os
import resource
import subprocess
import time

import cases

PROGRAM = os.environ.get("STAGELINE_DIST", "build/dist/x86_64/stage/bin/stageline")
RUNS, STARTS = 5, 40
SMALL_RUNS, SMALL_STARTS = 1, 1
SLOWER = 1.05
START_MS = 5
SIZES, SMALL = ("16", "32", "32", "6"), ("4", "2", "4", "3")  # stages, replicas, micro-batches, steps
COSTS = ("--jitter", "0.03", "--cost", "10,20", "--latency", "0.2", "--optimizer", "8",
         "--fault", "slow-stage:2,1.2", "--seed", "7")


def cpu_seconds(command):
    """Returns the CPU of the whole process. Its parts in user and system are samples of the clock's ticks, too coarse
    for a command of 60 ms."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def start_seconds(program):
    begin = time.perf_counter()
    os.waitpid(os.posix_spawn(program, [program, "version"], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]), 0)
    return time.perf_counter() - begin


def run(bench):
    # A small run tries the case itself, if need be with one program twice.
    program = PROGRAM if os.path.exists(PROGRAM) or not bench.small else cases.STAGELINE
    runs, starts = (SMALL_RUNS, SMALL_STARTS) if bench.small else (RUNS, STARTS)
    if not os.path.exists(program):
        bench.absent(f"{PROGRAM} is not there: ./dev dist makes it")
        return
    stages, replicas, micro_batches, steps = SMALL if bench.small else SIZES
    ranks = int(stages) * int(replicas)
    logs = os.path.join(cases.CACHE, f"ranks{ranks}-v1")
    if not os.path.exists(logs):
        subprocess.run([cases.STAGELINE, "simulate", "1f1b", "--stages", stages, "--dp", replicas, "--micro-batches", micro_batches, "--steps", steps, *COSTS, "--quiet", "-o", logs + ".part"], check=True, stdout=subprocess.DEVNULL)
        os.rename(logs + ".part", logs)
    out = os.path.join(cases.CACHE, "dist_report.html")
    commands = {"explain": ["explain", logs, "--quiet"], "report": ["report", logs, "--quiet", "-o", out], "info": ["info", logs, "--quiet"]}
    print(f"\n| {ranks} ranks, CPU, least of {runs} in turn | `./dev dist` | `./dev build` | ratio |\n| --- | --- | --- | --- |", flush=True)
    for name, command in commands.items():
        handed_out = built = float("inf")
        for _ in range(runs):
            handed_out = min(handed_out, cpu_seconds([program, *command]))
            built = min(built, cpu_seconds([cases.STAGELINE, *command]))
        bench.row(f"`{name}`", bench.seconds(handed_out), bench.seconds(built), f"{handed_out / built:.2f}×")
        bench.bar(f"dist: {name} takes {handed_out / built:.3f} of what ./dev build's program takes, asked ≤ {SLOWER}", handed_out / built <= SLOWER)
    start, built = (min(start_seconds(os.path.abspath(one)) for _ in range(starts)) * 1000 for one in (program, cases.STAGELINE))
    bench.row(f"`version`, on the clock, least of {starts}", f"{start:.1f} ms", f"{built:.1f} ms", f"{start / built:.2f}×")
    bench.bar(f"dist: stageline version takes {start:.1f} ms, asked ≤ {START_MS} ms", start <= START_MS)
