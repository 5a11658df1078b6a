#!/usr/bin/env python3
"""Is a run slower than another one, or than those before it? What the GitHub Action runs (action.yml), for any CI.

    gate.py RUN --baseline OTHER --budget 3%           two runs
    gate.py RUN --history steps.sqlite --label COMMIT  a run with those that the history holds; the run is added

Writes comment.md, report.html and, of a pipeline, pipeline.svg to --out. Exits 0 within the budget, 1 above it. If noise allows no
conclusion, it says why and exits 0, or 3 with --fail-without-conclusion. An error exits 2. docs/howto/ci.md describes it.
"""
import argparse
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import sqlite3
import statistics
import subprocess
import sys
import urllib.error
import urllib.request

MARK = '<!-- stageline: {} -->'
SURE = 2.58  # standard errors on each side that hold 99 % of what chance makes of a mean
# docs/reference/history.md: of shifts by this many standard deviations of runs, after the 30th of 60, 96 % are found.
FOUND, FOUND_RUNS = 1.5, 60
BAR = 24
PASS, FAIL, UNDECIDED = 'pass', 'fail', 'no-conclusion'
HEADS = {PASS: '✅ Within the budget', FAIL: '❌ Slower than the budget allows', UNDECIDED: '⚠️ No conclusion'}


class Failed(Exception):
    pass


def call(program, *words, allowed=(0,)):
    done = subprocess.run([*program, *map(str, words)], capture_output=True, text=True)
    if done.returncode not in allowed:
        raise Failed(f'{shlex.join(map(str, words))}: {(done.stderr or done.stdout).strip()[-2000:]}')
    return done


def answer(program, *words, allowed=(0,)):
    done = call(program, *words, '--format', 'json', '--quiet', allowed=allowed)
    return json.loads(done.stdout), done.returncode


def share(text):
    found = re.fullmatch(r'\s*(\d+(?:\.\d+)?)\s*%\s*', text)
    if not found:
        raise argparse.ArgumentTypeError(f'{text} is not a percentage such as 3%')
    return float(found[1]) / 100


def percent(value, signed=False):
    return f'{100 * value:{"+" if signed else ""}.2f} %'


def plain(text):
    """Text of a run as Markdown that shows it and nothing else: no markup, link, mention or line of its own."""
    return re.sub(r'[\\`*_{}\[\]<>#|@!~&$]|:(?=//)|\.(?<=www\.)', lambda m: f'&#{ord(m[0])};', ' '.join(str(text).split()), flags=re.I)


def column(values, total, digits):
    """Numbers as texts that add up as printed to that of the total: the last one takes what rounding leaves."""
    rounded = [round(value, digits) for value in values[:-1]]
    end = round(total, digits)
    return [f'{value:+.{digits}f}' for value in [*rounded, end - sum(rounded)]], f'{end:+.{digits}f}'


def bars(named, total):
    """The deltas as a picture of characters: each bar begins where the one before it ended, the last one is the sum."""
    points, at = [0], 0
    for _, value in named:
        at += value
        points.append(at)
    low, high = min(points), max(points)
    if high == low:
        return ''
    where = lambda value: round((value - low) / (high - low) * BAR)
    width = max(len(name) for name, _ in [*named, ('together', 0)])
    lines, at = [], 0
    for name, value, begin in [*((name, value, None) for name, value in named), ('together', total, 0)]:
        begin = at if begin is None else begin
        left, right = sorted((where(begin), where(begin + value)))
        lines.append(f'{name:<{width}}  {" " * left}{("█" if value > 0 else "░") * max(right - left, 1):<{BAR - left + 1}} {value / 1e6:+.2f} ms')
        at = begin + value
    return '```text\n' + '\n'.join(lines) + '\n```\n'


def label_of(row):
    return row['en'].split(':')[0]


