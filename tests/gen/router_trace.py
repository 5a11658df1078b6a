#!/usr/bin/env python3
"""Writes traces of routers as Megatron-LM does (--moe-routing-trace-path): a line of JSON for each call, one file a rank.

    python3 tests/gen/router_trace.py [--ranks 2] [--hot EXPERT] -o FOLDER
"""
import argparse
import json
import pathlib
import random


def draw(seed=1, ranks=2, experts=8, layers=2, steps=4, tokens=24, top_k=2, hot=(), moves=False):
    """Returns decisions as (rank, block, layer, step, experts of each token); −1 is padding. Hot experts are chosen four times as often; those that
    move are others in the second half of the steps."""
    out = []
    for step in range(steps):
        for layer in range(layers):
            for rank in range(ranks):
                rng = random.Random(f'{seed}/{step}/{layer}/{rank}')
                weights = [1.0] * experts
                for expert in hot:
                    weights[(expert + (experts // 2 if moves and step >= steps // 2 else 0)) % experts] = 4.0
                chosen = []
                for _ in range(tokens):
                    left = list(range(experts))
                    picks = []
                    for _ in range(top_k):
                        picks.append(rng.choices(left, [weights[e] for e in left])[0])
                        left.remove(picks[-1])
                    chosen.append(picks)
                chosen[-1] = [-1] * top_k
                out.append((rank, 'mtp' if layer == layers - 1 else 'decoder', layer, step, chosen))
    return out


def line(decision, top_k=2):
    rank, block, layer, step, chosen = decision
    return json.dumps({'step': step, 'stage': 'pre_dispatch', 'block': block, 'layer': layer, 'rank': rank, 'num_tokens': len(chosen), 'topk': top_k,
                       'top_indices': chosen}, separators=(',', ':'))


def write(folder, decisions):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for rank in sorted({d[0] for d in decisions}):
        (folder / f'router_trace_rank{rank}.jsonl').write_text(''.join(line(d, len(d[4][0])) + '\n' for d in decisions if d[0] == rank))
    return folder


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument('--hot', type=int, nargs='*', default=())
    parser.add_argument('-o', '--out', type=pathlib.Path, required=True)
    given = parser.parse_args()
    write(given.out, draw(ranks=given.ranks, hot=given.hot))
