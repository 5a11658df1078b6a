"""The relations: each takes a Case (a run, its answer, an empty folder) and returns what the program says otherwise, as sentences.

NotGiven, raised with a reason, means that this source cannot have the change; Absent that the run has not what the relation is about.
"""
import collections
import copy
import json
import re
import shutil
from decimal import Decimal

from answers import ask, asked, compare, problems, stageline
from sources import DAY_NS, Chrome, NotGiven, open_source, read_bytes, write_bytes

YEAR_NS = 365 * DAY_NS
# These facts give the length and amount of the recording, not where a step's time goes.
AMOUNT = r'(count:flaws|ns:recording|kind:|info:slices|count:steps_all|problem:|info:clock)'
# Relation (k) excludes facts whose definition has a length in absolute time. They are idle time by cause, copies that a call
# waited for (it returns within 20 or 100 µs of their end), and late starts and the remainder of a loss in a simulation, in which timestamps of one
# moment may differ by 50 µs.
IDLE = r'(device\.idle|launch\.bound|host\.(allocator|blocked|busy|collective|collector|sync)|input\.loading|copies\.pageable)'
ABSOLUTE = rf'ns:finding\.\d|ns:left|(ns:finding|share:finding|place:)\.?{IDLE}|(ns|share):finding\.host\.late_starts'
# Shares and findings, without the words around them.
VERDICT = r'(findings|share:|ns:step|ns:period|explain:|refused)'


class Absent(Exception):
    """The run lacks what the relation changes."""


class Case:
    def __init__(self, path, folder):
        self.path, self.folder, self.number = path, folder, 0
        self.base = self.told(self.copy())

    def copy(self):
        """A copy of the run, in a folder of its own, under one and the same name."""
        self.number += 1
        name = 'run' if self.path.is_dir() else 'run' + ''.join(self.path.suffixes[-2:])
        target = self.folder / str(self.number) / name
        target.parent.mkdir(parents=True)
        if self.path.is_dir():
            shutil.copytree(self.path, target, copy_function=shutil.copyfile)
            for inner in target.rglob('*'):
                inner.chmod(0o755 if inner.is_dir() else 0o644)
            target.chmod(0o755)
        else:
            shutil.copyfile(self.path, target)
        return target

    def format(self):
        return (asked(None, 'info', self.path, '--json') or {}).get('format')

    def source(self):
        return open_source(self.copy())

    def chrome(self, steps=False):
        source = self.source()
        if not isinstance(source, Chrome) or 'problem:pftrace.json_twin' in self.base:  # then the JSON is not read
            raise NotGiven('no event can be added to this format by these tests')
        if steps and not all(source.steps(i) for i in range(len(source.paths))):
            raise Absent('no steps')
        return source

    def told(self, root, *options, **more):
        return ask(root, *options, **more)

    def after(self, source, **how):
        source.save()
        return compare(self.base, self.told(source.root), **how)


def moved(case, by, only=None, **how):
    source = case.source()
    source.times(lambda t: t + by, only)
    return case.after(source, **how)


def order(case):
    """(a) Files in another order."""
    if case.path.is_file():
        raise Absent('one file')
    root = case.copy()
    inner = sorted(p for p in root.iterdir())
    if len(inner) < 2:
        raise Absent('one file')
    if not all(p.is_file() and b'"distributedInfo"' in read_bytes(p) for p in inner):
        raise NotGiven('the rank stands in the name of the file')
    for number, path in enumerate(inner):
        ending = ''.join(path.suffixes[-2 if path.suffix in ('.gz', '.zst') else -1:])
        path.rename(root / f'{"zyxwvutsrqponmlkjihgfedcba"[number % 26]}-trace-{"abcdefgh"[number // 26]}{ending}')
    return compare(case.base, case.told(root), ignore='problem:')


def year(case):
    """(b) All times a year later."""
    return moved(case, YEAR_NS)


def far(case):
    """(b) All times 2^53 ns later."""
    return moved(case, 2 ** 53)


