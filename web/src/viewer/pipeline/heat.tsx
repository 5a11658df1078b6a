// Who is slow, as maps: every worker against the others of its stage (replica × stage), every step of a stage against
// its usual one (step × stage). Numbers are those of stageline analyze stragglers.
import {frameOf, type Row} from '../../data/frame';
import {duration} from '../../format';
import {t} from '../../i18n/i18n';
import {replicaName} from '../../words';
import {commandLine} from '../shell/command';
import {chooseStep, type Pipe} from './pipe';

const MOST_CELLS = 4096, FULL = 0.25; // a quarter above or below is the deepest colour

// Above 1 the colour of what is wrong, below it that of forward work.
function shade(ratio: number): Record<string, string> {
  // At most: ink stays readable on it.
  const by = Math.max(-1, Math.min(1, (ratio - 1) / FULL)), share = Math.round(Math.abs(by) * 50);
  return share === 0 ? {} : {background: `color-mix(in srgb, var(--${by > 0 ? 'hot' : 'acc'}) ${share}%, transparent)`};
}
const sorted = (values: Iterable<number>): number[] => [...new Set(values)].sort((a, b) => a - b);

interface MapCell {
  ratio: number;
  title: string;
  go(): void;
  now: boolean;
}

function HeatMap(
  {id, name, rows, columns, rowName, at}: {id: string; name: string; rows: number[]; columns: number[];
    rowName(row: number): string; at(row: number, column: number): MapCell | null},
) {
  const few = columns.length <= 12;
  return (
    <div class="fits">
      <table class={few ? 'heat' : 'heat narrow'} id={id}>
        <caption class="live">{name}</caption>
        <thead>
          <tr>
            <td class="text" />
            {columns.map((c, i) => <th scope="col">{few ? c : i % 4 === 0 && <span>{c}</span>}</th>)}
          </tr>
        </thead>
        <tbody>
          {rows.map(row => (
            <tr>
              <th scope="row" class="text">{rowName(row)}</th>
              {columns.map(column => {
                const cell = at(row, column);
                return (
                  <td>
                    {cell && (
                      <button
                        class={cell.now ? 'now' : ''}
                        style={shade(cell.ratio)}
                        title={cell.title}
                        aria-label={few ? `${cell.ratio.toFixed(2)}: ${cell.title}` : cell.title}
                        onClick={cell.go}>
                        {few ? cell.ratio.toFixed(2) : ''}
                      </button>
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Workers({pipe}: {pipe: Pipe}) {
  const {app} = pipe, frame = frameOf(app.report, 'straggler-workers');
  if (frame && frame.table.rowCount > frame.rows.length) return null; // a report of many ranks has not all of them
  const all = frame?.rows.filter(row => row.num('peer_ratio') > 0 && row.text('stage') !== '') ?? [];
  const replicas = sorted(all.map(row => row.num('dp'))), stages = sorted(all.map(row => row.num('stage')));
  if (replicas.length < 2 || replicas.length * stages.length > MOST_CELLS) return null;
  const byPlace = new Map<string, Row>(); // of tensor-parallel ranks the slowest
  for (const row of all) {
    const key = `${row.num('dp')}/${row.num('stage')}`, known = byPlace.get(key);
    if (!known || known.num('peer_ratio') < row.num('peer_ratio')) byPlace.set(key, row);
  }
  return (
    <section class="card" aria-labelledby="workers-title">
      <h2 id="workers-title">{t('pipe.workers')}</h2>
      <HeatMap
        id="workers"
        name={t('pipe.workers')}
        rows={replicas}
        columns={stages}
        rowName={dp => replicaName(app, dp)}
        at={(dp, stage) => {
          const row = byPlace.get(`${dp}/${stage}`);
          return row
            ? {ratio: row.num('peer_ratio'), now: app.state.dp === dp && !app.state.open.has(stage),
              title: t('pipe.worker', row.num('rank'), stage, row.num('peer_ratio').toFixed(3),
                duration(row.num('busy_ns'))), go: () => app.change({dp, hovered: -1})} : null;
        }} />
      <p class="how">
        {t('pipe.workers.how')} <code>{commandLine('analyze stragglers', pipe.shell.run.paths)}</code>
      </p>
    </section>
  );
}

export function StepMap({pipe}: {pipe: Pipe}) {
  const {app} = pipe, all = frameOf(app.report, 'straggler-steps')?.rows.filter(row => row.num('ratio') > 0) ?? [];
  const steps = sorted(all.map(row => row.num('step'))), stages = sorted(all.map(row => row.num('stage')));
  if (steps.length < 2 || stages.length * steps.length > MOST_CELLS) return null;
  const byPlace = new Map(all.map(row => [`${row.num('step')}/${row.num('stage')}`, row]));
  return (
    <section class="card" aria-labelledby="step-map-title">
      <h2 id="step-map-title">{t('pipe.stepMap')}</h2>
      <HeatMap
        id="step-map"
        name={t('pipe.stepMap')}
        rows={stages}
        columns={steps}
        rowName={stage => t('row.stage', stage)}
        at={(stage, step) => {
          const row = byPlace.get(`${step}/${stage}`);
          return row
            ? {ratio: row.num('ratio'), now: app.state.step === step,
              title: t('pipe.stepStage', step, stage, row.num('ratio').toFixed(3), duration(row.num('busy_ns')),
                row.num('slowest_rank')), go: () => chooseStep(pipe, step)} : null;
        }} />
      <p class="how">
        {t('pipe.stepMap.how')} <code>{commandLine('analyze stragglers', pipe.shell.run.paths)}</code>
      </p>
    </section>
  );
}