def compare(program, run, baseline, budget):
    """(verdict, reason, lines of Markdown, figures) of two runs."""
    said, code = answer(program, 'diff', baseline, run, '--fail-on', f'{100 * budget:g}%', allowed=(0, 1))
    runs = {row['run']: row for row in next(table for table in said['tables'] if table['name'] == 'runs')['rows']}
    change, error, base = said['change_ns'], said['error_ns'], runs['a']['step_ns']
    figures = {'change_share': said['change_share'], 'error_share': error / base if error is not None and base else None, 'beyond_noise': said['beyond_noise']}
    rows = said['changes'] if change or any(row['effect_ns'] for row in said['changes']) else []
    if abs(sum(row['effect_ns'] for row in rows) - change) > len(rows):
        raise Failed(f'the rows of diff do not add up: {sum(row["effect_ns"] for row in rows)} ns of {change} ns')
    lines = [plain(said['headline_en'] + (f'. Main cause: {said["cause_en"]}' if said['cause_en'] else '')) + '.', '']
    if rows:
        digits = min(max(0, 3 - math.floor(math.log10(max(abs(change), *(abs(row['effect_ns']) for row in rows)) / 1e6))), 6)
        took, together = column([row['effect_ns'] / 1e6 for row in rows], change / 1e6, digits)
        shares, of_step = column([100 * row['effect_share'] for row in rows], 100 * said['change_share'], 2)
        lines += ['| change of each step | ms | of the baseline\'s step |', '| --- | ---: | ---: |']
        lines += [f'| {plain(row["en"])} | {text} | {of} % |' for row, text, of in zip(rows, took, shares)]
        lines += [f'| **together** | **{together}** | **{of_step} %** |', '']
        lines += [bars([(re.sub('[`\n]', ' ', label_of(row))[:40], row['effect_ns']) for row in rows], change)]
    if said['differences']:
        lines += ['The runs differ in what they are: ' + plain('; '.join(one['en'] if isinstance(one, dict) else str(one) for one in said['differences'])) + '.', '']
    steps = min(row['steps'] for row in runs.values())
    off = SURE * error / base if error is not None and base else None
    if code == 1:
        return FAIL, f'Steps are {percent(said["change_share"])} slower; the budget is {percent(budget)}.', lines, figures
    if off is None or steps < 3:
        return UNDECIDED, f'{steps} step{"" if steps == 1 else "s"} of a run cannot show how much steps differ by chance: record at least 3 of each run.', lines, figures
    if said['change_share'] > budget or off >= budget:
        # The error falls with the root of the number of steps. It should be half of what is to be seen.
        aim = budget / 2 if off >= budget else said['change_share'] / 2
        more = math.ceil(steps * (off / aim) ** 2) if aim > 0 else None
        wish = f' Record about {more} steps of each run.' if more else ''
        seen = f'Steps are {percent(said["change_share"], True)} different, ± {percent(off)} by chance: this cannot show whether a budget of {percent(budget)} is kept.'
        return UNDECIDED, seen + wish, lines, figures
    return PASS, f'Steps changed by {percent(said["change_share"], True)} ± {percent(off)}; the budget is {percent(budget)}.', lines, figures


def newer_than(history, label, to):
    """A copy of a history from the first run with this label on: what was before it has been accepted."""
    shutil.copy(history, to)
    with sqlite3.connect(to) as file:
        first = file.execute('select min(id) from runs where label = ?', (label,)).fetchone()[0]
        if first is None:
            raise Failed(f'{history}: no run has the label {label}')
        file.execute('delete from parts where run < ?', (first,))
        file.execute('delete from runs where id < ?', (first,))
    file.close()
    return to


