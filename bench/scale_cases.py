"""./dev bench scale: a streamed run of 1 000 (--full: 10 000) ranks of 1 664 cells. It measures the cost of digests
compared with loading, and of answers from them.

Logs are made a thousand ranks at a time, digested and emptied, so that 10 000 ranks take no more room on the disk than a thousand and their digests.
Machines keep their numbers: an emptied log still stands for its rank."""
import json
import os
import shutil
import subprocess
import time
import types
import urllib.request

import cases

SIZES = {"stages": 16, "per_machine": 8, "replicas": 63, "micro_batches": 32, "steps": 26}
SMALL = {"stages": 4, "per_machine": 4, "replicas": 2, "micro_batches": 4, "steps": 3}
BARS = {10: {"explain": (30, 4096), "report": (60, 4096)}}  # by batches: seconds on two cores, MiB
PAGE_MB = 30
VIEW_S = 5


def _view(program, digests):
    """Seconds from the start of `view` until the run is read, and until the pipeline page has its first answer; bytes of it."""
    begin = time.monotonic()
    server = subprocess.Popen([program, "view", digests, "--port", "0", "--no-open", "-q", "--token", "none"], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip().rstrip("/")
        while json.load(urllib.request.urlopen(url + "/api/status"))["state"] not in ("ready", "failed"):
            time.sleep(0.02)
        ready = time.monotonic() - begin
        size = len(urllib.request.urlopen(url + "/api/pipeline").read())
        return ready, time.monotonic() - begin, size
    finally:
        server.terminate()
        server.wait()


def _batch(program, folder, logs, number, of):
    """Replicas of one pipeline, of a seed of their own, as further machines of the run."""
    shutil.rmtree(folder, ignore_errors=True)
    machines = of.stages * of.replicas // of.per_machine
    subprocess.run([program, "simulate", "1f1b", "--stages", str(of.stages), "--dp", str(of.replicas), "--machines", str(machines),
                    "--micro-batches", str(of.micro_batches), "--steps", str(of.steps), "--jitter", "0.05", "--latency", "0.3", "--optimizer", "6", "--fault", "slow-stage:2,1.2", "--seed", str(7 + number),
                    "-q", "-o", folder], check=True, stdout=subprocess.DEVNULL)
    for m in range(machines):
        os.rename(os.path.join(folder, f"machine{m}"), os.path.join(logs, f"machine{number * machines + m}"))
    shutil.rmtree(folder)


def run(bench, measure, full, cache, program=cases.STAGELINE, said="said.txt"):
    base = os.path.join(cache, "scale")
    shutil.rmtree(base, ignore_errors=True)
    logs, digests, page = (os.path.join(base, name) for name in ("logs", "digests", "report.html"))
    os.makedirs(logs)
    of = types.SimpleNamespace(**(SMALL if bench.small else SIZES))
    size, cells_of_rank = of.stages * of.replicas, 2 * of.micro_batches * of.steps
    last = (10 if full else 2 if bench.small else 1) - 1
    print(f"\nScale: a 1F1B run of {of.stages} stages, {size} ranks a batch, {cells_of_rank} cells a rank.\n")
    bench.row("ranks", "what", "CPU", "wall", "peak")
    bench.row("---:", "---", "---:", "---:", "---:")

    def case(ranks, what, *command):
        cost = measure.run([program, *command], said)
        bench.row(str(ranks), what, bench.seconds(cost.cpu), bench.seconds(cost.wall), f"{cost.rss:.0f} MB")
        return cost

    for number in range(last + 1):
        _batch(program, os.path.join(base, "new"), logs, number, of)
        if number == 0:
            load = case(size, "load the logs (info)", "info", logs, "-q")
            one = case(size, "digest, 1 thread", "digest", logs, "-o", digests + "1", "-q", "--threads", "1")
            two = case(size, "digest, 2 threads", "digest", logs, "-o", digests + "2", "-q", "--threads", "2")
            shutil.rmtree(digests + "1")
            shutil.rmtree(digests + "2")
            bench.bar(f"digest takes {one.cpu / load.cpu:.2f} times the CPU of loading (at most 1.2)", one.cpu <= 1.2 * load.cpu)
            print(f"\n{one.wall / two.wall:.2f} times as fast on two threads as on one.\n")
        subprocess.run([program, "digest", logs, "-o", digests, "--ranks", f"{number * size}:{(number + 1) * size - 1}", "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        for folder, _, names in os.walk(logs):
            for name in names:
                os.truncate(os.path.join(folder, name), 0)
        if number not in (0, last):
            continue
        ranks = (number + 1) * size
        held = sum(entry.stat().st_size for entry in os.scandir(digests))
        cells = ranks * cells_of_rank
        bench.bar(f"{ranks} ranks: {held / cells:.1f} bytes a cell (at most 12)", held <= 12 * cells)
        case(ranks, "info of digests", "info", digests, "-q")
        costs = {"explain": case(ranks, "explain of digests", "explain", digests, "-q"),
                 "report": case(ranks, "report of digests", "report", digests, "-o", page, "-q", "--title", "run")}
        for what, (max_s, max_mib) in BARS.get(number + 1, {}).items():
            cost = costs[what]
            bench.bar(f"{what} of {ranks} ranks in {cost.wall:.0f} s (at most {max_s}) and {cost.rss / 1.048576:.0f} MiB (at most {max_mib})",
                      cost.wall <= max_s and cost.rss / 1.048576 <= max_mib)
        ready, answered, page_bytes = _view(program, digests)
        of_view = f"view of {ranks} ranks is ready after {ready:.1f} s and has the pipeline page's first {page_bytes / 1e6:.0f} MB after {answered:.1f} s"
        bench.bar(f"{of_view} (at most {VIEW_S})", answered <= VIEW_S)
        bench.bar(f"the page of {ranks} ranks has {os.path.getsize(page) / 1e6:.1f} MB (at most {PAGE_MB})", os.path.getsize(page) <= PAGE_MB * 1e6)
    shutil.rmtree(base)
