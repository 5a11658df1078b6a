"""Measures the cost of the step graph and of every scenario of `analyze slowdown` on a job of 107 000 recorded
operations, after loading."""
import os
import random
import subprocess

import cases

PROGRAM = os.environ.get("STAGELINE_SLOWDOWN_BENCH", os.path.join(cases.BUILD, "stageline_slowdown_bench"))
STAGES, MICRO_BATCHES = 2, 8
REPLICAS, STEPS, RUNS = 32, 43, 25
SMALL = 2, 3, 1
MOST_MS = 25


def orders(stage):
    """Returns the 1F1B order of one stage as (kind, micro-batch)."""
    warm_up = min(MICRO_BATCHES, STAGES - stage)
    order = [("forward", i) for i in range(warm_up)]
    for i in range(MICRO_BATCHES):
        order.append(("backward", i))
        if warm_up + i < MICRO_BATCHES:
            order.append(("forward", warm_up + i))
    return order


def write_job(path, replicas, steps):
    """A table by the names of the artifact's op types: sequences of uneven length, messages, collectives over replicas."""
    rng = random.Random(1)
    with open(path, "w") as out:
        out.write("dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n")
        for step in range(steps):
            rows, ends = [], []
            for dp in range(replicas):
                lengths = [rng.lognormvariate(0, 0.25) for _ in range(MICRO_BATCHES)]
                done, free = {}, [0.04] * STAGES
                todo = [orders(stage) for stage in range(STAGES)]

                def add(stage, kind, start, duration, seq=0, chunk=0, mb=-1, dp=dp):
                    rows.append((dp, stage, kind, start, duration, seq, chunk, mb))

                for stage in range(STAGES):
                    add(stage, "params-all-gather", 0.001 * rng.random(), 0.03)
                while any(todo):
                    for stage in range(STAGES):
                        if not todo[stage]:
                            continue
                        kind, mb = todo[stage][0]
                        peer = stage - 1 if kind == "forward" else stage + 1
                        sent = done.get((kind, peer, mb)) if 0 <= peer < STAGES else 0.0
                        if kind == "backward" and peer == STAGES:
                            sent = done.get(("forward", stage, mb))
                        if sent is None:
                            continue
                        todo[stage].pop(0)
                        start = free[stage]
                        if 0 <= peer < STAGES:
                            begun = max(start, sent)
                            add(stage, f"{kind}-recv", start, begun + 0.004 - start, mb)
                            add(peer, f"{kind}-send", sent, begun + 0.004 - sent, mb)
                            start = begun + 0.0041
                        took = lengths[mb] * (0.14 if kind == "forward" else 0.28) * (1.2 if stage == STAGES - 1 else 1)
                        add(stage, f"{kind}-compute", start, took, mb, 0, mb)
                        done[kind, stage, mb] = free[stage] = start + took
                for stage in range(STAGES):
                    add(stage, "gc", free[stage], 0.0, 0, -1, 0)
                    add(stage, "layernorm-grads-all-reduce", free[stage] + 0.001, 0.00004)
                ends.append(max(free) + 0.002)
            last = max(ends)
            for dp in range(replicas):
                for stage in range(STAGES):
                    rows.append((dp, stage, "embedding-grads-all-reduce", last, 0.08, 0, -1, -1))
                    rows.append((dp, stage, "grads-reduce-scatter", last + 0.081, 0.4, 0, 0, -1))
                    rows.append((dp, stage, "optimizer-clip-main-grad", last + 0.482, 0.002, 0, -1, -1))
                    rows.append((dp, stage, "optimizer", last + 0.4841, 0.0005 + 0.0001 * rng.random(), 0, -1, -1))
            for dp, stage, kind, start, duration, seq, chunk, mb in rows:
                out.write(f"{dp},{stage},{stage * replicas + dp},{step},{kind},{step * 20 + start:.9f},{duration:.9f},{seq},{chunk},{mb},-1\n")


def run(bench):
    replicas, steps, runs = SMALL if bench.small else (REPLICAS, STEPS, RUNS)
    path = os.path.join(cases.CACHE, f"slowdown-v1-{replicas}-{steps}.csv")
    if not os.path.exists(path):
        write_job(path + ".part", replicas, steps)
        os.replace(path + ".part", path)
    print("\n| job | operations | worlds | fixes | part | least wall | least CPU | ns CPU an operation and world |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    said = subprocess.run([PROGRAM, path, str(runs)], check=True, capture_output=True, text=True).stdout.split()
    ops, worlds, fixes = (int(word) for word in said[:3])
    times = [float(word) for word in said[4:]]
    wall, cpu = times[0::2], times[1::2]
    job = f"{STAGES} stages, {replicas} replicas, {steps} steps"
    for part, name in enumerate(("graph", "every world of slowdown", "recognition and model of what-if", "every fix")):
        bench.row(job, str(ops), str(worlds), str(fixes), name, bench.seconds(wall[part]), bench.seconds(cpu[part]),
                  f"{cpu[part] / ops / worlds * 1e9:.2f}" if part == 1 else "")
    bench.bar(f"graph and every world of slowdown on {ops} operations: {(wall[0] + wall[1]) * 1e3:.0f} ms, asked ≤ {MOST_MS} ms",
              (wall[0] + wall[1]) * 1e3 <= MOST_MS)
    bench.bar(f"every fix of what-if on them: {wall[3] * 1e3:.0f} ms, asked ≤ {MOST_MS} ms", wall[3] * 1e3 <= MOST_MS)
