#!/usr/bin/env python3
"""./dev compare --record: torchtitan as released, its own trainer on two processes over gloo: FSDP2 with accumulated gradients, and a 1F1B pipeline.

titan.py [VERSION…]     exit 1 when what is recorded differs from what ran

The wheels are fetched by pip without what they depend on; titan_job.py lists the replacements of the rest. A version
that cannot be fetched or does not run here is skipped.
"""
import sys

from recorded_jobs import HERE, Versions, ended_badly, fetch, kinds_differ, run, torchrun

VERSIONS = ['0.2.2']
NEEDS = ['torchdata', 'tyro', 'docstring-parser', 'typeguard', 'tomli', 'einops', 'pillow']
STEPS, RANKS, ACCUMULATED, MICRO_BATCHES = 4, 2, 2, 8
STEPPED = 2  # its container of optimizers is an optimizer too, and steps the one within
WAYS = {'FSDP2': ('--training.local_batch_size', 4, '--training.global_batch_size', 4 * RANKS * ACCUMULATED),
        '1F1B': ('--training.local_batch_size', MICRO_BATCHES, '--parallelism.pipeline_parallel_degree', RANKS,
                 '--parallelism.pipeline_parallel_schedule', '1F1B', '--parallelism.data_parallel_shard_degree', 1)}


def expected(way):
    """How many of each kind a rank has in every step."""
    if way == 'FSDP2':
        return lambda rank: {'F': ACCUMULATED, 'B': ACCUMULATED, 'O': STEPPED}
    messages = ({'SF': MICRO_BATCHES, 'RB': MICRO_BATCHES}, {'RF': MICRO_BATCHES, 'SB': MICRO_BATCHES})
    return lambda rank: {'F': MICRO_BATCHES, 'B': MICRO_BATCHES, 'O': STEPPED, **messages[rank]}


def compare(score, python, version, folder):
    if not fetch(python, folder / 'site', f'torchtitan=={version}', *NEEDS):
        score.skip(version, 'it cannot be fetched here')
        return
    for way, options in WAYS.items():
        done = run(torchrun(python, RANKS, HERE / 'titan_job.py', '--training.steps', STEPS, *options), folder / way, [folder / 'site'])
        if f'step:  {STEPS}' not in done.stdout + done.stderr:
            score.skip(f'{version}, {way}', f'it does not run here: {done.stderr.strip()[-300:]}')
        else:
            score.check(f'{version}, {way}', ended_badly(done) or kinds_differ(folder / way, RANKS, STEPS, expected(way), () if way == '1F1B' else ('C',)))


if __name__ == '__main__':
    sys.exit(Versions('torchtitan', VERSIONS).each(compare))
