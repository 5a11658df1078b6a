import type {App} from '../app';
import {h} from '../dom';
import {grouped} from '../format';
import {t} from '../i18n/i18n';

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
    [t('facts.layout'), stages > 0 && t('facts.layout.value', stages, Math.max(model.dps.length, 1), microBatches)],
    [t('facts.schedule'), !!report.headline.schedule && report.headline.schedule],
    [t('facts.chunks'), chunks > 1 && String(chunks)],
    [t('facts.machines'), machines > 1 && String(machines)],
    [t('facts.cells'), grouped(report.cells.total)],
    [t('facts.source'), report.description],
  ];
  return h('section', {class: 'aside-block'}, h('dl', {class: 'facts'},
    ...facts.flatMap(([name, value]) => (value ? [h('dt', {}, name), h('dd', {}, value)] : []))));
}
