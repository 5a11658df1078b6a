"""Runs the whole-program tests in two processes and prints one closing line with the counts.

run.py [PART-OF-A-NAME…] [--times] [--bytes | --conclusions]

With --times it also prints the processor time of each file and its longest tests. With --bytes, for a program under sanitizers, it
leaves out the files that ask what is concluded from rows that were read well. With --conclusions it leaves out the files of --bytes, except those
that ask more of a program without sanitizers (docs/decisions/quick-builds.md says why).
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Tests of conclusions, words and forms. Their code is under sanitizers in the unit tests; no byte of theirs comes from a stranger. A file
# that is not named here runs under sanitizers, too, so that a new reader's tests do without a line here.
CONCLUSIONS = """
action align ascend_cells ascend_messages ascend_sums ascend_words ask chinese contract cost diagnosis diff explain_doubts explain_faults explain_kinds
drawn_profiles explain_limits explain_peers explain_planted explain_small explain_stamps fault_matrix gallery hardening history in_place_kill mpi outputs page_commands plan
profile_faults samples schedule schema
skill stragglers torch_pipeline training what_if
""".split()
# Prints what each test of a file takes with the children that it waits for, as `unittest` itself prints only the time on the clock.
TIMED = '''
import resource, runpy, sys, unittest
def used():
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
class Timed(unittest.TextTestResult):
    def startTest(self, test):
        super().startTest(test)
        self.began = used()
    def stopTest(self, test):
        super().stopTest(test)
        print(f'{used() - self.began:.1f} {test.id()}', file=sys.stderr)
unittest.TextTestRunner.resultclass = Timed
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
'''


def run(path, timed=False):
    command = [sys.executable, *(['-c', TIMED] if timed else []), str(path)]
    with tempfile.TemporaryFile() as words:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=words, cwd=path.parent,
                                 env={**os.environ, 'PYTHONPATH': str(path.parent)} if timed else None)
        _, status, used = os.wait4(child.pid, 0)
        words.seek(0)
        text = words.read().decode('utf-8', 'replace')
    return path.name, os.waitstatus_to_exitcode(status), text, used.ru_utime + used.ru_stime


def belongs(path):
    concludes = path.name.removesuffix('_test.py') in CONCLUSIONS
    if '--bytes' in sys.argv:
        return not concludes
    return '--conclusions' not in sys.argv or concludes or 'sanitized()' in path.read_text()


def main(folder):
    wanted = [word for word in sys.argv[1:] if not word.startswith('--')]
    timed = '--times' in sys.argv
    files = [p for p in sorted(folder.glob('*_test.py')) if belongs(p) and (not wanted or any(w in p.name for w in wanted))]
    ran = failed = skipped = 0
    times = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, code, text, seconds in pool.map(lambda path: run(path, timed), files):
            ran += int(re.search(r'Ran (\d+) test', text)[1]) if 'Ran ' in text else 0
            for word in ('failures', 'errors'):
                failed += int((re.search(word + r'=(\d+)', text) or [0, 0])[1])
            skipped += int((re.search(r'skipped=(\d+)', text) or [0, 0])[1])
            for line in re.findall(r'^note: .*', text, re.M) if code == 0 else []:
                print(f'{name}: {line}')
            if code != 0:
                failed = max(failed, 1)
                print(f'== {name}\n{text}')
            longest = sorted(((float(s), test) for s, test in re.findall(r'^(\d+\.\d) (\S+)$', text, re.M)), reverse=True)[:3]
            times.append((seconds, name, ', '.join(f'{test.split(".")[-1]} {s} s' for s, test in longest)))
    for seconds, name, longest in sorted(times, reverse=True) if timed else []:
        print(f'{seconds:7.1f} s  {name:<32} {longest}')
    if timed:
        print(f'{sum(seconds for seconds, *_ in times):7.1f} s of processor time')
    print(f'{ran - failed - skipped} passed, {failed} failed, {skipped} skipped')
    return 1 if failed or ran == 0 else 0


if __name__ == '__main__':
    sys.exit(main(HERE))
