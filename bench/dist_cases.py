"""./dev bench dist: compares the release (./dev dist, made before) with ./dev build's program. It runs the same
commands in turn, and measures the start."""
import os
import resource
import subprocess
import time

import cases

PROGRAM = os.environ.get("STAGELINE_DIST", "build/dist/x86_64/stage/bin/stageline")
RUNS, STARTS = 5, 40
SLOWER = 1.05
START_MS = 5
RANKS = ("--stages", "16", "--dp", "32", "--micro-batches", "32", "--steps", "6", "--jitter", "0.03", "--cost", "10,20", "--latency", "0.2", "--optimizer", "8",
         "--fault", "slow-stage:2,1.2", "--seed", "7")  # 512 ranks


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
    if not os.path.exists(PROGRAM):
        print(f"\n{PROGRAM} is not there: ./dev dist makes it.")
        return
    logs = os.path.join(cases.CACHE, "ranks512-v1")
    if not os.path.exists(logs):
        subprocess.run([cases.STAGELINE, "simulate", "1f1b", *RANKS, "--quiet", "-o", logs + ".part"], check=True, stdout=subprocess.DEVNULL)
        os.rename(logs + ".part", logs)
    out = os.path.join(cases.CACHE, "dist_report.html")
    commands = {"explain": ["explain", logs, "--quiet"], "report": ["report", logs, "--quiet", "-o", out], "info": ["info", logs, "--quiet"]}
    print(f"\n| 512 ranks, CPU, least of {RUNS} in turn | `./dev dist` | `./dev build` | ratio |\n| --- | --- | --- | --- |", flush=True)
    for name, command in commands.items():
        least = {program: float("inf") for program in (PROGRAM, cases.STAGELINE)}
        for _ in range(RUNS):
            for program in least:
                least[program] = min(least[program], cpu_seconds([program, *command]))
        handed_out, built = least.values()
        bench.row(f"`{name}`", bench.seconds(handed_out), bench.seconds(built), f"{handed_out / built:.2f}×")
        bench.bar(f"dist: {name} takes {handed_out / built:.3f} of what ./dev build's program takes, asked ≤ {SLOWER}", handed_out / built <= SLOWER)
    start, built = (min(start_seconds(os.path.abspath(program)) for _ in range(STARTS)) * 1000 for program in (PROGRAM, cases.STAGELINE))
    bench.row(f"`version`, on the clock, least of {STARTS}", f"{start:.1f} ms", f"{built:.1f} ms", f"{start / built:.2f}×")
    bench.bar(f"dist: stageline version takes {start:.1f} ms, asked ≤ {START_MS} ms", start <= START_MS)
