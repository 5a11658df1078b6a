"""stageline mcp: both eras of clients by raw JSON-RPC, tools against the program's own answers, refusals, confinement, damage."""
import base64
import json
import os
import pathlib
import random
import shutil
import struct
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
        reported = self.read()
        assert reported['id'] == self.number, reported
        return reported

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
        reported, wrong = self.client.call(tool, **arguments)
        self.assertFalse(wrong, reported)
        return reported

    def test_plans_are_the_programs(self):
        config = self.dir / 'config.json'
        config.write_text(json.dumps({'model_type': 'llama', 'hidden_size': 1024, 'num_hidden_layers': 8, 'num_attention_heads': 16, 'intermediate_size': 4096, 'vocab_size': 32000}))
        own = json.loads(run('plan', config, '--gpus', 8, '--memory', '40GiB', '--tp', '1,2', '--pp', 4, '--top', 2, '--json', check=0).out)
        self.assertEqual(self.good('plan', model=str(config), gpus=8, memory='40GiB', tp='1,2', pp='4', top=2), own)
        trace = self.good('open', paths=[str(PIPELINE)])['trace']
        told = self.good('plan', trace=trace, layers='32', schedule='1f1b', top=1)
        own = json.loads(run('plan', '--from', PIPELINE, '--layers', 32, '--schedule', '1f1b', '--top', 1, '--json', check=0).out)
        self.assertEqual(told['plans'], own['plans'])
        self.assertTrue(told['handle'].startswith('h:'))
        for arguments in ({'model': '/etc/passwd', 'gpus': 8}, {'gpus': 8}, {'model': str(config), 'gpus': 8, 'hardware': str(config)},
                          {'model': str(config), 'gpus': 8, 'output': 'x'}, {'model': str(config), 'gpus': 8, 'memory': '--output=x'}):
            reported, wrong = self.client.call('plan', **arguments)
            self.assertTrue(wrong, reported)

    def test_handshakes_and_envelopes(self):
        for asked, given in {'2024-11-05': '2024-11-05', '2025-03-26': '2025-03-26', '2025-06-18': '2025-06-18', '2025-11-25': '2025-11-25', '1999-01-01': '2025-11-25'}.items():
            reported = self.client.request('initialize', {'protocolVersion': asked, 'capabilities': {}, 'clientInfo': {'name': 't', 'version': '1'}})['result']
            self.assertEqual((reported['protocolVersion'], reported['serverInfo']['name'], reported['capabilities']), (given, 'stageline', {'tools': {}, 'resources': {}, 'prompts': {}}))
            self.client.line('{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        self.assertEqual(self.client.request('ping')['result'], {})
        meta = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientInfo': {'name': 't', 'version': '1'},
                'io.modelcontextprotocol/clientCapabilities': {}}
        reported = self.client.request('server/discover', meta=meta)['result']
        self.assertEqual((reported['supportedVersions'], reported['resultType']), (['2026-07-28'], 'complete'))
        reported = self.client.request('tools/list', meta=meta)['result']
        self.assertEqual(reported['_meta']['io.modelcontextprotocol/serverInfo']['name'], 'stageline')
        old = self.client.request('tools/list')['result']
        self.assertEqual((set(old), old['tools']), ({'tools'}, reported['tools']))
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
        reported = self.good('sql', trace='t1', query=query)
        self.assertEqual([r[1:] for r in reported['rows']], [r[1:] for r in json.loads(run('sql', PROFILE, query, '--format', 'json', '-q').out)['rows']])
        self.assertFalse(reported['truncated'])
        self.assertRegex(reported['handle'], '^h:t1:[0-9a-f]{12}$')
        self.assertEqual(self.good('sql', trace='t1', query=query)['handle'], reported['handle'])
        reported = self.good('ask', trace='t1', analysis='idle-time-breakdown', table='device-idle')
        own = json.loads(run('analyze', 'idle-time-breakdown', PROFILE, '--table', 'device-idle', '--format', 'json', '-q').out)['tables'][0]
        self.assertEqual(reported['rows'], [[r[c['name']] for c in own['columns']] for r in own['rows']])
        reported = self.good('explain', trace='t1')
        own = json.loads(run('explain', PROFILE, '--json', '-q').out)
        self.assertEqual([(f['id'], f['lost_ns'], f['saving_ns']) for f in reported['findings']], [(f['id'], f['lost_ns'], f['saving_ns']) for f in own['findings']])
        self.assertIn('start_ns', [r[0] for r in self.good('schema', trace='t1', table='kernels')['rows']])
        self.assertEqual(self.good('analyses', trace='t1', about='idle time')['analyses'][0]['name'], 'idle-time-breakdown')
        zh = self.good('explain', trace='t1', lang='zh')
        self.assertRegex(zh['findings'][0]['title'], '[\u4e00-\u9fff]')

    def test_claims_are_asked_again(self):
        self.good('open', paths=[str(PROFILE)])
        count = self.good('sql', trace='t1', query='SELECT count(*) FROM kernels')
        number = count['rows'][0][0]
        reported = self.good('verify', trace='t1', claims=[
            {'text': 'so many kernels', 'handle': count['handle'], 'expect': {'value': number}},
            {'text': 'one more', 'handle': count['handle'], 'expect': {'value': number + 1}},
            {'text': 'nearly', 'sql': 'SELECT count(*) FROM kernels', 'expect': {'value': number + 1, 'tolerance': 1}},
            {'text': 'not so', 'sql': 'SELECT sum(dur_ns) FROM kernels', 'expect': {'value': 5}},
            {'text': 'no such handle', 'handle': 'h:t1:000000000000', 'expect': {'value': 5}},
            {'text': 'no such column', 'sql': 'SELECT nowhere FROM kernels', 'expect': {'value': 5}},
            {'text': 'a name', 'sql': 'SELECT name FROM kernels', 'expect': {'value': 5}},
            {'text': 'nothing', 'expect': {'value': 5}}])
        self.assertEqual([c['verdict'] for c in reported['claims']], ['holds', 'does_not', 'holds', 'does_not'] + ['cannot_tell'] * 4)
        self.assertEqual(reported['claims'][0]['number'], number)
        self.assertTrue(self.client.call('verify', trace='t1', claims=[{'text': 'x', 'expect': {'value': None}}])[1])
        self.assertTrue(self.client.call('verify', trace='t1', claims=[{'text': 'x', 'sql': 'SELECT 1', 'expect': {'value': 1, 'unit': 'parsec'}}])[1])

    def test_what_a_run_cannot_say_is_an_answer(self):
        self.good('open', paths=[str(PROFILE)])
        reported = self.good('ask', trace='t1', analysis='waterfall')
        self.assertTrue(reported['cannot_answer'])
        self.assertEqual(reported['reason'], 'no_pipeline_cells')
        self.assertEqual(self.good('ask', trace='t1', analysis='trace-diff')['reason'], 'needs_two_runs')
        self.assertEqual(self.good('chart', trace='t1')['reason'], 'no_pipeline_cells')
        self.assertEqual(self.good('what_if', trace='t1', schedule='vpp')['reason'], 'no_pipeline_cells')
        self.assertEqual(self.good('diff', a='t1', b='t1')['change_ns'], 0)
        self.assertEqual(self.good('ask', trace='t1', analysis='tb-module')['reason'], 'not_recorded:modules')
        self.assertEqual(self.good('sql', trace='t1', query='SELECT max(dur_ns) FROM cells')['reason'], 'no_pipeline_cells')
        self.assertEqual(self.good('sql', trace='t1', query="SELECT sum(transfer_ns) FROM messages WHERE 'collectives' <> ''")['reason'], 'no_pipeline_cells')
        self.assertIn('holds nothing', self.good('sql', trace='t1', query='SELECT count(*) FROM cells')['notes'][0])
        self.good('open', paths=[str(PIPELINE)])
        self.assertEqual(self.good('slices', trace='t2', name='x')['count'], 0)
        self.assertEqual(self.good('ask', trace='t2', analysis='operators')['reason'], 'no_profiler_slices')
        self.assertEqual(self.good('sql', trace='t2', query='SELECT max(allocated_bytes) FROM memory')['reason'], 'not_recorded:memory')
        for tool, arguments, words in (('ask', {'analysis': 'waterfal'}, 'waterfall'), ('sql', {'query': 'SELECT durns FROM kernels'}, 'dur_ns'),
                                       ('sql', {'query': 'DELETE FROM slices'}, 'may not be modified'), ('ask', {'analysis': 'links', 'option': 1}, 'options'),
                                       ('ask', {'analysis': 'idle-time-breakdown', 'table': 'none'}, 'device-idle'),
                                       ('ask', {'analysis': 'idle-time-breakdown', 'options': {'nothing': 1}}, 'analyses')):
            reported, wrong = self.client.call(tool, trace='t1', **arguments)
            self.assertTrue(wrong, reported)
            self.assertIn(words, reported['error'] + reported['hint'])
        reported, wrong = self.client.call('sql', trace='t9', query='SELECT 1')
        self.assertTrue(wrong and 't1' in reported['hint'], reported)

    def test_slices_and_one_slice(self):
        self.good('open', paths=[str(PROFILE)])
        sums = lambda where: json.loads(run('sql', PROFILE, f'SELECT count(*), coalesce(sum(dur_ns), 0) FROM slices WHERE {where}', '--format', 'json', '-q').out)['rows'][0]
        for arguments, where in (({'name': 'aten::linear'}, "name = 'aten::linear'"), ({'name': 'aten::*', 'rank': 1}, "name LIKE 'aten::%' AND rank = 1"),
                                 ({'class': 'COMMUNICATION', 'step': 101}, "class = 'COMMUNICATION' AND step = 101"), ({'name': '[none]?*'}, '0'),
                                 ({'min_ns': 100_000, 'from_ns': 0, 'to_ns': 1_000_000}, 'dur_ns >= 100000 AND end_ns > 0 AND start_ns < 1000000'),
                                 ({'under': 'aten::linear'}, "id IN (SELECT b.id FROM slices p, below(p.id) b WHERE p.name = 'aten::linear' AND b.distance > 0)")):
            reported = self.good('slices', trace='t1', rows=200, **arguments)
            self.assertEqual([reported['count'], reported['total_ns']], sums(where), arguments)
            self.assertEqual(len(reported['rows']), min(200, reported['count']))
            durations = [r[5] for r in reported['rows']]
            self.assertEqual(durations, sorted(durations, reverse=True))
        reported = self.good('slices', trace='t1', order='start', rows=5)
        self.assertTrue(reported['truncated'])
        self.assertEqual(reported['rows'][0][4], min(r[4] for r in reported['rows']))
        kernel = self.good('slices', trace='t1', under='aten::linear', rows=1)['rows'][0][0]
        reported = self.good('slice', trace='t1', id=kernel)
        self.assertEqual((reported['slice']['id'], reported['path'][0]['id']), (kernel, kernel))
        self.assertIn('aten::linear', [p['name'] for p in reported['path']])
        self.assertEqual(reported['device_work']['op_name'], 'aten::addmm')
        arguments = {a['key']: a['value'] for a in reported['arguments']}
        event = json.loads(run('event', PROFILE, '--rank', reported['slice']['rank'], '--index', reported['slice']['file_index'], '-q').out)['args']
        self.assertEqual(arguments['correlation'], str(event['correlation']))
        self.assertEqual(set(arguments), set(event))
        linear = self.good('slices', trace='t1', name='aten::linear', rows=1)['rows'][0][0]
        reported = self.good('slice', trace='t1', id=linear)
        self.assertEqual((reported['kernel_count'], reported['kernel_total_ns']), (len(reported['kernels']), sum(k['dur_ns'] for k in reported['kernels'])))
        self.assertGreater(reported['kernel_count'], 0)
        self.assertTrue(self.client.call('slice', trace='t1', id=10**15)[1])

    def test_fixes_and_differences_are_those_of_the_program(self):
        self.good('open', paths=[str(PIPELINE)])
        own = json.loads(run('what-if', PIPELINE, '--scale', 'stage=1,kind=F,by=0.5', '--micro-batches', '4', '--latency', '1ms', '--json', '-q').out)
        reported = self.good('what_if', trace='t1', scale=['stage=1,kind=F,by=0.5'], micro_batches=4, latency='1ms')
        fixes = [t for t in own['tables'] if t['name'] == 'fixes'][0]['rows']
        self.assertEqual([(f['fix'], f['what'], f['saving_ns'], f['step_ns']) for f in reported['fixes']], [(f['fix'], f['what'], f['saving_ns'], f['step_ns']) for f in fixes])
        self.assertEqual(reported['fixes'][0]['fix'], 'own')
        self.assertEqual(reported['sentence'], own['sentence'])
        for arguments, words in (({'scale': ['stage=9,kind=F,by=0.5']}, 'fits no operation'), ({'schedule': '1f2b'}, 'no schedule'), ({'latency': 'soon'}, 'latency'),
                                 ({'chunks': 2}, 'go with')):
            reported, wrong = self.client.call('what_if', trace='t1', **arguments)
            self.assertTrue(wrong and words in reported['error'], reported)
        run('simulate', '1f1b', '-o', self.dir / 'slow', '--stages', '2', '--micro-batches', '3', '--steps', '2', '-q', check=0)
        self.good('open', paths=[str(self.dir / 'slow')])
        reported = self.good('diff', a='t1', b='t2', fail_on='1%')
        done = run('diff', PIPELINE, self.dir / 'slow', '--json', '-q', '--fail-on', '1%')
        own = json.loads(done.out)
        self.assertEqual((reported['change_ns'], reported['headline'], reported['fails']), (own['change_ns'], own['headline_en'], done.returncode == 1))
        self.assertEqual([g['what'] for g in reported['groups']], [g['en'] for g in own['changes']])
        claim = {'text': 'changed', 'handle': reported['handle'], 'at': '/change_ns', 'expect': {'value': reported['change_ns']}}
        self.assertEqual(self.good('verify', trace='t1', claims=[claim])['claims'][0]['verdict'], 'holds')

    def test_a_timeline_of_devices_and_hosts(self):
        """Each nanosecond once, as the same intervals come to when SQL lists them and Python covers them."""
        self.good('open', paths=[str(PROFILE)])
        steps = [r[0] for r in json.loads(run('sql', PROFILE, 'SELECT DISTINCT step FROM steps ORDER BY 1', '--format', 'json', '-q').out)['rows']]
        for arguments in ({}, {'step': steps[0], 'width': 500}, {'range': '0ms:2ms'}):
            result = self.client.request('tools/call', {'name': 'chart', 'arguments': {'trace': 't1', 'kind': 'timeline', **arguments}})['result']
            reported, png = result['structuredContent'], base64.b64decode(result['content'][1]['data'])
            self.assertEqual((png[:8], struct.unpack('>II', png[16:24])), (b'\x89PNG\r\n\x1a\n', (reported['width'], reported['height'])))
            self.assertEqual(reported['width'], arguments.get('width', 1200))
            ends = 'SELECT min(start_ns), max(end_ns) FROM ' + (f"steps WHERE step = {arguments['step']}" if 'step' in arguments else 'slices')
            low, high = json.loads(run('sql', PROFILE, ends, '--format', 'json', '-q').out)['rows'][0]
            if 'range' in arguments:
                low, high = 0, 2_000_000
            self.assertEqual(reported['span_ns'], high - low)
            rows = json.loads(run('sql', PROFILE, 'SELECT rank, class, lane_kind, start_ns, end_ns FROM slices', '--format', 'json', '-q').out)['rows']
            for one in reported['ranks']:
                def covered(fits):
                    at, total = low, 0
                    for start, end in sorted((max(r[3], low), min(r[4], high)) for r in rows if r[0] == one['rank'] and fits(r)):
                        total += max(0, end - max(start, at))
                        at = max(at, end)
                    return total
                upto = [covered(lambda r, k=k: r[1] in ('COMPUTATION', 'COMMUNICATION', 'MEMORY', 'OTHER')[:k + 1]) for k in range(4)]
                parts = [one[n] for n in ('compute_ns', 'communication_alone_ns', 'memory_alone_ns', 'other_alone_ns', 'nothing_ns')]
                self.assertEqual(parts, [b - a for a, b in zip([0, *upto], [*upto, high - low])])
                self.assertEqual(sum(parts), reported['span_ns'])
                self.assertEqual(one['host_ns'], covered(lambda r: r[1] is None and r[2] == 'host'))
            self.assertEqual(len(reported['ranks']), reported['ranks_count'])
            self.assertTrue(any(r['compute_ns'] for r in reported['ranks']))
            claim = {'text': 'computing', 'handle': reported['handle'], 'at': '/ranks/0/compute_ns', 'expect': {'value': reported['ranks'][0]['compute_ns']}}
            self.assertEqual(self.good('verify', trace='t1', claims=[claim])['claims'][0]['verdict'], 'holds')
        self.assertEqual(self.good('chart', trace='t1', kind='timeline', step=9999)['reason'], 'not_recorded:steps')
        self.good('open', paths=[str(PIPELINE)])
        self.assertEqual(self.good('chart', trace='t2', kind='timeline')['reason'], 'no_profiler_slices')

    def test_a_picture_of_the_span(self):
        for path, trace in ((PROFILE, 't1'), (PIPELINE, 't2')):
            self.good('open', paths=[str(path)])
            reported = self.good('chart', trace=trace, kind='span', width=640)
            own = self.good('explain', trace=trace)
            self.assertEqual(reported['parts'], own['parts'])
            self.assertEqual((reported['step_ns'], reported['width']), (own['step_ns'], 640))
            self.assertAlmostEqual(sum(p['share'] for p in reported['parts']), 1, 6)
        self.assertTrue(self.client.call('chart', trace='t1', kind='span', step=1)[1])
        self.assertTrue(self.client.call('chart', trace='t1', kind='pie')[1])

    def test_charts_and_reports(self):
        self.good('open', paths=[str(PIPELINE)])
        result = self.client.request('tools/call', {'name': 'chart', 'arguments': {'trace': 't1', 'step': 1, 'width': 700}})['result']
        png = base64.b64decode(result['content'][1]['data'])
        reported = result['structuredContent']
        self.assertEqual((png[:8], struct.unpack('>II', png[16:24]), result['content'][1]['mimeType']), (b'\x89PNG\r\n\x1a\n', (reported['width'], reported['height']), 'image/png'))
        rows = json.loads(run('sql', PIPELINE, "SELECT rank, count(*), sum(iif(kind IN ('F', 'B'), dur_ns, 0)) FROM cells WHERE step = 1 GROUP BY rank", '--format', 'json', '-q').out)['rows']
        self.assertEqual([[r['rank'], r['cells'], r['compute_ns']] for r in reported['ranks']], rows)
        self.assertEqual(self.good('chart', trace='t1', step=99)['reason'], 'not_recorded')
        self.assertNotIn('report', [t['name'] for t in self.client.request('tools/list')['result']['tools']])
        self.assertIn('no tool', self.client.request('tools/call', {'name': 'report', 'arguments': {'trace': 't1', 'path': 'x.html'}})['error']['message'])
        writer = Client('--root', SOURCE / 'tests/golden', '--allow-write', self.dir)
        try:
            writer.call('open', paths=[str(PIPELINE)])
            reported, wrong = writer.call('report', trace='t1', path=str(self.dir / 'page.html'))
            self.assertFalse(wrong, reported)
            page = (self.dir / 'page.html').read_bytes()
            self.assertEqual((len(page), page[:15]), (reported['bytes'], b'<!doctype html>'))
            (self.dir / 'out.html').symlink_to('/etc/hostname')
            for path in ('/tmp/page.html', str(self.dir / '..' / 'page.html'), str(self.dir / 'page.txt'), str(self.dir / 'out.html'), str(self.dir / 'none' / 'x.html'), '.html', ''):
                self.assertTrue(writer.call('report', trace='t1', path=path)[1], path)
        finally:
            writer.close()

    def test_claims_with_units_places_and_names(self):
        self.good('open', paths=[str(PROFILE)])
        top = self.good('sql', trace='t1', query='SELECT name, dur_ns FROM kernels ORDER BY dur_ns DESC, id LIMIT 2')
        name, dur_ns = top['rows'][0]
        h = top['handle']
        reported = self.good('verify', trace='t1', claims=[
            {'text': 'in us', 'handle': h, 'at': '/rows/0/1', 'expect': {'value': dur_ns / 1000, 'unit': 'us'}},
            {'text': 'the second', 'handle': h, 'at': '/rows/1/1', 'expect': {'value': dur_ns, 'unit': 'ns'}},
            {'text': 'rounded', 'handle': h, 'expect': {'value': round(dur_ns / 1e6, 2), 'unit': 'ms', 'tolerance': 0.01}},
            {'text': 'of another kind', 'handle': h, 'at': '/rows/0/1', 'expect': {'value': dur_ns, 'unit': 'GiB'}},
            {'text': 'its name', 'handle': h, 'at': '/rows/0/0', 'expect': {'value': name}},
            {'text': 'another name', 'handle': h, 'expect': {'value': 'nonesuch'}},
            {'text': 'nowhere', 'handle': h, 'at': '/rows/7/0', 'expect': {'value': 1}},
            {'text': 'a name is no number', 'handle': h, 'at': '/rows/0/0', 'expect': {'value': 1}},
            {'text': 'cut', 'handle': h, 'at': '/truncated', 'expect': {'value': False}}])['claims']
        self.assertEqual([c['verdict'] for c in reported], ['holds', 'does_not', 'holds', 'cannot_tell', 'holds', 'does_not', 'cannot_tell', 'cannot_tell', 'holds'], reported)
        self.assertEqual((reported[0]['number'], reported[0]['unit'], reported[4]['number']), (dur_ns, 'ns', name))

    def test_files_that_changed_prove_nothing(self):
        shutil.copytree(PIPELINE, self.dir / 'run')
        self.good('open', paths=[str(self.dir / 'run')])
        count = self.good('sql', trace='t1', query='SELECT count(*) FROM cells')
        claim = [{'text': 'cells', 'handle': count['handle'], 'expect': {'value': count['rows'][0][0]}}]
        self.assertEqual(self.good('verify', trace='t1', claims=claim)['claims'][0]['verdict'], 'holds')
        with (self.dir / 'run' / 'workerlog.0').open('a') as log:
            log.write('more\n')
        reported = self.good('verify', trace='t1', claims=claim)['claims'][0]
        self.assertEqual(reported['verdict'], 'cannot_tell')
        self.assertIn('changed since', reported['why'])
        self.assertTrue(self.client.call('chart', trace='t1')[1])

    def test_resources_and_prompts(self):
        self.good('open', paths=[str(PIPELINE)])
        count = self.good('sql', trace='t1', query='SELECT count(*) FROM cells')
        uris = [r['uri'] for r in self.client.request('resources/list')['result']['resources']]
        self.assertIn('stageline://run/t1', uris)
        self.assertIn('stageline://skill/SKILL.md', uris)
        for uri in uris:
            self.assertTrue(self.client.request('resources/read', {'uri': uri})['result']['contents'][0]['text'])
        reported = self.client.request('resources/read', {'uri': 'stageline://handle/' + count['handle']})['result']['contents'][0]
        self.assertEqual(json.loads(reported['text']), count)
        self.assertEqual(self.client.request('resources/templates/list')['result']['resourceTemplates'][0]['uriTemplate'], 'stageline://handle/{handle}')
        for uri in ('stageline://handle/h:t1:0', 'stageline://run/t9', 'file:///etc/passwd', 'stageline://skill/../../NOTICE', 'stageline://NOTICE', ''):
            self.assertEqual(self.client.request('resources/read', {'uri': uri})['error']['code'], -32002, uri)
        prompts = self.client.request('prompts/list')['result']['prompts']
        self.assertIn('first_look', [p['name'] for p in prompts])
        for prompt in prompts:
            reported = self.client.request('prompts/get', {'name': prompt['name'], 'arguments': {'paths': '/data/run'}})['result']
            self.assertIn('/data/run', reported['messages'][0]['content']['text'])
        self.assertEqual(self.client.request('prompts/get', {'name': 'none'})['error']['code'], -32602)

    def test_answers_are_what_their_schema_says(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest('needs jsonschema')
        tools = {t['name']: t for t in self.client.request('tools/list')['result']['tools']}
        for tool in tools.values():
            jsonschema.Draft202012Validator.check_schema(tool['inputSchema'])
            jsonschema.Draft202012Validator.check_schema(tool['outputSchema'])
        calls = [('open', {'paths': [str(PROFILE)]}), ('open', {'paths': [str(PIPELINE)]}), ('open', {'paths': ['/']}), ('slice', {'trace': 't1', 'id': 5})]
        for trace in ('t1', 't2', 't9'):
            calls += [(tool, {'trace': trace}) for tool in ('analyses', 'schema', 'explain', 'slices', 'what_if', 'chart')]
            calls += [('sql', {'trace': trace, 'query': 'SELECT * FROM slices'}), ('diff', {'a': trace, 'b': 't2'}), ('ask', {'trace': trace, 'analysis': 'waterfall'}),
                      ('ask', {'trace': trace, 'analysis': 'idle-time-breakdown', 'sort': 'idle_ns'}),
                      ('verify', {'trace': trace, 'claims': [{'text': 'x', 'sql': 'SELECT 1', 'expect': {'value': 1}}]})]
        calls += [('close', {'trace': 't1'})]
        for tool, arguments in calls:
            reported, _ = self.client.call(tool, **arguments)
            jsonschema.validate(arguments, tools[tool]['inputSchema'])
            jsonschema.validate(reported, tools[tool]['outputSchema'])

    def test_sorted_tables(self):
        self.good('open', paths=[str(PROFILE)])
        reported = self.good('ask', trace='t1', analysis='gpu-kernel-breakdown', table='kernels', sort='sum_ns', rows=200)
        column = [c['name'] for c in reported['columns']].index('sum_ns')
        values = [r[column] for r in reported['rows']]
        self.assertEqual(values, sorted(values, reverse=True))
        reported = self.good('ask', trace='t1', analysis='gpu-kernel-breakdown', table='kernels', sort='-sum_ns', rows=2)
        self.assertEqual([r[column] for r in reported['rows']], sorted(values)[:2])
        self.assertIn('rows more', reported['more'])
        reported, wrong = self.client.call('ask', trace='t1', analysis='gpu-kernel-breakdown', table='kernels', sort='sum')
        self.assertTrue(wrong and 'sum_ns' in reported['hint'], reported)

    def test_queries_leave_nothing_behind(self):
        """Connections are kept, and one query's temporary tables and counts are not the next one's."""
        self.good('open', paths=[str(PROFILE)])
        self.assertEqual(self.good('sql', trace='t1', query='CREATE TEMP TABLE mine AS SELECT 5 AS x; SELECT x FROM mine')['rows'], [[5]])
        for _ in range(3):
            self.assertTrue(self.client.call('sql', trace='t1', query='SELECT x FROM mine')[1])
            self.assertTrue(self.client.call('sql', trace='t1', query='SELECT nothing')[1])
            self.assertEqual(self.good('sql', trace='t1', query='CREATE TEMP VIEW mine AS SELECT 6 AS x; SELECT x FROM mine')['rows'], [[6]])
        most = 10_000 // 410  # arguments of all slices, until their limit would have been passed by all queries together
        for _ in range(most + 3):
            self.assertGreater(self.good('sql', trace='t1', query='SELECT count(*) FROM slices s JOIN args a ON a.slice_id = s.id')['rows'][0][0], 410)

    def test_requests_can_be_given_up(self):
        """The request at work ends early and gets no answer; one that waits is dropped; others go on."""
        self.good('open', paths=[str(PIPELINE)])
        endless = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n'
        call = lambda number, query: json.dumps({'jsonrpc': '2.0', 'id': number, 'method': 'tools/call', 'params': {'name': 'sql', 'arguments': {'trace': 't1', 'query': query}}})
        cancel = lambda number: json.dumps({'jsonrpc': '2.0', 'method': 'notifications/cancelled', 'params': {'requestId': number}})
        self.client.line(call('endless', endless))
        self.client.line(call('dropped', endless))
        self.client.line(cancel('dropped'))
        self.client.line(cancel('none'))
        self.client.line(cancel('endless'))
        self.client.line(call('last', 'SELECT 7'))
        reported = self.client.read()
        self.assertEqual((reported['id'], reported['result']['structuredContent']['rows']), ('last', [[7]]))

    def test_progress_is_reported(self):
        count = 400_000
        lines = ['step,rank,stage,kind,micro_batch,start_ns,end_ns'] + [f'{i // 8},0,0,F,{i % 8},{i * 10},{i * 10 + 5}' for i in range(count)]
        (self.dir / 'cells.csv').write_text('\n'.join(lines) + '\n')
        self.client.line(json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {
            '_meta': {'progressToken': 'p1'}, 'name': 'open', 'arguments': {'paths': [str(self.dir / 'cells.csv')]}}}))
        reported = self.client.read()
        last = 0
        while 'id' not in reported:  # as many as it takes time for; none on a fast machine
            self.assertEqual((reported['method'], reported['params']['progressToken']), ('notifications/progress', 'p1'))
            self.assertGreater(reported['params']['progress'], last)
            last = reported['params']['progress']
            reported = self.client.read()
        self.assertEqual(reported['result']['structuredContent']['cells'], count)

    def test_memory_is_bounded(self):
        small = Client('--root', SOURCE / 'tests/golden', '--memory', '1')
        try:
            for number in (1, 2, 3):
                reported, _ = small.call('open', paths=[str(PIPELINE)])
            self.assertEqual(reported['closed'], ['t2'])
            self.assertFalse(small.call('sql', trace='t3', query='SELECT 1')[1])
        finally:
            small.close()

    def test_caps(self):
        self.good('open', paths=[str(PROFILE)])
        reported = self.good('sql', trace='t1', query='SELECT * FROM slices', rows=200)
        self.assertTrue(reported['truncated'])
        self.assertLess(len(json.dumps(reported)), 40_000)
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
            reported, wrong = self.client.call('open', paths=[path])
            self.assertTrue(wrong, path)
            self.assertNotIn('secret\n', json.dumps(reported))
        reported, wrong = self.client.call('open', paths=[str(PROFILE), '/etc/passwd'])
        self.assertTrue(wrong)

    def test_runs_come_and_go(self):
        for number in range(1, 19):
            reported = self.good('open', paths=[str(PIPELINE)])
            self.assertEqual(reported['trace'], f't{number}')
        self.assertEqual(reported['closed'], ['t2'])
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
            reported, _ = self.client.call(tool['name'], **arguments)
            self.assertIsInstance(reported, dict)
        self.assertEqual(self.client.request('ping')['result'], {})


if __name__ == '__main__':
    unittest.main()
