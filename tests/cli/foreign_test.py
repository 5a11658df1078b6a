"""Files that users try although no reader takes them: each error names the format, and a way to make a readable
file."""
import bz2
import gzip
import io
import lzma
import pathlib
import pickle
import sqlite3
import tarfile
import tempfile
import unittest
import zipfile

from support import run


def packed(make, name):
    out = io.BytesIO()
    with make(fileobj=out, mode='w') as archive:
        member = tarfile.TarInfo(name)
        member.size = 19
        archive.addfile(member, io.BytesIO(b'{"traceEvents": []}'))
    return out.getvalue()


def packed_zip(name):
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w') as archive:
        archive.writestr(name, b'{"traceEvents": []}')
    return out.getvalue()


class ForeignTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)
        self.addCleanup(self.temp.cleanup)

    def said(self, name, content=b'\x01\x02\x03 nothing known' * 20):
        path = self.folder / name
        path.write_bytes(content)
        return run('info', path, check=2).err

    def test_by_name(self):
        for name, what, command in (('run.nsys-rep', 'Nsight Systems', 'nsys export --type sqlite'), ('run.qdrep', 'older Nsight Systems', 'nsys export --type sqlite'),
                                    ('run.qdstrm', 'has not made a report', 'QdstrmImporter'), ('run.ncu-rep', 'Nsight Compute', 'nsys profile'),
                                    ('run.etl', 'Event Tracing for Windows', 'export_chrome_trace'), ('vm.xplane.pb', 'XLA', 'as it is (binary'),
                                    ('run.0.et', 'Chakra', 'pt.trace.json'), ('old.nvvp', 'nvprof', 'nsys profile'),
                                    ('run.json.br', 'Brotli', 'brotli -d'), ('old.pkl', 'pickle', 'only plain data'), ('train.prof', 'samples', 'stageline record'),
                                    ('node.cpuprofile', 'samples', 'stageline record'), ('traces.otf2', 'Score-P', 'export_chrome_trace'), ('graph.pb', 'protobuf', 'docs/formats'),
                                    ('events.out.tfevents.1700000000.host.1.0', 'TensorBoard', 'plugins/profile')):
            with self.subTest(name):
                err = self.said(name)
                self.assertIn(what, err)
                self.assertIn(command, err)
                self.assertLess(len(err), 600)

    def test_by_their_first_bytes_whatever_they_are_called(self):
        for content, what in ((b'PERFILE2' + bytes(200), 'Linux perf'), (b'PAR1' + bytes(200), 'Parquet'), (b'\x10\x00\x04FxT\x16\x00' + bytes(64), 'Fuchsia'),
                              (lzma.compress(b'{"traceEvents": []}'), 'xz -d'), (bz2.compress(b'{"traceEvents": []}'), 'bunzip2'), (b'\x04\x22\x4d\x18' + bytes(64), 'lz4 -d'),
                              (b'\x93NUMPY\x01\x00v\x00' + b' ' * 118 + bytes(24), 'array of numpy'), (packed(tarfile.open, 'a.json'), 'tar -xf'), (packed_zip('a.json'), 'looked at a.json'),
                              (gzip.compress(packed(tarfile.open, 'a.json')), 'tar -xf'), (packed_zip('x.npy'), 'array of numpy'),
                              (b'{"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": []}', 'speedscope'),
                              (b'{"nodes": [{"id": 1, "callFrame": {"functionName": "(root)"}}], "samples": [1]}', 'V8')):
            with self.subTest(what):
                self.assertIn(what, self.said('data', content))

    def test_pickles_say_which_kind_they_are(self):
        self.assertIn('snapshot of an allocator', self.said('mem.pickle', pickle.dumps({'segments': [], 'device_traces': [[]]}, 2)))
        self.assertIn('only plain data', self.said('table.pkl', pickle.dumps({'a': [1, 2]}, 4)))
        with zipfile.ZipFile(self.folder / 'made.pt', 'w') as out:
            out.writestr('archive/data.pkl', b'\x80\x02}.')
        self.assertIn('torch.save', run('info', self.folder / 'made.pt', check=2).err)

    def test_databases_say_whose_they_are(self):
        db = sqlite3.connect(self.folder / 'run_results.db')
        db.execute('CREATE TABLE rocpd_metadata_01 (id INTEGER)')
        db.commit()
        db.close()
        self.assertIn('rocpd convert', run('info', self.folder / 'run_results.db', check=2).err)
        for name, table, what, command in (('cluster_analysis.db', 'ClusterStepTraceTime (step TEXT)', 'msprof-analyze', 'ascend_pytorch_profiler_*.db'),
                                           ('results.db', 'ClusterCommunicationTime (step TEXT)', 'msprof-analyze', 'ascend_pytorch_profiler_*.db'),
                                           ('leaks_dump_20250101010101.db', 'python_trace (FuncInfo TEXT)', 'msMemScope', 'torch_npu.profiler'),
                                           ('memory.db', 'memscope_dump (ID INTEGER)', 'msMemScope', 'torch_npu.profiler')):
            db = sqlite3.connect(self.folder / name)
            db.execute(f'CREATE TABLE {table}')
            db.commit()
            db.close()
            err = run('info', self.folder / name, check=2).err
            self.assertIn(what, err)
            self.assertIn(command, err)
        db = sqlite3.connect(self.folder / 'report_0.db')
        for table in ('API (startNs INTEGER)', 'COMPUTE_TASK_INFO (name INTEGER, block_dim INTEGER)', 'SESSION_TIME_INFO (startTimeNs INTEGER, baseTimeNs INTEGER)'):
            db.execute(f'CREATE TABLE {table}')
        db.commit()
        db.close()
        self.assertIn('msprof --export=on', run('info', self.folder / 'report_0.db', check=2).err)

    def test_profiles_without_times_name_their_tool(self):
        tree = b'[{"frame": {"name": "ROOT"}, "metrics": {"time (ns)": 5}, "children": []}, {"CUDA": {}}]'
        for name in ('matmul.hatchet', 'matmul.json'):
            err = self.said(name, tree)
            self.assertIn('Proton', err)
            self.assertIn('data="trace"', err)
        for member in ('run.nsys-rep', 'nvtx_gpu_proj_trace/trace.parquet'):
            err = self.said('jax.zip', packed_zip(member))
            self.assertIn('nsys-jax', err)
            self.assertIn('nsys export --type sqlite', err)


if __name__ == '__main__':
    unittest.main()
