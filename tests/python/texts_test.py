"""Texts that Python returns are in Python's terms: advice names calls and keywords, not commands and flags of the program."""
import contextlib
import re
import sys
import pathlib
import shlex
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from engine_test import GOLDEN, HAVE_ENGINE, program  # noqa: E402

if HAVE_ENGINE:
    import stageline
    from stageline import _engine, _words

INPUTS = ('ascend', 'ascend-1f1b', 'flight-recorder', 'kineto', 'kineto-pipeline', 'memory-snapshot', 'nsys', 'op-json-straggler', 'paddle-log',
          'recording')


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from texts(one)


def everything(trace):
    """All sentences about a run: findings, offers, notes, figures, prices and the tables of fixes."""
    for lang in ('en', 'zh'):
        found = trace.explain(lang)
        yield from (str(found), repr(found), found._repr_html_())
        for one in [*found, *found.offers]:
            yield from texts({k: v for k, v in vars(one).items() if k != '_trace'})
        yield from texts([found.headline, found.lead, found.closing, found.why_not])
    yield repr(trace.info)
    yield from texts(trace.info.to_dict())
    yield from map(str, trace.diagnostics)
    with contextlib.suppress(stageline.Error):
        prices = trace.what_if()
        yield from (repr(prices), prices._repr_html_())
        yield from map(str, prices.notes)
        for table in prices._tables.values():
            yield from (table.to_csv(), table.to_json(), table.text(wide=True))
            yield from texts(table.to_dicts())
    for name in ('findings', 'operators', 'stragglers', 'pipeline-summary'):
        with contextlib.suppress(stageline.Error):
            answer = trace.analyze(name)
            yield from map(str, answer.notes)
            yield answer.text()


def in_the_programs_terms(text):
    """The commands that have a call, and the program's own flags that do not belong to another program's command."""
    found = re.findall(rf'stageline (?:{"|".join(_words.METHODS)})(?![\w-])', text)
    for line in re.sub('<style>.*?</style>', '', text, flags=re.DOTALL).splitlines():
        if not any(name in line for name in (*_words._FOREIGN, 'stageline record', 'Megatron', 'MindSpeed')):
            found += [flag for flag in re.findall(r'(?<![\w-])--([a-z][a-z-]*)', line) if flag in _words._known_flags()]
    return found


@unittest.skipUnless(HAVE_ENGINE, 'the module was not built')
class Texts(unittest.TestCase):
    def test_each_command_with_a_call_is_one_and_the_call_exists(self):
        commands = {line.split()[0] for line in program('--help').splitlines() if re.match(r'  [a-z][a-z-]+ ', line)}
        self.assertGreater(len(commands), 20)
        for command, call in _words.METHODS.items():
            self.assertIn(command, commands)
            where, name = re.match(r'(trace|stageline)\.(\w+)', call).groups()
            self.assertTrue(hasattr(stageline.Trace if where == 'trace' else stageline, name), call)

    def test_sentences(self):
        for said, python in (
                ('run stageline analyze links to find them; check', "run trace.analyze('links') to find them; check"),
                ('stageline analyze schedule to find the place', "trace.analyze('schedule') to find the place"),
                ('stageline analyze has the others', 'trace.analyze() has the others'),
                ('with stageline what-if --layers. With one', 'with trace.what_if(layers=…). With one'),
                ('实际层数请用 stageline what-if --layers 给出。', '实际层数请用 trace.what_if(layers=…) 给出。'),
                ('torch: stageline schedule zb-h1 --stages 4 --micro-batches 8 --format torch -o zb-h1.csv, then',
                 "torch: stageline.schedule('zb-h1', stages=4, micro_batches=8, format='torch').to_csv(), then"),
                ('stageline info runs/a.json lists all', 'trace.info lists all'),
                ('stageline explain says more.', 'trace.findings says more.'),
                ('stageline align measures their offsets', "stageline.open(…, align='always') measures their offsets"),
                ('stageline record -- python train.py --steps 3', 'stageline record -- python train.py --steps 3'),
                ('nsys export --type sqlite', 'nsys export --type sqlite'),
                ('Megatron: double --global-batch-size', 'Megatron: double --global-batch-size'),
                ('set --pp, --tp and --dp', 'set pp, tp and dp'), ('(set with --layers)', '(set with layers)'),
                ('--stages 3 does not divide', 'stages=3 does not divide'), ('--align always measures', "align='always' measures"),
                ('--rows 0 prints all, --format csv or json too', 'text(rows=0) prints all, to_csv() and to_json() too')):
            self.assertEqual(_words.in_python(said), python)

    def test_paths_of_the_run_go(self):
        for path in ('r39', 'my run', 'runs/of-today', 'report'):
            said = f'Report: stageline report {shlex.quote(path)} -o report.html\n   stageline what-if {shlex.quote(path)}\n'
            self.assertEqual(_words.in_python(said, [path]), 'Report: trace.report()\n   trace.what_if()\n')
        self.assertEqual(_words.in_python('stageline explain says more.', ['says more']), 'trace.findings says more.')

    def test_a_call_of_a_whole_command(self):
        self.assertEqual(_words.call_of("stageline analyze waterfall 'my run/a' --table waterfall-stages"),
                         "trace.analyze('waterfall', table='waterfall-stages')")
        self.assertEqual(_words.call_of('stageline what-if a b'), 'trace.what_if()')
        self.assertEqual(_words.call_of('stageline recover a'), 'stageline recover a')

    def test_no_text_speaks_of_the_command_line(self):
        seen, called = 0, 0
        for name in INPUTS:
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')
                trace = stageline.open(GOLDEN / name / 'input', progress=False)
            for text in everything(trace):
                self.assertEqual(in_the_programs_terms(text), [], text[:300])
                seen += 1
            for finding in [*trace.findings, *trace.findings.offers]:
                if finding.command:  # what a user types after reading it
                    self.assertIsNotNone(eval(finding.command, {'trace': trace, 'stageline': stageline}), finding.command)
                    called += 1
        self.assertGreater(seen, 300)
        self.assertGreaterEqual(called, 10)

    def test_an_order_for_torch(self):
        made = stageline.schedule('zb-h1', 2, 3, format='torch')
        self.assertEqual(made.to_csv(), program('schedule', 'zb-h1', '--stages', '2', '--micro-batches', '3', '--format', 'torch'))
        self.assertEqual(made.order[0][:3], ['0F0', '0F1', '0I0'])
        self.assertNotEqual(stageline.schedule('zb-h1', 2, 3).to_csv(), made.to_csv())

    def test_options_of_analyses(self):
        for analysis in stageline.analyses():
            for text in texts([list(analysis.options) if hasattr(analysis, 'options') else []]):
                self.assertEqual(in_the_programs_terms(text), [], text)
        self.assertTrue(_engine.analyses())


if __name__ == '__main__':
    unittest.main()
