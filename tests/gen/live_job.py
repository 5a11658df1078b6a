#!/usr/bin/env python3
"""A job that records at its own pace: live_job.py -o FOLDER --stages 4 --replicas 4 --steps 30 --step-ms 200 --fault
5,1.5,10,20.

1F1B with data-parallel replicas, gradients reduced at the end of each step. Every rank appends its records of a step to
its file at the end of the step, at the job's own pace. All records are made before the first step, so that making them
takes no time from other programs. Between steps A and B (20 is healthy again) the rank of --fault takes a multiple of
its usual time. A line of JSON is printed for each written step: step, seconds since 1970, bytes in total. --leave-open
ends without closing, as a killed job does.
"""
import argparse
import json
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recording import BACKWARD, COLLECTIVE, FORWARD, OPTIMIZER, RANGE, STEP, File  # noqa: E402


def order_of(stage, stages, micro_batches):
    """1F1B: (kind, micro-batch) of a stage, in its order."""
    warm_up = min(stages - stage - 1, micro_batches)
    jobs = [(FORWARD, m) for m in range(warm_up)]
    for m in range(micro_batches - warm_up):
        jobs += [(FORWARD, warm_up + m), (BACKWARD, m)]
    return jobs + [(BACKWARD, m) for m in range(micro_batches - warm_up, micro_batches)]


def pipeline(stages, micro_batches, cost):
    """Times of one replica's step: per stage (kind, micro-batch, start, end). cost(stage, kind) → ms."""
    orders = [order_of(s, stages, micro_batches) for s in range(stages)]
    ends, free, at, times = {}, [0.0] * stages, [0] * stages, [[] for _ in range(stages)]
    while any(at[s] < len(orders[s]) for s in range(stages)):
        for s in range(stages):
            while at[s] < len(orders[s]):
                kind, m = orders[s][at[s]]
                needs = (FORWARD, s - 1, m) if kind == FORWARD else (BACKWARD, s + 1, m)
                if needs[1] in (-1, stages):
                    ready = 0.0 if kind == FORWARD else ends[FORWARD, s, m]
                elif needs in ends:
                    ready = ends[needs]
                else:
                    break
                start = max(free[s], ready)
                free[s] = ends[kind, s, m] = start + cost(s, kind)
                times[s].append((kind, m, start, free[s]))
                at[s] += 1
    return times


def make(args):
    """The ranks' files, and of each step what each appends."""
    ranks = args.stages * args.replicas
    files = [File(r, f'node{r // 8:03}', world=ranks, pp=args.stages, stage=r % args.stages, dp_rank=r // args.stages) for r in range(ranks)]
    for r, f in enumerate(files):
        f.names(['gradients'])
        f.lanes([(1, 0, 0, f'python {4700 + r}'), (2, 0, 0, 'collectives')])
        f.clocks([0], [])
    heads = []
    for f in files:
        heads.append(f.data)
        f.data = b''
    chance = random.Random(7)
    slow, times_slow, first, last = args.fault or (-1, 1.0, 0, 0)
    # (micro-batches + stages − 1) forwards and backwards stand behind each other; the reduction and the optimizer take a twentieth.
    unit = args.step_ms * 0.95 / ((args.micro_batches + args.stages - 1) * 3)
    steps, at, ends = [], 0.0, []
    for step in range(args.steps):
        runs = []
        for replica in range(args.replicas):
            def cost(stage, kind, replica=replica):
                rank = replica * args.stages + stage
                ms = unit * (1 if kind == FORWARD else 2) * chance.gauss(1, args.jitter)
                return ms * (times_slow if rank == slow and first <= step < last else 1)
            runs.append(pipeline(args.stages, args.micro_batches, cost))
        done = [max(run[s][-1][3] for run in runs) + args.step_ms * 0.02 for s in range(args.stages)]
        end = max(done) + args.step_ms * 0.03
        for r, f in enumerate(files):
            stage, run = r % args.stages, runs[r // args.stages]
            records = [(STEP, 1, 0, step, at, step, False, 0, -1, -1)]
            records += [(RANGE, 1, 0, step, at + a, at + b, False, kind, m, -1) for kind, m, a, b in run[stage]]
            records += [(RANGE, 2, 1, step, at + run[stage][-1][3], at + done[stage], False, COLLECTIVE, 0, -1),
                        (RANGE, 1, 0, step, at + done[stage], at + done[stage] + args.step_ms * 0.025, False, OPTIMIZER, -1, -1)]
            f.ranges(records)
        at += end
        ends.append(at)
        steps.append([f.data for f in files])
        for f in files:
            f.data = b''
    for f in files:
        f.clocks([at], [])
        f.chunk(7, b'{"records":1}')
    return heads, steps, ends, [f.data for f in files]


def fault_of(text):
    rank, times, first, last = text.split(',')
    return int(rank), float(times), int(first), int(last)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument('-o', '--output', required=True, type=pathlib.Path)
    arguments.add_argument('--stages', type=int, default=4)
    arguments.add_argument('--replicas', type=int, default=4)
    arguments.add_argument('--micro-batches', type=int, default=8)
    arguments.add_argument('--steps', type=int, default=30)
    arguments.add_argument('--step-ms', type=float, default=200)
    arguments.add_argument('--jitter', type=float, default=0.01)
    arguments.add_argument('--fault', type=fault_of, help='RANK,TIMES,FROM,TO')
    arguments.add_argument('--leave-open', action='store_true')
    args = arguments.parse_args()
    heads, steps, ends, last = make(args)
    args.output.mkdir(parents=True, exist_ok=True)
    files = []
    for r, head in enumerate(heads):
        files.append(open(args.output / f'node{r // 8:03}.r{r:05}.p{100 + r}.1760000000.000.slrec', 'xb', buffering=0))
        files[-1].write(head)
    began, size = time.time(), sum(map(len, heads))
    for step, (parts, end) in enumerate(zip(steps, ends)):
        time.sleep(max(0.0, began + end / 1000 - time.time()))
        for file, data in zip(files, parts):
            file.write(data)
        size += sum(map(len, parts))
        print(json.dumps({'step': step, 'time': time.time(), 'bytes': size}), flush=True)
    for file, data in zip(files, last):
        if not args.leave_open:
            file.write(data)
        file.close()


if __name__ == '__main__':
    main()
