"""Spans of OpenTelemetry: containers, Megatron's pipelines by order, requests, other services, permuted and damaged files."""
import collections
import csv
import gzip
import io
import json
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import otlp
from support import SHARED, Case, flaws, info, needs_shared, run

SAMPLES = SHARED / 'sources' / 'otlp'


def rows(path, query):
    return list(csv.DictReader(io.StringIO(run('sql', path, query, '--format', 'csv', '-q', check=0).out)))


def cells(path):
    """Rank → [(kind, step, chunk, micro-batch, start)] in order of start."""
    out = collections.defaultdict(list)
    for c in rows(path, 'SELECT rank, kind, step, chunk, micro_batch, start_ns FROM cells ORDER BY rank, start_ns'):
        out[int(c['rank'])].append((c['kind'], int(c['step']), int(c['chunk']), c['micro_batch'] and int(c['micro_batch']), int(c['start_ns'])))
    return dict(out)


def order(path):
    return {rank: [(kind, step, chunk, mb) for kind, step, chunk, mb, _ in of] for rank, of in cells(path).items()}


def expected(stages, chunks, micro_batches, steps, replicas=1):
    return {rank: [(kind, 100 + step, chunk, mb) for step in range(steps) for kind, chunk, mb in otlp.order_of(rank // replicas, stages, chunks, micro_batches)]
            for rank in range(stages * replicas)}


def places(path):
    return rows(path, 'SELECT rank, stage, kind, step, chunk, micro_batch, end_ns - start_ns AS dur, start_ns - (SELECT min(start_ns) FROM cells) AS start FROM cells '
                      'ORDER BY rank, start_ns, dur, kind, micro_batch, chunk')


class ExportTest(Case):
    def test_exported_spans_are_read_as_the_same_cells(self):
        for how in (['1f1b', '--stages', 4, '--dp', 2, '--optimizer', 5, '--latency', '1ms'], ['vpp', '--stages', 2, '--micro-batches', 4], ['zb-v', '--stages', 2, '--micro-batches', 4]):
            run('simulate', *how, '--jitter', 0.1, '-o', self.dir / how[0], check=0)
            out = self.dir / f'{how[0]}.jsonl'
            run('export', self.dir / how[0], '--to', 'otlp', '-o', out, check=0)
            self.assertEqual(places(out), places(self.dir / how[0]), how)
            said = info(out)
            self.assertEqual(said['format'], 'otlp')
            self.assertFalse([d for d in said['diagnostics'] if d['severity'] == 'loss' or d['name'] in ('otlp.host_times', 'otlp.stages_by_order')], how)

    def test_each_step_of_a_rank_is_a_trace_of_its_own(self):
        run('simulate', '1f1b', '--stages', 2, '--steps', 2, '-o', self.dir / 'run', check=0)
        run('export', self.dir / 'run', '--to', 'otlp', '-o', self.dir / 'a.jsonl', check=0)
        roots, ids, traces = collections.Counter(), set(), set()
        for line in (self.dir / 'a.jsonl').read_text().splitlines():
            spans = json.loads(line)['resourceSpans'][0]['scopeSpans'][0]['spans']
            roots[sum('parentSpanId' not in s for s in spans)] += 1
            self.assertEqual({s['parentSpanId'] for s in spans[1:]}, {spans[0]['spanId']})
            self.assertEqual(len({s['traceId'] for s in spans}), 1)
            traces.add(spans[0]['traceId'])
            for s in spans:
                self.assertRegex(s['traceId'] + s['spanId'], '^[0-9a-f]{48}$')
                self.assertGreaterEqual(int(s['startTimeUnixNano']), int(spans[0]['startTimeUnixNano']))
                self.assertLessEqual(int(s['endTimeUnixNano']), int(spans[0]['endTimeUnixNano']))
            self.assertFalse(ids & {s['spanId'] for s in spans})
            ids |= {s['spanId'] for s in spans}
        self.assertEqual((roots, len(traces)), ({1: 4}, 4))


class OtlpTest(Case):
    def file(self, name, content):
        path = self.dir / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def test_a_pipeline_is_read_in_the_order_in_which_it_ran(self):
        for stages, chunks, micro_batches, replicas in ((4, 1, 8, 1), (2, 1, 4, 2), (2, 2, 4, 1), (4, 2, 8, 1), (4, 3, 8, 1), (2, 2, 5, 1), (2, 2, 2, 1), (1, 1, 4, 2)):
            with self.subTest(stages=stages, chunks=chunks, micro_batches=micro_batches):
                made = otlp.write(self.dir / f'{stages}-{chunks}-{micro_batches}-{replicas}', stages=stages, chunks=chunks, micro_batches=micro_batches, replicas=replicas)
                self.assertEqual(order(made), expected(stages, chunks, micro_batches, 2, replicas))
                self.assertEqual('otlp.chunks_by_schedule' in flaws(info(made)), chunks > 1)

    def test_every_container_gives_the_same_cells(self):
        made = otlp.run()
        want = cells(otlp.write(self.dir / 'lines'))
        pretty = json.dumps(otlp.document(made), indent=2)
        forms = {'batches.jsonl': otlp.to_json(made, batch=5), 'pretty.json': pretty, 'lines.jsonl.gz': gzip.compress(otlp.to_json(made).encode()),
                 **{f'{framing}.bin': otlp.to_protobuf(made, framing) for framing in ('bare', 'len32', 'varint')},
                 'len32.gz': gzip.compress(otlp.to_protobuf(made, 'len32'))}
        for name, content in forms.items():
            with self.subTest(name):
                path = self.file(name, content)
                self.assertEqual(info(path)['format'], 'otlp')
                self.assertEqual(cells(path), want)

    def test_the_order_of_files_names_and_lines_does_not_matter(self):
        draw = random.Random(7)
        made = otlp.run(stages=2, chunks=2, replicas=2)
        want = cells(self.file('whole/traces.jsonl', otlp.to_json(made)).parent)
        for copy in range(12):
            lines = otlp.to_json([(attributes, draw.sample(spans, len(spans))) for attributes, spans in made], batch=draw.randint(3, 20)).splitlines(True)
            draw.shuffle(lines)
            folder = self.dir / f'copy{copy}'
            folder.mkdir()
            names = draw.sample([f'{c}-2026-09-14T05-02-1{c}.json' for c in range(9)], draw.randint(1, 4))
            for k, name in enumerate(names):
                (folder / name).write_text(''.join(lines[k::len(names)]))
            self.assertEqual(cells(folder), want, copy)

    def test_what_a_file_repeats_counts_once(self):
        made = otlp.write(self.dir / 'run')
        want = cells(made)
        (made / 'again.bin').write_bytes(otlp.to_protobuf(otlp.run(), 'varint'))
        self.assertEqual(cells(made), want)
        self.assertIn('otlp.repeated_span', flaws(info(made)))

    def test_no_chunk_is_guessed_where_counts_or_order_do_not_fit(self):
        made = otlp.run(stages=2, chunks=2)
        lost = [(attributes, [s for k, s in enumerate(spans) if s['name'] != 'megatron.microbatch.forward' or attributes['dl.rank'] or k % 9]) for attributes, spans in made]
        path = self.file('lost.jsonl', otlp.to_json(lost))
        self.assertEqual(order(path), {1: expected(2, 2, 4, 2)[1]})  # rank 0 lost some in each step
        self.assertIn('otlp.incomplete_step', flaws(info(path)))
        # All forwards first fits no interleaved order of 4 micro-batches.
        other = otlp.run(stages=2, chunks=1, micro_batches=8)
        for _, spans in other:
            for span in spans:
                if 'num_microbatches' in span['attributes']:
                    span['attributes']['num_microbatches'] = 4
        path = self.file('other.jsonl', otlp.to_json(other))
        self.assertEqual(rows(path, "SELECT count(*) AS n FROM slices WHERE name = 'megatron.microbatch.forward'")[0]['n'], '32')
        self.assertIsNone(info(path).get('schedule'))
        self.assertIn('otlp.chunks_unknown', flaws(info(path)))

    def test_a_step_that_lost_spans_has_no_micro_batches(self):
        made = otlp.run(stages=2)
        spans = made[0][1]
        spans.remove(next(s for s in spans if s['name'] == 'megatron.microbatch.forward'))
        path = self.file('lost.jsonl', otlp.to_json(made))
        self.assertEqual({mb for kind, step, chunk, mb, _ in cells(path)[0] if step == 100}, {''})
        self.assertEqual(order(path)[1], expected(2, 1, 4, 2)[1])
        self.assertEqual(flaws(info(path))['otlp.incomplete_step']['count'], 7)

    def test_no_whole_step_makes_no_pipeline(self):
        made = otlp.run(stages=2, steps=1)
        path = self.file('lost.jsonl', otlp.to_json([(attributes, [s for k, s in enumerate(spans) if k != 4]) for attributes, spans in made]))
        self.assertIn('otlp.incomplete_step', flaws(info(path)))
        self.assertEqual(info(path)['cells'], 0)

    def test_a_truncated_span_is_no_cell(self):
        made = otlp.run(stages=2)
        last = max((s for s in made[1][1] if s['name'] == 'megatron.microbatch.backward'), key=lambda s: s['start'])
        last['end'] += 10**9
        last['attributes']['nemo.span.truncated'] = True
        path = self.file('truncated.jsonl', otlp.to_json(made))
        self.assertEqual(len(cells(path)[1]), 15)
        self.assertIn('otlp.truncated_span', flaws(info(path)))

    def test_an_iteration_that_ran_again_counts_once(self):
        made, again = otlp.run(stages=2, steps=2), otlp.run(stages=2, steps=1, first_iteration=101)
        for (_, spans), (_, more) in zip(made, again):
            for span in more:
                spans.append({**span, 'start': span['start'] + 10**9, 'end': span['end'] + 10**9, 'id': span['id'] + 5000})
        path = self.file('again.jsonl', otlp.to_json(made))
        self.assertEqual(order(path), expected(2, 1, 4, 2))
        self.assertGreater(cells(path)[0][-1][-1] - cells(path)[0][0][-1], 9 * 10**8)
        self.assertIn('otlp.repeated_step', flaws(info(path)))

    def test_missing_ranks_and_micro_batches_are_named_with_their_settings(self):
        made = otlp.run(stages=4)
        path = self.file('rank3.jsonl', otlp.to_json(made[3:]))
        said = flaws(info(path))
        self.assertIn('MEGATRON_OTEL_EXPORT_STRATEGY=all_ranks', said['otlp.missing_ranks']['message'])
        self.assertIn('(missing: 0,1,2)', said['otlp.missing_ranks']['message'])
        self.assertEqual(info(path)['schedule']['name'], '1f1b')
        first = self.file('rank0.jsonl', otlp.to_json(made[:1]))
        run('digest', first, '-o', self.dir / 'digests', '-q', check=0)
        for source in (first, self.dir / 'digests'):  # its own stage alone does not say how many there are
            self.assertEqual(info(source)['schedule']['stages'], 4)
        path = self.file('steps.jsonl', otlp.to_json([(attributes, [s for s in spans if 'microbatch' not in s['name']]) for attributes, spans in made]))
        said = flaws(info(path))
        self.assertIn('--otel-span-groups', said['otlp.no_micro_batches']['message'])
        self.assertEqual([r['n'] for r in rows(path, 'SELECT count(*) AS n FROM steps')], ['8'])

    def test_the_run_with_most_spans_is_read(self):
        one, two = otlp.run(stages=2), otlp.run(stages=4, steps=1)
        path = self.file('two.jsonl', otlp.to_json(one + two))
        self.assertEqual(len(cells(path)), 4)
        self.assertIn('otlp.other_run', flaws(info(path)))

    def test_requests_have_queue_prefill_and_decode(self):
        path = self.file('vllm.jsonl', otlp.to_json(otlp.requests()))
        got = {r['name']: (int(r['n']), int(r['ns'])) for r in rows(path, 'SELECT name, count(*) AS n, sum(dur_ns) AS ns FROM slices GROUP BY name')}
        self.assertEqual(got, {'llm_request': (3, 1_620_000_000), 'queue': (3, 60_000_000), 'prefill': (3, 60_000_000), 'decode': (3, 1_500_000_000)})
        # They overlap, and none is drawn inside another.
        self.assertEqual(rows(path, "SELECT count(DISTINCT lane) AS lanes FROM slices WHERE name = 'llm_request'")[0]['lanes'], '3')
        run('explain', path, check=0)

    def requests(self, path, table):
        told = json.loads(run('analyze', 'requests', path, '--format', 'json', '--table', table, '-q', check=0).out)
        return told['tables'][0]['rows']

    def test_the_table_of_requests_splits_first_token_and_tokens(self):
        made = otlp.requests(5)
        for k, span in enumerate(made[0][1]):
            span['attributes'] |= {'gen_ai.usage.prompt_tokens': 100 * k, 'gen_ai.usage.completion_tokens': (51, 1, 26, 11, 2)[k]}
        for name in ('gen_ai.latency.time_to_first_token', 'gen_ai.latency.time_in_queue', 'gen_ai.latency.time_in_model_prefill'):
            del made[0][1][3]['attributes'][name]  # so that this server measured only its decode
        del made[0][1][4]['attributes']['gen_ai.latency.time_in_model_decode']
        made.append(({'service.name': 'vllm', 'service.instance.id': 'other', 'vllm.process_id': '5101'}, [{**made[0][1][0], 'name': 'GET /health', 'id': 7, 'attributes': {}}]))
        path = self.file('vllm.jsonl', otlp.to_json(made))
        found = self.requests(path, 'requests')
        ms = 1_000_000
        self.assertEqual([(r['request'], r['request_ns'], r['queue_ns'], r['prefill_ns'], r['decode_ns'], r['first_token_ns'], r['token_ns'], r['prompt_tokens']) for r in found],
                         [('cmpl-0', 530 * ms, 10 * ms, 20 * ms, 500 * ms, 30 * ms, 10 * ms, 0), ('cmpl-1', 540 * ms, 20 * ms, 20 * ms, 500 * ms, 40 * ms, None, 100),
                          ('cmpl-2', 550 * ms, 30 * ms, 20 * ms, 500 * ms, 50 * ms, 20 * ms, 200), ('cmpl-3', 560 * ms, None, None, 500 * ms, None, 50 * ms, 300),
                          ('cmpl-4', 570 * ms, 50 * ms, 20 * ms, None, 70 * ms, 500 * ms, 400)])
        self.assertEqual([r['start_ns'] for r in found], [40 * ms * k for k in range(5)])
        times = {r['time']: r for r in self.requests(path, 'request-times')}
        self.assertEqual({name: r['count'] for name, r in times.items()}, {'request': 5, 'first token': 4, 'queue': 4, 'prefill': 4, 'decode': 4, 'token': 4})
        self.assertEqual((times['request']['p50_ns'], times['request']['max_ns'], times['queue']['mean_ns']), (550 * ms, 570 * ms, 27_500_000))
        self.assertAlmostEqual(times['queue']['request_share'], 110 / 2750)
        # The same by SQL, and only those that a range of time holds.
        sql = rows(path, 'SELECT request, token_ns FROM requests__requests WHERE token_ns IS NOT NULL ORDER BY 1')
        self.assertEqual([(r['request'], int(r['token_ns'])) for r in sql], [('cmpl-0', 10 * ms), ('cmpl-2', 20 * ms), ('cmpl-3', 50 * ms), ('cmpl-4', 500 * ms)])
        few = json.loads(run('analyze', 'requests', path, '--range', '0:15ms', '--format', 'json', '--table', 'requests', '-q', check=0).out)['tables'][0]['rows']
        self.assertEqual([r['request'] for r in few], ['cmpl-0'])
        self.assertIn('needs requests that a server measured', run('analyze', 'requests', otlp.write(self.dir / 'training'), check=2).err)

    def test_explain_and_diff_know_queue_prefill_and_decode(self):
        def served(name, factor):
            made = otlp.requests(40)
            for k, span in enumerate(made[0][1]):
                queue = 0.1 * factor + 0.001 * (k % 7)
                span['attributes'] |= {'gen_ai.latency.time_in_queue': queue, 'gen_ai.latency.time_to_first_token': queue + 0.02}
                span['end'] = span['start'] + round((queue + 0.52) * 1e9)
            return self.file(name, otlp.to_json(made))

        fast, slow = served('fast.jsonl', 1), served('slow.jsonl', 3)
        told = json.loads(run('explain', slow, '--format', 'json', check=0).out)
        parts = {p['id']: p['share'] for p in told['parts']}
        self.assertEqual(list(parts), ['phase-decode', 'phase-queue', 'phase-prefill'])
        mean = 0.303 + 0.52
        self.assertAlmostEqual(parts['phase-queue'], 0.303 / mean, delta=0.001)
        self.assertEqual([f['id'] for f in told['findings']], ['phase.wait'])
        self.assertIn('40 requests', told['title_en'] + told['lead_en'])
        apart = json.loads(run('diff', fast, slow, '--format', 'json').out)
        self.assertTrue(apart['beyond_noise'])
        self.assertAlmostEqual(apart['change_ns'] / 1e6, 200, delta=1)
        groups = next(t['rows'] for t in apart['tables'] if t['name'] == 'groups')
        self.assertEqual(max(groups, key=lambda g: abs(g['effect_ns']))['kind'], 'phase-queue')
        self.assertIn('requests of a server', run('diff', fast, slow).out)

    def test_a_hundred_thousand_spans_of_any_service(self):
        draw = random.Random(3)
        spans = [{'name': f'GET /{k % 7}', 'start': otlp.EPOCH_NS + draw.randrange(10**9), 'end': 0, 'id': k + 1, 'trace': k + 5, 'parent': k + 10**6, 'attributes': {}} for k in range(100_000)]
        for span in spans:
            span['end'] = span['start'] + draw.randrange(10**7)
        path = self.file('web.jsonl', otlp.to_json([({'service.name': 'web', 'service.instance.id': f'pod-{half}'}, spans[half::2]) for half in (0, 1)]))
        about = info(path)
        self.assertEqual((about['ranks'], about['events']), (2, 100_000))
        self.assertIn('otlp.ranks_in_order', flaws(about))

    def test_damage_is_counted_and_never_more_than_a_sentence(self):
        made = otlp.run(stages=2, steps=1)
        text, proto = otlp.to_json(made), otlp.to_protobuf(made)
        path = self.file('cut.jsonl', text[:-300])
        self.assertEqual(info(path)['ranks'], 2)
        self.assertIn('otlp.damaged_text', flaws(info(path)))
        first, second = text.splitlines(True)
        path = self.file('killed.jsonl', first[:len(first) // 2] + '\n' + second)
        self.assertIn(1, cells(path))
        path = self.file('cut.pb', proto[:-30])
        self.assertIn('otlp.damaged_text', flaws(info(path)))
        path = self.file('cut.jsonl.gz', gzip.compress(text.encode())[:-40])
        self.assertIn(run('info', path).returncode, (0, 2))
        for content, end in ((text.encode(), len(text)), (proto, len(proto))):
            for at in range(1, end, 613):
                self.assertIn(run('info', self.file('cut.bin', content[:at])).returncode, (0, 2))
                self.assertIn(run('info', self.file('flipped.bin', content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1:])).returncode, (0, 2))

    def test_wrong_types_and_huge_numbers_are_losses(self):
        good = otlp.json_span(otlp.run()[0][1][0])
        bad = [{**good, 'name': 7}, {**good, 'startTimeUnixNano': '99999999999999999999'}, {**good, 'startTimeUnixNano': None}, {**good, 'endTimeUnixNano': '1'},
               {**good, 'attributes': 'none'}, {**good, 'attributes': [{'key': 'megatron.iteration', 'value': {'intValue': '9999999999999'}}], 'spanId': '2'}, 5, 'text', []]
        resource = {'attributes': [{'key': 'dl.rank', 'value': {'intValue': '-4'}}, {'key': 'dl.world_size', 'value': {'intValue': '1e9'}}]}
        path = self.file('bad.jsonl', json.dumps({'resourceSpans': [{'resource': resource, 'scopeSpans': [{'spans': [good, *bad]}]}]}) + '\n{"resourceMetrics":[]}\n{"x":1}\n')
        said = flaws(info(path))
        self.assertEqual(info(path)['events'], 2)
        self.assertEqual((said['otlp.bad_span']['count'], said['otlp.bad_time']['count']), (5, 3))
        self.assertIn('otlp.other_signals', said)
        for empty in ('{"resourceSpans":[]}', '{"resourceSpans":[{}]}'):
            self.assertIn('OpenTelemetry', run('info', self.file('empty.json', empty), check=2).err)

    def test_other_forms_of_spans_are_refused_by_name(self):
        for name, content, word in (('jaeger.json', json.dumps({'data': [{'traceID': '1', 'spans': [{'traceID': '1', 'operationName': 'x', 'startTime': 5}]}]}), 'Jaeger'),
                                    ('console.json', json.dumps({'name': 'x', 'context': {'trace_id': '0x1', 'span_id': '0x2'}, 'start_time': '2026'}), 'console exporter'),
                                    ('metrics.json', '{"resourceMetrics":[{}]}', 'metrics of OpenTelemetry'), ('logs.json', '{"resourceLogs":[{}]}', 'logs of OpenTelemetry')):
            with self.subTest(name):
                self.assertIn(word, run('info', self.file(name, content), check=2).err)

    @needs_shared
    def test_recorded_runs_agree_with_what_their_models_recorded(self):
        for name in ('pp4', 'pp2vp2', 'pp2dp2_collector'):
            truth = json.loads((SAMPLES / name / 'truth.json').read_text())['order_of_each_rank']
            self.assertEqual({str(rank): [[kind, step - 100, chunk, mb] for kind, step, chunk, mb in of] for rank, of in order(SAMPLES / name).items()}, truth)
        for form in ('request.pb', 'len32.bin', 'varint.bin'):
            self.assertEqual(cells(SAMPLES / f'pp4_rank0_{form}'), cells(SAMPLES / 'pp4/rank0.jsonl'))
        truth = json.loads((SAMPLES / 'vllm_requests.truth.json').read_text())
        phases = ('time_in_queue', 'queue'), ('time_in_model_prefill', 'prefill'), ('time_in_model_decode', 'decode')
        for key, name in phases:
            got = sorted(int(r['dur_ns']) for r in rows(SAMPLES / 'vllm_requests.jsonl', f"SELECT dur_ns FROM slices WHERE name = '{name}'"))
            for measured, said in zip(got, sorted(round(t[key] * 1e9) for t in truth), strict=True):
                self.assertAlmostEqual(measured, said, delta=2000)  # the sum of three rounded seconds may exceed the request
        told = {r['request']: r for r in self.requests(SAMPLES / 'vllm_requests.jsonl', 'requests')}
        for t in truth:
            row = told[t['id']]
            self.assertEqual([row[key] for key in ('request_ns', 'first_token_ns', 'queue_ns', 'prefill_ns', 'decode_ns', 'prompt_tokens', 'completion_tokens')],
                             [t['end_ns'] - t['start_ns'], *(round(t[key] * 1e9) for key in ('time_to_first_token', 'time_in_queue', 'time_in_model_prefill', 'time_in_model_decode')),
                              t['prompt_tokens'], t['completion_tokens']])
            self.assertEqual(row['token_ns'], round(round(t['time_in_model_decode'] * 1e9) / (t['completion_tokens'] - 1)))


if __name__ == '__main__':
    unittest.main()
