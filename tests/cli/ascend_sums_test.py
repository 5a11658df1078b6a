"""Sums over ranks of a simulated job, whose times are known."""
import csv
import io
import sqlite3
import unittest

from support import Case, run

STEPS = 3


class Sums(Case):
    def setUp(self):
        super().setUp()
        run('simulate', '1f1b', '--format', 'ascend', '--stages', 2, '--micro-batches', 4, '--steps', STEPS, '--level', 1, '-q',
            '-o', self.dir / 'in', check=0)
        self.databases = sorted((self.dir / 'in').rglob('ascend_pytorch_profiler_*.db'))

    def ask(self, path, sql):
        db = sqlite3.connect(f'file:{path}?immutable=1', uri=True)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def rows(self, analysis, table):
        out = run('analyze', analysis, self.dir / 'in', '--table', table, '--format', 'csv', '-q', check=0).out
        return list(csv.DictReader(io.StringIO(out)))

    def test_the_rank_map_leaves_no_step_out(self):
        kernels = 'SELECT sum(t.endNs - t.startNs) FROM TASK t JOIN COMPUTE_TASK_INFO USING (globalTaskId)'
        wanted = [self.ask(path, kernels)[0][0] for path in self.databases]
        self.assertEqual([int(row['compute_ns']) for row in self.rows('rank-map', 'rank-map')], wanted)
        self.assertGreater(wanted[0], 0)

    def test_the_copy_of_a_message_is_transit(self):
        """It names its own rank alone; its operation says whom it is with."""
        copies = ('SELECT sum(t.endNs - t.startNs), count(DISTINCT i.opId) FROM COMMUNICATION_TASK_INFO i JOIN TASK t USING (globalTaskId) '
                  'WHERE i.size > 0 AND i.dstRank = 4294967295')
        rows = self.rows('communication-time-sum', 'communication-time-sum')
        for rank, path in enumerate(self.databases):
            of_rank = [row for row in rows if int(row['rank']) == rank and row['kind'] in ('send', 'receive')]
            time, count = self.ask(path, copies)[0]
            self.assertEqual((sum(int(row['transit_ns']) for row in of_rank), sum(int(row['count']) for row in of_rank)), (time, count))
            self.assertGreater(time, 0)


if __name__ == '__main__':
    unittest.main()
