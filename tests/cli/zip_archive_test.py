"""A ZIP archive counts as the folder that it holds: the same rows, ranks and clocks, and clear errors on archives that contradict themselves."""
import gzip
import io
import json
import pathlib
import sys
import unittest
import zipfile

from support import SHARED, Case, flaws, info, needs_shared, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import zip_archive  # noqa: E402

SAMPLE = SHARED / 'sources' / 'merged' / 'perfetto_manifest_2ranks.zip'


def trace(rank, ops=200):
    events = [{'ph': 'X', 'cat': 'user_annotation', 'name': 'ProfilerStep#1', 'pid': 1 + rank, 'tid': 1, 'ts': 1000.0 + rank, 'dur': 10.0 * ops, 'args': {}}]
    events += [{'ph': 'X', 'cat': 'cpu_op', 'name': f'aten::op{k % 7}', 'pid': 1 + rank, 'tid': 1, 'ts': 1010.0 + rank + 9 * k, 'dur': 5 + rank, 'args': {'External id': k, 'note': f'n{k}'}} for k in range(ops)]
    return json.dumps({'schemaVersion': 1, 'distributedInfo': {'rank': rank, 'world_size': 2}, 'baseTimeNanoseconds': 1_790_000_000_000_000_000, 'traceEvents': events}).encode()


MANIFEST = json.dumps({'perfetto_manifest': {'version': 1, 'files': [
    {'path': 'r0.json', 'machine': {'name': 'a'}}, {'path': 'r1.json', 'machine': {'name': 'b'}, 'clocks': {'sync_to': {'file': 'r0.json'}, 'offset_ns': 3_000_000}}]}}).encode()
FILES = [('r0.json', trace(0)), ('perfetto_manifest.json', MANIFEST), ('r1.json', trace(1))]


def rows(path):
    return run('sql', path, 'SELECT * FROM slices', '--format', 'csv', '-q', check=0).out


