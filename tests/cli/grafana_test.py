"""The dashboard for Grafana asks for the metrics that the program has, all of them, and no other."""
import json
import re
import unittest

from support import SOURCE, Case

BOARD = SOURCE / 'docs' / 'grafana' / 'stageline.json'


class GrafanaTest(Case):
    def setUp(self):
        super().setUp()
        self.board = json.loads(BOARD.read_text())
        self.queries = [t['expr'] for panel in self.board['panels'] for t in panel['targets']]

    def test_every_metric_is_shown_and_exists(self):
        has = dict(re.findall(r'm\.add\("(stageline_\w+)", "(\w+)"', (SOURCE / 'src/server/live/live_run.cc').read_text()))
        self.assertGreater(len(has), 15)
        asked = {name for query in self.queries for name in re.findall(r'stageline_\w+', query)}
        self.assertEqual(asked, set(has))
        documented = (SOURCE / 'docs/reference/live.md').read_text()
        for name in asked:
            self.assertTrue(name in documented or '…' + re.sub(r'^.*?(_[a-z]+(_up)?(_total)?)$', r'\1', name) in documented, name)

    def test_queries_are_of_one_job_and_panels_do_not_overlap(self):
        self.assertEqual([v['name'] for v in self.board['templating']['list']], ['instance'])
        for query in self.queries:
            self.assertEqual(len(re.findall(r'stageline_\w+', query)), len(re.findall(r'stageline_\w+\{instance=~"\$instance"\}', query)), query)
        taken = set()
        for panel in self.board['panels']:
            g = panel['gridPos']
            cells = {(x, y) for x in range(g['x'], g['x'] + g['w']) for y in range(g['y'], g['y'] + g['h'])}
            self.assertFalse(cells & taken, panel['title'])
            self.assertLessEqual(g['x'] + g['w'], 24)
            taken |= cells
        self.assertEqual(len({p['id'] for p in self.board['panels']}), len(self.board['panels']))
        self.assertTrue(all(p['datasource']['uid'] == '${DS_PROMETHEUS}' for p in self.board['panels']))


if __name__ == '__main__':
    unittest.main()
