"""Messages of a pipeline on Ascend are not collectives: ranks number them separately, and no rank waits for all."""
import json
import unittest

from support import Case, run


class Messages(Case):
    def make(self):
        run('simulate', '1f1b', '--format', 'ascend', '--pp', '4', '--micro-batches', '8', '--level', '1', '--force', '-o', self.dir / 'in', check=0)
        return self.dir / 'in'

    def rows(self, folder, analysis, table):
        out = json.loads(run('analyze', analysis, folder, '--table', table, '--format', 'json', '-q', check=0).out)
        tables = out.get('tables', [out])
        return next(t['rows'] for t in tables if t['name'] == table)

    def test_messages_of_one_number_are_apart(self):
        rows = self.rows(self.make(), 'hccl-sum', 'hccl-top')
        messages = [r for r in rows if 'send' in r['name'] or 'receive' in r['name']]
        self.assertTrue(messages)
        self.assertEqual({r['count'] for r in messages}, {1})

    def test_messages_are_not_joined_by_number(self):
        rows = self.rows(self.make(), 'tb-distributed', 'collectives')
        messages = [r for r in rows if 'send' in r['collective'].lower() or 'receive' in r['collective'].lower()]
        self.assertTrue(messages)
        self.assertEqual({r['joined_count'] for r in messages}, {0})


if __name__ == '__main__':
    unittest.main()
