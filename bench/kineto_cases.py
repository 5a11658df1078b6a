"""Kineto traces for ./dev bench kineto, made by tests/gen/kineto.py and cached by recipe."""
import gzip
import hashlib
import os
import pathlib
import shutil
import sys

import cases

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "gen"))
import kineto  # noqa: E402

CACHE = cases.CACHE

JOB = ["--steps", 6, "--seed", 1, "--format", "both"]
LATE = ["--era", "us", "--fault"]
RECIPES = {
    # HTA fails on parts of the ns era, so what it is slow at is timed on the µs era; one rank starts late and
    # collectives are long, for stragglers.
    "ns200k": (["--ranks", 2, "--events", 200_000, *JOB], "2 ranks x 200k events, ns era"),
    "us200k": (["--ranks", 2, "--events", 200_000, *LATE, "host-delay:1,20", "--bucket", 8, "--link-us", 5000, *JOB],
               "2 ranks x 200k events, µs era"),
    "ns4x1m": (["--ranks", 4, "--events", 1_000_000, *JOB], "4 ranks x 1M events, ns era"),
    "us1m": (["--ranks", 2, "--events", 1_000_000, *LATE, "host-delay:1,90", "--bucket", 16, "--link-us", 30000, *JOB],
             "2 ranks x 1M events, µs era"),
    "py1m": (["--ranks", 1, "--events", 1_000_000, "--python", "--memory", *JOB], "1 rank x 1M events with frames and shapes"),
    "py8k": (["--ranks", 1, "--events", 8_000, "--python", "--memory", *JOB], "1 rank x 8k events with frames and shapes"),
    "py200k": (["--ranks", 1, "--events", 200_000, "--python", "--memory", *JOB], "1 rank x 200k events with frames and shapes"),
}
MANY = ("ns100m", 64, 4, 1_562_500)  # name, files, distinct ranks behind them, events of each


def _fresh(folder, recipe, make):
    """Rebuilds a folder when its recipe or the generator changed."""
    sources = [path.read_bytes() for path in sorted((ROOT / "tests" / "gen").glob("*.py"))]
    version = hashlib.sha256(b"".join([repr(recipe).encode(), *sources])).hexdigest()
    stamp = os.path.join(folder, "version")
    if not os.path.exists(stamp) or open(stamp).read() != version:
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        print(f"making {folder} (once)", file=sys.stderr)
        make(folder)
        with open(stamp, "w") as out:
            out.write(version)


class Case:
    def __init__(self, name):
        self.arguments, self.text = RECIPES[name]
        self.folder = os.path.join(CACHE, "kineto-" + name)
        self.json, self.gz = os.path.join(self.folder, "json"), os.path.join(self.folder, "gz")

    def prepare(self):
        def make(folder):
            written = kineto.generate([*self.arguments, "-o", folder])
            with open(os.path.join(folder, "events"), "w") as out:
                out.write(str(sum(w[2] for w in written)))
        _fresh(self.folder, self.arguments, make)
        self.events = int(open(os.path.join(self.folder, "events")).read())
        return self

    def files(self, kind):
        folder = getattr(self, kind)
        return sorted(os.path.join(folder, name) for name in os.listdir(folder))

    def bytes(self):
        return sum(os.path.getsize(path) for path in self.files("json"))


def _with_rank(head, rank, ranks):
    return head.replace(b'"rank": 0, "world_size": 2', b'"rank": %d, "world_size": %d' % (rank, ranks), 1)


def many():
    """A folder of 64 gzip files, 100 M events: a few distinct ranks, each many times with its rank number changed. The
    number stands in a first gzip member of its own, so the rest is copied as it is. Returns (folder, files, events)."""
    name, files, distinct, events = MANY
    folder = os.path.join(CACHE, "kineto-" + name)

    def make(where):
        base = os.path.join(where, "base")
        total = 0
        for r in range(distinct):
            # Rank 0 of pairs with other seeds: the numbers to replace are the same in all.
            (_, path, count, _), = kineto.generate(["--ranks", 2, "--only-ranks", "0", "--events", events, "--steps", 6, "--seed", r + 1,
                                                    "--format", "gz", "-o", base])
            with gzip.open(path) as whole:
                first = whole.read(1 << 20)
                cut = first.index(b'"traceEvents"')
                body = os.path.join(base, "body.gz")
                with gzip.GzipFile(body, "wb", compresslevel=6, mtime=0) as out:
                    out.write(first[cut:])
                    shutil.copyfileobj(whole, out, 1 << 22)
            for rank in range(r, files, distinct):
                with open(os.path.join(where, f"rank-{rank}.pt.trace.json.gz"), "wb") as out, open(body, "rb") as rest:
                    out.write(gzip.compress(_with_rank(first[:cut], rank, files), mtime=0))
                    shutil.copyfileobj(rest, out, 1 << 22)
                total += count
            shutil.rmtree(base)
        with open(os.path.join(where, "events"), "w") as out:
            out.write(str(total))
    _fresh(folder, MANY, make)
    paths = sorted((os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".gz")),
                   key=lambda path: int(os.path.basename(path).split("-")[1].split(".")[0]))
    return folder, paths, int(open(os.path.join(folder, "events")).read())
