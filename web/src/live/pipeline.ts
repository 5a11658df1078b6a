// Draws the pipeline of the last steps: a row per rank, boxes by kind. Boxes narrower than a pixel add up to the
// pixel's shade.
import {t} from '../i18n/i18n';
import {h, styled} from '../dom';
import {Group, KIND_GROUP} from '../data/kind';
import type {Pipeline} from './api';

const GROUPS: readonly (readonly [Group, 'live.F' | 'live.B' | 'live.W' | 'live.C' | 'live.O'])[] = [
  [Group.Forward, 'live.F'],
  [Group.Backward, 'live.B'],
  [Group.Weight, 'live.W'],
  [Group.Collective, 'live.C'],
  [Group.Optimizer, 'live.O'],
];

const rowHeight = (rows: number): number => Math.max(10, Math.min(24, Math.floor(460 / Math.max(rows, 1))));

function draw(canvas: HTMLCanvasElement, pipeline: Pipeline, height: number): void {
  const width = canvas.clientWidth, scale = devicePixelRatio || 1, style = getComputedStyle(document.documentElement);
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(pipeline.rows.length * height * scale);
  const context = canvas.getContext('2d');
  if (!context) return;
  context.scale(scale, scale);
  const colours = Array.from({length: 7}, (_, group) => style.getPropertyValue(`--group-${group}`).trim()),
    idle = style.getPropertyValue('--idle').trim();
  const x = width / Math.max(pipeline.span_us, 1), gap = height > 12 ? 2 : 1;
  pipeline.rows.forEach((row, i) => {
    const top = i * height;
    context.fillStyle = idle;
    context.fillRect(0, top, width, height - gap);
    for (let k = 0; k + 3 < row.cells.length; k += 4) {
      const from = row.cells[k + 1]! * x, size = row.cells[k + 2]! * x;
      context.fillStyle = colours[KIND_GROUP[row.cells[k]!] ?? Group.Other]!;
      context.globalAlpha = Math.min(1, size);
      // A gap separates neighbours where there is room for it.
      context.fillRect(from, top, Math.max(size - (size > 3 ? .6 : 0), Math.min(size, 1)), height - gap);
    }
    context.globalAlpha = 1;
  });
}

export class PipelineView {
  private readonly head = h('h2');
  private readonly key = h('ul', {class: 'key'});
  private readonly names = h('div', {class: 'names', 'aria-hidden': 'true'});
  private readonly canvas = h('canvas', {role: 'img'});
  readonly element = h('section', {}, this.head, this.key, h('div', {class: 'pipe'}, this.names, this.canvas));
  private shown: Pipeline | null = null;

  constructor() {
    new ResizeObserver(() => this.redraw()).observe(this.canvas.parentElement!);
  }

  // `hot`: the rank that is spoken of above; `ranks`: of the run.
  show(pipeline: Pipeline | null, ranks: number, hot: number | null): void {
    this.shown = pipeline;
    this.element.hidden = !pipeline || pipeline.rows.length === 0;
    if (!pipeline) return;
    this.head.replaceChildren(
      pipeline.from_step === pipeline.to_step ? t('live.pipe.one', pipeline.to_step)
        : t('live.pipe.head', pipeline.from_step, pipeline.to_step),
      ...(pipeline.rows.length < ranks ? [h('small', {}, t('live.pipe.few', ranks))] : []),
    );
    const there = new Set(
      pipeline.rows.flatMap(row => row.cells.filter((_, k) => k % 4 === 0).map(kind => KIND_GROUP[kind])),
    );
    this.key.replaceChildren(
      ...GROUPS.filter(([group]) => there.has(group)).map(([group, name]) =>
        h('li', {}, h('i', {class: `group-${group}`}), t(name))
      ),
    );
    const height = rowHeight(pipeline.rows.length);
    this.names.replaceChildren(...pipeline.rows.map(row =>
      styled(
        h('div', {class: row.rank === hot ? 'hot' : ''},
          row.stage < 0 ? t('live.row.rank', row.rank) : t('live.row', row.stage, row.rank)),
        {height: `${height}px`, 'line-height': `${height}px`, 'font-size': `${Math.min(12, height)}px`},
      )
    ));
    this.canvas.setAttribute('aria-label', t('live.pipe.label', pipeline.rows.length));
    this.redraw();
  }

  redraw(): void {
    if (!this.shown) return;
    const height = rowHeight(this.shown.rows.length);
    styled(this.canvas, {height: `${this.shown.rows.length * height}px`});
    draw(this.canvas, this.shown, height);
  }
}
