"""Where figures are shown: each place gives {name of the figure: value} of a run, as it prints it.

A figure that a place does not show is absent; what is null there is None. Nothing here computes a figure: a place that shows a
share gives the share under "share:NAME", and the comparison divides.
"""
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BIN = os.environ.get('STAGELINE_BIN') or str(HERE.parents[1] / 'build/dev/stageline')
sys.path.insert(0, str(HERE.parent / 'server'))
sys.path.insert(0, str(HERE.parent / 'cli'))
PACKAGE = pathlib.Path(os.environ.get('STAGELINE_PACKAGE') or pathlib.Path(BIN).resolve().parent / 'python')
ENVIRONMENT = {**{k: v for k, v in os.environ.items() if not k.startswith('STAGELINE_')}, 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1', 'COLUMNS': '120'}


def stageline(*arguments):
    """Returns its output; None where this command has no answer for the run."""
    done = subprocess.run([BIN, *map(str, arguments)], capture_output=True, env=ENVIRONMENT, timeout=300)
    if b'has no flag' in done.stderr:
        sys.exit(done.stderr.decode())
    return done.stdout.decode('utf-8', 'replace') if done.returncode in (0, 1) else None


def answer(*arguments):
    printed = stageline(*arguments)
    return json.loads(printed) if printed else None


def known(pairs):
    return {name: value for name, value in pairs.items() if value is not None}


def figures(run):
    """The owner: every other place is compared with it."""
    return {f['name']: f['value'] for f in answer('info', run, '--figures', 'all', '--json')['figures']}


def asked(run, query):
    """Returns the rows of a query, as tuples."""
    return answer('sql', run, query, '--json')['rows']


def sql_figures(run):
    return dict(asked(run, 'SELECT name, value FROM figures'))


def by_name(run):
    """Asked for by name, each is computed alone."""
    told = answer('info', run, '--figures', 'step_period,ranks,part.compute', '--json')['figures']
    found = {f['name']: f['value'] for f in told}
    assert list(found) == ['step_period', 'ranks', 'part.compute'], found
    return found | dict(asked(run, "SELECT name, value FROM figures WHERE name IN ('steps_all', 'recording')"))


def sql(run):
    steps, ranks, usual, flaws, clock = asked(run, 'SELECT (SELECT count(DISTINCT step) FROM steps) AS steps, (SELECT count(*) FROM ranks) AS ranks, '
                  "(SELECT sum(is_outlier = 0) FROM steps) AS usual, "
                  "(SELECT count(*) FROM diagnostics WHERE name NOT LIKE 'clock.%') AS input, "
                  "(SELECT count(*) FROM diagnostics WHERE name LIKE 'clock.%') AS clock")[0]
    return known({'steps_all': steps, 'ranks': ranks, 'steps_no_outliers': usual, 'flaws_input': flaws, 'flaws_clock': clock})


def rows_of(told, table):
    return next((t['rows'] for t in told['tables'] if t['name'] == table), []) if told else []


def shares(parts, window):
    """Shares of idle time by cause, and of all of it, over all ranks. Without launches there are no causes."""
    if not window:
        return {}
    found = {'share:idle': sum(parts.values()) / window}
    return found | ({} if set(parts) <= {'unseen'} else {f'share:idle_cause.{cause}': ns / window for cause, ns in parts.items()})


def idle_tables(run):
    """The tables of both analyses; their window is the same."""
    free = answer('analyze', 'free-analysis', run, '--top', '0', '--format', 'json')
    window = sum(row['window_ns'] for row in rows_of(free, 'free-time'))
    found = []
    for told, table, key in ((free, 'free-reasons', 'sum_ns'), (answer('analyze', 'idle-time-breakdown', run, '--format', 'json'), 'device-idle', 'idle_ns')):
        parts = {}
        for row in rows_of(told, table):
            parts[row['cause']] = parts.get(row['cause'], 0) + row[key]
        found.append(shares(parts, window))
    assert found[0] == found[1], f'{run}: free-analysis has {found[0]}, idle-time-breakdown {found[1]}'
    return found[0]


def sql_gaps(run):
    """Without what each gap's other causes have: the sum alone."""
    free = answer('analyze', 'free-analysis', run, '--top', '0', '--format', 'json')
    window = sum(row['window_ns'] for row in rows_of(free, 'free-time'))
    return {'share:idle': (asked(run, 'SELECT sum(dur_ns) FROM gaps()')[0][0] or 0) / window} if window else {}


def pipeline_summary(run):
    """Its steps without outliers: the mean of their shares is the figure."""
    told = answer('analyze', 'pipeline-summary', run, '--table', 'steps', '--format', 'json')
    outliers = {step for step, in asked(run, 'SELECT step FROM steps WHERE is_outlier')} if told else set()
    usual = [row['span_bubble_share'] for row in rows_of(told, 'steps') if row['step'] not in outliers and row['span_bubble_share'] is not None]
    return {'bubble': sum(usual) / len(usual)} if usual else {}


def report(run, folder):
    """Reads explain's answer and the glossary from a report."""
    from support import page_answer
    page = pathlib.Path(folder) / 'page.html'
    if stageline('report', run, '-o', page, '--force') is None:
        return {}
    told, found = page_answer(page, 'explain'), page_answer(page, 'figures')
    return of_explanation(told) | {f['name']: f['value'] for f in found['figures'] if not f['why_unknown']}


def of_explanation(told):
    found = {'steps_usual': told['steps'] or None, 'step_period': told['step_ns'] or None, 'step_period_all': told['period_ns'] or None}
    found |= {'lost': told['lost_ns'] if told['step_ns'] else None}
    found |= {f'share:part.{part["id"]}': part['share'] for part in told['parts']}
    for part in told['account']:
        found['left.' + part['id'] + ('.' + part['name'] if part['name'] else '')] = part['ns']
    for number, finding in enumerate(told['findings'], 1):
        found[f'finding.{number}.lost'] = finding['lost_ns']
        found[f'finding.{number}.saving'] = finding['saving_ns'] or None
        named = [name for name in finding['figures'] if name.startswith('finding.')]
        assert named == [name for name in (f'finding.{number}.lost', f'finding.{number}.saving') if found[name] is not None], finding['figures']
    return found


def explain_json(run):
    return of_explanation(answer('explain', run, '--json'))


def links_told(run):
    """The links that causes are told of, one for each cause and direction: (from stage, to stage, replica)."""
    places = [p for f in answer('explain', run, '--json')['findings'] if f['key'].startswith('link:') for p in f['places'] if p['kind'] == 'link']
    both = [{**p, 'from_stage': p['stage'], 'stage': p['from_stage']} for p in places if p.get('both_ways')]
    return [(p['from_stage'], p['stage'], p.get('replica')) for p in places + both]


def explain_text(run):
    """The bars, to the tenth of a percent that is printed; all bars of one group add up to 100.0."""
    text = stageline('explain', run)
    groups = [[]]
    for line in text.splitlines():
        bar = re.match(r' +(−?\d+\.\d)\u202f% {2}\S', line)
        if bar:
            groups[-1].append(float(bar[1].replace('−', '-')))
        elif groups[-1]:
            groups.append([])
    return {f'bars:{number}': sum(group) for number, group in enumerate(groups) if group}


def info(run):
    told = answer('info', run, '--json')
    return {'ranks': told['ranks'], 'steps_all': told['steps'], 'recording': told['end_ns'] - told['start_ns'] or None,
            'flaws_input': len(told['diagnostics'])}


def waterfall(run):
    told = answer('analyze', 'waterfall', run, '--table', 'waterfall', '--format', 'json')
    rows = {row['part']: row['mean_ns'] for row in told['tables'][0]['rows']} if told else {}
    if 'period' not in rows:
        return {}
    if 'part.waiting' in figures(run):  # the bar of a run with missing rows is not split
        return {'step_period_no_outliers': rows['period']}
    always = {'compute': 'compute', 'schedule bubble': 'bubble', 'stage imbalance': 'imbalance', 'jitter': 'jitter', 'message latency': 'message',
              'late starts': 'rest'}
    found = {'part.' + bar: rows[row] for row, bar in always.items()}
    found |= {'part.replicas': rows.get('waiting for other replicas') or None, 'part.between': rows.get('between steps') or None}
    return known({'step_period_no_outliers': rows['period']} | found)


def what_if(run):
    told = answer('what-if', run, '--json')
    base = {table['name']: table['rows'] for table in told['tables']}['what-if-base'][0] if told else {}
    return known({'step_period_no_outliers': base.get('recorded_ns'), 'steps_no_outliers': base.get('steps')})


def diff(run):
    """Compares a run with itself."""
    told = answer('diff', run, run, '--json')
    rows = {table['name']: table['rows'] for table in told['tables']}.get('diff-runs', []) if told else []
    return known({'step_period_all': rows[0]['step_ns']}) if rows else {}


def history(run, folder):
    kept = pathlib.Path(folder) / 'history.db'
    kept.unlink(missing_ok=True)
    if stageline('history', 'add', run, '--db', kept) is None:
        return {}
    told = answer('history', 'list', '--db', kept, '--json')['runs'][0]
    return {'step_period': told['step_ns'], 'steps_usual': told['steps']}


def python(run):
    """Asked for by name, one at a time: what is computed lazily is the same."""
    if str(PACKAGE) not in sys.path:
        sys.path.insert(0, str(PACKAGE))
    import warnings

    import stageline as package
    warnings.simplefilter('ignore')  # flaws of the fixtures
    trace = package.open(str(run), progress=False)
    found = {name: trace.figures[name].value for name in trace.figures}
    told = trace.explain()
    found |= {'lost': told.lost_ns if told.step_ns else None, 'step_period': told.step_ns or None, 'steps_usual': told.steps or None}
    return found


def settled(server, path):
    """The answer, once it is made."""
    while (answered := server.get(path))[0] == 202:
        time.sleep(0.05)
    return answered


def view(run):
    """Returns the figures that the server sends to the page."""
    from serving import Server
    server = Server(str(run), '--port', '0', '--quiet')
    try:
        server.wait_ready()
        status, _, body = settled(server, '/api/explain')
        if status != 200:
            return {}
        _, _, figures = settled(server, '/api/figures')
        return of_explanation(json.loads(body)) | {f['name']: f['value'] for f in json.loads(figures)['figures'] if not f['why_unknown']}
    finally:
        server.stop()


def page_table(lines):
    """Rows of docs/figures.md by name."""
    return {row[1].strip(' `'): [cell.strip() for cell in row[2:5]] for row in csv.reader(io.StringIO('\n'.join(lines)), delimiter='|') if len(row) > 5}
