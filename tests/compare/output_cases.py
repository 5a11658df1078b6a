"""The commands whose outputs are compared, one line each; `in/` leads to the inputs of output_inputs.py."""
import dataclasses
import os
import re
import subprocess

from output_inputs import SIMULATED


@dataclasses.dataclass(frozen=True)
class Case:
    command: str
    copies: tuple = ()  # folders of the inputs that the command writes into: copied next to its outputs


# The commands that run on every input.
EVERYWHERE = ['info {}', 'info --json {}', 'explain {}', 'explain --format json {}', 'explain --lang zh {}', 'align {} --format json',
              'report {} -o report.html']
# … and in which forms it is exported.
EXPORTS = {'chrome': 'run.json', 'perfetto': 'run.pftrace', 'csv': 'run.csv', 'json': 'run.txt', 'sqlite': 'run.sqlite', 'svg': 'run.svg',
           'png': 'run.png', 'pdf': 'run.pdf', 'html': 'run.html'}
# Inputs that every analysis is asked on, in every form; the others' numbers come from explain, report and export.
ASKED = ['1f1b', '1f1b-clocks', 'vpp', 'zb-v', 'dualpipe', 'fixture/op-table', 'fixture/kineto', 'fixture/kineto-modules',
         'fixture/ascend-helper', 'made-ns', 'made-dp-pipeline', 'ascend-kernels', 'made-recorded-kernels']
FORMS = ['', ' --format json', ' --format csv']
PAIRS = [('1f1b-healthy', '1f1b'), ('1f1b', '1f1b-healthy'), ('vpp', 'bfs'), ('zb-v', 'zb-h2'), ('fixture/kineto', 'fixture/kineto-us'),
         ('made-dp-pipeline', 'made-pipeline'), ('1f1b-healthy', '1f1b-healthy')]
