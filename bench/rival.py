"""The rival: profiler_helper_static.py of a released paddlepaddle wheel, in an environment of its own."""
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


# HTA as released, without the notebooks its wheel asks for. From 0.6 on it is called traceinsight on PyPI (HolisticTraceAnalysis
# stops at 0.5.0); the module is hta still. The tables are of the versions its answers were checked with, where this Python has them.
HTA = "traceinsight==0.6.1"
HTA_HOME = ".cache/rivals/hta"
HTA_NEEDS = ["networkx", "plotly", "psutil", "pyyaml", "pydot"]
HTA_TABLES = ["pandas==1.5.3", "numpy==1.24.4"] if sys.version_info < (3, 12) else ["pandas<3", "numpy"]


def has_hta(python):
    return subprocess.run([python, "-c", "import hta.trace_analysis"], capture_output=True).returncode == 0


def find_hta():
    """A python that holds HTA: $STAGELINE_RIVAL_HTA_PYTHON, $STAGELINE_RIVAL_PYTHON if it does, or an environment made here.
    None where it cannot be installed."""
    for variable in ("STAGELINE_RIVAL_HTA_PYTHON", "STAGELINE_RIVAL_PYTHON"):
        python = os.environ.get(variable)
        if python and has_hta(python):
            return python
    if "STAGELINE_RIVAL_HTA_PYTHON" in os.environ:
        print(f"{os.environ['STAGELINE_RIVAL_HTA_PYTHON']} cannot import hta", file=sys.stderr)
        return None
    python = os.path.abspath(os.path.join(HTA_HOME, "bin", "python"))
    if not os.path.exists(python) or not has_hta(python):
        print(f"installing {HTA} under {HTA_HOME} (once)", file=sys.stderr)
        if subprocess.run([sys.executable, "-m", "venv", HTA_HOME]).returncode != 0:
            return None
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *HTA_TABLES, *HTA_NEEDS])
        subprocess.run([*pip, "--no-deps", HTA])
    return python if has_hta(python) else None


TORCH = "torch==2.13.0"
TORCH_HOME = ".cache/rivals/torch"


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


def find_torch():
    """A python that holds torch: $STAGELINE_RIVAL_TORCH_PYTHON, or an environment made here (CPU only is enough).
    None where it cannot be installed."""
    python = os.environ.get("STAGELINE_RIVAL_TORCH_PYTHON")
    if python:
        if has_torch(python):
            return python
        print(f"{python} cannot import torch", file=sys.stderr)
        return None
    python = os.path.abspath(os.path.join(TORCH_HOME, "bin", "python"))
    if not os.path.exists(python) or not has_torch(python):
        print(f"installing {TORCH} under {TORCH_HOME} (once)", file=sys.stderr)
        if subprocess.run([sys.executable, "-m", "venv", TORCH_HOME]).returncode != 0:
            return None
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", TORCH, "numpy"])
    return python if has_torch(python) else None


MSPROF = "msprof-analyze==26.2.0"
MSPROF_HOME = ".cache/rivals/msprof"


def has_msprof(python):
    return subprocess.run([python, "-c", "import msprof_analyze"], capture_output=True).returncode == 0


def find_msprof():
    """A python that holds msprof-analyze: $STAGELINE_RIVAL_MSPROF_PYTHON, or an environment made here. None where it cannot be
    installed."""
    python = os.environ.get("STAGELINE_RIVAL_MSPROF_PYTHON")
    if python:
        if has_msprof(python):
            return python
        print(f"{python} cannot import msprof_analyze", file=sys.stderr)
        return None
    python = os.path.abspath(os.path.join(MSPROF_HOME, "bin", "python"))
    if not os.path.exists(python) or not has_msprof(python):
        print(f"installing {MSPROF} under {MSPROF_HOME} (once)", file=sys.stderr)
        if subprocess.run([sys.executable, "-m", "venv", MSPROF_HOME]).returncode != 0:
            return None
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", MSPROF])
    return python if has_msprof(python) else None


def hta_version(python):
    code = ("import importlib.metadata as m, pandas, numpy, sys\n"
            "have = {d.metadata['Name'].lower(): d.version for d in m.distributions()}\n"
            "name = 'traceinsight' if 'traceinsight' in have else 'holistictraceanalysis'\n"
            "print(name, have.get(name, '?'), pandas.__version__, numpy.__version__, sys.version.split()[0])")
    words = subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.split()
    return "HTA ({} {}) with pandas {}, numpy {}, Python {}".format(*words) if len(words) == 5 else "HTA"
