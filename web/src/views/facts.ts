import type {App} from '../app';
import {frameOf} from '../data/frame';
import {h} from '../dom';
import {duration, grouped} from '../format';
import {description, t} from '../i18n/i18n';

// What was recognised: the first row of the table `recognition`.
function schedule({report}: App): HTMLElement | false {
  const best = report.theory && frameOf(report, 'recognition')?.rows[0];
  if (!best) return false;
  // A name is not broken at its hyphens.
  return h('span', {}, h('span', {class: 'name'}, best.text('schedule')),
    t('facts.schedule.value', grouped(best.num('equal_lists')), grouped(best.num('lists'))));
}

// Mean over steps and replicas of warm-up, steady and cool-down of the whole pipeline: rows without a rank. Steps that
// the findings leave out are left out here too.
function phases({report}: App): string | false {
  const outliers = new Set(report.theory?.outliers.map(String));
  const whole = frameOf(report, 'phases')?.rows.filter(row => row.text('rank') === '' && !outliers.has(row.text('step'))) ?? [];
  if (whole.length === 0) return false;
  const mean = (column: string): string => duration(whole.reduce((sum, row) => sum + row.num(column), 0) / whole.length);
  return t('facts.phases.value', mean('warm_up_ns'), mean('steady_ns'), mean('cool_down_ns'));
}

export function factsView(app: App): HTMLElement {
  const {report, cells, model} = app;
  const stages = new Set(report.parts.map(p => p.stage).filter(s => s >= 0)).size;
  const machines = new Set(report.parts.map(p => p.machine).filter(m => m >= 0)).size;
  const best = frameOf(report, 'recognition')?.rows[0], ways = report.theory && best?.text('layout') === 'bidirectional';
  const labels = new Set<number>();
  let chunks = 0;
  for (let i = 0; i < cells.count; ++i) {
    if (cells.microBatch[i]! >= 0) labels.add(cells.microBatch[i]!);
    if (cells.chunk[i]! >= chunks) chunks = cells.chunk[i]! + 1;
  }
  const microBatches = report.theory && best ? best.num('micro_batches') : labels.size;
  const facts: [string, string | HTMLElement | false][] = [
    [t('facts.schedule'), schedule(app)],
    [t('facts.layout'), stages > 0 && t('facts.layout.value', stages, Math.max(model.dps.length, 1), microBatches)],
    [t(ways ? 'facts.directions' : 'facts.chunks'), chunks > 1 && String(chunks)],
    [t('facts.phases'), phases(app)],
    [t('facts.machines'), machines > 1 && String(machines)],
    [t('facts.cells'), grouped(report.cells.total)],
    [t('facts.source'), description(report.description)],
  ];
  return h('section', {class: 'aside-block'}, h('dl', {class: 'facts'},
    ...facts.flatMap(([name, value]) => (value ? [h('dt', {}, name), h('dd', {}, value)] : []))));
}
