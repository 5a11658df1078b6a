// The ranks that take more than their peers, the worst first, where there are too many ranks for the eye to find them
// in a chart or a map. Who they are and in what order the program says (/api/pipeline/ranks).
import {select} from '../../app';
import {hasMany} from '../../chart/layout';
import {nearest} from '../../chart/hit';
import {frameOf} from '../../data/frame';
import {duration} from '../../format';
import {cellValue, t} from '../../i18n/i18n';
import {hasContextParallel} from '../../words';
import {commandLine} from '../shell/command';
import type {Pipe} from './pipe';

const MOST = 12;

// The rank gets a row of its own, and the cell in the middle of the window is chosen.
function show({app, chart}: Pipe, part: number): void {
  const {stage} = app.report.parts[part]!, open = new Set([...app.state.open, stage]), {view, step} = app.state;
  app.change({dp: null, folded: true, open});
  const cell = nearest(app.model.rows[app.model.rowOfPart[part]!]!, app.cells, step, (view.t0 + view.t1) / 2);
  if (!chart.scene().layout.rows.includes(app.model.rowOfPart[part]!))
    app.change({full: new Set([...app.state.full, stage])});
  if (cell >= 0) select(app, cell);
  const index = chart.scene().layout.rows.indexOf(app.model.rowOfPart[part]!);
  if (index >= 0) chart.showRow(index);
}

export function WorstRanks({pipe}: {pipe: Pipe}) {
  const {app} = pipe, {parts} = app.report, table = frameOf(app.report, 'straggler-workers')?.table;
  if (!app.worst || !hasMany(parts)) return null;
  const all = [...app.worst], slow = all.filter(([, rank]) => rank.isSlow),
    shown = (slow.length > 0 ? slow : all).slice(0, MOST);
  const column = table?.columns.find(one => one.name === 'verdict'),
    verdict = (word: string): string => String(table && column ? cellValue(table, column, word) : word);
  const replicas = app.model.dps.length > 1;
  return (
    <section class="card" aria-labelledby="worst-title">
      <h2 id="worst-title">{t('pipe.worst')}</h2>
      {slow.length === 0 && <p class="quiet">{t('pipe.worst.none')}</p>}
      {shown.length > 0 && (
        <div class="fits">
          <table class="plain" id="worst">
            <thead>
              <tr>
                <th scope="col" class="text">{t('pipe.worst.rank')}</th>
                <th scope="col">{t('stages.stage')}</th>
                {replicas && (
                  <th scope="col">{t(hasContextParallel(app) ? 'chart.pipelineSelect' : 'chart.replicaSelect')}</th>
                )}
                <th scope="col">{t('pipe.worst.beyond')}</th>
                <th scope="col">{t('pipe.worst.ratio')}</th>
                <th scope="col" class="text">{t('pipe.worst.verdict')}</th>
              </tr>
            </thead>
            <tbody>
              {shown.map(([part, {beyondNs, ratio, verdict: word}]) => (
                <tr>
                  <th scope="row" class="text">
                    <button class="plain link" onClick={() => show(pipe, part)}>{parts[part]!.rank}</button>
                  </th>
                  <td>{parts[part]!.stage}</td>
                  {replicas && <td>{parts[part]!.dp < 0 ? '–' : parts[part]!.dp}</td>}
                  <td>{duration(beyondNs)}</td>
                  <td class={slow.length > 0 ? 'hot' : ''}>
                    {Number.isNaN(ratio) ? '–' : `${ratio.toFixed(ratio < 1.1 ? 3 : 2)}×`}
                  </td>
                  <td class="text">{verdict(word)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p class="how">
        {t('pipe.worst.how')}{' '}
        <code>{commandLine('analyze stragglers', pipe.shell.run.paths, '--table straggler-workers')}</code>
      </p>
    </section>
  );
}
