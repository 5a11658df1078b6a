#!/usr/bin/env python3
"""The skill's reference pages from what the program says of itself: skill.py STAGELINE writes them, --check says whether they are as it says."""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / 'skills/stageline/reference'
RUN = ROOT / 'tests/golden/readers/kineto-pipeline/input'


def sql(program, query):
    done = subprocess.run([program, 'sql', RUN, query, '--format', 'json', '-q'], capture_output=True, check=True)
    return json.loads(done.stdout)['rows']


def sql_page(program):
    lines = ['# Tables, columns and functions of SQL', '',
             'The language is SQLite\'s. Times are ns from the run\'s first slice. *Arguments* come by place, `gaps(0)`, or by name, `WHERE of_rank = 0`. Every table of every analysis is there as',
             '`ANALYSIS__TABLE` with `_` for `-` ([analyses](analyses.md)); `columns(\'NAME\')` lists its columns.', '']
    columns = {}
    for table, name, unit, option, text in sql(program, 'SELECT table_name, name, unit, is_option, help FROM columns'):
        columns.setdefault(table, []).append((name, unit, option, text))
    for name, kind, text in sql(program, 'SELECT name, kind, help FROM tables'):
        if kind == 'analysis':
            continue
        if name not in columns:
            lines.append(f'- `{name}`: {text}')
            continue
        if lines[-1] != '':
            lines.append('')
        lines += [f'## {name}', '', text, '']
        lines += [f'- {"*" if option else ""}`{column}`{"*" if option else ""}{f" ({unit})" if unit else ""}: {words}' for column, unit, option, words in columns[name]]
        lines.append('')
    return '\n'.join(lines).rstrip() + '\n'


def analyses_page(program):
    help_text = subprocess.run([program, 'help', 'analyses'], capture_output=True, check=True, env={'COLUMNS': '100000', 'LC_ALL': 'C.UTF-8'}).stdout.decode()
    lines = ['# Analyses', '', '`ask {trace, analysis, table, options}`, `stageline analyze NAME RUN --format json`, or in SQL `NAME__TABLE`: three ways to run one. `stageline help NAME` lists its options, `SELECT * FROM columns(\'NAME__TABLE\')` its columns, without running it.', '']
    name, words = '', []

    def flush():
        if name:
            summary, _, tables = ' '.join(words).rpartition(' Tables: ')
            lines.append(f'- `{name}`: {summary} Tables: {", ".join(f"`{t.strip()}`" for t in tables.split(","))}.')

    for line in help_text.splitlines():
        start = re.match(r'  (\S+)(?: +(.*))?$', line)
        if start and not line.startswith('   '):
            flush()
            name, words = start[1], [start[2]] if start[2] else []
        elif line.startswith('   ') and name:
            words.append(line.strip())
    flush()
    return '\n'.join(lines) + '\n'


def reasons_page():
    lines = ['# Why a run cannot say something', '', 'An answer of `stageline mcp` may be `{cannot_answer: true, reason, why, what_would_help}`. `why` is the case at hand; these are all reasons:', '',
             '| reason | it means | what would help |', '|---|---|---|']
    for reason, (meaning, text) in json.loads((ROOT / 'src/mcp/words.json').read_text())['reasons'].items():
        lines.append(f'| `{reason}` | {meaning} | {text} |')
    return '\n'.join(lines) + '\n'


def main(program, check):
    pages = {'sql.md': sql_page(program), 'analyses.md': analyses_page(program), 'cannot_answer.md': reasons_page()}
    stale = [name for name, text in pages.items() if not (FOLDER / name).is_file() or (FOLDER / name).read_text() != text]
    if not check:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (FOLDER / name).write_text(text)
    elif stale:
        print(f'not what the program says: {", ".join(stale)}; python3 tools/skill.py STAGELINE writes them')
    return check and bool(stale)


if __name__ == '__main__':
    sys.exit(main([a for a in sys.argv[1:] if a != '--check'][0], '--check' in sys.argv))
