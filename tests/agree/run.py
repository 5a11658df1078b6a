#!/usr/bin/env python3
"""One figure, one number: every place that shows a figure of a run shows the same value. One link, one cause: no two findings are of the same messages.

  run.py [--shared[=PART/OF]] [--verbose] [PATH…]

Each fixture of tests/golden and some simulated and generated runs are asked of every place (places.py); with --shared also every input of
../shared/data (skipped with a count where it is absent). A figure of one name must be one number. Whole numbers agree to the digit,
times to the nanosecond that rounding leaves, shares of a bar to 1e-9 of the step, printed bars to 100.0. There is no list of
exceptions: two numbers that differ rightly need two names. docs/figures.md is checked to be the list; --write-page makes it.
"""
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import places

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'gen'))
import gloo_pipeline  # noqa: E402
GOLDEN = HERE.parent / 'golden'
SHARED = HERE.parents[2] / 'shared' / 'data'
PAGE = HERE.parents[1] / 'docs' / 'figures.md'
# Runs with what the fixtures lack: a slow stage, time between steps, long steps, replicas, clocks that are off.
SIMULATED = {
    'plain': ['1f1b', '--steps', '4'],
    'slow-stage': ['1f1b', '--stages', '3', '--micro-batches', '6', '--fault', 'slow-stage:2,1.5', '--fault', 'slow-step:3,2', '--optimizer', '5', '--steps', '8'],
    'slow-rank': ['1f1b', '--dp', '2', '--fault', 'slow-rank:5,1.5', '--latency', '0.5', '--jitter', '0.02', '--steps', '8'],
    'vpp': ['vpp', '--stages', '2', '--micro-batches', '4', '--latency', '2', '--jitter', '0.1', '--steps', '6'],
    'pauses': ['1f1b', '--dp', '2', '--fault', 'gc:40ms,0.01', '--jitter', '0.05', '--steps', '20', '--optimizer', '4', '--reduce', '3'],
    'skew': ['1f1b', '--machines', '2', '--clock-skew', '5', '--steps', '4'],
    'zb': ['zb-h1', '--stages', '4', '--micro-batches', '8', '--steps', '5', '--jitter', '0.05'],
}
# Pipelines of torch on hosts alone, whose messages are late by chance (tests/gen/gloo_pipeline.py).
GENERATED = {
    'late-wakes-2': {'stages': 2, 'wake': 8.0, 'seed': 1},
    'late-wakes-3': {'stages': 3, 'wake': 8.0, 'seed': 2, 'fault': 'link:0,4'},
}
SIMPLE = (places.sql_figures, places.by_name, places.sql, places.explain_json, places.explain_text, places.info, places.waterfall, places.what_if, places.diff,
          places.view, places.idle_tables, places.sql_gaps, places.pipeline_summary)


def fixtures():
    return sorted(path for path in (GOLDEN / 'readers').glob('*/input') if any(path.iterdir()))


def shared_inputs():
    """Files and folders of ../shared/data; those that no reader takes are counted as skipped."""
    tops = ('paddle', 'kineto', 'kineto/hta', 'pipeline_ops', 'pipeline_ops/bytedance', 'faults/pipelines', 'sources', 'sources/*', 'ascend', 'kineto/hta/critical_path',
            'imports', 'imports/*', 'faults/files/*', 'faults/files/*/input', 'faults/paddle_ascend', 'faults/frameworks', 'faults/torch_runs')
    found = [path for top in tops for path in sorted(SHARED.glob(top + '/*')) if path.is_dir() or path.suffix not in ('.md', '.tsv', '.py', '.txt')]
    found = [path for path in found if 'faults/files' not in str(path) or path.name == 'input' or path.parent.name == 'input' and path.is_dir()]
    # A truth next to a run does not count as a run, and 'healthy' twins are runs of their own.
    return [path for path in dict.fromkeys(found) if not path.name.startswith('truth')]


def same(name, owner, value, owned):
    """Returns the error, or ''."""
    if name.startswith('bars:'):
        return '' if abs(value - 100) < 0.05 else f'printed bars add up to {value:.1f}'
    if name.startswith('share:'):
        whole, part = owned.get('step_period_no_outliers'), owner.get(name[6:])
        return '' if whole is None or part is None or abs(value * whole - part) <= 1e-9 * whole + 1e-6 else f'{value * whole} of {part}'
    if name not in owner:
        return 'no figure of this name' if value is not None else ''
    kept = owner[name]
    if kept is None or value is None:
        return '' if kept is None and value is None else f'{value}, the figure is {kept}'
    # The waterfall rounds its parts so that they add up.
    return '' if abs(value - kept) <= (1 if name.startswith('part.') else 0.5) + 1e-9 else f'{value}, the figure is {kept}'


def asks_python():
    """Whether the package is built. Where the build says that it is (STAGELINE_PACKAGE), it has to be there."""
    built = list((places.PACKAGE / 'stageline').glob('_engine*.so'))
    if not built and 'STAGELINE_PACKAGE' in os.environ:
        sys.exit(f'{places.PACKAGE}/stageline has no _engine: Python cannot be asked')
    return bool(built)