def clock(case):
    """(c) The clock of one machine (of one rank where none is named) shifted, where clocks are fitted."""
    if case.base.get('info:ranks', 0) < 2:
        raise Absent('one rank')
    source = case.source()
    paths = getattr(source, 'paths', [None])
    if len(paths) < 2:
        raise NotGiven('all ranks are in one file')
    parts = asked(source.root.parent, 'info', source.root.name, '--json').get('parts', [])
    hosts = {part['host'] or str(part['rank']) for part in parts}
    moved = [part for part in parts if (part['host'] or str(part['rank'])) == max(hosts)]
    chosen = [i for i, path in enumerate(paths) if any(str(path).endswith(f) or f in str(path) for part in moved for f in part['files'])]
    if len(hosts) < 2 or not chosen or len(chosen) == len(paths):
        raise Absent('the source names one clock for all ranks')
    for index in chosen:
        source.times(lambda t: t + 3_700_000, index)
    source.save()
    told, off = [], 0
    for root in (case.copy(), source.root):
        fitted = (asked(root.parent, 'align', root.name, '--format', 'json') or {}).get('tables')
        rows = fitted[0]['rows'] if fitted else []
        if not rows or any(row['offset_half_ns'] is None or row['method'] == 'shared clock' for row in rows):
            raise Absent('no messages or collectives to fit the clocks by, or one clock for all ranks')
        off += max(row['offset_half_ns'] for row in rows)
        told.append(case.told(root, tables=False))
    share = 1e-3 + off / (told[0].get('ns:step') or 1)
    return compare(*told, only=r'(findings|share:(parts|lost)|explain:|refused)', share=share)


def packed(case):
    """(e) The same files in gzip, in zstd, and as they are."""
    found = []
    for ending in ('.gz', '.zst', ''):
        root = case.copy()
        files = [p for p in root.rglob('*') if p.is_file()] if root.is_dir() else [root]
        if any(len(p.relative_to(root).parts) > 1 for p in files if p != root) or not all(re.search(r'(\.(json|csv|pftrace|jsonl|log|chrome_trace)|workerlog\.\d+|rank_\d+)(\.gz|\.zst)?$', p.name) for p in files):
            raise NotGiven('a database, a snapshot, or a folder of a profiler')
        for path in files:
            data = read_bytes(path)
            path.unlink()
            other = path.with_name(re.sub(r'\.(gz|zst)$', '', path.name) + ending)
            write_bytes(other, data)
            root = other if path == root else root
        found += [f'{ending or "plain"}: {line}' for line in compare(case.base, case.told(root), ignore='problem:')]
    return found


def exported(case, kind, ending):
    root = case.copy()
    target = root.parent / 'out' / f'run{ending}'
    target.parent.mkdir()
    code, _, err = stageline('export', root.name, '-o', target, '--to', kind, '-q', cwd=root.parent)
    if code not in (0, 1):
        raise NotGiven('the export refuses: ' + (err.strip().splitlines() or ['?'])[0][:120])
    return target


def pftrace(case):
    """(e) Our own .pftrace of it."""
    if not case.base.get('info:slices') and not case.base.get('info:cells'):
        raise NotGiven('no slices and no cells')
    if case.format() in ('flight-recorder', 'memory-snapshot'):
        raise NotGiven('which calls never completed, and what memory holds, is no timeline')
    if any(fact.startswith('share:parts.phase-') for fact in case.base):
        raise NotGiven('phases of requests and of RL steps are of the source, and the export has slices')
    told = case.told(exported(case, 'perfetto', '.pftrace'))
    # Ranks without a common clock are drawn by the maps that were fitted, and fitted again.
    share = 1e-6 if case.base.get('info:clock') == 'shared' else 2e-3
    return compare(case.base, told, only=VERDICT + '|kind:', share=share)


def digest(case):
    """(e) Its digest."""
    root = case.copy()
    code, _, err = stageline('digest', root.name, '-o', 'out', '-q', cwd=root.parent)
    if code not in (0, 1):
        raise NotGiven('no digest: ' + (err.strip().splitlines() or ['?'])[0][:120])
    return compare(case.base, case.told(root.parent / 'out'), ignore=r'problem:|info:clock|text:.*|cell:|ns:.*\.\d+\.|kind:|count:flaws')


def rank_in_file(event):
    """Distinguishes the ranks of a merged file, by SGLang's and TraceFuse's processes."""
    pid = event.get('pid')
    return pid // 10 ** 9 if isinstance(pid, int) else str(pid).partition(']')[0] if ']' in str(pid) else ''


