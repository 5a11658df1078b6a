"""Random incidents for the shared simulator: the shape of the run, one fault or two of any class, their place, size and
course, all from one number. Random cases cannot be fitted to: `cases(first, count)` draws any number of them;
STAGELINE_DRAWN=FIRST:COUNT chooses (default 2000:100).

FIRST:COUNT:CHANGE draws the same runs as recordings are. In `lost` the file of one rank is missing, in `partial` a third of one rank's
steps. In `skew` clocks are up to an hour apart, and messages are recorded. In `blocking` ranks wait for their sends. Runs of `few` have
one to three steps; `mixed` makes two of these changes."""
import math
import os
import random
from dataclasses import replace

import simulate as sim

SCHEDULES = os.path.join(os.path.dirname(os.path.abspath(sim.__file__)), "..", "..", "data", "schedules")


def course(r, steps):
    kind = r.random()
    if kind < 0.55 or steps < 10:
        return None
    if kind < 0.7:
        return sim.since(r.randint(steps // 4, 3 * steps // 4))
    return sim.every(r.randint(2, 4), r.randint(0, 1)) if kind < 0.85 else sim.only(r.randint(1, steps - 1))


def healthy(r, seed):
    order = r.choice(["1f1b"] * 5 + ["gpipe", "vpp", "zbh1"])
    p, m = r.choice([2, 3, 4, 4, 6, 8]), 0
    m = p * r.randint(1, 4) + r.choice([0, 0, 1])
    how = {"1f1b": {}, "gpipe": dict(order="gpipe"), "vpp": dict(order="vpp", v=2, f=5, b=10),
           "zbh1": dict(order=os.path.join(SCHEDULES, "ZBH1_pp4_m8.csv"))}[order]
    if order in ("vpp", "zbh1"):
        p, m = 4, 8
    if order == "1f1b" and r.random() < 0.2:
        how = dict(latency=r.choice([0.05, 0.5, 1]))
    return sim.Run(p=p, m=max(m, 2), dp=r.choice([1, 1, 2, 3, 4, 6]), steps=r.choice([6, 8, 10, 12, 16, 20]), jitter=r.choice([0.005, 0.01, 0.02, 0.03, 0.05]),
                   messages=r.random() < 0.5, seed=seed, phases=r.random() < 0.3,
                   barrier=r.random() < 0.8, overlapped=r.choice([0, 0, 0.5]), reduce=r.choice([2, 5, 8]), optimizer=r.choice([2, 5]), gap=r.choice([0.5, 1, 3]), **how)


def fault(r, run, seed):
    """One that the run can have; None where the one drawn cannot be."""
    kind = r.choice("stage stage rank node replica all mb cell lengths routing link link latency blocking tail hang gc gc-rank pause late gap gap gap-rank reduce optimizer warm "
                    "both contention retransmission moving graded hot together order gather tail-stage swing trend-link trend-gap two-stages burst burst-stage first".split())
    when, slower, stage, replica = course(r, run.steps), 1 + r.choice([0.15, 0.25, 0.4, 0.7]), r.randrange(run.p), r.randrange(run.dp)
    low = r.randrange(max(run.p - 1, 1))
    way = (low + 1, low) if r.random() < 0.5 else (low, low + 1)
    rank, linked = r.randrange(run.p * run.dp), run.p > 1 and run.order != "vpp"
    begin = r.randint(1, max(run.steps - 4, 1))
    tail = ["tail:collective*", "tail:reduce*", "tail:all-reduce*", "tail"]
    made = {
        "stage": lambda: run.p > 1 and sim.slow_stage(stage, slower, when=when, kinds=r.choice(["FBIW", "FBIW", "F", "BI"])),
        "rank": lambda: run.dp > 1 and sim.slow_rank(run, replica, stage, slower, when=when),
        "node": lambda: run.dp > 2 and sim.slow_ranks(run, sorted({replica * run.p + stage, replica * run.p + (stage + 1) % run.p}), slower, when=when),
        "replica": lambda: run.dp > 2 and sim.slow_replica(run, replica, slower, when=when),
        "all": lambda: when and sim.slow_all(slower, when),
        "mb": lambda: sim.slow_micro_batch(r.choice([0, run.m - 1, run.m // 2]), 1.5 + 2 * r.random()),
        "cell": lambda: run.order == "1f1b" and sim.slow_micro_batch(0, 3 + 3 * r.random(), stage=stage, kinds=r.choice("FB")),
        "lengths": lambda: sim.lengths(run, r.choice([0.25, 0.4]), seed=seed),
        "routing": lambda: sim.routing(run, r.choice([0.2, 0.35]), seed=seed),
        "link": lambda: linked and sim.slow_link(*way, r.choice([4, 8, 15]), when=when, replica=replica if run.dp > 1 and r.random() < 0.4 else None),
        "latency": lambda: run.p > 1 and sim.setting("messages-slow", ["messages"], latency=r.choice([4, 6])),
        # Slow messages in the same run would be a separate cause.
        "blocking": lambda: run.p > 1 and run.messages and run.latency >= 0.5 and sim.setting("blocking", ["blocking*", "host", "messages"], blocking=True, also=("messages",)),
        "tail": lambda: linked and sim.message_tail(*way, r.choice([0.05, 0.1, 0.2]), r.choice([20, 40]), seed=seed),
        "hang": lambda: linked and sim.hang(low, low + 1, r.randint(1, run.steps - 1), r.randrange(run.m), r.choice([800, 3000])),
        "gc": lambda: sim.pauses(None, r.choice([0.005, 0.01, 0.02]), r.choice([40, 80]), when=when),
        "gc-rank": lambda: sim.pauses([rank], r.choice([0.03, 0.06]), r.choice([40, 80]), when=when),
        "pause": lambda: sim.pauses([rank], 0, r.choice([300, 900]), when=sim.only(r.randint(1, run.steps - 1)), at=lambda c: c.index == 3),
        "late": lambda: sim.late_launch(rank, r.choice([2, 4])),
        "gap": lambda: sim.between(r.choice(["data", "logging", "checkpoint", "evaluation"]), r.choice([40, 90, 200]), when=when, recorded=run.phases, seed=seed),
        "gap-rank": lambda: sim.between("data", r.choice([60, 120]), ranks=[rank], recorded=run.phases, seed=seed),
        "reduce": lambda: run.dp > 1 and sim.setting("tail-collective", tail, reduce=r.choice([60, 120])),
        "optimizer": lambda: sim.setting("tail-optimizer", ["tail:optimizer", "tail"], optimizer=r.choice([60, 120])),
        "both": lambda: linked and sim.slow_link(*way, r.choice([4, 8]), both=True, when=when),
        "contention": lambda: linked and run.p > 2 and sim.contention([(0, 1), (1, 2)], r.choice([3, 6])),
        "retransmission": lambda: linked and sim.message_tail(*way, r.choice([0.05, 0.1]), 8, pareto=1.3, seed=seed),
        "moving": lambda: run.dp > 2 and sim.moving_replica(run, slower),
        "graded": lambda: run.dp > 2 and sim.graded_replicas(run, 0.1),
        "hot": lambda: run.dp > 1 and sim.routing(run, 0.15, hot=(replica, slower), seed=seed),
        "together": lambda: run.dp > 1 and sim.routing(run, r.choice([0.2, 0.35]), together=True, seed=seed),
        "order": lambda: run.order == "1f1b" and run.p > 2 and sim.fewer_warmup(run, r.randrange(run.p - 1)),
        "gather": lambda: run.dp > 1 and sim.setting("tail-gather", ["tail:all-gather*", "tail:collective*", "tail"], gather=r.choice([60, 120])),
        "tail-stage": lambda: run.dp > 1 and sim.setting("tail-stage", tail + ["stage:%d" % stage], tail_stage=(stage, r.choice([60, 120]))),
        # A device that is slow in two of every five steps, because of its temperature.
        "swing": lambda: run.dp > 1 and sim.slow_rank(run, replica, stage, slower, when=sim.When("", lambda st: float(st % 5 < 2))),
        "trend-link": lambda: linked and sim.slow_link(*way, 1.0, when=sim.trend()),
        "trend-gap": lambda: sim.between("data", 8, when=sim.trend(), recorded=run.phases, seed=seed),
        "two-stages": lambda: run.p > 3 and sim.slow("two-stages", ["stage:0", "stage:2"], slower, lambda c: c.stage in (0, 2), when),
        # Some steps in a row that something else lengthens, too few and too short to be outliers.
        "burst": lambda: run.steps > 9 and sim.slow_all(1 + r.choice([0.12, 0.2, 0.28]), sim.only(*range(begin, begin + 3))),
        "burst-stage": lambda: run.steps > 9 and run.p > 2 and sim.slow_stage(stage, slower, when=sim.only(*range(begin, begin + 3))),
        "first": lambda: run.steps > 9 and sim.slow("first-steps", ["steps:0", "all", "trend"], 1 + r.choice([0.12, 0.2, 0.28]), lambda c: True, sim.only(*range(r.randint(2, 4)))),
        "warm": lambda: sim.slow("warmup-step", ["step:0"], r.choice([3, 6]), lambda c: True, sim.only(0)),
    }[kind]()
    return made or None


CHANGES = ("lost", "partial", "skew", "blocking", "few")


def recorded(r, run, change):
    """The run as a recording with this change has it."""
    if change == "mixed":
        for one in r.sample(CHANGES, 2):
            run = recorded(r, run, one)
        return run
    n = run.p * run.dp
    lost = r.randrange(n)
    return {
        "": lambda: run,
        "lost": lambda: replace(run, drop=((lost, None),)) if n > 2 else run,
        "partial": lambda: replace(run, drop=tuple((lost, st) for st in r.sample(range(run.steps), max(1, run.steps // 3)))),
        "skew": lambda: replace(run, messages=True, skew=math.exp(r.uniform(math.log(5), math.log(3.6e6)))),
        "blocking": lambda: replace(run, messages=True, blocking=True, latency=max(run.latency, 0.2)),
        "few": lambda: replace(run, steps=r.randint(1, 3)),
    }[change]()


def possible(r, run, seed):
    """A fault, or None where the run is too short or too small for the one drawn."""
    try:
        return fault(r, run, seed)
    except ValueError:
        return None


def drawn(seed, change=""):
    r = random.Random(seed)
    run, faults = recorded(r, healthy(r, seed), change), []
    for _ in range(1 if r.random() < 0.7 else 2):
        one = None
        while one is None:
            one = possible(r, run, seed)
        if not faults or faults[0].cls != one.cls:
            faults.append(one)
    if r.random() < 0.12:
        faults = []
    return sim.Case("drawn-%d" % seed, run, faults, ("jitter", "replicas", "replica:*", "unexplained") if run.jitter >= 0.05 else ())


def cases():
    first, count, change = (os.environ.get("STAGELINE_DRAWN", "2000:100") + ":").split(":")[:3]
    return [drawn(seed, change) for seed in range(int(first), int(first) + int(count))]
