#!/usr/bin/env python3
"""A cause that Stageline does not have, in a program with its own list of causes: run.py PROGRAM. It is written once
(toy_cause.cc, words.json). Checks that it is suspected, priced, reported in both languages, highlighted in the page,
matched by diff, found in SQL, and that report --fail-on stops at it."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = sys.argv.pop(1)


def run(*words, code=0):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, (words, done.returncode, done.stderr)
    return done.stdout


class ToyCause(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.well, cls.ill = (pathlib.Path(cls.folder.name) / name for name in ('well', 'ill'))
        made = ('simulate', '1f1b', '--stages', 3, '--micro-batches', 6, '--steps', 4, '-q')
        run(*made, '-o', cls.well)
        run(*made, '--fault', 'slow-stage:1,1.5', '-o', cls.ill)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def explained(self, path):
        return json.loads(run('explain', path, '--format', 'json', '-q'))

    def test_it_is_the_only_cause_and_priced(self):
        well, ill = self.explained(self.well), self.explained(self.ill)
        self.assertEqual(well['findings'], [])
        self.assertEqual([f['id'] for f in ill['findings']], ['toy.slow'])
        toy = ill['findings'][0]
        self.assertEqual((toy['places'], toy['key']), ([{'kind': 'stage', 'stage': 1}], 'stage:1'))
        self.assertAlmostEqual(toy['lost_ns'], ill['step_ns'] - well['step_ns'], delta=0.01 * ill['step_ns'])
        self.assertEqual(toy['saving_ns'], toy['lost_ns'])

    def test_it_is_reported_in_both_languages(self):
        self.assertIn('Toy stage 1 is slow', run('explain', self.ill, '-q'))
        self.assertIn('玩具级 1 慢', run('explain', self.ill, '-q', '--lang', 'zh'))

    def test_tables_and_sql_have_it(self):
        query = 'SELECT f.id, p.kind, p.stage FROM findings f JOIN finding_places p ON p.finding = f.position'
        self.assertEqual(json.loads(run('sql', self.ill, query, '--format', 'json', '-q'))['rows'], [['toy.slow', 'stage', 1]])
        rows = json.loads(run('analyze', 'stragglers', self.ill, '--table', 'straggler-causes', '--format', 'json', '-q'))['tables'][0]['rows']
        self.assertEqual([(row['cause'], row['stage']) for row in rows], [('toy', 1)])

    def test_diff_matches_it(self):
        rows = json.loads(run('diff', self.well, self.ill, '--format', 'json', '-q'))['changes']
        self.assertEqual((rows[0]['cause'], rows[0]['places']), ('compute', [{'kind': 'stage', 'stage': 1}]))

    def test_a_report_stops_at_it(self):
        for path, code in ((self.ill, 1), (self.well, 0)):
            run('report', path, '-o', path.with_suffix('.html'), '--fail-on', 'toy.slow', '-q', code=code)

    def test_the_page_highlights_its_ranks(self):
        esbuild = ROOT / 'web/node_modules/esbuild'
        if not shutil.which('node') or not esbuild.exists():
            self.skipTest('no node, or the viewer was not built')
        toy = self.explained(self.ill)['findings'][0]
        script = f"""
import {{buildSync}} from {json.dumps(str(esbuild / 'lib/main.js'))};
const made = buildSync({{entryPoints: [{json.dumps(str(ROOT / 'web/src/viewer/evidence/rules.ts'))}], bundle: true, format: 'esm', write: false}});
const {{accusedOf}} = await import('data:text/javascript;base64,' + Buffer.from(made.outputFiles[0].text).toString('base64'));
const ranks = [0, 1, 2].map(stage => ({{rank: stage, stage, dp: 0, machine: 0}}));
console.log(JSON.stringify([...accusedOf({{ranks, kinds: []}}, {json.dumps(toy)}).ranks]));"""
        done = subprocess.run(['node', '--input-type=module', '-e', script], capture_output=True, text=True, cwd=ROOT / 'web')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), [1])


unittest.main()
