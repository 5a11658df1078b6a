"""Replaces the package while the reference script runs, so that seconds of import do not count: the script uses a
device count and a logger, nothing else."""


class device:
    class cuda:
        @staticmethod
        def device_count():
            return 0
