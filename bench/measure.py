"""Runs a program and says what the whole process cost."""
import dataclasses
import os
import statistics
import subprocess
import sys

LAUNCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch.py")


@dataclasses.dataclass
class Cost:
    cpu: float  # seconds, user + system
    wall: float  # seconds
    rss: float  # MB at the peak


def run(command, said, env=None):
    """Runs `command` to its end; what it prints goes to the file `said` (not to /dev/null: grep -c
    stops at the first match when it sees that nobody reads). Raises RuntimeError unless it exits 0."""
    reported = subprocess.run([sys.executable, "-S", "-E", LAUNCH, said, *command], env=env, check=True, capture_output=True)
    cpu, wall, peak_kib, status = reported.stdout.split()
    if int(status) != 0:
        with open(said, errors="replace") as text:
            raise RuntimeError(f"{command[0]} ended with status {int(status)}: {text.read()[-500:]}")
    return Cost(float(cpu), float(wall), int(peak_kib) * 1024 / 1e6)


def median(costs):
    return Cost(*(statistics.median(getattr(c, field) for c in costs) for field in ("cpu", "wall", "rss")))


def interleave(ours, theirs, our_runs, their_runs):
    """ours, then (theirs, ours) again and again, so that both meet the same load; each call gives a
    Cost. Returns the two lists of costs."""
    own, other = [ours() for _ in range(our_runs)], []
    for _ in range(their_runs):
        other.append(theirs())
        own += [ours() for _ in range(our_runs)]
    return own, other
