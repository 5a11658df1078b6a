"""The inputs: worker logs that stageline simulate makes, with noise added here. Cached by recipe."""
import itertools
import os
import random
import shutil
import subprocess

BUILD = os.environ.get("STAGELINE_BUILD", os.path.join("build", "release"))
STAGELINE = os.path.join(BUILD, "stageline")
CACHE = os.environ.get("STAGELINE_BENCH_CACHE", os.path.join(".cache", "bench"))
MARK = "Profiler Info"
NOISE_LINES_PER_JOB = 20
NOISE_LINE_BYTES = 160
JUNK_BYTES = 100_000
WORDS = ("loss learning_rate global_step interval_runtime ips Parameter Pipeline sharding allreduce INFO tokens/s "
         "memory Process norm overflow scale Program eta samples").split()


def _simulate(folder, ranks, steps):
    # 12 micro-batches: 12 forward, 12 backward, 1 optimizer = 25 jobs a step and rank.
    subprocess.run([STAGELINE, "simulate", "1f1b", "--stages", str(ranks), "--micro-batches", "12", "--steps", str(steps),
                    "--cost", "8,16", "--latency", "0.2", "--jitter", "0.03", "--optimizer", "6", "--seed", "7",
                    "--quiet", "-o", folder], check=True, stdout=subprocess.DEVNULL)
    os.remove(os.path.join(folder, "truth.csv"))


def _noise_text(rng, size):
    """`size` bytes as training scripts print them, without a line end."""
    parts, length = [], 0
    while length < size:
        parts.append(f"{rng.choice(WORDS)}: {rng.random():.4f}, ")
        length += len(parts[-1])
    return "".join(parts)[:size]


def _noise_lines(rng):
    lines = [f"[2024-07-20 10:06:{i % 60:02},{i:03}] [    INFO] - {_noise_text(rng, NOISE_LINE_BYTES - 45)}".ljust(
        NOISE_LINE_BYTES - 1, ".") + "\n" for i in range(997)]
    return itertools.cycle(lines)


def _rewrite(folder, change):
    """Passes every line of every log through change(line) → text to write."""
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        with open(path) as old, open(path + ".new", "w") as new:
            for line in old:
                new.write(change(line))
        os.replace(path + ".new", path)


def _plain(ranks, steps):
    return lambda folder: _simulate(folder, ranks, steps)


def _noisy(ranks, steps):
    def make(folder):
        _simulate(folder, ranks, steps)
        lines = _noise_lines(random.Random(1))
        _rewrite(folder, lambda line: line + "".join(itertools.islice(lines, NOISE_LINES_PER_JOB)) if MARK in line else line)
    return make


def _junk(line_bytes):
    """Makes one log of 50 jobs with JUNK_BYTES of noise after its first line: one line, or lines of
    `line_bytes`, the same bytes but for the line ends."""
    def make(folder):
        _simulate(folder, 1, 2)
        text = bytearray(_noise_text(random.Random(1), JUNK_BYTES - 1) + "\n", "ascii")
        for i in range(line_bytes - 1, len(text), line_bytes):
            text[i] = ord("\n")
        junk = text.decode()
        first = [True]

        def change(line):
            if not first[0]:
                return line
            first[0] = False
            return line + junk
        _rewrite(folder, change)
    return make


RECIPES = {
    "small": (4, _plain(4, 400), "4 x 10k jobs"),
    "noisy": (4, _noisy(4, 400), "4 x 10k jobs amid 20 log lines each"),
    "large8": (8, _plain(8, 4000), "8 x 100k jobs"),
    "large": (64, _plain(64, 4000), "64 x 100k jobs"),
    "junkline": (1, _junk(JUNK_BYTES), "50 jobs and one line of 100 KB"),
    "junklines": (1, _junk(NOISE_LINE_BYTES), "50 jobs and the same 100 KB in lines of 160"),
}
VERSION = "1"  # changes when a recipe does: the cache is rebuilt


class Case:
    def __init__(self, name):
        self.name = name
        self.ranks, self.make, self.text = RECIPES[name]
        self.folder = os.path.join(CACHE, name)
        self.logs = [os.path.join(self.folder, "logs", f"workerlog.{i}") for i in range(self.ranks)]

    def prepare(self):
        """Makes the logs unless they are there, and a folder of links to them for either side."""
        stamp = os.path.join(self.folder, "version")
        if not os.path.exists(stamp) or open(stamp).read() != VERSION:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.make(os.path.join(self.folder, "logs"))
            for side in ("ours", "theirs"):
                os.mkdir(os.path.join(self.folder, side))
                for i in range(self.ranks):
                    os.symlink(f"../logs/workerlog.{i}", os.path.join(self.folder, side, f"workerlog.{i}"))
            with open(stamp, "w") as f:
                f.write(VERSION)

    def bytes(self):
        return sum(os.path.getsize(log) for log in self.logs)

    def devices(self):
        return ",".join(str(i) for i in range(self.ranks))

    def side(self, name):
        return os.path.join(self.folder, name)

    def outputs(self, side):
        return [os.path.join(self.side(side), f"pipeline_profile{kind}.json") for kind in ("", "_perfetto")]

    def remove_outputs(self, side):
        for path in self.outputs(side):
            if os.path.exists(path):
                os.remove(path)

    def same_outputs(self):
        return all(_same(a, b) for a, b in zip(self.outputs("ours"), self.outputs("theirs")))


def _same(a, b):
    """Equal files? In pieces: what this process holds counts as the least peak of those it starts."""
    with open(a, "rb") as x, open(b, "rb") as y:
        while True:
            p, q = x.read(1 << 20), y.read(1 << 20)
            if p != q:
                return False
            if not p:
                return True
