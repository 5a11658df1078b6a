"""A stand-in for Paddle: the names that stageline.hooks looks for, without a device."""


class device:
    @staticmethod
    def is_compiled_with_cuda():
        return False
