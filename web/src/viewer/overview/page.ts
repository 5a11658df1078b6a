// The first screen: the run, its speed, the largest loss and its cause, and the first thing to do, each with a link to
// its evidence. The words and numbers are those of `stageline explain`.
import type {Finding, SpanPart, Table} from '../../data/report';
import {h, type Child} from '../../dom';
import {duration, grouped} from '../../format';
import {currentLang, description, flawWords, t, type Key} from '../../i18n/i18n';
import {findingsView} from '../../views/findings';
import {explainFigures, glossaryView, learnTerms, type Figure, type Figures} from '../../views/glossary';
import {headlineView, spanBar} from '../../views/headline';
import {stagesView} from '../../views/stages';
import {stepBarsView} from '../../views/step_bars';
import {countOf} from '../../words';
import {deskOf, type Answer, type Working} from '../answers/ask';
import {sentences, type Diff} from '../answers/diff';
import {failure, working} from '../answers/working';
import type {Step} from '../shell/api';
import {explained, findingOf, type Explained} from '../answers/explained';
import type {Page, Shell} from '../shell/page';
import {hasCompare, hasFlame, hasPipeline} from '../shell/shell';
import {stepsOf} from '../evidence/scenes';
import {isApart, lengthOfStep, usualStep} from '../evidence/staged';
import {placesOf, replicaOf, windowOf} from '../evidence/places';
import {profileBars, profilePicture} from './profile_picture';
import {stepPicture} from './step_picture';

// The time that a step of a profile saves without its losses. Other runs have {}.
interface Losses {
  sentence?: string;
  sentence_zh?: string;
  tried?: number;
}

// Where nothing stands out that is a finding too.
const closing = (reported: Explained): Finding[] => (reported.findings.length > 0 ? [] : [{
  id: 'none',
  weight: 0,
  value: '',
  note: ['', ''],
  title: [reported.closing_en, reported.closing_zh],
  detail: ['', ''],
}]);

const partOf = (part: Explained['parts'][number]): SpanPart => ({id: part.id, share: part.share,
  label: [part.label_en, part.label_zh]});

