"""Transfers that take longer while a rank computes, or for seconds: found with what they cost, and not where they take as long as others."""
import json
import sys
import unittest

from support import SOURCE, Case, run

sys.path.insert(0, str(SOURCE / 'tests/gen'))
from collectives import Job  # noqa: E402

CALLS, ALONE_US = 8, 400  # all-reduces of a step, half of them under computing


class SlowedTransfersTest(Case):
    def findings(self, under_us, stalled_us=0):
        """`stalled_us`: what the last all-reduce of the second step takes longer."""
        job = Job(['node0'] * 4, groups=[('0', 'mesh_dp', [0, 1, 2, 3])])
        at = 1000.0
        for step in range(3):
            start = at
            for call in range(CALLS):
                under = call % 2 == 0
                took = under_us if under else ALONE_US
                took += stalled_us if (step, call) == (1, CALLS - 1) else 0
                for rank in range(4):
                    job.compute(rank, at, at + 390, launch=start - 20 + 24 * call)
                    begin = at + 100 if under else at + 391
                    job.call(rank, begin, begin + took, [job.args('allreduce', 0, (50_000_000, 50_000_000), step * CALLS + call + 1)],
                             launch=start - 8 + 24 * call)
                at += (100 if under else 391) + took + 1
            for rank in range(4):  # the host waits for the devices
                job.slice(rank, 'cuda_runtime', 'cudaDeviceSynchronize', start + 24 * CALLS, at - start - 24 * CALLS, 7, {})
            at += 60
            job.step(step + 3, start - 50, at - 55)
        job.write(self.dir / f'{under_us}')
        return json.loads(run('explain', self.dir / f'{under_us}', '--json', '-q', check=0).out)['findings']

    def test_what_computing_costs_is_found(self):
        found = [x for x in self.findings(560) if x['id'] == 'comm.slowed']
        self.assertEqual(len(found), 1)
        self.assertIn('takes 1.40× as long while a rank computes', found[0]['detail_en'])
        self.assertAlmostEqual(found[0]['lost_ns'] / 1000 / (CALLS / 2 * 160), 1, delta=0.1)

    def test_equal_times_are_no_finding(self):
        self.assertFalse({'comm.slowed', 'comm.stalled'} & {x['id'] for x in self.findings(ALONE_US)})

    def test_a_transfer_of_seconds_is_found(self):
        found = [x for x in self.findings(ALONE_US, stalled_us=5e6) if x['id'] == 'comm.stalled']
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0]['title_en'], r'A transfer takes 5\.00\ss')
        self.assertAlmostEqual(found[0]['lost_ns'] / 1000 / (5e6 / 3), 1, delta=0.02)
        self.assertNotIn('comm.stalled', [x['id'] for x in self.findings(ALONE_US, stalled_us=3e6)])


if __name__ == '__main__':
    unittest.main()
