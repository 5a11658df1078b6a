#!/usr/bin/env python3
"""Writes worker logs of Paddle's dynamic graph with details of the pipeline (FLAGS_profile_pipeline_details_steps).

    paddle_details.py [--stages 2] [--micro-batches 3] [--steps 2] [--chunks 1] [--slow STAGE] -o FOLDER

The order is 1F1B, or with chunks all forwards before all backwards. Each stage has its own log; times are whole milliseconds.
"""
import argparse
import datetime
import pathlib

EPOCH = datetime.datetime(2026, 9, 14, 10, 0, 0)
EPOCH_MS = int(EPOCH.replace(tzinfo=datetime.timezone.utc).timestamp()) * 1000


def order(stage, stages, micro_batches, chunks):
    """Returns the cells of a step as (kind, chunk, micro-batch, number of the line)."""
    if chunks > 1:  # groups of as many micro-batches as stages, chunk after chunk
        forward = [(c, first + k) for first in range(0, micro_batches, stages) for c in range(chunks) for k in range(min(stages, micro_batches - first))]
        return ([('F', c, m, number) for number, (c, m) in enumerate(forward)] +
                [('B', chunks - 1 - c, m, number) for number, (c, m) in enumerate(forward)])
    warm = min(stages - stage - 1, micro_batches)
    cells = [('F', m) for m in range(warm)]
    for m in range(micro_batches - warm):
        cells += [('F', warm + m), ('B', m)]
    cells += [('B', m) for m in range(micro_batches - warm, micro_batches)]
    return [(kind, 0, m, m) for kind, m in cells]


def run(stages=2, micro_batches=3, steps=2, chunks=1, slow=None):
    """Returns cells as (rank, step, kind, chunk, micro-batch, start ms, end ms), in the order of each rank, and steps' starts."""
    cells, ends, at, begins = [], {}, [0] * stages, {}
    for step in range(steps):
        plans = [order(s, stages, micro_batches, chunks) for s in range(stages)]
        for s in range(stages):
            begins[s, step] = at[s]
            at[s] += 2
        done = [0] * stages
        while any(done[s] < len(plans[s]) for s in range(stages)):
            for s in range(stages):
                while done[s] < len(plans[s]):
                    kind, chunk, m, number = plans[s][done[s]]
                    place = chunk * stages + s
                    need = place - 1 if kind == 'F' else place + 1 if place + 1 < chunks * stages else None
                    key = (step, kind, need, m) if need is not None and need >= 0 else (step, 'F', place, m) if kind == 'B' else None
                    if key and key not in ends:
                        break
                    start = max(at[s], ends.get(key, 0) + 2) + 1
                    at[s] = start + int((40 if kind == 'F' else 80) * (1.5 if s == slow else 1))
                    ends[step, kind, place, m] = at[s]
                    cells.append((s, step, kind, chunk, m, start, at[s], number))
                    done[s] += 1
        at = [max(at) + 30] * stages
    return cells, begins


def write(folder, chunks=1, **how):
    """Writes the logs and returns the cells as (rank, step, kind, chunk, micro-batch, start ns, end ns)."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    cells, begins = run(chunks=chunks, **how)
    for rank in sorted({cell[0] for cell in cells}):
        lines = ['LAUNCH INFO 2026-09-14 09:59:30,000 -----------  Configuration  ----------------------']

        def line(ms, name, gigabytes=0.0):
            time = EPOCH + datetime.timedelta(milliseconds=ms)
            lines.append(f'[{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03d}] [    INFO] pipeline_parallel.py:77 - [Pipeline details] {name}: '
                         f'memory_allocated_size={gigabytes:.2f}, memory_reserved_size={gigabytes + 1:.2f}')

        for step in sorted({cell[1] for cell in cells}):
            line(begins[rank, step], 'Start_forward_backward_pipeline', 1)
            last, held = 0, 1
            for _, _, kind, chunk, _, start, end, number in (cell for cell in cells if cell[:2] == (rank, step)):
                name = f'{"forward" if kind == "F" else "backward"}_step_chunk_{chunk if chunks > 1 else None}_step_{number}'
                line(start, 'Before_' + name, held)
                held += 0.25 if kind == 'F' else -0.25
                line(end, 'After_' + name, held)
                last = end
            line(last + 5, 'End_forward_backward_pipeline', held)
            lines.append(f'[2026-09-14 10:00:{step:02d},000] [    INFO] - global_step: {step + 1}, loss: 10.4')
        (folder / f'workerlog.{rank}').write_text('\n'.join(lines) + '\n')
    return [(*cell[:5], (EPOCH_MS + cell[5]) * 10**6, (EPOCH_MS + cell[6]) * 10**6) for cell in cells]


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (('--stages', 2), ('--micro-batches', 3), ('--steps', 2), ('--chunks', 1), ('--slow', None)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument('-o', '--output', required=True)
    args = vars(parser.parse_args())
    print(len(write(args.pop('output'), **args)), 'cells')
