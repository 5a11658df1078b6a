"""The stubs say what is there: every public name, every method, every argument; and open() takes the flags of opening, no more."""
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

    def test_open_takes_the_flags_of_opening(self):
        options = {o[0] for a in stageline.analyses() for o in a.options}
        flags = {name for name, *_ in _engine.flags('analyze')} - options - OF_ANALYZE - NOT_OF_PYTHON
        of_python = {p.replace('_', '-') for p in inspect.signature(stageline.open).parameters} - {'paths', 'progress', 'threads'}
        self.assertEqual(flags, of_python)

    def test_what_if_takes_its_flags(self):
        flags = {name for name, *_ in _engine.flags('what-if')} - {name for name, *_ in _engine.flags('info')}
        flags -= {'json', 'format', 'output', 'align', 'trust-clocks', 'align-on'}
        self.assertEqual(flags, {p.replace('_', '-') for p in inspect.signature(stageline.Trace.what_if).parameters} - {'self'})


if __name__ == '__main__':
    unittest.main()
