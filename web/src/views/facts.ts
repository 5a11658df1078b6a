import type {App} from '../app';
import {frameOf} from '../data/frame';
import {h} from '../dom';
import {duration, grouped} from '../format';
import {t} from '../i18n/i18n';

// What was recognised: the first row of the table `recognition`.
function schedule({report}: App): string | false {
  const best = report.theory && frameOf(report, 'recognition')?.rows[0];
  return best ? t('facts.schedule.value', best.text('schedule'), grouped(best.num('equal_lists')), grouped(best.num('lists'))) : false;
}

// Mean over steps and replicas of warm-up, steady and cool-down of the whole pipeline: rows without a rank.
function phases({report}: App): string | false {
  const whole = frameOf(report, 'phases')?.rows.filter(row => row.text('rank') === '') ?? [];
  if (whole.length === 0) return false;
  const mean = (column: string): string => duration(whole.reduce((sum, row) => sum + row.num(column), 0) / whole.length);
  return t('facts.phases.value', mean('warm_up_ns'), mean('steady_ns'), mean('cool_down_ns'));
}

export function factsView(app: App): HTMLElement {
  const {report, cells, model} = app;
  const stages = new Set(report.parts.map(p => p.stage).filter(s => s >= 0)).size;
  const machines = new Set(report.parts.map(p => p.machine).filter(m => m >= 0)).size;
  let microBatches = 0, chunks = 0;
  for (let i = 0; i < cells.count; ++i) {
    if (cells.microBatch[i]! >= microBatches) microBatches = cells.microBatch[i]! + 1;
    if (cells.chunk[i]! >= chunks) chunks = cells.chunk[i]! + 1;
  }
  const facts: [string, string | false][] = [
    [t('facts.schedule'), schedule(app)],
    [t('facts.layout'), stages > 0 && t('facts.layout.value', stages, Math.max(model.dps.length, 1), microBatches)],
    [t('facts.chunks'), chunks > 1 && String(chunks)],
    [t('facts.phases'), phases(app)],
    [t('facts.machines'), machines > 1 && String(machines)],
    [t('facts.cells'), grouped(report.cells.total)],
    [t('facts.source'), report.description],
  ];
  return h('section', {class: 'aside-block'}, h('dl', {class: 'facts'},
    ...facts.flatMap(([name, value]) => (value ? [h('dt', {}, name), h('dd', {}, value)] : []))));
}
