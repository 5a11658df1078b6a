// Colours of the timeline: kinds as the server says them (src/model/palette.cc), the rest from viewer.css.
import {CHUNK_TINTS, textOn, tintShare} from '../../chart/colours';
import type {Run} from './api';
import type {Theme} from './page';

type Rgb = [number, number, number];
const parse = (hex: string): Rgb => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16)) as Rgb;
const css = (c: Rgb): string => `rgb(${c.map(Math.round).join(' ')})`;
const mix = (a: Rgb, b: Rgb, share: number): Rgb => a.map((v, i) => v + (b[i]! - v) * share) as Rgb;

export interface Colours {
  bg: string;
  ink: string;
  mut: string;
  line: string;
  soft: string;
  idle: string;
  idle2: string;
  acc: string;
  hot: string;
  fill: string[][];
  text: string[][]; // [kind][tint]: later chunks are lighter
  pixel: Uint32Array; // 0xBBGGRR by kind
  hatch: CanvasPattern; // of idle time
  weight: CanvasPattern; // over weight gradients, the second channel besides hue
  hatched: ReadonlySet<number>;
  receive: CanvasPattern; // of receives, which wait for what they get
  receives: ReadonlySet<number>;
}

const RECEIVE_PALED = 0.72; // where lines have no room: their mean
// A chunk has its own tint of these kinds; the others have one colour.
const TINTED = new Set(['forward', 'backward', 'weight', 'message']);

// A kind's fill and text for every tint, on the page's ground.
export function chunkPaints(kind: Run['kinds'][number], theme: Theme): {fill: string; text: string}[] {
  const ground = parse(getComputedStyle(document.documentElement).getPropertyValue('--bg').trim()),
    base = parse(kind[theme].fill);
  return Array.from({length: CHUNK_TINTS}, (_, i) => {
    const tint = TINTED.has(kind.group) ? mix(base, ground, tintShare(i)) : base;
    return {fill: css(tint), text: i === 0 || tint === base ? kind[theme].text : textOn(tint)};
  });
}

// Forward's tint of every chunk, as its cells are painted.
export function chunkTints(kinds: Run['kinds'], chunks: number, theme: Theme): string[] {
  const forward = kinds.find(kind => kind.group === 'forward') ?? kinds[0],
    ground = parse(getComputedStyle(document.documentElement).getPropertyValue('--bg').trim());
  return forward
    ? Array.from({length: Math.min(chunks, CHUNK_TINTS)},
      (_, i) => css(mix(parse(forward[theme].fill), ground, tintShare(i)))) : [];
}

function diagonal(context: CanvasRenderingContext2D, ground: string | null, line: string, size: number,
  width: number): CanvasPattern
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
  for (const shift of [-size, 0, size]) { // neighbours' ends in the corners, so that the hatch is seamless
    pen.moveTo(shift - 1, size + 1);
    pen.lineTo(shift + size + 1, -1);
  }
  pen.stroke();
  return context.createPattern(tile, 'repeat')!;
}

export function makeColours(context: CanvasRenderingContext2D, run: Run, theme: Theme, ratio: number): Colours {
  const style = getComputedStyle(document.documentElement);
  const named = (name: string): string => style.getPropertyValue('--' + name).trim();
  const ground = parse(named('bg'));
  const colours: Colours = {
    bg: named('bg'),
    ink: named('ink'),
    mut: named('mut'),
    line: named('line'),
    soft: named('soft'),
    idle: named('idle'),
    idle2: named('idle2'),
    acc: named('acc'),
    hot: named('hot'),
    fill: [],
    text: [],
    pixel: new Uint32Array(256),
    hatch: diagonal(context, named('idle'), named('idle2'), Math.max(4, Math.round(8 * ratio)), 1.1 * ratio),
    weight: diagonal(context, null, css(mix(parse(named('bg')), [128, 128, 128], 0.2)),
      Math.max(3, Math.round(6 * ratio)), 0.9 * ratio),
    receive: diagonal(context, named('idle'),
      run.kinds.find(kind => kind.group === 'message')?.[theme].fill ?? named('mut'),
      Math.max(4, Math.round(7 * ratio)), 1.3 * ratio),
    receives: new Set(run.kinds.filter(kind => kind.code === 'RF' || kind.code === 'RB').map(kind => kind.id)),
    hatched: new Set(run.kinds.filter(kind => kind.group === 'weight').map(kind => kind.id)),
  };
  for (const kind of run.kinds) {
    const base = parse(kind[theme].fill);
    const tints = Array.from({length: CHUNK_TINTS},
      (_, i) => (TINTED.has(kind.group) ? mix(base, ground, tintShare(i)) : base));
    colours.fill[kind.id] = (colours.receives.has(kind.id) ? tints.map(tint =>
      mix(tint, parse(named('idle')), RECEIVE_PALED)
    ) : tints).map(css);
    colours.text[kind.id] = tints.map((tint,
      i) => (colours.receives.has(kind.id) ? colours.ink : i === 0 || tint === base ? kind[theme].text : textOn(tint))
    );
    // Where lines have no room, their mean.
    const seen = colours.receives.has(kind.id) ? mix(base, parse(named('idle')), RECEIVE_PALED).map(Math.round) : base;
    colours.pixel[kind.id] = seen[0]! | seen[1]! << 8 | seen[2]! << 16;
  }
  return colours;
}
