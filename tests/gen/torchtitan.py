#!/usr/bin/env python3
"""Writes structured logs of torchtitan. Each process has a file, each line is a JSON object.

    torchtitan.py [--ranks 2] [--steps 3] [--rl] -o FOLDER

A step of a trainer has two micro-steps of fetching_batch and fwd_bwd, then optim. Step 2 saves a checkpoint and is tagged
so; an evaluation after the last step fails. --rl writes a generator, whose tasks overlap, and two trainers.
"""
import argparse
import json
import pathlib

EPOCH_US = 1_795_784_883_000_000


class Log:
    """Has the lines of one process. Times in whole µs; the lengths of ends are exact, by another clock."""

    def __init__(self, source, rank, pid, at_us=EPOCH_US):
        self.base = {'tid': pid * 10, 'rank': rank, 'global_rank': rank, 'local_rank': rank, 'source': source, 'host_name': 'node-0', 'pid': pid}
        self.source, self.rank, self.at, self.lines, self.spans, self.tags = source, rank, at_us, [], [], []
        self.instant('structured_logger_started')

    def line(self, kind, name, step=None, task=None, **more):
        row = {'delta_ms': 0.1, **self.base, **({} if step is None else {'step': step, 'relative_step': step}), **({'step_tags': self.tags} if self.tags else {}),
               'time': self.at // 10**6, 'time_ms': self.at // 1000, 'time_us': self.at, 'log_type': kind, 'log_type_name': name, 'event_name': None, **more,
               **({'task_name': task} if task else {}), 'caller': 'train.py:8:<module>', 'log_level': 'INFO', 'logger_name': 'torchtitan.structured_logger',
               'seq_id': len(self.lines), 'message': name}
        self.lines.append(json.dumps(row))

    def instant(self, name):
        self.line('instant', name)

    def begin(self, name, step, task=None):
        self.line('event', f'{name}_start', step, task)

    def end(self, name, step, us, task=None):
        """Ends a span of that length, to 100 ns."""
        self.line('event', f'{name}_end', step, task, value=us / 1000 + 0.0004)
        self.spans.append((name, self.at * 1000 - us * 1000 - 400, us * 1000 + 400))

    def span(self, name, step, us, inside=lambda: None):
        self.begin(name, step)
        start = self.at
        inside()
        self.at = max(self.at, start + us)
        self.end(name, step, self.at - start)

    def text(self):
        return '\n'.join(self.lines) + '\n'

    def name(self):
        return f'{self.source}.global_rank_{self.rank}.20261127-130803-{self.rank:06d}.jsonl'


def trainer(rank, steps=3, slow=1.0):
    log = Log('training', rank, 6000 + rank)
    log.instant('training_start')
    for step in range(1, steps + 1):
        def inside():
            for _ in range(2):
                log.span('fetching_batch', step, 6000)
                log.span('fwd_bwd', step, int(20000 * slow))
                log.at += 100
            log.span('optim', step, 6000)
            log.line('instant', 'metric_value', step, event_name='local_valid_tokens', value=4096.0 + rank)
            if step == 2:
                log.tags = ['checkpoint_save']
                log.span('checkpoint_save', step, 25000)
        log.span('step', step, 0, inside)
        log.tags = []
        log.at += 100
    log.begin('eval', steps)
    log.at += 60
    log.line('event', 'eval_error', steps)
    return log


def generator(steps=2):
    """Three requests at once, each a task of its own: their spans overlap in one thread."""
    log = Log('generator', 0, 6200)
    for step in range(steps):
        log.begin('engine_loop', step, 'Task-1')
        began, tasks = log.at, [f'Task-{2 + 3 * step + k}' for k in range(3)]
        for task in tasks:
            log.begin('generate', step, task)
        for k, task in enumerate(tasks):
            log.at += 4000 + 1000 * k
            log.end('generate', step, log.at - began, task)
        log.end('engine_loop', step, log.at - began, 'Task-1')
        log.at += 100
    return log


def run(ranks=2, steps=3, rl=False):
    logs = [trainer(rank, steps, 1.5 if rank == 1 else 1.0) for rank in range(ranks)]
    if not rl:
        return logs
    for log in logs:
        log.source = 'trainer'
        log.lines = [line.replace('"source": "training"', '"source": "trainer"') for line in log.lines]
    return [*logs, generator()]


def write(folder, **how):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for log in run(**how):
        (folder / log.name()).write_text(log.text())
    return folder


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument('--steps', type=int, default=3)
    parser.add_argument('--rl', action='store_true')
    parser.add_argument('-o', '--output', required=True)
    args = vars(parser.parse_args())
    print(write(args.pop('output'), **args))
