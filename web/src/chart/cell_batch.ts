// Cells wide enough for a rectangle of their own, of all rows at once. A fill style costs more to set than a rectangle
// to draw, so they are drawn style after style. The lists are kept between frames; nothing is allocated once they have
// grown.
import type {Cells} from '../data/cells';
import {FORWARD_BACKWARD, Group, GROUP_COUNT, INPUT_GRAD, isReceive, KIND_CODES, KIND_GROUP,
  KIND_LANE} from '../data/kind';
import {CHUNK_TINTS, tintOf} from './colours';
import type {Frame, Scene} from './scene';

// The largest at which the numbers of a kind fit its short cells; the first in tall rows only.
const LABEL_SIZES = [17, 13, 11, 9.5], TALL = 80;
const lists = (count: number): number[][] => Array.from({length: count}, () => []);

export const labelOf = (cells: Cells,
  cell:
    number): string => (cells.microBatch[cell]! >= 0 ? String(cells.microBatch[cell]) : KIND_CODES[cells.kind[cell]!]!);

// Numbers of a class all show, or none: halves of overlapped pairs are long where cells of their kind may be short.
export const LABEL_CLASSES = 32;
export const labelClass = ({kind, pair}: Pick<Cells, 'kind' | 'pair'>, cell: number): number =>
  kind[cell]! + (pair[cell]! >= 0 ? LABEL_CLASSES / 2 : 0);

export class CellBatch {
  // By group and tint: x, y, width, height, radius of each.
  private readonly fills = lists(GROUP_COUNT * CHUNK_TINTS);
  private readonly weights = lists(CHUNK_TINTS);
  private readonly inputs = lists(CHUNK_TINTS);
  private readonly receives: number[] = [];
  private readonly halves = lists(CHUNK_TINTS); // the backward half of a cell that is both
  private readonly texts = lists(GROUP_COUNT * CHUNK_TINTS * LABEL_SIZES.length); // cell, x, y

  add(scene: Scene, frame: Frame, cell: number, top: number, height: number): void {
    const {cells, ratio} = scene, kind = cells.kind[cell]!, group = KIND_GROUP[kind]!,
      tint = tintOf(cells.chunk[cell]!);
    const x0 = Math.round(frame.px(cells.start[cell]!)),
      x1 = Math.round(frame.px(cells.start[cell]! + cells.dur[cell]!));
    // Leaves a seam between neighbours.
    const seam = x1 - x0 > 5 * ratio ? Math.round(ratio) : 0, wide = Math.max(x1 - x0 - seam, 1);
    const left = Math.max(x0, frame.x - 4), width = Math.max(Math.min(x1 - seam, frame.x + frame.width + 4) - left, 1);
    // Round corners cost ten times a rectangle, and are seen on large cells only.
    const round = wide > 16 * ratio && height > 22 * ratio ? 2 * ratio : 0;
    if (isReceive(kind) && wide > 3 * ratio) this.receives.push(left, top, width, height, 0);
    else this.fills[group * CHUNK_TINTS + tint]!.push(left, top, width, height, round);
    if (group === Group.Weight && wide > 6 * ratio) this.weights[tint]!.push(left, top, width, height, round);
    else if (kind === INPUT_GRAD && scene.model.markInputs && wide > 6 * ratio)
      this.inputs[tint]!.push(left, top, width, height, round);
    if (kind === FORWARD_BACKWARD) this.halves[tint]!.push(left, top + height / 2, width, height / 2, 0);
    if (cells.microBatch[cell]! < 0 && kind !== FORWARD_BACKWARD || KIND_LANE[kind] !== 0 || height < 13 * ratio)
      return;
    const scale = frame.width / (frame.view.t1 - frame.view.t0),
      usual = scene.labelDur[labelClass(cells, cell)]! * scale;
    const room = (letters: number, px: number): number => letters * px * ratio * 0.62 + 3 * ratio;
    const size = LABEL_SIZES.findIndex(px =>
      (px < LABEL_SIZES[0]! || height >= TALL * ratio) && px * ratio <= height * 0.6 &&
      usual >= room(scene.labelLength, px)
    );
    if (size < 0) return;
    const needed = room(labelOf(cells, cell).length, LABEL_SIZES[size]!), middle = x0 + wide / 2;
    if (cells.dur[cell]! * scale < needed) return;
    const ink = (kind === FORWARD_BACKWARD ? Group.Backward : group) * CHUNK_TINTS + tint;
    // In the middle of the cell; where that is out of sight, of what is seen of it.
    const whole = middle - needed / 2 >= frame.texts.left && middle + needed / 2 <= frame.texts.right;
    this.texts[ink * LABEL_SIZES.length + size]!.push(cell, whole ? middle : left + width / 2,
      top + height * (kind === FORWARD_BACKWARD ? 0.76 : 0.53));
  }

  // Draws what was added, and forgets it.
  draw(context: CanvasRenderingContext2D, {cells, colours, ratio}: Scene, font: string): void {
    const cover = (boxes: number[], style: string | CanvasPattern): void => {
      if (boxes.length === 0) return;
      context.fillStyle = style;
      for (let i = 0; i < boxes.length; i += 5) {
        if (boxes[i + 4] === 0) {
          context.fillRect(boxes[i]!, boxes[i + 1]!, boxes[i + 2]!, boxes[i + 3]!);
          continue;
        }
        context.beginPath();
        context.roundRect(boxes[i]!, boxes[i + 1]!, boxes[i + 2]!, boxes[i + 3]!, boxes[i + 4]);
        context.fill();
      }
      boxes.length = 0;
    };
    const at = (i: number, of: string[][]): string => of[Math.floor(i / CHUNK_TINTS)]![i % CHUNK_TINTS]!;
    cover(this.receives, colours.receive);
    this.fills.forEach((boxes, i) => cover(boxes, at(i, colours.fill)));
    this.weights.forEach((boxes, tint) => cover(boxes, colours.weight[tint]!));
    this.inputs.forEach((boxes, tint) => cover(boxes, colours.input[tint]!));
    this.halves.forEach((boxes, tint) => cover(boxes, colours.fill[Group.Backward]![tint]!));
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    this.texts.forEach((list, i) => {
      if (list.length === 0) return;
      context.font = `600 ${LABEL_SIZES[i % LABEL_SIZES.length]! * ratio}px ${font}`;
      context.fillStyle = at(Math.floor(i / LABEL_SIZES.length), colours.text);
      for (let k = 0; k < list.length; k += 3) context.fillText(labelOf(cells, list[k]!), list[k + 1]!, list[k + 2]!);
      list.length = 0;
    });
  }
}
