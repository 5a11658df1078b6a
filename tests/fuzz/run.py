#!/usr/bin/env python3
"""Runs every fuzzer: run.py BUILD SECONDS, or run.py BUILD --hours N.

Each fuzzer of fuzzers.def runs for SECONDS (fuzz_reader once per registered reader), several at a time. Inputs are the
committed seeds, the regressions and logs that `stageline simulate` makes on the fly. The corpus grows in
BUILD/fuzz/corpus/ and is kept for the next run. One line per fuzzer reports the result; an input that breaks something
is kept in BUILD/fuzz/findings/. Any finding makes it exit with 1.

With --hours the fuzzers share N hours. Inputs of the corpus that reach more than the tree's are put, minimised, into
corpus/NAME.inputs next to this file, to be committed. In runs.csv each fuzzer gets a line: seconds of processor time, executions, inputs that reached something new,
crashes. docs/trust.md quotes their sums. STAGELINE_FUZZ_JOBS says how many run at once, STAGELINE_FUZZ_ONLY which ones (a pattern).
"""
import concurrent.futures
import csv
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
JOBS = int(os.environ.get("STAGELINE_FUZZ_JOBS") or min(2, os.cpu_count() or 1))
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # files in memory, where there are such
KEPT, RUNS = HERE / "corpus", HERE / "runs.csv"  # in the tree
MAX_KEPT_BYTES = 4096  # of an input that is kept there: long ones reach little more
KEPT_BYTES = 40_000  # of all that is kept for a fuzzer: megabytes do not belong in the tree
LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=65536"]
SIMULATED = [  # schedule, stages, micro-batches, steps
    ("1f1b", 2, 3, 2), ("fthenb", 2, 2, 1), ("eager-1f1b", 3, 4, 1), ("vpp", 2, 4, 1), ("zb-h1-paddle", 2, 3, 1),
]


def readers():
    lines = (HERE.parent.parent / "src/readers/readers.def").read_text().splitlines()
    return [m[1] for line in lines if (m := re.match(r'READER\(\w+, "([^"]+)"', line))]


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
        given = set()
        for path in sorted(p for p in inputs.rglob("*") if p.is_file()):
            # Under its own name or, where the fuzzer knows none such, under a free one that ends like it.
            name = str(path.relative_to(inputs))
            alike = [n for n in names if n not in given and pathlib.Path(n).suffixes[-1:] == path.suffixes[-1:]]
            name = name if name in names else alike[0] if alike else "notes.txt"
            given.add(name)
            choice = names.index(name)
            text += b"\xff\xfe" + bytes([choice]) + path.read_bytes()
        (folder / f"golden-{inputs.parent.name}").write_bytes(bytes([0, 1, 0]) + text)


def unpacked(path):
    """A digest as fuzz_digest takes it: sizes, head, columns."""
    data = path.read_bytes()
    head_size, = struct.unpack_from("<I", data, 12)
    body = subprocess.run(["zstd", "-dc"], input=data[40 + head_size:], capture_output=True, check=True).stdout
    return struct.pack("<HI", head_size, len(body))[:5] + data[40:40 + head_size] + body


def digest_seeds(stageline, goldens, folder):
    """Digests of the goldens whose cells digests can hold, ranks one by one and together."""
    folder.mkdir()
    if not shutil.which("zstd"):
        print("no zstd: fuzz_digest begins with the committed inputs alone", file=sys.stderr)
        return
    for name in ("paddle-log", "op-table", "op-json-straggler", "primus", "paddle-dynamic", "recording"):
        made = folder.parent / f"digests-{name}"
        if subprocess.run([stageline, "digest", goldens / name / "input", "-o", made, "-q"], capture_output=True).returncode != 0:
            print(f"stageline digest of {name} failed; its seed is left out", file=sys.stderr)
            continue
        digests = [unpacked(path) for path in sorted(made.glob("*.sldigest"))]
        (folder / name).write_bytes(bytes([0, 0]) + digests[-1])
        (folder / f"{name}-together").write_bytes(bytes([8, 3]) + b"".join(digests[:3]))


def packed_inputs(path):
    """The inputs of a packed corpus: each after its length, four bytes with the lowest first. fuzz_replay reads the same."""
    data, at, inputs = path.read_bytes() if path.exists() else b"", 0, []
    while at < len(data):
        size, = struct.unpack_from("<I", data, at)
        at += 4 + size
        inputs.append(data[at - size:at])
    return inputs


def pack(inputs, path):
    """Writes inputs to one file, the smallest first, so that the same inputs always make the same bytes."""
    path.write_bytes(b"".join(struct.pack("<I", len(data)) + data for data in sorted(set(inputs), key=lambda d: (len(d), d))))


def unpack(path, folder):
    """Writes each input of a packed corpus to a file of its own, as libFuzzer reads them."""
    folder.mkdir()
    for number, data in enumerate(packed_inputs(path)):
        (folder / f"{number:04}").write_bytes(data)


