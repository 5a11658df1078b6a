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
