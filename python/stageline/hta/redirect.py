"""`import hta` is answered by stageline.hta: scripts and notebooks of Holistic Trace Analysis run as they are.

    import stageline.hta.redirect      # before the first import of hta, or: python -m pytest -p stageline.hta.redirect

`hta` and `hta.X` are stageline.hta and stageline.hta.X, the same module under both names. If STAGELINE_HTA_ROOT names a
folder, `hta.__file__` and hta.utils.test_utils appear to be in it: tests and notebooks look for their data next to it.
"""
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

_HERE = 'stageline.hta'
# Names that modules had in earlier releases of HTA; its example notebooks still import some.
_EARLIER = {'.trace': '.common.trace', '.trace_file': '.common.trace_file', '.trace_filter': '.common.trace_filter',
            '.analyzers.counters_analysis': '.analyzers.cupti_counter_analysis'}


def _ours(name):
    place = name[len('hta'):]
    return _HERE + _EARLIER.get(place, place)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname, path=None, target=None):
        if fullname != 'hta' and not fullname.startswith('hta.'):
            return None
        if importlib.util.find_spec(_ours(fullname)) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        module = importlib.import_module(_ours(spec.name))
        # The attributes of the module must stay those of its own name; the import system would overwrite them.
        self._kept = {name: getattr(module, name, None) for name in ('__name__', '__spec__', '__loader__', '__package__', '__path__')}
        return module

    def exec_module(self, module):
        for name, value in self._kept.items():
            if value is None:
                module.__dict__.pop(name, None)
            else:
                setattr(module, name, value)
        root = os.environ.get('STAGELINE_HTA_ROOT')
        if root:
            relative = module.__name__[len(_HERE):].replace('.', '/')
            module.__file__ = os.path.join(root, 'hta' + relative + ('/__init__.py' if hasattr(module, '__path__') else '.py'))


def install():
    """Once, before the first import of hta; the installed hta is then out of reach in this process."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    loaded = sys.modules.get('hta')
    if loaded is not None and getattr(loaded, '__name__', '') != _HERE:
        raise ImportError('hta itself is imported already; import stageline.hta.redirect before it')
    sys.meta_path.insert(0, _Finder())


install()
