"""stageline explain over many simulated runs: ten faults are each found first, at their price, however they were recorded; healthy runs of every
schedule are silent. `python3 tests/cli/fault_matrix_test.py --wide` runs all jitters and seeds."""
import concurrent.futures
import itertools
import json
import shutil
import sys
import unittest

from support import Case, run

WIDE = '--wide' in sys.argv
SCHEDULES = ['fthenb', '1f1b', 'eager-1f1b', 'vpp', 'vpp-ep-overlap', 'bfs', 'bfs-unreversed', 'zb-h1', 'zb-h1-paddle', 'zb-h2', 'interleaved-zb', 'zb-v',
             'zbvpp', 'dualpipe', 'dualpipe-v', 'dualpipe-v-mindspeed']
JITTERS = (0.01, 0.03, 0.05) if WIDE else (0.05,)
SEEDS = (1, 2, 3) if WIDE else (3,)
FORMS = {'plain': [], 'messages': ['--messages'], 'two machines': ['--messages', '--machines', 2, '--clock-skew', '50ms']}
# (schedule, fault, finding)
FAULTS = [('1f1b', 'slow-stage:2,1.3', 'stage.slow'), ('1f1b', 'slow-rank:5,1.5', 'rank.slow'), ('1f1b', 'slow-link:1,2,+3ms', 'link.slow'),
          ('1f1b', 'long-sequences:0.15,2', 'sequence.long'), ('1f1b', 'gc:50ms,0.03', 'host.pauses'), ('1f1b', 'late-launch:6,3ms', 'rank.late_launch'),
          ('1f1b', 'wrong-order:2', 'schedule.order'), ('zb-v', 'missing-dw', 'schedule.unsplit'), ('1f1b', 'heavy-head:0.5', 'stage.slow'),
          ('1f1b', 'slow-step:1,1.5', 'step.outlier')]
PRICE = 0.05  # of the time lost
# A pause before a replica's first cell of a step cannot be told from waiting for data, and is not priced.
PRICES = {'host.pauses': 0.1}


class FaultMatrix(Case):
    def explained(self, name, schedule, *words):
        path = self.dir / name
        run('simulate', schedule, '--stages', 4, '--micro-batches', 8, '--format', 'cells', *words, '-o', path, '-q', check=0)
        found = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
        shutil.rmtree(path)
        return found

    def each(self, jobs, body):
        """Runs body(*job) for all jobs on two threads; what they return is tested here."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(zip(jobs, pool.map(lambda job: body(*job), jobs)))

    def test_each_fault_comes_first_however_it_was_recorded(self):
        def both(fault, form, seed):
            words = ['--dp', 2, '--steps', 6, '--jitter', 0.02, '--seed', seed, '--latency', 0.2, '--optimizer', 5, '--reduce', 2, *FORMS[form]]
            name = f'{fault[1]}-{form}-{seed}'
            return self.explained(name, fault[0], *words, '--fault', fault[1]), self.explained(name + '-well', fault[0], *words)
        jobs = list(itertools.product(FAULTS, FORMS, SEEDS))
        for (fault, form, seed), (found, well) in self.each(jobs, both):
            with self.subTest(fault=fault[1], form=form, seed=seed):
                self.assertEqual([f['id'] for f in found['findings']], [fault[2]])
                if fault[2] == 'step.outlier':  # left out of the mean step
                    self.assertAlmostEqual(found['step_ns'] / well['step_ns'], 1, delta=0.01)
                else:
                    lost = found['step_ns'] - well['step_ns']
                    self.assertAlmostEqual(found['findings'][0]['lost_ns'] / lost, 1, delta=PRICES.get(fault[2], PRICE))

    def test_healthy_runs_are_silent(self):
        def healthy(schedule, jitter, seed, form):
            return self.explained(f'{schedule}-{jitter}-{seed}-{form}', schedule, '--steps', 5, '--jitter', jitter, '--seed', seed, *FORMS[form])
        jobs = list(itertools.product(SCHEDULES, JITTERS, SEEDS, ('plain', 'messages')))
        for job, found in self.each(jobs, healthy):
            with self.subTest(run=job):
                self.assertEqual([f['title_en'] for f in found['findings']], [])
                self.assertEqual(found['lost_ns'], 0)


if __name__ == '__main__':
    unittest.main(argv=[a for a in sys.argv if a != '--wide'])
