import time


def recv_forward(tensor_shape, config):
    time.sleep(0.0005)


def send_forward_recv_backward(output_tensor, tensor_shape, config):
    time.sleep(0.0005)


class P2PCommunicator:
    def send_backward(self, input_tensor_grads, is_first_stage):
        time.sleep(0.0005)

    def send_forward_backward_recv_forward_backward(self, output_tensor, input_tensor_grad, recv_prev, recv_next, tensor_shape):
        time.sleep(0.0005)
