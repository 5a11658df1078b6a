"""One slice and its arguments, who called whom, conditions by expression and by what is before and after, schedules, simulated runs,
and the engine in a child of fork()."""
import gzip
import json
import multiprocessing
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from engine_test import BIN, HAVE_ENGINE, ROOT, program, simulated  # noqa: E402

if HAVE_ENGINE:
    import stageline
    from stageline import f


def sources(folder):
    """{file's events} of a folder of traces."""
    out = []
    for path in sorted(pathlib.Path(folder).rglob('*.json*')):
        with (gzip.open if path.suffix == '.gz' else open)(path, 'rt') as file:
            out.append(json.load(file)['traceEvents'])
    return out


@unittest.skipUnless(HAVE_ENGINE, 'the module was not built')
class Asked(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([sys.executable, ROOT / 'tests/gen/kineto.py', '-o', cls.folder.name, '--ranks', '2', '--events', '3000', '--steps', '3',
                        '--seed', '5', '--format', 'gz'], check=True, capture_output=True)
        cls.trace = stageline.open(cls.folder.name, align='never')
        cls.events = dict(zip(cls.trace.ranks, sources(cls.folder.name)))
        cls.rows = cls.trace.slices().to_dicts()
        cls.by_id = {row['id']: row for row in cls.rows}

    @classmethod
    def tearDownClass(cls):
        cls.trace.close()
        cls.folder.cleanup()

    # ---- one slice ----

    def test_arguments_are_those_of_the_file(self):
        asked = 0
        for row in self.rows[::97]:
            slice = self.trace.slice(row['id'])
            event = self.events[row['rank']][row['file_index']]
            self.assertEqual(slice.event, event)
            self.assertEqual(slice.args, event.get('args', {}))
            self.assertEqual((slice.name, slice.start_ns, slice.dur_ns, slice.kernel_class), (row['name'], row['start_ns'], row['dur_ns'], row['class']))
            asked += bool(slice.args)
        self.assertGreater(asked, 20)

    def test_a_slice_knows_its_relations(self):
        work = next(row for row in self.rows if row['class'] == 'COMPUTATION')
        slice = self.trace.slice(work['id'])
        self.assertEqual(slice.launch.id, work['launch_id'])
        self.assertEqual(slice.parent.id, work['parent_id'])
        self.assertIn(slice, slice.parent.kernels)
        self.assertEqual([s.id for s in slice.stack][-2:], [work['parent_id'], work['id']])
        self.assertIsNone(slice.stack[0].parent)

    def test_there_is_no_such_slice(self):
        for wrong in (-1, 1 << 40, len(self.rows)):
            with self.assertRaises(stageline.UsageError):
                self.trace.slice(wrong)
        with self.assertRaises(stageline.UsageError):
            self.trace._run.source_text(1 << 50)

    def test_a_file_that_changed_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'a.json'
            event = {'ph': 'X', 'cat': 'cpu_op', 'name': 'a', 'pid': 1, 'tid': 1, 'ts': 1, 'dur': 5, 'args': {'k': 1}}
            path.write_text(json.dumps({'traceEvents': [event, {**event, 'ts': 9}]}))
            trace = stageline.open(path)
            slice = trace.slice(trace.slices()['id'][0])
            self.assertEqual(slice.args, {'k': 1})
            path.write_text('{"traceEvents": []}')
            os.utime(path, ns=(1, 1))
            with self.assertRaises(stageline.Error):
                slice.args

    # ---- who called whom ----

    def test_calls_are_the_parents(self):
        for rank in self.trace.ranks:
            calls = self.trace.calls(rank)
            mine = {i: row for i, row in self.by_id.items() if row['rank'] == rank}
            self.assertEqual(len(calls), len(mine))
            self.assertEqual(set(calls.roots()), {i for i, row in mine.items() if row['parent_id'] is None})
            for i in list(mine)[::53]:
                self.assertEqual(calls.parent(i), mine[i]['parent_id'])
                self.assertEqual(set(calls.children(i)), {j for j, row in mine.items() if row['parent_id'] == i})
                path = [i]
                while mine[path[-1]]['parent_id'] is not None:
                    path.append(mine[path[-1]]['parent_id'])
                self.assertEqual(calls.path_to_root(i), path)
            under = calls.subtree(calls.find('aten::linear'))
            self.assertEqual(calls.leaves(under[0]), [i for i in under if not calls.children(i)])
            self.assertEqual(calls.kernels(under[0]), [i for i in under if mine[i]['class']])
            self.assertTrue(calls.kernels(under[0]))
        with self.assertRaises(stageline.UsageError):
            self.trace.calls(99)
        with self.assertRaises(stageline.UsageError):
            calls.find('nothing is called so')
        with self.assertRaises(stageline.UsageError):
            calls.children(-5)

    # ---- conditions ----

    def ids(self, where):
        return set(self.trace.slices(where=where, columns=['id'])['id'])

    def test_expressions(self):
        for expression in ('^aten::', 'Reduce.*Ring|gemm', r'Step#\d+$', '[^a-z]memcpy'):
            wanted = {i for i, row in self.by_id.items() if re.search(expression, row['name'], re.I)}
            self.assertEqual(self.ids(f.name.matches(expression)), wanted, expression)
        self.assertEqual(self.ids(f.name.matches('^aten::mm$', '^Memset')), self.ids(f.name.matches('^aten::mm$') | f.name.matches('^Memset')))
        for wrong in ('(', '[a', '*', 'a' * 300):
            with self.assertRaises(stageline.UsageError):
                self.trace.slices(where=f.name.matches(wrong))
        # Time is bounded whatever the expression: this one takes others until the end of days.
        self.trace.slices(where=f.name.matches('(a*)*(a*)*(a*)*b'))

    def test_before_and_after(self):
        for name in ('aten::linear', 'Optimizer.step#SGD.step'):
            spans = {}
            for row in self.rows:
                if row['name'] == name:
                    key = row['rank'], row['step']
                    first, last = spans.get(key, (row['start_ns'], row['start_ns'] + row['dur_ns']))
                    spans[key] = min(first, row['start_ns']), max(last, row['start_ns'] + row['dur_ns'])
            before, after = set(), set()
            for i, row in self.by_id.items():
                span = spans.get((row['rank'], row['step']))
                at = self.by_id[row['launch_id']] if row['launch_id'] is not None else row
                if span and at['start_ns'] + at['dur_ns'] <= span[0]:
                    before.add(i)
                if span and at['start_ns'] >= span[1]:
                    after.add(i)
            self.assertEqual(self.ids(f.before(name)), before, name)
            self.assertEqual(self.ids(f.after(name)), after, name)
        self.assertTrue(self.ids(f.before('aten::linear')) and self.ids(f.after('aten::linear')))
        self.assertEqual(self.ids(f.before('nothing is called so')), set())
        self.assertIn('f.before', repr(f.before('x') & f.name.matches('y')))

    def test_one_occurrence_of_an_operator(self):
        """f.under, f.before and f.after speak of the n-th of its name in each step of each rank, by start; no slice where there are fewer."""
        name = 'aten::linear'
        steps = {}
        for i, row in sorted(self.by_id.items(), key=lambda one: one[1]['start_ns']):
            if row['name'] == name:
                steps.setdefault((row['rank'], row['step']), []).append(i)
        self.assertGreater(min(map(len, steps.values())), 1)
        for occurrence in (0, 1, -1, 10_000, -10_000):
            picked = {key: ids[occurrence] for key, ids in steps.items() if -len(ids) <= occurrence < len(ids)}
            under, before, after = set(), set(), set()
            for i, row in self.by_id.items():
                above = row['parent_id']
                while above is not None:
                    if above in picked.values():
                        under.add(i)
                        break
                    above = self.by_id[above]['parent_id']
                one = self.by_id.get(picked.get((row['rank'], row['step'])))
                at = self.by_id[row['launch_id']] if row['launch_id'] is not None else row
                if one and at['start_ns'] + at['dur_ns'] <= one['start_ns']:
                    before.add(i)
                if one and at['start_ns'] >= one['start_ns'] + one['dur_ns']:
                    after.add(i)
            self.assertEqual(self.ids(f.under(name, occurrence=occurrence)), under, occurrence)
            self.assertEqual(self.ids(f.before(name, occurrence=occurrence)), before, occurrence)
            self.assertEqual(self.ids(f.after(name, occurrence=occurrence)), after, occurrence)
        self.assertTrue(self.ids(f.under(name, occurrence=1)) < self.ids(f.under(name)))
        self.assertEqual(repr(f.after('x', occurrence=-1)), "Filter(f.after('x', occurrence=-1))")
        with self.assertRaises(TypeError):
            f.under('x', occurrence=1.5)


@unittest.skipUnless(HAVE_ENGINE, 'the module was not built')
class Planned(unittest.TestCase):
    def test_a_schedule_is_that_of_the_program(self):
        made = stageline.schedule('1f1b', 4, 8, cost='10,20', latency='1ms')
        reported = json.loads(program('schedule', '1f1b', '--stages', '4', '--micro-batches', '8', '--cost', '10,20', '--latency', '1ms', '--format', 'json'))
        self.assertEqual(made.span_bubble_ns, reported['span_bubble_ns'])
        self.assertEqual(made.to_dict(), {k: v for k, v in reported.items() if k != 'table'})
        self.assertEqual(made.ranks.to_dicts(), reported['table']['rows'])
        self.assertEqual(made.to_csv(), program('schedule', '1f1b', '--stages', '4', '--micro-batches', '8', '--format', 'csv'))
        self.assertIn('1f1b', str(made))
        self.assertIn('<table', made._repr_html_())
        with self.assertRaises(stageline.UsageError):
            stageline.schedule('1f2b', 4, 8)
        with self.assertRaises(stageline.UsageError):
            stageline.schedule()
        with self.assertRaises(stageline.UsageError):
            stageline.schedule('1f1b', 4, 8, costs='10')

    def test_an_order_that_was_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'order.csv'
            made = stageline.schedule('fthenb', 2, 4)
            path.write_text(made.to_csv())
            again = stageline.schedule(from_csv=path)
            self.assertEqual(again.order, made.order)
            self.assertEqual(again.span_ns, made.span_ns)

    def test_a_simulated_run_is_that_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            path = simulated(folder)
            theirs = stageline.open(path)
            flags = {'steps': 6, 'cost': '10,20', 'latency': '0.2', 'jitter': '0.03', 'fault': 'slow-stage:2,1.4', 'seed': 7}
            ours = stageline.simulate('1f1b', 4, 8, **flags)
            self.assertEqual(ours.cells.to_csv(), theirs.cells.to_csv())
            self.assertIn('stage.slow', [x.id for x in ours.findings])
            kept = stageline.simulate('1f1b', 4, 8, out=pathlib.Path(folder) / 'kept', **flags)
            self.assertTrue((pathlib.Path(folder) / 'kept/truth.csv').exists())
            self.assertEqual(kept.cells.to_csv(), theirs.cells.to_csv())
            (pathlib.Path(folder) / 'mine').mkdir()
            (pathlib.Path(folder) / 'mine/workerlog.0').write_text('not yours\n')
            with self.assertRaises(stageline.UsageError):
                stageline.simulate('1f1b', 4, 8, out=pathlib.Path(folder) / 'mine')
        where = pathlib.Path(ours.paths[0])
        self.assertTrue(where.exists())
        del ours
        import gc
        gc.collect()
        self.assertFalse(where.exists())

    def test_faults_are_a_list(self):
        run = stageline.simulate('1f1b', 4, 8, steps=4, cost='10,20', fault=['slow-stage:1,1.5', 'slow-stage:2,1.4'], seed=3)
        self.assertEqual(len(run.ranks), 4)


def asked_in_child(path, before, queue):
    """A trace from before the fork and one opened after it, with all threads of the engine."""
    queue.put([before.analyze('pipeline-summary').text(), stageline.open(path).analyze('pipeline-summary').text()])


@unittest.skipUnless(HAVE_ENGINE, 'the module was not built')
class Processes(unittest.TestCase):
    @unittest.skipUnless(hasattr(os, 'fork'), 'no fork here')
    def test_a_child_may_ask(self):
        """Threads do not survive a fork: the child's engine makes new threads, and ends."""
        with tempfile.TemporaryDirectory() as folder:
            path = simulated(folder)
            trace = stageline.open(path, threads=4)
            wanted = trace.analyze('pipeline-summary').text()
            context = multiprocessing.get_context('fork')
            queue = context.SimpleQueue()
            children = [context.Process(target=asked_in_child, args=(path, trace, queue)) for _ in range(3)]
            for child in children:
                child.start()
            for child in children:
                self.assertEqual(queue.get(), [wanted, wanted])
            for child in children:
                child.join(60)
                self.assertEqual(child.exitcode, 0)
            self.assertEqual(trace.analyze('pipeline-summary').text(), wanted)

    def test_pickles(self):
        trace = stageline.simulate('1f1b', 2, 4, steps=2)
        for thing in (trace, trace.calls(trace.ranks[0]) if trace.slices() else trace):
            with self.assertRaises(TypeError):
                pickle.dumps(thing)
        self.assertEqual(pickle.loads(pickle.dumps(trace.cells)).to_csv(), trace.cells.to_csv())
        self.assertTrue(BIN)


if __name__ == '__main__':
    unittest.main()
