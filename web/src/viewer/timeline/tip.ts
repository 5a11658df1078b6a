// The tooltip that follows the pointer: it describes a slice, or the content of a column too full for slices.
import {t} from '../../i18n/i18n';
import {duration, percent} from '../../format';
import {h, styled} from '../../dom';
import type {Hit} from './hit';
import type {Store} from './store';
import {placeTitle} from './titles';
import {kindName} from './kind_name';
import type {makeSlack} from '../answers/slack';

export function makeTip(store: Store,
  slack: ReturnType<typeof makeSlack>): {element: HTMLElement; show(hit: Hit | null, x: number, y: number): void}
{
  const element = h('div', {class: 'tip', role: 'tooltip', id: 'tip', hidden: true});
  const kinds = new Map(store.run.kinds.map(kind => [kind.id, kind]));
  const swatch = (id: number): HTMLElement =>
    styled(h('i', {class: 'swatch'}), {background: kinds.get(id)?.[store.theme].fill ?? ''});
  let now: Hit | null = null;
  const tip = {
    element,
    show(hit: Hit | null, x: number, y: number): void {
      now = hit;
      if (!hit || (!hit.slice && !hit.shares)) {
        element.hidden = true;
        return;
      }
      const {slice, shares} = hit;
      if (slice) {
        const {stage, rank, steps} = store.run.ranks[store.laneRank(slice.lane)]!,
          own = steps?.find(([, start, end]) => slice.start >= start && slice.start < end)?.[0];
        const step = store.run.steps.find(one =>
            steps ? one.number === own : slice.start >= one.start_ns && slice.start < one.end_ns
          ),
          cell: string[] = [];
        const free = !step || store.run.lanes[slice.lane]!.type !== 'cells' ? ''
          : slack({step: step.number, rank, code: kinds.get(slice.kind)?.code ?? '', microBatch: hit.microBatch,
            chunk: hit.chunk}, () => now === hit && tip.show(hit, x, y));
        if (hit.microBatch >= 0) cell.push(t('note.microBatch', hit.microBatch));
        if (hit.chunk >= 0) cell.push(t('note.chunk', hit.chunk));
        if (cell.length > 0 && stage >= 0) cell.push(t('note.stage', stage));
        element.replaceChildren(
          h('b', {class: 'name'}, slice.name.length > 160 ? slice.name.slice(0, 160) + '…' : slice.name || '–'),
          h('div', {}, swatch(slice.kind), `${kindName(kinds.get(slice.kind))} · ${duration(slice.dur)}`),
          cell.length > 0 ? h('div', {}, cell.join(' · ')) : '',
          free && h('div', {class: 'quiet'}, free),
          h('div', {class: 'quiet'}, placeTitle(store, slice.lane) + (step ? ` · ${t('step', step.number)}` : '')),
          h('div', {class: 'quiet'}, t('tip.at', duration(slice.start))),
        );
      } else if (shares) {
        const busy = shares.shares.reduce((sum, [, share]) => sum + share, 0);
        element.replaceChildren(
          h('b', {}, t('tip.column', duration(shares.columnNs))),
          ...shares.shares.map(([kind, share]) =>
            h('div', {}, swatch(kind), `${kindName(kinds.get(kind))} `, h('span', {class: 'right'}, percent(share)))
          ),
          ...(busy < 0.998
            ? [
              h('div', {}, h('i', {class: 'swatch idle'}), `${t('key.idle')} `,
                h('span', {class: 'right'}, percent(1 - busy))),
            ] : []),
          h('div', {class: 'quiet'}, placeTitle(store, hit.lane)),
        );
      }
      element.hidden = false;
      const box = element.getBoundingClientRect();
      const left = x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14,
        top = y + 18 + box.height > innerHeight
          ? y - 12 - box.height : y + 18;
      styled(element, {left: `${Math.max(4, left)}px`, top: `${Math.max(4, top)}px`});
    },
  };
  return tip;
}