MORE = '''
info in/1f1b --ranks 0-3 --steps 1:2
info in/1f1b --stages 2
info in/1f1b/workerlog.0 in/1f1b/workerlog.1
info in/1f1b --range 100ms:300ms
info in/made-ns --range 10:30 --ranks 1
info in/fthenb --devices 0,1 --lang zh
info in/fthenb --reader paddle-log -o info.txt
info in/made-pipeline --cells off
info in/made-pipeline --cells inferred
info in/fixture/kineto-inferred --cells annotations
explain in/1f1b --fail-on 3%
explain in/1f1b-healthy --fail-on 3%
explain in/1f1b --ranks 4-7 --steps 1:
explain in/1f1b --range 50ms:400ms
explain in/1f1b-clocks --align never
explain in/1f1b-clocks --align always -q
explain in/1f1b-apart --trust-clocks
explain in/1f1b-apart --align-on 0:2:F0
explain in/1f1b --tp 2 --pp 2 --format json
explain in/dualpipe --threads 1
explain in/dualpipe --threads 4
explain in/made-ns --ranks 0,2 --steps 101:102
explain in/1f1b -o words.txt --color always
analyze pipeline-summary,waterfall,stragglers in/1f1b
analyze pipeline-summary,waterfall,stragglers in/1f1b --format json --lang zh
analyze pipeline-summary in/1f1b --table stages --format csv -o stages.csv
analyze pipeline-summary in/1f1b --ranks 0-3 --steps 2 --lang zh
analyze waterfall in/1f1b --range 100:400
analyze waterfall in/1f1b-clocks --align never --wide
analyze links in/zb-v --align always --rows 2
analyze links in/1f1b-apart --align-on 0:2:F0
analyze theory in/wrong-path
analyze schedule in/vpp --lang zh
analyze pipeline-critical-path in/zb-v --overlay marked.json
analyze critical-path-analysis in/made-ns --rank 0 --annotation ProfilerStep#101 --overlay marked.json
analyze critical-path-analysis in/fixture/kineto --annotation ProfilerStep#101 --compat hta --format csv
analyze get_idle_time_breakdown in/made-ns --compat hta --format json
analyze idle-time-breakdown in/made-ns --rank 1 --include-last-profiler-step
analyze operators in/made-python --rank 0 --format torch --sort-by self_cuda_time_total --row-limit 12
analyze operators in/fixture/kineto --group-by-input-shape true --group-by-stack-n 2 --include-python-functions true --sort-by count
analyze tb-kernel in/made-ns --group-by kernel-and-operator --format csv
analyze tb-operator in/made-ns --group-by operator-and-shape --format csv
analyze frequent-cuda-kernel-sequences in/made-ns --operator-name aten::linear --min-pattern-len 1 --format csv
analyze trace-diff --control in/fixture/kineto --test in/fixture/kineto-us
analyze trace-diff --control in/fixture/kineto --test in/fixture/kineto-us --format json
analyze trace-diff --control in/fixture/kineto --test in/fixture/kineto-us --compat hta --format csv
analyze memory-timeline in/files/memory_timeline.raw.gz
analyze memory-timeline in/files/memory_timeline.raw.gz --format json
analyze memory-analysis in/files/memory_timeline.raw.gz --compat hta --format csv
analyze rank-map in/ascend-kernels --lang zh
what-if in/1f1b
what-if in/1f1b --format json
what-if in/1f1b --format csv --lang zh
what-if in/1f1b --lang zh --more-memory
what-if in/1f1b --scale stage=2,kind=F,by=0.7 --scale rank=1,set=5ms
what-if in/1f1b --schedule zb-v --latency 1ms --format json
what-if in/1f1b --schedule vpp --chunks 2 --group 4 --micro-batches 16
what-if in/1f1b --layers 24 --steps 1:2
what-if in/vpp --schedule 1f1b
what-if in/zb-h2 --format json
what-if in/dualpipe --ranks 1 --scale by=0.5
what-if in/1f1b-clocks --align never
what-if in/made-dp-pipeline
what-if in/fixture/op-table --format csv -o fixes.csv
what-if in/fixture/kineto
diff in/1f1b-healthy in/1f1b --fail-on 3%
diff in/1f1b-healthy in/1f1b --table groups --format csv
diff in/1f1b-healthy in/1f1b --ranks 0-3 --steps 1:2 --json -o diff.json
diff in/1f1b in/1f1b-clocks --align never
align in/1f1b-clocks
align in/1f1b-clocks --format csv --lang zh
align in/1f1b-apart
align in/1f1b-apart --trust-clocks
align in/1f1b-apart --align-on 0:2:F0 --format json
align in/made-pipeline --align always -o clocks.txt
export in/1f1b -o run.svg --dark --ghosts on --width 900 --title here --lang zh
export in/1f1b -o run.png --ghosts off --steps 2 --ranks 0-3
export in/1f1b -o run.pdf --range 100ms:300ms
export in/1f1b -o run.json --range 100ms:300ms --align never
export in/1f1b-clocks -o run.pftrace --align always
export in/1f1b-clocks -o - --to csv --align never
export in/made-ns --to trace-with-counters -o run.json --ranks 0
export in/made-ns --to trace-with-counters -o run.json
export in/made-ns --to trace-with-counters -o run.json --compat hta
export in/made-ns -o run.json --steps 102 --ranks 1
export in/made-python -o run.pftrace --range 5:20
export in/1f1b -o run.nothing
export in/1f1b --to csv -o no/such/folder/run.csv
report in/1f1b -o report.html --lang zh --title here --compare in/1f1b-healthy --fail-on any
report in/1f1b -o report.html --fail-on stage.slow,bubble
report in/1f1b -o - --ghosts off -q
report in/made-ns -o report.html --slices 100 --ranks 0,1
report in/fixture/kineto -o report.html --compare in/fixture/kineto-us
event in/made-ns --rank 1 --index 150
event in/fixture/kineto --rank 1 --index 7
event in/fixture/kineto --rank 1 --index 99999999
event in/made-graphs --index 20 -o event.json
export-stacks in/fixture/kineto-modules -o stacks.txt
export-stacks in/made-python -o - --aggregate --metric samples --format speedscope
export-stacks in/made-python -o stacks.txt --stacks torch --metric self_cuda_time_total
export-stacks in/made-python -o stacks.txt --unit ns
export-stacks in/made-python -o stacks.txt --stacks torch --unit ns
export-stacks in/made-python -o stacks.json --leaf kernel --aggregate --range 5:20
export-stacks in/made-python -o - --leaf none --metric nothing
recover in/made-recording
recover in/made-recorded-kernels -o out
tail in/made-recorded-kernels
tail in/made-recorded-kernels --format json --rows 1
pp-chart in/ascend-markers
pp-chart in/ascend-markers --tables-only -o chart
pp-chart -d in/ascend-kernels --output-path chart --rank-list 0-3 --step-id 11
pp-chart in/ascend-dualpipev --compat msprof --micro-batches 6 --schedule dualpipev --fail-on unlabelled
pp-chart -m pp_chart -d in/fixture/ascend-1f1b --export-type db --force --agent -o chart
pp-chart in/ascend-helper --pp 2 --tp 1 -o chart
pp-chart in/fthenb
pp-chart in/fixture/ascend-mindspore --tables-only
pp-chart in/fixture/ascend-text -o chart
'''
WRITTEN_INTO = [  # (command, folders of the inputs that are copied to where it runs)
    ('paddle-timeline --log_dir fthenb', ['fthenb']), ('paddle-timeline --log-dir fthenb --devices 3,1', ['fthenb']),
    ('paddle-timeline --log-dir zb-h1 --compat paddle-v3', ['zb-h1']),
    ('paddle-timeline --log-dir 1f1b-machines --multi-machine', ['1f1b-machines']),
    ('paddle-timeline --log_dir=1f1b-clocks --multi_machine --compat=paddle-v3', ['1f1b-clocks']),
    ('paddle-timeline --log-dir paddle-log -q', ['fixture/paddle-log']), ('paddle-timeline --log-dir bad-stamps', ['damaged/bad-stamps']),
    ('paddle-timeline --log-dir real-paddle --devices 0,1,2,3', ['real-paddle']),
    ('paddle-timeline --log-dir real-machines --multi_machine', ['real-machines']),
    ('pp-chart ascend-markers --in-place', ['ascend-markers']),
    ('pp-chart -d ascend-kernels --in-place --compat msprof', ['ascend-kernels']),
    ('simulate 1f1b -o fthenb', ['fthenb']), ('simulate 1f1b -o paddle-log', ['fixture/paddle-log']),
]
MISTAKES = '''

--version
nonsense
expalin in/1f1b
explain
explain in/nothing
explain in/1f1b --nonsense
explain in/1f1b --rank 1
explain in/1f1b --steps x
explain in/1f1b --steps 50:60
explain in/1f1b --ranks 99
explain in/1f1b --format csv
explain in/1f1b --fail-on lots
explain in/1f1b --align sometimes
explain in/1f1b --lang de
info in/1f1b in/fixture/kineto
info in/1f1b --reader nonsense
info in/1f1b --reader kineto
analyze
analyze nonsense in/1f1b
analyze waterfall in/fixture/kineto
analyze operators in/1f1b
analyze waterfall in/1f1b --table nonsense
analyze waterfall in/1f1b --compat hta
analyze waterfall in/1f1b --num-kernels 3
analyze waterfall,trace-diff in/1f1b
analyze trace-diff --control in/1f1b
diff in/1f1b
diff in/1f1b in/vpp in/zb-v
diff in/1f1b in/nothing
what-if in/1f1b --scale nonsense
what-if in/1f1b --schedule nonsense
export in/1f1b
export in/1f1b -o run.svg --width x
report in/1f1b -o report.html --fail-on nonsense
report in/1f1b -o report.html --fail-on any,3%
simulate
simulate nonsense -o out
simulate 1f1b
simulate 1f1b -o out --fault nonsense
simulate 1f1b -o out --fault slow-stage:9,2
simulate dualpipe --stages 3 -o out
schedule nonsense
schedule zb-v --stages 0
event in/made-ns --index 5
pp-chart in/nothing
completion csh
help nonsense
cluster -m pp_chart -d in/ascend-markers
view in/nothing
record
'''


