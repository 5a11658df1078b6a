"""Pipelines in CUDA graphs: marks of nodes (torch.cuda.graph_annotations) make cells of every replay, the capture makes none."""
import csv
import io
import json
import pathlib
import random
import sys
import unittest

from support import SHARED, Case, flaws, info, needs_shared, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import perfetto  # noqa: E402

SAMPLES = SHARED / 'sources' / 'torch215'
GRAPH = 9


ACTIONS = (('F', 0, (30, 40)), ('F', 1, (31, 42)), ('B', 0, (60, 70, 5)), ('B', 1, (61, 77, 6)))


def trace(marks=True, capture=False, replays=3, late_us=0, lanes=False, rank=1, calls=None):
    """Returns events and cells as (step, kind, micro-batch, start µs, µs). A replay is one launch; two streams take turns.

    `calls` captures them all: a function of the list of (action or '', call) that may change it."""
    events, cells, at = [], [], 1000.0

    def add(cat, name, ts, dur, tid, /, **args):
        device = cat in ('kernel', 'gpu_memcpy')
        events.append({'ph': 'X', 'cat': cat, 'name': name, 'pid': 0 if device else 500, 'tid': tid, 'ts': ts, 'dur': dur, 'args': args})

    if calls:
        captured = [call for kind, micro_batch, lengths in ACTIONS for call in [(f'PP:1{kind}{micro_batch}', 'cudaLaunchKernel')] * len(lengths) + [('', 'cudaLaunchKernel')]]
        captured = calls(captured) or captured
        add('user_annotation', 'ProfilerStep#4', at, 1400, 500)
        add('user_annotation', 'capture', at + 5, 1300, 500)  # around it all: no node's name
        add('cuda_runtime', 'cudaStreamBeginCapture', at + 10, 5, 500, correlation=1)
        for k, (name, call) in enumerate(captured):
            start = at + 50 + 50 * k
            if name and (k == 0 or captured[k - 1][0] != name):
                add('user_annotation', name, start, 50 * sum(one == name for one, _ in captured) - 5, 500)
            add('cpu_op', 'aten::mm' if name else 'aten::add', start + 5, 30, 500)
            add('cuda_runtime', call, start + 10, 10, 500, correlation=10 + k)
            add('cuda_driver', 'cuLaunchKernel' if 'Kernel' in call else 'cuMemsetD8Async', start + 12, 5, 500, correlation=10 + k)
        add('cuda_runtime', 'cudaStreamEndCapture', at + 1200, 5, 500, correlation=2)
        at += 1500
    if capture:
        add('user_annotation', 'ProfilerStep#4', at, 900, 500)
        add('cuda_runtime', 'cudaStreamBeginCapture', at + 10, 5, 500, correlation=1)
        for k, name in enumerate(['PP:1F0', 'PP:1F1', 'PP:1B0', 'PP:1B1']):
            add('user_annotation', name, at + 50 + 100 * k, 90, 500)
            add('cpu_op', 'aten::mm', at + 60 + 100 * k, 20, 500)
            add('cuda_runtime', 'cudaLaunchKernel', at + 65 + 100 * k, 5, 500, correlation=10 + k)
        add('cuda_runtime', 'cudaStreamEndCapture', at + 500, 5, 500, correlation=2)
        at += 1000
    for replay in range(replays):
        step, correlation = 5 + replay, 100 + replay
        add('user_annotation', f'ProfilerStep#{step}', at, 1400, 500)
        add('cuda_runtime', 'cudaGraphLaunch', at + 10, 20, 500, correlation=correlation)
        device = at + 40 + late_us
        nodes = iter(range(GRAPH << 32 | 1, GRAPH << 32 | 99))
        for kind, micro_batch, lengths in ACTIONS:
            start = device
            for k, dur in enumerate(lengths):
                node = next(nodes)
                named = {'name': f'PP:1{kind}{micro_batch}'} if marks else {}
                stream = (7, 20)[k % 2]
                where = {'stream': 60 + k % 2, 'original_stream': stream} if lanes else {'stream': stream}
                add('kernel', 'gemm', device, dur, where['stream'], device=0, correlation=correlation, **where, **{'graph id': GRAPH, 'graph node id': node}, **named)
                device += dur + 2
            cells.append((step, kind, micro_batch, start, device - 2 - start))
            add('kernel', 'elementwise', device, 3, 7, device=0, correlation=correlation, stream=7, **{'graph id': GRAPH, 'graph node id': next(nodes)})
            device += 10
        at += 1500
    return {'schemaVersion': 1, 'distributedInfo': {'backend': 'nccl', 'rank': rank, 'world_size': 2}, 'traceEvents': events}, cells


