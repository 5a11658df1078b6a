"""A training step as flat programs for kineto_rank.Rank: one list of instructions per piece of the model.

An instruction is a tuple, its kind first:
  ('open', category, name, arguments, microseconds, link)   an operator or annotation begins; link: '', 'forward',
                                     'backward' (takes the last open forward link), 'node' (that link again), 'reduce'
                                     (the next collective's number is added)
  ('end', microseconds)              the innermost one ends
  ('frame', name) ('endframe',)      a Python frame, written with --python only
  ('call', name, microseconds)       a runtime call that launches nothing
  ('kernel', name, microseconds)     launch and kernel on the compute stream
  ('triton', name, microseconds)     the same through the driver API
  ('graph', names, microseconds)     one launch of many kernels
  ('copy', name, bytes, stream, GB/s)   copy or memset; stream: 'compute' or 'copy'
  ('reduce', elements)               a collective on the communication stream; ends when the last rank is through
  ('host',)                          what the data loader waits for
  ('wait_reduces',)                  the compute stream waits for the step's collectives
  ('drain',)                         the host waits for the compute stream
  ('alloc', bytes) ('free',)         allocator records, written with --memory only
"""

VECTOR = ('void at::native::vectorized_elementwise_kernel<4, %s, std::array<char*, %dul> >(int, %s, std::array<char*, %dul>)')


def elementwise(functor, pointers=3):
    return VECTOR % (functor, pointers, functor, pointers)


GEMM = {
    'nvidia': ['ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn',
               'sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas',
               'void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8>'
               '(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8::Params)'],
    'amd': ['Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1_AFC1_GRVWA8_GRVWB8_ISA942_WS64_WG32_8_1',
            'Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT160x256x64_MI16x16x1_SN_LDSB1_AFC1_GRVWA8_GRVWB4_ISA942_WS64_WG16_16_1'],
}
ADD = elementwise('at::native::CUDAFunctor_add<c10::BFloat16>')
MUL = elementwise('at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, '
                  'at::native::binary_internal::MulFunctor<float> >')
RELU = elementwise('at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, '
                   'at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda(c10::BFloat16)#1}', 2)
GELU = elementwise('at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() '
                   'const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}', 2)
LAYER_NORM = ('void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, '
              'c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)')
DROPOUT = ('void at::native::(anonymous namespace)::fused_dropout_kernel_vec<c10::BFloat16, float, unsigned int, 1, 8, bool>'
           '(at::cuda::detail::TensorInfo<c10::BFloat16 const, unsigned int>, at::cuda::detail::TensorInfo<c10::BFloat16, '
           'unsigned int>, at::cuda::detail::TensorInfo<bool, unsigned int>, unsigned int, float, at::PhiloxCudaState)')
REDUCE = ('void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16, at::native::func_wrapper_t<c10::BFloat16, '
          'at::native::sum_functor<c10::BFloat16, float, c10::BFloat16>::operator()(at::TensorIterator&)::{lambda(float, '
          'float)#1}>, unsigned int, c10::BFloat16, 4> >(at::native::ReduceOp<c10::BFloat16, float>)')
FLASH = ('void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t>, '
         'true, true, false, false, true, false>(pytorch_flash::Flash_fwd_params)')
FLASH_BACK = ('void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, 128, 128, 8, 4, 4, 4, '
              'false, false, cutlass::bfloat16_t>, true, true, false, false, true>(pytorch_flash::Flash_bwd_params)')
ADAM = ('void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::'
        'FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, '
        '(at::native::ADAM_MODE)1, false>, float const*, double, double, double, double, double, bool>'
        '(at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>)')
MATRIX = ('"Concrete Inputs": ["", "", "", "1", "1"], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", '
          '"Scalar"], "Input Strides": [[1], [1024, 1], [1, 1024], [], []], "Input Dims": [[1024], [8192, 1024], [1024, 1024], [], []], ')
TENSOR = ('"Concrete Inputs": ["", ""], "Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Strides": [[1048576, 1024, 1], '
          '[1048576, 1024, 1]], "Input Dims": [[8, 1024, 1024], [8, 1024, 1024]], ')
VIEW = ('"Concrete Inputs": ["", "[1024, 1024]", "[1, 1024]", ""], "Input type": ["c10::BFloat16", "ScalarList", "ScalarList", ""], '
        '"Input Strides": [[1024, 1], [], [], []], "Input Dims": [[1024, 1024], [], [], []], ')
