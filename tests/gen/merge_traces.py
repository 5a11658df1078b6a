"""Merges profiler traces of several ranks into one file, as other people's scripts do.

  python3 tests/gen/merge_traces.py sglang|tracefuse|combine OUT FILE…

With sglang, processes become "[TP01-PP00] 4711", ids of ranks collide, and top-level members are the first file's.
With tracefuse, every event gets args.rank, and integer processes, ids and correlations are shifted. There are no top-level members.
With combine, events come one after another (torch's --combine, and most scripts).
"""
import gzip
import json
import pathlib
import sys


def load(path):
    data = pathlib.Path(path).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b'\x1f\x8b' else data)


def save(path, trace):
    text = json.dumps(trace).encode()
    pathlib.Path(path).write_bytes(gzip.compress(text, 1) if str(path).endswith('.gz') else text)
    return pathlib.Path(path)


def sglang(files, out, tp=None, labels=None):
    """Ranks in the order of `files`, TP first; `labels` overrides "TP00-PP00"."""
    traces = [load(f) for f in files]
    tp = tp or len(traces)
    merged = {**{k: v for k, v in traces[0].items() if k != 'traceEvents'},
              'deviceProperties': [d for t in traces for d in t.get('deviceProperties', [])], 'traceEvents': []}
    for rank, trace in enumerate(traces):
        label = labels[rank] if labels else f'TP{rank % tp:02}' + (f'-PP{rank // tp:02}' if tp < len(traces) else '')
        for event in trace['traceEvents']:
            merged['traceEvents'].append({**event, 'pid': f'[{label}] {event.get("pid", "")}'})
    return save(out, merged)


def tracefuse(files, out):
    traces = [load(f) for f in files]
    numbers = [e[k] for e in traces[0]['traceEvents'] for k in ('pid', 'id') if isinstance(e.get(k), int)]
    numbers += [e['args']['correlation'] for e in traces[0]['traceEvents'] if isinstance((e.get('args') or {}).get('correlation'), int)]
    step = 10 ** len(str(max(numbers) + 1))
    events, names = [], []
    for rank, trace in enumerate(traces):
        for event in trace['traceEvents']:
            if event.get('cat') == 'Trace' or event.get('name') in ('process_name', 'process_labels', 'process_sort_index'):
                continue
            event = {**event, 'args': {**(event.get('args') or {}), 'rank': rank, 'pid_raw': event.get('pid')}}
            for key, holder in (('pid', event), ('id', event), ('correlation', event['args'])):
                if isinstance(holder.get(key), int):
                    if key != 'pid':
                        event['args'][key + '_raw'] = holder[key]
                    holder[key] += rank * step
            events.append(event)
        pid = next(e['pid'] for e in events if e['args']['rank'] == rank and e.get('cat') == 'cpu_op')
        names.append({'ph': 'M', 'name': 'process_name', 'pid': pid, 'tid': 0, 'args': {'name': f'RANK {rank} - CPU'}})
    return save(out, {'traceEvents': events + names})


def combine(files, out):
    traces = [load(f) for f in files]
    merged = {'traceEvents': [e for t in traces for e in t['traceEvents']]}
    return save(out, {**merged, **{k: v for k, v in traces[0].items() if k != 'traceEvents'}})


if __name__ == '__main__':
    {'sglang': sglang, 'tracefuse': tracefuse, 'combine': combine}[sys.argv[1]](sys.argv[3:], sys.argv[2])
