"""What recording costs the program that records, while the file is written. Device ranges go to tests/record's fake driver."""
import json
import os
import subprocess
import tempfile

PROGRAM = os.environ.get("STAGELINE_RECORDER_BENCH", "build/release/stageline_recorder_bench")
FAKE = os.environ.get("STAGELINE_FAKE_CUDA", "build/release/bench_fake/libcuda.so.1")
LIBRARY = os.environ.get("STAGELINE_RECORD_LIBRARY", "build/release/record/libstageline_record.so")
ROWS = (("off_by_window", "push and pop outside the window"), ("push_pop", "push and pop"), ("push_job_pop", "push a job and pop"), ("nvtx_push_pop", "nvtxRangePushA and nvtxRangePop, recorded"),
        ("begin_end", "begin and end, any thread may end it"), ("driver_alone", "the fake driver's calls of a device range alone"),
        ("device_range", "device range, those calls included"))
MOST_NS, MOST_P99_NS, MOST_BYTES, MOST_BEYOND_NS, MOST_LIBRARY, MOST_NVTX_NS = 50, 100, 12, 100, 300_000, 30


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
    bench.bar(f"NVTX above push and pop: {nvtx:.0f} ns, asked ≤ {MOST_NVTX_NS} ns", nvtx <= MOST_NVTX_NS)
    bench.bar(f"a job on disk: {found['bytes_a_job']:.1f} B, asked ≤ {MOST_BYTES} B", found["bytes_a_job"] <= MOST_BYTES)
    bench.bar(f"a device range beyond the driver's calls: {beyond:.0f} ns, asked ≤ {MOST_BEYOND_NS} ns", beyond <= MOST_BEYOND_NS)
    bench.bar(f"the library: {size} B, asked ≤ {MOST_LIBRARY} B", size <= MOST_LIBRARY)
