"""A fill-drain pipeline (all forwards, then all backwards) as rows of a cell table, with times that a test chooses."""
import random


def rows(stages, micro_batches, steps, factor=lambda stage, step, mb, dp: 1, message_ms=lambda a, b, step, mb: 0.2, replicas=1, jitter=0.0, messages=True, seed=1):
    """Returns the rows: work of a rank in order, each cell when its message has arrived. A forward takes 10 ms and a backward 20, times
    factor(stage, step, micro-batch, replica); message_ms(sender, receiver, step, micro-batch)."""
    noise, out, begin = random.Random(seed), [], 1000.0
    for step in range(steps):
        ends = []
        for dp in range(replicas):
            free, sent = [begin] * stages, {}

            def cell(stage, kind, mb, back):
                first, came = stage == (stages - 1 if back else 0), sent.get((kind, stage, mb), begin)
                start = max(free[stage], begin if first else came)
                took = (10 if kind == 'F' else 20) * factor(stage, step, mb, dp) * max(0.5, 1 + noise.gauss(0, jitter))
                free[stage] = start + took
                out.append({'dp_rank': dp, 'stage': stage, 'rank': dp * stages + stage, 'step': step, 'kind': kind, 'start_us': start * 1000, 'dur_us': took * 1000, 'mb': mb})
                other = stage + (-1 if back else 1)
                if not 0 <= other < stages:
                    return
                takes = message_ms(stage, other, step, mb)
                sent[kind, other, mb] = free[stage] + takes
                for end, rank in (('S', stage), ('R', other)) if messages else ():
                    out.append({'dp_rank': dp, 'stage': rank, 'rank': dp * stages + rank, 'step': step, 'kind': end + kind, 'start_us': free[stage] * 1000, 'dur_us': takes * 1000,
                                'mb': mb})
            for stage in range(stages):
                for mb in range(micro_batches):
                    cell(stage, 'F', mb, False)
            for stage in reversed(range(stages)):
                for mb in range(micro_batches):
                    cell(stage, 'B', mb, True)
            ends.append(max(free))
        begin = max(ends) + 1
    return [{**row, 'start_us': f"{row['start_us']:.3f}", 'dur_us': f"{row['dur_us']:.3f}"} for row in out]