EMPTY = ('"Concrete Inputs": ["[8, 1024, 1024]", "15", "", "", "", ""], "Input type": ["ScalarList", "Scalar", "", "Device", "Scalar", '
         '""], "Input Strides": [[], [], [], [], [], []], "Input Dims": [[], [], [], [], [], []], ')


def collective_args(options, elements):
    ranks = ', '.join(str(rank) for rank in range(min(options.ranks, 30))) + (', ...' if options.ranks > 30 else '')
    return ('"Collective name": "allreduce", "In msg nelems": %d, "Out msg nelems": %d, "Group size": %d, "dtype": "BFloat16", '
            '"In split size": "[]", "Out split size": "[]", "Process Group Name": "0", "Process Group Description": "default_pg", '
            '"Process Group Ranks": "[%s]", ' % (elements, elements, options.ranks, ranks))


class Plan:
    """Holds the pieces of one model. `model` is transformer or mlp."""

    def __init__(self, options):
        self.o = options
        self.gemm = GEMM[options.vendor]
        self.turn = 0

    def op(self, name, *inside, args=TENSOR, category='cpu_op', pre=3.0, post=1.5, link=''):
        out = [('open', category, name, args if self.o.shapes or category != 'cpu_op' else '', pre, link)]
        for part in inside:
            out += part if isinstance(part, list) else [part]
        return out + [('end', post)]

    def note(self, name, *inside):
        return self.op(name, *inside, args='', category='user_annotation', pre=4.0, post=3.0)

    def frame(self, name, inside):
        return [('frame', name), *inside, ('endframe',)] if self.o.python else inside

    def view(self):
        return self.op('aten::t', self.op('aten::transpose', self.op('aten::as_strided', args=VIEW, pre=0.5, post=0.2), args=VIEW,
                                          pre=0.7, post=0.3), args=VIEW, pre=0.7, post=0.3)

    def matmul(self, name, scale, link=''):
        self.turn += 1
        inside = []
        if self.turn % 4 == 0:
            inside.append(('call', 'cudaStreamIsCapturing', 0.9))
        if self.turn % 5 == 0:
            inside.append(('copy', 'Memset (Device)', 4 * (64, 4096, 1 << 20)[self.turn % 3], 'compute', 900.0))
        inside.append(('call', 'cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags', 1.0))
        inside.append(('kernel', self.gemm[self.turn % len(self.gemm)], 90 * scale))
        return self.op(name, *inside, args=MATRIX, link=link)

    def linear(self, scale):
        return self.frame('torch/nn/modules/linear.py(114): forward', self.op(
            'aten::linear', self.view(), self.matmul('aten::addmm', scale, 'forward'), args=MATRIX))

    def pointwise(self, name, kernel, micros=12.0, link='', allocates=False):
        inside = [self.op('aten::empty', ('alloc', 16 << 20), args=EMPTY, pre=0.8, post=0.4)] if allocates else []
        return self.op(name, *inside, ('kernel', kernel, micros), link=link)

    def forward(self, layer):
        """Makes one layer on the main thread."""
        if self.o.graphs:
            names = [LAYER_NORM, self.gemm[0], FLASH, self.gemm[-1], ADD, LAYER_NORM, self.gemm[0], GELU, self.gemm[-1], ADD]
            return self.op('graph_%d' % (layer % 16), ('graph', names, 35.0), args='')
        if self.o.model == 'mlp':
            body = self.linear(1.0) + self.pointwise('aten::relu', RELU, link='forward', allocates=True)
        else:
            body = [*self.pointwise('aten::native_layer_norm', LAYER_NORM, link='forward', allocates=True), *self.linear(1.5),
                    *self.op('aten::scaled_dot_product_attention', self.op('aten::_flash_attention_forward', ('alloc', 8 << 20),
                                                                          ('kernel', FLASH, 110.0)), link='forward'),
                    *self.linear(0.7), *self.pointwise('aten::native_dropout', DROPOUT, link='forward'),
                    *self.pointwise('aten::add', ADD, link='forward'),
                    *self.pointwise('aten::native_layer_norm', LAYER_NORM, link='forward', allocates=True), *self.linear(2.0),
                    *self.pointwise('aten::gelu', GELU, link='forward', allocates=True), *self.linear(2.0),
                    *self.pointwise('aten::native_dropout', DROPOUT, link='forward'),
                    *self.pointwise('aten::add', ADD, link='forward')]
        if self.o.triton:
            name = 'triton_poi_fused_add_mul_%d' % (layer % 16)
            body += self.op(name, ('triton', name, 9.0),
                            args='"kernel_hash": "c%031x", "grid": "grid(1024,)", "stream": %d, "kernel_file": '
                                 '"/tmp/torchinductor/c%d.py", "kernel_backend": "triton", "num_warps": 4, '
                                 % (layer * 7919, 0 if self.o.vendor == 'amd' else 7, layer % 16))
        return self.frame('nn.Module: Layer_%d' % layer, self.frame('torch/nn/modules/module.py(1773): _call_impl', body))

    def node(self, name, *inside):
        """Makes a node of the autograd graph and the engine's wrapper around it."""
        return self.op('autograd::engine::evaluate_function: ' + name, self.op(name, *inside, args='', link='node'), args='',
                       link='backward', pre=4.0, post=3.0)

    def back_matmul(self, scale):
        return self.node('AddmmBackward0', self.view(), self.matmul('aten::mm', scale), self.matmul('aten::mm', scale),
                         self.pointwise('aten::sum', REDUCE, 9.0), ('free',))

    def backward(self, layer):
        """The same layer on the autograd thread; its nodes take the forward links in reverse."""
        if self.o.graphs:
            names = [self.gemm[0], FLASH_BACK, self.gemm[-1], MUL, REDUCE]
            return self.op('graph_back_%d' % (layer % 16), ('graph', names, 70.0), args='')
        if self.o.model == 'mlp':
            return self.node('ReluBackward0', self.pointwise('aten::threshold_backward', MUL)) + self.back_matmul(1.0)
        mul = self.pointwise('aten::mul', MUL)
        norm = self.pointwise('aten::native_layer_norm_backward', LAYER_NORM, 20.0)
        flash = self.op('aten::_scaled_dot_product_flash_attention_backward', ('kernel', FLASH_BACK, 250.0))
        return [*self.node('AddBackward0'), *self.node('NativeDropoutBackward0', mul), *self.back_matmul(2.0),
                *self.node('GeluBackward0', mul), *self.back_matmul(2.0), *self.node('NativeLayerNormBackward0', norm, ('free',)),
                *self.node('AddBackward0'), *self.node('NativeDropoutBackward0', mul), *self.back_matmul(0.7),
                *self.node('ScaledDotProductFlashAttentionBackward0', flash, ('free',)), *self.back_matmul(1.5),
                *self.node('NativeLayerNormBackward0', norm, ('free',))]

    def bucket(self, elements):
        """Gradients of some layers are reduced over all ranks, behind the compute stream's work so far."""
        inside = [('call', 'cudaEventRecord', 1.0), ('call', 'cudaStreamWaitEvent', 0.9), ('reduce', elements),
                  ('call', 'cudaEventRecord', 1.0)]
        params = self.op('record_param_comms', self.note('nccl:all_reduce', inside), args=collective_args(self.o, elements), link='reduce')
        return self.op('c10d::allreduce_', params, args='')

    def load(self):
        copies = []
        for size in (1 << 20,) if self.o.model == 'mlp' else (8192, 1 << 20, 16 << 20):
            copies += self.op('aten::to', self.op('aten::_to_copy', self.op('aten::copy_', (
                'copy', 'Memcpy HtoD (Pinned -> Device)', size, 'copy', 24.0))))
        return self.frame('torch/utils/data/dataloader.py(732): __next__', self.note(
            'enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__', ('host',), copies))

    def optimizer(self, layers):
        count = max(1, layers // 2)
        return self.frame('torch/optim/optimizer.py(493): wrapper', self.note(
            'Optimizer.step#AdamW.step', ('wait_reduces',),
            *[self.op('aten::_fused_adamw_', ('kernel', ADAM, 110.0), args='') for _ in range(count)]))

    def item(self):
        return self.op('aten::item', self.op('aten::_local_scalar_dense', (
            'copy', 'Memcpy DtoH (Device -> Pageable)', 4, 'compute', 0.004), ('drain',)))