def compare(label, run, folder):
    """Sentences: what disagrees, and how many numbers were compared."""
    printed = places.stageline('info', run, '--figures', 'all', '--json')
    if printed is None:
        return [], 0
    told = json.loads(printed)['figures']
    owner = {f['name']: f['value'] for f in told}
    wrong, count = [f'{label}: {name} is the name of several figures' for name in owner if sum(f['name'] == name for f in told) > 1], 0
    asked = [*SIMPLE, lambda run: places.history(run, folder), lambda run: places.report(run, folder)]
    if asks_python():
        asked.append(places.python)
    for place in asked:
        place_name = place.__name__.replace('<lambda>', 'history or report')
        for name, value in place(run).items():
            count += 1
            flaw = same(name, owner, value, owner)
            if flaw:
                wrong.append(f'{label}: {name}: {place_name} has {flaw}')
    # One link has one cause: no two findings are of the same messages.
    links = places.links_told(run)
    count += len(links)
    wrong += [f'{label}: two findings are of messages from stage {a[0]} to stage {a[1]}' for k, a in enumerate(links) for b in links[:k]
              if a[:2] == b[:2] and (a[2] is None or b[2] is None or a[2] == b[2])]
    # Parts of a whole add up to it.
    for family, whole in (('part.', 'step_period_no_outliers'),):
        parts = [value for name, value in owner.items() if name.startswith(family) and value is not None]
        if parts and owner.get(whole):
            count += 1
            if abs(sum(parts) - owner[whole]) > 1e-6 * owner[whole]:
                wrong.append(f'{label}: {family}* add up to {sum(parts)}, {whole} is {owner[whole]}')
    return wrong, count


def page_lines(figures):
    """The table of docs/figures.md, from the program's own list."""
    unit = {'ns': 'ns', 'share': 'share', 'ratio': 'ratio', '': 'count'}
    families = {f['name'].split('.')[0] for f in figures if '.' in f['name']}
    seen, lines = set(), ['| Figure | Unit | Of | Definition |', '|---|---|---|---|']
    for f in figures:
        stem = f['name'].split('.')[0]
        if stem in seen or f['why_unknown'] and stem in families:
            continue
        seen.add(stem)
        name = stem if stem not in families else stem + '.NAME' if stem != 'finding' else 'finding.N.lost, finding.N.saving'
        lines.append(f'| `{name}` | {unit[f["unit"]]} | {f["base"]["en"]} | {f["definition"]["en"]} |')
    return lines


def check_page(*runs):
    """Uses several runs, because a run may lack members of a family."""
    figures = [f for run in runs for f in json.loads(places.stageline('info', run, '--figures', 'all', '--json'))['figures']]
    text = PAGE.read_text()
    head, _, rest = text.partition('<!-- figures -->\n')
    _, _, tail = rest.partition('<!-- end of figures -->')
    expected = head + '<!-- figures -->\n' + '\n'.join(page_lines(figures)) + '\n<!-- end of figures -->' + tail
    if '--write-page' in sys.argv:
        PAGE.write_text(expected)
    return [] if text == expected or '--write-page' in sys.argv else ['docs/figures.md is not the list; run.py --write-page makes it']


def main():
    wrong, count, skipped = [], 0, 0
    named = [pathlib.Path(word) for word in sys.argv[1:] if not word.startswith('--')]
    with tempfile.TemporaryDirectory() as folder:
        runs = {str(path): path for path in named}
        if not named:
            runs = {path.parent.name: path for path in fixtures()}
            for name, arguments in SIMULATED.items():
                runs['sim:' + name] = pathlib.Path(folder) / name
                subprocess.run([places.BIN, 'simulate', *arguments, '-o', runs['sim:' + name]], check=True, env=places.ENVIRONMENT,
                               capture_output=True)
            for name, arguments in GENERATED.items():
                runs['gen:' + name] = pathlib.Path(folder) / name
                gloo_pipeline.write(runs['gen:' + name], gloo_pipeline.make(**arguments)[0])
            wrong += check_page(runs['sim:slow-rank'], GOLDEN / 'readers/kineto/input')
            part, of = next(([int(n) for n in word[9:].split('/')] for word in sys.argv if word.startswith('--shared=')), (1, 1))
            if any(word.startswith('--shared') for word in sys.argv):
                if SHARED.is_dir():
                    runs |= {str(path.relative_to(SHARED)): path for path in shared_inputs()[part - 1::of]}
                    for packed in sorted(SHARED.glob('ascend/modes/*/input.tar.xz'))[part - 1::of]:
                        runs[str(packed.relative_to(SHARED))] = opened = pathlib.Path(folder) / packed.parent.name
                        with tarfile.open(packed) as files:
                            files.extractall(opened, filter='data')
                else:
                    skipped = 1
        os.chdir(folder)
        for label, run in runs.items():
            found, compared = compare(label, run, folder)
            if '--verbose' in sys.argv:
                print(label, compared, *found, sep='\n  ', flush=True)
            wrong += found
            count += compared
            skipped += compared == 0
    for line in wrong:
        print(line)
    print(f'agree: {count} numbers of {len(runs)} runs compared, {len(wrong)} disagree, {skipped} skipped' + ('' if asks_python() else ', Python not built and not asked'))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
