#!/usr/bin/env python3
"""Writes a table of operations with disturbed clocks, and the truth next to it.

  skew_clocks.py TABLE.csv[.gz] OUT.csv TRUTH.csv [--offset-ms 50] [--drift-ppm 20] [--seed 7] [--epoch-s 1700000000]
                 [--one-way] [--compute-only] [--no-collectives] [--swap SHARE] [--step RANK:MS:AT] [--drop-rank R]

TABLE has the columns dp_rank, stage, rank, step, optype, start_ts, duration (seconds), steps restarting at 0. In this
form the traces of "Understanding Stragglers in Large Model Training" were published. Its steps are laid end to end with
5 % room, then every (dp, stage) gets a clock of its own: local(t) = t + offset + drift · (t − middle). OUT has absolute
times in nanoseconds, whole; TRUTH has rank,offset_ns,drift_ppb, offsets in the middle of the run.
"""
import argparse
import csv
import gzip
import random


def read(path):
    with (gzip.open(path, 'rt') if path.endswith('.gz') else open(path)) as f:
        return list(csv.DictReader(f))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('table')
    p.add_argument('out')
    p.add_argument('truth')
    p.add_argument('--offset-ms', type=float, default=50)
    p.add_argument('--drift-ppm', type=float, default=20)
    p.add_argument('--seed', type=int, default=7)
    p.add_argument('--epoch-s', type=int, default=1_700_000_000)
    p.add_argument('--one-way', action='store_true', help='forward messages only')
    p.add_argument('--compute-only', action='store_true', help='no messages, no collectives')
    p.add_argument('--no-collectives', action='store_true')
    p.add_argument('--swap', type=float, default=0, help='this share of receives trade places with the next one of their rank')
    p.add_argument('--step', help='RANK:MS:AT, the clock of a rank jumps by MS at this share of the run')
    p.add_argument('--drop-rank', type=int)
    a = p.parse_args()
    rng = random.Random(a.seed)
    rows = read(a.table)
    length = {}
    for r in rows:
        r['s'], r['e'] = float(r['start_ts']), float(r['start_ts']) + float(r['duration'])
        length[int(r['step'])] = max(length.get(int(r['step']), 0.0), r['e'])
    base, total = {}, 0.0
    for step in sorted(length):
        base[step] = total
        total += length[step] * 1.05
    ranks = sorted({(int(r['dp_rank']), int(r['stage']), int(r['rank'])) for r in rows})
    clock = {}
    for dp, stage, rank in ranks:
        clock[rank] = (rng.uniform(-a.offset_ms, a.offset_ms) * 1e6, rng.uniform(-a.drift_ppm, a.drift_ppm) * 1e-6)
    jump_rank, jump_ns, jump_s = -1, 0.0, 0.0
    if a.step:
        rank, ms, at = a.step.split(':')
        jump_rank, jump_ns, jump_s = int(rank), float(ms) * 1e6, float(at) * total

    def stamp(rank, seconds):
        offset, drift = clock[rank]
        ns = seconds * 1e9 + offset + drift * (seconds - total / 2) * 1e9
        return a.epoch_s * 10**9 + round(ns + (jump_ns if rank == jump_rank and seconds >= jump_s else 0))

    kept = []
    for r in rows:
        kind, rank = r['optype'], int(r['rank'])
        message = kind.endswith(('-send', '-recv'))
        if (a.one_way and kind.startswith('backward') and message) or rank == a.drop_rank:
            continue
        if (a.compute_only and not kind.endswith('-compute')) or (a.no_collectives and not message and not kind.endswith('-compute')):
            continue
        b = base[int(r['step'])]
        kept.append([r, stamp(rank, b + r['s']), stamp(rank, b + r['e'])])
    if a.swap > 0:  # two messages whose labels were mixed up: a bad match that no count shows
        receives = {}
        for row in kept:
            if row[0]['optype'] == 'forward-recv':
                receives.setdefault(row[0]['rank'], []).append(row)
        for rank in sorted(receives, key=int):
            lane = receives[rank]
            for i in rng.sample(range(len(lane) - 1), int(a.swap * len(lane))):
                early = lane[i][2] - 30_000_000  # ends before its message can have been sent
                lane[i][1], lane[i][2] = min(lane[i][1], early), early
    with open(a.out, 'w') as f:
        f.write('dp_rank,stage,rank,step,optype,start_ns,end_ns,seq_id,mc,mb_id\n')
        for r, start, end in kept:
            f.write(f"{r['dp_rank']},{r['stage']},{r['rank']},{r['step']},{r['optype']},{start},{end},{r['seq_id']},{r['mc']},{r['mb_id']}\n")
    with open(a.truth, 'w') as f:
        f.write('rank,offset_ns,drift_ppb\n')
        for dp, stage, rank in ranks:
            f.write(f'{rank},{clock[rank][0]:.1f},{clock[rank][1] * 1e9:.4f}\n')


if __name__ == '__main__':
    main()
