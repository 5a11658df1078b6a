"""Names of traces and files are other people's: nothing in them may command a terminal, and nothing may run in a spreadsheet."""
import csv
import io
import json
import os
import pty
import re
import subprocess
import tty
import unittest

from support import BIN, SOURCE, Case, run

GOLDEN = SOURCE / 'tests/golden/readers'

BITES = '\x1b]0;owned\x07\x1b[31mred\x9b2J\u202egnp.exe'
OBEYED = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]')


class TerminalText(Case):
    def trace(self, name, folder='run', **more):
        events = [{'ph': 'X', 'cat': 'cpu_op', 'name': name, 'pid': 1, 'tid': 1, 'ts': 10 + 20 * i, 'dur': 5, 'args': {'External id': i}} for i in range(4)]
        events += [{'ph': 'X', 'cat': 'kernel', 'name': name + 'k', 'pid': 0, 'tid': 7, 'ts': 12 + 20 * i, 'dur': 9,
                    'args': {'External id': i, 'device': 0, 'stream': 7}} for i in range(4)]
        return self.write(f'{folder}/rank-0.json', json.dumps({'schemaVersion': 1, 'deviceProperties': [{'id': 0, 'name': name}], **more, 'traceEvents': events}))

    def harmless(self, words, **how):
        done = run(*words, **how)
        for text in (done.out, done.err):
            self.assertIsNone(OBEYED.search(text), (words, OBEYED.search(text)))
        return done

    def test_names_of_events_devices_and_files(self):
        path = self.trace(BITES, folder=f'a{BITES[:9]}b', distributedInfo={'rank': 0, 'world_size': 4, 'backend': BITES})
        other = self.trace('plain', folder='other')
        for words in (['info', path], ['info', path.parent], ['analyze', 'events', path], ['analyze', 'kernel-breakdown', path, '--wide'],
                      ['explain', path], ['diff', other, path], ['report', path, '-o', self.dir / f'r{BITES[:6]}.html'], ['align', path],
                      ['info', str(path) + BITES], ['export', path, '-o', self.dir / f'x{BITES[:6]}.json', '--to', 'json'], ['what-if', path],
                      ['export-stacks', path, '-o', '-'], ['view', str(path) + BITES], ['recover', path], ['info', path, '--reader', BITES],
                      ['analyze', BITES, path], [BITES]):
            self.harmless(words)

    def test_a_damaged_file_with_such_a_name(self):
        self.trace('fine')
        self.write(f'run/rank-1{BITES[:9]}.json', '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "x"')
        self.harmless(['info', self.dir / 'run'])
        self.harmless(['explain', self.dir / 'run'])

    def test_an_event_on_a_terminal(self):
        text = '{"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a\x1b[31mb","pid":1,"tid":1,"ts":1,"dur":2}]}'
        path = self.write('raw.json', text)
        main, terminal = pty.openpty()
        done = subprocess.run([BIN, 'event', path, '--index', '0'], stdout=terminal, stderr=subprocess.PIPE)
        os.close(terminal)
        shown = os.read(main, 65536).decode()
        os.close(main)
        if done.returncode == 0:
            self.assertNotIn('\x1b', shown)
            self.assertIn('[31m', shown)

    def on_terminal(self, words):
        """Returns the output on a terminal, both streams, without Stageline's colours."""
        main, terminal = pty.openpty()
        tty.setraw(terminal)
        env = {k: v for k, v in os.environ.items() if k != 'NO_COLOR'}
        process = subprocess.Popen([BIN, *map(str, words)], stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, env={**env, 'LC_ALL': 'C.UTF-8', 'TERM': 'xterm'})
        os.close(terminal)
        shown = b''
        while True:
            try:
                more = os.read(main, 65536)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            shown += more
        os.close(main)
        process.wait()
        return shown.decode('utf-8', 'replace')

    def test_every_form_of_every_answer_on_a_terminal(self):
        path = self.trace(BITES, distributedInfo={'rank': 0, 'world_size': 4, 'backend': BITES})
        named = self.dir / f'a{BITES[:9]}b'
        logs = self.dir / 'logs'
        run('simulate', '1f1b', '--stages', 2, '--steps', 4, '-o', logs, check=0)
        history = ['--db', self.dir / 'h.sqlite']
        run('history', 'add', logs, '--label', BITES, *history, check=0)
        everything = 'SELECT * FROM slices'
        cases = [['info', path], ['info', path, '--json'], ['explain', path, '--json'], ['event', path, '--index', '0'], ['align', path, '--json'], ['history', *history],
                 ['history', '--json', *history], ['history', 'add', logs, '--db', named / 'no'], ['diff', path, path, '--json'], ['sql', path, f'SELECT {BITES}'],
                 ['sql', path, f'SELECT 1 AS "{BITES}"'], ['sql', path, "SELECT char(155) || char(27) || '[31m' || char(10) || 'x'"], ['skill', '--install', named],
                 ['digest', logs, '-o', named], ['tail', GOLDEN / 'recording/input'], ['record', '-o', named, '--', BITES], ['schedule', '--from-csv', path], ['recover', path],
                 *(['analyze', 'events', path, '--format', form] for form in ('text', 'csv', 'json')), *(['sql', path, everything, '--format', form] for form in ('text', 'csv', 'json')),
                 *(['export', path, '-o', '-', '--to', form] for form in ('json', 'chrome', 'html')), ['analyze', 'events', path, '-o', '/dev/tty']]
        seen = 0
        for words in cases:
            with self.subTest(words=[str(w)[:60] for w in words]):
                shown = self.on_terminal(words)
                self.assertNotIn('\x1b[31m', shown)
                rest = re.sub('\x1b\\[[0-9;]*[mK]|\r', '', shown)
                self.assertIsNone(OBEYED.search(rest), rest[:300])
                seen += 'owned' in rest
        self.assertGreater(seen, 12)

    def test_a_file_and_a_pipe_get_the_bytes(self):
        path = self.trace('a\x1b[31mb\x9b')
        for words in (['sql', path, 'SELECT name FROM slices', '--format', 'csv'], ['analyze', 'events', path, '--format', 'csv']):
            self.assertIn('a\x1b[31mb\x9b', run(*words, check=0).out)
            run(*words, '-o', self.dir / 'out.csv', check=0)
            self.assertIn('a\x1b[31mb\x9b', (self.dir / 'out.csv').read_text())

    def test_colours_of_ours_reach_the_terminal(self):
        path = self.trace('plain')
        for words in (['sql', path, 'SELECT name FROM slices'], ['analyze', 'events', path], ['schedule', '1f1b', '--stages', '2', '--micro-batches', '2']):
            self.assertRegex(self.on_terminal(words), '\x1b\\[[0-9]+m', words)

    def test_a_letter_that_is_cut_between_two_writes(self):
        # Rows of many letters of three bytes: somewhere the end of a buffer falls into one.
        path = self.trace('字' * 50)
        shown = self.on_terminal(['sql', path, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) SELECT i, (SELECT name FROM slices) FROM n",
                                  '--format', 'csv', '--rows', '0'])
        self.assertEqual(shown.count('字'), 200_000)
        self.assertNotIn('\ufffd', shown)

    def test_tables_for_spreadsheets(self):
        names = ['=cmd|x!A0', '+1+cmd', '@SUM(A1)', '-2+3', '-5', '+7', 'plain, "quoted"', '=1', '\t=1', '\r=1', '\n=1', '＝1', '＋1', '－1+2', '＠SUM(A1)']
        events = [{'ph': 'X', 'cat': 'cpu_op', 'name': n, 'pid': 1, 'tid': 1, 'ts': 10 * i, 'dur': 5} for i, n in enumerate(names)]
        path = self.write('t.json', json.dumps({'schemaVersion': 1, 'traceEvents': events}))
        wanted = {name if name in ('-5', '+7', 'plain, "quoted"') else "'" + name for name in names}
        for words in (['analyze', 'events', path, '--format', 'csv'], ['sql', path, 'SELECT name FROM slices', '--format', 'csv'],
                      ['sql', path, "SELECT name, name AS '=1+1' FROM slices", '--format', 'csv']):
            rows = list(csv.DictReader(io.StringIO(run(*words, check=0).stdout.decode(), newline='')))
            self.assertEqual({r['name'] for r in rows if r.get('name') in wanted}, wanted, words)
            self.assertNotIn('=1+1', rows[0])


if __name__ == '__main__':
    unittest.main()
