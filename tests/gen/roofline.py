"""Writes a Kineto trace of operators with recorded shapes whose distance from the device's roof is planned.

  python3 tests/gen/roofline.py -o tests/golden/readers/kineto-shapes/input

Each operator's kernel takes a whole multiple of the time that an H100 SXM needs by its data sheet, so that `analyze
roofline` must find that number again. The rates are 989.4 TFLOP/s in BF16, 494.7 in TF32, 66.9 in FP32, and 3 350 GB/s.
"""
import argparse
import json
import pathlib

PEAK = {'BF16': 989.4e12, 'TF32': 494.7e12, 'FP32': 66.9e12}
BYTES_PER_SECOND = 3350e9

# Name, dims, types, concrete inputs, FLOPs, least bytes, precision, kernel, times of the roof, calls.
PLAN = [
    ('aten::addmm', [[4096], [8192, 4096], [4096, 4096], [], []], ['c10::BFloat16'] * 3 + ['Scalar'] * 2, ['', '', '', '1', '1'],
     2 * 8192 * 4096 * 4096, 2 * (4096 + 2 * 8192 * 4096 + 4096 * 4096), 'BF16', 'sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64', 2, 3),
    ('aten::mm', [[1024, 2048], [2048, 512]], ['float', 'float'], ['', ''], 2 * 1024 * 2048 * 512, 4 * (1024 * 2048 + 2048 * 512 + 1024 * 512), 'TF32',
     'cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4', 5, 2),
    ('aten::mm', [[1024, 2048], [2048, 512]], ['float', 'float'], ['', ''], 2 * 1024 * 2048 * 512, 4 * (1024 * 2048 + 2048 * 512 + 1024 * 512), 'FP32',
     'ampere_sgemm_128x64_nn', 3, 1),
    ('aten::bmm', [[16, 5184, 64], [16, 64, 5184]], ['c10::BFloat16'] * 2, ['', ''], 2 * 16 * 5184 * 64 * 5184,
     2 * 16 * (2 * 5184 * 64 + 5184 * 5184), 'BF16', 'sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize64x64x64', 4, 2),
    ('aten::mul', [[8192, 4096], [8192, 4096]], ['c10::BFloat16'] * 2, ['', ''], 8192 * 4096, 2 * 3 * 8192 * 4096, 'BF16',
     'void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16> >', 1, 4),
    ('aten::add', [[1024, 1024], [], []], ['long int', 'Scalar', 'Scalar'], ['', '1', '1'], 1024 * 1024, 8 * 2 * 1024 * 1024, None,
     'void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<long> >', 2, 1),
]
UNFIT = ('aten::mm', [[16, 32], [64, 16]], ['float', 'float'], ['', ''])  # 32 is not 64


def write(out):
    events, at, device_at, number = [], 1000.0, 1100.0, 0

    def call(name, dims, types, concrete, kernel, kernel_us, wrapper=None):
        nonlocal at, device_at, number
        number += 1
        inputs = {'Input Dims': dims, 'Input type': types, 'Concrete Inputs': concrete, 'External id': number}
        if wrapper:
            events.append({'ph': 'X', 'cat': 'cpu_op', 'name': wrapper, 'pid': 1, 'tid': 1, 'ts': at - 1, 'dur': 12, 'args': {**inputs, 'External id': number + 1000}})
        events.append({'ph': 'X', 'cat': 'cpu_op', 'name': name, 'pid': 1, 'tid': 1, 'ts': at, 'dur': 10, 'args': inputs})
        if kernel:
            events.append({'ph': 'X', 'cat': 'cuda_runtime', 'name': 'cudaLaunchKernel', 'pid': 1, 'tid': 1, 'ts': at + 2, 'dur': 5, 'args': {'correlation': number}})
            device_at = max(device_at, at + 8)
            events.append({'ph': 'X', 'cat': 'kernel', 'name': kernel, 'pid': 0, 'tid': 7, 'ts': round(device_at, 3), 'dur': round(kernel_us, 3),
                           'args': {'device': 0, 'stream': 7, 'correlation': number, 'External id': number}})
            device_at += kernel_us + 3
        at += 20

    for name, dims, types, concrete, flops, min_bytes, precision, kernel, times, calls in PLAN:
        seconds = max(flops / PEAK[precision] if precision else 0, min_bytes / BYTES_PER_SECOND)
        for _ in range(calls):
            call(name, dims, types, concrete, kernel, seconds * 1e6 * times, 'aten::linear' if name == 'aten::addmm' else None)
    call(*UNFIT, 'ampere_sgemm_32x32_nn', 12)
    call('aten::mm', [[4, 4], [4, 4]], ['float', 'float'], ['', ''], None, 0)  # on the host
    call('aten::gelu', [[8192, 4096], []], ['c10::BFloat16', ''], ['', 'none'], 'void gelu_kernel(float*)', 90)  # no formula
    out.mkdir(parents=True, exist_ok=True)
    text = {'schemaVersion': 1, 'deviceProperties': [{'id': 0, 'name': 'NVIDIA H100 80GB HBM3', 'totalGlobalMem': 85_000_000_000, 'numSms': 132}],
            'record_shapes': 1, 'distributedInfo': {'backend': 'nccl', 'rank': 0, 'world_size': 1}, 'traceEvents': events}
    (out / 'rank-0.pt.trace.json').write_text(json.dumps(text, indent=1).replace('\n    ', ' ') + '\n')


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-o', '--out', type=pathlib.Path, required=True)
    write(parser.parse_args().out)
