#!/usr/bin/env python3
"""./dev bench own [--full] [--small]: the cases without rivals, as one table; exits 1 on a missed bar.
./dev bench [--full] [small noisy large junkline scan kineto schedule slowdown align ascend viewer recorder incidents
dist sql python ask nsys perfetto scale limits live history action launchers]: measures the costs of stageline and of a reference tool on
the same input, as a Markdown table on stdout. bench/README.md describes the method and keeps the last table."""
import argparse
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import action_cases  # noqa: E402
import ascend_bench  # noqa: E402
import ask_cases  # noqa: E402
import cases  # noqa: E402
import dist_cases  # noqa: E402
import history_cases  # noqa: E402
import incidents  # noqa: E402
import kineto_bench  # noqa: E402
import launchers  # noqa: E402
import limits_cases  # noqa: E402
import live_cases  # noqa: E402
import measure  # noqa: E402
import nsys_bench  # noqa: E402
import own_cases  # noqa: E402
import perfetto_bench  # noqa: E402
import python_bench  # noqa: E402
import recorder_cases  # noqa: E402
import rival as rivals  # noqa: E402
import scale_cases  # noqa: E402
import schedule_cases  # noqa: E402
import slowdown_cases  # noqa: E402
import sql_cases  # noqa: E402
import viewer_cases  # noqa: E402

SCAN = os.path.join(cases.BUILD, "stageline_scan_bench")
SAID = os.path.join(cases.CACHE, "said.txt")
ALIGN = os.path.join(cases.BUILD, "stageline_align_bench")
CONVERSIONS = ("small", "noisy", "large", "junkline")  # of Paddle's logs
NAMES = (*CONVERSIONS, "scan", "kineto", "schedule", "slowdown", "align", "ascend", "viewer", "recorder", "incidents", "dist", "sql", "python", "ask", "nsys", "perfetto", "scale", "limits", "live", "history", "action", "launchers")
FASTER = 100  # this number of times less CPU than the reference tool
MOST_MB = {"large": 450}
MOST_MB_ELSE = 32
SCAN_OF_GREP = 2.0
JUNK_OF_LINES = 1.25  # no more than its bytes, and a quarter for the noise of the clock

bars = []  # (text, met)
small = False  # every case with a few inputs, to see that it runs


def seconds(value):
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def times(value):
    return f"{value:.0f}×" if value >= 20 else f"{value:.2f}×"


def bar(text, met):
    bars.append((text, met))


def absent(why):
    """A part of a case cannot run here."""
    print(f"\nNot run: {why}.", flush=True)
    bars.append((f"not run: {why}", None))


def row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def costs(measured):
    """A table of CPU, wall time and peak memory, one row for each program: {what it did: its measure.run()}."""
    row("what", "CPU", "wall", "peak")
    row("---", "---:", "---:", "---:")
    for what, cost in measured.items():
        row(what, seconds(cost.cpu), seconds(cost.wall), f"{cost.rss:.0f} MB")


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown CPU")
    memory = int(open("/proc/meminfo").readline().split()[1]) / 1e6
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GB"


def load():
    return f"{os.getloadavg()[0]:.1f}"


def run_ours(case):
    case.remove_outputs("ours")
    return measure.run([cases.STAGELINE, "paddle-timeline", "--quiet", "--log_dir", case.side("ours"), "--devices",
                        case.devices()], SAID)


def run_theirs(case, rival):
    case.remove_outputs("theirs")
    return measure.run(rival.command(case.side("theirs"), case.devices()), SAID, rival.env)


def convert(name, rival, our_runs, their_runs):
    """Prints one row: the whole conversion, by both programs."""
    case = cases.Case(name)
    case.prepare()
    ours, theirs = measure.interleave(lambda: run_ours(case), lambda: run_theirs(case, rival), our_runs, their_runs)
    own = measure.median(ours)
    cells = [name, f"{case.text}, {case.bytes() / 1e6:.1f} MB",
             f"{seconds(own.cpu)} ({seconds(min(c.cpu for c in ours))} – {seconds(max(c.cpu for c in ours))}, {len(ours)} runs)",
             seconds(own.wall), f"{own.rss:.0f} MB"]
    if theirs:
        other = measure.median(theirs)
        ratio = other.cpu / own.cpu
        same = case.same_outputs()
        cells += [f"{seconds(other.cpu)} ({len(theirs)} {'run' if len(theirs) == 1 else 'runs'})", seconds(other.wall),
                  f"{other.rss:.0f} MB", times(ratio), "yes" if same else "NO"]
        bar(f"{name}: {times(ratio)} less CPU than the rival, asked ≥ {FASTER}×", ratio >= FASTER)
        bar(f"{name}: both files hold the rival's bytes", same)
    else:
        cells += ["–"] * 5
    row(*cells)
    most = MOST_MB.get(name, MOST_MB_ELSE if name != "large8" else MOST_MB["large"])
    bar(f"{name}: {own.rss:.0f} MB at the peak, asked ≤ {most} MB", own.rss <= most)
    for side in ("ours", "theirs"):
        case.remove_outputs(side)


def compare(text, ours, theirs, limit, runs, label):
    """Prints one row of the second table: two short programs on files. It compares the minimum CPU of each, because
    what
    other processes add to runs this short is of the size of the difference asked about."""
    own_costs, other_costs = measure.interleave(lambda: measure.run(ours, SAID), theirs, 1, runs)
    own, other = min(c.cpu for c in own_costs), min(c.cpu for c in other_costs)
    row(text, seconds(own), label, seconds(other), times(own / other), f"≤ {limit}×")
    bar(f"{text}: {times(own / other)} of {label}, asked ≤ {limit}×", own / other <= limit)


