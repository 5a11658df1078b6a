"""`stageline record` puts this before the program: Python runs a sitecustomize from PYTHONPATH when it starts.

Nothing is installed into the interpreter: this folder, which holds nothing else, is on PYTHONPATH of the recorded program alone. The
hooks wait for the frameworks' modules to be imported; a program that imports none of them runs as it would. A sitecustomize of the
interpreter's own, which this one hides, runs after it. `python -S`, -I and -E start without both. Read by every Python that the
program starts, old ones too: no syntax here that Python 2 does not have.
"""


def _install():
    import os
    import sys

    here = os.path.dirname(os.path.abspath(__file__))
    # The program sees the path as it would be without us; only its children inherit PYTHONPATH.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    if os.environ.get('STAGELINE_OFF') == '1' or sys.version_info < (3, 9):
        return
    import importlib.util
    beside = os.path.dirname(os.path.dirname(here))
    for name in ('stageline_record', 'stageline'):  # the program's own, whatever is installed
        package = os.path.join(beside, name)
        spec = importlib.util.spec_from_file_location(name, os.path.join(package, '__init__.py'), submodule_search_locations=[package])
        known = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(known)
    from stageline import hooks
    hooks.install()


def _go_on():
    """The sitecustomize that this one hides; what it raises is Python's to print, as without us."""
    import sys

    if sys.version_info < (3, 5):  # some script of an old Python's on the way
        del sys.modules['sitecustomize']
        import sitecustomize  # noqa: F401
        return
    import importlib.machinery

    spec = importlib.machinery.PathFinder.find_spec('sitecustomize')
    if spec is None or spec.loader is None:
        return
    import importlib.util
    module = sys.modules['sitecustomize'] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


try:
    _install()
except Exception as error:  # the program comes first
    import sys
    sys.stderr.write('stageline: the hooks of stageline record were not installed: %s: %s\n' % (type(error).__name__, error))
_go_on()
