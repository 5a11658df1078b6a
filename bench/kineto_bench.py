"""./dev bench kineto: Kineto traces, compared with HTA and with the minimum cost of reading. run.py calls it."""
import json
import os
import tempfile
import subprocess
import sys

import cases
import kineto_cases
import measure
import rival as rivals

STAGELINE = cases.STAGELINE
FLOOR = os.path.join(cases.BUILD, "stageline_kineto_floor")
HERE = os.path.dirname(os.path.abspath(__file__))
SAID = os.path.join(kineto_cases.CACHE, "said.txt")
CHEAP = ["temporal-breakdown", "gpu-kernel-breakdown", "comm-comp-overlap", "idle-time-breakdown", "cuda-kernel-launch-stats",
         "queue-length-summary", "memory-bw-summary", "gpu-user-annotation-breakdown"]
# HTA's call in hta_run.py → what to type here: the first of these analyses that is registered, and its options.
SLOW = {
    "stragglers": (["potential-stragglers"], []),
    "kernels-with-annotations": (["gpu-kernels-with-user-annotations"], ["--ranks", "0"]),
    "counters": (["export trace-with-counters"], ["--ranks", "0"]),  # ours writes the trace too, HTA's is kept from it
    "critical-path": (["critical-path-analysis"], ["--ranks", "0", "--annotation", "ProfilerStep#101"]),
    "call-graph": (["call-graph"], ["--ranks", "0"]),
    "frequent-sequences": (["frequent-cuda-kernel-sequences"],
                           ["--ranks", "0", "--operator-name", "aten::linear", "--min-pattern-len", "1"]),
    "aten-delays": (["aten-op-kernels-and-delay"], ["--ranks", "0"]),
}
WALL_JSON, CPU_GZ, MEMORY, SLOW_CPU = 40, 15, 10, 200
MANY_MB = 24 * 1024 ** 3 / 1e6
OPERATORS = 0.5  # the operator table with shapes and stacks costs at most so much of reading the trace
LINEAR = 1.25  # an event among 64 files costs at most so much more than one among 16


def registered():
    said = subprocess.run([STAGELINE, "help", "analyses"], check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in said.splitlines() if line.startswith("  ") and line[2] != " "}


def ours(names, paths, options=()):
    if names[0].startswith("export "):
        return measure.run([STAGELINE, "export", *paths, "--to", names[0].split()[1], "-o", os.path.join(tempfile.gettempdir(), "stageline.out"),
                            "--compat", "hta", "--quiet", *options], SAID)
    return measure.run([STAGELINE, "analyze", ",".join(names), *paths, "--compat", "hta", "--format", "json", "--quiet", *options], SAID)


def theirs(python, folder, calls):
    """Cost of the whole process, and what each call cost inside it."""
    result = os.path.join(kineto_cases.CACHE, "hta.json")
    cost = measure.run([python, os.path.join(HERE, "hta_run.py"), os.path.abspath(folder), ",".join(calls), result], SAID)
    inside = json.load(open(result))
    cost.rss, cost.cpu = max(cost.rss, inside["peak_mb"]), cost.cpu - inside["peak_cpu"]
    return cost, inside


