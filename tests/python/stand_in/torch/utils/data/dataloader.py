import time


class _BaseDataLoaderIter:
    def __init__(self, count):
        self.left = count

    def __iter__(self):
        return self

    def __next__(self):
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        time.sleep(0.001)
        return self.left


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    pass


class DataLoader:
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return _SingleProcessDataLoaderIter(self.count)
