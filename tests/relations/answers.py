"""The program's answer for a run, as flat facts {name: value}, and how two of its answers differ.

A fact's value is a number, a text, or a tuple of texts. `ns:` before a name marks a time in nanoseconds, `share:` a share of the step.
"""
import json
import os
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
BIN = os.environ.get('STAGELINE_BIN') or str(HERE.parents[1] / 'build/dev/stageline')
ENVIRONMENT = {**{k: v for k, v in os.environ.items() if not k.startswith('STAGELINE_')}, 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1', 'COLUMNS': '120'}
PROFILE = 'temporal-breakdown,comm-comp-overlap,gpu-kernel-breakdown,idle-time-breakdown'
PIPELINE = 'waterfall,pipeline-summary'
# The content of a run rather than its findings.
HELD = ('ranks', 'stages', 'replicas', 'chunks', 'micro_batches', 'schedule', 'steps', 'cells', 'slices', 'clock')


def stageline(*arguments, cwd=None):
    done = subprocess.run([BIN, *map(str, arguments)], capture_output=True, env=ENVIRONMENT, timeout=300, cwd=cwd)
    return done.returncode, done.stdout.decode('utf-8', 'replace'), done.stderr.decode('utf-8', 'replace')


def asked(cwd, *arguments):
    code, out, _ = stageline(*arguments, '-q', cwd=cwd)
    return json.loads(out) if code in (0, 1) and out.startswith('{') else None


def places(finding):
    return ' '.join(f'{p["kind"]}={p.get("name") or p.get("rank", p.get("stage", ""))}' for p in finding['places'])


def undated(text):
    """A moment that a sentence names belongs to the clock of the run, not to the answer."""
    return re.sub(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?', 'DATE', text)


def explained(told, facts):
    facts |= {'explain:steps': told['steps'], 'ns:step': told['step_ns'], 'ns:period': told['period_ns'], 'share:lost': told['lost_share'],
              'text:title': told['title_en'], 'text:lead': told['lead_en'], 'text:note': told['note_en'], 'text:why_not': told['why_not'] and str(told['why_not'])}
    for group in ('parts', 'device_parts', 'host_parts'):
        facts |= {f'share:{group}.{p["id"]}': p['share'] for p in told[group]}
    facts['findings'] = tuple(sorted({f['id'] for f in told['findings']}))
    seen = {}
    for f in told['findings']:
        number = seen[f['id']] = seen.get(f['id'], 0) + 1
        key = f'{f["id"]}.{number}'
        facts |= {f'ns:finding.{key}.lost': f['lost_ns'], f'ns:finding.{key}.saving': f['saving_ns'], f'share:finding.{key}': f['lost_share'],
                  f'place:{key}': f'{places(f)} rank={f["rank"]} step={f["step"]}', f'text:{key}.title': undated(f['title_en']), f'text:{key}.detail': undated(f['detail_en'])}


def problems(facts):
    return {name: text for name, text in facts.items() if name.startswith('problem:')}


def ask(path, *options, tables=True, explain=()):
    """Facts of a run; path is asked for by its own name, so that where it lies is in no text."""
    path = pathlib.Path(path)
    cwd, name = path.parent, path.name
    facts = {}
    code, out, err = stageline('explain', name, '--json', '-q', *options, *explain, cwd=cwd)
    if code in (0, 1) and out.startswith('{'):
        explained(json.loads(out), facts)
    else:
        facts['refused:explain'] = (err.strip().splitlines() or [f'exit {code}'])[0]
    info = asked(cwd, 'info', name, '--json', *options)
    if not info:
        return facts
    facts |= {f'info:{key}': info.get(key) for key in HELD}
    facts |= {f'kind:{kind}': count for kind, count in info.get('slices_by_kind', {}).items()}
    facts |= {f'problem:{d["name"]}': re.sub(r'\d+', '#', d['message']) for d in info.get('diagnostics', ())}
    figures = asked(cwd, 'info', name, '--figures', 'all', '--json', *options)
    for f in figures['figures'] if figures else []:
        facts[{'ns': 'ns:', 'share': 'share:'}.get(f['unit'], 'count:') + f['name']] = f['value']
    if tables:
        analyses = PIPELINE if info.get('cells') else PROFILE if info.get('device_streams') else ''
        told = asked(cwd, 'analyze', analyses, name, '--format', 'json', *options) if analyses else None
        for table in told['tables'] if told else []:
            for number, row in enumerate(table['rows']):
                for column, value in row.items():
                    if not re.match(r'(start|end|first|last)', column):
                        facts[f'{"ns:" if column.endswith("_ns") else "cell:"}{table["name"]}.{number}.{column}'] = value
    return facts


def differs(name, one, two, scale, share):
    if name.startswith('share:parts'):  # a part that an answer has not takes no time
        one, two = one or 0, two or 0
    if one == two:
        return False
    if isinstance(one, (int, float)) and isinstance(two, (int, float)) and not isinstance(one, bool):
        if name.startswith('ns:'):
            one, slack = one * scale, 3 * scale + share * abs(one * scale)
        elif name.startswith(('share:', 'cell:')):
            slack = max(share, 1e-6, 1e-6 * abs(one))
        else:
            slack = 1e-6 * abs(one) if isinstance(one, float) else 0
        return abs(one - two) > slack
    return True


def compare(one, two, ignore='', scale=1, share=1e-9, only=''):
    """Sentences: what the second answer says otherwise. `ignore` and `only` are patterns of names."""
    found = []
    for name in {**one, **two}:
        if ignore and re.match(ignore, name) or only and not re.match(only, name):
            continue
        if differs(name, one.get(name), two.get(name), scale, share):
            found.append(f'{name}: {one.get(name)!r} is {two.get(name)!r}'[:330])
    return found
