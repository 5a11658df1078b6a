class PipeInstruction:
    def __init__(self, **kwargs):
        self.kwargs = kwargs


class OptimizerStep(PipeInstruction):
    pass


class LoadMicroBatch(PipeInstruction):
    pass


class ForwardPass(PipeInstruction):
    pass


class BackwardPass(PipeInstruction):
    pass


class SendActivation(PipeInstruction):
    pass


class RecvGrad(PipeInstruction):
    pass
