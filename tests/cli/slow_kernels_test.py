"""A rank that computes longer: whether its kernels are the same and take longer, at which clock, or whether it has more of them."""
import csv
import json
import subprocess
import sys
import unittest

from support import SOURCE, Case, run

SLOW = 1  # of three ranks


class SlowKernelsTest(Case):
    def make(self, *faults, clocks=None, more=False):
        """Traces of three ranks; `clocks`: MHz of each; `more`: rank 1 runs every computing kernel for twice as long, under another name."""
        folder = self.dir / 'trace'
        subprocess.run([sys.executable, SOURCE / 'tests/gen/kineto.py', '--ranks', '3', '--events', '900', '--format', 'json', '-o', folder,
                        *(word for fault in faults for word in ('--fault', fault))], check=True, capture_output=True)
        for rank, path in enumerate(sorted(folder.glob('*.json'))):
            trace = json.loads(path.read_text())
            if clocks:
                first = min(e['ts'] for e in trace['traceEvents'] if e.get('ph') == 'X')
                trace['traceEvents'] += [{'ph': 'C', 'name': 'SM Clock (MHz)', 'pid': f'GPU {rank} Counters', 'ts': first + at, 'args': {'': mhz}}
                                         for at, mhz in enumerate(clocks[rank])]
            if more and rank == SLOW:
                for event in trace['traceEvents']:
                    if event.get('cat') == 'kernel' and not event['name'].startswith('nccl'):
                        event['name'] = 'larger_' + event['name']
            path.write_text(json.dumps(trace))
        return folder

    def finding(self, folder):
        found = [x for x in json.loads(run('explain', folder, '--json', check=0).out)['findings'] if x['id'] == 'rank.slow']
        self.assertEqual([x['rank'] for x in found], [SLOW])
        return found[0]['detail_en']

    def test_the_same_kernels_take_longer_at_a_low_clock(self):
        said = self.finding(self.make('slow-rank:1,1.4', clocks=[[1800], [1980, 1350], [1800]]))
        self.assertRegex(said, r'The same kernels take (39|40|41)(\.\d)?\s% longer than on the other ranks, and its device computed at 1350 MHz, theirs at 1800 MHz')

    def test_at_an_equal_clock_it_is_not_the_clock(self):
        for clocks in (None, [[1800], [1780], [1800]], [[1350], [1800], [1800]]):
            said = self.finding(self.make('slow-rank:1,1.4', clocks=clocks))
            self.assertIn('on the other ranks: check clocks, power, temperature and other processes', said)

    def test_other_kernels_are_more_work_whatever_the_clock(self):
        said = self.finding(self.make('slow-rank:1,1.4', clocks=[[1800], [1350], [1800]], more=True))
        self.assertNotIn('MHz', said)

    def test_clocks_as_a_table(self):
        folder = self.make(clocks=[[1800], [1980, 1350], [1800]])
        out = run('analyze', 'slow-rank', folder, '--format', 'csv', '--table', 'device-clocks', '-q', check=0).out
        rows = list(csv.DictReader(out.splitlines()))
        self.assertEqual([(row['rank'], float(row['clock_mhz'])) for row in rows], [('0', 1800), ('1', 1350), ('1', 1980), ('2', 1800)])
        self.assertEqual(int(rows[2]['recorded_ns']), 1000)
        self.assertTrue(all(int(row['computing_ns']) <= int(row['recorded_ns']) for row in rows))


if __name__ == '__main__':
    unittest.main()
