"""Both programs serve the same run and are asked the same questions over HTTP; what they answer is compared."""
import json
import pathlib
import re
import sys
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'server'))
import serving  # noqa: E402

# The served runs, with flags: cells of several replicas and a second run; profiles with and without a pipeline;
# databases.
RUNS = ['in/1f1b --compare in/1f1b-healthy', 'in/made-ns --ranks 0,2', 'in/made-pipeline --align always', 'in/ascend-kernels --title here']
SECONDS = 120  # until an answer that takes time is given up
ALONE = ['/', '/viewer.js', '/chunk.js', '/late_pages.js', '/viewer.css']  # the page: its program may differ without any output doing so


def questions(run, offers):
    """~60 targets for the run that /api/run describes; windows, lanes, slices and names are taken from it."""
    span, lanes = run['span_ns'], len(run['lanes'])
    t0, t1 = span // 3, span // 2
    middle, last = lanes // 2, lanes - 1
    kinds = [kind['id'] for kind in run['kinds']]
    step = run['steps'][len(run['steps']) // 2]['number'] if run['steps'] else 0
    counters = [lane['id'] for lane in run['lanes'] if lane['type'] == 'counter']
    part, window = f'lanes=0-{middle}', f't0={t0}&t1={t1}'
    slices = [(0, 0), (middle, 1), (last, 0), (0, 99999999)]
    found = [
        *ALONE, '/api/status', '/api/events', '/api/run', '/api/run?revision=1', '/api/run?revision=7', '/api/nothing', '/api/answers',
        '/api/explain', '/api/clocks', '/api/compare', '/api/perfetto',
        '/api/tiles', '/api/tiles?n=10', f'/api/tiles?n=400&{window}', f'/api/tiles?{part}&n=50', '/api/tiles?n=0',
        f'/api/tiles?t0={t1}&t1={t0}', f'/api/tiles?lanes={lanes}',
        '/api/slices', f'/api/slices?lanes={middle}', f'/api/slices?{window}&limit=20', '/api/slices?min_ns=100000&limit=1000',
        '/api/slices?limit=x', '/api/slice', *(f'/api/slice?lane={lane}&slice={number}' for lane, number in slices),
        '/api/select', f'/api/select?{part}&{window}', '/api/select?limit=3',
        '/api/search?q=a', '/api/search?q=f&limit=5', '/api/search?q=%5Ea.*%5Bnl%5D%24&regex=1', '/api/search?q=%5B&regex=1',
        '/api/search?q=mb:1', '/api/search?q=kind:B%20rank:0', '/api/search?q=step:1%20stage:1', '/api/search?q=%22mb:1%22',
        '/api/find?q=a&from=0', f'/api/find?q=f&from={t1}&dir=prev', f'/api/find?name_ids=0,1&from={t0}&lane=0&slice=0&dir=next',
        f'/api/find?q=&where=mb:1&from=0&{part}',
        '/api/histogram?name_ids=0', '/api/histogram?q=f', f'/api/histogram?q=a&{window}&{part}',
        '/api/histogram?q=a&min=1000&max=10000000', *(f'/api/histogram?kind={kind}' for kind in kinds[:2]),
        '/api/flows', '/api/flows?limit=5', f'/api/flows?{part}&{window}',
        *(f'/api/counter?lane={lane}&n=40' for lane in counters[:2] or [0]),
        '/api/pipeline', '/api/pipeline?run=other', '/api/pipeline?run=nothing', '/api/pipeline/fixes', '/api/pipeline/fixes?run=other',
        f'/api/pipeline/what-if?scale=stage%3D1%2Cby%3D0.8&step={step}', f'/api/pipeline/what-if?fix=0&step={step}&dp=0',
        '/api/pipeline/what-if?schedule=zb-h1&micro_batches=8', '/api/pipeline/what-if?latency_ns=1000000',
        '/api/pipeline/what-if?scale=nonsense', '/api/answer', '/api/answer?name=nothing']
    for offer in offers['answers']:
        found.append(f'/api/answer?name={offer["name"]}')
        found.append(f'/api/answer?name={offer["name"]}&rows=apart')
        found += [f'/api/answer?name={offer["name"]}&page_of={table["name"]}&from=1' for table in offer['tables'][:1]]
    return found


def asked(server, target):
    """(status, type, body), once there is an answer."""
    end = time.monotonic() + SECONDS
    while True:
        status, headers, body = server.get(target)
        if status != 202 or time.monotonic() > end:
            return {'status': str(status).encode(), 'type': headers.get('content-type', '').encode(), name_of(target): body}
        time.sleep(0.02)


def name_of(target):
    return 'page' if target in ALONE else 'body'


def steady(target, answer, folder):
    """Without what says only how the reading went: how often the page could have looked before the run was whole, and
    in which folder each side ran."""
    if 'body' in answer:
        answer['body'] = answer['body'].replace(str(folder).encode(), b'FOLDER')
    if target in ('/api/status', '/api/events', '/api/run'):
        answer['body'] = re.sub(rb'"revision":\d+', b'"revision":0', answer['body'])
    return answer


def start(comparison, side, run):
    folder = comparison.scratch / side / 'served'
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / 'in').exists():
        (folder / 'in').symlink_to(comparison.scratch / 'in', target_is_directory=True)
    server = serving.Server(*run.split(), '--port', '0', '--quiet', program=comparison.programs[side], cwd=folder,
                            env=comparison.environment)
    return server, {'state': server.wait_ready().encode()}


def compare(comparison, only):
    for run in RUNS:
        servers, states = {}, {}
        try:
            for side in comparison.programs:
                servers[side], states[side] = start(comparison, side, run)
            comparison.take(comparison.compare(f'serve {run}', states['old'], states['new']))
            if b'failed' in (states['old']['state'], states['new']['state']):
                continue
            old = servers['old']
            offers = json.loads(old.get('/api/answers')[2])
            for target in questions(json.loads(old.get('/api/run')[2]), offers):
                if only in f'serve {run}: {target}':
                    answers = {side: steady(target, asked(server, target), comparison.scratch / side) for side, server in servers.items()}
                    label = f'serve {run}: {urllib.parse.unquote(target)}'
                    comparison.take(comparison.compare(label, answers['old'], answers['new']))
        finally:
            for server in servers.values():
                server.stop()
