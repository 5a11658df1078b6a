"""Every command that prints JSON has a schema under docs/schema, and what it prints is valid by it."""
import copy
import json
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import contract_surface
from support import SOURCE, Case, run

FOLDER = SOURCE / 'docs/schema/v1'
GOLDEN = SOURCE / 'tests/golden/readers'
# These commands print JSON of other formats: an event as in its source; speedscope's and torch's forms.
OTHERS = {'event', 'export-stacks', 'simulate', 'report', 'view', 'serve'}

try:
    import jsonschema
except ImportError:
    jsonschema = None


class SchemaTest(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.validators = {}
        for path in FOLDER.glob('*.json') if jsonschema else ():
            schema = json.loads(path.read_text())
            jsonschema.Draft202012Validator.check_schema(schema)
            cls.validators[path.stem] = jsonschema.Draft202012Validator(schema)

    def valid(self, name, *words):
        """Whether it answered; an answer has to be valid."""
        done = run(*words, '-q')
        if done.returncode not in (0, 1) or not done.out:
            self.assertIn(done.returncode, (1, 2), words)  # a run that cannot be asked this
            return 0
        for text in done.out.splitlines() if name == 'tail' else [done.out]:
            for error in self.validators[name].iter_errors(json.loads(text)):
                self.fail(f'{words}: {error.json_path}: {error.message[:300]}')
        return 1

    def test_they_are_made_of_the_contract(self):
        done = subprocess.run([sys.executable, SOURCE / 'tools/schema.py', '--check'], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ''))
        listed = set(re.findall(r'\(v1/([\w-]+)\.json\)', (FOLDER.parent / 'README.md').read_text()))
        self.assertEqual(listed, {path.stem for path in FOLDER.glob('*.json')})

    def test_every_command_with_json_has_one(self):
        commands = contract_surface.commands()
        for name, about in commands.items():
            if name in OTHERS:
                continue
            if '--json' in about['flags'] or 'json' in about['choices'].get('--format', []) or 'json' in about['choices'].get('--to', []):
                self.assertTrue((FOLDER / f'{name}.json').is_file(), f'{name} prints JSON and has no schema: tools/schema.py')

    @unittest.skipUnless(jsonschema, 'needs jsonschema')
    def test_answers_are_valid(self):
        contract_surface.make_runs(self.dir)
        runs = [self.dir / name for name in contract_surface.MADE] + [self.dir / 'late-host'] + sorted(p / 'input' for p in GOLDEN.iterdir() if (p / 'input').is_dir())
        counts = dict.fromkeys(self.validators, 0)
        for place in runs:
            for name in ('info', 'explain', 'what-if', 'align'):
                counts[name] += self.valid(name, name, place, '--json')
            counts['sql'] += self.valid('sql', 'sql', place, 'SELECT *, NULL, 0.5 FROM slices LIMIT 20', '--format', 'json')
            counts['analyze'] += self.valid('analyze', 'analyze', 'pipeline-summary,waterfall', place, '--format', 'json')
            counts['export'] += self.valid('export', 'export', place, '--to', 'json', '-o', '-')
        for a, b in contract_surface.PAIRS:
            counts['diff'] += self.valid('diff', 'diff', self.dir / a, self.dir / b, '--json')
        for name in run('help', 'schedules', check=0).out.splitlines():
            if words := re.match(r'  (\S+)', name):
                counts['schedule'] += self.valid('schedule', 'schedule', words[1], '--format', 'json')
        counts['plan'] += self.valid('plan', 'plan', contract_surface.PLANNED, '--gpus', '16', '--memory', '80GiB', '--format', 'json')
        counts['tail'] += self.valid('tail', 'tail', self.dir / 'recording', '--format', 'json')
        counts['version'] += self.valid('version', 'version', '--json')
        counts['digest'] += self.valid('digest', 'digest', GOLDEN / 'op-table/input', '-o', self.dir / 'digests', '--json')
        for label in range(2):
            run('history', 'add', GOLDEN / 'op-table/input', '--db', self.dir / 'history.sqlite', '--label', label)
        counts['history'] += self.valid('history', 'history', 'list', '--db', self.dir / 'history.sqlite', '--json')
        counts['history'] += self.valid('history', 'history', 'check', '--db', self.dir / 'history.sqlite', '--json')
        for name in re.findall(r'^  (\S+)', run('help', 'analyses', check=0).out, re.M):
            for place in (GOLDEN / 'op-table/input', GOLDEN / 'kineto/input', GOLDEN / 'kineto-modules/input', GOLDEN / 'ascend/input'):
                counts['analyze'] += self.valid('analyze', 'analyze', name, place, '--format', 'json')
        self.assertEqual([name for name, count in counts.items() if count == 0], [], counts)

    @unittest.skipUnless(jsonschema, 'needs jsonschema')
    def test_several_analyses_are_one_document(self):
        done = run('analyze', 'pipeline-summary,waterfall,links', GOLDEN / 'op-table/input', '--format', 'json', '-q', check=0)
        reported = json.loads(done.out)
        self.assertEqual([one['analysis'] for one in reported], ['pipeline-summary', 'waterfall', 'links'])
        for one in reported:
            alone = json.loads(run('analyze', one['analysis'], GOLDEN / 'op-table/input', '--format', 'json', '-q', check=0).out)
            self.assertEqual(one['tables'], alone['tables'])

    @unittest.skipUnless(jsonschema, 'needs jsonschema')
    def test_what_is_wrong_is_found(self):
        """Spoiled answers are refused: a key that is gone, a number as text, a column that a row lacks."""
        reported = json.loads(run('analyze', 'pipeline-summary', GOLDEN / 'op-table/input', '--format', 'json', '-q', check=0).out)
        valid = self.validators['analyze'].is_valid
        self.assertTrue(valid(reported) and valid([reported, reported]))
        for spoil in (lambda a: a.pop('notes'), lambda a: a['tables'][0]['rows'][0].pop('busy_ns'), lambda a: a['tables'][0]['rows'][0].update(busy_ns='5'),
                      lambda a: a['tables'][0]['rows'][0].update(busy_ns=0.5), lambda a: a.update(analysis='none'), lambda a: a['tables'][0].pop('columns')):
            other = copy.deepcopy(reported)
            spoil(other)
            self.assertFalse(valid(other) or valid([reported, other]))
        reported = json.loads(run('explain', GOLDEN / 'op-table/input', '--json', '-q', check=0).out)
        for spoil in (lambda a: a.pop('findings'), lambda a: a.update(step_ns=0.5), lambda a: a['parts'][0].update(share='half')):
            other = copy.deepcopy(reported)
            spoil(other)
            self.assertFalse(self.validators['explain'].is_valid(other))


if __name__ == '__main__':
    unittest.main()
