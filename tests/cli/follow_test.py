"""view --follow and tail on recordings that grow under them: a step at a time, as fast as they are looked at, so that no machine is too slow."""
import argparse
import ctypes.util
import http.server
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock
import urllib.error
import urllib.request

from support import BIN, SOURCE, Case, run, sanitized

sys.path.insert(0, str(SOURCE / 'tests/gen'))
import live_job  # noqa: E402

PATIENCE = 600
CURL = ctypes.util.find_library('curl') or ctypes.util.find_library('curl-gnutls')


def job(**sizes):
    args = {'stages': 4, 'replicas': 4, 'micro_batches': 8, 'steps': 12, 'step_ms': 200, 'jitter': 0.01, 'fault': None, **sizes}
    return live_job.make(argparse.Namespace(**args))


class Recorder:
    """A job's files, written when we say so."""

    def __init__(self, folder, **sizes):
        self.heads, self.steps, _, self.last = job(**sizes)
        folder.mkdir(exist_ok=True)
        self.paths = [folder / f'node{r // 8:03}.r{r:05}.p{100 + r}.1760000000.000.slrec' for r in range(len(self.heads))]
        self.write(self.heads)
        self.at = 0

    def write(self, parts, without=()):
        for r, (path, data) in enumerate(zip(self.paths, parts)):
            if r not in without:
                with open(path, 'ab') as file:
                    file.write(data)

    def step(self, count=1, without=()):
        for _ in range(count):
            self.write(self.steps[self.at], without)
            self.at += 1

    def close(self):
        self.write(self.last)

    def size(self):
        return sum(path.stat().st_size for path in self.paths)


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # noqa: N802
        body = self.rfile.read(int(self.headers['content-length']))
        self.server.reported.append((self.path, self.headers['content-type'], json.loads(body)))
        self.send_response(self.server.answers)
        self.end_headers()

    def log_message(self, *_):
        pass


class Followed(Case):
    def serve(self, folder, *flags, env=None):
        with open(self.dir / 'words', 'w') as words:
            child = subprocess.Popen([BIN, 'serve', str(folder), '--follow', '--port', '0', '--token', 'none', '--lang', 'en', *map(str, flags)], stdout=subprocess.PIPE,
                                     stderr=words, text=True, env={**os.environ, **(env or {})})
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.addCleanup(child.stdout.close)
        self.child, self.address, self.bytes = child, child.stdout.readline().strip(), 0
        return child

    def get(self, path):
        with urllib.request.urlopen(self.address + path, timeout=PATIENCE) as answer:
            return answer.read()

    def words(self):
        return (self.dir / 'words').read_text()

    def until(self, holds, after=-1):
        """The state as soon as it is so."""
        known, end = -1, time.monotonic() + PATIENCE
        while time.monotonic() < end:
            body = self.get(f'api/live?known={known}&after={after}')
            said = json.loads(body)
            known = said['version']
            if 'state' in said:
                self.bytes = len(body)
                if holds(said):
                    return said
            time.sleep(0.05)
        raise AssertionError(f'it never came to that: {body[:2000]}\n{self.words()}')

    def shown(self, step):
        return self.until(lambda said: said['steps'] and said['steps'][-1]['step'] == step, after=step - 1)

    def end(self):
        self.child.send_signal(signal.SIGINT)
        self.assertEqual(self.child.wait(timeout=PATIENCE), 0)

    def receiver(self, answers=204, tls=None):
        if not CURL:
            self.skipTest('needs libcurl')
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Hook)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            server.handle_error = lambda *_: None  # of clients that do not trust it
        server.reported, server.answers = [], answers
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server


