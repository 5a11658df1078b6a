"""stageline mcp: both eras of clients by raw JSON-RPC, tools against the program's own answers, refusals, confinement, damage."""
import json
import os
import pathlib
import random
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
from support import BIN, SOURCE, Case, run

PROFILE = SOURCE / 'tests/golden/readers/kineto/input'
PIPELINE = SOURCE / 'tests/golden/readers/paddle-log/input'


class Client:
    def __init__(self, *flags, cwd=None):
        self.process = subprocess.Popen([BIN, 'mcp', *map(str, flags)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd)
        self.number = 0

    def line(self, text):
        self.process.stdin.write((text if isinstance(text, bytes) else text.encode()) + b'\n')
        self.process.stdin.flush()

    def read(self):
        return json.loads(self.process.stdout.readline())

    def request(self, method, params=None, meta=None):
        self.number += 1
        body = {'jsonrpc': '2.0', 'id': self.number, 'method': method}
        if params is not None or meta is not None:
            body['params'] = {**(params or {}), **({'_meta': meta} if meta else {})}
        self.line(json.dumps(body))
        told = self.read()
        assert told['id'] == self.number, told
        return told

    def call(self, tool, **arguments):
        """(what it says, whether it is an error); the text is the same JSON."""
        result = self.request('tools/call', {'name': tool, 'arguments': arguments})['result']
        assert json.loads(result['content'][0]['text']) == result['structuredContent']
        return result['structuredContent'], result['isError']

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(60)
        self.process.stdout.close()
        words = self.process.stderr.read()
        self.process.stderr.close()
        return code, words


class McpTest(Case):
    def setUp(self):
        super().setUp()
        self.client = Client('--root', SOURCE / 'tests/golden', '--root', self.dir)
        self.addCleanup(self.end)

    def end(self):
        if self.client.process.stdin.closed:
            return
        self.assertEqual(self.client.close(), (0, b''))

    def good(self, tool, **arguments):
        told, wrong = self.client.call(tool, **arguments)
        self.assertFalse(wrong, told)
        return told

    def test_handshakes_and_envelopes(self):
        for asked, given in {'2024-11-05': '2024-11-05', '2025-03-26': '2025-03-26', '2025-06-18': '2025-06-18', '2025-11-25': '2025-11-25', '1999-01-01': '2025-11-25'}.items():
            told = self.client.request('initialize', {'protocolVersion': asked, 'capabilities': {}, 'clientInfo': {'name': 't', 'version': '1'}})['result']
            self.assertEqual((told['protocolVersion'], told['serverInfo']['name'], told['capabilities']), (given, 'stageline', {'tools': {}}))
            self.client.line('{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        self.assertEqual(self.client.request('ping')['result'], {})
        meta = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientInfo': {'name': 't', 'version': '1'},
                'io.modelcontextprotocol/clientCapabilities': {}}
        told = self.client.request('server/discover', meta=meta)['result']
        self.assertEqual((told['supportedVersions'], told['resultType']), (['2026-07-28'], 'complete'))
        told = self.client.request('tools/list', meta=meta)['result']
        self.assertEqual(told['_meta']['io.modelcontextprotocol/serverInfo']['name'], 'stageline')
        old = self.client.request('tools/list')['result']
        self.assertEqual((set(old), old['tools']), ({'tools'}, told['tools']))
        error = self.client.request('tools/list', meta={'io.modelcontextprotocol/protocolVersion': '2031-01-01'})['error']
        self.assertEqual((error['code'], error['data']), (-32022, {'supported': ['2026-07-28'], 'requested': '2031-01-01'}))

    def test_tools_say_what_they_take(self):
        for tool in self.client.request('tools/list')['result']['tools']:
            schema = tool['inputSchema']
            self.assertEqual((schema['type'], schema['additionalProperties']), ('object', False))
            self.assertLessEqual(set(schema['required']), set(schema['properties']))
            self.assertTrue(tool['annotations']['readOnlyHint'])
            _, wrong = self.client.call(tool['name'], nothing_of_that_name=1)
            self.assertTrue(wrong)

    def test_answers_are_those_of_the_program(self):
        trace = self.good('open', paths=[str(PROFILE)])
        self.assertEqual((trace['trace'], trace['ranks']), ('t1', 2))
        query = "SELECT key, count, total_ns FROM totals('name') ORDER BY total_ns DESC, key LIMIT 5"
        told = self.good('sql', trace='t1', query=query)
        self.assertEqual([r[1:] for r in told['rows']], [r[1:] for r in json.loads(run('sql', PROFILE, query, '--format', 'json', '-q').out)['rows']])
        self.assertFalse(told['truncated'])
        self.assertRegex(told['handle'], '^h:t1:[0-9a-f]{12}$')
        self.assertEqual(self.good('sql', trace='t1', query=query)['handle'], told['handle'])
        told = self.good('ask', trace='t1', analysis='idle-time-breakdown', table='device-idle')
        own = json.loads(run('analyze', 'idle-time-breakdown', PROFILE, '--table', 'device-idle', '--format', 'json', '-q').out)['tables'][0]
        self.assertEqual(told['rows'], [[r[c['name']] for c in own['columns']] for r in own['rows']])
        told = self.good('explain', trace='t1')
        own = json.loads(run('explain', PROFILE, '--json', '-q').out)
        self.assertEqual([(f['id'], f['lost_ns'], f['saving_ns']) for f in told['findings']], [(f['id'], f['lost_ns'], f['saving_ns']) for f in own['findings']])
        self.assertIn('start_ns', [r[0] for r in self.good('schema', trace='t1', table='kernels')['rows']])
        self.assertEqual(self.good('analyses', trace='t1', about='idle time')['analyses'][0]['name'], 'idle-time-breakdown')
        zh = self.good('explain', trace='t1', lang='zh')
        self.assertRegex(zh['findings'][0]['title'], '[\u4e00-\u9fff]')

    def test_claims_are_asked_again(self):
        self.good('open', paths=[str(PROFILE)])
        count = self.good('sql', trace='t1', query='SELECT count(*) FROM kernels')
        number = count['rows'][0][0]
        told = self.good('verify', trace='t1', claims=[
            {'text': 'so many kernels', 'handle': count['handle'], 'expect': {'value': number}},
            {'text': 'one more', 'handle': count['handle'], 'expect': {'value': number + 1}},
            {'text': 'nearly', 'sql': 'SELECT count(*) FROM kernels', 'expect': {'value': number + 1, 'tolerance': 1}},
            {'text': 'not so', 'sql': 'SELECT sum(dur_ns) FROM kernels', 'expect': {'value': 5}},
            {'text': 'no such handle', 'handle': 'h:t1:000000000000', 'expect': {'value': 5}},
            {'text': 'no such column', 'sql': 'SELECT nowhere FROM kernels', 'expect': {'value': 5}},
            {'text': 'a name', 'sql': 'SELECT name FROM kernels', 'expect': {'value': 5}},
            {'text': 'nothing', 'expect': {'value': 5}}])
        self.assertEqual([c['verdict'] for c in told['claims']], ['holds', 'does_not', 'holds', 'does_not'] + ['cannot_tell'] * 4)
        self.assertEqual(told['claims'][0]['number'], number)
        self.assertTrue(self.client.call('verify', trace='t1', claims=[{'text': 'x', 'expect': {'value': 'many'}}])[1])

    def test_what_a_run_cannot_say_is_an_answer(self):
        self.good('open', paths=[str(PROFILE)])
        told = self.good('ask', trace='t1', analysis='waterfall')
        self.assertTrue(told['cannot_answer'])
        self.assertEqual(told['reason'], 'not_recorded')
        self.assertIn('needs pipeline cells', told['why'])
        self.assertTrue(self.good('ask', trace='t1', analysis='trace-diff')['cannot_answer'])
        for tool, arguments, words in (('ask', {'analysis': 'waterfal'}, 'waterfall'), ('sql', {'query': 'SELECT durns FROM kernels'}, 'dur_ns'),
                                       ('sql', {'query': 'DELETE FROM slices'}, 'may not be modified'), ('ask', {'analysis': 'links', 'option': 1}, 'options'),
                                       ('ask', {'analysis': 'idle-time-breakdown', 'table': 'none'}, 'device-idle'),
                                       ('ask', {'analysis': 'idle-time-breakdown', 'options': {'nothing': 1}}, 'analyses')):
            told, wrong = self.client.call(tool, trace='t1', **arguments)
            self.assertTrue(wrong, told)
            self.assertIn(words, told['error'] + told['hint'])
        told, wrong = self.client.call('sql', trace='t9', query='SELECT 1')
        self.assertTrue(wrong and 't1' in told['hint'], told)

    def test_caps(self):
        self.good('open', paths=[str(PROFILE)])
        told = self.good('sql', trace='t1', query='SELECT * FROM slices', rows=200)
        self.assertTrue(told['truncated'])
        self.assertLess(len(json.dumps(told)), 40_000)
        self.assertEqual(len(self.good('sql', trace='t1', query='SELECT id FROM slices')['rows']), 50)
        self.assertTrue(self.client.call('sql', trace='t1', query='SELECT 1', rows=201)[1])
        text = self.good('sql', trace='t1', query="SELECT printf('%.*c', 1000, 'x') || char(27, 8238, 10) || 'end'")['rows'][0][0]
        self.assertLess(len(text), 310)
        self.assertFalse({'\x1b', '\u202e', '\n'} & set(text))
        self.assertIn('…', text)

    def test_only_what_lies_below_the_roots(self):
        secret = pathlib.Path(self.dir).parent / f'stageline-secret-{os.getpid()}'
        secret.write_text('secret')
        self.addCleanup(secret.unlink)
        (self.dir / 'inside').mkdir()
        (self.dir / 'inside' / 'link').symlink_to(secret)
        (self.dir / 'direct').symlink_to(secret)
        os.mkfifo(self.dir / 'fifo')
        for path in ('/etc/passwd', '/', str(secret), str(self.dir / 'inside'), str(self.dir / 'direct'), str(self.dir / '..'), str(self.dir / 'fifo'), '/dev/zero', '',
                     str(SOURCE / 'tests/golden/../cli'), str(self.dir) + '-other', 'http://localhost/x', str(self.dir / 'none')):
            told, wrong = self.client.call('open', paths=[path])
            self.assertTrue(wrong, path)
            self.assertNotIn('secret\n', json.dumps(told))
        told, wrong = self.client.call('open', paths=[str(PROFILE), '/etc/passwd'])
        self.assertTrue(wrong)

    def test_runs_come_and_go(self):
        for number in range(1, 19):
            told = self.good('open', paths=[str(PIPELINE)])
            self.assertEqual(told['trace'], f't{number}')
        self.assertEqual(told['closed'], 't2')
        self.assertTrue(self.client.call('sql', trace='t1', query='SELECT 1')[1])
        self.good('close', trace='t18')
        self.assertTrue(self.client.call('sql', trace='t18', query='SELECT 1')[1])
        self.assertEqual(self.good('sql', trace='t17', query='SELECT count(*) FROM cells')['rows'], json.loads(run('sql', PIPELINE, 'SELECT count(*) FROM cells', '--format', 'json', '-q').out)['rows'])

    def test_lines_that_are_no_requests(self):
        for line, code in ((b'{', -32700), (b'\xff\xfe', -32700), (b'[]', -32600), (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b'"x"', -32600), (b'{"id":1,"method":"ping"}', -32600),
                           (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":"none"}', -32601),
                           (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none"}}', -32602), (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', -32602),
                           (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32602), (b'{' * 100_000, -32700), (b'x' * 2_000_000, -32700),
                           (b'{"jsonrpc":"2.0","id":1,"method":"ping"} trailing', -32700)):
            self.client.line(line)
            self.assertEqual(self.client.read()['error']['code'], code, line[:80])
        self.client.line(b'   ')
        self.client.line(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
        self.client.line(b'{"jsonrpc":"2.0","id":"a\\u0007b","method":"ping"}')
        self.assertEqual(self.client.read(), {'jsonrpc': '2.0', 'id': 'a\x07b', 'result': {}})

    def test_random_calls(self):
        """Arguments of any kind in any place: an answer or a refusal, and the server goes on."""
        self.good('open', paths=[str(PIPELINE)])
        chance = random.Random(3)
        values = ['t1', '', 'SELECT 1', 'SELECT * FROM cells', 0, -1, 5, 1e308, True, None, [], ['a'], {}, {'a': {'b': []}}, 'waterfall', 'x' * 5000, '\u202e', "'; DROP", 'h:t1:0', '3:5', '99']
        tools = self.client.request('tools/list')['result']['tools']
        for _ in range(1000):
            tool = chance.choice(tools)
            arguments = {name: chance.choice(values) for name in tool['inputSchema']['properties'] if chance.random() < 0.8}
            if chance.random() < 0.6:
                arguments['trace'] = 't1'
            if tool['name'] in ('close', 'open'):
                arguments['extra'] = 1
            told, _ = self.client.call(tool['name'], **arguments)
            self.assertIsInstance(told, dict)
        self.assertEqual(self.client.request('ping')['result'], {})


if __name__ == '__main__':
    unittest.main()
