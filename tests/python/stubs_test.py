"""The stubs say what is there: every public name, every method, every argument; and open() takes the flags of opening, no more.
stubs_test.py --update writes the analyses into the stub of Trace."""
import ast
import inspect
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from engine_test import HAVE_ENGINE, ROOT  # noqa: E402

if HAVE_ENGINE:
    import stageline
    from stageline import _engine

# Flags of opening that are another argument of Python's, or nothing to it: stages is pp.
NOT_OF_PYTHON = {'stages', 'force'}
# Flags of the command alone.
OF_ANALYZE = {'table', 'rows', 'wide', 'format', 'output', 'compat', 'overlay', 'include-last-profiler-step'}


STUB = ROOT / 'python/stageline/__init__.pyi'
BEGIN, END = '    # Analyses, written by stubs_test.py --update.\n', '    # End of analyses.\n'
KINDS = {'BOOL': 'bool', 'N': 'int', 'X': 'float', 'TIME': 'float | str | datetime.timedelta', 'PATH': '_Path', 'LIST': 'str | Iterable[object]', 'N|none': "int | Literal['none']"}
OWN = {'include_last_profiler_step': 'bool', 'overlay': '_Path', 'test': 'Trace'}


def analyses_of_stub():
    """Returns every analysis as a method, with the types of its options."""
    from stageline._trace import arguments_of
    lines = []
    for info in stageline.analyses():
        kinds = {name.replace('-', '_'): 'Literal[' + ', '.join(map(repr, choices.split(','))) + ']' if choices else KINDS.get(value, 'str')
                 for name, value, _, choices in info.options}
        kinds.update(OWN, table='Literal[' + ', '.join(repr(name) for name, _ in info.tables) + ']',
                     compat='Literal[' + ', '.join(map(repr, info.compat)) + ']', format=f'Literal[{info.format!r}]')
        lines.append(f"    def {info.name.replace('-', '_')}(self, *, "
                     + ', '.join(f'{name}: {kinds[name]} | None = None' for name in arguments_of(info)) + ') -> Answer: ...\n')
    return ''.join(lines)


def arguments(node):
    a = node.args
    return [x.arg for x in a.posonlyargs + a.args + a.kwonlyargs] + [x.arg for x in (a.vararg, a.kwarg) if x]


@unittest.skipUnless(HAVE_ENGINE, 'the module was not built')
class Stubs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = ast.parse((ROOT / 'python/stageline/__init__.pyi').read_text())

    def test_every_public_name(self):
        names = {n.name for n in self.tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
        names |= {n.target.id for n in self.tree.body if isinstance(n, ast.AnnAssign)}
        self.assertEqual(set(stageline.__all__) - names, set())
        for name in stageline.__all__:
            getattr(stageline, name)

    def test_functions_have_the_same_arguments(self):
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef):
                self.assertEqual(arguments(node), list(inspect.signature(getattr(stageline, node.name)).parameters), node.name)

    def test_methods_have_the_same_arguments(self):
        compared = 0
        for node in self.tree.body:
            if not isinstance(node, ast.ClassDef) or not hasattr(stageline, node.name) or issubclass(getattr(stageline, node.name), Exception):
                continue
            known = getattr(stageline, node.name)
            for method in node.body:
                if not isinstance(method, ast.FunctionDef):
                    continue
                there = inspect.getattr_static(known, method.name, None)
                if node.name == 'Column':
                    continue
                self.assertIsNotNone(there, f'{node.name}.{method.name}')
                marks = [d.id for d in method.decorator_list if isinstance(d, ast.Name)]
                if 'property' in marks:
                    self.assertIsInstance(there, property, f'{node.name}.{method.name}')
                elif 'overload' not in marks and inspect.isfunction(there):
                    self.assertEqual(arguments(method), list(inspect.signature(there).parameters), f'{node.name}.{method.name}')
                    compared += 1
            public = {n for n, v in vars(known).items() if not n.startswith('_') and (callable(v) or isinstance(v, property))}
            stubbed = {m.name for m in node.body if isinstance(m, ast.FunctionDef)}
            self.assertEqual(public - stubbed, set(), node.name)
        self.assertGreater(compared, 20)

    def test_analyses_are_methods_of_the_stub(self):
        text = STUB.read_text()
        self.assertEqual(text[text.index(BEGIN) + len(BEGIN):text.index(END)], analyses_of_stub(), 'stubs_test.py --update writes them')

    def test_analyses_have_signatures_and_refuse_what_they_lack(self):
        for info in stageline.analyses():
            method = getattr(stageline.Trace, info.name.replace('-', '_'))
            self.assertIn(info.summary[1:], method.__doc__)
            self.assertIn('table', inspect.signature(method).parameters)
        with self.assertRaisesRegex(TypeError, 'row_limits'):
            stageline.open(ROOT / 'tests/golden/readers/kineto/input', progress=False).operators(row_limits=3)

    def test_open_takes_the_flags_of_opening(self):
        options = {o[0] for a in stageline.analyses() for o in a.options} - {'ep'}  # a layout of ranks, and ranks that share experts
        flags = {name for name, *_ in _engine.flags('analyze')} - options - OF_ANALYZE - NOT_OF_PYTHON
        of_python = {p.replace('_', '-') for p in inspect.signature(stageline.open).parameters} - {'paths', 'progress', 'threads'}
        self.assertEqual(flags, of_python)

    def test_what_if_takes_its_flags(self):
        flags = {name for name, *_ in _engine.flags('what-if')} - {name for name, *_ in _engine.flags('info')}
        flags -= {'json', 'format', 'output', 'align', 'trust-clocks', 'align-on'}
        self.assertEqual(flags, {p.replace('_', '-') for p in inspect.signature(stageline.Trace.what_if).parameters} - {'self'})


if __name__ == '__main__':
    if '--update' in sys.argv:
        text = STUB.read_text()
        STUB.write_text(text[:text.index(BEGIN) + len(BEGIN)] + analyses_of_stub() + text[text.index(END):])
    else:
        unittest.main()
