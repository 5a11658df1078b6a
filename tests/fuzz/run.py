#!/usr/bin/env python3
"""Runs every fuzzer: run.py BUILD SECONDS

Each fuzzer of fuzzers.def runs for SECONDS (fuzz_reader once per registered reader), several at a
time, on the committed seeds, the regressions and logs that `stageline simulate` makes on the fly. The
corpus grows in BUILD/fuzz/corpus/ and is kept for the next run. One line per fuzzer says how it went;
an input that breaks something is kept in BUILD/fuzz/findings/. Exit 1 on any finding.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
JOBS = min(2, os.cpu_count() or 1)
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # files in memory, where there are such
LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=65536"]
SIMULATED = [  # schedule, stages, micro-batches, steps
    ("1f1b", 2, 3, 2), ("fthenb", 2, 2, 1), ("eager-1f1b", 3, 4, 1), ("vpp", 2, 4, 1), ("zb-h1-paddle", 2, 3, 1),
]


def readers():
    lines = (HERE.parent.parent / "src/readers/readers.def").read_text().splitlines()
    return [m[1].replace("_", "-") for line in lines if (m := re.match(r"READER\((\w+)\)", line))]


def fuzzers():
    lines = (HERE / "fuzzers.def").read_text().splitlines()
    return [m[1] for line in lines if (m := re.match(r"FUZZER\((\w+)\)", line))]


def simulated_seeds(stageline, folder):
    """Small runs as inputs: fuzz_reader and fuzz_paddle_timeline take several logs in one file."""
    made = {"reader": folder / "reader", "paddle_timeline": folder / "paddle_timeline", "paddle_scan": folder / "paddle_scan"}
    for path in made.values():
        path.mkdir()
    for schedule, stages, micro_batches, steps in SIMULATED:
        logs = folder / f"logs-{schedule}"
        command = [stageline, "simulate", schedule, "--stages", str(stages), "--micro-batches", str(micro_batches),
                   "--steps", str(steps), "-o", logs]
        if schedule == "vpp":
            command += ["--chunks", "2"]
        if subprocess.run(command, capture_output=True).returncode != 0:
            print(f"stageline simulate {schedule} failed; its seed is left out", file=sys.stderr)
            continue
        texts = [path.read_bytes() for path in sorted(logs.rglob("workerlog.*"))[:3]]
        together = b"".join(b"\xff\xfe" + bytes([i]) + text for i, text in enumerate(texts))
        (made["reader"] / schedule).write_bytes(bytes([0, 0, 0]) + together)
        (made["paddle_timeline"] / schedule).write_bytes(bytes([0]) + together)
        (made["paddle_scan"] / schedule).write_bytes(bytes([0]) + texts[0])
    return made


def golden_seeds(folder):
    """The goldens' inputs as inputs of fuzz_reader: every new reader brings some."""
    table = re.search(r"kNames\[\] = \{(.*?)\};", (HERE / "fuzz_reader.cc").read_text(), re.S)[1]
    names = re.findall(r'"([^"]+)"', table)
    for inputs in sorted((HERE.parent / "golden/readers").glob("*/input")):
        text = b""
        for path in sorted(p for p in inputs.rglob("*") if p.is_file()):
            name = str(path.relative_to(inputs))
            choice = names.index(name) if name in names else names.index("notes.txt")
            text += b"\xff\xfe" + bytes([choice]) + path.read_bytes()
        (folder / f"golden-{inputs.parent.name}").write_bytes(bytes([0, 1, 0]) + text)


def run(build, name, reader, seconds, seeds):
    label = f"{name} ({reader})" if reader else name
    slug = f"{name}-{reader}" if reader else name
    corpus, findings = build / "fuzz/corpus" / slug, build / "fuzz/findings"
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    folders = [corpus] + [f for f in (HERE / "seeds" / name, HERE / "regressions" / name, seeds.get(name)) if f and f.is_dir()]
    dictionary = "text.dict" if name == "text" else "kineto.dict" if reader == "kineto" or name == "kineto_event" else "op_json.dict" if reader not in (None, "paddle-log") else "paddle_log.dict"
    with tempfile.TemporaryDirectory(prefix="stageline-fuzz-", dir=MEMORY) as scratch:
        environment = dict(os.environ, TMPDIR=scratch, UBSAN_OPTIONS="print_stacktrace=1")
        if reader:
            environment["STAGELINE_FUZZ_READER"] = reader
        command = [build / "tests/fuzz" / f"fuzz_{name}", f"-max_total_time={seconds}", "-print_final_stats=1",
                   f"-dict={HERE / dictionary}", f"-artifact_prefix={findings}/{slug}-", *LIMITS, *folders]
        done = subprocess.run([str(c) for c in command], env=environment, capture_output=True, text=True, errors="replace")
    log = build / "fuzz" / f"{slug}.log"
    log.write_text(done.stderr)
    executions = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    rate = re.search(r"stat::average_exec_per_sec:\s*(\d+)", done.stderr)
    numbers = f"{int(executions[1]):>10} executions, {int(rate[1]):>6}/s" if executions and rate else f"{'':>10} no statistics"
    found = re.search(r"Test unit written to (\S+)", done.stderr)
    result = "ok" if done.returncode == 0 else f"FOUND {found[1] if found else ''} (see {log})"
    print(f"{label:<30} {numbers}  {result}", flush=True)
    return done.returncode == 0


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, seconds = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])
    work = [(name, reader) for name in fuzzers() for reader in (readers() if name == "reader" else [None])]
    only = os.environ.get("STAGELINE_FUZZ_ONLY")  # a pattern of names such as "reader kineto"
    if only:
        work = [(name, reader) for name, reader in work if re.search(only, f"{name} {reader or ''}")]
    with tempfile.TemporaryDirectory(prefix="stageline-fuzz-seeds-") as folder:
        seeds = simulated_seeds(build / "stageline", pathlib.Path(folder))
        golden_seeds(seeds["reader"])
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            results = list(pool.map(lambda item: run(build, *item, seconds, seeds), work))
    found = results.count(False)
    print(f"{len(results)} fuzzers, {found} with findings")
    sys.exit(1 if found else 0)


main()
