"""Which reader takes what: five kinds of SQLite, two of protobuf, pickles, JSON twins, and folders in which several lie."""
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import ascend_db
import execution_trace
import memory_snapshot
import nsys
import rocpd
import xplane
from support import SOURCE, flaws, info, run

READERS = SOURCE / 'tests/golden/readers'


class SniffingTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)
        self.addCleanup(self.temp.cleanup)

    def databases(self):
        """Six SQLite files of five kinds, by the reader that takes them; "" of none."""
        out = {'nsys': nsys.make(self.folder / 'a.sqlite'), 'rocpd': rocpd.make(self.folder / 'b.db')}
        ascend_db.write(self.folder / 'ascend', ranks=1)
        out['ascend'] = self.folder / 'ascend'
        own = self.folder / 'own.sqlite'
        run('export', READERS / 'kineto/input', '--to', 'sqlite', '-o', own, '-q', check=0)
        out[''] = own
        return out

    def test_each_database_goes_to_its_reader_whatever_it_is_called(self):
        for reader, path in self.databases().items():
            with self.subTest(reader):
                if not reader:
                    self.assertIn('no reader takes it', run('info', path, check=2).err)
                    continue
                self.assertEqual(info(path)['format'], reader)
                if path.is_file():
                    for name in ('x.db', 'report.sqlite', 'rank0.bin', 'y.rpd'):
                        copy = self.folder / 'named' / name
                        copy.parent.mkdir(exist_ok=True)
                        shutil.copy(path, copy)
                        self.assertEqual(info(copy)['format'], reader, name)
                        copy.unlink()
        self.assertEqual(info(rocpd.make_rpd(self.folder / 'old.sqlite'))['format'], 'rocpd')

    def test_two_kinds_in_one_folder_are_a_tie_that_names_both(self):
        for first, second in (('nsys', 'rocpd'), ('nsys', 'xplane'), ('rocpd', 'memory-snapshot'), ('xplane', 'perfetto')):
            both = self.folder / f'{first}-{second}'
            both.mkdir()
            for kind in (first, second):
                if kind == 'nsys':
                    nsys.make(both / 'a.sqlite')
                elif kind == 'rocpd':
                    rocpd.make(both / 'b.db')
                elif kind == 'xplane':
                    xplane.make(both / 'vm.xplane.pb')
                elif kind == 'memory-snapshot':
                    memory_snapshot.write(both / 'm.pickle')
                else:
                    shutil.copy(READERS / 'perfetto/input/rank0.pftrace', both)
            with self.subTest((first, second)):
                err = run('info', both, check=2).err
                self.assertIn(f'--reader {first}', err)
                self.assertIn(f'--reader {second}', err)
                for reader in (first, second):
                    self.assertEqual(json.loads(run('info', both, '--reader', reader, '--json', check=0).out)['format'], reader)

    def test_our_own_pftrace_is_perfettos_and_no_profile_of_xla(self):
        own = self.folder / 'own.pftrace'
        run('export', READERS / 'kineto/input', '--to', 'perfetto', '-o', own, '-q', check=0)
        for name in ('own.pftrace', 'vm.xplane.pb', 'trace.pb'):
            path = self.folder / 'renamed' / name
            path.parent.mkdir(exist_ok=True)
            shutil.copy(own, path)
            self.assertEqual(info(path)['format'], 'perfetto', name)
            path.unlink()
        xplane.make(self.folder / 'renamed' / 'trace.pftrace')
        self.assertEqual(info(self.folder / 'renamed' / 'trace.pftrace')['format'], 'xplane')

    def test_a_general_reader_that_gives_way_is_named(self):
        run('simulate', '1f1b', '--stages', 2, '--format', 'cells', '-o', self.folder / 'run', '-q', check=0)
        mixed = self.folder / 'mixed'
        mixed.mkdir()
        shutil.copy(READERS / 'perfetto/input/rank0.pftrace', mixed)
        shutil.copy(next((READERS / 'kineto/input').glob('*')), mixed / 'other.json')
        report = info(mixed)
        self.assertEqual(report['format'], 'perfetto')
        self.assertIn('--reader kineto', flaws(report)['source.other_reader']['message'])
        self.assertNotIn('source.other_reader', flaws(info(READERS / 'perfetto/input')))

    def test_an_execution_trace_beside_its_profile_is_no_tie(self):
        execution_trace.write(self.folder / 'et')
        self.assertEqual(info(self.folder / 'et')['format'], 'kineto')

    def test_torchs_version_is_said_only_of_torchs_files(self):
        path = self.folder / 'chrome.json'
        path.write_text(json.dumps({'traceEvents': [{'ph': 'X', 'name': 'a', 'cat': 'cpu_op', 'pid': 1, 'tid': 1, 'ts': 1.5, 'dur': 2.5},
                                                    {'ph': 'X', 'name': 'k', 'cat': 'kernel', 'pid': 0, 'tid': 7, 'ts': 2.5, 'dur': 2.5}]}))
        self.assertEqual(info(path)['parts'][0]['torch'], '')
        for name in ('perfetto', 'nsys', 'xplane', 'rocpd'):
            self.assertEqual({p['torch'] for p in info(READERS / name / 'input')['parts']}, {''}, name)
        self.assertNotEqual(info(READERS / 'kineto/input')['parts'][0]['torch'], '')

    def test_files_that_were_not_read_are_listed_by_reason(self):
        found = flaws(info(READERS / 'ascend/input'))
        if 'source.passed_over' in found:
            self.assertLessEqual(found['source.passed_over']['message'].count('('), 3)


if __name__ == '__main__':
    unittest.main()
