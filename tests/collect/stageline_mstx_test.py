"""collect/stageline_mstx.py with stand-ins for torch_npu, Megatron and MindSpeed: the marks, the messages, and the
untouched parts."""
import json
import pathlib
import queue
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'collect'))
import stageline_mstx as mark  # noqa: E402


class Mstx:
    def __init__(self):
        self.ranges, self.open = [], []

    def range_start(self, message, stream=None):
        self.ranges.append((message, stream))
        self.open.append(len(self.ranges))
        return len(self.ranges)

    def range_end(self, number):
        self.open.remove(number)


class Tensor:
    pass


class Helper(unittest.TestCase):
    def setUp(self):
        self.before = dict(sys.modules)
        self.mstx = Mstx()
        sys.modules['torch_npu'] = types.SimpleNamespace(npu=types.SimpleNamespace(mstx=self.mstx, current_stream=lambda: 'stream 2'))
        mark._state.update(step=None, stage=None, ask_megatron=False)
        mark._made.clear()
        self.addCleanup(self.forget)

    def forget(self):
        for name in set(sys.modules) - set(self.before):
            del sys.modules[name]

    def module(self, name, **members):
        made = types.ModuleType(name)
        vars(made).update(members)
        while name:
            sys.modules.setdefault(name, made if name == made.__name__ else types.ModuleType(name))
            name = name.rpartition('.')[0]
        return made

    def said(self):
        self.assertEqual(self.mstx.open, [], 'a range was left open')
        self.assertTrue(all(stream == 'stream 2' for _, stream in self.mstx.ranges))
        return [json.loads(text) for text, _ in self.mstx.ranges]

    def test_megatron_backwards_know_their_forwards(self):
        def forward_step(forward_step_func, data_iterator, model, num_microbatches, input_tensor, current_microbatch=None, vp_stage=None):
            return [Tensor()], 0

        def backward_step(input_tensor, output_tensor, output_tensor_grad, model_type, config):
            return input_tensor

        schedules = self.module('megatron.core.pipeline_parallel.schedules', forward_step=forward_step, backward_step=backward_step)
        self.module('megatron.core.parallel_state', get_pipeline_model_parallel_rank=lambda: 3)
        self.assertEqual(mark.megatron(), 2)
        self.assertEqual(mark.megatron(), 0)  # once is enough
        mark.set_step(12)
        outputs = [schedules.forward_step(None, None, None, 4, None, current_microbatch=i, vp_stage=i % 2)[0] for i in range(3)]
        for i in (1, 0):
            schedules.backward_step('in', outputs[i], None, None, None)
        # There is no forward here: no number is better than a wrong one.
        schedules.backward_step('in', Tensor(), None, None, None)
        where = {'stage': 3, 'step': 12}
        self.assertEqual(self.said(), [{'name': 'forward_step', 'micro_batch': i, 'chunk': i % 2, **where} for i in range(3)] +
                         [{'name': 'backward_step', 'micro_batch': i, 'chunk': i % 2, **where} for i in (1, 0)] +
                         [{'name': 'backward_step', **where}])

    def test_a_stage_that_is_not_known_yet_is_asked_for_again(self):
        def forward_step(current_microbatch=None):
            return [Tensor()], 0

        groups = []

        def get_pipeline_model_parallel_rank():
            assert groups, 'pipeline_model parallel group is not initialized'
            return groups[0]

        schedules = self.module('megatron.core.pipeline_parallel.schedules', forward_step=forward_step)
        self.module('megatron.core.parallel_state', get_pipeline_model_parallel_rank=get_pipeline_model_parallel_rank)
        mark.megatron()  # before initialize_model_parallel()
        schedules.forward_step(current_microbatch=0)
        groups.append(3)
        schedules.forward_step(current_microbatch=1)
        groups[0] = 5  # known is known
        schedules.forward_step(current_microbatch=2)
        self.assertEqual([m.get('stage') for m in self.said()], [None, 3, 3])

    def test_mindspeed_dualpipev(self):
        class WeightGradStore:
            cache, weight_grad_queue, store_grad_cache = [], queue.Queue(), []

            @classmethod
            def pop(cls, overlap_arg=None):  # as MindSpeed's: what lies in the queue is not its concern
                if len(cls.cache) == 0:
                    return None
                cls.store_grad_cache = None
                return cls.cache.pop()

            @classmethod
            def pop_single(cls):
                if cls.weight_grad_queue.empty():
                    return None
                cls.cache = cls.weight_grad_queue.get()
                return cls.pop()

        def forward(forward_step_func, model_chunk_id, num_microbatches, current_microbatch=None, extra_block_kwargs=None):
            return Tensor(), 0

        def backward(input_tensor, output_tensor, output_tensor_grad, model_type, config, model_graph=None):
            return None

        def plain_backward(input_tensor, output_tensor, output_tensor_grad, model_type, config):  # imported from Megatron by name
            return None

        schedules = self.module('mindspeed.core.pipeline_parallel.dualpipev.dualpipev_schedules', forward_step_with_model_graph=forward,
                                backward_step_with_model_graph=backward, backward_step=plain_backward, WeightGradStore=WeightGradStore)
        self.assertEqual(mark.mindspeed_dualpipev(), 4)
        output, _ = schedules.forward_step_with_model_graph(None, 1, 10, current_microbatch=14)
        schedules.forward_step_with_model_graph(None, 0, 10, current_microbatch=5, extra_block_kwargs={})
        schedules.backward_step_with_model_graph(None, output, None, None, None)
        self.assertIsNone(WeightGradStore.pop())  # empty: the guide's snippet leaves a range here
        WeightGradStore.weight_grad_queue.put(['weights'])
        self.assertIsNone(WeightGradStore.pop())  # still nothing: pop does not look into the queue
        self.assertEqual(WeightGradStore.pop_single(), 'weights')
        plain, _ = schedules.forward_step_with_model_graph(None, 0, 10, current_microbatch=6)
        schedules.backward_step(None, plain, None, None, None)
        self.assertEqual(self.said(), [{'name': 'forward_step_with_model_graph', 'micro_batch': 4, 'chunk': 1},
                                       {'name': 'forward_backward_overlaping', 'micro_batch': 5, 'chunk': 0},
                                       {'name': 'backward_step_with_model_graph', 'micro_batch': 4, 'chunk': 1},
                                       {'name': 'WeightGradStore.pop'},
                                       {'name': 'forward_step_with_model_graph', 'micro_batch': 6, 'chunk': 0},
                                       {'name': 'backward_step', 'micro_batch': 6, 'chunk': 0}])

    def test_mindspeed_overlap_has_steps_of_its_own(self):
        for place in ('transformer.moe.moe_feature', 'pipeline_parallel'):
            with self.subTest(place):
                self.overlap(f'mindspeed.core.{place}.fb_overlap.vpp_schedules')

    def overlap(self, place):
        for name in [name for name in sys.modules if name.startswith('mindspeed')]:
            del sys.modules[name]
        self.mstx.ranges.clear()

        def forward_step(forward_step_func, data_iterator, model, num_microbatches, input_tensor, forward_data_store, config,
                         collect_non_loss_data=False, checkpoint_activations_microbatch=None, is_first_microbatch=False,
                         current_microbatch=None, extra_block_kwargs=None):
            return [Tensor()], 0

        def backward_step(input_tensor, output_tensor, output_tensor_grad, model_type, config, model_graph=None):
            return None

        self.module('megatron.core.parallel_state', get_virtual_pipeline_model_parallel_rank=lambda: 1)
        schedules = self.module(place, forward_step=forward_step, backward_step=backward_step)
        self.assertEqual(mark.mindspeed_overlap(), 2)
        output, _ = schedules.forward_step(None, None, None, 8, None, [], None, current_microbatch=3)
        schedules.forward_step(None, None, None, 8, None, [], None, current_microbatch=4, extra_block_kwargs={})
        schedules.backward_step(None, output, None, None, None)
        self.assertEqual(self.said(), [{'name': 'forward_step', 'micro_batch': 3, 'chunk': 1},
                                       {'name': 'forward_backward_overlaping', 'micro_batch': 4, 'chunk': 1},
                                       {'name': 'backward_step', 'micro_batch': 3, 'chunk': 1}])

    def test_without_torch_npu_nothing_happens(self):
        del sys.modules['torch_npu']
        holder = types.SimpleNamespace(work=lambda x: x + 1)
        self.assertTrue(mark.wrap(holder, 'work'))
        self.assertEqual(holder.work(1), 2)
        with mark.span('anything'):
            pass
        self.assertEqual((mark.megatron(), mark.mindspeed_dualpipev(), mark.describe(object(), 'dualpipev', 8)), (0, 0, []))

    def test_errors_stay_the_users_own(self):
        def work(x):
            raise RuntimeError('boom')

        holder = types.SimpleNamespace(work=work)
        mark.wrap(holder, 'work', describe=lambda arguments: {'micro_batch': arguments['x']})
        with self.assertRaisesRegex(RuntimeError, 'boom'):
            holder.work(3)
        with self.assertRaisesRegex(TypeError, 'work'):
            holder.work()
        self.assertEqual(self.said(), [{'name': 'work', 'micro_batch': 3}])
        self.assertFalse(mark.wrap(holder, 'nothing_like_it'))

    def test_messages_fit_the_profiler(self):
        mark.set_step(10**9)
        mark.set_stage(4095)
        for name in ('forward_step', 'n' * 120, 'ä' * 200):
            text = mark.message(name, micro_batch=65535, chunk=63, backward_micro_batch=65535, backward_chunk=63)
            self.assertTrue(json.loads(text)['name'])
            self.assertLessEqual(len(text.encode()), mark.MOST_BYTES)
        self.assertEqual(json.loads(mark.message('n' * 120, micro_batch=3)), {'name': 'n' * 120, 'micro_batch': 3})

    def test_metadata(self):
        class Prof:
            rows = {}

            def add_metadata_json(self, key, value):
                self.rows[key] = json.loads(value)

        self.assertEqual(mark.describe(Prof(), pp_type='dualpipev', micro_batches=10, tp=2, pp=4), ['distributed_args', 'pp_info'])
        self.assertEqual(Prof.rows['pp_info'], {'pp_type': 'dualpipev', 'microbatch_num': 10})
        self.assertEqual({k: v for k, v in Prof.rows['distributed_args'].items() if 'size' in k and 'world' not in k},
                         {'tensor_model_parallel_size': 2, 'pipeline_model_parallel_size': 4, 'data_parallel_size': 1,
                          'context_parallel_size': 1, 'expert_model_parallel_size': 1})


if __name__ == '__main__':
    unittest.main()