class Follow(Followed):
    def test_a_finding_comes_and_goes(self):
        hook, folder = self.receiver(), self.dir / 'run'
        folder.mkdir()
        self.serve(folder, '--webhook', f'http://127.0.0.1:{hook.server_port}/a?b=c')
        self.assertEqual(self.until(lambda said: True)['state'], 'waiting')
        recorder = Recorder(folder, steps=26, fault=(5, 1.6, 8, 16))
        here, seen = [], {}
        for step in range(25):
            recorder.step(2 if step == 0 else 1)  # a step is over when all have begun the next one
            said = self.shown(step)
            here.append([f['finding']['title_en'] for f in said['findings'] if not f['gone']])
            for f in said['findings']:
                seen[f['finding']['title_en']] = f
        # The findings of step 8, the first slow one, may appear with step 7, the last finished one: all ranks have
        # written it.
        self.assertEqual(here[:7], [[]] * 7)
        named = [step for step, titles in enumerate(here) if any('ank 5 ' in title for title in titles)]
        self.assertIn(named[0], (7, 8))  # within two steps
        self.assertEqual(named, list(range(named[0], named[-1] + 1)))
        self.assertLess(named[-1], 16 + 6)  # and gone when the last few steps are well again
        self.assertEqual(here[22:], [[]] * 3)
        # Its long steps are reported until the rank is, and not again when only they are left.
        ranks = [any(title.startswith('Rank 5 ') for title in titles) for titles in here]
        self.assertFalse([titles for titles in here[ranks.index(True):] if any(title.startswith('Step ') for title in titles)])
        recorder.close()
        said = self.until(lambda now: now['state'] == 'closed')
        self.assertEqual((said['steps_over'], said['ranks'], said['stages']), (26, 16, 4))
        while json.loads(self.get('api/status'))['state'] != 'ready':
            time.sleep(0.05)
        self.assertIn(b'viewer.js', self.get(''))
        self.assertIn(b'live.js', self.get('live'))
        while len([1 for _, _, event in hook.reported if event['event'] == 'finding.begins']) != len([1 for _, _, event in hook.reported if event['event'] == 'finding.ends']):
            time.sleep(0.05)
        self.assertEqual({(path, kind) for path, kind, _ in hook.reported}, {('/a?b=c', 'application/json')})
        begun = [event for _, _, event in hook.reported if event['event'] == 'finding.begins' and event['finding']['title_en'].startswith('Rank 5 ')]
        self.assertEqual(len(begun), 1)
        self.assertTrue(begun[0]['finding']['title_zh'] and begun[0]['finding']['lost_ns'] > 0)
        self.assertEqual(begun[0]['run'], 'run')
        self.end()
        self.assertIn('the recording ended after 26 steps', self.words())
        self.assertRegex(self.words(), r'step \d+: resolved: Rank 5 ')

    def told(self, **sizes):
        """Returns the titles reported while such a job runs, in order, and the first title of the whole run."""
        folder = self.dir / 'run'
        folder.mkdir()
        self.serve(folder)
        self.until(lambda said: True)
        recorder = Recorder(folder, **sizes)
        titles = []
        for step in range(sizes['steps'] - 1):
            recorder.step(2 if step == 0 else 1)
            titles += [f['finding']['title_en'] for f in self.shown(step)['findings'] if not f['gone']]
        recorder.close()
        self.until(lambda now: now['state'] == 'closed')
        while json.loads(self.get('api/status'))['state'] != 'ready':
            time.sleep(0.05)
        while 'findings' not in (whole := json.loads(self.get('api/explain'))):
            time.sleep(0.05)
        self.end()
        return list(dict.fromkeys(titles)), whole['findings'][0]

    def test_a_slow_rank_of_two_is_no_slow_stage(self):
        titles, whole = self.told(steps=30, replicas=2, fault=(5, 1.5, 10, 20))
        self.assertTrue(titles)
        self.assertEqual([title for title in titles if not title.startswith('Rank 5 ')], [])
        self.assertIn('in 10 of 30 steps', whole['title_en'])
        slow_in = [int(re.search(r'in (\d+) of', title).group(1)) for title in titles if ' of ' in title.partition('in ')[2]]
        self.assertIn(10, slow_in)
        self.assertLessEqual(max(slow_in), 10, titles)  # a step before its onset or after its end is none of them

    def test_long_steps_are_not_told_beside_a_stage_of_one_rank(self):
        titles, whole = self.told(steps=36, replicas=1, fault=(1, 1.6, 10, 20))
        stage = next(i for i, title in enumerate(titles) if title.startswith('Stage 1 '))
        self.assertEqual([title for title in titles[stage:] if not title.startswith('Stage 1 ')], [])
        # The ten steps are a state of the device and no exceptions.
        self.assertRegex(whole['title_en'], r'^Stage 1 is slow \(1\.60× .* in 10 of 36 steps')
        self.assertAlmostEqual(whole['lost_share'], 10 * 0.316 / (36 + 10 * 0.316), delta=0.01)

    def test_metrics(self):
        recorder = Recorder(self.dir / 'run', fault=(6, 1.5, 0, 99))
        recorder.step(5)
        self.serve(self.dir / 'run')
        self.shown(3)
        text = self.get('metrics').decode()
        values = dict(re.findall(r'^(stageline_\w+) (\S+)$', text, re.M))
        self.assertEqual((values['stageline_recording'], values['stageline_ranks'], values['stageline_step']), ('1', '16', '3'))
        self.assertAlmostEqual(float(values['stageline_step_seconds']), 0.25, delta=0.05)
        self.assertEqual((values['stageline_slowest_rank'], values['stageline_slowest_stage']), ('6', '2'))
        self.assertAlmostEqual(float(values['stageline_slowest_rank_ratio']), 1.5, delta=0.05)
        self.assertTrue(0.2 < float(values['stageline_bubble_share']) < 0.6)
        self.assertRegex(text, r'stageline_finding_lost_seconds\{id="[\w.-]+",cause="[^"]+"\} 0\.\d')
        # As Prometheus reads it: each name is helped and typed once, before its samples, which stand together.
        names = [re.match(r'# TYPE (\S+) (?:gauge|counter)$', line)[1] for line in text.splitlines() if line.startswith('# TYPE')]
        self.assertEqual(len(names), len(set(names)))
        order = [name for name, after in zip(*(lambda all_: (all_, [None] + all_[:-1]))([re.match(r'\w+', line)[0] for line in text.splitlines() if line[0] != '#'])) if name != after]
        self.assertEqual(order, names)
        self.end()

    def test_a_thousand_ranks(self):
        if sanitized():
            self.skipTest('takes minutes there')
        recorder, steps = Recorder(self.dir / 'run', stages=16, replicas=64, steps=10, step_ms=500, fault=(300, 1.5, 5, 99)), 10
        self.serve(self.dir / 'run')
        named = None
        for step in range(steps - 1):
            recorder.step(2 if step == 0 else 1)
            said = self.shown(step)
            self.assertLessEqual(self.bytes / 1024, 2000)  # bytes per step and rank
            if named is None and any('ank 300 ' in f['finding']['title_en'] for f in said['findings'] if not f['gone']):
                named = step
        self.assertIn(named, (5, 6))
        self.assertLessEqual(recorder.size() / steps / 1024, 2000)
        self.assertEqual((said['ranks'], len(said['pipeline']['rows'])), (1024, 32))
        self.assertIn(300, [row['rank'] for row in said['pipeline']['rows']])
        self.end()

    def test_who_holds_the_others_up(self):
        recorder = Recorder(self.dir / 'run')
        recorder.step(4)
        recorder.step(2, without=(7,))
        self.serve(self.dir / 'run')
        said = self.until(lambda now: now['behind_count'] > 0)
        self.assertEqual((said['behind'], said['under_way'], said['steps'][-1]['step']), ([7], 3, 2))
        self.assertEqual(said['pipeline']['to_step'], 3)  # it is not over, but rank 7 has as much of it as of those before
        self.end()

    def test_a_step_is_looked_at_once_all_have_done_it(self):
        ends = {}  # where half of what each rank records of a step ends

        class Halves(live_job.File):
            def ranges(self, records):
                super().ranges(records[:9])
                ends.setdefault(id(self), []).append(len(self.data))
                super().ranges(records[9:])

        with unittest.mock.patch.object(live_job, 'File', Halves):
            recorder = Recorder(self.dir / 'run')
        recorder.step(5)
        half = list(ends.values())[7][5]
        whole = recorder.steps[5][7]
        recorder.steps[5][7] = whole[:half]
        recorder.step()
        self.serve(self.dir / 'run')
        said = self.shown(4)  # every rank is in step 5, and rank 7 has not done it
        self.assertEqual((said['under_way'], said['pipeline']['to_step']), (5, 4))
        recorder.write([whole[half:] if rank == 7 else b'' for rank in range(16)])
        said = self.until(lambda now: now['pipeline']['to_step'] == 5)
        self.assertEqual((said['under_way'], said['steps_over']), (5, 5))
        self.end()

    def test_what_is_killed_ends_well(self):
        recorder = Recorder(self.dir / 'run')
        recorder.step(6)
        self.serve(self.dir / 'run')
        self.shown(4)
        for path in recorder.paths:
            os.utime(path, (time.time() - 300, time.time() - 300))
        said = self.until(lambda now: now['state'] == 'silent')
        self.assertEqual(said['steps_over'], 6)
        while json.loads(self.get('api/status'))['state'] != 'ready':
            time.sleep(0.05)
        self.end()
        self.assertIn('no data for one minute', self.words())

    def test_a_long_recording_is_read_at_its_end(self):
        # Far more than is read at once; the numbers of the last steps are those of the whole.
        recorder = Recorder(self.dir / 'run', stages=2, replicas=1, steps=600, step_ms=50)
        recorder.step(590)
        self.assertGreater(min(path.stat().st_size for path in recorder.paths), 3 << 15)
        self.serve(self.dir / 'run')
        said = self.until(lambda now: now['steps'])
        numbers = [step['step'] for step in said['steps']]
        self.assertEqual(numbers[-1], 588)
        self.assertTrue(16 <= len(numbers) < 500, numbers)
        self.assertEqual(numbers, list(range(numbers[0], 589)))
        recorder.step(10)
        self.until(lambda now: now['steps'] and now['steps'][-1]['step'] == 598)
        recorder.close()
        self.until(lambda now: now['state'] == 'closed')
        self.end()
        whole = [json.loads(line) for line in run('tail', self.dir / 'run', '--rows', 0, '--format', 'json', check=0).out.splitlines()]
        self.assertEqual([step['step'] for step in whole], list(range(600)))
        few = [json.loads(line) for line in run('tail', self.dir / 'run', '--rows', 5, '--format', 'json', check=0).out.splitlines()]
        self.assertEqual(few, whole[-5:])

    def test_what_is_not_to_be_reported(self):
        (self.dir / 'run').mkdir()
        for flags, words in ((['--webhook', 'http://127.0.0.1:1/'], 'add --follow'), (['--follow', '--webhook', 'ftp://a.b/c'], 'no http address'),
                             (['--otlp', 'http://127.0.0.1:1'], 'add --follow'), (['--follow', '--webhook-form', 'slack'], 'add --webhook'),
                             (['--follow', '--otlp', 'collector:4318'], '--otlp takes an address'), (['--follow', '--webhook', 'a.b/c'], 'no http address'), (['--follow', '--webhook', 'http://:80/'], 'no http address'),
                             (['--follow', '--webhook', 'http://u:p@a/'], "holds a user's name"), (['--follow', '--webhook', 'http://a:0/'], 'no port from 1')):
            self.assertIn(words, run('serve', self.dir / 'run', *flags, check=2).err)

    def test_a_message_of_slacks_is_one_line(self):
        hook, recorder = self.receiver(answers=200), Recorder(self.dir / 'a<b', fault=(6, 1.5, 0, 99))
        recorder.step(6)
        self.serve(self.dir / 'a<b', '--webhook', f'http://127.0.0.1:{hook.server_port}/services/T0/B0/secret', '--webhook-form', 'slack')
        self.until(lambda said: any('ank 6 ' in f['finding']['title_en'] for f in said['findings']))
        while not any('ank 6 ' in body['text'] for _, _, body in hook.reported):
            time.sleep(0.05)
        path, kind, body = next(message for message in hook.reported if 'ank 6 ' in message[2]['text'])
        self.assertEqual((path, kind, list(body)), ('/services/T0/B0/secret', 'application/json', ['text']))
        self.assertRegex(body['text'], r'^a&lt;b: step \d+: Rank 6 .* – .+ step$')
        self.assertNotIn('\n', body['text'])
        self.end()
        self.assertNotIn('secret', self.words())

    @unittest.skipUnless(shutil.which('openssl'), 'needs openssl')
    def test_https_is_spoken_and_certificates_are_checked(self):
        key, certificate = self.dir / 'key.pem', self.dir / 'certificate.pem'
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key,
                        '-out', certificate], check=True, capture_output=True)
        hook = self.receiver(tls=(certificate, key))
        recorder = Recorder(self.dir / 'run', fault=(6, 1.5, 0, 99))
        recorder.step(6)
        flags = '--webhook', f'https://127.0.0.1:{hook.server_port}/x', '--confine', 'off'  # confined, it reads the system's certificates alone
        self.serve(self.dir / 'run', *flags, env={'CURL_CA_BUNDLE': str(certificate), 'SSL_CERT_FILE': str(certificate)})
        while not hook.reported:
            time.sleep(0.05)
        self.assertEqual(hook.reported[0][2]['event'], 'finding.begins')
        self.end()
        before = len(hook.reported)
        self.serve(self.dir / 'run', *flags)  # nobody vouches for this certificate
        while not re.search(r'^stageline_webhook_given_up_total [1-9]', self.get('metrics').decode(), re.M):
            time.sleep(0.05)
        recorder.step()
        self.shown(5)
        self.end()
        self.assertEqual(len(hook.reported), before)
        self.assertIn('could not notify the webhook: cannot be reached: ', self.words())

    def test_metrics_are_exported_to_a_collector(self):
        hook, recorder = self.receiver(answers=200), Recorder(self.dir / 'run', fault=(6, 1.5, 0, 99))
        recorder.step(5)
        self.serve(self.dir / 'run', '--otlp', f'http://127.0.0.1:{hook.server_port}')
        self.shown(3)
        recorder.step()
        self.shown(4)
        recorder.step(6)
        recorder.close()
        self.until(lambda said: said['state'] == 'closed')

        def measured(body):
            """Name → [(value, labels, point)], and the kinds of the metrics."""
            scope, = body['resourceMetrics'][0]['scopeMetrics']
            out = {}
            for metric in scope['metrics']:
                of = metric.get('sum') or metric['gauge']
                self.assertEqual('sum' in metric, metric['name'].endswith('_total'))
                self.assertEqual((metric.get('sum') or {}).get('aggregationTemporality', 2), 2)
                out[metric['name']] = [(p['asDouble'], {a['key']: a['value']['stringValue'] for a in p['attributes']}, p) for p in of['dataPoints']]
            return out

        def last():
            return measured(hook.reported[-1][2])

        while last()['stageline_recording'][0][0] != 0:
            time.sleep(0.05)
        self.assertEqual({(path, kind) for path, kind, _ in hook.reported}, {('/v1/metrics', 'application/json')})
        attributes = {a['key']: a['value']['stringValue'] for a in hook.reported[0][2]['resourceMetrics'][0]['resource']['attributes']}
        self.assertEqual(attributes, {'service.name': 'stageline', 'service.instance.id': 'run'})
        steps = [m['stageline_step'][0][0] for m in (measured(body) for _, _, body in hook.reported) if 'stageline_step' in m]
        self.assertEqual(steps, sorted(steps))
        self.assertIn(3, steps)
        self.assertIn(4, steps)
        # The last export says what /metrics says.
        prometheus = {name: float(value) for name, value in re.findall(r'^(stageline_\w+) (\S+)$', self.get('metrics').decode(), re.M)}
        self.assertEqual({name: points[0][0] for name, points in last().items() if not points[0][1]}, prometheus)
        self.assertTrue(all({'id', 'cause'} == set(labels) for _, labels, _ in last().get('stageline_finding_lost_seconds', [])))
        point = last()['stageline_steps_total'][0][2]
        self.assertLess(int(point['startTimeUnixNano']), int(point['timeUnixNano']))
        self.end()

    def test_a_webhook_that_is_away_holds_nothing_up(self):
        hook = self.receiver(answers=500)
        recorder = Recorder(self.dir / 'run', fault=(6, 1.5, 0, 99))
        recorder.step(6)
        self.serve(self.dir / 'run', '--webhook', f'http://127.0.0.1:{hook.server_port}/')
        self.shown(4)
        while not re.search(r'^stageline_webhook_given_up_total [1-9]', self.get('metrics').decode(), re.M):
            time.sleep(0.05)
        self.assertGreaterEqual(len(hook.reported), 3)  # tried as often
        recorder.step()
        self.shown(5)
        self.end()
        self.assertIn('could not notify the webhook: it answered 500', self.words())

    def test_who_does_not_follow_has_no_metrics(self):
        recorder = Recorder(self.dir / 'run')
        recorder.step(3)
        recorder.close()
        child = subprocess.Popen([BIN, 'serve', str(self.dir / 'run'), '--port', '0', '--token', 'none', '--quiet'], stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        address = child.stdout.readline().strip()
        for path in ('metrics', 'api/live', 'live'):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(address + path)
            self.assertEqual(refused.exception.code, 404)
            self.assertIn(b'--follow', refused.exception.read())
            refused.exception.close()

    def test_tail_says_what_it_waits_for(self):
        (self.dir / 'empty').mkdir()
        notes = self.write('other/notes.txt', 'by hand')
        for folder, words in (('empty', 'no recording (*.slrec) there yet'), ('other', 'the file that is there is none'), ('missing', 'no such file or folder')):
            with subprocess.Popen([BIN, 'tail', str(self.dir / folder)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
                self.assertIn(words, child.stderr.readline())
                child.kill()
        self.assertIn('will never be one', run('tail', notes, check=2).err)

    def test_tail_in_chinese(self):
        recorder = Recorder(self.dir / 'run', fault=(6, 1.5, 0, 99))
        recorder.step(3)
        recorder.close()
        said = run('tail', self.dir / 'run', '--lang', 'zh', check=0).out.splitlines()
        self.assertEqual(said[0].split(), ['步', '用时', '气泡', '最慢的流水级'])
        self.assertIn('rank 6，为同级中位数的 1.5', said[1])
        self.assertEqual(len(said), 4)
        self.assertIn("; rank 6, 1.5", run('tail', self.dir / 'run', '--lang', 'en', check=0).out)


if __name__ == '__main__':
    unittest.main()
