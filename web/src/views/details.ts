// The details of the selected cell, with its neighbours in the pipeline as buttons.
import {select, type App} from '../app';
import {linksFrom, linksTo} from '../data/cells';
import {h} from '../dom';
import {duration, exactMs} from '../format';
import {t} from '../i18n/i18n';
import {lateWords} from '../late_words';
import {cellCode, hasContextParallel, kindName, placeOf, stepZero} from '../words';

const MAX_LINKS = 12;

function linkButtons(app: App, cells: number[]): HTMLElement | null {
  if (cells.length === 0) return null;
  return h('span', {class: 'links'},
    ...cells.slice(0, MAX_LINKS).map(cell =>
      h('button', {class: 'plain link', click: () => select(app, cell)},
        `${cellCode(app, cell)}, ${placeOf(app.report.parts[app.cells.part[cell]!]!)}`)
    ), cells.length > MAX_LINKS && `+${cells.length - MAX_LINKS}`);
}

export function detailsView(app: App): HTMLElement {
  const cell = app.state.selected;
  if (cell < 0)
    return h('section', {class: 'details none', id: 'details'}, h('p', {class: 'quiet'}, t('details.none')));
  const {cells, report} = app, part = report.parts[cells.part[cell]!]!;
  const known = (value: number): string | null => (value >= 0 ? String(value) : null);
  const start = cells.start[cell]!, dur = cells.dur[cell]!, zero = app.model.whole.t0;
  const facts: [string, string | HTMLElement | null][] = [
    [t('details.kind'), kindName(cells.kind[cell]!)],
    [t('details.microBatch'), known(cells.microBatch[cell]!)],
    [t('details.chunk'), app.model.chunked ? known(cells.chunk[cell]!) : null],
    [t('details.stage'), known(part.stage)],
    [t('details.rank'), String(part.rank)],
    [t(hasContextParallel(app) ? 'details.pipeline' : 'details.replica'), known(part.dp)],
    [t('details.machine'), part.machineName || known(part.machine)],
    [t('details.step'), known(cells.step[cell]!)],
    [t('details.duration'), `${duration(dur)} (${exactMs(dur)})`],
    [t('details.startInStep'), exactMs(start - stepZero(app, cell))],
    [t('details.start'), exactMs(start - zero)],
    [t('details.end'), exactMs(start + dur - zero)],
    [t('details.theory'), lateWords(app, cell) || null],
    [t('details.name'), report.cells.names[cells.name[cell]!] || null],
    [t('details.from'), linkButtons(app, linksTo(cells, cell))],
    [t('details.to'), linkButtons(app, linksFrom(cells, cell))],
  ];
  return h('section', {class: 'details', id: 'details', 'aria-label': t('details')},
    h('h2', {}, h('strong', {}, cellCode(app, cell)), ` ${placeOf(part)}`,
      h('button', {class: 'plain close', 'aria-label': t('details.close'), title: t('details.close'),
        click: () => select(app, -1)}, '×')),
    h('dl', {},
      ...facts.flatMap(([name, value]) => (value ? [h('div', {}, h('dt', {}, name), h('dd', {}, value))] : []))));
}
