"""Answers from the files themselves, in plain Python: nothing of stageline, no library of tables. Times are decimals of microseconds, turned into
whole nanoseconds by digits. `answer(question, folder)` computes what a question's "independent" names."""
import csv
import decimal
import functools
import gzip
import io
import json
import pathlib
import re

DEVICE = {'kernel', 'gpu_memcpy', 'gpu_memset', 'Kernel', 'Memcpy', 'Memset'}


def text_of(path):
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == '.gz' else path.read_text()


def files_of(place):
    return [place] if place.is_file() else sorted(p for p in place.iterdir() if p.is_file() and p.name != 'config.json')


def ns(microseconds):
    return int((decimal.Decimal(str(microseconds)) * 1000).to_integral_value(decimal.ROUND_FLOOR))


# ---- profiles ------------------------------------------------------------------------------------------------------------


@functools.lru_cache(None)
def ranks(place):
    """Yields for each file its complete events: {name, cat, start, dur, args, pid, tid}, and its instants."""
    found = []
    for path in files_of(place):
        if '.json' not in path.name:
            continue
        data = json.loads(text_of(path), parse_float=decimal.Decimal)
        events = data['traceEvents'] if isinstance(data, dict) else data
        whole = [{'name': e['name'], 'cat': e.get('cat', ''), 'start': ns(e['ts']), 'dur': ns(e['dur']), 'args': e.get('args', {}), 'pid': e.get('pid'), 'tid': e.get('tid')}
                 for e in events if e.get('ph') == 'X' and 'dur' in e]
        rank = (data.get('distributedInfo') or {}).get('rank') if isinstance(data, dict) else None
        found.append({'rank': 0 if rank is None else int(rank), 'slices': whole, 'instants': [e for e in events if e.get('ph') in ('i', 'I')]})
    return sorted(found, key=lambda r: r['rank'])


def of_rank(place, rank):
    return next(r for r in ranks(place) if r['rank'] == rank)


def device(slices):
    return [s for s in slices if s['cat'] in DEVICE]


def is_communication(s):
    return s['cat'] in ('kernel', 'Kernel') and re.match(r'nccl|ncclDev|ncclKernel', s['name']) is not None


def is_computation(s):
    return s['cat'] in ('kernel', 'Kernel') and not is_communication(s)


def merged(slices):
    out = []
    for a, b in sorted((s['start'], s['start'] + s['dur']) for s in slices):
        if out and a <= out[-1][1]:
            out[-1][1] = max(out[-1][1], b)
        else:
            out.append([a, b])
    return out


def covered(slices):
    return sum(b - a for a, b in merged(slices))


