"""Debian's Prometheus scrapes a running job, and answers every query of the dashboard for Grafana."""
import json
import os
import re
import shutil
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import follow_test
from support import SOURCE

PROGRAM = shutil.which(os.environ.get('STAGELINE_PROMETHEUS', 'prometheus'))


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


@unittest.skipUnless(PROGRAM, "needs Debian's package prometheus")
class PrometheusTest(follow_test.Followed):
    def ask(self, path, **parameters):
        query = urllib.parse.urlencode(parameters, doseq=True)
        with urllib.request.urlopen(f'http://127.0.0.1:{self.port}{path}?{query}', timeout=60) as answer:
            return json.load(answer)['data']

    def query(self, expression):
        return self.ask('/api/v1/query', query=expression)['result']

    def until_asked(self, expression, holds):
        end = time.monotonic() + follow_test.PATIENCE
        while time.monotonic() < end:
            try:
                result = self.query(expression)
                if holds(result):
                    return result
            except (urllib.error.URLError, ConnectionError):  # it has not begun to listen
                pass
            time.sleep(0.2)
        raise AssertionError(f'{expression} never came to that\n{(self.dir / "prometheus.log").read_text()[-2000:]}')

    def scrape(self, target):
        config = self.dir / 'prometheus.yml'
        config.write_text(f'global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: training, metrics_path: /metrics, static_configs: [{{targets: ["{target}"]}}]}}]\n')
        self.port = free_port()
        with open(self.dir / 'prometheus.log', 'w') as log:
            child = subprocess.Popen([PROGRAM, f'--config.file={config}', f'--storage.tsdb.path={self.dir / "data"}', f'--web.listen-address=127.0.0.1:{self.port}'],
                                     stdout=log, stderr=log)
        self.addCleanup(child.wait)
        self.addCleanup(child.terminate)

    def test_a_running_job_is_scraped_and_the_dashboard_answers(self):
        hook, recorder = self.receiver(), follow_test.Recorder(self.dir / 'run', steps=20, fault=(6, 1.5, 0, 99))
        recorder.step(6)
        self.serve(self.dir / 'run', '--webhook', f'http://127.0.0.1:{hook.server_port}/')
        target = re.match(r'http://([^/]+)/', self.address)[1]
        self.scrape(target)
        first = self.until_asked('stageline_step', lambda result: result and result[0]['value'][1] == '4')
        self.assertEqual((first[0]['metric']['instance'], first[0]['metric']['job']), (target, 'training'))
        recorder.step(3)
        self.until_asked('stageline_step', lambda result: result and result[0]['value'][1] == '7')
        self.until_asked('stageline_finding_lost_seconds', bool)

        # Two samples of each counter, so that its increase is known.
        self.until_asked('count_over_time(stageline_webhook_sent_total[1m])', lambda result: result and int(result[0]['value'][1]) >= 2)
        board = json.loads((SOURCE / 'docs/grafana/stageline.json').read_text())
        self.assertEqual(self.ask('/api/v1/label/instance/values', **{'match[]': 'stageline_recording'}), [target])
        asked = [target['expr'] for panel in board['panels'] for target in panel['targets']]
        self.assertGreater(len(asked), 15)
        for expression in asked:
            result = self.query(expression.replace('$instance', target).replace('$__rate_interval', '1m'))
            self.assertTrue(result, expression)
            self.assertTrue(all(series['metric'].get('instance') == target for series in result), expression)

        # Its values are those of the page.
        said = dict(re.findall(r'^(stageline_(?:step|step_seconds|slowest_rank|slowest_rank_ratio|ranks)) (\S+)$', self.get('metrics').decode(), re.M))
        self.assertEqual(len(said), 5)
        for name, value in said.items():
            self.until_asked(name, lambda result, value=value: result and float(result[0]['value'][1]) == float(value))
        self.assertEqual(said['stageline_slowest_rank'], '6')
        self.end()


if __name__ == '__main__':
    unittest.main()