def among(program, history, budget):
    """(verdict, reason, lines of Markdown, figures) of the newest run among those before it."""
    said, _ = answer(program, 'history', 'check', '--db', history, allowed=(0, 1))
    runs, changes = said['runs'], said['changes']
    lines, figures = [], {'runs': len(runs), 'changes': changes}
    if len(runs) < 12:
        return UNDECIDED, f'{len(runs)} of at least 12 runs are in the history: with fewer, noise alone looks like a change.', lines, figures
    last = changes[-1] if changes else None
    level = [row['step_ns'] for row in runs if last is None or row['run'] >= last['run']]
    mean, off = statistics.fmean(level), statistics.stdev(level) if len(level) > 1 else 0.0
    smallest = FOUND * off / mean * math.sqrt(FOUND_RUNS / len(level))
    figures.update(spread_share=off / mean, smallest_share=smallest)
    low, high = min(row['step_ns'] for row in runs), max(row['step_ns'] for row in runs)
    begun = {change['run'] for change in changes}
    drawn = [f'{row["run"]:>6}  {row["step_ns"] / 1e6:>10.2f} ms  |{" " * round((row["step_ns"] - low) / ((high - low) or 1) * BAR)}{"●" if row["run"] in begun else "*"}'
             for row in runs[-40:]]
    lines += ['```text', *drawn, '```', '']
    for change in changes[-5:]:
        lines.append(f'- since run {change["run"]} ({plain(change["label"])}): {percent(change["change_share"], True)}, {change["before_ns"] / 1e6:.2f} → '
                     f'{change["after_ns"] / 1e6:.2f} ms' + (f'; largest part: {plain(change["part"])}, {change["part_ns"] / 1e6:+.2f} ms' if change.get('part') else ''))
    lines += [''] if changes else []
    if last and last['change_share'] > budget:
        return FAIL, f'Since run {last["run"]} ({plain(last["label"])}), steps are {percent(last["change_share"])} slower; the budget is {percent(budget)}.', lines, figures
    seen = f'Runs on the same code differ by {percent(off / mean)} (standard deviation of {len(level)} runs); shifts from about {percent(smallest)} on are found.'
    if 0 < budget < smallest:
        return UNDECIDED, f'{seen} A budget of {percent(budget)} is below that: record longer, on the same machines, or more runs.', lines, figures
    return PASS, f'No change to slower steps above {percent(budget)} among {len(runs)} runs. {seen}', lines, figures


def findings(program, run, baseline):
    """Returns the findings of the run now, and which of them the baseline did not have."""
    now = answer(program, 'explain', run)[0]
    before = {finding['key'] for finding in answer(program, 'explain', baseline)[0]['findings']} if baseline else None
    lines = []
    for finding in now['findings'][:5]:
        lost = f' – costs {percent(finding["lost_share"])}' if finding.get('lost_share') else ''
        lines.append(f'1. {plain(finding["title_en"])}{lost}{" (new)" if before is not None and finding["key"] not in before else ""}')
    return lines or ['No problem found.'], now


def pictures(program, run, baseline, out):
    made = []
    for name, words in (('report.html', ['report', run, *(['--compare', baseline] if baseline else [])]), ('pipeline.svg', ['export', run])):
        done = subprocess.run([*program, *map(str, words), '-o', str(out / name), '--force', '--quiet'], capture_output=True, text=True)
        if done.returncode == 0 and (out / name).exists():
            made.append(name)
    return made


def post(comment, mark, repository, number, token, api):
    """Puts the comment on a pull request, in the place of the one with the same mark."""
    def ask(method, address, body=None):
        request = urllib.request.Request(address, method=method, data=json.dumps(body).encode() if body else None, headers={
            'Authorization': f'Bearer {token}', 'Accept': 'application/vnd.github+json', 'Content-Type': 'application/json'})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)
    base, old = f'{api}/repos/{repository}/issues', None
    for page in range(1, 100):
        found = ask('GET', f'{base}/{number}/comments?per_page=100&page={page}')
        old = next((one['id'] for one in found if one['body'].startswith(mark)), old)
        if old is not None or len(found) < 100:
            break
    ask(*(('PATCH', f'{base}/comments/{old}') if old else ('POST', f'{base}/{number}/comments')), {'body': comment})


