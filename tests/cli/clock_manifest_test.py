"""Perfetto's manifest of clocks beside the traces of a run: ranks are put onto one clock, exactly."""
import csv
import io
import json
import shutil
import unittest
import zipfile

from support import SHARED, Case, flaws, info, needs_shared, run

SAMPLE = SHARED / 'sources' / 'merged' / 'perfetto_manifest_2ranks.zip'


def starts(path):
    rows = csv.DictReader(io.StringIO(run('sql', path, "SELECT rank, name, start_ns FROM slices WHERE name LIKE 'ProfilerStep%' AND category = 'user_annotation' ORDER BY rank, start_ns", '--format', 'csv', '-q', check=0).out))
    return [(int(r['rank']), r['name'], int(r['start_ns'])) for r in rows]


def relation(path, to, offset_ns, **clocks):
    return {'path': path, 'machine': {'name': f'node-{path}'}, 'clocks': {'sync_to': {'file': to}, 'offset_ns': offset_ns, **clocks}}


class ClockManifestTest(Case):
    def run_of(self, ranks, files=None, text=None):
        folder = self.dir / f'run{len(list(self.dir.iterdir()))}'
        folder.mkdir()
        for rank in range(ranks):
            (folder / f'r{rank}.json').write_text(json.dumps({'schemaVersion': 1, 'distributedInfo': {'rank': rank, 'world_size': ranks}, 'baseTimeNanoseconds': 1_790_000_000_000_000_000, 'traceEvents': [
                {'ph': 'X', 'cat': 'user_annotation', 'name': 'ProfilerStep#1', 'pid': 1 + rank, 'tid': 1, 'ts': 1000.0 + rank, 'dur': 500.0, 'args': {}},
                {'ph': 'X', 'cat': 'cpu_op', 'name': 'aten::mm', 'pid': 1 + rank, 'tid': 1, 'ts': 1100.0 + rank, 'dur': 50.0, 'args': {}}]}))
        if files is not None or text is not None:
            (folder / 'perfetto_manifest.json').write_text(text or json.dumps({'perfetto_manifest': {'version': 1, 'files': files}}))
        return folder

    def test_offsets_add_up_to_the_file_that_none_relates_further(self):
        plain = starts(self.run_of(3))
        path = self.run_of(3, [{'path': 'r0.json', 'machine': {'name': 'a'}}, relation('r1.json', 'r0.json', 3_000_000), relation('r2.json', 'r1.json', -1_000_000_123)])
        # Times count from the first slice of the run, which is now rank 2's.
        moved = [ns + by for (_, _, ns), by in zip(plain, (0, 3_000_000, 3_000_000 - 1_000_000_123))]
        self.assertEqual([ns for _, _, ns in starts(path)], [ns - min(moved) for ns in moved])
        about = info(path)
        self.assertEqual(about['clocks'], 'one clock') if 'clocks' in about else None
        self.assertEqual(flaws(about)['source.manifest']['count'], 1)
        self.assertIn('one clock', run('info', path, check=0).out)

    def test_what_a_manifest_does_not_relate_stays(self):
        plain = starts(self.run_of(2))
        for files in ([{'path': 'r1.json'}], [relation('other.json', 'r0.json', 5)], [relation('r1.json', 'r0.json', 7_000, clock='BOOTTIME')]):
            path = self.run_of(2, files)
            self.assertEqual(starts(path), plain)
            self.assertNotIn('one clock', run('info', path, check=0).out)

    def test_a_bad_manifest_moves_nothing(self):
        plain = starts(self.run_of(2))
        circle = [relation('r0.json', 'r1.json', 1_000), relation('r1.json', 'r0.json', 1_000)]
        huge = [relation('r1.json', 'r0.json', 2**63 - 1)]
        for files, text in ((circle, None), (None, '{"perfetto_manifest": {"files": [')):
            path = self.run_of(2, files, text)
            self.assertEqual(starts(path), plain)
            self.assertEqual(flaws(info(path))['source.bad_manifest']['count'], 1)
        self.assertEqual(starts(self.run_of(2, huge)), plain)

    def test_manifests_of_two_folders_and_two_of_one_file(self):
        files = [relation('r1.json', 'r0.json', 3_000_000)]
        whole = self.dir / 'both'
        for name in ('a', 'b'):
            shutil.copytree(self.run_of(2, files), whole / name)
        (whole / 'b' / 'r0.json').rename(whole / 'b' / 'r2.json'), (whole / 'b' / 'r1.json').rename(whole / 'b' / 'r3.json')
        for rank in (2, 3):
            path = whole / 'b' / f'r{rank}.json'
            path.write_text(path.read_text().replace(f'"rank": {rank - 2}', f'"rank": {rank}').replace('"world_size": 2', '"world_size": 4'))
        (whole / 'b' / 'perfetto_manifest.json').write_text(json.dumps({'perfetto_manifest': {'version': 1, 'files': [relation('r3.json', 'r2.json', 3_000_000)]}}))
        got = {rank: ns for rank, _, ns in starts(whole)}
        self.assertEqual((got[1] - got[0], got[3] - got[2]), (3_001_000, 3_001_000))
        self.assertEqual(flaws(info(whole))['source.manifest']['count'], 2)
        folder = self.run_of(2, files)
        plain = starts(self.run_of(2))
        (folder / 'another.json').write_text((folder / 'perfetto_manifest.json').read_text())
        self.assertEqual(starts(folder), plain)
        self.assertEqual(flaws(info(folder))['source.bad_manifest']['count'], 2)

    @needs_shared
    def test_the_sample(self):
        with zipfile.ZipFile(SAMPLE) as archive:
            archive.extractall(self.dir / 'run')
        truth = json.loads((SAMPLE.parent / 'truth_others.json').read_text())[SAMPLE.name]['ranks']
        steps = {rank: truth[str(rank)]['profiler_steps'][0][1] for rank in (0, 1)}
        got = {rank: ns for rank, _, ns in starts(self.dir / 'run')}
        self.assertAlmostEqual(got[1] - got[0], steps[1] - steps[0], delta=1)
        self.assertEqual(info(self.dir / 'run')['ranks'], 2)
        self.assertEqual(starts(SAMPLE), starts(self.dir / 'run'))


if __name__ == '__main__':
    unittest.main()