def add_work(source, index, at, length):
    """Adds a launch and its kernel of this length from `at` (ns), as the file's own are and next to them; host work alone where it has none."""
    events = source.events(index)
    host = next(e for e in source.steps(index) or events if e.get('ph') == 'X')
    kernel = next((e for e in events if str(e.get('cat', '')).lower() == 'kernel' and rank_in_file(e) == rank_in_file(host)), None)
    added = [{**host, 'name': 'aten::add', 'cat': 'cpu_op', 'ts': at / 1000, 'dur': length / 1000, 'args': {'External id': 987654}}]
    if kernel:
        link = 987654321
        args = {**kernel.get('args', {}), 'correlation': link}
        args.pop('External id', None)
        launch = {**host, 'name': 'cudaLaunchKernel', 'cat': 'cuda_runtime', 'ts': at / 1000 + 1, 'dur': Decimal(5), 'args': {'correlation': link, 'cbid': 211}}
        added += [launch, {**kernel, 'ts': at / 1000 + 10, 'dur': length / 1000, 'args': args}]
    # A reader knows the rank of an event in a merged file by its position.
    place = next(i for i, e in enumerate(events) if e is (kernel or host)) + 1
    events[place:place] = added


def without_amounts(facts):
    """How much of the recording lies outside the steps does not belong to a step, and how many kernels could use tensor cores is of the recording."""
    return {**facts, 'findings': tuple(f for f in facts.get('findings', ()) if f not in ('device.unused', 'tensor_cores.unused'))}


def outside(case):
    """(f) Work before the first and after the last step."""
    found = []
    for late in (False, True):
        source = case.chrome(steps=True)
        first, last = source.first(), source.last()
        if 'share:parts.idle' in case.base:
            raise NotGiven('which step device work belongs to follows from its launch, which this recording does not name')
        small = (last - first) / 40
        if first < 2 * small:  # a stamp of 0 means that there is none, so no time may come before it
            source.times(lambda t: t + DAY_NS)
            first, last = first + DAY_NS, last + DAY_NS
        for index in range(len(source.paths)):
            add_work(source, index, last + small if late else first - 2 * small, small / 2)
        source.save()
        found += compare(without_amounts(case.base), without_amounts(case.told(source.root)), ignore=AMOUNT + r'|cell:|ns:.*\.\d+\.|ns:self_time|ns:device_window|text:lead|.*device\.unused|.*tensor_cores|ns:finding\.\d', share=1e-6)
    return found


