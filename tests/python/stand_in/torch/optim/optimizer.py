import time

_pre, _post = [], []


def register_optimizer_step_pre_hook(hook):
    _pre.append(hook)


def register_optimizer_step_post_hook(hook):
    _post.append(hook)


class Optimizer:
    def step(self, *args, **kwargs):
        for hook in _pre:
            hook(self, args, kwargs)
        time.sleep(0.001)
        for hook in _post:
            hook(self, args, kwargs)
