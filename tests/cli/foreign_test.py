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

    def test_tables_and_logs_name_their_tool(self):
        for name, text, what, command in (
                ('results.csv', '"Index","KernelName","gpu-id","queue-id","pid","tid","grd","wgr","sig","obj","DispatchNs","BeginNs","EndNs"\n0,"add.kd",0,0,7,7,64,64,"0x0","0x1",1,2,3\n', 'kernels by rocprof', 'rocprofv3 --sys-trace'),
                ('results.stats.csv', '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"add.kd",10,1000,100,99.5\n', 'summary by rocprof', 'rocprofv3 --sys-trace'),
                ('7_kernel_stats.csv', '"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"\n"add",10,1000,100,99.5,90,110,2\n', 'summary by rocprof', 'rocprofv3 --sys-trace'),
                ('summary.txt', 'KERNELS_SUMMARY:\n  Name  Calls  DURATION (nsec)  AVERAGE (nsec)  PERCENT (INC)\n  add  10  1000  100  99.5\n', 'summary by rocprof', 'rocprofv3 --sys-trace'),
                ('7_counter_collection.csv', '"Correlation_Id","Dispatch_Id","Agent_Id","Kernel_Name","Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"\n1,1,"Agent 4","add","SQ_WAVES",64,5,9\n', 'counters by rocprofv3', 'rocprofv3 --sys-trace'),
                ('sums.csv', 'Time (%),Total Time (ns),Instances,Avg (ns),Name\n63.2,1264,100,12.6,gemm\n', 'summary by nsys stats', 'nsys export --type sqlite'),
                ('sums.txt', ' ** CUDA API Summary (cuda_api_sum):\n\n Time (%)  Total Time (ns)  Num Calls  Avg (ns)  Name\n --------  -----\n     63.2   1264  100  12.6  cudaMemcpy\n', 'summary by nsys stats', 'nsys export --type sqlite'),
                ('trace.csv', 'Start (ns),Duration (ns),CorrId,GrdX,Device,Ctx,Strm,Name\n812,20,112,64,GPU (0),1,7,gemm\n', 'table of nsys stats', 'nsys export --type sqlite'),
                ('projected.csv', 'Name,Projected Start (ns),Projected Duration (ns),Style,PID,TID,RangeStack\n:copy_in,1496,2547,PushPop,53,53,:2\n', 'table of nsys stats', 'nsys export --type sqlite'),
                ('ncu.csv', '"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"0","7","gemm","DRAM Frequency","cycle/nsecond","1.2"\n', 'Nsight Compute', 'nsys profile'),
                ('ncu_long.csv', '"ID","Kernel Name","Metric Name","Metric Value","Metric Unit"\n"0","add","gpu__time_duration.sum","5,000","nsecond"\n', 'Nsight Compute', 'nsys profile'),
                ('perf.txt', '# To display the header, use --header.\n#\n# Overhead       Samples  Command  Shared Object      Symbol\n#\n    62.50%  1250  app  app  [.] work\n', 'samples', 'stageline record'),
                ('session.json', '{"session": {"start_time": 1.5, "duration": 1.1, "sample_count": 1134, "start_call_stack": ["Main"' + ', "f"' * 20000 + ']}}', 'samples', 'stageline record'),
                ('network.json', '[' + '{"method":"Network.dataReceived","params":{"requestId":"9.1"}},' * 2000 + '{}]', 'holds no events', 'export_chrome_trace'),
                ('triton.ndjson', '{"event_type":"compilation","pid":8,"stack":[]}\n' * 2, 'holds no events', 'export_chrome_trace'),
                ('nvprof.csv', '==12== Profiling result:\n"Type","Time(%)","Time","Calls","Name"\n"GPU activities",63.2,1.2,100,"gemm"\n', 'nvprof', 'nsys profile'),
                ('op_statistic.csv', 'Device_id,OP Type,Core Type,Count,Total Time(us),Avg Time(us)\n0,MatMulV2,AI_CORE,10,350.1,35.0\n', "summary of Ascend's profiler", 'kernel_details.csv'),
                ('api_statistic.csv', 'Device_id,Level,API Name,Time(us),Count\nhost,acl,aclnnMatmul,350.1,10\n', "summary of Ascend's profiler", 'kernel_details.csv'),
                ('cluster_step_trace_time.csv', 'Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped\n1,rank,4,239.6,109.9,14.8\n', 'msprof-analyze', 'ascend_pytorch_profiler_*.db'),
                ('nccl.log', 'node1:12:12 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x7f recvbuff 0x7f count 1024 datatype 7 op 0 root 0 comm 0x55 [nranks=8] stream 0x55\n', 'log of NCCL', 'torch.profiler'),
                ('tests.txt', '# nThread 1 nGpus 8\n#  size  count  type  redop  root  time  algbw  busbw #wrong\n   8   2   float   sum  -1  25.1  0.00  0.00  0\n', 'nccl-tests', 'torch.profiler'),
                ('layers.json', '[\n  { "count" : 10 }\n, { "name" : "conv1", "timeMs" : 9.8, "averageMs" : 0.98, "percentage" : 3.8 }\n]\n', 'TensorRT', 'stageline record'),
                ('smi.csv', 'timestamp, name, utilization.gpu [%], memory.used [MiB]\n2024/01/01 10:00:00.123, NVIDIA A100, 98 %, 30000 MiB\n', 'nvidia-smi', 'stageline record'),
                ('ds.log', '[2024-05-01 10:00:00,124] [INFO] [timer.py:260:stop] epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=15.1\n', 'log of DeepSpeed', 'with_stack=True'),
                ('comms.log', '[2022-06-26 01:39:55,722] [INFO] [logging.py:69:log_dist] [Rank 0] rank=0 | comm op: all_gather | time (ms): 0.11 | msg size: 6.0 MB | algbw (Gbps): 954.4  | busbw (Gbps): 894.7\n', 'log of DeepSpeed', 'with_stack=True'),
                ('verl.log', 'step:1 - actor/entropy:0.5 - timing_s/gen:35.1 - timing_s/step:70.3\n', 'log of verl', 'torch.profiler'),
                ('trainer_state.json', '{"epoch": 1.0, "global_step": 100, "log_history": [{"epoch": 0.1, "loss": 2.1, "step": 10}]}\n', 'log of a training program', 'torch.profiler'),
                ('titan.log', '[rank0]:[titan] 2024-05-01 10:00:00 - root - INFO - step: 10  loss: 7.1  tps: 2,512  mfu: 41.2%\n', 'log of a training program', 'torch.profiler')):
            with self.subTest(name):
                err = self.said(name, text.encode())
                self.assertIn(what, err)
                self.assertIn(command, err)
                self.assertNotIn('no reader recognises', err)

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
