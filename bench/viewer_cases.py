"""./dev bench viewer: measures the page of `stageline view` in a headless Chromium (viewer_bench.mjs). run.py calls
it."""
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
SLICES = "1000000,10000000"


def run(stageline, cache, full):
    """Prints the table. With `full` Perfetto's trace processor loads the large trace too: a minute and 4 GB."""
    print("\nViewer: a trace of 256 threads, in a headless Chromium without a GPU, 1600 × 900.\n", flush=True)
    module = subprocess.run(["sh", os.path.join(HERE, "../tests/viewers/get_trace_processor.sh")], stdout=subprocess.PIPE, text=True, check=False)
    wasm = module.stdout.strip().splitlines()[-1:] if module.returncode == 0 else []
    env = dict(os.environ, **({"STAGELINE_BENCH_FULL": "1"} if full else {}))
    done = subprocess.run(["node", os.path.join(HERE, "viewer_bench.mjs"), stageline, cache, SLICES, *wasm], env=env, check=False)
    if done.returncode not in (0, 77):
        raise SystemExit(done.returncode)
    print("\nPages beside the timeline: a pipeline of 512 ranks, 64 micro-batches, 10 steps.\n", flush=True)
    done = subprocess.run(["node", os.path.join(HERE, "pages_bench.mjs"), stageline, cache], env=env, check=False)
    if done.returncode not in (0, 77):
        raise SystemExit(done.returncode)
