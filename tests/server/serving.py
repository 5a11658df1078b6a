"""A running `stageline serve`, for the tests that talk to it. STAGELINE_BIN names the program."""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

BIN = os.environ.get('STAGELINE_BIN') or str(pathlib.Path(__file__).resolve().parents[2] / 'build/dev/stageline')


class Server:
    """A running `stageline serve PATH…`; `port` and `url` are what it printed. `token`: whether paths begin with a secret, which
    the tests' requests then bring (`base`); `process`: where and how it runs, as Popen has it."""

    def __init__(self, *arguments, program=BIN, token=False, **process):
        self.process = subprocess.Popen([program, 'serve', *arguments, *([] if token else ['--token', 'none'])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        **process)
        self.url = self.process.stdout.readline().strip()
        found = re.match(r'http://([^/]+):(\d+)/', self.url)
        if not found:
            raise RuntimeError(self.process.stderr.read())
        self.port = int(found[2])
        self.base = self.url[found.end() - 1:-1]  # '' or '/TOKEN'

    def stop(self, how=signal.SIGTERM):
        """Exit code; the process must go by itself."""
        self.process.send_signal(how)
        code = self.process.wait(timeout=60)
        self.err = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def get(self, target, headers=(), method='GET'):
        """(status, headers, body) of one request on a connection of its own; the target goes out as it is."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)
        connection.putrequest(method, target, skip_host=any(k.lower() == 'host' for k, _ in headers))
        for key, value in headers:
            connection.putheader(key, value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, body

    def raw(self, data, timeout=60):
        """Returns the reply to these bytes until the other side ends."""
        with socket.create_connection(('127.0.0.1', self.port), timeout=timeout) as s:
            try:
                s.sendall(data)
                return receive_all(s)
            except (ConnectionResetError, BrokenPipeError):
                return b''

    def wait_ready(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            state = json.loads(self.get(self.base + '/api/status')[2])['state']
            if state in ('ready', 'failed'):
                return state
            time.sleep(0.05)
        raise TimeoutError('never ready')


def receive_all(s):
    out = b''
    while chunk := s.recv(65536):
        out += chunk
    return out
