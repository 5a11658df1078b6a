"""Execution traces laid over profiles: joined by record ids, refused for other runs, cut files, older schemas."""
import csv
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
from execution_trace import execution, profile
from support import SHARED, flaws, info, needs_shared, run


def table(path, name):
    return list(csv.DictReader(io.StringIO(run('analyze', 'execution-trace', path, '--table', name, '--format', 'csv', '-q', check=0).out)))


class ExecutionTraceTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)
        self.addCleanup(self.temp.cleanup)

    def write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def test_tree_tensors_and_times(self):
        self.write('rank0.json', profile())
        for name, old in (('et_rank0.json', False), ('et_rank0.json', True)):
            self.write(name, execution(old))
            report = info(self.folder)
            self.assertEqual(report['format'], 'kineto')
            self.assertIn('3 of its 3', flaws(report)['kineto.execution_trace']['message'])
            rows = table(self.folder, 'execution-nodes')
            self.assertEqual([(r['node'], r['parent'], r['name'], int(r['dur_ns']), int(r['device_ns'])) for r in rows],
                             [('3', '2', 'aten::linear', 100_000, 40_000), ('4', '3', 'aten::addmm', 60_000, 40_000), ('5', '2', 'aten::relu', 30_000, 0)])
            tensors = {r['tensor']: r for r in table(self.folder, 'execution-tensors')}
            self.assertEqual({k: (int(t['bytes']), t['producer'], int(t['uses'])) for k, t in tensors.items()},
                             {'1': (256, '', 2), '2': (128, '', 2), '3': (512, '3', 1), '4': (256, '5', 0)})

    def test_older_profiles_say_the_id_otherwise(self):
        self.write('rank0.json', profile(record='External id'))
        self.write('et_rank0.json', execution())
        self.assertEqual(len(table(self.folder, 'execution-nodes')), 3)

    def test_a_trace_of_another_run_is_left_out(self):
        self.write('rank0.json', profile())
        other = execution()
        for node in other['nodes']:
            node['name'] += '_other'
        self.write('et_rank0.json', other)
        self.assertIn('kineto.other_execution_trace', flaws(info(self.folder)))
        self.assertIn('needs a profile with an execution trace', run('analyze', 'execution-trace', self.folder, check=2).err)

    def test_an_observer_that_was_not_stopped(self):
        self.write('rank0.json', profile())
        text = json.dumps(execution())
        self.write('et_rank0.json', text[:text.index('aten::relu')])
        found = flaws(info(self.folder))
        self.assertIn('ends early', found['kineto.bad_execution_trace']['message'])
        self.assertEqual(len(table(self.folder, 'execution-nodes')), 2)

    def test_ranks_are_paired_by_name(self):
        for rank in (0, 1):
            self.write(f'rank{rank}.json', profile())
        self.write('et_rank1.json', execution())
        self.assertEqual({r['rank'] for r in table(self.folder, 'execution-nodes')}, {'1'})

    def test_alone_it_is_reported_what_it_lacks(self):
        self.assertIn('profiler trace of the same run', run('info', self.write('et.json', execution()), check=2).err)

    @needs_shared
    def test_torchs_own_pair(self):
        folder = SHARED / 'imports/execution_trace'
        self.assertIn('278 of its 278', flaws(info(folder))['kineto.execution_trace']['message'])
        rows = table(folder, 'execution-nodes')
        self.assertEqual(len(rows), 278)
        by_rf = {e['args']['Record function id']: e for e in json.loads((folder / 'kineto_rank0.json').read_text())['traceEvents'] if 'Record function id' in e.get('args', {})}
        nodes = {n['id']: n for n in json.loads((folder / 'et_rank0.json').read_text())['nodes']}
        for row in rows:
            node = nodes[int(row['node'])]
            record = next(a['value'] for a in node['attrs'] if a['name'] == 'rf_id')
            self.assertEqual((row['name'], int(row['parent'])), (by_rf[record]['name'], node['ctrl_deps']))
            self.assertEqual(int(row['dur_ns']), round(by_rf[record]['dur'] * 1000))


if __name__ == '__main__':
    unittest.main()
