"""Every file ends read, passed over or damaged: whatever is done to one file of a run, its name is said.

The property is tried on every fixture of tests/golden/readers and every file in it. Bits are flipped where a checksum
can detect it (compressed files and recordings): another digit in plain text is another measurement."""
import gzip
import json
import pathlib
import random
import re
import shutil
import sqlite3
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import execution_trace
from support import SOURCE, Case, info, run

GOLDEN = SOURCE / 'tests/golden/readers'
# In these formats a cut is always detected, except for a table at the end of a row.
CUT_SHOWS = ('.slrec', '.sldigest', '.db', '.sqlite', '.json', '.pickle', '.pb', '.csv')
BESIDE = {'truth.csv', 'truth_links.csv'}  # of simulate: answers next to the measurement, never read


def packed(path):
    return path.name.endswith(('.gz', '.zst'))


def one_of_each(files):
    """Files whose names differ by numbers alone are alike: the first of them."""
    kinds = {}
    for path in files:
        kinds.setdefault(re.sub(r'[0-9a-f]{16}|\d+', '#', str(path)), path)
    return list(kinds.values())


def spoils(path, data):
    """(what was done, bytes) that no reader can take for the whole file."""
    yield 'emptied', b''
    yield 'zeroed', bytes(len(data))
    if len(data) > 400:
        yield 'cut at 60 bytes', data[:60]
    if packed(path) or path.suffix in CUT_SHOWS:
        for share in (50, 97):
            end = len(data) * share // 100
            yield f'cut at {share} %', data[:end - 2 if path.suffix == '.csv' and data[:end].endswith(b'\n') else end]
    if packed(path) or path.suffix in ('.slrec', '.sldigest'):
        dice = random.Random(str(path.name))
        for _ in range(3):
            at = dice.randrange(10, len(data))  # behind the header, which says when and by what it was packed
            yield f'a bit flipped at {at}', data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1:]
        yield 'the first byte lost', data[1:]