def said(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=True, env={**os.environ, 'LC_ALL': 'C.UTF-8'}).stdout


def answers(program, *words):
    return subprocess.run([program, *words], capture_output=True).returncode == 0


def names(program, topic):
    return re.findall(r'^  (\S+)', said(program, 'help', *topic), re.M)


def inputs_in(folder):
    """Lists every input by its path below `in`."""
    groups = ('fixture', 'damaged')
    return [*sorted(p.name for p in folder.iterdir() if p.name not in (*groups, 'files')),
            *(f'{group}/{p.name}' for group in groups for p in sorted((folder / group).iterdir()))]


def help_cases(program):
    topics = ['', 'readers', 'analyses', 'exporters', 'schedules', 'cell-rules', *names(program, []), *names(program, ['analyses'])]
    return [*(f'help {topic}' for topic in topics), *(f'{name} --help' for name in names(program, [])), 'man',
            'completion bash', 'completion zsh', 'completion fish']


def schedule_cases(program):
    for name in names(program, ['schedules']):
        yield f'schedule {name}'
        yield f'schedule {name} --stages 2 --micro-batches 4 --cost 1,1.2,0.8 --latency 0.1 --format json'
        yield f'schedule {name} --format csv -o order.csv'
        yield f'schedule {name} -o order.svg --dark'
    yield from ('schedule zb-v --format torch', 'schedule vpp --chunks 3 --group 4 -o order.png', 'schedule 1f1b --to csv -o cells.csv',
                'schedule 1f1b --rows 3 --lang zh', 'schedule 1f1b -o order.json', 'schedule zb-h1 -o order.html',
                'schedule dualpipe-v-mindspeed --dw-detach -o order.pdf')


