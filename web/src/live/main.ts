// The page of a run that goes on: asks what is new, draws it, and ends with a link to the whole run.
import {h} from '../dom';
import {duration, grouped, percent} from '../format';
import {currentLang, firstLang, setLang, t} from '../i18n/i18n';
import {applyTheme, type Theme} from '../theme';
import {remember} from '../viewer/shell/remember';
import {ask, type Finding, type Live, type Seen, type Status, type Step, type Whole} from './api';
import {PipelineView} from './pipeline';
import {stepTimes} from './step_time';

const ASK_MS = 200;
const LATE_STEPS = 5; // this number of usual step times without a new step is worth a message
const MOST_FINDINGS_GONE = 8;
const MOST_OF_WHOLE = 3;

const say = (en: string, zh: string): string => (currentLang() === 'zh' ? zh || en : en || zh);
const countOf = (key: 'live.ranks' | 'live.steps',
  n: number): string => (n === 1 ? t(`${key}.one`) : t(key, grouped(n)));

class Page {
  private readonly root = document.getElementById('live')!;
  private readonly run = h('span', {class: 'run'});
  private readonly state = h('span', {class: 'state'});
  private readonly sizes = h('span', {class: 'sizes'});
  private readonly language = h('button', {class: 'language', click: () => this.turn()});
  private readonly themes = h('button', {class: 'theme', click: () => this.shade()}, '◐');
  private readonly title = h('h1');
  private readonly lead = h('p', {class: 'lead'});
  private readonly notices = h('div', {role: 'status'});
  private readonly over = h('div', {class: 'over'});
  private readonly times = h('section', {class: 'times'});
  private readonly findings = h('section', {class: 'findings'});
  private readonly pipeline = new PipelineView();
  private readonly steps: Step[] = [];
  private live: Live | null = null;
  private palette: Live['palette'];
  private theme: Theme;
  private away = false;
  private status: Status | null = null;
  private whole: Whole | null = null;

  constructor() {
    setLang(firstLang('', remember('lang')));
    const chosen = new URLSearchParams(location.search).get('theme') ?? remember('theme');
    this.theme = chosen === 'dark' || chosen === 'light' ? chosen
      : matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
    document.documentElement.dataset['theme'] = this.theme;
    this.root.append(
      h('header', {class: 'top'}, h('span', {class: 'logo'}, 'Stageline'), this.run, h('span', {class: 'space'}),
        this.state, this.sizes, this.language, this.themes),
      h('main', {}, this.title, this.lead, this.notices, this.over, this.findings, this.times, this.pipeline.element),
    );
    this.draw();
  }

  // Asks until the run is over and what was recorded is read.
  async follow(): Promise<void> {
    for (;;) {
      try {
        await this.look();
        this.away = false;
      } catch {
        this.away = true;
      }
      this.draw();
      if ((this.whole?.findings || this.status?.state === 'failed') && !this.away) return;
      await new Promise(done => setTimeout(done, ASK_MS));
    }
  }

  private async look(): Promise<void> {
    const after = this.steps.length > 0 ? this.steps[this.steps.length - 1]!.step : -1;
    const now = await ask<Live>(`live?known=${this.live?.version ?? -1}&after=${this.palette ? after : -1}`);
    if (now.state) {
      if (now.palette && !this.palette) {
        this.palette = now.palette;
        applyTheme(now.palette, this.theme);
      }
      this.steps.push(...now.steps.filter(step => step.step > after));
      this.live = now;
    }
    if (this.live?.state === 'closed' || this.live?.state === 'silent') this.status = await ask<Status>('status');
    if (this.status?.state === 'ready')
      this.whole = await ask<Whole>('explain').catch(() => ({findings: [], closing_en: '', closing_zh: ''}));
  }

  private turn(): void {
    setLang(currentLang() === 'zh' ? 'en' : 'zh');
    remember('lang', currentLang());
    this.draw();
  }
  private shade(): void {
    this.theme = this.theme === 'dark' ? 'light' : 'dark';
    remember('theme', this.theme);
    document.documentElement.dataset['theme'] = this.theme;
    if (this.palette) applyTheme(this.palette, this.theme);
    this.pipeline.redraw();
  }

  private draw(): void {
    const live = this.live, root = document.documentElement;
    root.lang = currentLang() === 'zh' ? 'zh-CN' : 'en';
    this.language.textContent = t('live.language');
    this.themes.setAttribute('aria-label', t('live.theme'));
    this.themes.title = t('live.theme');
    const state = live?.state ?? 'waiting';
    this.state.className = `state ${state}`;
    this.state.replaceChildren(h('i', {'aria-hidden': 'true'}), t(`live.state.${state}`));
    this.run.textContent = this.run.title = live?.title ?? '';
    this.sizes.textContent = live && live.ranks > 0
      ? [
        countOf('live.ranks', live.ranks),
        ...(live.stages > 1 ? [t('live.stages', live.stages)] : []),
        countOf('live.steps', live.steps_over),
      ].join(' · ') : '';
    document.title = live ? `${live.title || 'Stageline'} · ${t(`live.state.${state}`)}` : 'Stageline';
    this.drawHead();
    this.drawOver();
    const there = live?.findings.filter(seen => !seen.gone) ?? [];
    this.drawFindings(there);
    this.times.hidden = this.steps.length === 0;
    if (live)
      this.times.replaceChildren(h('h2', {}, t('live.time.head')),
        ...stepTimes(this.steps, live.usual_ns, live.findings));
    this.pipeline.show(live?.pipeline ?? null, live?.ranks ?? 0, guilty(there));
  }

