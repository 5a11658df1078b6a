"""The module over the engine: Python's results equal the program's output, tables are viewed and not copied, errors are
exceptions. Libraries that tables are turned into (pandas, polars, pyarrow) are tried if STAGELINE_PYTHON_LIBRARIES
names a Python with them."""
import html
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = pathlib.Path(os.environ.get('STAGELINE_BIN') or ROOT / 'build/dev/stageline').resolve()
PACKAGE = pathlib.Path(os.environ.get('STAGELINE_PACKAGE') or BIN.parent / 'python')
GOLDEN = ROOT / 'tests/golden/readers'
sys.path.insert(0, str(PACKAGE))

HAVE_ENGINE = any((PACKAGE / 'stageline').glob('_engine*.so'))
if HAVE_ENGINE:
    import stageline
    from stageline import f
    from stageline._words import all_in_python, in_python

PIPELINE = GOLDEN / 'paddle-log' / 'input'
PROFILE = GOLDEN / 'kineto' / 'input'


def program(*arguments):
    done = subprocess.run([BIN, *map(str, arguments)], capture_output=True, text=True)
    return done.stdout


def simulated(folder, *more):
    path = pathlib.Path(folder) / 'run'
    subprocess.run([BIN, 'simulate', '1f1b', '--stages', '4', '--micro-batches', '8', '--steps', '6', '--cost', '10,20', '--latency', '0.2',
                    '--jitter', '0.03', '--fault', 'slow-stage:2,1.4', '--seed', '7', *more, '-o', path], check=True, capture_output=True)
    return path


def profile():
    """A profiler trace of the goldens that has device work."""
    for path in sorted(p for p in PROFILE.parent.parent.glob('kineto*/input') if p.is_dir()):
        return path
    return None


