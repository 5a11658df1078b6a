// Colours of the chart, from the palette the report carries (src/model/palette.cc).
import {BUBBLE_PARTS} from '../data/bubbles';
import type {Palette} from '../data/report';
import {GROUP_COUNT, Group} from '../data/kind';

export interface ChartColours {
  palette: Palette;
  group: Uint32Array; // 0xBBGGRR, for pixels
  fill: string[][]; // [group][tint]: later chunks are lighter
  text: string[][];
  idle: CanvasPattern;
  weight: CanvasPattern[]; // hatch over weight gradients by tint, the second channel besides hue
  receive: CanvasPattern;
  cause: CanvasPattern[]; // of waiting, by BUBBLE_PARTS
  // Level lines over input gradients by tint, where full backwards or weight gradients are there too.
  input: CanvasPattern[];
}

export type Rgb = [number, number, number];
export const parse = (hex: string): Rgb => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16)) as Rgb;
export const css = (c: Rgb): string => `rgb(${c.map(Math.round).join(' ')})`;
export const mix = (a: Rgb, b: Rgb, share: number): Rgb => a.map((v, i) => v + (b[i]! - v) * share) as Rgb;

export function luminance(c: Rgb): number {
  const [r, g, b] = c.map(v => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)) as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a: Rgb, b: Rgb): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

const WHITE: Rgb = [255, 255, 255], INK: Rgb = [13, 16, 19];
// White where it is readable, for it is calmer on saturated fills; ink elsewhere.
export const textOn = (fill: Rgb): string => css(contrast(fill, WHITE) >= 4.5 ? WHITE : INK);

export const CHUNK_TINTS = 4;
// How far a chunk's fill goes towards the ground; the step from the first to the second has to be seen without the
// other. On every one of them white or ink is readable, in both themes: at 0.36 neither was on a dark page's green and
// pink.
export const tintShare = (chunk: number): number => [0, 0.3, 0.46, 0.58][tintOf(chunk)]!;

type Slant = '/' | '\\' | '|' | '-';
// One line per tile; the corners of a diagonal one carry the neighbours' ends, so that the hatch is seamless.
export function hatch(context: CanvasRenderingContext2D, ground: string | null, line: string, size: number,
  width: number, slant: Slant = '/'): CanvasPattern
{
  const tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const pen = tile.getContext('2d')!;
  if (ground) {
    pen.fillStyle = ground;
    pen.fillRect(0, 0, size, size);
  }
  pen.strokeStyle = line;
  pen.lineWidth = width;
  pen.beginPath();
  for (const shift of slant === '/' || slant === '\\' ? [-size, 0, size] : [size / 2]) {
    const [x0, y0, x1, y1] = slant === '|' ? [shift, -1, shift, size + 1] : slant === '-' ? [-1, shift, size + 1, shift]
      : slant === '/' ? [shift - 1, size + 1, shift + size + 1, -1] : [shift - 1, -1, shift + size + 1, size + 1];
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
  }
  pen.stroke();
  return context.createPattern(tile, 'repeat')!;
}

// Level lines, as the charts in files have them on input gradients.
function rules(context: CanvasRenderingContext2D, line: string, size: number, width: number): CanvasPattern {
  const tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const pen = tile.getContext('2d')!;
  pen.fillStyle = line;
  pen.fillRect(0, 0, size, width);
  return context.createPattern(tile, 'repeat')!;
}

// The style sheet's, the same as in the bar of the headline; idle where it has none.
function causeColours(): string[] {
  const style = getComputedStyle(document.documentElement);
  return BUBBLE_PARTS.map(part =>
    style.getPropertyValue(`--part-${part}`).trim() || style.getPropertyValue('--idle2').trim()
  );
}

// By BUBBLE_PARTS: the direction of its lines distinguishes each cause, even without colour vision.
const CAUSE_SLANTS: readonly Slant[] = ['/', '\\', '|', '-', '/'], CAUSE_SIZES = [7, 7, 5, 5, 12];

export function makeColours(context: CanvasRenderingContext2D, palette: Palette, ratio: number): ChartColours {
  const groups = palette.group.map(parse);
  const ground = parse(palette.bg);
  const tints = groups.map(colour => Array.from({length: CHUNK_TINTS}, (_, i) => mix(colour, ground, tintShare(i))));
  const group = new Uint32Array(GROUP_COUNT);
  groups.forEach(([r, g, b], i) => {
    group[i] = r | g << 8 | b << 16;
  });
  // Lighter than a dark fill, darker than a light one.
  const lines = (of: Group): string[] =>
    tints[of]!.map((fill, i) => css(i === 0 ? mix(fill, ground, 0.35) : groups[of]!));
  return {
    palette,
    group,
    fill: tints.map(list => list.map(css)),
    text: tints.map(list => list.map(textOn)),
    idle: hatch(context, palette.idle, palette.idle2, Math.round(8 * ratio), 1.1 * ratio),
    cause: causeColours().map((line, k) =>
      hatch(context, palette.idle, line, Math.round(CAUSE_SIZES[k]! * ratio), 1.7 * ratio, CAUSE_SLANTS[k])
    ),
    weight: lines(Group.Weight).map(line => hatch(context, null, line, Math.round(5 * ratio), 1 * ratio)),
    receive: hatch(context, palette.idle, css(groups[Group.Message]!), Math.round(6 * ratio), 1.3 * ratio, '\\'),
    input: lines(Group.Backward).map(line => rules(context, line, Math.round(5 * ratio), 1 * ratio)),
  };
}

export const tintOf = (chunk: number): number => Math.min(Math.max(chunk, 0), CHUNK_TINTS - 1);

// Moves every hatch sideways by this number of pixels.
export function shiftHatches({idle, cause, weight, input, receive}: ChartColours, by: number): void {
  const to = new DOMMatrix([1, 0, 0, 1, by, 0]);
  for (const pattern of [idle, receive, ...cause, ...weight, ...input]) pattern.setTransform(to);
}
