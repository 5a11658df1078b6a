// Waiting, hatched in the colours of its causes. A bubble with several causes is cut by what each of them is of it.
import {BUBBLE_PART_COUNT, type Bubbles} from '../data/bubbles';
import {laneRange} from '../data/rows';
import type {Viewport} from './viewport';

export interface BubbleBox {
  part: number;
  x0: number;
  x1: number;
}

const LEAST_PX = 4; // narrower ones stay plain waiting

// Stretches of the plot [0, width), device pixels, in order.
export function bubbleBoxes(bubbles: Bubbles, row: number, step: number | null, view: Viewport, width: number,
  ratio: number): BubbleBox[]
{
  const lane = bubbles.lanes[row]!, {cells, parts} = bubbles, scale = width / (view.t1 - view.t0),
    boxes: BubbleBox[] = [];
  const [begin, end] = laneRange(lane, cells, step, view.t0, view.t1);
  for (let i = begin; i < end; ++i) {
    const at = lane.cells[i]!, x0 = (cells.start[at]! - view.t0) * scale, x1 = x0 + cells.dur[at]! * scale;
    if (x1 - x0 < LEAST_PX * ratio || x1 < 0 || x0 > width) continue;
    let sum = 0;
    for (let k = 0; k < BUBBLE_PART_COUNT; ++k) sum += Math.max(0, parts[k]![at]!);
    if (!(sum > 0)) continue;
    let x = x0;
    for (let k = 0; k < BUBBLE_PART_COUNT; ++k) {
      const share = Math.max(0, parts[k]![at]!) / sum;
      if (share === 0) continue;
      const next = x + share * (x1 - x0);
      if (next > 0 && x < width && next - x >= ratio)
        boxes.push({part: k, x0: Math.max(x, 0), x1: Math.min(next, width)});
      x = next;
    }
  }
  return boxes;
}