class ZipArchiveTest(Case):
    def packed(self, data, name='run.zip'):
        path = self.dir / name
        path.write_bytes(data)
        return path

    def folder(self, files, name='run'):
        for member, content in files:
            path = self.dir / name / member
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return self.dir / name

    def refused(self, data, *words):
        err = run('info', self.packed(data), check=2).err
        for word in words:
            self.assertIn(word, err)

    def test_an_archive_is_read_as_its_folder(self):
        folder = self.folder(FILES)
        want, about = rows(folder), info(folder)
        for how in ({}, {'method': zip_archive.STORED}, {'zip64': True}, {'streamed': True}, {'comment': b'made PK\5\6 here'}, {'zip64': True, 'comment': bytes(60000)}):
            with self.subTest(list(how)):
                path = self.packed(zip_archive.archive(FILES, **how))
                self.assertEqual(rows(path), want)
                got = info(path)
                self.assertEqual(flaws(got)['source.manifest']['count'], 1)
                named = json.dumps(got).replace(str(path), str(folder))
                self.assertEqual(json.loads(named), about)
        python = io.BytesIO()
        with zipfile.ZipFile(python, 'w', zipfile.ZIP_DEFLATED) as out:
            for name, content in FILES:
                out.writestr(name, content)
        self.assertEqual(rows(self.packed(python.getvalue())), want)

    def test_single_events_are_looked_up(self):
        for packing in (lambda data: data, gzip.compress):
            files = [(name, packing(content)) for name, content in FILES]
            folder, path = self.folder(files), self.packed(zip_archive.archive(files))
            for rank, index in ((0, 3), (1, 200)):
                self.assertEqual(run('event', path, '--rank', rank, '--index', index, check=0).out.replace(str(path), str(folder)), run('event', folder, '--rank', rank, '--index', index, check=0).out)

    def test_compressed_files_and_folders_in_an_archive(self):
        files = [(f'node{rank}/trace.json.gz', gzip.compress(trace(rank))) for rank in range(2)]
        files += [('__MACOSX/._r0.json', b'\0\5\x16\7'), ('.hidden/r5.json', trace(5)), ('node0/', b'')]
        folder = self.folder([f for f in files if not f[0].endswith('/')])
        for method in (zip_archive.STORED, zip_archive.DEFLATED):
            path = self.packed(zip_archive.archive(files, method))
            self.assertEqual(rows(path), rows(folder))
            self.assertEqual(info(path)['ranks'], 2)

    def test_several_archives_and_one_twice(self):
        one, two = (self.packed(zip_archive.archive([(f'r{rank}.json', trace(rank))]), f'part{rank}.zip') for rank in range(2))
        about = info(one, two, one)
        self.assertEqual(about['ranks'], 2)
        self.assertEqual(flaws(about)['source.repeated']['count'], 1)

    def test_ranks_by_file_are_for_files(self):
        path = self.packed(zip_archive.archive(FILES))
        self.assertIn('is an archive', run('info', path, '--file-ranks', 3, check=2).err)

    def test_an_archive_next_to_its_files_counts_as_a_file(self):
        folder = self.folder(FILES)
        (folder / 'run.zip').write_bytes(zip_archive.archive(FILES))
        self.assertEqual(info(folder)['events'], info(self.packed(zip_archive.archive(FILES)))['events'])

    def test_digests_and_exports_of_an_archive(self):
        logs = self.two_ranks(folder='logs/')
        packed = self.packed(zip_archive.archive([(p.name, p.read_bytes()) for p in sorted(logs.iterdir())]), 'logs.zip')
        for again in ('1 kept', '1 kept'):
            run('digest', packed, '-o', self.dir / 'digests', '-q', check=0)
        self.assertEqual([c for c in run('sql', self.dir / 'digests', 'SELECT rank, kind, start_ns, end_ns FROM cells', '--format', 'csv', '-q', check=0).out],
                         [c for c in run('sql', logs, 'SELECT rank, kind, start_ns, end_ns FROM cells', '--format', 'csv', '-q', check=0).out])
        folder, path = self.folder(FILES), self.packed(zip_archive.archive(FILES))
        for of in (folder, path):
            run('export', of, '--to', 'perfetto', '-o', self.dir / f'{of.name}.pftrace', '-q', check=0)
        self.assertEqual((self.dir / 'run.zip.pftrace').read_bytes(), (self.dir / 'run.pftrace').read_bytes())
        before = path.read_bytes()
        run('export', path, '--to', 'csv', '-o', path, check=2)  # a measurement is no output
        self.assertEqual(path.read_bytes(), before)

    def test_a_file_that_cannot_be_unpacked_is_a_loss(self):
        whole = zip_archive.archive(FILES[:1] + FILES[2:])
        cases = {
            'encrypted': zip_archive.archive(FILES[:1] + FILES[2:], entry=lambda f, k: f.update(flags=f['flags'] | k)),
            'another method': zip_archive.archive(FILES[:1] + FILES[2:], entry=lambda f, k: f.update(method=93 if k else f['method'])),
            'ends in the middle': zip_archive.archive(FILES[:1] + FILES[2:], entry=lambda f, k: f.update(packed=f['packed'] - 100 * k)),
        }
        altered = bytearray(whole)
        altered[whole.index(b'PK\1\2') - 1000] ^= 0x55
        cases['deflate data'] = bytes(altered)
        for words, data in cases.items():
            about = info(self.packed(data))
            lost = [d for d in about['diagnostics'] if d['severity'] == 'loss' and 'run.zip/r1.json' in json.dumps(d)]
            self.assertTrue(lost, (words, about['diagnostics']))
            self.assertIn(words, json.dumps(lost))
            self.assertIn(0, [p['rank'] for p in about['parts']])
        self.refused(zip_archive.archive(FILES[:1], flags=1), 'encrypted', 'r0.json')

    def test_a_wrong_checksum_is_a_loss(self):
        about = info(self.packed(zip_archive.archive(FILES[:1], crc=1)))
        self.assertIn('checksum', json.dumps([d for d in about['diagnostics'] if d['severity'] == 'loss']))

    def test_archives_that_contradict_themselves_are_refused(self):
        whole = zip_archive.archive(FILES)
        for length in (len(whole) - 1, len(whole) - 30, len(whole) // 2, 40):
            self.refused(whole[:length], 'was cut')
        self.refused(zip_archive.archive(FILES, count=4), 'ends after 3 of 4')
        self.refused(zip_archive.archive(FILES, zip64=True, count=2**62), 'outside of it')
        self.refused(zip_archive.archive(FILES, zip64=True).replace(b'PK\6\7', b'PK\6\1'), 'zip64')
        self.refused(zip_archive.archive(FILES, entry=lambda f, k: f.update(at=f['at'] + 1)), 'does not hold r0.json')
        self.refused(zip_archive.archive(FILES, entry=lambda f, k: f.update(packed=10**6)), 'does not hold r0.json')
        self.refused(zip_archive.archive(FILES, zip64=True, entry=lambda f, k: f.update(packed=2**64 - 5)), 'does not hold r0.json')
        for name in ('../r0.json', '/etc/r0.json', 'a/../../r0.json', 'a//b.json', './r0.json', 'a\0b.json'):
            self.refused(zip_archive.archive([(name, trace(0))]), 'leads out of it')
        self.refused(zip_archive.archive(FILES + FILES[:1]), 'two files of one name', 'r0.json')

    def test_members_may_not_overlap(self):
        """Many entries of one stretch of data unpack to any multiple of it."""
        def same(fields, k):
            fields.update(name=f'r{k}.json'.encode(), at=0, packed=first['packed'], size=first['size'])
        first = {}
        zip_archive.archive(FILES[:1], entry=lambda f, k: first.update(f))
        self.refused(zip_archive.archive([(f'r{k}.json', trace(0)) for k in range(20)], entry=same), 'overlap')

    def test_a_bomb_is_read_as_far_as_thin_text_may_be(self):
        bomb = trace(0)[:-2] + b', ' + b' ' * 200_000_000 + b'{"ph": "X", "name": "last", "ts": 1, "dur": 1}]}'
        about = info(self.packed(zip_archive.archive([('r0.json', bomb)])))
        lost = json.dumps([d for d in about['diagnostics'] if d['severity'] == 'loss'])
        self.assertIn('--max-memory', lost)
        self.assertEqual(about['ranks'], 1)

    def test_what_only_a_disk_holds_says_unzip(self):
        database = self.dir / 'a.rpd'
        import sqlite3
        with sqlite3.connect(database) as db:
            db.execute('CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER)')
            db.execute('CREATE TABLE StringIds (id INTEGER, value TEXT)')
            db.execute('CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER)')
        db.close()
        err = run('info', self.packed(zip_archive.archive([('report.sqlite', database.read_bytes())])), '--reader', 'nsys', check=2).err
        self.assertIn('in an archive', err)
        self.assertIn('unzip FILE -d run', err)

    @needs_shared
    def test_the_sample_equals_its_folder(self):
        with zipfile.ZipFile(SAMPLE) as archive:
            archive.extractall(self.dir / 'run')
        self.assertEqual(rows(SAMPLE), rows(self.dir / 'run'))
        self.assertEqual(run('explain', SAMPLE, check=0).out.replace(str(SAMPLE), 'RUN'), run('explain', self.dir / 'run', check=0).out.replace(str(self.dir / 'run'), 'RUN'))
        self.assertIn('clocks and machines are those of the manifest', ' '.join(run('info', SAMPLE, check=0).out.split()))


if __name__ == '__main__':
    unittest.main()
