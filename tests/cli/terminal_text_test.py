"""Names of traces and files are other people's: nothing in them may command a terminal, and nothing may run in a spreadsheet."""
import csv
import io
import json
import os
import pty
import re
import subprocess
import unittest

from support import BIN, Case, run

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

    def test_tables_for_spreadsheets(self):
        names = ['=cmd|x!A0', '+1+cmd', '@SUM(A1)', '-2+3', '-5', '+7', 'plain, "quoted"', '=1']
        events = [{'ph': 'X', 'cat': 'cpu_op', 'name': n, 'pid': 1, 'tid': 1, 'ts': 10 * i, 'dur': 5} for i, n in enumerate(names)]
        path = self.write('t.json', json.dumps({'schemaVersion': 1, 'traceEvents': events}))
        rows = list(csv.DictReader(io.StringIO(run('analyze', 'events', path, '--format', 'csv', check=0).out.split('\n\n')[0])))
        self.assertEqual({r['name'] for r in rows},
                         {"'=cmd|x!A0", "'+1+cmd", "'@SUM(A1)", "'-2+3", '-5', '+7', 'plain, "quoted"', "'=1"})


if __name__ == '__main__':
    unittest.main()
