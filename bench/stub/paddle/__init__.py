"""Stands for the package while the rival's script runs, so that seconds of import are not counted
against it: the script uses a device count and a logger, nothing else."""


class device:
    class cuda:
        @staticmethod
        def device_count():
            return 0
