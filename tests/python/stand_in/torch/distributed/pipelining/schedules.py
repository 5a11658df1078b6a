class _PipelineSchedule:
    def __init__(self, stages, micro_batches):
        self._stages, self._n_microbatches, self._has_backward = stages, micro_batches, True

    def eval(self, args=None):
        self._has_backward = False
        try:
            return self.step(args)
        finally:
            self._has_backward = True

    def run(self, action, args):
        kind, chunk, micro_batch = action
        stage = self._stages[chunk]
        if kind == 'F':
            stage.forward_one_chunk(micro_batch, args, {})
        elif not self._has_backward:
            return
        elif kind == 'W':
            stage.backward_weight_one_chunk(micro_batch)
        else:
            stage.backward_one_chunk(micro_batch, full_backward=kind == 'B')

    def step(self, args=None):
        self._step_microbatches(args)

    def _step_microbatches(self, args):
        for action in self.order():
            self.run(action, args)


class PipelineScheduleSingle(_PipelineSchedule):
    def __init__(self, stage, micro_batches):
        super().__init__([stage], micro_batches)
        del self._stages
        self._stage = stage
        self.warm_up = min(micro_batches, stage.num_stages - stage.stage_index)

    def run(self, action, args):
        self._stages = [self._stage]
        super().run(action, args)
        del self._stages

    def step(self, args=None):
        return super().step(args)


class Schedule1F1B(PipelineScheduleSingle):
    def order(self):
        count, ahead = self._n_microbatches, self.warm_up
        actions = [('F', 0, i) for i in range(ahead)]
        for i in range(count):
            actions.append(('B', 0, i))
            if i + ahead < count:
                actions.append(('F', 0, i + ahead))
        return actions


class PipelineScheduleMulti(_PipelineSchedule):
    def step(self, args=None):
        return super().step(args)


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """As torch numbers it: rounds of group_size micro-batches through each chunk."""

    def order(self):
        size, chunks = self._stages[0].group_size, len(self._stages)
        total = self._n_microbatches * chunks
        ahead = min(total, (chunks - 1) * size + 2 * (size - 1 - self._stages[0].group_rank))

        def place(i, backward):
            chunk = i // size % chunks
            return (chunks - 1 - chunk if backward else chunk), i // (size * chunks) * size + i % size

        forwards = [('F', *place(i, False)) for i in range(total)]
        backwards = [('B', *place(i, True)) for i in range(total)]
        actions = forwards[:ahead]
        for i in range(total - ahead):
            actions += [forwards[ahead + i], backwards[i]]
        return actions + backwards[total - ahead:]


class ScheduleSplit(PipelineScheduleMulti):
    """Not torch's: every kind of call once."""

    def order(self):
        return [('F', 0, 0), ('F', 1, 0), ('I', 1, 0), ('W', 1, 0), ('B', 0, 0)]
