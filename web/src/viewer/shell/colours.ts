// Colours of the timeline: kinds from the server (src/model/palette.cc), the rest from viewer.css.
import {CHUNK_TINTS, css, hatch, mix, parse, textOn, tintShare, type Rgb} from '../../chart/colours';
import type {Run} from './api';
import type {Theme} from './page';

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
  hatched: ReadonlySet<number>; // kinds of weight gradients
  receive: CanvasPattern; // of receives, which wait for what they get
  receives: ReadonlySet<number>; // kinds of receives
  python: ReadonlySet<number>; // kinds that have a colour for each file
}

// How far a receive goes towards idle where its lines have no room: the mean of line and ground.
const RECEIVE_PALED = 0.72, MUTED = 0.9;
// A chunk has its own tint of these kinds; the others have one colour.
const TINTED = new Set(['forward', 'backward', 'weight', 'message']);

type Kind = Run['kinds'][number];

const named = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

// A kind's colour and its text for every tint, on the page's ground.
function tintsOf(kind: Kind, theme: Theme): {rgb: Rgb; text: string}[] {
  const ground = parse(named('bg')), {fill, text} = kind[theme], base = parse(fill);
  return Array.from({length: CHUNK_TINTS}, (_, i) => {
    const rgb = TINTED.has(kind.group) ? mix(base, ground, tintShare(i)) : base;
    return {rgb, text: i === 0 || rgb === base ? text : textOn(rgb)};
  });
}

// Returns the same as styles.
export const chunkPaints = (kind: Kind, theme: Theme): {fill: string; text: string}[] =>
  tintsOf(kind, theme).map(({rgb, text}) => ({fill: css(rgb), text}));

// Forward's tint of every chunk, as its cells are painted.
export function chunkTints(kinds: Run['kinds'], chunks: number, theme: Theme): string[] {
  const forward = kinds.find(kind => kind.group === 'forward');
  return forward ? chunkPaints(forward, theme).slice(0, chunks).map(paint => paint.fill) : [];
}

// `muted`: kinds that are nearly idle's colour, so that the others are seen.
export function makeColours(context: CanvasRenderingContext2D, run: Run, theme: Theme, ratio: number,
  muted: ReadonlySet<number> = new Set()): Colours
{
  const lines = (ground: string | null, line: string, size: number, width: number): CanvasPattern =>
    hatch(context, ground, line, Math.max(Math.ceil(size / 2), Math.round(size * ratio)), width * ratio);
  const ids = (wanted: (kind: Kind) => boolean): Set<number> => new Set(run.kinds.filter(wanted).map(kind => kind.id));
  const idle = named('idle'), ink = named('ink');
  const message = run.kinds.find(kind => kind.group === 'message');
  const colours: Colours = {
    bg: named('bg'),
    ink,
    mut: named('mut'),
    line: named('line'),
    soft: named('soft'),
    idle,
    idle2: named('idle2'),
    acc: named('acc'),
    hot: named('hot'),
    fill: [],
    text: [],
    pixel: new Uint32Array(256),
    hatch: lines(idle, named('idle2'), 8, 1.1),
    weight: lines(null, css(mix(parse(named('bg')), [128, 128, 128], 0.2)), 6, 0.9),
    hatched: ids(kind => !muted.has(kind.id) && kind.group === 'weight'),
    receive: lines(idle, message?.[theme].fill ?? named('mut'), 7, 1.3),
    python: ids(kind => !muted.has(kind.id) && kind.group === 'python'),
    receives: ids(kind => !muted.has(kind.id) && (kind.code === 'RF' || kind.code === 'RB')),
  };
  for (const kind of run.kinds) {
    const pale = muted.has(kind.id), receives = colours.receives.has(kind.id), tints = tintsOf(kind, theme);
    const seen = (rgb: Rgb): Rgb =>
      pale ? mix(rgb, parse(idle), MUTED) : receives ? mix(rgb, parse(idle), RECEIVE_PALED) : rgb;
    colours.fill[kind.id] = tints.map(tint => css(seen(tint.rgb)));
    colours.text[kind.id] = tints.map(tint => pale ? colours.mut : receives ? ink : tint.text);
    const [r, g, b] = seen(parse(kind[theme].fill)).map(Math.round) as Rgb;
    colours.pixel[kind.id] = r | g << 8 | b << 16;
  }
  return colours;
}
