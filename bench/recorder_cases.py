"""What recording costs the program that records, while the file is written. Device ranges go to tests/record's fake driver."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = os.environ.get("STAGELINE_RECORDER_BENCH", "build/release/stageline_recorder_bench")
FAKE = os.environ.get("STAGELINE_FAKE_CUDA", "build/release/bench_fake/libcuda.so.1")
LIBRARY = os.environ.get("STAGELINE_RECORD_LIBRARY", "build/release/record/libstageline_record.so")
ROWS = (("off_by_window", "push and pop outside the window"), ("push_pop", "push and pop"), ("push_job_pop", "push a job and pop"), ("nvtx_push_pop", "nvtxRangePushA and nvtxRangePop, recorded"),
        ("begin_end", "begin and end, any thread may end it"), ("mstx_start_end", "mstxRangeStartA and mstxRangeEnd, recorded"), ("driver_alone", "the fake driver's calls of a device range alone"),
        ("device_range", "device range, those calls included"))
MOST_NS, MOST_P99_NS, MOST_BYTES, MOST_BEYOND_NS, MOST_LIBRARY, MOST_INJECTED_NS, MOST_PYTHON_NS = 50, 100, 12, 100, 300_000, 30, 200
PACKAGE = os.environ.get("STAGELINE_PYTHON_PACKAGE", "build/release/python")
PYTHON_ROWS = (("with_job", "with job('F', i, 0)"), ("with_range", "with range('forward')"), ("push_pop", "push and pop"), ("annotate", "a call of an @annotate function"))
# One loop a row, so that what a name costs is the loop's; bursts with pauses, as in recorder_bench.cc.
PYTHON_PROGRAM = '''
import json, time
from stageline import record

BURSTS, BURST = 100, 2000
assert record.init(rank=0, max_overhead=-1.0), record.why_not()
def empty():
    for i in range(BURST):
        pass
def with_job():
    for i in range(BURST):
        with record.job('F', i, 0):
            pass
def with_range():
    for i in range(BURST):
        with record.range('forward'):
            pass
def push_pop():
    push, pop = record.push, record.pop
    for i in range(BURST):
        push('forward')
        pop()
@record.annotate('forward')
def nothing():
    pass
def annotate():
    for i in range(BURST):
        nothing()
def bursts(loop):
    times = []
    for _ in range(BURSTS):
        start = time.perf_counter_ns()
        loop()
        times.append((time.perf_counter_ns() - start) / BURST)
        time.sleep(0.005)
    return sorted(times)
found, nothing_at_all = {}, bursts(empty)[BURSTS // 2]
for loop in (with_job, with_range, push_pop, annotate):
    times = bursts(loop)
    found[loop.__name__] = [times[k] - nothing_at_all for k in (BURSTS // 2, BURSTS - 1 - BURSTS // 100, 0)]
print(json.dumps(found))
'''


def python_rows(bench):
    """Returns the median of `with job`, None where there is no extension."""
    if not (pathlib.Path(PACKAGE) / "stageline_record/_record.abi3.so").exists():
        print("skipped: Python's rows, no headers of Python when building", flush=True)
        return None
    with tempfile.TemporaryDirectory(dir=bench.cases.CACHE) as folder:
        environment = {**os.environ, "PYTHONPATH": os.path.abspath(PACKAGE), "STAGELINE_DIR": folder}
        found = json.loads(subprocess.run([sys.executable, "-c", PYTHON_PROGRAM], check=True, capture_output=True, text=True, env=environment).stdout)
    print("\n| recorder in Python | median of bursts | 99th of 100 bursts | best burst of 2 000 |\n| --- | --- | --- | --- |", flush=True)
    for key, what in PYTHON_ROWS:
        bench.row(what, *(f"{ns:.0f} ns" for ns in found[key]))
    return found["with_job"][0]


def run(bench):
    with tempfile.TemporaryDirectory(dir=bench.cases.CACHE) as folder:
        done = subprocess.run([PROGRAM, folder, FAKE], check=True, capture_output=True, text=True)
        stripped = os.path.join(folder, "stripped.so")
        subprocess.run(["strip", "-o", stripped, LIBRARY], check=True)
        size = os.path.getsize(stripped)
    found = json.loads(done.stdout)
    print("\n| recorder | median | p99 | best burst of 2 000 |\n| --- | --- | --- | --- |", flush=True)
    for key, what in ROWS:
        cost = found[key]
        bench.row(what, *(f"{cost[k]:.0f} ns" for k in ("median_ns", "p99_ns", "best_burst_ns")))
    print(f"\n{found['bytes_a_job']:.1f} B a job and {found['bytes_a_push']:.1f} B a push on disk, everything included; {found['records']} records, "
          f"{found['dropped']} dropped, {found['host_instead']} device ranges without the device's times of {found['device_ranges']}; library {size} B stripped.",
          flush=True)
    push = found["push_pop"]
    beyond = found["device_range"]["median_ns"] - found["driver_alone"]["median_ns"]
    bench.bar(f"push and pop: {push['median_ns']:.0f} ns, asked ≤ {MOST_NS} ns", push["median_ns"] <= MOST_NS)
    bench.bar(f"push and pop, p99: {push['p99_ns']:.0f} ns, asked ≤ {MOST_P99_NS} ns", push["p99_ns"] <= MOST_P99_NS)
    # What a recorded range costs above one that calls the recorder itself.
    nvtx = found["nvtx_push_pop"]["median_ns"] - push["median_ns"]
    bench.bar(f"NVTX above push and pop: {nvtx:.0f} ns, asked ≤ {MOST_INJECTED_NS} ns", nvtx <= MOST_INJECTED_NS)
    mstx = found["mstx_start_end"]["median_ns"] - found["begin_end"]["median_ns"]
    bench.bar(f"mstx above begin and end: {mstx:.0f} ns, asked ≤ {MOST_INJECTED_NS} ns", mstx <= MOST_INJECTED_NS)
    bench.bar(f"a job on disk: {found['bytes_a_job']:.1f} B, asked ≤ {MOST_BYTES} B", found["bytes_a_job"] <= MOST_BYTES)
    bench.bar(f"a device range beyond the driver's calls: {beyond:.0f} ns, asked ≤ {MOST_BEYOND_NS} ns", beyond <= MOST_BEYOND_NS)
    bench.bar(f"the library: {size} B, asked ≤ {MOST_LIBRARY} B", size <= MOST_LIBRARY)
    with_job = python_rows(bench)
    if with_job is not None:
        bench.bar(f"Python's with job: {with_job:.0f} ns, asked ≤ {MOST_PYTHON_NS} ns", with_job <= MOST_PYTHON_NS)
