"""python3 -S -E launch.py SAID COMMAND…: runs COMMAND, its output to the file SAID, and prints CPU seconds,
wall seconds, peak KiB and exit status. A process of its own because the kernel lets a program's peak begin
at that of the process that started it: here some 9 MB."""
import os
import sys
import time

said, command = sys.argv[1], sys.argv[2:]
sink = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
begin = time.perf_counter()
pid = os.posix_spawnp(command[0], command, os.environ,
                      file_actions=[(os.POSIX_SPAWN_DUP2, sink, 1), (os.POSIX_SPAWN_DUP2, sink, 2)])
_, status, usage = os.wait4(pid, 0)
wall = time.perf_counter() - begin
print(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss, status)
