"""The script of the GitHub Action (packaging/action/gate.py), run as action.yml runs it: verdict, comment, what it refuses to say."""
import http.server
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import unittest

from support import BIN, SOURCE, Case, run

sys.path.insert(0, str(SOURCE / 'packaging/action'))
import gate  # noqa: E402

SHAPE = ['1f1b', '--cost', '10,20', '--optimizer', '5']


def shell():
    """The steps of action.yml, read without a YAML library: {name of the variable: its value}, and the script of the last one."""
    text = (SOURCE / 'action.yml').read_text()
    last = text.rpartition('    - id: gate\n')[2]
    script = last.partition('      run: |\n')[2]
    return text, dict(re.findall(r'^        ([A-Z_]+): (.+)$', last, re.M)), re.sub('^ {8}', '', script, flags=re.M)


class Action(Case):
    def run_of(self, name, *words):
        run('simulate', *SHAPE, '--force', '-o', self.dir / name, *words, check=0)
        return self.dir / name

    def noisy(self, name, *words):
        return self.run_of(name, '--jitter', '0.03', *words)

    def gate(self, where, *words, env=None):
        out = self.dir / 'out'
        done = subprocess.run([sys.executable, SOURCE / 'packaging/action/gate.py', where, '--out', out, '--program', BIN, *map(str, words)],
                              capture_output=True, text=True, env={**{k: v for k, v in os.environ.items() if not k.startswith('GITHUB_')}, **(env or {})})
        verdict = json.loads((out / 'verdict.json').read_text()) if (out / 'verdict.json').exists() and done.returncode != 2 else None
        return done.returncode, verdict, done.stdout, done.stderr

    def history(self, steps_ms):
        """A history with these mean steps: one run that was read, and copies of its row."""
        file = self.dir / 'history.sqlite'
        file.unlink(missing_ok=True)
        run('history', 'add', self.noisy('level', '--steps', '6'), '--db', file, '--label', 'r1', check=0)
        with sqlite3.connect(file) as db:
            db.execute('update runs set step_ns = ?', (steps_ms[0] * 1e6,))
            for number, step in enumerate(steps_ms[1:], 2):
                db.execute('insert into runs select ?, ?, added_s, path, steps, ? from runs where id = 1', (number, f'r{number}', step * 1e6))
                db.execute('insert into parts select ?, name, ns from parts where run = 1', (number,))
        db.close()
        return file

    def test_a_slower_run_fails_with_deltas_that_add_up(self):
        before, after = self.noisy('before', '--steps', '6'), self.noisy('after', '--steps', '6', '--fault', 'slow-stage:2,1.3', '--seed', '9')
        code, verdict, comment, _ = self.gate(after, '--baseline', before)
        self.assertEqual((code, verdict['verdict']), (1, 'fail'))
        rows = re.findall(r'^\| (.+) \| \**([+-][\d.]+)\** \| \**([+-][\d.]+) %\** \|$', comment, re.M)
        self.assertGreater(len(rows), 2)
        for column in (1, 2):
            self.assertAlmostEqual(sum(float(row[column]) for row in rows[:-1]), float(rows[-1][column]), places=6)
        self.assertIn('stage 2 backward', rows[0][0])
        self.assertIn('1. Stage 2 is slow', comment)
        self.assertIn('(new)', comment)
        self.assertIn('█', comment)
        self.assertEqual(sorted(path.name for path in (self.dir / 'out').iterdir()), ['comment.md', 'pipeline.svg', 'report.html', 'verdict.json'])
        # The same change is within a larger budget.
        self.assertEqual(self.gate(after, '--baseline', before, '--budget', '25%')[:2][0], 0)
        self.assertEqual(self.gate(before, '--baseline', after)[1]['verdict'], 'pass')

    def test_noise_allows_no_conclusion(self):
        before, after = self.run_of('before', '--steps', '4', '--jitter', '0.3'), self.run_of('after', '--steps', '4', '--jitter', '0.3', '--seed', '2')
        code, verdict, comment, _ = self.gate(after, '--baseline', before, '--budget', '1%')
        self.assertEqual((code, verdict['verdict']), (0, 'no-conclusion'))
        steps = int(re.search(r'Record about (\d+) steps', comment)[1])
        self.assertGreater(steps, 4)
        self.assertEqual(self.gate(after, '--baseline', before, '--budget', '1%', '--fail-without-conclusion')[0], 3)
        # What it asks for is enough, and then it decides.
        many = [self.run_of(name, '--steps', str(steps), '--jitter', '0.3', '--seed', seed) for name, seed in (('many', '1'), ('more', '2'))]
        self.assertEqual(self.gate(many[1], '--baseline', many[0], '--budget', '1%')[1]['verdict'], 'pass')

    def test_one_step_is_no_evidence(self):
        one = self.noisy('one', '--steps', '1')
        code, verdict, comment, _ = self.gate(one, '--baseline', one)
        self.assertEqual((code, verdict['verdict']), (0, 'no-conclusion'))
        self.assertIn('at least 3', comment)

    def test_a_history(self):
        steps = [300 + 0.1 * (7 * i % 5) for i in range(20)]
        new = self.noisy('new', '--steps', '6')
        near = json.loads(run('explain', new, '--format', 'json').out)['step_ns'] / 1e6
        level = [near + step - 300 for step in steps]
        code, verdict, comment, _ = self.gate(new, '--history', self.history(level), '--label', 'r21')
        self.assertEqual((code, verdict['verdict'], verdict['runs']), (0, 'pass', 21))
        slower = [step - 3 for step in level[:10]] + level[10:]
        file = self.history(slower)
        shutil.copy(file, self.dir / 'kept.sqlite')
        code, verdict, comment, _ = self.gate(new, '--history', file)
        self.assertEqual((code, verdict['verdict']), (1, 'fail'))
        self.assertIn('Since run 11 (r11)', comment)
        # A change that was accepted counts no more, a larger budget allows it, and an unknown label is an error.
        shutil.copy(self.dir / 'kept.sqlite', file)
        self.assertEqual(self.gate(new, '--history', file, '--since', 'r11')[1]['runs'], 11)
        self.assertEqual(self.gate(new, '--history', file, '--history-budget', '2%')[1]['verdict'], 'pass')
        self.assertEqual(self.gate(new, '--history', file, '--since', 'r99')[0], 2)

    def test_a_history_that_is_short_or_noisy(self):
        new = self.noisy('new', '--steps', '6')
        near = json.loads(run('explain', new, '--format', 'json').out)['step_ns'] / 1e6
        code, verdict, comment, _ = self.gate(new, '--history', self.dir / 'first.sqlite')
        self.assertEqual((code, verdict['verdict'], verdict['runs']), (0, 'no-conclusion', 1))
        self.assertIn('1 of at least 12 runs', comment)
        noisy = self.history([near + 12 * (7 * i % 5 - 2) for i in range(30)])
        code, verdict, comment, _ = self.gate(new, '--history', noisy, '--history-budget', '1%')
        self.assertEqual((code, verdict['verdict']), (0, 'no-conclusion'))
        self.assertGreater(verdict['smallest_share'], 0.01)

    def test_text_of_a_run_is_no_markup(self):
        for text in ('a|b', '<img src=x>', '@everyone', '[x](y)', '`x`', 'see https://x', '#12', '**b**', 'a\n# b', 'www.x.y'):
            shown = gate.plain(text)
            self.assertFalse(re.search(r'[|<>@\[\]`*\n]|#(?!\d+;)|://|www\.', shown), shown)
            self.assertEqual(re.sub(r'&#(\d+);', lambda m: chr(int(m[1])), shown), ' '.join(text.split()))

    def test_errors(self):
        one = self.noisy('one', '--steps', '3')
        for words in ([self.dir / 'none', '--baseline', one], [one, '--baseline', self.dir / 'none'], [one], [one, '--baseline', one, '--budget', '3']):
            code, _, _, err = self.gate(*words)
            self.assertEqual(code, 2, words)
            self.assertTrue(err)

    def test_the_action_runs_the_script(self):
        """The last step of action.yml as a runner does it: inputs in variables, outputs in files, the comment by the API, twice."""
        before, after = self.noisy('before', '--steps', '6'), self.noisy('after', '--steps', '6', '--fault', 'slow-stage:2,1.3')
        text, variables, script = shell()
        inputs = set(re.findall(r'^  ([a-z-]+):$', text.partition('inputs:')[2].partition('outputs:')[0], re.M))
        self.assertEqual(inputs, set(re.findall(r'inputs\.([a-z-]+)', text)), 'an input that no step reads, or one that is not declared')
        self.assertNotIn('${{', script)
        log = []

        class Api(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                log.append(('GET', self.path, self.headers['Authorization'], ''))
                self.reply([{'id': 5, 'body': 'hello'}] * 100 if self.path.endswith('&page=1') else kept)

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))['body']
                log.append((self.command, self.path, '', body))
                kept[:] = [{'id': 7, 'body': body}]
                self.reply({})
            do_PATCH = do_POST

            def reply(self, answer):
                data = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header('Content-Length', str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass
        kept = []
        server = http.server.HTTPServer(('127.0.0.1', 0), Api)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        binaries = self.dir / 'bin'
        binaries.mkdir()
        (binaries / 'stageline').symlink_to(BIN)
        odd = after.rename(self.dir / 'it\'s "$(touch owned)" here')
        given = {'run': odd, 'baseline': before, 'history': '', 'budget': '3%', 'history-budget': '0%', 'since': '', 'label': 'abc', 'title': 'Nightly',
                 'fail-without-conclusion': 'false', 'pull-request': '12', 'out': self.dir / 'gate', 'token': 'secret'}
        environment = {name: str(given[re.search(r'inputs\.([a-z-]+)', value)[1]]) for name, value in variables.items()}
        environment |= {'PATH': f'{binaries}:{os.environ["PATH"]}', 'GITHUB_ACTION_PATH': str(SOURCE), 'GITHUB_REPOSITORY': 'a/b', 'GITHUB_ACTIONS': 'true',
                        'GITHUB_API_URL': f'http://127.0.0.1:{server.server_port}', 'GITHUB_OUTPUT': str(self.dir / 'outputs'), 'GITHUB_STEP_SUMMARY': str(self.dir / 'summary')}
        for _ in range(2):
            done = subprocess.run(['bash', '-e', '-c', script], env=environment, cwd=self.dir, capture_output=True, text=True)
            self.assertEqual(done.returncode, 1, done.stderr)
        self.assertFalse((self.dir / 'owned').exists())
        self.assertIn('verdict=fail\n', (self.dir / 'outputs').read_text())
        self.assertIn('Nightly', (self.dir / 'summary').read_text())
        self.assertEqual([row[:2] for row in log if row[0] != 'GET'], [('POST', '/repos/a/b/issues/12/comments'), ('PATCH', '/repos/a/b/issues/comments/7')])
        self.assertEqual(log[0][2], 'Bearer secret')
        self.assertNotIn('secret', done.stdout + done.stderr)


if __name__ == '__main__':
    unittest.main()