def cells_of(path):
    text = run('sql', path, "SELECT step, kind, micro_batch, start_ns, end_ns - start_ns AS dur FROM cells WHERE kind IN ('F', 'B')", '--format', 'csv', '-q', check=0).out
    rows = [(int(r['step']), r['kind'], int(r['micro_batch']), int(r['start_ns']), int(r['dur'])) for r in csv.DictReader(io.StringIO(text))]
    return sorted(rows)


class GraphMarksTest(Case):
    def write(self, made):
        path = self.dir / 'rank1.json'
        path.write_text(json.dumps(made))
        return path

    def wanted(self, cells, made):
        first = min(e['ts'] for e in made['traceEvents'])
        return sorted((step, kind, m, round((start - first) * 1000), round(dur * 1000)) for step, kind, m, start, dur in cells)

    def test_marked_nodes_are_the_cells_of_each_replay(self):
        for how in ({}, {'lanes': True}, {'capture': True}, {'late_us': 1450}):  # work may run while the host is a step ahead
            made, cells = trace(**how)
            path = self.write(made)
            self.assertEqual(cells_of(path), self.wanted(cells, made), how)
            self.assertNotIn('cells.steps', flaws(info(path)), how)  # ProfilerStep# separates them
        self.assertIn('PP:1F0', run('sql', path, "SELECT DISTINCT name FROM slices WHERE category = 'gpu_user_annotation'", '--format', 'csv', '-q', check=0).out)

    def test_the_order_of_events_does_not_matter(self):
        made, cells = trace(capture=True)
        draw = random.Random(4)
        for _ in range(5):
            draw.shuffle(made['traceEvents'])
            self.assertEqual(cells_of(self.write(made)), self.wanted(cells, made))

    def test_moved_nodes_count_for_their_own_stream(self):
        streams = [run('sql', self.write(trace(lanes=lanes)[0]), 'SELECT DISTINCT stream FROM slices WHERE stream IS NOT NULL ORDER BY 1', '--format', 'csv', '-q', check=0).out.split()
                   for lanes in (False, True)]
        self.assertEqual(streams[0], ['stream', '7', '20'])
        self.assertEqual(streams[1], streams[0])

    def test_a_capture_is_no_pipeline(self):
        path = self.write(trace(marks=False, capture=True)[0])
        about = info(path)
        self.assertEqual(cells_of(path), [])
        self.assertEqual(flaws(about)['cells.captured']['count'], 4)
        self.assertNotIn('cells.from_annotations', flaws(about))

    def test_work_of_the_host_outside_a_capture_stays(self):
        made, _ = trace(marks=False, capture=True)
        for k in range(4):
            made['traceEvents'] += [
                {'ph': 'X', 'cat': 'user_annotation', 'name': f'PP:1{"FFBB"[k]}{k % 2}', 'pid': 500, 'tid': 500, 'ts': 2100.0 + 200 * k, 'dur': 150, 'args': {}},
                {'ph': 'X', 'cat': 'cuda_runtime', 'name': 'cudaLaunchKernel', 'pid': 500, 'tid': 500, 'ts': 2110.0 + 200 * k, 'dur': 5, 'args': {'correlation': 900 + k}},
                {'ph': 'X', 'cat': 'kernel', 'name': 'gemm', 'pid': 0, 'tid': 31, 'ts': 2150.0 + 200 * k, 'dur': 50, 'args': {'correlation': 900 + k, 'stream': 31, 'device': 0}}]
        self.assertEqual([(step, kind, m, dur) for step, kind, m, _, dur in cells_of(self.write(made))], [(5, 'B', 0, 50000), (5, 'B', 1, 50000), (5, 'F', 0, 50000), (5, 'F', 1, 50000)])

    def test_the_capture_names_the_work_of_replays(self):
        made, cells = trace(marks=False, calls=lambda calls: None)
        draw = random.Random(3)
        for _ in range(4):
            path = self.write(made)
            self.assertEqual(cells_of(path), self.wanted(cells, made))
            about = info(path)
            self.assertEqual(flaws(about)['kineto.names_of_capture']['count'], 3 * 14)
            named = list(csv.DictReader(io.StringIO(run('sql', path, "SELECT name, count(*) AS n, sum(dur_ns) AS ns FROM slices WHERE category = 'gpu_user_annotation' GROUP BY 1",
                                                        '--format', 'csv', '-q', check=0).out)))
            # A mark is a row on each of two streams; the work between them has its operator's name, four times a replay.
            self.assertEqual({r['name']: int(r['n']) for r in named}, {'PP:1F0': 6, 'PP:1F1': 6, 'PP:1B0': 6, 'PP:1B1': 6, 'aten::add': 12})
            draw.shuffle(made['traceEvents'])

    def test_the_capture_names_the_work_of_replays_in_a_pftrace(self):
        made, cells = trace(marks=False, calls=lambda calls: None)
        path = perfetto.from_chrome(self.dir / 'rank1.pftrace', made['traceEvents'])
        self.assertEqual(cells_of(path), self.wanted(cells, made))
        self.assertEqual(flaws(info(path))['pftrace.names_of_capture']['count'], 3 * 14)
        made, _ = trace(marks=False, calls=lambda calls: calls[:-1])  # the order does not match
        path = perfetto.from_chrome(self.dir / 'rank1.pftrace', made['traceEvents'])
        self.assertEqual(cells_of(path), [])
        self.assertEqual(flaws(info(path))['pftrace.unnamed_graphs']['count'], 3 * 14)

    def test_graphs_without_names_say_how_to_name_them(self):
        path = self.write(trace(marks=False)[0])
        self.assertEqual(cells_of(path), [])
        flaw = flaws(info(path))['kineto.unnamed_graphs']
        self.assertEqual((flaw['severity'], flaw['count']), ('info', 3 * 14))
        self.assertIn('cuda_graph_annotations=get_kernel_annotations()', flaw['message'])
        self.assertNotIn('kineto.unnamed_graphs', flaws(info(self.write(trace()[0]))))  # some work of a graph may have none

    def test_work_that_no_graph_launched_is_no_node(self):
        made, cells = trace(marks=False, calls=lambda calls: None)
        kernel = next(e for e in made['traceEvents'] if e['cat'] == 'kernel')
        made['traceEvents'] += [{'ph': 'X', 'cat': 'cuda_runtime', 'name': 'cudaLaunchKernel', 'pid': 500, 'tid': 500, 'ts': 1001.0, 'dur': 2, 'args': {'correlation': 7777}},
                                {**kernel, 'ts': 1002.0, 'args': {**kernel['args'], 'correlation': 7777}}]
        self.assertEqual(cells_of(self.write(made)), self.wanted(cells, made))

    def test_nothing_is_named_where_the_order_does_not_match(self):
        def fewer(calls):
            return calls[:-1]

        def other_kind(calls):
            return [*calls[:3], ('', 'cudaMemsetAsync'), *calls[4:]]

        for change in (fewer, other_kind, lambda calls: [*calls, ('', 'cudaMemcpyAsync')]):
            path = self.write(trace(marks=False, calls=change)[0])
            self.assertEqual(cells_of(path), [])
            self.assertNotIn('kineto.names_of_capture', flaws(info(path)))
        made, _ = trace(marks=False, calls=lambda calls: None)
        for event in made['traceEvents']:  # a collective among the nodes, that no operator communicated
            if event['cat'] == 'kernel' and event['name'] == 'elementwise':
                event['name'] = 'ncclDevKernel_AllReduce'
        self.assertNotIn('kineto.names_of_capture', flaws(info(self.write(made))))
        made, _ = trace(marks=False, calls=lambda calls: None)
        later = [{**e, 'ts': e['ts'] + 9000} for e in made['traceEvents']]
        for event in later:  # a second graph that its own capture and the first's fit alike
            args = event['args'] = dict(event['args'])
            if 'correlation' in args:
                args['correlation'] += 1000
            if 'graph node id' in args:
                args['graph id'] += 1
                args['graph node id'] += 1 << 32
        made['traceEvents'] += later
        self.assertNotIn('kineto.names_of_capture', flaws(info(self.write(made))))
        made, _ = trace(marks=False, calls=lambda calls: None)
        for event in made['traceEvents']:  # the capture came after the replays
            if event['ts'] < 2500:
                event['ts'] += 9000
        self.assertNotIn('kineto.names_of_capture', flaws(info(self.write(made))))

    def test_marked_messages_are_cells_one_by_one(self):
        made, cells = trace()
        events, want = made['traceEvents'], []
        for step, kind, m, start, dur in cells:  # after each forward a send, before each backward a receive, of one name each
            name, at = ('PP::fwd_recv (stage 1)', start - 7) if kind == 'F' else ('PP::bwd_send (stage 1)', start + dur + 2)
            want.append((step, {'F': 'RF', 'B': 'SB'}[kind], m, 4000))
            events.append({'ph': 'X', 'cat': 'kernel', 'name': 'ncclDevKernel_SendRecv', 'pid': 0, 'tid': 61, 'ts': at, 'dur': 4,
                           'args': {'device': 0, 'stream': 61, 'correlation': 95 + step, 'name': name, 'graph id': GRAPH, 'graph node id': GRAPH << 32 | len(events)}})
        path = self.write(made)
        out = run('sql', path, "SELECT step, kind, micro_batch, end_ns - start_ns AS dur FROM cells WHERE kind IN ('RF', 'SB')", '--format', 'csv', '-q', check=0).out
        got = [(int(r['step']), r['kind'], int(r['micro_batch']), int(r['dur'])) for r in csv.DictReader(io.StringIO(out))]
        self.assertEqual(sorted(got), sorted(want))
        self.assertNotIn('cells.unknown_messages', flaws(info(path)))
        self.assertEqual(len(cells_of(path)), len(cells))

    def test_titles_of_messages_are_cells_unless_actions_name_them(self):
        """`gloo:send` has the title of the message instead of its own name, and lasts until it is waited for."""
        def rank(number, actions):
            events = []
            kinds = [('F', 'fwd_send', 'B', 'bwd_recv'), ('F', 'fwd_recv', 'B', 'bwd_send')][number]
            for step in range(2):
                at = 1000.0 + 1000 * step
                events.append({'ph': 'X', 'cat': 'user_annotation', 'name': f'ProfilerStep#{step}', 'pid': 1, 'tid': 1, 'ts': at, 'dur': 990, 'args': {}})
                for m in range(3):
                    for k, (kind, title) in enumerate((kinds[:2], kinds[2:])):
                        start = at + 20 + 60 * m + 300 * k + 30 * number * (1 - 2 * k)
                        events.append({'ph': 'X', 'cat': 'user_annotation', 'name': f'PP:{number}{kind}{m}', 'pid': 1, 'tid': 1, 'ts': start, 'dur': 20, 'args': {}})
                        events.append({'ph': 'X', 'cat': 'cpu_op', 'name': 'aten::mm', 'pid': 1, 'tid': 1, 'ts': start + 1, 'dur': 18, 'args': {}})
                        message = start + 21 if title.endswith('send') else start - 8
                        events.append({'ph': 'X', 'cat': 'user_annotation', 'name': f'PP::{title} (stage {number})', 'pid': 1, 'tid': 2, 'ts': message, 'dur': 7 + 100 * title.endswith('send'), 'args': {}})
                        if actions:
                            events.append({'ph': 'X', 'cat': 'user_annotation', 'name': f'PP:{number}{"SEND" if "send" in title else "RECV"}_{kind}{m}', 'pid': 1, 'tid': 1, 'ts': message, 'dur': 6, 'args': {}})
            return {'schemaVersion': 1, 'distributedInfo': {'backend': 'gloo', 'rank': number, 'world_size': 2}, 'traceEvents': events}

        for actions in (False, True):
            folder = self.dir / f'run{actions}'
            folder.mkdir()
            for number in range(2):
                (folder / f'rank{number}.json').write_text(json.dumps(rank(number, actions)))
            out = run('sql', folder, 'SELECT kind, count(*) AS cells, count(DISTINCT micro_batch) AS numbers FROM cells GROUP BY kind ORDER BY kind', '--format', 'csv', '-q', check=0).out
            got = {r['kind']: (int(r['cells']), int(r['numbers'])) for r in csv.DictReader(io.StringIO(out))}
            self.assertEqual(got, {'B': (12, 3), 'F': (12, 3), 'RB': (6, 3), 'RF': (6, 3), 'SB': (6, 3), 'SF': (6, 3)}, actions)

    @needs_shared
    def test_messages_of_torch_s_own_writers(self):
        truth = json.loads((SAMPLES / 'truth.json').read_text())['pipeline_transfers']
        for name in ('graph_lanes_none', 'graph_lanes_all', 'graph_annotated_214', 'cuspy_graph_deps'):
            path = SAMPLES / f'{name}.pt.trace.json.gz'
            out = run('sql', path, "SELECT kind, count(*) AS cells FROM cells WHERE kind IN ('SF', 'RF', 'SB', 'RB') GROUP BY kind", '--format', 'csv', '-q', check=0).out
            got = {r['kind']: int(r['cells']) for r in csv.DictReader(io.StringIO(out))}
            self.assertEqual(got, {'SF': truth['fwd_send'], 'RF': truth['fwd_recv'], 'SB': truth['bwd_send'], 'RB': truth['bwd_recv']}, name)
            self.assertNotIn('cells.unknown_messages', flaws(info(path)), name)

    @needs_shared
    def test_eras_of_graphs(self):
        eras = {'graph_raw': '2.4+', 'graph_capture_and_replays': '2.4+', 'graph_annotated_214': '2.14+', 'graph_lanes_all': '2.15+', 'cuspy_graph_deps': '2.15+'}
        self.assertEqual({name: info(SAMPLES / f'{name}.pt.trace.json.gz')['parts'][0]['torch'] for name in eras}, eras)

    @needs_shared
    def test_streams_edges_and_copies_of_torch_s_own_writers(self):
        query = "SELECT DISTINCT stream FROM slices WHERE category IN ('kernel', 'gpu_memcpy', 'gpu_memset') ORDER BY 1"
        for name in ('graph_lanes_none.pt.trace.json.gz', 'graph_lanes_all.pt.trace.json.gz', 'cuspy_graph_deps.pt.trace.json.gz', 'cuspy_graph_deps.pftrace'):
            streams = run('sql', SAMPLES / name, query, '--format', 'csv', '-q', check=0).out.split()[1:]
            self.assertEqual(streams, [str(s) for s in json.loads((SAMPLES / 'truth.json').read_text())['hardware_streams']], name)
            self.assertNotIn('kineto.rewritten_streams', flaws(info(SAMPLES / name)))
        for name in ('cuspy_graph_deps.pt.trace.json.gz', 'cuspy_graph_deps.pftrace'):
            self.assertEqual(info(SAMPLES / name)['arrows'], 161, name)  # 55 of the first replay, 53 of each other, whose host node has no number
        self.assertEqual(flaws(info(SAMPLES / 'graph_annotated_214.pt.trace.json.gz'))['kineto.rewritten_streams']['severity'], 'warning')
        copies = run('sql', SAMPLES / 'cuspy_graph_deps.pt.trace.json.gz', "SELECT DISTINCT name FROM slices WHERE category = 'gpu_memcpy'", '--format', 'csv', '-q', check=0).out
        self.assertEqual(copies.splitlines()[1:], ['Memcpy HtoD (Pinned -> Device)'])

    def test_arrows_between_nodes_lead_from_end_to_start(self):
        made, _ = trace()
        nodes = [e for e in made['traceEvents'] if e['cat'] == 'kernel'][:4]
        for k, (one, other) in enumerate(zip(nodes, nodes[1:])):
            arrow = {'cat': 'ac2g', 'name': 'ac2g', 'id': 2**40 + k, 'pid': 0}
            made['traceEvents'] += [{**arrow, 'ph': 's', 'tid': one['tid'], 'ts': one['ts'] + one['dur']}, {**arrow, 'ph': 'f', 'bp': 'e', 'tid': other['tid'], 'ts': other['ts']}]
        self.assertEqual(info(self.write(made))['arrows'], 3)
        for event in made['traceEvents']:
            if event['ph'] in 'sf':
                event['id'] -= 2**40  # the number of a launch
        self.assertEqual(info(self.write(made))['arrows'], 0)

    @needs_shared
    def test_traces_of_torch_s_own_writers(self):
        truth = json.loads((SAMPLES / 'truth.json').read_text())['cells']['rows']
        want = sorted((step, kind, m, start, end - start) for step, kind, m, start, end, _ in truth)
        for name in ('graph_lanes_none.pt.trace.json.gz', 'graph_lanes_all.pt.trace.json.gz', 'graph_annotated_214.pt.trace.json.gz', 'cuspy_graph_deps.pt.trace.json.gz',
                     'cuspy_graph_deps.pftrace', 'graph_capture_and_replays.pt.trace.json.gz'):
            got = cells_of(SAMPLES / name)
            shift = want[0][3] - got[0][3] if got else 0
            self.assertEqual([(s, k, m, start + shift, dur) for s, k, m, start, dur in got], want, name)
        self.assertEqual(cells_of(SAMPLES / 'graph_raw.pt.trace.json.gz'), [])
        self.assertEqual(flaws(info(SAMPLES / 'graph_raw.pt.trace.json.gz'))['kineto.unnamed_graphs']['count'], 138)

    @needs_shared
    def test_nearly_all_graph_time_of_the_sample_is_named(self):
        path = SAMPLES / 'graph_capture_and_replays.pt.trace.json.gz'
        query = """SELECT sum(s.dur_ns) AS ns, sum(CASE WHEN EXISTS (SELECT 1 FROM slices m WHERE m.category = 'gpu_user_annotation' AND m.name NOT LIKE 'ProfilerStep%'
                   AND m.stream = s.stream AND m.start_ns <= s.start_ns AND m.end_ns >= s.end_ns) THEN s.dur_ns END) AS named
                   FROM slices s JOIN slices l ON l.correlation = s.correlation AND l.name = 'cudaGraphLaunch' WHERE s.category IN ('kernel', 'gpu_memset', 'gpu_memcpy')"""
        row = next(csv.DictReader(io.StringIO(run('sql', path, query, '--format', 'csv', '-q', check=0).out)))
        self.assertGreaterEqual(int(row['named']) / int(row['ns']), 0.99)


if __name__ == '__main__':
    unittest.main()
