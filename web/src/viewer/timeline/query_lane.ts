// The rows of a query as a lane above the others: as high as their share of a pixel, so that the lane is true at any
// zoom. A click goes to the row under it; a row without duration is a line.
import {t} from '../../i18n/i18n';
import {h, styled} from '../../dom';
import type {Value} from '../../data/report';
import {duration, grouped} from '../../format';
import {askSql, PATH_QUERIES, rankOfGraphs, stretchesOf, type Answered, type Stretch} from '../answers/ask_sql';
import type {Api} from '../shell/api';
import {FONT, plotWidth, xOf, type Scene} from './scene';
import type {Store} from './store';

const MOST_ROWS = 10_000, HEIGHT = 22, LEAST_LABEL = 40;

export interface QueryLane {
  element: HTMLElement;
  draw(): void;
  settled(): boolean;
}

export function makeQueryLane(api: Api, store: Store, scene: () => Scene, resized: () => void): QueryLane {
  const canvas = h('canvas', {'aria-hidden': 'true'}), name = h('span', {class: 'evidence-name', role: 'status'});
  const close = h('button', {class: 'plain link', 'aria-label': t('query.close'), title: t('query.close'),
    click: () => store.change({query: ''})}, '×');
  const element = h('div', {class: 'query-lane', hidden: true}, name, canvas, close);
  let asked = '', answer: Answered | null = null, found: Stretch[] = [], said = '', busy = 0, painted = 0;

  async function ask(query: string): Promise<void> {
    ++busy;
    try {
      const made = await askSql(api, query, MOST_ROWS, () => asked === query);
      if (asked !== query) return;
      const stretches = stretchesOf(made);
      answer = made;
      found = (stretches ?? []).sort((a, b) => a.start - b.start);
      const isPath = Object.values(PATH_QUERIES).includes(query);
      said = stretches && isPath ? t('query.path', duration(found.reduce((sum, one) => sum + one.end - one.start, 0)))
        : stretches && rankOfGraphs(query) !== null ? t('query.graphs', rankOfGraphs(query)!, grouped(found.length))
        : stretches ? t(made.truncated ? 'sql.rows.first' : 'sql.rows', grouped(found.length)) : t('query.none');
    } catch (error) {
      if (asked === query) said = error instanceof Error ? error.message : String(error);
    } finally {
      --busy;
      draw();
    }
  }
  const label = ({row, start, end}: Stretch): string => {
    const at = answer!.columns.findIndex(column => column.name === 'name');
    return `${at < 0 ? '' : `${answer!.rows[row]![at]} · `}${duration(end - start)}`;
  };
  const valueText = (value: Value, column: string): string =>
    value === null ? '–' : column.endsWith('_ns') ? duration(Number(value)) : String(value);
  function draw(): void {
    const {query} = store.state;
    if (query !== asked) {
      asked = query;
      answer = null;
      found = [];
      said = t('answers.working');
      element.hidden = query === '';
      element.title = query;
      resized();
      if (query !== '') void ask(query);
    }
    if (query === '') return;
    const at = scene(), width = plotWidth(at), {ratio} = at, pixels = Math.max(1, Math.round(width * ratio)),
      high = Math.round(HEIGHT * ratio);
    name.textContent = said;
    styled(name, {width: `${at.gutter - 8}px`});
    styled(canvas, {left: `${at.gutter}px`, width: `${width}px`, height: `${HEIGHT}px`});
    if (canvas.width !== pixels) canvas.width = pixels;
    if (canvas.height !== high) canvas.height = high;
    const context = canvas.getContext('2d')!, ink = getComputedStyle(element), share = new Float64Array(pixels + 2),
      whole = new Float64Array(pixels + 2);
    context.clearRect(0, 0, pixels, high);
    const px = (t: number): number => Math.min(Math.max((xOf(at, t) - at.gutter) * ratio, 0), pixels);
    context.fillStyle = ink.getPropertyValue('--acc');
    for (const {start, end} of found) {
      if (end < at.view.t0 || start > at.view.t1) continue;
      const a = px(start), b = px(end), i = Math.floor(a), j = Math.floor(b);
      if (start === end) context.fillRect(i, 0, 1, high);
      else if (i === j) share[i]! += b - a;
      else {
        share[i]! += i + 1 - a;
        share[j]! += b - j;
        ++whole[i + 1]!;
        --whole[j]!;
      }
    }
    painted = 0;
    for (let x = 0, over = 0; x < pixels; ++x) {
      over += whole[x]!;
      const busyShare = Math.min(1, over + share[x]!);
      painted += busyShare;
      if (busyShare > 0) context.fillRect(x, high * (1 - busyShare), 1, high * busyShare);
    }
    context.font = `${12 * ratio}px ${FONT}`;
    context.textBaseline = 'middle';
    let free = 0;
    for (const one of found) {
      const a = px(one.start), b = px(one.end);
      if (b - a < LEAST_LABEL * ratio || a < free) continue;
      free = b;
      context.save();
      context.beginPath();
      context.rect(a, 0, b - a, high);
      context.clip();
      context.fillStyle = ink.getPropertyValue('--bg');
      context.fillRect(a, 0, ratio, high); // a seam to what touches it
      context.fillText(label(one), a + 6 * ratio, high / 2);
      context.restore();
    }
  }
  // The row under a point, or the nearest within a few pixels.
  function at(event: MouseEvent): Stretch | null {
    const now = scene(), x = event.clientX - canvas.getBoundingClientRect().left + now.gutter,
      off = (one: Stretch): number => Math.max(xOf(now, one.start) - x, x - xOf(now, one.end), 0);
    let best: Stretch | null = null;
    for (const one of found) if (off(one) < 4 && (!best || off(one) < off(best))) best = one;
    return best;
  }
  canvas.addEventListener('mousemove', event => {
    const one = at(event);
    canvas.title = one
      ? answer!.columns.map((column, i) => `${column.name}: ${valueText(answer!.rows[one.row]![i]!, column.name)}`)
        .join('\n')
      : '';
  });
  canvas.addEventListener('click', event => {
    const one = at(event);
    if (!one) return;
    store.jump({t0: one.start - (one.end - one.start) * 0.3, t1: one.end + (one.end - one.start) * 0.3 + 1});
    // A graph unfolds: what it launched is below, and summed up in the drawer.
    const rank = rankOfGraphs(store.state.query), {ranks, lanes} = store.run;
    if (rank !== null)
      store.change({panel: 'area',
        area: {t0: one.start, t1: one.end,
          lanes: lanes.filter(lane => lane.type === 'stream' && ranks[lane.rank_index]!.rank === rank && !lane.repeats)
            .map(lane => lane.id)}});
  });
  Object.assign((window as {stageline?: object}).stageline ??= {}, {
    query: () => ({said, rows: found.length, painted, pixels: canvas.width}),
  });
  return {element, draw, settled: () => busy === 0};
}
