// Stage balance from the table "stages": stage, kind, mean_ns, ratio_to_median in long format.
import {h, styled, unseen} from '../dom';
import {tableColumn, type Table} from '../data/report';
import {t} from '../i18n/i18n';

const MOST = 13, FEW = 8; // stages that are shown at once: fewer than the first, or of more the second

interface StageLine {
  stage: number;
  means: Map<string, number>;
  ratio: number | null;
}

function readStages(table: Table | undefined): StageLine[] {
  if (!table) return [];
  const [stage, kind, mean, ratio] = ['stage', 'kind', 'mean_ns', 'ratio_to_median'].map(name =>
    tableColumn(table, name)
  );
  if (!stage || !kind || !mean) return [];
  const lines = new Map<number, StageLine>();
  stage.forEach((value, i) => {
    if (typeof value !== 'number' || value < 0) return;
    if (!lines.has(value)) lines.set(value, {stage: value, means: new Map(), ratio: null});
    const line = lines.get(value)!;
    const own = ratio?.[i];
    if (kind[i] === 'all') line.ratio = typeof own === 'number' ? own : line.ratio;
    else if (typeof mean[i] === 'number') line.means.set(String(kind[i]), mean[i] as number);
  });
  for (const line of lines.values()) // without an "all" row the worst kind speaks for the stage
    if (line.ratio === null && ratio)
      stage.forEach((value, i) => {
        const own = ratio[i];
        if (value === line.stage && typeof own === 'number') line.ratio = Math.max(line.ratio ?? 0, own);
      });
  return [...lines.values()].sort((a, b) => a.stage - b.stage);
}

export function stagesView(table: Table | undefined): HTMLElement | null {
  const lines = readStages(table);
  const kinds = ['F', 'B', 'I', 'W', 'F&B'].filter(kind => lines.some(line => line.means.has(kind)));
  if (kinds.length === 0) return null;
  const total = (line: StageLine): number => kinds.reduce((sum, kind) => sum + (line.means.get(kind) ?? 0), 0);
  const largest = Math.max(...lines.map(total));
  const ms = (ns: number | undefined): string => {
    if (ns === undefined) return '–';
    return largest >= 1e7 ? (ns / 1e6).toFixed(1) : (ns / 1e6).toPrecision(3);
  };
  const bar = (line: StageLine): HTMLElement =>
    h('div', {class: 'bars', 'aria-hidden': 'true'}, ...kinds.map(kind =>
      styled(h('i', {class: `kind-${kind.replace('&', '')}`}), {
        width: `${(line.means.get(kind) ?? 0) / largest * 100}%`,
      })
    ));
  // Of many stages those that take longest for their work are shown; the others on demand.
  const shown = new Set(
    lines.length < MOST ? lines : [...lines].sort((a, b) => (b.ratio ?? 0) - (a.ratio ?? 0)).slice(0, FEW),
  );
  const more = h('button', {class: 'plain link', click: () => {
    for (const row of section.querySelectorAll<HTMLElement>('tr[hidden]')) row.hidden = false;
    more.remove();
  }}, t('stages.all', lines.length));
  const section = h('section', {class: 'aside-block', id: 'stages'}, h('h2', {}, t('stages')),
    h('div', {},
      h('table', {class: 'mini'},
        h('thead', {},
          h('tr', {}, h('th', {scope: 'col'}, unseen(t('stages.stage'))), h('th', {}, unseen(t('stages.bars'))),
            ...kinds.map(kind => h('th', {scope: 'col'}, kind)), h('th', {scope: 'col'}, t('stages.ratio')))),
        h('tbody', {},
          ...lines.map(line =>
            h('tr', {hidden: !shown.has(line)}, h('th', {scope: 'row'}, String(line.stage)),
              h('td', {class: 'bar'}, bar(line)), ...kinds.map(kind => h('td', {}, ms(line.means.get(kind)))),
              h('td', {class: (line.ratio ?? 1) >= 1.1 ? 'hot' : ''},
                line.ratio === null ? '–' : `${line.ratio.toFixed(2)}×`))
          ))), shown.size < lines.length && more));
  return section;
}
