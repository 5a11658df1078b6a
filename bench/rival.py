"""The reference tool: profiler_helper_static.py of a released paddlepaddle wheel, in its own environment."""
import glob
import os
import subprocess
import sys

WHEEL = "paddlepaddle==3.3.1"
HOME = ".cache/rivals/paddle"
SCRIPT = "paddle/distributed/auto_parallel/static/profiler_helper_static.py"
HERE = os.path.dirname(os.path.abspath(__file__))


class Rival:
    def __init__(self, name, python, script):
        self.name, self.python, self.script = name, python, script
        self.env = dict(os.environ, PYTHONPATH=os.path.join(HERE, "stub"))

    def command(self, folder, devices):
        return [self.python, self.script, "--log_dir", folder, "--devices", devices]


def _script_of(python):
    where = os.path.join(os.path.dirname(os.path.dirname(python)), "lib", "python3*", "site-packages", SCRIPT)
    found = glob.glob(where)
    return found[0] if found else None


def find():
    """$STAGELINE_RIVAL_PYTHON names a python whose environment holds the wheel; else one is made here
    (only the wheel itself: the script imports nothing of what paddle needs). Without either: our stand-in."""
    python = os.environ.get("STAGELINE_RIVAL_PYTHON") or os.path.join(HOME, "bin", "python")
    if not _script_of(python) and "STAGELINE_RIVAL_PYTHON" not in os.environ:
        print(f"installing {WHEEL} under {HOME} (once)", file=sys.stderr)
        made = subprocess.run([sys.executable, "-m", "venv", HOME]).returncode == 0
        if made:
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", WHEEL])
    script = _script_of(python)
    if script:
        wheel = glob.glob(os.path.join(os.path.dirname(script), *[".."] * 4, "paddlepaddle-*.dist-info"))
        version = os.path.basename(wheel[0])[len("paddlepaddle-"):-len(".dist-info")] if wheel else "?"
        return Rival(f"profiler_helper_static.py of paddlepaddle {version}", python, script)
    return Rival("a stand-in of ours, in Python and without the quadratic search: the wheel could not be installed, "
                 "so the ratios say less than they should", sys.executable, os.path.join(HERE, "stand_in.py"))


# HTA as released, without the notebooks its wheel asks for. From 0.6 on it is called traceinsight on PyPI
# (HolisticTraceAnalysis stops at 0.5.0); the module is hta still. Its answers were checked with these versions; a
# Python without them uses others.
HTA = "traceinsight==0.6.1"
HTA_HOME = ".cache/rivals/hta"
HTA_NEEDS = ["networkx", "plotly", "psutil", "pyyaml", "pydot"]
HTA_TABLES = ["pandas==1.5.3", "numpy==1.24.4"] if sys.version_info < (3, 12) else ["pandas<3", "numpy"]


def _imports(python, module):
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def _python_with(module, variables, home, named, *installs):
    """A python that can import `module`: one of the environment variables' that can, or a virtual environment made under `home` with what
    `installs` give pip, one call each. The first variable decides: set to a python without the module, it gives None, as does a failed
    installation."""
    for variable in variables:
        python = os.environ.get(variable)
        if python and _imports(python, module):
            return python
    if os.environ.get(variables[0]):
        print(f"{os.environ[variables[0]]} cannot import {module}", file=sys.stderr)
        return None
    python = os.path.abspath(os.path.join(home, "bin", "python"))
    if not os.path.exists(python) or not _imports(python, module):
        print(f"installing {named} under {home} (once)", file=sys.stderr)
        if subprocess.run([sys.executable, "-m", "venv", home]).returncode != 0:
            return None
        for packages in installs:
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
    return python if _imports(python, module) else None


def find_hta():
    return _python_with("hta.trace_analysis", ["STAGELINE_RIVAL_HTA_PYTHON", "STAGELINE_RIVAL_PYTHON"], HTA_HOME, HTA,
                        [*HTA_TABLES, *HTA_NEEDS], ["--no-deps", HTA])


TORCH = "torch==2.13.0"
TORCH_HOME = ".cache/rivals/torch"


def find_torch():
    """CPU only is enough."""
    return _python_with("torch", ["STAGELINE_RIVAL_TORCH_PYTHON"], TORCH_HOME, TORCH, [TORCH, "numpy"])


DUCKDB_HOME = ".cache/rivals/duckdb"


def find_duckdb():
    """With pyarrow, which is what it reads our streams with."""
    return _python_with("duckdb, pyarrow", ["STAGELINE_RIVAL_DUCKDB_PYTHON"], DUCKDB_HOME, "duckdb", ["duckdb", "pyarrow"])


MSPROF = "msprof-analyze==26.2.0"
MSPROF_HOME = ".cache/rivals/msprof"


def find_msprof():
    return _python_with("msprof_analyze", ["STAGELINE_RIVAL_MSPROF_PYTHON"], MSPROF_HOME, MSPROF, [MSPROF])


def hta_version(python):
    code = ("import importlib.metadata as m, pandas, numpy, sys\n"
            "have = {d.metadata['Name'].lower(): d.version for d in m.distributions()}\n"
            "name = 'traceinsight' if 'traceinsight' in have else 'holistictraceanalysis'\n"
            "print(name, have.get(name, '?'), pandas.__version__, numpy.__version__, sys.version.split()[0])")
    words = subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.split()
    return "HTA ({} {}) with pandas {}, numpy {}, Python {}".format(*words) if len(words) == 5 else "HTA"
