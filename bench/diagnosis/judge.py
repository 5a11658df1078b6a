#!/usr/bin/env python3
"""Judges answers: judge.py DIR/truth.jsonl ANSWERS.jsonl… prints one table, a column for each file of answers.

A line of ANSWERS is one incident: {"incident": "pipeline-007", "findings": [{"keys": ["stage:2"], "cost_share": 0.13, "text": "…"}]}, the most
costly finding first. Instead of cost_share it may have cost_ns, which is divided by the true period. Incidents that a file lacks were not for that tool, and count for nothing. docs/reference/diagnosis.md defines the rows."""
import fnmatch
import json
import pathlib
import statistics
import sys

NAMED, COUNTED = 0.02, 0.01  # a fault of this share must be named; a finding of this share counts
NEAR_SHARE, NEAR_POINTS = 0.15, 0.01


def lines(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines() if line]


def match(keys, patterns):
    return any(fnmatch.fnmatchcase(key, pattern) for key in keys for pattern in patterns)


def near(told, true):
    return abs(told - true) <= max(NEAR_POINTS, NEAR_SHARE * true)


def judge(truth, answer):
    """Returns the marks of one answer: counts by name."""
    findings = [{**one, 'cost_share': one['cost_ns'] / truth['period_ns'] if one.get('cost_ns') is not None else one.get('cost_share')} for one in answer['findings']]
    findings = [one for one in findings if one['cost_share'] is None or one['cost_share'] >= COUNTED]
    due = [fault for fault in truth['faults'] if fault['cost_share'] >= NAMED]
    out = {'incidents': 1, 'due': len(due), 'findings': len(findings), 'named': 0, 'area': 0, 'priced': 0, 'near': 0, 'errors': [], 'evidence': 0, 'evident': 0}
    for fault in due:
        hits = [one for one in findings if match(one['keys'], fault['keys'])]
        out['named'] += bool(hits)
        out['area'] += any(match(one['keys'], [*fault['keys'], *fault['also']]) for one in findings)
        costs = [one['cost_share'] for one in hits if one['cost_share'] is not None]
        out['priced'] += bool(costs)
        if costs:
            out['near'] += near(costs[0], fault['cost_share'])
            out['errors'].append(abs(costs[0] - fault['cost_share']))
        if fault['evidence']:
            out['evidence'] += 1
            out['evident'] += any(all(word in one.get('text', '') for word in fault['evidence']) for one in hits)
    heaviest = max((fault['cost_share'] for fault in due), default=0)
    first = [fault for fault in due if fault['cost_share'] >= heaviest / 2]
    out['first_asked'] = bool(first)
    out['first'] = bool(first and findings) and any(match(findings[0]['keys'], fault['keys']) for fault in first)
    fair = [pattern for fault in truth['faults'] for pattern in (*fault['keys'], *fault['also'])]
    out['false'] = sum(not match(one['keys'], fair) for one in findings)
    out['healthy'] = not truth['faults']
    out['alarmed'] = not truth['faults'] and bool(findings)
    return out


def share(part, whole):
    return f'{part} of {whole} ({100 * part / whole:.0f} %)' if whole else '–'


def rows(truths, answers):
    """[(row's name, value)] of one file of answers for these incidents."""
    known = {truth['incident']: truth for truth in truths}
    judged = [judge(known[answer['incident']], answer) for answer in answers if answer['incident'] in known]
    add = lambda name: sum(one[name] for one in judged)
    errors = [error for one in judged for error in one['errors']]
    return [('incidents', str(len(judged))), ('first finding right', share(add('first'), add('first_asked'))), ('faults of 2 % or more, named', share(add('named'), add('due'))),
            ('part of the step named', share(add('area'), add('due'))), ('named with a cost', share(add('priced'), add('due'))), ('named, cost within 1 point or 15 %', share(add('near'), add('due'))),
            ('error of the cost, median', f'{100 * statistics.median(errors):.1f} points' if errors else '–'),
            ('named with call, operator, line or rank', share(add('evident'), add('evidence'))), ('false findings', share(add('false'), add('findings'))),
            ('healthy runs with a finding', share(add('alarmed'), add('healthy')))]


def table(truths, files):
    """Returns Markdown with one table for each kind of input."""
    text = []
    for kind in dict.fromkeys(truth['kind'] for truth in truths):
        of_kind = [truth for truth in truths if truth['kind'] == kind]
        columns = {name: rows(of_kind, answers) for name, answers in files.items()}
        columns = {name: column for name, column in columns.items() if column[0][1] != '0'}
        if not columns:
            continue
        text += [f'| {kind} | ' + ' | '.join(columns) + ' |', '|---' * (1 + len(columns)) + '|']
        text += [f'| {column_rows[0][0]} | ' + ' | '.join(value for _, value in column_rows) + ' |' for column_rows in zip(*columns.values())]
        text.append('')
    return '\n'.join(text)


if __name__ == '__main__':
    print(table(lines(sys.argv[1]), {pathlib.Path(path).stem: lines(path) for path in sys.argv[2:]}))
