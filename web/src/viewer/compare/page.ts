// Two runs, matched by what they are: what differs in words, then what makes the difference, then operators and
// kernels. The words and numbers are those of `stageline diff` and `stageline analyze trace-diff`.
import {tableColumn, type Column, type Table} from '../../data/report';
import {h, type Child, unseen} from '../../dom';
import {duration, grouped, percent} from '../../format';
import {flawWords, t, tableTitle} from '../../i18n/i18n';
import {dataTable} from '../../views/data_table';
import {makeTextTip} from '../../views/text_tip';
import {commandLine} from '../shell/command';
import {commandOf} from '../answers/section';
import {deskOf, type Answer, type Offers, type Working} from '../answers/ask';
import {failure, working} from '../answers/working';
import type {Page, Shell} from '../shell/page';
import {said, sentences, type Diff} from '../answers/diff';
import {DIFF, hasScene} from '../evidence/scenes';
import {plainQuery} from '../shell/route';
import {canAdd} from '../shell/shelf';
import {hasFlame, hasPipeline} from '../shell/shell';
import {addView} from './add';
import type {compareMemory} from './memory';

const SNAPSHOT = 'allocator-snapshot';
const signed = (ns: number): string => `${ns < 0 ? '−' : '+'}${duration(Math.abs(ns))}`;
const signedShare = (share: number): string => `${share < 0 ? '−' : '+'}${percent(Math.abs(share))}`;

