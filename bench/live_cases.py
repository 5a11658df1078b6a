"""./dev bench live: a job of 1 024 ranks that ends two steps a second, looked at by `view --follow` and by `tail` while it runs."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
STAGES, REPLICAS, STEPS, STEP_MS, RANK, FROM = 16, 64, 40, 500, 300, 20
# CPU seconds per recorded second; steps until the culprit is named; bytes per step and rank.
MOST_CPU, MOST_STEPS, MOST_BYTES = 2.0, 2, 2000
MOST_S = MOST_STEPS * STEP_MS / 1000  # until the culprit is named, from when every rank has written its first slow step; one of them is the step that ends it
ASK_S = 0.2  # as the page does (web/src/live/main.ts)
TICK = os.sysconf("SC_CLK_TCK")


def cpu_of(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Job:
    """The recorder's files, written at the job's own pace; what its lines say."""

    def __init__(self, folder):
        self.said, self.begun = [], threading.Event()
        self.child = subprocess.Popen([sys.executable, ROOT / "tests/gen/live_job.py", "-o", folder, "--stages", str(STAGES), "--replicas", str(REPLICAS), "--steps", str(STEPS),
                                       "--step-ms", str(STEP_MS), "--fault", f"{RANK},1.5,{FROM},{STEPS}"], stdout=subprocess.PIPE, text=True)
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


def followed(program, folder, named):
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
            most = max(most, len(body) / (STAGES * REPLICAS))
            after = said["steps"][-1]["step"]
            if any(f"ank {RANK} " in f["finding"]["title_en"] for f in said["findings"] if not f["gone"]):
                named(after)
        if said.get("state") == "closed":
            break
        time.sleep(ASK_S)
    cost = cpu_of(child.pid) - begin[0], most
    child.terminate()
    child.wait()
    return cost


def tailed(program, folder, named):
    child = subprocess.Popen([program, "tail", folder, "--format", "json", "--rows", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    cost = 0.0
    for line in child.stdout:
        step = json.loads(line)
        cost = cpu_of(child.pid)
        if step["slowest_rank"] == RANK and step["rank_ratio_to_median"] > 1.2:
            named(step["step"])
    child.wait()
    return cost, 0


def run(bench):
    print(f"\n{STAGES * REPLICAS} ranks, {1000 / STEP_MS:.0f} steps a second, {STEPS} steps; rank {RANK} takes 1.5 times as long from step {FROM} on\n", flush=True)
    bench.row("looked at by", "CPU a recorded second", "culprit named by step", "steps written by then", "named after its step was written", "bytes sent a step and rank", "bytes recorded a step and rank")
    bench.row("---", "---:", "---:", "---:", "---:", "---:", "---:")
    for what, look in (("view --follow", followed), ("tail", tailed)):
        with tempfile.TemporaryDirectory(dir=bench.cases.CACHE) as folder:
            folder = os.path.join(folder, "run")
            job, found = Job(folder), []
            job.begun.wait()

            def named(step, job=job, found=found):
                found.append((step, job.written() + 1, time.time()))
            cpu, sent = look(bench.cases.STAGELINE, folder, named)
            job.child.wait()
            job.thread.join()
            seconds = STEPS * STEP_MS / 1000
            recorded = job.said[-1]["bytes"] / STEPS / (STAGES * REPLICAS)
            step, written, at = found[0] if found else (STEPS, STEPS, time.time())
            late = at - job.when(FROM)
            bench.row(what, f"{cpu / seconds:.2f} s", str(step), str(written), f"{late:.2f} s", f"{sent:.0f}" if sent else "", f"{recorded:.0f}")
            bench.bar(f"{what}: {cpu / seconds:.2f} s of CPU a recorded second, asked ≤ {MOST_CPU}", cpu / seconds <= MOST_CPU)
            bench.bar(f"{what}: the culprit of step {FROM} is named of step {step}, asked within {MOST_STEPS} steps", step - FROM < MOST_STEPS)
            bench.bar(f"{what}: the culprit is named {late:.2f} s after its first slow step was written, asked ≤ {MOST_S}", late <= MOST_S)
            bench.bar(f"{what}: {recorded:.0f} B recorded and {sent:.0f} B sent a step and rank, asked ≤ {MOST_BYTES}", max(recorded, sent) <= MOST_BYTES)
