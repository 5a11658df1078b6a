"""Clock alignment as a user sees it: the table, refusals, drawn times, and real traces with clocks disturbed on purpose."""
import csv
import io
import json
import re
import statistics
import subprocess
import sys
import unittest
from decimal import Decimal

from support import SHARED, SOURCE, Case, needs_shared, page_answer, run

sys.path.insert(0, str(SOURCE / 'tests/server'))
from serving import Server  # noqa: E402

INJECT = SOURCE / 'tests/gen/skew_clocks.py'


def clocks(path, *flags, code=0):
    done = run('align', path, '--format', 'csv', *flags, check=code)
    return {int(r['rank']): r for r in csv.DictReader(io.StringIO(done.out)) if not r['from_ns']}, done


def rows_of(path):
    with open(path) as f:
        return list(csv.DictReader(f))


class Align(Case):
    def simulate(self, name, *flags, schedule='1f1b'):
        out = self.dir / name
        words = ['simulate', schedule, '--stages', 4, '--steps', 6, '--latency', 0.2, '--jitter', 0.05, '--seed', 5, *flags, '-o']
        run(*words, out, check=0)
        (out / 'truth.csv').unlink()
        twin = self.dir / (name + '.cells')
        run(*words, twin, '--format', 'cells', check=0)
        offsets = {}
        for stamped, true in zip(rows_of(twin / 'cells.csv'), rows_of(twin / 'truth.csv')):
            offsets[int(true['rank'])] = round((Decimal(stamped['start_ts']) - Decimal(true['start_ts'])) * 10**9)
        return out, offsets

    def test_table(self):
        logs, offsets = self.simulate('logs', '--machines', 4, '--clock-skew', 25)
        self.assertTrue(any(offsets.values()))
        rows, done = clocks(logs)
        self.assertEqual(list(next(iter(rows.values()))), ['rank', 'host', 'reference', 'offset_ns', 'offset_half_ns', 'drift_ppb',
                                                            'drift_half_ppb', 'messages', 'method', 'from_ns', 'offset_error_ns',
                                                            'drift_error_ppb', 'step'])
        for rank, r in rows.items():
            error = abs(int(r['offset_ns']) - (offsets[rank] - offsets[0]))
            self.assertLessEqual(error, int(r['offset_half_ns']))  # stamps are whole microseconds, and the bounds know it
            self.assertLessEqual(error, 100_000)
        self.assertEqual(rows[0]['method'], 'reference')
        self.assertEqual(rows[3]['method'], 'compute gaps')
        as_json = json.loads(run('align', logs, '--json', check=0).out)
        self.assertEqual(len(as_json['tables'][0]['rows']), 4)

        # The table for people shows ppm, and the estimate next to the bound.
        text = run('align', logs, check=0).out
        for word in ('likely off', 'at most ±', 'drift ppm'):
            self.assertIn(word, text)
        self.assertNotIn('ppb', text)
        self.assertNotRegex(text, r'(?<!\d)-0\.000')

    def test_every_schedule(self):
        """The layout of chunks and the stage of each rank follow from the order of work, so clocks that are hours apart hide neither."""
        schedules = re.findall(r'^  (\S+)', run('help', 'schedules', check=0).out, re.M)
        self.assertEqual(len(schedules), 16)
        for schedule in schedules:
            for skew in (20, 300, 3_600_000):
                with self.subTest(schedule=schedule, skew=skew):
                    logs, offsets = self.simulate(f'{schedule}.{skew}', '--machines', 4, '--clock-skew', skew, '--messages', schedule=schedule)
                    rows, done = clocks(logs)
                    self.assertNotRegex(done.err, 'contradict|cannot be aligned')
                    for rank, r in rows.items():
                        self.assertLessEqual(abs(int(r['offset_ns']) - (offsets[rank] - offsets[0])), int(r['offset_half_ns']) + 2000)
                    told = json.loads(run('explain', logs, '--format', 'json', check=0).out)
                    self.assertEqual((told['why_not'], [f['id'] for f in told['findings']]), ('', []))
                    self.assertIn(f'{schedule} ·', told['run_en'])

    def test_no_latency(self):
        """Messages that take no time leave one offset: it is found."""
        for schedule in ('1f1b', 'zb-h1'):
            for skew in (0, 25):
                out = self.dir / f'{schedule}{skew}'
                run('simulate', schedule, '--jitter', 0.02, '--machines', 2, '--steps', 3, '--clock-skew', skew, '--force', '-o', out, check=0)
                (out / 'truth.csv').unlink(missing_ok=True)
                rows, done = clocks(out)
                self.assertNotRegex(done.err, 'contradict|left out')
                self.assertLessEqual(int(rows[2]['offset_half_ns']), 4000)
                if not skew:
                    self.assertLessEqual(abs(int(rows[2]['offset_ns'])), int(rows[2]['offset_half_ns']))
                run('report', out, '-o', self.dir / 'r.html', check=0)

    def test_recorded_pipelines(self):
        """Real runs of torch on one host: their clocks are one, and measuring them all the same says so too."""
        for folder in sorted((SOURCE / 'tests/torch/recorded/pipelines').iterdir()):
            with self.subTest(run=folder.name):
                rows, done = clocks(folder)
                self.assertEqual([r['method'] for r in rows.values()], ['reference'] + ['shared clock'] * (len(rows) - 1))
                self.assertEqual({r['offset_ns'] for r in rows.values()}, {'0'})
                self.assertNotIn('but by their messages rank', done.err)
                rows, done = clocks(folder, '--align', 'always')
                for rank, r in rows.items():
                    self.assertNotEqual(r['offset_half_ns'], '')
                    self.assertLessEqual(abs(int(r['offset_ns'])), int(r['offset_half_ns']), f'rank {rank}: a bound is broken')
                drawn = run('export', folder, '-o', self.dir / 'x.svg', '--align', 'always', check=0)
                self.assertNotIn('keep the recorded timestamps', drawn.err)
                self.assertNotRegex(drawn.err, 'contradict|no clocks can explain')

    def test_words(self):
        """A page reports the evidence for its clocks, and claims nothing that was not done."""
        logs, _ = self.simulate('apart', '--machines', 2, '--dp', 2)
        page = self.dir / 'x.html'

        def said(*flags, of=logs):
            done = run('report', of, '-o', page, *flags, check=0)
            table = (page_answer(page, 'clocks') or {'tables': [None]})['tables'][0]
            methods = table and {row[[c['name'] for c in table['columns']].index('method')] for row in table['rows']}
            return page_answer(page, 'run')['clock']['state'], methods, done

        self.assertEqual(said('--align', 'never')[:2], ('unaligned', None))
        self.assertEqual(said()[0], 'unaligned')  # nothing connects the replicas: nothing was done
        state, by, done = said('--align-on', '0:4:F0')
        self.assertEqual(state, 'aligned')
        self.assertIn('operator', by)
        self.assertIn('were aligned by an operator', done.err)
        rows, _ = clocks(logs, code=2)
        self.assertEqual((rows[4]['method'], rows[4]['offset_ns']), ('untied', ''))
        rows, _ = clocks(logs, '--trust-clocks')
        self.assertEqual((rows[4]['method'], rows[4]['offset_ns']), ('trusted', '0'))
        alone, _ = self.simulate('four', '--machines', 4, '--clock-skew', 25)
        state, by, _ = said(of=alone)
        self.assertEqual(state, 'aligned')
        self.assertIn('compute gaps', by)
        self.assertGreater(page_answer(page, 'run')['clock']['uncertainty_ns'], 0)

    def test_two_labels(self):
        """Two cells under each other's label are named; they neither separate the clocks of the run nor count as clock
        errors."""
        logs, _ = self.simulate('labels')
        twin = self.dir / 'labels.csv'
        run('export', logs, '-o', twin, check=0)
        rows = rows_of(twin)
        a, b = [next(r for r in rows if (r['rank'], r['kind'], r['micro_batch'], r['step']) == ('2', 'F', mb, rows[-1]['step'])) for mb in '45']
        a['micro_batch'], b['micro_batch'] = b['micro_batch'], a['micro_batch']
        with open(twin, 'w') as f:  # with its machine the table would say that all ranks share a clock
            out = csv.DictWriter(f, [name for name in rows[0] if name != 'machine'], extrasaction='ignore', lineterminator='\n')
            out.writeheader()
            out.writerows(rows)
        done = run('report', twin, '-o', self.dir / 'r.html', check=0)
        self.assertIn('no clocks can explain', done.err)
        self.assertNotIn('Synchronise', done.out)

    def test_messages_under_wrong_labels(self):
        """Messages that contradict each other are not used; the order of the cells still ties their ranks."""
        for mixed in (((2, 3), (4, 5)), ((0, 1), (5, 7))):
            logs, _ = self.simulate(f'batches{mixed[1][1]}', '--machines', 2, '--messages', '--clock-skew', 10)
            truth = int(clocks(logs)[0][2]['offset_ns'])
            twin = self.dir / f'batches{mixed[1][1]}.csv'
            run('export', logs, '-o', twin, check=0)
            rows = rows_of(twin)
            other = {str(a): str(b) for pair in mixed for a, b in (pair, pair[::-1])}
            for r in rows:
                if r['rank'] == '2' and r['kind'] in ('RF', 'SB'):
                    r['micro_batch'] = other.get(r['micro_batch'], r['micro_batch'])
            with open(twin, 'w') as f:
                out = csv.DictWriter(f, rows[0], lineterminator='\n')
                out.writeheader()
                out.writerows(rows)
            found, done = clocks(twin)
            self.assertIn('contradict each other', done.err)
            self.assertEqual({found[rank]['method'] for rank in (2, 3)}, {'compute gaps'})
            self.assertLess(abs(int(found[2]['offset_ns']) - truth), int(found[2]['offset_half_ns']) + 1)

    def test_drawn(self):
        """A skewed run is drawn as the straight one was."""
        straight, _ = self.simulate('straight', '--machines', 4)
        skewed, offsets = self.simulate('skewed', '--machines', 4, '--clock-skew', 25)

        def starts(folder, *flags):
            out = self.dir / 'trace.json'
            done = run('export', folder, '-o', out, *flags, check=0)
            trace = json.loads(out.read_text())
            zero = int(trace['otherData']['start_ns'])
            found = {}
            for e in trace['traceEvents']:
                if e.get('ph') == 'X':
                    found.setdefault((e['pid'], e['name']), []).append(zero + e['ts'] * 1000)
            return trace['otherData']['clock'], found, done

        _, truth, _ = starts(straight, '--align', 'never')
        state, drawn, _ = starts(skewed)
        self.assertEqual(state, 'aligned')
        self.assertEqual(truth.keys(), drawn.keys())
        worst = max(abs(a + offsets[0] - b) for key in truth for a, b in zip(truth[key], drawn[key]))
        self.assertLessEqual(worst, 110_000)
        state, raw, _ = starts(skewed, '--align', 'never')
        self.assertEqual(state, 'unaligned')
        self.assertGreater(max(abs(a + offsets[0] - b) for key in truth for a, b in zip(truth[key], raw[key])), 1_000_000)
        svg = self.dir / 'chart.svg'
        run('export', skewed, '-o', svg, check=0)
        plain = self.dir / 'raw.svg'
        run('export', skewed, '-o', plain, '--align', 'never', '--title', 'chart', check=0)
        run('export', skewed, '-o', svg, '--title', 'chart', check=0)
        self.assertNotEqual(svg.read_bytes(), plain.read_bytes())
        page = run('report', skewed, '-o', self.dir / 'r.html', check=0).out
        self.assertNotIn('clocks disagree', page)

    def test_refusal(self):
        logs, _ = self.simulate('logs', '--machines', 2, '--dp', 2)
        _, done = clocks(logs, code=2)
        self.assertIn('cannot be aligned with rank 0', done.err)
        chart = self.dir / 'x.svg'
        refused = run('export', logs, '-o', chart, '--align', 'always', check=2)
        self.assertIn('ranks 4, 5, 6, 7 cannot be put on one clock', refused.err)
        self.assertIn('--trust-clocks', refused.err)
        self.assertFalse(chart.exists())
        # Whole replicas with different clocks are drawn next to each other, with a note.
        self.assertIn('cannot be aligned with rank 0', run('export', logs, '-o', chart, check=0).err)
        run('export', logs, '-o', chart, '--align', 'always', '--trust-clocks', check=0)
        run('export', logs, '-o', chart, '--ranks', '4-7', check=0)
        run('export', logs, '-o', chart, '--align-on', '0:4:F0', check=0)
        run('analyze', 'pipeline-summary', logs, check=0)  # sums take what cannot be aligned as it is
        run('export', logs, '-o', self.dir / 'cells.csv', check=0)
        clocks(logs, '--trust-clocks')

    def test_the_viewer_draws_as_recorded(self):
        # Two stages on two machines, and nothing that aligns their clocks: a chart is refused, the page shows them with a warning.
        path = self.dir / 'apart.csv'
        rows = [f'{rank},{rank},m{rank},{step},optimizer,{rank * 50000 + step * 100},20' for rank in (0, 1) for step in range(3)]
        path.write_text('\n'.join(['rank,stage,machine,step,kind,start_ms,dur_ms', *rows, '']))
        self.assertIn('cannot be put on one clock', run('export', path, '-o', self.dir / 'apart.svg', check=2).err)
        server = Server(str(path), '--port', '0', '--quiet')
        try:
            self.assertEqual(server.wait_ready(), 'ready')
            flaws = json.loads(server.get('/api/run')[2])['flaws']
        finally:
            server.stop()
        self.assertIn('clock.drawn_as_recorded', [f['name'] for f in flaws])
        refused = Server(str(path), '--port', '0', '--quiet', '--align', 'always')
        try:
            self.assertEqual(refused.wait_ready(), 'failed')
        finally:
            refused.stop()

    def test_every_reader(self):
        """Checks the clocks of each format's smallest run in every mode: the result is a table, or a refusal that names
        the ranks; nothing else."""
        tied = refused = 0
        for folder in sorted((SOURCE / 'tests/golden/readers').iterdir()):
            for mode in ('auto', 'always'):
                with self.subTest(reader=folder.name, mode=mode):
                    done = run('align', folder / 'input', '--format', 'csv', '--align', mode)
                    rows = list(csv.DictReader(io.StringIO(done.out)))
                    self.assertIn(done.returncode, (0, 2), done.err)
                    self.assertTrue(rows)
                    untied = [r for r in rows if r['method'] == 'untied']
                    self.assertEqual(done.returncode == 2, bool(untied), done.err)
                    if untied:
                        self.assertRegex(done.err, 'cannot be aligned with rank')
                        refused += 1
                    for r in rows:
                        if r['method'] in ('messages', 'collectives', 'messages and collectives', 'compute gaps'):
                            tied += 1
                            self.assertGreaterEqual(int(r['offset_half_ns']), 0)
                            self.assertLessEqual(float(r['offset_error_ns']), int(r['offset_half_ns']))
                    self.assertFalse([r for r in csv.DictReader(io.StringIO(run('align', folder / 'input', '--format', 'csv', '--align', mode,
                                      '--trust-clocks', check=0).out)) if r['method'] == 'untied'])
            # Stamps as they are: whatever the source says of its clocks, the same as not asking.
            self.assertEqual(run('export', folder / 'input', '--to', 'csv', '-o', '-', '--align', 'never').out,
                             run('export', folder / 'input', '--to', 'csv', '-o', '-').out)
            drawn = run('export', folder / 'input', '--to', 'chrome', '-o', self.dir / 'never.json', '--align', 'never')
            if drawn.returncode == 0:
                self.assertNotEqual(json.loads((self.dir / 'never.json').read_text()).get('otherData', {}).get('clock'), 'aligned')
        self.assertGreater(tied, 10)
        self.assertGreater(refused, 0)

    def test_usage(self):
        logs, _ = self.simulate('logs')
        for flags, hint in [(['--align', 'sometimes'], 'auto'), (['--align-on', '0-1'], '--align-on 0:3:'), (['--align-on', '0:9:F0'], 'rank 9'),
                            (['--align-on', '0:1:nothing'], '"nothing"')]:
            self.assertIn(hint, run('export', logs, '-o', self.dir / 'x.svg', *flags, check=2).err)