class SpoiledFiles(Case):
    def said(self, folder, name, what):
        """The severities with which the file is named, or ['error'] where nothing could be read."""
        done = run('info', '--json', folder)
        if done.returncode != 0:
            self.assertIn(name, done.err, what)
            return ['error']
        report = json.loads(done.out)
        found = [d['severity'] for d in report['diagnostics'] if name in json.dumps(d, ensure_ascii=False)]
        self.assertTrue(found, f'{what}: nothing is said of {name}')
        return found

    def spoil_each(self, name, folder):
        """Every file of a run, one of each kind; the number of tries."""
        tried = 0
        files = sorted(p for p in folder.rglob('*') if p.is_file() and p.name not in BESIDE)
        for path in one_of_each(files):
            data = path.read_bytes()
            for how, spoiled in spoils(path, data):
                what = f'{name}: {path.name} {how}'
                copy = self.dir / 'run'
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(folder, copy)
                (copy / path.relative_to(folder)).write_bytes(spoiled)
                with self.subTest(what):
                    severities = self.said(copy, path.name, what)
                    self.assertTrue({'loss', 'error'} & set(severities), f'{what}: said as {severities} alone')
                tried += 1
        return tried

    def test_any_file_of_any_fixture(self):
        self.assertGreater(sum(self.spoil_each(fixture.name, fixture / 'input') for fixture in sorted(GOLDEN.iterdir())), 100)

    def test_an_execution_trace_beside_its_profile(self):
        for old in (False, True):
            execution_trace.write(self.dir / 'made', old)
            self.assertGreater(self.spoil_each(f'execution trace{" of older torch" if old else ""}', self.dir / 'made'), 8)

    def ranks(self, count=3):
        source = next(p for p in sorted((GOLDEN / 'kineto/input').iterdir()) if p.name.endswith('.gz'))
        for rank in range(count):
            data = gzip.decompress(source.read_bytes()).replace(b'"rank": 1', b'"rank": %d' % rank)
            self.write(f'run/rank-{rank}.pt.trace.json.gz', gzip.compress(data, mtime=0))
        return self.dir / 'run'

    def test_two_files_are_two_losses(self):
        folder = self.ranks(4)
        for rank in (1, 3):
            path = folder / f'rank-{rank}.pt.trace.json.gz'
            path.write_bytes(path.read_bytes()[:60])
        losses = [d for d in info(folder)['diagnostics'] if d['severity'] == 'loss']
        self.assertEqual(sorted(pathlib.Path(d['file']).name[:6] for d in losses if d.get('file')), ['rank-1', 'rank-3'])

    def test_every_output_names_the_damage(self):
        folder = self.ranks()
        (folder / 'rank-1.pt.trace.json.gz').write_bytes(b'')
        name = 'rank-1.pt.trace.json.gz'
        self.assertIn(name, run('info', folder, check=0).out)
        for command in (['report', folder, '-o', self.dir / 'r.html'], ['explain', folder], ['analyze', 'idle-time-breakdown', folder],
                        ['export', folder, '-o', self.dir / 'o.json', '--to', 'json'], ['export', folder, '-o', self.dir / 'o.sqlite']):
            self.assertIn(name, run(*command, check=0).err, command)
        self.assertIn(name, (self.dir / 'o.json').read_text())
        with sqlite3.connect(self.dir / 'o.sqlite') as db:
            self.assertTrue(db.execute('SELECT count(*) FROM diagnostics WHERE file LIKE ?', ['%' + name]).fetchone()[0])

    def test_files_of_something_else_are_passed_over_with_the_reason(self):
        folder = self.ranks()
        self.write('run/notes.txt', 'by hand')
        self.write('run/report.html', '<!doctype html><title>earlier</title>')
        self.write('run/out.json.partial.1', '{"traceEvents": [')
        self.write('run/DONE', '')
        found = [d for d in info(folder)['diagnostics'] if d['name'] == 'source.passed_over']
        self.assertEqual([(d['severity'], d['count']) for d in found], [('info', 4)])
        for words in ('notes.txt (not of this format)', 'report.html (a page or picture)', 'out.json.partial.1 (an unfinished output)', 'DONE (empty)'):
            self.assertIn(words, found[0]['message'])

    def test_a_whole_run_has_nothing_to_say(self):
        names = {d['name'] for d in info(self.ranks())['diagnostics']}
        self.assertEqual({n for n in names if n.startswith('source.')}, set())

    def test_a_plane_cut_between_two_of_its_fields(self):
        whole = (GOLDEN / 'xplane/input/host0.xplane.pb').read_bytes()

        def number(at):
            value = shift = 0
            while True:
                value |= (whole[at] & 0x7f) << shift
                at, shift = at + 1, shift + 7
                if whole[at - 1] < 0x80:
                    return value, at
        ends, at = [], 0
        while at < len(whole):  # planes (field 1), and in each its fields: all have a length or are numbers
            kind, at = number(at)
            size, at = number(at)
            plane = at + size
            at = at if kind >> 3 == 1 else plane
            while at < plane:
                kind, at = number(at)
                size, at = number(at)
                at += size if kind & 7 == 2 else 0
                ends += [at] if at < plane else []
        self.assertGreater(len(ends), 20)
        path = self.dir / 'run/host0.xplane.pb'
        path.parent.mkdir()
        for end in ends[::max(1, len(ends) // 20)]:
            path.write_bytes(whole[:end])
            self.assertTrue({'loss', 'error'} & set(self.said(path.parent, path.name, f'{end} of {len(whole)}')), end)

    def test_text_cut_at_a_line_end(self):
        run('simulate', '1f1b', '--stages', 2, '--steps', 4, '-o', self.dir / 'run', check=0)
        log = self.dir / 'run/workerlog.1'
        lines = log.read_bytes().splitlines(keepends=True)
        for kept in (len(lines) - 3, len(lines) * 3 // 5, len(lines) // 4 + 2):
            log.write_bytes(b''.join(lines[:kept]))
            self.assertIn('loss', self.said(self.dir / 'run', 'workerlog.1', f'{kept} of {len(lines)} lines'))

    def test_a_table_dropped_from_one_rank(self):
        run('simulate', '1f1b', '--stages', 2, '--format', 'ascend', '--level', 1, '-o', self.dir / 'run', check=0)
        self.assertEqual([d['name'] for d in info(self.dir / 'run')['diagnostics'] if d['severity'] == 'loss'], [])
        database = sorted((self.dir / 'run').rglob('ascend_pytorch_profiler_*.db'))[1]
        for table in ('TASK', 'COMMUNICATION_OP', 'STRING_IDS', 'MSTX_EVENTS'):
            whole = database.read_bytes()
            with sqlite3.connect(database) as db:
                db.execute(f'DROP TABLE {table}')
            db.close()
            self.assertIn('loss', self.said(self.dir / 'run', database.name, table))
            database.write_bytes(whole)


if __name__ == '__main__':
    unittest.main()