@unittest.skipUnless(HAVE_ENGINE, 'the module was not built')
class Opened(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = simulated(cls.folder.name)
        cls.trace = stageline.open(cls.path)
        cls.profile_path = profile()
        cls.profile = stageline.open(cls.profile_path)
        cls.both_path = GOLDEN / 'kineto-pipeline/input'  # slices and cells, on clocks that differ
        cls.both = stageline.open(cls.both_path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_info_is_that_of_the_program(self):
        for trace, path in ((self.trace, self.path), (self.profile, self.profile_path)):
            self.assertEqual(trace.info.to_dict().keys(), json.loads(program('info', path, '--json')).keys())
            self.assertEqual(trace.info.ranks, json.loads(program('info', path, '--json'))['ranks'])

    def test_findings_are_those_of_the_program(self):
        reported = json.loads(program('explain', self.path, '--json'))
        findings = self.trace.findings
        self.assertEqual([x['id'] for x in reported['findings']], [x.id for x in findings])
        self.assertEqual([x['lost_ns'] for x in reported['findings']], [x.lost_ns for x in findings])
        self.assertIn('stage.slow', [x.id for x in findings])
        self.assertEqual(str(findings), in_python(program('explain', self.path, '--color', 'never', '--lang', 'en')))
        self.assertAlmostEqual(sum(share for _, share in findings.parts), 1, places=6)
        self.assertNotEqual(str(self.trace.explain('zh')), str(findings))

    def same_answer(self, trace, path, analysis, *flags, **options):
        reported = json.loads(program('analyze', analysis, path, '--format', 'json', *flags) or 'null')
        try:
            answer = trace.analyze(analysis, **options)
        except stageline.Error:
            self.assertIsNone(reported, analysis)
            return 0
        self.assertIsNotNone(reported, analysis)
        self.assertEqual([t['name'] for t in reported['tables']], list(answer), analysis)
        for table in reported['tables']:
            made = answer[table['name']]
            self.assertEqual([c['name'] for c in table['columns']], [c.name for c in made.columns])
            self.assertEqual(table['rows'], made.to_dicts(), f'{analysis} {table["name"]}')
        return len(reported['tables'])

    def test_every_answer_is_that_of_the_program(self):
        asked = 0
        for info in stageline.analyses():
            if info.needs in ('two runs', 'files'):
                continue
            for trace, path in ((self.trace, self.path), (self.profile, self.profile_path), (self.both, self.both_path)):
                with self.subTest(analysis=info.name, path=path.name):
                    asked += self.same_answer(trace, path, info.name) > 0
                    if 'hta' in info.compat:
                        self.same_answer(trace, path, info.name, '--compat', 'hta', compat='hta')
        self.assertGreater(asked, 20)

    def test_columns_are_known_before_an_analysis_runs(self):
        compared = 0
        for info in stageline.analyses():
            self.assertEqual(list(info.columns), [name for name, _ in info.tables])
            for trace in (self.trace, self.profile):
                try:
                    answer = trace.analyze(info.name)
                except stageline.Error:
                    continue
                for name in answer:
                    declared = info.columns[name]
                    of_answer = [column for column in answer[name].columns if column in declared]
                    self.assertEqual([c.name for c in declared], [c.name for c in of_answer], f'{info.name} {name}')
                    compared += 1
        self.assertGreater(compared, 40)

    def test_options_are_the_flags(self):
        self.same_answer(self.profile, self.profile_path, 'gpu-kernel-breakdown', '--num-kernels', '2', '--include-memory-kernels', 'false',
                         num_kernels=2, include_memory_kernels=False)
        with self.assertRaises(stageline.UsageError) as caught:
            self.profile.analyze('gpu-kernel-breakdown', num_kernel=2)
        self.assertIn('num_kernels', str(caught.exception))
        with self.assertRaises(stageline.UsageError) as caught:
            self.profile.analyze('operators', ranks=[0])
        self.assertIn('opened', str(caught.exception))
        with self.assertRaises(stageline.UsageError) as caught:
            self.trace.analyze('pipeline-sumary')
        self.assertIn('pipeline-summary', caught.exception.hint)
        self.assertEqual(self.trace.pipeline_summary().keys(), self.trace.analyze('pipeline_summary').keys())

    def test_filters_choose_what_the_columns_say(self):
        rows = self.profile.slices().to_dicts()
        self.assertGreater(len(rows), 10)
        names = sorted({r['name'] for r in rows})
        cases = [(f.name == names[0], lambda r: r['name'] == names[0]),
                 (f.name.contains('a') & ~(f.name.contains('e')), lambda r: 'a' in r['name'] and 'e' not in r['name']),
                 (f.name.glob('a*n*'), lambda r: r['name'].startswith('a') and 'n' in r['name'][1:]),
                 (f.dur_ns > 1000, lambda r: r['dur_ns'] > 1000),
                 (f.step.between(None, 10**9), lambda r: r['step'] is not None),
                 (f.on_device | (f.rank == 10**6), lambda r: r['class'] is not None),
                 (f.stream.isin([7, 20]), lambda r: r['stream'] in (7, 20))]
        for condition, rule in cases:
            self.assertEqual([r['id'] for r in self.profile.slices(where=condition).to_dicts()], [r['id'] for r in rows if rule(r)],
                             repr(condition))
        by_id = {r['id']: r for r in rows}
        parents = sorted({by_id[r['parent_id']]['name'] for r in rows if r['parent_id'] in by_id})
        for name in parents[:3]:
            def under(r):
                while r['parent_id'] in by_id:
                    r = by_id[r['parent_id']]
                    if r['name'] == name:
                        return True
                return False
            self.assertEqual([r['id'] for r in self.profile.slices(where=f.under(name)).to_dicts()], [r['id'] for r in rows if under(r)], name)
        with self.assertRaises(stageline.UsageError):
            self.profile.slices(columns=['nam'])
        with self.assertRaises(TypeError):
            f.name == 'a' and f.rank == 3

    def test_slices_come_in_batches_of_any_size(self):
        whole = self.profile.slices().to_dicts()
        self.assertEqual(self.profile.slices(batch_rows=7).to_dicts(), whole)
        self.assertEqual(self.profile.slices(where=f.dur_ns >= 0, batch_rows=5).to_dicts(), whole)

    def test_cells_steps_messages(self):
        cells = self.trace.cells
        self.assertEqual(len(cells), self.trace.info.cells)
        self.assertEqual(set(cells['stage']), {0, 1, 2, 3})
        self.assertEqual(len(self.trace.steps), 6)
        summary = self.trace.analyze('pipeline-summary')
        self.assertGreater(len(self.trace.messages), 0)
        self.assertEqual(set(self.trace.messages['direction']), {'forward', 'backward'})
        self.assertGreater(len(summary), 0)

    def test_queries_are_those_of_the_program(self):
        query = 'SELECT id, name, class, start_ns, dur_ns, dur_ns / 3.0 AS third, launch_id FROM slices ORDER BY rank, id LIMIT 700'
        reported = json.loads(program('sql', self.profile_path, query, '--format', 'json', '--rows', '0', '-q'))
        table = self.profile.sql(query)
        self.assertEqual([list(row) for row in table], reported['rows'])
        self.assertEqual([c.name for c in table.columns], [c['name'] for c in reported['columns']])
        self.assertEqual(table.columns[4].unit, 'ns')
        # Times are those of slices(), from the run's first.
        slices = self.profile.slices(columns=['id', 'start_ns'])
        self.assertEqual(self.profile.sql('SELECT id, start_ns FROM slices ORDER BY id').to_dicts(),
                         sorted(({'id': i, 'start_ns': s - self.profile.epoch_ns} for i, s in slices), key=lambda r: r['id']))
        self.assertEqual(self.trace.sql('SELECT count(*) FROM cells')[0][0], len(self.trace.cells))

    def test_queries_take_values_and_limits(self):
        one = self.profile.sql('SELECT ?, ?, ?, ?', [7, 2.5, "it's", None])
        self.assertEqual(tuple(one[0]), (7, 2.5, "it's", None))
        self.assertEqual(self.profile.sql('SELECT count(*) FROM kernels WHERE rank = :rank', {'rank': 0})[0][0],
                         self.profile.sql('SELECT count(*) FROM kernels WHERE rank = 0')[0][0])
        with self.assertWarns(stageline.TraceWarning):
            self.assertEqual(len(self.profile.sql('SELECT id FROM slices', max_rows=3)), 3)
        endless = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c'
        with self.assertRaises(stageline.LimitExceeded):
            self.profile.sql(endless, timeout=0.2)
        with self.assertRaises(stageline.UsageError) as wrong:
            self.profile.sql('SELECT durns FROM kernels')
        self.assertIn('did you mean dur_ns?', str(wrong.exception))
        for query in ('DELETE FROM slices', "ATTACH 'x' AS y", 'PRAGMA page_size'):
            self.assertRaises(stageline.UsageError, self.profile.sql, query)
        self.assertEqual(len(self.profile.sql('SELECT name FROM slices WHERE 0')), 0)

    def test_threads_may_query_at_once(self):
        answers, truth = [], self.profile.sql("SELECT key, total_ns FROM totals('name') ORDER BY 1").to_dicts()
        work = [threading.Thread(target=lambda: answers.append(self.profile.sql("SELECT key, total_ns FROM totals('name') ORDER BY 1").to_dicts()))
                for _ in range(8)]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        self.assertEqual(answers, [truth] * 8)

    def test_what_if(self):
        reported = all_in_python(json.loads(program('what-if', self.path, '--json', '--scale', 'stage=2,kind=F,by=0.9')))
        made = self.trace.what_if(scale={'stage': 2, 'kind': 'F', 'by': 0.9})
        self.assertEqual(made.sentence, reported['sentence'])
        self.assertEqual(made.fixes.to_dicts(), next(t['rows'] for t in reported['tables'] if t['name'] == 'fixes'))
        with self.assertRaises(stageline.UsageError):
            self.trace.what_if(scale='stage=99,by=2')
        model = ROOT / 'tests/plan/llama3-8b.json'
        sized = self.trace.what_if(model=model, memory='200GiB', seq=1024)
        reported = all_in_python(json.loads(program('what-if', self.path, '--json', '--model', str(model), '--memory', '200GiB', '--seq', '1024')))
        self.assertEqual(sized.fixes.to_dicts(), next(t['rows'] for t in reported['tables'] if t['name'] == 'fixes'))
        self.assertNotEqual(sized.fixes.to_dicts(), self.trace.what_if().fixes.to_dicts())

    def test_plans_have_the_memory_that_the_run_measured(self):
        import gzip
        sys.path.insert(0, str(ROOT / 'tests/gen'))
        import kineto
        model = ROOT / 'tests/plan/llama3-8b.json'
        with tempfile.TemporaryDirectory() as folder:
            job = pathlib.Path(folder) / 'job'
            kineto.generate(['-o', str(job), *'--shape pipeline --notes actions --ranks 4 --micro-batches 8 --events 3000 --steps 3'.split()])
            for rank in range(4):
                path = next(job.glob(f'rank-{rank}.*'))
                with gzip.open(path, 'rt') as file:
                    trace = json.load(file)
                first = next(e for e in trace['traceEvents'] if e.get('cat') == 'cpu_op')
                total = (60 - 5 * rank) << 30
                trace['traceEvents'].append({'ph': 'i', 's': 't', 'name': '[memory]', 'cat': 'cpu_instant_event', 'pid': first['pid'], 'tid': first['tid'],
                                             'ts': first['ts'], 'args': {'Bytes': 512, 'Addr': 4096, 'Device Type': 1, 'Device Id': 0,
                                                                         'Total Allocated': total, 'Total Reserved': total}})
                with gzip.open(path, 'wt') as file:
                    json.dump(trace, file)
            asked = {'layers': 32, 'seq': 4096, 'micro_batch_size': 1, 'schedule': '1f1b', 'memory': '80GiB'}
            flags = [word for name, value in asked.items() for word in ('--' + name.replace('_', '-'), value)]
            reported = json.loads(program('plan', '--from', job, '--model', model, *flags, '--json'))
            self.assertEqual(len(reported['basis']['memory']), 4)
            self.assertTrue(all(stage['other'] for stage in reported['plans'][0]['stages']))
            plans = stageline.open(job).plan(model, **asked)
            self.assertEqual((plans.plans, plans.basis), (reported['plans'], reported['basis']))
            with self.assertRaises(stageline.UsageError):
                stageline.open(sorted(job.glob('rank-*'))).plan(layers=32)

    def test_diff(self):
        with tempfile.TemporaryDirectory() as folder:
            other = simulated(folder, '--fault', 'slow-stage:1,1.3')
            reported = json.loads(program('diff', self.path, other, '--json'))
            made = stageline.diff(self.trace, stageline.open(other))
            self.assertEqual(made.change_ns, reported['change_ns'])
            self.assertGreater(len(made.groups), 1)

    def test_outputs(self):
        with tempfile.TemporaryDirectory() as folder:
            page = self.trace.report(pathlib.Path(folder) / 'report.html')
            self.assertIn(b'<html', page.read_bytes()[:4096])
            chart = self.trace.chart()
            self.assertTrue(chart.data.startswith(b'<?xml'))
            program('export', self.path, '-o', f'{folder}/program.svg', '--title', 'run')
            self.assertEqual(chart.data, (pathlib.Path(folder) / 'program.svg').read_bytes())
            with self.assertRaises(stageline.UsageError):
                self.trace.export(pathlib.Path(folder) / 'x.nothing')
            with self.assertRaises(stageline.IoError):
                self.trace.report('/proc/no/report.html')

    def test_results_are_copied_and_pickled(self):
        """A trace is not; what was asked of it is, and keeps its values."""
        import copy
        findings, figures = self.profile.findings, self.profile.figures
        for thing in (findings, findings[0], self.profile.info, self.profile.analyze('temporal-breakdown'), figures, self.profile.diagnostics,
                      self.profile.kernels(), figures['step_period']):
            for again in (copy.copy(thing), copy.deepcopy(thing), pickle.loads(pickle.dumps(thing))):
                self.assertEqual(type(again), type(thing))
                self.assertEqual(len(again) if hasattr(thing, '__len__') else 1, len(thing) if hasattr(thing, '__len__') else 1)
        self.assertEqual(pickle.loads(pickle.dumps(findings))[0].title, findings[0].title)
        self.assertEqual(pickle.loads(pickle.dumps(figures))['step_period'], figures['step_period'])
        self.assertEqual(repr(pickle.loads(pickle.dumps(figures))), repr(figures))
        self.assertIn('step_period', repr(figures))
        self.assertEqual(pickle.loads(pickle.dumps(self.profile.info)).to_dict(), self.profile.info.to_dict())
        with self.assertRaises(stageline.UsageError):
            next(f for f in pickle.loads(pickle.dumps(self.trace.findings)) if f.evidence[0]).answer()

    def test_without_the_engine_it_says_so(self):
        """The sources are such a package: the engine is made by the build."""
        environment = {**os.environ, 'PYTHONPATH': str(ROOT / 'python')}
        for what in ("stageline.open('x')", 'stageline.Error', 'stageline.schedule', 'import stageline.torch; stageline.Trace'):
            said = subprocess.run([sys.executable, '-c', f'import stageline; {what}'], env=environment, capture_output=True, text=True)
            self.assertIn('has the recorder alone, without the engine', said.stderr, what)

    def test_every_finding_has_an_answer(self):
        asked = 0
        for name in ('ascend', 'flight-recorder', 'kineto', 'kineto-pipeline', 'memory-snapshot', 'op-json-straggler', 'paddle-log', 'recording'):
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')
                trace = stageline.open(GOLDEN / name / 'input', progress=False)
            for finding in [*trace.findings, *trace.findings.offers]:
                with self.subTest(input=name, finding=finding.id):
                    self.assertGreater(len(finding.answer()), 0)
                asked += 1
        self.assertGreater(asked, 20)

    def test_messages_speak_of_keywords(self):
        for ask, said in ((lambda: self.profile.analyze('operators', format='torch'), 'choose one with ranks: 0, 1'),
                          (lambda: self.profile.analyze('operators', header='x'), "add format='torch'"),
                          (lambda: self.profile.analyze('operators', row_limits=3), 'did you mean row_limit?'),
                          (lambda: self.profile.analyze('operators', compat='hta'), "operators has no compat='hta'"),
                          (lambda: self.profile.analyze('nothing'), 'stageline.analyses() lists them'),
                          (lambda: stageline.open(self.profile_path, steps='x'), "write steps='3:5'"),
                          (lambda: stageline.open(self.profile_path, pp=-1), 'pp must be a whole number')):
            with self.subTest(said), self.assertRaises(stageline.UsageError) as raised:
                ask()
            self.assertIn(said, str(raised.exception))
            self.assertNotIn('--', str(raised.exception))

    def test_a_missing_library_is_named_with_how_to_get_it(self):
        from unittest import mock
        with mock.patch.dict(sys.modules, {'pandas': None, 'polars': None}):
            for ask, hint in ((self.profile.steps.to_polars, "pip install 'polars'"), (self.profile.steps.to_pandas, "pip install 'stageline[pandas]'"),
                              (lambda: __import__('stageline.hta').hta.TraceAnalysis, "pip install 'stageline[hta]'")):
                with self.assertRaises(ModuleNotFoundError) as raised:
                    ask()
                self.assertIn(hint, str(raised.exception))

    def test_people_see_units_and_no_epoch(self):
        """Times of slices count from the run's first, in one unit a column; reprs have no code of a narrow space."""
        kernels = self.profile.kernels()
        epoch, first = str(self.profile.epoch_ns), kernels[0]
        for text in (kernels.text(), kernels._repr_html_()):
            self.assertNotIn(str(first.start_ns), text)
            self.assertIn(f'times are from {epoch} ns', text)
            self.assertIn(f'{first.dur_ns / 1000:,.3f}', text)
            self.assertRegex(text, 'duration (<span class=u>)?µs')
        self.assertEqual(kernels['start_ns'][0], first.start_ns)
        for trace in (self.profile, self.trace):
            shown = [trace.info, trace.findings, trace.diagnostics, list(trace.findings), trace.steps, trace.slices(), trace.figures['step_period']]
            self.assertEqual([type(x).__name__ for x in shown if '\u202f' in repr(x) or '\\u202f' in repr(x)], [])
        described = self.profile.info._repr_html_()
        self.assertIn('<th class=t>ranks</th>', described)
        for line in repr(self.profile.info).splitlines():  # also what has no label in front
            self.assertIn(html.escape(line[14:] if line[13:14] in ('', ' ') else line), described)

    def test_pages_escape_what_traces_name(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'evil.json'
            path.write_text(json.dumps({'traceEvents': [
                {'ph': 'X', 'cat': 'cpu_op', 'name': '<img src=x onerror=alert(1)>', 'pid': 1, 'tid': 1, 'ts': 1, 'dur': 5, 'args': {}},
                {'ph': 'X', 'cat': 'cpu_op', 'name': 'b', 'pid': 1, 'tid': 1, 'ts': 9, 'dur': 5, 'args': {}}]}))
            trace = stageline.open(path)
            for text in (trace._repr_html_(), trace.slices()._repr_html_(), trace.operators()._repr_html_()):
                self.assertNotIn('<img src=x', text)
            self.assertIn('&lt;img src=x', trace.slices()._repr_html_())

    def test_threads_may_ask_at_once(self):
        answers = []
        def ask():
            for _ in range(3):
                answers.append(self.trace.analyze('pipeline-summary').text())
        threads = [threading.Thread(target=ask) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(len(set(answers)), 1)
        self.assertEqual(len(answers), 24)

    def test_tables_outlive_the_trace(self):
        trace = stageline.open(self.profile_path)
        slices, cells = trace.slices(columns=['start_ns', 'name']), trace.analyze('operators')
        expected = slices.to_dicts()
        trace.close()
        del trace
        self.assertEqual(stageline._table.Table(slices._frame).to_dicts(), expected)
        self.assertGreater(len(cells), 0)

    def test_a_closed_trace_says_so(self):
        with stageline.open(self.path) as trace:
            pass
        with self.assertRaises(stageline.UsageError) as caught:
            trace.info
        self.assertIn('closed', str(caught.exception))
        self.assertIn('closed', repr(trace))

    def test_pickling(self):
        with self.assertRaises(TypeError):
            pickle.dumps(self.trace)
        table = self.trace.cells
        again = pickle.loads(pickle.dumps(table))
        self.assertEqual(again.to_dicts(), table.to_dicts())
        self.assertEqual(again.to_csv(), table.to_csv())

    def test_views_are_the_engines_memory(self):
        """The engine's own column is what a table of all slices hands out, for every rank."""
        frame = self.profile.slices(columns=['start_ns', 'dur_ns', 'name'])._frame
        addresses = {self.profile._run.start_address(p) for p in range(len(self.profile.ranks))}
        handed = {frame.data(b, 0)[0].address for b in range(len(frame.batch_rows()))}
        if not self.profile._run.facts[5]:
            self.assertTrue(handed <= addresses, (handed, addresses))
        again = self.profile.slices(columns=['dur_ns'])._frame
        self.assertEqual(again.data(0, 0)[0].address, frame.data(0, 1)[0].address)

    def test_numbers_without_a_copy_of_answers(self):
        table = self.trace.analyze('pipeline-summary')
        frame = next(iter(table.values()))._frame
        place = next(i for i, c in enumerate(frame.columns) if c[2] in ('duration', 'integer'))
        self.assertEqual(frame.data(0, place)[0].address, frame.data(0, place)[0].address)


@unittest.skipUnless(HAVE_ENGINE, 'the module was not built')
class Failing(unittest.TestCase):
    def test_codes_are_exceptions(self):
        with self.assertRaises(stageline.NotFound) as caught:
            stageline.open('/no/such/run')
        self.assertIsInstance(caught.exception, (FileNotFoundError, stageline.Error))
        self.assertEqual(caught.exception.code, 'not_found')
        self.assertIn('/no/such/run', caught.exception.where)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'x.bin'
            path.write_bytes(b'no format at all ' * 6)
            with self.assertRaises(stageline.UnknownFormat):
                stageline.open(path)
        with self.assertRaises(stageline.UsageError):
            stageline.open(PIPELINE, pp=0)
        with self.assertRaises(stageline.UsageError):
            stageline.open(PIPELINE, steps=(1, 2, 3))
        with self.assertRaises(TypeError):
            stageline.open(PIPELINE, stpes=3)

    def test_losses_are_warnings(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'cut.json'
            path.write_text('{"traceEvents": [' + ','.join(json.dumps(
                {'ph': 'X', 'cat': 'cpu_op', 'name': f'a{i}', 'pid': 1, 'tid': 1, 'ts': i * 10, 'dur': 5}) for i in range(50)) + ', {"ph": "X", "na')
            with self.assertWarns(stageline.TraceWarning):
                trace = stageline.open(path)
            self.assertTrue(any(d.severity == 'loss' for d in trace.diagnostics))

    def test_names_that_are_no_text(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(os.fsencode(folder), b'run\xff.json')
            with open(path, 'w') as file:
                json.dump({'traceEvents': [{'ph': 'X', 'cat': 'cpu_op', 'name': 'a', 'pid': 1, 'tid': 1, 'ts': 1, 'dur': 5}]}, file)
            self.assertEqual(len(stageline.open(path).slices()), 1)


@unittest.skipUnless(HAVE_ENGINE, 'the module was not built')
class Process(unittest.TestCase):
    def run_python(self, code, **how):
        return subprocess.run([sys.executable, '-c', f'import sys; sys.path.insert(0, {str(PACKAGE)!r})\n{code}'], capture_output=True, text=True,
                              **how)

    def test_import_takes_nothing_along(self):
        done = self.run_python('before = set(sys.modules); import stageline; print(sorted(set(sys.modules) - before))')
        self.assertEqual(done.stdout.strip(), "['stageline']", done.stderr)

    def test_the_recorder_does_not_load_the_engine(self):
        done = self.run_python('from stageline import record; print("stageline._engine" in sys.modules)')
        self.assertEqual(done.stdout.strip(), 'False', done.stderr)

    def test_ctrl_c_ends_a_reading(self):
        """A reading that is still under way when Ctrl-C comes ends as KeyboardInterrupt, and no thread of it is left."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'big.json'
            event = json.dumps({'ph': 'X', 'cat': 'cpu_op', 'name': 'aten::add', 'pid': 1, 'tid': 1, 'ts': 1, 'dur': 5}) + ',\n'
            with open(path, 'w') as file:
                file.write('{"traceEvents": [\n')
                for _ in range(400):
                    file.write(event * 4000)
                file.write(event[:-2] + ']}')
            code = f'''
import os, signal, threading, time
import stageline
def report(done, expected, events):
    if not report.sent and done > 0:
        report.sent = True
        report.at = done / expected
        os.kill(os.getpid(), signal.SIGINT)
report.sent = False
try:
    stageline.open({str(path)!r}, progress=report, threads=1)
    print('read', report.sent)
except KeyboardInterrupt:
    time.sleep(0.2)
    print('interrupted', len(os.listdir('/proc/self/task')) <= before + 1)
'''.replace('import stageline\n', 'import stageline; stageline.Trace; before = len(os.listdir("/proc/self/task"))\n')
            done = self.run_python(code)
            self.assertIn(done.stdout.strip(), ('interrupted True', 'read False'), done.stderr)
            if done.stdout.strip() == 'read False':
                self.skipTest('this machine reads the file before the first progress is told')

    def test_python_runs_while_the_engine_reads(self):
        """Another thread of Python goes on while a file is read: the lock is let go."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'big.json'
            event = json.dumps({'ph': 'X', 'cat': 'cpu_op', 'name': 'aten::add', 'pid': 1, 'tid': 1, 'ts': 1, 'dur': 5}) + ',\n'
            path.write_text('{"traceEvents": [\n' + event * 400_000 + event[:-2] + ']}')
            counted, done = [0], threading.Event()
            def count():
                while not done.is_set():
                    counted[0] += 1
            thread = threading.Thread(target=count)
            trace = []
            thread.start()
            stageline.open(path)
            seen = counted[0]
            done.set()
            thread.join()
            self.assertGreater(seen, 1000)

    def test_progress_that_raises_ends_the_reading(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'big.json'
            event = json.dumps({'ph': 'X', 'cat': 'cpu_op', 'name': 'aten::add', 'pid': 1, 'tid': 1, 'ts': 1, 'dur': 5}) + ',\n'
            path.write_text('{"traceEvents": [\n' + event * 600_000 + event[:-2] + ']}')
            called = []
            def report(*numbers):
                called.append(numbers)
                raise RuntimeError('enough')
            try:
                stageline.open(path, progress=report, threads=1)
                self.assertEqual(called, [])
            except RuntimeError as error:
                self.assertEqual(str(error), 'enough')


if __name__ == '__main__':
    unittest.main()