def between(case):
    """(f) Work between recorded steps that are not neighbours, against the same gap without."""
    told = []
    for filled in (False, True):
        source = case.chrome(steps=True)
        for index in range(len(source.paths)):
            steps = source.steps(index)
            if len({rank_in_file(e) for e in steps}) > 1:
                raise NotGiven('ranks of one file, whose steps begin at different times, cannot be moved apart')
            if len(steps) < 3:
                raise Absent('fewer than three steps: two do not say by how much their numbers grow')
            cut, gap = source.stamp(steps[len(steps) // 2]['ts']) * 1000, 400 * 10 ** 6
            numbers = {e['name'] for e in steps[len(steps) // 2:]}
            for event in source.events(index):
                if event.get('name') in numbers:
                    event['name'] = re.sub(r'\d+', lambda m: str(int(m[0]) + 10), event['name'])
            source.times(lambda t: t + gap if t >= cut else t, index, lengths=False)
            if filled:
                # No longer than other work: launches near the end count as lost by the longest work that was recorded.
                add_work(source, index, cut + Decimal(gap) / 4, min(Decimal(gap) / 4, (source.last() - source.first() - gap) / 80))
        source.save()
        told.append(case.told(source.root))
    return compare(without_amounts(told[0]), without_amounts(told[1]), ignore=AMOUNT + r'|.*tensor_cores|cell:|ns:.*\.\d+\.|ns:self_time|ns:device_window', share=1e-6)


def bare(case):
    """(g) A rank without device work added."""
    source = case.chrome()
    if case.path.is_file() or not case.base.get('info:slices') or not any(source.is_device(e) for i in range(len(source.paths)) for e in source.events(i)):
        raise Absent('one file, or no device work')
    document = copy.deepcopy(source.documents[source.paths[0]])
    if not isinstance(document, dict):
        raise NotGiven('a list of events has no rank of its own')
    events = document['traceEvents']
    steps = source.steps(0)
    kept = lambda e: e.get('ph') == 'M' or e.get('cat') in ('cpu_op', 'Operator') and not re.search(r'nccl|comms|send|recv|c10d', str(e.get('name'))) or e in steps
    document['traceEvents'] = [e for e in events if kept(e)]
    known = [own['distributedInfo'].get('rank') for own in source.documents.values() if isinstance(own, dict) and isinstance(own.get('distributedInfo'), dict)]
    rank = next(n for n in range(case.base['info:ranks'], 1 << 20) if n not in known)
    if 'distributedInfo' in document:
        document['distributedInfo'] = {**document['distributedInfo'], 'rank': rank}
    source.write(source.paths[0].with_name(f'rank-{rank}.pt.trace.json'), document)
    return compare(case.base, case.told(source.root), only=r'(findings|share:parts|ns:step$|ns:step_period|ns:period|explain:|refused|place:)', share=1e-6)


def idle(case):
    """(h) Adds an idle stream, an unused lane and an unknown category."""
    source = case.chrome()
    for index in range(len(source.paths)):
        events = source.events(index)
        device = next((e for e in events if source.is_device(e)), None)
        host = next((e for e in events if e.get('ph') == 'X' and not source.is_device(e)), events[0])
        middle = (source.first(index) + source.last(index)) / 2000
        for event, lane in ((device, 95), (host, 987601)):
            if event:
                events.append({'ph': 'M', 'name': 'thread_name', 'pid': event['pid'], 'tid': lane, 'ts': 0, 'args': {'name': f'stream {lane}'}})
        events.append({'ph': 'X', 'cat': 'weather_report', 'name': 'rain', 'pid': host['pid'], 'tid': 987602, 'ts': middle, 'dur': Decimal(3), 'args': {}})
        events.append({'ph': 'i', 'cat': 'weather_report', 'name': 'sun', 's': 't', 'pid': host['pid'], 'tid': 987602, 'ts': middle})
    return case.after(source, ignore=AMOUNT + '|ns:self_time.rain')


def around(case):
    """(i) Adds an annotation around everything."""
    source = case.chrome()
    for index in range(len(source.paths)):
        host = (source.steps(index) or [e for e in source.events(index) if str(e.get('cat')) in ('cpu_op', 'user_annotation', 'Operator')] or [None])[0]
        if host is None:
            raise NotGiven('no operators or annotations of torch')
        start, end = source.first(index), source.last(index)
        if not any(source.is_device(e) for e in source.events(index)):  # the host's bar is of its own process
            own = [(source.stamp(e['ts']) * 1000, (source.stamp(e['ts']) + source.stamp(e['dur'])) * 1000) for e in source.events(index)
                   if e.get('ph') == 'X' and e.get('pid') == host['pid'] and source.stamp(e.get('dur')) is not None]
            start, end = max(start, min(a for a, _ in own)), min(end, max(b for _, b in own))
        source.events(index).append({**host, 'name': 'whole program', 'cat': 'user_annotation', 'ts': start / 1000, 'dur': (end - start) / 1000, 'args': {}})
    source.save()
    one, told = without_amounts(case.base), without_amounts(case.told(source.root))
    return compare(one, told, ignore=AMOUNT + r'|ns:self_time|text:.*detail|.*device\.unused|ns:finding\.\d', share=1e-4)


def numbers(case):
    """(j) Other numbers in names: steps count from another start, annotations carry a counter."""
    source = case.chrome()
    known = r'(?i).*(step|iteration|dataloader|forward|backward|send|recv|stage|micro|optimizer|nccl|gloo|##|PP|F\d|B\d|W\d|I\d|cuda|hip)'
    for index in range(len(source.paths)):
        count, names = 0, collections.Counter(str(event.get('name')) for event in source.events(index))
        for event in source.events(index):
            name = str(event.get('name'))
            if re.match(r'ProfilerStep\s?#\d+$', name):
                event['name'] = re.sub(r'\d+', lambda m: str(int(m[0]) + 1000), name)
            elif event.get('cat') == 'user_annotation' and not re.match(known, name) and names[name] > 2:  # two may be two things
                count += 1
                event['name'] = f'{name} {count}'
    return case.after(source, ignore=AMOUNT + r'|cell:|text:|place:|ns:self_time|ns:.*\.\d+\.', share=1e-6)


def doubled(case):
    """(k) All times doubled."""
    source = case.source()
    first = source.first() if hasattr(source, 'first') else 0
    source.times(lambda t: first + 2 * (t - first))
    source.save()
    told = case.told(source.root)
    if 'clock.causality' in case.base.get('findings', ()) and told.get('text:why_not') and not case.base.get('text:why_not'):
        raise NotGiven('negative times are taken as they are down to -10 ms, and clocks that were not aligned make some')
    # Idle time is sorted by lengths of calls and gaps in absolute time; a gap's kind may change, their sum may not.
    for facts in (one := dict(case.base), told):
        for group in ('share:parts', 'share:device_parts'):
            facts[group + '.idle'] = sum(v or 0 for k, v in facts.items() if k.startswith(group + '.idle'))
    lost = r'|(ns|share):lost' if any(re.match(IDLE, f) for facts in (one, told) for f in facts.get('findings', ())) else ''
    for facts in (one, told):
        facts['findings'] = tuple(f for f in facts.get('findings', ()) if not re.match(IDLE, f))
    if told.get('share:hfu'):
        told['share:hfu'] *= 2  # the same FLOPs take twice the time
    # Which message a cell waited for is told by timestamps of one moment, which may differ by 50 µs, in a step and in the one that it is compared
    # with, whatever their difference: prices are shares of the step. Clocks that are not one are fitted again, as for (e).
    share = 1e-6
    if one.get('info:cells'):
        share = min(1e-3, 5e4 / (one.get('ns:step') or 1)) if one.get('info:clock') == 'shared' else 2e-3
        lost += '|ns:(finding|lost|saving)'
    return compare(one, told, scale=2, ignore=r'text:|problem:|cell:|.*idle[-_]|' + ABSOLUTE + lost, share=share)


def middle(case):
    """(l) Steps 3 to n-2: shares stay within what single steps have."""
    info = json.loads(stageline('info', case.path, '--json', '-q')[1] or '{}')
    steps = info.get('step_numbers') or []
    if len(steps) < 7 or len(steps) > 40:
        raise Absent('fewer than seven steps' if len(steps) < 7 else 'more than forty steps')
    def one(a, b):
        """Shares of the steps alone, for what lies between steps is of no single one."""
        facts = within_steps(case.told(case.path, '--steps', f'{a}:{b}', tables=False))
        return {k: v for k, v in facts.items() if k.startswith('share:')}
    single = [one(s, s) for s in steps[2:-2]]
    part = one(steps[2], steps[-3])
    found = []
    for name, value in part.items():
        values = [s.get(name) or 0 for s in single]
        if value is not None and not min(values) - 0.005 <= value <= max(values) + 0.005:
            found.append(f'{name}: {value:.4f} of steps {steps[2]} to {steps[-3]}, {min(values):.4f} to {max(values):.4f} of single ones')
    return found


def repeat(source):
    """Adds the run once more, one usual pause between steps later."""
    ids = ('correlation', 'External id', 'Ev Idx', 'Record function id', 'Python id', 'Python parent id', 'Seq', 'Sequence number')
    own = [e for e in source.steps(0) if rank_in_file(e) == rank_in_file(source.steps(0)[0])]
    begins = [source.stamp(e['ts']) * 1000 for e in own]
    ends = max((source.stamp(e['ts']) + source.stamp(e['dur'])) * 1000 for index in range(len(source.paths)) for e in source.steps(index))
    lengths = [source.stamp(e['dur']) * 1000 for e in own]
    by = ends - begins[0] + max(0, sorted(b - a - length for a, b, length in zip(begins, begins[1:], lengths))[(len(begins) - 1) // 2])
    device = [(at, at + (source.stamp(e.get('dur')) or 0) * 1000) for index in range(len(source.paths)) for e in source.events(index)
              if source.is_device(e) and (at := (source.stamp(e.get('ts')) or 0) * 1000) > begins[0] - by]
    if device:  # a device that is behind its host is done with its work before the copy's begins
        by = max(by, min(max(end for _, end in device) - min(at for at, _ in device), by * 3 / 2))
    if source.last() - source.first() > by * 3 / 2:
        raise Absent('work outside the steps, which would lie in the steps of the other half')
    for index in range(len(source.paths)):
        numbers = [int(re.search(r'\d+', e['name'])[0]) for e in source.steps(index)]
        count = max(numbers) - min(numbers) + 1
        added = []
        for event in source.events(index):
            if event.get('ph') == 'M' or source.stamp(event.get('ts')) is None or not source.stamp(event['ts']) and not event.get('dur'):
                continue  # neither metadata nor records without a time
            event = {**event, 'ts': source.stamp(event['ts']) + by / 1000}
            if re.match(r'ProfilerStep\s?#\d+$', str(event.get('name'))):
                event['name'] = re.sub(r'\d+', lambda m: str(int(m[0]) + count), event['name'])
            if isinstance(event.get('args'), dict):
                event['args'] = {k: v + 100_000_000 * count if k in ids and isinstance(v, int) and v > 0 else v for k, v in event['args'].items()}
            if event.get('ph') in 'sft' and isinstance(event.get('id'), int):
                event['id'] += 100_000_000 * count
            added.append(event)
        source.events(index).extend(added)
    source.save()


def within_steps(facts):
    """The parts of the steps alone, and their mean length, without the time between steps."""
    within = 1 - (facts.get('share:parts.between') or 0)
    parts = {k: v / within for k, v in facts.items() if k.startswith('share:parts.') and k != 'share:parts.between' and v is not None}
    return parts | {'ns:step': (facts.get('ns:step') or 0) * within}


def repeated(case):
    """(m) The run twice, one after the other; of fewer than four steps, which do not say what is usual, four times against twice.

    Causes of pipelines are told from chance by whether they recur, and in a copy chance recurs too: there times and shares are compared."""
    source, one = case.chrome(steps=True), case.base
    steps = len({e['name'] for e in source.steps(0)})
    if min(steps, case.base.get('explain:steps') or 0) < 2:
        raise Absent('one step')
    if steps < 4:
        repeat(source)
        one = case.told(source.root)
    repeat(source)
    two = case.told(source.root)
    if not case.base.get('info:cells'):
        return compare(one, two, only=r'(findings|share:parts|ns:step$|ns:period)', share=0.03)
    if steps < 4:  # what a run does before its first forward and after its last cell lies between steps in a copy, of which there are few
        one, two = within_steps(one), within_steps(two)
    return compare(one, two, only=r'(share:parts|ns:step$|ns:period)', share=0.03)


def absurd(case):
    """(n) One record of every kind with absurd stamps: 0, below 0, a day early, 2^62."""
    found = []
    for name, at in (('0', lambda t: Decimal(0)), ('below 0', lambda t: Decimal(-5000)), ('a day early', lambda t: t - DAY_NS), ('2^62', lambda t: Decimal(2 ** 62))):
        source = case.chrome()
        if source.first() < 10 ** 13 and name != '2^62':
            continue  # stamps that count from the start of the recording: 0 is one of them
        for index in range(len(source.paths)):
            kinds = {}
            for event in source.events(index):
                if event.get('ph') == 'X' and source.stamp(event.get('ts')) is not None and not re.match('ProfilerStep', str(event.get('name'))):
                    kinds.setdefault(event.get('cat'), event)
            if not kinds:
                raise Absent('no whole slices')
            for event in kinds.values():
                args = {k: v for k, v in (event.get('args') or {}).items() if k not in ('correlation', 'External id')} if isinstance(event.get('args'), dict) else {}
                source.events(index).append({**event, 'args': args, 'ts': at(source.stamp(event['ts']) * 1000) / 1000})
        source.save()
        told = case.told(source.root)
        found += [f'{name}: {line}' for line in compare(case.base, told, ignore=AMOUNT + r'|ns:self_time|text:(note|.*detail)')]
        if not any(name.endswith(('.far_time', '.zero_time')) for name in problems(told)) and problems(told) == problems(case.base):
            found.append(f'{name}: no problem names the record')
    if case.chrome().first() < 10 ** 13 and not found:
        raise Absent('stamps that count from the start of the recording')
    return found


def without(case):
    """(o) One rank removed."""
    if case.path.is_file() or case.base.get('info:ranks', 0) < 3:
        raise Absent('fewer than three ranks')
    root = case.copy()
    inner = sorted(p for p in root.iterdir())
    if 'problem:kineto.ranks_by_order' in case.base:
        raise NotGiven('no file says its rank, so none is missing')
    parts = asked(root.parent, 'info', root.name, '--json').get('parts')
    if len(inner) != case.base['info:ranks'] or not parts:
        raise NotGiven('ranks are not one file or folder each')
    victim = inner[len(inner) // 2]
    number = parts[len(inner) // 2]['rank']
    shutil.rmtree(victim) if victim.is_dir() else victim.unlink()
    told = case.told(root)
    if told.get('info:ranks', 0) < len(inner) - 1:
        raise NotGiven('more than one rank was in it')
    if case.base.get('info:cells') and not told.get('info:cells') and 'problem:cells.no_flow' in told:
        raise NotGiven('messages that do not say to whom show no pipeline without the rank between, which info says')
    rank = rf'rank {number}\b'
    # A finding that names the removed rank says what is unknown now.
    new = [f for f in told.get('findings', ()) if f not in case.base.get('findings', ()) and not re.search(rank, str(told.get(f'text:{f}.1.title')))]
    found = [f'{f} is found that the whole run has not' for f in new]
    said = ' '.join(f'{name} {text}' for name, text in told.items() if name.startswith(('problem:', 'text:', 'refused:')))
    if 'missing' not in said and not re.search(rank, said):
        found.append('that a rank is missing is said nowhere')
    return found


def merged(case):
    """(d) Separate files merged into one, as SGLang and as TraceFuse do."""
    found = []
    for style in ('sglang', 'tracefuse'):
        source = case.chrome()
        if len(source.paths) < 2 or case.base.get('info:ranks') != len(source.paths):
            raise Absent('one file')
        if not all(isinstance(d, dict) and 'traceEvents' in d for d in source.documents.values()):
            raise NotGiven('lists of events are merged by neither')
        if style == 'tracefuse' and any('span_index' in d for d in source.documents.values()):
            continue  # TraceFuse merges torch's traces
        events, shift = [], {}
        for rank, path in enumerate(source.paths):
            for event in source.documents[path]['traceEvents']:
                event = dict(event)
                if style == 'sglang':
                    event['pid'] = f'[TP{rank:02d}] {event.get("pid", 0)}'
                else:
                    args = event['args'] if isinstance(event.get('args'), dict) else {}
                    event['args'] = args = {**args, 'rank': rank}
                    if isinstance(event.get('pid'), int):
                        args['pid_raw'], event['pid'] = event['pid'], event['pid'] + rank * 10 ** 9
                    if isinstance(event.get('id'), int):
                        args['id_raw'], event['id'] = event['id'], event['id'] + rank * 10 ** 9
                    if isinstance(args.get('correlation'), int):
                        args['correlation_raw'], args['correlation'] = args['correlation'], args['correlation'] + rank * 10 ** 9
                events.append(event)
        first = source.documents[source.paths[0]]
        document = {**first, 'traceEvents': events} if style == 'sglang' else {'traceEvents': events}
        target = source.root.parent / 'merged' / 'run.json'
        target.parent.mkdir()
        source.write(target, document)
        told, how = case.told(target), {'ignore': 'problem:|count:flaws|info:clock'}
        if told.get('info:clock') != case.base.get('info:clock'):  # the merged file names no machines, so clocks are fitted
            how = {'only': r'(findings|share:(parts|lost)|explain:|refused)', 'share': 3e-3}
        one = case.base
        if 'only' in how and 'share:device_parts.compute' not in one and 'share:parts.idle-host' not in one:  # nor who came last to hosts' collectives
            one, told = ({**x, 'findings': tuple(f for f in x.get('findings', ()) if f not in ('comm.waiting', 'rank.late'))} for x in (one, told))
        if style == 'tracefuse':  # it keeps no devices, so nothing is known of tensor cores
            how['ignore'] = how.get('ignore', 'problem:') + r'|.*tensor_cores|ns:finding\.\d'
            one = {**one, 'findings': tuple(f for f in one.get('findings', ()) if f != 'tensor_cores.unused')}
            # nor of their links
            one = {name: re.sub(r'NCCL estimates .*? for these sizes\.( First find why .*? these links\.)?', 'the profile does not give the peak rate of these links.', value) if name.startswith('text:comm.exposed') else value for name, value in one.items()}
        found += [f'{style}: {line}' for line in compare(one, told, **how)]
    return found


RELATIONS = {'a order': order, 'b year': year, 'b 2^53': far, 'c clock': clock, 'd merged': merged, 'e packed': packed, 'e pftrace': pftrace, 'e digest': digest,
             'f outside': outside, 'f between': between, 'g bare rank': bare, 'h idle': idle, 'i around': around, 'j numbers': numbers, 'k doubled': doubled,
             'l middle': middle, 'm repeated': repeated, 'n absurd': absurd, 'o without': without}