def run(build, name, reader, seconds, seeds):
    label = f"{name} ({reader})" if reader else name
    slug = f"{name}-{reader}" if reader else name
    corpus, findings = build / "fuzz/corpus" / slug, build / "fuzz/findings"
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    kept = seeds["kept"] / slug
    unpack(KEPT / f"{slug}.inputs", kept)
    folders = [corpus] + [f for f in (HERE / "seeds" / name, HERE / "regressions" / name, kept, seeds.get(name)) if f and f.is_dir()]
    dictionary = "text.dict" if name == "text" else "sql.dict" if name == "sql" else "kineto.dict" if reader == "kineto" or name == "kineto_event" else "op_json.dict" if reader not in (None, "paddle-log") else "paddle_log.dict"
    with tempfile.TemporaryDirectory(prefix="stageline-fuzz-", dir=MEMORY) as scratch:
        environment = dict(os.environ, TMPDIR=scratch, UBSAN_OPTIONS="print_stacktrace=1")
        if reader:
            environment["STAGELINE_FUZZ_READER"] = reader
        command = [build / "tests/fuzz" / f"fuzz_{name}", f"-max_total_time={seconds}", "-print_final_stats=1",
                   f"-dict={HERE / dictionary}", f"-artifact_prefix={findings}/{slug}-", *LIMITS, *folders]
        log = build / "fuzz" / f"{slug}.log"
        with log.open("wb") as words:
            child = subprocess.Popen([str(c) for c in command], env=environment, stdout=subprocess.DEVNULL, stderr=words)
        _, status, used = os.wait4(child.pid, 0)
    code, text = os.waitstatus_to_exitcode(status), log.read_text(errors="replace")
    executions = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
    new = re.search(r"stat::new_units_added:\s*(\d+)", text)
    rate = re.search(r"stat::average_exec_per_sec:\s*(\d+)", text)
    numbers = f"{int(executions[1]):>10} executions, {int(rate[1]):>6}/s" if executions and rate else f"{'':>10} no statistics"
    found = re.search(r"Test unit written to (\S+)", text)
    result = "ok" if code == 0 else f"FOUND {found[1] if found else ''} (see {log})"
    print(f"{label:<30} {numbers}  {result}", flush=True)
    return {"fuzzer": slug, "seconds": round(used.ru_utime + used.ru_stime), "executions": int(executions[1]) if executions else 0, "new": int(new[1]) if new else 0,
            "crashes": int(code != 0)}


def keep_corpus(build, name, reader):
    """Adds to the packed corpus in the tree what reaches code that its own inputs do not: libFuzzer's merge keeps the smallest of each.
    If they do not all fit, the smallest stay."""
    slug = f"{name}-{reader}" if reader else name
    packed, corpus = KEPT / f"{slug}.inputs", build / "fuzz/corpus" / slug
    environment = dict(os.environ, **({"STAGELINE_FUZZ_READER": reader} if reader else {}))
    with tempfile.TemporaryDirectory(prefix="stageline-fuzz-kept-") as folder:
        kept = pathlib.Path(folder) / "kept"
        unpack(packed, kept)
        before = len(list(kept.iterdir()))
        done = subprocess.run([str(c) for c in (build / "tests/fuzz" / f"fuzz_{name}", "-merge=1", f"-max_len={MAX_KEPT_BYTES}", kept, corpus)],
                              env=environment, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            print(f"{slug}: the corpus could not be minimised\n{done.stderr[-1000:]}", file=sys.stderr)
        inputs = smallest([path.read_bytes() for path in kept.iterdir()])
    pack(inputs, packed)
    return len(inputs) - before


def smallest(inputs):
    """The smallest inputs, as many as have KEPT_BYTES together."""
    room, kept = KEPT_BYTES, []
    for data in sorted(inputs, key=lambda d: (len(d), d)):
        room -= len(data)
        if room >= 0:
            kept.append(data)
    return kept


def count_run(results):
    """Appends a line for each fuzzer, with the number of the run, and prints the sums of all runs."""
    with RUNS.open(newline="") as file:
        lines = list(csv.DictReader(file))
    run_number = 1 + max((int(line["run"]) for line in lines), default=0)
    with RUNS.open("a", newline="") as file:
        writer = csv.DictWriter(file, ["run", "fuzzer", "seconds", "executions", "new", "crashes"], lineterminator="\n")
        writer.writerows({"run": run_number, **result} for result in sorted(results, key=lambda r: r["fuzzer"]))
    both = lines + results
    print(f"{run_number} runs, {sum(int(r['seconds']) for r in both) / 3600:.2f} hours, {sum(int(r['executions']) for r in both)} executions, "
          f"{sum(int(r['crashes']) for r in both)} crashes in all")


def main():
    by_hours = len(sys.argv) == 4 and sys.argv[2] == "--hours"
    if len(sys.argv) != 3 and not by_hours:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    work = [(name, reader) for name in fuzzers() for reader in (readers() if name == "reader" else [None])]
    only = os.environ.get("STAGELINE_FUZZ_ONLY")  # a pattern of names such as "reader kineto"
    if only:
        work = [(name, reader) for name, reader in work if re.search(only, f"{name} {reader or ''}")]
    seconds = max(1, round(float(sys.argv[3]) * 3600 / max(len(work), 1))) if by_hours else int(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="stageline-fuzz-seeds-") as folder:
        seeds = simulated_seeds(build / "stageline", pathlib.Path(folder))
        golden_seeds(seeds["reader"])
        seeds["kept"] = pathlib.Path(folder) / "kept"
        seeds["kept"].mkdir()
        seeds["digest"] = pathlib.Path(folder) / "digest"
        digest_seeds(build / "stageline", HERE.parent / "golden/readers", seeds["digest"])
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            results = list(pool.map(lambda item: run(build, *item, seconds, seeds), work))
        if by_hours:
            count_run(results)
            print(f"{sum(keep_corpus(build, *item) for item in work)} inputs more are kept in {KEPT}")
    found = sum(result["crashes"] for result in results)
    print(f"{len(results)} fuzzers, {found} with findings")
    sys.exit(1 if found else 0)


main()