def compare_scans():
    print("\n| scanner alone | least CPU | against | least CPU | ratio | bar |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    noisy = cases.Case("noisy")
    noisy.prepare()
    # The C locale is grep's fastest. Only Stageline checks its input for UTF-8.
    grep_env = dict(os.environ, LC_ALL="C")
    compare("noisy", [SCAN, *noisy.logs], lambda: measure.run(["grep", "-c", cases.MARK, *noisy.logs], SAID, grep_env),
            SCAN_OF_GREP, 15, f"`grep -c '{cases.MARK}'`")
    line, lines = cases.Case("junkline"), cases.Case("junklines")
    line.prepare()
    lines.prepare()
    repeat = ["--repeat", "3000"]
    compare("junkline, 3000 times", [SCAN, *repeat, *line.logs], lambda: measure.run([SCAN, *repeat, *lines.logs], SAID),
            JUNK_OF_LINES, 15, "the same bytes in lines of 160")


def align_clocks():
    """Aligns clocks from messages, cells in memory: no other tool does this, so only the bar counts."""
    print("\n| clock alignment alone | matches | threads | wall, median of 5 | CPU | largest error |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    for ranks, messages, limit in ((4, 1000, 1.0),) if small else ((8, 100_000, None), (128, 100_000, 1.0)):
        found = json.loads(subprocess.run([ALIGN, str(ranks), str(messages), "1" if small else "5"], check=True, capture_output=True).stdout)
        row(f"{ranks} ranks × {messages // 1000}k messages", f"{found['matches'] / 1e6:.2f} M", str(found["threads"]),
            seconds(found["seconds"]), seconds(found["cpu"]), f"{found['worst_error_us']:.1f} µs")
        if limit:
            bar(f"align: {seconds(found['seconds'])} for {ranks} ranks × {messages // 1000}k messages, asked ≤ {seconds(limit)}",
                found["seconds"] <= limit)


def own(args):
    global small
    small = args.small
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    os.makedirs(cases.CACHE, exist_ok=True)
    print(f"Machine: {machine()}.\n", flush=True)
    return own_cases.run(sys.modules[__name__], args.full)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="CASE", help=", ".join(NAMES) + "; default all")
    parser.add_argument("--full", action="store_true",
                        help="time the rivals on the large inputs too: half an hour and 9 GB of memory")
    parser.add_argument("--small", action="store_true", help="with own: a few inputs, only to see that each case runs")
    args = parser.parse_args()
    if args.names == ["own"]:
        return own(args)
    if args.small:
        parser.error("--small is for own")
    for name in args.names:
        if name not in NAMES:
            parser.error(f"no case {name}; there are {', '.join(NAMES)}")
    wanted = args.names or NAMES
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    os.makedirs(cases.CACHE, exist_ok=True)
    converts = [name for name in wanted if name in CONVERSIONS]
    print(f"Machine: {machine()}; load average before {load()}.", flush=True)
    if converts:
        rival = rivals.find()
        print(f"Rival: {rival.name}; importing paddle is not counted. CPU is user + system of the whole process, the "
              "median (least – most).\n", flush=True)
        row("case", "input", "stageline CPU", "wall", "peak", "rival CPU", "wall", "peak", "CPU ratio", "same bytes")
        row(*["---"] * 10)
        for name in converts:
            if name == "large":
                if not args.full:
                    convert("large8", rival, 4, 1)
                convert("large", rival, 3, 1 if args.full else 0)
            else:
                convert(name, rival, 7, 5 if name == "small" else 1)
    if "scan" in wanted:
        compare_scans()
    if "kineto" in wanted:
        kineto_bench.run(sys.modules[__name__], args.full)
    if "schedule" in wanted:
        schedule_cases.run(sys.modules[__name__])
    if "slowdown" in wanted:
        slowdown_cases.run(sys.modules[__name__])
    if "align" in wanted:
        align_clocks()
    if "ascend" in wanted:
        ascend_bench.run(args.full, seconds, times, row, bar)
    if "recorder" in wanted:
        recorder_cases.run(sys.modules[__name__])
    if "incidents" in wanted:
        incidents.main(cases.STAGELINE)
    if "dist" in wanted:
        dist_cases.run(sys.modules[__name__])
    if "scale" in wanted:
        scale_cases.run(sys.modules[__name__], measure, args.full, cases.CACHE, said=SAID)
    if "limits" in wanted:
        limits_cases.run(sys.modules[__name__], measure, cases, SAID)
    if "live" in wanted:
        live_cases.run(sys.modules[__name__])
    if "history" in wanted:
        history_cases.run(sys.modules[__name__])
    if "action" in wanted:
        action_cases.run(sys.modules[__name__], cases.STAGELINE)
    if "launchers" in wanted:
        launchers.run(sys.modules[__name__], cases.STAGELINE)
    if "sql" in wanted:
        sql_cases.run(sys.modules[__name__], args.full, cases.CACHE)
    if "ask" in wanted:
        ask_cases.run(sys.modules[__name__], args.full, cases.CACHE)
    if "python" in wanted:
        python_bench.run(sys.modules[__name__], args.full)
    if "nsys" in wanted:
        nsys_bench.run(sys.modules[__name__], args.full, cases.CACHE)
    if "perfetto" in wanted:
        perfetto_bench.run(sys.modules[__name__], args.full, cases.CACHE)
    if "viewer" in wanted:
        viewer_cases.run(cases.STAGELINE, cases.CACHE, args.full)
    print(f"\nLoad average after: {load()}.\n")
    for text, met in bars:
        print(f"- {own_cases.WORDS[met]}: {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
