import time


class Work:
    def wait(self, timeout=None):
        time.sleep(0.001)
        return True


class Group:
    group_desc = 'default_pg'

    def size(self):
        import os
        return int(os.environ['WORLD_SIZE'])


class group:
    WORLD = Group()


class Tensor:
    def numel(self):
        return 100

    def element_size(self):
        return 4


def all_reduce(tensor, op=None, group=None, async_op=False):
    work = Work()
    if async_op:
        return work
    work.wait()  # a part of the call, and no range of its own
