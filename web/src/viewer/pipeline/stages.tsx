// Each stage's time as a bar that adds up to the pipeline: busy, and what it waits for (the table waterfall-stages);
// beside it what its cells take (the table stages).
import {frameOf, type Row} from '../../data/frame';
import {duration, percent} from '../../format';
import {t} from '../../i18n/i18n';
import {w} from '../words';
import {toggleStage, type Pipe} from './pipe';
import {partWord} from './steps';

const PARTS: [string, string][] = [['busy', 'busy_ns'], ['bubble', 'schedule_ns'], ['imbalance', 'imbalance_ns'], ['jitter', 'jitter_ns'],
  ['comm', 'latency_ns'], ['rest', 'rest_ns']];
const KINDS = ['F', 'B', 'I', 'W', 'F&B'];

export function Stages({pipe}: {pipe: Pipe}) {
  const {app} = pipe, rows = frameOf(app.report, 'waterfall-stages')?.rows ?? [];
  if (rows.length === 0) return null;
  const costs = new Map<string, number>(), ratios = new Map<number, number>();
  for (const row of frameOf(app.report, 'stages')?.rows ?? []) {
    costs.set(`${row.num('stage')}/${row.text('kind')}`, row.num('mean_ns'));
    const ratio = row.num('ratio_to_median');
    if (ratio > 0) ratios.set(row.num('stage'), Math.max(row.text('kind') === 'all' ? 0 : ratios.get(row.num('stage')) ?? 0, ratio));
  }
  const kinds = KINDS.filter(kind => rows.some(row => costs.has(`${row.num('stage')}/${kind}`)));
  // What is waited, shared by the parts above 0: one below it shortened the others.
  const shares = (row: Row): [id: string, share: number][] => {
    const whole = Math.max(row.num('pipeline_ns'), 1), busy = row.num('busy_ns'), waits = PARTS.slice(1).map(([id, name]): [string, number] =>
      [id, Math.max(0, row.num(name))]);
    const sum = waits.reduce((all, [, ns]) => all + ns, 0);
    return [['busy', busy / whole], ...waits.map(([id, ns]): [string, number] => [id, sum > 0 ? ns / sum * Math.max(0, 1 - busy / whole) : 0])];
  };
  const largest = Math.max(...costs.values(), 1), ms = (ns: number | undefined): string =>
    (ns === undefined ? '–' : largest >= 1e7 ? (ns / 1e6).toFixed(1) : (ns / 1e6).toPrecision(3));
  const used = PARTS.filter(([, name]) => rows.some(row => Math.abs(row.num(name)) > row.num('pipeline_ns') / 2000));
  return (
    <section class="card stages" aria-labelledby="stages-title">
      <h2 id="stages-title">{w('pipe.stages')}</h2>
      <div class="fits"><table class="plain">
        <thead><tr>
          <th scope="col" class="text">{t('stages.stage')}</th><th scope="col" class="bar-head">
            <ul class="key">{used.map(([id]) => <li><i class={`part swatch ${id}`} />{partWord(id)}</li>)}</ul></th>
          <th scope="col">{w('pipe.busy')}</th>{kinds.map(kind => <th scope="col" title={w('pipe.kind.help', t(`kind.${kind}` as 'kind.F'))}>{kind}{' '}
            <small>ms</small></th>)}
          {ratios.size > 0 && <th scope="col">{t('stages.ratio')}</th>}
        </tr></thead>
        <tbody>
          {rows.map(row => {
            const stage = row.num('stage'), ratio = ratios.get(stage);
            return (
              <tr>
                <th scope="row" class="text"><button class="plain link" title={w('pipe.stage.open')} onClick={() =>
                    toggleStage(app, stage)}>{stage}</button></th>
                <td class="bar-cell"><div class="bars" role="img" aria-label={PARTS.map(([id, name]) => `${partWord(id)} ${duration(row.num(name))}`)
                    .join(', ')}>
                  {shares(row).map(([id, share], k) => share > 0 && <i class={`part ${id}`} style={{width: `${share * 100}%`}}
                    title={`${partWord(id)}: ${duration(row.num(PARTS[k]![1]))}`} />)}
                </div></td>
                <td>{percent(row.num('busy_share'))}</td>
                {kinds.map(kind => <td>{ms(costs.get(`${stage}/${kind}`))}</td>)}
                {ratios.size > 0 && <td class={(ratio ?? 1) >= 1.1 ? 'hot' : ''}>{ratio === undefined ? '–' : `${ratio.toFixed(2)}×`}</td>}
              </tr>);
          })}
        </tbody>
      </table></div>
      <p class="how">{w('pipe.stages.how')} <code>stageline analyze waterfall</code></p>
    </section>
  );
}