class Bench:
    def __init__(self, report, full):
        self.row, self.bar, self.seconds, self.times = report.row, report.bar, report.seconds, report.times
        self.full = full
        self.known = registered()
        self.python = rivals.find_hta()

    def sessions(self):
        """Measures loading and the eight cheap analyses, as one command here and one script there."""
        case = kineto_cases.Case("ns4x1m" if self.full else "ns200k").prepare()
        names = [name for name in CHEAP if name in self.known]
        self.row("session", "input", "stageline wall", "CPU", "peak", "HTA wall", "CPU", "peak", "wall", "CPU", "memory")
        self.row(*["---"] * 11)
        for kind, label in (("json", ".json"), ("gz", ".json.gz")):
            own, other = measure.interleave(lambda: ours(names, [getattr(case, kind)]),
                                            lambda: theirs(self.python, getattr(case, kind), names)[0], 3, 1 if self.python else 0)
            mine = measure.median(own)
            cells = [f"load + {len(names)} of {len(CHEAP)} analyses, {label}", f"{case.text}, {case.bytes() / 1e6:.0f} MB of JSON",
                     self.seconds(mine.wall), self.seconds(mine.cpu), f"{mine.rss:.0f} MB"]
            if not other:
                self.row(*cells, *["–"] * 6)
                continue
            hta = measure.median(other)
            self.row(*cells, self.seconds(hta.wall), self.seconds(hta.cpu), f"{hta.rss:.0f} MB", self.times(hta.wall / mine.wall),
                     self.times(hta.cpu / mine.cpu), self.times(hta.rss / mine.rss))
            what, ratio, asked = (("wall time", hta.wall / mine.wall, WALL_JSON) if kind == "json"
                                  else ("CPU", hta.cpu / mine.cpu, CPU_GZ))
            self.bar(f"session on {label}: {self.times(ratio)} less {what}, asked ≥ {asked}×", ratio >= asked)
            saved = hta.rss / mine.rss
            self.bar(f"session on {label}: {self.times(saved)} less memory, asked ≥ {MEMORY}×", saved >= MEMORY)
        if len(names) < len(CHEAP):
            print(f"\nNot registered: {', '.join(n for n in CHEAP if n not in self.known)}.", flush=True)

    def slow(self):
        """Measures the slow analyses of HTA, each alone: CPU without loading, on both sides."""
        case = kineto_cases.Case("us1m" if self.full else "us200k").prepare()
        print()
        self.row("analysis alone", "input", "stageline CPU", "with loading", "HTA CPU", "wall", "CPU ratio")
        self.row(*["---"] * 7)
        inside = theirs(self.python, case.json, SLOW)[1] if self.python else {}
        loads = {}
        for call, (names, options) in SLOW.items():
            name = next((n for n in names if n in self.known or n.startswith("export ")), None)
            hta = inside.get(call)
            spent = [self.seconds(hta["cpu"]), self.seconds(hta["wall"])] if hta else ["–", "–"]
            if hta and hta["failed"]:
                spent[0] += f" (fails: {hta['failed'].split(':')[0]})"
            if not name:
                self.row(call, case.text, "not registered", "–", *spent, "–")
                continue
            reads = ["--ranks", "0"] if "--ranks" in options else []
            try:
                if not loads.get(len(reads)):
                    loads[len(reads)] = min(ours(["temporal-breakdown"], [case.json], reads).cpu for _ in range(5))
                whole = min(ours([name], [case.json], options).cpu for _ in range(5))
            except RuntimeError as error:
                self.row(call, case.text, f"refused: {str(error)[-80:].strip()}", "–", *spent, "–")
                continue
            alone = max(0.001, whole - loads[len(reads)])
            ratio = hta["cpu"] / alone if hta and not hta["failed"] else None
            self.row(call, case.text, self.seconds(alone), self.seconds(whole), *spent, self.times(ratio) if ratio else "–")
            if ratio:
                self.bar(f"{call}: {self.times(ratio)} less CPU, asked ≥ {SLOW_CPU}×", ratio >= SLOW_CPU)

    def load(self):
        """Reading alone, a file and a core at a time, against inflating and walking the same file."""
        case = kineto_cases.Case("ns4x1m" if self.full else "ns200k").prepare()
        print()
        self.row("load alone", "JSON", "events", "stageline CPU", "MB/s a core", "events/s a core", "peak, bytes an event", "floor CPU",
                 "of the floor")
        self.row(*["---"] * 9)
        for kind in ("json", "gz"):
            path = case.files(kind)[0]
            floor = json.loads(subprocess.run([FLOOR, path], check=True, capture_output=True, text=True).stdout)
            costs = [measure.run([STAGELINE, "info", path, "--quiet"], SAID) for _ in range(5)]
            cpu, rss = min(c.cpu for c in costs), min(c.rss for c in costs)
            inflate = {"zlib": floor["zlib_s"], "isal": floor["isal_s"]} if kind == "gz" else {}
            inflate = {name: spent for name, spent in inflate.items() if spent}
            least = floor["walk_s"] + (min(inflate.values()) if inflate else 0)
            text = " + ".join([f"walk {self.seconds(floor['walk_s'])}", *(f"{n} {self.seconds(s)}" for n, s in inflate.items())])
            self.row(os.path.basename(path), f"{floor['json_bytes'] / 1e6:.0f} MB", f"{floor['events']}", self.seconds(cpu),
                     f"{floor['json_bytes'] / 1e6 / cpu:.0f}", f"{floor['events'] / cpu / 1e6:.2f} M",
                     f"{rss * 1e6 / floor['events']:.0f}", text, self.times(cpu / least))

    def many(self):
        """Measures 100 M events in 64 files."""
        folder, paths, events = kineto_cases.many()
        print()
        self.row("many files", "events", "stageline wall", "CPU", "peak", "CPU an event")
        self.row(*["---"] * 6)
        names = [name for name in CHEAP if name in self.known]
        each = {}
        for count in (16, 32, 64):
            cost = ours(names, paths[:count])
            part = events * count // len(paths)
            each[count] = cost.cpu / part
            self.row(f"{count} files, load + {len(names)} analyses", f"{part / 1e6:.0f} M", self.seconds(cost.wall), self.seconds(cost.cpu),
                     f"{cost.rss:.0f} MB", f"{each[count] * 1e9:.0f} ns")
            if count == 64:
                self.bar(f"100 M events: {cost.rss:.0f} MB at the peak, asked ≤ {MANY_MB:.0f} MB", cost.rss <= MANY_MB)
        self.bar(f"100 M events: an event costs {each[64] / each[16]:.2f} of what it does among 16 files, asked ≤ {LINEAR}",
                 each[64] / each[16] <= LINEAR)


def operators(report, full):
    """The operator table (torch's key_averages) by shapes and stacks, against reading the trace."""
    case = kineto_cases.Case("py1m" if full else "py8k" if report.small else "py200k").prepare()
    print()
    report.row("operator table", "input", "load CPU", "table CPU", "of the load")
    report.row(*["---"] * 5)
    load = min(measure.run([STAGELINE, "info", case.json, "--quiet"], SAID).cpu for _ in range(5))
    for text, options in (("by name", []), ("by shape and 5 frames", ["--group-by-input-shape", "true", "--group-by-stack-n", "5"]),
                          ("torch's own", ["--format", "torch"])):
        command = [STAGELINE, "analyze", "operators", case.json, "--quiet", *options]
        alone = max(0.001, min(measure.run(command, SAID).cpu for _ in range(5)) - load)
        report.row(text, case.text, report.seconds(load), report.seconds(alone), f"{alone / load:.2f}")
        if "5" in options:
            report.bar(f"operators by shape and stack: {alone / load:.2f} of the load, asked ≤ {OPERATORS}", alone / load <= OPERATORS)


def run(report, full):
    bench = Bench(report, full)
    print(f"Rival: {rivals.hta_version(bench.python)}." if bench.python else "Rival: HTA could not be installed; only ours is timed.")
    print("HTA draws nothing; its peak is that of its processes together, shared pages once.\n", flush=True)
    bench.sessions()
    bench.slow()
    bench.load()
    operators(report, full)
    if full:
        bench.many()
