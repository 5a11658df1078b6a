"""`stageline tail`: the steps of a recording that is still being made, each once, as it ends."""
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import unittest

from recorded import BIN, PACKAGE, Recorded, clean_environment, needs_extension, run

PROGRAM = '''
import sys
from stageline import record
record.init()
step = 0
for line in sys.stdin:          # a step for each line
    record.step(step)
    for micro_batch in range(2):
        for kind in 'FB':
            with record.job(kind, micro_batch, 0):
                pass
    step += 1
    print(step, flush=True)
'''
PATIENCE = 120  # seconds until a machine is given up, not a time that anything has to keep


class Process:
    """A child whose lines are taken as they come."""

    def __init__(self, case, *command, env=None, stdin=None):
        self.child = subprocess.Popen(list(map(str, command)), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      env=env or clean_environment(), cwd=case.dir)
        self.lines, self.errors = queue.Queue(), queue.Queue()
        for stream, lines in ((self.child.stdout, self.lines), (self.child.stderr, self.errors)):
            threading.Thread(target=lambda s=stream, q=lines: [q.put(line) for line in s], daemon=True).start()
        case.addCleanup(self.end)

    def line(self):
        return self.lines.get(timeout=PATIENCE)

    def end(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr):
            if stream:
                stream.close()


@needs_extension
class Tail(Recorded):
    def program(self, rank, ranks=2):
        env = clean_environment(STAGELINE_DIR=str(self.out), PYTHONPATH=str(PACKAGE), RANK=str(rank), WORLD_SIZE=str(ranks))
        return Process(self, sys.executable, '-c', PROGRAM, env=env, stdin=subprocess.PIPE)

    def tail(self, *flags):
        return Process(self, BIN, 'tail', self.out, *flags)

    def step(self, *programs):
        for program in programs:
            program.child.stdin.write('\n')
            program.child.stdin.flush()
        return [program.line() for program in programs]

    def close(self, *programs):
        for program in programs:
            program.child.stdin.close()
            self.assertEqual(program.child.wait(timeout=PATIENCE), 0)

    def test_each_step_once_as_it_ends(self):
        tail = self.tail('--format', 'json')  # before anything is there
        self.assertIn('waiting:', tail.errors.get(timeout=PATIENCE))
        ranks = [self.program(0), self.program(1)]
        for number in range(4):
            self.step(*ranks)
            if number > 0:  # the step before is over: said while the program runs on
                said = json.loads(tail.line())
                self.assertEqual([said['step'], said['ranks']], [number - 1, 2])
                self.assertGreater(said['dur_ns'], 0)
        self.close(*ranks)
        self.assertEqual(json.loads(tail.line())['step'], 3)
        self.assertEqual(tail.child.wait(timeout=PATIENCE), 0)
        self.assertTrue(tail.lines.empty())

    def test_who_was_there_first_hears_every_step(self):
        tail = self.tail('--format', 'json')
        self.assertIn('waiting:', tail.errors.get(timeout=PATIENCE))
        program = self.program(0, 1)
        for _ in range(14):  # more than --rows, as fast as they come: over before the next look
            self.step(program)
        self.close(program)
        self.assertEqual(tail.child.wait(timeout=PATIENCE), 0)
        self.assertEqual([json.loads(tail.line())['step'] for _ in range(14)], list(range(14)))

    def test_a_step_is_over_when_all_ranks_have_begun_the_next(self):
        first, second = self.program(0), self.program(1)
        for _ in range(3):
            self.step(first)
        self.step(second)
        tail = self.tail('--format', 'json')
        self.step(second)  # now step 0 is over on both, and step 1 on the first alone
        self.assertEqual(json.loads(tail.line())['step'], 0)
        self.close(first, second)
        rest = [json.loads(tail.line()) for _ in range(2)]
        self.assertEqual([(said['step'], said['ranks']) for said in rest], [(1, 2), (2, 1)])
        self.assertEqual(tail.child.wait(timeout=PATIENCE), 0)

    def test_numbers_are_the_reports(self):
        ranks = [self.program(0), self.program(1)]
        for _ in range(12):
            self.step(*ranks)
        self.close(*ranks)
        said = [json.loads(line) for line in run('tail', self.out, '--format', 'json', check=0).out.splitlines()]
        self.assertEqual([line['step'] for line in said], list(range(2, 12)))  # the last ten
        answer = json.loads(run('analyze', 'pipeline-summary', self.out, '--format', 'json', check=0).out)
        rows = next(table for table in answer['tables'] if table['name'] == 'ranks')['rows']
        for line in said:
            own = [row for row in rows if row['step'] == line['step']]
            self.assertEqual({row['span_ns'] for row in own}, {line['dur_ns']})
            self.assertAlmostEqual(sum(row['span_bubble_share'] for row in own) / 2, line['bubble_share'], places=6)
        self.assertEqual(len(run('tail', self.out, '--rows', 0, check=0).out.splitlines()), 13)
        self.assertEqual(len(run('tail', self.out, '--rows', 3, check=0).out.splitlines()), 4)

    def test_interrupt(self):
        program = self.program(0, 1)
        self.step(program)
        self.step(program)
        tail = self.tail()
        self.assertIn('step', tail.line())
        self.assertEqual(tail.line().split()[0], '0')
        tail.child.send_signal(signal.SIGINT)
        self.assertEqual(tail.child.wait(timeout=PATIENCE), 130)
        self.close(program)

    def test_processes_that_are_gone(self):
        program = self.program(0, 1)
        self.step(program)
        self.step(program)
        program.child.kill()
        program.child.wait()
        for path in self.out.iterdir():
            os.utime(path, (1, 1))  # as after an hour
        tail = self.tail('--format', 'json')
        self.assertEqual([json.loads(tail.line())['step'] for _ in range(2)], [0, 1])
        self.assertEqual(tail.child.wait(timeout=PATIENCE), 0)
        self.assertIn('no data for one minute', tail.errors.get(timeout=PATIENCE))

    def test_usage(self):
        self.assertIn('text or json', run('tail', self.out, '--format', 'csv', check=2).err)
        self.assertEqual(run('tail', check=2).out, '')


if __name__ == '__main__':
    unittest.main()