// `memory` compares snapshots of an allocator; a report has none.
export function makeCompare(shell: Shell, memory?: typeof compareMemory): Page {
  const desk = deskOf(shell.api), tip = makeTextTip(), body = h('div'),
    element = h('div', {}, h('main', {class: 'sheet compare'}, body), tip.element);
  let offers: Offers | null = null, diff: Partial<Diff> | null = null, wrong: unknown = null,
    now: Working | null = null;
  let snapshots: HTMLElement[] | null = null;
  let names: Answer | null = null, noNames: unknown = null, visible = false, asked = false;

  function effects(found: Diff): HTMLElement {
    const largest =
      found.changes.reduce((most, one) => Math.max(most, Math.abs(one.effect_ns)), Math.abs(found.change_ns)) || 1;
    const row = (words: Child, effect: number, share: number, error: number | null, kind = ''): HTMLElement => {
      const bar = h('i', {class: effect > 0 ? 'slower' : 'faster'}), width = Math.abs(effect) / largest * 50;
      bar.style.setProperty('width', `${width}%`);
      bar.style.setProperty('left', `${effect > 0 ? 50 : 50 - width}%`);
      return h('tr', {class: kind}, h('th', {class: 'text', scope: 'row'}, words),
        h('td', {class: 'bar'}, h('div', {class: 'effect', 'aria-hidden': 'true'}, bar)), h('td', {}, signed(effect)),
        h('td', {}, signedShare(share)), h('td', {}, error === null ||
            error === 0 ? '' : `± ${duration(error)}`));
    };
    return h('section', {class: 'effects'}, h('h2', {}, t('compare.effects')),
      h('div', {class: 'plot-box'},
        h('table', {class: 'plot'},
          h('thead', {},
            h('tr', {}, h('th', {class: 'text', scope: 'col'}, t('compare.what')),
              h('th', {class: 'bar'}, unseen(t('plot.bar'))), h('th', {scope: 'col'}, t('compare.effect')),
              h('th', {scope: 'col'}, t('compare.share')), h('th', {scope: 'col'}, t('compare.error')))),
          h('tbody', {}, ...found.changes.flatMap((one, i) => [
            row(hasPipeline(shell.run) && hasScene(one)
              ? h('a', {href: shell.href('pipeline', {query: `scene=${DIFF}${i}`}), class: 'scene',
                title: t('compare.scene')}, said(one)) : said(one), one.effect_ns, one.effect_share, one.error_ns),
            ...one.behind.map(item =>
              row(lit(item.name, said(item)), item.effect_ns, item.effect_share, item.error_ns, 'behind')
            ),
          ]), row(t('compare.together'), found.change_ns, found.change_share, found.error_ns, 'whole')))));
  }
  // Runs without a pipeline: what changed most by name, and which run is which; the table beneath calls them so.
  function profiles(): Child[] {
    const table = names?.tables.find(one => one.name === 'compare-traces');
    const [name, change] = ['name', 'self_diff_ns'].map(column => table && tableColumn(table, column));
    const most = table && table.rowCount > 0 && name && change
      ? t('compare.names.most', String(name[0]), signed(Number(change[0]))) : t('page.compare');
    return [
      h('h1', {tabindex: -1}, most),
      h('p', {class: 'lead'}, t('compare.pipeline.none')),
      h('dl', {class: 'runs'}, h('dt', {}, t('compare.control')), h('dd', {}, h('b', {}, shell.run.title)),
        h('dt', {}, t('compare.test')), h('dd', {}, h('b', {}, offers!.other!.title))),
      hasFlame(shell.run) && h('p', {}, h('a', {href: shell.href('flame', {query: 'b=other'})}, t('compare.flame'))),
    ];
  }
  function pipelines(): Child[] {
    if (wrong) return [h('h1', {tabindex: -1}, t('page.compare')), failure(wrong, ask)];
    if (!diff) return [h('h1', {tabindex: -1}, t('page.compare')), working(t('compare.working'), now)];
    if (diff.change_ns === undefined) return profiles();
    const found = diff as Diff;
    const words = sentences(found);
    return [
      h('h1', {tabindex: -1}, words.headline),
      h('p', {class: 'lead'}, words.lead),
      h('dl', {class: 'runs'}, ...found.runs.flatMap((run, i) => [
        h('dt', {}, t(i === 0 ? 'compare.a' : 'compare.b')),
        h('dd', {}, h('b', {}, i === 0 ? shell.run.title : offers!.other!.title), ` ${said(run)}`),
      ])),
      found.differences.length > 0 &&
      h('section', {}, h('h2', {}, t(found.profile ? 'compare.before' : 'compare.changes')),
        h('ul', {}, ...found.differences.map(one => h('li', {}, said(one))))),
      effects(found),
      found.profile && hasFlame(shell.run) &&
      h('p', {}, h('a', {href: shell.href('flame', {query: 'b=other'})}, t('compare.flame'))),
      !found.profile &&
      h('p', {class: 'quiet'},
        t('compare.matched', grouped(found.matched), grouped(found.unmatched), grouped(found.unused))),
      h('p', {class: 'quiet'}, t('answers.same'), ' ',
        h('code', {}, commandLine('diff', [...offers!.paths, ...offers!.other!.paths]))),
    ];
  }
  // Operators and kernels by name, largest change first as trace-diff orders them.
  function operators(): Child[] {
    const title = h('h2', {class: 'title'}, t('compare.operators'));
    if (noNames) return [title, failure(noNames, ask)];
    if (!names) return [title, working(t('answers.working'), now)];
    const full = names.tables.filter(table => table.rowCount > 0);
    if (full.length === 0) return [title, h('p', {class: 'quiet'}, t('compare.operators.none'))];
    return [
      title,
      ...full.flatMap((table: Table) => [h('h3', {}, tableTitle(table)), dataTable(table, {tip, link: nameLink})]),
      names.notes.length > 0 &&
      h('ul', {class: 'notes quiet'}, ...names.notes.map(note => h('li', {}, flawWords(note.name, note.message)))),
      h('p', {class: 'quiet'}, t('answers.same'), ' ',
        h('code', {}, commandOf('trace-diff', [], {control: offers!.paths[0]!, test: offers!.other!.paths[0]!}))),
    ];
  }
  // A name leads to where it runs: all its slices lit.
  function nameLink(_table: Table, _row: number, column: Column, words: string): Child {
    return column.name === 'name' && words !== '' && words !== '–' && lit(words, words);
  }
  function lit(name: string, words: string): HTMLElement {
    return h('a', {href: shell.href('timeline', {query: plainQuery(new URLSearchParams({lit: name}))}),
      title: t('compare.lit')}, words);
  }
  function draw(): void {
    if (!visible) return;
    tip.hide();
    if (!offers)
      return body.replaceChildren(h('h1', {tabindex: -1}, t('page.compare')), working(t('compare.working'), null));
    if (!offers.other)
      return body.replaceChildren(h('h1', {tabindex: -1}, t('compare.none.title')),
        h('p', {class: 'lead'}, t('compare.none')), !REPORT && canAdd(shell.run) ? addView(shell)
        : h('p', {}, h('code', {class: 'command'}, commandLine('view', offers.paths, '--compare OTHER_RUN'))),
        h('h2', {}, t('compare.none.says')),
        h('ul', {class: 'compare-says'}, h('li', {}, t('compare.none.effects')), h('li', {}, t('compare.none.both')),
          h('li', {}, t('compare.none.names'))),
        h('p', {class: 'quiet'}, t('compare.none.terminal'), ' ',
          h('code', {class: 'command'}, commandLine('diff', offers.paths, 'OTHER_RUN'))));
    if (snapshots) return body.replaceChildren(...snapshots);
    body.replaceChildren(
      ...[
        ...pipelines(),
        h('section', {class: 'operators'}, ...operators().filter((one): one is Node | string => !!one)),
      ]
        .filter((one): one is Node | string => !!one),
    );
  }
  // Two snapshots of an allocator have no time to compare, so their memory is compared.
  async function askSnapshots(): Promise<void> {
    try {
      const [a, b] = await Promise.all(
        [desk, deskOf(shell.api.other())].map(one => one.answer(SNAPSHOT, {}, () => undefined)),
      );
      snapshots = memory!(a!.tables, b!.tables);
      draw();
    } catch {
      // B has no snapshot: the page compares the two runs otherwise.
    }
  }
  function ask(): void {
    asked = true;
    wrong = noNames = null;
    desk.offers().then(found => {
      offers = found;
      draw();
      if (!found.other) return;
      if (memory && found.answers.some(one => one.name === SNAPSHOT)) void askSnapshots();
      desk.ask<Partial<Diff>>('compare', {}, state => {
        now = state;
        if (!diff) draw();
      }).then(one => {
        diff = one;
      }, (error: unknown) => {
        wrong = error;
      }).finally(draw);
      desk.answer('trace-diff', {}, () => undefined).then(one => {
        names = one;
      }, (error: unknown) => {
        noNames = error;
      }).finally(draw);
    }, (error: unknown) => {
      body.replaceChildren(failure(error, ask));
    });
  }
  Object.assign((window as {stageline?: object}).stageline ??= {}, {
    compared: () => !!offers && (!offers.other || ((!!diff || !!wrong) && (!!names || !!noNames))),
  });
  return {
    element,
    show() {
      visible = true;
      if (!asked) ask();
      draw();
    },
    hide() {
      visible = false;
      tip.hide();
    },
    address: () => ({rest: '', query: ''}),
    restyle: draw,
  };
}
