"""Execution traces of Chakra: nodes as slices, owners, collectives, ranks by name, traces without times, damage."""
import csv
import gzip
import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import chakra
from support import flaws, info, run


def rows(path, query):
    return list(csv.DictReader(io.StringIO(run('sql', path, query, '--format', 'csv', '-q', check=0).out)))


class ChakraTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)
        self.addCleanup(self.temp.cleanup)

    def test_nodes_are_operators_and_device_work_in_microseconds(self):
        made = chakra.write(self.folder / 'run', ranks=3, steps=2)
        about = info(made)
        self.assertEqual((about['format'], about['ranks']), ('chakra', 3))
        got = {(r['name'], r['category']): (int(r['n']), int(r['ns'])) for r in rows(made, 'SELECT name, category, count(*) AS n, sum(dur_ns) AS ns FROM slices GROUP BY name, category')}
        self.assertEqual(got, {('aten::linear', 'cpu_op'): (6, 1_800_000), ('aten::addmm', 'cpu_op'): (6, 1_200_000), ('ampere_sgemm', 'kernel'): (6, 2_400_000),
                               ('ncclDevKernel_AllReduce_Sum_f32', 'kernel'): (6, 1_800_000), ('ncclDevKernel_SendRecv', 'kernel'): (4, 360_000)})

    def test_device_work_belongs_to_the_operator_that_it_waits_for(self):
        made = chakra.write(self.folder / 'run')
        self.assertEqual({r['op_name'] for r in rows(made, "SELECT op_name FROM kernels WHERE name = 'ampere_sgemm'")}, {'aten::addmm'})
        self.assertEqual({(r['name'], r['bytes'], r['group_name']) for r in rows(made, "SELECT name, bytes, group_name FROM collectives WHERE name = 'allreduce'")},
                         {('allreduce', str(4 << 20), 'dp')})
        self.assertEqual({r['class'] for r in rows(made, "SELECT class FROM kernels WHERE name LIKE 'nccl%'")}, {'COMMUNICATION'})

    def test_a_group_without_members_has_no_rate_of_the_bus(self):
        fixture = pathlib.Path(__file__).resolve().parents[1] / 'golden/readers/chakra/input'
        exposed = ' '.join(run('explain', fixture, '-q', check=0).out.split())
        self.assertIn('Exposed communication', exposed)
        self.assertNotIn('on the bus', exposed)

    def test_gzip_and_names_that_say_ranks(self):
        for number in (3, 11):
            (self.folder / f'llama.{number}.et.gz').write_bytes(gzip.compress(chakra.trace(0)))
        self.assertEqual([r['rank'] for r in rows(self.folder, 'SELECT rank FROM ranks ORDER BY rank')], ['3', '11'])

    def test_nodes_without_starts_are_laid_out_by_their_dependencies(self):
        for steps in (1, 3):
            dated, made = (chakra.write(self.folder / f'run{steps}{starts}', ranks=1, steps=steps, starts=starts) for starts in (True, False))
            sums = 'SELECT name, count(*) AS n, sum(dur_ns) AS ns FROM slices GROUP BY name'
            self.assertEqual(rows(made, sums), rows(dated, sums))
            self.assertIn('chakra.laid_out', flaws(info(made)))
            # Nothing starts before what it waits for has ended, and streams run one thing at a time.
            early = "SELECT count(*) AS n FROM kernels k JOIN slices o ON k.op_name = o.name AND k.rank = o.rank WHERE k.start_ns < (SELECT min(end_ns) FROM slices WHERE name = k.op_name)"
            self.assertEqual(rows(made, early)[0]['n'], '0')
            both = "SELECT count(*) AS n FROM kernels a JOIN kernels b ON a.stream = b.stream AND a.id < b.id WHERE a.start_ns < b.end_ns AND b.start_ns < a.end_ns"
            self.assertEqual(rows(made, both)[0]['n'], '0')

    def test_a_relative_trace_begins_at_zero(self):
        path = self.folder / 'run.0.et'
        path.write_bytes(chakra.trace(0, steps=1, begin=0))
        self.assertEqual(rows(path, "SELECT count(*) AS n FROM slices WHERE name = 'aten::linear'")[0]['n'], '1')

    def test_a_file_that_is_cut_keeps_its_whole_nodes(self):
        whole = chakra.trace(0)
        path = self.folder / 'run.0.et'
        path.write_bytes(whole[:-9])
        self.assertIn('chakra.truncated', flaws(info(path)))
        self.assertEqual(rows(path, 'SELECT count(*) AS n FROM slices')[0]['n'], '9')
        for end in range(1, len(whole), 7):  # never more than a sentence
            path.write_bytes(whole[:end])
            self.assertIn(run('info', path).returncode, (0, 2))


if __name__ == '__main__':
    unittest.main()
