"""overlap_moe_expert_parallel_comm's schedule without a pipeline: forwards run together with the backward of the micro-batch before."""
import time


class Tensor:
    pass


def combined_forward_backward_step(forward_step_func, data_iterator, f_model, num_microbatches, input_tensor, forward_data_store, b_model,
                                   b_input_tensor, b_output_tensor, b_output_tensor_grad, config, f_model_chunk_id=None, pre_forward=None,
                                   pre_backward=None, post_forward=None, post_backward=None, collect_non_loss_data=False,
                                   checkpoint_activations_microbatch=None, is_first_microbatch=False, current_microbatch=None,
                                   encoder_decoder_xattn=False):
    time.sleep(0.001)
    return (Tensor() if f_model is not None else None), 0, (Tensor() if b_model is not None else None)


def combined_1f1b_schedule_for_no_pipelining(model, num_microbatches):
    output = None
    for i in range(num_microbatches + 1):
        output, _, _ = combined_forward_backward_step(None, None, model if i < num_microbatches else None, num_microbatches, None, [],
                                                      model if i else None, None, output, None, None,
                                                      current_microbatch=i if i < num_microbatches else None)
