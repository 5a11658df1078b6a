"""The viewer's server as an attacker finds it: traversal, rebinding, oversized and slow requests, crowds, abrupt ends.

Starts `stageline serve` on a small simulated run and talks to it over sockets. STAGELINE_BIN names the program.
"""
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

from serving import BIN, Server

CROWD = 1000


class ServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.run_path = os.path.join(cls.folder.name, 'run')
        subprocess.run([BIN, 'simulate', '1f1b', '--stages', '4', '--steps', '3', '-o', cls.run_path], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pathlib.Path(cls.folder.name, 'secret.txt').write_text('the secret')
        cls.server = Server(cls.run_path, '--port', '0', '--quiet')
        assert cls.server.wait_ready() == 'ready'

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        cls.folder.cleanup()
        assert code == 0, (code, cls.server.err)
        assert cls.server.err == '', cls.server.err

    def alive(self):
        status, _, body = self.server.get('/api/run')
        self.assertEqual(status, 200)
        self.assertEqual(len(json.loads(body)['ranks']), 4)

    def test_page_and_headers(self):
        for target in ('/', '/viewer.js', '/chunk.js', '/late_pages.js', '/viewer.css', '/api/status', '/api/run', '/api/tiles?n=10', '/nothing'):
            status, headers, body = self.server.get(target)
            self.assertEqual(status, 404 if target == '/nothing' else 200, target)
            policy = headers['content-security-policy']
            self.assertIn("default-src 'none'", policy)
            self.assertNotIn('unsafe', policy)
            self.assertNotIn('*', policy)
            self.assertEqual(headers['x-content-type-options'], 'nosniff')
            self.assertEqual(headers['cross-origin-resource-policy'], 'same-origin')
            self.assertNotIn('access-control-allow-origin', headers)
            self.assertNotIn('cross-origin-opener-policy', headers)  # the page opens Perfetto and talks to it
            self.assertGreater(len(body), 0)

    def test_page_has_nothing_inline(self):
        page = self.server.get('/')[2].decode()
        self.assertNotRegex(page, r'<script(?![^>]*\bsrc=)')
        self.assertNotRegex(page, r'<style|style=|\son\w+=')
        self.assertNotRegex(page, r'https?://')

    def test_head_and_etag_and_gzip(self):
        status, headers, body = self.server.get('/viewer.js', method='HEAD')
        whole = self.server.get('/viewer.js')[2]
        self.assertEqual((status, body, int(headers['content-length'])), (200, b'', len(whole)))
        status, again, body = self.server.get('/viewer.js', [('If-None-Match', headers['etag'])])
        self.assertEqual((status, body), (304, b''))
        self.assertEqual(self.server.get('/viewer.js', [('If-None-Match', '"other"')])[0], 200)
        # Keep-alive, with a HEAD and a 304 between: nothing may follow their headers.
        connection = http.client.HTTPConnection('127.0.0.1', self.server.port, timeout=60)
        for method, extra in (('HEAD', {}), ('GET', {'If-None-Match': headers['etag']}), ('GET', {}), ('HEAD', {}), ('GET', {})):
            connection.request(method, '/viewer.js', headers=extra)
            answer = connection.getresponse()
            body = answer.read()
            self.assertEqual(body, b'' if method == 'HEAD' or extra else whole)
        connection.close()

    def test_traversal(self):
        secret = os.path.join(self.folder.name, 'secret.txt')
        for target in ('/../secret.txt', '/..%2fsecret.txt', '/%2e%2e/secret.txt', '/....//secret.txt', '/' + secret, secret,
                       '/%2f' + secret[1:], '/viewer.js/../../secret.txt', '/..\\secret.txt', '/viewer.js%00', '//' + secret[1:],
                       '/api/../../secret.txt', '/api/tiles/../../../etc/passwd', 'file://' + secret, '/proc/self/environ',
                       '/api/slice?path=' + secret, '/' + os.path.basename(self.run_path)):
            status, _, body = self.server.get(target)
            self.assertGreaterEqual(status, 400, target)
            self.assertNotIn(b'the secret', body)
            self.assertNotIn(b'root:', body)
        self.alive()

    def test_rebinding(self):
        port = str(self.server.port)
        for host in ('localhost', 'localhost:' + port, '127.0.0.1:9', '[::1]:' + port, 'LOCALHOST'):
            self.assertEqual(self.server.get('/api/run', [('Host', host)])[0], 200, host)
        for host in ('evil.example', 'evil.example:' + port, 'localhost.evil.example', '127.0.0.1.nip.io', '127.0.0.2', '0.0.0.0', '',
                     'localhost:' + port + '.evil.example', 'evil@localhost'):
            for target in ('/', '/api/run', '/api/events', '/viewer.js'):
                status, _, body = self.server.get(target, [('Host', host)])
                self.assertEqual(status, 403, (host, target))
                self.assertNotIn(b'ranks', body)
        self.assertEqual(self.server.get('/api/run', [('Host', 'localhost'), ('Host', 'evil.example')])[0], 400)
        self.assertIn(b' 400 ', self.server.raw(b'GET /api/run HTTP/1.1\r\nConnection: close\r\n\r\n').split(b'\r\n')[0])
        self.assertIn(b' 400 ', self.server.raw(b'GET http://evil.example/api/run HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
                      .split(b'\r\n')[0])

    def test_other_sites(self):
        for site, expected in (('cross-site', 403), ('same-site', 403), ('same-origin', 200), ('none', 200)):
            self.assertEqual(self.server.get('/api/run', [('Sec-Fetch-Site', site)])[0], expected)
        self.assertEqual(self.server.get('/', [('Sec-Fetch-Site', 'cross-site')])[0], 200)  # a link to the page

    def test_every_spelling_of_a_path_is_checked(self):
        """Another site's page may not read the API, however it writes the path."""
        for target in ('/api/run', '/%61pi/run', '/a%70i/run', '/%61%70%69/run', '/api%2Frun', '/%61pi%2frun', '/api/r%75n', '/%61pi/events',
                       '/%2561pi/run'):
            for site in ('cross-site', 'same-site'):
                status, _, body = self.server.get(target, [('Sec-Fetch-Site', site)])
                self.assertIn(status, (403, 404), target)
                self.assertNotIn(b'ranks', body)
        self.assertEqual(self.server.get('/%61pi/run')[0], 200)  # the same path for who may read it

    def test_methods_and_bodies(self):
        for method in ('POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'PATCH'):
            status = self.server.get('/api/run', method=method)[0]
            self.assertIn(status, (400, 405), method)
        head = b'GET /api/run HTTP/1.1\r\nHost: localhost\r\n'
        for body in (b'Content-Length: 5\r\n\r\nhello', b'Content-Length: 99999999999\r\n\r\n', b'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'):
            first = self.server.raw(head + body).split(b'\r\n')[0]
            self.assertRegex(first, rb' (400|413) ', body)
        for rubbish in (b'\x00\x01\x02\x03\r\n\r\n', b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', b'GET\r\n\r\n', b'HELO me\r\n\r\n',
                        b'GET / HTTP/9.9\r\n\r\n', b'GET / HTTP/1.1\r\nHost localhost\r\n\r\n', b'GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n',
                        b'GET /api/run\r\n\r\n', b'\r\n' * 100):
            answer = self.server.raw(rubbish + b'\r\n\r\n')
            self.assertNotIn(b' 200 ', answer.split(b'\r\n')[0], rubbish)
        self.alive()

    def test_smuggled(self):
        """A body that is refused is never read as the next request."""
        inner = b'GET /api/run HTTP/1.1\r\nHost: localhost\r\n\r\n'
        data = b'GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n' % len(inner) + inner
        self.assertEqual(self.server.raw(data).count(b'HTTP/1.1 '), 1)

    def test_oversized(self):
        head = b'GET /api/run HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
        self.assertIn(b' 200 ', self.server.raw(head + b'X-Pad: ' + b'a' * 12_000 + b'\r\n\r\n').split(b'\r\n')[0])
        for data in (head + b'X-Pad: ' + b'a' * 17_000 + b'\r\n\r\n', head + b'A: b\r\n' * 5000 + b'\r\n',
                     b'GET /' + b'a' * 20_000 + b' HTTP/1.1\r\nHost: localhost\r\n\r\n', b'G' * 50_000):
            first = self.server.raw(data).split(b'\r\n')[0]
            self.assertTrue(first == b'' or re.search(rb' (400|431) ', first), first)
        self.alive()

    def test_long_expensive_questions(self):
        for target in ('/api/search?regex=1&q=' + '(a*)*' * 40 + 'b', '/api/tiles?n=16384&lanes=' + ','.join(['0'] * 2000),
                       '/api/slices?limit=200000', '/api/find?q=zzzz&dir=prev&from=1e18'):
            self.assertIn(self.server.get(target)[0], (200, 400, 413), target[:60])
        self.alive()

    def test_hostile_questions(self):
        """Windows, lists and words that mean nothing are refused in words; what means something odd is answered."""
        windows = ['t0=nan', 't1=nan', 't0=inf', 't1=-inf', 't0=1e400', 't1=-1e400', 't0=5&t1=5', 't0=9&t1=3', 't0=1e18&t1=1e19', 't0=-1e19&t1=1e19',
                   't0=0x10', 't0=', 't0=1e', 't0=--1', 't0=0&t1=1e-300', 't0=9223372036854775807&t1=9223372036854775808']
        lists = ['lanes=0-999999999', 'lanes=4294967295', 'lanes=-1', 'lanes=3-1', 'lanes=' + '0,' * 5000 + '0', 'lanes=,', 'lanes=0-', 'lanes=1e9',
                 'lanes=0-0,0-0', 'lanes=99999999999999999999']
        words = ['q=' + 'a' * 10_000, 'q=%3Cscript%3E', 'q=%22', 'q=%22%22', 'q=mb:', 'q=mb:99999999999999999999', 'q=kind:%3Cb%3E', 'q=step:-9223372036854775808',
                 'q=' + 'mb:1%20' * 2000, 'q=%ff%fe', 'regex=1&q=(', 'name_ids=0-4294967295', 'name_ids=', 'where=kind:B', 'q=a&where=a', 'revision=0', 'revision=nan']
        numbers = ['n=0', 'n=-1', 'n=16385', 'n=1e9', 'n=', 'limit=0', 'limit=99999999999', 'lane=0&slice=4294967296', 'lane=4294967296&slice=0', 'min=nan', 'max=inf']
        paths = ('/api/tiles?n=5&', '/api/slices?', '/api/slice?lane=0&slice=0&', '/api/select?', '/api/search?', '/api/find?', '/api/histogram?', '/api/flows?',
                 '/api/counter?n=5&lane=0&', '/api/run?', '/api/status?', '/api/answers?', '/api/answer?name=', '/api/sql?q=SELECT%201&', '/api/explain?', '/api/clocks?', '/api/compare?')
        for path in paths:
            for odd in windows + lists + words + numbers:
                status, headers, body = self.server.get(path + odd)
                self.assertIn(status, (200, 202, 400, 404, 409, 413, 431), path + odd[:80])
                if status >= 400 and status != 431:
                    self.assertTrue(json.loads(body)['error'], path + odd[:80])
                self.assertIn(headers['content-type'].split(';')[0], ('application/json', 'application/octet-stream'))  # never a page
                self.assertEqual(headers['x-content-type-options'], 'nosniff')
        self.alive()

    def test_hostile_worlds(self):
        """Requests of the pages of answers, pipeline and compare: invalid scenarios and options are refused with a
        message."""
        worlds = ['scale=', 'scale=stage', 'scale=stage%3D0', 'scale=stage%3D99,by%3D2', 'scale=stage%3D0,by%3Dnan', 'scale=stage%3D0,by%3D1e400',
                  'scale=stage%3D0,by%3D-1', 'scale=' + 'stage%3D0,by%3D0.9%20' * 300, '&'.join(['scale=stage%3D0,by%3D1.01'] * 500),
                  'schedule=none-such', 'schedule=%00', 'schedule=' + 'z' * 9000, 'micro_batches=-1', 'micro_batches=1e9', 'micro_batches=65536',
                  'micro_batches=99999999999999999999', 'chunks=2147483648', 'schedule=vpp&micro_batches=7&chunks=3', 'latency_ns=-1', 'latency_ns=1e400',
                  'latency_ns=9223372036854775807', 'fix=-1', 'fix=4294967296', 'fix=0&fix=1', 'step=nan', 'step=-2147483648', 'step=99999999999',
                  'step=0&step=1', 'steps=', 'steps=0-999999999', 'steps=-1', 'steps=0,0x1', 'steps=7777', 'scale=rank%3D0,by%3D1e-300', '%ff=%fe', 'name=..%2F..', 'dp=all', '=&=', 'step']
        options = ['num-kernels=-1', 'rank=99999999999', 'rank=nan', 'control=/etc/passwd', 'output=/tmp/x', 'compat=none-such', 'x=1', 'rank=0&rank=1',
                   'format=csv', 'annotation=' + '%28' * 3000, '%00=1', 'steps=0-999999999', 'table=..']
        targets = [path + odd for path in ('/api/pipeline?', '/api/pipeline/fixes?', '/api/pipeline/what-if?', '/api/explain?', '/api/compare?',
                                           '/api/clocks?') for odd in worlds]
        targets += [f'/api/answer?name={name}&{odd}' for name in ('stragglers', 'waterfall', 'links', 'trace-diff', 'critical-path-analysis') for odd in options]
        refused = 0
        for target in targets:
            status, headers, body = self.server.get(target)
            self.assertIn(status, (200, 202, 400, 404, 413, 431), target[:90])
            if status in (400, 404, 413):
                self.assertTrue(json.loads(body)['error'], target[:90])
                refused += 1
            self.assertNotIn(b'root:', body)
            self.assertIn(headers['content-type'].split(';')[0], ('application/json', 'application/octet-stream'), target[:90])
        self.assertGreater(refused, 100)
        self.alive()

    def test_a_description_of_several_lines_is_planned(self):
        model = json.dumps({'model_type': 'llama', 'hidden_size': 1024, 'num_hidden_layers': 8, 'num_attention_heads': 8, 'num_key_value_heads': 8,
                            'intermediate_size': 2816, 'vocab_size': 32000}, indent='\t')
        for text in (model, model.replace('\n', '\r\n')):
            status, _, body = self.server.get('/api/plan?gpus=8&memory=80GiB&model=' + urllib.parse.quote(text))
            self.assertEqual(status, 200, body[:300])
            self.assertTrue(json.loads(body)['plans'])
        for odd in ('model=%00', 'model=%7f', 'gpus=8%0a', '%0a=1', 'seq=%09'):
            self.assertEqual(self.server.get('/api/plan?' + odd)[0], 400, odd)

    def test_a_broken_description_is_refused_with_its_place(self):
        for text, place, cure in (('{"model_type": "llama",\n"hidden_size": }', 'model:2: column 16: ', ''),
                                  ('[1]', 'model: this is no JSON object', 'give the config.json of a model'),
                                  ('{"model_type": "bert"}', 'model: the model_type "bert" is not known', 'known: llama, '),
                                  ('{"model_type": "llama", "hidden_size": -3}', 'model: hidden_size is not a whole number', 'stageline help plan ')):
            for path in ('plan?gpus=8&', 'pipeline/fixes?', 'pipeline/what-if?schedule=fthenb&'):
                with self.subTest(text=text, path=path):
                    status, _, body = self.server.get(f'/api/{path}memory=80GiB&model=' + urllib.parse.quote(text))
                    self.assertEqual(status, 400, body[:300])
                    answer = json.loads(body)
                    self.assertTrue(answer['error'].startswith(place), answer)
                    self.assertIn(cure, answer['hint'])

    def sql(self, query, more=''):
        """The answer to a query, waited for."""
        for _ in range(600):
            status, _, body = self.server.get('/api/sql?q=' + urllib.parse.quote(query) + more)
            if status != 202:
                return status, json.loads(body)
            time.sleep(0.1)
        raise AssertionError(f'{query} has no answer')

    def test_queries(self):
        """Read, limited, and refused in words: no file, no database and nothing of the run is reached or changed."""
        status, reported = self.sql('SELECT kind, count(*) AS n, sum(dur_ns) AS total_ns FROM cells GROUP BY kind ORDER BY 1')
        self.assertEqual((status, [c['unit'] for c in reported['columns']], reported['truncated']), (200, ['', '', 'ns'], False))
        self.assertEqual(sum(row[1] for row in reported['rows']), self.sql('SELECT count(*) FROM cells')[1]['rows'][0][0])
        self.assertEqual(self.sql('SELECT id FROM cells', '&rows=3')[1]['row_count'], 3)
        self.assertTrue(self.sql('SELECT id FROM cells', '&rows=3')[1]['truncated'])
        for query in ('DELETE FROM slices', "ATTACH '/etc/passwd' AS p", "SELECT readfile('/etc/passwd')", 'PRAGMA database_list', 'VACUUM INTO "/tmp/stageline-x"',
                      'CREATE TABLE t (a)', 'SELECT nowhere FROM cells', 'SELECT (', '', ';', '\x00', "SELECT * FROM args('x')"):
            status, reported = self.sql(query)
            self.assertIn(status, (200, 400), query)
            self.assertTrue(reported['error'], query)
        self.assertEqual(self.sql('SELECT 1', '&rows=0')[0], 400)
        self.assertEqual(self.sql('SELECT 1', '&rows=10001')[0], 400)
        # Texts that grow without bound, and what sorts more than it keeps in memory.
        big = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 5000) SELECT printf('%.*c', 10000, 'x') FROM c"
        status, reported = self.sql(big, '&rows=10000')
        self.assertTrue(reported['truncated'])
        self.assertLess(reported['row_count'], 1000)
        many = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 700000) SELECT x FROM c ORDER BY x * 7919 % 700001, hex(x) || hex(x) LIMIT 1'
        status, reported = self.sql(many)
        self.assertEqual((status, len(reported.get('rows', []))), (200, 1), reported)
        self.assertFalse(pathlib.Path('/tmp/stageline-x').exists())
        self.alive()

    def test_worlds_asked_for_and_left(self):
        """Many ask for answers that take work, and go: the work ends, and who stays gets the same bytes as alone."""
        alone = self.server.get('/api/pipeline/what-if?step=0&scale=stage%3D1,by%3D0.9')[2]
        def leave(k):
            target = (f'/api/pipeline/what-if?step=0&micro_batches={k % 30 + 4}', '/api/answer?name=waterfall', '/api/pipeline', '/api/explain')[k % 4]
            with socket.create_connection(('127.0.0.1', self.server.port), timeout=60) as one:
                one.sendall(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
                if k % 2:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))  # a reset, not an end
                else:
                    one.recv(100)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(leave, range(120)))
            again = list(pool.map(lambda _: self.server.get('/api/pipeline/what-if?step=0&scale=stage%3D1,by%3D0.9')[2], range(8)))
        self.assertEqual(set(again), {alone})
        self.alive()

    def test_pipelined(self):
        one = b'GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n'
        last = b'GET /api/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
        self.assertEqual(self.server.raw(one * 20 + last).count(b'HTTP/1.1 200 '), 21)

    def test_events_end_when_the_run_is_there(self):
        answer = self.server.raw(b'GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
        head, _, body = answer.partition(b'\r\n\r\n')
        self.assertIn(b'text/event-stream', head)
        self.assertIn(b"default-src 'none'", head)
        events = [json.loads(line[6:]) for line in body.decode().split('\n\n') if line.startswith('data: ')]
        self.assertEqual(events[-1]['state'], 'ready')

    def test_crowd(self):
        """A thousand connections that say nothing, a byte or half a request: what works goes on, and is there after them."""
        import resource
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < CROWD + 200:
            print('skipped: 1000 connections need more descriptors')
            return
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        crowd = []
        try:
            for k in range(CROWD - 50):
                s = socket.create_connection(('127.0.0.1', self.server.port), timeout=30)
                s.sendall((b'', b'G', b'GET /api/run HTTP/1.1\r\nHost: loc')[k % 3])
                crowd.append(s)
            self.alive()
            for _ in range(150):  # beyond the limit some are turned away at once, and nothing breaks
                crowd.append(socket.create_connection(('127.0.0.1', self.server.port), timeout=30))
        finally:
            for k, s in enumerate(crowd):
                if k % 2:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))  # a reset, not a farewell
                s.close()
        deadline = time.monotonic() + 30
        while True:
            try:
                return self.alive()
            except (OSError, http.client.HTTPException):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.1)

    def test_abrupt_ends(self):
        def one(k):
            with socket.create_connection(('127.0.0.1', self.server.port), timeout=30) as s:
                request = b'GET /api/tiles?n=16384 HTTP/1.1\r\nHost: localhost\r\n\r\n'
                s.sendall(request if k % 3 == 0 else request[:20 + k % 30])
                if k % 3 == 0:
                    s.recv(10)  # of an answer of many kB
                if k % 2:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda k: self.quietly(one, k), range(300)))
        self.alive()

    @staticmethod
    def quietly(do, k):
        try:
            do(k)
        except OSError:
            pass  # the server may be first to hang up

    def test_many_at_once(self):
        """Answers to equal questions are equal bytes, whoever else asks."""
        targets = ['/api/run', '/api/tiles?n=333', '/api/slices', '/api/select', '/api/flows', '/api/search?q=b', '/api/perfetto']
        expected = {t: self.server.get(t)[2] for t in targets}
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for target, body in zip(targets * 10, pool.map(lambda t: self.server.get(t)[2], targets * 10)):
                self.assertEqual(body, expected[target], target)


class LifeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.run_path = os.path.join(cls.folder.name, 'run')
        subprocess.run([BIN, 'simulate', '1f1b', '--stages', '2', '--steps', '1', '-o', cls.run_path], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_signals_end_it(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            server = Server(self.run_path, '--port', '0')
            server.wait_ready()
            idle = socket.create_connection(('127.0.0.1', server.port), timeout=30)  # must not keep it
            idle.sendall(b'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
            while b'</html>' not in idle.recv(65536):
                pass
            self.assertEqual(server.stop(how), 0)
            self.assertEqual(idle.recv(1), b'')
            idle.close()
            with self.assertRaises(OSError):
                socket.create_connection(('127.0.0.1', server.port), timeout=5)

    def test_a_signal_while_reading_ends_it(self):
        fifo = os.path.join(self.folder.name, 'slow.json')
        os.mkfifo(fifo)
        server = Server(fifo, '--port', '0', '--reader', 'kineto')
        self.assertEqual(json.loads(server.get('/api/status')[2])['state'], 'reading')
        self.assertEqual(server.get('/api/run')[0], 503)
        self.assertEqual(server.get('/')[0], 200)  # the page is there at once
        self.assertEqual(server.stop(), 0)

    def test_a_run_that_cannot_be_read_says_why(self):
        bad = os.path.join(self.folder.name, 'bad.json')
        pathlib.Path(bad).write_text('{"no": "trace"}')
        server = Server(bad, '--port', '0')
        self.assertEqual(server.wait_ready(), 'failed')
        status = json.loads(server.get('/api/status')[2])
        self.assertTrue(status['error'])
        self.assertEqual(server.get('/')[0], 200)  # the page says it too
        self.assertEqual(server.stop(), 2)
        missing = subprocess.run([BIN, 'view', self.folder.name + '/nothing'], capture_output=True, text=True, timeout=60)
        self.assertEqual((missing.returncode, missing.stdout), (2, ''))
        self.assertIn('nothing', missing.stderr)
        self.assertIn('stageline: ', server.err)

    def test_a_profiler_trace_with_names_that_bite(self):
        """Arguments come from the file; a file that changed since has none; names stay text."""
        name = '</script><img src=x onerror=alert(1)>' + 'x' * 10_000
        event = {'ph': 'X', 'cat': 'cpu_op', 'name': name, 'pid': 1, 'tid': 1, 'ts': 10, 'dur': 5, 'args': {'a"b<': '<b>&', 'n': [1, {'m': 2}]}}
        odd = [dict(event, name='zero', ts=12, dur=0), dict(event, name='negative', ts=20, dur=-3), *[dict(event, name='after a month', ts=2.6e12 + at) for at in (0, 10)]]  # two of a name: no lone record
        path = pathlib.Path(self.folder.name, 'bites.json')
        path.write_text(json.dumps({'schemaVersion': 1, 'traceEvents': [event, *odd]}))
        server = Server(str(path), '--port', '0', '--quiet')
        try:
            self.assertEqual(server.wait_ready(), 'ready')
            run = json.loads(server.get('/api/run')[2])
            self.assertGreater(run['span_ns'], 2_500_000 * 10**9)
            slices = [json.loads(server.get(f'/api/slice?lane=0&slice={k}')[2]) for k in range(run['lanes'][0]['slices'])]
            found = next(s for s in slices if s['name'].startswith('</script>'))
            self.assertEqual(found['name'], name)
            self.assertIn({'key': 'a"b<', 'value': '<b>&'}, found['args'])
            self.assertIn('n', [a['key'] for a in found['args']])
            self.assertLess(len(server.get('/api/slices')[2]), 5000)  # names in lists are cut
            self.assertTrue(all(s['dur_ns'] >= 0 for s in slices))
            self.assertEqual(server.get('/api/perfetto')[2], path.read_bytes())
            path.write_text('{"traceEvents": []}')
            changed = json.loads(server.get('/api/slice?lane=0&slice=0')[2])
            self.assertEqual(changed['args'], [])
            self.assertTrue(changed['args_missing'])
            self.assertGreaterEqual(server.get('/api/perfetto')[0], 400)
        finally:
            self.assertEqual(server.stop(), 0)

    def test_ten_thousand_lanes(self):
        path = pathlib.Path(self.folder.name, 'wide.json')
        path.write_text(json.dumps({'schemaVersion': 1, 'traceEvents': [
            {'ph': 'X', 'cat': 'cpu_op', 'name': 'op', 'pid': 1, 'tid': t, 'ts': t, 'dur': 100} for t in range(1, 10_001)]}))
        server = Server(str(path), '--port', '0', '--quiet')
        try:
            self.assertEqual(server.wait_ready(), 'ready')
            self.assertEqual(len(json.loads(server.get('/api/run')[2])['lanes']), 10_000)
            self.assertEqual(server.get('/api/tiles?n=100&lanes=0-9999')[0], 200)
            self.assertEqual(server.get('/api/tiles?n=16384&lanes=0-9999')[0], 413)
            self.assertEqual(json.loads(server.get('/api/search?q=OP')[2])['occurrences'], 10_000)
        finally:
            self.assertEqual(server.stop(), 0)

    def test_who_does_not_read_does_not_fill_the_memory(self):
        path = pathlib.Path(self.folder.name, 'many.json')
        path.write_text(json.dumps({'schemaVersion': 1, 'traceEvents': [
            {'ph': 'X', 'cat': 'cpu_op', 'name': 'op', 'pid': 1, 'tid': t, 'ts': t, 'dur': 100} for t in range(1, 3_001)]}))
        server = Server(str(path), '--port', '0', '--quiet')
        idle = []
        try:
            self.assertEqual(server.wait_ready(), 'ready')
            target = '/api/tiles?n=16384&lanes=0-2999'  # 49 MB
            for _ in range(15):
                s = socket.create_connection(('127.0.0.1', server.port), timeout=60)
                s.sendall(f'GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
                idle.append(s)
            heads = [s.recv(12) for s in idle]
            self.assertIn(b'HTTP/1.1 200', heads)
            self.assertIn(b'HTTP/1.1 503', heads)
            self.assertEqual(server.get('/api/status')[0], 200)
            for s in idle:
                s.close()
            deadline = time.monotonic() + 60
            while server.get(target)[0] != 200:  # what was not read is forgotten with its connection
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.2)
            peak = int(re.search(r'VmHWM:\s+(\d+)', pathlib.Path(f'/proc/{server.process.pid}/status').read_text())[1]) * 1024
            if b'__tsan_init' not in pathlib.Path(BIN).read_bytes():  # ThreadSanitizer keeps several shadows of every byte
                self.assertLess(peak, 1_500_000_000)
        finally:
            for s in idle:
                s.close()
            self.assertEqual(server.stop(), 0)

    def test_notes_are_kept_beside_the_run_and_nowhere_else(self):
        with tempfile.TemporaryDirectory() as folder:
            run = os.path.join(folder, 'run')
            subprocess.run([BIN, 'simulate', '1f1b', '--stages', '2', '--micro-batches', '4', '--steps', '2', '-o', run], check=True, capture_output=True)
            before = sorted(os.listdir(run))
            server = Server(run + '/', '--port', '0', token=True)
            server.wait_ready()

            def put(body, target=server.base + '/api/notes', headers=()):
                connection = http.client.HTTPConnection('127.0.0.1', server.port, timeout=60)
                connection.request('PUT', target, body=body, headers=dict(headers))
                answer = connection.getresponse()
                text = answer.read()
                connection.close()
                return answer.status, json.loads(text)

            file = run + '.stageline-notes.json'
            good = json.dumps({'notes': [{'t': 1500, 'text': 'begins \u4e2d\u6587 </script>'}]})
            self.assertEqual(put(good, '/api/notes')[0], 403)  # without the token
            for headers in ([('Sec-Fetch-Site', 'cross-site')], [('Host', 'evil.example')]):
                self.assertEqual(put(good, headers=headers)[0], 403)
            for bad in ('', '[]', '{"notes": 1}', '{"notes": [{"text": "no time"}]}', json.dumps({'notes': [{'t': 1, 'text': 'x' * 1001}]})):
                self.assertEqual(put(bad)[0], 400, bad[:40])
            self.assertEqual(put(json.dumps({'notes': [{'t': 1, 'text': ''}] * 2001}))[0], 413)
            head = f'PUT {server.base}/api/notes HTTP/1.1\r\nHost: localhost\r\n'.encode()
            for length in (b'Content-Length: 2000000\r\n\r\n', b'Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n'):
                self.assertIn(b' 413 ', server.raw(head + length).split(b'\r\n')[0])
            self.assertEqual(put(good, server.base + '/api/run')[0], 405)
            self.assertEqual(os.listdir(folder), ['run'])  # none of that wrote anything
            status, reported = put(good)
            self.assertEqual((status, reported['keeps'], reported['file']), (200, True, file))
            with open(file, encoding='utf-8') as f:
                kept = json.load(f)
            with open(file, 'rb') as f:
                self.assertNotIn(b'</script>', f.read())
            origin = int(json.loads(server.get(server.base + '/api/run')[2])['origin_ns'])
            self.assertEqual(kept, {'format': 'stageline notes 1', 'notes': [{'at_ns': origin + 1500, 'text': 'begins \u4e2d\u6587 </script>'}]})
            self.assertEqual((sorted(os.listdir(folder)), sorted(os.listdir(run))), (['run', os.path.basename(file)], before))
            self.assertEqual(server.stop(), 0)
            # A file that does not contain notes is left alone.
            with open(file, 'w') as f:
                f.write('mine')
            server = Server(run, '--port', '0')
            server.wait_ready()
            self.assertEqual(json.loads(server.get('/api/notes')[2])['why_not'], 'unreadable')
            self.assertEqual(put(good, '/api/notes')[0], 404)
            with open(file) as f:
                self.assertEqual(f.read(), 'mine')
            self.assertEqual(server.stop(), 0)

    def test_ports(self):
        first = Server(self.run_path, '--port', '0')
        try:
            taken = subprocess.run([BIN, 'serve', self.run_path, '--port', str(first.port)], capture_output=True, text=True, timeout=60)
            self.assertEqual(taken.returncode, 2)
            self.assertIn('the port is taken', taken.stderr)
            self.assertIn('--port', taken.stderr)
            second, third = Server(self.run_path), Server(self.run_path)  # the usual port, and the next free one
            self.assertNotEqual(second.port, third.port)
            self.assertEqual([second.stop(), third.stop()], [0, 0])
        finally:
            first.stop()
        for words in (['--port', '70000'], ['--port', 'x'], ['--host', '']):
            self.assertEqual(subprocess.run([BIN, 'serve', self.run_path, *words], capture_output=True, timeout=60).returncode, 2, words)
        nowhere = subprocess.run([BIN, 'serve', self.run_path, '--host', '192.0.2.1'], capture_output=True, text=True, timeout=60)
        self.assertEqual(nowhere.returncode, 2)
        self.assertIn('cannot listen', nowhere.stderr)

    def check_token(self, server, hosts):
        self.assertRegex(server.url, r'^http://[^/]+:\d+/[0-9a-f]{32}/$')
        token = server.base[1:]
        for target in ('/', '/api/run', '/api/status', '/viewer.js', '/api/events', '/' + token, f'/{token}0/', f'/{token[:-1]}/', f'//{token}/',
                       '/' + token[:-1] + ('1' if token[-1] == '0' else '0') + '/api/run', '/?token=' + token, '/api/run?token=' + token,
                       f'/x/../{token}/api/run'):
            for extra in ([], [('Cookie', 'token=' + token)], [('Authorization', 'Bearer ' + token)]):
                status, headers, body = server.get(target, extra)
                self.assertEqual(status, 403, target)
                self.assertNotIn('set-cookie', headers)
                self.assertNotIn(token.encode(), body)
        for host in hosts:
            for target in ('', 'viewer.js', 'viewer.css', 'api/status', 'api/run', 'api/tiles?n=10', '?lang=zh'):
                self.assertEqual(server.get(f'/{token}/{target}', [('Host', host)])[0], 200, (host, target))
        page = server.get(f'/{token}/')[2].decode()
        self.assertNotRegex(page, r'(?:src|href)="/')  # what it asks for goes through the token
        self.assertNotIn(token, page)

    def test_the_address_holds_a_token(self):
        server, other = (Server(self.run_path, '--port', '0', '--quiet', token=True) for _ in range(2))
        try:
            self.assertEqual(server.wait_ready(), 'ready')
            self.check_token(server, ('localhost', '127.0.0.1:1'))
            self.assertEqual(server.get(server.base + '/api/run', [('Host', 'evil.example')])[0], 403)
            self.assertNotEqual(server.base, other.base)
        finally:
            self.assertEqual([server.stop(), other.stop()], [0, 0])

    def test_the_address_stands_alone(self):
        server = Server(self.run_path, '--port', '0', token=True)
        server.wait_ready()
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.communicate(timeout=60)[0], '')  # nothing behind the first line
        self.assertRegex(server.url, r'^http://127\.0\.0\.1:\d+/[0-9a-f]{32}/$')

    def test_token_elsewhere(self):
        server = Server(self.run_path, '--port', '0', '--host', '0.0.0.0', token=True)
        try:
            self.assertEqual(server.wait_ready(), 'ready')
            self.check_token(server, ('localhost', 'cluster.example'))
            asked = f'GET {server.base}/viewer.js HTTP/1.1\r\nHost: there\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n'
            self.assertIn(b'Content-Encoding: gzip', server.raw(asked.encode()).split(b'\r\n\r\n')[0])
        finally:
            self.assertEqual(server.stop(), 0)
        self.assertIn('warning', server.err)
        refused = subprocess.run([BIN, 'serve', self.run_path, '--port', '0', '--host', '0.0.0.0', '--token', 'none'], capture_output=True,
                                 text=True, timeout=60)
        self.assertEqual((refused.returncode, refused.stdout), (2, ''))
        self.assertIn('--token none', refused.stderr)

    def test_what_cannot_be_read_at_all_ends_with_an_error(self):
        empty = os.path.join(self.folder.name, 'empty')
        os.mkdir(empty)
        done = subprocess.run([BIN, 'view', empty, '--no-open', '--port', '0'], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (2, ''))
        self.assertIn(empty, done.stderr)
        closed = pathlib.Path(self.folder.name, 'closed')
        closed.mkdir()
        (closed / 'workerlog.0').write_text('')
        closed.chmod(0)
        self.addCleanup(closed.chmod, 0o755)
        become = None
        if os.access(closed, os.R_OK):  # root can read everything, so it becomes another user here
            os.chmod(self.folder.name, 0o755)
            become = lambda: (os.setgid(65534), os.setuid(65534))
            try:
                runs = subprocess.run([BIN, '--version'], preexec_fn=become, capture_output=True).returncode == 0
            except PermissionError:  # the checkout lies in a folder that root keeps for itself
                runs = False
            if not runs:
                return print('skipped: a folder without permission, for no other user may run the program here')
        done = subprocess.run([BIN, 'view', closed, '--no-open', '--port', '0'], capture_output=True, text=True, timeout=60, preexec_fn=become)
        self.assertEqual((done.returncode, done.stdout), (2, ''))
        self.assertIn('closed', done.stderr)


class SlowTest(unittest.TestCase):
    def test_slow_clients_are_left(self):
        """A header that arrives a byte at a time is given up within the bound, whatever arrives meanwhile."""
        if not os.environ.get('STAGELINE_SLOW_TESTS'):
            print('skipped: slow requests take 20 s (STAGELINE_SLOW_TESTS=1)')
            return
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([BIN, 'simulate', '1f1b', '--stages', '2', '--steps', '1', '-o', folder + '/run'], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            server = Server(folder + '/run', '--port', '0')
            s = socket.create_connection(('127.0.0.1', server.port), timeout=60)
            began = time.monotonic()
            ended = None
            for byte in b'GET /api/run HTTP/1.1\r\nHost: localhost\r\n' + b'X-Slow: ' + b'a' * 1000:
                try:
                    s.sendall(bytes([byte]))
                    s.settimeout(0.3)
                    if s.recv(100) == b'':
                        ended = time.monotonic() - began
                        break
                except socket.timeout:
                    continue
                except OSError:
                    ended = time.monotonic() - began
                    break
            self.assertIsNotNone(ended)
            self.assertLess(ended, 40)
            s.close()
            self.assertEqual(server.stop(), 0)


class StartPageTest(unittest.TestCase):
    """A server without a run: what its page may open, and what it may be sent."""
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = os.path.realpath(os.path.join(cls.folder.name, 'root'))
        for seed in (1, 2):
            subprocess.run([BIN, 'simulate', '1f1b', '--stages', '2', '--steps', '3', '--seed', str(seed), '-o', os.path.join(cls.root, f'run{seed}')], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pathlib.Path(cls.folder.name, 'secret.txt').write_text('the secret')
        os.makedirs(os.path.join(cls.root, 'linked'))
        os.symlink(os.path.join(cls.folder.name, 'secret.txt'), os.path.join(cls.root, 'linked', 'out'))
        cls.server = Server('--root', cls.root, '--port', '0', '--quiet', token=True)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        cls.folder.cleanup()
        assert code == 0, (code, cls.server.err)

    def ask(self, target, status=200, **more):
        found, _, body = self.server.get(self.server.base + target, **more)
        self.assertEqual(found, status, (target, body[:300]))
        return json.loads(body) if body else None

    def put(self, target, body, headers=()):
        connection = http.client.HTTPConnection('127.0.0.1', self.server.port, timeout=60)
        connection.request('PUT', self.server.base + target, body=body, headers=dict(headers))
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text)

    def opened(self, query):
        at = '/' + self.ask('/api/open?' + query)['run']
        deadline = time.monotonic() + 60
        while self.ask(at + 'api/status')['state'] not in ('ready', 'failed'):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(.02)
        return at

    def path(self, name):
        return 'path=' + urllib.parse.quote(os.path.join(self.root, name))

    def test_runs_below_the_root_are_opened_once(self):
        self.assertEqual(self.ask('/api/status')['state'], 'choose')
        names = {entry['name'] for entry in self.ask('/api/browse')['entries']}
        self.assertEqual(names, {'run1', 'run2', 'linked'})
        self.assertEqual(self.ask('/api/look?' + self.path('run1'))['format'], 'paddle-log')
        at = self.opened(self.path('run1'))
        self.assertEqual(len(self.ask(at + 'api/run')['ranks']), 2)
        self.assertEqual(self.opened(self.path('run1')), at)
        both = self.opened(self.path('run1') + '&compare=' + urllib.parse.quote(os.path.join(self.root, 'run2')))
        self.assertNotEqual(both, at)
        self.assertEqual(self.ask(both + 'api/answers')['other']['title'], 'run2')
        for nothing in ('/runs/0/', '/runs/99/', '/runs/1', '/runs/-1/', '/runs/1x/', '/runs/99999999999999999999/', '/api/run', '/api/tiles?n=1'):
            self.ask(nothing, 404)

    def test_more_runs_than_are_kept_are_read_again(self):
        queries = [self.path(name) for name in ('run1', 'run2', *(f'run{k}/workerlog.{r}' for k in (1, 2) for r in (0, 1)))]
        places = [self.opened(query) for query in (*queries, self.path('run2') + '&compare=' + urllib.parse.quote(os.path.join(self.root, 'run1')))]
        self.assertEqual(len(set(places)), 7)
        for at in places:
            deadline = time.monotonic() + 60
            while self.ask(at + 'api/status')['state'] not in ('ready', 'failed'):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(.02)
            self.ask(at + 'api/run')

    def test_what_lies_elsewhere_is_not_even_said_to_be_there(self):
        outside = os.path.join(self.folder.name, 'secret.txt')
        for path in ('/etc', '/etc/passwd', outside, outside + '-not', '..', '../secret.txt', self.root + '/..', self.root + '/../secret.txt', self.root + '/linked/out', '/proc/self/environ',
                     'linked/out', '%00', '', 'nothing'):
            for route in ('open', 'browse', 'trend'):
                if route == 'browse' and not path:
                    continue
                status, _, body = self.server.get(f'{self.server.base}/api/{route}?path=' + urllib.parse.quote(path) + ('&' + self.path('run1') if route == 'trend' else ''))
                self.assertIn(status, (400, 404), (route, path, body))
                self.assertNotIn(b'the secret', body)
                self.assertNotIn(b'root:', body)
            self.assertEqual(self.ask('/api/look?path=' + urllib.parse.quote(path)).get('format') if path != '%00' else '', '')
        self.ask('/api/open?' + self.path('linked'), 404)
        self.assertEqual(self.ask('/api/browse?' + self.path('linked'))['entries'], [])

    def test_a_trend_says_what_diff_says(self):
        query = '/api/trend?' + self.path('run1') + '&' + self.path('run2')
        deadline = time.monotonic() + 60
        while True:
            status, _, body = self.server.get(self.server.base + query)
            if status == 200:
                break
            self.assertEqual(status, 202)
            self.assertLess(time.monotonic(), deadline)
            time.sleep(.02)
        runs = json.loads(body)['runs']
        said = json.loads(subprocess.run([BIN, 'diff', os.path.join(self.root, 'run1'), os.path.join(self.root, 'run2'), '--json'], capture_output=True, check=False).stdout)
        self.assertEqual(runs[1]['diff']['change_ns'], said['change_ns'])
        self.assertEqual(runs[0]['diff'], {})
        self.ask('/api/trend?' + self.path('run1'), 400)

    def test_dropped_files_are_read_and_lead_nowhere_else(self):
        drop = 0
        for rank in (0, 1):
            status, said = self.put(f'/api/drop?name=mine/workerlog.{rank}&drop={drop}', pathlib.Path(self.root, 'run1', f'workerlog.{rank}').read_bytes())
            self.assertEqual(status, 200, said)
            drop = said['drop']
        at = self.opened(f'drop={drop}')
        run = self.ask(at + 'api/run')
        self.assertEqual((len(run['ranks']), run['paths'], run['title']), (2, ['mine'], 'mine'))
        for name in ('', '..', '../x', '/etc/x', 'a/../../x', 'a%00b', 'a//b', '.', 'x' * 300):
            self.assertEqual(self.put('/api/drop?name=' + name, b'x')[0], 400, name)
        self.assertEqual(self.put(f'/api/drop?name=mine/workerlog.0&drop={drop}', b'x')[0], 409)  # nothing is overwritten
        self.assertEqual(self.put('/api/drop?name=a&drop=99', b'x')[0], 404)
        self.assertEqual(self.put('/api/run?name=a', b'x')[0], 405)
        self.assertEqual(self.put('/api/drop?name=a', b'x', [('Sec-Fetch-Site', 'cross-site')])[0], 403)
        self.assertEqual(self.put('/api/drop?name=a', b'x', [('Host', 'evil.example')])[0], 403)
        head = f'PUT {self.server.base}/api/drop?name=a HTTP/1.1\r\nHost: localhost\r\n'.encode()
        self.assertIn(b' 411 ', self.server.raw(head + b'Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n').split(b'\r\n')[0])
        self.assertIn(b' 413 ', self.server.raw(head + b'Content-Length: 99999999999999\r\n\r\n').split(b'\r\n')[0])
        self.assertIn(b' 403 ', self.server.raw(b'PUT /api/drop?name=a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx').split(b'\r\n')[0])  # no token
        with socket.create_connection(('127.0.0.1', self.server.port)) as s:  # half a file: it is gone again
            s.sendall(head.replace(b'name=a', b'name=half') + b'Content-Length: 1000\r\n\r\nhalf')
        self.ask('/api/status')
        self.assertIn(self.server.get(self.server.base + '/api/status', [('Content-Length', '5')])[0], (400, 413))

    def test_other_sites_and_who_lacks_the_token(self):
        for target in ('/api/browse', '/api/open?' + self.path('run1'), '/runs/1/api/run', '/runs/1/%61pi/run', '/api/status'):
            self.assertEqual(self.server.get(self.server.base + target, [('Sec-Fetch-Site', 'cross-site')])[0], 403, target)
            self.assertEqual(self.server.get(target)[0], 403)
        self.assertEqual(self.server.get(self.server.base + '/', [('Sec-Fetch-Site', 'cross-site')])[0], 200)

    def test_flags_that_do_not_go_together(self):
        run = os.path.join(self.root, 'run1')
        for words in ((run, '--root', self.root), ('--compare', run), ('--title', 'x'), ('--root', self.root + '/nothing')):
            done = subprocess.run([BIN, 'serve', *words, '--port', '0'], capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 2, words)


if __name__ == '__main__':
    program = unittest.main(exit=False, verbosity=0)
    result = program.result
    failed = len(result.failures) + len(result.errors)
    print(f'{result.testsRun - failed} passed, {failed} failed')
    sys.exit(1 if failed or result.testsRun == 0 else 0)