def write_github(verdict, figures, comment, out):
    """The outputs, the summary and the annotation of a step of GitHub Actions."""
    if target := os.environ.get('GITHUB_OUTPUT'):
        with open(target, 'a') as file:
            file.write(f'verdict={verdict}\ncomment={out / "comment.md"}\nchange={figures.get("change_share", "")}\n')
    if target := os.environ.get('GITHUB_STEP_SUMMARY'):
        with open(target, 'a') as file:
            file.write(comment)


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('run', type=pathlib.Path)
    parser.add_argument('--baseline', type=pathlib.Path, help='the run to compare with')
    parser.add_argument('--history', type=pathlib.Path, help='an SQLite file of stageline history; the run is added to it')
    parser.add_argument('--label', default=os.environ.get('GITHUB_SHA', '')[:12], help='label of the run in the history')
    parser.add_argument('--since', default='', help='label of a run: what changed before it was accepted')
    parser.add_argument('--budget', type=share, default=0.03, help='steps may be this much slower than those of the baseline; default 3%%')
    parser.add_argument('--history-budget', type=share, default=0.0, help='the same of a lasting change among runs; default 0%%, any')
    parser.add_argument('--fail-without-conclusion', action='store_true')
    parser.add_argument('--title', default='Step time')
    parser.add_argument('--out', type=pathlib.Path, default=pathlib.Path('stageline-gate'))
    parser.add_argument('--program', default='stageline', help='the command that starts Stageline')
    parser.add_argument('--pull-request', default='', help='number of the pull request that gets the comment; GITHUB_TOKEN and GITHUB_REPOSITORY say where')
    asked = parser.parse_args(words)
    if not asked.baseline and not asked.history:
        parser.error('name a run to compare with (--baseline) or a history (--history)')
    program = shlex.split(asked.program)
    asked.out.mkdir(parents=True, exist_ok=True)
    try:
        parts = []
        if asked.baseline:
            parts.append(('Compared with the baseline', compare(program, asked.run, asked.baseline, asked.budget)))
        if asked.history:
            call(program, 'history', 'add', asked.run, '--db', asked.history, '--quiet', *(['--label', asked.label] if asked.label else []))
            looked_at = newer_than(asked.history, asked.since, asked.out / 'since.sqlite') if asked.since else asked.history
            parts.append(('Among the runs before it', among(program, looked_at, asked.history_budget)))
        listed, _ = findings(program, asked.run, asked.baseline)
        made = pictures(program, asked.run, asked.baseline, asked.out)
    except (Failed, OSError, ValueError, KeyError, sqlite3.Error) as error:
        print(f'gate: {error}', file=sys.stderr)
        return 2
    verdicts = [result[0] for _, result in parts]
    verdict = next(one for one in (FAIL, UNDECIDED, PASS) if one in verdicts)
    figures = {name: value for _, result in parts for name, value in result[3].items()}
    mark = MARK.format(re.sub(r'[^\w -]', '', asked.title))
    text = [mark, f'### {plain(asked.title)}: {HEADS[verdict]}', '']
    for head, (_, reason, lines, _) in parts:
        text += [f'**{head}.** {reason}', '', *lines]
    text += ['**What costs time in this run**', '', *listed, '', f'Files of this check: {", ".join(f"`{name}`" for name in ["comment.md", *made])}', '']
    comment = '\n'.join(text)
    (asked.out / 'comment.md').write_text(comment)
    (asked.out / 'verdict.json').write_text(json.dumps({'verdict': verdict, 'reasons': [result[1] for _, result in parts], **figures}, indent=1) + '\n')
    write_github(verdict, figures, comment, asked.out)
    print(comment)
    if asked.pull_request:
        try:
            post(comment, mark, os.environ['GITHUB_REPOSITORY'], int(asked.pull_request), os.environ['GITHUB_TOKEN'], os.environ.get('GITHUB_API_URL', 'https://api.github.com'))
        except (KeyError, ValueError, urllib.error.URLError) as error:
            # A pull request from a fork may write no comments; the check still counts.
            print(f'gate: the comment was not posted: {error!r}', file=sys.stderr)
    if verdict == UNDECIDED and os.environ.get('GITHUB_ACTIONS'):
        print('::warning title=Stageline::No conclusion: ' + ' '.join(result[1] for _, result in parts if result[0] == UNDECIDED))
    return 1 if verdict == FAIL else 3 if verdict == UNDECIDED and asked.fail_without_conclusion else 0


if __name__ == '__main__':
    sys.exit(main())
