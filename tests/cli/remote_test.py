"""Runs that lie in S3 or behind an address: read in parts, the same answers as from a disk, and every refusal in words."""
import ctypes.util
import gzip
import importlib.util
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import unittest

import remote_server
from mpi_test import MPI, MPIRUN, VARIABLES, command
from remote_server import Server
from support import Case, info, run

CURL = ctypes.util.find_library('curl') or ctypes.util.find_library('curl-gnutls')


def simulated(folder, **more):
    run('simulate', '1f1b', '--stages', 4, '--dp', 2, '--machines', 2, '--micro-batches', 8, '--steps', 4, '--fault', 'slow-stage:2,1.4', '--seed', 5, '-q', '--force', '-o', folder,
        check=0)
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob('*') if p.is_file()}


@unittest.skipUnless(CURL, 'needs libcurl')
class RemoteTest(Case):
    def serve(self, objects, **more):
        server = Server(objects, **more)
        self.addCleanup(server.close)
        return server

    def bucket(self, name='runs/42', **more):
        files = simulated(self.dir / 'logs')
        return self.serve({f'bucket/{name}/{rel}': data for rel, data in files.items()}, **more)

    def same_findings(self, ours, env, *paths):
        there = json.loads(run('explain', *paths, '--format', 'json', '-q', env=env, check=0).out)
        here = json.loads(run('explain', ours, '--format', 'json', '-q', check=0).out)
        self.assertTrue(here['findings'])
        self.assertEqual([(f['key'], f['lost_ns'], f['title_en']) for f in here['findings']], [(f['key'], f['lost_ns'], f['title_en']) for f in there['findings']])

    def test_a_folder_of_s3_answers_as_a_folder_does(self):
        server = self.bucket('läufe 四十二/run+1')
        # Neither what begins like it nor what is hidden belongs to the folder.
        server.objects['bucket/läufe 四十二/run+10/workerlog.0'] = b'another run'
        server.objects['bucket/läufe 四十二/run+1/.hidden/workerlog.9'] = b'hidden'
        server.objects['bucket/läufe 四十二/run+1/'] = b''
        env = server.variables()
        for path in ('s3://bucket/läufe 四十二/run+1', 's3://bucket/läufe 四十二/run+1/'):
            self.same_findings(self.dir / 'logs', env, path)
        listed = [query for _, _, query, _ in server.requests if 'list-type' in query]
        self.assertGreater(len(listed), 4, 'pages of three objects')
        report = json.loads(run('info', '--json', 's3://bucket/läufe 四十二/run+1', env=env, check=0).out)
        self.assertEqual(report['ranks'], 8)

    def test_digests_are_made_of_it_and_made_again_where_an_object_changed(self):
        server = self.bucket()
        env = server.variables()
        digest = lambda: json.loads(run('digest', 's3://bucket/runs/42', '-o', self.dir / 'digests', '--json', '-q', env=env, check=0).out)
        first, again = digest(), digest()
        self.assertEqual((first['made'], first['kept'], again['made'], again['kept']), (8, 0, 0, 8))
        log = next(name for name in server.objects if name.endswith('machine1/workerlog.2'))
        server.objects[log] = server.objects[log][:-len(server.objects[log].splitlines(True)[-1])]
        changed = digest()
        self.assertEqual((changed['made'], changed['kept']), (1, 7))
        self.same_findings(self.dir / 'digests', None, self.dir / 'digests')

    @unittest.skipUnless(MPIRUN and MPI.exists(), 'needs an MPI')
    def test_processes_of_mpi_read_it_too(self):
        server = self.bucket()
        sanitizer = ':'.join(filter(None, [os.environ.get('ASAN_OPTIONS', ''), 'detect_leaks=0']))
        env = {**os.environ, **VARIABLES, **server.variables(), 'TMPDIR': str(self.dir), 'ASAN_OPTIONS': sanitizer}
        done = subprocess.run(command(2, 'explain', 's3://bucket/runs/42', '--digests', self.dir / 'digests', '--format', 'json', '-q'), capture_output=True, env=env, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        here = json.loads(run('explain', self.dir / 'logs', '--format', 'json', '-q', check=0).out)
        self.assertEqual([f['key'] for f in json.loads(done.stdout)['findings']], [f['key'] for f in here['findings']])

    def test_credentials_come_from_where_the_aws_cli_finds_them(self):
        server = self.bucket()
        none = {k: v for k, v in server.variables().items() if k not in ('AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY')}
        (self.dir / 'credentials').write_text(f'[other]\naws_access_key_id = no\n[team]\n# ours\naws_access_key_id={remote_server.KEY}\naws_secret_access_key = {remote_server.SECRET}\n')
        (self.dir / 'config').write_text('[profile team]\nregion = us-east-1\ns3 =\n  max_concurrent_requests = 20\n[profile made]\ncredential_process = /bin/true\n')
        of_files = {**none, 'AWS_SHARED_CREDENTIALS_FILE': str(self.dir / 'credentials'), 'AWS_CONFIG_FILE': str(self.dir / 'config')}
        run('info', 's3://bucket/runs/42', env={**of_files, 'AWS_PROFILE': 'team'}, check=0)
        said = run('info', 's3://bucket/runs/42', env={**of_files, 'AWS_PROFILE': 'made'}, check=2).err
        self.assertIn('credential_process', said)
        self.assertIn('export-credentials', said)
        # The container's credentials come first, with a session's token; then the instance's.
        given = json.dumps({'AccessKeyId': remote_server.KEY, 'SecretAccessKey': remote_server.SECRET, 'Token': 'session 7', 'Expiration': '2099-01-01T00:00:00Z'}).encode()
        server.token = 'session 7'
        server.answers['GET', '/creds'] = given
        run('info', 's3://bucket/runs/42', env={**none, 'AWS_CONTAINER_CREDENTIALS_FULL_URI': server.address + '/creds'}, check=0)
        server.answers['PUT', '/latest/api/token'] = b'tok'
        server.answers['GET', '/latest/meta-data/iam/security-credentials/'] = b'trainer\n'
        server.answers['GET', '/latest/meta-data/iam/security-credentials/trainer'] = given
        run('info', 's3://bucket/runs/42', env={**none, 'AWS_EC2_METADATA_DISABLED': 'false', 'AWS_EC2_METADATA_SERVICE_ENDPOINT': server.address}, check=0)
        # A web identity, as pods have it.
        (self.dir / 'token').write_text('ey.jwt\n')
        server.answers['POST', '/sts'] = (f'<r><AccessKeyId>{remote_server.KEY}</AccessKeyId><SecretAccessKey>{remote_server.SECRET}</SecretAccessKey>'
                                          '<SessionToken>session 7</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></r>').encode()
        run('info', 's3://bucket/runs/42', check=0, env={**none, 'AWS_WEB_IDENTITY_TOKEN_FILE': str(self.dir / 'token'), 'AWS_ROLE_ARN': 'arn:aws:iam::1:role/r',
                                                         'AWS_ENDPOINT_URL_STS': server.address + '/sts'})
        # No credentials suffice for a public bucket; other buckets are refused with a remedy.
        said = run('info', 's3://bucket/runs/42', env=none, check=2).err
        self.assertIn('AccessDenied', said)
        self.assertIn('AWS_PROFILE', said)
        server.signed = False
        run('info', 's3://bucket/runs/42', env=none, check=0)

    def test_what_is_refused_is_said_and_no_secret_is(self):
        server = self.bucket()
        wrong = server.variables(AWS_SECRET_ACCESS_KEY='not this one')
        said = run('explain', 's3://bucket/runs/42', env=wrong, check=2).err
        self.assertIn('SignatureDoesNotMatch', said)
        self.assertIn('the environment', said)
        self.assertNotIn('not this one', said)
        self.assertIn('no such file or folder', run('explain', 's3://bucket/runs/43', env=server.variables(), check=2).err)
        with socket.socket() as unused:  # no server listens there
            unused.bind(('127.0.0.1', 0))
            began = run('explain', f'http://127.0.0.1:{unused.getsockname()[1]}/x.json', env=server.variables(), check=2).err
        self.assertIn('cannot be reached', began)

    def test_a_bucket_of_another_region_is_asked_there(self):
        server = self.bucket(region='eu-central-1')
        run('info', 's3://bucket/runs/42', env=server.variables(), check=0)

    def test_a_busy_server_is_asked_again(self):
        server = self.bucket()
        server.fail_next = [503, 500, 429]
        self.same_findings(self.dir / 'logs', server.variables(), 's3://bucket/runs/42')
        self.assertEqual(server.fail_next, [])

    def test_one_file_behind_an_address_in_parts(self):
        # Longer than the first two parts, whose borders fall anywhere in the text and in the compressed bytes.
        rows = [{'ph': 'X', 'cat': 'cpu_op', 'name': f'aten::op_{i % 97}', 'pid': 1, 'tid': 1, 'ts': 1000 + 3 * i, 'dur': 2, 'args': {'External id': i}} for i in range(20000)]
        text = json.dumps({'schemaVersion': 1, 'distributedInfo': {'rank': 3, 'world_size': 4}, 'traceEvents': rows}).encode()
        local = self.dir / 'rank3.json'
        local.write_bytes(text)
        server = self.serve({'runs/rank3.json': text, 'runs/rank3.json.gz': gzip.compress(text, 1), 'runs/empty.json': b''}, signed=False)
        wanted = info(local)
        for name in ('rank3.json', 'rank3.json.gz'):
            there = json.loads(run('info', '--json', f'{server.address}/runs/{name}?X-Signature=a%2Fb', env=server.variables(), check=0).out)
            self.assertEqual(there['slices'], wanted['slices'])
            self.assertEqual(there['ranks'], wanted['ranks'])
        parts = [h['Range'] for _, path, _, h in server.requests if path == '/runs/rank3.json' and 'Range' in h]
        self.assertIn('bytes=65536-327679', parts)
        self.assertIn('empty', run('info', server.address + '/runs/empty.json', env=server.variables(), check=2).err)
        self.assertIn('no such file', run('info', server.address + '/runs/none.json', env=server.variables(), check=2).err)
        server.no_ranges = True
        self.assertIn('as a whole only', run('info', server.address + '/runs/rank3.json', env=server.variables(), check=2).err)

    def test_a_file_that_changes_while_it_is_read_is_named(self):
        server = self.bucket()
        name = next(n for n in server.objects if n.endswith('machine0/workerlog.1'))
        server.objects[name] = server.objects[name] * 40  # more than one part
        asked, plain = [], server.answer

        def answer(handler):
            if handler.path.endswith('machine0/workerlog.1') and handler.headers.get('Range', '').startswith('bytes=65536-'):
                server.objects[name] = b'rotated\n' + server.objects[name]
                asked.append(1)
            plain(handler)
        server.answer = answer
        done = run('info', 's3://bucket/runs/42', env=server.variables())
        self.assertTrue(asked)
        self.assertIn('changed while it was read', done.out + done.err)
        self.assertIn('machine0/workerlog.1', done.out + done.err)

    def test_no_page_and_no_agent_makes_the_program_ask_other_machines(self):
        server = self.bucket(signed=False)
        env = server.variables()
        self.assertIn('not opened here', run('view', 's3://bucket/runs/42', env=env, check=2).err)
        calls = [{'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': {'protocolVersion': '2025-06-18', 'capabilities': {}, 'clientInfo': {'name': 't', 'version': '1'}}},
                 {'jsonrpc': '2.0', 'method': 'notifications/initialized'},
                 *({'jsonrpc': '2.0', 'id': 2 + i, 'method': 'tools/call', 'params': {'name': 'open', 'arguments': {'path': p}}}
                   for i, p in enumerate(('s3://bucket/runs/42', server.address + '/bucket/runs/42/machine0/workerlog.0')))]
        run('mcp', '--root', self.dir, stdin='\n'.join(map(json.dumps, calls)).encode() + b'\n', env=env, timeout=60)
        self.assertEqual(server.requests, [])

    def test_databases_are_to_be_copied_first(self):
        server = self.serve({'bucket/r/report.sqlite': b'SQLite format 3\0' + bytes(4080)}, signed=False)
        said = run('info', 's3://bucket/r/report.sqlite', env=server.variables(), check=2).err
        self.assertTrue('copy' in said or 'no reader' in said, said)

    def test_without_libcurl_that_is_known(self):
        # A library of that name that is none stands first on the loader's way.
        (self.dir / 'libcurl.so.4').write_bytes(b'none')
        (self.dir / 'libcurl-gnutls.so.4').write_bytes(b'none')
        said = run('info', 'https://127.0.0.1:1/x', env={'LD_LIBRARY_PATH': str(self.dir)}, check=2).err
        self.assertIn('libcurl', said)
        self.assertIn('apt install', said)


@unittest.skipUnless(CURL and importlib.util.find_spec('moto') and importlib.util.find_spec('boto3'), 'needs moto and boto3 (./dev slow installs them)')
class AnotherServerTest(Case):
    """The same against a server that we did not write, filled by Amazon's own client."""

    def test_a_run_in_moto(self):
        import boto3
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        env = {'AWS_ACCESS_KEY_ID': 'k', 'AWS_SECRET_ACCESS_KEY': 's', 'AWS_ENDPOINT_URL': f'http://127.0.0.1:{port}', 'AWS_EC2_METADATA_DISABLED': 'true', 'no_proxy': '127.0.0.1'}
        server = subprocess.Popen([sys.executable, '-m', 'moto.server', '-H', '127.0.0.1', '-p', str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(('127.0.0.1', port)) == 0:
                    break
            time.sleep(0.1)
        files = simulated(self.dir / 'logs')
        client = boto3.client('s3', endpoint_url=env['AWS_ENDPOINT_URL'], aws_access_key_id='k', aws_secret_access_key='s', region_name='us-east-1')
        client.create_bucket(Bucket='training')
        for rel, data in files.items():
            client.put_object(Bucket='training', Key=f'run 7/{rel}', Body=data)
        there = json.loads(run('explain', 's3://training/run 7', '--format', 'json', '-q', env=env, check=0).out)
        here = json.loads(run('explain', self.dir / 'logs', '--format', 'json', '-q', check=0).out)
        self.assertEqual([(f['key'], f['lost_ns']) for f in here['findings']], [(f['key'], f['lost_ns']) for f in there['findings']])


if __name__ == '__main__':
    unittest.main()
