"""One thing has one name: a row without a mark in info, analyze and pp-chart; operations of communication in tables."""
import json
import sqlite3
import unittest

from support import Case, flaws, info, run


class Words(Case):
    def make(self, schedule, *flags):
        run('simulate', schedule, '--format', 'ascend', '--level', 1, *flags, '--force', '-o', self.dir / 'in', check=0)
        return self.dir / 'in'

    def test_a_row_without_a_mark_is_named_once_and_is_no_waiting(self):
        source = self.make('dualpipe-v-mindspeed', '--stages', 4, '--micro-batches', 10, '--pp-info')
        path = next(source.rglob('ascend_pytorch_profiler_1.db'))
        with sqlite3.connect(path) as db:
            db.execute("DELETE FROM MSTX_EVENTS WHERE rowid = (SELECT m.rowid FROM MSTX_EVENTS m JOIN STRING_IDS s ON s.id = m.message "
                       "WHERE s.value LIKE '%forward%' ORDER BY m.startNs LIMIT 1 OFFSET 12)")
        db.close()
        expected, found = 'F7.c0&B3.c1', 'F5.c1&B1.c0'
        notes = flaws(info(source))
        self.assertIn(f'expected {expected}, found {found}', notes['cells.off_schedule.rank_1']['message'])
        lost = notes['cells.lost_marks']
        self.assertEqual((lost['count'], lost['severity']), (1, 'loss'))
        self.assertIn(f'first {expected} of rank 1 in step 10: about 30.0', lost['message'])
        self.assertIn('shown as waiting are lost marks', lost['message'])
        done = run('analyze', 'schedule', source, '--format', 'json', check=0)
        table = next(t for t in json.loads(done.out)['tables'] if t['name'] == 'divergence')
        self.assertEqual([(r['expected'], r['found']) for r in table['rows']], [(expected, found)])
        done = run('pp-chart', '-d', source, '-o', self.dir / 'out', check=0)
        self.assertIn(f'{expected} was expected, {found} (15F+1B in the table) was found', done.err)
        self.assertEqual(done.err.count('was expected'), 1)
        self.assertIn('shown as waiting are lost marks', done.err)

    def test_kernels_by_time_have_a_row_an_operation(self):
        source = self.make('1f1b', '--stages', 2, '--micro-batches', 4)
        tables = json.loads(run('analyze', 'gpu-kernel-breakdown', source, '--format', 'json', check=0).out)['tables']
        rows = [r for r in next(t for t in tables if t['name'] == 'kernels')['rows'] if r['kernel_type'] == 'COMMUNICATION']
        names = [r['name'] for r in rows if r['rank'] == 0]
        self.assertIn('hcom_receive', names)
        self.assertEqual(len(names), len(set(names)))
        self.assertFalse([n for n in names if '__' in n])
        self.assertGreater(max(r['count'] for r in rows), 1)
        with_hta = run('analyze', 'gpu-kernel-breakdown', source, '--compat', 'hta', check=0).out
        self.assertRegex(with_hta, r'hcom_\w+__\d+_\d+_1')  # as HTA: every name


if __name__ == '__main__':
    unittest.main()
