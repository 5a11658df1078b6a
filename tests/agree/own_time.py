#!/usr/bin/env python3
"""One own time: the timeline's drawer, its areas, the flame graph and SQL agree on it, slice by slice and name by name.

  own_time.py [--shared | --small] [--verbose] [PATH…]

Own time of a slice is its duration without the host calls directly in it on its thread. A call is in another one if it begins
and ends there; calls that merely overlap are siblings. Every fixture of tests/golden that has slices is asked, with
--shared also the profiles of ../shared/data, with --small those of them up to 300 kB. Times are whole nanoseconds, so equal means equal.
"""
import collections
import json
import os
import struct
import sys

import run as agree  # before places, which makes another run.py findable
import places

sys.path.insert(0, str(places.HERE.parent / 'server'))
from serving import Server  # noqa: E402

MOST_ASKED = 300  # slices of a run that the drawer is asked about
PROFILES = ('kineto', 'kineto/hta', 'kineto/hta/*', 'sources/chrome', 'sources/merged', 'sources/torch215', 'imports/nsys', 'imports/pftrace', 'faults/torch_runs/*')


def decode(body):
    """The header and the columns of an answer of many numbers (docs/viewer-protocol.md)."""
    length = struct.unpack_from('<I', body)[0]
    header = json.loads(body[4:4 + length])
    base = (4 + length + 7) // 8 * 8
    form = {'f64': 'd', 'f32': 'f', 'u32': 'I', 'i32': 'i', 'u8': 'B'}
    return header, {c['name']: struct.unpack_from(f'<{c["count"]}{form[c["type"]]}', body, base + c['offset']) for c in header['columns']}


def differing(what, here, there, owner):
    return [f'{what}: {key}: {here[key]} ns, {owner} has {there.get(key)}' for key in here if here[key] != there.get(key)]


def of_area(server, run):
    """{number of the name: own time} over everything that the timeline draws; None where an answer cannot hold all names."""
    lanes = ','.join(str(lane['id']) for lane in run['lanes'] if lane['type'] != 'counter')
    _, _, body = server.get(f'/api/select?lanes={lanes}&t0=0&t1={run["span_ns"] + 1}&limit=2000')
    answer = json.loads(body)
    if answer['left_out']:
        return None
    sums = collections.Counter()
    for row in answer['rows']:
        sums[row['name_id']] += row['self_ns']
    return sums


def of_flame(server):
    """{frame: host time}; empty where some paths are left out."""
    status, _, body = places.settled(server, '/api/calls')
    if status != 200:
        return {}
    header, columns = decode(body)
    sums, count = collections.Counter(), len(columns['parent'])
    for r in range(len(header['ranks'])):
        for node in range(count):
            sums[header['frames'][columns['frame'][node]]] += round(columns['host_ns'][r * count + node])
    return {} if 9 in columns['kind'] else sums


def drawn(run, rows):
    """[(lane, number of the slice there, own time by SQL)]; lanes of one name within a rank are left out."""
    ranks = [rank['rank'] for rank in run['ranks']]
    of = collections.defaultdict(list)
    for rank, lane, own, begin in rows:
        of[rank, lane].append((own, begin))
    known = collections.defaultdict(list)
    for lane in run['lanes']:
        if lane['type'] in ('thread', 'stream'):
            known[ranks[lane['rank_index']], lane['name']].append(lane)
    return [(lanes[0]['id'], at, *value) for key, lanes in known.items() if len(lanes) == 1 and lanes[0]['slices'] == len(of[key])
            for at, value in enumerate(of[key])]


def compare(label, path):
    """Sentences about what disagrees, and how many times were compared."""
    rows = places.answer('sql', path, 'SELECT rank, lane, self_ns, start_ns FROM slices ORDER BY id', '--json', '--rows', '5000000')
    if not rows or not rows['rows']:
        return [], 0
    server = Server(str(path), '--port', '0', '--quiet')
    try:
        if server.wait_ready() != 'ready':
            return [], 0
        run = json.loads(server.get('/api/run')[2])
        if any(lane['type'] == 'cells' for lane in run['lanes']) or not run['lanes']:
            return [], 0
        by_id = dict(places.asked(path, 'SELECT name_id, self_ns FROM names'))
        calls = dict(places.asked(path, "SELECT name, SUM(self_ns) FROM slices WHERE lane_kind = 'host' GROUP BY name"))
        wrong, count = [], 0
        area = of_area(server, run)
        if area is not None:
            wrong += differing(f'{label}: area: name', area, by_id, 'SQL')
            count += len(area)
        flame = {name: ns for name, ns in of_flame(server).items() if ns > 0 and name in calls}
        wrong += differing(f'{label}: flame', flame, calls, 'SQL')
        count += len(flame)
        slices = drawn(run, rows['rows'])
        for lane, at, own, begin in slices[::max(1, len(slices) // MOST_ASKED)]:
            told = json.loads(server.get(f'/api/slice?lane={lane}&slice={at}')[2])
            count += 1
            if told['self_ns'] != own:
                wrong.append(f'{label}: drawer: {told["name"]} at {told["start_ns"]}: {told["self_ns"]} ns, SQL has {own}')
        return wrong, count
    finally:
        server.stop()


def main(arguments):
    options = [a for a in arguments if a.startswith('--')]
    paths = [a for a in arguments if not a.startswith('--')] or agree.fixtures()
    if '--shared' in options or '--small' in options:
        found = [p for top in PROFILES for p in sorted(agree.SHARED.glob(top + '/*'))]
        if '--small' in options:
            found = [p for p in found if sum(f.stat().st_size for f in [p, *p.rglob('*')] if f.is_file()) <= 300_000]
        print(f'{len(found)} shared inputs' if found else 'skipped: no ../shared/data')
        paths = [*paths, *found]
    wrong, count, runs = [], 0, 0
    for path in paths:
        own, compared = compare(os.path.relpath(path, agree.GOLDEN.parent), path)
        wrong += own
        count += compared
        runs += compared > 0
        if '--verbose' in options and compared:
            print(path, compared, len(own))
    for line in wrong[:60]:
        print(line)
    print(f'{count} own times of {runs} runs compared, {len(wrong)} differ')
    sys.exit(1 if wrong or not count else 0)


if __name__ == '__main__':
    main(sys.argv[1:])