export function makeOverview(shell: Shell): Page {
  const {run, api} = shell, desk = deskOf(api), sheet = h('main', {class: 'sheet overview'}),
    element = h('div', {}, sheet);
  let reported: Explained | null = null, wrong: unknown = null, now: Working | null = null, asked = false,
    visible = false;
  let profile: Table[] = [], limits: Answer['notes'] = [], profileDone = false, diff: Partial<Diff> | null = null,
    losses: Losses | null = null;
  let figures: readonly Figure[] = [], chosen: number | null = null; // a step whose bar was clicked
  let tables: Table[] = [], steps: readonly Step[] = run.steps, known = new Set<string>();

  function evidence(finding: Finding, key: string): Child {
    if (finding.id === 'none') return false;
    const links = placesOf(shell, finding, key, steps, known).flatMap((place,
      i) => [i > 0 && h('span', {class: 'between'}, ' · '), h('a', {href: place.href, class: 'place'}, place.words)]
    );
    return h('p', {class: 'detail places'}, ...links, !!finding.command && h('code', {}, finding.command));
  }
  // The title leads to the scene: in the pipeline's chart where there is one.
  function sceneHref(finding: Finding, key: string): string {
    if (finding.id === 'none' || finding.id.startsWith('offer.')) return '';
    const places = placesOf(shell, finding, key, steps, known);
    return (places.find(place => place.id === 'pipeline') ?? places.find(place => place.id === 'timeline'))?.href ?? '';
  }
  // With a second run: what changed, of which this page is about A alone.
  function changedSince(): HTMLElement | null {
    if (run.other === undefined) return null;
    const words = diff?.headline_en ? sentences(diff as Diff).headline : t('overview.other', run.other);
    return h('p', {class: 'changed'}, words, ' ', h('a', {href: shell.href('compare')}, t('overview.other.more')));
  }
  function facts(): HTMLElement {
    const ranks = run.ranks.length,
      stages = new Set(run.ranks.map(rank => rank.stage).filter(stage => stage >= 0)).size;
    const machines = new Set(run.ranks.map(rank => rank.machine).filter(machine => machine >= 0)).size;
    const list: [string, Child, string?, number?][] = [
      [t('facts.ranks'), grouped(ranks), 'ranks', ranks],
      [t('facts.stages'), stages > 1 && grouped(stages)],
      [t('facts.machines'), machines > 1 && grouped(machines)],
      [t('facts.steps'), run.steps.length > 0 && grouped(run.steps.length), 'steps_all', run.steps.length],
      [
        t('facts.span'),
        duration(run.span_ns) + (isApart(run) ? ` (${t(`clock.${run.clock.state}` as Key)})` : ''),
        'recording',
        run.span_ns,
      ],
      [t('facts.slices'), grouped(run.slices)],
      [t('facts.source'), `${run.format}, ${description(run.description)}`],
    ];
    return h('section', {class: 'aside-block'},
      h('dl', {class: 'facts'}, ...list.flatMap(([name, value, figure, exact]) =>
        value
          ? [
            h('dt', {}, name),
            h('dd', figure ? {'data-figure': figure, 'data-value': String(exact), title: figure} : {}, value),
          ]
          : []
      )));
  }
  function flaws(): Child {
    return run.flaws.length > 0 &&
      h('section', {class: 'flaw-list', 'aria-label': t('flaws')}, h('h2', {}, t('flaws')),
        h('ul', {},
          ...run.flaws.map(flaw =>
            h('li', {},
              h('span', {class: `severity ${flaw.severity}`},
                t(flaw.severity === 'loss' ? 'severity.loss' : 'severity.warning')), ' ',
              flawWords(flaw.name, flaw.message), flaw.count > 1 && ` (${grouped(flaw.count)}×)`)
          )));
  }
  // A click compares the step with the usual one: a pipeline on its page, other runs in layers below.
  function stepBars(): Child {
    const times = steps.map(step => ({step: step.number, span: lengthOfStep(step)}));
    return stepBarsView(times, () => chosen ?? usualStep(steps)?.number ?? null, number => {
      const step = steps.find(one => one.number === number), usual = usualStep(steps)?.number;
      if (hasPipeline(run))
        shell.go('pipeline', {
          query: `step=${number}${usual === undefined || usual === number ? '' : `&beside=${usual}`}`,
        });
      else if (step && run.lanes.some(lane => lane.type === 'stream')) {
        chosen = number;
        draw();
        layers?.node?.scrollIntoView({block: 'nearest'});
        shell.moved();
      } else if (step) shell.go('timeline', {query: windowOf(step)});
    }, !hasPipeline(run));
  }
  function headline(): HTMLElement {
    const none = t('headline.none', countOf('ranks', run.ranks.length), countOf('steps', run.steps.length),
      grouped(run.slices));
    if (!reported)
      return h('section', {class: 'headline'}, h('h1', {tabindex: -1}, run.title),
        wrong ? failure(wrong, ask) : working(t('overview.looking'), now));
    const parts = reported.parts.map(partOf);
    return headlineView({title: [reported.title_en, reported.title_zh], lead: [reported.lead_en, reported.lead_zh],
      parts}, none);
  }
  // A pipeline in a profile has the time of its devices, or hosts, too.
  function deviceTime({device_parts: devices, host_parts: hosts}: Explained): HTMLElement | null {
    const parts = devices.length > 0 ? devices : hosts;
    return parts.length === 0 ? null
      : h('section', {class: 'device-time'}, h('h2', {}, t(devices.length > 0 ? 'overview.devices' : 'overview.hosts')),
        spanBar(parts.map(partOf), false));
  }
  function draw(): void {
    const findings = reported
      ? [...reported.findings.map(findingOf), ...closing(reported), ...reported.offers.map(findingOf)] : [];
    const runLine = reported ? (currentLang() === 'zh' ? reported.run_zh : reported.run_en) : '';
    sheet.replaceChildren(
      ...[changedSince()].filter((one): one is HTMLElement => !!one),
      h('p', {class: 'run-line'}, reported && h('b', {}, run.title), runLine ? ` ${runLine}` : ''),
      headline(), // until then the heading names it
      h('div', {class: 'cols'}, h('div', {}, reported?.note_en && !reported.why_not
        ? h('p', {class: 'quiet'}, currentLang() === 'zh' ? reported.note_zh : reported.note_en) : '',
        reported ? findingsView(findings, evidence, sceneHref) : '', losses?.sentence && (losses.tried ?? 0) > 1
        ? h('p', {class: 'quiet'}, currentLang() === 'zh' ? losses.sentence_zh ?? '' : losses.sentence) : '',
        reported?.why_not ? h('p', {class: 'quiet'}, t('overview.whyNot', reported.why_not)) : ''),
        h('aside', {}, ...[stagesView(tables.find(table => table.name === 'stages')), stepBars(), facts()].filter((
          one,
        ): one is HTMLElement => !!one))),
      ...[
        !hasPipeline(run) && reported && layersOfStep(reported),
        !hasPipeline(run) && profileBars(shell, profile, limits),
        reported && deviceTime(reported),
        tables.length > 0 &&
        stepPicture(shell, usualStep(steps), replicaOf(run, reported?.findings.map(findingOf) ?? [])),
        ways(),
        flaws(),
      ].filter((one): one is HTMLElement => !!one),
    );
    explainFigures(sheet, figures);
    if (figures.length > 0) sheet.append(glossaryView(figures));
  }
  // The picture is drawn once for each theme and language: later answers redraw only its surroundings.
  let layers: {key: string; node: HTMLElement | null} | null = null;
  function layersOfStep({findings}: Explained): HTMLElement | null {
    const key = `${shell.theme} ${currentLang()} ${steps.length} ${chosen}`, usual = usualStep(steps),
      accused = steps.find(step => step.number === (chosen ?? findings[0]?.step));
    if (layers?.key !== key)
      layers = {key,
        node: profilePicture(shell, accused ?? usual, chosen !== null ? 'chosen' : accused ? 'accused' : 'title',
          run.ranks.findIndex(rank => rank.rank === findings.find(one => one.rank !== null)?.rank),
          chosen !== null && accused !== usual ? usual : undefined)};
    return layers.node;
  }
  // Where to go on.
  function ways(): HTMLElement {
    const link = (href: string, words: string, does: string): HTMLElement =>
      h('li', {}, h('a', {href}, words), ' ', h('span', {class: 'quiet'}, does));
    return h('section', {class: 'ways'}, h('h2', {}, t('overview.ways')),
      h('ul', {}, hasPipeline(run) && link(shell.href('pipeline'), t('page.pipeline'), t('overview.pipeline')),
        link(shell.href('timeline'), t('page.timeline'), t('overview.timeline')),
        hasFlame(run) && link(shell.href('flame'), t('page.flame'), t('overview.flame')),
        link(shell.href('answers'), t('page.answers'), t('overview.answers')),
        hasCompare(run) && link(shell.href('compare'), t('page.compare'), t('overview.compare'))));
  }
  function redraw(): void {
    if (visible) draw();
  }
  function ask(): void {
    asked = true;
    wrong = null;
    explained(api, state => {
      now = state;
      if (!reported) redraw();
    })
      .then(found => {
        reported = found;
      }, (error: unknown) => {
        wrong = error;
      }).finally(redraw);
    explained(api).then(() => desk.ask<Figures>('figures', {}, () => undefined)).then(found => {
      figures = found.figures;
      learnTerms(found.terms ?? []);
      redraw();
    }, () => undefined);
    desk.offers().then(found => {
      known = new Set(found.answers.map(one => one.name));
      redraw();
    }, () => undefined);
    if (run.other !== undefined)
      explained(api).then(() => desk.ask<Partial<Diff>>('compare', {}, () => undefined)).then(found => {
        diff = found;
        redraw();
      }, () => undefined);
    if (!hasPipeline(run)) {
      void explained(api).then(() => desk.ask<Losses>('losses', {}, () => undefined)).then(found => {
        losses = found;
        redraw();
      }, () => undefined);
      // The data of the bars are requested after the findings, which come first.
      void explained(api).then(() => desk.offers()).then(found =>
        Promise.all(['temporal-breakdown', 'gpu-kernel-breakdown']
          .filter(name => found.answers.some(one => one.name === name)).map(name =>
            desk.answer(name, {}, () => undefined).then(answer => {
              profile = [...profile, ...answer.tables];
              limits = answer.notes;
              redraw();
            }, () => undefined)
          ))
      ).catch(() => undefined).finally(() => {
        profileDone = true;
      });
      return;
    }
    desk.answer('pipeline-summary', {}, () => undefined).then(answer => {
      tables = answer.tables;
      steps = stepsOf(run, answer.tables);
      redraw();
    }, () => undefined);
    redraw();
  }
  Object.assign((window as {stageline?: object}).stageline ??= {}, {overviewReady: () =>
    reported !== null &&
    (tables.length > 0 || !hasPipeline(run)), overviewWhole: () => profileDone || hasPipeline(run)});

  return {
    element,
    show(route) {
      visible = true;
      const step = new URLSearchParams(route?.query).get('step');
      if (route) chosen = step === null ? null : Number(step);
      if (!asked) ask();
      draw();
    },
    hide() {
      visible = false;
    },
    address: () => ({rest: '', query: chosen === null ? '' : `step=${chosen}`}),
    restyle: redraw,
  };
}