@needs_shared
class RealTraces(Case):
    """Adds ± 50 ms and ± 20 ppm to the clock of every (dp, stage) of two production jobs."""

    def inject(self, job, *flags):
        out, truth = self.dir / f'{job}.csv', self.dir / f'{job}.truth.csv'
        table = SHARED / 'pipeline_ops/bytedance' / f'trace-{job}.csv.gz'
        if not table.exists():
            self.skipTest(f'needs {table.name}')
        subprocess.run([sys.executable, INJECT, table, out, truth, *map(str, flags)], check=True)
        true = {int(r['rank']): (float(r['offset_ns']), float(r['drift_ppb'])) for r in rows_of(truth)}
        place = {int(r['rank']): (int(r['dp_rank']), int(r['stage'])) for r in rows_of(out)}
        return out, true, place

    def errors(self, rows, true):
        first = min(true)
        found = {}
        for rank, r in rows.items():
            error = float(r['offset_ns']) - (true[rank][0] - true[first][0])
            drift = float(r['drift_ppb']) - (true[rank][1] - true[first][1])
            found[rank] = error, drift
            self.assertLessEqual(abs(error), int(r['offset_half_ns']), f'rank {rank}: a bound is broken')
            self.assertLessEqual(abs(drift), float(r['drift_half_ppb']) + 1, f'rank {rank}: a bound is broken')
        return found

    def check_job(self, job, max_us):
        path, true, place = self.inject(job)
        rows, done = clocks(path)
        self.assertNotRegex(done.err, 'was set in mid-run|faster than quartz')
        found = self.errors(rows, true)
        at = {where: rank for rank, where in place.items()}
        pairs = [(at[d, s], at[d, s + 1]) for d, s in at if (d, s + 1) in at]
        offsets = [abs(found[b][0] - found[a][0]) / 1e3 for a, b in pairs]
        drifts = [abs(found[b][1] - found[a][1]) / 1e3 for a, b in pairs]
        self.assertLessEqual(statistics.median(offsets), max_us)
        self.assertLessEqual(max(drifts), 2)
        likely = {rank: float(r['offset_error_ns']) for rank, r in rows.items()}
        for rank, r in rows.items():
            self.assertLessEqual(likely[rank], int(r['offset_half_ns']))
        if job == 'ST':  # SE's own stamps are off by more than its messages leave open (docs/reference/clocks.md)
            ratios = [abs(found[r][0]) / likely[r] for r in found if likely[r] > 0]
            self.assertLess(max(ratios), 3)
        # The errors of the traces' own clocks are in both results: the disturbance itself is found far better.
        path, still, _ = self.inject(job, '--offset-ms', 0, '--drift-ppm', 0)
        before = self.errors(clocks(path)[0], still)
        self.assertLessEqual(max(abs(found[r][0] - before[r][0]) / 1e3 for r in found), 0.15 * max_us)
        for r in found:
            self.assertLessEqual(abs(found[r][0] - before[r][0]), max(likely[r], 1))
        self.assertLessEqual(max(abs(found[r][1] - before[r][1]) / 1e3 for r in found), 0.1)

    def test_st(self):
        self.check_job('ST', 10)

    def test_se(self):
        self.check_job('SE', 200)

    def test_compute_only_and_replicas_apart(self):
        path, _, place = self.inject('ST', '--compute-only')
        rows, done = clocks(path, code=2)
        self.assertIn('ranks 1, 3, 5, 7 cannot', done.err)
        self.assertEqual({r['reference'] for rank, r in rows.items() if place[rank][0] == 1}, {'1'})
        self.assertEqual(rows[2]['method'], 'compute gaps')

    def test_bad_matches(self):
        path, true, _ = self.inject('ST', '--swap', 0.01)
        rows, done = clocks(path)
        self.assertIn('matches that no clocks can explain were skipped', done.err)
        self.assertRegex(done.err, r'step \d+, RF\d of rank \d')
        self.assertLessEqual(statistics.median(abs(e) for e, _ in self.errors(rows, true).values()), 20_000)

    def test_a_clock_set_in_mid_run(self):
        path, _, _ = self.inject('ST', '--step', '4:7:0.4')
        done = run('align', path, '--format', 'csv', check=0)
        self.assertIn('that of rank 4 by +', done.err)
        by_rank = [r for r in csv.DictReader(io.StringIO(done.out)) if r['rank'] == '4']
        self.assertEqual(len(by_rank), 2)
        drift = float(by_rank[1]['drift_ppb']) - float(by_rank[0]['drift_ppb'])
        self.assertAlmostEqual(int(by_rank[1]['offset_ns']) - int(by_rank[0]['offset_ns']), 7e6, delta=150_000)
        self.assertLess(abs(drift), 5000)

    def test_a_missing_rank(self):
        path, true, _ = self.inject('ST', '--drop-rank', 4, '--no-collectives')
        rows, done = clocks(path, code=2)
        self.assertIn('cannot be aligned with rank 0', done.err)
        self.assertEqual(rows[6]['reference'], '6')  # stage 3 of replica 0, behind the gap
        self.assertEqual(rows[2]['reference'], '0')
        self.assertEqual({rows[r]['reference'] for r in (1, 3, 5, 7)}, {'1'})


if __name__ == '__main__':
    unittest.main()
