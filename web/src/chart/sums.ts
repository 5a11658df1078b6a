// Draws rows of many ranks together: every column of pixels shows the share of them in each kind of work, stacked from
// the bottom of the row. The rest above is waiting. The pixel in which one share ends and the next starts has the mean
// of their colours.
import {densityOf, STACK} from '../data/density';
import {sumOf} from './layout';
import type {Frame, Scene} from './scene';

export class SumPainter {
  private readonly atlas = document.createElement('canvas');
  private image: ImageData | null = null;
  private shares = new Float64Array(0);

  // Paints the rows [first, last) of the layout that are sums.
  paint(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, first: number, last: number): void {
    const {layout} = scene, {width, rowHeight} = frame, lines: number[] = [];
    for (let index = first; index < last; ++index) if (layout.rows[index]! < 0) lines.push(index);
    if (lines.length === 0 || rowHeight <= 0) return;
    if (!this.image || this.atlas.width !== width || this.atlas.height < lines.length * rowHeight) {
      this.atlas.width = width;
      this.atlas.height = lines.length * rowHeight;
      this.image = this.atlas.getContext('2d')!.createImageData(width, this.atlas.height);
      this.shares = new Float64Array(STACK.length * width);
    }
    const pixels = new Uint32Array(this.image.data.buffer), pen = this.atlas.getContext('2d')!;
    lines.forEach((index, line) => {
      densityOf(scene.cells, scene.model, sumOf(layout, index)!, scene.step).fill(frame.view.t0, frame.view.t1, width,
        this.shares);
      this.pile(pixels.subarray(line * rowHeight * width, (line + 1) * rowHeight * width), width, rowHeight,
        scene.colours.group);
    });
    pen.putImageData(this.image, 0, 0, 0, 0, width, lines.length * rowHeight);
    lines.forEach((index, line) =>
      context.drawImage(this.atlas, 0, line * rowHeight, width, rowHeight, frame.x, frame.rowTop(index), width,
        rowHeight)
    );
  }

  // 0xAABBGGRR; `colours` are 0xBBGGRR by group.
  private pile(out: Uint32Array, width: number, height: number, colours: Uint32Array): void {
    out.fill(0);
    for (let x = 0; x < width; ++x) {
      let filled = 0; // pixels from the bottom
      let r = 0, g = 0, b = 0; // of the pixel that is begun, by what fills it
      for (let k = 0; k < STACK.length; ++k) {
        let left = this.shares[k * width + x]! * height;
        if (left <= 0) continue;
        const colour = colours[STACK[k]!]!, red = colour & 255, green = colour >> 8 & 255, blue = colour >> 16 & 255;
        while (left > 1e-9) {
          const row = Math.min(Math.floor(filled + 1e-9), height - 1), part = Math.min(left, row + 1 - filled);
          if (part <= 0) break;
          r += part * red;
          g += part * green;
          b += part * blue;
          filled += part;
          left -= part;
          const own = filled - row; // of this pixel
          out[(height - 1 - row) * width + x] =
            (Math.round(Math.min(own, 1) * 255) << 24 | Math.round(b / own) << 16 | Math.round(g / own) << 8 |
              Math.round(r / own)) >>> 0;
          if (own > 1 - 1e-9) r = g = b = 0;
        }
      }
    }
  }
}