def both(one, other):
    """Time in which intervals of both run."""
    a, b, total, i, j = merged(one), merged(other), 0, 0, 0
    while i < len(a) and j < len(b):
        total += max(0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total


def everything(place):
    return [s for r in ranks(place) for s in r['slices']]


def sums(slices, key=lambda s: s['name']):
    out = {}
    for s in slices:
        out[key(s)] = out.get(key(s), 0) + s['dur']
    return out


def largest(found):
    """The name with most; of equal ones the first by its letters."""
    return min(found, key=lambda name: (-found[name], name))


def quantile(values, q):
    values = sorted(values)
    at = q * (len(values) - 1)
    low = int(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


def launches(place, rank):
    """(call, work) of one correlation number."""
    slices = of_rank(place, rank)['slices']
    calls = {}
    for s in slices:
        if s['cat'] in ('cuda_runtime', 'cuda_driver', 'Runtime') and 'correlation' in s['args']:
            calls.setdefault(int(s['args']['correlation']), s)
    return [(calls[int(s['args']['correlation'])], s) for s in device(slices) if int(s['args'].get('correlation', -1)) in calls]


class Profile:
    """There is one function per kind of question; arguments are those of the question."""
    ranks = staticmethod(lambda p: len(ranks(p)))
    slices = staticmethod(lambda p: len(everything(p)))
    slices_of = staticmethod(lambda p, rank: len(of_rank(p, rank)['slices']))
    work = staticmethod(lambda p: len(device(everything(p))))
    work_of = staticmethod(lambda p, rank: len(device(of_rank(p, rank)['slices'])))
    busy = staticmethod(lambda p, rank: covered(device(of_rank(p, rank)['slices'])))
    containing = staticmethod(lambda p, word: sum(word in s['name'] for s in everything(p)))
    work_starting = staticmethod(lambda p, word: sum(s['name'].startswith(word) for s in device(everything(p))))
    calls = staticmethod(lambda p, name: sum(s['name'] == name for s in everything(p)))
    time_of = staticmethod(lambda p, name: sum(s['dur'] for s in everything(p) if s['name'] == name))
    longest_of = staticmethod(lambda p, name: max(s['dur'] for s in everything(p) if s['name'] == name))
    kernel_names = staticmethod(lambda p: len({s['name'] for s in device(everything(p))}))
    top_work = staticmethod(lambda p: largest(sums(device(everything(p)))))
    top_work_ns = staticmethod(lambda p: max(sums(device(everything(p))).values()))
    top_operator = staticmethod(lambda p: largest(sums([s for s in everything(p) if s['cat'] in ('cpu_op', 'Operator')])))
    operators = staticmethod(lambda p: len({s['name'] for s in everything(p) if s['cat'] in ('cpu_op', 'Operator')}))
    longest_work_ns = staticmethod(lambda p: max(s['dur'] for s in device(everything(p))))
    work_total = staticmethod(lambda p: sum(s['dur'] for s in device(everything(p))))
    copies = staticmethod(lambda p: sum(s['cat'] in ('gpu_memcpy', 'Memcpy') for s in everything(p)))
    copies_of = staticmethod(lambda p, start: sum(s['cat'] in ('gpu_memcpy', 'Memcpy') and s['name'].startswith(start) for s in everything(p)))
    copied_bytes = staticmethod(lambda p: sum(int(s['args'].get('bytes', 0)) for s in everything(p) if s['cat'] in ('gpu_memcpy', 'Memcpy')))
    streams = staticmethod(lambda p, rank: len({s['args'].get('stream') for s in device(of_rank(p, rank)['slices'])}))
    threads = staticmethod(lambda p, rank: len({(s['pid'], s['tid']) for s in of_rank(p, rank)['slices'] if s['cat'] in ('cpu_op', 'Operator')}))
    communication = staticmethod(lambda p: sum(covered([s for s in r['slices'] if is_communication(s)]) for r in ranks(p)))
    short = staticmethod(lambda p, rank: sum(k['dur'] < c['dur'] for c, k in launches(p, rank)))

    @staticmethod
    def span(p, rank):
        work = device(of_rank(p, rank)['slices'])
        return max(s['start'] + s['dur'] for s in work) - min(s['start'] for s in work)

    @staticmethod
    def idle_share(p, rank):
        return 1 - Profile.busy(p, rank) / Profile.span(p, rank)

    @staticmethod
    def idlest(p):
        idle = {r['rank']: Profile.span(p, r['rank']) - Profile.busy(p, r['rank']) for r in ranks(p)}
        return max(idle, key=idle.get)

    @staticmethod
    def busiest(p):
        busy = {r['rank']: Profile.busy(p, r['rank']) for r in ranks(p)}
        return max(busy, key=busy.get)

    @staticmethod
    def hidden_share(p, rank):
        work = of_rank(p, rank)['slices']
        talk, compute = [s for s in work if is_communication(s)], [s for s in work if is_computation(s)]
        return both(talk, compute) / covered(talk)

    @staticmethod
    def exposed(p):
        total = 0
        for r in ranks(p):
            talk, compute = [s for s in r['slices'] if is_communication(s)], [s for s in r['slices'] if is_computation(s)]
            total += covered(talk) - both(talk, compute)
        return total

    @staticmethod
    def longest_gap(p, rank):
        spans = merged(device(of_rank(p, rank)['slices']))
        return max(b[0] - a[1] for a, b in zip(spans, spans[1:]))

    @staticmethod
    def gaps(p, rank):
        return len(merged(device(of_rank(p, rank)['slices']))) - 1

    @staticmethod
    def delay(p, rank, q):
        return quantile([max(0, k['start'] - c['start'] - c['dur']) for c, k in launches(p, rank)], q)

    @staticmethod
    def peak(p):
        return max(int(e['args']['Total Allocated']) for r in ranks(p) for e in r['instants']
                   if e['name'] == '[memory]' and int(e['args'].get('Device Type', -1)) == 1)

    @staticmethod
    def steps(p):
        return sorted({int(s['name'].split('#')[1]) for s in everything(p) if s['name'].startswith('ProfilerStep#') and s['cat'] != 'gpu_user_annotation'})

    @staticmethod
    def step_time(p, rank, step):
        return next(s['dur'] for s in of_rank(p, rank)['slices'] if s['name'] == f'ProfilerStep#{step}' and s['cat'] != 'gpu_user_annotation')

    @staticmethod
    def absent(p, word):
        """1: no event's name or category has this in it."""
        return int(not any(word in s['name'] or word in s['cat'] for s in everything(p)) and not any(word in e['name'] for r in ranks(p) for e in r['instants']))


# ---- pipelines -----------------------------------------------------------------------------------------------------------


@functools.lru_cache(None)
def operations(place):
    """Reads rows of a table of operations from its CSV; rows without a time are skipped."""
    def is_time(text):
        try:
            return decimal.Decimal(text) >= 0
        except decimal.InvalidOperation:
            return False

    rows = [row for path in files_of(place) if '.csv' in path.name for row in csv.DictReader(io.StringIO(text_of(path)))]
    return [row for row in rows if is_time(row['start_ts']) and is_time(row['duration'])]


@functools.lru_cache(None)
def dumps(place):
    """Returns for each rank of Primus' dumps {iteration: {fwd_start, fwd_end, bwd_start, bwd_end}}, in milliseconds."""
    return {int(re.search(r'pp_rank_(\d+)', path.name)[1]): json.loads(text_of(path)) for path in files_of(place) if path.name.startswith('pp_rank_')}


@functools.lru_cache(None)
def golden_cells(place):
    rows = []
    for path in files_of(place):
        if path.name.startswith('workerlog'):
            rank = int(path.name.split('.')[1])
            for line in path.read_text().splitlines():
                m = re.search(r'type = (\S+), micro_batch_id = (\d+), job_start_time = ([\d.]+), job_end_time = (\d+\.\d{6})$', line)
                if m and decimal.Decimal(m[3]) > 0:
                    rows.append({'rank': rank, 'type': m[1], 'micro_batch': int(m[2]), 'dur': int((decimal.Decimal(m[4]) - decimal.Decimal(m[3])) * 1_000_000)})
    return rows


def seconds(text):
    return decimal.Decimal(text) * 10**9


class Table:
    """Tables of operations."""
    rows = staticmethod(lambda p: len(operations(p)))
    different = staticmethod(lambda p, column: len({r[column] for r in operations(p)}))
    of_type = staticmethod(lambda p, *names: sum(r['optype'] in names for r in operations(p)))
    of_stage = staticmethod(lambda p, stage, *names: sum(int(r['stage']) == stage and r['optype'] in names for r in operations(p)))
    time_of = staticmethod(lambda p, *names: int(sum(seconds(r['duration']) for r in operations(p) if r['optype'] in names)))
    mean_of = staticmethod(lambda p, stage, name: float(Table._mean([r for r in operations(p) if int(r['stage']) == stage and r['optype'] == name])))
    longest_of = staticmethod(lambda p, name: int(max(seconds(r['duration']) for r in operations(p) if r['optype'] == name)))

    @staticmethod
    def _mean(rows):
        return sum(seconds(r['duration']) for r in rows) / len(rows)

    @staticmethod
    def slowest_rank(p, *names):
        """Whose operations of these kinds take longest together."""
        total = {}
        for r in operations(p):
            if r['optype'] in names:
                total[int(r['rank'])] = total.get(int(r['rank']), 0) + seconds(r['duration'])
        return max(total, key=total.get)

    @staticmethod
    def published(p, file, over, under):
        """Returns a quotient of the numbers that the run's publisher wrote next to it."""
        value = json.loads(text_of(p.parent / file))
        return value[over] / value[under]


class Dump:
    """Primus' dumps."""
    ranks = staticmethod(lambda p: len(dumps(p)))
    iterations = staticmethod(lambda p: len(dumps(p)[0]))
    forwards = staticmethod(lambda p: sum(len(i['fwd_start']) for r in dumps(p).values() for i in r.values()))

    @staticmethod
    def busy(p, rank, iteration):
        one = list(dumps(p)[rank].values())[iteration]
        return sum(b - a for kind in ('fwd', 'bwd') for a, b in zip(one[kind + '_start'], one[kind + '_end'])) * 1e6

    @staticmethod
    def busiest(p, iteration):
        return max(dumps(p), key=lambda rank: Dump.busy(p, rank, iteration))

    @staticmethod
    def warm_up(p, rank):
        """Forwards of the first iteration that end before the rank's first backward begins."""
        one = list(dumps(p)[rank].values())[0]
        return sum(end <= min(one['bwd_start']) for end in one['fwd_end'])

    @staticmethod
    def longest_backward(p, rank):
        return max(b - a for i in dumps(p)[rank].values() for a, b in zip(i['bwd_start'], i['bwd_end'])) * 1e6


class Log:
    cells = staticmethod(lambda p: len(golden_cells(p)))
    of_type = staticmethod(lambda p, name: sum(r['type'] == name for r in golden_cells(p)))
    time_of = staticmethod(lambda p, name: sum(r['dur'] for r in golden_cells(p) if r['type'] == name))
    busy = staticmethod(lambda p, rank: sum(r['dur'] for r in golden_cells(p) if r['rank'] == rank and r['type'] in ('forward', 'backward')))
    micro_batches = staticmethod(lambda p: len({r['micro_batch'] for r in golden_cells(p) if r['type'] == 'forward'}))


def answer(question, folder):
    kind, name, *arguments = question['independent']
    if kind == 'same':  # a fact that a person has looked up, with its source in "source"
        return name
    return getattr({'profile': Profile, 'table': Table, 'dump': Dump, 'log': Log}[kind], name)(pathlib.Path(folder), *arguments)
