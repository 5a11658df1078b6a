"""./dev bench live: a job of 1 024 ranks that ends two steps a second, looked at by `view --follow` and by `tail` while it runs."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import types
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIZES = {"stages": 16, "replicas": 64, "steps": 40, "step_ms": 500, "rank": 300, "first": 20}
SMALL = {"stages": 2, "replicas": 2, "steps": 8, "step_ms": 100, "rank": 1, "first": 4}
# CPU seconds per recorded second; steps until the culprit is named; bytes per step and rank.
MOST_CPU, MOST_STEPS, MOST_BYTES = 2.0, 2, 2000
ASK_S = 0.2  # as the page does (web/src/live/main.ts)
TICK = os.sysconf("SC_CLK_TCK")


def cpu_of(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Job:
    """The recorder's files, written at the job's own pace; what its lines say."""

    def __init__(self, folder, sizes):
        self.said, self.begun = [], threading.Event()
        self.child = subprocess.Popen([sys.executable, ROOT / "tests/gen/live_job.py", "-o", folder, "--stages", str(sizes.stages), "--replicas", str(sizes.replicas),
                                       "--steps", str(sizes.steps), "--step-ms", str(sizes.step_ms), "--fault", f"{sizes.rank},1.5,{sizes.first},{sizes.steps}"], stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()

    def listen(self):
        for line in self.child.stdout:
            self.said.append(json.loads(line))
            self.begun.set()

    def written(self):
        return self.said[-1]["step"] if self.said else -1

    def when(self, step):
        """When the last rank had written it, in seconds since 1970."""
        return self.said[step]["time"]


def followed(program, folder, named, sizes):
    """Runs view --follow with one page open; named(step): the culprit is shown."""
    child = subprocess.Popen([program, "serve", folder, "--follow", "--port", "0", "--token", "none", "--lang", "en"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    address = child.stdout.readline().strip()
    known, after, most, begin = -1, -1, 0, (cpu_of(child.pid), time.monotonic())
    while True:
        with urllib.request.urlopen(f"{address}api/live?known={known}&after={after}", timeout=600) as answer:
            body = answer.read()
        said = json.loads(body)
        known = said["version"]
        if said.get("steps"):
            most = max(most, len(body) / (sizes.stages * sizes.replicas))
            after = said["steps"][-1]["step"]
            if any(f"ank {sizes.rank} " in f["finding"]["title_en"] for f in said["findings"] if not f["gone"]):
                named(after)
        if said.get("state") == "closed":
            break
        time.sleep(ASK_S)
    cost = cpu_of(child.pid) - begin[0], most
    child.terminate()
    child.wait()
    return cost


def tailed(program, folder, named, sizes):
    child = subprocess.Popen([program, "tail", folder, "--format", "json", "--rows", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    cost = 0.0
    for line in child.stdout:
        step = json.loads(line)
        cost = cpu_of(child.pid)
        if step["slowest_rank"] == sizes.rank and step["rank_ratio_to_median"] > 1.2:
            named(step["step"])
    child.wait()
    return cost, 0


def run(bench):
    sizes = types.SimpleNamespace(**(SMALL if bench.small else SIZES))
    ranks, first = sizes.stages * sizes.replicas, sizes.first
    # Until the culprit is named, from when every rank has written its first slow step; one of them is the step that ends it.
    max_s = MOST_STEPS * sizes.step_ms / 1000
    print(f"\n{ranks} ranks, {1000 / sizes.step_ms:.0f} steps a second, {sizes.steps} steps; rank {sizes.rank} takes 1.5 times as long from step {first} on\n", flush=True)
    bench.row("looked at by", "CPU a recorded second", "culprit named by step", "steps written by then", "named after its step was written", "bytes sent a step and rank", "bytes recorded a step and rank")
    bench.row("---", "---:", "---:", "---:", "---:", "---:", "---:")
    for what, look in (("view --follow", followed), ("tail", tailed)):
        with tempfile.TemporaryDirectory(dir=bench.cases.CACHE) as folder:
            folder = os.path.join(folder, "run")
            job, found = Job(folder, sizes), []
            job.begun.wait()

            def named(step, job=job, found=found):
                found.append((step, job.written() + 1, time.time()))
            cpu, sent = look(bench.cases.STAGELINE, folder, named, sizes)
            job.child.wait()
            job.thread.join()
            seconds = sizes.steps * sizes.step_ms / 1000
            recorded = job.said[-1]["bytes"] / sizes.steps / ranks
            step, written, at = found[0] if found else (sizes.steps, sizes.steps, time.time())
            late = at - job.when(first)
            bench.row(what, f"{cpu / seconds:.2f} s", str(step), str(written), f"{late:.2f} s", f"{sent:.0f}" if sent else "", f"{recorded:.0f}")
            bench.bar(f"{what}: {cpu / seconds:.2f} s of CPU a recorded second, asked ≤ {MOST_CPU}", cpu / seconds <= MOST_CPU)
            bench.bar(f"{what}: the culprit of step {first} is named of step {step}, asked within {MOST_STEPS} steps", step - first < MOST_STEPS)
            bench.bar(f"{what}: the culprit is named {late:.2f} s after its first slow step was written, asked ≤ {max_s}", late <= max_s)
            bench.bar(f"{what}: {recorded:.0f} B recorded and {sent:.0f} B sent a step and rank, asked ≤ {MOST_BYTES}", max(recorded, sent) <= MOST_BYTES)
