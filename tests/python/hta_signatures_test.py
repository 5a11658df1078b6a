"""stageline.hta has every public name of Holistic Trace Analysis' modules, with parameters in the same order and with the same
defaults, in modules and stubs. hta_signatures.json lists those of traceinsight 0.6.1; hta_signatures_test.py --update reads them from the installed one."""
import ast
import importlib
import inspect
import json
import pathlib
import pkgutil
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from engine_test import HAVE_ENGINE, ROOT  # noqa: E402

LISTED = pathlib.Path(__file__).resolve().parent / 'hta_signatures.json'
try:
    import networkx  # noqa: F401
    import pandas  # noqa: F401
    HAVE_LIBRARIES = True
except ImportError:
    HAVE_LIBRARIES = False
_PREFIX = {inspect.Parameter.POSITIONAL_ONLY: '/', inspect.Parameter.KEYWORD_ONLY: '*,', inspect.Parameter.VAR_POSITIONAL: '*',
           inspect.Parameter.VAR_KEYWORD: '**'}


def default(value):
    if inspect.isfunction(value):
        return value.__name__
    if type(value).__name__ == 'TimelinePlotSetting':
        return 'TimelinePlotSetting()'
    return re.sub(r'<(\w+\.\w+): [^>]*>', r'\1', re.sub(r' at 0x[0-9a-f]+', '', repr(value)))


def signature(what):
    """The parameters as text; 'class' and 'property' for what is one."""
    if isinstance(what, (classmethod, staticmethod)):
        what = what.__func__
    if inspect.isclass(what) or isinstance(what, property):
        return 'class' if inspect.isclass(what) else 'property'
    return ', '.join(_PREFIX.get(p.kind, '') + p.name + ('' if p.default is p.empty else f'={default(p.default)}')
                     for p in inspect.signature(what).parameters.values())


def public(module):
    """{name: its signature} of the functions, classes and methods that a module defines."""
    found = {}
    for name, value in vars(module).items():
        if name.startswith('_') or getattr(value, '__module__', None) != module.__name__ or not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        found[name] = signature(value)
        for method, of_class in vars(value).items() if inspect.isclass(value) else ():
            plain = of_class.__func__ if isinstance(of_class, (classmethod, staticmethod)) else of_class
            if (not method.startswith('_') or method == '__init__') and (inspect.isfunction(plain) or isinstance(plain, property)):
                found[f'{name}.{method}'] = signature(of_class)
    return found


def update():
    import hta
    modules = [m.name for m in pkgutil.walk_packages(hta.__path__, 'hta.') if not m.ispkg]
    made = {name[4:]: public(importlib.import_module(name)) for name in modules}
    LISTED.write_text(json.dumps({k: v for k, v in made.items() if v}, indent=1, sort_keys=True, ensure_ascii=False) + '\n')


@unittest.skipUnless(HAVE_ENGINE and HAVE_LIBRARIES, 'no module, or no pandas and networkx')
class Signatures(unittest.TestCase):
    def test_all_are_there(self):
        same, differ = 0, []
        for module, names in json.loads(LISTED.read_text()).items():
            ours = importlib.import_module(f'stageline.hta.{module}')
            for name, wanted in names.items():
                value, place = ours, name.split('.')
                try:
                    for part in place:
                        value = inspect.getattr_static(value, part) if inspect.isclass(value) else getattr(value, part)
                except AttributeError:
                    inherited = getattr(getattr(ours, place[0], None), place[-1], None) if len(place) == 2 else None
                    if inherited is None:
                        differ.append(f'{module}.{name} is missing')
                        continue
                    value = inherited
                got = signature(value)
                same += got == wanted
                if got != wanted:
                    differ.append(f'{module}.{name}: ({got}), not ({wanted})')
        print(f'note: {same} of {same + len(differ)} signatures of HTA are the same', file=sys.stderr)
        self.assertEqual(differ, [])


def parameters_of(tree):
    """{name of a public function or method: its parameters}."""
    found = {}
    for node in tree.body:
        for prefix, function in [('', node)] if isinstance(node, ast.FunctionDef) else \
                [(f'{node.name}.', m) for m in node.body] if isinstance(node, ast.ClassDef) else []:
            if isinstance(function, ast.FunctionDef) and (not function.name.startswith('_') or function.name == '__init__'):
                a = function.args
                found[prefix + function.name] = [(x.arg, len(a.defaults)) for x in (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg) if x]
    return found


class Stubs(unittest.TestCase):
    def test_stubs_are_those_of_the_modules(self):
        modules = 0
        for path in sorted((ROOT / 'python/stageline/hta').rglob('*.pyi')):
            module = ast.parse(path.with_suffix('.py').read_text())
            self.assertEqual(parameters_of(ast.parse(path.read_text())), parameters_of(module), f'{path}: tools/hta_stubs.py writes it')
            modules += 1
        self.assertGreater(modules, 25)


if __name__ == '__main__':
    if '--update' in sys.argv:
        update()
    else:
        unittest.main()
