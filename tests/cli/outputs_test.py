"""./dev compare --outputs: finds the one place in which two programs differ, and no difference between a program and
itself."""
import pathlib
import re
import sqlite3
import subprocess
import sys
import unittest

from support import BIN, SOURCE, Case

FOLDER = SOURCE / 'tests/compare'
sys.path.insert(0, str(FOLDER))
import output_bytes  # noqa: E402

# A program that runs the real one and changes something of what came of it, of each command something else.
STAND_IN = '''#!{python}
import pathlib, subprocess, sys
words = ' '.join(sys.argv[1:])
done = subprocess.run(['{program}', *sys.argv[1:]], capture_output=True)
out, err, code = done.stdout, done.stderr, done.returncode
if words == 'schedule 1f1b':
    out = out.replace(b'bubble', b'bubbles')
elif '--format json' in words:
    err += b'one more'
elif '--rows' in words:
    code += 1
elif '--to csv' in words:
    pathlib.Path('left').write_text('behind')
elif 'order.csv' in words:
    pathlib.Path('order.csv').unlink()
elif 'order.json' in words:
    pathlib.Path('order.json').write_text(pathlib.Path('order.json').read_text()[:-1])
sys.stdout.buffer.write(out)
sys.stderr.buffer.write(err)
sys.exit(code)
'''
TOLD = [r'schedule 1f1b: stdout: line \d+, column \d+: .*bubble.* → .*bubbles', r'schedule 1f1b .*--format json: stderr: .*one more',
        r"schedule 1f1b --rows 3 --lang zh: exit code: line 1, column 1: '0' → '1'",
        'schedule 1f1b --to csv -o cells.csv: left: only NEW has it', 'schedule 1f1b --format csv -o order.csv: order.csv: only OLD has it',
        r'schedule 1f1b -o order.json: order.json: after line \d+ only OLD']


class OutputsTest(Case):
    def compare(self, new):
        return subprocess.run([sys.executable, FOLDER / 'outputs.py', BIN, new, '--only', 'schedule 1f1b'], capture_output=True, text=True)

    def test_one_program_is_the_same_as_itself(self):
        done = self.compare(BIN)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r'^0 differences in [1-9]\d* commands')

    def test_a_program_that_differs_is_reported_apart(self):
        program = self.write('stand-in', STAND_IN.format(python=sys.executable, program=pathlib.Path(BIN).resolve()))
        program.chmod(0o755)
        done = self.compare(program)
        self.assertEqual(done.returncode, 1, done.stderr)
        for line in TOLD:
            self.assertRegex(done.stdout, re.compile('^' + line, re.M))
        self.assertRegex(done.stdout, re.compile(rf'^{len(TOLD)} differences in', re.M))

    def test_no_command_at_all_is_no_success(self):
        done = subprocess.run([sys.executable, FOLDER / 'outputs.py', BIN, BIN, '--only', 'no such command'], capture_output=True)
        self.assertEqual(done.returncode, 1)


class DifferenceTest(Case):
    def database(self, name, *statements):
        with sqlite3.connect(self.dir / name) as db:
            for statement in statements:
                db.execute(statement)
        db.close()
        return (self.dir / name).read_bytes()

    def difference(self, name, old, new):
        return output_bytes.first_difference(name, old, new)

    def test_lines(self):
        self.assertEqual(self.difference('a', b'one\ntwo\n', b'one\ntoo\n'), ("line 2, column 2: 'two' → 'too'", False))
        self.assertEqual(self.difference('a', b'one\n', b'one\ntwo\n'), ("line 2, column 1: '' → 'two'", False))
        self.assertEqual(self.difference('a', b'one\n', b'one\n\n')[0], "after line 2 only NEW goes on: ''")

    def test_databases_are_compared_by_their_rows(self):
        made = 'CREATE TABLE t (a INTEGER)', 'INSERT INTO t VALUES (1)'
        one = self.database('1.db', *made)
        same = self.database('2.db', *made, 'CREATE TABLE gone (a)', 'DROP TABLE gone')
        other = self.database('3.db', *made, 'UPDATE t SET a = 2')
        self.assertNotEqual(one, same)
        self.assertEqual(self.difference('x.db', one, same), ('', False))
        self.assertIn('VALUES(1)', self.difference('x.sqlite', one, other)[0])

    def test_of_a_page_the_program_is_apart(self):
        page = '<!doctype html>\n<style>a</style><h1>{}</h1><script>{}</script>'
        old = page.format('title', 'code').encode()
        self.assertEqual(self.difference('p.html', old, page.format('title', 'other code').encode()), ('', True))
        self.assertIn('TITLE', self.difference('p.html', old, page.format('TITLE', 'other code').encode())[0])


if __name__ == '__main__':
    unittest.main()
