#!/usr/bin/env python3
"""The installed msprof-analyze reads what `stageline simulate --format ascend` writes: it names every block, and pairs every message.

  msprof_sim.py

The tool is $STAGELINE_RIVAL_MSPROF (the program msprof-analyze); where that is not set everything is skipped, with a count.
"""
import collections
import contextlib
import csv
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

BIN = os.environ.get('STAGELINE_BIN', str(pathlib.Path(__file__).resolve().parents[2] / 'build/dev/stageline'))
MSPROF = os.environ.get('STAGELINE_RIVAL_MSPROF', '')
MICRO_BATCHES = 10
CASES = {  # name → (arguments of simulate, whether blocks have numbers, whether messages are paired)
    '1f1b': (['1f1b', '--level', 1], False, True),
    '1f1b, markers only': (['1f1b'], False, False),
    '1f1b, tp 2 dp 2': (['1f1b', '--stages', 2, '--tp', 2, '--dp', 2, '--level', 1], False, True),
    'dualpipe-v': (['dualpipe-v-mindspeed', '--level', 1, '--pp-info'], True, True),
    'dualpipe-v, markers only': (['dualpipe-v-mindspeed', '--stages', 2, '--pp-info'], True, False),
}


def label_of(cells):
    """Returns the tool's name for the block of these cells of the truth (its micro-batches of chunk 1 count on)."""
    number = lambda c: int(c['mb_id']) + MICRO_BATCHES * int(c['mc'])
    kinds = {c['optype'].split('-')[0]: c for c in cells}
    if 'forward' in kinds and len(cells) == 2:
        back = next(c for c in cells if c is not kinds['forward'])
        return f'{number(kinds["forward"])}F+{number(back)}B'
    return str(number(cells[0]))


def truth_of(folder):
    blocks = collections.defaultdict(list)
    with open(folder / 'truth.csv') as file:
        for cell in csv.DictReader(file):
            blocks[int(cell['rank']), cell['start_ts']].append(cell)
    by_rank = collections.defaultdict(list)
    for (rank, start), cells in sorted(blocks.items()):
        by_rank[rank].append((round(float(start) * 1e9), cells))
    return by_rank


def check(folder, numbered, paired):
    problems, blocks, ends = [], 0, collections.defaultdict(list)
    truth = truth_of(folder)
    for path in sorted(folder.glob('*_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_*.db')):
        rank = int(path.stem.rsplit('_', 1)[1])
        with contextlib.closing(sqlite3.connect(path)) as db:
            got = [name for name, in db.execute("SELECT name FROM StepTaskInfo WHERE name != 'logits' ORDER BY startNs")]
            if paired:
                for name, key, start in db.execute('SELECT s.value, o.opConnectionId, o.startNs FROM COMMUNICATION_OP o '
                                                   "JOIN STRING_IDS s ON s.id = o.opName WHERE s.value NOT LIKE 'hcom_allReduce%'"):
                    ends[key].append((name.split('__')[0], rank, start))
        wanted = [cells for _, cells in truth[rank]]
        blocks += len(got)
        if len(got) != len(wanted):
            problems.append(f'rank {rank}: {len(got)} blocks, {len(wanted)} in the truth')
        for name, cells in zip(got, wanted):
            plain = 'FP' if cells[0]['optype'].startswith('forward') else 'BP'
            want = label_of(cells) if numbered else plain
            if (name.rstrip('bwFB') if '+' not in name else name) != want and not (not numbered and name == want):
                problems.append(f'rank {rank}: "{name}", {want} in the truth')
    with open(folder / 'truth_links.csv') as file:
        links = {(int(r['src_rank']), int(r['send_ns']), int(r['dst_rank']), int(r['receive_ns'])) for r in csv.DictReader(file)}
    if paired:
        # The key names places within a group, so groups of one hash would share keys; here none do.
        pairs = set()
        for found in ends.values():
            send, receive = ([e for e in found if e[0] == kind] for kind in ('hcom_send', 'hcom_receive'))
            pairs |= {(s[1], s[2], r[1], r[2]) for s in send for r in receive}
        if pairs != links:
            problems.append(f'{len(pairs & links)} of {len(links)} messages paired, {len(pairs - links)} wrong')
    return problems, blocks, len(links) if paired else 0


def main():
    if not MSPROF:
        print(f'0 passed, 0 failed, {len(CASES)} skipped (no msprof-analyze: set STAGELINE_RIVAL_MSPROF)')
        return 0
    failed = 0
    for name, (options, numbered, paired) in CASES.items():
        with tempfile.TemporaryDirectory() as made:
            subprocess.run([BIN, 'simulate', *map(str, options), '--micro-batches', str(MICRO_BATCHES), '--steps', '2', '--jitter', '0.05',
                            '--format', 'ascend', '-o', made, '-q'], check=True)
            subprocess.run([MSPROF, 'cluster', '-m', 'pp_chart', '-d', made], check=True, capture_output=True)
            problems, blocks, links = check(pathlib.Path(made), numbered, paired)
        failed += bool(problems)
        print(f'{name}: {blocks} blocks, {links} messages{"" if not problems else ", NOT ALIKE"}')
        for problem in problems[:5]:
            print(f'  {problem}')
    print(f'{len(CASES) - failed} passed, {failed} failed')
    return 1 if failed else 0


sys.exit(main())