def analysis_cases(program, folder, only):
    """Every analysis in every form where the old program answers it, and as text alone where it refuses."""
    for name in names(program, ['analyses']):
        about = said(program, 'help', name)
        for source in ASKED if '--control' not in about else []:
            text = f'analyze {name} in/{source}'
            yield text
            forms = [f'{text} --format json', f'{text} --format csv',
                     *(f'{text} --format csv --compat {rival}' for rival in re.findall(r'^  --compat (\w+)', about, re.M))]
            if any(only in form for form in forms) and answers(program, 'analyze', name, folder / source, '-q'):
                yield from forms


def cases(program, folder, only):
    """Returns the cases that contain the text `only`; commands and analyses are those that the old program names."""
    lines = [*MISTAKES.strip('\n').split('\n'), *help_cases(program), *MORE.strip().split('\n'), *schedule_cases(program)]
    lines += [f'simulate {words} -o out' for words in SIMULATED.values()]
    sources = inputs_in(folder)
    for source in sources:
        lines += [form.format(f'in/{source}') for form in EVERYWHERE]
        lines += [f'export in/{source} --to {kind} -o {file}' for kind, file in EXPORTS.items()]
    for a, b in PAIRS:
        lines += [f'diff in/{a} in/{b}{form}' for form in FORMS] + [f'diff in/{a} in/{b} --lang zh']
    lines += analysis_cases(program, folder, only)
    into = [(command, folders) for command, folders in WRITTEN_INTO if all((folder / name).exists() for name in folders)]
    known = [*(Case(line) for line in dict.fromkeys(lines)), *(Case(command, tuple(folders)) for command, folders in into)]
    return [case for case in known if only in case.command]