  private drawHead(): void {
    const live = this.live, last = this.steps[this.steps.length - 1], notices: string[] = [];
    if (this.away) notices.push(t('live.away'));
    if (live && live.lost_records > 0) notices.push(t('live.lost', grouped(live.lost_records)));
    if (!live || !last) {
      this.title.textContent = t('live.waiting.title');
      this.lead.textContent = t('live.waiting.lead');
    } else if (live.state === 'closed' || live.state === 'silent') {
      this.title.textContent = t(live.state === 'closed' ? 'live.over.title' : 'live.over.silent',
        countOf('live.steps', live.steps_over));
      this.lead.textContent = t('live.time.median', duration(live.usual_ns));
    } else {
      this.title.textContent = t('live.step', last.step, duration(last.dur_ns));
      this.lead.textContent = [against(last.dur_ns, live.usual_ns), ...facts(last)].join(' · ');
      const waited = Date.now() * 1e6 - Number(live.newest_ns);
      if (waited > Math.max(LATE_STEPS * live.usual_ns, 2e9))
        notices.push(
          live.behind_count > 0 ? t('live.behind', duration(waited), live.under_way, held(live))
            : t('live.still', duration(waited), live.under_way),
        );
    }
    this.notices.replaceChildren(...notices.map(text => h('p', {class: 'notice'}, text)));
  }

  private drawOver(): void {
    const status = this.status;
    this.over.hidden = !status;
    if (!status) return;
    this.over.replaceChildren(
      ...this.lost(),
      status.state === 'ready' ? h('a', {href: './'}, t('live.over.open'))
        : status.state === 'failed' ? h('p', {class: 'notice'}, t('live.over.failed', status.error ?? ''))
        : h('p', {class: 'quiet'}, t('live.over.reading')),
    );
  }

  // The job's losses over all of its steps. Findings of the last steps say nothing of what came earlier.
  private lost(): HTMLElement[] {
    if (!this.whole?.findings) return [];
    const found = this.whole.findings.slice(0, MOST_OF_WHOLE);
    return [
      h('h2', {}, t('live.over.whole')),
      found.length > 0
        ? h('ol', {class: 'found whole'}, ...found.map(one => h('li', {'data-id': one.id}, ...named(one))))
        : h('p', {class: 'quiet'}, say(this.whole.closing_en, this.whole.closing_zh)),
    ];
  }

  private drawFindings(there: Seen[]): void {
    const live = this.live;
    this.findings.hidden = !live || this.steps.length === 0;
    if (!live) return;
    const gone = live.findings.filter(seen => seen.gone).reverse().slice(0, MOST_FINDINGS_GONE),
      ended = live.state === 'closed' || live.state === 'silent';
    there.sort((a, b) => b.finding.lost_share - a.finding.lost_share);
    const none = this.steps.length < 2 ? t('live.found.early') : ended ? t('live.over.none') : t('live.found.none');
    this.findings.replaceChildren(
      h('h2', {}, t(ended ? 'live.found.end' : 'live.found.now')),
      there.length > 0 ? h('ol', {class: 'found'}, ...there.map(line)) : h('p', {class: 'quiet'}, none),
      ...(gone.length > 0 ? [h('h2', {}, t('live.found.gone')), h('ol', {class: 'found gone'}, ...gone.map(line))]
        : []),
    );
  }
}

const against = (ns: number,
  usual: number): string => (usual <= 0 || Math.abs(ns / usual - 1) < .01 ? t('live.step.usual')
    : ns > usual ? t('live.step.longer', percent(ns / usual - 1), duration(usual))
    : t('live.step.shorter', percent(1 - ns / usual), duration(usual)));

// The rank that computed longest is named if the difference shows in two decimals.
function facts(step: Step): string[] {
  const out: string[] = [];
  if (step.bubble_share !== null) out.push(t('live.bubble', percent(step.bubble_share)));
  if (step.slowest_rank !== null && step.rank_ratio >= 1.01)
    out.push(t('live.slowest.rank', step.slowest_rank, step.rank_ratio.toFixed(2)));
  else if (step.slowest_stage !== null && step.stage_ratio >= 1.01)
    out.push(t('live.slowest.stage', step.slowest_stage, step.stage_ratio.toFixed(2)));
  return out;
}

const held = (live: Live): string =>
  [
    ...live.behind.map(rank => t('live.rank', rank)),
    ...(live.behind_count > live.behind.length ? [t('live.more', live.behind_count - live.behind.length)] : []),
  ].join(', ');

function guilty(there: Seen[]): number | null {
  for (const {finding} of there) {
    const place = finding.places[0];
    if (place?.kind === 'ranks' && place.ranks?.length === 1) return place.ranks[0]!;
  }
  return null;
}

const named = (finding: Finding): HTMLElement[] => [
  h('span', {class: 'title'}, say(finding.title_en, finding.title_zh)),
  h('span', {class: 'price'},
    finding.lost_share > 0 ? t('live.found.lost', percent(finding.lost_share)) : finding.value),
];

function line(seen: Seen): HTMLElement {
  const {finding, begin_step, last_step, gone} = seen;
  return h('li', {'data-id': finding.id, 'data-cause': finding.key}, ...named(finding),
    h('span', {class: 'detail'}, gone ? '' : say(finding.detail_en, finding.detail_zh)),
    h('span', {class: 'when'}, gone ? t('live.found.was', begin_step, last_step) : t('live.found.since', begin_step)));
}

void new Page().follow();
